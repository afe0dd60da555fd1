"""Nested Python data as JSON plus named arrays, and back; no other type passes."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxrig.dtypes import DTYPES, is_key

MAX_DEPTH = 100  # levels; far below what exhausts the stack of the JSON reader

Scalar = None | bool | int | float | complex | str
SCALARS = (type(None), bool, int, float, complex, str)
_SEQUENCES = {kind.__name__: kind for kind in (list, tuple, set, frozenset)}


def is_array(value: object) -> bool:
    """Whether a value is a plain NumPy array, NumPy scalar or JAX array."""
    # Other ndarray subclasses (masked arrays, matrices) carry more than their bytes.
    plain = type(value) in (np.ndarray, np.memmap)
    return plain or isinstance(value, jax.Array | np.generic)


def pack_scalar(value: Scalar) -> Any:
    """A Python scalar as a JSON value from which `unpack_scalar` makes it again."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        return ["int", hex(value)]  # Python bounds the length of decimal text
    if isinstance(value, complex):
        return ["complex", value.real, value.imag]
    if isinstance(value, str) and any(
        "\ud800" <= letter <= "\udfff" for letter in value
    ):
        # JSON would join two surrogates into one character.
        return ["str", value.encode("utf-8", "surrogatepass").hex()]
    return value


def unpack_scalar(node: Any) -> Scalar:
    """The Python scalar that `pack_scalar` was given; ValueError for anything else."""
    match node:
        case None | bool() | int() | float() | str():
            return node
        case ["int", str(text)]:
            return int(text, 16)
        case ["complex", float(real), float(imag)]:
            return complex(real, imag)
        case ["str", str(text)]:
            return bytes.fromhex(text).decode("utf-8", "surrogatepass")
    raise ValueError(f"{str(node)[:60]} stands for no value")


def encode(data: Any) -> tuple[Any, dict[str, Any]]:
    """A JSON value and the arrays it refers to by name.

    Takes dict, list, tuple, set, frozenset, str, int, float, bool, None, complex,
    bytes, NumPy and JAX arrays and NumPy scalars, of exactly these types; anything
    else is a TypeError that says where in the data it lies.
    """
    arrays: dict[str, Any] = {}
    return _encode(data, "data", 0, arrays), arrays


def _encode(value: Any, path: str, depth: int, arrays: dict[str, Any]) -> Any:
    if depth > MAX_DEPTH:
        raise ValueError(
            f"{path[:60]}... nests more than {MAX_DEPTH} levels deep or holds itself"
        )
    kind = type(value)
    if kind in SCALARS:
        return pack_scalar(value)
    if kind is dict:
        return ["dict", _encode_pairs(value, path, depth, arrays)]
    if kind in _SEQUENCES.values():
        items = sorted(value, key=_rank) if kind in (set, frozenset) else value
        nodes = [
            _encode(item, f"{path}[{i}]", depth + 1, arrays)
            for i, item in enumerate(items)
        ]
        return [kind.__name__, nodes]
    if kind is bytes:
        return ["bytes", _refer(np.frombuffer(value, np.uint8), arrays)]
    if is_array(value):
        if not is_key(value.dtype) and np.dtype(value.dtype).name not in DTYPES:
            raise TypeError(f"{path} has dtype {value.dtype}, which cannot be stored")
        tag = "scalar" if isinstance(value, np.generic) else "array"
        return [tag, _refer(value, arrays)]
    raise TypeError(
        f"{path} is a {kind.__module__}.{kind.__qualname__}, which cannot be stored: "
        f"turn it into dicts, lists, scalars and arrays first"
    )


def _encode_pairs(
    value: dict[Any, Any], path: str, depth: int, arrays: dict[str, Any]
) -> list[Any]:
    pairs = []
    for key, item in value.items():
        if type(key) not in SCALARS:
            raise TypeError(
                f"{path} has the key {_show(key)} of type {type(key).__qualname__}: "
                f"keys are str, int, float, bool, None or complex"
            )
        node = _encode(item, f"{path}[{_show(key)}]", depth + 1, arrays)
        pairs.append([pack_scalar(key), node])
    return pairs


def _rank(value: Any) -> str:
    # Sets of strings change order from run to run; files should not.
    if isinstance(value, frozenset | tuple):
        ranks = [_rank(item) for item in value]
        value = sorted(ranks) if isinstance(value, frozenset) else ranks
    return f"{type(value).__qualname__} {_show(value)}"


def _show(value: Any) -> str:
    # Python refuses to write very long integers in decimal.
    return hex(value) if type(value) is int and abs(value) >= 2**63 else repr(value)


def _refer(array: Any, arrays: dict[str, Any]) -> str:
    name = str(len(arrays))
    arrays[name] = array
    return name


def decode(node: Any, arrays: Mapping[str, Any], depth: int = 0) -> Any:
    """The data that `encode` was given; ValueError for what it cannot have written."""
    if depth > MAX_DEPTH:
        raise ValueError(f"nests more than {MAX_DEPTH} levels deep")
    match node:
        case ["dict", list(pairs)]:
            return dict(_decode_pair(pair, arrays, depth) for pair in pairs)
        case ["list" | "tuple" | "set" | "frozenset" as tag, list(nodes)]:
            items = [decode(item, arrays, depth + 1) for item in nodes]
            try:
                return _SEQUENCES[tag](items)
            except TypeError as error:  # an unhashable member of a set
                raise ValueError(f"{tag}: {error}") from error
        case ["array" | "scalar" | "bytes" as tag, str(name)] if name in arrays:
            return _decode_array(tag, arrays[name])
    return unpack_scalar(node)


def _decode_pair(pair: Any, arrays: Mapping[str, Any], depth: int) -> tuple[Any, Any]:
    match pair:
        case [key, value]:
            return unpack_scalar(key), decode(value, arrays, depth + 1)
    raise ValueError(f"{str(pair)[:60]} is not a key and a value")


def _decode_array(tag: str, array: Any) -> Any:
    if tag == "array":
        return array
    if not isinstance(array, np.ndarray) or (tag == "scalar" and array.ndim):
        raise ValueError(f"an array of shape {array.shape} is not {tag}")
    return array[()] if tag == "scalar" else array.tobytes()
