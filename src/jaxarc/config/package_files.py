"""The configuration files that come with the package, composed by Hydra."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jaxrig.machine import missing_extra

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
