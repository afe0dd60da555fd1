"""The users' documents: their blocks, and how one is run as its reader would."""

import os
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SEEDS = Path(
    os.environ.get("JAXRIG_SEEDS", Path(__file__).parents[2] / "shared" / "seeds")
)
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def pages(number: str) -> list[Path]:
    return sorted(SEEDS.glob(f"{number}_*.txt"))


def blocks_of(number: str, language: str = "python") -> list[str]:
    (page,) = pages(number)
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(text) for _, kind, text in found if kind == language]


def title(number: str) -> str:
    """The document and how many of its blocks run: all of them."""
    if not pages(number):
        return f"{number}-absent"
    count = len(blocks_of(number))
    return f"{number}-{count}of{count}blocks"


@dataclass
class Guide:
    """A document: what its reader has defined, corrections, checks by marker."""

    names: dict[str, Any]
    corrections: list[tuple[str, str, str]] = field(default_factory=list)
    checks: dict[str, Any] = field(default_factory=dict)


def run(number: str, guide: Guide) -> dict[str, Any]:
    names = {"__name__": f"document_{number}", **guide.names}
    used, checked = set(), set()
    for position, block in enumerate(blocks_of(number)):
        text = block
        for old, new, reason in guide.corrections:
            if old in text:
                text, used = text.replace(old, new), used | {reason}
        exec(compile(text, f"document {number}, block {position + 1}", "exec"), names)
        for marker, check in guide.checks.items():
            if marker in block:
                check(names)
                checked.add(marker)
    assert used == {reason for _, _, reason in guide.corrections}, "a stale correction"
    assert checked == set(guide.checks), "a check without its block"
    return names
