"""The frames of the episode at hand, in bounded memory, until they are drawn."""

import tempfile
from typing import Any

import numpy as np

from jaxarc.config import VisualizationConfig
from jaxarc.config.visualization import MemoryConfig
from jaxarc.utils.visualization.cells import read_cells
from jaxarc.utils.visualization.episodes import EpisodeFrame
from jaxarc.utils.visualization.manager import MemoryManager
from jaxarc.utils.visualization.stores import VisualizationCache, optimize_array_memory
from jaxrig.memory import MIB

MOST = 2**31  # frames; memory is what bounds them


class FrameStore:
    """Frames in the order they came, at most `visualization.max_memory_mb` in memory.

    With a `debug` block, at most its `max_cache_mb`, and above `max_total_mb` of the
    whole process everything that can be loaded again is let go between episodes.
    What does not fit goes to temporary files (`lazy_loading`), compressed or not, or
    is forgotten.
    """

    def __init__(self, config: VisualizationConfig):
        memory = config.debug.memory_management if config.debug else MemoryConfig()
        limit = config.max_memory_mb
        if config.debug is not None:
            limit = min(limit, memory.max_cache_mb)
        self._files = None
        if memory.lazy_loading:
            self._files = tempfile.TemporaryDirectory(prefix="jaxarc-frames-")
        self.manager = MemoryManager(limit, memory.max_total_mb)
        self.manager.cache = VisualizationCache(
            limit,
            MOST,
            None if self._files is None else self._files.name,
            6 if memory.compression else 0,
        )
        self._watched = config.debug is not None
        self._count = 0

    def begin(self) -> str:
        """Forget the last episode; a sentence if the process holds too much memory."""
        self.manager.cache.clear()
        self._count = 0
        if not self._watched or not self.manager.check_memory_usage():
            return ""
        used = self.manager.get_memory_report()["monitor_stats"]["current_mb"]
        return (
            f"the process holds {used * MIB / 1e6:.0f} MB, above "
            "visualization.debug.memory_management.max_total_mb: loaded data was let go"
        )

    def add(self, frame: EpisodeFrame) -> None:
        """Keep one more frame."""
        self.manager.cache.put(str(self._count), _small(frame))
        self._count += 1

    def frames(self) -> tuple[list[EpisodeFrame], str]:
        """All frames that are still there; a sentence if some are not."""
        found = []
        for number in range(self._count):
            try:
                found.append(EpisodeFrame(**self.manager.cache.get(str(number))))
            except KeyError:  # forgotten, since it did not fit
                continue
        missing = self._count - len(found)
        if not missing:
            return found, ""
        return found, (
            f"{missing} of {self._count} frames of the episode did not fit into memory "
            "and are not drawn: raise visualization.max_memory_mb, or switch on "
            "visualization.debug.memory_management.lazy_loading"
        )

    def close(self) -> None:
        """Remove the temporary files."""
        self.manager.cache.clear()
        if self._files is not None:
            self._files.cleanup()


def frame_of_log(log: Any, named: bool = True) -> EpisodeFrame:
    """The frame that a start or a step leaves; `named` keeps its operation."""
    cells, target = read_cells(log["grid"]), read_cells(log["target"])
    selection = log.get("selection")
    return EpisodeFrame(
        cells.values,
        None if selection is None else cells.crop(selection),
        log.get("operation") if named else None,
        log.get("reward", 0.0),
        log["similarity"],
        target.values if target.height else None,
    )


def _small(frame: EpisodeFrame) -> dict[str, Any]:
    return {
        name: optimize_array_memory(value) if isinstance(value, np.ndarray) else value
        for name, value in vars(frame).items()
    }
