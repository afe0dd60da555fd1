"""From what a user writes - file, glob, list, folder, collection - to ordered steps."""

import glob
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Integer

from jaxtrace.files.step_lists import LIST_EXTENSIONS, Step, listed_steps
from jaxtrace.files.vtk_read import PIECE_OF, SNAPSHOT_EXTENSIONS
from jaxtrace.files.vtk_series import CASE_EXTENSIONS

#: Every extension that `find_steps` understands.
KNOWN_EXTENSIONS = (*SNAPSHOT_EXTENSIONS, *LIST_EXTENSIONS, *CASE_EXTENSIONS)

PathSpec = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


def natural_key(path: str | Path) -> tuple[tuple[int, int, str], ...]:
    """Sort key in which runs of digits count as numbers: 2 comes before 10."""
    parts = re.split(r"(\d+)", str(path))
    return tuple((1, int(p), p) if p.isdigit() else (0, 0, p) for p in parts if p)


def pick_evenly(n: int, most: int | None) -> Integer[np.ndarray, " picked"]:
    """At most `most` of `n` indices, evenly spaced, first and last among them."""
    if most is not None and most < 1:
        raise ValueError(f"max_time_steps must be at least 1, got {most}")
    if most is None or most >= n:
        return np.arange(n)
    if most == 1:
        return np.zeros(1, np.int64)
    gaps = most - 1
    return (2 * np.arange(most) * (n - 1) + gaps) // (2 * gaps)


def find_steps(spec: PathSpec) -> tuple[Step, ...]:
    """The steps a specification stands for, in natural order of their names.

    A list keeps its order. Where parallel files such as `.pvtu` are found, their
    pieces are left out; a collection found among other files speaks for them.
    """
    files = find_files(spec)
    if len(files) == 1 and files[0].suffix.lower() in LIST_EXTENSIONS:
        return listed_steps(files[0])
    return tuple(Step((file,)) for file in files)


def find_files(
    spec: PathSpec, extensions: Sequence[str] = KNOWN_EXTENSIONS
) -> list[Path]:
    """The files of one kind a specification stands for, in natural order.

    FileNotFoundError says what was looked for, ValueError which kinds are known.
    """
    if isinstance(spec, str | os.PathLike):
        return _find(Path(spec).expanduser(), extensions)
    files = [Path(file).expanduser() for file in spec]
    return _one_kind(_need(files, extensions), "the list")


def _need(files: list[Path], extensions: Sequence[str]) -> list[Path]:
    """Explicitly named files must be there and of a known kind."""
    if not files:
        raise FileNotFoundError("no files: the list is empty")
    for file in files:
        if not file.is_file():
            raise FileNotFoundError(f"{file}: no such file")
        if file.suffix.lower() not in extensions:
            raise ValueError(_unknown(str(file), [file], extensions))
    return files


def _find(path: Path, extensions: Sequence[str]) -> list[Path]:
    """The files of one path: itself, those inside it or those it matches."""
    if path.is_file():
        return _need([path], extensions)
    if path.is_dir():
        found, looked = sorted(path.iterdir(), key=natural_key), f"folder {path}"
    else:
        names = glob.glob(str(path), recursive=True)
        found, looked = [Path(n) for n in sorted(names, key=natural_key)], str(path)
    files = [file for file in found if file.is_file()]
    if not files:
        raise FileNotFoundError(
            f"no files found for {looked} (from folder {Path.cwd()})"
        )
    known = [file for file in files if file.suffix.lower() in extensions]
    if not known:
        raise ValueError(_unknown(looked, files, extensions))
    return _one_kind(_leaders(known), looked)


def _leaders(files: list[Path]) -> list[Path]:
    """Leave out the files that another file speaks for."""
    for kinds in ((".pvd",), (".series",), CASE_EXTENSIONS):
        chosen = [file for file in files if file.suffix.lower() in kinds]
        if chosen:
            return chosen
    present = {file.suffix.lower() for file in files}
    pieces = {PIECE_OF[kind] for kind in present if kind in PIECE_OF}
    return [file for file in files if file.suffix.lower() not in pieces]


def _one_kind(files: list[Path], looked: object) -> list[Path]:
    kinds = Counter(file.suffix.lower() for file in files)
    if len(kinds) > 1:
        counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        raise ValueError(f"{looked}: files of one kind make a series, found {counts}")
    (kind,) = kinds
    if len(files) > 1 and kind in (*LIST_EXTENSIONS, *CASE_EXTENSIONS):
        names = ", ".join(file.name for file in files)
        raise ValueError(f"{looked}: one {kind} file is a whole series, found {names}")
    return files


def _unknown(looked: str, files: list[Path], extensions: Sequence[str]) -> str:
    kinds = sorted({file.suffix or file.name for file in files})
    return (
        f"{looked}: unknown extension {', '.join(kinds)}; known are "
        f"{', '.join(extensions)}"
    )
