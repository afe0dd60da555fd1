"""Compile once and prove it: counted traces, errors that name the argument at fault.

Arrays are traced and everything else in the arguments is static, as with
`equinox.filter_jit`; a call costs little more than one of plain `jax.jit`.
"""

import functools
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, ParamSpec, TypeVar, overload

import equinox as eqx
import equinox.internal as eqxi
import jax
from jax.core import Tracer

from jaxrig import checks
from jaxrig.static_arguments import (
    ARRAY_TYPES,
    Signature,
    StaticLeaf,
    changes,
    is_hashable,
    signature_of,
)

P = ParamSpec("P")
R = TypeVar("R")

TRACING_ERRORS = (
    jax.errors.ConcretizationTypeError,  # bool(), int(), float() of a traced value
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)

_TRACED = object()


def _split_result(result: Any) -> tuple[Any, Any]:
    """Return what JAX can return, and the rest as structure; None if all are arrays."""
    if all(isinstance(x, ARRAY_TYPES) for x in jax.tree.leaves(result)):
        return result, None
    arrays, rest = eqx.partition(result, lambda x: isinstance(x, ARRAY_TYPES))
    return arrays, eqxi.Static(rest)


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
        self,
        function: Callable[P, R],
        max_traces: int | None,
        donate: Sequence[str],
        compiler_options: Mapping[str, Any] | None = None,
    ):
        if max_traces is not None and max_traces < 1:
            raise ValueError(f"max_traces is {max_traces}: allow at least one trace")
        self._binds = not isinstance(function, staticmethod)
        if isinstance(function, staticmethod):
            function = function.__func__
        functools.update_wrapper(self, function)
        self.max_traces = max_traces
        self.trace_count = 0
        self._function: Callable[..., R] = function
        self._name = getattr(function, "__qualname__", type(function).__name__)
        self._parameters = inspect.signature(function)
        self._positions = len(self._parameters.parameters)
        self._donate = tuple(donate)
        unknown = [n for n in donate if n not in self._parameters.parameters]
        if unknown:
            raise ValueError(f"{self._name} has no argument {unknown[0]!r} to donate")
        self._seen: dict[str, list[Signature]] = {}
        self._can_fail: dict[_Program, tuple[int, bool]] = {}

        def traced(donated: list[Any], kept: list[Any], program: _Program):
            return _split_result(self._trace([*donated, *kept], program))

        traced.__name__ = traced.__qualname__ = self._name
        options = dict(compiler_options or {}) or None
        self._jit = jax.jit(
            traced, static_argnums=2, donate_argnums=0, compiler_options=options
        )

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run, compiling first if no call of this signature came before."""
        call = self._split(args, kwargs)
        try:
            with checks.recording():
                result, rest = self._jit(*call)
                if self._fails_late(call):
                    jax.block_until_ready(result)
                    self._raise(checks.take_failure())
        except (jax.errors.JaxRuntimeError, ValueError) as error:
            self._raise(checks.message_of(error))
            raise
        return result if rest is None else eqx.combine(result, rest.value)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None or not self._binds else _Bound(self, instance)

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> jax.stages.Lowered:
        """Trace and lower for these arguments, which may be mere shapes.

        Looking does not count: this uses up no allowance.
        """
        allowed, self.max_traces = self.max_traces, None
        try:
            with checks.recording():
                return self._jit.lower(*self._split(args, kwargs))
        finally:
            self.max_traces = allowed

    def _split(self, args: tuple[Any, ...], kwargs: dict[str, Any]):
        """Return arrays to donate, arrays to keep, and what is not an array."""
        given: dict[str, Any] = {}
        others: Any = (args, kwargs)
        if self._donate or kwargs or len(args) != self._positions:
            # However arguments are passed, one call has one form.
            bound = self._parameters.bind(*args, **kwargs)
            bound.apply_defaults()
            others = (bound.args, bound.kwargs)
            if self._donate:
                given = {name: bound.arguments.pop(name) for name in self._donate}
                others = dict(bound.arguments)
        donated, donated_tree = jax.tree.flatten(given)
        kept, kept_tree = jax.tree.flatten(others)
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
        kept = jax.tree.unflatten(program.kept, leaves[count:])
        if self._donate:
            given = jax.tree.unflatten(program.donated, leaves[:count])
            order = {n: (kept | given)[n] for n in self._parameters.parameters}
            bound = inspect.BoundArguments(self._parameters, OrderedDict(order))
            kept = (bound.args, bound.kwargs)
        args, kwargs = kept
        signature = signature_of(self._parameters, args, kwargs)
        self._admit(signature, program.mode)
        result = self._function(*args, **kwargs)
        self._count(signature, program.mode)
        return result

    def _fails_late(self, call: tuple[list[Any], list[Any], _Program]) -> bool:
        """Return whether to wait, so that a failed check raises in its own call."""
        donated, kept, program = call
        traces, can_fail = self._can_fail.get(program, (-1, False))
        if traces == self.trace_count and not can_fail:
            return False
        if any(isinstance(x, Tracer) for x in [*donated, *kept]):
            return False  # part of a larger program, which will wait
        # Whether a program can fail is read from its jaxpr, once: to wait for every
        # result would give up what asynchronous dispatch gains.
        if traces != self.trace_count:
            can_fail = checks.holds_check(self._jit.trace(*call).jaxpr)
            self._can_fail[program] = (self.trace_count, can_fail)
        return can_fail

    def _raise(self, message: str | None) -> None:
        if message is not None:
            raise checks.CheckError(message) from None

    # A signature seen before is traced again only when JAX dropped its caches, or for
    # another placement, which no argument's kind caused; a new error mode has an
    # allowance of its own. A call that fails to trace uses none up.
    def _admit(self, signature: Signature, mode: str) -> None:
        seen = self._seen.get(mode, [])
        full = self.max_traces is not None and len(seen) >= self.max_traces
        if full and signature not in seen:
            raise RetraceError(self._explain(seen, signature))

    def _count(self, signature: Signature, mode: str) -> None:
        seen = self._seen.setdefault(mode, [])
        if signature not in seen:
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
            "freeze it with jaxrig.static_arguments.freeze."
        )


class _Bound:
    """A compiled method of one instance; counts and allowances are the class's."""

    def __init__(self, compiled: CompiledOnce[..., Any], instance: Any):
        self._compiled, self._instance = compiled, instance

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(self._instance, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> jax.stages.Lowered:
        return self._compiled.lower(self._instance, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)


@overload
def compile_once(
    function: Callable[P, R],
    *,
    max_traces: int | None = 1,
    donate: Sequence[str] = (),
    compiler_options: Mapping[str, Any] | None = None,
) -> CompiledOnce[P, R]: ...
@overload
def compile_once(
    function: None = None,
    *,
    max_traces: int | None = 1,
    donate: Sequence[str] = (),
    compiler_options: Mapping[str, Any] | None = None,
) -> Callable[[Callable[P, R]], CompiledOnce[P, R]]: ...
def compile_once(
    function: Callable[..., Any] | None = None,
    *,
    max_traces: int | None = 1,
    donate: Sequence[str] = (),
    compiler_options: Mapping[str, Any] | None = None,
) -> Any:
    """Compile a function and refuse to compile it again for other arguments.

    Past `max_traces` different signatures (None: no limit) a call raises
    `RetraceError`, which names the argument, what it was, what it is, and the remedy.
    `donate` names arguments whose buffers the result may reuse, `compiler_options` are
    those of XLA. What is not an array comes back as it is. Where arrays lie (device,
    sharding) is not guarded: moving them makes XLA compile again, which
    `record_compilations` shows.

    >>> import jax.numpy as jnp
    >>> double = compile_once(lambda x: 2 * x)
    >>> double(jnp.ones(3)).tolist(), double.trace_count
    ([2.0, 2.0, 2.0], 1)
    """
    if function is None:
        return lambda f: CompiledOnce(f, max_traces, donate, compiler_options)
    return CompiledOnce(function, max_traces, donate, compiler_options)


class Adaptive(Generic[P, R]):
    """A function compiled when it traces and run eagerly when not; see `adaptive`."""

    def __init__(self, function: Callable[P, R]):
        functools.update_wrapper(self, function)
        self.path: Literal["compiled", "eager"] | None = None
        self.reason: str | None = None
        self._function = function
        self._name = getattr(function, "__qualname__", type(function).__name__)
        # No bound: what a caller passes is not known here, and running at all is the
        # promise; `compile_once` is for functions that must not compile again.
        self._compiled = CompiledOnce(function, None, ())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run, compiled unless an earlier or this call showed that it cannot be."""
        if self.path != "eager":
            try:
                result = self._compiled(*args, **kwargs)
            except TRACING_ERRORS as error:
                if any(isinstance(x, Tracer) for x in jax.tree.leaves((args, kwargs))):
                    raise  # inside another trace, where eager is no way out
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

    @property
    def trace_count(self) -> int:
        """Return how often it was traced, to compile it."""
        return self._compiled.trace_count

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def adaptive(function: Callable[P, R]) -> Adaptive[P, R]:
    """Compile a function; where JAX cannot trace it, run it eagerly and say so once.

    Only JAX's own tracing errors count (`TRACING_ERRORS`); any other error is raised.
    After a call, `path` says which way ran and `reason` why it was not compiled.
    """
    return Adaptive(function)
