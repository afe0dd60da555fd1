"""Wrappers: other actions, more channels, other endings, figures, many at once."""

from jaxarc.wrappers.actions import (
    BboxActionWrapper,
    FlattenActionWrapper,
    PointActionWrapper,
)
from jaxarc.wrappers.episodes import (
    AutoReset,
    EpisodeMetrics,
    MetricsWrapper,
    StepLimit,
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
    "EpisodeMetrics",
    "FlattenActionWrapper",
    "InputGridObservationWrapper",
    "MetricsWrapper",
    "ObservationWrapper",
    "PointActionWrapper",
    "StepLimit",
    "Vectorize",
    "Wrapper",
]
