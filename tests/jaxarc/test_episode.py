"""The packed episode gives back what it was packed from."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from arc_states import SIDE, small_state
from jaxarc.episode import pack_episode, pack_flags, unpack_flags


@given(st.lists(st.booleans(), min_size=1, max_size=100))
def test_flags_survive_packing(flags):
    array = np.array(flags)
    words = pack_flags(array)
    assert words.dtype == np.uint32
    assert len(words) == -(-len(flags) // 32)
    np.testing.assert_array_equal(unpack_flags(words, len(flags)), array)
    np.testing.assert_array_equal(
        unpack_flags(pack_flags(jnp.asarray(array)), len(flags)), array
    )


def test_an_episode_names_its_counters():
    episode = small_state().episode
    allowed = pack_flags(jnp.arange(42) % 3 == 0)
    completed = jnp.array([True, False, False, True, False, True])
    packed = pack_episode(
        episode.canvas,
        episode.selection,
        task_row=jnp.int32(7),
        action_history_length=jnp.int32(3),
        action_history_write_pos=jnp.int32(5),
        allowed=allowed,
        completed=completed,
        **{
            name: getattr(episode, name)
            for name in (
                *("current_example_idx", "episode_mode", "step_count"),
                *("episode_done", "similarity_score", "action_history"),
            )
        },
    )
    assert int(packed.task_row) == 7
    assert int(packed.action_history_length) == 3
    assert int(packed.action_history_write_pos) == 5
    np.testing.assert_array_equal(packed.allowed, allowed)
    np.testing.assert_array_equal(packed.completed, completed)
    assert packed.canvas.size.tolist() == [4, 5]
    assert packed.width == SIDE
