"""Settings of actions: their format and the operations that are allowed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import items, maybe, number, one_of, whole
from jaxarc.ops.names import NUM_OPERATIONS


@dataclass(frozen=True)
class ActionConfig(Config):
    """The format of actions and which operations they may carry.

    `selection_threshold` turns a mask of numbers into cells. `allowed_operations` holds
    always; `dynamic_action_filtering` replaces operations that the state forbids, by
    `context_dependent_operations` also those without meaning at the moment, as
    `invalid_operation_policy` says.
    """

    section: ClassVar[str] = "action"
    renamed: ClassVar[Mapping[str, str]] = {
        "num_operations": "max_operations",
        "clip_invalid_actions": "not allow_invalid_actions",
    }
    without_effect: ClassVar[frozenset[str]] = frozenset({"allow_partial_selection"})

    selection_format: Annotated[str, one_of("mask", "point", "bbox")] = "mask"
    selection_threshold: Annotated[float, number(0, 1)] = 0.5
    max_operations: Annotated[int, whole(1, unusual_above=100)] = NUM_OPERATIONS
    allowed_operations: Annotated[
        tuple[int, ...] | None, maybe(items(whole(0, NUM_OPERATIONS - 1)))
    ] = None
    validate_actions: bool = True
    allow_invalid_actions: bool = False
    dynamic_action_filtering: bool = False
    context_dependent_operations: bool = False
    invalid_operation_policy: Annotated[
        str, one_of("clip", "reject", "passthrough", "penalize")
    ] = "clip"

    def _relation_errors(self) -> Iterator[str]:
        for operation in self.allowed_operations or ():
            if operation >= self.max_operations:
                yield (
                    f"action.allowed_operations holds {operation}; each must be below "
                    f"action.max_operations, which is {self.max_operations}"
                )


UnifiedActionConfig = ActionConfig
