import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from acbo.named.codec import Codec
from acbo.problems.sachs import ARCHIVE, SACHS_EDGES, SACHS_NAMES, load_sachs

nx = pytest.importorskip("networkx")

DATA = Path(
    os.environ.get("JAXRIG_DATA", Path(__file__).parents[4] / "shared" / "data")
)
FOLDER = DATA / "sachs"
needs_data = pytest.mark.skipif(
    not (FOLDER / ARCHIVE).exists(), reason="the Sachs data is not here"
)


def test_the_network_is_a_dag_of_17_edges():
    graph = nx.DiGraph(sorted(SACHS_EDGES))
    assert len(SACHS_EDGES) == 17
    assert set(graph) == set(SACHS_NAMES)
    assert nx.is_directed_acyclic_graph(graph)


@needs_data
def test_rows_and_drugs():
    table = load_sachs(FOLDER)
    assert table.values.shape == (5846, 11)
    assert np.isfinite(table.values).all()
    counts = dict(zip(SACHS_NAMES, np.asarray(table.intervened.sum(0)), strict=True))
    drugs = {name: int(count) for name, count in counts.items() if count}
    assert drugs == {"Mek": 799, "PIP2": 810, "PIP3": 848, "Akt": 911, "PKC": 723}
    assert int((~table.intervened.any(1)).sum()) == 1755
    again = load_sachs(FOLDER / ARCHIVE)
    np.testing.assert_array_equal(again.values, table.values)


@needs_data
def test_the_network_is_that_of_the_archive():
    with zipfile.ZipFile(FOLDER / ARCHIVE) as archive:
        stored = np.load(io.BytesIO(archive.read("sachs_intervention/DAG1.npy")))
    ours = Codec(SACHS_NAMES).adjacency(SACHS_EDGES)
    np.testing.assert_array_equal(np.asarray(ours), stored != 0)


def test_another_archive_is_refused(tmp_path):
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(ValueError, match=r"other.zip holds no data_interv1.npy"):
        load_sachs(path)
