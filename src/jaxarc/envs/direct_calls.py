"""Compiled calls from Python: once for every kind, and quick where they are small.

JAX flattens tuples and dictionaries itself, but an equinox module in Python, field by
field. XLA's CPU runtime hands the many little parts of a program to several threads,
which costs more than the parts take, unless the program is scheduled as a sequence.
"""

import dataclasses
import functools
import itertools
import operator
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from jaxarc.types import is_traced
from jaxrig import RetraceError, compile_once
from jaxrig.compile_guard import CompiledOnce

# Parts that use memory again wait for each other, and XLA then runs them in its own
# thread one by one: a call of `arc_step` takes 65 µs instead of 95 µs on two cores.
ONE_BY_ONE = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}

Kind = TypeVar("Kind", bound=eqx.Module)
Take = Callable[[dict[str, Any]], tuple[Any, ...]]


# Calls of one kind (configuration, action class, shapes) should compile once. What may
# still differ are the types of numbers: raw or typed keys, weak or strong integers.
MAX_TRACES = 4
_programs: dict[tuple[Hashable, ...], CompiledOnce[..., Any]] = {}


def call_compiled(
    function: Callable[..., Any], kind: tuple[Hashable, ...], *args: Any
) -> Any:
    """Call a function compiled once for every kind of call, at most `MAX_TRACES` times.

    Inside another compiled function it becomes part of that one: there a failed check
    has to raise by itself, while `compile_once` would only note it for its own caller.
    """
    if is_traced(args):
        return function(*args)
    key = (function, *kind)
    if key not in _programs:
        _programs[key] = compile_once(function, max_traces=MAX_TRACES)
    return _programs[key](*args)


class Quick:
    """A compiled function with a second program for direct calls on a CPU.

    Its positional arguments are one tuple of tuples of arrays, and static `rules`.
    Inside another compiled function, on other devices, and where XLA does not know the
    option, calls take the ordinary program; results are the same. For the same rules
    and shapes it is traced for at most `MAX_TRACES` types of its arrays.
    """

    def __init__(self, function: Callable[..., Any]):
        functools.update_wrapper(self, function)
        self._function = function
        self._seen: dict[Hashable, set[Hashable]] = {}
        self.ordinary = jax.jit(self._trace, static_argnames="rules")
        self.direct = jax.jit(
            self._trace, static_argnames="rules", compiler_options=ONE_BY_ONE
        )

    def _trace(self, parts: tuple[tuple[Any, ...], ...], rules: Any) -> Any:
        leaves = jax.tree.leaves(parts)
        types = tuple((str(x.dtype), x.weak_type) for x in leaves)
        seen = self._seen.setdefault((rules, tuple(x.shape for x in leaves)), set())
        if types not in seen and len(seen) >= MAX_TRACES:
            raise RetraceError(
                f"{self._function.__name__} was compiled for {len(seen)} types of the "
                "same arguments, and this call would compile it again: give actions "
                "as int32 arrays, for instance with create_point_action"
            )
        result = self._function(parts, rules)
        seen.add(types)
        return result

    def __call__(self, parts: tuple[tuple[Any, ...], ...], rules: Any) -> Any:
        """Run, compiling first if no call of this kind came before."""
        concrete = _concrete_types().issuperset(map(type, itertools.chain(*parts)))
        if concrete and knows_one_by_one():
            try:
                return self.direct(parts, rules)
            except ValueError:
                # Known values inside another trace: an option for the compiler cannot
                # be part of a larger program. Any other error is raised again below.
                return self.ordinary(parts, rules)
        return self.ordinary(parts, rules)


@functools.cache
def knows_one_by_one() -> bool:
    """Return whether programs can be compiled to run one by one here."""
    if jax.default_backend() != "cpu":
        return False
    with jax.ensure_compile_time_eval():
        probe = jax.jit(lambda x: x + 1, compiler_options=ONE_BY_ONE)
        try:
            probe(jnp.zeros((), jnp.int32))
        except jax.errors.JaxRuntimeError as error:
            if "No such compile option" not in str(error):
                raise
            return False
    return True


@functools.cache
def _concrete_types() -> frozenset[type]:
    with jax.ensure_compile_time_eval():
        return frozenset({type(jnp.zeros((), jnp.int32)), type(None)})


class Plan(NamedTuple):
    """What of a module is no array: its class and its static fields."""

    kind: type[eqx.Module]
    static: tuple[Any, ...]


def fields_of(module: eqx.Module) -> dict[str, Any]:
    """Return all fields of a module by name; a module's own way to them is slow."""
    return object.__getattribute__(module, "__dict__")


def take_apart(module: eqx.Module) -> tuple[tuple[Any, ...], Plan]:
    """Return the fields of a module that hold arrays, and how to read them."""
    kind, fields = type(module), fields_of(module)
    _, take, _, take_static = _readers(kind)
    return take(fields), Plan(kind, take_static(fields))


def put_together(arrays: tuple[Any, ...], plan: Plan) -> Any:
    """Return the module that was taken apart, from these arrays."""
    names, _, static_names, _ = _readers(plan.kind)
    fields = dict(zip(names, arrays, strict=True))
    fields |= zip(static_names, plan.static, strict=True)
    return _made(plan.kind, fields)


def with_fields(module: Kind, changed: Mapping[str, Any]) -> Kind:
    """Return the module with other fields; as in unflattening, nothing is checked."""
    return _made(type(module), {**fields_of(module), **changed})


def _made(kind: type[Kind], fields: dict[str, Any]) -> Kind:
    module = object.__new__(kind)
    fields_of(module).update(fields)
    return module


@functools.cache
def _readers(kind: type) -> tuple[tuple[str, ...], Take, tuple[str, ...], Take]:
    """Return the names of array fields and of static ones, with readers."""
    fields = [
        (f.name, f.metadata.get("static", False)) for f in dataclasses.fields(kind)
    ]
    names = tuple(name for name, static in fields if not static)
    static_names = tuple(name for name, static in fields if static)
    return names, _reader(names), static_names, _reader(static_names)


def _reader(names: tuple[str, ...]) -> Take:
    if len(names) > 1:
        return operator.itemgetter(*names)
    return lambda fields: tuple(fields[name] for name in names)
