"""Settings of the action history, and the memory it takes."""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from rich.filesize import decimal

from jaxarc.config.base import Config, ConfigValidationError
from jaxarc.config.rules import whole

METADATA_FIELDS = 4  # operation, step, pair, validity
_RECORDS = {  # use case -> records, selections kept
    "development": (100, True),
    "training": (1000, True),
    "evaluation": (500, False),
}


def get_selection_data_size(
    selection_format: str, max_grid_height: int = 30, max_grid_width: int = 30
) -> int:
    """How many numbers a selection takes in a record.

    >>> get_selection_data_size("mask", 30, 30)
    900
    """
    sizes = {"point": 2, "bbox": 4, "mask": max_grid_height * max_grid_width}
    if selection_format not in sizes:
        raise ValueError(
            f"selection format {selection_format!r} is not one of: {', '.join(sizes)}"
        )
    return sizes[selection_format]


def get_action_record_fields(
    selection_format: str, max_grid_height: int = 30, max_grid_width: int = 30
) -> int:
    """How many numbers a whole record takes: the selection, then four more."""
    size = get_selection_data_size(selection_format, max_grid_height, max_grid_width)
    return size + METADATA_FIELDS


@dataclass(frozen=True)
class HistoryConfig(Config):
    """How many actions are remembered, and whether with their selections."""

    section: ClassVar[str] = "history"
    without_effect: ClassVar[frozenset[str]] = frozenset(
        {"store_intermediate_grids", "compress_repeated_actions"}
    )

    enabled: bool = True
    max_history_length: Annotated[int, whole(1, unusual_above=10_000)] = 1000
    store_selection_data: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        length = self.max_history_length
        if isinstance(length, int) and length <= 0:
            raise ConfigValidationError(
                f"history.max_history_length is {length}; it must be above 0 (to keep "
                "no history, set history.enabled to false)"
            )

    def estimate_memory_usage(
        self,
        selection_format: str = "mask",
        max_grid_height: int = 30,
        max_grid_width: int = 30,
        dtype_size: int = 4,
    ) -> dict[str, Any]:
        """The bytes that one environment's history takes, with a breakdown."""
        selection = get_selection_data_size(
            selection_format, max_grid_height, max_grid_width
        )
        records = self.max_history_length if self.enabled else 0
        kept = selection if self.store_selection_data else 0
        total = records * (kept + METADATA_FIELDS) * dtype_size
        breakdown = {
            "records": records,
            "selection_bytes": records * kept * dtype_size,
            "metadata_bytes": records * METADATA_FIELDS * dtype_size,
            "fields_per_record": kept + METADATA_FIELDS,
        }
        return {
            "total_bytes": total,
            "human_readable": decimal(total),
            "breakdown": breakdown,
        }

    @classmethod
    def get_recommended_config(
        cls,
        selection_format: str = "mask",
        max_grid_height: int = 30,
        max_grid_width: int = 30,
        memory_budget_mb: float = 100.0,
        use_case: str = "development",
    ) -> "HistoryConfig":
        """The history for a use case that fits into a budget (MiB per environment).

        Where the budget is short, selections go first, then records.
        """
        if use_case not in _RECORDS:
            raise ValueError(
                f"use case {use_case!r} is not one of: {', '.join(_RECORDS)}"
            )
        records, selections = _RECORDS[use_case]
        budget = memory_budget_mb * 2**20
        size = (selection_format, max_grid_height, max_grid_width)
        config = cls(max_history_length=records, store_selection_data=selections)
        if config.estimate_memory_usage(*size)["total_bytes"] <= budget:
            return config
        config = replace(config, store_selection_data=False)
        per_record = config.estimate_memory_usage(*size)["total_bytes"] // records
        affordable = min(records, int(budget // per_record))
        if affordable < 1:
            raise ValueError(
                f"a budget of {memory_budget_mb} MiB holds no record of {per_record} "
                "bytes; raise it, or set history.enabled to false"
            )
        return replace(config, max_history_length=affordable)
