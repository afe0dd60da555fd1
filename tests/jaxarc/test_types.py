"""A task gives back what it was built from, and refuses what is not a task."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from arc_samples import documented
from jaxarc.types import Grid, JaxArcTask
from jaxrig import record_compilations


def random_arrays(seed=0, shape=(7, 9), train=3, test=2, used=(2, 1)) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    arrays = {}
    for slots, filled, names in (
        (train, used[0], ("input_{}_examples", "output_{}_examples")),
        (test, used[1], ("test_input_{}", "true_test_output_{}")),
    ):
        for name in names:
            grids = np.full((slots, *shape), -1, np.int32)
            masks = np.zeros((slots, *shape), bool)
            for slot in range(filled):
                height, width = rng.integers(1, np.array(shape) + 1)
                grids[slot, :height, :width] = rng.integers(0, 10, (height, width))
                masks[slot, :height, :width] = True
            arrays[name.format("grids")] = jnp.asarray(grids)
            arrays[name.format("masks")] = jnp.asarray(masks)
    return arrays | {"num_train_pairs": used[0], "num_test_pairs": used[1]}


def test_documented_arrays_are_read_back():
    arrays = random_arrays()
    task = JaxArcTask(**arrays, task_index=jnp.array(4, jnp.int32))
    held = jax.device_get(documented(task))
    held |= {name: getattr(task, name) for name in arrays if name.startswith("num_")}
    assert held.keys() == arrays.keys()
    for name, value in arrays.items():
        np.testing.assert_array_equal(held[name], value, err_msg=name)
    assert held["input_grids_examples"].dtype == jnp.int32
    assert task.num_train_pairs.dtype == task.task_index.dtype == jnp.int32
    assert task.get_grid_shape() == (7, 9)
    assert (task.max_train_pairs, task.max_test_pairs) == (3, 2)
    np.testing.assert_array_equal(task.get_available_demo_pairs(), [True, True, False])
    np.testing.assert_array_equal(task.get_available_test_pairs(), [True, False])


def test_a_pair_knows_its_real_size():
    arrays = random_arrays(seed=3)
    task = JaxArcTask(**arrays)
    pair = task.get_train_pair(1)
    mask = np.asarray(arrays["input_masks_examples"][1])
    assert pair.input_grid.shape == (mask.any(1).sum(), mask.any(0).sum())
    np.testing.assert_array_equal(pair.input_grid.mask, mask)
    wanted = arrays["output_grids_examples"][1]
    np.testing.assert_array_equal(pair.output_grid.data, wanted)
    answer = arrays["true_test_output_grids"][0]
    np.testing.assert_array_equal(task.get_test_pair(0).output_grid.data, answer)


def test_a_pair_that_is_not_there_is_refused():
    task = JaxArcTask(**random_arrays())
    used = (int(task.num_train_pairs), int(task.num_test_pairs))
    pairs = (task.get_train_pair, task.get_test_pair)
    for get, count in zip(pairs, used, strict=True):
        for index in (-1, count):
            with pytest.raises(IndexError, match=f"index {index}: there are {count} "):
                get(index)


def test_lists_and_all_whole_numbers_are_taken():
    """Unsigned ones too, of which -1 is another color."""
    arrays = random_arrays()
    lists = jax.tree.map(lambda leaf: np.asarray(leaf).tolist(), arrays)
    assert eqx.tree_equal(JaxArcTask(**lists), JaxArcTask(**arrays))
    for kind in (np.uint8, np.int8, np.uint64):
        cast = lambda x, kind=kind: np.asarray(x).astype(
            kind if x.ndim and x.dtype != bool else x.dtype
        )
        given = {name: cast(jnp.asarray(x)) for name, x in arrays.items()}
        assert eqx.tree_equal(JaxArcTask(**given), JaxArcTask(**arrays))


def test_cells_outside_the_mask_become_padding():
    arrays = random_arrays()
    grids = jnp.where(arrays["input_masks_examples"], arrays["input_grids_examples"], 5)
    task = JaxArcTask(**arrays | {"input_grids_examples": grids})
    np.testing.assert_array_equal(
        task.input_grids_examples, arrays["input_grids_examples"]
    )


def test_a_task_can_be_built_while_tracing():
    arrays = random_arrays()
    traced = eqx.filter_jit(lambda values: JaxArcTask(**values))(arrays)
    assert eqx.tree_equal(traced, JaxArcTask(**arrays))


def test_building_a_task_compiles_nothing():
    arrays = jax.tree.map(np.asarray, random_arrays(shape=(11, 6)))
    JaxArcTask(**random_arrays())
    with record_compilations() as log:
        JaxArcTask(**arrays)
    assert not log.compilations


def test_tasks_of_one_shape_share_a_structure():
    one, other = (JaxArcTask(**random_arrays(seed, used=(seed, 1))) for seed in (1, 3))
    assert jax.tree.structure(one) == jax.tree.structure(other)


def broken(**changes):
    return lambda arrays: arrays | {k: f(arrays) for k, f in changes.items()}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (broken(num_train_pairs=lambda a: 4), "num_train_pairs is 4"),
        (broken(num_test_pairs=lambda a: -1), "num_test_pairs is -1"),
        (
            broken(test_input_grids=lambda a: a["test_input_grids"][0, 0]),
            "test_input_grids has shape",
        ),
        (
            broken(output_grids_examples=lambda a: a["output_grids_examples"][:, :5]),
            "output_grids_examples has shape",
        ),
        (
            broken(input_masks_examples=lambda a: a["input_masks_examples"][:1]),
            "masks of input_grids_examples have shape",
        ),
        (
            broken(
                output_grids_examples=lambda a: a["output_grids_examples"][:1],
                output_masks_examples=lambda a: a["output_masks_examples"][:1],
            ),
            "come in pairs",
        ),
        (
            broken(input_masks_examples=lambda a: a["input_masks_examples"][..., ::-1]),
            "not a filled rectangle",
        ),
        (
            broken(input_grids_examples=lambda a: a["input_grids_examples"] + 10),
            "colors are 0 to 9",
        ),
    ],
)
def test_what_is_not_a_task_is_refused(change, message):
    with pytest.raises(ValueError, match=message):
        JaxArcTask(**change(random_arrays()))


@pytest.mark.parametrize("name", ["input_grids_examples", "input_masks_examples"])
def test_the_wrong_type_of_number_is_refused(name):
    arrays = random_arrays()
    with pytest.raises(TypeError, match="input_grids_examples"):
        JaxArcTask(**arrays | {name: arrays[name].astype(jnp.float32)})


def test_a_grid_of_impossible_colors_is_refused():
    with pytest.raises(ValueError, match="colors are"):
        Grid(jnp.full((2, 2), 11), jnp.ones((2, 2), bool))
