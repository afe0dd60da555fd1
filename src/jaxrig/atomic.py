"""Files that are either the previous whole version or the new one, never a part, and
a lock for those that several processes change.
"""

import fcntl
import io
import os
import secrets
import shutil
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path


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
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(8)}.writing")
    try:
        with _create_locked(temporary) as file:
            yield file
            # The bytes before the name: after a power cut the new name could otherwise
            # belong to an empty file. The name itself is stored in the folder.
            file.flush()
            os.fsync(file.fileno())
            os.replace(temporary, path)  # while locked, or it may pass for a leftover
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
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def remove_path(path: Path) -> None:
    """Delete a file, or a folder with all it holds; nothing if there is none."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_leftovers(folder: str | os.PathLike[str]) -> list[Path]:
    """Delete temporaries whose writer died, and return them.

    A writer holds a lock on its temporary as long as it lives. Where the file system
    has no locks, nothing is deleted.
    """
    removed = []
    for path in sorted(Path(folder).glob(".*.writing")):
        # Not ours to open, locked by its writer, or finished in this moment.
        with suppress(OSError), open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
            removed.append(path)
    return removed


def _create_locked(path: Path) -> io.BufferedIOBase:
    while True:
        file = path.open("xb")
        with suppress(OSError):  # some file systems of clusters have no locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_nlink:
            return file
        file.close()  # taken for a leftover before it was locked


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
