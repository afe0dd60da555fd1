"""The guides for jaxarc: what their reader has, and checks of what they claim."""

import contextlib
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_states import folder_parser
from documents import Guide
from jaxarc import envs
from jaxarc.config.groups import get_action_record_fields
from jaxarc.envs.functional import arc_reset, arc_step
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction
from jaxarc.tasks import identity
from jaxarc.tasks.samples import create_mock_task
from jaxrig.checks import error_mode


@contextlib.contextmanager
def reading(monkeypatch: pytest.MonkeyPatch):
    """A reader's JAX: promotion allowed, environment put back after."""
    for name in ("EQX_ON_ERROR", "EQX_ON_ERROR_BREAKPOINT_FRAMES"):
        monkeypatch.setenv(name, "raise")
    # More than 80 % of what the guide allows itself, so that its batches shrink.
    memory = lambda: SimpleNamespace(rss=int(3.5 * 2**30))
    psutil: Any = ModuleType("psutil")  # not a dependency; the guide asks for RSS only
    psutil.Process = lambda pid=None: SimpleNamespace(memory_info=memory)
    monkeypatch.setitem(sys.modules, "psutil", psutil)
    monkeypatch.setattr(identity, "_ids", [])
    monkeypatch.setattr(identity, "_numbers", {})
    with contextlib.ExitStack() as settings:
        settings.enter_context(jax.numpy_dtype_promotion("standard"))
        settings.enter_context(jax.numpy_rank_promotion("allow"))
        settings.enter_context(error_mode("raise"))
        yield


def point_config(**environment: Any) -> envs.JaxArcConfig:
    return envs.JaxArcConfig(
        environment=envs.EnvironmentConfig(**environment),
        action=envs.UnifiedActionConfig(selection_format="point"),
    )


def assert_batch(names, size):
    assert names["batch_states"].working_grid.shape == (size, 30, 30)
    assert names["batch_obs"].shape == (size, 30, 30)
    assert names["rewards"].shape == names["dones"].shape == (size,)
    assert names["rewards"].dtype == jnp.float32
    assert names["dones"].dtype == bool
    assert all(value.shape == (size,) for value in names["infos"].values())


def quick_start(names):
    assert names["obs"].shape == (30, 30)
    assert names["obs"].dtype == jnp.int32
    assert names["state"].action_history.shape == (100, 6)
    assert_batch(names, 16)


def formats(names):
    """Fields per record and the reductions beside them: 99.3 and 99.1 per cent."""
    found = {}
    for kind in ("point", "bbox", "mask"):
        config = names[f"{kind}_config"]
        state, _ = arc_reset(jax.random.key(0), config, create_mock_task())
        found[kind] = state.action_history.shape[1]
        assert found[kind] == get_action_record_fields(kind)
    assert found == {"point": 6, "bbox": 8, "mask": 904}
    assert round(100 * (1 - found["point"] / found["mask"]), 1) == 99.3
    assert round(100 * (1 - found["bbox"] / found["mask"]), 1) == 99.1
    assert 1000 * 4 * found["point"] / 1e6 == 0.024
    assert 1000 * 4 * found["bbox"] / 1e6 == 0.032
    assert round(1000 * 4 * found["mask"] / 2**20, 2) == 3.45


def one_cell(names):
    assert np.argwhere(names["selection_mask"]).tolist() == [[5, 5]]


def rectangle(names):
    wanted = np.zeros((30, 30), bool)
    wanted[3:8, 3:8] = True
    np.testing.assert_array_equal(names["selection_mask"], wanted)
    assert wanted.sum() == 25


def given_mask(names):
    assert names["selection_mask"] is names["mask"]
    assert int(names["mask"].sum()) == 25


def batch_masks(names):
    size = names["batch_size"]
    assert names["batch_masks"].shape == (size, 30, 30)
    assert names["batch_masks"].sum(axis=(1, 2)).tolist() == [1] * size
    mask = names["process_action"](names["action"], (30, 30))
    assert int(mask.sum()) == 25


def no_dictionaries(names):
    with pytest.raises(TypeError, match="dictionary actions are not supported"):
        arc_step(names["state"], names["action"], names["config"])


def validated_step(names):
    state, config = names["state"], names["config"]
    result = names["validate_and_step"](state, names["action"], config)
    assert int(result[0].step_count) == int(state.step_count) + 1
    wrong = eqx.tree_at(lambda a: a.row, names["action"], jnp.array(30))
    with pytest.raises(RuntimeError, match="out of range"):
        jax.block_until_ready(names["validate_and_step"](state, wrong, config))


def saved_state(names):
    parser = folder_parser(Path.cwd(), max_grid_height=30, max_grid_width=30)
    state, _ = arc_reset(
        jax.random.key(0), names["config"], parser.get_task_by_id("aa")
    )
    dummy, _ = arc_reset(
        jax.random.key(1), names["config"], parser.get_task_by_id("bb")
    )
    names["save_state_efficiently"](state, "state.eqx")
    loaded = names["load_state_efficiently"]("state.eqx", parser, dummy)
    assert eqx.tree_equal(loaded, state)


def smaller_history(names):
    state, _ = arc_reset(jax.random.key(0), names["config"], create_mock_task())
    assert state.action_history.shape == (50, 6)


GUIDE_000 = Guide(
    names={"create_test_config": lambda: point_config(max_episode_steps=100)},
    checks={
        "# Create optimized configuration": quick_start,
        "% 10 + 5,\n    col=jnp.full": lambda names: assert_batch(names, 32),
        "# Point actions: 6 fields": formats,
        "single point at (5, 5)": one_cell,
        "rectangle (3,3) to (7,7)": rectangle,
        "returns the provided mask directly": given_mask,
        "batch_masks = jax.vmap": batch_masks,
        "Old dictionary format": no_dictionaries,
        "def validate_and_step": validated_step,
        "def save_state_efficiently": saved_state,
        "def benchmark_performance": lambda names: names["benchmark_performance"](),
        "hash(config)": lambda names: hash(names["config"]),
        "# Smaller history": smaller_history,
    },
    said=("steps/sec",),
)


def three_results(names):
    """Every action type goes through one compiled function."""
    for result in ("point_result", "bbox_result", "mask_result"):
        state, observation, reward, done, _ = names[result]
        assert observation.shape == (30, 30)
        assert reward.dtype == jnp.float32
        assert done.dtype == bool
        assert int(state.step_count) == 1


def history_memory(names):
    """Measured as nbytes over 2**20, for 1000 steps."""
    found = names["memory_analysis"]
    shown = {kind: round(part["action_history_mb"], 3) for kind, part in found.items()}
    assert shown == {"point": 0.023, "bbox": 0.031, "mask": 3.448}
    for kind, part in found.items():
        assert part["fields_per_action"] == get_action_record_fields(kind)
        assert part["action_history_mb"] * 2**20 == 4000 * part["fields_per_action"]


def all_batches(names):
    assert list(names["batch_results"]) == [2**i for i in range(11)]
    assert names["optimal_batch_size"] in names["batch_results"]


def hierarchy(names):
    results = names["hierarchical_results"]
    assert len(results) == 10
    assert all(part.shape == (32,) for part in results)


def dynamic(names):
    sizes = [part["batch_size"] for part in names["processor"].performance_history]
    assert sizes == [32, 16, 8, 4, 2] + 15 * [1]
    assert [len(rewards) for rewards in names["dynamic_results"]] == sizes


def episodes(names):
    """The task is solved as it is given, so an episode ends with its first step."""
    assert len(names["results"]) == 10
    for result in names["results"]:
        assert int(result["episode_length"]) == 0
        assert isinstance(result["final_state"], type(names["state"]))


def faster_when_compiled(names):
    assert names["jit_profile"]["speedup"] > 1


def profiled_batches(names):
    assert list(names["memory_profile"]) == [1, 16, 64, 256]


def profiled_by_jax(names):
    """The guide shows the call in a comment."""
    names["profile_with_jax_profiler"](names["config"], names["task"])
    assert list(Path("jax_profile").rglob("*.xplane.pb"))


def lazy_task(names):
    assert names["task_data"].get_grid_shape() == (30, 30)
    assert names["lazy_loader"]._task_data is None


def no_leak(names):
    assert [at for at, _ in names["memory_samples"]] == [0, 100, 200, 300, 400]


def names_of_001(folder: Path) -> dict[str, Any]:
    config, task = point_config(max_episode_steps=100), create_mock_task()
    state, _ = arc_reset(jax.random.key(0), config, task)
    corners = [jnp.array(n) for n in (0, 3, 3, 7, 7)]
    return {
        **{"config": config, "task": task, "state": state},
        "parser": folder_parser(folder, max_grid_height=30, max_grid_width=30),
        "point_action": PointAction(*(jnp.array(n) for n in (0, 5, 5))),
        "bbox_action": BboxAction(*corners),
        "mask_action": MaskAction(jnp.array(0), jnp.zeros((30, 30), bool)),
    }


CHECKS_001 = {
    "def process_action": three_results,
    "jit_profile =": faster_when_compiled,
    "memory_analysis =": history_memory,
    "optimized_config =": lambda names: hash(names["optimized_config"]),
    "memory_profile =": profiled_batches,
    "class LazyTaskLoader": lazy_task,
    "optimal_batch_size, batch_results =": all_batches,
    "hierarchical_results =": hierarchy,
    "dynamic_results =": dynamic,
    "def profile_with_jax_profiler": profiled_by_jax,
    "memory_samples = detect": no_leak,
    "episode_runner =": episodes,
}
SAID_001 = (
    *("JIT compilation successful", "No significant memory leak"),
    *("Point vs Mask: 99.3% reduction", "Bbox vs Mask: 99.1% reduction"),
)


def processed(names):
    """Each cell goes up by one inside the mask and to zero outside."""
    grid, mask = np.asarray(names["grid"]), np.asarray(names["mask"])
    np.testing.assert_array_equal(names["result"], np.where(mask, grid + 1, 0))


def savings(names):
    kinds = [names["optimize_array_memory"](array).dtype for array in names["arrays"]]
    assert kinds == [np.int8, np.int16, np.float32]
    assert names["total_savings"] == 35 + 18 + 12


def stored(names):
    grids = names["jax_data"]["episode_grids"]
    assert len(grids) == 100
    for one, other in zip(grids, names["viz_data"]["episode_grids"], strict=True):
        np.testing.assert_array_equal(one, other)
    assert names["loaded_data"]["metadata"] == names["viz_data"]["metadata"]


def managed(names):
    assert names["report"]["monitor_stats"]["current_mb"] > 0
    assert names["optimized_data"].shape == (1000, 1000)
    assert not names["lazy_loader"].is_loaded(), "the context cleans up"


def custom_data(names):
    assert names["data"] == {"loaded": True}


def summary(names):
    reward, likeness, success = names["simulate_episode"](1, 20, 2.0)
    assert float(reward) == 40.0
    assert float(likeness) > 0.8
    assert bool(success)


GUIDE_002 = Guide(
    names={
        "processed_data": {"loaded": True},
        "grid_data": jnp.arange(9).reshape(3, 3),
    },
    checks={
        "def process_grid": processed,
        "def simulate_episode": summary,
        "with MemoryManager": managed,
        "storage.save": stored,
        "def training_step": lambda names: names["training_step"](jnp.array(1)),
        "def custom_loader": custom_data,
        "total_savings": savings,
        "cleanup_stats =": lambda names: names["cleanup_stats"]["gc_collected"],
        "def my_function": lambda names: names["my_function"](names["grid_data"]),
    },
    said=("Total memory savings: 65 bytes",),
)


def reader(make):
    @contextlib.contextmanager
    def guide(folder: Path, monkeypatch: pytest.MonkeyPatch):
        with reading(monkeypatch):
            yield make(folder)

    return guide


GUIDES = {
    "000": reader(lambda _: GUIDE_000),
    "001": reader(lambda folder: Guide(names_of_001(folder), CHECKS_001, SAID_001)),
    "002": reader(lambda _: GUIDE_002),
}
