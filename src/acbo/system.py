"""What causal optimization plugs into the front door."""

from acbo.benchmarks import BENCHMARKS
from acbo.cli import app
from acbo.demo import causal_section
from jaxrig.systems import System

SYSTEM = System(
    "causal",
    "Causal optimization",
    demo=causal_section,
    benchmarks=BENCHMARKS,
    app=app,
)
