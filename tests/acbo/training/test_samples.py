"""Oracle: the sizes that the guide names."""

import jax

from acbo.training.examples import convert_to_jax_batch
from acbo.training.parent_set_model import create_parent_set_model
from acbo.training.progressive import create_test_batch, create_test_model, test_config


def test_sizes_of_the_guide():
    assert (test_config.model_hidden_dim, test_config.model_n_layers) == (16, 2)
    assert test_config.dropout == 0.0
    batch = create_test_batch()
    assert batch.batch_size == 3
    assert batch.examples[0].observational_data.shape == (20, 3, 3)
    assert [len(sets) for sets in convert_to_jax_batch(batch).parent_sets] == [4, 4, 4]


def test_the_model_is_the_one_of_its_settings():
    model = create_parent_set_model(test_config.get_model_kwargs())
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    made = jax.eval_shape(lambda: create_test_model()[1])
    assert jax.tree.leaves(made) == jax.tree.leaves(shapes)
