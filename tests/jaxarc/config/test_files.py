import sys

import pytest

from jaxarc.config.fields import ConfigValidationError
from jaxarc.config.root import (
    JaxArcConfig,
    get_jaxarc_config_dir,
    load_jaxarc_config,
    read_yaml,
)

pytest.importorskip("yaml")
BOMB = "a: &a [1, 1]\n" + "".join(
    f"{x}: &{x} [*{y}, *{y}]\n" for y, x in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_mappings_are_read():
    assert read_yaml("a: {b: [1, x]}\nc: null") == {"a": {"b": [1, "x"]}, "c": None}
    assert read_yaml("") == read_yaml("# nothing\n") == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- 1\n- 2", "the configuration is .* it must be a mapping"),
        ("plain", "the configuration is 'plain'"),
        ("a: [1", "not valid YAML"),
        ("a: b: c", "not valid YAML"),
        ("a: 1\n--- \nb: 2", "not valid YAML"),
        ("[1]: 2", "not valid YAML"),
        ("a: 2024-99-99", "not valid YAML"),
        ("a: \x00", "not valid YAML"),
        ("a: " + "9" * 5000, "not valid YAML"),
        (BOMB, "the alias 'a' is used; write the value out"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constr"),
        ("a: !!bool maybe", "not valid YAML"),
        ("a: " + "[" * 5000 + "]" * 5000, "recursion depth exceeded"),
        ("a: 1\nb: 2\na: 3", "the key 'a' is there 2 times"),
        ("x: [{a: 1, a: 3}]", "the key 'a' is there 2 times"),
    ],
)
def test_hostile_text_is_refused(text, sentence):
    with pytest.raises(ConfigValidationError, match=sentence):
        read_yaml(text)


GROUPS = {
    folder.name: sorted(file.stem for file in folder.glob("*.yaml"))
    for folder in sorted(get_jaxarc_config_dir().iterdir())
    if folder.is_dir()
}
OPTIONS = [(group, name) for group, names in GROUPS.items() for name in names]


def read_option(group: str, name: str) -> JaxArcConfig:
    text = (get_jaxarc_config_dir() / group / f"{name}.yaml").read_text()
    mapping = read_yaml(text)
    at_root = text.startswith("# @package _global_\n")
    return JaxArcConfig.from_hydra(mapping if at_root else {group: mapping})


def test_the_groups_are_those_of_the_documents():
    assert GROUPS == {
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


@pytest.mark.parametrize("nth", range(max(map(len, GROUPS.values()))))
def test_every_option_composes(nth):
    """The nth option of every group at once; those with fewer begin again."""
    pytest.importorskip("hydra")
    chosen = {group: names[nth % len(names)] for group, names in GROUPS.items()}
    overrides = [f"{group}={name}" for group, name in chosen.items()]
    config = JaxArcConfig.from_hydra(load_jaxarc_config(overrides=overrides))
    assert config.validate() == ()
    for group, name in chosen.items():
        if group not in ("action", "storage"):  # which other files of the root set too
            assert getattr(config, group) == getattr(read_option(group, name), group)


@pytest.mark.parametrize(
    ("overrides", "values"),
    [
        (
            "dataset=arc_agi_2 environment=training action=raw reward=training",
            {
                "dataset.max_test_pairs": 4,
                "environment.max_episode_steps": 75,
                "action.allow_invalid_actions": True,
                "action.allowed_operations": (*range(10), 33, 34),
                "reward.success_bonus": 15.0,
            },
        ),
        (
            "dataset=mini_arc environment=evaluation action=standard reward=evaluation",
            {
                "dataset.max_grid_height": 5,
                "action.allow_invalid_actions": False,
                "action.allowed_operations": (*range(20), *range(28, 35)),
                "reward.similarity_weight": 0.0,
            },
        ),
        (
            "action=full episode=evaluation history=minimal visualization=off",
            {
                "action.context_dependent_operations": True,
                "episode.episode_mode": 1,
                "history.store_selection_data": False,
                "visualization.level": "off",
            },
        ),
        (
            "history.max_history_length=9 output_dir=there",
            {"history.max_history_length": 9, "storage.base_output_dir": "there"},
        ),
    ],
)
def test_options_have_the_documented_values(overrides, values):
    pytest.importorskip("hydra")
    node = load_jaxarc_config(overrides=overrides.split())
    config = JaxArcConfig.from_hydra(node)
    for path, value in values.items():
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


def test_a_missing_hydra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "hydra", None)
    with pytest.raises(ImportError, match=r'pip install -e "\.\[hydra\]"'):
        load_jaxarc_config()
