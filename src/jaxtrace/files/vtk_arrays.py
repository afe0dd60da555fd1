"""The arrays of a file that `vtk_write` wrote, read back without VTK."""

import os
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

_KINDS = {"Float": "f", "Int": "i", "UInt": "u"}
_MARK = b"<AppendedData"


def read_arrays(path: str | os.PathLike[str]) -> dict[str, dict[str, np.ndarray]]:
    """Every array by section ("Points", "PointData", "FieldData", ...) and name."""
    data = Path(path).read_bytes()
    text, mark, rest = data.partition(_MARK)
    if not mark:
        raise ValueError(f"{path} has no appended data: it was not written here")
    start = len(text) + len(mark) + rest.index(b"_") + 1
    root = ElementTree.fromstring(text + b"</VTKFile>")
    return {
        section.tag: {
            array.attrib["Name"]: _array(data, start, array.attrib)
            for array in section.iter("DataArray")
        }
        for section in root.iter()
        if section.find("DataArray") is not None
    }


def _array(data: bytes, start: int, about: dict[str, str]) -> np.ndarray:
    kind = about["type"].rstrip("0123456789")
    dtype = np.dtype(f"<{_KINDS[kind]}{int(about['type'][len(kind) :]) // 8}")
    begin = start + int(about["offset"])
    size = int.from_bytes(data[begin : begin + 8], "little")
    flat = np.frombuffer(data, dtype, size // dtype.itemsize, begin + 8)
    components = int(about["NumberOfComponents"])
    return flat if components == 1 else flat.reshape(-1, components)
