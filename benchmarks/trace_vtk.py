"""End points of ours and of VTK 9.3.1's tracers, from the same seeds and files.

python benchmarks/trace_vtk.py VTK/bin/python [CASE ...] [--data FOLDER] > ends.json

The first argument is the Python of an environment with vtk==9.3.1 and NumPy; newer
tracers are wrong on unsteady flow and refused. VTK reads the files itself, and each
unsteady case takes the two Runge-Kutta steps per slice that its tracer takes. Distances
are those of particles that both kept, in units of the case and of their path's length.
"""

import argparse
import json
import os
import subprocess
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import jaxtrace as jt
from jaxtrace.fields import ABCFlow, StructuredGridSampler

PEER = Path(__file__).with_name("trace_vtk_peer.py")
PARTICLES = 300


def vtk_ends(python: str, kind: str, folder: Path, file: str, **case: Any) -> Any:
    """Where VTK's particles end, traced by a process of their own."""
    np.savez(folder / "case.npz", **case)
    command = [python, str(PEER), kind, str(folder), file]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{python} cannot trace {kind}: {done.stderr.strip()}")
    with np.load(folder / "ends.npz") as found:
        return found["ends"]


def compare(field: Any, seeds: Any, end: float, steps: int, theirs: Any) -> dict:
    """Track the same seeds, and tell how far apart they end."""
    tracker = jt.create_tracker("rk4", field, None)
    paths = tracker.track_particles(seeds, (0.0, end), steps + 1)
    ours, lengths = paths.positions[-1], paths.compute_path_length()
    kept, known = (np.isfinite(ends).all(1) for ends in (ours, theirs))
    both = kept & known
    apart = np.linalg.norm(ours - theirs, axis=1)[both]
    share = apart / lengths[both]
    farthest = np.float32(np.abs(theirs[both]).max())
    return {
        "both kept": int(both.sum()),
        "only ours kept": int((kept & ~known).sum()),
        "only VTK kept": int((known & ~kept).sum()),
        "spacing of VTK's single precision": float(np.spacing(farthest)),
        "longest path": float(lengths[both].max()),
        "largest distance": float(apart.max()),
        "median distance": float(np.median(apart)),
        "largest distance per path length": float(share.max()),
        "median distance per path length": float(np.median(share)),
    }


def on_grid(python: str, folder: Path, axis: Any, times: Any, rates: Any) -> dict:
    """A flow sampled on a cube of nodes; those that leave it are lost."""
    seeds = np.random.default_rng(0).uniform(axis[0], axis[-1], (PARTICLES, 3))
    axes, end = dict.fromkeys("xyz", axis), float(times[-1])
    case = {**axes, "times": times, "values": rates, "seeds": seeds, "end": end}
    theirs = vtk_ends(python, "grid", folder, "", **case)
    field = StructuredGridSampler(
        rates, axis, axis, axis, bounds_handling="nan", times=times, dtype="float64"
    )
    return compare(field, seeds, end, 2 * (len(times) - 1), theirs)


def ramp(python: str, folder: Path, data: Path) -> dict:
    """Velocity (t,0,0): VTK's newer tracers move by 2.5 where the answer is 2."""
    times = np.linspace(0, 2, 5)
    rates = np.zeros((5, 6, 6, 6, 3))
    rates[..., 0] = times[:, None, None, None]
    return on_grid(python, folder, np.linspace(0, 5, 6), times, rates)


def pulse(python: str, folder: Path, data: Path) -> dict:
    """The ABC flow, swelling and ebbing, on one period of it."""
    axis, times = np.linspace(0, 2 * np.pi, 33), np.linspace(0, 1, 11)
    nodes = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1)
    flow = ABCFlow().sample_at_positions(nodes.reshape(-1, 3), 0.0)
    swell = 1 + 0.5 * np.sin(2 * times)
    rates = swell[:, None, None, None, None] * np.asarray(flow).reshape(nodes.shape)
    return on_grid(python, folder, axis, times, rates)


def eddy(python: str, folder: Path, data: Path) -> dict:
    """The unsteady output of Nek5000, eleven slices; it has no walls."""
    file = data / "nek5000_eddy" / "eddy_uv.nek5000"
    seeds = np.zeros((PARTICLES, 3))
    seeds[:, :2] = np.random.default_rng(0).uniform(0, 2 * np.pi, (PARTICLES, 2))
    theirs = vtk_ends(python, "eddy", folder, str(file), seeds=seeds, end=0.1)
    field = jt.load_optimized_dataset(file, dtype="float64", outside="nan")
    return compare(field, seeds, 0.1, 20, theirs)


def vessels(python: str, folder: Path, data: Path) -> dict:
    """The steady blood vessels, by stream lines; lost where the mesh ends."""
    with zipfile.ZipFile(data / "blood_vessels" / "blood_vessels.zip") as archive:
        archive.extractall(folder)
    file = folder / "blood_vessels" / "T0000000500.pvtu"
    field: Any = jt.load_optimized_dataset(file, dtype="float64", outside="nan")
    nodes = np.random.default_rng(0).choice(np.asarray(field.positions), PARTICLES)
    seeds = nodes + np.random.default_rng(1).uniform(-0.5, 0.5, nodes.shape)
    seeds = seeds[np.asarray(field.contains(seeds))]
    theirs = vtk_ends(python, "vessels", folder, str(file), seeds=seeds, end=50.0)
    return compare(field, seeds, 50.0, 1000, theirs)


CASES: dict[str, Callable[[str, Path, Path], dict]] = {
    "ramp": ramp,
    "pulse": pulse,
    "eddy": eddy,
    "vessels": vessels,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("python", help="interpreter with vtk==9.3.1 and NumPy")
    parser.add_argument("cases", nargs="*", default=[], metavar="CASE")
    data = os.environ.get("JAXRIG_DATA", "../shared/data")
    parser.add_argument("--data", type=Path, default=Path(data))
    chosen = parser.parse_args()
    unknown = set(chosen.cases) - set(CASES)
    if unknown:
        parser.error(f"no case {sorted(unknown)}, choose from {list(CASES)}")
    jt.configure(dtype="float64")
    found = {}
    for name in chosen.cases or CASES:
        with tempfile.TemporaryDirectory() as folder:
            found[name] = CASES[name](chosen.python, Path(folder), chosen.data)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
