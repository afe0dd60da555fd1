"""Oracle: an array of known size on a known device."""

import jax
import jax.numpy as jnp
import pytest

from jaxrig.memory import MIB
from jaxtrace.config import configure, reset_config
from jaxtrace.utils.usage import gpu_memory_info, memory_info, memory_report


@pytest.fixture(autouse=True)
def defaults():
    yield
    reset_config()


def test_the_report_says_where_data_is():
    configure(device="cpu", device_id=6, memory_limit_gb=2.0)
    before = memory_report()
    array = jnp.ones((4 * MIB,), jnp.int8)
    after = memory_report()
    assert after.working_device.startswith("cpu:6 ")
    growth = {
        name: memory.in_use - before.devices[name].in_use
        for name, memory in after.devices.items()
    }
    assert growth.pop(after.working_device) == array.nbytes
    assert set(growth.values()) == {0}
    assert len(after.devices) == len(jax.local_devices())
    assert after.budget_bytes == 2 * 1024**3
    text = str(after)
    assert "cpu:6 cpu: 4.0 MiB (live arrays), working device" in text
    assert "limit set: 2,048 MiB" in text
    assert text.count("working device") == 1


def test_memory_of_the_process():
    info = memory_info()
    assert 0 < info["rss_mb"] <= info["peak_mb"] < info["total_mb"]
    assert info["percent"] == pytest.approx(100 * info["rss_mb"] / info["total_mb"])


def test_no_accelerator_no_rows():
    expected = [d for d in jax.local_devices() if d.platform != "cpu"]
    assert len(gpu_memory_info()) == len(expected)
