"""An episode written naively in NumPy: what the compiled environment must equal.

Grids and clipboards are int arrays of the padded shape with -1 for cells that do not
exist or hold no content, as in `arc_reference`.
"""

from dataclasses import dataclass, field

import numpy as np

import arc_reference as operations
from jaxarc.types import JaxArcTask

SUBMIT, RESIZE, FIRST_CONTROL, RESET_PAIR = 34, 33, 35, 39
NUM_OPERATIONS = 42
# mode -> (next, previous, first unsolved)
SWITCHES = {0: (35, 36, 40), 1: (37, 38, 41)}


@dataclass
class Puzzle:
    """Demonstration and test pairs of padded grids; no output: all -1."""

    demos: list
    tests: list
    room: tuple[int, int]

    @property
    def shape(self):
        return self.demos[0][0].shape

    def as_task(self):
        arrays = []
        for pairs, slots in zip((self.demos, self.tests), self.room, strict=True):
            for side in (0, 1):
                grids = np.full((slots, *self.shape), -1, np.int32)
                for slot, pair in enumerate(pairs):
                    grids[slot] = pair[side]
                arrays += [grids, grids >= 0]
            arrays.append(len(pairs))
        return JaxArcTask(*arrays)


def nearest_allowed(operation, allowed):
    """The allowed operation nearest to one, the lower of two as near, or 0."""
    return min(allowed, key=lambda other: (abs(other - operation), other), default=0)


@dataclass
class Turn:
    """What one step did, as far as reward and end are concerned."""

    operation: int
    replaced: bool
    gain: np.float32
    solved: bool
    newly: bool
    limit: bool
    submitted: bool = field(init=False)

    def __post_init__(self):
        self.submitted = self.operation == SUBMIT


class EpisodeReference:
    """One episode, step by step."""

    def __init__(self, puzzle, config, mode, pair):
        self.puzzle, self.config, self.mode = puzzle, config, mode
        self.pairs = puzzle.tests if mode else puzzle.demos
        self.steps, self.done = 0, False
        self.completed = set()
        self.permitted = set(range(NUM_OPERATIONS))
        self.records = []
        self.open_pair(pair)
        self.score = self.likeness() if mode == 0 else np.float32(0)

    def open_pair(self, pair):
        self.pair = pair
        self.grid = self.pairs[pair][0].copy()
        self.clipboard = np.full(self.puzzle.shape, -1, np.int32)
        self.selected = np.zeros(self.puzzle.shape, bool)

    def likeness(self):
        return operations.similarity(self.grid, self.pairs[self.pair][1])

    def step(self, operation, raw):
        """Reward and info of one action; `raw` is its selection, not yet cut."""
        before = self.pair
        operation, replaced = self.filtered(operation)
        selection = raw & (self.grid >= 0)
        self.record(operation, raw if operation == RESIZE else selection)
        touched = self.execute(operation, raw, selection)
        self.steps += 1
        score = self.judged(operation, touched)
        gain = np.float32(0) if self.pair != before else score - self.score
        self.score = score
        turn = self.settle(operation, replaced, gain)
        reward = self.reward(turn)
        if turn.newly:
            self.completed.add(self.pair)
        if self.ends(turn):
            self.done = True
        return reward, self.info(turn)

    def filtered(self, operation):
        rules = self.config.action
        allowed = set(self.permitted)
        if rules.allowed_operations is not None:
            allowed &= set(rules.allowed_operations)
        if rules.dynamic_action_filtering and rules.context_dependent_operations:
            allowed -= self.senseless()
        policy = rules.invalid_operation_policy
        if operation in allowed or policy == "passthrough":
            return operation, False
        if policy == "reject":
            return -1, True
        return nearest_allowed(operation, allowed), True

    def senseless(self):
        found = set()
        for mode, pairs in ((0, self.puzzle.demos), (1, self.puzzle.tests)):
            if self.mode != mode or len(pairs) <= 1:
                found |= set(SWITCHES[mode])
        return found if self.steps > 0 else found | {RESET_PAIR}

    def execute(self, operation, raw, selection):
        """Do it; whether the operation was one that acts at all."""
        if operation < 0:
            return False
        if operation >= FIRST_CONTROL:
            return self.control(operation)
        given = self.pairs[self.pair][0]
        self.grid, self.clipboard = operations.apply(
            operation, self.grid, self.clipboard, raw, given
        )
        self.selected = selection
        return True

    def control(self, operation):
        if operation == RESET_PAIR:
            self.open_pair(self.pair)
            return True
        rules = self.config.episode
        may = rules.allow_test_switching if self.mode else rules.allow_demo_switching
        if operation not in SWITCHES[self.mode] or not may:
            return False
        pair = self.switched(SWITCHES[self.mode].index(operation))
        if pair == self.pair:
            return False
        self.open_pair(pair)
        return True

    def switched(self, kind):
        count = len(self.pairs)
        if kind == 0:
            return 0 if self.pair == count - 1 else self.pair + 1
        if kind == 1:
            return count - 1 if self.pair == 0 else self.pair - 1
        unsolved = [i for i in range(count) if i not in self.completed]
        return unsolved[0] if unsolved else self.pair

    def judged(self, operation, touched):
        """Similarity after a step: in test mode only a submission shows it."""
        if self.mode == 0 or operation == SUBMIT:
            return self.likeness()
        return np.float32(0) if touched else self.score

    def settle(self, operation, replaced, gain):
        rules = self.config.episode
        known = bool((self.pairs[self.pair][1] >= 0).any())
        solved = known and bool(self.score >= np.float32(rules.success_threshold))
        limit = self.steps >= self.config.environment.max_episode_steps
        if self.mode == 1:
            counts = operation == SUBMIT
        elif rules.training_reward_frequency == "submit":
            counts = operation == SUBMIT or limit
        else:
            counts = True
        newly = solved and counts and self.pair not in self.completed
        return Turn(operation, replaced, gain, solved, newly, limit)

    def reward(self, turn):
        rules = self.config.reward
        total = rules.step_penalty
        if turn.operation >= FIRST_CONTROL:
            total += rules.control_operation_penalty + rules.pair_switching_bonus
        policy = self.config.action.invalid_operation_policy
        if turn.replaced and policy == "penalize":
            total += rules.invalid_action_penalty
        if self.mode == 1:
            return total + (self.test_earnings(turn) if turn.submitted else 0.0)
        delayed = self.config.episode.training_reward_frequency == "submit"
        if delayed and not (turn.submitted or turn.limit):
            return total
        return total + self.training_earnings(turn)

    def training_earnings(self, turn):
        rules = self.config.reward
        earned = rules.similarity_weight * rules.training_similarity_weight * turn.gain
        if turn.gain > 0:
            earned += rules.progress_bonus
        return earned + self.bonuses(turn, rules.demo_completion_bonus)

    def test_earnings(self, turn):
        rules = self.config.reward
        weight = rules.similarity_weight * rules.evaluation_similarity_weight
        return weight * self.score + self.bonuses(turn, rules.test_completion_bonus)

    def bonuses(self, turn, completion):
        rules = self.config.reward
        earned = 0.0
        if turn.submitted and not turn.solved:
            earned += rules.unsolved_submission_penalty
        if turn.newly:
            earned += rules.success_bonus + completion
            if self.steps <= rules.efficiency_bonus_threshold:
                earned += rules.efficiency_bonus
            if self.completed:
                earned += rules.consecutive_success_bonus
        return earned

    def ends(self, turn):
        rules = self.config.episode
        if turn.limit:
            return True
        enough = min(len(self.pairs), rules.max_pairs_per_episode)
        all_done = len(self.completed) >= enough
        first_ends = rules.terminate_on_first_success
        if self.mode == 1:
            goes_on = rules.allow_test_switching and rules.require_all_tests_solved
            goes_on = goes_on and not first_ends and turn.solved and not all_done
            return turn.submitted and not goes_on
        if rules.training_reward_frequency == "submit":
            return turn.submitted
        if rules.require_all_demos_solved and not first_ends:
            return turn.submitted or all_done
        return turn.submitted or turn.solved

    def info(self, turn):
        control = turn.operation >= FIRST_CONTROL
        return {
            "success": turn.solved,
            "similarity": self.score,
            "step_count": self.steps,
            "similarity_improvement": turn.gain,
            "is_control_operation": control,
            "operation_type": int(control),
            "episode_mode": self.mode,
            "current_pair_index": self.pair,
            "available_demo_pairs": len(self.puzzle.demos),
            "available_test_pairs": len(self.puzzle.tests),
            "action_history_length": min(len(self.records), self.room()),
        }

    def room(self):
        rules = self.config.history
        if not rules.enabled:
            return 0
        return min(rules.max_history_length, self.config.environment.max_episode_steps)

    def record(self, operation, selection):
        described = []
        if self.config.history.store_selection_data:
            described = describe(self.config.action.selection_format, selection)
        self.records.append([*described, operation, self.steps, self.pair, 1.0])

    def ring(self):
        """The history as an array, the newest records over the oldest."""
        fields = 4
        if self.config.history.store_selection_data and self.room():
            form = self.config.action.selection_format
            fields += len(describe(form, np.zeros(self.puzzle.shape, bool)))
        ring = np.zeros((self.room(), fields), np.float32)
        for number, record in enumerate(self.records):
            if self.room():
                ring[number % self.room()] = record
        return ring

    def target(self):
        hidden = np.full(self.puzzle.shape, -1, np.int32)
        return hidden if self.mode else self.pairs[self.pair][1]

    def fields(self):
        """Every documented field of the state."""
        room, shown = self.puzzle.room, self.puzzle
        flags = lambda mode: self.completed if self.mode == mode else set()
        is_in = lambda found, slots: np.array([i in found for i in range(slots)])
        return {
            "working_grid": self.grid,
            "working_grid_mask": self.grid >= 0,
            "target_grid": self.target(),
            "target_grid_mask": self.target() >= 0,
            "step_count": self.steps,
            "episode_done": self.done,
            "current_example_idx": self.pair,
            "selected": self.selected,
            "clipboard": np.maximum(self.clipboard, 0),
            "clipboard_mask": self.clipboard >= 0,
            "similarity_score": self.score,
            "episode_mode": self.mode,
            "available_demo_pairs": is_in(range(len(shown.demos)), room[0]),
            "available_test_pairs": is_in(range(len(shown.tests)), room[1]),
            "demo_completion_status": is_in(flags(0), room[0]),
            "test_completion_status": is_in(flags(1), room[1]),
            "action_history": self.ring(),
            "action_history_length": min(len(self.records), self.room()),
            "action_history_write_pos": len(self.records) % max(self.room(), 1),
            "allowed_operations_mask": is_in(self.permitted, NUM_OPERATIONS),
        }


def describe(form, selection):
    """A selection in the configured format; -1 where a point or box holds nothing."""
    if form == "mask":
        return selection.reshape(-1).astype(np.float32).tolist()
    cells = np.argwhere(selection)
    if len(cells) == 0:
        return [-1] * (2 if form == "point" else 4)
    if form == "point":
        return cells[0].tolist()
    return [*cells.min(0).tolist(), *cells.max(0).tolist()]
