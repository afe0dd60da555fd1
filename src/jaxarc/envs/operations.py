"""The documented path to the operations' names, which live in `jaxarc.ops.names`."""

from jaxarc.ops.names import (
    NUM_OPERATIONS,
    OPERATION_NAMES,
    ARCLEOperationType,
    get_all_operation_ids,
    get_operation_category,
    get_operation_display_text,
    get_operation_name,
    get_operations_by_category,
    is_valid_operation_id,
)

__all__ = [
    "NUM_OPERATIONS",
    "OPERATION_NAMES",
    "ARCLEOperationType",
    "get_all_operation_ids",
    "get_operation_category",
    "get_operation_display_text",
    "get_operation_name",
    "get_operations_by_category",
    "is_valid_operation_id",
]
