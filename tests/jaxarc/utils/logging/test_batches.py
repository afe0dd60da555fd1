"""Figures of batches against NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.utils.logging.batches import aggregate


def test_arrays_become_four_figures():
    returns = np.array([1.0, 4.0, -2.0], np.float32)
    lengths = jnp.array([3, 5, 10])
    found = aggregate({"returns": returns, "lengths": lengths, "loss": 0.25})
    for name, values in (("returns", returns), ("lengths", np.array([3, 5, 10]))):
        assert found[f"{name}_mean"] == pytest.approx(values.mean())
        assert found[f"{name}_std"] == pytest.approx(values.std())
        assert found[f"{name}_min"] == values.min()
        assert found[f"{name}_max"] == values.max()
    assert found["loss"] == 0.25
    assert all(type(value) is float for value in found.values())


def test_truths_become_a_rate():
    mask = jnp.array([True, False, False, False])
    assert aggregate({"success_mask": mask}) == {"success_rate": 0.25}


def test_nothing_has_no_figures():
    with pytest.raises(ValueError, match=r"returns has shape \(0,\)"):
        aggregate({"returns": jnp.zeros(0)})
