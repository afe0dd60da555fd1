"""The door to the structured actions, which live in `jaxarc.actions`."""

from jaxarc.actions import (
    BboxAction,
    MaskAction,
    PointAction,
    create_bbox_action,
    create_mask_action,
    create_point_action,
)

__all__ = [
    "BboxAction",
    "MaskAction",
    "PointAction",
    "create_bbox_action",
    "create_mask_action",
    "create_point_action",
]
