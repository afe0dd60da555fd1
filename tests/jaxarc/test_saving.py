"""States on disk: equal when loaded, small, in any process, on the right task."""

import subprocess
import sys
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_play import random_move, shown
from arc_samples import documented
from arc_states import assert_same, folder_parser, small_config, small_task
from jaxarc.config import ActionConfig, DatasetConfig, EnvironmentConfig, JaxArcConfig
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset
from jaxarc.episode import Augmentation
from jaxarc.saving import read_state, write_state
from jaxarc.state import ArcEnvState
from jaxarc.tasks.augment import random_augmentation
from jaxarc.tasks.identity import create_jax_task_index, register_task
from jaxarc.tasks.samples import create_mock_task
from jaxrig.checkpoint import ContainerError, save_tree


def walk(state, config, steps, seed=0):
    """States and rewards of some random steps."""
    seen = []
    rng = np.random.default_rng(seed)
    shape, kind = state.tasks.get_grid_shape(), config.action.selection_format
    for _ in range(steps):
        action = random_move(rng, shape, kind).action()
        state, observation, reward, done, info = arc_step(state, action, config)
        seen.append((state, observation, reward, done, info))
    return seen


def raw_bytes(state):
    """The size of the documented arrays, those of the task included."""

    arrays = lambda state: (shown(state), documented(state.task_data))
    known = jax.tree.leaves(jax.eval_shape(arrays, state))
    return sum(array.size * array.dtype.itemsize for array in known)


@pytest.fixture
def parser(tmp_path):
    return folder_parser(tmp_path / "tasks")


@pytest.mark.parametrize("selection_format", ["point", "mask"])
def test_a_loaded_episode_goes_on_as_if_nothing_had_happened(
    parser, tmp_path, selection_format
):
    config = small_config(selection_format, steps=6)
    state, _ = arc_reset(jax.random.key(1), config, parser.get_task_by_id("bb"))
    for steps in (0, 3, 9):  # 9: the ring of the history has gone round
        state = walk(state, config, steps)[-1][0] if steps else state
        path = state.save(tmp_path / "state.ckpt", config)
        loaded = ArcEnvState.load(path, parser, config)
        assert_same(loaded, state)
        assert_same(walk(loaded, config, 2, 5), walk(state, config, 2, 5))


def test_what_else_a_state_holds_comes_back(parser, tmp_path):
    config = small_config()
    shown = Augmentation(*random_augmentation(jax.random.key(0)))
    state, _ = arc_reset(
        jax.random.key(0),
        config,
        parser.buffer(["aa", "cc"]),
        1,
        task_row=1,
        augmentation=shown,
    )
    history = np.zeros((8, 6), np.float32)
    history[5] = [0.5, -0.0, np.nan, 1e9, 0, 1]  # only what records never hold
    state = state.replace(action_history=history)
    loaded = ArcEnvState.load(state.save(tmp_path / "state.ckpt"), parser)
    assert_same(loaded.episode, state.episode)
    assert_same(loaded.task_data, state.task_data)
    assert loaded.action_history.tobytes() == state.action_history.tobytes()


@pytest.mark.parametrize(
    ("selection_format", "used"),
    [
        *(("point", 0), ("point", 1000), ("bbox", 60)),
        pytest.param("mask", 1000, marks=pytest.mark.slow),  # megabytes to compress
    ],
)
def test_files_are_a_tenth_of_the_arrays(tmp_path, selection_format, used):
    """30x30, room for 10 + 3 pairs and 1000 steps, as the documents have it."""
    parser = folder_parser(tmp_path, max_grid_height=30, max_grid_width=30)
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=1000),
        dataset=DatasetConfig(),
        action=ActionConfig(selection_format=selection_format),
    )
    state, _ = arc_reset(jax.random.key(0), config, parser.get_task_by_id("aa"))
    rng = np.random.default_rng(0)
    room, fields = state.action_history.shape
    records = np.zeros((room, fields), np.float32)
    cells = 2 if selection_format == "mask" else 30
    records[:used, :-4] = rng.integers(0, cells, (used, fields - 4))
    records[:used, -4] = rng.integers(0, 42, used)
    records[:used, -3] = np.arange(used)
    records[:used, -1] = 1
    grid = rng.integers(0, 10, (30, 30))
    state = state.replace(
        working_grid=grid,
        clipboard=grid,
        selected=grid > 5,
        action_history=records,
        action_history_length=used,
        action_history_write_pos=used % 1000,
    )
    path = state.save(tmp_path / "state.ckpt", config)
    assert path.stat().st_size <= 0.1 * raw_bytes(state)
    assert_same(ArcEnvState.load(path, parser), state)


def test_another_process_with_other_numbers_finds_the_task(parser, tmp_path):
    config = small_config()
    state, _ = arc_reset(jax.random.key(1), config, parser.get_task_by_id("cc"))
    state = walk(state, config, 2)[-1][0]
    path = state.save(tmp_path / "state.ckpt", config)
    script = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[1])!r})
from pathlib import Path
from jaxarc.tasks.identity import create_jax_task_index
for name in ("zz", "yy", "cc", "xx"):
    create_jax_task_index(name)
from arc_states import folder_parser
from jaxarc.state import ArcEnvState
parser = folder_parser(Path({str(tmp_path / "tasks")!r}))
state = ArcEnvState.load({str(path)!r}, parser)
print(int(state.task_index), int(state.step_count), state.working_grid.tolist())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    grid = state.working_grid.tolist()
    assert done.stdout.strip() == f"2 2 {grid}"
    assert int(state.task_index) == register_task("cc")


def test_what_cannot_be_found_again_is_refused(parser, tmp_path):
    config = small_config()
    path = tmp_path / "state.ckpt"
    unknown, _ = arc_reset(jax.random.key(0), config, small_task())
    with pytest.raises(ValueError, match="no id"):
        unknown.save(path)
    stranger, _ = arc_reset(jax.random.key(0), config, small_task(task_index=10**6))
    with pytest.raises(ValueError, match="not registered"):
        stranger.save(path)
    with pytest.raises(FileNotFoundError):
        ArcEnvState.load(tmp_path / "nothing.ckpt", parser)
    named = small_task(task_index=int(create_jax_task_index("not in the folder")))
    missing, _ = arc_reset(jax.random.key(0), config, named)
    with pytest.raises(ValueError, match="not in the folder"):
        ArcEnvState.load(missing.save(path), parser)
    keys = jax.random.split(jax.random.key(0), 2)
    states, _ = batch_reset(keys, config, parser.get_task_by_id("aa"))
    with pytest.raises(ValueError, match="batch of states"):
        states.save(path)


def test_another_task_or_padding_is_refused(parser, tmp_path):
    state, _ = arc_reset(jax.random.key(0), small_config(), parser.get_task_by_id("aa"))
    path = state.save(tmp_path / "state.ckpt")
    larger = folder_parser(tmp_path / "tasks", max_grid_height=9)
    with pytest.raises(ValueError, match="DatasetConfig that the state was made with"):
        ArcEnvState.load(path, larger)
    other = folder_parser(tmp_path / "other", ids=("bb", "aa"))
    with pytest.raises(ValueError, match="is not the one the state was made with"):
        read_state(path, other)


def test_other_files_are_refused(parser, tmp_path):
    tree = save_tree(tmp_path / "tree.ckpt", {"a": jnp.zeros(2)})
    with pytest.raises(ValueError, match="does not contain a state"):
        read_state(tree, parser)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ContainerError):
        read_state(tmp_path / "text", parser)


def test_another_configuration_is_warned_of(parser, tmp_path):
    config = small_config()
    state, _ = arc_reset(jax.random.key(0), config, parser.get_task_by_id("aa"))
    path = write_state(state.task_data, state.episode, tmp_path / "a.ckpt", config)
    with pytest.warns(UserWarning, match="a different configuration"):
        ArcEnvState.load(path, parser, small_config(steps=7))


def test_the_recipe_of_the_guide_runs(parser, tmp_path):
    """Plain equinox serialization, and `tree_at` on the documented attribute."""
    config = small_config()
    state, _ = arc_reset(jax.random.key(0), config, parser.get_task_by_id("aa"))
    dummy, _ = arc_reset(jax.random.key(1), config, parser.get_task_by_id("cc"))
    path = str(tmp_path / "state.eqx")
    eqx.tree_serialise_leaves(path, state)
    loaded = eqx.tree_deserialise_leaves(path, dummy)
    assert_same(loaded, state)
    mock = create_mock_task(6, 6)
    again = eqx.tree_at(lambda s: s.task_data, loaded, mock)
    assert_same(again.task_data, mock)
