"""What particle tracking plugs into the front door."""

from jaxrig.systems import System
from jaxtrace.benchmarks import BENCHMARKS
from jaxtrace.cli import app
from jaxtrace.demo import trace_section

SYSTEM = System(
    "trace",
    "Particle tracking",
    demo=trace_section,
    benchmarks=BENCHMARKS,
    app=app,
)
