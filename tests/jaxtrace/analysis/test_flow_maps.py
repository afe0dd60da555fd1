import io

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import trace_files as files
from jaxrig.progress import TextMeter
from jaxtrace.analysis import flow_maps as module
from jaxtrace.analysis.flow_maps import (
    Advection,
    count_steps,
    flow_map,
    flow_map_gradient,
    ftle,
    log_stretch,
    shear,
)
from jaxtrace.config import configure, reset_config
from jaxtrace.fields.analytic import (
    ABCFlow,
    DoubleGyre,
    Rotation,
    Saddle,
    UniformFlow,
    number,
)
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.fields.interpolation import TensorGrid
from jaxtrace.fields.streamed import StreamedField
from jaxtrace.fields.time_series import TimeSeriesField
from jaxtrace.io.loader import load_optimized_dataset
from jaxtrace.tracking.boundary import (
    absorbing_boundary_factory,
    periodic_boundary,
    reflective_boundary,
)
from jaxtrace.tracking.time_loop import allow_one_program, first_instant, make_dynamics

GYRE = [[0.5, 0.5], [1.2, 0.3]]


@pytest.mark.usefixtures("double")
@pytest.mark.slow  # compiles a program of its own
def test_the_gradient_is_that_of_neighbors():
    seeds = np.random.default_rng(0).uniform(1, 5, (5, 3))
    gradient = flow_map_gradient(ABCFlow(), seeds, 0.0, 2.0, n_steps=100)
    for axis, step in enumerate(1e-5 * np.eye(3)):
        ahead = flow_map(ABCFlow(), seeds + step, 0.0, 2.0, n_steps=100)
        behind = flow_map(ABCFlow(), seeds - step, 0.0, 2.0, n_steps=100)
        slope = (ahead - behind) / 2e-5
        np.testing.assert_allclose(gradient[:, :, axis], slope, rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("kind", ["grid", "mesh"])
@pytest.mark.slow  # compiles a program of its own
def test_linear_flows_on_grids_and_meshes_are_exact(kind):
    axis = np.linspace(-2, 2, 6)
    x, y, z = np.meshgrid(axis, axis, axis, indexing="ij")
    values = np.stack([-y, x, 0.25 * z], -1)
    seeds = np.random.default_rng(0).uniform(-1, 1, (7, 3))
    field = make_grid_field(values, (axis, axis, axis))
    if kind == "mesh":
        field = as_mesh(field, values, axis)
    gradient = flow_map_gradient(field, seeds, 0.0, 2.0, n_steps=200)
    c, s, e = np.cos(2.0), np.sin(2.0), np.exp(0.5)
    exact = np.array([[c, -s, 0], [s, c, 0], [0, 0, e]])
    np.testing.assert_allclose(gradient, np.repeat(exact[None], 7, 0), atol=1e-8)


def as_mesh(_field, values, axis):
    from jaxtrace.fields.mesh import make_mesh_field
    from jaxtrace.io.geometry import grid_to_cells, storage_order

    cells = grid_to_cells(TensorGrid((axis, axis, axis)))
    return make_mesh_field(
        cells.points,
        cells.connectivity,
        storage_order(values),
        offsets=cells.offsets,
        types=cells.types,
    )


@pytest.mark.usefixtures("double")
@pytest.mark.slow  # compiles a program of its own
def test_back_and_forth_is_the_identity():
    there = flow_map(DoubleGyre(), GYRE, 0.0, 5.0, n_steps=400)
    back = flow_map(DoubleGyre(), there, 5.0, -5.0, n_steps=400)
    np.testing.assert_allclose(back[:, :2], GYRE, atol=1e-8)
    first = flow_map_gradient(DoubleGyre(), GYRE, 0.0, 5.0, n_steps=400)
    second = flow_map_gradient(DoubleGyre(), there, 5.0, -5.0, n_steps=400)
    same = np.repeat(np.eye(3)[None], 2, 0)
    np.testing.assert_allclose(second @ first, same, atol=1e-7)


@pytest.mark.parametrize("batch", [3, 7])
@pytest.mark.slow  # compiles a program of its own
def test_batches_do_not_change_results(batch):
    seeds = np.random.default_rng(0).uniform(0, 1, (10, 2))
    options = {"n_steps": 20, "batch_size": batch}
    found = flow_map_gradient(DoubleGyre(), seeds, 0.0, 1.0, **options)
    whole = flow_map_gradient(DoubleGyre(), seeds, 0.0, 1.0, n_steps=20)
    np.testing.assert_allclose(found, whole, atol=1e-6)


@pytest.mark.bitwise
@pytest.mark.usefixtures("small_parts")
def test_the_cores_do_not_change_the_exponents():
    grid, found = (np.linspace(0.1, 1.9, 5), np.linspace(0.1, 0.9, 3)), []
    for cores in (1, 2):
        configure(cores=cores)
        found.append(ftle(DoubleGyre(), grid, 0.0, 1.0, n_steps=20))
    np.testing.assert_array_equal(*found)


@pytest.mark.slow  # compiles a program of its own
def test_the_memory_limit_sets_the_batches(monkeypatch):
    sizes = []
    advect = module.FlowMap.advect

    def counted(self, seeds, *rest):
        sizes.append(len(seeds))
        return advect(self, seeds, *rest)

    monkeypatch.setattr(module.FlowMap, "advect", counted)
    configure(memory_limit_gb=1e-5)
    try:
        ends = flow_map(UniformFlow(), np.zeros((100, 3)), 0.0, 1.0, n_steps=2)
    finally:
        reset_config()
    assert max(sizes) < 100
    assert len(set(sizes)) == 1
    np.testing.assert_allclose(ends, np.repeat([[1.0, 0.0, 0.0]], 100, 0), rtol=1e-6)


@pytest.mark.slow  # compiles a program of its own
def test_out_of_memory_halves_the_batch(monkeypatch):
    advect, sizes = module.FlowMap.advect, []

    def scarce(self, seeds, *rest):
        sizes.append(len(seeds))
        if len(seeds) > 3:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return advect(self, seeds, *rest)

    monkeypatch.setattr(module.FlowMap, "advect", scarce)
    ends = flow_map(UniformFlow(), np.zeros((10, 3)), 0.0, 1.0, n_steps=2)
    assert sizes == [10, 5, 2, 2, 2, 2, 2]
    np.testing.assert_allclose(ends[:, 0], 1.0, rtol=1e-6)


@pytest.mark.slow  # compiles a program of its own
def test_any_number_of_steps_and_batches_is_one_program():
    seeds = np.random.default_rng(0).uniform(0, 1, (23, 2))
    flow_map(Saddle(rate=number(0.3)), seeds, 0.0, 1.0, n_steps=64, batch_size=11)
    before = module.push.trace_count
    for steps in (128, 512):
        flow_map(
            Saddle(rate=number(0.7)), seeds, 0.0, 1.0, n_steps=steps, batch_size=11
        )
    assert module.push.trace_count == before


@pytest.mark.slow  # compiles a program of its own
def test_boundaries_act_on_the_derivative():
    seeds = [[0.9, 0.5, 0.5], [0.2, 0.5, 0.5]]
    box = [[0, 0, 0], [1, 1, 1]]
    # In one step: a wall that flow points at is met again at every other one.
    options = {"n_steps": 1, "boundary": reflective_boundary(box)}
    mirrored = flow_map_gradient(UniformFlow(u=number(0.5)), seeds, 0.0, 1.0, **options)
    np.testing.assert_allclose(mirrored[:, 0, 0], [-1.0, 1.0], rtol=1e-6)
    options["boundary"] = periodic_boundary(box)
    wrapped = flow_map_gradient(UniformFlow(u=number(0.5)), seeds, 0.0, 1.0, **options)
    np.testing.assert_allclose(wrapped[:, 0, 0], [1.0, 1.0], rtol=1e-6)
    options["boundary"] = absorbing_boundary_factory(box)
    ends = flow_map(UniformFlow(u=number(0.5)), seeds, 0.0, 1.0, **options)
    np.testing.assert_allclose(ends[:, 0], [np.nan, 0.7], rtol=1e-6)


class Slices:
    """A rotation that speeds up, one slice per call."""

    def __init__(self):
        axis = np.linspace(-1, 1, 5)
        self.geometry = TensorGrid((axis, axis, np.zeros(1)))
        self.times = np.linspace(0, 4, 21)

    def read(self, index):
        x, y = np.meshgrid(*self.geometry.axes[:2], indexing="ij")
        rate = self.times[index]
        values = np.stack([-rate * y, rate * x, 0 * x], -1)[:, :, None]
        return values.astype(np.float32)


@pytest.mark.slow  # many programs
def test_a_streamed_field_gives_what_the_whole_one_does():
    slices = Slices()
    values = np.stack([slices.read(i) for i in range(21)])
    axes = slices.geometry.axes
    whole = make_grid_field(values, axes, slices.times)
    limit = 4 * 4 * values[0].nbytes / 1024**3
    streamed = StreamedField(
        slices.times,
        slices.read,
        make_grid_field(values[0], axes),
        lambda v: np.asarray(make_grid_field(v, axes).values[0]),
        slice_bytes=values[0].nbytes,
        memory_limit_gb=limit,
    )
    assert streamed.window == 4
    seeds, options = [[0.5, 0.1], [-0.2, 0.3]], {"n_steps": 100}
    for start, span in ((0.0, 4.0), (4.0, -3.0)):
        there = flow_map_gradient(streamed, seeds, start, span, **options)
        here = flow_map_gradient(whole, seeds, start, span, **options)
        np.testing.assert_allclose(there, here, atol=1e-6)
    with pytest.raises(ValueError, match="streamed field needs n_steps or dt"):
        flow_map(streamed, seeds, 0.0, 1.0)


@pytest.mark.slow  # compiles a program of its own
def test_wrong_use_is_named():
    with pytest.raises(ValueError, match="T not 0"):
        flow_map(Rotation(), GYRE, 0.0, 0.0)
    with pytest.raises(ValueError, match="dimensions=4"):
        flow_map_gradient(Rotation(), GYRE, 0.0, 1.0, dimensions=4)
    with pytest.raises(TypeError, match="steps"):
        flow_map(Rotation(), GYRE, 0.0, 1.0, steps=4)
    with (
        pytest.warns(UserWarning, match="needs NumPy"),
        pytest.raises(ValueError, match="no derivative"),
    ):
        flow_map(lambda x, t: np.sin(np.asarray(x)), GYRE, 0.0, 1.0)


@pytest.mark.slow  # compiles a program of its own
def test_nothing_in_nothing_out():
    assert flow_map(Rotation(), np.zeros((0, 3)), 0.0, 1.0).shape == (0, 3)
    gradient = flow_map_gradient(Rotation(), [], 0.0, 1.0, dimensions=2)
    assert gradient.shape == (0, 3, 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_steps": 3, "dt": 0.1}, "n_steps=3 and dt=0.1: give one"),
        ({"n_steps": 0}, "n_steps is 0"),
        ({"dt": 0.0}, "dt is 0.0: give a number above 0"),
        ({"tolerance": -1.0}, "tolerance is -1.0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"dtype": "float64"}, "float64 is off"),
    ],
)
def test_wrong_choices_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        Advection(**options)


def steps(how, span, follow=None, field=None):
    dynamics = make_dynamics(field or Saddle(), None, None, 0)
    points = np.zeros((4, 3), np.float32)
    return count_steps(dynamics, how, span, points, follow or never)


def never(seeds, count):
    raise AssertionError("probes are followed only where steps have to be found")


def test_steps_that_are_asked_for():
    assert steps(Advection(n_steps=7), (0.0, 1.0)) == 7
    assert steps(Advection(dt=0.3), (0.0, 1.0)) == 4
    assert steps(Advection(dt=0.25), (1.0, 0.0)) == 4, "backward is as long"


def test_steps_are_doubled_until_they_make_no_difference():
    asked = []

    def follow(seeds, count):
        asked.append(count)
        stretch = 1 + count ** (-4.0)
        return seeds + 1.0, np.repeat(stretch * np.eye(3)[None], len(seeds), 0)

    # Half of 1 + n^-4 less that of 2 n is below the tolerance from n = 8 on.
    how = Advection(tolerance=3e-4)
    assert steps(how, (0.0, 1.0), follow, UniformFlow()) == 8
    assert asked == [1, 2, 4, 8, 16]


def test_a_difference_that_does_not_shrink_ends_the_search():
    noise = iter(np.random.default_rng(0).uniform(1, 2, 40))

    def follow(seeds, count):
        return seeds + next(noise), np.repeat(np.eye(3)[None], len(seeds), 0)

    assert steps(Advection(tolerance=1e-6), (0.0, 1.0), follow, UniformFlow()) <= 8


def test_shear_sets_the_first_number_of_steps():
    still = lambda seeds, count: (seeds, np.repeat(np.eye(3)[None], len(seeds), 0))
    slow = steps(Advection(), (0.0, 1.0), still, Saddle(rate=number(1.0)))
    fast = steps(Advection(), (0.0, 1.0), still, Saddle(rate=number(64.0)))
    assert fast == 64 * slow


def test_shear_is_the_fifth_root_of_the_fifth_power_of_the_velocity_gradient():
    points = np.random.default_rng(1).uniform(0, 6, (20, 3))
    with jax.enable_x64(True):
        dynamics = make_dynamics(ABCFlow(), None, None, 0)
        instant = first_instant(dynamics.field, np.zeros(1), np.float64)
        allow_one_program(shear)
        found = np.asarray(shear(dynamics, jnp.asarray(points), instant))
    x, y, z = points.T
    a, b, c = 3**0.5, 2**0.5, 1.0
    rest = np.zeros(len(x))
    gradient = [
        [rest, -c * np.sin(y), a * np.cos(z)],
        [b * np.cos(x), rest, -a * np.sin(z)],
        [-b * np.sin(x), c * np.cos(y), rest],
    ]
    power = np.linalg.matrix_power(np.moveaxis(np.array(gradient), -1, 0), 5)
    known = np.linalg.norm(power, axis=(1, 2)) ** 0.2
    np.testing.assert_allclose(found, known, rtol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    ("x", "y", "known"), [(0.5, 0.5, 0.2268844590), (1.2, 0.3, 0.2774016857)]
)
def test_double_gyre_to_ten_digits(x, y, known):
    found = ftle(DoubleGyre(), ([x], [y]), 0.0, 10.0, n_steps=2000)
    np.testing.assert_allclose(found, [[known]], atol=1e-10, rtol=0)


@pytest.mark.usefixtures("double")
def test_the_number_of_steps_is_found():
    axes = [0.5, 1.2], [0.3, 0.5]
    fine = ftle(DoubleGyre(), axes, 0.0, 10.0, n_steps=2000)
    stream = io.StringIO()
    found = ftle(DoubleGyre(), axes, 0.0, 10.0, meter=TextMeter(stream))
    np.testing.assert_allclose(found, fine, atol=1e-6)
    first, *_, last = stream.getvalue().splitlines()
    assert first == "flow map: compiling ..."
    assert last.startswith("flow map: 4/4 (100 %)")
    tight = ftle(DoubleGyre(), axes, 0.0, 10.0, tolerance=1e-9)
    np.testing.assert_allclose(tight, fine, atol=1e-9)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("span", [3.0, -3.0])
def test_a_saddle_parts_at_its_rate(span):
    # The center stands still, and its neighbors part all the same.
    found = ftle(
        Saddle(rate=number(0.5)), ([-0.2, 0, 0.1], [0, 0.3]), 1.0, span, n_steps=400
    )
    np.testing.assert_allclose(found, np.full((3, 2), 0.5), atol=1e-12)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize(
    "field", [Rotation(rate=number(2.0)), UniformFlow(u=number(3.0))]
)
def test_rigid_motion_parts_nothing(field):
    found = ftle(field, ([0.0, 1.0], [0.0]), 0.0, 5.0, n_steps=2000)
    np.testing.assert_allclose(found, np.zeros((2, 1)), atol=1e-12)


@pytest.mark.usefixtures("double")
def test_in_space_the_shape_is_that_of_the_grid():
    axes = np.linspace(0, 6, 4), np.linspace(0, 6, 3), np.linspace(0, 6, 2)
    found = ftle(ABCFlow(), axes, 0.0, 4.0, n_steps=200)
    assert found.shape == (4, 3, 2)
    one = ftle(ABCFlow(), [axis[-1:] for axis in axes], 0.0, 4.0, n_steps=200)
    np.testing.assert_allclose(found[-1, -1, -1], one[0, 0, 0], rtol=1e-12)
    assert np.all(found > 0), "volume is kept, so something is stretched"


def test_a_plane_is_told_apart_in_the_plane_only():
    shear = lambda positions, t: positions * np.array([[0.0, 0.0, 2.0]], np.float32)
    axes = [0.1, 0.2], [0.3]
    flat = ftle(shear, axes, 0.0, 1.0, n_steps=100, level=0.5)
    np.testing.assert_allclose(flat, np.zeros((2, 1)), atol=1e-6)
    deep = ftle(shear, (*axes, [0.5]), 0.0, 1.0, n_steps=100)
    np.testing.assert_allclose(deep, np.full((2, 1, 1), 2.0), rtol=1e-5)


@pytest.mark.usefixtures("double")
@pytest.mark.slow  # many programs
def test_data_of_a_solver_as_grid_and_as_elements():
    case = files.data_folder("nek5000_eddy") / "eddy_uv.nek5000"
    axes = np.linspace(1, 5, 4), np.linspace(2, 4, 3)
    found = {}
    for scheme in ("auto", "elements"):
        field = load_optimized_dataset(
            case, dtype="float64", spatial_interpolation=scheme
        )
        assert isinstance(field, TimeSeriesField)
        found[field.interpolation_scheme] = ftle(field, axes, 0.0, 0.1, n_steps=32)
    np.testing.assert_allclose(found["trilinear"], found["quads"], atol=1e-3)
    assert np.all(found["quads"] > 0)


def test_particles_that_left_are_marked():
    leaves = absorbing_boundary_factory([[0, 0, 0], [1, 1, 1]])
    found = ftle(
        UniformFlow(), ([0.1, 0.8], [0.5]), 0.0, 0.5, n_steps=4, boundary=leaves
    )
    np.testing.assert_allclose(found, [[0.0], [np.nan]], atol=1e-6)


@pytest.mark.parametrize("grid", [([0.0, 1.0],), ([[0.0]], [0.0]), ([0.0],) * 4])
def test_a_grid_is_two_or_three_axes(grid):
    with pytest.raises(ValueError, match="give the axes"):
        ftle(Rotation(), grid, 0.0, 1.0)


@pytest.mark.parametrize("directions", [1, 2, 3])
def test_it_is_the_largest_singular_value(directions):
    gradient = np.random.default_rng(0).normal(size=(50, 3, directions))
    largest = np.linalg.svd(gradient, compute_uv=False)[:, 0]
    np.testing.assert_allclose(log_stretch(gradient), np.log(largest), rtol=1e-12)


@pytest.mark.parametrize("exponent", [-300, 300])
def test_squares_stay_in_range(exponent):
    gradient = np.eye(3)[None] * 10.0**exponent
    np.testing.assert_allclose(log_stretch(gradient), exponent * np.log(10))


def test_unknown_stays_unknown_and_collapse_has_no_end():
    gradient = np.stack([np.full((3, 2), np.nan), np.zeros((3, 2)), np.eye(3)[:, :2]])
    np.testing.assert_array_equal(log_stretch(gradient), [np.nan, -np.inf, 0.0])
