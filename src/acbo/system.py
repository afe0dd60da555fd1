"""What the package plugs into the command `jaxrig`; each part is loaded on use."""

from jaxrig.systems import System

SYSTEM = System(
    "causal",
    "Causal optimization",
    demo="acbo.demo:causal_section",
    benchmarks="acbo.benchmarks:BENCHMARKS",
    app="acbo.cli:app",
)
