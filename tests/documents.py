"""The users' documents: their blocks, and how one is run as its reader would."""

import builtins
import os
import re
import symtable
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from document_accounts import CORRECTIONS, IMPORTED, OUTLINES

SEEDS = Path(
    os.environ.get("JAXRIG_SEEDS", Path(__file__).parents[2] / "shared" / "seeds")
)
FENCE = re.compile(r"^ *```(\w*)\s*$")
HEADING = re.compile(r"^(?:#+ (.*)|\*\*(\d+\. .*)\*\*)$")
MARKS = re.compile(r"^(?:\W|\d+\.)+")  # emoji and numbers in front of a heading


@dataclass(frozen=True)
class Block:
    """A fenced block, called by the heading above it."""

    document: str
    language: str
    heading: str
    text: str


def present() -> list[str]:
    """The numbers of the documents that are here."""
    return sorted(path.name[:3] for path in SEEDS.glob("[0-9][0-9][0-9]_*.txt"))


def text_of(number: str) -> str:
    (page,) = SEEDS.glob(f"{number}_*.txt")
    return page.read_text(encoding="utf-8")


def title(number: str) -> str:
    return text_of(number).partition("\n")[0].lstrip("# ")


def blocks_of(number: str) -> list[Block]:
    """Every fenced block, in order; a heading met again gets a number."""
    found, times = [], Counter()
    for heading, language, text in _fenced(text_of(number).splitlines()):
        times[heading] += 1
        name = heading if times[heading] == 1 else f"{heading} ({times[heading]})"
        found.append(Block(number, language or "text", name, text))
    return found


def _fenced(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    heading, language, inside = "", None, []
    for line in lines:
        fence = FENCE.match(line)
        if fence and language is None:
            language, inside = fence[1], []
        elif fence:
            yield heading, str(language), textwrap.dedent("\n".join(inside)) + "\n"
            language = None
        elif language is not None:
            inside.append(line)
        elif above := HEADING.match(line):
            heading = MARKS.sub("", above[1] or above[2])


def python_of(number: str) -> list[Block]:
    return [block for block in blocks_of(number) if block.language == "python"]


def prose_of(number: str) -> str:
    """The document without its blocks."""
    return re.sub(r"^ *```\w*\n.*?^ *```$", "", text_of(number), flags=re.M | re.S)


def corrected(block: Block) -> str:
    """The text that runs: as written, or with the corrections listed for it."""
    text = block.text
    for correction in CORRECTIONS:
        if (correction.document, correction.block) == (block.document, block.heading):
            assert correction.old in text, f"a stale correction: {correction}"
            text = text.replace(correction.old, correction.new)
    return text


def coverage(number: str) -> dict[str, int]:
    """How many Python blocks run as written, corrected, or have nothing to run."""
    blocks = python_of(number)
    outlines = sum((number, block.heading) in OUTLINES for block in blocks)
    changed = sum(corrected(block) != block.text for block in blocks)
    plain = len(blocks) - changed - outlines
    return {
        **{"blocks": len(blocks), "as written": plain},
        **{"corrected": changed, "outlines": outlines},
    }


def free_names(number: str) -> set[str]:
    """What the blocks use and neither they nor an earlier block defines."""
    bound, free = {*vars(builtins), "__name__"}, set()
    for block in python_of(number):
        table = symtable.symtable(corrected(block), block.heading, "exec")
        symbols = table.get_symbols()
        bound |= {s.get_name() for s in symbols if s.is_assigned() or s.is_imported()}
        free |= _globals(table) - bound
    return free


def _globals(table: symtable.SymbolTable) -> set[str]:
    top = table.get_type() == "module"
    used = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (top or symbol.is_global())
    }
    return used.union(*(_globals(child) for child in table.get_children()))


def imported(number: str) -> dict[str, Any]:
    """What the document uses of a package without saying so."""
    names: dict[str, Any] = {"__builtins__": builtins}
    for line in import_lines(number):
        exec(line, names)
    return {name: value for name, value in names.items() if name != "__builtins__"}


def import_lines(number: str) -> list[str]:
    """The import statements that the document leaves out."""
    return [
        f"{f'from {module} ' if module else ''}import {', '.join(some)}"
        for module, some in IMPORTED[number].items()
    ]


@dataclass
class Guide:
    """What a document's reader has, checks by a marker in the block, what is printed,
    and smaller things in the place of what the document imports.
    """

    names: dict[str, Any]
    checks: Mapping[str, Callable[..., object]] = field(default_factory=dict)
    said: tuple[str, ...] = ()
    stand_ins: dict[str, Any] = field(default_factory=dict)


def run(number: str, guide: Guide) -> dict[str, Any]:
    """Run every Python block in one namespace, each with its check."""
    given = imported(number)
    assert {*given, *guide.names} == free_names(number), "names that nobody gives"
    assert set(guide.stand_ins) <= set(given), "a stand-in for nothing"
    names = {"__name__": f"document_{number}", **given, **guide.names}
    names.update(guide.stand_ins)
    checked = set()
    for block in python_of(number):
        kept = {name: names[name] for name in OUTLINES.get((number, block.heading), ())}
        code = compile(corrected(block), f"document {number}, {block.heading}", "exec")
        exec(code, names)
        names.update(kept)
        for marker, check in guide.checks.items():
            if marker in block.text:
                check(names)
                checked.add(marker)
    assert checked == set(guide.checks), "a check without its block"
    return names
