import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

import trace_vtk
from jaxtrace.files import columns, polylines


def naive_lines(record):
    """Lines as lists of (particle, frame), by the definition."""
    lines = []
    for particle in range(record.shown.shape[1]):
        line = []
        for frame in range(len(record.shown)):
            if not record.shown[frame, particle]:
                line = []
                continue
            if line and breaks(record, particle, frame):
                line = []
            if not line:
                lines.append(line)
            line.append((particle, frame))
    return lines


def breaks(record, particle, frame):
    generation, period = record.generation, record.period
    step = record.positions[frame, particle] - record.positions[frame - 1, particle]
    recycled = (
        generation is not None
        and generation[frame, particle] != generation[frame - 1, particle]
    )
    wrapped = period is not None and any(
        0 < length < np.inf and abs(d) > length / 2
        for d, length in zip(step, period, strict=True)
    )
    return recycled or wrapped


@st.composite
def records(draw):
    frames, particles = draw(st.integers(1, 7)), draw(st.integers(0, 4))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    positions = rng.random((frames, particles, 3))
    positions[rng.random((frames, particles)) < 0.1, 1] = np.nan
    alive = rng.random((frames, particles)) < 0.8 if draw(st.booleans()) else None
    generation = None
    if draw(st.booleans()):
        generation = (rng.random((frames, particles)) < 0.3).cumsum(axis=0)
    period = draw(
        st.sampled_from([None, (1.0, np.inf, 0.0), (0.0, 0.9, 1.2), (1.0, 0.0)])
    )
    metadata = {} if period is None else {"period": period}
    trajectory = trace_vtk.trajectory(
        positions, alive=alive, generation=generation, metadata=metadata
    )
    return polylines.recording(trajectory)


def stream(column):
    return np.concatenate([np.zeros(0), *map(np.ravel, column.blocks())])


@hypothesis.given(records())
@hypothesis.settings(max_examples=60)
def test_lines_are_those_of_the_definition(record):
    starts = polylines.line_starts(record)
    in_order = starts.T[record.shown.T]
    verts, lines = polylines.split_lines(in_order)
    drawn = [p for line in naive_lines(record) for p in line]
    ids = stream(lines.connectivity).astype(int)
    ends = stream(lines.ends).astype(int)
    found = [[drawn[i] for i in part] for part in np.split(ids, ends)[:-1]]
    assert found == [line for line in naive_lines(record) if len(line) > 1]
    alone = (
        [] if verts is None else [[drawn[int(i)]] for i in stream(verts.connectivity)]
    )
    assert alone == [line for line in naive_lines(record) if len(line) == 1]


@hypothesis.given(records())
@hypothesis.settings(max_examples=30)
def test_lengths_are_those_of_the_lines(record):
    lengths = polylines.path_lengths(record, polylines.line_starts(record))
    expected = []
    for line in naive_lines(record):
        place = np.array(
            [record.positions[frame, particle] for particle, frame in line]
        )
        expected.append(np.linalg.norm(np.diff(place, axis=0), axis=1).sum())
    np.testing.assert_allclose(lengths, expected, rtol=1e-12)


@pytest.mark.parametrize("block", [1, 100, 10**6])
def test_columns_follow_the_particles_for_any_block(monkeypatch, block):
    monkeypatch.setattr(columns, "BLOCK", block)
    positions, _ = trace_vtk.random_walks(5, 4)
    shown = np.random.default_rng(0).random((5, 4)) < 0.7
    shown[:, 0] = True
    points = polylines.by_particle("p", positions, shown)
    expected = [positions[t, p] for p in range(4) for t in range(5) if shown[t, p]]
    np.testing.assert_array_equal(stream(points).reshape(-1, 3), expected)
    assert points.rows == shown.sum()
    frames = polylines.repeat_frames("t", np.arange(5), shown)
    expected = [t for p in range(4) for t in range(5) if shown[t, p]]
    np.testing.assert_array_equal(stream(frames), expected)
    names = polylines.repeat_particles("n", np.arange(4), shown)
    expected = [p for p in range(4) for t in range(5) if shown[t, p]]
    np.testing.assert_array_equal(stream(names), expected)


@pytest.mark.parametrize("block", [1, 64, 10**6])
def test_wraps_are_found_for_any_block(monkeypatch, block):
    monkeypatch.setattr(columns, "BLOCK", block)
    times = np.linspace(0.0, 3.0, 31)
    positions = np.zeros((31, 2, 3))
    positions[..., 0] = np.mod(np.array([0.05, 0.55]) + times[:, np.newaxis], 1.0)
    record = polylines.recording(
        trace_vtk.trajectory(positions, times, metadata={"period": (1.0, 0.0, np.inf)})
    )
    assert polylines.line_starts(record).sum(axis=0).tolist() == [4, 4]


def test_arrays_that_do_not_belong_together_are_refused():
    positions, _ = trace_vtk.random_walks(4, 3)
    with pytest.raises(ValueError, match="do not belong together"):
        polylines.recording(trace_vtk.trajectory(positions, np.arange(3.0)))
    with pytest.raises(ValueError, match=r"alive has shape \(4, 2\)"):
        polylines.recording(
            trace_vtk.trajectory(positions, alive=np.ones((4, 2), bool))
        )
    with pytest.raises(ValueError, match="one length per axis"):
        polylines.recording(trace_vtk.trajectory(positions, metadata={"period": 1.0}))
