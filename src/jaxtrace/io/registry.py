"""Which file formats are known, by their extensions, and what reading them needs."""

import glob
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxrig.machine import install_command, missing_extra
from jaxtrace.files.grids import NETCDF_EXTENSIONS, ZARR_EXTENSION
from jaxtrace.files.hdf5 import HDF5_EXTENSIONS
from jaxtrace.files.patterns import KNOWN_EXTENSIONS, PathSpec, find_files

EXTRA = "trace"


@dataclass(frozen=True)
class FileFormat:
    """A family of formats: extensions, the packages that read them, and what it is."""

    name: str
    extensions: tuple[str, ...]
    packages: tuple[str, ...]
    description: str

    @property
    def available(self) -> bool:
        """Whether every package that it needs is installed."""
        return all(has_package(name) for name in self.packages)


FORMATS: dict[str, FileFormat] = {
    entry.name: entry
    for entry in (
        FileFormat(
            "vtk",
            KNOWN_EXTENSIONS,
            ("vtkmodules",),
            "VTK files, their collections, and cases of solvers that VTK reads",
        ),
        FileFormat(
            "hdf5",
            HDF5_EXTENSIONS,
            ("h5py",),
            "one array of all steps, a group of steps, or a file per step",
        ),
        FileFormat(
            "grid",
            (*NETCDF_EXTENSIONS, ZARR_EXTENSION),
            ("xarray",),
            "labeled grids: netCDF files and zarr stores",
        ),
    )
}


def has_package(name: str) -> bool:
    """Whether a package can be imported; it is not imported to find out."""
    return importlib.util.find_spec(name) is not None


VTK_IO_AVAILABLE = has_package("vtkmodules")
VTK_STRUCTURED_AVAILABLE = VTK_IO_AVAILABLE
HDF5_IO_AVAILABLE = has_package("h5py")
GRID_IO_AVAILABLE = has_package("xarray")
MEMORY_OPTIMIZED_AVAILABLE = True


def list_supported_formats() -> list[str]:
    """The names of the formats."""
    return list(FORMATS)


def find_format(name: str) -> FileFormat:
    """A format by its name; ValueError lists the names there are."""
    if name not in FORMATS:
        raise ValueError(f"format {name!r} is not one of: {', '.join(FORMATS)}")
    return FORMATS[name]


def format_info(name: str) -> dict[str, Any]:
    """What is known of a format: extensions, packages, whether it can be read here."""
    entry = find_format(name)
    return {
        "name": entry.name,
        "description": entry.description,
        "extensions": list(entry.extensions),
        "packages": list(entry.packages),
        "available": entry.available,
    }


def require_format(name: str) -> FileFormat:
    """A format that can be read here; ImportError says what to install."""
    entry = find_format(name)
    missing = [package for package in entry.packages if not has_package(package)]
    if missing:
        raise missing_extra(f"{name} files need {', '.join(missing)}", EXTRA)
    return entry


def detect_format(spec: PathSpec) -> str:
    """The name of the format that files are in, by their extensions.

    A folder or a glob is looked into; files of several formats are a ValueError.
    """
    names = _names(spec)
    found = {_by_extension(Path(name).suffix.lower()) for name in names} - {None}
    if len(found) > 1:
        formats = ", ".join(sorted(str(name) for name in found))
        raise ValueError(f"{spec}: files of the formats {formats}; give format_type=")
    for name in found:
        return str(name)
    kinds = sorted({Path(name).suffix or Path(name).name for name in names})
    known = ", ".join(ext for entry in FORMATS.values() for ext in entry.extensions)
    raise ValueError(
        f"{spec}: unknown extension {', '.join(kinds[:5])}; known are {known}"
    )


def validate_file_access(spec: PathSpec) -> dict[str, Any]:
    """Whether files are there and of a known format, without reading them.

    Keys: valid, files_found, files_missing, detected_format, format_supported, errors.
    """
    errors: list[str] = []
    found: list[str] = []
    name: str | None = None
    missing = [file for file in _listed(spec) if not Path(file).exists()]
    try:
        name = detect_format(spec)
        extensions = FORMATS[name].extensions
        if missing:
            errors = [f"{file}: no such file" for file in missing]
            rest = [file for file in _listed(spec) if file not in missing]
            found = [str(file) for file in rest]
        elif Path(str(spec)).suffix == ZARR_EXTENSION:
            found = [str(spec)]
        else:
            found = [str(file) for file in find_files(spec, extensions)]
    except (FileNotFoundError, ValueError) as error:
        errors.append(str(error))
    supported = name is not None and FORMATS[name].available
    if name is not None and not supported:
        errors.append(f"{name} files cannot be read here: {install_command(EXTRA)}")
    return {
        "valid": bool(found) and not errors,
        "files_found": found,
        "files_missing": missing,
        "detected_format": name,
        "format_supported": supported,
        "errors": errors,
    }


def _listed(spec: PathSpec) -> list[str]:
    """Files that are named one by one, which a glob does not do."""
    files: Sequence[Any] = [spec] if isinstance(spec, str | os.PathLike) else spec
    return [str(file) for file in files if not glob.has_magic(str(file))]


def _names(spec: PathSpec) -> list[str]:
    if not isinstance(spec, str | os.PathLike):
        if not len(spec):
            raise FileNotFoundError("no files: the list is empty")
        return [str(name) for name in spec]
    path = Path(spec).expanduser()
    if path.is_dir() and path.suffix.lower() != ZARR_EXTENSION:
        inside = [str(file) for file in path.iterdir() if file.is_file()]
        if not inside:
            raise FileNotFoundError(f"no files found in folder {path}")
        return inside
    if glob.has_magic(str(path)) and _by_extension(path.suffix.lower()) is None:
        matches = glob.glob(str(path), recursive=True)
        if not matches:
            raise FileNotFoundError(f"no files found for {path}")
        return matches
    return [str(path)]


def _by_extension(extension: str) -> str | None:
    for entry in FORMATS.values():
        if extension in entry.extensions:
            return entry.name
    return None
