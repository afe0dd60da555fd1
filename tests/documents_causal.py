"""The guide for acbo: what its reader has, and checks of what it claims.

Its claims of speed are ratios of compile time to run time, which benchmarks measure and
tests do not assert.
"""

import contextlib
import functools
import logging
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import acbo.training as training
import causal_experience
from acbo.training.parent_set_model import ParentSetModel
from causal_surrogates import stand_in
from documents import Guide

KEY = jax.random.key(0)
ADAM = optax.adam(1e-3)
SETS = [frozenset(), frozenset("X"), frozenset("Z"), frozenset("XZ")]
LOGITS = jnp.asarray([1.0, 2.0, 0.5, 0.1])
PROBS = jnp.asarray([0.1, 0.6, 0.2, 0.1])


def make_step(factory, model):
    return factory(model, ADAM, training.kl_divergence_loss, training.test_config)


def static_arguments(names):
    given = [SETS], [["X", "Y", "Z"]], ["Y"]
    ours, theirs = training.prepare_static_args, names["prepare_static_args"]
    assert ours(*given) == theirs(*given)
    restored = names["restore_static_args"](ours(*given))
    assert restored == training.restore_static_args(theirs(*given)) == given


def metrics_outside(names):
    _, _, metrics = names["wrapper_function"]()
    assert metrics["total_loss"] == 2.0
    assert all(type(value) is float for value in metrics.values())


def compile_cost(names):
    """Their function calls our step twice; it is compiled once."""
    step = make_step(training.create_jax_surrogate_train_step, names["model"])
    params, state, batch, key = names["args"]
    args = params, state, *training.convert_to_jax_batch(batch).as_args(), key
    ratio, first, second = names["measure_compilation_speedup"](step, *args)
    assert ratio > 0
    assert first[2] == second[2]
    assert step.compilations == 1
    names["compiled"] = step


def sustained(names):
    steps = names["compiled"], names["regular_step"]
    measure = names["benchmark_sustained_performance"]
    assert measure(*steps, names["args"], n_runs=2) > 1


def memory(names):
    monitor = names["monitor_memory_usage"]
    result, increase, peak = monitor(names["compiled"], *names["args"])
    assert "total_loss" in result[2]
    assert 0 <= increase <= peak


def compiles_alone(names):
    names["test_loss_function_compilation"]()
    names["test_model_forward_compilation"]()


def fallback(names):
    """The step is of a model that no tracer passes through: its parameters here."""
    params = stand_in(branches=True).init(KEY)
    names |= {"params": params, "opt_state": ADAM.init(params)}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        names["validate_fallback_behavior"]()
    assert any("runs eagerly" in str(each.message) for each in said)


def learns_level_by_level(names):
    seen = []
    with contextlib.ExitStack() as settings:
        names["logger"].addHandler(handler := _Remember(seen))
        settings.callback(names["logger"].removeHandler, handler)
        config = training.SurrogateTrainingConfig(max_epochs=3)
        names["optimized_progressive_learning"]([], config)
    assert [line.split(":")[0] for line in seen] == [
        *("Difficulty easy", "Difficulty medium", "Difficulty hard")
    ]


def learns_from_experience(names):
    """Their loop: each update starts from what the one before it left."""
    seen = []
    for name in ("update_surrogate_jax", "update_policy_grpo", "collect_experience"):
        names[name] = _counting(names[name], name, seen)
    config = training.SurrogateTrainingConfig(learning_rate=1e-2)
    names["grpo_with_jax_surrogate"](SimpleNamespace(total_steps=2), config)
    assert [name for name, _ in seen] == 2 * [
        *("update_surrogate_jax", "update_policy_grpo", "collect_experience")
    ]
    collected = [found for name, found in seen if name == "collect_experience"]
    assert [int(each.policy.state.updates) for each in collected] == [1, 2]
    assert names["data"].updates == 2
    every = [names["experience"], *collected]
    assert len({float(each.outcomes.sum()) for each in every}) == 3
    assert all(bool(jnp.isfinite(each.rewards).all()) for each in every)


def _counting(function, name, seen):
    def counted(*args):
        found = function(*args)
        seen.append((name, found))
        return found

    return counted


class _Remember(logging.Handler):
    def __init__(self, seen: list[str]):
        super().__init__()
        self.seen = seen

    def emit(self, record):
        self.seen.append(record.getMessage())


def mapped(names):
    one = training.kl_divergence_loss_jax(LOGITS, PROBS, SETS)
    np.testing.assert_allclose(names["batch_losses"], [one, one], rtol=1e-6)
    np.testing.assert_allclose(one, 0.0553174, atol=1e-6)


def on_every_device(names):
    params, _, metrics = names["multi_device_results"]
    assert metrics["total_loss"].shape == (8,)
    alone = names["compiled"](*names["args"])[2]["total_loss"]
    np.testing.assert_allclose(metrics["total_loss"], alone, rtol=1e-5)
    assert all(x.shape[0] == 8 for x in jax.tree.leaves(params))


def half_precision(names):
    assert names["policy"].compute_dtype == jnp.float16


def names_of_003(
    model: ParentSetModel, params: Any, uncompiled: ParentSetModel
) -> dict[str, Any]:
    state, batch = ADAM.init(params), training.create_test_batch()
    arrays = training.convert_to_jax_batch(batch).arrays
    copies = lambda tree: jax.tree.map(lambda x: jnp.stack([x] * 8), tree)
    step = make_step(training.create_jax_surrogate_train_step, model)
    branching = functools.partial(
        training.create_adaptive_train_step,
        *(stand_in(branches=True), ADAM, training.kl_divergence_loss),
        training.test_config,
    )
    data = jnp.asarray(batch.examples[0].observational_data)
    experience = causal_experience.experience()
    learner = causal_experience.params(), experience.data, KEY
    logger = logging.getLogger("document_003")
    logger.setLevel(logging.INFO)
    return {
        **{"logger": logger, "parent_sets": [SETS, SETS]},
        **{"condition": True, "true_branch": lambda: 1.0, "false_branch": lambda: 0.0},
        **{"x": jnp.ones(2), "y": jnp.asarray([0.5, 1.0]), "jax_loss": jnp.ones(())},
        **{"loss": jnp.asarray(2.0), "grad_norm": jnp.asarray(1.0), "lr": 0.1},
        **{"new_params": jnp.zeros(2), "new_opt_state": jnp.zeros(1)},
        **{"params": params, "opt_state": state, "batch": batch, "key": KEY},
        **{"variable_orders": [["X", "Y", "Z"]], "args": (params, state, batch, KEY)},
        "regular_step": make_step(training.create_surrogate_train_step, uncompiled),
        "create_adaptive_train_step": branching,
        **{"static_parent_sets": SETS, "test_logits": LOGITS, "test_probs": PROBS},
        **{"test_params": params, "test_data": data, "model": model},
        "forward_args": (["X", "Y", "Z"], "Y", False),
        **{"surrogate_model": causal_experience.MODEL, "experience": experience},
        "data": training.SurrogateData(*learner),
        **{"batch_logits": jnp.stack([LOGITS] * 2)},
        **{"batch_expert_probs": jnp.stack([PROBS] * 2)},
        "jax_train_step": lambda params, batch: step(params, state, batch, KEY),
        **{"device_params": copies(params), "device_batches": copies(arrays)},
    }


CHECKS_003 = {
    "def prepare_static_args": static_arguments,
    "def wrapper_function": metrics_outside,
    "def measure_compilation_speedup": compile_cost,
    "def benchmark_sustained_performance": sustained,
    "def test_performance_regression": lambda names: names[
        "test_performance_regression"
    ](),
    "def monitor_memory_usage": memory,
    "def test_loss_function_compilation": compiles_alone,
    "def validate_fallback_behavior": fallback,
    "def optimized_progressive_learning": learns_level_by_level,
    "def grpo_with_jax_surrogate": learns_from_experience,
    "vmapped_loss =": mapped,
    "pmapped_step =": on_every_device,
    "mixed_precision.create_policy": half_precision,
}
SAID = ("Sustained speedup", "Peak memory")


@contextlib.contextmanager
def guide_with_networks(folder: Path, monkeypatch: pytest.MonkeyPatch):
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        model, params = training.create_test_model()
        yield Guide(names_of_003(model, params, model), CHECKS_003, SAID)


@contextlib.contextmanager
def guide_with_stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The same in seconds: a network of four weights, and easy problems only.

    The uncompiled step branches as the one of the fallback does, so that the two share
    what JAX compiles for single operations.
    """
    # All of it as a reader's JAX promotes: other settings would compile it twice.
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        model, easy = stand_in(), training.generate_scm_for_difficulty("easy", 3)
        params = model.init(KEY)
        smaller = {
            "create_test_model": lambda: (model, params),
            "create_parent_set_model": lambda: model,
            "generate_scm_for_difficulty": lambda difficulty: easy,
        }
        names = names_of_003(model, params, stand_in(branches=True))
        yield Guide(names, CHECKS_003, SAID, smaller)


GUIDES = {"003": guide_with_stand_in}
