"""The page in a real browser: it plays, fits, can be read, and says nothing bad.

Set JAXRIG_SCREENSHOTS to a folder to keep the pictures and look at them.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from browser import CHROMIUM, start_browser
from jaxrig.report import (
    Axis,
    Code,
    Figure,
    Heading,
    Player,
    Points,
    Report,
    Section,
    Table,
    Text,
    bar_chart,
    line_chart,
    png_from_array,
)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (Debian: apt install chromium)"
)
PHONE, DESKTOP = 390, 1440
THEMES = ("light", "dark")
LEAST_CONTRAST = 4.5  # WCAG 2.2, 1.4.3
WORDS = "A sentence that is long enough to be broken on a telephone and on a desktop. "

# Elements past an edge of the window, unless a box around them scrolls.
OVERFLOWING = """(() => {
  const scrolls = (e) => {
    for (let box = e.parentElement; box !== document.body; box = box.parentElement)
      if (["auto", "scroll"].includes(getComputedStyle(box).overflowX)) return true;
    return false;
  };
  // innerWidth of a telephone grows with what is too wide, this does not.
  const room = document.documentElement.clientWidth;
  const past = (e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.right > room + 0.5 || box.left < -0.5);
  };
  const all = [...document.body.querySelectorAll("*")];
  return all.filter((e) => past(e) && !scrolls(e)).map((e) => e.outerHTML.slice(0, 99));
})()"""

# Boxes that scroll sideways and cannot be reached with the keyboard.
UNREACHABLE = """[...document.body.querySelectorAll("*")].filter((e) =>
  getComputedStyle(e).overflowX === "auto" && e.scrollWidth > e.clientWidth
  && e.tabIndex < 0).map((e) => e.outerHTML.slice(0, 99))"""

# Words, with the contrast between their color and what is painted behind them.
CONTRASTS = """(() => {
  // Mixed colors are color(srgb 1 1 1 / 0.8), others rgba(255, 255, 255, 0.8).
  const numbers = (color) => color.match(/[\\d.]+/g).map(
    (word, at) => Number(word) * (color.startsWith("color(") && at < 3 ? 255 : 1));
  const light = (color) => {
    const [r, g, b] = numbers(color).map((v) => v / 255)
      .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = (e) => {
    for (; e; e = e.parentElement) {
      const color = getComputedStyle(e).backgroundColor;
      if (numbers(color)[3] !== 0) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const words = (e) => [...e.childNodes].filter((n) => n.nodeType === Node.TEXT_NODE)
    .map((n) => n.data.trim()).join("");
  const shown = [...document.body.querySelectorAll("*")].filter((e) => words(e)
    && e.getClientRects().length && !["SCRIPT", "title"].includes(e.tagName));
  return shown.map((e) => {
    const style = getComputedStyle(e);
    const ink = light(e instanceof SVGElement ? style.fill : style.color);
    const behind = light(paper(e));
    return [(Math.max(ink, behind) + 0.05) / (Math.min(ink, behind) + 0.05), words(e)];
  });
})()"""
REDNESS = """((x, y) => {
  const canvas = document.querySelector("canvas");
  const [red, green, , alpha] = canvas.getContext("2d").getImageData(
    canvas.width * x, canvas.height * (1 - y), 1, 1).data;
  return red === 255 && green === 0 && alpha === 255;
})"""


def grid_frame(column):
    squares = "".join(
        f'<rect x="{20 * i}" width="18" height="18" '
        f'fill="{"#d55e00" if i == column else "currentColor"}"/>'
        for i in range(5)
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" width="100" height="20">'
        f"{squares}</svg>"
    )


def sample_report():
    """Every kind of part, some too wide for a telephone."""
    random = np.random.default_rng(0)
    x = np.arange(1, 8)
    curves = {name: (x, random.random(7)) for name in ("policy", "exact", "random")}
    pixels = random.integers(0, 255, (6, 8, 3)).astype(np.uint8)
    wide = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="1000" height="80" '
        'fill="currentColor"><text x="4" y="40">left</text>'
        '<text x="950" y="40">right</text></svg>'
    )
    moving = np.array([[[0.25, 0.25]], [[0.75, 0.25]], [[np.nan, 0.5]]])
    report = Report("A sample", "Every part once.")
    report.add(
        Section(
            "Words and numbers",
            Text(WORDS * 3 + "It names `a_function_of_some_length` too."),
            Heading("A heading"),
            Code("an_error: " + "x" * 200),
            Table(
                [f"column {i}" for i in range(12)], [[1.5 * 10**i for i in range(12)]]
            ),
            Table(("what", "documented", "in this run"), [("rate", "10,000+", 12345)]),
        )
    )
    report.add(
        Section(
            "Pictures",
            Figure(line_chart(curves, "Regret", "steps", "regret"), caption=WORDS),
            Figure(bar_chart({"A, B": 0.8, "C": 0.2}, "Causes"), alt="Bars"),
            Figure(wide, caption="Wider than the window.", alt="Wide"),
            Figure(png_from_array(pixels), caption="Few pixels, enlarged."),
        )
    )
    report.add(
        Section(
            "Players",
            Player(
                [grid_frame(i) for i in range(5)],
                [f"step {i}" for i in range(5)],
                frames_per_second=30,
                title="An episode",
            ),
            Player([png_from_array(np.roll(pixels, i, 1)) for i in range(4)]),
            Points(
                moving,
                Axis("x", 0, 1),
                Axis("y", 0, 1),
                background=png_from_array(np.full((4, 4, 4), 40, np.uint8)),
                colors=["#ff0000"],
                radius=5,
                trail=1,
                captions=list("abc"),
                alt="One point",
            ),
        )
    )
    return report


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with start_browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


@pytest.fixture(scope="module")
def sample(tmp_path_factory):
    return sample_report().write(tmp_path_factory.mktemp("page") / "sample.html")


@pytest.fixture
def page(browser):
    opened = browser.open()
    yield opened
    opened.close()


@pytest.fixture
def album(tmp_path):
    folder = Path(os.environ.get("JAXRIG_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def check_looks(page, path, width, theme, album):
    """Nothing sticks out or is hard to read at this width in this theme."""
    page.show(width, prefers_color_scheme=theme)
    page.load(path)
    assert page.evaluate("innerWidth") == width
    dark = page.evaluate('matchMedia("(prefers-color-scheme: dark)").matches')
    assert dark == (theme == "dark")
    assert page.evaluate("document.scrollingElement.scrollWidth") <= width
    assert page.evaluate(OVERFLOWING) == []
    assert page.evaluate(UNREACHABLE) == []
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 20
    assert [pair for pair in contrasts if pair[0] < LEAST_CONTRAST] == []
    picture = album / f"{path.stem}-{width}-{theme}.png"
    page.screenshot(picture)
    assert picture.stat().st_size > 10_000
    assert page.complaints() == []


# A slow machine may miss whole frames, so the test moves the clock itself.
STOP_THE_CLOCK = """
window.clock = 0;
performance.now = () => clock;
requestAnimationFrame = (draw) => { window.draw = draw; return 1; };
"""
PASS_ONE_FRAME = """
clock += 1100 / document.querySelector(
  '[data-number="{number}"]'
).dataset.framesPerSecond;
draw(clock);
"""


def control(number, action=""):
    """Selector of a part of the player of this number, from 1 on the page."""
    inside = f'[data-action="{action}"]' if action else "input"
    return f'[data-number="{number}"] {inside}'


def number_players(page):
    """Name the players, which selectors cannot count; their number is returned."""
    return page.evaluate(
        'document.querySelectorAll(".player").forEach((e, i) => '
        '{ e.dataset.number = i + 1; }); document.querySelectorAll(".player").length'
    )


def counter(number):
    return f"document.querySelector('[data-number=\"{number}\"] .counter').textContent"


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_the_page_fits_and_can_be_read(page, sample, album, width, theme):
    check_looks(page, sample, width, theme, album)


def test_every_player_plays_pauses_and_scrubs(page, sample):
    page.show(PHONE)
    page.load(sample)
    page.evaluate(STOP_THE_CLOCK)
    frames = [5, 4, 3]
    assert number_players(page) == len(frames)
    for number, count in enumerate(frames, 1):
        assert page.evaluate(counter(number)) == f"1 / {count}"
        page.click(control(number, "toggle"))
        page.evaluate(PASS_ONE_FRAME.format(number=number))
        assert page.evaluate(counter(number)) == f"2 / {count}"
        page.click(control(number, "toggle"))
        stands = f"document.querySelector('[data-number=\"{number}\"]').className"
        assert page.evaluate(stands) == "player"
        page.click(control(number), across=0.99)
        assert page.evaluate(counter(number)) == f"{count} / {count}"
        page.click(control(number, "next"))
        assert page.evaluate(counter(number)) == f"1 / {count}"
    assert page.complaints() == []


def test_the_frame_shown_is_the_one_counted(page, sample):
    page.show(DESKTOP)
    page.load(sample)
    number_players(page)
    shown = (
        "[...document.querySelectorAll('[data-number=\"1\"] .stage img')]"
        ".flatMap((e, i) => e.getClientRects().length ? [i] : [])"
    )
    words = "document.querySelector('[data-number=\"1\"] .player-caption').textContent"
    for place in (0, 3):
        page.click(control(1), across=(place + 0.5) / 5)
        assert page.evaluate(shown) == [place]
        assert page.evaluate(words) == f"step {place}"


def test_points_are_drawn_where_they_are(page, sample):
    page.show(DESKTOP)
    page.load(sample)
    number_players(page)
    seen = []
    for _ in range(3):
        seen.append([page.evaluate(f"{REDNESS}({x}, 0.25)") for x in (0.25, 0.75)])
        page.click(control(3, "next"))
    assert seen == [[True, False], [False, True], [False, False]]


def test_keys_drive_a_player_and_focus_shows(page, sample):
    page.show(DESKTOP)
    page.load(sample)
    number_players(page)
    focused = 'document.activeElement.dataset.number === "1"'
    page.evaluate("document.querySelector('.drawing[tabindex]').focus()")
    page.press("Tab")
    assert page.evaluate(focused) is True
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    for key, expected in (("ArrowRight", 2), ("End", 5), ("ArrowLeft", 4), ("Home", 1)):
        page.press(key)
        assert page.evaluate(counter(1)) == f"{expected} / 5"
    page.evaluate(STOP_THE_CLOCK)
    page.press(" ")
    page.evaluate(PASS_ONE_FRAME.format(number=1))
    assert page.evaluate(counter(1)) == "2 / 5"
    page.press(" ")
    assert page.evaluate("document.activeElement.className") == "player"
    names = page.evaluate(
        "[...document.querySelectorAll('button, input')].map(e => e.ariaLabel)"
    )
    assert len(names) == 15
    assert all(names)


def test_nothing_moves_unasked(page, sample):
    page.show(DESKTOP, prefers_reduced_motion="reduce")
    page.load(sample)
    assert page.evaluate('matchMedia("(prefers-reduced-motion: reduce)").matches')
    assert page.evaluate("document.getAnimations().length") == 0
    assert page.evaluate("document.querySelectorAll('.playing').length") == 0


def test_complaints_are_heard(page, tmp_path):
    """The other tests can fail: what is wrong with a page reaches them."""
    broken = tmp_path / "broken.html"
    report = Report("Broken")
    report.add(Section("Words", Text(WORDS)))
    bad = '<p style="width:2000px;color:#999">wide</p><script>missing()</script></body>'
    broken.write_text(report.html().replace("</body>", bad))
    page.show(PHONE)
    page.load(broken)
    assert "missing is not defined" in page.complaints()[0]
    assert len(page.evaluate(OVERFLOWING)) == 1
    assert min(page.evaluate(CONTRASTS))[1] == "wide"
    with pytest.raises(AssertionError, match="never came true"):
        page.until("false", seconds=0.05)


@pytest.mark.slow
def test_the_page_of_the_whole_demo(page, tmp_path, album):
    command = Path(sys.executable).with_name("jaxrig")
    # The flags of these tests save compile time, and cost far more running.
    env = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    subprocess.run(
        [command, "demo", "--out", tmp_path, "--progress", "silent"],
        env=env,
        check=True,
        timeout=900,
    )
    report = tmp_path / "report.html"
    for width in (PHONE, DESKTOP):
        for theme in THEMES:
            check_looks(page, report, width, theme, album)
    page.show(DESKTOP, prefers_reduced_motion="reduce")  # or they start by themselves
    page.load(report)
    players = number_players(page)
    assert players == 5
    folded = "document.querySelectorAll('details')"  # whose players are not in view
    page.evaluate(f"{folded}.forEach((each) => {{ each.open = true; }})")
    for number in range(1, players + 1):
        before = page.evaluate(counter(number))
        page.click(control(number, "toggle"))
        page.until(f"{counter(number)} !== {before!r}")
        page.click(control(number, "toggle"))
    assert page.complaints() == []
