import sys
from pathlib import Path
from typing import Any

import pytest

from jaxarc.config.files import (
    create_config_template,
    extend_jaxarc_config,
    get_config,
    get_jaxarc_config_dir,
    list_available_configs,
    load_jaxarc_config,
    read_yaml,
)
from jaxarc.config.whole import JaxArcConfig

OPTIONS = [
    (group, x) for group, names in list_available_configs().items() for x in names
]


def read_option(group: str, name: str) -> JaxArcConfig:
    text = (get_jaxarc_config_dir() / group / f"{name}.yaml").read_text()
    mapping = read_yaml(text)
    at_root = text.startswith("# @package _global_\n")
    return JaxArcConfig.from_hydra(mapping if at_root else {group: mapping})


def test_the_groups_are_those_of_the_documents():
    assert list_available_configs() == {
        "action": ["full", "raw", "standard"],
        "dataset": ["arc_agi_1", "arc_agi_2", "concept_arc", "mini_arc"],
        "environment": ["evaluation", "training"],
        "episode": ["evaluation", "research", "standard", "training"],
        "history": ["disabled", "minimal", "research", "standard"],
        "logging": ["basic", "full"],
        "reward": ["evaluation", "standard", "training"],
        "storage": ["development", "production", "research"],
        "visualization": ["debug_standard", "full", "minimal", "off", "standard"],
        "wandb": ["basic", "disabled", "research"],
    }


@pytest.mark.parametrize(("group", "name"), OPTIONS)
def test_every_option_is_valid(caplog, group, name):
    pytest.importorskip("yaml")
    assert read_option(group, name).validate() == ()
    assert caplog.messages == []


@pytest.mark.parametrize(("group", "name"), OPTIONS)
def test_every_option_composes(group, name):
    pytest.importorskip("hydra")
    config = JaxArcConfig.from_hydra(load_jaxarc_config(overrides=[f"{group}={name}"]))
    assert config.validate() == ()
    expected = getattr(read_option(group, name), group)
    if group not in ("action", "storage"):  # which other files of the root set too
        assert getattr(config, group) == expected


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("dataset=arc_agi_2", "dataset.max_test_pairs", 4),
        ("dataset=mini_arc", "dataset.max_grid_height", 5),
        ("environment=training", "environment.max_episode_steps", 75),
        ("environment=training", "action.allow_invalid_actions", True),
        ("environment=evaluation", "action.allow_invalid_actions", False),
        ("action=raw", "action.allowed_operations", (*range(10), 33, 34)),
        ("action=standard", "action.allowed_operations", (*range(20), *range(28, 35))),
        ("action=full", "action.context_dependent_operations", True),
        ("reward=training", "reward.success_bonus", 15.0),
        ("reward=evaluation", "reward.similarity_weight", 0.0),
        ("episode=evaluation", "episode.episode_mode", 1),
        ("history=minimal", "history.store_selection_data", False),
        ("history.max_history_length=9", "history.max_history_length", 9),
        ("visualization=off", "visualization.level", "off"),
        ("output_dir=there", "storage.base_output_dir", "there"),
    ],
)
def test_options_have_the_documented_values(override, path, value):
    pytest.importorskip("hydra")
    config = JaxArcConfig.from_hydra(get_config([override]))
    group, field = path.split(".")
    assert getattr(getattr(config, group), field) == value


def test_the_root_has_the_documented_defaults():
    pytest.importorskip("hydra")
    node = load_jaxarc_config()
    assert (node.seed, node.output_dir) == (42, "outputs")
    assert node.dataset.dataset_name == "arc-agi-2"
    assert node.environment.debug_level == "verbose"
    assert node.storage.policy == "research"
    assert node.wandb.enabled is False
    assert node == load_jaxarc_config("jaxarc")


def test_hydra_is_left_as_it_was(tmp_path):
    hydra = pytest.importorskip("hydra")
    from hydra.core.global_hydra import GlobalHydra
    from hydra.version import getbase

    (tmp_path / "mine.yaml").write_text("a: 1\n")
    assert not GlobalHydra.instance().is_initialized()
    before = getbase()
    load_jaxarc_config()
    assert not GlobalHydra.instance().is_initialized()
    assert getbase() == before
    with hydra.initialize_config_dir(str(tmp_path), version_base="1.2"):
        load_jaxarc_config()
        with pytest.raises(hydra.errors.MissingConfigException):
            load_jaxarc_config("nothing")
        assert hydra.compose("mine") == {"a": 1}
        assert str(getbase()) == "1.2"
        assert load_jaxarc_config("mine", ["a=2"], use_jaxarc_configs=False) == {"a": 2}


def test_own_files_need_a_hydra():
    pytest.importorskip("hydra")
    with pytest.raises(ValueError, match="needs a Hydra that is initialized"):
        load_jaxarc_config(use_jaxarc_configs=False)


def test_a_template_extends_the_package(tmp_path):
    pytest.importorskip("hydra")
    folder = tmp_path / "it's, a [folder]"
    written = create_config_template(folder)
    assert sorted(written) == sorted(folder.rglob("*.yaml"))
    read = JaxArcConfig.from_hydra(extend_jaxarc_config(custom_config_dir=folder))
    assert read.environment.max_episode_steps == 100
    assert read.dataset.dataset_name == "arc-agi-2"
    chosen = JaxArcConfig.from_hydra(
        extend_jaxarc_config(
            custom_config_dir=str(folder),
            overrides=["dataset=custom", "reward=training"],
        )
    )
    assert chosen.validate() == ()
    assert chosen.dataset.max_grid_height == 40
    assert chosen.reward.success_bonus == 15.0


def test_the_strategy_says_whose_file_is_taken(tmp_path):
    pytest.importorskip("hydra")
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / "standard.yaml").write_text("max_history_length: 5\n")
    (tmp_path / "history" / "tiny.yaml").write_text("max_history_length: 2\n")

    def length(*overrides: str, **options: str) -> int:
        folder: Any = {"custom_config_dir": tmp_path, "overrides": overrides}
        return extend_jaxarc_config(**folder, **options).history.max_history_length

    assert length() == 5
    assert length(merge_strategy="jaxarc_overrides_custom") == 1000
    assert length("history=tiny", merge_strategy="jaxarc_overrides_custom") == 2


def test_without_an_own_folder_it_is_the_package():
    pytest.importorskip("hydra")
    assert extend_jaxarc_config() == load_jaxarc_config()


def test_wrong_arguments_are_named(tmp_path):
    with pytest.raises(
        ValueError, match="merge strategy 'both' is not one of: custom_"
    ):
        extend_jaxarc_config(merge_strategy="both")
    with pytest.raises(FileNotFoundError, match="none is no folder of configuration"):
        extend_jaxarc_config(custom_config_dir=tmp_path / "none")


def test_a_template_replaces_nothing(tmp_path):
    (tmp_path / "config.yaml").write_text("mine: 1\n")
    with pytest.raises(FileExistsError, match=r"config\.yaml exists; choose another"):
        create_config_template(tmp_path)
    assert [x.name for x in tmp_path.iterdir()] == ["config.yaml"]
    assert create_config_template(tmp_path / "bare", include_examples=False) == (
        tmp_path / "bare" / "config.yaml",
    )


def test_a_missing_hydra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "hydra", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[hydra\]"'):
        load_jaxarc_config()


def test_the_folder_holds_the_files():
    assert (Path(get_jaxarc_config_dir()) / "config.yaml").is_file()
