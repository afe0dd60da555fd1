"""Charts are valid SVG whose geometry agrees with the data and with its own ticks."""

import itertools
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxrig.report import bar_chart, line_chart
from jaxrig.report.axes import PALETTE, Scale, fit_ticks, shorten, text_width
from jaxrig.report.charts import HEIGHT, WIDTH, read_curves
from jaxrig.report.images import parse_drawing
from jaxrig.report.page import _resource
from jaxrig.report.players import SPECTRUM
from jaxrig.report.text import format_number

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "</title></svg><script>alert('1')</script>\"&\x00\ud800"


def read(text: str) -> ElementTree.Element:
    parse_drawing(text)
    return ElementTree.fromstring(text)


def marked(root, name):
    return {node.get(name): node for node in root.iter() if node.get(name)}


def points(path: str) -> list[np.ndarray]:
    runs = path.replace("Z", "").split("M")[1:]
    return [np.array([p.split() for p in run.split("L")], float) for run in runs]


def curve(root, name) -> list[np.ndarray]:
    return points(marked(root, "data-series")[name].find(f"{SVG}path").get("d"))


def axis(root, name) -> list[tuple[float, float]]:
    """(pixel, value) of each tick, as a reader would take them from the labels."""
    side = "x" if name == "x" else "y"
    labels = [node for node in root.iter() if node.get("data-axis") == name]
    return [
        (float(node.get(side)), float(node.text.replace(",", ""))) for node in labels
    ]


def expected(ticks, values):
    (p0, v0), (p1, v1) = ticks[0], ticks[-1]
    return p0 + (np.asarray(values) - v0) / (v1 - v0) * (p1 - p0)


def test_points_lie_where_the_ticks_say():
    x = np.array([0.0, 1.5, 3.0, 10.0])
    y = np.array([0.02, 0.5, 30.0, 4.0])
    root = read(line_chart({"a": (x, y)}, "t", "x", "y"))
    (drawn,) = curve(root, "a")
    np.testing.assert_allclose(drawn[:, 0], expected(axis(root, "x"), x), atol=0.05)
    np.testing.assert_allclose(drawn[:, 1], expected(axis(root, "y"), y), atol=0.05)


VALUES = st.floats(-1e6, 1e6).map(lambda value: round(value, 3))


@given(st.lists(VALUES, min_size=2, max_size=30))
def test_greater_values_are_drawn_higher_and_inside(values):
    root = read(line_chart({"a": (np.arange(len(values)), values)}))
    (drawn,) = curve(root, "a")
    heights = -drawn[:, 1][np.argsort(values, kind="stable")]
    assert (np.diff(heights) >= 0).all()
    assert (np.diff(drawn[:, 0]) > 0).all()
    assert drawn.min() >= 0
    assert drawn[:, 0].max() <= WIDTH
    assert drawn[:, 1].max() <= HEIGHT


def test_nan_breaks_the_curve_and_lone_points_become_dots():
    nan = np.nan
    y = [1, 2, nan, 3, nan, 4, 5, 6]
    root = read(line_chart({"a": (range(8), y)}))
    assert [len(run) for run in curve(root, "a")] == [2, 3]
    (dot,) = marked(root, "data-series")["a"].findall(f"{SVG}circle")
    at = expected(axis(root, "x"), 3.0), expected(axis(root, "y"), 3.0)
    place = float(dot.get("cx", "")), float(dot.get("cy", ""))
    assert place == pytest.approx(at, abs=0.05)
    alone = marked(read(line_chart({"a": ([4], [2])})), "data-series")["a"]
    assert len(alone.findall(f"{SVG}circle")) == 1
    assert alone.find(f"{SVG}path") is None


def test_band_follows_low_forth_and_high_back():
    x, y = np.arange(3.0), np.array([2.0, 3.0, 4.0])
    low, high = y - 1, y + np.array([1.0, 2.0, 6.0])
    root = read(line_chart({"a": (x, y), "b": (x, y)}, bands={"a": (low, high)}))
    ((name, band),) = marked(root, "data-band").items()
    assert name == "a"
    (outline,) = points(band.get("d", ""))
    ticks = axis(root, "y")
    np.testing.assert_allclose(outline[:3, 1], expected(ticks, low), atol=0.05)
    np.testing.assert_allclose(outline[3:, 1], expected(ticks, high[::-1]), atol=0.05)
    np.testing.assert_allclose(outline[:3, 0], outline[3:, 0][::-1])


@pytest.mark.parametrize("count", [2, 7, 14])
def test_names_stand_right_of_the_data_and_apart(count):
    series = {f"name {i}": ([0, 1], [i * 1e-3, 0.5 + i * 1e-3]) for i in range(count)}
    series["far"] = ([0, 1], [0, 100])
    root = read(line_chart(series))
    texts = [n for n in root.iter(f"{SVG}text") if n.text in series]
    right = max(run[:, 0].max() for name in series for run in curve(root, name))
    assert len(texts) == len(series)
    assert all(float(node.get("x", "")) > right for node in texts)
    heights = sorted(float(node.get("y", "")) for node in texts)
    assert np.diff(heights).min() >= 15
    assert heights[0] >= 0
    assert heights[-1] <= HEIGHT


@pytest.mark.parametrize(
    "chart",
    [
        line_chart(
            {HOSTILE: ([0, 1], [0, 1])},
            HOSTILE,
            HOSTILE,
            HOSTILE,
            bands={HOSTILE: ([0, 1], [0, 1])},
        ),
        bar_chart({HOSTILE: 1.0}, HOSTILE, HOSTILE),
    ],
)
def test_words_stay_words(chart):
    root = read(chart)
    assert {node.tag for node in root.iter()} <= {
        SVG + tag for tag in ("svg", "title", "text", "line", "path", "g", "rect")
    }
    assert "<script>" in (root.findtext(f"{SVG}title") or "")


@pytest.mark.parametrize(
    "chart", [line_chart({"a": ([0, 1], [0, 1])}), bar_chart({"a": 1, "b": -2.5})]
)
def test_chart_stands_alone(chart):
    root = read(chart)
    width, height = root.get("width"), root.get("height")
    assert root.get("viewBox") == f"0 0 {width} {height}"
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title"
    assert root[0].text
    assert root.get("fill") == "currentColor"
    assert re.findall('https?:[^" ]*', chart) == ["http://www.w3.org/2000/svg"]


@given(st.lists(VALUES, min_size=1, max_size=8))
def test_bars_are_proportional_and_start_at_zero(values):
    root = read(bar_chart({str(index): value for index, value in enumerate(values)}))
    bars = marked(root, "data-bar").values()
    left = np.array([float(bar.get("x", "")) for bar in bars])
    length = np.array([float(bar.get("width", "")) for bar in bars])
    size = np.abs(values)
    np.testing.assert_allclose(
        length * size.max(), size * length.max(), atol=0.011 * size.max() + 1e-9
    )
    ends = np.where(np.array(values) < 0, left + length, left)
    assert np.ptp(ends) <= 0.021
    words = {node.text for node in root.iter(f"{SVG}text")}
    assert words == {*map(str, range(len(values))), *map(format_number, values)}


def test_looks_differ_for_many_curves():
    series = {str(index): ([0, 1], [0, 1]) for index in range(16)}
    curves = read_curves(series, {})
    assert len({(curve.color, curve.dash) for curve in curves}) == 16


@pytest.mark.parametrize(
    ("series", "bands", "message"),
    [
        ({}, {}, "series is empty"),
        ({"a": ([], [])}, {}, "'a' has no point"),
        ({"a": ([1, 2], [np.nan, np.nan])}, {}, "'a' has no point"),
        ({"a": ([1, 2], [1])}, {}, "'a' has x, y, low and high of 2, 1, "),
        ({"a": ([[1]], [[1]])}, {}, r"'a' has shape \(1, 1\)"),
        ({"a": ([1], [np.inf])}, {}, "'a' holds an infinite"),
        ({"a": ([1], ["b"])}, {}, "'a' must be arrays of numbers"),
        ({"a": ([1], [1])}, {"b": ([1], [1])}, r"bands names \['b'\]"),
        ({"a": ([1], [1])}, {"a": ([2], [1])}, "low above its high"),
        ({"a": ([1], [1])}, {"a": ([1, 2], [3, 4])}, "of 1, 1, 2, 2 values"),
    ],
)
def test_refusals(series, bands, message):
    with pytest.raises(ValueError, match=message):
        read_curves(series, bands)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: bar_chart({}), "values is empty"),
        (lambda: bar_chart({"a": np.nan}), r"values\['a'\] is nan"),
        (lambda: line_chart({"a": ([0], [0])}, width=100), "width is 100"),
        (lambda: line_chart({"a": ([0], [0])}, width=np.nan), "width is nan"),
        (lambda: line_chart({"a": ([0], [0])}, height=20), "height is 20"),
    ],
)
def test_charts_that_cannot_be_drawn(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


PAGES = ("#ffffff", "#14171c")


@given(st.floats(-1e308, 1e308), st.floats(-1e308, 1e308), st.floats(0, 1))
def test_linear_scale_is_affine(a, b, share):
    low, high = min(a, b), max(a, b)
    if high / 2 - low / 2 <= 1e-9 * max(abs(low), abs(high), 1e-300):
        return
    scale = Scale(low, high, 300.0, 20.0)
    assert float(scale(low)) == 300
    assert float(scale(high)) == 20
    middle = low * (1 - share) + high * share
    assert float(scale(middle)) == pytest.approx(300 - 280 * share, abs=1e-4)


@given(st.text(), st.floats(30, 400))
def test_short_text_fits_and_keeps_its_start(text, room):
    cut = shorten(text, room)
    assert text_width(cut) <= room
    assert cut == text or (cut.endswith("\u2026") and text.startswith(cut[:-1]))


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9), st.floats(150, 600))
def test_tick_labels_never_touch(low, extent, room):
    ticks = fit_ticks(low, low + extent, room, whole=False)
    shown = [tick for tick in ticks if low <= tick <= low + extent]
    if len(shown) < 3:
        return
    apart = room * (shown[1] - shown[0]) / extent
    assert apart > 16


def luminance(color: str) -> float:
    channels = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(
        channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4
    )
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize(("color", "page"), [*itertools.product(PALETTE, PAGES)])
def test_colors_stand_out_on_both_pages(color, page):
    darker, lighter = sorted((luminance(color), luminance(page)))
    assert (lighter + 0.05) / (darker + 0.05) >= 3


def test_colors_of_points_stand_out_on_their_stage_and_brighten():
    stage = re.search(r"\.field \{[^}]*background: (#\w+)", _resource("style.css"))
    assert stage
    shown = [luminance(color) + 0.05 for color in (stage[1], *SPECTRUM)]
    assert shown[1] / shown[0] > 2.5
    assert shown == sorted(shown)
