"""A folder of numbered checkpoints that survives being killed at any instant."""

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxrig.atomic import remove_leftovers
from jaxrig.checkpoint.tree import load_tree, read_header, save_tree
from jaxrig.container import ContainerError
from jaxrig.hosts import is_main, wait_for_all

_FILE = re.compile(r"step_(\d{9,})\.ckpt")


@dataclass(frozen=True)
class Restored:
    """What a checkpoint gave back."""

    step: int
    tree: Any
    metadata: dict[str, Any]


class CheckpointManager:
    """The newest `keep` checkpoints of one run, in one folder, by step number.

    A checkpoint counts only when it is whole on the disk; older ones are deleted after
    that. One run writes to a folder at a time.

        manager = CheckpointManager("runs/a", keep=3)
        manager.save(100, state, metadata={"loss": 0.1})
        state = manager.restore(like=state).tree
    """

    def __init__(self, folder: str | os.PathLike[str], keep: int = 3):
        if keep < 1:
            raise ValueError(f"keep={keep}: at least 1 checkpoint is kept")
        self.folder = Path(folder)
        self.keep = keep

    def save(
        self,
        step: int,
        tree: Any,
        metadata: Mapping[str, Any] | None = None,
        exclude: str | Sequence[str] = (),
    ) -> Path:
        """Write the checkpoint of a step, then delete older ones beyond `keep`.

        On several hosts every process calls this; it returns when the file is whole.
        """
        if step < 0:
            raise ValueError(f"step={step}: steps count from 0")
        if is_main() and self.folder.exists():
            remove_leftovers(self.folder)
        path = self.path(step)
        save_tree(path, tree, metadata=metadata, exclude=exclude)
        if is_main():
            # The one just written stays even when older runs left higher numbers.
            others = [number for number in self.steps() if number != step]
            for number in others[: max(0, len(others) + 1 - self.keep)]:
                self.path(number).unlink(missing_ok=True)
        wait_for_all(f"checkpoint {path}")
        return path

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step lies, or would lie."""
        return self.folder / f"step_{step:09d}.ckpt"

    def steps(self) -> list[int]:
        """The steps that have a checkpoint, oldest first."""
        if not self.folder.is_dir():
            return []
        matches = (_FILE.fullmatch(path.name) for path in self.folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def latest(self) -> int | None:
        """The highest step that has a checkpoint."""
        return max(self.steps(), default=None)

    def restore(self, like: Any, step: int | None = None) -> Restored:
        """Load a step, or the newest sound checkpoint, into the structure of `like`.

        Without `step`, damaged files are passed over with a warning that names them.
        A checkpoint that does not fit `like` raises CheckpointMismatch in any case.
        """
        steps = self.steps()
        if step is not None:
            if step not in steps:
                raise FileNotFoundError(
                    f"no checkpoint of step {step} in {self.folder}; steps: {steps}"
                )
            return self._load(step, like)
        if not steps:
            raise FileNotFoundError(
                f"no checkpoint in {self.folder}: save one first, or check the folder"
            )
        for number in reversed(steps):
            try:
                return self._load(number, like)
            except ContainerError as error:
                warnings.warn(f"damaged checkpoint passed over: {error}", stacklevel=2)
        raise ContainerError(f"every checkpoint in {self.folder} is damaged: {steps}")

    def _load(self, step: int, like: Any) -> Restored:
        path = self.path(step)
        return Restored(step, load_tree(path, like), read_header(path)["metadata"])
