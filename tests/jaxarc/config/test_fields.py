import enum
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from jaxarc.config import fields
from jaxrig.settings import maybe, one_of, whole


@pytest.mark.parametrize(
    ("read", "legal", "illegal"),
    [
        (fields.any_text, ["", "a"], [None, 3, b"a"]),
        (whole(1, fields.INT32), [1, fields.INT32], [0, fields.INT32 + 1, True, 2.0]),
        (fields.items(whole(0)), [(0,), (2, 1)], [(), (1, 1), (-1,), [0], "0", None]),
        (fields.items(fields.any_text, 0), [(), ("a",)], [("a", "a"), (1,), "ab"]),
        (maybe(whole(0)), [None, 0], [-1, "", False]),
    ],
)
def test_a_rule_accepts_what_it_says(read, legal, illegal):
    for value in legal:
        assert read(value, "x") == value
    for value in illegal:
        with pytest.raises(ValueError, match=r"^x(\[\d\])? is .*: give"):
            read(value, "x")


@dataclass(frozen=True)
class Wheel(fields.Config):
    section: ClassVar[str] = "car.wheel"

    unusual: ClassVar[Mapping[str, int]] = {"size": 30}

    size: fields.Count = 17


@dataclass(frozen=True)
class Car(fields.Config):
    section: ClassVar[str] = "car"

    color: Annotated[str, one_of("red", "blue", "off")] = "red"
    doors: Annotated[tuple[int, ...], fields.items(whole(0))] = (1, 2)
    open: bool = False
    price: float = 1.5
    owner: str | None = None
    wheel: Wheel = field(default_factory=Wheel)
    spare: Wheel | None = None

    def _relation_errors(self) -> Iterator[str]:
        if self.open and self.price > 9:
            yield "car.open is True; it must be False above a car.price of 9"


class Side(enum.IntEnum):
    LEFT = 3


def test_equal_values_are_equal_and_hash_alike():
    assert Car() == Car(doors=[1, 2], wheel=Wheel(17))  # type: ignore[arg-type]
    assert hash(Car()) == hash(Car(doors=range(1, 3)))  # type: ignore[arg-type]
    assert Car() != Car(price=2)


def test_frozen_gives_plain_data():
    assert fields.frozen([1, [Side.LEFT, np.int64(4)]]) == (1, (3, 4))
    assert fields.frozen(np.array([3, 4])) == (3, 4)
    assert [
        type(x) for x in fields.frozen([Side.LEFT, np.float32(1), np.bool_(True)])
    ] == [*(int, float, bool)]
    assert fields.frozen(Path("a") / "b") == str(Path("a") / "b")


@pytest.mark.parametrize("value", [{"a": 1}, {1}, [{}]])
def test_what_cannot_be_hashed_is_refused_at_construction(value):
    with pytest.raises(TypeError, match=r"car\.owner is .*not hashable; give"):
        Car(owner=value)


def test_construction_takes_any_hashable_and_validate_names_it():
    errors = Car(
        **{"price": "dear", "open": 1, "doors": (0, 0), "wheel": 3, "spare": Wheel(0)}
    ).validate()
    assert errors == (
        "car.doors is (0, 0): give a list of at least 1, each once",
        "car.open is 1: give true or false",
        "car.price is 'dear': give a number",
        "car.wheel is 3: give a Wheel",
        "car.wheel.size is 0: give a whole number from 1 to 2147483647",
    )


@pytest.mark.parametrize("config", [Wheel(10**5000), Car(price=10**400)])
def test_validate_never_raises(config):
    assert len(config.validate()) == 1


def test_relations_are_asked_of_legal_fields_only():
    assert Car(open=True, price=10).validate() == (
        "car.open is True; it must be False above a car.price of 9",
    )
    (error,) = Car(**{"open": True, "price": "x"}).validate()
    assert error.startswith("car.price")


def test_unusual_values_are_legal_and_logged(caplog):
    with caplog.at_level(logging.WARNING):
        assert Car(wheel=Wheel(31), spare=Wheel(30)).validate() == ()
    assert caplog.messages == [
        "car.wheel.size is 31, legal but unusually large (above 30)"
    ]


@pytest.mark.parametrize("wrap", [dict, MappingProxyType])
def test_mappings_are_read(wrap):
    car = Car.from_hydra(wrap({"doors": [3], "wheel": wrap({"size": 4}), "spare": {}}))
    assert car == Car(doors=(3,), wheel=Wheel(4), spare=Wheel())
    assert Car.from_hydra({"wheel": None, "spare": None}) == Car()
    assert Car.from_hydra(None) == Car.from_hydra({}) == Car()


@pytest.mark.parametrize(
    ("mapping", "sentence"),
    [
        ({"colur": 1}, "car.colur is not a setting of car; did you mean 'color'"),
        ({7: 1}, "car.7 is not a setting of car; .*There are: color, doors"),
        ({"wheel": {"sise": 1}}, "car.wheel.sise is not a setting of car.wheel"),
        ({"wheel": [1]}, r"car.wheel is \[1\]; it must be a mapping of settings"),
        ({"owner": {"a": 1}}, "car.owner is .* not hashable"),
        ([], r"car is \[\]; it must be a mapping"),
        ("text", "car is 'text'; it must be a mapping"),
    ],
)
def test_what_cannot_be_read_is_named(mapping: Any, sentence: str):
    with pytest.raises(fields.ConfigValidationError, match=sentence):
        Car.from_hydra(mapping)


def test_reading_does_not_check_values():
    assert Car.from_hydra({"price": "dear"}).price == "dear"


def test_a_bare_off_in_a_file_is_the_word():
    assert Car.from_hydra({"color": False, "open": False}) == Car("off", open=False)


def test_omegaconf_is_resolved():
    omegaconf = pytest.importorskip("omegaconf")
    node = omegaconf.OmegaConf.create(
        {"paint": "blue", "car": {"color": "${paint}", "doors": [4], "wheel": {}}}
    )
    assert Car.from_hydra(node.car) == Car("blue", doors=(4,))
    assert Car.from_hydra({"doors": node.car.doors}).doors == (4,)


@pytest.mark.parametrize("value", ["???", "${nowhere}", ["${nowhere}"]])
def test_omegaconf_that_does_not_resolve_is_named(value):
    omegaconf = pytest.importorskip("omegaconf")
    node = omegaconf.OmegaConf.create({"doors": value})
    with pytest.raises(
        fields.ConfigValidationError, match=r"^car.* cannot be resolved"
    ):
        Car.from_hydra(node)
