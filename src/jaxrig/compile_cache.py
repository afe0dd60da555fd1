"""What JAX compiles and how long it takes, and the cache that spares it next time."""

import contextlib
import glob
import os
import re
import sys
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

_COMPILED = "/jax/core/compile/backend_compile_duration"
_EVENTS = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    _COMPILED,
)


_FOLDER = "jax_compilation_cache_dir"
_UNREADABLE = re.compile("Error reading persistent compilation cache entry for '(.+?)'")


@dataclass(frozen=True)
class Compilation:
    """One program that XLA compiled, or took from the persistent cache."""

    name: str  # "?" on JAX versions that do not say
    seconds: float


@dataclass(eq=False)  # an open log is itself, not one with equal counts
class CompilationLog:
    """Every compilation in a block, and the seconds of tracing, lowering, compiling."""

    compilations: list[Compilation] = field(default_factory=list)
    seconds: float = 0.0


_open_logs: list[CompilationLog] = []
_listening = False


def _on_duration(event: str, duration_secs: float, **details: object) -> None:
    for log in _open_logs if event in _EVENTS else ():
        log.seconds += duration_secs
        if event == _COMPILED:
            name = str(details.get("fun_name", "?"))
            log.compilations.append(Compilation(name, duration_secs))


@contextlib.contextmanager
def record_compilations() -> Generator[CompilationLog, None, None]:
    """Record every compilation in a block, whoever caused it.

    >>> import jax, jax.numpy as jnp
    >>> with record_compilations() as log:
    ...     _ = jax.jit(lambda x: jnp.sin(x) + 1)(jnp.ones(3))
    >>> len(log.compilations) >= 1
    True
    """
    global _listening
    import jax

    if not _listening:  # one listener for the life of the process, on first use
        jax.monitoring.register_event_duration_secs_listener(_on_duration)
        _listening = True
    log = CompilationLog()
    _open_logs.append(log)
    try:
        yield log
    finally:
        _open_logs.remove(log)


def cache_folder() -> Path:
    """Return the folder of caches: `JAXRIG_CACHE`, or one in the user's own."""
    if chosen := os.environ.get("JAXRIG_CACHE"):
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "jaxrig"


def forbid_caches() -> None:
    """Keep nothing on disk for a later start, in this process and those it starts."""
    os.environ["JAXRIG_NO_CACHE"] = "1"


def caches_allowed() -> bool:
    """Return whether `forbid_caches` was not called."""
    return not os.environ.get("JAXRIG_NO_CACHE")


def keep_compilations(folder: Path | None = None) -> Path:
    """Keep compiled programs on disk, so that the next process need not compile them.

    A folder already chosen through JAX's own setting is left as it is. Does not import
    JAX: before that is imported, its settings are environment variables.
    """
    chosen = _chosen_folder()
    if chosen is None:
        jax = sys.modules.get("jax")
        chosen = str(folder or cache_folder() / "xla")
        # Every program, not only those that take a second, JAX's default: a command
        # runs dozens of operations one by one, 50 ms to compile and 5 ms to read each.
        wanted = {_FOLDER: chosen, "jax_persistent_cache_min_compile_time_secs": 0.0}
        for setting, value in wanted.items():
            if jax:
                jax.config.update(setting, value)
            else:
                os.environ[setting.upper()] = str(value)
    return Path(chosen)


def _chosen_folder() -> str | None:
    """Return the folder that JAX is set to keep compiled programs in."""
    jax = sys.modules.get("jax")
    return jax.config.values[_FOLDER] if jax else os.environ.get(_FOLDER.upper())


def mend_cache(warning: str) -> str | None:
    """Delete what a warning of JAX says it cannot read from its cache.

    A process that is killed while it writes leaves half an entry. JAX warns of it, does
    not replace it, and so compiles that program at every start. JAX warns before it
    compiles: once the entry is gone, the program is stored again. Returns what was
    done, or None for any other warning.
    """
    found, folder = _UNREADABLE.match(warning), _chosen_folder()
    if found is None or folder is None:
        return None
    # A file is called by the program and a hash that the warning leaves out: all that
    # have the name go. The sound ones among them are compiled once more.
    try:
        for path in Path(folder).glob(f"{glob.escape(found[1])}-*-cache"):
            path.unlink(missing_ok=True)
    except OSError as error:  # a folder of somebody else, say
        return f"{warning}; the entry cannot be deleted: {error}"
    return f"deleted a damaged entry of the compile cache in {folder}: {found[1]}"
