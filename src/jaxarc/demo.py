"""Show the ARC environments on the demo page."""

import time
from collections.abc import Sequence

import jax
import numpy as np

from jaxarc.benchmarks import python_steps
from jaxarc.draw import draw_task, episode_section
from jaxarc.draw.episodes import episode_figures
from jaxarc.learning.evaluation import evaluate
from jaxarc.learning.training import AgentConfig, make_agent, train_agent
from jaxarc.ops.operations import ARCLEOperationType as Op
from jaxarc.recording import Box, TaskPlayer, player_config
from jaxarc.registration import make
from jaxarc.rollouts import RolloutResult, random_rollout
from jaxarc.tasks import open_dataset
from jaxarc.tasks.parsers import TaskParser
from jaxrig import report
from jaxrig.learn import PPOConfig
from jaxrig.progress import Meter
from jaxrig.report import Figure, Fold, Part, Section, Text

ENVIRONMENT = "AGI1-train"
ENVIRONMENTS, STEPS = 1024, 200
# Grids of at most 3 x 3 cells, so that two cores learn something in half a minute.
SIDE, EPISODE_STEPS, UPDATES, WINDOW = 3, 20, 250, 10
LEARNER = AgentConfig(
    environment=ENVIRONMENT,
    max_side=SIDE,
    max_episode_steps=EPISODE_STEPS,
    answer=True,
    features=32,
    depth=0,
    ppo=PPOConfig(
        environments=64, steps=16, epochs=2, minibatches=2, learning_rate=5e-3
    ),
)
Step = tuple[Op, Box | None]

# Areas enclosed by green become yellow: the fifth demonstration, area by area.
ENCLOSED = "00d62c1b"
ENCLOSED_STEPS: tuple[Step, ...] = tuple(
    (Op.FLOOD_FILL_4, (row, column, row, column))
    for row, column in ((2, 8), (3, 9), (5, 9), (12, 8), (15, 16))
)
# The answer is the input and its mirror image beside it: the test, then handed in.
MIRRORED = "6d0aefbc"
MIRRORED_STEPS: tuple[Step, ...] = (
    (Op.RESIZE, (0, 0, 2, 5)),
    (Op.COPY, (0, 0, 2, 2)),
    (Op.PASTE, (0, 3, 2, 5)),
    (Op.FLIP_HORIZONTAL, (0, 3, 2, 5)),
    (Op.SUBMIT, None),
)


def arc_section(meter: Meter) -> Section:
    """Return the ARC section of the demo page."""
    env, tasks = make(ENVIRONMENT)[0], open_dataset("AGI1", split="train")
    agents = random_rollout(env, "point", ENVIRONMENTS, STEPS, meter=meter)
    return Section(
        "ARC environments",
        *episode_parts(tasks, agents.steps_per_second),
        Fold("Training an agent", *training_parts(meter)),
        Fold("Rates, claimed and measured", *claim_parts(agents)),
        id="arc",
    )


def training_parts(meter: Meter) -> list[Part]:
    """Train an agent and report it before, while and after it learns."""
    agent = make_agent(LEARNER)
    key = jax.random.key(1)
    meter.compiling("the agent before training")
    before = evaluate(agent.state.policy, agent.env, key, attempts=1)
    begin = time.perf_counter()
    state, history = train_agent(agent, UPDATES, meter=meter)
    seconds = time.perf_counter() - begin
    after = evaluate(state.policy, agent.env, key, attempts=1)
    returns = np.array([record["mean_return"] for record in history], np.float64)
    blocks = returns[: len(returns) // WINDOW * WINDOW].reshape(-1, WINDOW)
    # No episode ends in the first updates, which then have no mean.
    whole = np.isfinite(blocks).all(axis=1)
    updates = WINDOW * (np.arange(len(blocks)) + 1)
    chart = report.line_chart(
        {"mean return": (updates[whole], blocks[whole].mean(axis=1))},
        title="Mean return of finished episodes",
        x_label="update",
        y_label="return",
    )
    steps = UPDATES * LEARNER.ppo.steps_per_update
    return [
        Text(
            f"PPO on the {len(np.unique(after.rows))} tasks whose grids all fit "
            f"{SIDE} x {SIDE}, with the output as an input channel, so the agent "
            f"learns to read a grid and to paint it. {UPDATES} updates, {steps:,} "
            f"steps in {seconds:.0f} s including compilation. It solves "
            f"{after.pair_rate:.0%} of {len(after.pairs)} demonstrations in one "
            f"attempt of at most {EPISODE_STEPS} steps; before training it solved "
            f"{before.pair_rate:.0%}."
        ),
        Figure(
            chart,
            caption=f"Means over {WINDOW} updates.",
            alt="Learning curve of the agent",
        ),
    ]


def solve(
    tasks: TaskParser, task_id: str, steps: Sequence[Step], mode: int, pair: int
) -> TaskPlayer:
    """Play the steps; they must solve the pair, or the demo shows something untrue."""
    config = player_config(tasks.config)
    player = TaskPlayer(tasks.get_task_by_id(task_id), task_id, config, mode, pair)
    for operation, box in steps:
        player.step(int(operation), box)
    if not player.solved[pair]:
        raise AssertionError(f"the demo did not solve {task_id}")
    return player


def episode_parts(tasks: TaskParser, rate: float) -> list[Part]:
    """Show two tasks solved by hand, step by step."""
    mirrored = solve(tasks, MIRRORED, MIRRORED_STEPS, mode=1, pair=0)
    enclosed = solve(tasks, ENCLOSED, ENCLOSED_STEPS, mode=0, pair=4)
    player, curves = episode_figures(ENCLOSED, enclosed.frames)
    return [
        report.Beside(
            player,
            report.Heading("Puzzles to solve, for people and for agents"),
            Text(
                f"Task {ENCLOSED} of ARC-AGI-1, fifth demonstration: flood fill paints "
                "every area that green encloses. Agents choose among the same 42 "
                f"operations, on this machine {float(f'{rate:.3g}'):,.0f} "
                f"times a second in {ENVIRONMENTS:,} environments."
            ),
            report.Code(
                f"jaxrig arc play {ENCLOSED}   # solve it yourself\n"
                "jaxrig arc rollout AGI1    # let a random agent try"
            ),
        ),
        Fold(
            "A test solved in five steps, and how steps are rewarded",
            Figure(
                draw_task(mirrored.task, scheme="arc").as_svg(),
                caption=f"Task {MIRRORED}: inputs above, outputs below.",
                alt=f"All pairs of task {MIRRORED}",
            ),
            Text(
                "In test mode the target is hidden, and so is the similarity until the "
                "agent submits. The steps: make the grid twice as wide, copy the left "
                "half, paste it on the right, flip it, submit."
            ),
            *episode_section(MIRRORED, mirrored.frames).parts,
            Text(
                f"In task {ENCLOSED} above the target is known and shown on the right. "
                "Each step is rewarded by the gain in similarity, and the last step "
                "also gets the bonuses of a solved pair."
            ),
            curves,
        ),
    ]


def claim_parts(agents: RolloutResult) -> list[Part]:
    """Compare documented figures with those measured in this run."""
    call = python_steps()[0]
    milliseconds = 1e3 * call.timing.median / call.items
    rate = f"{agents.steps_per_second:,.0f}"
    rows = [
        ("steps per second, many environments", "10,000+", rate),
        ("one arc_step from Python, milliseconds", "0.1 to 1", f"{milliseconds:.2f}"),
        ("environments at once", "1,000+", f"{agents.environments:,}"),
    ]
    told = (
        f"Random agents that act on single cells, on {agents.tasks} training tasks of "
        f"ARC-AGI-1, {agents.steps} steps each, all 42 operations equally likely."
    )
    return [Text(told), report.Table(("what", "documented", "in this run"), rows)]
