"""Ids and numbers go both ways, from many threads and through files."""

import threading

import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.tasks.identity import (
    TaskIDManager,
    create_jax_task_index,
    extract_task_id_from_index,
    get_global_task_manager,
    get_task_id_globally,
    is_dummy_task_index,
    register_task_globally,
)


def test_numbers_follow_registration():
    manager = TaskIDManager()
    assert [manager.register_task(name) for name in "abab"] == [0, 1, 0, 1]
    assert manager.get_index("b") == 1
    assert manager.get_task_id(0) == "a"
    assert manager.get_task_id(2) is manager.get_task_id(-1) is None
    assert manager.get_index("c") is None
    assert manager.has_task("a")
    assert not manager.has_task("c")
    assert manager.num_tasks() == 2
    index = manager.get_jax_index("b")
    assert (index.dtype, index.shape, int(index)) == (jnp.int32, (), 1)
    assert int(manager.get_jax_index("c")) == -1
    manager.clear()
    assert manager.num_tasks() == 0
    assert manager.register_task("c") == 0


def test_threads_get_one_number_per_id():
    manager = TaskIDManager()
    found = [{} for _ in range(8)]

    def register(results, shift):
        for i in range(200):
            name = f"task{(i * 7 + shift) % 200}"
            results[name] = manager.register_task(name)

    threads = [
        threading.Thread(target=register, args=(results, 31 * i))
        for i, results in enumerate(found)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results == found[0] for results in found)
    assert sorted(found[0].values()) == list(range(200))


def test_a_file_keeps_the_numbers(tmp_path):
    manager, other = TaskIDManager(), TaskIDManager()
    for name in ("b", "a/1", "é"):
        manager.register_task(name)
    manager.save_to_file(tmp_path / "ids.json")
    other.register_task("z")
    other.load_from_file(tmp_path / "ids.json")
    assert [other.get_task_id(i) for i in range(4)] == ["b", "a/1", "é", None]
    assert other.register_task("z") == 3


@pytest.mark.parametrize(
    "text", ["", "[", "[]", '{"task_ids": 3}', '{"task_ids": [1]}', "[" * 100_000]
)
def test_other_files_are_refused_and_nothing_is_lost(tmp_path, text):
    path = tmp_path / "ids.json"
    path.write_text(text)
    manager = TaskIDManager()
    manager.register_task("a")
    with pytest.raises(ValueError, match=r"ids\.json: not a file of task ids"):
        manager.load_from_file(path)
    assert manager.get_task_id(0) == "a"


def test_a_file_with_an_id_twice_or_another_ending_is_refused(tmp_path):
    (tmp_path / "ids.json").write_text('{"task_ids": ["a", "a"]}')
    with pytest.raises(ValueError, match="occurs twice"):
        TaskIDManager().load_from_file(tmp_path / "ids.json")
    with pytest.raises(ValueError, match=r"end the name in \.json"):
        TaskIDManager().save_to_file(tmp_path / "ids.pickle")
    with pytest.raises(FileNotFoundError):
        TaskIDManager().load_from_file(tmp_path / "none.json")


def test_the_global_functions_agree():
    index = register_task_globally("identity-test")
    assert get_task_id_globally(index) == "identity-test"
    assert get_global_task_manager().get_index("identity-test") == index
    array = create_jax_task_index("identity-test")
    assert int(array) == index
    assert extract_task_id_from_index(array) == "identity-test"
    assert extract_task_id_from_index(np.int32(index)) == "identity-test"
    assert not is_dummy_task_index(array)


def test_minus_one_is_nobody():
    nobody = create_jax_task_index(None)
    assert (int(nobody), nobody.dtype) == (-1, jnp.int32)
    assert is_dummy_task_index(nobody)
    assert extract_task_id_from_index(nobody) is None


def test_numbers_nobody_has_are_refused():
    with pytest.raises(ValueError, match="task index 1000000 is not registered"):
        extract_task_id_from_index(jnp.int32(1_000_000))
    with pytest.raises(ValueError, match="take one row of a batch"):
        extract_task_id_from_index(jnp.zeros(3, jnp.int32))
    with pytest.raises(ValueError, match="one whole number"):
        is_dummy_task_index(jnp.float32(-1))
