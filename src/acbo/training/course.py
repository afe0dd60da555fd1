"""The way through the levels of a curriculum, in arrays that a checkpoint can hold."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from acbo.families import SCMConfig
from acbo.policy.environment import EpisodeConfig
from acbo.surrogate.encode import variable_bucket
from acbo.training.convergence import ConvergenceState, observe_episode
from acbo.training.curriculum import CurriculumLevel, Progress, advance


@dataclass(frozen=True)
class Course:
    """Progress in the curriculum, and how steady the learner is on this level."""

    progress: Progress = field(default_factory=Progress)
    convergence: ConvergenceState = field(default_factory=ConvergenceState)


class CourseArrays(eqx.Module):
    """A course as arrays of one size; NaN where nothing was seen yet."""

    counts: Int[np.ndarray, " 6"]
    f1: Float[np.ndarray, " window"]
    rewards: Float[np.ndarray, " last"]


def episodes_of(level: CurriculumLevel, base: EpisodeConfig) -> EpisodeConfig:
    """Episodes on models of a level: sizes, noise, and the density of its graphs."""
    density = sum(level.edges) / sum(level.variables)
    families = ("er1",) if density < 1.25 else ("er1", "er2")
    scms = SCMConfig(families if density < 1.75 else ("er2",), noise=level.noise)
    bucket = variable_bucket(level.variables[1])
    return replace(base, scms=(scms,), sizes=level.variables, variables=bucket)


def follow(
    course: Course,
    levels: Sequence[CurriculumLevel],
    *,
    f1: float,
    improvement: float,
    accuracy: float,
    mean_reward: float,
) -> Course:
    """The course after one more round: a level is left when its own rule says so, or
    when what is learned on it has converged.
    """
    before = course.progress
    after = advance(before, f1, improvement, levels)
    steady = observe_episode(course.convergence, accuracy, mean_reward)
    if steady.converged and after.level == before.level and not after.finished:
        last = before.level + 1 == len(levels)
        after = replace(after, finished=True) if last else Progress(before.level + 1)
    if after.level != before.level or steady.should_rotate:
        steady = ConvergenceState(config=steady.config)
    return Course(after, steady)


def pack(course: Course, levels: Sequence[CurriculumLevel]) -> CourseArrays:
    """The course as arrays."""
    at, steady = course.progress, course.convergence
    counts = at.level, at.attempt, at.steps, at.finished, steady.episodes, steady.good
    window = max(level.window for level in levels)
    return CourseArrays(
        np.array(counts, np.int32),
        _padded(at.f1, window),
        _padded(steady.rewards, steady.config.window),
    )


def unpack(arrays: CourseArrays) -> Course:
    """The course of arrays."""
    level, attempt, steps, finished, episodes, good = map(int, arrays.counts)
    progress = Progress(level, attempt, steps, _known(arrays.f1), bool(finished))
    return Course(progress, ConvergenceState(episodes, good, _known(arrays.rewards)))


def _padded(values: Sequence[float], room: int) -> np.ndarray:
    found = np.full(room, np.nan, np.float32)
    found[: len(values)] = values
    return found


def _known(values: np.ndarray) -> tuple[float, ...]:
    return tuple(float(x) for x in np.asarray(values) if not np.isnan(x))
