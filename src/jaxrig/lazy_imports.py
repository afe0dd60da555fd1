"""Packages whose names are loaded on first use."""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def lazy_attributes(package: str, file: str) -> Callable[[str], Any]:
    """Return a `__getattr__` that imports what the `TYPE_CHECKING` block names.

    The block is what type checkers and editors read; to take the names from it leaves
    one list of them instead of two that must agree (as `lazy_loader` does with stubs).
    """
    homes: dict[str, str] = {}

    def load(name: str) -> Any:
        if not homes:
            homes.update(_names_in_block(Path(file)))
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes[name] == package:  # a module of the package itself
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(homes[name]), name)

    return load


def _names_in_block(path: Path) -> dict[str, str]:
    blocks = [
        node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    return {
        name.name: node.module or ""
        for block in blocks
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
