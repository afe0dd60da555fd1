"""The file formats that velocities are read from, and `open_slices` for any of them.

A new format is a module with its reader and its `FORMAT`, and one line in `FORMATS`.
"""

import glob
import inspect
import os
from pathlib import Path
from typing import Any

from jaxrig.machine import missing_extra
from jaxrig.settings import known_only
from jaxtrace.io import hdf5, netcdf, vtk_slices
from jaxtrace.io.series import FileFormat, Slices, select
from jaxtrace.io.solver_cases import kind_of
from jaxtrace.io.steps import PathSpec, list_files
from jaxtrace.types import check_choice, is_url

FORMATS: dict[str, FileFormat] = {
    "vtk": vtk_slices.FORMAT,
    "hdf5": hdf5.FORMAT,
    "grid": netcdf.FORMAT,
}
NEVER_EMPTY = (*hdf5.FORMAT.extensions, *netcdf.FORMAT.extensions)


def open_slices(spec: Any, format_type: str | None = None, **options: Any) -> Slices:
    """Open the slices of a series; nothing of the data is read yet.

    `spec` is a file, glob, list or folder, an address, or an xarray dataset. `options`
    are those of `jaxtrace.io.series.select`, which chooses slices, and those of the
    format's `open` (velocity_field_name, dtype, ...); None leaves one at its default.
    """
    format = find_format(spec, format_type)
    choices = _keywords(select)
    reading = _keywords(format.open)
    given = {name: value for name, value in options.items() if value is not None}
    known_only(given, [*reading, *choices], f"option for {format.name} files")
    _check_content(spec)
    chosen = {name: given.pop(name) for name in choices if name in given}
    return select(format.open(spec, **given), **chosen)


def _keywords(function: Any) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    return [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]


def find_format(spec: Any, format_type: str | None = None) -> FileFormat:
    """Return the format to read a source by; ImportError says what to install."""
    if format_type is None:
        format_type = "grid" if hasattr(spec, "data_vars") else detect_format(spec)
    check_choice("format", format_type, FORMATS)
    format = FORMATS[format_type]
    if missing := format.missing():
        packages = ", ".join(missing)
        raise missing_extra(f"{format.name} files need {packages}", "trace")
    return format


def detect_format(spec: PathSpec) -> str:
    """Return the name of the format that files are in, by their extensions.

    A folder or a glob is looked into; files of several formats are a ValueError.
    """
    names = _names(spec)
    if any(map(is_url, names)):
        return netcdf.FORMAT.name
    found = {_by_extension(kind_of(name)) for name in names} - {None}
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


def _check_content(spec: Any) -> None:
    """Name files without a byte: their libraries only say that they know none such."""
    for name in () if hasattr(spec, "data_vars") else _names(spec):
        path = Path(name)
        if kind_of(path) in NEVER_EMPTY and path.is_file() and not path.stat().st_size:
            raise ValueError(
                f"{name}: the file is empty: write it again, or leave it out"
            )


def source_name(spec: Any) -> str:
    """Return what to call a source: its path or paths, or a dataset in memory."""
    if hasattr(spec, "data_vars"):
        return str(spec.encoding.get("source", "a dataset in memory"))
    if isinstance(spec, str | os.PathLike):
        return str(spec)
    return ", ".join(str(file) for file in spec)


def source_folder(spec: Any) -> Path | None:
    """Return the folder of the first file; None for a dataset or an address."""
    if hasattr(spec, "data_vars") or any(map(is_url, _names(spec))):
        return None
    return Path(min(_names(spec))).expanduser().absolute().parent


def _names(spec: PathSpec) -> list[str]:
    """Return the files named, or those inside a folder or matched by an open glob."""
    if not isinstance(spec, str | os.PathLike):
        names = [str(name) for name in spec]
        if not names:
            raise FileNotFoundError(f"no files found for {spec}")
        return names
    path = Path(spec).expanduser()
    looked_into = path.is_dir() or glob.has_magic(str(path))
    if is_url(spec) or _by_extension(path.suffix.lower()) or not looked_into:
        return [str(spec) if is_url(spec) else str(path)]
    return [str(file) for file in list_files(path)]


def _by_extension(extension: str) -> str | None:
    found = (e.name for e in FORMATS.values() if extension in e.extensions)
    return next(found, None)
