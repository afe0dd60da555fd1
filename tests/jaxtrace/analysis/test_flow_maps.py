import jax
import numpy as np
import pytest

from jaxtrace.analysis import flow_maps as module
from jaxtrace.analysis.flow_maps import flow_map, flow_map_gradient
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
from jaxtrace.fields.streamed import stream_series
from jaxtrace.files.snapshot import GridAxes
from jaxtrace.tracking.boundary import (
    absorbing_boundary_factory,
    periodic_boundary,
    reflective_boundary,
)

pytestmark = pytest.mark.slow  # compiles many programs

GYRE = [[0.5, 0.5], [1.2, 0.3]]


@pytest.fixture
def double():
    configure(dtype="float64")
    yield
    reset_config()


@pytest.mark.usefixtures("double")
def test_double_gyre_ends_and_area():
    ends = flow_map(DoubleGyre(), GYRE, 0.0, 10.0, n_steps=2000)
    known = [[0.0505505306, 0.1110201488], [1.2011275652, 0.9590826449]]
    np.testing.assert_allclose(ends[:, :2], known, atol=1e-10, rtol=0)
    gradient = flow_map_gradient(DoubleGyre(), GYRE, 0.0, 10.0, n_steps=2000)
    np.testing.assert_allclose(np.linalg.det(gradient), 1.0, atol=1e-10)


@pytest.mark.usefixtures("double")
def test_abc_flow_ends_and_volume():
    seed = [[1.0, 2.0, 3.0]]
    ends = flow_map(ABCFlow(), seed, 0.0, 5.0, n_steps=2000)
    known = [[-0.1753854765, 1.3434368178, 13.3032383754]]
    np.testing.assert_allclose(ends, known, atol=1e-9, rtol=0)
    gradient = flow_map_gradient(ABCFlow(), seed, 0.0, 5.0, n_steps=2000)
    np.testing.assert_allclose(np.linalg.det(gradient), 1.0, atol=1e-10)


@pytest.mark.usefixtures("double")
def test_the_gradient_is_that_of_neighbors():
    seeds = np.random.default_rng(0).uniform(1, 5, (5, 3))
    gradient = flow_map_gradient(ABCFlow(), seeds, 0.0, 2.0, n_steps=100)
    for axis, step in enumerate(1e-5 * np.eye(3)):
        ahead = flow_map(ABCFlow(), seeds + step, 0.0, 2.0, n_steps=100)
        behind = flow_map(ABCFlow(), seeds - step, 0.0, 2.0, n_steps=100)
        slope = (ahead - behind) / 2e-5
        np.testing.assert_allclose(gradient[:, :, axis], slope, rtol=1e-6, atol=1e-7)


@pytest.mark.usefixtures("double")
@pytest.mark.parametrize("kind", ["grid", pytest.param("mesh", marks=pytest.mark.slow)])
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
    from jaxtrace.files.cells import grid_to_cells
    from jaxtrace.files.snapshot import storage_order

    cells = grid_to_cells(GridAxes(axis, axis, axis))
    return make_mesh_field(
        cells.points,
        cells.connectivity,
        storage_order(values),
        offsets=cells.offsets,
        types=cells.types,
    )


@pytest.mark.usefixtures("double")
def test_back_and_forth_is_the_identity():
    there = flow_map(DoubleGyre(), GYRE, 0.0, 5.0, n_steps=400)
    back = flow_map(DoubleGyre(), there, 5.0, -5.0, n_steps=400)
    np.testing.assert_allclose(back[:, :2], GYRE, atol=1e-8)
    first = flow_map_gradient(DoubleGyre(), GYRE, 0.0, 5.0, n_steps=400)
    second = flow_map_gradient(DoubleGyre(), there, 5.0, -5.0, n_steps=400)
    same = np.repeat(np.eye(3)[None], 2, 0)
    np.testing.assert_allclose(second @ first, same, atol=1e-7)


@pytest.mark.parametrize("batch", [3, 7])
def test_batches_do_not_change_results(batch):
    seeds = np.random.default_rng(0).uniform(0, 1, (10, 2))
    options = {"n_steps": 20, "batch_size": batch}
    found = flow_map_gradient(DoubleGyre(), seeds, 0.0, 1.0, **options)
    whole = flow_map_gradient(DoubleGyre(), seeds, 0.0, 1.0, n_steps=20)
    np.testing.assert_allclose(found, whole, atol=1e-6)


def test_the_memory_limit_sets_the_batches(monkeypatch):
    sizes = []
    carry = module.Voyage.carry

    def counted(self, seeds, directions):
        sizes.append(len(seeds))
        return carry(self, seeds, directions)

    monkeypatch.setattr(module.Voyage, "carry", counted)
    configure(memory_limit_gb=1e-5)
    try:
        ends = flow_map(UniformFlow(), np.zeros((100, 3)), 0.0, 1.0, n_steps=2)
    finally:
        reset_config()
    assert max(sizes) < 100
    assert len(set(sizes)) == 1
    np.testing.assert_allclose(ends, np.repeat([[1.0, 0.0, 0.0]], 100, 0), rtol=1e-6)


def test_out_of_memory_halves_the_batch(monkeypatch):
    carry, sizes = module.Voyage.carry, []

    def scarce(self, seeds, directions):
        sizes.append(len(seeds))
        if len(seeds) > 3:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")
        return carry(self, seeds, directions)

    monkeypatch.setattr(module.Voyage, "carry", scarce)
    ends = flow_map(UniformFlow(), np.zeros((10, 3)), 0.0, 1.0, n_steps=2)
    assert sizes == [10, 5, 2, 2, 2, 2, 2]
    np.testing.assert_allclose(ends[:, 0], 1.0, rtol=1e-6)


def test_any_number_of_steps_and_batches_is_one_program():
    seeds = np.random.default_rng(0).uniform(0, 1, (23, 2))
    flow_map(Saddle(rate=number(0.3)), seeds, 0.0, 1.0, n_steps=64, batch_size=11)
    before = module.push.trace_count
    for steps in (128, 512):
        flow_map(
            Saddle(rate=number(0.7)), seeds, 0.0, 1.0, n_steps=steps, batch_size=11
        )
    assert module.push.trace_count == before


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
        self.geometry = GridAxes(axis, axis, np.zeros(1))
        self.times = np.linspace(0, 4, 21)

    def read(self, index):
        x, y = np.meshgrid(self.geometry.x, self.geometry.y, indexing="ij")
        rate = self.times[index]
        values = np.stack([-rate * y, rate * x, 0 * x], -1)[:, :, None]
        return values.astype(np.float32)

    def read_slice(self, index):
        return self.geometry, self.read(index)


@pytest.mark.slow
def test_a_streamed_field_gives_what_the_whole_one_does():
    slices = Slices()
    values = np.stack([slices.read(i) for i in range(21)])
    axes = (slices.geometry.x, slices.geometry.y, slices.geometry.z)
    whole = make_grid_field(values, axes, slices.times)
    limit = 4 * 4 * values[0].nbytes / 1024**3
    streamed = stream_series(slices, memory_limit_gb=limit)
    assert streamed.window == 4
    seeds, options = [[0.5, 0.1], [-0.2, 0.3]], {"n_steps": 100}
    for start, span in ((0.0, 4.0), (4.0, -3.0)):
        there = flow_map_gradient(streamed, seeds, start, span, **options)
        here = flow_map_gradient(whole, seeds, start, span, **options)
        np.testing.assert_allclose(there, here, atol=1e-6)
    with pytest.raises(ValueError, match="streamed field needs n_steps or dt"):
        flow_map(streamed, seeds, 0.0, 1.0)


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


def test_nothing_in_nothing_out():
    assert flow_map(Rotation(), np.zeros((0, 3)), 0.0, 1.0).shape == (0, 3)
    gradient = flow_map_gradient(Rotation(), [], 0.0, 1.0, dimensions=2)
    assert gradient.shape == (0, 3, 2)
