import ast
import dataclasses
import logging
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import jaxarc
from jaxarc.config import (
    ActionConfig,
    ArcEpisodeConfig,
    ConfigValidationError,
    DebugConfig,
    EnvironmentConfig,
    GridInitializationConfig,
    HistoryConfig,
    JaxArcConfig,
    MemoryConfig,
    RewardConfig,
    StorageConfig,
    VisualizationConfig,
)
from jaxarc.config.fields import Config, Part, any_text, frozen, items, readers_of
from jaxarc.ops.operations import ARCLEOperationType
from jaxrig.settings import Reader, whole

KINDS = {
    field.name: type(getattr(JaxArcConfig(), field.name))
    for field in dataclasses.fields(JaxArcConfig)
} | {"grid_initialization": GridInitializationConfig}
SCALARS = [  # examples that tell whether a reader takes the kind, and the kind
    ([True], st.booleans()),
    ([None], st.none()),
    ([-1, 1, 2], st.integers(-1, 2) | st.integers(-1, 60)),
    ([-0.5, 0.5], st.floats(-10, 10) | st.floats(0, 1)),
    (["a"], st.text(max_size=20)),
]
LISTS = {
    "allowed_operations": st.integers(0, 41),
    "permutation_types": st.sampled_from(["rotate", "reflect", "color_remap"]),
    "output_formats": st.sampled_from(["svg", "png", "html", "console"]),
    "tags": st.text(min_size=1),
}


def legal(read: Reader, value: Any) -> bool:
    try:
        read(value, "")
    except ValueError:
        return False
    return True


def values_of(name: str, read: Reader) -> st.SearchStrategy[Any]:
    """Values that a reader takes; where it lists them, those."""
    if isinstance(read, Part):
        return mappings(read.kind)
    if name in LISTS:
        found = st.lists(LISTS[name], max_size=3).map(tuple)
    else:
        with pytest.raises(ValueError) as caught:  # noqa: PT011
            read((), "")
        _, listed, options = str(caught.value).partition("one of ")
        found = st.sampled_from(options.split(", "))
        if not listed:
            taken = lambda examples: any(legal(read, value) for value in examples)
            found = st.one_of([kind for examples, kind in SCALARS if taken(examples)])
    return found.filter(lambda value: legal(read, value))


def mappings(kind: type[Config]) -> st.SearchStrategy[dict[str, Any]]:
    """All or some of the fields, each with any value that is legal by itself."""
    readers = readers_of(kind).items()
    values = {name: values_of(name, read) for name, read in readers}
    return st.fixed_dictionaries(values) | st.fixed_dictionaries({}, optional=values)


@pytest.mark.parametrize("group", KINDS)
def test_yaml_loses_nothing(group):
    pytest.importorskip("yaml")
    changed = set()

    @settings(max_examples=20)
    @given(mappings(KINDS[group]))
    def comes_back(mapping):
        config = JaxArcConfig.from_hydra({group: mapping})
        assume(not config.validate())
        again = JaxArcConfig.from_yaml_string(config.to_yaml())
        assert again == config
        assert hash(again) == hash(config)
        part = getattr(config, group)
        fields = dataclasses.fields(part)
        changed.update(x.name for x in fields if getattr(part, x.name) != x.default)

    comes_back()
    assert {x.name for x in dataclasses.fields(KINDS[group])} <= changed


@pytest.mark.parametrize(
    ("read", "legal", "illegal"),
    [
        (any_text, ["", "a"], [None, 3, b"a"]),
        (items(whole(0)), [(0,), (2, 1)], [(), (1, 1), (-1,), [0], "0", None]),
        (items(any_text, 0), [(), ("a",)], [("a", "a"), (1,), "ab"]),
    ],
)
def test_a_rule_accepts_what_it_says(read, legal, illegal):
    for value in legal:
        assert read(value, "x") == value
    for value in illegal:
        with pytest.raises(ValueError, match=r"^x(\[\d\])? is .*: give"):
            read(value, "x")


def test_frozen_gives_plain_data():
    given = [ARCLEOperationType.SUBMIT, np.float32(1), np.bool_(True), [np.int64(4)]]
    found = frozen(given)
    assert found == (34, 1.0, True, (4,))
    assert [type(value) for value in found] == [int, float, bool, tuple]
    assert frozen(np.array([3, 4])) == (3, 4)
    assert frozen(Path("a") / "b") == str(Path("a") / "b")


def test_validate_names_every_wrong_value_and_never_raises():
    wrong: Any = {"step_penalty": 10**400, "similarity_weight": "dear"}
    errors = RewardConfig(**wrong).validate()
    assert [error.split(" is ")[0] for error in errors] == [
        *("reward.step_penalty", "reward.similarity_weight")
    ]


def test_equal_configurations_compile_once():
    traces = []

    def first(config, x):
        traces.append(config)
        return x * config.environment.max_episode_steps

    double = jax.jit(first, static_argnums=0)
    for steps in (2, 2, 3):
        config = JaxArcConfig(
            environment=EnvironmentConfig(max_episode_steps=steps),
            action=ActionConfig(allowed_operations=[1, 2]),  # type: ignore[arg-type]
        )
        assert double(config, jnp.int32(5)) == 5 * steps
    assert len(traces) == 2


def test_errors_of_every_group_are_listed():
    config = JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=0),
        reward=RewardConfig(step_penalty=5),
    )
    assert [error.split(" is ")[0] for error in config.validate()] == [
        *("environment.max_episode_steps", "reward.step_penalty")
    ]


@pytest.mark.parametrize("wrong", [{"max_episode_steps": 3}, "long", ActionConfig()])
def test_a_group_is_nothing_else(wrong):
    with pytest.raises(TypeError, match=r"environment is .*instance of EnvironmentC"):
        JaxArcConfig(environment=wrong)
    level: Any = "standard"
    with pytest.raises(TypeError, match="debug is 'standard': give an instance of D"):
        VisualizationConfig(debug=level)


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (
            JaxArcConfig(storage=StorageConfig(policy="none")),
            "visualization.output_formats has svg, but storage.policy is 'none'",
        ),
        (
            JaxArcConfig(
                episode=ArcEpisodeConfig(training_reward_frequency="submit"),
                reward=RewardConfig(reward_on_submit_only=False),
            ),
            "reward.reward_on_submit_only is False, but",
        ),
    ],
)
def test_conflicts_between_groups_are_logged(caplog, config, sentence):
    with caplog.at_level(logging.WARNING):
        assert config.validate() == ()
    (message,) = caplog.messages
    assert message.startswith(sentence)


def test_no_conflict_no_warning(caplog):
    with caplog.at_level(logging.WARNING):
        JaxArcConfig().validate()
        JaxArcConfig(
            storage=StorageConfig(policy="none"),
            visualization=VisualizationConfig(output_formats=("console",)),
            episode=ArcEpisodeConfig(training_reward_frequency="submit"),
        ).validate()
    assert caplog.messages == []


@pytest.mark.parametrize("wrap", [dict, MappingProxyType])
def test_groups_and_root_settings_are_read(wrap):
    config = JaxArcConfig.from_hydra(
        {
            "environment": {"max_episode_steps": 7},
            "allow_invalid_actions": True,
            "selection_format": "point",
            "max_operations": 35,
            "episode_mode": "test",
            "grid_initialization": wrap({"demo_weight": 1}),
            "reward": None,
            "visualization": {"level": False},  # a bare off, to YAML
            "seed": 3,
            "output_dir": "x",
            "paths": {},
            "hydra": {},
            "defaults": [],
        }
    )
    assert config == JaxArcConfig(
        environment=EnvironmentConfig(max_episode_steps=7),
        action=ActionConfig("point", max_operations=35, allow_invalid_actions=True),
        episode=ArcEpisodeConfig(episode_mode=1),
        visualization=VisualizationConfig(level="off"),
        grid_initialization=GridInitializationConfig(demo_weight=1),
    )


@pytest.mark.parametrize(
    ("mapping", "sentence"),
    [
        (
            {"enviroment": {}},
            "enviroment is not a setting of the configuration; .*'env",
        ),
        ({"max_steps": 3}, "max_steps is not a setting of the configuration"),
        ({"log_frequency": 3}, "could belong to logging or wandb; write it inside"),
        ({"reward": {"bonus": 3}}, "reward.bonus is not a setting of reward; did you"),
        (
            {"max_colors": 3, "dataset": {"max_colors": 4}},
            "dataset.max_colors is given twice, as 4 and elsewhere as 3; keep one",
        ),
        ({"environment": 3}, "environment is 3; it must be a mapping"),
        ({"history": {"max_history_length": 0}}, "max_history_length is 0"),
    ],
)
def test_what_cannot_be_read_is_named(mapping, sentence):
    with pytest.raises(ConfigValidationError, match=sentence):
        JaxArcConfig.from_hydra(mapping)


def test_the_same_value_twice_is_no_conflict():
    mapping = {"max_colors": 4, "dataset": {"max_colors": 4}}
    assert JaxArcConfig.from_hydra(mapping).dataset.max_colors == 4


def test_keys_that_are_not_ours_need_not_resolve():
    omegaconf = pytest.importorskip("omegaconf")
    node = omegaconf.OmegaConf.create(
        {
            "hydra": {"job": {"name": "???"}},
            "steps": 9,
            "environment": {"max_episode_steps": "${paths.steps}"},
            "paths": {"steps": 9},
        }
    )
    del node["steps"]
    assert JaxArcConfig.from_hydra(node).environment.max_episode_steps == 9


@pytest.mark.parametrize("value", ["???", "${nowhere}", ["${nowhere}"]])
def test_omegaconf_that_does_not_resolve_is_named(value):
    omegaconf = pytest.importorskip("omegaconf")
    node = omegaconf.OmegaConf.create({"wandb": {"tags": value}})
    with pytest.raises(ConfigValidationError, match="cannot be resolved"):
        JaxArcConfig.from_hydra(node)


def test_files_are_written_and_read(tmp_path):
    pytest.importorskip("yaml")
    path = tmp_path / "config.yaml"
    config = JaxArcConfig(history=HistoryConfig(max_history_length=3))
    config.to_yaml_file(path)
    assert JaxArcConfig.from_yaml(path) == JaxArcConfig.from_yaml(str(path)) == config
    assert [file.name for file in tmp_path.iterdir()] == ["config.yaml"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b"environment: {max_episode_steps: ten}",
            "max_episode_steps is 'ten': give",
        ),
        (
            b"environment: {max_episode_steps: true}",
            "max_episode_steps is True: give",
        ),
        (b"storage: {run_name: 2024-01-01}", "storage.run_name is datetime.date"),
        (b"reward: {step_penalty: .nan}", "reward.step_penalty is nan: give"),
        (b"history: {max_history_length: -3}", "max_history_length is -3; it must be"),
        (b"wandb: {tags: {a: 1}}", "wandb.tags is .* not hashable"),
        (b"defaults: [{dataset: mini_arc}]", "only Hydra composes; use load_jaxarc_"),
        (b"- 1", "the configuration is .* it must be a mapping"),
        (b"\xff\xfe\x00", "can't decode"),
    ],
)
def test_bad_files_are_named(tmp_path, content, sentence):
    pytest.importorskip("yaml")
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigValidationError, match=sentence) as caught:
        JaxArcConfig.from_yaml(path)
    assert str(caught.value).startswith(str(path))


# Read through properties of the configuration.
READ_ELSEWHERE = {
    *("demo_weight", "permutation_weight", "empty_weight", "random_weight"),
    "reward_on_submit_only",
}


def test_every_setting_is_read_by_something():
    """No dead options: code outside the configuration asks for each field."""
    package = Path(jaxarc.__file__).parent
    asked = set()
    for path in package.rglob("*.py"):
        if path.parent != package / "config":
            nodes = list(ast.walk(ast.parse(path.read_text())))
            asked |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
            asked |= {node.value for node in nodes if isinstance(node, ast.Constant)}
    kinds = (*KINDS.values(), DebugConfig, MemoryConfig)
    fields = {field.name for kind in kinds for field in dataclasses.fields(kind)}
    assert fields - asked == READ_ELSEWHERE
