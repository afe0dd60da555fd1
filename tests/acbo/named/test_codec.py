import numpy as np
import pytest

from acbo.named.codec import Codec, arrays_to_samples, samples_to_arrays
from acbo.named.samples import create_interventional_sample, create_sample

SAMPLES = [
    create_sample({"b": 0.1, "a": 2.0}),
    create_interventional_sample({"b": 3.0, "a": -4.0}, "perfect", {"b"}),
]


def test_names_and_columns():
    codec = Codec(("b", "a", "c"))
    assert codec.index("a") == 1
    assert codec.mask({"c", "b"}).tolist() == [True, False, True]
    assert codec.members(codec.mask({"c", "b"})) == {"b", "c"}
    edges = {("a", "b"), ("b", "c")}
    adjacency = codec.adjacency(edges)
    assert adjacency[1, 0]
    assert int(adjacency.sum()) == 2
    assert codec.edges(adjacency) == edges
    with pytest.raises(ValueError, match="'q' is not one of: a, b, c"):
        codec.index("q")


def test_samples_make_the_round_trip():
    values, intervened = samples_to_arrays(SAMPLES)
    np.testing.assert_allclose(values, [[2.0, 0.1], [-4.0, 3.0]])
    assert intervened.tolist() == [[False, False], [False, True]]
    assert arrays_to_samples(values, intervened, ("a", "b")) == SAMPLES
    turned, _ = samples_to_arrays(SAMPLES, ["b", "a"])
    np.testing.assert_array_equal(turned, values[:, ::-1])


def test_missing_values_are_named():
    with pytest.raises(ValueError, match="sample 2 has no value of 'b'"):
        samples_to_arrays([SAMPLES[0], create_sample({"a": 1.0})])
    with pytest.raises(ValueError, match="no samples"):
        samples_to_arrays([])
