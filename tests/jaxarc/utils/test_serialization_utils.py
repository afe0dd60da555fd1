"""The doorway to saved states, and its small helpers."""

import jax
import pytest

from arc_states import assert_same, folder_parser, small_config, small_task
from jaxarc.envs.functional import arc_reset
from jaxarc.tasks import identity
from jaxarc.utils import serialization_utils as utils


def test_saving_and_loading_by_function(tmp_path):
    parser = folder_parser(tmp_path / "tasks")
    config = small_config()
    state, _ = arc_reset(jax.random.key(0), config, parser.get_task_by_id("bb"))
    path = utils.save_state(state, tmp_path / "state.ckpt", config)
    assert_same(utils.load_state(path, parser, config), state)


def test_task_ids_are_those_of_the_data():
    names = ("extract_task_id_from_index", "create_jax_task_index")
    names += ("is_dummy_task_index", "register_task_globally", "get_task_id_globally")
    for name in names:
        assert getattr(utils, name) is getattr(identity, name)


def test_savings():
    assert utils.calculate_serialization_savings(1000, 50) == {
        "original_size_bytes": 1000,
        "compressed_size_bytes": 50,
        "savings_bytes": 950,
        "percentage": 95.0,
        "compression_ratio": 20.0,
    }
    with pytest.raises(ValueError, match="above 0"):
        utils.calculate_serialization_savings(0, 5)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KB"),
        (3 * 2**20, "3.0 MB"),
        (2**40, "1.0 TB"),
    ],
)
def test_sizes_in_words(size, text):
    assert utils.format_file_size(size) == text


def test_indices_and_tasks_are_compared(tmp_path):
    parser = folder_parser(tmp_path)
    task = parser.get_task_by_id("aa")
    assert utils.validate_task_index_consistency(task.task_index, parser)
    assert not utils.validate_task_index_consistency(-1, parser)
    foreign = utils.register_task_globally("from elsewhere")
    assert not utils.validate_task_index_consistency(foreign, parser)
    again = parser.reconstruct_task_from_index(task.task_index)
    assert utils.validate_task_data_reconstruction(task, again)
    other = parser.get_task_by_id("bb")
    assert not utils.validate_task_data_reconstruction(task, other)
    assert not utils.validate_task_data_reconstruction(task, small_task())
