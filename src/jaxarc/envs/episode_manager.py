"""Whether an episode over several pairs goes on, asked from outside a step."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxarc.config import ArcEpisodeConfig
from jaxarc.state import ArcEnvState


class ArcEpisodeManager:
    """The rules of `ArcEpisodeConfig` applied to a state, or a batch of states."""

    @staticmethod
    def should_continue_episode(
        state: ArcEnvState, episode_config: ArcEpisodeConfig
    ) -> Bool[Array, "*batch"]:
        """False when the episode is done or one of the rules has what it asks for.

        The rules: the first success where that ends it, all pairs of the mode solved
        where that is required, and `max_pairs_per_episode` solved.
        """
        rules = episode_config
        training = state.is_training_mode()
        solved = jnp.where(
            training, state.get_completed_demo_count(), state.get_completed_test_count()
        )
        there = jnp.where(
            training, state.get_available_demo_count(), state.get_available_test_count()
        )
        required = jnp.where(
            training, rules.require_all_demos_solved, rules.require_all_tests_solved
        )
        over = state.episode_done | (solved >= rules.max_pairs_per_episode)
        over = over | (required & (there > 0) & (solved >= there))
        if rules.terminate_on_first_success:
            over = over | (state.similarity_score >= rules.success_threshold)
        return ~over
