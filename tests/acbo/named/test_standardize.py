import numpy as np
import pytest

from acbo.named.samples import create_interventional_sample, create_sample
from acbo.named.standardize import (
    apply_standardization,
    compute_standardization_params,
    reverse_standardization,
    samples_to_avici_data,
    samples_to_avici_format,
)

SAMPLES = [
    create_sample({"x": 1.0, "y": 10.0, "z": 5.0}),
    create_interventional_sample({"x": 3.0, "y": 30.0, "z": 5.0}, "perfect", {"x"}),
]


@pytest.mark.parametrize("kind", ["default", "count", "none"])
def test_the_way_back_is_exact(kind):
    values = np.random.default_rng(0).poisson(4.0, (50, 3)).astype(float)
    params = compute_standardization_params(values, kind)
    there = apply_standardization(values, params)
    np.testing.assert_allclose(
        reverse_standardization(there, params), values, rtol=1e-12, atol=1e-12
    )
    if kind != "none":
        np.testing.assert_allclose(there.mean(0), 0, atol=1e-12)
        np.testing.assert_allclose(there.std(0), 1)


def test_channels_are_value_intervened_target():
    tensor = samples_to_avici_format(SAMPLES, ["x", "y", "z"], "y")
    assert tensor.shape == (2, 3, 3)
    # Population standard deviation; a constant column is centered and left alone.
    np.testing.assert_allclose(tensor[..., 0], [[-1, -1, 0], [1, 1, 0]])
    assert tensor[..., 1].tolist() == [[0, 0, 0], [1, 0, 0]]
    assert tensor[..., 2].tolist() == [[0, 1, 0], [0, 1, 0]]


def test_raw_values_and_no_target():
    raw = samples_to_avici_format(SAMPLES, ["y", "x", "z"], "y", standardize=False)
    assert raw[..., 0].tolist() == [[10, 1, 5], [30, 3, 5]]
    plain = samples_to_avici_data(SAMPLES, None)
    assert not plain[..., 2].any()
    np.testing.assert_array_equal(
        samples_to_avici_data(SAMPLES, None, "y"),
        samples_to_avici_format(SAMPLES, None, "y"),
    )


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="'rank' is not one of: default, count, none"):
        compute_standardization_params(np.ones((2, 2)), "rank")
    with pytest.raises(ValueError, match="count of -1"):
        compute_standardization_params(-np.ones((2, 2)), "count")
    with pytest.raises(ValueError, match="'q' is not one of: x, y, z"):
        samples_to_avici_format(SAMPLES, None, "q")
