"""A canvas shows the particles it says, in colors that mean what it says."""

from typing import Any

import numpy as np
import pytest

from jaxrig.report import Axis, Report, Section, png_from_array
from jaxtrace.fields.grid import make_grid_field
from jaxtrace.plot.canvas import describe, land_over, particle_canvas, shade_map
from jaxtrace.plot.inputs import choose
from jaxtrace.sphere import EARTH_RADIUS
from trace_records import absorbing_channel, recycling_channel, uniform

SEEDS = np.linspace(0, 0.9, 10)[:, None] * [1, 1, 0]
TIMES = np.linspace(0, 4, 41)


def shades_of(part):
    assert part.shades is not None
    return part.shades


def pixels_of(png):
    pytest.importorskip("matplotlib")
    from io import BytesIO

    from matplotlib.image import imread

    return imread(BytesIO(png))


def test_positions_are_those_of_the_plane():
    record = uniform([0, 0.1, 0.2], SEEDS, TIMES)
    part = particle_canvas(record, plane="xz", bounds=[0, 1, 0, 1, 0, 2])
    np.testing.assert_allclose(part.positions, record.positions[..., [0, 2]])
    assert (part.x_axis.name, part.x_axis.high) == ("x", 1)
    assert (part.y_axis.name, part.y_axis.high) == ("z", 2)
    assert part.captions[:2] == ("t = 0", "t = 0.1")


def test_at_most_so_many_particles_and_frames_the_last_one_kept():
    record = uniform([0.1, 0, 0], SEEDS, TIMES)
    part = particle_canvas(record, max_particles=4, max_frames=9)
    assert part.positions.shape == (9, 4, 2)
    last = choose(10, max_points=4)[-1]
    np.testing.assert_allclose(part.positions[-1, -1], record.positions[-1, last, :2])


@pytest.mark.parametrize("max_frames", [41, 7])
def test_trails_lead_over_no_wrap(max_frames):
    record = uniform([0.7, 0, 0], SEEDS, TIMES, period=(1, 0, 0))
    starts: Any = particle_canvas(record, max_frames=max_frames).starts
    cells = np.floor(SEEDS[:, 0] + 0.7 * TIMES[:, None])
    shown = cells[np.linspace(0, 40, max_frames).round().astype(int)]
    np.testing.assert_array_equal(starts[1:], np.diff(shown, axis=0) != 0)
    assert not starts[0].any()


def test_absent_particles_are_not_drawn():
    record = absorbing_channel(1.0, 1.0, [0.0, 0.8], [0.0, 0.5])
    part = particle_canvas(record)
    np.testing.assert_array_equal(
        np.isfinite(part.positions[..., 0]), [[True, True], [True, False]]
    )


def test_colors_by_where_particles_began():
    part = particle_canvas(uniform([0.1, 0, 0], SEEDS, TIMES), bounds=[0, 0.9, 0, 1])
    shades = shades_of(part)
    assert shades.shape == (10,)
    assert (np.diff(shades) > 0).all()
    assert (shades[0], shades[-1]) == (0, len(part.colors) - 1)


def test_a_recycled_particle_takes_the_color_of_its_own_beginning():
    record = recycling_channel(0.5, 1.0, [0.9], TIMES)
    part = particle_canvas(record, bounds=[0, 1, 0, 1])
    assert shades_of(part)[0, 0] > 0.8 * len(part.colors)
    assert shades_of(part)[-1, 0] == 0


def test_colors_by_age_start_again_with_a_new_life():
    record = recycling_channel(0.5, 1.0, [0.0], TIMES[:30])
    shades = shades_of(particle_canvas(record, color="age"))[:, 0]
    (again,) = np.nonzero(np.diff(record.generation[:, 0]))
    assert shades[0] == shades[again + 1] == 0
    assert shades[again] == shades.max() > 10


def test_a_map_is_laid_over_the_axes_the_right_way_up():
    values = np.zeros((4, 3))
    values[3, 2] = 1.0
    values[0, 0] = np.nan
    opacity = pixels_of(shade_map(values))[..., 3]
    assert opacity.shape == (3, 4)
    assert opacity[0, 3] > 0.3
    assert opacity.sum() == opacity[0, 3]


def test_land_lies_where_the_field_has_it():
    land = np.zeros((5, 3, 1), bool)
    land[2:4, 1:] = True  # one cell with land at every corner: x 2 to 3, y 1 to 2
    axes = (np.arange(5.0), np.arange(3.0), np.zeros(1))
    flow = np.ones((5, 3, 1, 2), np.float32)
    field = make_grid_field(flow, axes, radius=EARTH_RADIUS, land=land)
    ends = Axis("x", 0.0, 8.0), Axis("y", 0.0, 3.0)  # most of it beyond the field
    seen = land_over(field, *ends)
    assert seen is not None
    middles = [(np.arange(n) + 0.5) / n for n in seen.shape]
    x, y = np.meshgrid(8 * middles[0], 3 * middles[1], indexing="ij")
    np.testing.assert_array_equal(seen, (x > 2) & (x < 3) & (y > 1) & (y < 2))
    pixels = pixels_of(shade_map(np.eye(3), seen))
    assert pixels.shape == (*seen.T.shape, 4)
    np.testing.assert_array_equal(pixels[seen.T[::-1], 3], 1.0)
    assert (pixels[~seen.T[::-1], 3] < 0.5).all()
    record = uniform([0, 0, 0], SEEDS, TIMES)
    assert particle_canvas(record, field=field).background is not None
    assert particle_canvas(record, plane="xz", field=field).background is None


@pytest.mark.parametrize(
    "background", [np.ones((3, 2)), png_from_array(np.zeros((2, 2), np.uint8))]
)
def test_backgrounds(background):
    part = particle_canvas(uniform([0, 0, 0], SEEDS, TIMES), background=background)
    assert "<img" in part.html()


def test_the_page_keeps_within_its_size():
    record = uniform(
        [0.1, 0, 0], np.random.default_rng(0).random((400, 3)), np.arange(200.0)
    )
    report = Report("Flow")
    canvas = particle_canvas(record, color="age", background=np.eye(60))
    report.add(Section("Flow", canvas))
    assert len(report.html()) < 400_000


def test_words_say_what_a_canvas_shows():
    record = uniform([0.1, 0, 0], SEEDS * [1, 0.01, 1], TIMES)
    part = particle_canvas(record, max_particles=5, max_frames=41)
    words = describe(part, record, "xy", "position")
    assert "5 of 10 particles at 41 instants" in words
    assert "not to one scale" in words
    assert part.height == 0.25


@pytest.mark.parametrize("scale", [1e-6, 1.0, 3e5])
def test_axes_hold_the_particles_at_any_scale(scale):
    part = particle_canvas(uniform([0, 0, 0], SEEDS * scale, TIMES))
    assert part.x_axis.low <= 0
    assert 0.9 * scale <= part.x_axis.high <= 1.05 * scale


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"color": "mood"}, "color 'mood'"),
        ({"background": np.zeros(3)}, "background has shape"),
        ({"background": np.full((2, 2), np.nan)}, "finite"),
        ({"plane": "zz"}, "plane"),
        ({"max_frames": 0}, "max_frames is 0"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        particle_canvas(np.zeros((2, 3, 3)), **options)


def test_paths_without_particles_are_refused():
    with pytest.raises(ValueError, match="no particle"):
        particle_canvas(np.zeros((2, 0, 3)))
