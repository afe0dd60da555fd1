"""Oracle: the same program in one process. Two real processes over the loopback."""

import json
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from helpers import TABLE, make_batch, walk
from jaxrig.hosts import is_main, start_hosts, wait_for_all

PROGRAM = """
import json, sys
from pathlib import Path
import jax
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 4)
from jaxrig.hosts import is_main, start_hosts, stop_hosts, wait_for_all

start_hosts(sys.argv[1], 2, int(sys.argv[2]))
sys.path.insert(0, sys.argv[3])
import jax.numpy as jnp
from jaxrig.checkpoint import CheckpointManager
from jaxrig.sharding import gather, make_mesh, replicate, shard_batch
from helpers import TABLE, make_batch, walk

mesh = make_mesh()
assert mesh.size == 8 and jax.process_count() == 2
batch, table = shard_batch(make_batch(), mesh), replicate(TABLE, mesh)
state, positions = jax.jit(walk)(batch, table)
manager = CheckpointManager(sys.argv[4])
manager.save(1, {"x": state[1]})
restored = manager.restore({"x": state[1]}).tree
assert restored["x"].sharding == state[1].sharding
same = bool((gather(restored["x"]) == gather(state[1])).all())
positions = gather(positions)
if is_main():
    found = {"positions": positions.tolist(), "same": same}
    Path(sys.argv[4], "found.json").write_text(json.dumps(found))
wait_for_all("done")
stop_hosts()
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def test_two_processes_give_the_result_of_one(tmp_path):
    address = f"127.0.0.1:{free_port()}"
    folder = str(Path(__file__).parent.parent)
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, address, str(i), folder, str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(2)
    ]
    outputs = [p.communicate(timeout=120) for p in processes]
    assert [p.returncode for p in processes] == [0, 0], outputs
    found = json.loads((tmp_path / "found.json").read_text())
    expected = jax.jit(walk)(make_batch(), TABLE)[1]
    np.testing.assert_array_equal(np.float32(found["positions"]), expected)
    assert found["same"]


def test_a_single_process_is_main_and_never_waits():
    assert is_main()
    wait_for_all("nobody else")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("127.0.0.1:1", None, None), "all three or none"), (("a:1", 2, 2), r"0\.\.1")],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        start_hosts(*arguments)
