"""Logging from compiled code: what is shown, counted and kept from harm."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.draw import callbacks
from jaxarc.types import Grid

KEYS = {
    *("total_calls", "error_count", "skipped_calls"),
    *("avg_time_ms", "max_time_ms", "min_time_ms", "total_time_ms"),
}
GRIDS = jnp.arange(12, dtype=jnp.int32).reshape(3, 2, 2) % 10


@pytest.fixture(autouse=True)
def fresh_statistics():
    callbacks.reset_callback_performance_stats()


def logged(grid, mask=None):
    callbacks.jax_log_grid(grid, mask, "seen")
    return grid * 2


def scanned(grids):
    return jax.lax.scan(lambda carry, grid: (carry, logged(grid)), 0, grids)[1]


@pytest.mark.parametrize(
    ("transform", "calls"),
    [
        (lambda x: logged(x[0]), 1),
        (jax.jit(lambda x: logged(x[0])), 1),
        (jax.jit(jax.vmap(logged)), 3),
        (jax.jit(scanned), 3),
        (jax.jit(lambda x: jax.vmap(logged)(x, x > 1)), 3),
    ],
    ids=["eager", "jit", "vmap", "scan", "vmap with mask"],
)
def test_grids_are_shown_under_every_transformation(transform, calls, capsys):
    result = transform(GRIDS)
    stats = callbacks.get_callback_performance_stats()["log_grid_seen"]
    assert (stats["total_calls"], stats["error_count"]) == (calls, 0)
    assert set(stats) == KEYS
    assert capsys.readouterr().out.count("seen (") == calls
    expected = GRIDS * 2 if calls == 3 else GRIDS[0] * 2
    np.testing.assert_array_equal(result, expected)


def test_masks_crop_and_options_reach_the_console(capsys):
    mask = jnp.array([[True, False], [False, False]])
    jax.jit(lambda g: callbacks.jax_log_grid(g, mask))(GRIDS[1])
    jax.jit(callbacks.jax_log_grid)(Grid(GRIDS[1], mask))
    jax.effects_barrier()
    assert capsys.readouterr().out.count("Grid (1x1)") == 2
    show = lambda g: callbacks.jax_log_grid(g, show_coordinates=True, show_numbers=True)
    jax.jit(show)(GRIDS[0])
    jax.effects_barrier()
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].strip("│ ") == "0 1"
    with pytest.raises(TypeError, match="color"):
        callbacks.jax_log_grid(GRIDS[0], color=True)  # pyright: ignore[reportCallIssue]
    jax.jit(callbacks.jax_log_grid)(GRIDS, GRIDS >= 0)
    jax.effects_barrier()
    printed = capsys.readouterr().out
    assert [f"Grid [{n}] (2x2)" in printed for n in range(len(GRIDS))] == [True] * 3


def test_what_is_no_grid_never_ends_the_program():
    row, mask = (GRIDS[0, 0],), (GRIDS[0], jnp.ones((1, 2), bool))
    wrong = {"row": row, "mask": mask, "fractions": (jnp.ones((2, 2)),)}

    def step(total, scale):
        for title, arrays in wrong.items():
            callbacks.jax_log_grid(*arrays, title=title)
        callbacks.jax_log_grid(scale * jnp.ones((2, 2)), title="traced")
        return total + scale, None

    grow = jax.grad(lambda x: jax.lax.scan(step, 0.0, x)[0])
    np.testing.assert_array_equal(jax.jit(jax.vmap(grow))(jnp.ones((1, 2))), 1.0)
    stats = callbacks.get_callback_performance_stats()
    assert set(stats) == {f"log_grid_{title}" for title in (*wrong, "traced")}
    assert all(row["error_count"] for row in stats.values())


@jax.jit
def finish(episode, steps, reward):
    similarity = jnp.tanh(reward / 10.0)
    callbacks.jax_log_episode_summary(
        episode, steps, reward, similarity, similarity > 0.8
    )
    return similarity


def test_episodes_are_summed_up_in_one_line(capsys, caplog):
    finish(7, 12, 20.0)
    finish(8, 3, -1.0)
    stats = callbacks.get_callback_performance_stats()
    assert stats["log_episode_summary"]["total_calls"] == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Episode 7: SUCCESS, 12 steps, reward 20.000, similarity 0.964",
        "Episode 8: FAILED, 3 steps, reward -1.000, similarity -0.100",
    ]
    # A logger that listens gets the line instead.
    with caplog.at_level(logging.INFO, logger=callbacks.__name__):
        finish(7, 12, 20.0)
        jax.effects_barrier()
    (record,) = caplog.records
    assert record.levelno == logging.INFO
    assert "SUCCESS" in record.getMessage()
    assert capsys.readouterr().out == ""


def broken(x):
    raise RuntimeError("no picture")


def test_errors_are_counted_and_logged_and_go_no_further(caplog):
    @jax.jit
    def compute(x):
        callbacks.adaptive_visualization_callback(broken, x)
        callbacks.adaptive_visualization_callback(broken, x, callback_name="named")
        return x + 1

    with caplog.at_level(logging.ERROR, logger="jaxrig.callbacks"):
        assert compute(jnp.float32(1)) == 2
        stats = callbacks.get_callback_performance_stats()
    assert {name: s["error_count"] for name, s in stats.items()} == {
        "broken": 1,
        "named": 1,
    }
    assert "no picture" in caplog.text


def test_keywords_are_the_functions_own():
    seen = []

    def note(*args, **kwargs):
        seen.append((args, kwargs))

    jax.jit(
        lambda x: callbacks.adaptive_visualization_callback(
            note, x, name="a", enabled=x
        )
    )(jnp.int32(4))
    jax.effects_barrier()
    ((args, kwargs),) = seen
    assert args == (4,)
    assert kwargs == {"name": "a", "enabled": 4}


def adaptive(limit, seen):
    @jax.jit
    def step(x):
        callbacks.adaptive_visualization_callback(
            seen.append, x, callback_name="viz", max_avg_time_ms=limit
        )
        return x + 1

    return step


def test_slow_callbacks_run_every_tenth_time_and_skips_are_counted():
    seen = []
    step = adaptive(0.0, seen)  # everything is slower than this
    for _ in range(21):
        step(jnp.int32(0))
    stats = callbacks.get_callback_performance_stats()["viz"]
    assert len(seen) == stats["total_calls"] == 3
    assert stats["skipped_calls"] == 18
    # A reset forgets that a callback was slow.
    callbacks.reset_callback_performance_stats()
    step(jnp.int32(0))
    assert callbacks.get_callback_performance_stats()["viz"]["total_calls"] == 1
    # The decision belongs to the name and not to the trace.
    for _ in range(10):
        callbacks.adaptive_visualization_callback(
            seen.append, jnp.int32(0), callback_name="viz", max_avg_time_ms=0.0
        )
    assert callbacks.get_callback_performance_stats()["viz"]["total_calls"] == 2


def test_the_report_lists_names_or_says_there_are_none(capsys):
    callbacks.print_callback_performance_report()
    assert "No callback data" in capsys.readouterr().out
    callbacks.adaptive_visualization_callback(lambda: None, callback_name="[b]one")
    callbacks.print_callback_performance_report()
    out = capsys.readouterr().out
    assert "[b]one" in out
    assert "mean ms" in out
