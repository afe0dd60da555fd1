"""A case is read from a file, refused where unknown, and written back equal.

The starting case explains every key, and is the default case.

Tables check themselves, however they are made.
"""

import dataclasses
import tomllib

import pytest

from jaxrig.settings import readers
from jaxrig.static_arguments import thaw
from jaxtrace.workflow.case import (
    TABLES,
    Case,
    case_text,
    load_case,
    quote,
    read_case,
    write_case,
)
from jaxtrace.workflow.starter import starter
from jaxtrace.workflow.tables import (
    BOUNDARIES,
    FTLE,
    Boundary,
    Data,
    Density,
    Flow,
    Particles,
    Pictures,
    Time,
    Tracking,
)
from jaxtrace.workflow.templates import CHANNEL, DATA
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
    ("content", "words"),
    [
        ({"dat": {}}, r"no table \[dat\]; did you mean 'data'"),
        ({"data": 3}, r"written \[data\]"),
        ({"integrator": "rk4"}, r"no key 'integrator' .* belongs to \[tracking\]"),
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


BOTH = starter() + DATA + CHANNEL


def test_a_flow_to_begin_with_is_a_case():
    flow = read_case(tomllib.loads(starter()))
    assert flow.flow == Flow.from_mapping({"name": "double_gyre", "amplitude": 0.1})


@pytest.mark.parametrize("name", TABLES)
def test_every_key_is_there(name):
    kind = TABLES[name]
    keys = [k for k in readers(kind) if k not in ("options", "parameters")]
    keys += [k for k in Boundary().arguments() if name == "boundary"]
    left_out = ("concentrations", "bounds", "seed") if name == "boundary" else ()
    assert f"[{name}]" in BOTH
    assert all(f"{key} = " in BOTH for key in keys if key not in left_out)


PLAIN = [kind for name, kind in TABLES.items() if name not in ("data", "flow")]


@pytest.mark.parametrize("kind", PLAIN)
def test_defaults_are_legal_hashable_and_written_back(kind):
    table = kind()
    assert hash(table) == hash(kind())
    assert kind.from_mapping(table.to_mapping()) == table
    if kind.section not in ("boundary", "time"):  # which fit the flow
        written = tomllib.loads(starter())[kind.section]
        assert kind.from_mapping(written) == table


def test_documented_defaults():
    assert Data("x").max_timesteps_to_load == 40
    assert Particles().concentrations == (60, 50, 15)
    assert Particles().gaussian_std == (0.2, 0.2, 0.2)
    assert Tracking().integrator == "rk4"
    assert Boundary().type == "channel"
    assert Density().methods == ("kde", "sph")
    assert (Density().kde_bandwidth_rule, Density().sph_n_neighbors) == ("scott", 32)
    assert (Pictures().slice_levels, Pictures().slice_cutoff_max) == (20, 95)


def test_data_needs_a_pattern_and_an_unknown_key_hears_the_nearest():
    with pytest.raises(TypeError, match=r"\[data\] 'patern'; did you mean 'pattern'"):
        Data.from_mapping({"patern": "x"})
    with pytest.raises(ValueError, match=r"\[data\] needs pattern"):
        Data.from_mapping({})


def test_a_flow_takes_its_parameters_beside_its_name():
    flow = Flow.from_mapping({"name": "double_gyre", "amplitude": 0.2})
    assert thaw(flow.parameters) == {"amplitude": 0.2}
    assert flow.to_mapping() == {"name": "double_gyre", "amplitude": 0.2}
    with pytest.raises(TypeError, match="did you mean 'amplitude'"):
        Flow.from_mapping({"name": "double_gyre", "amplitud": 0.2})
    with pytest.raises(ValueError, match=r"flow\.amplitude is 'x'"):
        Flow.from_mapping({"name": "double_gyre", "amplitude": "x"})
    with pytest.raises(ValueError, match=r"\[flow\] needs name"):
        Flow.from_mapping({"amplitude": 1})


@pytest.mark.parametrize("kind", BOUNDARIES)
def test_every_boundary_refuses_what_it_does_not_take(kind):
    assert Boundary(kind).type == kind
    with pytest.raises(TypeError, match=rf"\[boundary\] of type '{kind}'"):
        Boundary.from_mapping({"type": kind, "nonsense": 1})


def test_a_channel_takes_the_documented_keys():
    given = {"flow_axis": "y", "inlet": "none", "outlet": "periodic"}
    table = Boundary.from_mapping(given | {"inlet_distribution": "uniform"})
    assert table.to_mapping() == {
        "type": "channel",
        "inlet_distribution": "uniform",
        **given,
    }


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: Particles.from_mapping(
                {"bounds": [0, 1, 0, 1], "bounds_fraction": {}}
            ),
            "give one",
        ),
        (
            lambda: FTLE.from_mapping({"bounds": {"lon": [0, 1], "y": [0, 1]}}),
            r"^ftle.bounds has 'lon': give x, y and z",
        ),
        (
            lambda: FTLE.from_mapping({"bounds": {"x": [0, 1]}}),
            r"^ftle.bounds has no 'y'",
        ),
        (lambda: Time(n_timesteps=10, use_data_dt=True), "give one"),
        (lambda: Time(n_timesteps=1), "from 2"),
        (lambda: Pictures(slice_cutoff_min=50, slice_cutoff_max=40), "give less"),
        (lambda: Density(kde_normalize="sum"), "one of pdf"),
        (lambda: Tracking(device="abacus"), "one of"),
    ],
)
def test_values_that_do_not_fit(make, words):
    with pytest.raises(ValueError, match=words):
        make()
