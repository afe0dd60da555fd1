"""Every Python block of the README and of docs/ runs, block after block, per page."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from acbo.mechanisms import MECHANISMS
from jaxrig import __version__
from jaxtrace.integrators import METHODS
from jaxtrace.io.formats import FORMATS
from jaxtrace.tracking.boundary import BOUNDARIES

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FAMILIES: tuple[dict[str, Any], ...] = (BOUNDARIES, FORMATS, MECHANISMS, METHODS)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_of(page: Path) -> list[str]:
    return BLOCK.findall(page.read_text())


# The solver's case is compiled for half a minute, and test_starter runs such cases; the
# build of the site runs the gallery.
LONG = ("solver", "gallery")
every_page = pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, id=p.stem, marks=[pytest.mark.slow] * (p.stem in LONG))
        for p in PAGES
        if blocks_of(p)
    ],
)


@every_page
def test_blocks_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page)


@pytest.mark.slow
@every_page
def test_blocks_run_again_in_the_same_folder(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(page)
    run(page)


@pytest.fixture(autouse=True)
def families():
    """Forget the members that a page adds to a family."""
    before = [dict(registry) for registry in FAMILIES]
    yield
    for registry, members in zip(FAMILIES, before, strict=True):
        registry.clear()
        registry.update(members)


def run(page: Path) -> None:
    names: dict = {"__name__": page.stem}
    for number, block in enumerate(blocks_of(page)):
        exec(compile(block, f"{page.name}, block {number + 1}", "exec"), names)


def made_by_the_build(picture: str) -> bool:
    """Whether the gallery's code writes it, or the studio is shown so."""
    if shown := re.fullmatch(r"studio-(\w+)-(\w+)\.png", picture):
        code = (ROOT / "docs" / "screens.py").read_text()
        return f"def _{shown[1]}(" in code and f'"{shown[2]}"),' in code
    return f'"{picture}"' in "".join(blocks_of(ROOT / "docs" / "gallery.md"))


def test_links_between_pages_lead_somewhere():
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            there = (page.parent / target).exists()
            made = target.startswith("pictures/") and made_by_the_build(target[9:])
            assert there or made, f"{page.name} links to {target}"


def test_the_citation_is_of_this_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    assert {"cff-version: 1.2.0", "type: software"} <= set(lines)
    assert f"version: {__version__}" in lines
    assert f"license: {project['license']}" in lines
