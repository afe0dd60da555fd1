"""Oracle: episodes counted by hand."""

import pytest

from acbo.training.curriculum import (
    ConvergenceConfig,
    ConvergenceState,
    observe_episode,
)


def play(episodes, state=None):
    state = ConvergenceState() if state is None else state
    for accuracy, reward in episodes:
        state = observe_episode(state, accuracy, reward)
    return state


def test_steady_and_right_for_long_enough():
    """Five episodes fill the window; the next four make five good ones."""
    good = [(0.96, 1.0)]
    assert not play(good * 8).converged
    assert play(good * 9).converged
    assert play(good * 9).should_rotate


def test_one_bad_episode_starts_over():
    state = play([(0.96, 1.0)] * 8 + [(0.5, 1.0)])
    assert state.good == 0
    assert not play([(0.96, 1.0)] * 4, state).converged
    assert play([(0.96, 1.0)] * 5, state).converged


def test_rewards_must_settle():
    wild = [(1.0, float(i % 2)) for i in range(29)]
    assert not play(wild).should_rotate
    assert play([*wild, (1.0, 0.0)]).exhausted


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="max_episodes=3 must be at least 5"):
        ConvergenceConfig(max_episodes=3)
