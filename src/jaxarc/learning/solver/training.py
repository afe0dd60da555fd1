"""Train the networks of a solver: many updates in one compiled scan, all at once.

A solver is several networks of one size (members), trained side by side on batches of
their own and voted. Matrices are changed by Muon (Jordan et al. 2024): the momentum,
orthogonalized; embeddings and scales by Adam. Answers are given by the moving average
of the parameters.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from jaxarc.learning.solver.examples import MixtureConfig, PairBank, draw_batch
from jaxarc.learning.solver.network import NetworkConfig, SolverNetwork, answer_loss
from jaxarc.learning.training import keep_in
from jaxrig.compile_guard import compile_once
from jaxrig.learn import train
from jaxrig.progress import Meter

# Newton-Schulz iteration of Muon: five rounds bring singular values to about 1.
ROUNDS, COEFFICIENTS = 5, (3.4445, -4.7750, 2.0315)
MOMENTUM = 0.95


@dataclass(frozen=True)
class SolverConfig:
    """How a solver is trained: sizes, data, and `updates` of `scan` steps each.

    `data` says what the examples are: a run goes on only with the same.
    """

    network: NetworkConfig
    mixture: MixtureConfig = field(default_factory=MixtureConfig)
    members: int = 2
    batch: int = 512
    updates: int = 134
    scan: int = 50
    learning_rate: float = 2e-3
    table_rate: float = 2.5
    weight_decay: float = 0.1
    average: float = 0.999
    seed: int = 0
    data: str = ""

    @property
    def steps(self) -> int:
        """Number of gradient steps in all."""
        return self.updates * self.scan


class SolverState(eqx.Module):
    """Networks, their moving averages and the optimizer; a leading axis of members."""

    network: SolverNetwork
    average: SolverNetwork
    memory: PyTree
    key: PRNGKeyArray
    step: Int[Array, ""]


def make_optimizer(config: SolverConfig) -> optax.GradientTransformation:
    """Return Muon for the matrices of blocks and Adam for the rest, at a rate of 1."""
    decay = lambda factor: optax.add_decayed_weights(config.weight_decay * factor)
    adam = optax.scale_by_adam(0.9, 0.98)
    muon = (optax.trace(MOMENTUM, nesterov=True), optax.stateless(_orthogonalized))
    return optax.multi_transform(
        {
            "matrix": optax.chain(*muon, decay(1.0)),
            "table": optax.chain(adam, optax.scale(config.table_rate), decay(1.0)),
            "scale": adam,
        },
        _kinds,
    )


def rate_at(done: Float[Array, ""]) -> Float[Array, ""]:
    """Return the learning rate as a share of the highest, by the share of steps done.

    It rises over the first 3 % and falls linearly to 1 % over the last 70 %.
    """
    return jnp.clip(jnp.minimum(done / 0.03, (1 - done) / 0.7), 0.01, 1.0)


def _kinds(network: PyTree) -> PyTree:
    """Name every array by how it is changed."""

    def kind(path: tuple[Any, ...], leaf: Any) -> str:
        inside = any(getattr(entry, "name", "") == "blocks" for entry in path)
        return "scale" if leaf.ndim == 1 else "matrix" if inside else "table"

    return jax.tree_util.tree_map_with_path(kind, network)


def _orthogonalized(updates: PyTree, _: PyTree) -> PyTree:
    return jax.tree.map(
        lambda x: x if isinstance(x, optax.MaskedNode) else orthogonalize(x),
        updates,
        is_leaf=lambda x: isinstance(x, optax.MaskedNode),
    )


def orthogonalize(matrix: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Bring all singular values near 1, then scale to the size of Adam's steps."""
    tall = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if tall else matrix
    x = x / (jnp.linalg.norm(x) + 1e-7)
    a, b, c = COEFFICIENTS
    for _ in range(ROUNDS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return (x.T if tall else x) * (0.2 * max(matrix.shape) ** 0.5)


@eqx.filter_jit
def _networks(keys: PRNGKeyArray, config: NetworkConfig) -> SolverNetwork:
    return eqx.filter_vmap(lambda key: SolverNetwork(key, config))(keys)


def start_training(config: SolverConfig) -> SolverState:
    """Return untrained networks."""
    keys = jax.random.split(jax.random.key(config.seed), config.members)
    split = jax.vmap(jax.random.split)(keys)
    networks = _networks(split[:, 0], config.network)
    begin = lambda network: make_optimizer(config).init(network)
    # An optimizer starts from zeros: NumPy's, since a program would have to compile.
    zeros = lambda leaf: jax.device_put(np.zeros(leaf.shape, leaf.dtype))
    memory = jax.tree.map(zeros, jax.eval_shape(jax.vmap(begin), networks))
    steps = jnp.zeros(config.members, jnp.int32)
    return SolverState(networks, networks, memory, split[:, 1], steps)


def update(
    state: SolverState,
    bank: PairBank,
    generated: PairBank | None,
    total: Float[Array, ""],
    config: SolverConfig,
) -> tuple[SolverState, dict[str, Array]]:
    """Take `scan` of `total` gradient steps with every member; return mean metrics."""
    members = jax.vmap(lambda one: _step(one, bank, generated, total, config))
    state, metrics = jax.lax.scan(
        lambda state, _: members(state), state, None, config.scan
    )
    return state, jax.tree.map(jnp.mean, metrics)


def _step(
    state: SolverState,
    bank: PairBank,
    generated: PairBank | None,
    total: Float[Array, ""],
    config: SolverConfig,
) -> tuple[SolverState, dict[str, Array]]:
    key, batch_key = jax.random.split(state.key)
    example, answers, asked = draw_batch(
        batch_key, bank, generated, config.batch, config.mixture, config.network
    )

    def loss_of(network: SolverNetwork) -> tuple[Array, Array]:
        return answer_loss(network(example), answers, asked)

    (loss, right), gradient = jax.value_and_grad(loss_of, has_aux=True)(state.network)
    with jax.numpy_dtype_promotion("standard"):  # optax mixes integers and floats
        params: Any = state.network
        change, memory = make_optimizer(config).update(gradient, state.memory, params)
    step = state.step + 1
    seen = step.astype(jnp.float32)
    rate = config.learning_rate * rate_at(seen / total)
    network = jax.tree.map(lambda x, by: x - rate * by, state.network, change)
    # Young averages forget faster, or they would remember the untrained network.
    keep = jnp.minimum(config.average, seen / (seen + 20.0))
    average = jax.tree.map(
        lambda old, new: keep * old + (1 - keep) * new, state.average, network
    )
    following = SolverState(network, average, memory, key, step)
    return following, {"loss": loss, "right": right}


def train_solver(
    config: SolverConfig,
    bank: PairBank,
    generated: PairBank | None = None,
    folder: Path | str | None = None,
    meter: Meter | None = None,
    sinks: tuple[Callable[..., None], ...] = (),
) -> SolverState:
    """Train as configured; with a folder, checkpoints and metrics go there.

    A run that finds a checkpoint of the same configuration goes on from it.
    """
    compiled = compile_once(update)
    total = jnp.asarray(config.steps, jnp.float32)
    state, _ = train(
        lambda state: compiled(state, bank, generated, total, config),
        start_training(config),
        config.updates,
        meter=meter,
        config=config,
        **keep_in(folder, sinks),
    )
    return state
