"""Every trial of an installation passes here."""

import pytest

from jaxtrace.workflow.selftest import TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("trial", TRIALS, ids=lambda trial: trial.name)
def test_trials_pass(trial):
    assert trial.run() <= trial.allowed
