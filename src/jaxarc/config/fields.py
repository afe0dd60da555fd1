"""What every group of settings shares: freezing, checking and reading.

Rules are readers of `jaxrig.settings`. The documents construct values that only
`validate` may refuse, so readers do not run at construction.
"""

import dataclasses
import enum
import functools
import logging
import os
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar, get_args, get_origin

from jaxrig.settings import Reader, flag, maybe, nearest, number, whole, wrong

INT32 = 2**31 - 1  # counters and sizes are int32 on the device
Count = Annotated[int, whole(1, INT32)]

# Root keys of Hydra and of scripts, which no group of settings holds.
FOREIGN_KEYS = frozenset({"hydra", "defaults", "paths", "seed", "output_dir"})

logger = logging.getLogger(__name__)
C = TypeVar("C", bound="Config")


class ConfigValidationError(ValueError):
    """A configuration that cannot be read or breaks its rules."""


def any_text(value: Any, name: str) -> str:
    """Read text, which may be empty."""
    if not isinstance(value, str):
        raise wrong(name, value, "some text")
    return value


def items(read: Reader, at_least: int = 1) -> Reader:
    """Return the reader of a tuple of distinct values, each by another reader."""

    def read_all(value: Any, name: str) -> tuple[Any, ...]:
        listed = isinstance(value, tuple) and len(value) >= at_least
        if not listed or len(set(value)) < len(value):
            raise wrong(name, value, f"a list of at least {at_least}, each once")
        return tuple(read(item, f"{name}[{i}]") for i, item in enumerate(value))

    return read_all


@dataclass(frozen=True)
class Config:
    """One group of settings: frozen, hashable by value, checked by `validate`.

    A field's reader is the first note of its `Annotated` type; plain bool, int, float
    and str fields and nested groups need none.
    """

    # A wrong type is a finding of `validate`, never an error of a type checker.
    __no_type_check__: ClassVar[bool] = True

    section: ClassVar[str] = ""
    renamed: ClassVar[Mapping[str, str]] = {}  # older name -> field, or "not field"
    unusual: ClassVar[Mapping[str, int]] = {}  # larger values are legal, but logged

    def __post_init__(self) -> None:
        for name, read in readers_of(type(self)).items():
            value = frozen(getattr(self, name))
            if isinstance(read, Part):
                read(value, self.full_name(name))  # or nothing could read its settings
            try:
                hash(value)
            except TypeError as error:
                raise TypeError(
                    f"{self.full_name(name)} is {value!r}, which is not hashable; "
                    "give numbers, text or lists of these"
                ) from error
            object.__setattr__(self, name, value)

    def validate(self) -> tuple[str, ...]:
        """Return one sentence per broken rule; none when the configuration is valid.

        Legal values that are unusually large are logged as warnings.
        """
        errors: list[str] = []
        for name, read in readers_of(type(self)).items():
            value, full_name = getattr(self, name), self.full_name(name)
            try:
                read(value, full_name)
            except ValueError as error:
                errors.append(str(error))
                continue
            except OverflowError:
                errors.append(f"{full_name} is too large: give a number below 1e308")
                continue
            if isinstance(value, Config):
                errors += value.validate()
            elif name in self.unusual and value > self.unusual[name]:
                logger.warning(
                    "%s is %s, legal but unusually large (above %s)",
                    *(full_name, value, self.unusual[name]),
                )
        return tuple(errors or self._relation_errors())

    def checked(self: C) -> C:
        """Return the configuration itself; ConfigValidationError if it is not valid."""
        errors = self.validate()
        if errors:
            raise ConfigValidationError("; ".join(errors))
        return self

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
        readers, values = readers_of(cls), {}
        for given, value in as_mapping(mapping, cls.section).items():
            key = cls.renamed.get(given, given)
            if given in cls.renamed and key.startswith("not "):
                key = key.removeprefix("not ")
                value = not value if isinstance(value, bool) else value
            if key not in readers:
                where = cls.section or "the configuration"
                raise ConfigValidationError(
                    f"{cls.full_name(str(key))} is not a setting of {where}; "
                    f"{nearest(str(key), list(readers))}"
                )
            if key in values:
                raise ConfigValidationError(
                    f"{cls.full_name(key)} is given twice, once as {given!r}; keep one"
                )
            values[key] = _from_file(readers[key], value)
        try:
            return cls(**values)
        except TypeError as error:
            raise ConfigValidationError(str(error)) from error


@dataclass(frozen=True)
class Part:
    """The reader of a nested group."""

    kind: type[Config]
    optional: bool = False

    def __call__(self, value: Any, name: str) -> Any:
        """Refuse everything that is not the group."""
        if isinstance(value, self.kind) or (self.optional and value is None):
            return value
        raise TypeError(
            f"{name} is {value!r}: give an instance of {self.kind.__name__}; "
            "JaxArcConfig.from_hydra reads mappings"
        )


_PLAIN: dict[Any, Reader] = {
    bool: flag,
    int: whole(-INT32, INT32),
    float: number(),
    str: any_text,
}


@functools.cache
def readers_of(kind: type[Config]) -> dict[str, Reader]:
    """Return the reader of every field, in the order of the fields."""
    return {field.name: _reader(field.type) for field in dataclasses.fields(kind)}


def _reader(hint: Any) -> Reader:
    if get_origin(hint) is Annotated:
        return get_args(hint)[1]
    if isinstance(hint, types.UnionType):  # only ever "something | None"
        inner = get_args(hint)[0]
        return maybe(_PLAIN[inner]) if inner in _PLAIN else Part(inner, optional=True)
    return _PLAIN[hint] if hint in _PLAIN else Part(hint)


def _from_file(read: Reader, value: Any) -> Any:
    """Return the value that a file's value stands for."""
    if isinstance(read, Part):
        if value is None and read.optional:
            return None
        return read.kind.from_hydra(value)
    if value is False and read is not flag:
        return "off"  # which YAML takes for false where it is not in quotes
    return value


def frozen(value: Any) -> Any:
    """Return the value as plain Python data, with lists and arrays as tuples."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return tuple(frozen(item) for item in value)
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return value


def as_mapping(value: Any, name: str) -> dict[Any, Any]:
    """Return a mapping, DictConfig or None as a dict; anything else is an error."""
    what = name or "the configuration"
    if type(value).__module__.partition(".")[0] == "omegaconf":
        value = _resolved(value, what)
    if not isinstance(value, Mapping | None):
        raise ConfigValidationError(
            f"{what} is {value!r}; it must be a mapping of settings"
        )
    return dict(value or {})


def _resolved(config: Any, what: str) -> Any:
    """Return what a DictConfig stands for, as plain Python data.

    Key by key, without those that are not ours: they may not be resolvable here.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    plain = partial(OmegaConf.to_container, resolve=True, throw_on_missing=True)
    if not OmegaConf.is_dict(config):
        return plain(config)
    try:
        values = {key: config[key] for key in config if key not in FOREIGN_KEYS}
        return {k: plain(v) if OmegaConf.is_config(v) else v for k, v in values.items()}
    except OmegaConfBaseException as error:
        raise ConfigValidationError(f"{what} cannot be resolved: {error}") from error
