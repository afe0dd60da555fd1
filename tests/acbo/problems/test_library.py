import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from acbo import problems
from acbo.problems.library import ARCHIVE, SACHS_EDGES, SACHS_NAMES, load_sachs
from acbo.types import lower_is_better

SUITE_KEYS = (
    *("fork_3var", "chain_3var", "collider_3var", "diamond_4var", "dense_4var"),
    *("mixed_coeffs_4var", "butterfly_5var", "sparse_5var", "chain_5var"),
)
FIELD_KEYS = ("toy_graph", "complete_graph", "psa", "synthetic2", "two_bumps")


def test_every_documented_name_is_there():
    assert set(SUITE_KEYS) == set(problems.names()[:9])
    assert {*SUITE_KEYS, *FIELD_KEYS} <= set(problems.names())
    with pytest.raises(
        ValueError, match=r"'fork_9var' is not known; .* There are: fork_3var"
    ):
        problems.get("fork_9var")


@pytest.mark.parametrize("name", problems.names())
def test_every_problem_is_consistent(name):
    problem = problems.get(name)
    assert problem.name == name
    assert problem.target not in problem.ranges
    assert problem.scm.names[int(problem.scm.target)] == problem.target
    sign = lower_is_better(problem.direction)
    assert sign * problem.optimum.outcome < sign * problem.observational_mean
    np.testing.assert_allclose(
        problem.expected_outcome(problem.optimum.intervention), problem.optimum.outcome
    )
    if problem.best_pair is not None:
        assert sign * problem.best_pair.outcome < sign * problem.optimum.outcome
        assert len(problem.best_pair.intervention) == 2


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
    pairs = zip(*np.nonzero(stored), strict=True)
    assert {(SACHS_NAMES[i], SACHS_NAMES[j]) for i, j in pairs} == SACHS_EDGES


def test_another_archive_is_refused(tmp_path):
    path = tmp_path / "other.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing")
    with pytest.raises(ValueError, match=r"other.zip holds no data_interv1.npy"):
        load_sachs(path)
