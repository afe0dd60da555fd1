import functools
import json
import os
import platform
import random
import subprocess
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import NamedSharding, PartitionSpec

from jaxrig.checkpoint import (
    CheckpointManager,
    CheckpointMismatch,
    Restored,
    load_tree,
    read_header,
    save_tree,
)
from jaxrig.file_format import ContainerError, write_container
from jaxrig.testing import assert_trees_close


class State(eqx.Module):
    step: jax.Array
    key: jax.Array
    task_data: dict
    name: str = eqx.field(static=True, default="static")


def make_state(seed=0):
    return State(
        jnp.array(seed, jnp.int32),
        jax.random.key(seed),
        {"grid": jnp.full((30, 30), seed, jnp.int8), "size": 30},
    )


def test_a_model_its_optimizer_and_a_state_come_back(tmp_path, key):
    def build(key):
        model = eqx.nn.MLP(2, 3, 4, 2, key=key)
        optimizer = optax.adam(1e-3)
        return model, optimizer.init(eqx.filter(model, eqx.is_array)), make_state(3)

    tree = build(key)
    path = save_tree(tmp_path / "new folder" / "run.ckpt", tree)
    like = build(jax.random.key(9))
    assert_trees_close(load_tree(path, like), tree)
    assert [p.name for p in path.parent.iterdir()] == ["run.ckpt"]


def test_leaves_take_the_kind_of_their_counterpart(tmp_path, key):
    keys, half = jax.random.split(key, 2), np.array(1.5, np.float32)
    struct = jax.ShapeDtypeStruct
    cases = {  # saved, like, and the type that comes back
        "numpy": (jnp.arange(3), np.zeros(3, np.int32), np.ndarray),
        "jax": (np.arange(3, dtype=np.int32), jnp.zeros(3, jnp.int32), jax.Array),
        "scalar": (np.float32(2.5), half, np.ndarray),
        "zero": (half, np.float32(0), np.float32),
        "struct": (jnp.ones(2), struct((2,), jnp.float32), jax.Array),
        "keys": (keys, struct((2,), key.dtype), jax.Array),
        "number": (3, 0, int),
    }
    saved, like, kinds = ({n: c[i] for n, c in cases.items()} for i in range(3))
    found = load_tree(save_tree(tmp_path / "a", saved), like)
    for name, kind in kinds.items():
        assert isinstance(found[name], kind), name
        assert_trees_close(jnp.asarray(found[name]), jnp.asarray(saved[name]))
    assert found["numpy"].flags.writeable


def test_shardings_come_from_the_counterpart(tmp_path, key):
    mesh = jax.make_mesh((4, 2), ("x", "y"))
    rows = NamedSharding(mesh, PartitionSpec("x", "y"))
    copies = NamedSharding(mesh, PartitionSpec())
    values = np.arange(64.0, dtype=np.float32).reshape(8, 8)
    tree = {
        "split": jax.device_put(values, rows),
        "copied": jax.device_put(values, copies),
        "keys": jax.device_put(
            jax.random.split(key, 8), NamedSharding(mesh, PartitionSpec("x"))
        ),
        "free": jnp.ones(3),
        "fixed": jax.device_put(jnp.ones(3), jax.devices()[5]),
    }
    path = save_tree(tmp_path / "a", tree)
    found = load_tree(path, tree)
    for name in tree:
        assert found[name].sharding == tree[name].sharding, name
        assert found[name].committed == tree[name].committed, name
    assert_trees_close(found, tree)
    columns = NamedSharding(mesh, PartitionSpec(None, "x"))
    like = jax.tree.map(lambda x: x, tree) | {
        "split": jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=columns)
    }
    assert load_tree(path, like)["split"].sharding == columns
    assert (load_tree(path, like)["split"] == values).all()


def test_excluded_subtrees_are_left_out_and_come_from_like(tmp_path):
    small = save_tree(tmp_path / "small", make_state(1), exclude=["task_data"])
    whole = save_tree(tmp_path / "whole", make_state(1))
    assert small.stat().st_size < whole.stat().st_size - 800
    like = make_state(2)
    found = load_tree(small, like)
    assert found.step == 1
    assert found.task_data["grid"] is like.task_data["grid"]
    nested = save_tree(
        tmp_path / "nested", {"state": make_state(1)}, exclude="state.task_data.grid"
    )
    found = load_tree(nested, {"state": make_state(2)})["state"]
    assert (found.task_data["grid"] == 2).all()
    assert found.step == 1


def test_an_exclusion_that_matches_nothing_names_near_ones(tmp_path):
    for wrong in ("task_dat", "task", "data", "task_data.", ""):
        with pytest.raises(ValueError, match="task_data"):
            save_tree(tmp_path / "a", make_state(), exclude=(wrong,))
    assert list(tmp_path.iterdir()) == []


def test_every_difference_is_listed_with_its_leaf_and_a_remedy(tmp_path, key):
    short, wide = np.zeros((3, 4), np.float32), np.zeros((3, 4))
    narrowed = jax.ShapeDtypeStruct((3, 4), np.float64)
    cases = {  # saved, like, and what is said
        "kept": (short, short, None),
        "shape": (
            short,
            short.T,
            "float32 (3, 4) in the file, float32 (4, 3)",
        ),
        "dtype": (wide, short, "float64 (3, 4) in the file, float32 (3, 4) expected"),
        "absent": (None, short, "missing in the file, float32 (3, 4) expected"),
        "extra": (3, None, "Python int in the file, nothing expected"),
        "kind": (3, short, "Python int in the file, float32 (3, 4) expected"),
        "python": (1, 1.0, "Python int in the file, Python float expected"),
        "key": (key, short, "key<fry> () in the file, float32 (3, 4) expected"),
        "generator": (jax.random.key(0, impl="rbg"), key, "key<rbg> () in the file"),
        "narrowed": (wide, narrowed, "set jax_enable_x64"),
    }
    saved, like, said = ({n: [c[i]] for n, c in cases.items()} for i in range(3))
    path = save_tree(tmp_path / "a.ckpt", saved)
    with pytest.raises(CheckpointMismatch) as error:
        load_tree(path, like)
    heading, *lines = str(error.value).splitlines()
    assert "a.ckpt" in heading
    listed = {line.strip().split(".")[0]: line for line in lines}
    assert set(listed) == set(cases) - {"kept"}
    for name, line in listed.items():
        assert f"{name}.0: " in line
        assert said[name][0] in line
        assert "; " in line, "each line ends with a remedy"


def test_code_comes_from_like_and_other_code_is_told(tmp_path):
    tree = {"f": jax.nn.relu, "g": functools.partial(max, 0), "t": jnp.float32}
    path = save_tree(tmp_path / "a", tree)
    assert load_tree(path, tree)["f"] is jax.nn.relu
    assert read_header(path)["code"]["f"].endswith(".relu")
    with pytest.warns(UserWarning, match=r"f was .*relu when saved and is .*tanh now"):
        load_tree(path, {**tree, "f": jnp.tanh})
    with pytest.raises(CheckpointMismatch, match="f: code in the file, Python int"):
        load_tree(path, {**tree, "f": 3})


@pytest.mark.parametrize("leaf", [b"x", object(), {1}, np.array([object()])])
def test_leaves_that_cannot_be_stored_are_refused_by_name(tmp_path, leaf):
    with pytest.raises(TypeError, match=r"'a\.0'"):
        save_tree(tmp_path / "a", {"a": [leaf]})
    assert list(tmp_path.iterdir()) == []


def test_leaves_with_one_path_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"two leaves have the dotted path 'a\.b'"):
        save_tree(tmp_path / "a", {"a": {"b": 1}, "a.b": 2})


def test_the_header_tells_without_reading_arrays(tmp_path):
    metadata = {"loss": float("nan"), "tags": ["a", "b"], "config": {"depth": 3}}
    tree = {"w": jnp.ones((2, 3)), "n": 4, "k": jax.random.split(jax.random.key(0), 5)}
    path = save_tree(tmp_path / "a", tree | {"d": 1}, metadata=metadata, exclude=["d"])
    whole = path.read_bytes()
    ones = np.ones(6, np.float32).tobytes()
    path.write_bytes(whole.replace(ones, bytes(24)))  # damage does not concern it
    with pytest.raises(ContainerError, match="'w'"):
        load_tree(path, tree | {"d": 1})
    header = read_header(path)
    assert (header["schema"], header["version"]) == ("jaxrig.checkpoint", 1)
    assert header["versions"]["python"] == platform.python_version()
    assert header["versions"]["jax"] == jax.__version__
    assert set(header["versions"]) == {"python", "jaxrig", "jax", "numpy"}
    assert repr(header["metadata"]) == repr(metadata)
    assert header["excluded"] == ["d"]
    assert header["leaves"]["w"] == {"type": "float32", "shape": (2, 3)}
    assert header["leaves"]["n"] == {"type": "Python int", "shape": None}
    assert header["leaves"]["k"] == {"type": "key<fry>", "shape": (5,)}


@pytest.mark.parametrize("value", [object(), np.float32(1), np.ones(1)])
def test_metadata_that_json_cannot_hold_is_refused(tmp_path, value):
    with pytest.raises(TypeError, match=r"metadata: .* put it in the tree"):
        save_tree(tmp_path / "a", {}, metadata={"a": [{"b": value}]})


def sample(seed=0):
    return {"a": np.arange(50) + seed, "b": 7 + seed, "key": jax.random.key(seed)}


@pytest.mark.parametrize(
    ("meta", "kind", "said"),
    [
        ({"schema": "other"}, ContainerError, r"a\.ckpt"),
        (  # of a later release: no damage
            {"schema": "jaxrig.checkpoint", "version": 2},
            CheckpointMismatch,
            r"version 2, .* reads 1;",
        ),
    ],
)
def test_other_containers_are_refused(tmp_path, meta, kind, said):
    with open(tmp_path / "a.ckpt", "wb") as file:
        write_container(file, meta, {})
    with pytest.raises(kind, match=said):
        load_tree(tmp_path / "a.ckpt", sample())


def test_equal_trees_give_equal_files(tmp_path):
    tree = sample() | {"w": jnp.ones(1000)}
    path = save_tree(tmp_path / "a", tree)
    before = path.read_bytes()
    save_tree(path, tree)
    assert path.read_bytes() == before


KILLS = 25
# One process that has imported everything forks writers and kills them; it opens no
# device, so that forking is safe. It prints what each writer had announced, what was
# found after its death, and whether it died in the middle of a file.
DRIVER = """
import json, os, random, select, signal, sys, time
import numpy as np
from jaxrig.checkpoint import CheckpointManager

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


def test_a_damaged_newest_file_is_skipped_by_name(tmp_path):
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
        with pytest.warns(UserWarning, match=r"skipped .*step_000000003\.ckpt"):
            found = manager.restore(tree())
        assert (found.step, found.tree["x"][0]) == (2, 2)
        with pytest.raises(ContainerError, match="step_000000003"):
            manager.restore(tree(), step=3)
    manager.path(1).write_bytes(b"")
    manager.path(2).write_bytes(b"")
    with (
        pytest.warns(UserWarning, match="skipped a damaged"),
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


def test_other_files_are_left_alone(tmp_path):
    for name in ("step_5.ckpt", "notes.txt", "step_000000001.ckpt.bak"):
        (tmp_path / name).touch()
    manager = CheckpointManager(tmp_path, keep=1)
    manager.save(1, tree())
    manager.save(2, tree())
    assert len(list(tmp_path.iterdir())) == 4
    assert manager.steps() == [2]


def test_wrong_numbers_are_refused(tmp_path):
    with pytest.raises(ValueError, match="keep is 0"):
        CheckpointManager(tmp_path, keep=0)
    with pytest.raises(ValueError, match="step is -1"):
        CheckpointManager(tmp_path).save(-1, tree())
