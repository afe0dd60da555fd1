"""One self-contained HTML page from text, tables, figures and players."""

from jaxrig.report.charts import bar_chart, line_chart
from jaxrig.report.images import png_from_array
from jaxrig.report.page import (
    Beside,
    Code,
    Figure,
    Fold,
    Heading,
    Part,
    Report,
    Section,
    Table,
    Text,
)
from jaxrig.report.players import Axis, ColorBar, Player, Points

__all__ = [
    "Axis",
    "Beside",
    "Code",
    "ColorBar",
    "Figure",
    "Fold",
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
