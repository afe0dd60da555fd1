"""Names that users write: known ones pass, an unknown one hears which was meant."""

import difflib
from collections.abc import Collection, Mapping
from typing import Any


def known_only(
    given: Mapping[str, Any], known: Collection[str], what: str
) -> dict[str, Any]:
    """The mapping as a dict; TypeError names the nearest of the known names.

    >>> known_only({"dt": 1}, ("dt", "n"), "option")
    {'dt': 1}
    """
    for name in given:
        if name not in known:
            raise TypeError(f"no {what} {name!r}; {nearest(name, known)}")
    return dict(given)


def nearest(name: str, known: Collection[str]) -> str:
    """What to write instead of a name nobody knows."""
    if not known:
        return "there is nothing to choose from"
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)[0]
    return f"did you mean {close!r}? There are: {', '.join(known)}"
