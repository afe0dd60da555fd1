"""Selectors: the part of a data set that a name means, and subsets users register."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from jaxarc.config.groups import SPLITS, DatasetConfig
from jaxarc.config.root import read_yaml
from jaxarc.tasks.parsers import ConceptArcParser, create_parser
from jaxarc.tasks.sources import DATASETS, dataset_kind

EVALUATION_SELECTORS = ("eval", "evaluation", "test", "corpus")
OPTIONS_SHOWN = 8

_subsets: dict[str, dict[str, tuple[str, ...]]] = {kind: {} for kind in DATASETS}


class Selection(NamedTuple):
    """What a selector means: the split to load, the tasks of it, the episode mode."""

    split: str
    ids: tuple[str, ...]
    default_episode_mode: int


def register_subset(dataset: str, name: str, task_ids: Sequence[str]) -> None:
    """Give some tasks of a data set a name, in place of what had it."""
    kind = dataset_kind(dataset)
    if not name.strip():
        raise ValueError("the name of a subset is empty: give it one")
    if isinstance(task_ids, str) or not task_ids:
        raise ValueError(
            f"subset {name!r} has task_ids={task_ids!r}: it must be a list of at "
            "least one id"
        )
    _subsets[kind][name.strip().lower()] = tuple(dict.fromkeys(task_ids))


def available_named_subsets(
    dataset: str,
    include_builtin: bool = True,
    config: DatasetConfig | None = None,
) -> tuple[str, ...]:
    """Return names of subsets, and with `include_builtin` of splits and concepts.

    Concepts are listed where the data can be found: with a config that has its folder.
    """
    kind = dataset_kind(dataset)
    names = set(_subsets[kind])
    if include_builtin:
        names |= set(SPLITS) if kind.startswith("AGI") else {"all"}
        if kind == "Concept":
            names |= {"corpus"}
            if config is not None and config.dataset_path:
                names |= set(_concepts(kind, config))
    return tuple(sorted(names))


def resolve_selector(
    dataset: str, selector: str = "all", config: DatasetConfig | None = None
) -> Selection:
    """Return what a selector of a data set means.

    In this order: a registered subset (whatever its case), a split (all, train,
    training, eval, evaluation, test, corpus), a concept, a task id. Subsets and ids are
    looked up in both splits of the AGI sets. Splits for evaluation (eval, evaluation,
    test, corpus) have episode mode 1, everything else 0.
    """
    kind = dataset_kind(dataset)
    wanted = selector.strip().lower()
    if wanted in _subsets[kind]:
        return _select_ids(kind, _subsets[kind][wanted], config)
    if wanted in SPLITS:
        mode = int(wanted in EVALUATION_SELECTORS)
        return Selection(wanted, _ids(kind, wanted, config), mode)
    if kind == "Concept" and selector in (groups := _concepts(kind, config)):
        return Selection("corpus", groups[selector], 0)
    if selector in _ids(kind, "all", config):
        return _select_ids(kind, (selector,), config)
    options = available_named_subsets(dataset, config=config)
    raise ValueError(
        f"{kind} has no selector {selector!r}: it is one of {', '.join(options)}, or "
        f"one of its {len(_ids(kind, 'all', config))} task ids"
    )


def load_subset(
    path: str | os.PathLike[str], dataset: str | None = None, name: str | None = None
) -> tuple[str, ...]:
    """Register the `task_ids` of a YAML file as a subset, and return them.

    Data set and name are by default those in the path, `<Dataset>/<name>.yaml`.
    """
    path = Path(path)
    try:
        ids = read_yaml(path.read_text()).get("task_ids")
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    if not isinstance(ids, list) or not all(isinstance(i, str) for i in ids):
        raise ValueError(
            f"{path}: 'task_ids' is {str(ids)[:60]}; it is a list of ids as strings, "
            "quote those that YAML reads as numbers"
        )
    dataset, name = dataset or path.parent.name, name or path.stem
    register_subset(dataset, name, ids)
    return _subsets[dataset_kind(dataset)][name.strip().lower()]


def _config(kind: str, split: str, config: DatasetConfig | None) -> DatasetConfig:
    if config is None:
        return DatasetConfig(dataset_name=kind, task_split=split)
    return replace(config, dataset_name=kind, task_split=split)


def _ids(kind: str, split: str, config: DatasetConfig | None) -> tuple[str, ...]:
    return tuple(create_parser(_config(kind, split, config)).get_available_task_ids())


def _concepts(kind: str, config: DatasetConfig | None) -> dict[str, tuple[str, ...]]:
    parser = ConceptArcParser(_config(kind, "all", config))
    groups = parser.get_concept_groups()
    return {group: tuple(parser.get_tasks_in_concept(group)) for group in groups}


def _select_ids(
    kind: str, ids: tuple[str, ...], config: DatasetConfig | None
) -> Selection:
    """Return ids with the narrowest split that has them all."""
    splits = ("train", "evaluation", "all") if kind.startswith("AGI") else ("all",)
    for split in splits:
        if set(ids).issubset(_ids(kind, split, config)):
            return Selection(split, ids, 0)
    unknown = sorted(set(ids).difference(_ids(kind, "all", config)))
    missing = ", ".join(unknown[:OPTIONS_SHOWN])
    raise ValueError(
        f"{kind} has no task {missing}: correct the subset or load the data set that "
        "has these ids"
    )
