import json
import os
import random
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig.checkpoint import CheckpointMismatch
from jaxrig.checkpoint.manager import CheckpointManager, Restored
from jaxrig.container import ContainerError

KILLS = 50
# One process that has imported everything forks writers and kills them; it opens no
# device, so that forking is safe. It prints what each writer had announced, what was
# found after its death, and whether it died in the middle of a file.
DRIVER = """
import json, os, random, select, signal, sys, time
import numpy as np
from jaxrig.checkpoint.manager import CheckpointManager

folder, kills = sys.argv[1], int(sys.argv[2])
manager = CheckpointManager(folder, keep=2)
rng = random.Random(0)

def make(step):
    return {"step": step, "data": np.full(300_000, step), "half": [np.float32(step)]}

def write(pipe):
    step = (manager.latest() or 0) + 1
    while True:
        manager.save(step, make(step), metadata={"step": step})
        os.write(pipe, step.to_bytes(8, "little"))
        step += 1

for _ in range(kills):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        write(writer)
    os.close(writer)
    announced = os.read(reader, 8)  # at least one is written, then death at any time
    time.sleep(rng.random() * 0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reader, 8):
        announced = more
    os.close(reader)
    torn = any(name.endswith(".writing") for name in os.listdir(folder))
    found = manager.restore(make(0))
    value = {float(v) for v in (found.tree["data"].min(), found.tree["data"].max())}
    assert value == {found.step} == {found.tree["step"]} == {found.metadata["step"]}
    step = int.from_bytes(announced, "little")
    print(json.dumps([step, found.step, torn, len(manager.steps())]), flush=True)
"""


def tree(step=0):
    return {"x": np.full(40, step), "y": jnp.full((2, 2), step, jnp.float32)}


def damage(path, rng):
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def test_a_writer_killed_at_any_instant_loses_nothing_it_announced(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", DRIVER, str(tmp_path), str(KILLS)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(rows) == KILLS
    for announced, found, _, kept in rows:
        assert found in (announced, announced + 1)
        assert kept <= 3  # one more when it died between renaming and deleting
    assert any(torn for _, _, torn, _ in rows), "no kill fell into a write"
    CheckpointManager(tmp_path, keep=2).save(10**6, {})
    assert len(list(tmp_path.iterdir())) == 2, "leftovers go with the next save"


@pytest.mark.parametrize("keep", [1, 2, 5])
def test_exactly_so_many_are_kept(tmp_path, keep):
    manager = CheckpointManager(tmp_path / "run", keep=keep)
    assert manager.steps() == []
    assert manager.latest() is None
    for step in range(0, 70, 10):
        path = manager.save(step, tree(step))
        assert path == manager.path(step)
        assert manager.latest() == step
    assert manager.steps() == list(range(0, 70, 10))[-keep:]
    assert len(list((tmp_path / "run").iterdir())) == keep


def test_the_one_just_saved_stays_whatever_its_number(tmp_path):
    manager = CheckpointManager(tmp_path, keep=2)
    for step in (10, 20, 5):
        manager.save(step, tree(step))
    assert manager.steps() == [5, 20]
    manager.save(20, tree(21))
    assert manager.restore(tree()).tree["x"][0] == 21


def test_restore_gives_the_newest_or_the_asked_one(tmp_path):
    manager = CheckpointManager(str(tmp_path))
    for step in (3, 4, 1_000_000_000):
        manager.save(step, tree(step), {"loss": step / 2}, exclude=["y"])
    newest = manager.restore(tree(7))
    assert isinstance(newest, Restored)
    assert (newest.step, newest.metadata) == (10**9, {"loss": 5e8})
    assert (newest.tree["y"] == 7).all()
    assert isinstance(newest.tree["y"], jax.Array)
    assert manager.restore(tree(), step=3).tree["x"][0] == 3


def test_nothing_to_restore_says_so(tmp_path):
    manager = CheckpointManager(tmp_path / "absent")
    with pytest.raises(FileNotFoundError, match=r"no checkpoint in .*absent"):
        manager.restore(tree())
    manager.save(4, tree())
    with pytest.raises(FileNotFoundError, match=r"step 5 .*steps: \[4\]"):
        manager.restore(tree(), step=5)


def test_a_damaged_newest_file_is_passed_over_by_name(tmp_path):
    manager = CheckpointManager(tmp_path)
    rng = random.Random(0)
    for step in (1, 2, 3):
        manager.save(step, tree(step))
    whole = manager.path(3).read_bytes()
    for trial in range(40):
        if trial % 2:
            manager.path(3).write_bytes(whole[: rng.randrange(len(whole))])
        else:
            manager.path(3).write_bytes(whole)
            damage(manager.path(3), rng)
        with pytest.warns(UserWarning, match=r"passed over: .*step_000000003\.ckpt"):
            found = manager.restore(tree())
        assert (found.step, found.tree["x"][0]) == (2, 2)
        with pytest.raises(ContainerError, match="step_000000003"):
            manager.restore(tree(), step=3)
    manager.path(1).write_bytes(b"")
    manager.path(2).write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="passed over"),
        pytest.raises(
            ContainerError, match=r"every checkpoint .* damaged: \[1, 2, 3\]"
        ),
    ):
        manager.restore(tree())


def test_a_mismatch_never_falls_back(tmp_path):
    manager = CheckpointManager(tmp_path)
    manager.save(1, {"x": np.zeros(3)})
    manager.save(2, {"x": np.zeros(4)})
    with pytest.raises(
        CheckpointMismatch, match=r"step_000000002.*\n.*x: float64 \(4,"
    ):
        manager.restore({"x": np.zeros(3)})


def test_a_failed_save_changes_nothing(tmp_path):
    manager = CheckpointManager(tmp_path, keep=1)
    manager.save(1, tree(1))
    with pytest.raises(TypeError, match="leaf 'x'"):
        manager.save(2, {"x": object()})
    assert manager.steps() == [1]
    assert len(list(tmp_path.iterdir())) == 1


def test_other_files_are_left_alone(tmp_path):
    for name in ("step_5.ckpt", "notes.txt", "step_000000001.ckpt.bak"):
        (tmp_path / name).touch()
    manager = CheckpointManager(tmp_path, keep=1)
    manager.save(1, tree())
    manager.save(2, tree())
    assert len(list(tmp_path.iterdir())) == 4
    assert manager.steps() == [2]


def test_wrong_numbers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="keep=0"):
        CheckpointManager(tmp_path, keep=0)
    with pytest.raises(ValueError, match="step=-1"):
        CheckpointManager(tmp_path).save(-1, tree())
