"""YAML text to plain mappings and back, strict about what a settings file may hold.

The configuration files that come with the package, composed by Hydra.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxarc.config.fields import ConfigValidationError, as_mapping
from jaxrig.machine import missing_extra

MAX_DEPTH = 20  # levels; the deepest setting lies at four


def read_yaml(text: str) -> dict[Any, Any]:
    """The mapping that YAML text holds; an error says what else it holds.

    Anchors, tags, repeated keys and deep nesting are refused: settings need none.
    """
    yaml = _yaml()
    try:
        _check_events(yaml, text)
        # Recursion is safe only now that the depth is known.
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        _check_keys(node)
        value = yaml.SafeLoader("").construct_document(node) if node else None
    except (yaml.YAMLError, OverflowError, ValueError) as error:
        if isinstance(error, ConfigValidationError):
            raise
        raise ConfigValidationError(f"this is no readable YAML: {error}") from error
    return as_mapping(value, "")


def write_yaml(mapping: Mapping[str, Any]) -> str:
    """YAML text of plain data, in the order given and in ASCII."""
    yaml = _yaml()
    try:
        return yaml.safe_dump(dict(mapping), sort_keys=False)
    except yaml.representer.RepresenterError as error:
        raise ConfigValidationError(f"cannot be written as YAML: {error}") from error


def _check_events(yaml: Any, text: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigValidationError(
                f"the YAML uses the anchor {event.anchor!r}; write the value out"
            )
        if getattr(event, "tag", None):
            raise ConfigValidationError(
                f"the YAML uses the tag {event.tag!r}; write a plain value"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ConfigValidationError(
                f"the YAML nests more than {MAX_DEPTH} levels deep; settings do not"
            )


def _check_keys(node: Any) -> None:
    kind = getattr(node, "id", None)
    if kind == "mapping":
        keys = Counter(key.value for key, _ in node.value if key.id == "scalar")
        for key, count in keys.most_common(1):
            if count > 1:
                raise ConfigValidationError(
                    f"the YAML gives the key {key!r} {count} times; keep one"
                )
        for _, child in node.value:
            _check_keys(child)
    elif kind == "sequence":
        for child in node.value:
            _check_keys(child)


def _yaml() -> Any:
    try:
        import yaml
    except ImportError as error:
        raise missing_extra("YAML needs PyYAML", "arc") from error
    return yaml


MERGE_STRATEGIES = ("custom_overrides_jaxarc", "jaxarc_overrides_custom")

_TEMPLATE = {
    "config.yaml": """\
# Everything of the package's `jaxarc`, then what is written below. Load it with
# extend_jaxarc_config(custom_config_dir=<this folder>).
defaults:
  - jaxarc
  - _self_

environment:
  max_episode_steps: 100
""",
}
_EXAMPLES = {
    "environment/custom.yaml": """\
# Chosen by the override environment=custom
max_episode_steps: 200
debug_level: verbose
""",
    "dataset/custom.yaml": """\
# Chosen by the override dataset=custom
dataset_name: my-dataset
dataset_path: data/my-dataset
max_grid_height: 40
max_grid_width: 40
""",
}


def get_jaxarc_config_dir() -> Path:
    """The folder of the configuration files that come with the package."""
    return Path(__file__).parent.parent / "conf"


def load_jaxarc_config(
    config_name: str = "config",
    overrides: Sequence[str] | None = None,
    use_jaxarc_configs: bool = True,
) -> Any:
    """Compose the package's files with Hydra overrides to a DictConfig.

    With `use_jaxarc_configs=False` the files are those of the Hydra that the caller has
    initialized.
    """
    hydra = _hydra()
    if use_jaxarc_configs:
        return _compose(get_jaxarc_config_dir(), config_name, overrides or ())
    if not hydra.core.global_hydra.GlobalHydra.instance().is_initialized():
        raise ValueError(
            "use_jaxarc_configs=False needs a Hydra that is initialized; call this "
            "inside hydra.initialize_config_dir(...)"
        )
    return hydra.compose(config_name=config_name, overrides=list(overrides or ()))


def extend_jaxarc_config(
    base_config_name: str = "config",
    custom_config_dir: str | os.PathLike[str] | None = None,
    overrides: Sequence[str] | None = None,
    merge_strategy: str = "custom_overrides_jaxarc",
) -> Any:
    """Compose the package's files together with those of your own folder.

    Where both have a file of the same name, `merge_strategy` says whose is taken. Your
    own root file extends the package's by `jaxarc` in its defaults list.
    """
    if merge_strategy not in MERGE_STRATEGIES:
        raise ValueError(
            f"merge strategy {merge_strategy!r} is not one of: "
            f"{', '.join(MERGE_STRATEGIES)}"
        )
    if custom_config_dir is None:
        return load_jaxarc_config(base_config_name, overrides)
    custom = Path(custom_config_dir)
    if not custom.is_dir():
        raise FileNotFoundError(f"{custom} is no folder of configuration files")
    folders = [get_jaxarc_config_dir(), custom]
    if merge_strategy == "jaxarc_overrides_custom":
        folders.reverse()
    # One folder of both, because Hydra's search path cannot put the files of one in
    # front of the other's and still find the root file in either.
    with tempfile.TemporaryDirectory() as both:
        for folder in folders:
            _copy_yaml(folder, Path(both))
        return _compose(Path(both), base_config_name, overrides or ())


def _copy_yaml(source: Path, target: Path) -> None:
    for path in source.rglob("*.yaml"):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)


def get_config(overrides: Sequence[str] | None = None) -> Any:
    """The package's default configuration with Hydra overrides, as a DictConfig."""
    return load_jaxarc_config(overrides=overrides)


def list_available_configs() -> dict[str, list[str]]:
    """The options of every group of the package's files."""
    folders = sorted(x for x in get_jaxarc_config_dir().iterdir() if x.is_dir())
    return {x.name: sorted(file.stem for file in x.glob("*.yaml")) for x in folders}


def create_config_template(
    output_dir: str | os.PathLike[str], include_examples: bool = True
) -> tuple[Path, ...]:
    """Write the files of a folder for `extend_jaxarc_config`; replaces none."""
    texts = _TEMPLATE | (_EXAMPLES if include_examples else {})
    files = {Path(output_dir) / name: text for name, text in texts.items()}
    for path in files:
        if path.exists():
            raise FileExistsError(f"{path} exists; choose another folder or move it")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tuple(files)


def _compose(folder: Path, name: str, overrides: Sequence[str]) -> Any:
    hydra = _hydra()
    with (
        _kept_hydra(),
        hydra.initialize_config_dir(str(folder.absolute()), version_base="1.3"),
    ):
        return hydra.compose(config_name=name, overrides=list(overrides))


@contextmanager
def _kept_hydra() -> Iterator[None]:
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


def _hydra() -> Any:
    try:
        import hydra
        import hydra.core.global_hydra
    except ImportError as error:
        raise missing_extra(
            "composing configuration files needs Hydra", "hydra"
        ) from error
    return hydra
