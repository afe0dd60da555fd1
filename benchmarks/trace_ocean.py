"""Parcels 3 and OpenDrift beside jaxtrace on one lat/lon file: end points and rates.

python benchmarks/trace_ocean.py --parcels PYTHON --opendrift PYTHON > ocean.json

Each PYTHON is the interpreter of an environment of its own, with `pip install
"parcels<4"` or `pip install opendrift`; either may be left out. All read the same
netCDF file (daily currents on a quarter degree, two weeks) and take the same steps of
an hour by RK4. Ours has the radius that Parcels assumes; OpenDrift moves along
geodesics of WGS84, and its RK4 is of first order on curved paths. Runs alternate;
rates are per CPU second of moving the particles, without reading, compiling and
output. End points differ from ours by "degrees apart", median and most.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

DAYS, DT, REPEATS = 10, 3600.0, 3
PARCELS_RADIUS = 1852 * 60 * 180 / np.pi  # of 1852 meters to a minute of arc


def write_currents(path: Path) -> None:
    """Write drifting eddies of some 0.5 m/s between 20 and 60 degrees north."""
    import xarray

    lon, lat = np.arange(0, 60.1, 0.25), np.arange(20, 60.1, 0.25)
    time = np.arange(15) * 86400.0
    x, y = np.meshgrid(np.radians(lon), np.radians(lat))
    phase = 2 * np.pi * time[:, None, None] / (20 * 86400.0)
    u = 0.5 * np.sin(24 * y) * np.cos(18 * x - phase)
    v = -0.4 * np.cos(24 * y) * np.sin(18 * x - phase)
    axes = ("time", "lat", "lon")
    names = {"u": "eastward_sea_water_velocity", "v": "northward_sea_water_velocity"}
    xarray.Dataset(
        {
            name: (axes, values.astype("f4"), {"standard_name": names[name]})
            for name, values in (("u", u), ("v", v))
        },
        {
            "time": ("time", time, {"units": "seconds since 2000-01-01"}),
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "lon": ("lon", lon, {"units": "degrees_east"}),
        },
    ).map(lambda a: a.assign_attrs(units="m s-1"), keep_attrs=True).to_netcdf(path)


def run_parcels(file: str, seeds: str, out: str) -> None:
    """Run Parcels in its own environment; write the end points and the seconds."""
    import parcels  # pyright: ignore[reportMissingImports]

    names = {"lon": "lon", "lat": "lat", "time": "time"}
    fieldset = parcels.FieldSet.from_netcdf(
        file, {"U": "u", "V": "v"}, names, deferred_load=False
    )
    start = np.load(seeds)

    def run(days: int) -> tuple[Any, float]:
        particles = parcels.ParticleSet(
            fieldset,
            parcels.JITParticle,
            lon=start[:, 0],
            lat=start[:, 1],
            lonlatdepth_dtype=np.float64,
        )
        # The last displacement is applied when the next step begins: one step more.
        runtime = days * 86400.0 + DT
        began = time.process_time()
        particles.execute(
            parcels.AdvectionRK4, runtime=runtime, dt=DT, verbose_progress=False
        )
        return particles, time.process_time() - began

    run(1)  # compiles
    particles, seconds = run(DAYS)
    np.savez(out, lon=particles.lon, lat=particles.lat, seconds=seconds)


def run_jaxtrace(file: str, start: np.ndarray) -> tuple[np.ndarray, float]:
    """Return where particles end, and the seconds of a run that is compiled."""
    import jaxtrace as jt
    from jaxtrace.tracking import create_tracker

    jt.configure(dtype="float64")
    field = jt.load_optimized_dataset(file, radius=PARCELS_RADIUS, dtype="float32")
    tracker = create_tracker("rk4", field, None)
    span = (0.0, DAYS * 86400.0)
    tracker.track_particles(start, span, 2, DT)
    began = time.process_time()
    found = tracker.track_particles(start, span, 2, DT)
    return found.positions[-1, :, :2], time.process_time() - began


def run_opendrift(file: str, seeds: str, out: str) -> None:
    """Run OpenDrift in its own environment; write the end points and the seconds."""
    from opendrift.models.oceandrift import (  # pyright: ignore[reportMissingImports]
        OceanDrift,
    )
    from opendrift.readers import (  # pyright: ignore[reportMissingImports]
        reader_netCDF_CF_generic,
    )

    drift = OceanDrift(loglevel=50)
    drift.add_reader(reader_netCDF_CF_generic.Reader(file))
    options = {
        "general:use_auto_landmask": False,
        "environment:fallback:land_binary_mask": 0,
        "drift:advection_scheme": "runge-kutta4",
        "drift:vertical_advection": False,
        "drift:vertical_mixing": False,
        "drift:stokes_drift": False,
        "drift:max_speed": 5,
        "seed:ocean_only": False,  # the currents are on land, too
    }
    for name, value in options.items():
        drift.set_config(name, value)
    start = np.load(seeds)
    time_zero = datetime.datetime(2000, 1, 1)
    drift.seed_elements(
        lon=start[:, 0], lat=start[:, 1], time=time_zero, wind_drift_factor=0
    )
    began = time.process_time()
    drift.run(steps=int(DAYS * 86400 / DT), time_step=DT, time_step_output=86400)
    seconds = time.process_time() - began
    order = np.argsort(drift.elements.ID)
    lon, lat = drift.elements.lon[order], drift.elements.lat[order]
    np.savez(out, lon=lon, lat=lat, seconds=seconds)


PEERS = {"parcels": run_parcels, "opendrift": run_opendrift}


def compare(pythons: dict[str, str], particles: int) -> dict[str, object]:
    """Return differences of end points, and rates in turns."""
    draw = np.random.default_rng(0)
    start = draw.uniform([10, 28], [50, 52], (particles, 2))
    seconds: dict[str, list[float]] = {name: [] for name in ("jaxtrace", *pythons)}
    ends = {"jaxtrace": start}
    # The peers have environments of their own: nothing of ours may be found there.
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    with tempfile.TemporaryDirectory() as folder:
        file, seeds, out = (str(Path(folder) / n) for n in ("u.nc", "s.npy", "o.npz"))
        write_currents(Path(file))
        np.save(seeds, start)
        for _ in range(REPEATS):
            ends["jaxtrace"], used = run_jaxtrace(file, start)
            seconds["jaxtrace"].append(used)
            for name, python in pythons.items():
                command = [python, __file__, "--be", name, file, seeds, out]
                subprocess.run(
                    command, check=True, env=clean, stdout=subprocess.DEVNULL
                )
                found = dict(np.load(out))
                ends[name] = np.stack([found["lon"], found["lat"]], 1)
                seconds[name].append(float(found["seconds"]))
    apart = {name: np.abs(ends[name] - ends["jaxtrace"]) for name in pythons}
    steps = particles * DAYS * 86400.0 / DT  # one more of Parcels' is not counted
    return {
        "particles": particles,
        "steps": int(DAYS * 86400.0 / DT),
        "degrees traveled": float(
            np.median(np.abs(ends["jaxtrace"] - start).max(axis=1))
        ),
        "degrees apart": {
            name: [float(np.median(far)), float(far.max())]
            for name, far in apart.items()
        },
        "steps per CPU second": {
            name: [round(steps / s) for s in each] for name, each in seconds.items()
        },
    }


def main() -> None:
    """Compare, or be one of the peers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in PEERS:
        parser.add_argument(f"--{name}", metavar="PYTHON")
    parser.add_argument("--particles", type=int, default=10_000)
    parser.add_argument("--be", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.be:
        PEERS[given.be[0]](*given.be[1:])
        return
    pythons = {name: getattr(given, name) for name in PEERS if getattr(given, name)}
    json.dump(compare(pythons, given.particles), sys.stdout, indent=2)


if __name__ == "__main__":
    main()
