"""Wrappers: other actions, more channels, automatic resets, figures, many at once."""

from jaxarc.wrappers.episodes import AutoReset, MetricsWrapper, Vectorize, Wrapper
from jaxarc.wrappers.views import (
    AnswerObservationWrapper,
    BboxActionWrapper,
    ClipboardObservationWrapper,
    ContextualObservationWrapper,
    FlattenActionWrapper,
    InputGridObservationWrapper,
    ObservationWrapper,
    PointActionWrapper,
)

__all__ = [
    "AnswerObservationWrapper",
    "AutoReset",
    "BboxActionWrapper",
    "ClipboardObservationWrapper",
    "ContextualObservationWrapper",
    "FlattenActionWrapper",
    "InputGridObservationWrapper",
    "MetricsWrapper",
    "ObservationWrapper",
    "PointActionWrapper",
    "Vectorize",
    "Wrapper",
]
