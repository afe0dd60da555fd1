"""Environments by name: a data set, and which of its tasks."""

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from jaxarc.config import ActionConfig, DatasetConfig, HistoryConfig, JaxArcConfig
from jaxarc.envs.checks import as_config
from jaxarc.envs.environment import Environment
from jaxarc.envs.starts import EnvParams
from jaxarc.tasks.download import DatasetDownloader, remotes_from
from jaxarc.tasks.parsers import create_parser
from jaxarc.tasks.sources import DATASETS, dataset_kind
from jaxarc.tasks.splits import resolve_selector

# Of learners: actions come from the spaces, so that none has to be checked.
UNCHECKED = JaxArcConfig(
    action=ActionConfig(validate_actions=False), history=HistoryConfig(enabled=False)
)
EnvEntry = Callable[[EnvParams], Any]

_registered: dict[str, tuple[str, EnvEntry, int | None]] = {}


def register(
    id: str,
    env_entry: EnvEntry = lambda params: Environment(params=params),
    max_episode_steps: int | None = None,
    dataset: str | None = None,
) -> None:
    """Give an environment a name for `make`.

    `env_entry` builds it from its parameters; `dataset` is the data set and selector
    behind the name (default: the name itself); `max_episode_steps` overrides the
    configuration's.
    """
    if not id.strip():
        raise ValueError("an environment needs a name")
    _registered[id] = (dataset or id, env_entry, max_episode_steps)


def make(
    id: str,
    config: Any = None,
    auto_download: bool = False,
    episode_mode: Any = None,
    params: EnvParams | None = None,
    env_entry: EnvEntry | None = None,
    *,
    dataset_path: str = "",
    augment: bool = False,
    **settings: Any,
) -> tuple[Any, EnvParams]:
    """Return an environment and its parameters, by name: `make("AGI1-train")`.

    `settings` are single settings of the configuration by their names, such as
    `max_episode_steps=50`. Grids and pairs are padded to the sizes of the data set
    unless the configuration has other sizes than its defaults.

    `params` made earlier save reading the data again; a limit of steps that was
    registered with the name holds for them too.

    A name is a data set (Mini, Concept, AGI1, AGI2, AGI12 and their synonyms), then
    perhaps `-` and a selector: a registered subset, a split, a concept, a task id.
    Selectors for evaluation give test mode unless `episode_mode` says otherwise.
    MiniARC and ConceptARC are read from `dataset_path` (or the configuration's), and
    fetched there only with `auto_download`. Without a configuration, actions out of
    range are clipped, since they come from the environment's own spaces, and no history
    is kept.
    """
    source, entry, limit = _registered.get(id, (id, None, None))
    entry = env_entry or entry or (lambda p: Environment(params=p))
    kind, name, selector = _parted(source)
    if params is not None:
        held = config is not None, episode_mode is not None, dataset_path, augment
        if any((*held, settings)):
            raise ValueError(
                "params hold the configuration, the mode and the tasks already: give "
                "either params, or config, episode_mode, dataset_path, augment and "
                "settings"
            )
        params = dataclasses.replace(params, config=_limited(params.config, limit))
        return entry(params), params
    config = _configured(kind, config, dataset_path, limit)
    config = config.with_settings(**settings) if settings else config
    if auto_download:
        config = _fetched(kind, config)
    chosen = resolve_selector(name, selector or "all", config.dataset)
    config = _with(config, "dataset", dataset_name=kind, task_split=chosen.split)
    buffer = create_parser(config.dataset).buffer(chosen.ids)
    modes: dict[Any, int] = {"train": 0, "test": 1, None: chosen.default_episode_mode}
    mode = modes.get(episode_mode, episode_mode)
    params = EnvParams.from_config(config, buffer, mode, augment=augment)
    return entry(params), params


def _parted(source: str) -> tuple[str, str, str]:
    """Return kind, data set and selector of a name; a data set may contain `-`."""
    parts = str(source).split("-")
    for count in range(len(parts), 0, -1):
        name = "-".join(parts[:count])
        with suppress(ValueError):  # of a name that is no data set
            return dataset_kind(name), name, "-".join(parts[count:])
    raise ValueError(
        f"environment {source!r} is not known: it is a data set "
        f"({', '.join(DATASETS)}), perhaps with - and a selector, or a registered name "
        f"({', '.join(sorted(_registered)) or 'none so far'})"
    )


def _fetched(kind: str, config: JaxArcConfig) -> JaxArcConfig:
    """Return the configuration with its data in place, cloned if necessary."""
    folder = config.dataset.dataset_path
    name = DATASETS[kind].download
    if not name or (folder and Path(folder).exists()):
        return config
    remotes = remotes_from(name, config.dataset.dataset_repo)
    fetcher = DatasetDownloader(folder or "data", remotes=remotes)
    return _with(config, "dataset", dataset_path=str(fetcher.download(name)))


def _configured(
    kind: str, config: Any, dataset_path: str, limit: int | None
) -> JaxArcConfig:
    config = UNCHECKED if config is None else as_config(config)
    general = DatasetConfig()
    # A size that is the general default was most likely not chosen: MiniARC would be
    # padded from 5x5 to 30x30, and tasks of ARC-AGI-2 have more test pairs than it.
    changes = {
        name: size
        for name, size in DATASETS[kind].sizes.items()
        if getattr(config.dataset, name) == getattr(general, name)
    }
    if dataset_path:
        changes["dataset_path"] = dataset_path
    return _limited(_with(config, "dataset", **changes), limit)


def _limited(config: JaxArcConfig, limit: int | None) -> JaxArcConfig:
    if limit is None:
        return config
    return _with(config, "environment", max_episode_steps=limit)


def _with(config: JaxArcConfig, group: str, **changes: Any) -> JaxArcConfig:
    part = dataclasses.replace(getattr(config, group), **changes)
    return dataclasses.replace(config, **{group: part})
