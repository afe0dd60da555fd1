"""Behaviors against their closed forms, and variables along the paths."""

from contextlib import nullcontext

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxtrace.fields import streamed
from jaxtrace.fields.analytic import FunctionField, UniformFlow
from jaxtrace.fields.grid import StructuredGridSampler
from jaxtrace.fields.streamed import StreamedField
from jaxtrace.io import loader
from jaxtrace.io.loader import load_field, load_variable
from jaxtrace.tracking.behaviors import (
    GRAVITY,
    SEA_WATER,
    Age,
    Behavior,
    Buoyancy,
    Decay,
    History,
    Migration,
    Sinking,
    StokesDrift,
    Windage,
    make_behaviors,
)
from jaxtrace.tracking.boundary import continuous_inlet_boundary_factory
from jaxtrace.tracking.motion import Diffusion
from jaxtrace.tracking.simulation import simulate
from jaxtrace.tracking.tracker import create_tracker
from jaxtrace.types import ParticleStatus

SEEDS = np.array([[0.0, 0.0, 10.0], [1.0, 0.0, 20.0]], np.float32)
SPEEDS = np.array([2.0, 4.0])
TIMES = np.linspace(0.0, 1.0, 5)


def shear(positions, t):
    return jnp.zeros_like(positions).at[:, 0].set(positions[:, 2])


def warmth(positions, t):
    return positions[:, 0] + 3 * t


def degree_days(state, here, t, dt, key):
    heat = state["heat"] + here["warmth"] * dt
    return {"heat": heat, "alive": state["age"] < 0.9, "jumps": state["jumps"] + 1}


def test_closed_forms_along_sinking_paths():
    rules = [Age(), Sinking(SPEEDS), Decay(0.5), History("warmth")]
    rules.append(Behavior(degree_days, {"heat": 0.0, "jumps": 0}))
    found = simulate(
        shear,
        SEEDS,
        TIMES,
        substeps=8,
        sample={"warmth": warmth, "wind": shear},
        behave=rules,
    )
    t, start = TIMES[:4, None], SEEDS[:, 2]
    # The displacement of a step is spread over its stages: no error of splitting.
    x = SEEDS[:, 0] + start * t - SPEEDS * t**2 / 2
    np.testing.assert_allclose(found.positions[:4, :, 0], x, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found.positions[:4, :, 2], start - SPEEDS * t, rtol=1e-6)
    values = {name: np.asarray(v)[:4] for name, v in found.variables.items()}
    np.testing.assert_allclose(values["warmth"], x + 3 * t, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(values["wind_x"], start - SPEEDS * t, rtol=1e-6)
    np.testing.assert_allclose(values["age"], np.tile(t, 2), rtol=1e-6)
    np.testing.assert_allclose(values["mass"], np.exp(-2 * np.tile(t, 2)), rtol=1e-5)
    np.testing.assert_array_equal(values["jumps"], np.tile(32 * t, 2))
    # The mean of x + 3 t, by a rule of second order.
    mean = SEEDS[:, 0] + start * t / 2 - SPEEDS * t**2 / 6 + 3 * t / 2
    np.testing.assert_allclose(values["warmth_mean"][1:], mean[1:], rtol=2e-4)
    np.testing.assert_allclose(values["warmth_max"][1:], values["warmth"][1:])
    assert set(values) == {
        *("age", "mass", "heat", "jumps", "warmth", "warmth_mean", "warmth_max"),
        *("wind_x", "wind_y", "wind_z"),
    }
    # Whoever is older than 0.9 is taken out, by the state it had at the last step.
    assert (np.asarray(found.final.status) == ParticleStatus.REMOVED).all()
    np.testing.assert_allclose(found.final.exit_time, 29 / 32)
    assert np.isnan(found.positions[-1]).all()


def test_a_history_begins_with_the_release():
    """Colder all the way: the first value is the highest."""
    cooling = {"cold": lambda p, t: -p[:, 0]}
    inlet = continuous_inlet_boundary_factory([[0, 0, 0], [1, 1, 1]])
    found = create_tracker("rk4", UniformFlow(1.0), inlet).track_particles(
        *([[0.5, 0.5, 0.5], [0.3, 0.5, 0.5]], (0.0, 1.0), 5),
        release=[0.125, 0.0],
        sample=cooling,
        behave=History("cold"),
    )
    assert found.generation[-1].tolist() == [1, 1]
    first = np.where(found.generation > 0, 0.0, [-0.5, -0.3])
    there = np.isfinite(found.variables["cold_mean"])
    assert there[1:, 1].sum() == 3  # not at the release, nor at an entry
    mean = (first + found.variables["cold"]) / 2
    for name, exact in (("cold_max", first), ("cold_mean", mean)):
        np.testing.assert_allclose(
            found.variables[name][there], exact[there], atol=1e-6
        )


def call(rule, here, t=0.0, dt=60.0):
    here = {name: jnp.asarray(value, jnp.float32) for name, value in here.items()}
    rows = here["z"].shape
    start = {n: jnp.full(rows, v, jnp.float32) for n, v in rule.start.items()}
    step = (jnp.asarray(x, jnp.float32) for x in (t, dt))
    return rule(start, here, *step, jax.random.key(0))


def test_displacements_of_wind_waves_weight_and_daylight():
    wind = {"u10": [10.0, np.nan], "v10": [-5.0, 1.0], "z": [0.0, 0.0]}
    _, way = call(Windage(0.02), wind)
    # Where there is no wind known, on land, there is no windage.
    np.testing.assert_allclose(way, [[12.0, -6.0, 0.0], [0.0, 1.2, 0.0]], rtol=1e-6)
    waves = {"drift": [[0.1, 0.2, 0.0]] * 3, "k": [0.05, 0.05, np.nan]}
    waves["z"] = [0.0, -20.0, -20.0]
    _, way = call(StokesDrift(("drift",), "k"), waves)
    deep = np.exp(2 * 0.05 * -20)
    np.testing.assert_allclose(way[:, 1], [12.0, 12.0 * deep, 0.0], rtol=1e-5)
    _, way = call(Buoyancy(1e-4, 920.0), {"z": [-5.0]})
    speed = (SEA_WATER - 920.0) * GRAVITY * 1e-8 / (18 * 1e-3)
    np.testing.assert_allclose(way, [[0, 0, 60 * speed]], rtol=1e-5)
    # Noon in Greenwich is midnight at the date line; the second has arrived.
    here = {"lon": [0.0, 0.0, 180.0], "z": [-10.0, -299.0, -100.0]}
    _, way = call(Migration(300.0, 10.0, 0.05), here, t=12 * 3600.0)
    np.testing.assert_allclose(way[:, 2], [-3.0, -1.0, 3.0], rtol=1e-5)
    _, later = call(Migration(300.0, 10.0, 0.05, 12.0), here, t=0.0)
    np.testing.assert_array_equal(way, later)


def test_keys_are_those_of_slot_and_step():
    def jump(state, here, t, dt, key):
        step = jax.vmap(lambda k: jax.random.normal(k, (3,), jnp.float32))(key)
        return state, jnp.sqrt(2 * 0.5 * jnp.abs(dt)) * step

    seeds = np.zeros((4000, 3), np.float32)
    still = FunctionField(lambda p, t: jnp.zeros_like(p))
    found = simulate(still, seeds, [0.0, 1.0], substeps=4, behave=jump).positions[-1]
    np.testing.assert_allclose(np.var(found, 0), 1.0, rtol=0.1)
    assert np.abs(np.corrcoef(found.T) - np.eye(3)).max() < 0.06
    few = simulate(still, seeds[:5], [0.0, 1.0], substeps=4, behave=jump)
    np.testing.assert_allclose(few.positions[-1], found[:5], atol=1e-6)


def sea(xarray):
    """Make a coast: no temperature in the west, and as much as the latitude."""
    lon, lat = np.arange(6.0), np.arange(5.0)
    temp = np.broadcast_to(lat[:, None] + 300, (5, 6)).copy()
    temp[:, :2] = np.nan
    units = {"lon": "degrees_east", "lat": "degrees_north", "temp": "K", "kh": "m2 s-1"}
    data = {"temp": (("lat", "lon"), temp)}
    data["kh"] = (("lat", "lon"), np.tile(lon, (5, 1)))
    found = xarray.Dataset(data, {"lat": lat, "lon": lon})
    for name, unit in units.items():
        found[name].attrs["units"] = unit
    return found


def test_nodes_at_sea_decide_near_the_coast():
    data = sea(pytest.importorskip("xarray"))
    variable = load_variable(data, "temp").frozen
    places = jnp.array([[3.5, 2.5, 0], [1.25, 2.5, 0], [0.5, 2.5, 0], [9.0, 2.5, 0]])
    look = eqx.filter_jit(lambda v, p: v.at(p, v.instant(np.float64(0.0))))
    found = look(variable, places)
    np.testing.assert_allclose(found, [302.5, 302.5, np.nan, np.nan], rtol=1e-6)
    # A diffusivity of the files: its slope is the drift of a walk without noise.
    walk = Diffusion([load_variable(data, "kh"), 0.0, 0.0])
    ask = eqx.filter_jit(lambda walk, p: walk._coefficients(p, jnp.zeros(())))
    spread, slope = ask(walk, places)
    np.testing.assert_allclose(spread[0], [np.sqrt(7.0), 0, 0], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(slope)[0], [1.0, 0, 0], atol=1e-6)


def test_clocks_of_which_one_has_no_dates_are_said():
    grid = (np.arange(2.0), np.arange(2.0))
    values = np.ones((2, 2, 2, 3))
    hourly = StructuredGridSampler(values, *grid, times=[0.0, 1.0])
    dates = {"time_units": "seconds since 2020-01-01 00:00:00", "calendar": "standard"}
    with pytest.warns(UserWarning, match="only the velocity has dates: .* 'hot'"):
        make_behaviors({"hot": hourly}, None, dates)
    for steady in (StructuredGridSampler(values[0], *grid), warmth):
        make_behaviors({"hot": steady}, None, dates)


@pytest.mark.parametrize("make", [lambda wind: Windage(0.02, wind), StokesDrift])
def test_winds_and_waves_are_in_meters_per_second(make):
    data, rule = sea(pytest.importorskip("xarray")), make(("kh", "kh"))
    for units, wrong in (("m s**-1", False), ("cm s-1", True), ("knots", True)):
        data["kh"].attrs["units"] = units
        sample = {"kh": load_variable(data, "kh")}
        with pytest.raises(ValueError, match="m/s") if wrong else nullcontext():
            make_behaviors(sample, rule)


@pytest.mark.parametrize(
    ("sample", "behave", "words"),
    [
        ({}, Windage(0.02), r"Windage needs u10, v10: give each in sample="),
        ({"t": warmth}, StokesDrift(("t",)), "'t' is no vector: give both of its"),
        ({"lon": warmth}, None, "lon: names are taken"),
        ({"t": warmth}, [Age(), Age()], "age: names are taken"),
        ({"t": 3.0}, None, "sample 't' is float: give a field"),
        ({"t": lambda p, t: p[:1]}, None, r"shape \(1, 3\) for 2 .* return \(2,\)"),
        ({}, lambda *a: {"mine": 0.0}, r"'mine' that nobody declared: give its start"),
        ({}, [Age(), 3], "behave has 3: give behaviors of"),
        ({}, lambda *a: 3, "returned int: return the state, a dict"),
        ({}, lambda s, *a: (s, 0.0), r"displacement of shape \(\): return \(2, 3\)"),
        ({}, Sinking(np.ones(3)), r"shape \(3,\): give a number, or one for each"),
    ],
)
def test_what_cannot_be_sampled_or_followed(sample, behave, words):
    with pytest.raises((TypeError, ValueError), match=words):
        simulate(shear, SEEDS, TIMES, sample=sample, behave=behave)


@pytest.mark.slow
@pytest.mark.bitwise
def test_flow_and_variables_are_streamed_to_the_same_bits(tmp_path, monkeypatch):
    xarray = pytest.importorskip("xarray")
    lon, lat, days = np.arange(12.0), np.arange(-5.0, 6.0), np.arange(9.0)
    shape, rng = (9, 11, 12), np.random.default_rng(0)
    axes = {"time": days, "lat": lat, "lon": lon}
    names = ("uo", "vo", "thetao")
    values = {n: (tuple(axes), rng.normal(size=shape).astype("f4")) for n in names}
    data = xarray.Dataset(values, axes)
    units = {"lat": "degrees_north", "lon": "degrees_east", "uo": "m/s", "vo": "m/s"}
    for name, unit in {**units, "time": "days since 2020-02-27"}.items():
        data[name].attrs["units"] = unit
    path = tmp_path / "sea.zarr"
    data.to_zarr(path, consolidated=False, zarr_format=3)
    seeds = np.stack([rng.uniform(3, 8, 40), rng.uniform(-2, 2, 40), np.zeros(40)], 1)

    def track():
        flow = load_field(path)
        warm = load_variable(path, "thetao")
        tracker = create_tracker("rk4", flow.field, None)
        found = tracker.track_particles(
            *(seeds, (0.0, 8 * 86400.0), 17),
            dt=3600.0,
            release=(0.0, 86400.0, 43200.0),
            sample={"warm": warm},
            behave=History("warm"),
        )
        return flow.streamed, isinstance(warm.field, StreamedField), found

    whole = track()
    # Room for three of nine slices.
    monkeypatch.setattr(loader, "memory_budget_bytes", lambda: 12 * 11 * 12 * 12)
    monkeypatch.setattr(streamed, "memory_budget_bytes", lambda: 12 * 11 * 12 * 12)
    parts = track()
    assert [*whole[:2], *parts[:2]] == [False, False, True, True]
    np.testing.assert_array_equal(parts[2].positions, whole[2].positions)
    for name, values in whole[2].variables.items():
        np.testing.assert_array_equal(parts[2].variables[name], values)
