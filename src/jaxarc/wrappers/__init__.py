"""Wrappers: other actions, more channels, automatic resets, figures, many at once."""

from jaxarc.wrappers.actions import (
    BboxActionWrapper,
    FlattenActionWrapper,
    PointActionWrapper,
)
from jaxarc.wrappers.episodes import (
    AutoReset,
    MetricsWrapper,
    Vectorize,
    Wrapper,
)
from jaxarc.wrappers.observations import (
    AnswerObservationWrapper,
    ClipboardObservationWrapper,
    ContextualObservationWrapper,
    InputGridObservationWrapper,
    ObservationWrapper,
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
