"""Estimates scale as their formulas say; findings name what is there."""

import numpy as np
import pytest

from jaxtrace.fields.analytic import DoubleGyre
from jaxtrace.tracking.boundary import reflective_boundary
from jaxtrace.tracking.diagnosis import (
    analyze_field_sampling,
    benchmark_performance,
    estimate_runtime,
    get_memory_info,
    validate_configuration,
)
from jaxtrace.tracking.flows import create_uniform_field, within
from jaxtrace.tracking.tracker import create_tracker

BOX = reflective_boundary([0, 2, 0, 1])


def tracker(field=None, **options):
    return create_tracker("rk4", field or DoubleGyre(), BOX, **options)


def test_an_estimate_scales_with_the_run():
    found = estimate_runtime(tracker(batch_size=300), 2000, 101, 50, 4)
    assert found["success"]
    each = found["time_per_particle_step"]
    assert found["estimated_runtime_seconds"] == pytest.approx(each * 2000 * 100)
    assert found["calibration_time"] == pytest.approx(each * 50 * 4)
    assert (found["batch_size"], found["n_batches"]) == (300, 7)
    assert found["processing_mode"] == "multi_batch"
    assert found["estimated_memory_gb"] == pytest.approx(
        2000 * (101 * 12 + 48) / 1024**3
    )


def test_an_estimate_needs_a_run_and_bounds():
    with pytest.raises(ValueError, match="n_timesteps=1"):
        estimate_runtime(tracker(), 10, 1)
    with pytest.raises(ValueError, match="no bounds to put trial particles in"):
        estimate_runtime(tracker(create_uniform_field()), 10, 5)


def test_a_benchmark_has_every_size():
    found = benchmark_performance(tracker(), (10, 20), 5)
    for name in ("timing_results", "memory_usage", "throughput", "scalability"):
        assert list(found[name]) == [10, 20]
    assert found["scalability"][10] == 1
    assert found["throughput"][20] == pytest.approx(
        20 * 4 / found["timing_results"][20]
    )


def test_sampling_knows_speeds_and_what_is_outside():
    field = within(create_uniform_field((3.0, 4.0)), [0, 1, 0, 1])
    points = np.array([[0.5, 0.5, 0.0], [2.0, 0.5, 0.0]], np.float32)
    found = analyze_field_sampling(tracker(field), points, [0.0, 1.0])
    assert found["speed"] == {"mean": 5.0, "min": 5.0, "max": 5.0, "std": 0.0}
    assert (found["outside"], found["outside_time"]) == (1, 0)
    assert found["n_not_finite"] == 0
    assert [row["max"] for row in found["per_time"]] == [5.0, 5.0]


def test_a_field_that_answers_nothing_is_counted():
    field = lambda x, t: x * np.float32(np.nan)
    found = analyze_field_sampling(tracker(field), np.zeros((2, 3), np.float32), 0.0)
    assert found["n_not_finite"] == 2
    assert np.isnan(found["speed"]["mean"])


def test_a_configuration_in_words():
    found = validate_configuration(tracker(batch_size=7))
    assert found["valid"]
    assert found["warnings"] == []
    assert found["configuration"]["boundary"] == "BoxBoundary"
    assert found["configuration"]["batch_size"] == 7


def test_a_slow_configuration_is_named():
    found = validate_configuration(tracker(use_jax_jit=False, max_memory_gb=1e-12))
    assert any("interpreted" in line for line in found["warnings"])
    assert any("the budget is 1e-12 GiB" in line for line in found["warnings"])


def test_memory_of_the_field():
    found = get_memory_info(tracker())
    assert found["field_mb"] == pytest.approx(3 * 8 / 1024**2)
    assert found["rss_mb"] > 0
