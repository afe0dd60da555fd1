"""Pictures of the studio, taken in Chromium by the driver that the tests use."""

import math
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from browser import CHROMIUM, Page, start_browser
from studio_server import Client, real_rooms, running_studio

OUTLINE = [(math.cos(a), math.sin(a)) for a in np.linspace(0, 2 * np.pi, 24)]
DESKTOP, PHONE = (1440, 900), (390, 844)
TASK = "0ca9ddb6"
EXPERIMENTS = 4
BLANK_WIDTH = 300  # of a canvas on which nothing is drawn yet
DRAWN = (
    f"[...document.querySelectorAll('{{}} canvas')]"
    f".filter(each => each.width !== {BLANK_WIDTH}).length >= {{}}"
)


def take_screens() -> dict[str, bytes]:
    """Use every room as a visitor would; return PNG pictures, none without Chromium.

    The folder of the studio is made in the working directory.
    """
    if CHROMIUM is None:
        return {}
    album = Path("album")
    album.mkdir()
    with (
        running_studio(Path("studio"), real_rooms("arc", "trace", "causal")) as studio,
        start_browser(Path("profile").resolve()) as browser,
    ):
        page = browser.open()
        for use in (_home, _arc, _flow, _cause):
            use(page, studio)
            _keep(page, album / f"studio{use.__name__.replace('_', '-')}")
    return {path.name: path.read_bytes() for path in album.iterdir()}


def _show(page: Page, size: tuple[int, int], theme: str) -> None:
    page.show(*size, prefers_color_scheme=theme, prefers_reduced_motion="reduce")


def _visit(page: Page, studio: Client, place: str) -> None:
    _show(page, DESKTOP, "light")
    page.load("about:blank")  # or only the part after # changes, and nothing loads
    page.load(f"{studio.url}#/{place}")


def _keep(page: Page, stem: Path) -> None:
    """Write what is shown in both themes, and as a phone shows it."""
    for size, theme, name in (
        (DESKTOP, "light", "light"),
        (DESKTOP, "dark", "dark"),
        (PHONE, "light", "phone"),
    ):
        _show(page, size, theme)
        page.evaluate("document.querySelectorAll('*').forEach(e => e.scrollTo(0, 0))")
        page.evaluate(  # what follows a new size is drawn in the frame after it
            "new Promise(done => requestAnimationFrame("
            "() => requestAnimationFrame(() => requestAnimationFrame(done))))"
        )
        page.screenshot(stem.with_name(f"{stem.name}-{name}.png"), whole=False)


def _home(page: Page, studio: Client) -> None:
    _visit(page, studio, "")
    page.until(DRAWN.format(".tile", 3))


def _arc(page: Page, studio: Client) -> None:
    """A task with the first half of its steps made."""
    _, game = studio.call("arc", "open_game", dataset="AGI1", task=TASK, pair=0)
    _, left = studio.call("arc", "steps_left", game=game["game"])
    for step in left[: len(left) // 2]:
        made = {key: step[key] for key in ("operation", "box")}
        studio.call("arc", "step", game=game["game"], **made)
    _visit(page, studio, f"arc/AGI1/{TASK}?game={game['game']}")
    page.until("document.querySelector('#work')?.width > 0")
    page.until(DRAWN.format(".thumb", 8))


def _flow(page: Page, studio: Client) -> None:
    """Two areas of particles of the double gyre, carried along the ridges of FTLE."""
    _visit(page, studio, "trace?flow=double_gyre")
    page.until("document.querySelector('#run')?.disabled === false")
    page.until("document.querySelector('.corner').textContent !== ''")
    left, top, width, height = page.evaluate(
        "(b => [b.left, b.top, b.width, b.height])"
        "(document.querySelector('.stage').getBoundingClientRect())"
    )
    at = lambda x, y: (left + x * width, top + y * height)
    page.evaluate(
        "(to => { to.value = 12; to.dispatchEvent(new Event('input')); })"
        "(document.querySelectorAll('aside .halves input')[1])"
    )
    page.drag(at(0.44, 0.35), at(0.56, 0.65))
    page.click("[data-tool=polygon]")
    page.drag(*(at(0.78 + 0.05 * x, 0.3 + 0.09 * y) for x, y in OUTLINE))
    page.evaluate(
        "(s => { s.value = 5000; s.dispatchEvent(new Event('change')); })"
        "(document.querySelector('aside .card select'))"
    )
    page.click("#run")
    page.until(
        "document.querySelector('#flow-status').textContent.startsWith('done')",
    )
    page.click("[aria-label=Layer] button:nth-child(2)")
    page.until("document.querySelector('.legend').textContent.startsWith('FTLE')")


def _cause(page: Page, studio: Client) -> None:
    """A campaign on an example, some experiments after its start."""
    _visit(page, studio, "causal")
    page.until("document.querySelector('.columns select') !== null")
    page.click("#start")
    for told in range(EXPERIMENTS):
        page.until(
            f"document.querySelectorAll('.history li').length === {told}"
            " && document.querySelector('#simulate') !== null",
        )
        page.click("#simulate")
        page.until("document.querySelector('form input').value !== ''")
        page.click("#tell")
    page.until(f"document.querySelectorAll('.history li').length === {EXPERIMENTS}")
