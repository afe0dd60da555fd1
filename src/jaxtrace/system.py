"""What the package plugs into the command `jaxrig`; each part is loaded on use."""

from jaxrig.systems import System

SYSTEM = System(
    "trace",
    "Particle tracking",
    demo="jaxtrace.demo:trace_section",
    benchmarks="jaxtrace.benchmarks:BENCHMARKS",
    app="jaxtrace.cli:app",
)
