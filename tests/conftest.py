"""Test-wide JAX settings: eight CPU devices, no silent promotion, a compile cache."""

import os
from pathlib import Path

import hypothesis
import jax
import pytest

MAX_MAPS = 8_000  # memory maps of a process: three or four for each program
CACHE = Path(__file__).parent.parent / ".cache" / "xla"

# Tests compile much and compute little: half the compile time is LLVM's optimizing.
# (Without the fusion emitters another third would go, and with it that results do not
# depend on the batch, bit for bit.)
os.environ["XLA_FLAGS"] = " ".join(
    [os.environ.get("XLA_FLAGS", ""), "--xla_backend_optimization_level=0"]
).strip()

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)

# The same examples every time, and no deadline: compiling takes what it takes.
hypothesis.settings.register_profile("jaxrig", derandomize=True, deadline=None)
hypothesis.settings.load_profile("jaxrig")


@pytest.fixture(scope="module", autouse=True)
def few_programs():
    """Drop compiled programs between modules once there are many.

    A process that holds many thousands of them has crashed inside XLA's compiler, and
    their memory is only returned this way. What is needed again comes from the disk.
    """
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > MAX_MAPS:
        jax.clear_caches()


@pytest.fixture
def key():
    return jax.random.key(0)


def pytest_terminal_summary(terminalreporter):
    """Say how much of the users' documents ran."""
    reports = terminalreporter.getreports("passed")
    found = [
        text for r in reports for name, text in r.user_properties if name == "document"
    ]
    if found:
        terminalreporter.section("blocks of the users' documents")
        terminalreporter.write("".join(f"{line}\n" for line in sorted(found)))
