"""Tables check themselves, however they are made."""

import dataclasses

import pytest

from jaxrig.static import thaw
from jaxtrace.workflow.tables import (
    BOUNDARIES,
    Boundary,
    Data,
    Density,
    Flow,
    Motion,
    Output,
    Particles,
    Pictures,
    Stretching,
    Time,
    Tracking,
)

PLAIN = (Particles, Time, Tracking, Motion, Density, Pictures, Stretching, Output)


@pytest.mark.parametrize("kind", PLAIN)
def test_defaults_are_legal_hashable_and_written_back(kind):
    table = kind()
    assert hash(table) == hash(kind())
    assert kind.from_mapping(table.to_mapping()) == table


def test_documented_defaults():
    assert Data("x").max_timesteps_to_load == 40
    assert Particles().concentrations == (60, 50, 15)
    assert Particles().gaussian_std == (0.2, 0.2, 0.2)
    assert Tracking().integrator == "rk4"
    assert Boundary().type == "channel"
    assert Density().methods == ("kde", "sph")
    assert (Density().kde_bandwidth_rule, Density().sph_n_neighbors) == ("scott", 32)
    assert (Pictures().slice_levels, Pictures().slice_cutoff_max) == (20, 95)


@pytest.mark.parametrize("kind", PLAIN)
def test_an_unknown_key_hears_the_nearest(kind):
    name = dataclasses.fields(kind)[0].name
    with pytest.raises(TypeError, match=rf"\[{kind.section}\].*did you mean '{name}'"):
        kind.from_mapping({f"{name}x": 1})


def test_data_needs_a_pattern():
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
