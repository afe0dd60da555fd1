"""How notebooks show our objects: parts of a report, in a frame of their own."""

import html
from importlib import import_module
from typing import ClassVar

# The page inside tells its frame how tall it is, also once its players are drawn.
_FRAME = (
    '<iframe srcdoc="{page}" title="{title}" loading="lazy" '
    'style="width:100%;border:0;height:{height}px" '
    'onload="const frame = this, body = this.contentDocument.body; '
    "new ResizeObserver(() => {{ frame.style.height = `${{body.scrollHeight + 20}}px`; "
    '}}).observe(body)">'
    "</iframe>"
)
HEIGHT = 320  # before the page has told its own


class Shown:
    """An object that notebooks show as the parts of a report.

    `shown_by` names the function that makes them, `package.module:function`: drawing
    stands above the objects it draws, and is imported when a notebook asks.
    """

    shown_by: ClassVar[str]

    def _repr_html_(self) -> str:
        from jaxrig.report import Report, Section

        module, _, name = self.shown_by.partition(":")
        section: Section = getattr(import_module(module), name)(self)
        report = Report(section.title, compact=True)
        report.add(section)
        page = html.escape(report.html(), quote=True)
        title = html.escape(section.title, quote=True)
        return _FRAME.format(page=page, title=title, height=HEIGHT)
