"""Settings of experiment tracking with Weights & Biases."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from jaxarc.config.base import Config
from jaxarc.config.rules import items, text, whole


@dataclass(frozen=True)
class WandbConfig(Config):
    """Whether, where and how often `ExperimentLogger` reports a run; off by default.

    `log_frequency` is in updates and in episodes; `save_config` keeps the configuration
    with the run.
    """

    section: ClassVar[str] = "wandb"
    without_effect: ClassVar[frozenset[str]] = frozenset(
        {
            *("image_format", "max_image_size", "log_gradients", "log_model_topology"),
            *("log_system_metrics", "retry_attempts", "retry_delay", "save_code"),
        }
    )

    enabled: bool = False
    project_name: Annotated[str, text(empty=False)] = "jaxarc-experiments"
    entity: str | None = None
    tags: Annotated[tuple[str, ...], items(text(empty=False), empty=True)] = ("jaxarc",)
    notes: str = ""
    group: str | None = None
    job_type: Annotated[str, text(empty=False)] = "training"
    log_frequency: Annotated[int, whole(1)] = 10
    offline_mode: bool = False
    save_config: bool = True
