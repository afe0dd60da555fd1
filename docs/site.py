"""What the build of the site makes: the reference, pictures of gallery and studio."""

import functools
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import screens
from mkdocs.structure.files import File

MODULES = (
    *("jaxrig", "jaxrig.learn", "jaxrig.learn.tabular", "jaxrig.report"),
    *("jaxrig.testing", "jaxrig.systems", "jaxrig.bench"),
    *("jaxarc", "jaxarc.envs.functional", "jaxarc.wrappers", "jaxarc.learning"),
    *("jaxarc.tasks", "jaxarc.recording", "jaxarc.draw", "jaxarc.log"),
    *("jaxtrace", "jaxtrace.fields", "jaxtrace.tracking", "jaxtrace.tracking.boundary"),
    *("jaxtrace.io", "jaxtrace.analysis", "jaxtrace.plot"),
    *(
        "acbo",
        "acbo.problems",
        "acbo.baselines",
        "acbo.evaluation",
        "acbo.training",
        "acbo.acquisition",
    ),
)
GALLERY = "gallery.md"
SCREEN = re.compile(r"^!?\[.*pictures/studio-.*\n", re.MULTILINE)
NO_SCREENS = (
    "*Pictures of the studio are missing: this site was built without Chromium.*\n"
)
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def on_config(config):
    """Add the pages of the reference to the navigation, by package."""
    packages = {}
    for module in MODULES:
        pages = packages.setdefault(module.split(".")[0], [])
        pages.append({module: f"api/{module}.md"})
    config.nav.append({"Reference": [{name: p} for name, p in packages.items()]})
    return config


def on_files(files, config):
    """Add a page for each module, and the pictures of the gallery and the studio."""
    for module in MODULES:
        options = "    options:\n      show_root_heading: false\n"
        content = f"# {module}\n\n::: {module}\n{options}"
        files.append(File.generated(config, f"api/{module}.md", content=content))
    drawn = pictures(Path(config.docs_dir) / GALLERY)
    for name, content in (drawn | taken()).items():
        files.append(File.generated(config, f"pictures/{name}", content=content))
    return files


def on_page_markdown(markdown, page, config, files):
    """Say so, once per page, where there are no pictures of the studio."""
    if screens.CHROMIUM is None:
        return SCREEN.sub("", SCREEN.sub(NO_SCREENS, markdown, count=1))
    return markdown


@functools.cache
def taken() -> dict[str, bytes]:
    """Return the pictures of the studio: once, however often a page is built again."""
    with in_folder():
        return screens.take_screens()


@contextmanager
def in_folder() -> Iterator[Path]:
    """Work in an empty folder for a while."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def pictures(page: Path) -> dict[str, bytes]:
    """Run the blocks of a page in a folder of their own and return what they wrote."""
    names = {"__name__": page.stem}
    with in_folder() as folder:
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            exec(compile(block, page.name, "exec"), names)
        return {path.name: path.read_bytes() for path in folder.iterdir()}
