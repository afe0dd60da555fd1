import pytest

from acbo.named.buffer import ExperienceBuffer
from acbo.named.interventions import create_perfect_intervention
from acbo.named.samples import create_interventional_sample, create_sample

SPEC = create_perfect_intervention({"X"}, {"X": 1.0})
OUTCOME = create_interventional_sample({"X": 1.0, "Y": 2.0}, "perfect", {"X"})
FIRST, SECOND = create_sample({"X": 0.0, "Y": 0.5}), create_sample({"X": 3.0})


@pytest.fixture
def buffer():
    made = ExperienceBuffer()
    made.add_observation(FIRST)
    made.add_intervention(SPEC, OUTCOME)
    made.add_observation(SECOND)
    return made


def test_orders_and_counts(buffer):
    assert buffer.get_chronological() == [FIRST, OUTCOME, SECOND]
    assert buffer.get_all_samples() == [FIRST, SECOND, OUTCOME]
    assert buffer.get_observations() == [FIRST, SECOND]
    assert buffer.get_interventions() == [(SPEC, OUTCOME)]
    sizes = buffer.size(), len(buffer), buffer.num_observations()
    assert sizes == (3, 3, 2)
    assert buffer.num_interventions() == 1
    assert buffer.get_variable_coverage() == {"X", "Y"}


def test_filters_and_batches(buffer):
    assert buffer.filter_by_variables({"Y"}) == [FIRST, OUTCOME]
    assert buffer.filter_interventions_by_targets({"X"}) == [OUTCOME]
    assert buffer.filter_interventions_by_targets({"Y"}) == []
    assert buffer.filter_by_intervention_type("perfect") == [OUTCOME]
    assert buffer.filter_by_intervention_type(None) == [FIRST, SECOND]
    assert list(buffer.batch_iterator(2)) == [[FIRST, OUTCOME], [SECOND]]
    assert list(buffer.batch_iterator(2, include_observations=False)) == [[OUTCOME]]


def test_statistics(buffer):
    found = buffer.get_statistics()
    assert (found.total_samples, found.num_observations, found.num_interventions) == (
        3,
        2,
        1,
    )
    assert found.unique_variables == 2
    assert found.unique_intervention_types == 1
    assert found.unique_intervention_targets == 1
    assert found.creation_time <= found.last_update_time


def test_samples_of_the_wrong_kind_are_refused(buffer):
    with pytest.raises(ValueError, match="use add_intervention"):
        buffer.add_observation(OUTCOME)
    with pytest.raises(ValueError, match="use add_observation"):
        buffer.add_intervention(SPEC, FIRST)
    other = create_interventional_sample({"X": 1.0, "Y": 2.0}, "perfect", {"Y"})
    with pytest.raises(ValueError, match="must be the same"):
        buffer.add_intervention(SPEC, other)
    with pytest.raises(ValueError, match="batch_size=0"):
        next(buffer.batch_iterator(0))
    assert buffer.size() == 3
