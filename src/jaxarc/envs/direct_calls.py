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

from jaxrig import RetraceError

# Parts that use memory again wait for each other, and XLA then runs them in its own
# thread one by one: a call of `arc_step` takes 65 µs instead of 95 µs on two cores.
ONE_BY_ONE = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}

Kind = TypeVar("Kind", bound=eqx.Module)
Take = Callable[[dict[str, Any]], tuple[Any, ...]]


# Calls of one kind (rules, classes, shapes) compile once: numbers come as int32. Keys
# may be raw or typed, and a state that a caller built may have weak types.
MAX_TRACES = 4


class DirectCall:
    """A compiled function of modules and arrays, made to be called from Python.

    Its arguments, modules, arrays or None, are positional; `rules` are static. With
    `one_by_one` there is a second program for direct calls on a CPU: inside another
    compiled function, on other devices, and where XLA does not know the option, calls
    take the ordinary one; results are the same. For the same rules and shapes it is
    traced for at most `MAX_TRACES` types of its arrays.
    """

    def __init__(self, function: Callable[..., Any], one_by_one: bool = False):
        functools.update_wrapper(self, function)
        self._function = function
        self._seen: dict[Hashable, set[Hashable]] = {}
        self.ordinary = self.direct = jax.jit(self._trace, static_argnums=(1, 2))
        if one_by_one:
            self.direct = jax.jit(
                self._trace, static_argnums=(1, 2), compiler_options=ONE_BY_ONE
            )

    def _trace(
        self, parts: tuple[tuple[Any, ...], ...], plans: tuple[Any, ...], rules: Any
    ) -> Any:
        leaves = jax.tree.leaves(parts)
        types = tuple((str(x.dtype), x.weak_type) for x in leaves)
        kind = (plans, rules, tuple(x.shape for x in leaves))
        seen = self._seen.setdefault(kind, set())
        if types not in seen and len(seen) >= MAX_TRACES:
            raise RetraceError(
                f"{self._function.__name__} was compiled for {len(seen)} types of the "
                f"same arguments, and this call would compile it again for {types}: "
                "give states as `reset` and `step` return them"
            )
        result = self._function(*map(put_together, parts, plans), rules)
        seen.add(types)
        return result

    def __call__(self, *args: Any, rules: Any) -> Any:
        """Run, compiling first if no call of this kind came before."""
        parts, plans = zip(*map(take_apart, args), strict=True)
        if self.direct is self.ordinary or not knows_one_by_one():
            return self.ordinary(parts, plans, rules)
        if not _concrete_types().issuperset(map(type, itertools.chain(*parts))):
            return self.ordinary(parts, plans, rules)
        try:
            return self.direct(parts, plans, rules)
        except ValueError:
            # Known values inside another trace: an option for the compiler cannot be
            # part of a larger program. Any other error is raised again below.
            return self.ordinary(parts, plans, rules)


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


# The same plan is the same object, which JAX compares by a glance.
_plan = functools.cache(Plan)


def fields_of(module: eqx.Module) -> dict[str, Any]:
    """Return all fields of a module by name; a module's own way to them is slow."""
    return object.__getattribute__(module, "__dict__")


def take_apart(value: Any) -> tuple[tuple[Any, ...], Plan | None]:
    """Return the fields of a module that hold arrays, and how to read them.

    Anything else stays whole and needs no plan.
    """
    readers = _readers(type(value))
    if readers is None:
        return (value,), None
    fields = fields_of(value)
    return readers.take(fields), _plan(type(value), readers.take_static(fields))


def put_together(parts: tuple[Any, ...], plan: Plan | None) -> Any:
    """Return what was taken apart, from these arrays."""
    if plan is None:
        return parts[0]
    readers = _readers(plan.kind)
    assert readers is not None  # plans are made for modules alone
    fields = dict(zip(readers.names, parts, strict=True))
    fields |= zip(readers.static_names, plan.static, strict=True)
    return make_module(plan.kind, fields)


def with_fields(module: Kind, changed: Mapping[str, Any]) -> Kind:
    """Return the module with other fields."""
    return make_module(type(module), {**fields_of(module), **changed})


def make_module(kind: type[Kind], fields: Mapping[str, Any]) -> Kind:
    """Return a module of these fields as unflattening makes it, with nothing checked.

    The constructor of an equinox module looks into every field, which takes as long as
    a step.
    """
    module = object.__new__(kind)
    fields_of(module).update(fields)
    return module


class _Readers(NamedTuple):
    """The names of a module's array fields and of its static ones, with readers."""

    names: tuple[str, ...]
    take: Take
    static_names: tuple[str, ...]
    take_static: Take


@functools.cache
def _readers(kind: type) -> _Readers | None:
    """Return how to read a class; None if it is no module."""
    # Asked once for each class: `isinstance` of a module takes a microsecond.
    if not issubclass(kind, eqx.Module):
        return None
    static = {f.name: bool(f.metadata.get("static")) for f in dataclasses.fields(kind)}
    names = tuple(name for name in static if not static[name])
    static_names = tuple(name for name in static if static[name])
    return _Readers(names, _reader(names), static_names, _reader(static_names))


def _reader(names: tuple[str, ...]) -> Take:
    if len(names) > 1:
        return operator.itemgetter(*names)
    return lambda fields: tuple(fields[name] for name in names)
