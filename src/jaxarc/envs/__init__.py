"""The documented doorway to environments: actions and operations so far."""

from jaxarc.actions import (
    BaseAction,
    BboxAction,
    MaskAction,
    PointAction,
    StructuredAction,
    bbox_handler,
    create_bbox_action,
    create_mask_action,
    create_point_action,
    get_action_handler,
    mask_handler,
    point_handler,
)
from jaxarc.ops.names import (
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
    "OPERATION_NAMES",
    "ARCLEOperationType",
    "BaseAction",
    "BboxAction",
    "MaskAction",
    "PointAction",
    "StructuredAction",
    "bbox_handler",
    "create_bbox_action",
    "create_mask_action",
    "create_point_action",
    "get_action_handler",
    "get_all_operation_ids",
    "get_operation_category",
    "get_operation_display_text",
    "get_operation_name",
    "get_operations_by_category",
    "is_valid_operation_id",
    "mask_handler",
    "point_handler",
]
