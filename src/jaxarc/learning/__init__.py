"""Learning to solve tasks: a policy network, training and honest evaluation."""

from jaxarc.learning.demonstrations import (
    PlaceObservationWrapper,
    demonstrate,
    make_player,
)
from jaxarc.learning.evaluation import evaluate, summarize
from jaxarc.learning.planner import plan
from jaxarc.learning.policy import PointPolicy, RandomPolicy
from jaxarc.learning.training import AgentConfig, make_agent, train_agent

__all__ = [
    "AgentConfig",
    "PlaceObservationWrapper",
    "PointPolicy",
    "RandomPolicy",
    "demonstrate",
    "evaluate",
    "make_agent",
    "make_player",
    "plan",
    "summarize",
    "train_agent",
]
