import dataclasses

import numpy as np
import pytest

from acbo.named.handlers import (
    apply_intervention,
    clear_intervention_handlers,
    get_intervention_handler,
    list_intervention_types,
    register_intervention_handler,
    unregister_intervention_handler,
)
from acbo.named.interventions import (
    create_intervention,
    create_perfect_intervention,
    create_shift_intervention,
)
from acbo.named.sampling import sample_from_scm, sample_with_intervention
from causal_models import triangle


@pytest.fixture(autouse=True)
def _built_in_only():
    yield
    clear_intervention_handlers()


def values_of(samples, name):
    return np.array([sample.values[name] for sample in samples])


def test_perfect_makes_a_constant_in_a_copy():
    scm = triangle()
    spec = create_perfect_intervention({"B"}, {"B": 0.5})
    done = apply_intervention(scm, spec)
    assert done.edges == scm.edges
    assert scm.metadata == {}
    assert done.metadata == {
        "intervention_applied": True,
        "intervention_type": "perfect",
        "intervention_targets": {"B"},
        "intervention_values": {"B": 0.5},
    }
    # The changed model and the compiled intervention tell the same story.
    through_model = sample_from_scm(done, 4, seed=3)
    through_arrays = sample_with_intervention(scm, spec, 4, seed=3)
    np.testing.assert_allclose(
        values_of(through_model, "C"), values_of(through_arrays, "C"), atol=1e-6
    )
    assert set(values_of(through_model, "B")) == {0.5}


def test_shift_moves_and_keeps_the_causes():
    scm = triangle()
    spec = create_shift_intervention({"B"}, {"B": 2.0})
    moved = sample_from_scm(apply_intervention(scm, spec), 4, seed=3)
    seen = sample_from_scm(scm, 4, seed=3)
    np.testing.assert_allclose(
        values_of(moved, "B"), values_of(seen, "B") + 2, atol=1e-5
    )


def test_own_types_can_be_registered_and_forgotten():
    assert list_intervention_types() == ["perfect", "shift"]

    def silence(scm, spec):
        quiet = triangle(noise_scales=0.0)
        return dataclasses.replace(scm, mechanisms=quiet.mechanisms)

    register_intervention_handler("silence", silence)
    assert get_intervention_handler("silence") is silence
    spec = create_intervention("silence", {"A"}, {"A": 0.0})
    (sample,) = sample_with_intervention(triangle(), spec, 1)
    assert dict(sample.values) == pytest.approx({"A": 1.0, "B": 0.8, "C": 0.4})
    assert sample.intervention_type == "silence"
    unregister_intervention_handler("silence")
    with pytest.raises(ValueError, match="'silence' is not one of: perfect, shift"):
        apply_intervention(triangle(), spec)


def test_wrong_registrations_are_named():
    with pytest.raises(ValueError, match="not callable"):
        register_intervention_handler("soft", 3)
    with pytest.raises(ValueError, match="is no name"):
        register_intervention_handler("", lambda scm, spec: scm)
    with pytest.raises(ValueError, match="'soft' is not one of"):
        unregister_intervention_handler("soft")


@pytest.mark.parametrize(
    ("name", "words"), [("Q", "'Q' is not one of"), ("C", "is the target")]
)
@pytest.mark.parametrize(
    "create", [create_perfect_intervention, create_shift_intervention]
)
def test_unknown_variables_and_the_target_are_refused(create, name, words):
    with pytest.raises(ValueError, match=words):
        apply_intervention(triangle(), create({name}, {name: 1.0}))
