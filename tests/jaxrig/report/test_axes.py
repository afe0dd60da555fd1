"""Scales hit their ends, text is cut to its room, colors can be seen."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxrig.report.axes import PALETTE, Scale, fit_ticks, pixel, shorten, text_width

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


def test_log_scale_gives_each_decade_the_same_length():
    scale = Scale(0.01, 100.0, 0.0, 400.0, log=True)
    places = scale(np.array([0.01, 0.1, 1, 10, 100]))
    np.testing.assert_allclose(places, [0, 100, 200, 300, 400])


@given(st.text(), st.floats(30, 400))
def test_short_text_fits_and_keeps_its_start(text, room):
    cut = shorten(text, room)
    assert text_width(cut) <= room
    assert cut == text or (cut.endswith("\u2026") and text.startswith(cut[:-1]))


def test_wide_glyphs_take_more_room():
    assert text_width("漢字") > text_width("ab")


@pytest.mark.parametrize(
    ("value", "text"), [(3.0, "3"), (100.0, "100"), (0.005, "0.01"), (-2.5, "-2.5")]
)
def test_pixel(value, text):
    assert pixel(value) == text


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
