"""Reports hold the facts they were given, in files that are whole."""

import numpy as np

from jaxtrace.reports import field_facts, generate_summary_report
from jaxtrace.trajectory import Trajectory
from trace_records import absorbing_channel, uniform

RUN = uniform([3, 4, 0], np.zeros((7, 3)), np.linspace(0, 2, 11))


class Box:
    """What a gridded field says of itself."""

    T, N = 40, 123456
    interpolation_scheme = "trilinear"

    def get_spatial_bounds(self):
        return np.zeros(3), np.array([0.1, 0.04, 0.008])

    def get_time_bounds(self):
        return 0.0, 4.0

    def memory_usage_mb(self):
        return 35.25


def swirl(positions, t):
    return positions


def entries(path):
    """The report read back: the last value of each name."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    pairs = [line.split("  ", 1) for line in lines if "  " in line]
    return {name: value.strip() for name, value in pairs}


def test_the_summary_names_field_run_and_results(tmp_path):
    RUN.metadata["integrator"] = "rk4"
    path = generate_summary_report(Box(), RUN, output_dir=tmp_path / "made")
    assert path == tmp_path / "made" / "analysis_summary.txt"
    found = entries(path)
    assert found["highest corner"] == "0.1, 0.04, 0.008"
    assert (found["nodes"], found["to time"]) == ("123,456", "4")
    assert (found["interpolation"], found["integrator"]) == ("trilinear", "rk4")
    assert found["num_particles"] == "7"
    text = path.read_text()
    results = text[text.index("path_length") :]
    assert results.split("\n")[1].split() == ["mean", "10"]
    assert list(path.parent.iterdir()) == [path]


def test_given_statistics_and_strategy_are_used(tmp_path):
    path = generate_summary_report(
        swirl, RUN, {"mine": {"deep": 0.5}}, {"kind": "grid"}, output_dir=tmp_path
    )
    found = entries(path)
    assert (found["kind"], found["deep"]) == ("grid", "0.5")
    assert "num_particles" not in found
    plain = generate_summary_report(swirl, RUN, {}, "random", output_dir=tmp_path)
    assert entries(plain)["strategy"] == "random"


def test_the_summary_adds_densities_and_notes(tmp_path):
    grid = np.linspace(0, 2, 12).reshape(3, 4)
    path = generate_summary_report(
        Box(),
        RUN,
        density_results={"kde": {"D": grid, "h": 0.1}, "sph": (grid, grid * 2)},
        metadata={"case": "channel", "files": ["a.vtu", "b.vtu"], "none": None},
        output_dir=tmp_path,
    )
    found = entries(path)
    assert (found["D"], found["h"]) == ("3 x 4 values, 0 to 2", "0.1")
    assert found["sph"] == "3 x 4 values, 0 to 2; 3 x 4 values, 0 to 4"
    assert found["case"] == "channel"
    assert "  b.vtu" in path.read_text().splitlines()


def test_rates_are_particle_steps_over_tracking_time(tmp_path):
    seconds = {"tracking": 0.5, "load": 2.0}
    path = generate_summary_report(Box(), RUN, output_dir=tmp_path, timing_info=seconds)
    found = entries(path)
    assert found["particle-steps"] == "70"
    assert found["particle-steps per second"] == "140"
    assert found["load"] == "2"
    steps = {"substeps": 4, "recording_interval": 2}
    fine = Trajectory(RUN.positions, RUN.times, metadata=steps)
    path = generate_summary_report(Box(), fine, output_dir=tmp_path)
    assert entries(path)["particle-steps"] == "560"
    text = generate_summary_report(swirl, RUN, output_dir=tmp_path).read_text()
    assert "per second" not in text
    assert "host: " in text


def test_figures_of_nothing_are_said_to_be_nan(tmp_path):
    lost = absorbing_channel(1.0, 1.0, [2.0], [0.0, 1.0])
    found = entries(generate_summary_report(swirl, lost, output_dir=tmp_path))
    assert found["mean"] == "nan"


def test_a_plain_function_is_known_by_its_name():
    assert field_facts(swirl) == {"kind": "swirl"}
