"""Oracle: arrays of known size, and a clock of our own."""

import io
import itertools
import json

import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

from jaxtrace.utils.memory_tracker import GPUMemoryTracker


def on_devices(snapshot):
    return sum(snapshot.device_bytes.values())


def test_snapshots_see_arrays_come_and_go():
    tracker = GPUMemoryTracker()
    before = tracker.create_snapshot("before")
    array = jnp.ones((1000,), jnp.float32)
    during = tracker.create_snapshot("during", "array", array)
    assert on_devices(during) - on_devices(before) == 4000
    assert (during.variable, during.variable_bytes) == ("array", 4000)
    del array
    after = tracker.create_snapshot("after")
    assert on_devices(after) == on_devices(before)
    summary = tracker.get_memory_summary()
    assert summary["variables"] == {"array": 4000}
    peak, now = summary["peak"]["devices"], summary["current"]["devices"]
    assert sum(peak.values()) - sum(now.values()) == 4000
    assert summary["baseline"]["host"] > 0
    assert [s.event for s in tracker.snapshots] == [
        *("baseline", "before", "during", "after")
    ]


def test_variables_are_trees():
    tracker = GPUMemoryTracker()
    assert tracker.track_variable("two", {"a": np.ones(5), "b": np.ones(1)}) == 48


def test_operations_add_up_even_when_they_fail():
    ticks = itertools.count()
    tracker = GPUMemoryTracker(clock=lambda: float(next(ticks)))
    kept = []
    for _ in range(2):
        with tracker.track_operation("load"):
            kept.append(jnp.ones((250,), jnp.float32))
    with pytest.raises(KeyError), tracker.track_operation("break"):
        raise KeyError
    load = tracker.get_memory_summary()["operations"]["load"]
    assert (load["calls"], load["device_growth_bytes"]) == (2, 2000)
    assert load["seconds"] > 0
    assert tracker.operations["break"].calls == 1
    assert tracker.overhead_seconds == len(tracker.snapshots)


def test_the_log_is_one_json_object_per_line(tmp_path):
    path = tmp_path / "log.jsonl"
    tracker = GPUMemoryTracker(path)
    tracker.create_snapshot("event", "x", np.ones(2))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["baseline", "event"]
    assert lines[1]["variable_bytes"] == 16
    tracker.close()
    tracker.create_snapshot("later")
    assert len(path.read_text().splitlines()) == 2


def test_reports(tmp_path):
    tracker = GPUMemoryTracker(track_stack_traces=True)
    with tracker.track_operation("step"):
        pass
    tracker.save_detailed_report(tmp_path / "report.json")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["summary"]["operations"]["step"]["calls"] == 1
    assert any("test_reports" in frame for frame in report["snapshots"][1]["stack"])
    out = io.StringIO()
    tracker.print_memory_report(Console(file=out, width=100))
    assert "step: 1 calls" in out.getvalue()
    assert "host" in out.getvalue()


def test_without_detail_only_totals_are_kept(tmp_path):
    tracker = GPUMemoryTracker(tmp_path / "log", enable_detailed_tracking=False)
    tracker.create_snapshot("event")
    tracker.close()
    assert tracker.snapshots == []
    assert (tmp_path / "log").read_text() == ""
    assert tracker.get_memory_summary()["peak"]["host"] > 0
