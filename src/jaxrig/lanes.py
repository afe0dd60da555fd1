"""A loop over many independent items as one GPU kernel.

XLA launches the kernels of a loop's body anew in every round and passes what it
carries through memory. Here a block of items, one in each lane, goes through all rounds
with its carry in registers. `in_lanes` interprets the jaxpr of a function inside a
kernel: the axis of the items becomes the lanes of a block, shorter axes are unrolled,
and what all items share stays in memory and is loaded by index.
"""

import contextlib
import functools
import itertools
import math
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Literal
from jaxtyping import Array

from jaxrig import lane_arrays as arrays
from jaxrig.lane_arrays import LANES, Held, NotInLanes, Stored, Value

MAX_HOISTED = 4  # numbers of an array that are loaded before a loop
MAX_INDEX = 2**31 - 1
# Triton looks at the whole kernel for each load: 50 take it a second, 200 take 40.
MAX_LOADS = 100

# One number from one number each; a name per operation of JAX.
# fmt: off
ELEMENTWISE = frozenset({
    "abs", "acos", "acosh", "add", "add_any", "and", "asin", "asinh", "atan", "atan2",
    "atanh", "bitcast_convert_type", "cbrt", "ceil", "clamp", "convert_element_type",
    "cos", "cosh", "div", "eq", "erf_inv", "exp", "exp2", "expm1", "floor", "ge",
    "gt", "integer_pow", "is_finite", "le", "log", "log1p", "logistic", "lt", "max",
    "min", "mul", "ne", "neg", "not", "or", "pow", "rem", "rsqrt", "select_n",
    "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin",
    "sinh", "sqrt", "square", "sub", "tan", "tanh", "xor",
})
# fmt: on
# Functions within functions, and the parameter that holds them.
INLINED = {
    "jit": "jaxpr",
    "closed_call": "call_jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "remat2": "jaxpr",
    "checkpoint": "jaxpr",
}
FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "reduce_and": operator.and_,
    "reduce_or": operator.or_,
    "reduce_sum": operator.add,
    "reduce_max": jnp.maximum,
    "reduce_min": jnp.minimum,
}


def in_lanes(
    function: Callable[[Any, Any], Any],
    shared: Any,
    items: Any,
    *,
    interpret: bool = False,
) -> Any:
    """Return `function(shared, items)`, computed by one kernel on a GPU.

    Leaves of `items`, and of the result, have the axis of the items first; results of
    an outermost `scan` have it second. Raises `NotInLanes` where items depend on each
    other, or an operation is not known here.
    """
    leaves, tree = jax.tree.flatten(items)
    count = leaves[0].shape[0]
    # An odd length that no other axis has: where it stands is the axis of the items.
    taken = {length for x in jax.tree.leaves(shared) for length in np.shape(x)}
    size = next(n for n in itertools.count(8_191, 2) if n not in taken)
    structs = [jax.ShapeDtypeStruct((size, *x.shape[1:]), x.dtype) for x in leaves]
    made = jax.make_jaxpr(function, return_shape=True)
    closed, shape = made(shared, jax.tree.unflatten(tree, structs))
    if any(size in np.shape(x) for x in closed.consts):
        raise NotInLanes(f"a constant of length {size}")
    common = [jnp.asarray(x) for x in (*closed.consts, *jax.tree.leaves(shared))]
    outs = [_real_shape(v.aval, size, count) for v in closed.jaxpr.outvars]
    if any(math.prod(x.shape) > MAX_INDEX for x in (*common, *leaves, *outs)):
        raise NotInLanes("arrays of more than 2**31 numbers")
    kernel = functools.partial(
        _kernel, closed.jaxpr, [x.shape for x in common], size, count
    )
    done = _call_kernel(kernel, [*common, *leaves], outs, count, interpret)
    return jax.tree.unflatten(jax.tree.structure(shape), done)


def _real_shape(aval: Any, size: int, count: int) -> jax.ShapeDtypeStruct:
    if size not in aval.shape[:2]:
        raise NotInLanes("a result without the axis of the items")
    shape = [count if n == size else n for n in aval.shape]
    return jax.ShapeDtypeStruct(shape, aval.dtype)


def _call_kernel(
    kernel: Callable[..., None],
    given: Sequence[Array],
    outs: Sequence[jax.ShapeDtypeStruct],
    count: int,
    interpret: bool,
) -> list[Array]:
    from jax.experimental import pallas

    # Every block sees the whole of each array, as a line of numbers: no booleans.
    kind = lambda x: np.dtype(np.int8) if x.dtype == bool else x.dtype
    lines = [jax.ShapeDtypeStruct((math.prod(x.shape),), kind(x)) for x in outs]
    run = pallas.pallas_call(
        kernel,
        out_shape=lines,
        grid=(pallas.cdiv(count, LANES),),
        in_specs=[pallas.BlockSpec(memory_space=pallas.ANY)] * len(given),
        out_specs=[pallas.BlockSpec(memory_space=pallas.ANY)] * len(outs),
        interpret=interpret,
        compiler_params=arrays.triton().CompilerParams(num_warps=LANES // 32),
    )
    done = run(*(x.astype(kind(x)).reshape(-1) for x in given))
    return [x.reshape(o.shape).astype(o.dtype) for x, o in zip(done, outs, strict=True)]


def _kernel(
    jaxpr: Any,
    shapes: Sequence[tuple[int, ...]],
    size: int,
    count: int,
    *refs: Any,
) -> None:
    """Take one block of items through the jaxpr, and write what it returns."""
    from jax.experimental import pallas

    lane = pallas.program_id(0) * LANES + jnp.arange(LANES, dtype=np.int32)
    variables = [*jaxpr.constvars, *jaxpr.invars]
    values: list[Value] = []
    for i, variable in enumerate(variables):
        dtype = variable.aval.dtype
        if i < len(shapes):
            values.append(Stored.whole(refs[i], dtype, shapes[i]))
            continue
        # Lanes beyond the last item repeat it, so that none holds what is no item.
        rest = variable.aval.shape[1:]
        mine = jnp.minimum(lane, count - 1) * math.prod(rest)
        entries = Stored.whole(refs[i], dtype, rest, mine).entries()
        values.append(Held(entries, lanes=True))
    outs = refs[len(variables) :]

    def write(number: int, value: Held, first: Any = 0) -> None:
        ref, entries = outs[number], Held(value.parts, lanes=True).spread()
        line = (first * count + lane) * len(entries)
        for i, entry in enumerate(entries):
            here = ref.at[line + i]
            arrays.triton().store(here, entry.astype(ref.dtype), mask=lane < count)

    stacked = {
        v
        for eqn in jaxpr.eqns
        if eqn.primitive.name == "scan"
        for v in eqn.outvars[_split_of_scan(eqn)[1] :]
    }
    writers = {
        v: functools.partial(write, i)
        for i, v in enumerate(jaxpr.outvars)
        if not isinstance(v, Literal) and v in stacked
    }
    machine = _Machine(size, writers)
    known = machine.run(jaxpr, values)
    for i, variable in enumerate(jaxpr.outvars):
        if isinstance(variable, Literal) or variable not in writers:
            write(i, machine.held(known(variable)))


class _Machine:
    """Evaluates jaxprs on a block; `size` marks the axis of the items in their shapes.

    `writers` take what a scan stacks, row by row, for variables of the outermost jaxpr.
    """

    def __init__(self, size: int, writers: Mapping[Any, Callable[..., None]]) -> None:
        self.size, self.writers = size, writers
        self.loads = 0  # of a number for each lane
        # What was loaded, by the loops around it: inner ones know what outer ones do.
        self.loaded: list[dict[int, tuple[Stored, Held]]] = [{}]

    def run(self, jaxpr: Any, values: Sequence[Value]) -> Callable[[Any], Value]:
        """Evaluate a jaxpr; what comes back tells the value of each variable."""
        variables = [*jaxpr.constvars, *jaxpr.invars]
        known: dict[Any, Value] = dict(zip(variables, values, strict=True))

        def read(variable: Any) -> Value:
            if isinstance(variable, Literal):
                aval: Any = variable.aval
                return arrays.constant(variable.val, aval.dtype)
            return known[variable]

        for eqn in jaxpr.eqns:
            found = self._evaluate(eqn, [read(v) for v in eqn.invars])
            # What a scan stacks is written as it is made, and comes last.
            known.update(zip(eqn.outvars, found, strict=False))
        return read

    def inline(self, jaxpr: Any, values: Sequence[Value]) -> list[Value]:
        """Return the results of a jaxpr inside of another."""
        consts = getattr(jaxpr, "consts", ())
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        known = [arrays.constant(x, x.dtype) for x in consts]
        return [*map(self.run(inner, [*known, *values]), inner.outvars)]

    def held(self, value: Value) -> Held:
        """Return a value in registers, loaded if it is in memory."""
        if isinstance(value, Held):
            return value
        for known in self.loaded:
            if id(value) in known:
                return known[id(value)][1]
        found = Held(value.entries(), lanes=False)
        self.loaded[-1][id(value)] = value, found
        return found

    @contextlib.contextmanager
    def _inside(self) -> Generator[None]:
        """Forget afterwards what is loaded inside of a loop or a branch."""
        self.loaded.append({})
        yield
        self.loaded.pop()

    def _kind(self, aval: Any) -> tuple[tuple[int, ...], bool]:
        """Return the shape of a result besides the items, and whether it has them."""
        if self.size in aval.shape[1:]:
            raise NotInLanes("the axis of the items other than first")
        lanes = bool(aval.shape) and aval.shape[0] == self.size
        return tuple(aval.shape[lanes:]), lanes

    def _evaluate(self, eqn: Any, values: list[Value]) -> Sequence[Value]:
        name, params = eqn.primitive.name, eqn.params
        if name in ("copy", "copy_p", "optimization_barrier", "stop_gradient"):
            return values
        if name in INLINED:
            return self.inline(params[INLINED[name]], values)
        if name in ("scan", "cond"):
            return (
                self._scan(eqn, values) if name == "scan" else self._cond(eqn, values)
            )
        if name in ("split", "unstack"):
            return self._cuts(eqn, values[0])
        shape, lanes = self._kind(eqn.outvars[0].aval)
        numbers = functools.partial(self._numbers, values, shape, lanes)
        if name in ELEMENTWISE:
            return [numbers(lambda *x: eqn.primitive.bind(*x, **params))]
        if name == "threefry2x32":
            return [numbers(lambda *x, i=i: arrays.threefry(*x)[i]) for i in (0, 1)]
        if name == "lt_to":
            return [numbers(arrays.less_in_order)]
        if name == "reduce_precision":
            return [numbers(functools.partial(arrays.rounded, **params))]
        if name in FOLDS:
            return [arrays.folded(FOLDS[name], self.held(values[0]), params["axes"])]
        return [self._moved(name, params, values, shape, lanes)]

    def _numbers(
        self,
        values: Sequence[Value],
        shape: Sequence[int],
        lanes: bool,
        function: Callable[..., Any],
    ) -> Held:
        """Return a function of each entry."""
        parts = [self.held(v).parts for v in values]
        # An axis of length one along the items: they all have what it holds.
        parts = [x if x.ndim <= len(shape) else x[0] for x in parts]
        found = arrays.each(function, *(np.broadcast_to(x, shape) for x in parts))
        return Held(found, lanes)

    def _moved(
        self,
        name: str,
        params: Mapping[str, Any],
        values: Sequence[Value],
        shape: tuple[int, ...],
        lanes: bool,
    ) -> Value:
        """Return entries from other places."""
        first = values[0] if values else None
        if name == "iota" and not lanes:
            numbers = np.indices(shape)[params["dimension"]]
            return arrays.constant(numbers, params["dtype"])
        if first is None:
            raise NotInLanes(f"the operation {name}")
        if name == "broadcast_in_dim":
            return arrays.broadcast_in_dim(self.held(first), params, shape, lanes)
        if name in ("reshape", "squeeze", "expand_dims"):
            return arrays.reshape(first, params, shape, lanes, name == "squeeze")
        if name == "slice":
            return arrays.cut(first, params, shape, lanes)
        if name == "dynamic_slice":
            starts = [self.held(v).number() for v in values[1:]]
            return arrays.dynamic_slice(first, starts, shape)
        if name in ("concatenate", "stack"):
            axis = params["dimension" if name == "concatenate" else "axis"]
            held = [self.held(v) for v in values]
            return arrays.joined(held, axis, lanes, name == "stack")
        if name == "gather" and isinstance(first, Stored):
            return self._gather(first, self.held(values[1]), params, lanes)
        raise NotInLanes(f"the operation {name}")

    def _cuts(self, eqn: Any, value: Value) -> list[Value]:
        """Return the parts of an array along an axis."""
        axis, found, first = eqn.params["axis"], [], 0
        if value.lanes and axis == 0:
            raise NotInLanes("a slice of the items")
        for out in eqn.outvars:
            shape, lanes = self._kind(out.aval)
            single = eqn.primitive.name == "unstack"
            length = 1 if single else out.aval.shape[axis]
            one = arrays.between(value, axis - lanes, first, first + length)
            if single:
                one = arrays.reshape(one, {"dimensions": (axis,)}, shape, lanes, True)
            found.append(one)
            first += length
        return found

    def _gather(self, table: Stored, index: Held, params: Any, lanes: bool) -> Held:
        """Load slices of a table that begin where indices say."""
        where, sizes, mode = (
            params[name] for name in ("dimension_numbers", "slice_sizes", "mode")
        )
        if where.operand_batching_dims or "FILL" in str(mode):
            raise NotInLanes("a gather that fills or has batches")
        inner = [d for d in range(len(sizes)) if d not in where.collapsed_slice_dims]
        batch, within = index.shape[:-1], [sizes[d] for d in inner]

        def load(*place: int) -> Any:
            offset: Any = 0
            starts = index.parts[place[: len(batch)]]
            for start, d in zip(starts, where.start_index_map, strict=True):
                if "CLIP" in str(mode):
                    start = jnp.clip(start, 0, table.shape[d] - sizes[d])
                start, by = jnp.asarray(start).astype(np.int32), table.strides[d]
                offset = arrays.added(offset, start if by == 1 else start * by)
            inside = zip(place[len(batch) :], inner, strict=True)
            moved = sum(i * table.strides[d] for i, d in inside)
            self.loads += lanes
            return table.at(arrays.added(offset, moved))

        found = arrays.filled((*batch, *within), load)
        if self.loads > MAX_LOADS:
            raise NotInLanes(f"more than {MAX_LOADS} loads in a round")
        # The axes of the slices stand where `offset_dims` puts them.
        places = [d - lanes for d in where.offset_dims]
        if -1 in places:
            raise NotInLanes("the axis of the items other than first")
        last = tuple(range(len(batch), found.ndim))
        return Held(np.moveaxis(found, last, places), lanes)

    def _scan(self, eqn: Any, values: list[Value]) -> Sequence[Value]:
        """Return what a scan carries; a row of what it stacks is written at once."""
        params, (fixed, carried) = eqn.params, _split_of_scan(eqn)
        consts, rows = values[:fixed], values[fixed + carried :]
        start = [self.held(v) for v in values[fixed : fixed + carried]]
        like = [(v.shape, v.lanes) for v in start]
        stacked = eqn.outvars[carried:]
        if any(v not in self.writers and not _unread(v) for v in stacked):
            raise NotInLanes("results of an inner scan")

        def row(all_: Value, number: Any) -> Value:
            if isinstance(all_, Held):
                return all_.chosen(0, number)
            return arrays.row_of(all_, number)

        def body(number: Any, carry: list[Any]) -> list[Any]:
            number = params["length"] - 1 - number if params["reverse"] else number
            now = [row(all_, number) for all_ in rows]
            with self._inside():
                given = [*consts, *arrays.restored(carry, like), *now]
                done = self.inline(params["jaxpr"], given)
                for variable, value in zip(stacked, done[carried:], strict=True):
                    if variable in self.writers:
                        self.writers[variable](self.held(value), number)
                return self._flat(done[:carried])

        for value in consts:  # once, before the loop
            if math.prod(value.shape) <= MAX_HOISTED:
                self.held(value)
        carry = jax.lax.fori_loop(0, params["length"], body, self._flat(start))
        return arrays.restored(carry, like)

    def _cond(self, eqn: Any, values: list[Value]) -> Sequence[Value]:
        """Return the results of one of two branches, the same for all items."""
        if len(eqn.params["branches"]) != 2:
            raise NotInLanes("a choice of several branches")
        choose = self.held(values[0]).number() != 0

        def follow(branch: Any, _: Any) -> list[Any]:
            with self._inside():
                return self._flat(self.inline(branch, values[1:]))

        no, yes = (functools.partial(follow, b) for b in eqn.params["branches"])
        like = [self._kind(v.aval) for v in eqn.outvars]
        return arrays.restored(jax.lax.cond(choose, yes, no, 0), like)

    def _flat(self, values: Sequence[Value]) -> list[Any]:
        return [x for value in values for x in self.held(value).spread()]


def _split_of_scan(eqn: Any) -> tuple[int, int]:
    """Return how many constants a scan has, and how many values it carries.

    By shapes, since the parameters that say so differ between versions of JAX: what is
    scanned over, and what is stacked, has an axis more outside of the body than in it.
    """
    body = getattr(eqn.params["jaxpr"], "jaxpr", eqn.params["jaxpr"])

    def same(outer: Sequence[Any], inner: Sequence[Any]) -> int:
        pairs = zip(outer, inner, strict=True)
        return sum(len(a.aval.shape) == len(b.aval.shape) for a, b in pairs)

    carried = same(eqn.outvars, body.outvars)
    return same(eqn.invars, body.invars) - carried, carried


def _unread(variable: Any) -> bool:
    return type(variable).__name__ == "DropVar"
