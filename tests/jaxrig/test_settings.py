"""Oracle: values inside, on the edge and outside."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from jaxrig import settings


@dataclass(frozen=True)
class Flow(settings.Checked):
    section: ClassVar[str] = "flow"

    cells: settings.Count
    porosity: settings.Fraction = 0.5
    kind: Annotated[str | None, settings.maybe(settings.one_of("steady", "pulsed"))] = (
        None
    )


def test_settings_are_read_converted_and_written_back():
    flow = Flow.from_mapping({"cells": np.int32(4), "porosity": 1})
    assert flow == Flow(4, 1.0)
    assert type(flow.porosity) is float
    assert flow.to_mapping() == {"cells": 4, "porosity": 1.0}


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"cell": 4}, TypeError, r"no key in \[flow\] 'cell'; did you mean 'cells'"),
        ({}, ValueError, r"\[flow\] needs cells"),
        ({"cells": 0}, ValueError, "flow.cells is 0: give a whole number from 1"),
        ({"cells": True}, ValueError, "flow.cells is True"),
        ({"cells": 1, "porosity": 2}, ValueError, "a number from 0 to 1"),
        ({"cells": 1, "kind": "odd"}, ValueError, "'odd': give one of steady, pulsed"),
    ],
)
def test_what_is_wrong_is_named_with_its_section(given, error, message):
    with pytest.raises(error, match=message):
        Flow.from_mapping(given)


@pytest.mark.parametrize(
    ("read", "given", "expected"),
    [
        (settings.text, "a", "a"),
        (settings.flag, False, False),
        (settings.whole(0), 0, 0),
        (settings.whole(), np.int64(3), 3),
        (settings.whole(), np.asarray(3), 3),
        (settings.whole(), jnp.asarray(3), 3),
        (settings.number(0), 2, 2.0),
        (settings.number(up_to=1), 1, 1.0),
        (settings.one_of("a", "b"), "b", "b"),
        (settings.some_of("a", "b"), ["b"], ("b",)),
        (settings.some_of("a", "b"), [], ()),
        (settings.maybe(settings.text), None, None),
    ],
)
def test_what_is_right_is_converted(read, given, expected):
    assert read(given, "key") == expected


@pytest.mark.parametrize(
    ("read", "given", "words"),
    [
        (settings.text, " ", "some text"),
        (settings.flag, 1, "true or false"),
        (settings.whole(), 0, "a whole number from 1"),
        (settings.whole(), True, "a whole number"),
        (settings.whole(), 1.0, "a whole number"),
        (settings.whole(), np.arange(2), "a whole number"),
        (settings.whole(), np.asarray(True), "a whole number"),
        (settings.number(0), 0.0, "a number above 0"),
        (settings.number(0, 1), 2.0, "above 0 up to 1"),
        (settings.number(), float("nan"), "a number"),
        (settings.one_of("a", "b"), "c", "one of a, b"),
        (settings.some_of("a", "b"), ["c"], "one of a, b"),
        (settings.some_of("a", "b"), ["a", "a"], "each once"),
        (settings.some_of("a", "b"), "a", "a list"),
    ],
)
def test_what_is_wrong_names_the_key_and_the_rule(read, given, words):
    with pytest.raises(ValueError, match=words) as error:
        read(given, "key")
    assert str(error.value).startswith("key")


def test_the_nearest_name_is_offered():
    assert settings.nearest("17", list(map(str, range(99)))) == "did you mean '17'?"
    assert settings.nearest("a", []) == "there is nothing to choose from"
    with pytest.raises(TypeError, match="no option 'dx'; did you mean 'dt'"):
        settings.known_only({"dx": 1}, ("dt", "count"), "option")
