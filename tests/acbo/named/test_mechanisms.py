import jax
import jax.numpy as jnp
import numpy as np
import pytest

from acbo.named.mechanisms import (
    ConstantMechanism,
    Formula,
    ShiftedMechanism,
    as_mechanism,
    create_linear_mechanism,
    create_root_mechanism,
    plain_number,
    plain_numbers,
)

PARENTS = {"p": jnp.asarray(2.0), "q": jnp.asarray(-1.0)}


def test_linear_without_noise_is_the_formula(key):
    made = create_linear_mechanism(["p", "q"], {"p": 3.0, "q": 0.5}, 1.0, 0.0)
    assert float(made(PARENTS, key)) == 1 + 3 * 2 - 0.5


def test_noise_has_the_scale_and_the_root_its_mean(key):
    made = create_root_mechanism(4.0, 0.5)
    draws = jax.vmap(lambda k: made({}, k))(jax.random.split(key, 4000))
    np.testing.assert_allclose([draws.mean(), draws.std()], [4.0, 0.5], atol=0.03)


def test_output_is_clipped_to_its_bounds(key):
    made = create_linear_mechanism(["p"], {"p": 100.0}, output_bounds=(-1, 1))
    assert float(made(PARENTS, key)) == 1.0


def test_numbers_are_leaves_and_functions_are_not(key):
    made = create_linear_mechanism(["p", "q"], {"p": 3.0, "q": 0.5})
    assert len(jax.tree.leaves(made)) == 3
    wrapped = as_mechanism(lambda values, key: values["p"] ** 2, "y")
    assert isinstance(wrapped, Formula)
    assert jax.tree.leaves(wrapped) == []
    assert float(wrapped(PARENTS, key)) == 4.0
    assert as_mechanism(made, "y") is made


def test_constant_and_shift(key):
    made = create_linear_mechanism(["p"], {"p": 3.0}, noise_scale=0)
    assert float(ConstantMechanism(jnp.asarray(7.0))(PARENTS, key)) == 7.0
    assert float(ShiftedMechanism(made, jnp.asarray(0.5))(PARENTS, key)) == 6.5


def test_plain_number_undoes_single_precision():
    assert plain_number(jnp.asarray(0.8)) == 0.8
    assert plain_number(np.float32(1e-7)) == 1e-7
    assert plain_number(np.float64(0.1)) == 0.1
    table = jnp.asarray([[0.1, 0.2]])
    assert plain_numbers(table).tolist() == [[0.1, 0.2]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: create_linear_mechanism(["p"], {}), "'p' has no coefficient"),
        (lambda: create_linear_mechanism([], {"p": 1.0}), "'p' has a coefficient"),
        (lambda: create_linear_mechanism(["p"], {"p": float("nan")}), "coefficient of"),
        (lambda: create_root_mechanism(0.0, -1.0), "noise_scale is -1"),
        (lambda: create_root_mechanism(0.0, float("inf")), "noise_scale is inf"),
        (lambda: create_root_mechanism("x"), "mean is 'x'"),
        (
            lambda: create_linear_mechanism([], {}, output_bounds=(2.0, 1.0)),
            "are empty",
        ),
        (lambda: as_mechanism(3.0, "y"), "mechanism of 'y' is 3.0"),
    ],
)
def test_wrong_numbers_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()
