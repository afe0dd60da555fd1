"""Fetching data sets by a shallow git clone; only ever when asked to."""

import dataclasses
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

TIMEOUT = 300.0  # seconds for one clone


class DatasetError(RuntimeError):
    """A data set could not be fetched; says which, why and what to do."""


@dataclass(frozen=True)
class Remote:
    """Where a data set is published, its folder here, and what it must hold."""

    url: str
    folder: str
    holds: str


REMOTES = {
    "arc-agi-1": Remote(
        "https://github.com/fchollet/ARC-AGI.git", "ARC-AGI-1", "data/training"
    ),
    "arc-agi-2": Remote(
        "https://github.com/arcprize/ARC-AGI-2.git", "ARC-AGI-2", "data/training"
    ),
    "conceptarc": Remote(
        "https://github.com/victorvikram/ConceptARC.git", "ConceptARC", "corpus"
    ),
    "miniarc": Remote(
        "https://github.com/KSB21ST/MINI-ARC.git", "MiniARC", "data/MiniARC"
    ),
}


def remotes_from(name: str, repository: str = "") -> dict[str, Remote]:
    """Return the data sets, one of them from another repository."""
    if not repository:
        return dict(REMOTES)
    plain = repository.count("/") == 1 and ":" not in repository
    url = f"https://github.com/{repository}.git" if plain else repository
    return REMOTES | {name: dataclasses.replace(REMOTES[name], url=url)}


class DatasetDownloader:
    """Fetches data sets into folders of `output_dir`; returns where they are.

    A folder that is there already is kept as it is, unless `force` asks for a fresh
    one. `progress` gets a line of text before and after each clone.
    """

    def __init__(
        self,
        output_dir: str | os.PathLike[str],
        *,
        remotes: Mapping[str, Remote] = REMOTES,
        timeout: float = TIMEOUT,
        progress: Callable[[str], None] | None = None,
    ):
        self.output_dir = Path(output_dir)
        self._remotes = remotes
        self._timeout = timeout
        self._tell = progress or (lambda line: None)

    def download_all(self, force: bool = False) -> list[Path]:
        """Fetch every data set."""
        return [self.download(name, force) for name in self._remotes]

    def download(self, name: str, force: bool = False) -> Path:
        """Fetch one data set by name."""
        if name not in self._remotes:
            known = ", ".join(self._remotes)
            raise ValueError(f"data set {name!r} is not one of: {known}")
        remote = self._remotes[name]
        target = self.output_dir / remote.folder
        if target.exists() and not force:
            self._check_content(name, remote, target)
            self._tell(f"{name}: already in {target}")
            return target
        self.output_dir.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.fetching")
        self._tell(f"{name}: cloning {remote.url}")
        try:
            self._clone(name, remote.url, temporary)
            self._check_content(name, remote, temporary)
            _take_place(temporary, target)
        finally:
            if temporary.exists():
                shutil.rmtree(temporary)
        self._tell(f"{name}: in {target}")
        return target

    def _clone(self, name: str, url: str, folder: Path) -> None:
        command = ["git", "clone", "--depth", "1", "--quiet", "--", url, str(folder)]
        # A private or misspelled address must fail, not wait for a password.
        environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
        try:
            done = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=self._timeout,
            )
        except FileNotFoundError as error:
            raise DatasetError(f"{name}: git is not installed, install it") from error
        except subprocess.TimeoutExpired as error:
            raise DatasetError(
                f"{name}: {url} took over {self._timeout:g} s: try again, or clone it "
                "yourself and give its folder as dataset_path (--path)"
            ) from error
        if done.returncode != 0:
            raise DatasetError(
                f"{name}: git could not clone {url} ({done.stderr.strip()}): check the "
                "network, or clone it and give its folder as dataset_path (--path)"
            )

    def _check_content(self, name: str, remote: Remote, folder: Path) -> None:
        if not (folder / remote.holds).is_dir():
            raise DatasetError(
                f"{name}: {folder} has no folder {remote.holds}: it is not the data "
                "set, remove it or fetch again with force"
            )


def _take_place(fresh: Path, target: Path) -> None:
    """Put a folder where another may be; that one is deleted only afterwards."""
    if not target.exists():
        os.rename(fresh, target)
        return
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.replaced")
    os.rename(target, aside)
    try:
        os.rename(fresh, target)
    except OSError:
        os.rename(aside, target)
        raise
    shutil.rmtree(aside)
