"""Gymnasium's own checks pass, and steps are those of the environment."""

import jax
import numpy as np
import pytest

from arc_environments import clipping, small_env, small_params
from jaxarc import wrappers
from jaxarc.config import EnvironmentConfig, JaxArcConfig
from jaxarc.envs.spaces import Bounded, Discrete, MultiBinary, Space, action_space

pytestmark = pytest.mark.slow  # many programs to compile

gymnasium = pytest.importorskip("gymnasium")
adapter = pytest.importorskip("jaxarc.adapters.gymnasium")

WRAPPERS = {
    "plain": lambda env: env,
    "flat": lambda env: wrappers.FlattenActionWrapper(wrappers.PointActionWrapper(env)),
    "points, channels, figures": lambda env: wrappers.MetricsWrapper(
        wrappers.InputGridObservationWrapper(wrappers.PointActionWrapper(env))
    ),
}
COUNT = 4


def wrapped(name, **groups):
    return WRAPPERS[name](small_env(clipping(**groups)))


def made(**kw):
    return adapter.make_gym("Mini", params=small_params(), **kw)


@pytest.mark.parametrize("name", WRAPPERS)
def test_gymnasium_finds_nothing_wrong(name):
    from gymnasium.utils.env_checker import check_env

    entry = lambda params: WRAPPERS[name](small_env(params.config, params.buffer))
    for mode in (None, "rgb_array", "ansi"):
        env = made(env_entry=entry, render_mode=mode)
        check_env(env)


def test_a_spec_makes_the_same_environment():
    env = made()
    again = env.spec.make(render_mode="ansi")
    first, _ = env.reset(seed=3)
    second, _ = again.reset(seed=3)
    np.testing.assert_array_equal(first, second)
    assert isinstance(again.render(), str)


def test_seeds_decide_and_differ():
    env = adapter.GymEnv(wrapped("plain"))
    starts = {env.reset(seed=seed)[0].tobytes() for seed in range(20)}
    assert len(starts) > 3
    env.reset(seed=1)
    later = [env.reset()[0].tobytes() for _ in range(5)]
    env.reset(seed=1)
    assert later == [env.reset()[0].tobytes() for _ in range(5)]


def test_an_episode_is_that_of_the_environment():
    inner = wrapped("points, channels, figures", steps=5)
    env = adapter.GymEnv(inner)
    observation, info = env.reset(seed=0, options={"task": 2, "pair": 1})
    state, first = inner.reset(jax.random.key(0), task=2, pair=1)
    after = first
    np.testing.assert_array_equal(observation, first.observation)
    assert info["episode_metrics"]["episode_length"] == 0
    env.action_space.seed(0)
    for _ in range(5):
        action = env.action_space.sample()
        observation, reward, terminated, truncated, info = env.step(action)
        state, after = inner.step(state, action)
        np.testing.assert_array_equal(observation, after.observation)
        assert reward == float(after.reward)
        assert terminated is bool(after.terminated())
        assert truncated is bool(after.truncated())
        assert info["similarity"] == after.extras["similarity"]
        if terminated:
            break
    metrics = info["episode_metrics"]
    assert metrics["episode_length"] == after.extras["episode_metrics"].episode_length
    assert observation.flags.writeable


def test_wrong_use_is_refused():
    env = adapter.GymEnv(wrapped("plain"))
    with pytest.raises(RuntimeError, match="reset first"):
        env.step(env.action_space.sample())
    with pytest.raises(ValueError, match="no option color; it has task, pair"):
        env.reset(options={"color": 1})
    with pytest.raises(ValueError, match="there are 4 tasks"):
        env.reset(options={"task": 4})
    with pytest.raises(ValueError, match="rgb_array, ansi"):
        adapter.GymEnv(wrapped("plain"), render_mode="human")
    for outer in (wrappers.AutoReset, wrappers.Vectorize):
        with pytest.raises(ValueError, match="inner one"):
            adapter.GymEnv(outer(small_env()))
        with pytest.raises(ValueError, match="inner one"):
            adapter.GymVectorEnv(outer(small_env()), 2)
    with pytest.raises(ValueError, match="num_envs is 0"):
        adapter.GymVectorEnv(small_env(), 0)


def test_pictures_need_a_mode():
    env = adapter.GymEnv(wrapped("plain"))
    env.reset(seed=0)
    assert env.render() is None
    env = adapter.GymEnv(wrapped("plain"), render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().dtype == np.uint8


def test_spaces_are_converted():
    spaces = gymnasium.spaces
    assert adapter.as_gym_space(Discrete(7)) == spaces.Discrete(7)
    assert adapter.as_gym_space(MultiBinary((2, 3))) == spaces.MultiBinary((2, 3))
    box = adapter.as_gym_space(Bounded((2, 3), -1, 9))
    assert box == spaces.Box(-1, 9, (2, 3), np.int32)
    whole = adapter.as_gym_space(action_space(42, 2, 3))
    assert whole["operation"] == spaces.Discrete(42)
    with pytest.raises(TypeError, match="no counterpart"):
        adapter.as_gym_space(Space())


def vector(name="flat", count=COUNT, **groups):
    return adapter.GymVectorEnv(wrapped(name, **groups), count)


@pytest.mark.parametrize("name", WRAPPERS)
def test_vector_results_have_the_declared_shapes(name):
    env = vector(name, steps=3)
    observations, _ = env.reset(seed=0)
    assert observations in env.observation_space
    env.action_space.seed(0)
    for _ in range(4):
        results = env.step(env.action_space.sample())
        assert results[0] in env.observation_space
        for values, dtype in zip(results[1:4], (np.float64, bool, bool), strict=True):
            assert values.shape == (COUNT,)
            assert values.dtype == dtype


def test_vector_rows_begin_as_single_environments_do():
    env, one = vector(), adapter.GymEnv(wrapped("flat"))
    for seed in (5, [9, 3, 7, 7]):
        observations, _ = env.reset(seed=seed)
        seeds = [5, 6, 7, 8] if seed == 5 else seed
        for row, single in zip(observations, seeds, strict=True):
            np.testing.assert_array_equal(row, one.reset(seed=single)[0])
    with pytest.raises(ValueError, match="2 seeds for 4"):
        env.reset(seed=[1, 2])


def test_vector_steps_equal_those_of_gymnasium_until_an_end():
    make = lambda: adapter.GymEnv(wrapped("points, channels, figures", steps=4))
    mode = gymnasium.vector.AutoresetMode.SAME_STEP
    other = gymnasium.vector.SyncVectorEnv([make] * COUNT, autoreset_mode=mode)
    env = vector("points, channels, figures", steps=4)
    assert env.metadata["autoreset_mode"] == mode
    assert env.observation_space == other.observation_space
    assert env.action_space == other.action_space
    np.testing.assert_array_equal(env.reset(seed=2)[0], other.reset(seed=2)[0])
    env.action_space.seed(0)
    alive = np.ones(COUNT, bool)
    for _ in range(4):
        actions = env.action_space.sample()
        found, wanted = env.step(actions), other.step(actions)
        for a, b in zip(found[1:4], wanted[1:4], strict=True):
            np.testing.assert_array_equal(a[alive], b[alive].astype(a.dtype))
        infos, reference = found[4], wanted[4]
        done = alive & (found[2] | found[3])
        for index in np.flatnonzero(done):
            np.testing.assert_array_equal(
                infos["final_obs"][index], reference["final_obs"][index]
            )
            length = infos["final_info"]["episode_metrics"]["episode_length"]
            theirs = reference["final_info"]["episode_metrics"]["episode_length"]
            assert length[index] == theirs[index]
        alive &= ~done
        running = np.flatnonzero(alive)
        np.testing.assert_array_equal(found[0][running], wanted[0][running])
        for index in running:
            assert infos["similarity"][index] == reference["similarity"][index]
    assert not alive.any()


def test_ends_are_told_apart_from_starts():
    env = vector(steps=2)
    env.reset(seed=0)
    fill = np.zeros(COUNT, np.int64)
    _, _, _, _, infos = env.step(fill)
    assert "final_obs" not in infos
    assert infos["_similarity"].all()
    submit = fill.copy()
    submit[1] = 34 * 25
    _, _, terminated, truncated, infos = env.step(submit)
    done = terminated | truncated
    assert done.all()
    assert terminated[1]
    assert not truncated[1]
    assert infos["_final_obs"].all()
    assert not infos["_similarity"].any()
    assert infos["final_info"]["operation_id"][1] == 34


def test_gymnasium_wrappers_work_on_vectors():
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(vector(steps=3))
    env.reset(seed=0)
    lengths = []
    for _ in range(6):
        *_, infos = env.step(np.zeros(COUNT, np.int64))
        if "episode" in infos:
            lengths += infos["episode"]["l"][infos["_episode"]].tolist()
    assert lengths
    assert max(lengths) <= 3


def test_vectors_by_name_with_pictures():
    env = adapter.make_gym_vector(
        "Mini", 2, params=small_params(), render_mode="rgb_array"
    )
    assert env.render() is None
    with pytest.raises(RuntimeError, match="reset first"):
        env.step(env.action_space.sample())
    env.reset(seed=0, options={"task": [2, 1], "pair": [0, 1]})
    assert len(env.render()) == 2
    assert env.reset()[0].shape == (2, 5, 5)


def test_vectors_reset_by_themselves():
    off = JaxArcConfig(environment=EnvironmentConfig(auto_reset=False))
    with pytest.raises(ValueError, match="auto_reset is off"):
        adapter.GymVectorEnv(small_env(off), 2)


def test_the_next_step_begins_another_episode():
    """Steps are those of Gymnasium's own vector environment in this mode, until an end;
    then a start of some task, no reward and no infos, whatever the action.
    """
    make = lambda: adapter.GymEnv(wrapped("points, channels, figures", steps=2))
    other = gymnasium.vector.SyncVectorEnv(
        [make] * COUNT, autoreset_mode=gymnasium.vector.AutoresetMode.NEXT_STEP
    )
    inner = wrapped("points, channels, figures", steps=2)
    env = adapter.GymVectorEnv(inner, COUNT, autoreset_mode="next_step")
    assert env.metadata["autoreset_mode"] == other.metadata["autoreset_mode"]
    np.testing.assert_array_equal(env.reset(seed=2)[0], other.reset(seed=2)[0])
    fill = {"operation": 0, "row": 1, "col": 1}
    actions = {name: np.full(COUNT, value) for name, value in fill.items()}
    for count in (1, 2):
        found, wanted = env.step(actions), other.step(actions)
        for a, b in zip(found[:4], wanted[:4], strict=True):
            np.testing.assert_array_equal(a, b.astype(a.dtype))
        assert (found[2] | found[3]).all() == (count == 2)
    begun = env.step({name: x + 1 for name, x in actions.items()})
    starts = {
        inner.reset(jax.random.key(0), task=task, pair=pair)[1].observation.tobytes()
        for task, pairs in enumerate((1, 2, 3, 1))
        for pair in range(pairs)
    }
    assert all(np.asarray(row).tobytes() in starts for row in begun[0])
    assert not np.any(begun[1:4])
    assert not begun[4]["_similarity"].any()
    *_, infos = env.step(actions)
    np.testing.assert_array_equal(infos["episode_metrics"]["episode_length"], 1)
    with pytest.raises(ValueError, match="SAME_STEP or NEXT_STEP"):
        adapter.GymVectorEnv(inner, 2, autoreset_mode="disabled")


def test_environments_are_registered():
    from gymnasium.utils.env_checker import check_env

    names = [name for name in gymnasium.registry if name.startswith("jaxarc/")]
    assert "jaxarc/AGI1-v0" in names
    params = small_params()
    env = gymnasium.make("jaxarc/Mini-v0", params=params, render_mode="ansi")
    assert env.spec is not None
    assert env.spec.id == "jaxarc/Mini-v0"
    check_env(env.unwrapped, skip_render_check=True)
    env.reset(seed=0)
    assert isinstance(env.render(), str)
    for mode in (None, "sync"):
        many = gymnasium.make_vec(
            "jaxarc/Mini-v0", num_envs=3, vectorization_mode=mode, params=params
        )
        assert many.reset(seed=0)[0].shape == (3, 5, 5)
