"""Compile once and prove it: counted traces, errors that name the argument at fault.

Arrays are traced and everything else in the arguments is static, as with
`equinox.filter_jit`; a call costs little more than one of plain `jax.jit`.
"""

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Generic, Literal, NamedTuple, ParamSpec, TypeVar, overload

import jax
from jax.core import Tracer

from jaxrig import checks
from jaxrig.signature import (
    ARRAY_TYPES,
    Signature,
    StaticLeaf,
    changes,
    signature_of,
)
from jaxrig.static import is_hashable

P = ParamSpec("P")
R = TypeVar("R")

TRACING_ERRORS = (
    jax.errors.ConcretizationTypeError,  # bool(), int() or a shape of a traced value
    jax.errors.TracerArrayConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)

_TRACED = object()


class RetraceError(RuntimeError):
    """A function that was to be compiled once met arguments of another kind."""


class _Program(NamedTuple):
    """The static half of a call, which JAX makes part of its compilation key."""

    donated: Any  # tree structures, which have no public type
    kept: Any
    leaves: tuple[Any, ...]  # _TRACED, or (type, value): True, 1 and 1.0 differ
    mode: str


class CompiledOnce(Generic[P, R]):
    """A compiled function that counts its traces; made by `compile_once`."""

    def __init__(
        self, function: Callable[P, R], max_traces: int | None, donate: Sequence[str]
    ):
        if max_traces is not None and max_traces < 1:
            raise ValueError(f"max_traces is {max_traces}: allow at least one trace")
        functools.update_wrapper(self, function)
        self.max_traces = max_traces
        self.trace_count = 0
        self._function: Callable[..., R] = function
        self._name = getattr(function, "__qualname__", type(function).__name__)
        self._parameters = inspect.signature(function)
        self._donated = self._positions(donate)
        self._seen: dict[str, list[Signature]] = {}
        self._raising: set[_Program] = set()

        def traced(donated: list[Any], kept: list[Any], program: _Program) -> R:
            return self._trace([*donated, *kept], program)

        traced.__name__ = traced.__qualname__ = self._name
        self._jit = jax.jit(traced, static_argnums=2, donate_argnums=0)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run, compiling first if no call of this signature came before."""
        donated, kept, program = self._split(args, kwargs)
        try:
            result = self._jit(donated, kept, program)
            if self._raising and program in self._raising:
                self._wait(result)
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            message = checks.message_of(error)
            if message is None:
                raise
            raise checks.CheckError(message) from None
        return result

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Lowered:
        """Trace and lower for these arguments, which may be mere shapes."""
        return self._jit.lower(*self._split(args, kwargs))

    def _positions(self, donate: Sequence[str]) -> list[int]:
        names = list(self._parameters.parameters)
        unknown = [name for name in donate if name not in names]
        if unknown:
            raise ValueError(f"{self._name} has no argument {unknown[0]!r} to donate")
        return sorted(names.index(name) for name in donate)

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]):
        """Arrays to donate, arrays to keep, and everything that is not an array."""
        given, others, named = [], args, kwargs
        if self._donated:
            bound = self._parameters.bind(*args, **kwargs)
            given = [bound.args[i] for i in self._donated]
            others = tuple(
                x for i, x in enumerate(bound.args) if i not in self._donated
            )
            named = bound.kwargs
        donated, donated_tree = jax.tree.flatten(given)
        kept, kept_tree = jax.tree.flatten((others, named))
        static = [
            _TRACED if isinstance(x, ARRAY_TYPES) else (type(x), x)
            for x in [*donated, *kept]
        ]
        mode = checks.get_error_mode()
        program = _Program(donated_tree, kept_tree, tuple(static), mode)
        if not is_hashable(program):
            raise TypeError(self._unhashable(args, kwargs))
        return (
            [x for x in donated if isinstance(x, ARRAY_TYPES)],
            [x for x in kept if isinstance(x, ARRAY_TYPES)],
            program,
        )

    def _trace(self, arrays: list[Any], program: _Program) -> R:
        rest = iter(arrays)
        leaves = [next(rest) if x is _TRACED else x[1] for x in program.leaves]
        count = program.donated.num_leaves
        args, kwargs = jax.tree.unflatten(program.kept, leaves[count:])
        args = list(args)
        donated = jax.tree.unflatten(program.donated, leaves[:count])
        for position, value in zip(self._donated, donated, strict=True):
            args.insert(position, value)
        self._count(signature_of(self._parameters, tuple(args), kwargs), program.mode)
        before = checks.raising_checks_traced
        result = self._function(*args, **kwargs)
        if checks.raising_checks_traced > before:
            self._raising.add(program)
        return result

    def _wait(self, result: Any) -> None:
        """Let a failed check surface here, not where the result is first used."""
        if any(isinstance(x, Tracer) for x in jax.tree.leaves(result)):
            checks.note_raising_check()  # part of a larger program: its caller waits
        else:
            jax.block_until_ready(result)

    def _count(self, signature: Signature, mode: str) -> None:
        # A signature seen before is traced again only when JAX dropped its caches,
        # which no argument caused; a new error mode has an allowance of its own.
        seen = self._seen.setdefault(mode, [])
        if signature not in seen:
            if self.max_traces is not None and len(seen) >= self.max_traces:
                raise RetraceError(self._explain(seen, signature))
            seen.append(signature)
        self.trace_count += 1

    def _explain(self, seen: list[Signature], signature: Signature) -> str:
        nearest = min((changes(old, signature) for old in seen), key=len)
        times = "once" if self.max_traces == 1 else f"{self.max_traces} times"
        differences = "\n".join(f"  {line}" for line in nearest)
        return (
            f"{self._name} may be compiled {times}, and this call would compile it "
            f"again. What changed:\n{differences}\n"
            "If these calls are meant, allow them: compile_once(max_traces=...)."
        )

    def _unhashable(self, args: Sequence[Any], kwargs: dict[str, Any]) -> str:
        signature = signature_of(self._parameters, tuple(args), kwargs)
        path, leaf = next(
            (path, leaf)
            for path, leaf in signature.leaves.items()
            if isinstance(leaf, StaticLeaf) and not is_hashable(leaf.value)
        )
        return (
            f"{self._name}: {path} is a {leaf.type.__name__}, neither an array nor "
            "hashable, so it can be neither traced nor static. Pass an array, or "
            "freeze it with jaxrig.static.freeze."
        )


@overload
def compile_once(
    function: Callable[P, R], *, max_traces: int | None = 1, donate: Sequence[str] = ()
) -> CompiledOnce[P, R]: ...
@overload
def compile_once(
    function: None = None, *, max_traces: int | None = 1, donate: Sequence[str] = ()
) -> Callable[[Callable[P, R]], CompiledOnce[P, R]]: ...
def compile_once(
    function: Callable | None = None,
    *,
    max_traces: int | None = 1,
    donate: Sequence[str] = (),
) -> Any:
    """Compile a function and refuse to compile it again for other arguments.

    Past `max_traces` different signatures (None: no limit) a call raises
    `RetraceError`, which names the argument, what it was, what it is, and the remedy.
    `donate` names arguments whose buffers the result may reuse.

    >>> import jax.numpy as jnp
    >>> double = compile_once(lambda x: 2 * x)
    >>> double(jnp.ones(3)).tolist(), double.trace_count
    ([2.0, 2.0, 2.0], 1)
    """
    if function is None:
        return lambda f: CompiledOnce(f, max_traces, donate)
    return CompiledOnce(function, max_traces, donate)


class Adaptive(Generic[P, R]):
    """A function compiled when it traces and run eagerly when not; see `adaptive`."""

    def __init__(self, function: Callable[P, R]):
        functools.update_wrapper(self, function)
        self.path: Literal["compiled", "eager"] | None = None
        self.reason: str | None = None
        self._function = function
        self._name = getattr(function, "__qualname__", type(function).__name__)
        self._compiled = CompiledOnce(function, None, ())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run, compiled unless an earlier or this call showed that it cannot be."""
        if self.path != "eager":
            try:
                result = self._compiled(*args, **kwargs)
            except TRACING_ERRORS as error:
                self.path = "eager"
                self.reason = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                warnings.warn(
                    f"{self._name} does not trace and runs eagerly from "
                    f"now on, many times slower. {self.reason}",
                    stacklevel=2,
                )
            else:
                self.path = "compiled"
                return result
        return self._function(*args, **kwargs)


def adaptive(function: Callable[P, R]) -> Adaptive[P, R]:
    """Compile a function; where JAX cannot trace it, run it eagerly and say so once.

    Only JAX's own tracing errors count (`TRACING_ERRORS`); any other error is raised.
    After a call, `path` says which way ran and `reason` why it was not compiled.
    """
    return Adaptive(function)
