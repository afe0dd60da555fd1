"""Oracle: counting."""

from acbo.training.examples import (
    TrainingBatch,
)
from causal_examples import make_example


def test_the_truth_may_be_unknown():
    assert make_example(truth=False).true_parents is None
    assert isinstance(make_example().true_parents, frozenset)
    assert TrainingBatch([]).batch_size == 0
