"""Held-out trials of a system in training: the same fresh problems every time."""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from acbo.environment import first_history, run_episode
from acbo.families import SCMConfig, random_scm
from acbo.optimum import best_single, outcome_of
from acbo.policy.advisor import Proposer
from acbo.policy.model import PolicyNetwork
from acbo.surrogate.encode import variable_bucket
from acbo.surrogate.predictor import Surrogate
from acbo.training.config import EvaluationConfig
from acbo.training.labels import parent_scores
from jaxrig.keys import named_key, worker_keys
from jaxrig.tracing import compile_once

ROWS = 30  # observational, before the first experiment


def hold_trial(
    key: PRNGKeyArray,
    surrogate: Surrogate,
    network: PolicyNetwork,
    config: EvaluationConfig,
    steps: int,
) -> dict[str, Any]:
    """Mean F1 of the causes called and mean simple regret, over all and by size.

    The policy does what it finds likeliest. A regret is the distance of the best
    expected outcome of its experiments from that of the best single intervention.
    """
    sizes = config.sizes
    keys = worker_keys(key, len(sizes), config.n_eval_trajectories)
    bucket = variable_bucket(max(sizes))
    given = surrogate, network, keys, jnp.asarray(sizes, jnp.int32)
    f1, regret = jax.device_get(_compiled_trials(*given, bucket, steps))
    found = {"f1": f1.mean(), "regret": regret.mean()}
    return {**found, **_by_size("f1", sizes, f1), **_by_size("regret", sizes, regret)}


def _by_size(name: str, sizes: Sequence[int], values: np.ndarray) -> dict[str, Any]:
    means = zip(sizes, values.mean(axis=1), strict=True)
    return {f"{name}_d{size}": mean for size, mean in means}


def _trials(
    surrogate: Surrogate,
    network: PolicyNetwork,
    keys: Array,
    sizes: Int[Array, " m"],
    d: int,
    steps: int,
) -> tuple[Float[Array, "m n"], Float[Array, "m n"]]:
    proposer = Proposer(surrogate, network, greedy=True)

    def one(key: PRNGKeyArray, size: Int[Array, ""]) -> tuple[Array, Array]:
        scm = random_scm(named_key(key, "model"), SCMConfig(), size, d)
        room = ROWS + steps
        rows = first_history(named_key(key, "rows"), scm, ROWS, 0, room, True)
        record = run_episode(named_key(key, "play"), scm, proposer, rows, steps)
        seen, noise = record.history, named_key(key, "noise")
        given = seen.values, seen.intervened, seen.row_mask, scm.mask, scm.target
        f1, _ = parent_scores(surrogate.predict(*given)[0], scm)
        best = outcome_of(noise, scm, record.action).min()
        return f1, best - best_single(noise, scm).value

    return jax.vmap(jax.vmap(one, (0, None)))(keys, sizes)


_compiled_trials = compile_once(_trials, max_traces=None)
