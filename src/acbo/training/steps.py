"""Training steps on labeled examples: compiled, uncompiled, compiled where possible.

All of them run one pure function of arrays: the loss of a batch and a step down its
gradient.
"""

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any, Literal

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
)
from acbo.training.examples import (
    BatchArrays,
    TrainingBatch,
    TrainingBatchJAX,
    convert_to_jax_batch,
    encode_batch,
    encode_named,
)
from acbo.training.parent_set_model import ParentSetModel, UserModel, as_model
from jaxrig.compile_guard import (
    TRACING_ERRORS,
    Adaptive,
    CompiledOnce,
    adaptive,
    compile_once,
)
from jaxrig.keys import batch_keys
from jaxrig.learn.optimizer import improve
from jaxrig.learn.rollout import strong
from jaxrig.sharding import replicate, shard_batch

MAX_GRADIENT_NORM = 1.0
PADDED_LOGIT = -1e9  # probability 0 exactly, and 0 * log of it is 0, not NaN

# What a step takes: one group of arrays, or a group for each list of names.
Batch = BatchArrays | tuple[BatchArrays, ...]
Terms = dict[str, Float[Array, "..."]]


def map_examples(function: Callable[..., Any]) -> Callable[..., Any]:
    """Map over examples; a function that needs concrete values is called in a loop."""

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


def _example_terms(
    model: ParentSetModel | UserModel,
    loss: Callable[..., Any],
    params: PyTree,
    part: BatchArrays,
    key: PRNGKeyArray,
) -> Terms:
    there = part.example.set_mask
    logits = jnp.where(there, model.logits(params, part.example, key), PADDED_LOGIT)
    probs = jnp.where(there, part.expert_probs, 0.0)
    p = probs / probs.sum()
    return {
        "total_loss": loss(logits, p, part.example.membership),
        "kl_loss": kl_divergence_loss_jax(logits, p),
        "mean_expert_accuracy": part.expert_accuracies,
        "predicted_entropy": distribution_entropy(jax.nn.softmax(logits)),
        "expert_entropy": distribution_entropy(p),
    }


def batch_loss(
    model: ParentSetModel | UserModel,
    loss: Callable[..., Any],
    weight_decay: float,
    params: PyTree,
    batch: Batch,
    key: PRNGKeyArray,
) -> tuple[Float[Array, ""], Terms]:
    """Return the mean loss of examples, dropout on, plus `weight_decay` times the sum
    of squares of the parameters; and its terms.

    `loss(logits, expert_probs, membership)` is given logits of -1e9 and probabilities
    of 0 where a set is padding.
    """
    groups = batch if isinstance(batch, tuple) else (batch,)
    counts = [len(group.expert_accuracies) for group in groups]
    ends, keys = np.cumsum(counts).tolist(), batch_keys(key, sum(counts))
    terms = map_examples(partial(_example_terms, model, loss, params))
    each = [
        terms(group, keys[end - count : end])
        for group, count, end in zip(groups, counts, ends, strict=True)
    ]
    mean = jax.tree.map(lambda *x: jnp.concatenate(x).mean(), *each)
    squares = [jnp.sum(jnp.square(x)) for x in jax.tree.leaves(params)]
    penalty = weight_decay * jnp.stack(squares).sum()
    total = mean["total_loss"] + penalty
    return total, {**mean, "total_loss": total, "regularization_loss": penalty}


def clip_first(
    optimizer: optax.GradientTransformation,
) -> optax.GradientTransformation:
    """Clip gradients to global norm 1 first; the optimizer's state is unchanged."""
    clip = optax.clip_by_global_norm(MAX_GRADIENT_NORM)

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        clipped, _ = clip.update(updates, optax.EmptyState())
        return optimizer.update(clipped, state, params)

    return optax.GradientTransformation(optimizer.init, update)


def learning_rate_of(opt_state: PyTree, otherwise: float) -> Float[Array, ""]:
    """Return the injected learning rate of an optimizer, or another if it has none."""
    held = optax.tree_utils.tree_get_all_with_path(opt_state, "learning_rate")
    return jnp.asarray(held[0][1] if held else otherwise, jnp.float32)


class TrainingMetrics(dict[str, float]):
    """One step in numbers, of the parameters before it: `.total_loss` or
    `["total_loss"]`, and so on for the other terms of the loss, `gradient_norm` and
    `learning_rate`. Beside these, `step_time` has the seconds that the call took; it is
    not iterated over, so that equal steps have equal metrics.
    """

    step_time: float = 0.0

    def __contains__(self, name: object) -> bool:
        return name == "step_time" or super().__contains__(name)

    def __missing__(self, name: str) -> float:
        if name != "step_time":
            raise KeyError(name)
        return self.step_time

    def __getattr__(self, name: str) -> float:
        if name not in self:
            raise AttributeError(f"{name!r} is not one of: {', '.join(self)}")
        return self[name]


jax.tree_util.register_pytree_node(
    TrainingMetrics,
    lambda metrics: (tuple(metrics.values()), tuple(metrics)),
    lambda names, values: TrainingMetrics(zip(names, values, strict=True)),
)


BATCH_PARTS = 6


def batch_arrays(batch: tuple[Any, ...], named: bool = False) -> Batch:
    """Return the arrays of a batch in any of its forms: an object, or the six parts.

    With `named` they are for a model that takes names.
    """
    if len(batch) == 1 and isinstance(batch[0], TrainingBatch):
        batch = (convert_to_jax_batch(batch[0]),)
    if len(batch) == 1 and isinstance(batch[0], TrainingBatchJAX):
        if not named:
            return batch[0].arrays
        batch = batch[0].as_args()
    if len(batch) == 1:
        if named and isinstance(batch[0], BatchArrays):
            raise TypeError(
                "these arrays have no names, which apply takes: pass the batch object"
            )
        return batch[0]
    if len(batch) != BATCH_PARTS:
        raise TypeError(
            f"a step takes params, opt_state, a batch and a key, or the batch as its "
            f"{BATCH_PARTS} parts (batch.as_args()); it was given {len(batch)} parts"
        )
    return encode_named(*batch) if named else encode_batch(*batch)


def _strong(tree: PyTree) -> PyTree:
    """Return the tree without weak types, which fresh states may have. Trees without
    any stay whole, since rebuilding them would cost a small step a tenth of its time.
    """
    weak = any(getattr(leaf, "weak_type", False) for leaf in jax.tree.leaves(tree))
    return jax.tree.map(strong, tree) if weak else tree


class TrainStep:
    """`step(params, opt_state, batch, key) -> (params, opt_state, TrainingMetrics)`.

    The batch is a `TrainingBatch`, a `TrainingBatchJAX`, its `.arrays`, or the six
    parts of `as_args()`. Of the configuration a step reads `learning_rate`, to report
    where the optimizer holds none, and `weight_decay`, which `l2_in_loss=False` leaves
    to an optimizer that has decay of its own. With `donate` the buffers of `params`
    and `opt_state` are reused and the caller's are gone. With a `mesh` the batch is
    spread over its devices. `compute_dtype` is a precision or a `PrecisionPolicy`.
    """

    def __init__(
        self,
        model: Any,
        optimizer: optax.GradientTransformation,
        loss_fn: Callable[..., Any],
        config: Any,
        compiling: Literal["always", "never", "where possible"],
        *,
        donate: bool = False,
        mesh: Mesh | None = None,
        l2_in_loss: bool = True,
        compute_dtype: Any = None,
    ):
        self.model, self.optimizer = as_model(model, compute_dtype), optimizer
        decay = config.weight_decay if l2_in_loss else 0.0
        loss = partial(batch_loss, self.model, array_form(loss_fn), decay)
        clipped = clip_first(optimizer)

        def surrogate_train_step(  # named in warnings
            params: PyTree, opt_state: PyTree, batch: Batch, key: PRNGKeyArray
        ) -> tuple[PyTree, PyTree, Terms]:
            params, opt_state, terms, norm = improve(
                clipped, lambda params: loss(params, batch, key), params, opt_state
            )
            rate = learning_rate_of(opt_state, config.learning_rate)
            extra = {"gradient_norm": norm, "learning_rate": rate}
            return params, opt_state, {**terms, **extra}

        self._update, self._mesh = surrogate_train_step, mesh
        if compiling == "where possible":
            self._update = adaptive(surrogate_train_step)
        elif compiling == "always":
            # Six buckets of variables, three of rows, a full batch and what is left
            # over. A model that takes names compiles once per list of them: no bound.
            most = None if isinstance(self.model, UserModel) else 36
            donated = ["params", "opt_state"] if donate else []
            self._update = compile_once(
                surrogate_train_step, max_traces=most, donate=donated
            )

    def start(self, params: PyTree) -> PyTree:
        """Return the optimizer's state for parameters that nothing was done to yet."""
        with jax.numpy_dtype_promotion("standard"):  # schedules mix ints and floats
            return self.optimizer.init(params)

    @property
    def path(self) -> str:
        """Return how the last call ran, "compiled" or "eager"."""
        if isinstance(self._update, Adaptive):
            return self._update.path or "compiled"
        return "compiled" if isinstance(self._update, CompiledOnce) else "eager"

    @property
    def compilations(self) -> int:
        """Return how often it was compiled: once for each bucket that it met."""
        return getattr(self._update, "trace_count", 0)

    def run(
        self, params: PyTree, opt_state: PyTree, batch: Batch, key: PRNGKeyArray
    ) -> tuple[PyTree, PyTree, dict[str, Any]]:
        """Take the step on arrays; metrics stay on the device, so nothing waits."""
        params, opt_state = _strong(params), _strong(opt_state)
        if self._mesh is not None:
            batch = shard_batch(batch, self._mesh)
            params, opt_state, key = replicate((params, opt_state, key), self._mesh)
        return self._update(params, opt_state, batch, key)

    def __call__(self, params: PyTree, opt_state: PyTree, *batch_and_key: Any) -> Any:
        """Take one step; the last argument is the PRNG key."""
        start = perf_counter()
        *batch, key = batch_and_key
        arrays = batch_arrays(tuple(batch), isinstance(self.model, UserModel))
        params, opt_state, found = self.run(params, opt_state, arrays, key)
        if any(isinstance(x, Tracer) for x in jax.tree.leaves(found)):
            return params, opt_state, found  # part of a larger program: no number yet
        numbers = {name: float(x) for name, x in jax.device_get(found).items()}
        metrics = TrainingMetrics(numbers)
        metrics.step_time = perf_counter() - start
        return params, opt_state, metrics


def create_surrogate_train_step(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: Any,
    **options: Any,
) -> TrainStep:
    """Return the step without compilation: the reference for the other two."""
    return TrainStep(model, optimizer, loss_fn, config, "never", **options)


def create_jax_surrogate_train_step(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: Any,
    **options: Any,
) -> TrainStep:
    """Return the compiled step; names, targets and set lists never compile it anew.

    The options are those of `TrainStep`.
    """
    return TrainStep(model, optimizer, loss_fn, config, "always", **options)


def create_adaptive_train_step(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: Any,
    use_jax_compilation: bool = True,
    **options: Any,
) -> TrainStep:
    """Return a step that is compiled if possible: a model that JAX cannot trace runs
    uncompiled, with one warning. Only JAX's tracing errors count; any other error is
    raised.
    """
    way = "where possible" if use_jax_compilation else "never"
    return TrainStep(model, optimizer, loss_fn, config, way, **options)
