"""The solver: augmentation undone, hidden answers, learning, votes, rules."""

import dataclasses
import json
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc import bits
from jaxarc.config.groups import DatasetConfig
from jaxarc.learning.planner import plan
from jaxarc.learning.solver import examples, load_solver, predict, rules, voting
from jaxarc.learning.solver.examples import (
    ABSENT,
    HIDDEN,
    OUTSIDE,
    MixtureConfig,
    ask_tests,
    demonstrations,
    draw_batch,
    undo_augmentation,
)
from jaxarc.learning.solver.network import NetworkConfig, SolverNetwork, answer_loss
from jaxarc.learning.solver.training import (
    SolverConfig,
    orthogonalize,
    rate_at,
    train_solver,
)
from jaxarc.learning.solver.voting import (
    Candidate,
    count_actions,
    play_candidates,
    rank_candidates,
    save_solver,
)
from jaxarc.learning.training import fit_tasks
from jaxarc.tasks.augment import random_augmentation, transform_planes
from jaxarc.tasks.packing import pack_tasks, stack_tasks
from jaxarc.tasks.task_json import RawTask
from jaxrig.compile_guard import compile_once

TINY = NetworkConfig(
    *(3, 3, 2), pairs=3, features=16, heads=2, hidden=16, blocks=1, loops=2, id_tokens=2
)


def make_tasks(seed=0, shape=(3, 3), test_output=None):
    """Two tasks of four demonstrations and a test: copied, and cleared."""
    rng = np.random.default_rng(seed)
    draw = lambda: rng.integers(0, 4, shape).astype(np.int8)
    change = (lambda g: g, lambda g: 0 * g)
    tasks = []
    for nth, rule in enumerate(change):
        pairs = [(g, rule(g)) for g in (draw() for _ in range(5))]
        given, right = pairs[4]
        last = (given, right if test_output is None else test_output)
        tasks.append(RawTask(f"t{nth}", tuple(pairs[:4]), (last,)))
    config = DatasetConfig(
        max_grid_height=3, max_grid_width=3, max_train_pairs=4, max_test_pairs=1
    )
    return stack_tasks(pack_tasks(tasks), config, [0, 1])


def test_an_augmented_grid_comes_back_exactly():
    grid = np.full((4, 4), -1, np.int32)
    grid[:2, :3] = [[0, 1, 2], [9, 0, 3]]
    size = jnp.asarray([2, 3], jnp.int32)

    def there_and_back(key):
        symmetry, colors = random_augmentation(key)
        planes = bits.pack_grid(jnp.asarray(grid))
        moved, moved_size = transform_planes(planes, size, symmetry, colors, 4)
        active = bits.active_rows(moved_size, 4, moved.dtype)
        cells = bits.unpack_grid(moved, active, 4)
        shown = jnp.where(cells < 0, OUTSIDE, cells)
        return undo_augmentation(shown, symmetry, colors), symmetry

    keys = jax.random.split(jax.random.key(0), 64)
    back, symmetries = jax.jit(jax.vmap(there_and_back))(keys)
    assert set(np.asarray(symmetries).tolist()) == set(range(8))
    assert np.array_equal(back, np.broadcast_to(grid, back.shape))


def test_batches_do_not_depend_on_test_outputs():
    other = np.full((3, 3), 5, np.int8)
    banks = [demonstrations(make_tasks(test_output=o), 3) for o in (None, other)]
    assert all(
        np.array_equal(a, b) for a, b in zip(*map(jax.tree.leaves, banks), strict=True)
    )
    queries = [ask_tests(make_tasks(test_output=o)) for o in (None, other)]
    assert all(np.array_equal(a, b) for a, b in zip(*queries, strict=True))


def test_hidden_outputs_are_hidden_and_the_others_shown():
    bank = demonstrations(make_tasks(), 3)
    mixture = MixtureConfig(0.5, 0.3, 0.3, 0.5, 0.5)
    draw = jax.jit(lambda k: draw_batch(k, bank, bank, 64, mixture, TINY))
    example, outputs, hidden = draw(jax.random.key(0))
    shown = np.asarray(example.outputs)
    hidden = np.asarray(hidden)
    assert hidden.any(axis=1).all()
    assert (shown[hidden] == HIDDEN).all()
    visible = ~hidden & (shown[:, :, 0, 0] != ABSENT)
    assert np.array_equal(shown[visible], np.asarray(outputs)[visible])
    unknown = np.asarray(example.task) == TINY.tasks
    assert unknown[32:].all()  # generated tasks have no id
    assert 0 < unknown[:32].sum() < 32
    # What is known only from other pairs shows at least one of them.
    assert visible[unknown].any(axis=1).all()


def test_loss_of_certain_answers():
    answers = np.zeros((1, 2, 3, 3), np.int32)
    logits = np.zeros((2, 1, 2, 3, 3, 11), np.float32)
    logits[..., 0] = 50.0
    asked, find = np.asarray([[True, False]]), jax.jit(answer_loss)
    loss, right = find(logits, answers, asked)
    assert float(loss) == pytest.approx(0.0, abs=1e-6)
    assert float(right) == 1.0
    uniform, _ = find(0 * logits, answers, asked)
    assert float(uniform) == pytest.approx(np.log(11), rel=1e-5)
    wrong, right = find(logits, answers + 1, asked)
    assert float(wrong) == pytest.approx(50.0, rel=1e-4)
    assert float(right) == 0.0


def test_muon_brings_singular_values_near_one():
    matrix = jax.random.normal(jax.random.key(0), (6, 4))
    turned = jax.jit(orthogonalize)(matrix)
    values = np.linalg.svd(turned, compute_uv=False) / (0.2 * 6**0.5)
    assert (values > 0.6).all()
    assert (values < 1.3).all()
    rates = jax.jit(jax.vmap(rate_at))(jnp.asarray([0.0, 0.03, 0.3, 0.65, 1.0]))
    assert rates == pytest.approx([0.01, 1.0, 1.0, 0.5, 0.01], rel=1e-5)


def test_votes_are_ranked_by_weight():
    a, b = np.zeros((3, 3), np.int8), np.full((3, 3), 4, np.int8)
    small = np.full((3, 3), -1, np.int8)
    small[:1, :2] = [[1, 2]]
    grids = np.stack([a, b, a, small])
    scores = np.log(np.array([0.25, 0.81, 0.25, 0.01]))
    ranked = rank_candidates(grids, scores)
    assert [c.confidence for c in ranked] == pytest.approx([0.5, 0.45, 0.05])
    assert np.array_equal(ranked[0].grid, a)
    assert np.array_equal(ranked[2].grid, [[1, 2]])


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    config = SolverConfig(
        TINY,
        MixtureConfig(0.0, 0.0, 1.0, 0.0, 0.0),
        members=2,
        batch=8,
        updates=3,
        scan=40,
        learning_rate=2e-2,
        average=0.9,
    )
    bank = demonstrations(make_tasks(), TINY.pairs)
    return config, bank, folder, train_solver(config, bank, folder=folder)


def test_networks_start_apart_and_learn_two_rules(trained):
    config, _, folder, state = trained
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    assert len(lines) == config.updates
    assert json.loads(lines[-1])["right"] > 0.9
    head = np.asarray(state.network.head)
    assert not np.array_equal(head[0], head[1])


def test_a_run_is_resumed_where_it_ended(trained):
    config, bank, folder, state = trained
    again = train_solver(config, bank, folder=folder)
    assert np.array_equal(again.average.head, state.average.head)
    assert int(again.step[0]) == config.steps
    other = dataclasses.replace(config, data="other tasks")
    with pytest.raises(ValueError, match="data: '' -> 'other tasks'"):
        train_solver(other, bank, folder=folder)


def test_saved_networks_answer_without_the_outputs(trained, tmp_path):
    networks = trained[3].average
    path = save_solver(tmp_path / "solver.ckpt", networks)
    loaded = load_solver(path)
    assert loaded.config.tasks == 0
    np.testing.assert_allclose(loaded.head, networks.head, rtol=1e-3)
    tasks = [make_tasks(), make_tasks(test_output=np.ones((3, 3), np.int8))]
    first = [jax.tree.map(lambda x: x[0], stack) for stack in tasks]
    (ranked,), (other,) = (predict(loaded, task, votes=4) for task in first)
    assert np.array_equal(ranked[0].grid, other[0].grid)
    assert ranked[0].confidence == other[0].confidence
    assert sum(c.confidence for c in ranked) == pytest.approx(1.0)
    bare = eqx.tree_at(lambda t: t.num_test_pairs, tasks[0], jnp.zeros(2, jnp.int32))
    with pytest.raises(ValueError, match="there is no output to predict"):
        voting.predict_all(loaded, bare)


def test_parts_that_fit_the_memory_change_no_answer(trained, monkeypatch):
    networks = trained[3].average
    task = jax.tree.map(lambda x: x[0], make_tasks())
    (whole,) = predict(networks, task, votes=4)
    monkeypatch.setattr(voting, "WEIGHTS", 1)  # one example at a time
    program = compile_once(voting._answer, max_traces=1)
    monkeypatch.setattr(voting, "_compiled_answer", program)
    (parted,) = predict(networks, task, votes=4)
    assert program.trace_count == 1
    for one, other in zip(whole, parted, strict=True):
        assert np.array_equal(one.grid, other.grid)
        assert one.confidence == pytest.approx(other.confidence, abs=1e-5)


def test_the_environment_solves_what_the_predictor_solves():
    """Right first, right second, too late, never, and answers that are no grids."""
    rng = np.random.default_rng(1)
    draw = lambda height, width: rng.integers(0, 5, (height, width)).astype(np.int8)
    truths = [draw(3, 2), draw(2, 3), draw(1, 1), draw(3, 3), draw(2, 2), draw(2, 2)]
    tasks = [
        RawTask(f"t{n}", ((x, y), (y, x)), ((draw(3, 3), y),))
        for n, (x, y) in enumerate(pairwise([*truths, truths[0]]))
    ]
    truths = [np.asarray(task.test[0][1]) for task in tasks]
    wrong, holes = np.full((4, 2), 9, np.int8), np.array([[1, -1]], np.int8)
    ways = [
        lambda y: (y, wrong),
        lambda y: (wrong, y),
        lambda y: (wrong, wrong + 0, y),
        lambda y: (wrong,),
        lambda y: (holes, y),
        lambda y: (holes, holes[:0]),
    ]
    answers = [
        [tuple(Candidate(grid, 0.5) for grid in answer(y))]
        for answer, y in zip(ways, truths, strict=True)
    ]
    config = DatasetConfig(
        max_grid_height=3, max_grid_width=3, max_train_pairs=2, max_test_pairs=1
    )
    stack = stack_tasks(pack_tasks(tasks), config, list(range(len(tasks))))
    result = play_candidates(stack, answers)
    right = [
        any(np.array_equal(c.grid, y) for c in tests[0][:2])
        for tests, y in zip(answers, truths, strict=True)
    ]
    assert right == [True, True, False, False, True, False]
    np.testing.assert_array_equal(result.solved.any(axis=0), right)
    np.testing.assert_array_equal(result.solved[0, :2], [True, False])
    lengths = [
        len(plan(task.test[0][0], y))
        for task, y, solved in zip(tasks, truths, right, strict=True)
        if solved
    ]
    np.testing.assert_array_equal(count_actions(result), lengths)


def test_larger_grids_are_refused():
    tasks = make_tasks()
    with pytest.raises(ValueError, match="3 x 3 cells"):
        fit_tasks(tasks, 2, 3)
    wider = fit_tasks(tasks, 12, 10)
    assert np.array_equal(wider.test_input_grids[:, :, :3, :3], tasks.test_input_grids)
    with pytest.raises(ValueError, match="heads"):
        NetworkConfig(5, 5, 0, features=10, heads=4)
    with pytest.raises(ValueError, match="more than 1 together"):
        MixtureConfig(id_only=0.6, context_only=0.6)


GRID = np.array([[1, 0, 0], [0, 2, 0], [0, 2, 0]], np.int32)
RULES = rules.Rules(jax.random.key(0))


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (RULES.fall, [[0, 0, 0], [0, 2, 0], [1, 2, 0]]),
        (RULES.sort_rows, [[1, 0, 0], [0, 2, 0], [0, 2, 0]]),
        (RULES.shear, [[1, 0, 0], [0, 0, 2], [2, 0, 0]]),
        (RULES.zoom, [[1, 1, 0], [1, 1, 0], [0, 0, 2]]),
    ],
)
def test_rules_without_a_choice(rule, expected):
    assert np.array_equal(jax.jit(rule)(GRID), expected)


def test_objects_and_turns():
    labels = np.asarray(jax.jit(rules._objects)(GRID))
    assert labels[1, 1] == labels[2, 1] != labels[0, 0]
    counts = np.asarray(jax.jit(rules._sizes)(labels))
    assert np.array_equal(counts > 0, GRID > 0)
    assert counts[2, 1] == 2
    ring = np.array([[1, 1, 1], [1, 0, 1], [1, 1, 1]], np.int32)
    assert int(jax.jit(RULES.fill_enclosed)(ring)[1, 1]) > 0
    grid = jnp.asarray(GRID)
    there_and_back = jax.jit(lambda way: rules.unturn(way, rules.turn(way, grid)))
    for symmetry in range(8):
        assert np.array_equal(there_and_back(np.int32(symmetry)), GRID)


def test_every_operation_keeps_shape_and_type():
    cells = jax.ShapeDtypeStruct((4, 5), jnp.int32)
    assert len(rules.OPERATIONS) == 38
    for operation in rules.OPERATIONS:
        apply = lambda key, grid, op=operation: op(rules.Rules(key), grid)
        found = jax.eval_shape(apply, jax.random.key(0), cells)
        assert (found.shape, found.dtype) == ((4, 5), jnp.int32), operation.__name__


@pytest.mark.parametrize(("data", "side"), [("Mini", 5), ("AGI1", 12)])
def test_the_shipped_networks_fit_their_description(data, side):
    networks = load_solver(data=data)
    assert isinstance(networks, SolverNetwork)
    assert (networks.config.height, networks.config.width) == (side, side)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves(networks))


def test_large_grids_are_generated_in_several_shapes(monkeypatch):
    def draw(key, number, pairs, height, width):
        full = np.full((height, width), 9, np.int32)
        return np.broadcast_to(bits.pack_grid(full), (number, pairs, 2, 4, height))

    monkeypatch.setattr(examples, "_draw_tasks", draw)
    bank = examples.generate_tasks(jax.random.key(0), 100, 5, 12, 12)
    sizes = np.asarray(bank.sizes[:, 0, 0])
    shapes, counts = np.unique(sizes, axis=0, return_counts=True)
    assert shapes.tolist() == [[3, 3], [5, 5], [6, 12], [7, 7], [10, 10], [12, 12]]
    assert counts.sum() == 100
    assert counts.argmax() == 5
    planes = np.asarray(bank.planes[:, 0, 0])
    cells = bits.PackedGrid(jnp.asarray(planes), jnp.asarray(sizes), 12).cells()
    assert np.array_equal((np.asarray(cells) == 9).sum((1, 2)), sizes.prod(1))
