"""Training steps on labeled examples: compiled, uncompiled, compiled where possible.

All of them run one pure function of arrays: the loss of a batch and a step down its
gradient.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jax.sharding import Mesh
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from acbo.surrogate.losses import (
    array_form,
    distribution_entropy,
    kl_divergence_loss_jax,
    takes_truth,
)
from acbo.training.examples import (
    UNKNOWN,
    BatchArrays,
    TrainingBatch,
    TrainingBatchJAX,
    convert_to_jax_batch,
    encode_batch,
    encode_named,
)
from acbo.training.parent_set_model import ParentSetModel, UserModel, at_precision
from jaxrig.compile_guard import TRACING_ERRORS, adaptive, compile_once
from jaxrig.keys import batch_keys
from jaxrig.learn.optimizer import improve
from jaxrig.learn.rollout import strong
from jaxrig.sharding import replicate, shard_batch

MAX_GRADIENT_NORM = 1.0
PADDED_LOGIT = -1e9  # probability 0 exactly, and 0 * log of it is 0, not NaN


# What a step takes: one group of arrays, or a group for each list of names.
Batch = BatchArrays | tuple[BatchArrays, ...]


def _groups(batch: Batch) -> tuple[BatchArrays, ...]:
    return (batch,) if isinstance(batch, BatchArrays) else batch


class Terms(NamedTuple):
    """The loss of a batch and what it is made of."""

    total_loss: Float[Array, ""]
    kl_loss: Float[Array, ""]
    regularization_loss: Float[Array, ""]
    mean_expert_accuracy: Float[Array, ""]
    predicted_entropy: Float[Array, ""]
    expert_entropy: Float[Array, ""]


class _OfExample(NamedTuple):
    loss: Float[Array, ""]
    kl: Float[Array, ""]
    predicted_entropy: Float[Array, ""]
    expert_entropy: Float[Array, ""]


def map_examples(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `jax.vmap` of the function; one that needs concrete values is called
    example by example.
    """

    def mapped(*args: Any) -> Any:
        try:
            return jax.vmap(function)(*args)
        except TRACING_ERRORS:
            count = jax.tree.leaves(args)[0].shape[0]
            each = [
                function(*jax.tree.map(lambda x, i=i: x[i], args)) for i in range(count)
            ]
            return jax.tree.map(lambda *x: jnp.stack(x), *each)

    return mapped


@dataclass(frozen=True)
class Objective:
    """Compute the mean loss of examples, plus `weight_decay` times the sum of squares.

    `loss(logits, expert_probs, membership)` is given logits of -1e9 and probabilities
    of 0 where a set is padding; one with a `true_index` gets the true set's place.
    """

    model: Any  # a ParentSetModel, or a UserModel for named examples
    loss: Callable[..., Any]
    weight_decay: float

    def __call__(
        self, params: PyTree, batch: Batch, key: PRNGKeyArray
    ) -> tuple[Float[Array, ""], Terms]:
        """Return the loss of a batch, dropout on, and its terms."""
        groups = _groups(batch)
        ends = np.cumsum([len(each.expert_accuracies) for each in groups])
        keys = batch_keys(key, int(ends[-1]))
        one = lambda part, key: self._of_example(params, part, key)
        each = [
            map_examples(one)(group, keys[end - len(group.expert_accuracies) : end])
            for group, end in zip(groups, ends.tolist(), strict=True)
        ]
        joined: _OfExample = jax.tree.map(lambda *x: jnp.concatenate(x), *each)
        accuracies = jnp.concatenate([each.expert_accuracies for each in groups])
        squares = [jnp.sum(jnp.square(x)) for x in jax.tree.leaves(params)]
        penalty = self.weight_decay * jnp.stack(squares).sum()
        mean = jax.tree.map(jnp.mean, joined)
        total = mean.loss + penalty
        return total, Terms(
            *(total, mean.kl, penalty, accuracies.mean()),
            *(mean.predicted_entropy, mean.expert_entropy),
        )

    def _of_example(
        self, params: PyTree, part: BatchArrays, key: PRNGKeyArray
    ) -> _OfExample:
        raw = self.model.logits(params, part.example, key)
        logits = jnp.where(part.example.set_mask, raw, PADDED_LOGIT)
        there = jnp.where(part.example.set_mask, part.expert_probs, 0.0)
        p = there / there.sum()
        truth = {"true_index": part.true_index} if takes_truth(self.loss) else {}
        sets = part.example.membership
        return _OfExample(
            self.loss(logits, p, sets, **truth),
            kl_divergence_loss_jax(logits, p),
            distribution_entropy(jax.nn.softmax(logits)),
            distribution_entropy(p),
        )


def clip_first(
    optimizer: optax.GradientTransformation,
) -> optax.GradientTransformation:
    """Return the optimizer on gradients of global norm 1 at most; its state is
    unchanged.
    """
    clip = optax.clip_by_global_norm(MAX_GRADIENT_NORM)

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        clipped, _ = clip.update(updates, optax.EmptyState())
        return optimizer.update(clipped, state, params)

    return optax.GradientTransformation(optimizer.init, update)


def learning_rate_of(opt_state: PyTree, otherwise: float) -> Float[Array, ""]:
    """Return the rate that an optimizer with injected hyperparameters holds, else
    another.
    """
    held = optax.tree_utils.tree_get_all_with_path(opt_state, "learning_rate")
    return jnp.asarray(held[0][1] if held else otherwise, jnp.float32)


def make_update(
    model: ParentSetModel | UserModel,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: Any,
    l2_in_loss: bool = True,
) -> Callable[..., Any]:
    """Return the pure function `update(params, opt_state, batch, key) -> (params,
    opt_state, metrics)`.

    `config` has a `learning_rate` and a `weight_decay`; the latter is left to the
    optimizer unless `l2_in_loss`.
    """
    decay = config.weight_decay if l2_in_loss else 0.0
    objective = Objective(model, array_form(loss_fn), decay)
    clipped = clip_first(optimizer)

    def update(
        params: PyTree, opt_state: PyTree, batch: Batch, key: PRNGKeyArray
    ) -> tuple[PyTree, PyTree, dict[str, Float[Array, ""]]]:
        params, opt_state, terms, norm = improve(
            clipped, lambda p: objective(p, batch, key), params, opt_state
        )
        rate = learning_rate_of(opt_state, config.learning_rate)
        extra = {"gradient_norm": norm, "learning_rate": rate}
        return params, opt_state, {**terms._asdict(), **extra}

    return update


class _Record(Mapping[str, float]):
    """Fields of a dataclass that can also be looked up by name."""

    def __getitem__(self, key: str) -> float:
        if key not in self._names():
            raise KeyError(f"{key!r} is not one of: {', '.join(self._names())}")
        return getattr(self, key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names())

    def __len__(self) -> int:
        return len(self._names())

    def _names(self) -> list[str]:
        return [field.name for field in fields(self)]  # pyright: ignore


@dataclass(frozen=True)
class TrainingMetrics(_Record):
    """One step in numbers, of the parameters before it: attributes or `[name]`."""

    total_loss: float
    kl_loss: float
    regularization_loss: float
    mean_expert_accuracy: float
    predicted_entropy: float
    expert_entropy: float
    gradient_norm: float
    learning_rate: float
    step_time: float


STEP_KEYS = (
    *("total_loss", "kl_loss", "regularization_loss", "mean_expert_accuracy"),
    *("gradient_norm", "learning_rate"),
)


def to_floats(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Return arrays as Python numbers, in one fetch from the device."""
    fetched = jax.device_get(dict(metrics))
    return {name: float(value) for name, value in fetched.items()}


Update = Callable[..., Any]
BATCH_PARTS = 6


def batch_arrays(batch: tuple[Any, ...], named: bool = False) -> Batch:
    """Return the arrays of a batch in any of its forms: an object, or the six parts.

    With `named` they are for a model that takes names.
    """
    if len(batch) == BATCH_PARTS:
        return encode_named(*batch) if named else encode_batch(*batch)
    if len(batch) != 1:
        raise TypeError(
            f"a step takes params, opt_state, a batch and a key, or the batch as its "
            f"{BATCH_PARTS} parts (batch.as_args()); it was given {len(batch)} parts"
        )
    (only,) = batch
    if isinstance(only, TrainingBatch):
        only = convert_to_jax_batch(only)
    if not isinstance(only, TrainingBatchJAX):
        if named and isinstance(only, BatchArrays):
            raise TypeError(
                "these arrays have no names, which apply takes: pass the batch object"
            )
        return only
    if named:
        return encode_named(*only.as_args(), true_sets=only.true_sets)
    return only.arrays


def _strong(tree: PyTree) -> PyTree:
    """Return the tree without weak types, which fresh states may have. Trees without
    any stay whole, since rebuilding them would cost a small step a tenth of its time.
    """
    weak = any(getattr(leaf, "weak_type", False) for leaf in jax.tree.leaves(tree))
    return jax.tree.map(strong, tree) if weak else tree


class _Parts(NamedTuple):
    model: Any
    optimizer: optax.GradientTransformation
    update: Update
    needs_truth: bool


class TrainStep:
    """`step(params, opt_state, batch, key) -> (params, opt_state, TrainingMetrics)`.

    The batch is a `TrainingBatch`, a `TrainingBatchJAX`, its `.arrays`, or the six
    parts of `as_args()`. `path` says how the last call ran.
    """

    def __init__(self, parts: _Parts, run: Update, mesh: Mesh | None = None):
        self.model, self.optimizer = parts.model, parts.optimizer
        self._needs_truth, self._update, self._mesh = parts.needs_truth, run, mesh

    def start(self, params: PyTree) -> PyTree:
        """Return the optimizer's state for parameters that nothing was done to yet."""
        with jax.numpy_dtype_promotion("standard"):  # schedules mix ints and floats
            return self.optimizer.init(params)

    @property
    def path(self) -> str:
        """Return how calls run: "compiled" or "eager"."""
        return "eager"

    @property
    def compilations(self) -> int:
        """Return how often it was compiled."""
        return 0

    def run(
        self, params: PyTree, opt_state: PyTree, batch: Batch, key: PRNGKeyArray
    ) -> tuple[PyTree, PyTree, dict[str, Any]]:
        """Take the step on arrays; metrics stay on the device, so nothing waits."""
        if self._needs_truth:
            self._check_truth(batch)
        params, opt_state = _strong(params), _strong(opt_state)
        if self._mesh is not None:
            batch = shard_batch(batch, self._mesh)
            params, opt_state, key = replicate((params, opt_state, key), self._mesh)
        return self._update(params, opt_state, batch, key)

    def __call__(self, params: PyTree, opt_state: PyTree, *batch_and_key: Any) -> Any:
        """Take one step; the last argument is the PRNG key."""
        *batch, key = batch_and_key
        arrays = batch_arrays(tuple(batch), isinstance(self.model, UserModel))
        given = params, opt_state, arrays, key
        if any(isinstance(x, Tracer) for x in jax.tree.leaves(given)):
            return self.run(*given)  # part of a larger program: no number is known yet
        start = time.perf_counter()
        params, opt_state, found = self.run(*given)
        metrics = to_floats(found)
        seconds = time.perf_counter() - start
        record = TrainingMetrics(**metrics, step_time=seconds)
        return params, opt_state, self._report(record)

    def _report(self, metrics: TrainingMetrics) -> Any:
        return metrics

    def _check_truth(self, batch: Batch) -> None:
        places = [each.true_index for each in _groups(batch)]
        if any(isinstance(each, Tracer) for each in places):
            return
        if any(bool((each == UNKNOWN).any()) for each in places):
            raise ValueError(
                "this loss needs the true parent set, but an example does not have "
                "one or it is not among the candidates: set "
                "scm_info['true_parents'] and pass the batch object"
            )


class CompiledStep(TrainStep):
    """A step compiled once per bucket of sizes; metrics come as a dictionary."""

    def __init__(self, parts: _Parts, mesh: Mesh | None, donate: bool):
        donated = ["params", "opt_state"] if donate else []
        # Six buckets of variables, three of rows, a full batch and what is left over.
        # A model that takes names compiles once per list of them: no bound exists.
        most = None if isinstance(parts.model, UserModel) else 36
        self._compiled = compile_once(parts.update, max_traces=most, donate=donated)
        super().__init__(parts, self._compiled, mesh)

    @property
    def path(self) -> str:
        """Return how calls run: "compiled"."""
        return "compiled"

    @property
    def compilations(self) -> int:
        """Return how often it was compiled: once for each bucket that it met."""
        return self._compiled.trace_count

    def _report(self, metrics: TrainingMetrics) -> Any:
        return {name: metrics[name] for name in STEP_KEYS}


class AdaptiveStep(TrainStep):
    """A step that is compiled, or where that is impossible runs uncompiled."""

    def __init__(self, parts: _Parts, mesh: Mesh | None):
        self._traces = 0

        def surrogate_train_step(params, opt_state, batch, key):  # named in warnings
            result = parts.update(params, opt_state, batch, key)
            self._traces += isinstance(result[2]["total_loss"], Tracer)
            return result

        self._adaptive = adaptive(surrogate_train_step)
        super().__init__(parts, self._adaptive, mesh)

    @property
    def path(self) -> str:
        """Return how the last call ran; "compiled" before the first."""
        return self._adaptive.path or "compiled"

    @property
    def compilations(self) -> int:
        """Return how often it was compiled."""
        return self._traces


def _prepare(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: Any,
    l2_in_loss: bool,
    compute_dtype: Any,
) -> _Parts:
    if not isinstance(model, ParentSetModel):
        if not (hasattr(model, "init") and hasattr(model, "apply")):
            raise TypeError(
                f"model is a {type(model).__name__} without init and apply: make one "
                "with create_parent_set_model, or give an object that has both"
            )
        model = UserModel(model)
    if compute_dtype is not None:
        if isinstance(model, UserModel):
            raise ValueError("compute_dtype is for models of create_parent_set_model")
        wanted = getattr(compute_dtype, "compute_dtype", compute_dtype)
        model = at_precision(model, wanted)
    update = make_update(model, optimizer, loss_fn, config, l2_in_loss)
    return _Parts(model, optimizer, update, takes_truth(array_form(loss_fn)))


def create_surrogate_train_step(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: Any,
    *,
    l2_in_loss: bool = True,
    compute_dtype: Any = None,
) -> TrainStep:
    """Return the step without compilation: the reference for the other two.

    `l2_in_loss=False` leaves `config.weight_decay` to an optimizer that has decay of
    its own.
    """
    given = model, optimizer, loss_fn, config, l2_in_loss, compute_dtype
    parts = _prepare(*given)
    return TrainStep(parts, parts.update)


def create_jax_surrogate_train_step(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: Any,
    *,
    donate: bool = False,
    mesh: Mesh | None = None,
    l2_in_loss: bool = True,
    compute_dtype: Any = None,
) -> CompiledStep:
    """Return the compiled step; names, targets and set lists never compile it anew.

    With `donate` the buffers of `params` and `opt_state` are reused and the caller's
    are gone. With a `mesh` the batch is spread over its devices. The returned metrics
    are a dictionary of floats.
    """
    given = model, optimizer, loss_fn, config, l2_in_loss, compute_dtype
    return CompiledStep(_prepare(*given), mesh, donate)


def create_adaptive_train_step(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: Any,
    use_jax_compilation: bool = True,
    *,
    mesh: Mesh | None = None,
    l2_in_loss: bool = True,
    compute_dtype: Any = None,
) -> TrainStep:
    """Return a step that is compiled if possible: a model that JAX cannot trace runs
    uncompiled, with one warning. Only JAX's tracing errors count; any other error is
    raised.
    """
    given = model, optimizer, loss_fn, config, l2_in_loss, compute_dtype
    parts = _prepare(*given)
    if use_jax_compilation:
        return AdaptiveStep(parts, mesh)
    return TrainStep(parts, parts.update, mesh)
