"""Oracle: the same program on one device and in one process; two real processes."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from helpers import TABLE, make_batch, walk
from jaxrig import sharding
from jaxrig.compile_guard import compile_once
from jaxrig.devices import pick_devices, set_accelerator_memory
from jaxrig.learn import (
    GRPOConfig,
    PPOConfig,
    grpo_init,
    grpo_update,
    ppo_init,
    ppo_update,
)
from jaxrig.learn.tabular import corridor, uniform_policy
from jaxrig.testing import assert_trees_close


@pytest.mark.parametrize("devices", [1, 2, 8])
def test_results_do_not_depend_on_the_number_of_devices(devices):
    mesh = sharding.make_mesh(jax.devices()[:devices])
    run = compile_once(walk)
    batch, table = (
        sharding.shard_batch(make_batch(), mesh),
        sharding.replicate(TABLE, mesh),
    )
    assert len(batch["x"].sharding.device_set) == devices
    sharded = run(batch, table)
    assert_trees_close(
        sharding.gather(sharded[1]), np.asarray(jax.jit(walk)(make_batch(), TABLE)[1])
    )
    assert len(sharded[1].sharding.device_set) == devices


def learners():
    """Updates of both learners, where they start, and what is shared out."""
    problem = corridor(4)
    ppo = PPOConfig(environments=8, steps=4, minibatches=2, learning_rate=0.05)
    grpo = GRPOConfig(states=4, group_size=2, learning_rate=0.05)
    start = jax.random.key(0), problem, uniform_policy(problem)
    shared = lambda state: (state.state, state.observation)
    return problem, {
        "ppo": (ppo_update, ppo_init(*start, ppo), ppo, lambda state: state.runner),
        "grpo": (grpo_update, grpo_init(*start, grpo), grpo, shared),
    }


@pytest.mark.parametrize("name", ["ppo", pytest.param("grpo", marks=pytest.mark.slow)])
def test_learners_learn_on_four_devices_what_they_learn_on_one(name):
    problem, known = learners()
    given: Any = known[name]
    update, start, config, shared = given

    def trained(mesh):
        run: Any = compile_once(update)
        state = sharding.spread(start, mesh, shared)
        for _ in range(3):
            state, _ = run(state, sharding.spread(problem, mesh), config, mesh)
        return state

    several = trained(sharding.make_mesh(jax.devices()[:4]))
    (first, *_) = jax.tree.leaves(shared(several))
    assert first.sharding.shard_shape(first.shape)[0] * 4 == first.shape[0]
    assert several.policy.logits.sharding.is_fully_replicated
    alone = trained(None)
    moved = np.abs(np.asarray(alone.policy.logits)).max()
    assert moved > 0.05  # it has learned, so that there is something to compare
    assert_trees_close(
        sharding.gather(several.policy), sharding.gather(alone.policy), atol=1e-5
    )
    assert_trees_close(sharding.gather(shared(several)), shared(alone))


def test_a_mesh_fits_what_is_shared_out():
    assert sharding.choose_mesh(256, 1024) == sharding.make_mesh()
    with pytest.warns(UserWarning, match="12 and 30 items do not .* 8 devices: 6 are"):
        six = sharding.choose_mesh(12, 30)
    assert six == sharding.make_mesh(jax.devices()[:6])
    with pytest.warns(UserWarning, match="1 are used"):
        assert sharding.choose_mesh(11) is None


def test_hosts_in_words(monkeypatch):
    """A lone process joins nobody; a Slurm step of several and words join."""
    seen = []
    monkeypatch.setattr(sharding, "start_hosts", lambda *place: seen.append(place))
    monkeypatch.setattr(sharding, "stop_hosts", lambda: seen.append("left"))
    monkeypatch.setenv("SLURM_NTASKS", "2")  # a script that was not started by srun
    with sharding.joined_hosts():
        assert seen == []
    monkeypatch.setenv("SLURM_STEP_NODELIST", "127.0.0.1")
    with sharding.joined_hosts():
        assert seen == [()]
    with sharding.joined_hosts("10.0.0.1:1234,1/2"):
        assert seen == [(), "left", ("10.0.0.1:1234", 2, 1)]
    for wrong in ("10.0.0.1", "10.0.0.1:1234", "10.0.0.1:1234,1"):
        with (
            pytest.raises(ValueError, match=r"is not ADDRESS:PORT,NUMBER/COUNT"),
            sharding.joined_hosts(wrong),
        ):
            pass


def test_a_batch_that_does_not_divide_is_refused_with_the_remedy():
    with pytest.raises(
        ValueError, match=r"20 items .* 8 devices.*pad_axis\(tree, 24\)"
    ):
        sharding.shard_batch(make_batch(20), sharding.make_mesh())


PROGRAM = """
import json, sys
from pathlib import Path
import jax
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 4)
from jaxrig.sharding import is_main, start_hosts, stop_hosts, wait_for_all

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
    assert sharding.is_main()
    sharding.wait_for_all("nobody else")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("127.0.0.1:1", None, None), "all three or none"), (("a:1", 2, 2), r"0\.\.1")],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        sharding.start_hosts(*arguments)


def test_devices_are_picked_and_what_is_not_there_is_said():
    assert pick_devices("cpu", 3) == jax.devices("cpu")[:3]
    assert pick_devices() == jax.devices()
    with pytest.raises(ValueError, match="no tpu device: JAX found only cpu"):
        pick_devices("tpu")
    with pytest.raises(ValueError, match="9 devices requested, but only 8 cpu"):
        pick_devices("cpu", 9)
    with pytest.raises(ValueError, match="'quantum' is not one of"):
        pick_devices("quantum")


def test_memory_settings_are_refused_once_devices_are_open():
    jnp.ones(1)
    with pytest.raises(RuntimeError, match="before the first array"):
        set_accelerator_memory(preallocate=False)
    with pytest.raises(ValueError, match=r"fraction=1\.5"):
        set_accelerator_memory(fraction=1.5)


def test_importing_opens_no_device_and_settings_take_effect():
    program = """
import os, jaxrig.devices as d, jaxrig, jaxarc, jaxtrace, acbo
assert not d.devices_are_open()
d.set_accelerator_memory(preallocate=False, fraction=0.5)
assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "false"
assert os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.5"
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
