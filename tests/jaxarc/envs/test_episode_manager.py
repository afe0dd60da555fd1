"""Whether an episode goes on, rule by rule."""

import pytest

from arc_states import small_state
from jaxarc.config import ArcEpisodeConfig
from jaxarc.envs.episode_manager import ArcEpisodeManager

LOOSE = {"require_all_tests_solved": False}
FIRST = {"terminate_on_first_success": True}


@pytest.mark.parametrize(
    ("rules", "changes", "goes_on"),
    [
        (LOOSE, {}, True),
        (LOOSE, {"episode_done": True}, False),
        (LOOSE, {"similarity_score": 1.0}, True),
        (
            LOOSE | {"terminate_on_first_success": True},
            {"similarity_score": 1.0},
            False,
        ),
        (LOOSE | FIRST, {"similarity_score": 0.9}, True),
        (
            LOOSE | FIRST | {"success_threshold": 0.9},
            {"similarity_score": 0.95},
            False,
        ),
        (LOOSE, {"demo_completion_status": [True, True, True, False]}, True),
        (
            LOOSE | {"require_all_demos_solved": True},
            {"demo_completion_status": [True, True, True, False]},
            False,
        ),
        (
            LOOSE | {"require_all_demos_solved": True},
            {"demo_completion_status": [True, True, False, False]},
            True,
        ),
        (
            LOOSE | {"max_pairs_per_episode": 2},
            {"demo_completion_status": [True, False, True, False]},
            False,
        ),
        (
            {"require_all_tests_solved": True},
            {"test_completion_status": [True, True], "episode_mode": 1},
            False,
        ),
        (
            {"require_all_tests_solved": True},
            {"test_completion_status": [True, True], "episode_mode": 0},
            True,
        ),
    ],
)
def test_rules(rules, changes, goes_on):
    state = small_state().replace(**changes)
    config = ArcEpisodeConfig(**rules)
    found = ArcEpisodeManager.should_continue_episode(state, config)
    assert bool(found) == goes_on
