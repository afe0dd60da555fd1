"""What every group of settings shares: rules of fields, freezing, checking, reading."""

import dataclasses
import enum
import functools
import logging
import os
import reprlib
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

import numpy as np

from jaxrig.settings import nearest

LARGEST_WHOLE = 2**31 - 1  # counters and sizes are int32 on the device
INFINITY = float("inf")


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Rule:
    """What a setting must be, in words and as a test.

    `read` gives the value that a file's value stands for; legal values larger than
    `unusual_above` deserve a warning.
    """

    wanted: str
    accepts: Callable[[Any], bool]
    read: Callable[[Any], Any] = _same
    unusual_above: float | None = None


def flag() -> Rule:
    """Return the rule of True or False, not 1 or 0."""
    return Rule("true or false", lambda value: isinstance(value, bool))


def whole(
    least: int = -LARGEST_WHOLE,
    most: int = LARGEST_WHOLE,
    unusual_above: float | None = None,
) -> Rule:
    """Return the rule of a whole number between two bounds, both included."""

    def accepts(value: Any) -> bool:
        number = isinstance(value, int) and not isinstance(value, bool)
        return number and least <= value <= most

    words = f"a whole number from {least} to {most}"
    return Rule(words, accepts, unusual_above=unusual_above)


def number(
    least: float = -INFINITY, most: float = INFINITY, above: float = -INFINITY
) -> Rule:
    """Return the rule of a finite number, with bounds `least` and `most` included."""

    def accepts(value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        inside = least <= value <= most and value > above
        return inside and -INFINITY < value < INFINITY

    words = "a finite number"
    words += f" from {least:g}" if least > -INFINITY else ""
    words += f" above {above:g}" if above > -INFINITY else ""
    words += f" to {most:g}" if most < INFINITY else ""
    return Rule(words, accepts)


def text(empty: bool = True) -> Rule:
    """Return the rule of text, which may have to hold something."""

    def accepts(value: Any) -> bool:
        return isinstance(value, str) and (empty or bool(value.strip()))

    return Rule("text" if empty else "text that is not empty", accepts)


def one_of(*options: str | int) -> Rule:
    """Return the rule of one of a few values, of the type listed."""

    def accepts(value: Any) -> bool:
        return any(type(value) is type(x) and value == x for x in options)

    def read(value: Any) -> Any:
        # YAML takes a bare `off` for false.
        return "off" if value is False and "off" in options else value

    return Rule("one of " + ", ".join(map(repr, options)), accepts, read)


def items(item: Rule, empty: bool = False) -> Rule:
    """Return the rule of distinct values in a tuple that all follow one rule."""

    def accepts(value: Any) -> bool:
        if not isinstance(value, tuple) or not (value or empty):
            return False
        return all(map(item.accepts, value)) and len(set(value)) == len(value)

    words = "a list" if empty else "a list, not empty,"
    return Rule(f"{words} of distinct values, each {item.wanted}", accepts)


def maybe(rule: Rule) -> Rule:
    """Return the rule of None, or what another rule says."""

    def accepts(value: Any) -> bool:
        return value is None or rule.accepts(value)

    def read(value: Any) -> Any:
        return None if value is None else rule.read(value)

    return Rule(f"null or {rule.wanted}", accepts, read)


logger = logging.getLogger(__name__)
C = TypeVar("C", bound="Config")


class ConfigValidationError(ValueError):
    """A configuration that cannot be read or breaks its rules."""


@dataclass(frozen=True)
class Config:
    """One group of settings: frozen, hashable by value, checked by `validate`.

    A field's rule is the first note of its `Annotated` type; plain bool, int, float and
    str fields need none.
    """

    # A wrong type is a finding of `validate`, never an error of a type checker.
    __no_type_check__: ClassVar[bool] = True

    section: ClassVar[str] = ""
    renamed: ClassVar[Mapping[str, str]] = {}  # older name -> field, or "not field"

    def __post_init__(self) -> None:
        for name in rules_of(type(self)):
            value = frozen(getattr(self, name))
            try:
                hash(value)
            except TypeError as error:
                raise TypeError(
                    f"{self.full_name(name)} is {shown(value)}, which is not "
                    "hashable; give numbers, text or lists of these"
                ) from error
            object.__setattr__(self, name, value)

    def validate(self) -> tuple[str, ...]:
        """Return one sentence per broken rule; none when the configuration is valid.

        Legal values that are unusually large are logged as warnings.
        """
        errors = tuple(self._field_errors())
        return errors or tuple(self._relation_errors())

    def _field_errors(self) -> Iterator[str]:
        for name, rule in rules_of(type(self)).items():
            value, full_name = getattr(self, name), self.full_name(name)
            if not rule.accepts(value):
                yield f"{full_name} is {shown(value)}; it must be {rule.wanted}"
            elif isinstance(value, Config):
                yield from value.validate()
            elif rule.unusual_above is not None and value > rule.unusual_above:
                logger.warning(
                    "%s is %s, legal but unusually large (above %s)",
                    *(full_name, value, rule.unusual_above),
                )

    def _relation_errors(self) -> Iterator[str]:
        """Yield broken rules between fields, once each field is legal by itself."""
        yield from ()

    @classmethod
    def full_name(cls, name: str) -> str:
        """Return the name of a field with its group in front."""
        return f"{cls.section}.{name}" if cls.section else name

    @classmethod
    def from_hydra(cls: type[C], mapping: Any) -> C:
        """Read a mapping or an omegaconf DictConfig; unknown keys are an error.

        Values are not checked: call `validate` on the result.
        """
        rules, values = rules_of(cls), {}
        for given, value in as_mapping(mapping, cls.section).items():
            key = cls.renamed.get(given, given)
            if given in cls.renamed and key.startswith("not "):
                key = key.removeprefix("not ")
                value = not value if isinstance(value, bool) else value
            if key not in rules:
                raise ConfigValidationError(cls._unknown(key))
            if key in values:
                raise ConfigValidationError(
                    f"{cls.full_name(key)} is given twice, once as {given!r}; keep one"
                )
            values[key] = rules[key].read(as_plain(value, cls.full_name(key)))
        try:
            return cls(**values)
        except TypeError as error:
            raise ConfigValidationError(str(error)) from error

    @classmethod
    def _unknown(cls, key: Any) -> str:
        return (
            f"{cls.full_name(str(key))} is not a setting of "
            f"{cls.section or 'the configuration'}; "
            f"{nearest(str(key), list(rules_of(cls)))}"
        )


def part(kind: type[Config]) -> Rule:
    """Return the rule of a nested group; in a file, an empty one has the defaults."""
    name = kind.__name__
    return Rule(f"a {name}", lambda value: isinstance(value, kind), kind.from_hydra)


_PLAIN: dict[Any, Rule] = {bool: flag(), int: whole(), float: number(), str: text()}


@functools.cache
def rules_of(kind: type[Config]) -> dict[str, Rule]:
    """Return the rule of every field, in the order of the fields."""
    return {field.name: _rule(field.type) for field in dataclasses.fields(kind)}


def _rule(hint: Any) -> Rule:
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    if isinstance(hint, types.UnionType):  # only ever "something | None"
        return maybe(_rule(get_args(hint)[0]))
    return _PLAIN[hint] if hint in _PLAIN else part(hint)


def frozen(value: Any) -> Any:
    """Return the value as plain Python data, with lists and ranges as tuples."""
    if isinstance(value, list | tuple | range):
        return tuple(frozen(item) for item in value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value.item() if isinstance(value, np.generic) else value


def shown(value: Any) -> str:
    """Return the value as it appears in messages, cut where it is long."""
    try:
        return reprlib.repr(value)
    except ValueError:  # Python prints no integer of thousands of digits
        return "an integer too long to print"


def as_plain(value: Any, name: str) -> Any:
    """Return a value of omegaconf as plain Python data, others as they are."""
    if not _of_omegaconf(value):
        return value
    from omegaconf import OmegaConf

    with _resolving(name):
        return OmegaConf.to_container(value, resolve=True, throw_on_missing=True)


def as_mapping(value: Any, name: str) -> dict[Any, Any]:
    """Return a mapping, DictConfig or None as a dict; anything else is an error.

    Values inside stay as they are: a DictConfig may hold keys that are not ours and
    cannot be resolved.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigValidationError(
            f"{name or 'the configuration'} is {shown(value)}; it must be a "
            "mapping of settings"
        )
    if not _of_omegaconf(value):
        return dict(value)
    with _resolving(name):
        return dict(value.items())


def _of_omegaconf(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "omegaconf"


@contextmanager
def _resolving(name: str) -> Iterator[None]:
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except OmegaConfBaseException as error:
        raise ConfigValidationError(
            f"{name or 'the configuration'} cannot be resolved: {error}"
        ) from error
