"""Wrappers: other actions, more channels, other endings, figures, many at once."""

from jaxarc.wrappers.actions import (
    BboxActionWrapper,
    FlattenActionWrapper,
    PointActionWrapper,
)
from jaxarc.wrappers.base import Wrapper
from jaxarc.wrappers.endings import AutoReset, StepLimit
from jaxarc.wrappers.metrics import EpisodeMetrics, ExtendedMetrics, MetricsWrapper
from jaxarc.wrappers.observations import (
    AnswerObservationWrapper,
    ClipboardObservationWrapper,
    ContextualObservationWrapper,
    InputGridObservationWrapper,
    ObservationWrapper,
)
from jaxarc.wrappers.pictures import StepVisualizationWrapper
from jaxarc.wrappers.vectorize import Vectorize

__all__ = [
    "AnswerObservationWrapper",
    "AutoReset",
    "BboxActionWrapper",
    "ClipboardObservationWrapper",
    "ContextualObservationWrapper",
    "EpisodeMetrics",
    "ExtendedMetrics",
    "FlattenActionWrapper",
    "InputGridObservationWrapper",
    "MetricsWrapper",
    "ObservationWrapper",
    "PointActionWrapper",
    "StepLimit",
    "StepVisualizationWrapper",
    "Vectorize",
    "Wrapper",
]
