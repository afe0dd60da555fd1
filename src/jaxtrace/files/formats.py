"""The two forms of a VTK file: which writer and which suffix each stands for."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxtrace.files import vtk_binary, vtk_write

SUFFIXES = (".vtp", ".vtu", ".vti", ".vtr", ".vts", ".vtk")


@dataclass(frozen=True)
class Format:
    """How one kind of data set is written, and the suffix of such a file."""

    suffix: str
    write: Callable[..., Path]

    def name(self, filename: str | os.PathLike[str]) -> Path:
        """The file name with this suffix in place of any other VTK suffix."""
        path = Path(filename)
        if path.suffix.lower() in SUFFIXES:
            return path.with_suffix(self.suffix)
        return path.with_name(path.name + self.suffix)


_FORMATS = {
    "xml": {
        "polydata": Format(".vtp", vtk_write.write_vtp),
        "grid": Format(".vtu", vtk_write.write_vtu),
        "image": Format(".vti", vtk_write.write_vti),
        "axes": Format(".vtr", vtk_write.write_vtr),
        "curved": Format(".vts", vtk_write.write_vts),
    },
    "binary": {
        "polydata": Format(".vtk", vtk_binary.write_binary_polydata),
        "grid": Format(".vtk", vtk_binary.write_binary_grid),
        "image": Format(".vtk", vtk_binary.write_binary_image),
        "axes": Format(".vtk", vtk_binary.write_binary_axes),
        "curved": Format(".vtk", vtk_binary.write_binary_curved),
    },
}


def choose_format(format: str, kind: str) -> Format:
    """The writer of a data set of `kind` in a `format`.

    "xml" gives .vtp, .vtu, .vti, .vtr and .vts files; "binary" gives .vtk files.
    """
    if format not in _FORMATS:
        known = " or ".join(map(repr, _FORMATS))
        raise ValueError(f"format is {format!r}: it must be {known}")
    return _FORMATS[format][kind]
