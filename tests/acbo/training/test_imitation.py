"""Oracle: an expert that follows a rule, which training must find."""

import numpy as np
import pytest

from acbo.training.config import SurrogateTrainingConfig
from acbo.training.imitation import LOSSES, train_surrogate_model
from causal_examples import make_example
from causal_surrogates import stand_in

MODEL = stand_in()
DEMOS = [make_example(0, d=3, rows=20) for _ in range(10)]
CONFIG = SurrogateTrainingConfig(
    max_epochs=12, batch_size=4, learning_rate=0.1, validation_frequency=3
)


@pytest.mark.parametrize("loss_type", LOSSES)
def test_losses_fall(loss_type):
    model, params, history = train_surrogate_model(
        DEMOS, CONFIG, loss_type, model=MODEL, expert_seconds=1.0
    )
    assert model is MODEL
    assert len(history["losses"]) == len(history["step_times"]) == 12 * 2
    assert history["losses"][-1] < 0.7 * history["losses"][0]
    first, *_, last = history["validation_metrics"]
    assert len(history["validation_metrics"]) == 4
    assert last.posterior_kl_divergence < first.posterior_kl_divergence
    assert np.isfinite(params.weight).all()


def test_training_stops_when_nothing_gets_better():
    """One example has an expert that no model follows: the best comes first."""
    patience = SurrogateTrainingConfig(
        **{**vars(CONFIG), "early_stopping_patience": 1, "validation_frequency": 1},
    )
    odd = [make_example(5, sharp=50.0), *DEMOS[:8]]
    _, _, history = train_surrogate_model(
        *(odd, patience, "kl_divergence", False, 0.12, 0), model=MODEL
    )
    found = [m.posterior_kl_divergence for m in history["validation_metrics"]]
    assert len(found) < 12
    assert found[-1] >= min(found)


def test_the_same_seed_gives_the_same_parameters():
    runs = [train_surrogate_model(DEMOS, CONFIG, model=MODEL) for _ in range(2)]
    np.testing.assert_array_equal(runs[0][1].weight, runs[1][1].weight)
    assert runs[0][2]["losses"] == runs[1][2]["losses"]


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="'mse' is not one of: kl_divergence"):
        train_surrogate_model(DEMOS, CONFIG, "mse")
    with pytest.raises(ValueError, match="leave none to train on"):
        train_surrogate_model([], CONFIG)
