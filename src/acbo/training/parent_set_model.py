"""Models of parent sets as pairs of functions over named data: `init` and `apply`.

In ours, names only choose columns and candidate sets: what is computed are arrays and
masks, and no parameter depends on the number of rows, variables or sets. `UserModel`
takes any other pair, and `SetReader` reads a trained one as a surrogate of edges.
"""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

from acbo.graphs import (
    bucket_parent_sets,
    enumerate_possible_parent_sets,
    parent_set_membership,
)
from acbo.posterior.distribution import ParentSetPosterior, create_parent_set_posterior
from acbo.surrogate.encode import standardize
from acbo.surrogate.model import (
    Prediction,
    SurrogateConfig,
    SurrogateNetwork,
    set_logits,
)
from acbo.surrogate.predictor import Surrogate
from acbo.training.examples import FLAG, Example, encode_batch, flag_target
from acbo.types import INTERVENED, VALUE, check_known
from jaxrig.compile_guard import compile_once
from jaxrig.keys import hashed_key
from jaxrig.learn.optimizer import FlatTree, restored
from jaxrig.settings import Checked, Count, NotNegative, number, whole


@jax.tree_util.register_pytree_node_class
class SetPrediction(dict[str, Any]):
    """Logits and the sets they belong to; under jit the sets travel as static data."""

    def tree_flatten(self) -> tuple[tuple[Any], tuple[frozenset[str], ...]]:
        """Return the logits, and everything that is no array."""
        return (self["parent_set_logits"],), tuple(self["parent_sets"])

    @classmethod
    def tree_unflatten(cls, sets: tuple[frozenset[str], ...], children: Any) -> Any:
        """Put together what `tree_flatten` took apart."""
        return cls(
            parent_set_logits=children[0],
            parent_sets=list(sets),
            k=len(sets),
            all_possible_parent_sets=list(sets),
        )


class ParentSetModel:
    """`init` makes parameters, `apply` scores candidate parent sets; it unpacks into
    the two. `build(key)` gives the network; its floating-point arrays are the
    parameters.
    """

    def __init__(
        self, build: Callable[[PRNGKeyArray], Any], max_parent_size: int = 3
    ) -> None:
        self.build, self.max_parent_size = build, max_parent_size
        trainable = lambda key: FlatTree(
            eqx.filter(build(hashed_key(key)), eqx.is_inexact_array)
        )
        self._fresh = compile_once(trainable, max_traces=2)
        one = lambda params: lambda example: self.logits(params, example)
        batched = lambda params, examples: jax.vmap(one(params))(examples)
        # Six buckets of variables, three of rows, a single example and a batch.
        self.scores = compile_once(batched, max_traces=36)

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter((self.init, self.apply))

    def init(self, key: PRNGKeyArray, *data: Any) -> PyTree:
        """Return new parameters, from the key alone; they fit data of any size."""
        return self._fresh(key)

    def apply(
        self,
        params: PyTree,
        key: PRNGKeyArray | None,
        x: Float[Array, "N d 3"],
        variable_order: Sequence[str],
        target_variable: str,
        is_training: bool = False,
    ) -> SetPrediction:
        """Return logits of all candidate parent sets, in enumeration order."""
        names, (rows, d, _) = list(variable_order), x.shape
        if d != len(names):
            raise ValueError(
                f"x has {d} columns and variable_order names {len(names)}: give one "
                "name for each column"
            )
        most, target = self.max_parent_size, names.index(target_variable)
        sets = enumerate_possible_parent_sets(names, target_variable, most)
        example = Example(  # as it is: no padding, every mask full
            x[..., VALUE],
            x[..., INTERVENED] > FLAG,
            jnp.ones(rows, bool),
            jnp.ones(d, bool),
            jnp.asarray(target),
            jnp.asarray(parent_set_membership(d, most, target)),
            jnp.ones(len(sets), bool),
        )
        logits = self.logits(params, example, key if is_training else None)
        return SetPrediction.tree_unflatten(tuple(sets), (logits,))

    def logits(
        self, params: PyTree, example: Example, key: PRNGKeyArray | None = None
    ) -> Float[Array, " k"]:
        """Return logits of the candidate sets of one example, from its values in any
        unit; a key turns dropout on.
        """
        data = (example.intervened, example.row_mask, example.var_mask)
        z = standardize(example.values, *data)
        found = self._network(params)(z, *data, example.target_idx, key=key)
        return set_logits(found, example.membership, example.set_mask)

    @functools.cached_property
    def _shapes(self) -> Any:
        return eqx.filter_eval_shape(self.build, jax.random.key(0))

    def _network(self, params: PyTree) -> Any:
        """Return the network of some parameters, without building it."""
        given = iter(jax.tree.leaves(restored(params)))
        trained = lambda x: (
            isinstance(x, jax.ShapeDtypeStruct) and jnp.issubdtype(x.dtype, jnp.inexact)
        )
        # Leaf by leaf: static parts, such as the precision, may differ from those of
        # the network that the parameters came from.
        return jax.tree.map(lambda x: next(given) if trained(x) else x, self._shapes)


KEY_NAMES = ("key", "rng", "rng_key", "prng_key")


class UserModel:
    """Any object with `init(key, ...)` and `apply(params, ...)`: Haiku, Flax, your own.

    `apply(params, key, x, variable_order, target_variable, is_training)` scores the
    candidate sets of data `x[rows, variables, 3]`. It may leave out the key and the
    last arguments. It returns the logits of all candidate sets in enumeration order, or
    a mapping with `parent_set_logits` and, in any other order, `parent_sets`.

    As `apply` sees names, the compiled step compiles once per list of names.
    """

    def __init__(self, model: Any):
        self.init, self._apply = model.init, model.apply
        parameters = list(inspect.signature(model.apply).parameters.values())
        names = [each.name for each in parameters]
        self._takes_key = len(names) > 1 and names[1] in KEY_NAMES
        self._takes_rngs = "rngs" in names  # Flax names its streams of random numbers
        positional = [
            each
            for each in parameters
            if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
        ]
        variadic = any(each.kind is each.VAR_POSITIONAL for each in parameters)
        self._room = None if variadic else len(positional) - 1 - self._takes_key

    def logits(
        self, params: PyTree, example: Example, key: PRNGKeyArray | None = None
    ) -> Float[Array, " k"]:
        """Return the logits of the candidate sets of one example."""
        order, target, sets = example.names or ((), "", ())
        flags = jnp.arange(len(order))[None] == example.target_idx
        flags = jnp.broadcast_to(flags, example.values.shape)
        channels = example.values, example.intervened, flags
        x = jnp.stack([each.astype(jnp.float32) for each in channels], axis=-1)
        given = (x, list(order), target, True)[: self._room]
        first = (key,) if self._takes_key else ()
        extra = {"rngs": {"dropout": key}} if self._takes_rngs else {}
        found = self._apply(params, *first, *given, **extra)
        known = isinstance(found, Mapping)
        logits = jnp.asarray(found["parent_set_logits"] if known else found)
        scored = [*map(frozenset, found.get("parent_sets", ()))] if known else []
        if logits.shape != (len(sets),) or (scored and set(scored) != set(sets)):
            raise ValueError(
                f"apply scores {logits.shape} sets, and {target!r} has {len(sets)} "
                "candidates: return one logit for each"
            )
        place = [scored.index(each) for each in sets] if scored else None
        return logits if place is None else logits[np.array(place)]


def create_parent_set_model(
    model_kwargs: Mapping[str, Any] | None = None, max_parent_size: int = 3
) -> ParentSetModel:
    """Return the surrogate network as a model; `model_kwargs` are fields of
    `SurrogateConfig`.

    A `max_parent_size` among them goes before the argument of that name. Unless told
    otherwise, pairs are no wider than cells.
    """
    given = dict(model_kwargs or {})
    largest = given.pop("max_parent_size", max_parent_size)
    known = [*(field.name for field in fields(SurrogateConfig)), "max_parent_size"]
    for name in given:
        check_known(name, known, "model_kwargs: name")
    config = SurrogateConfig(**given)
    if "pair_dim" not in given:
        config = replace(config, pair_dim=min(config.pair_dim, config.dim))
    return ParentSetModel(functools.partial(SurrogateNetwork, config), largest)


@dataclass(frozen=True)
class SurrogateTrainingConfig(Checked):
    """How a surrogate is trained on examples with expert posteriors.

    Widths from 16 are allowed: small models for tests and first looks train too. The
    batch size, the epochs and the rule for stopping early are those of
    `optimized_progressive_learning`.
    """

    model_hidden_dim: Annotated[int, whole(16, 512)] = 128
    model_n_layers: Annotated[int, whole(1, 16)] = 6
    learning_rate: Annotated[float, number(above=0, up_to=0.1)] = 1e-3
    batch_size: Annotated[int, whole(1, 256)] = 32
    max_epochs: Count = 100
    early_stopping_patience: Count = 10
    validation_frequency: Count = 5
    weight_decay: NotNegative = 1e-4
    max_parent_size: Annotated[int, whole(1, 10)] = 5
    dropout: Annotated[float, number(at_least=0, up_to=0.5)] = 0.1

    def get_model_kwargs(self) -> dict[str, Any]:
        """Return what `create_parent_set_model` takes."""
        return {
            "layers": self.model_n_layers,
            "dim": self.model_hidden_dim,
            "dropout": self.dropout,
            "max_parent_size": self.max_parent_size,
        }


def as_model(model: Any, compute_dtype: Any = None) -> ParentSetModel | UserModel:
    """Return a model that steps can train, any object with `init` and `apply`, in the
    precision given; the parameters serve every precision.
    """
    if not isinstance(model, ParentSetModel):
        if not (hasattr(model, "init") and hasattr(model, "apply")):
            raise TypeError(
                f"model is a {type(model).__name__} without init and apply: make one "
                "with create_parent_set_model, or give an object that has both"
            )
        model = UserModel(model)
    if compute_dtype is None:
        return model
    build: Any = getattr(model, "build", None)
    if getattr(build, "func", None) is not SurrogateNetwork:
        raise ValueError(
            "compute_dtype is for models of create_parent_set_model: any other network "
            "sets its own precision where it is built"
        )
    name = np.dtype(getattr(compute_dtype, "compute_dtype", compute_dtype)).name
    config = replace(build.args[0], compute_dtype=name)
    other = functools.partial(SurrogateNetwork, config)
    return ParentSetModel(other, model.max_parent_size)


def predict_parent_posterior(
    net: ParentSetModel,
    params: PyTree,
    x: Float[Array, "N d 3"] | np.ndarray,
    variable_order: Sequence[str],
    target_variable: str,
    metadata: Mapping[str, Any] | None = None,
) -> ParentSetPosterior:
    """Return the model's posterior over parent sets; one compilation a bucket."""
    names = list(variable_order)
    sets = enumerate_possible_parent_sets(names, target_variable, net.max_parent_size)
    data = flag_target(x, names, target_variable)[None]
    nothing = np.zeros((1, len(sets))), [1.0]
    coded = encode_batch([sets], [names], [target_variable], data, *nothing)
    (logits,) = np.asarray(net.scores(params, coded.example), np.float64)
    weights = np.exp(logits[: len(sets)] - logits[: len(sets)].max())
    notes = {"all_variables": tuple(names), **(metadata or {})}
    return create_parent_set_posterior(
        target_variable, sets, weights / weights.sum(), notes
    )


class SetReader(Surrogate):
    """Edges of the target are the marginals of its posterior over sets of causes;
    other edges are what the head of set members says of each variable as a target.

    The steps by example train that head alone, so the head of edges says nothing yet.
    """

    network: SurrogateNetwork | FlatTree  # or the parameters of a model
    max_parents: int = eqx.field(static=True, default=3)

    def read(
        self,
        values: Float[Array, "n d"],
        intervened: Bool[Array, "n d"],
        row_mask: Bool[Array, " n"],
        var_mask: Bool[Array, " d"],
        target: Int[Array, ""],
    ) -> Prediction:
        """Return all that the network says about one data set in its own units."""
        network = restored(self.network)
        rest = intervened, row_mask, var_mask
        pairs = network.pairs(standardize(values, *rest), *rest)
        found = network.read(pairs, var_mask, target)
        columns = jnp.arange(var_mask.shape[0])
        members = lambda column: network.read(pairs, var_mask, column).member_logits
        set_mask, held = bucket_parent_sets(var_mask, target, self.max_parents)
        own = _marginal_logits(set_logits(found, held, set_mask), held)
        own = jnp.where(jnp.isfinite(found.member_logits), own, -jnp.inf)
        others = jax.vmap(members)(columns).T
        edges = jnp.where((columns == target)[None], own[:, None], others)
        return eqx.tree_at(
            lambda each: (each.edge_logits, each.parent_logits), found, (edges, own)
        )


def _marginal_logits(
    logits: Float[Array, " k"], held: Bool[Array, "k d"]
) -> Float[Array, " d"]:
    """Return log odds that a set drawn by its logits holds each variable."""
    total = lambda those: jax.nn.logsumexp(
        jnp.where(those, logits[:, None], -jnp.inf), axis=0
    )
    return total(held) - total(~held)
