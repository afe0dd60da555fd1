"""Look into the groups of a report page."""

from collections.abc import Iterable, Iterator

from jaxrig.report import Beside, Fold, Part


def every_part(parts: Iterable[Part]) -> Iterator[Part]:
    """Return all parts, those inside of groups too, in their order."""
    for part in parts:
        if isinstance(part, Beside):
            yield from every_part([part.picture])
        if isinstance(part, Beside | Fold):
            yield from every_part(part.parts)
        else:
            yield part
