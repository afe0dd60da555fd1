"""Oracle: the uncompiled step, optax by hand, loops, and counts of compilations."""

import functools
from types import SimpleNamespace

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acbo.graphs import enumerate_possible_parent_sets
from acbo.surrogate.losses import kl_divergence_loss, kl_divergence_loss_jax
from acbo.training.difficulty import create_test_batch, create_test_model, test_config
from acbo.training.examples import TrainingBatch, convert_to_jax_batch
from acbo.training.parent_set_model import SurrogateTrainingConfig
from acbo.training.steps import (
    batch_loss,
    clip_first,
    create_adaptive_train_step,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
    map_examples,
)
from acbo.types import TARGET
from causal_examples import make_example
from causal_surrogates import draw_parameters, small_model, stand_in
from jaxrig.sharding import make_mesh

CONFIG = SurrogateTrainingConfig(learning_rate=1e-2, weight_decay=1e-3)
ADAM = optax.adam(1e-2)
MODEL = stand_in()
BATCH = TrainingBatch([make_example(seed) for seed in range(3)])
KEY = jax.random.key(7)
SHARED = create_jax_surrogate_train_step(MODEL, ADAM, kl_divergence_loss, CONFIG)


@pytest.fixture(scope="module")
def params():
    return MODEL.init(jax.random.key(1))


def close(one, two, tolerance=1e-5):
    same = functools.partial(np.testing.assert_allclose, rtol=tolerance, atol=tolerance)
    jax.tree.map(same, one, two)


def run(step, params, batch, steps, optimizer=ADAM):
    state = optimizer.init(params)
    metrics = None
    for i in range(steps):
        own = jax.random.fold_in(KEY, i)
        params, state, metrics = step(params, state, batch, own)
    assert metrics is not None
    return params, dict(metrics)


def test_compiled_and_uncompiled_steps_agree(params):
    # Uncompiled, every operation is a program: those of the loop over examples that a
    # branching model needs are shared with another test.
    model = stand_in(branches=True)
    eager = create_surrogate_train_step(model, ADAM, kl_divergence_loss, CONFIG)
    one, two = (run(step, params, BATCH, 3) for step in (SHARED, eager))
    close(one[0], two[0])
    for name, value in one[1].items():
        assert value == pytest.approx(two[1][name], rel=1e-5), name
    assert SHARED.path == "compiled"
    assert (eager.path, eager.compilations) == ("eager", 0)


@pytest.mark.slow
def test_the_network_of_the_guide_trains_the_same_both_ways():
    model, params = create_test_model()
    # One step, and not of Adam: where a slope jumps (a maximum, a ReLU) or is nothing
    # but rounding, the two drift apart from the second on.
    plain = optax.sgd(1e-2)
    given = (model, plain, kl_divergence_loss, test_config)
    batch = create_test_batch()
    one, two = (
        run(make(*given), params, batch, 1, plain)
        for make in (create_jax_surrogate_train_step, create_surrogate_train_step)
    )
    close(one[0], two[0])
    assert one[1]["total_loss"] == pytest.approx(two[1]["total_loss"], rel=1e-5)
    assert one[1]["gradient_norm"] == pytest.approx(two[1]["gradient_norm"], rel=1e-4)


def test_one_step_by_hand(params):
    """Loss, decay, clipping and update as optax and a loop over examples do them."""
    data = convert_to_jax_batch(BATCH)

    def loss(params):
        total = jnp.zeros(())
        for i, example in enumerate(BATCH.examples):
            found = MODEL.apply(
                *(params, None, jnp.asarray(example.observational_data)),
                *(list(example.variable_order), example.target_variable, False),
            )
            probs = data.expert_probs[i, : found["k"]]
            total += kl_divergence_loss_jax(found["parent_set_logits"], probs) / 3
        squares = sum(jnp.sum(x**2) for x in jax.tree.leaves(params))
        return total + 1e-3 * squares, total

    def step(params):
        (total, kl), gradient = jax.value_and_grad(loss, has_aux=True)(params)
        norm = optax.tree.norm(gradient)
        scaled = jax.tree.map(lambda g: g / jnp.maximum(norm, 1.0), gradient)
        with jax.numpy_dtype_promotion("standard"):
            change, _ = ADAM.update(scaled, ADAM.init(params))
        return total, kl, norm, optax.apply_updates(params, change)

    total, kl, norm, by_hand = jax.jit(step)(params)
    after, _, metrics = SHARED(params, ADAM.init(params), *data.as_args(), KEY)
    again, _, same = SHARED(params, ADAM.init(params), data.arrays, KEY)
    close(after, again, 0)  # nothing is donated unless asked for
    assert same == metrics
    assert set(metrics) >= {
        *("total_loss", "kl_loss", "regularization_loss", "mean_expert_accuracy"),
        *("gradient_norm", "learning_rate"),
    }
    assert all(type(value) is float for value in metrics.values())
    assert metrics["total_loss"] == pytest.approx(float(total), rel=1e-5)
    assert metrics["kl_loss"] == pytest.approx(float(kl), rel=1e-5)
    assert metrics["gradient_norm"] == pytest.approx(float(norm), rel=1e-4)
    assert metrics["learning_rate"] == pytest.approx(CONFIG.learning_rate)
    close(after, by_hand)


def test_one_compilation_over_many_graphs(params):
    """Names, targets, sizes within the bucket, rows and set lists all differ."""
    state = SHARED.start(params)
    SHARED(params, state, BATCH, KEY)
    before = SHARED.compilations
    for seed in range(24):
        sizes = enumerate((3, 4, 4))
        examples = [make_example(3 * seed + i, d=d, rows=9 + i) for i, d in sizes]
        batch = convert_to_jax_batch(TrainingBatch(examples))
        params, state, _ = SHARED(params, state, *batch.as_args(), KEY)
    assert SHARED.compilations == before


@pytest.mark.slow
def test_the_network_learns_the_expert():
    model = small_model()
    adam = optax.adam(1e-2)
    step = create_jax_surrogate_train_step(
        model, adam, kl_divergence_loss, CONFIG, donate=True, l2_in_loss=False
    )
    params = draw_parameters(model)
    state, losses, metrics = adam.init(params), [], {}
    batch = convert_to_jax_batch(create_test_batch())
    for i in range(40):
        own = jax.random.fold_in(KEY, i)
        params, state, metrics = step(params, state, batch, own)
        losses.append(metrics["total_loss"])
    assert losses[-1] < 0.5 * losses[0]
    assert metrics["regularization_loss"] == 0.0
    assert step.compilations == 1


def test_a_model_that_asks_for_values_runs_uncompiled_and_says_so(params):
    model = stand_in(branches=True)
    given = (model, ADAM, kl_divergence_loss, CONFIG)
    step = create_adaptive_train_step(*given)
    with pytest.warns(UserWarning, match="runs eagerly"):
        after, state, metrics = step(params, ADAM.init(params), BATCH, KEY)
    assert step.path == "eager"
    assert step.compilations == 0
    assert "total_loss" in metrics
    assert metrics["total_loss"] == metrics.total_loss
    assert metrics.step_time == metrics["step_time"] > 0
    assert "step_time" in metrics
    assert "step_time" not in list(metrics)
    step(after, state, BATCH, KEY)  # warns once: a second warning would be an error
    compiled, _, expected = SHARED(params, ADAM.init(params), BATCH, KEY)
    close(after, compiled)
    assert metrics.total_loss == pytest.approx(expected["total_loss"], rel=1e-5)
    with pytest.raises(AttributeError, match=r"'loss' is not one of: .*total_loss"):
        _ = metrics.loss


def test_the_adaptive_step_compiles_where_it_can(params):
    given = (MODEL, ADAM, kl_divergence_loss, CONFIG)
    step = create_adaptive_train_step(*given)
    _, _, metrics = step(params, ADAM.init(params), BATCH, KEY)
    step(params, ADAM.init(params), BATCH, KEY)
    assert (step.path, step.compilations) == ("compiled", 1)
    found = SHARED(params, ADAM.init(params), BATCH, KEY)[2]
    assert metrics == pytest.approx(found, rel=1e-5)
    eager = create_adaptive_train_step(*given, use_jax_compilation=False)
    assert eager.path == "eager"


def test_other_errors_are_raised(params):
    wrong = lambda logits, probs, sets: logits @ jnp.zeros(3)
    step = create_adaptive_train_step(MODEL, ADAM, wrong, CONFIG)
    with pytest.raises(TypeError, match="dot_general"):
        step(params, ADAM.init(params), BATCH, KEY)


def test_losses_of_ones_own_see_finite_padding(params):
    def cross_entropy(logits, probs, sets):
        assert sets.dtype == bool
        return -jnp.sum(probs * jax.nn.log_softmax(logits))

    step = create_jax_surrogate_train_step(
        MODEL, ADAM, cross_entropy, CONFIG, l2_in_loss=False
    )
    _, _, found = step(params, ADAM.init(params), BATCH, KEY)
    entropy = np.mean([e.expert_posterior.uncertainty for e in BATCH.examples])
    expected = found["kl_loss"] + entropy
    assert found["total_loss"] == pytest.approx(expected, rel=1e-5)


def test_reports_the_injected_learning_rate(params):
    optimizer = optax.inject_hyperparams(optax.adam)(
        learning_rate=optax.linear_schedule(0.1, 0.0, 4)
    )
    step = create_jax_surrogate_train_step(MODEL, optimizer, kl_divergence_loss, CONFIG)
    state, rates = optimizer.init(params), []
    for _ in range(3):
        params, state, metrics = step(params, state, BATCH, KEY)
        rates.append(metrics["learning_rate"])
    np.testing.assert_allclose(rates, [0.1, 0.075, 0.05], rtol=1e-6)
    assert step.compilations == 1


def test_eight_devices_agree_with_one(params):
    batch = TrainingBatch([make_example(seed, d=4) for seed in range(8)])
    spread = create_jax_surrogate_train_step(
        MODEL, ADAM, kl_divergence_loss, CONFIG, mesh=make_mesh()
    )
    results = []
    for step in (SHARED, spread):
        after, _, metrics = step(params, ADAM.init(params), batch, KEY)
        results.append((jax.device_get(after), metrics))
    close(*results)


@pytest.mark.slow
def test_half_precision_is_near():
    model = small_model()
    params, batch = model.init(jax.random.key(0)), create_test_batch()
    found = []
    for kind in ("bfloat16", "float32"):
        step = create_jax_surrogate_train_step(
            model, ADAM, kl_divergence_loss, CONFIG, compute_dtype=kind
        )
        after, _, metrics = step(params, ADAM.init(params), batch, KEY)
        assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(after))
        found.append(metrics["total_loss"])
    assert found[0] != found[1]
    assert found[0] == pytest.approx(found[1], rel=0.05)


def test_wrong_use_is_refused(params):
    with pytest.raises(TypeError, match="without init and apply"):
        create_surrogate_train_step(
            *(lambda x: x, ADAM, kl_divergence_loss, CONFIG),
        )
    step = create_surrogate_train_step(MODEL, ADAM, kl_divergence_loss, CONFIG)
    with pytest.raises(TypeError, match="it was given 2 parts"):
        step(params, ADAM.init(params), BATCH, BATCH, KEY)


class TwoFunctions:
    """A hand-written model: each set scores the mean correlation of its members."""

    def init(self, key, x=None):
        return {"slope": jax.random.normal(key), "bias": jnp.zeros(())}

    def apply(self, params, key, x, variable_order, target_variable, is_training):
        assert key is not None
        assert is_training
        assert x.shape[1:] == (len(variable_order), 3)
        target = list(variable_order).index(target_variable)
        z = (x[..., 0] - x[..., 0].mean(0, keepdims=True)) / x[..., 0].std(
            0, keepdims=True
        )
        score = params["slope"] * jnp.abs(z.T @ z[:, target]) / len(z)
        sets = enumerate_possible_parent_sets(list(variable_order), target_variable, 3)
        logits = [
            sum((score[variable_order.index(n)] for n in one), params["bias"])
            for one in sets[::-1]
        ]
        return {"parent_set_logits": jnp.stack(logits), "parent_sets": sets[::-1]}


def test_any_model_with_init_and_apply_is_trained():
    """By hand: the mean divergence, for mixed sizes and the model's own set order."""
    model = TwoFunctions()
    params = model.init(KEY)
    batch = TrainingBatch([make_example(0), make_example(1, d=4), make_example(0)])
    step = create_jax_surrogate_train_step(
        model, ADAM, kl_divergence_loss, CONFIG, l2_in_loss=False
    )
    state, losses = step.start(params), []
    expected = []
    for example in batch.examples:
        x = jnp.asarray(example.observational_data)
        names = list(example.variable_order)
        found = model.apply(params, KEY, x, names, example.target_variable, True)
        expected.append(
            kl_divergence_loss(
                found["parent_set_logits"],
                example.expert_posterior,
                found["parent_sets"],
            )
        )
    for _ in range(30):
        params, state, metrics = step(params, state, batch, KEY)
        losses.append(metrics["total_loss"])
    assert losses[0] == pytest.approx(float(np.mean(expected)), rel=1e-4)
    assert losses[-1] < losses[0]
    assert step.compilations == 1
    args = convert_to_jax_batch(batch).as_args()
    _, _, again = step(params, state, *args, KEY)
    assert again["total_loss"] < losses[0]


def test_a_model_may_take_the_data_alone():
    """Its logits are in enumeration order; too few, and arrays alone, are refused."""
    four = lambda params, x: params * jnp.arange(4.0) * x[..., 0].mean()
    model = SimpleNamespace(init=lambda key: jnp.ones(()), apply=four)
    step = create_adaptive_train_step(model, ADAM, kl_divergence_loss, CONFIG)
    params, batch = jnp.ones(()), TrainingBatch([make_example(1, d=4)])
    examples = TrainingBatch([make_example(0), make_example(3)])
    _, _, metrics = step(params, step.start(params), examples, KEY)
    assert np.isfinite(metrics.total_loss)
    assert step.path == "compiled"
    with pytest.raises(ValueError, match="return one logit for each"):
        step(params, step.start(params), batch, KEY)
    with pytest.raises(TypeError, match="pass the batch object"):
        step(params, step.start(params), convert_to_jax_batch(batch).arrays, KEY)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, -7.0, np.nan]))
def test_what_stands_in_the_padding_never_matters(seed, filler):
    """Values, both flags and the expert's probabilities, at any padded cell."""
    batch = TrainingBatch([make_example(0, rows=9), make_example(1, d=4, rows=12)])
    plain = convert_to_jax_batch(batch)
    random = np.random.default_rng(seed)
    data, probs = np.array(plain.observational_data), np.array(plain.expert_probs)
    masks = plain.arrays.example
    there = np.asarray(masks.row_mask)[:, :, None] & np.asarray(masks.var_mask)[:, None]
    hit = ~there[..., None] & (random.random(data.shape) < 0.5)
    # A row is data where its target is flagged: that flag is what says so.
    flagged = np.zeros(data.shape, bool)
    flagged[np.arange(2), :, np.asarray(masks.target_idx), TARGET] = True
    data[hit & ~flagged] = filler
    probs[~np.asarray(masks.set_mask)] = abs(np.nan_to_num(filler))
    sets, orders, targets, *_ = plain.as_args()
    params = MODEL.init(KEY)
    changed = sets, orders, targets, data, probs, plain.expert_accuracies
    _, _, one = SHARED(params, ADAM.init(params), *plain.as_args(), KEY)
    _, _, two = SHARED(params, ADAM.init(params), *changed, KEY)
    assert one == two
    arrays = plain.arrays
    noisy = eqx.tree_at(
        lambda a: (a.example.values, a.example.intervened),
        arrays,
        (
            jnp.where(there, arrays.example.values, filler),
            arrays.example.intervened | ~there,
        ),
    )
    _, _, three = SHARED(params, ADAM.init(params), noisy, KEY)
    assert one == three


def test_mapping_falls_back_to_a_loop_where_values_are_asked_for():
    double = lambda x: {"y": 2 * x}
    asks = lambda x: {"y": 2 * x if float(x) > 0 else jnp.zeros(())}
    x = jnp.asarray([1.0, -1.0, 3.0])
    np.testing.assert_array_equal(map_examples(double)(x)["y"], [2, -2, 6])
    np.testing.assert_array_equal(map_examples(asks)(x)["y"], [2, 0, 6])
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(map_examples(asks))(x)


def test_terms_are_means_over_examples():
    model = stand_in()
    examples = [make_example(0), make_example(1, d=4)]
    params = model.init(jax.random.key(0))
    objective = functools.partial(batch_loss, model, kl_divergence_loss_jax, 0.5)
    batch = convert_to_jax_batch(TrainingBatch(examples)).arrays
    evaluate = jax.jit(objective)
    total, terms = evaluate(params, batch, jax.random.key(1))
    squares = float(jnp.square(params.vector).sum())
    expert = np.mean([e.expert_posterior.uncertainty for e in examples])
    assert float(terms["regularization_loss"]) == pytest.approx(0.5 * squares, rel=1e-5)
    assert float(terms["expert_entropy"]) == pytest.approx(expert, rel=1e-4)
    assert float(total) == float(terms["total_loss"])
    alone = [convert_to_jax_batch(TrainingBatch([e, e])).arrays for e in examples]
    each = [evaluate(params, one, jax.random.key(1)) for one in alone]
    for name in ("kl_loss", "predicted_entropy", "mean_expert_accuracy"):
        mean = np.mean([t[name] for _, t in each])
        assert float(terms[name]) == pytest.approx(mean, rel=1e-5)


def test_gradients_are_clipped_before_the_optimizer():
    optimizer = clip_first(optax.sgd(1.0))
    given = {"a": jnp.asarray([3.0, 4.0])}
    change, _ = optimizer.update(given, optimizer.init(given), given)
    np.testing.assert_allclose(jax.tree.leaves(change)[0], [-0.6, -0.8], rtol=1e-6)
    small = {"a": jnp.asarray([0.3, 0.4])}
    change, _ = optimizer.update(small, optimizer.init(small), small)
    np.testing.assert_allclose(jax.tree.leaves(change)[0], [-0.3, -0.4], rtol=1e-6)
