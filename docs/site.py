"""What the build of the site makes: pages of the reference, pictures of the gallery."""

import os
import re
import tempfile
from pathlib import Path

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
    """Add a page for each module, and the pictures that the gallery's code draws."""
    for module in MODULES:
        options = "    options:\n      show_root_heading: false\n"
        content = f"# {module}\n\n::: {module}\n{options}"
        files.append(File.generated(config, f"api/{module}.md", content=content))
    for name, content in pictures(Path(config.docs_dir) / GALLERY).items():
        files.append(File.generated(config, f"pictures/{name}", content=content))
    return files


def pictures(page: Path) -> dict[str, bytes]:
    """Run the blocks of a page in a folder of their own and return what they wrote."""
    names = {"__name__": page.stem}
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for block in BLOCK.findall(page.read_text(encoding="utf-8")):
                exec(compile(block, page.name, "exec"), names)
            return {path.name: path.read_bytes() for path in Path(folder).iterdir()}
        finally:
            os.chdir(before)
