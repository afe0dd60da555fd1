"""Writing frames to the store of a run, against one plain zarr array of frames."""

import tempfile
import time
from pathlib import Path

import numpy as np
import zarr

from jaxtrace.io.store import open_store

CASES = ((7500, 50, 20), (500_000, 4, 8))  # particles, frames at a time, times
REPEATS = 5


def write_store(folder: Path, frames: np.ndarray, times: int) -> None:
    """Append the frames so many times to a store."""
    count = len(frames)
    with open_store(folder / "run.zarr", "x") as store:
        for part in range(times):
            clock = np.arange(part * count, (part + 1) * count, dtype=float)
            store.append(clock, {"positions": frames})


def write_plain(folder: Path, frames: np.ndarray, times: int) -> None:
    """Append the frames so many times to one array, chunked by what is appended."""
    shape = (0, *frames.shape[1:])
    array = zarr.create_array(
        folder / "plain.zarr",
        shape=shape,
        dtype=frames.dtype,
        chunks=frames.shape,
        compressors=None,
    )
    for part in range(times):
        begin, end = part * len(frames), (part + 1) * len(frames)
        array.resize((end, *shape[1:]))
        array[begin:end] = frames


def main() -> None:
    """Print CPU seconds of both, in turn."""
    for particles, count, times in CASES:
        frames = np.random.default_rng(0).random((count, particles, 3), np.float32)
        spent: dict[str, list[float]] = {}
        for _ in range(REPEATS):
            for write in (write_store, write_plain):
                with tempfile.TemporaryDirectory() as folder:
                    begun = time.process_time()
                    write(Path(folder), frames, times)
                    taken = time.process_time() - begun
                    spent.setdefault(write.__name__, []).append(taken)
        store, plain = (float(np.median(s)) for s in spent.values())
        points = particles * count * times
        print(
            f"{particles:,} particles: store {store:.3f} s ({store / points * 1e9:.0f} "
            f"ns per position), plain {plain:.3f} s, ratio {store / plain:.2f}"
        )


if __name__ == "__main__":
    main()
