"""A case is read from a file, refused where unknown, and written back equal."""

import dataclasses
import tomllib

import pytest

from jaxtrace.workflow.case import (
    DROPPED,
    RENAMED,
    TABLES,
    Case,
    case_text,
    load_case,
    quote,
    read_case,
    write_case,
)
from jaxtrace.workflow.tables import Boundary, Data, Flow, Particles
from trace_cases import SMALL, write_small


def test_a_file_becomes_a_case_with_paths_from_its_folder(tmp_path):
    case = load_case(write_small(tmp_path))
    assert case.flow == Flow.from_mapping(
        {"name": "rotation", "rate": 2 * 3.14159265358979312}
    )
    assert case.particles.concentrations == (4, 3, 1)
    assert case.folder == tmp_path / "result"


def test_data_patterns_count_from_the_file_too(tmp_path):
    text = '[data]\npattern = "flow/*.vtu"\n'
    case = load_case(write_small(tmp_path, text))
    assert case.data is not None
    assert case.data.pattern == str(tmp_path / "flow/*.vtu")


def test_written_and_read_it_is_the_same(tmp_path):
    box = {"type": "mixed", "boundary_types": {"x": "periodic"}, "bounds": [0, 1, 0, 2]}
    case = Case(
        data=Data('a "quoted" \\ path', velocity_name=("u", "v"), time_range=(0, 1)),
        particles=Particles.from_mapping(
            {"bounds_fraction": {"x": [0, 0.5]}, "gaussian_std": 0.1}
        ),
        boundary=Boundary.from_mapping(box),
    )
    assert read_case(tomllib.loads(case_text(case))) == case
    assert hash(case) == hash(read_case(tomllib.loads(case_text(case))))
    case = dataclasses.replace(case, data=Data(str(tmp_path / "x")))
    path = write_case(case, tmp_path / "deep" / "case.toml")
    folder = str(tmp_path / "deep" / "out")
    output = dataclasses.replace(case.output, folder=folder)
    assert load_case(path) == dataclasses.replace(case, output=output)


def test_one_source_of_velocity():
    for content in ({}, {"data": {"pattern": "x"}, "flow": {"name": "abc"}}):
        with pytest.raises(ValueError, match="either"):
            read_case(content)
    with pytest.raises(ValueError, match="has none"):
        read_case({"flow": {"name": "abc"}, "time": {"use_data_dt": True}})


@pytest.mark.parametrize(
    "name", [*RENAMED, *DROPPED, "integrator", "dt", "kde_bandwidth"]
)
def test_keys_of_a_flat_configuration_hear_where_they_belong(name):
    with pytest.raises(TypeError, match=f"no key '{name}'") as error:
        read_case({name: 1})
    said = str(error.value)
    assert "leave it out" in said or any(f"[{table}]" in said for table in TABLES)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"dat": {}}, r"no table \[dat\]; did you mean 'data'"),
        ({"data": 3}, r"written \[data\]"),
    ],
)
def test_what_is_no_table(content, words):
    with pytest.raises(TypeError, match=words):
        read_case(content)


def test_errors_name_the_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        load_case(tmp_path / "missing.toml")
    with pytest.raises(ValueError, match=r"case\.toml is not valid TOML"):
        load_case(write_small(tmp_path, "config = {'a': 1}"))
    with pytest.raises(TypeError, match=r"case\.toml: no key in \[time\] 'spam'"):
        load_case(write_small(tmp_path, SMALL.replace("[time]", "[time]\nspam = 1")))


def test_quoted_words_are_toml():
    words = 'tab\t"quote" \\ slash é'
    assert tomllib.loads(f"a = {quote(words)}")["a"] == words
