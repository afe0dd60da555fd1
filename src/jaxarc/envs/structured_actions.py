"""The door to the structured actions, which live in `jaxarc.actions`."""

from jaxarc.actions import (
    BaseAction,
    BboxAction,
    MaskAction,
    PointAction,
    StructuredAction,
    create_bbox_action,
    create_mask_action,
    create_point_action,
)

__all__ = [
    "BaseAction",
    "BboxAction",
    "MaskAction",
    "PointAction",
    "StructuredAction",
    "create_bbox_action",
    "create_mask_action",
    "create_point_action",
]
