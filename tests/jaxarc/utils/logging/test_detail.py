"""The debug level is the most that the other groups may ask for."""

import pytest

from arc_logs import log_config, step_logs
from jaxarc.config import DebugConfig
from jaxarc.utils.logging.detail import Detail


def detail(debug_level, level="full", policy="research", **pictures):
    config = log_config(
        "out",
        debug_level,
        visualization={"level": level, **pictures},
        storage={"policy": policy},
        logging={"log_frequency": 2},
    )
    return Detail.of(config)


@pytest.mark.parametrize(
    ("debug_level", "level", "policy"),
    [
        ("off", "off", "none"),
        ("minimal", "minimal", "minimal"),
        ("standard", "standard", "standard"),
        ("verbose", "verbose", "research"),
        ("research", "full", "research"),
    ],
)
def test_the_debug_level_caps(debug_level, level, policy):
    found = detail(debug_level)
    assert (found.level, found.policy) == (level, policy)
    lower = detail(debug_level, "off", "none")
    assert (lower.level, lower.policy) == ("off", "none")


def test_the_debug_block_goes_before_the_level():
    assert detail("research", debug=DebugConfig(level="minimal")).level == "minimal"
    assert detail("research", enabled=False).level == "off"


@pytest.mark.parametrize(
    ("level", "shown"),
    [
        ("minimal", []),
        ("standard", [2]),
        ("verbose", [1, 3]),
        ("full", [1, 2, 3]),
    ],
)
def test_steps_by_level(level, shown):
    found = detail("research", level)
    assert [log["step_num"] for log in step_logs() if found.shows_step(log)] == shown
    assert not any(
        map(
            detail("research", level, step_visualizations=False).shows_step, step_logs()
        )
    )
