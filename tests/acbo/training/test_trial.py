"""Oracle: problems are the same every time, and nothing beats the optimum."""

import jax
import numpy as np
import pytest

from acbo.training.config import EvaluationConfig
from acbo.training.grpo import evaluate_held_out
from acbo.training.parent_set_model import SetReader
from causal_experience import params, policy_params


@pytest.mark.slow
def test_trials_are_of_every_size_and_repeat():
    config = EvaluationConfig(1, 3, (3, 4))
    given = SetReader(params()), policy_params().network, config, 2
    found = evaluate_held_out(jax.random.key(0), *given)
    again = evaluate_held_out(jax.random.key(0), *given)
    assert found == again
    assert set(found) == {
        *("f1", "f1_d3", "f1_d4"),
        *("regret", "regret_d3", "regret_d4"),
    }
    for name in ("f1", "regret"):
        parts = [found[f"{name}_d3"], found[f"{name}_d4"]]
        np.testing.assert_allclose(found[name], np.mean(parts), rtol=1e-5)
        assert min(parts) >= -1e-4
    assert found["f1"] <= 1
