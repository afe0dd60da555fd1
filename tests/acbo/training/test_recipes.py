import jax

from acbo.policy.advisor import load_policy
from acbo.surrogate.predictor import load_surrogate
from acbo.training.policy import shipped_policy, shipped_surrogate


def test_the_shipped_models_are_those_of_the_recipes():
    recipe = shipped_surrogate()
    network = load_surrogate().network
    for name in ("dim", "layers", "heads", "key_size", "pair_dim", "pair_layers"):
        assert getattr(network.config, name) == getattr(recipe.model, name)
    assert load_policy().network.config == shipped_policy().model
    assert sum(x.size for x in jax.tree.leaves(network)) < 400_000


def test_episodes_fit_their_room():
    episodes = shipped_policy().episodes
    assert episodes.capacity == 72
    assert shipped_policy().learner.horizon == episodes.steps
