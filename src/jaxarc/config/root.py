"""The whole configuration: every group, strict YAML, and groups composed by Hydra."""

import dataclasses
import logging as log
import os
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jaxarc.config.fields import (
    FOREIGN_KEYS,
    Config,
    ConfigValidationError,
    Part,
    as_mapping,
    readers_of,
)
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
from jaxrig.atomic import write_file
from jaxrig.machine import missing_extra
from jaxrig.settings import nearest

logger = log.getLogger(__name__)


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
        """Return the hash of the fields, worked out once: every compiled call asks for
        it.
        """
        known = self.__dict__.get("_hash")
        if known is None:
            values = (getattr(self, f.name) for f in dataclasses.fields(self))
            known = hash(tuple(values))
            object.__setattr__(self, "_hash", known)
        return known

    def _relation_errors(self) -> Iterator[str]:
        """Log conflicts between groups, which are legal; yield no error."""
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

    def with_settings(self, **settings: Any) -> "JaxArcConfig":
        """Return a copy with settings by their names, each in the group that has it.

        >>> short = JaxArcConfig().with_settings(max_episode_steps=50)
        >>> short.environment.max_episode_steps
        50
        """
        merged = dataclasses.asdict(self)
        for name, group in _grouped(settings).items():
            if name not in _PARTS:
                known = [each for part in _PARTS.values() for each in readers_of(part)]
                raise ConfigValidationError(
                    f"setting {name!r} is not known: {nearest(name, known)}"
                )
            merged[name] = (merged[name] or {}) | as_mapping(group, name)
        return type(self).from_hydra(merged).checked()

    @classmethod
    def from_yaml_string(cls, text: str) -> "JaxArcConfig":
        """Read and check YAML text, such as `to_yaml` gives."""
        mapping = read_yaml(text)
        if "defaults" in mapping:
            raise ConfigValidationError(
                "the YAML has a defaults list, which only Hydra composes; use "
                "load_jaxarc_config"
            )
        return cls.from_hydra(mapping).checked()

    @classmethod
    def from_yaml(cls, path: str | os.PathLike[str]) -> "JaxArcConfig":
        """Read and check a YAML file."""
        try:
            return cls.from_yaml_string(Path(path).read_text("utf-8"))
        except ValueError as error:
            raise ConfigValidationError(f"{os.fspath(path)}: {error}") from error

    def to_yaml(self) -> str:
        """Return all settings as YAML text, which `from_yaml_string` reads back."""
        return _yaml().safe_dump(dataclasses.asdict(self), sort_keys=False)

    def to_yaml_file(self, path: str | os.PathLike[str]) -> None:
        """Write `to_yaml` to a file, as a whole or not at all."""
        write_file(path, self.to_yaml())


_PARTS = {
    name: reader.kind
    for name, reader in readers_of(JaxArcConfig).items()
    if isinstance(reader, Part)
}


def _grouped(mapping: dict[Any, Any]) -> dict[Any, Any]:
    """Return the mapping with root settings put into their groups."""
    groups = {key: value for key, value in mapping.items() if key not in FOREIGN_KEYS}
    for key in [key for key in groups if key not in _PARTS]:
        owners = [name for name, part in _PARTS.items() if key in readers_of(part)]
        if len(owners) > 1:
            raise ConfigValidationError(
                f"{key} at the root could belong to {' or '.join(owners)}; write it "
                "inside its group"
            )
        for name in owners:
            group, value = as_mapping(groups.get(name), name), groups.pop(key)
            if group.setdefault(key, value) != value:
                raise ConfigValidationError(
                    f"{name}.{key} is given twice, as {group[key]!r} and elsewhere as "
                    f"{value!r}; keep one"
                )
            groups[name] = group
    return groups


def read_yaml(text: str) -> dict[Any, Any]:
    """Return the mapping that YAML text holds; an error says what else it holds.

    Repeated keys, of which YAML keeps the last, are refused, and so are aliases: a
    few of them make a value of any size.
    """
    yaml = _yaml()

    class Loader(yaml.SafeLoader):
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                name = self.peek_event().anchor
                raise ValueError(f"the alias {name!r} is used; write the value out")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = Counter(key.value for key, _ in node.value if key.id == "scalar")
            for key, count in keys.most_common(1):
                if count > 1:
                    raise ValueError(f"the key {key!r} is there {count} times")
            return super().construct_mapping(node, deep)

    known = (yaml.YAMLError, ValueError, LookupError, OverflowError, RecursionError)
    try:
        value = yaml.load(text, Loader)
    except known as error:
        raise ConfigValidationError(f"this is not valid YAML: {error}") from error
    return as_mapping(value, "")


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise missing_extra("YAML needs PyYAML", "arc") from error
    return yaml


def get_jaxarc_config_dir() -> Path:
    """Return the folder of the configuration files that come with the package."""
    return Path(__file__).parent.parent / "conf"


def load_jaxarc_config(
    config_name: str = "config", overrides: Sequence[str] | None = None
) -> Any:
    """Compose the package's files with Hydra overrides to a DictConfig."""
    try:
        import hydra
    except ImportError as error:
        raise missing_extra(
            "composing configuration files needs Hydra", "hydra"
        ) from error
    folder = str(get_jaxarc_config_dir().absolute())
    with _kept_hydra(), hydra.initialize_config_dir(folder, version_base="1.3"):
        return hydra.compose(config_name=config_name, overrides=list(overrides or ()))


@contextmanager
def _kept_hydra() -> Generator[None, None, None]:
    """Set the caller's Hydra aside, and put it back with its version."""
    from hydra.core.global_hydra import GlobalHydra
    from hydra.version import VersionBase

    hydra, version = GlobalHydra.instance().hydra, VersionBase.instance().getbase()
    GlobalHydra.instance().clear()
    try:
        yield
    finally:
        GlobalHydra.instance().hydra = hydra
        VersionBase.instance().version_base = version
