"""One self-contained HTML page from text, tables, figures and players."""

from jaxrig.report.charts import bar_chart, line_chart
from jaxrig.report.images import png_from_array
from jaxrig.report.page import Report, Section
from jaxrig.report.parts import Code, Figure, Heading, Part, Table, Text
from jaxrig.report.players import Axis, Player, Points

__all__ = [
    "Axis",
    "Code",
    "Figure",
    "Heading",
    "Part",
    "Player",
    "Points",
    "Report",
    "Section",
    "Table",
    "Text",
    "bar_chart",
    "line_chart",
    "png_from_array",
]
