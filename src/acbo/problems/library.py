"""Every problem by name, and the protein-signaling data of Sachs and others.

The data are flow cytometry of 11 molecules in human immune cells under five drugs
(Science, 2005), as logarithms of intensities, in the archive of a public
causal-discovery benchmark.
"""

import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from acbo.named.tables import DataTable
from acbo.problems import nonlinear
from acbo.problems.problem import SUITE, Problem, reef_linear
from acbo.types import check_known

_BUILDERS: dict[str, Callable[[], Problem]] = {  # first the public benchmark suite
    **SUITE,
    **nonlinear.PROBLEMS,
    "reef_linear": reef_linear,
    "epidemic_static": nonlinear.epidemic_static,
}


def names() -> tuple[str, ...]:
    """Return the names of all problems, the public benchmark suite first."""
    return tuple(_BUILDERS)


def get(name: str) -> Problem:
    """Return the problem of this name; ValueError naming the nearest if unknown."""
    check_known(name, _BUILDERS, "problem")
    return _BUILDERS[name]()


ARCHIVE = "sachs_intervention.zip"
SACHS_NAMES = (
    *("Raf", "Mek", "Plcg", "PIP2", "PIP3", "Erk", "Akt"),
    *("PKA", "PKC", "P38", "Jnk"),
)
# The 17 edges that benchmarks on this data commonly take as the consensus of what
# biology knows; the archive holds the same graph.
SACHS_EDGES = frozenset(
    [("Raf", "Mek"), ("Mek", "Erk"), ("Erk", "Akt")]
    + [("Plcg", "PIP2"), ("Plcg", "PIP3"), ("PIP3", "PIP2")]
    + [("PKA", effect) for effect in ("Raf", "Mek", "Erk", "Akt", "P38", "Jnk")]
    + [("PKC", effect) for effect in ("Raf", "Mek", "PKA", "P38", "Jnk")]
)


def load_sachs(path: str | os.PathLike[str]) -> DataTable:
    """Read 5,846 rows of the 11 molecules, and which one a drug acted on in each.

    `path` is the archive, or the folder that holds it.
    """
    path = Path(path)
    path = path / ARCHIVE if path.is_dir() else path
    with zipfile.ZipFile(path) as archive:
        values = np.load(io.BytesIO(_read(archive, "data_interv1.npy")))
        lines = _read(archive, "intervention1.csv").decode().splitlines()
    if values.shape != (len(lines), len(SACHS_NAMES)):
        raise ValueError(
            f"{path}: {values.shape} values and {len(lines)} intervention rows do not "
            "belong together"
        )
    flags = np.zeros(values.shape, bool)
    for row, line in enumerate(lines):
        flags[row, [int(column) for column in line.split(",") if column]] = True
    return DataTable(SACHS_NAMES, values.astype(np.float32), flags)


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    found = [entry for entry in archive.namelist() if entry.endswith("/" + name)]
    if not found:
        raise ValueError(f"{archive.filename} holds no {name}: give the archive")
    return archive.read(found[0])
