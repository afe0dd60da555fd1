"""A plan has the seeds, boundary, motion and frames that its case asks for."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest

from jaxtrace.bounds import box_bounds
from jaxtrace.config import get_config
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.fields.mesh import make_mesh_field
from jaxtrace.tracking.boundaries.channel import ChannelBoundary, GridEntry
from jaxtrace.tracking.boundaries.walls import WallBoundary
from jaxtrace.tracking.motion import Diffusion, Inertial
from jaxtrace.workflow import prepare
from jaxtrace.workflow.case import read_case
from trace_cases import write_slices
from trace_meshes import lattice

UNIT = box_bounds([[0, 0, 0], [1, 1, 1]])


def case(**tables):
    return read_case({"flow": {"name": "uniform"}, **tables})


def test_the_settings_of_a_case_end_with_it():
    before = get_config()
    wide = case(tracking={"dtype": "float64", "memory_limit_gb": 1.5})
    with prepare.working(wide):
        assert jax.config.read("jax_enable_x64")
        assert get_config().memory_limit_gb == 1.5
    assert not jax.config.read("jax_enable_x64")
    assert get_config() == before


def test_the_domain_is_that_of_the_boundary_the_field_or_the_particles():
    gyre = read_case({"flow": {"name": "double_gyre"}})
    field, _ = prepare.make_field(gyre)
    np.testing.assert_array_equal(prepare.find_domain(gyre, field).hi, [2, 1, 0])
    own = read_case(
        {"flow": {"name": "double_gyre"}, "boundary": {"bounds": [0, 3, 0, 3]}}
    )
    np.testing.assert_array_equal(prepare.find_domain(own, field).hi, [3, 3, 0])
    placed = case(particles={"bounds": [0, 5, 0, 4]})
    endless, _ = prepare.make_field(placed)
    np.testing.assert_array_equal(prepare.find_domain(placed, endless).hi, [5, 4, 0])
    with pytest.raises(ValueError, match="this flow is unbounded"):
        prepare.find_domain(case(), endless)


def test_seeds_on_a_lattice_have_one_layer_where_it_is_flat():
    flat = box_bounds([0, 1, 0, 2])
    found = prepare.make_seeds(case(particles={"concentrations": [3, 2, 9]}), flat)
    assert found.shape == (6, 3)
    assert set(found[:, 0].tolist()) == {0.0, 0.5, 1.0}


def test_seeds_at_random_fill_a_part_of_the_domain():
    table = {"distribution": "random", "bounds_fraction": {"x": [0.5, 1.0]}}
    found = prepare.make_seeds(
        case(particles={"concentrations": 5, "seed": 3, **table}), UNIT
    )
    assert found.shape == (125, 3)
    assert found[:, 0].min() >= 0.5
    assert found[:, 1].min() < 0.2


def test_seeds_around_the_middle_have_the_spread_asked_for_and_stay_inside():
    table = {"distribution": "gaussian", "gaussian_std": [0.01, 0.1, 5.0]}
    found = prepare.make_seeds(case(particles={"concentrations": 20, **table}), UNIT)
    np.testing.assert_allclose(found[:, :2].std(axis=0), [0.01, 0.1], rtol=0.05)
    np.testing.assert_allclose(found[:, :2].mean(axis=0), 0.5, atol=0.01)
    assert ((found >= 0) & (found <= 1)).all()


@pytest.mark.slow  # compiles a program of its own
def test_particles_outside_a_mesh_are_left_out_and_counted():
    points, cells = lattice((3, 3, 3))
    half = cells[points[cells].mean(1)[:, 0] < 0.5]
    field = make_mesh_field(points, half, np.ones((27, 3)), kind="hexahedron")
    seeds = np.array([[0.2, 0.5, 0.5], [0.9, 0.5, 0.5]], np.float32)
    held, notes = prepare.find_inside(field, seeds)
    assert held.tolist() == [True, False]
    assert notes == ("1 of 2 particles are outside the data: dropped",)
    with pytest.raises(ValueError, match="none of the 1 particles"):
        prepare.find_inside(field, seeds[1:])


def test_the_inlet_has_the_lattice_of_the_seeds():
    made = prepare.make_boundary(case(particles={"concentrations": [1, 3, 5]}), UNIT)
    assert isinstance(made, ChannelBoundary)
    assert isinstance(made.entry, GridEntry)
    sizes = {axis: len(nodes) for axis, nodes in made.entry.lattices.items()}
    assert sizes == {1: 3, 2: 5}


def test_boundaries_by_type():
    walls = case(boundary={"type": "walls", "condition": "absorb"})
    made = prepare.make_boundary(walls, UNIT)
    assert isinstance(made, WallBoundary)
    ball = {"type": "spherical", "center": [0, 0, 0], "radius": 2.0}
    prepare.make_boundary(case(boundary=ball), UNIT)
    box = prepare.make_boundary(case(boundary={"type": "periodic"}), UNIT)
    assert box.period == (1.0, 1.0, 1.0)


def test_motions():
    assert prepare.make_motion(case()) is None
    walk = prepare.make_motion(case(motion={"diffusivity": 0.5}))
    assert isinstance(walk, Diffusion)
    np.testing.assert_array_equal(walk.diffusivity, 0.5)
    table = {"response_time": 0.1, "gravity": [0, 0, -9.8], "diffusivity": [1, 1, 0]}
    both = prepare.make_motion(case(motion=table))
    assert isinstance(both, Diffusion)
    assert isinstance(both.motion, Inertial)
    with pytest.raises(ValueError, match="passive tracers have no weight"):
        prepare.make_motion(case(motion={"gravity": [0, 0, -1]}))


def test_frames_follow_the_case_or_the_slices():
    times = np.linspace(0, 2, 5)
    values = np.zeros((5, 2, 2, 2, 3), np.float32)
    field = make_grid_field(values, [[0, 1]] * 3, times)
    even = read_case({"data": {"pattern": "x"}, "time": {"use_data_dt": True}})
    assert prepare.find_span(even, field) == (0.0, 2.0)
    assert prepare.count_frames(even, field, (0.0, 2.0)) == 5
    assert prepare.count_frames(even, field, (1.0, 0.0)) == 3
    assert prepare.count_frames(case(), field, (0.0, 1.0)) == 2000
    uneven = make_grid_field(values, [[0, 1]] * 3, times**2)
    with pytest.raises(ValueError, match="at even times"):
        prepare.count_frames(even, uneven, (0.0, 2.0))
    assert prepare.find_span(case(), prepare.make_field(case())[0]) == (0.0, 4.0)


def test_a_whole_plan_from_files(tmp_path):
    tables = {"data": {"pattern": str(write_slices(tmp_path))}}
    made = prepare.make_plan(
        read_case({**tables, "particles": {"concentrations": [2, 2, 2]}})
    )
    assert made.time_span == (0.0, 1.0)
    assert len(made.seeds) == 8
    np.testing.assert_array_equal(made.domain.hi, [2, 1, 1])


def test_a_run_uses_every_accelerator_unless_told_otherwise(monkeypatch):
    gyre = {"flow": {"name": "double_gyre"}}
    plain = read_case(gyre)
    plan = prepare.make_plan(plain)
    devices = lambda some: prepare.make_tracker(some, plan).options.devices
    assert devices(plain) is None  # the cores of a CPU are not devices
    cards = [SimpleNamespace(platform="gpu")] * 4
    monkeypatch.setattr("jaxtrace.config.working_device", lambda: cards[0])
    monkeypatch.setattr(jax, "local_devices", lambda backend: cards)
    assert devices(plain) == 4
    assert devices(read_case({**gyre, "tracking": {"devices": 2}})) == 2
