import itertools
from dataclasses import replace

import numpy as np
import pytest

from jaxtrace.io.geometry import Cells, Snapshot
from jaxtrace.io.velocity import (
    VELOCITY_NAMES,
    check_values,
    looks_swapped,
    pick_velocity,
    three_components,
    wanted_names,
)


def snapshot(arrays=None, cell_arrays=None) -> Snapshot:
    points = np.zeros((2, 3))
    line = Cells(points, np.array([0, 1]), np.array([0, 2]), np.array([3]))
    arrays, cell_arrays = arrays or {}, cell_arrays or {}
    there = (*arrays, *cell_arrays)
    return Snapshot(line, arrays, cell_arrays, "a.vtu", available=there)


def field(components: int, value: float = 1.0) -> np.ndarray:
    return np.full((2, components), value)


def test_names_are_tried_in_their_order():
    for earlier, later in itertools.pairwise(VELOCITY_NAMES):
        both = snapshot({later: field(3), earlier: field(3)})
        assert pick_velocity(both)[0] == (earlier,)


def test_nodes_come_before_cells_of_the_same_name():
    choice, on_cells, values = pick_velocity(snapshot({"U": field(3)}, {"U": field(2)}))
    assert (choice, on_cells, values.shape) == (("U",), False, (2, 3))
    assert pick_velocity(snapshot({"p": field(1)}, {"U": field(3)}))[1]


def test_scalars_that_belong_together_are_stacked():
    parts = {"u": field(1, 1.0), "v": field(1, 2.0), "w": field(1, 3.0)}
    choice, _, values = pick_velocity(snapshot(parts))
    assert choice == ("u", "v", "w")
    assert values.tolist() == [[1, 2, 3]] * 2
    del parts["w"]
    assert pick_velocity(snapshot(parts))[0] == ("u", "v")
    del parts["v"]
    assert pick_velocity(snapshot({**parts, "w": field(1)}))[0] == ("u",)


def test_a_vector_comes_before_a_scalar_of_a_better_name():
    both = snapshot({"velocity": field(1), "U": field(3)})
    assert pick_velocity(both)[0] == ("U",)
    assert pick_velocity(snapshot({"velocity": field(1)}))[0] == ("velocity",)


def test_a_given_name_or_list_of_components_is_taken():
    data = snapshot({"velocity": field(3), "a": field(1, 5.0), "b": field(1, 6.0)})
    assert pick_velocity(data, "a")[2].tolist() == [[5.0]] * 2
    assert pick_velocity(data, ("b", "a"))[2].tolist() == [[6.0, 5.0]] * 2
    assert wanted_names(("b", "a")) == ("b", "a")
    assert wanted_names("a") == ("a",)
    assert set(VELOCITY_NAMES) <= set(wanted_names(None))


def test_a_missing_array_lists_what_there_is():
    data = snapshot({"pressure": field(1)}, {"rho": field(1)})
    message = r"a\.vtu: no velocity array; .* pressure, rho: .*velocity_field_name="
    with pytest.raises(ValueError, match=message):
        pick_velocity(data)
    with pytest.raises(ValueError, match=r"a\.vtu: no 'wind' array"):
        pick_velocity(data, "wind")


@pytest.mark.parametrize("components", [1, 2, 3, 4, 9])
def test_components_are_padded_or_cut_to_three(components):
    values = np.arange(1.0, components + 1)[None]
    padded = three_components(values, np.float32)
    assert padded.dtype == np.float32
    assert padded[0].tolist() == [*range(1, min(components, 3) + 1), 0, 0][:3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_swapped_bytes_are_noticed_and_true_values_are_not(dtype, scale):
    values = (np.random.default_rng(0).normal(size=(200, 3)) * scale).astype(dtype)
    assert not looks_swapped(values)
    assert looks_swapped(values.byteswap())
    with pytest.raises(ValueError, match=r"a\.vtk: U makes sense only with its bytes"):
        check_values(values.byteswap(), "U", "a.vtk", allow_nan=True)


def test_round_numbers_and_zeros_swapped_are_noticed_too():
    values = np.array([[0.0, 1.0, 2.0], [0.5, 0.0, -1.0]], np.float32)
    assert looks_swapped(values.byteswap())
    assert not looks_swapped(np.zeros((4, 3)))
    assert not looks_swapped(np.full((4, 3), np.nan))
    assert not looks_swapped(np.arange(6).reshape(2, 3))


def test_an_array_that_only_other_slices_have_is_named():
    empty = replace(snapshot({"p": field(1)}), available=("p", "U"))
    with pytest.raises(ValueError, match=r"a\.vtu: U has no values here.*initial_time"):
        pick_velocity(empty)
