"""An environment that holds the package and its required dependencies, no extra."""

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCES = Path(__file__).parent.parent / "src"
REQUIREMENT = re.compile(r"^[\w.-]+")


def required_distributions(
    name: str, found: dict[str, importlib.metadata.Distribution]
) -> None:
    """Add a distribution and all that it cannot do without, by name."""
    if name in found:
        return
    found[name] = importlib.metadata.distribution(name)
    for line in found[name].requires or []:
        (wanted,) = REQUIREMENT.findall(line)
        if "extra ==" not in line and _is_installed(wanted):
            required_distributions(wanted.lower().replace("_", "-"), found)


def _is_installed(name: str) -> bool:
    """False for what a marker keeps for other machines."""
    try:
        importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def link_required(folder: Path) -> None:
    """Fill a folder with links to what a plain installation would bring."""
    found: dict[str, importlib.metadata.Distribution] = {}
    required_distributions("jaxrig", found)
    for distribution in found.values():
        tops = {Path(file).parts[0] for file in distribution.files or []}
        for top in tops - {"..", "__pycache__"}:
            place = Path(str(distribution.locate_file(top)))
            if place.suffix != ".pth" and not (folder / top).exists():
                (folder / top).symlink_to(place)


def run_alone(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python where only the linked packages and the sources are found."""
    return subprocess.run(
        [sys.executable, "-S", *words],  # -S: the real site-packages stay unseen
        capture_output=True,
        text=True,
        cwd=folder,
        env=os.environ
        | {
            "PYTHONPATH": os.pathsep.join([str(SOURCES), str(folder)]),
            "JAX_PLATFORMS": "cpu",
        },
    )
