import functools
import json
import pickle
import platform
import random

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from jax.sharding import NamedSharding, PartitionSpec

from jaxrig.checkpoint import CheckpointMismatch, load_tree, read_header, save_tree
from jaxrig.container import ContainerError, write_container


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


def plain(x):
    return np.asarray(jax.random.key_data(x) if eqx.is_array(x) and is_key(x) else x)


def is_key(x):
    return jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


def assert_same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert type(x) is type(y)
        if callable(x):
            assert x is y
            continue
        assert plain(x).dtype == plain(y).dtype
        assert plain(x).shape == plain(y).shape
        assert plain(x).tobytes() == plain(y).tobytes()


def test_a_model_its_optimizer_and_a_state_come_back(tmp_path, key):
    def build(key):
        model = eqx.nn.MLP(2, 3, 4, 2, key=key)
        optimizer = optax.adam(1e-3)
        return model, optimizer.init(eqx.filter(model, eqx.is_array)), make_state(3)

    tree = build(key)
    path = save_tree(tmp_path / "new folder" / "run.ckpt", tree)
    like = build(jax.random.key(9))
    assert_same(load_tree(path, like), tree)
    assert [p.name for p in path.parent.iterdir()] == ["run.ckpt"]


leaf = (
    hnp.arrays(
        st.sampled_from(["int8", "uint16", "float32", "float64", "complex64", "bool"]),
        hnp.array_shapes(min_dims=0, min_side=0),
    )
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters(exclude_categories=()))
)
trees = st.recursive(
    leaf,
    lambda inner: (
        st.lists(inner)
        | st.tuples(inner, st.none())
        | st.dictionaries(st.text("abc", min_size=1), inner)
    ),
    max_leaves=8,
)


@given(trees)
def test_any_tree_of_numpy_and_python_comes_back(tmp_path_factory, tree):
    path = tmp_path_factory.getbasetemp() / "any.ckpt"
    save_tree(path, tree)
    found = load_tree(path, tree)
    assert jax.tree.structure(found) == jax.tree.structure(tree)
    for x, y in zip(jax.tree.leaves(found), jax.tree.leaves(tree), strict=True):
        assert type(x) is type(y)
        assert np.array_equal(x, y) or repr(x) == repr(y)


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "int4", "bool", "uint32"]
)
def test_device_dtypes_come_back(tmp_path, name):
    tree = {"x": jnp.ones((3, 2), name), "y": np.ones(2, name)}
    like = {"x": jnp.zeros((3, 2), name), "y": np.zeros(2, name)}
    save_tree(tmp_path / "a", tree)
    assert_same(load_tree(tmp_path / "a", like), tree)


def test_leaves_take_the_kind_of_their_counterpart(tmp_path, key):
    saved = {
        "numpy": jnp.arange(3),
        "jax": np.arange(3, dtype=np.int32),
        "scalar": np.float32(2.5),
        "zero": np.array(1.5, np.float32),
        "struct": jnp.ones(2),
        "keys": jax.random.split(key, 2),
        "number": 3,
    }
    like = {
        "numpy": np.zeros(3, np.int32),
        "jax": jnp.zeros(3, jnp.int32),
        "scalar": np.array(0, np.float32),
        "zero": np.float32(0),
        "struct": jax.ShapeDtypeStruct((2,), jnp.float32),
        "keys": jax.ShapeDtypeStruct((2,), key.dtype),
        "number": 0,
    }
    found = load_tree(save_tree(tmp_path / "a", saved), like)
    assert type(found["numpy"]) is np.ndarray
    assert found["numpy"].flags.writeable
    assert isinstance(found["jax"], jax.Array)
    assert type(found["scalar"]) is np.ndarray
    assert type(found["zero"]) is np.float32
    assert found["zero"] == 1.5
    assert isinstance(found["struct"], jax.Array)
    assert (jax.random.key_data(found["keys"]) == plain(saved["keys"])).all()
    assert found["number"] == 3


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
        assert (plain(found[name]) == plain(tree[name])).all()
    columns = NamedSharding(mesh, PartitionSpec(None, "x"))
    like = jax.tree.map(lambda x: x, tree) | {
        "split": jax.ShapeDtypeStruct((8, 8), jnp.float32, sharding=columns)
    }
    assert load_tree(path, like)["split"].sharding == columns
    assert (plain(load_tree(path, like)["split"]) == values).all()


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


def test_every_difference_is_listed_with_its_leaf(tmp_path):
    saved = {
        "kept": np.zeros(2),
        "shape": np.zeros((3, 4), np.float32),
        "dtype": np.zeros(3, np.float64),
        "extra": {"deep": np.zeros(1), "count": 3},
        "kind": 3,
        "python": 1,
        "key": jax.random.key(0),
    }
    like = {
        "kept": np.zeros(2),
        "shape": np.zeros((3, 5), np.float32),
        "dtype": np.zeros(3, np.float32),
        "absent": [np.zeros(7, np.int8)],
        "kind": np.zeros(()),
        "python": 1.0,
        "key": np.zeros(2, np.uint32),
    }
    path = save_tree(tmp_path / "a.ckpt", saved)
    with pytest.raises(CheckpointMismatch) as error:
        load_tree(path, like)
    heading, *lines = str(error.value).splitlines()
    assert "a.ckpt" in heading
    listed = {line.strip().split(":")[0]: line for line in lines}
    assert set(listed) == {
        *("shape", "dtype", "absent.0", "extra.deep", "extra.count"),
        *("kind", "python", "key"),
    }
    assert "float32 (3, 4) in the file, float32 (3, 5) expected" in listed["shape"]
    assert "float64 (3,) in the file, float32 (3,) expected" in listed["dtype"]
    assert "missing in the file, int8 (7,) expected" in listed["absent.0"]
    assert "float64 (1,) in the file, nothing expected" in listed["extra.deep"]
    assert "Python int in the file, float64 () expected" in listed["kind"]
    assert "Python int in the file, Python float expected" in listed["python"]
    assert "key<fry> () in the file, uint32 (2,) expected" in listed["key"]
    assert all("; " in line for line in lines), "each line ends with a remedy"


def test_another_kind_of_key_is_a_mismatch(tmp_path):
    save_tree(tmp_path / "a", {"key": jax.random.key(0, impl="rbg")})
    with pytest.raises(CheckpointMismatch, match=r"key: key<rbg> .* key<fry> .* exp"):
        load_tree(tmp_path / "a", {"key": jax.random.key(0)})


def test_a_wide_array_is_not_narrowed_behind_the_back(tmp_path):
    save_tree(tmp_path / "a", {"x": np.array([1e300])})
    with pytest.raises(CheckpointMismatch, match="jax_enable_x64"):
        load_tree(tmp_path / "a", {"x": jax.ShapeDtypeStruct((1,), np.float64)})


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


def test_a_tree_that_is_one_leaf(tmp_path):
    save_tree(tmp_path / "a", np.arange(3))
    assert np.array_equal(load_tree(tmp_path / "a", np.zeros(3, int)), np.arange(3))


def test_the_header_tells_without_reading_arrays(tmp_path):
    metadata = {"loss": float("nan"), "tags": ["a", "b"], "config": {"depth": 3}}
    tree = {"w": jnp.ones((2, 3)), "n": 4, "k": jax.random.split(jax.random.key(0), 5)}
    path = save_tree(tmp_path / "a", tree | {"d": 1}, metadata=metadata, exclude=["d"])
    with open(path, "r+b") as file:  # damage in an array does not concern the header
        file.seek(-30, 2)
        file.write(b"damaged")
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


@pytest.mark.parametrize(
    ("metadata", "where"),
    [
        ({"a": [{"b": object()}]}, "metadata.a.0.b is a object"),
        ({"a": np.float32(1)}, "metadata.a is a float32"),
        ({"a": {1: 2}}, "metadata.a has the key 1"),
        ({"a": jnp.ones(1)}, "metadata.a is a"),
    ],
)
def test_metadata_that_json_cannot_hold_is_refused(tmp_path, metadata, where):
    with pytest.raises(TypeError, match=where):
        save_tree(tmp_path / "a", {}, metadata=metadata)


def sample(seed=0):
    return {"a": np.arange(50) + seed, "b": 7 + seed, "key": jax.random.key(seed)}


def test_truncated_and_flipped_files_are_refused(tmp_path):
    path = save_tree(tmp_path / "a.ckpt", sample())
    whole = path.read_bytes()
    rng = random.Random(0)
    for position in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << rng.randrange(8)
        for content in (whole[:position], bytes(damaged)):
            path.write_bytes(content)
            with pytest.raises(ContainerError, match=r"a\.ckpt"):
                load_tree(path, sample(1))


class Payload:
    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return (open, (self.marker, "w"))


def test_a_pickle_runs_nothing(tmp_path):
    path, marker = tmp_path / "a.ckpt", tmp_path / "marker"
    path.write_bytes(pickle.dumps(Payload(str(marker))))
    for read in (read_header, lambda p: load_tree(p, sample())):
        with pytest.raises(ContainerError, match=r"a\.ckpt: not a jaxrig container"):
            read(path)
    assert not marker.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"schema": "other"},
        {"scalars": []},
        {"scalars": {"b": ["int", "zz"]}},
        {"code": {"f": 3}},
        {"excluded": [3]},
        {"metadata": None},
        {"version": "1"},
    ],
)
def test_containers_that_are_no_checkpoint_are_refused(tmp_path, change):
    path = save_tree(tmp_path / "a.ckpt", sample())
    meta = {k: v for k, v in read_header(path).items() if k != "leaves"}
    with open(path, "wb") as file:
        write_container(file, json.loads(json.dumps(meta | change)), {})
    with pytest.raises(ContainerError, match=r"a\.ckpt"):
        load_tree(path, sample())


def test_a_later_schema_is_a_mismatch_not_damage(tmp_path):
    with open(tmp_path / "a", "wb") as file:
        write_container(file, {"schema": "jaxrig.checkpoint", "version": 2}, {})
    with pytest.raises(CheckpointMismatch, match="version 2, this jaxrig reads 1"):
        load_tree(tmp_path / "a", {})


def test_equal_trees_give_equal_files(tmp_path):
    tree = sample() | {"w": jnp.ones(1000)}
    path = save_tree(tmp_path / "a", tree)
    before = path.read_bytes()
    save_tree(path, tree)
    assert path.read_bytes() == before
