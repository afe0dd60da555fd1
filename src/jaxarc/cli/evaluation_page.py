"""The page of an evaluation: the share of tests solved, and an episode to play."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxarc.draw import EpisodeFrame
from jaxarc.draw.episodes import episode_figures
from jaxrig.report import (
    Beside,
    Code,
    Figure,
    Heading,
    Part,
    Report,
    Section,
    Table,
    Text,
    bar_chart,
    line_chart,
)
from jaxrig.report.charts import wilson
from jaxrig.report.page import machine_table

# Results by player and kind of pairs, then by seed.
Played = Mapping[tuple[str, str], Mapping[int, Any]]
COLUMNS = {
    "pairs solved": "pair_rate",
    "first try": "first_attempt_rate",
    "tasks": "task_rate",
    "similarity": "mean_similarity",
    "steps": "mean_steps",
}
TESTS = ("agent", "tests")


def evaluation_page(
    played: Played,
    env: Any,
    about: str,
    command: str,
    records: Sequence[Mapping[str, Any]],
) -> Report:
    """Return the page; `env` holds the tests, `records` are the metrics of training."""
    rates = {key: _mean_rate(results) for key, results in played.items()}
    count = int(next(iter(played[TESTS].values())).known.sum())
    if count == 0:
        raise ValueError("no test has a known output: a page has no rate to show")
    share = np.array([rates[TESTS]])
    # Seeds replay the same tests, so that they do not count as more of these.
    low, high = (f"{end[0]:.0%}" for end in wilson(share, np.array([float(count)])))
    report = Report(
        f"{rates[TESTS]:.0%} of {count} tests solved",
        f"95% interval {low} to {high}; a random agent solves "
        f"{rates['random', 'tests']:.0%}. {about}.",
    )
    report.add(Section("An episode", _episode(played[TESTS], env)))
    report.add(Section("Agent and chance", *_charts(rates, records)))
    rows = [
        (*key, seed, *(result.figures()[name] for name in COLUMNS.values()))
        for key, results in played.items()
        for seed, result in results.items()
    ]
    columns = ("player", "pairs", "seed", *COLUMNS)
    table = Table(columns, rows, caption="Results by seed")
    report.add(Section("Make it again", Code(command), table, machine_table()))
    return report


def learning_curve(records: Sequence[Mapping[str, Any]]) -> str:
    """Draw the mean return over the updates in which some episode ended."""
    known = [record for record in records if record["mean_return"] is not None]
    steps = [float(record["step"]) for record in known]
    returns = [float(record["mean_return"]) for record in known]
    curves = {"mean return": (steps, returns)}
    return line_chart(curves, x_label="update", y_label="mean return")


def _mean_rate(results: Mapping[int, Any]) -> float:
    return float(np.mean([result.pair_rate for result in results.values()]))


def _episode(results: Mapping[int, Any], env: Any) -> Beside:
    """Play an episode that solves a test, else the one that comes closest."""
    from jaxarc.learning.evaluation import record_episode
    from jaxarc.recording import run_again

    sizes = np.asarray(env.params.buffer.sizes)[:, :, 1].prod(axis=-1)
    slots = env.params.buffer.max_train_pairs

    def worth(found: tuple[int, int, int]) -> tuple[bool, float, int]:
        seed, attempt, place = found
        result = results[seed]
        size = sizes[result.rows[place], slots + result.pairs[place]]
        alike = float(result.similarity[attempt, place])
        return bool(result.solved[attempt, place]), alike, int(size)

    seed, attempt, place = max(
        (
            (seed, *where)
            for seed, result in results.items()
            for where in np.ndindex(result.solved.shape)
        ),
        key=worth,
    )
    solved, alike, _ = worth((seed, attempt, place))
    recording, task = record_episode(results[seed], env, attempt, place)
    pair = task.get_test_pair(recording.pair).output_grid
    height, width = pair.shape
    target = np.asarray(pair.data)[:height, :width]
    frames: list[EpisodeFrame] = [
        dataclasses.replace(frame, target=target)
        for frame in run_again(recording, task)
    ]
    player, _ = episode_figures(f"Task {recording.task}", frames)
    outcome = "solves it" if solved else f"comes closest, with similarity {alike:.2f}"
    return Beside(
        player,
        Heading(f"Task {recording.task}, test {recording.pair + 1}"),
        Text(
            f"The agent {outcome}, in attempt {attempt + 1} with seed {seed}. The "
            "target on the right is hidden from rewards and similarity until the grid "
            "is submitted."
        ),
    )


def _charts(
    rates: Mapping[tuple[str, str], float], records: Sequence[Mapping[str, Any]]
) -> list[Part]:
    short = {"demonstrations": "demos", "tests": "tests"}
    bars = {
        f"{short[kind]}, {who}": round(100 * rate, 1)
        for (who, kind), rate in rates.items()
    }
    solved = Figure(
        bar_chart(bars, x_label="pairs solved (%)"),
        caption="Demonstrations (demos) and tests solved in one of the attempts, mean "
        "over the seeds.",
    )
    if all(record["mean_return"] is None for record in records):
        return [solved]
    curve = Figure(
        learning_curve(records),
        caption="Mean return of the episodes that ended in each update of training.",
    )
    return [Beside(solved, curve)]
