"""YAML text to plain mappings and back, strict about what a settings file may hold."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from jaxarc.config.base import ConfigValidationError, as_mapping
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
