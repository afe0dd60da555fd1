"""The names under which Gymnasium finds the environments, without importing JAX.

Gymnasium calls `register_environments` by the entry point `gymnasium.envs` when it is
imported itself, so that this module loads nothing else.
"""

IDS = (
    *("AGI1", "AGI1-train", "AGI1-eval"),
    *("AGI2", "AGI2-train", "AGI2-eval"),
    *("Mini", "Concept"),
)


def register_environments() -> None:
    """Register `jaxarc/AGI1-v0` and the others with Gymnasium."""
    import gymnasium

    for name in IDS:
        full = f"jaxarc/{name}-v0"
        if full not in gymnasium.registry:
            gymnasium.register(
                full,
                entry_point="jaxarc.adapters.gymnasium:make_gym",
                vector_entry_point="jaxarc.adapters.gymnasium:make_gym_vector",
                kwargs={"id": name},
            )
