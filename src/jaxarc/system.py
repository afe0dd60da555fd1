"""What the ARC environments plug into the front door."""

from jaxarc.benchmarks import BENCHMARKS
from jaxarc.cli import app
from jaxarc.demo import arc_section
from jaxrig.systems import System

SYSTEM = System(
    "arc",
    "ARC environments",
    demo=arc_section,
    benchmarks=BENCHMARKS,
    app=app,
)
