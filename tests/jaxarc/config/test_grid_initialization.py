import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.groups import GridInitializationConfig

WEIGHTS = st.floats(0, 1e6)


def test_defaults_are_valid():
    assert GridInitializationConfig().validate() == ()
    assert GridInitializationConfig().probabilities == pytest.approx(
        (0.4, 0.3, 0.2, 0.1)
    )


@given(st.tuples(WEIGHTS, WEIGHTS, WEIGHTS, WEIGHTS).filter(any))
def test_probabilities_add_up_to_one_and_keep_ratios(weights):
    got = GridInitializationConfig(*weights).probabilities
    assert sum(got) == pytest.approx(1)
    assert got == pytest.approx([weight / sum(weights) for weight in weights])


@pytest.mark.parametrize("weights", [(0, 0, 0, 0), (1e308, 1e308, 0, 0)])
def test_weights_must_have_a_sum(weights):
    config = GridInitializationConfig(*weights)
    (error,) = config.validate()
    assert error.startswith("grid_initialization.demo_weight and the other three")
    with pytest.raises(ConfigValidationError, match="finite and above 0"):
        _ = config.probabilities


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("demo_weight", -0.1),
        ("permutation_types", ()),
        ("permutation_types", ("shear",)),
        ("random_density", 1.5),
        ("random_pattern_type", "stripes"),
    ],
)
def test_illegal_values_are_named(field, value):
    (error,) = GridInitializationConfig(**{field: value}).validate()
    assert error.startswith(f"grid_initialization.{field} is {value!r}; it must be ")
