"""The studio in a real browser: puzzles solved by mouse and keyboard, on two widths.

Set JAXRIG_SCREENSHOTS to a folder to keep the pictures and look at them.
"""

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from browser import CHROMIUM, start_browser
from jaxarc.tasks import open_dataset
from studio_server import real_rooms, running_studio

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (Debian: apt install chromium)"
)
PHONE, DESKTOP = 390, 1440
ALBUM = os.environ.get("JAXRIG_SCREENSHOTS")
SOLVED = "document.querySelector('.verdict').textContent.includes('Solved')"
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("folder")


@pytest.fixture(scope="module")
def studio(folder):
    with running_studio(folder, real_rooms("arc")) as client:
        yield client


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with start_browser(tmp_path_factory.mktemp("profile")) as browser:
        yield browser.open()


def visit(page, studio, place, width, theme):
    page.show(width, 900, prefers_color_scheme=theme)
    page.load("about:blank")  # or only the part after # changes, and nothing loads
    page.load(f"{studio.url}#/{place}")


def picture(page, name):
    assert not page.evaluate(TOO_WIDE)
    if ALBUM:
        Path(ALBUM).mkdir(parents=True, exist_ok=True)
        page.screenshot(Path(ALBUM) / f"studio-{name}.png")


def changes_of(task):
    """Cells of the test in which the answer differs from the input, and their color."""
    given, wanted = open_dataset("AGI1").get_raw_task(task).test[0]
    assert wanted is not None
    cells = np.argwhere(given != wanted).tolist()
    return given.shape, [
        (row, column, int(wanted[row][column])) for row, column in cells
    ]


def test_a_task_is_solved_by_mouse(page, studio):
    shape, changes = changes_of("aedd82e4")
    visit(page, studio, "arc/AGI1/aedd82e4", DESKTOP, "dark")
    page.until("document.querySelector('#work')?.width > 0")
    for row, column, color in changes:
        page.click(f".swatch:nth-child({color + 1})")
        left, top, width, height = page.evaluate(
            "(b => [b.left, b.top, b.width, b.height])"
            "(document.querySelector('#work').getBoundingClientRect())"
        )
        where = (
            left + (column + 0.5) / shape[1] * width,
            top + (row + 0.5) / shape[0] * height,
        )
        page.drag(where, where)
    page.click("#submit")
    page.until(SOLVED)
    picture(page, "arc-desktop")
    assert page.complaints() == []


def test_a_task_is_solved_by_keyboard_on_a_telephone(page, studio, folder):
    _, changes = changes_of("27a77e38")
    visit(page, studio, "arc/AGI1/27a77e38", PHONE, "light")
    page.until("document.activeElement?.id === 'work'")
    page.press("Enter")  # not the answer yet: said, and the cells are marked
    page.until("document.querySelector('.verdict').textContent.includes('1 cell is')")
    at = [0, 0]
    for row, column, color in changes:
        for axis, (less, more) in enumerate(
            (("ArrowUp", "ArrowDown"), ("ArrowLeft", "ArrowRight"))
        ):
            distance = (row, column)[axis] - at[axis]
            for _ in range(abs(distance)):
                page.press(more if distance > 0 else less)
        at = [row, column]
        page.press(str(color))
    page.press("Enter")
    page.until(SOLVED)
    picture(page, "arc-phone")
    assert page.complaints() == []
    page.load("about:blank")
    page.load(f"{studio.url}#/arc/AGI1?solved=solved")
    page.until("document.querySelector('.thumb .solved') !== null")
    assert (folder / "games/AGI1-27a77e38-t1-1.json").is_file()


@pytest.mark.parametrize(("width", "theme"), [(PHONE, "dark"), (DESKTOP, "light")])
def test_home_shows_live_tiles(page, studio, width, theme):
    visit(page, studio, "", width, theme)
    page.until(
        "[...document.querySelectorAll('.tile canvas')].every(c => c.width !== 300)"
    )
    page.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")
    picture(page, f"home-{width}")
    assert page.complaints() == []
