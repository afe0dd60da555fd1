"""Training steps on labeled examples: compiled, uncompiled, compiled where possible.

All of them run one pure function of arrays: the loss of a batch and a step down its
gradient.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

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
from acbo.training.parent_set_model import ParentSetModel, UserModel, at_precision
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


def _groups(batch: Batch) -> tuple[BatchArrays, ...]:
    return (batch,) if isinstance(batch, BatchArrays) else batch


@runtime_checkable
class StepConfig(Protocol):
    """What a step reads of a configuration, such as `SurrogateTrainingConfig`."""

    @property
    def learning_rate(self) -> float:
        """Return the rate that is reported where the optimizer holds none."""
        ...

    @property
    def weight_decay(self) -> float:
        """Return the weight of the squares of all parameters."""
        ...


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


@dataclass(frozen=True)
class Objective:
    """Compute the mean loss of examples, plus `weight_decay` times the sum of squares.

    `loss(logits, expert_probs, membership)` is given logits of -1e9 and probabilities
    of 0 where a set is padding.
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
        return _OfExample(
            self.loss(logits, p, part.example.membership),
            kl_divergence_loss_jax(logits, p),
            distribution_entropy(jax.nn.softmax(logits)),
            distribution_entropy(p),
        )


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


def make_update(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: StepConfig,
    l2_in_loss: bool,
    compute_dtype: Any,
) -> tuple[ParentSetModel | UserModel, Callable[..., Any]]:
    """Return the model, and the pure function `update(params, opt_state, batch, key) ->
    (params, opt_state, metrics)`.

    The weight decay of `config` is left to the optimizer unless `l2_in_loss`.
    """
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
    decay = config.weight_decay if l2_in_loss else 0.0
    objective = Objective(model, array_form(loss_fn), decay)
    clipped = clip_first(optimizer)

    def surrogate_train_step(  # named in warnings
        params: PyTree, opt_state: PyTree, batch: Batch, key: PRNGKeyArray
    ) -> tuple[PyTree, PyTree, dict[str, Float[Array, ""]]]:
        params, opt_state, terms, norm = improve(
            clipped, lambda p: objective(p, batch, key), params, opt_state
        )
        rate = learning_rate_of(opt_state, config.learning_rate)
        extra = {"gradient_norm": norm, "learning_rate": rate}
        return params, opt_state, {**terms._asdict(), **extra}

    return model, surrogate_train_step


class TrainingMetrics(dict[str, float]):
    """One step in numbers, of the parameters before it: `.total_loss` or
    `["total_loss"]`, and all else in `Terms`, `gradient_norm` and `learning_rate`.
    """

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
    if len(batch) not in (1, BATCH_PARTS):
        raise TypeError(
            f"a step takes params, opt_state, a batch and a key, or the batch as its "
            f"{BATCH_PARTS} parts (batch.as_args()); it was given {len(batch)} parts"
        )
    if len(batch) == 1:
        only = batch[0]
        if isinstance(only, TrainingBatch):
            only = convert_to_jax_batch(only)
        if isinstance(only, TrainingBatchJAX):
            if not named:
                return only.arrays
            batch = only.as_args()
        elif named and isinstance(only, BatchArrays):
            raise TypeError(
                "these arrays have no names, which apply takes: pass the batch object"
            )
        else:
            return only
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
    parts of `as_args()`.
    """

    def __init__(
        self,
        model: ParentSetModel | UserModel,
        optimizer: optax.GradientTransformation,
        update: Callable[..., Any],
        mesh: Mesh | None = None,
    ):
        self.model, self.optimizer = model, optimizer
        self._update, self._mesh = update, mesh

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
        *batch, key = batch_and_key
        arrays = batch_arrays(tuple(batch), isinstance(self.model, UserModel))
        params, opt_state, found = self.run(params, opt_state, arrays, key)
        if any(isinstance(x, Tracer) for x in jax.tree.leaves(found)):
            return params, opt_state, found  # part of a larger program: no number yet
        numbers = {name: float(x) for name, x in jax.device_get(found).items()}
        return params, opt_state, TrainingMetrics(numbers)


def create_surrogate_train_step(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: StepConfig,
    *,
    l2_in_loss: bool = True,
    compute_dtype: Any = None,
) -> TrainStep:
    """Return the step without compilation: the reference for the other two.

    `l2_in_loss=False` leaves `config.weight_decay` to an optimizer that has decay of
    its own.
    """
    given = model, optimizer, loss_fn, config, l2_in_loss, compute_dtype
    model, update = make_update(*given)
    return TrainStep(model, optimizer, update)


def create_jax_surrogate_train_step(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: StepConfig,
    *,
    donate: bool = False,
    mesh: Mesh | None = None,
    l2_in_loss: bool = True,
    compute_dtype: Any = None,
) -> TrainStep:
    """Return the compiled step; names, targets and set lists never compile it anew.

    With `donate` the buffers of `params` and `opt_state` are reused and the caller's
    are gone. With a `mesh` the batch is spread over its devices.
    """
    given = model, optimizer, loss_fn, config, l2_in_loss, compute_dtype
    model, update = make_update(*given)
    # Six buckets of variables, three of rows, a full batch and what is left over.
    # A model that takes names compiles once per list of them: no bound exists.
    most = None if isinstance(model, UserModel) else 36
    donated = ["params", "opt_state"] if donate else []
    compiled = compile_once(update, max_traces=most, donate=donated)
    return TrainStep(model, optimizer, compiled, mesh)


def create_adaptive_train_step(
    model: Any,
    optimizer: optax.GradientTransformation,
    loss_fn: Callable[..., Any],
    config: StepConfig,
    use_jax_compilation: bool = True,
    *,
    l2_in_loss: bool = True,
    compute_dtype: Any = None,
) -> TrainStep:
    """Return a step that is compiled if possible: a model that JAX cannot trace runs
    uncompiled, with one warning. Only JAX's tracing errors count; any other error is
    raised.
    """
    given = model, optimizer, loss_fn, config, l2_in_loss, compute_dtype
    model, update = make_update(*given)
    run = adaptive(update) if use_jax_compilation else update
    return TrainStep(model, optimizer, run)
