"""Files that are either the previous whole version or the new one, never a part, and
a lock for those that several processes change.
"""

import io
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

LEFTOVER_AGE = 3600.0  # seconds without a byte written after which a writer is dead

_TEMPORARY = re.compile(
    r"\..+\.(?P<host>[^.]*)\.(?P<process>\d+)\.[0-9a-f]{8}\.writing", re.DOTALL
)


@contextmanager
def atomic_write(
    path: str | os.PathLike[str],
) -> Generator[io.BufferedIOBase, None, None]:
    """Open a temporary beside `path` that takes its place when the block succeeds.

    The bytes and the folder entry are on the disk when the block has ended. After an
    error the old file is untouched and the temporary is removed.

        with atomic_write("table.bin") as file:
            file.write(b"...")
    """
    path = Path(path)
    # The name is cut, so that the temporary's is within a file system's limit too.
    tag = f"{_host()}.{os.getpid()}.{secrets.token_hex(4)}"
    temporary = path.with_name(f".{path.name[:40]}.{tag}.writing")
    try:
        with open(temporary, "xb") as file:
            yield file
            # The bytes before the name: after a power cut the new name could otherwise
            # belong to an empty file. The name itself is stored in the folder.
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_file(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a whole file or nothing; text as UTF-8, missing folders are made."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


@contextmanager
def locked(path: str | os.PathLike[str]) -> Generator[None, None, None]:
    """Hold a lock on a file, made if absent, against every process of this machine.

    Others wait. The system releases the lock of a process that dies.
    """
    with open(path, "a+b") as file:
        if os.name == "posix":
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
            yield
            return
        import msvcrt  # Windows locks ranges of bytes, and gives up after ten seconds

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)  # pyright: ignore
        try:
            yield
        finally:
            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)  # pyright: ignore


def remove_path(path: Path) -> None:
    """Delete a file, or a folder with all it holds; nothing if there is none."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_leftovers(folder: str | os.PathLike[str]) -> list[Path]:
    """Delete temporaries whose writer died, and return them.

    A writer is dead when its process is gone from this host, or, where that cannot be
    asked, when its file has not changed for `LEFTOVER_AGE` seconds.
    """
    removed = []
    for path in Path(folder).glob(".*.writing"):
        match = _TEMPORARY.fullmatch(path.name)
        if match and _is_dead(path, match["host"], int(match["process"])):
            path.unlink(missing_ok=True)
            removed.append(path)
    return sorted(removed)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9-]", "-", socket.gethostname())[:32]


def _is_dead(path: Path, host: str, process: int) -> bool:
    # Signal 0 only asks, except on Windows, where it would end the process.
    if host == _host() and os.name == "posix" and not _is_running(process):
        return True
    try:
        return time.time() - path.stat().st_mtime > LEFTOVER_AGE
    except FileNotFoundError:  # its writer has just finished
        return False


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it runs, and belongs to somebody else
        return True
    return True


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # other systems cannot open a folder
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
