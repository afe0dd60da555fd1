"""Files a command is to write, tried before the work and not after it."""

import os
from pathlib import Path

import typer


def check_writable(path: Path | None) -> None:
    """Refuse a file that cannot be written; its folder is made; None is no file."""
    if path is None:
        return
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder, not a file")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"cannot make {path.parent}: {error}") from error
    if not os.access(path.parent, os.W_OK):
        raise typer.BadParameter(f"cannot write to {path.parent}")
