"""Oracle: counting."""

from types import SimpleNamespace

import jax
import pytest

from acbo.training.examples import (
    TrainingBatch,
    create_training_batch_from_examples,
    extract_training_data_from_demonstrations,
)
from causal_examples import make_example

EXAMPLES = [make_example(seed) for seed in range(10)]


def test_batches_are_drawn_without_repetition():
    key = jax.random.key(0)
    batch = create_training_batch_from_examples(EXAMPLES, 6, key)
    assert batch.batch_size == 6
    assert len({id(e) for e in batch.examples}) == 6
    every = create_training_batch_from_examples(EXAMPLES, 99, key, max_parent_size=2)
    assert every.examples == EXAMPLES
    assert every.max_parent_size == 2
    with pytest.raises(ValueError, match="batch_size=0 must be at least 1"):
        create_training_batch_from_examples(EXAMPLES, 0, key)


def test_each_example_is_drawn_as_often():
    seen = dict.fromkeys(map(id, EXAMPLES), 0)
    for seed in range(100):
        key = jax.random.key(seed)
        batch = create_training_batch_from_examples(EXAMPLES, 5, key)
        for example in batch.examples:
            seen[id(example)] += 1
    assert min(seen.values()) > 30


def test_validation_is_the_first_share():
    wrapped = SimpleNamespace(examples=EXAMPLES[2:])
    train, held = extract_training_data_from_demonstrations([*EXAMPLES[:2], wrapped])
    assert held == EXAMPLES[:2]
    assert train == EXAMPLES[2:]
    with pytest.raises(ValueError, match=r"validation_split=1\.0"):
        extract_training_data_from_demonstrations(EXAMPLES, 1.0)


def test_the_truth_may_be_unknown():
    assert make_example(truth=False).true_parents is None
    assert isinstance(make_example().true_parents, frozenset)
    assert TrainingBatch([]).batch_size == 0
