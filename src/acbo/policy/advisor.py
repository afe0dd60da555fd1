"""The trained policy: the next experiment from everything seen so far, by name."""

import functools
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from acbo.environment import Action, ProblemSpec
from acbo.history import History
from acbo.named.tables import Experiments
from acbo.policy import features
from acbo.policy.model import PolicyAction, PolicyConfig, PolicyNetwork, Scores
from acbo.policy.problem import Candidate
from acbo.posterior.distribution import ParentSetPosterior
from acbo.posterior.order_chains import GraphPosterior
from acbo.posterior.scores import column_scale
from acbo.surrogate import encode
from acbo.surrogate.predictor import Surrogate, infer_graphs, load_surrogate
from jaxrig.checkpoint import load_tree, read_header, save_tree
from jaxrig.compile_guard import compile_once

SHIPPED = Path(__file__).parent / "policy.ckpt"
PLAIN_PROGRAM = {
    "xla_backend_optimization_level": 0,
    "xla_cpu_use_fusion_emitters": False,
}

Causes = GraphPosterior | ParentSetPosterior | Mapping[str, float] | None
RARE_EDGE = 0.02


class Advice(eqx.Module):
    """What the policy makes of a history; expected outcomes in the user's units."""

    scores: Scores
    best: PolicyAction
    observation: features.PolicyObservation
    expected: Float[Array, "d m"]
    std: Float[Array, "d m"]
    gain: Float[Array, "d m"]
    parent_probs: Float[Array, " d"]
    ancestor_probs: Float[Array, " d"]


class PolicyProposer(eqx.Module):
    """A `Proposer` of surrogate and policy together, on the device.

    It sets one variable at a time. With `greedy` it does what it finds likeliest.
    """

    surrogate: Surrogate
    network: PolicyNetwork
    greedy: bool = eqx.field(static=True, default=False)

    def propose(
        self, key: PRNGKeyArray, history: History, spec: ProblemSpec, truth: Any
    ) -> Action:
        """Return the next intervention."""
        edges = features.edges_of(self.surrogate, history, spec)
        observation = features.policy_features(history, spec, edges)
        if self.greedy:
            return self.network.best(observation).action
        return self.network.sample(key, observation).action.action


class Policy(eqx.Module):
    """Chooses single-variable experiments, never the target, within the ranges."""

    surrogate: Surrogate
    network: PolicyNetwork

    def proposer(self, greedy: bool = True) -> PolicyProposer:
        """Return the policy as evaluations and episodes on the device use it."""
        return PolicyProposer(self.surrogate, self.network, greedy)

    def propose(
        self,
        history: Experiments,
        posterior: Causes = None,
        key: PRNGKeyArray | None = None,
    ) -> tuple[str, float]:
        """Return the variable to set next, and its value; without a key, the likeliest.

        `posterior` replaces `infer_graphs` of all rows: as a `GraphPosterior`, for all
        edges; else for the target's causes, and the surrogate tells the other edges.
        """
        _, advice = self._advise(history, posterior)
        action = advice.best
        if key is not None:
            action = _compiled_sample(self.network, key, advice.observation).action
        column = int(action.variable)
        name = history.names[column]
        low, high = history.ranges[name]
        value = float(action.value) + float(history.values[:, column].mean())
        return name, float(np.clip(value, low, high))

    def explain(
        self, history: Experiments, posterior: Causes = None
    ) -> list[Candidate]:
        """Return every variable that may be set, the likeliest first, with reasons."""
        posterior, advice = self._advise(history, posterior)
        advice = jax.device_get(advice)
        ancestors = advice.ancestor_probs
        if isinstance(posterior, GraphPosterior):
            ancestors = posterior.ancestor_probs[:, history.column]
        center = float(history.values[:, history.column].mean())
        logits = np.array(advice.scores.logits, np.float64)
        last = logits.shape[1] - 1
        share = np.clip((np.arange(last + 1) + advice.scores.center) / last, 0, 1)
        # On the host: a softmax of a few hundred cells is no program worth compiling.
        flat = np.exp(logits - logits.max())
        chosen = flat.sum(axis=1) / flat.sum()
        found = []
        for column, name in enumerate(history.names):
            if name not in history.ranges:
                continue
            cell, (low, high) = int(np.argmax(logits[column])), history.ranges[name]
            found.append(
                Candidate(
                    name,
                    low + float(share[column, cell]) * (high - low),
                    float(chosen[column]),
                    float(advice.parent_probs[column]),
                    float(ancestors[column]),
                    center + float(advice.expected[column, cell]),
                    float(advice.std[column, cell]),
                    float(advice.gain[column, cell]),
                )
            )
        return sorted(found, key=lambda each: -each.probability)

    def _advise(
        self, history: Experiments, posterior: Causes
    ) -> tuple[GraphPosterior | ParentSetPosterior | Mapping[str, float], Advice]:
        """Return what the network makes of a posterior, by default that of all rows."""
        if posterior is None:
            posterior = infer_graphs(
                history.values,
                history.intervened,
                names=history.names,
                surrogate=self.surrogate,
            )
        d = len(history.names)
        columns = encode.variable_bucket(d, encode.READING_BUCKETS)
        given = np.full(columns, np.nan, np.float32)
        if isinstance(posterior, GraphPosterior):
            # Edges as rare as the sampling's own noise would add up over many paths.
            sure = np.where(posterior.edge_probs < RARE_EDGE, 0, posterior.edge_probs)
            given = np.pad(sure, (0, columns - d)).astype(np.float32)
        else:
            given[:d] = _marginals(history, posterior)
        read = _compiled_advice()
        told = jax.device_put(given)
        return posterior, read(self, *_on_device(history, columns), told)


def _marginals(
    history: Experiments, posterior: ParentSetPosterior | Mapping[str, float]
) -> np.ndarray:
    """Return P(i causes the target) by column from a posterior or a mapping."""
    if isinstance(posterior, ParentSetPosterior):
        if posterior.target_variable != history.target:
            raise ValueError(
                f"the posterior is about {posterior.target_variable!r}, the target is "
                f"{history.target!r}"
            )
        posterior = posterior.parent_probs()
    return np.array([posterior.get(name, 0.0) for name in history.names], np.float32)


def _on_device(history: Experiments, columns: int) -> tuple[History, ProblemSpec]:
    """Pad the rows to their bucket and send everything to the device at once."""
    n, d = history.values.shape
    rows = encode.row_bucket(n)
    low, high, allowed = history.bounds
    wide = lambda x: np.pad(x, (0, columns - d))
    # Centered before the cast: single precision loses small differences of large
    # numbers. Differences are all that the policy looks at.
    center = history.values.mean(axis=0)
    low, high = ((ends - center).astype(np.float32) for ends in (low, high))
    rows_seen = (
        encode.pad_rows(encode.centered(history.values), rows, columns),
        encode.pad_rows(history.intervened, rows, columns),
        np.int32(n),
    )
    spec = (
        np.int32(history.column),
        wide(low),
        wide(high),
        np.arange(columns) < d,
        wide(allowed),
        np.float32(history.sign),
    )
    # `device_put` copies; `jnp.asarray` would compile a program for each shape.
    rows_seen, spec = jax.device_put((rows_seen, spec))
    return History(*rows_seen), ProblemSpec(*spec)


def _advice(
    policy: Policy, history: History, spec: ProblemSpec, given: Float[Array, "..."]
) -> Advice:
    if given.ndim == 2:
        edges, column = given, given[:, spec.target]
    else:
        edges = features.edges_of(policy.surrogate, history, spec)
        column = jnp.where(jnp.isnan(given), edges[:, spec.target], given)
        edges = edges.at[:, spec.target].set(column)
    observation = features.policy_features(history, spec, edges)
    mean, spread = column_scale(*history.rows)
    scale = spread[spec.target]
    return Advice(
        policy.network(observation),
        policy.network.best(observation),
        observation,
        mean[spec.target] + scale * spec.sign * observation.mean,
        scale * observation.std,
        scale * observation.gain,
        column,
        features.ancestor_probs(edges, spec.target),
    )


@functools.cache
def _compiled_advice() -> Any:
    """Compile for one trace per bucket of variables and rows; beyond 512 rows, one per
    512 more.

    A history is read once, then comes an experiment. On a CPU, optimizing the program
    takes four times as long as compiling it plainly and saves some ten milliseconds.
    """
    plain = jax.default_backend() == "cpu" and jax.__version_info__ >= (0, 8)
    options = PLAIN_PROGRAM if plain else None
    return compile_once(_advice, max_traces=64, compiler_options=options)


_compiled_sample = compile_once(PolicyNetwork.sample, max_traces=64)  # as above


def save_policy(path: Path | str, network: PolicyNetwork) -> Path:
    """Write a policy network with its sizes."""
    return save_tree(path, network, metadata={"config": asdict(network.config)})


@functools.lru_cache(maxsize=4)
def load_policy(
    path: Path | str | None = None, surrogate: Path | str | None = None
) -> Policy:
    """Return the policy of a file; without one, that which comes with the package."""
    found = Path(path) if path is not None else SHIPPED
    config = PolicyConfig(**read_header(found)["metadata"]["config"])
    like = eqx.filter_eval_shape(lambda: PolicyNetwork(config, jax.random.key(0)))
    return Policy(load_surrogate(surrogate), load_tree(found, like))
