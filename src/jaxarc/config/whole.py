"""The whole configuration: every group, its checks across groups, YAML and Hydra."""

import dataclasses
import logging as log
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxarc.config.fields import Config, ConfigValidationError, as_mapping, rules_of
from jaxarc.config.files import read_yaml, write_yaml
from jaxarc.config.groups import (
    ActionConfig,
    ArcEpisodeConfig,
    DatasetConfig,
    EnvironmentConfig,
    GridInitializationConfig,
    HistoryConfig,
    RewardConfig,
)
from jaxarc.config.outputs import (
    LoggingConfig,
    StorageConfig,
    VisualizationConfig,
    WandbConfig,
)
from jaxrig.atomic import atomic_write

logger = log.getLogger(__name__)

# Root keys of Hydra and of scripts, which no group of settings holds.
FOREIGN_KEYS = frozenset({"hydra", "defaults", "paths", "seed", "output_dir"})


@dataclass(frozen=True)
class JaxArcConfig(Config):
    """Everything that is fixed before an environment is compiled; hashable.

    >>> JaxArcConfig(environment=EnvironmentConfig(max_episode_steps=50)).validate()
    ()
    """

    environment: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    action: ActionConfig = field(default_factory=ActionConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    visualization: VisualizationConfig = field(default_factory=VisualizationConfig)
    storage: StorageConfig = field(default_factory=StorageConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)
    wandb: WandbConfig = field(default_factory=WandbConfig)
    episode: ArcEpisodeConfig = field(default_factory=ArcEpisodeConfig)
    history: HistoryConfig = field(default_factory=HistoryConfig)
    grid_initialization: GridInitializationConfig | None = None

    def __hash__(self) -> int:
        """The hash of the fields, worked out once: every compiled call asks for it."""
        known = self.__dict__.get("_hash")
        if known is None:
            values = (getattr(self, f.name) for f in dataclasses.fields(self))
            known = hash(tuple(values))
            object.__setattr__(self, "_hash", known)
        return known

    def _relation_errors(self) -> Iterator[str]:
        """No error lies between groups; conflicts that are legal are logged."""
        on_submit = self.episode.training_reward_frequency == "submit"
        if on_submit and not self.reward.reward_on_submit_only:
            logger.warning(
                "reward.reward_on_submit_only is False, but "
                "episode.training_reward_frequency is 'submit', which decides"
            )
        pictures = set(self.visualization.output_formats) - {"console"}
        if self.visualization.enabled and pictures and self.storage.policy == "none":
            logger.warning(
                "visualization.output_formats has %s, but storage.policy is 'none', "
                "so that no file is written",
                ", ".join(sorted(pictures)),
            )
        yield from ()

    @classmethod
    def from_hydra(cls, mapping: Any) -> "JaxArcConfig":
        """Read a mapping of groups or a DictConfig; unknown keys are an error.

        Settings at the root go to the one group that has them. Values are not checked:
        call `validate` on the result.
        """
        return super().from_hydra(_grouped(as_mapping(mapping, cls.section)))

    @classmethod
    def from_yaml_string(cls, text: str) -> "JaxArcConfig":
        """Read and check YAML text, such as `to_yaml` gives."""
        mapping = read_yaml(text)
        if "defaults" in mapping:
            raise ConfigValidationError(
                "the YAML has a defaults list, which only Hydra composes; use "
                "load_jaxarc_config or extend_jaxarc_config"
            )
        config = cls.from_hydra(mapping)
        errors = config.validate()
        if errors:
            raise ConfigValidationError("; ".join(errors))
        return config

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> "JaxArcConfig":
        """Read and check a YAML file."""
        try:
            return cls.from_yaml_string(Path(path).read_text("utf-8"))
        except ValueError as error:
            raise ConfigValidationError(f"{os.fspath(path)}: {error}") from error

    def to_yaml(self) -> str:
        """All settings as YAML text, from which `from_yaml_string` gives an equal."""
        return write_yaml(dataclasses.asdict(self))

    def to_yaml_file(self, path: str | os.PathLike[str]) -> None:
        """Write `to_yaml` to a file, as a whole or not at all."""
        text = self.to_yaml()
        with atomic_write(path) as file:
            file.write(text.encode())


_PARTS: dict[str, type[Config]] = {
    part.section: part
    for part in (
        *(EnvironmentConfig, DatasetConfig, ActionConfig, RewardConfig, StorageConfig),
        *(VisualizationConfig, LoggingConfig, WandbConfig, ArcEpisodeConfig),
        *(HistoryConfig, GridInitializationConfig),
    )
}


def _grouped(mapping: dict[Any, Any]) -> dict[Any, Any]:
    """The mapping with root settings, and a moved one, put into their groups."""
    groups = {key: value for key, value in mapping.items() if key not in FOREIGN_KEYS}
    for key in [key for key in groups if key not in _PARTS]:
        owners = [name for name, part in _PARTS.items() if _has(part, key)]
        if len(owners) > 1:
            raise ConfigValidationError(
                f"{key} at the root could belong to {' or '.join(owners)}; write it "
                "inside its group"
            )
        if owners:
            _put(groups, owners[0], key, groups.pop(key))
    environment = as_mapping(groups.get("environment"), "environment")
    if "allow_invalid_actions" in environment:
        value = environment.pop("allow_invalid_actions")
        groups["environment"] = environment
        _put(groups, "action", "allow_invalid_actions", value)
    return groups


def _has(part: type[Config], key: Any) -> bool:
    return key in rules_of(part) or key in part.renamed or key in part.without_effect


def _put(groups: dict[Any, Any], name: str, key: str, value: Any) -> None:
    group = as_mapping(groups.get(name), name)
    if key in group and group[key] != value:
        raise ConfigValidationError(
            f"{name}.{key} is given twice, as {group[key]!r} and elsewhere as "
            f"{value!r}; keep one"
        )
    groups[name] = {**group, key: value}
