"""Generate the tables of docs/documents.md; run this file to update the page."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from document_accounts import CORRECTIONS, OTHERS, OUTLINES, Correction
from documents import coverage, free_names, import_lines, imported, present, title

PAGE = Path(__file__).parent.parent / "docs" / "documents.md"
START = "## Coverage\n"


def table(head: list[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(str(x) for x in line)} |\n" for line in lines)


def change(correction: Correction) -> str:
    """Return the old text and its replacement on one line."""
    old, new = correction.old.strip(), correction.new.strip()
    if new.startswith(old) and "\n" in new:
        lines = [line.strip() for line in new.removeprefix(old).strip().splitlines()]
        return f"`{old}`: add `{'; '.join(lines)}`"
    return f"`{old}`: `{new}`"


def coverage_table() -> str:
    counts = {number: coverage(number) for number in present()}
    rows = [[n, title(n), *counts[n].values()] for n in counts]
    names = list(next(iter(counts.values())))
    total = [sum(count[name] for count in counts.values()) for name in names]
    return table(["document", "title", *names], [*rows, ["all", "", *total]])


def parts() -> Iterator[str]:
    """Yield the page from its first table on."""
    listed = lambda names: ", ".join(f"`{name}`" for name in names)
    yield START
    yield coverage_table()
    yield "## Corrected\n"
    head = ["document", "block", "text and its replacement", "reason"]
    yield table(head, [[c.document, c.block, change(c), c.reason] for c in CORRECTIONS])
    yield "## Outlines\n"
    yield "Functions whose bodies are an ellipsis run as written and do nothing. The"
    yield "names they hide are restored.\n"
    head = ["document", "block", "names"]
    yield table(head, [[*at, listed(names)] for at, names in OUTLINES.items()])
    yield "## Blocks that are not Python\n"
    head = ["document", "block", "how it is handled"]
    yield table(head, [[*at, what] for at, what in OTHERS.items()])
    yield "## Imports that a document leaves out\n"
    rows = [[n, f"`{line}`"] for n in present() for line in import_lines(n)]
    yield table(["document", "import"], rows)
    yield "## Names that the reader defines\n"
    given = {n: sorted(free_names(n) - set(imported(n))) for n in present()}
    yield table(["document", "names"], [[n, listed(given[n])] for n in given])


def tables() -> str:
    return "\n".join(parts())


if __name__ == "__main__":
    words, _, _ = PAGE.read_text().partition(START)
    PAGE.write_text(words + tables())
