import pytest

from jaxtrace.files.times import TIME_SOURCES, choose_clock, name_number

LABELS = ["a_20.vtu", "a_3.vtu"]


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("run3_0.25.vtu", 0.25),
        ("/x9/flow_1e-3.vtk", 1e-3),
        ("T0000000500.pvtu", 500.0),
        ("mesh.vtu", None),
        ("a-7.vtu", 7.0),
    ],
)
def test_the_number_of_a_name_is_its_last(name, number):
    assert name_number(name) == number


def test_the_best_source_that_all_files_have_is_used():
    stated = {
        "field": [1.0, None],
        "collection": [0.5, 0.25],
        "array": [7.0, 8.0],
        "name": [20.0, 3.0],
    }
    clock = choose_clock(LABELS, stated)
    assert clock.source == "collection"
    assert clock.times.tolist() == [0.25, 0.5]
    assert clock.order.tolist() == [1, 0]
    assert choose_clock(LABELS, {**stated, "field": [1.0, 2.0]}).source == "field"


@pytest.mark.parametrize(
    ("stated", "source"),
    [
        ({"array": [7.0, 8.0], "name": [20.0, 3.0]}, "array"),
        ({"array": [7.0, None], "name": [20.0, 3.0]}, "name"),
        ({"name": [3.0, 3.0]}, "index"),
        ({"name": [None, 3.0]}, "index"),
        ({}, "index"),
    ],
)
def test_the_order_of_the_sources(stated, source):
    assert choose_clock(LABELS, stated).source == source


def test_a_source_can_be_asked_for():
    stated = {"field": [0.0, 0.0], "name": [20.0, 3.0]}
    assert choose_clock(LABELS, stated, "name").times.tolist() == [3.0, 20.0]
    assert choose_clock(LABELS, stated, "index").order.tolist() == [0, 1]
    with pytest.raises(ValueError, match="not every file has the timestep"):
        choose_clock(LABELS, stated, "collection")
    with pytest.raises(ValueError, match=r"one of field, collection.*'guess'"):
        choose_clock(LABELS, stated, "guess")


def test_two_files_of_one_instant_are_named():
    with pytest.raises(ValueError, match=r"a_20\.vtu and a_3\.vtu both have t = 5"):
        choose_clock(LABELS, {"field": [5.0, 5.0]})


def test_a_time_that_is_no_number_is_refused():
    with pytest.raises(ValueError, match=r"a_3\.vtu: its time is nan"):
        choose_clock(LABELS, {"field": [5.0, float("nan")]})


def test_every_source_has_its_words():
    assert list(TIME_SOURCES) == ["field", "collection", "array", "name", "index"]
