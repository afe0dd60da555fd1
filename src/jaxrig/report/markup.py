"""Text into markup: user words can never become tags, attributes or broken XML."""

import html
import re

# Control characters, lone surrogates and noncharacters have no place in XML.
_UNPRINTABLE = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
)
_CODE = re.compile(r"`([^`\n]+)`")
_BLANK_LINES = re.compile(r"\n[^\S\n]*\n\s*")


def escape(text: str) -> str:
    """Text as it may stand between tags or inside a quoted attribute."""
    return html.escape(_UNPRINTABLE.sub("\ufffd", text), quote=True)


def inline(text: str) -> str:
    """Escaped text in which words between backticks are set as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def paragraphs(text: str) -> str:
    """Escaped text as paragraphs, split where a line is blank."""
    lines = text.replace("\r\n", "\n").strip()
    return "\n".join(f"<p>{inline(part)}</p>" for part in _BLANK_LINES.split(lines))


def check_string(value: object, field: str) -> None:
    """Raise TypeError unless the value is a string."""
    if not isinstance(value, str):
        raise TypeError(f"{field} is {value!r}: it must be a string")
