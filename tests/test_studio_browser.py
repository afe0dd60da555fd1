"""The studio in a real browser: puzzles solved by mouse and keyboard, on two widths.

Set JAXRIG_SCREENSHOTS to a folder to keep the pictures and look at them.
"""

import json
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
ROOMS = ("arc", "trace", "causal")
ALBUM = os.environ.get("JAXRIG_SCREENSHOTS")
SOLVED = "document.querySelector('.verdict').textContent.includes('Solved')"
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("folder")


@pytest.fixture(scope="module")
def studio(folder):
    with running_studio(folder, real_rooms(*ROOMS)) as client:
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


def gyre_file():
    """A flow between walls as a legacy VTK file: particles go round and stay inside."""
    x, y = np.meshgrid(np.linspace(0, 1, 17), np.linspace(0, 1, 17))
    u = -np.sin(np.pi * x) * np.cos(np.pi * y)
    v = np.cos(np.pi * x) * np.sin(np.pi * y)
    rows = [f"{a:.6f} {b:.6f} 0" for a, b in zip(u.flat, v.flat, strict=True)]
    head = "# vtk DataFile Version 3.0\na gyre\nASCII\nDATASET STRUCTURED_POINTS\n"
    grid = "DIMENSIONS 17 17 1\nORIGIN 0 0 0\nSPACING 0.0625 0.0625 1\n"
    heat = ["SCALARS heat float", "LOOKUP_TABLE default", *(f"{a:.6f}" for a in x.flat)]
    return "\n".join(
        [head + grid + "POINT_DATA 289", "VECTORS velocity float", *rows, *heat, ""]
    )


def drop(page, selector, name, text):
    """Hand a file to an input, as dropping it does."""
    page.evaluate(
        "((input, name, text) => { const held = new DataTransfer(); "
        "held.items.add(new File([text], name)); input.files = held.files; "
        "input.dispatchEvent(new Event('change')); })"
        f"(document.querySelector({selector!r}), {name!r}, {json.dumps(text)})"
    )


def heard(page):
    """Complaints of the page; drawing in software makes the driver talk of its own."""
    return [said for said in page.complaints() if "GL Driver Message" not in said]


def test_particles_are_tracked_from_a_dropped_file(page, studio, folder):
    visit(page, studio, "trace?flow=rotation", DESKTOP, "light")
    page.until("document.querySelector('#run')?.disabled === false")
    drop(page, "input[type=file]", "my gyre.vtk", gyre_file())
    page.until(
        "location.hash.includes('my_gyre') && !document.querySelector('#run').disabled"
    )
    page.click("#clear-seeds")
    page.until("document.querySelector('#run').disabled")
    page.click("[data-tool=polygon]")
    left, top, width, height = page.evaluate(
        "(b => [b.left, b.top, b.width, b.height])"
        "(document.querySelector('.stage').getBoundingClientRect())"
    )
    middle = left + width / 2, top + height / 2
    right, above = (middle[0] + 60, middle[1]), (middle[0], middle[1] - 60)
    page.drag(middle, right, above)  # a triangle: the mouse goes around an area
    page.evaluate(
        "(s => { s.value = 1000; s.dispatchEvent(new Event('change')); })"
        "(document.querySelector('aside .card select'))"
    )
    page.evaluate("document.querySelector('#color').value = 'heat'")
    page.click("#run")
    page.until("document.querySelector('#flow-status').textContent.startsWith('done')")
    page.until("document.querySelector('.legend').textContent.startsWith('heat')")
    page.until("document.querySelector('.corner').textContent.startsWith('1\u2009000')")
    picture(page, "flow-desktop")
    assert heard(page) == []
    assert (folder / "runs/my_gyre-1/trajectory.zarr").is_dir()
    case = (folder / "runs/my_gyre-1/case_as_run.toml").read_text()
    assert 'variables = ["heat"]' in case
    lines = (folder / "runs/my_gyre-1/seeds.csv").read_text().split()
    seeds = np.array([line.split(",") for line in lines[1:]], float)
    assert np.abs(seeds[:, :2] - 0.5).max() < 0.2  # near the middle, where it was drawn
    x, y = (seeds - seeds.min(axis=0))[:, :2].T
    side = max(x.max(), y.max())
    assert (x + y).max() < 1.05 * side  # a triangle has no fourth corner
    assert np.mean(x + y < side / 2) == pytest.approx(0.25, abs=0.06)
    place = page.evaluate("location.hash")
    page.show(PHONE, 844)
    page.load("about:blank")
    page.load(f"{studio.url}{place}")  # a reload, or another tab: the same run
    page.until(
        "document.querySelector('.corner')?.textContent.startsWith('1\u2009000')"
    )
    picture(page, "flow-phone")


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


def lab_table():
    """Return a table as a laboratory writes it: dose raises yield, heat is noise."""
    draw = np.random.default_rng(0)
    dose, heat = draw.uniform(0, 10, 30), draw.normal(20, 3, 30)
    gain = 3 * dose + draw.normal(0, 1, 30)
    rows = zip(dose, heat, gain, strict=True)
    lines = [f"s{k},{a:.3f},{b:.2f},{c:.3f}" for k, (a, b, c) in enumerate(rows)]
    return "\n".join(["sample,dose (mg),heat,yield", *lines, ""])


def test_a_table_gives_a_suggestion_and_takes_its_outcome(page, studio, folder):
    visit(page, studio, "causal", DESKTOP, "light")
    page.until("document.querySelector('.columns select') !== null")
    drop(page, "input[type=file]", "lab.csv", lab_table())
    page.until("location.hash.includes('lab.csv')")
    page.click("#start")  # which way is not said yet
    page.until("document.querySelector('#said').textContent.includes('raised')")
    page.evaluate("document.querySelectorAll('.halves select')[1].value = 'raise'")
    page.click("#start")
    words = "document.querySelector('#suggestion').textContent"
    page.until(f"{words}.startsWith('To raise yield, set dose (mg) to')")
    for name, value in (("yield", 31.5), ("heat", 21)):
        page.evaluate(f"document.querySelector('form [name={name}]').value = {value}")
    page.click("#tell")
    page.until("document.querySelectorAll('.history li').length === 1")
    picture(page, "cause-desktop")
    rows = (folder / "campaigns/lab-1/rows.csv").read_text().splitlines()
    assert len(rows) == 32
    assert page.complaints() == []
    page.show(PHONE, 844, prefers_color_scheme="dark")
    picture(page, "cause-phone")


@pytest.mark.parametrize(("width", "theme"), [(PHONE, "dark"), (DESKTOP, "light")])
def test_home_shows_live_tiles(page, studio, width, theme):
    visit(page, studio, "", width, theme)
    page.until(
        "[...document.querySelectorAll('.tile canvas')].filter(c => c.width !== 300)"
        f".length === {len(ROOMS)}"
    )
    page.press("Tab")
    assert page.evaluate("document.activeElement !== document.body")
    picture(page, f"home-{width}")
    assert heard(page) == []
