import json

import pytest

from jaxtrace.files import collection


def test_times_and_names_come_back_exactly(tmp_path):
    steps = [(0.1 + 0.2, "a b.vtu"), (1e-300, 'x/"<&>.vtu'), (-5.0, "c.vtu")]
    path = collection.write_collection(tmp_path / "made" / "a.pvd", steps)
    assert collection.listed_steps(path) == steps


def test_a_collection_grows(tmp_path):
    path = tmp_path / "a.pvd"
    collection.extend_collection(path, [(0.0, "a.vtu")])
    collection.extend_collection(path, [(0.5, "b.vtu"), (1.0, "c.vtu")])
    assert collection.listed_steps(path) == [
        (0.0, "a.vtu"),
        (0.5, "b.vtu"),
        (1.0, "c.vtu"),
    ]


def test_a_crash_while_growing_leaves_the_previous_collection(tmp_path):
    path = collection.write_collection(tmp_path / "a.pvd", [(0.0, "a.vtu")])

    def steps():
        yield 1.0, "b.vtu"
        raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        collection.extend_collection(path, steps())
    assert collection.listed_steps(path) == [(0.0, "a.vtu")]


@pytest.mark.parametrize(
    "text",
    ["", "<VTKFile>", '<a><DataSet file="x"/></a>', '<a><DataSet timestep="?"/></a>'],
)
def test_what_is_no_collection_is_refused(tmp_path, text):
    path = tmp_path / "a.pvd"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"a\.pvd is not a sound"):
        collection.extend_collection(path, [(0.0, "a.vtu")])


def test_file_series(tmp_path):
    path = collection.write_file_series(tmp_path / "a.vtk.series", [(0.1, "a.vtk")])
    made = json.loads(path.read_text())
    assert made["file-series-version"] == "1.0"
    assert made["files"] == [{"name": "a.vtk", "time": 0.1}]
