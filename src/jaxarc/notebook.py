"""What notebooks show of tasks, states and episodes."""

from jaxarc.draw import draw_task, episode_section
from jaxarc.recording import TaskPlayer, frame_of
from jaxarc.state import ArcEnvState
from jaxarc.types import JaxArcTask
from jaxrig.report import Figure, Section, Text


def show_task(task: JaxArcTask) -> Section:
    """Draw a task; of a stack say how many there are."""
    if task.task_index.ndim:
        count = " x ".join(map(str, task.task_index.shape))
        return Section("Tasks", Text(f"A stack of {count} tasks."))
    drawing = draw_task(task).as_svg()
    alt = "All pairs of the task: inputs above, outputs below"
    return Section("Task", Figure(drawing, alt=alt))


def show_state(state: ArcEnvState) -> Section:
    """Draw the working grid and the target, if it is known."""
    if state.episode.step_count.ndim:
        count = " x ".join(map(str, state.episode.step_count.shape))
        one = "`jax.tree.map(lambda x: x[0], states)` is the first"
        return Section("States", Text(f"A batch of {count} states; {one}."))
    steps, done = int(state.step_count), bool(state.episode_done)
    ended = ", the episode has ended" if done else ""
    (player,) = episode_section("State", [frame_of(state)], show_metrics=False).parts
    return Section("State", player, Text(f"After {steps} steps{ended}."))


def show_episode(player: TaskPlayer) -> Section:
    """Play the steps so far."""
    return episode_section(f"Task {player.task_id}", player.frames)
