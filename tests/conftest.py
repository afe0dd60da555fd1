"""Test-wide JAX settings: eight CPU devices, no silent promotion, a compile cache."""

import ctypes
import gc
import os
import sys
from pathlib import Path

import hypothesis
import jax
import pytest

from jaxrig.memory import host_memory

MAX_RESIDENT = 4 * 2**30  # bytes of a test process
LIBC = ctypes.CDLL(None)
CACHE = Path(__file__).parent.parent / ".cache" / "xla"

jax.config.update("jax_num_cpu_devices", 8)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
jax.config.update("jax_compilation_cache_dir", str(CACHE))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
# Programs need not know the lines that made them, deep below those of pytest.
jax.config.update("jax_traceback_in_locations_limit", 0)

# The same examples every time, and no deadline: compiling takes what it takes.
hypothesis.settings.register_profile("jaxrig", derandomize=True, deadline=None)
hypothesis.settings.load_profile("jaxrig")


def pytest_configure(config):
    """Choose how XLA compiles, which is most of what the tests spend time on.

    Half of a compilation is LLVM's optimizing, which tests do not need. Half of the
    rest are the fusion emitters. Without them the last bit of a result may depend on
    the number of rows beside it, so tests marked `bitwise` run apart, with them.
    """
    flags = [os.environ.get("XLA_FLAGS", ""), "--xla_backend_optimization_level=0"]
    flags.append("--xla_cpu_parallel_codegen_split_count=1")
    if "not bitwise" in config.option.markexpr:
        flags.append("--xla_cpu_use_fusion_emitters=false")
    os.environ["XLA_FLAGS"] = " ".join(flags).strip()


def pytest_collection_finish(session):
    """Look for garbage less often: what is imported by now stays, and it is much."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="module", autouse=True)
def little_memory():
    """Drop compiled programs between modules once they fill the memory.

    With 7 GB of them a process has aborted inside XLA's compiler. What is needed again
    comes from the disk. The C library keeps what is freed unless it is asked to return
    it: the process would stay as large, and every later module drop its programs too.
    """
    yield
    if host_memory().resident > MAX_RESIDENT:
        jax.clear_caches()
        if hasattr(LIBC, "malloc_trim"):  # of the GNU C library
            LIBC.malloc_trim(0)


@pytest.fixture(autouse=True)
def no_subset_left():
    """Forget the subsets of ARC data sets that a test registers."""
    yield
    splits = sys.modules.get("jaxarc.tasks.splits")
    for names in splits._subsets.values() if splits else ():
        names.clear()


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
