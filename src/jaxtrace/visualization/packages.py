"""Optional packages, looked up on use; the error says which and how to get it."""

import importlib
from typing import Any

from jaxrig.machine import install_command


def load_package(module: str, purpose: str) -> Any:
    """Import a module that a kind of picture needs.

    RuntimeError names it where it is missing, with the command that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise RuntimeError(
            f"{purpose} need {module.partition('.')[0]}, which is not installed: "
            f"{install_command('viz')}"
        ) from error
