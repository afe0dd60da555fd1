"""Learning to solve tasks: a policy network, training and honest evaluation."""

from jaxarc.learning.evaluation import evaluate, summarize
from jaxarc.learning.policy import PointPolicy, RandomPolicy
from jaxarc.learning.training import AgentConfig, make_agent, train_agent

__all__ = [
    "AgentConfig",
    "PointPolicy",
    "RandomPolicy",
    "evaluate",
    "make_agent",
    "summarize",
    "train_agent",
]
