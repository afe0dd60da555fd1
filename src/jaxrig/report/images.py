"""PNG images: encode an array, check bytes, and carry an image inside the page."""

import base64
import struct
import zlib
from collections.abc import Iterator

import numpy as np

SIGNATURE = b"\x89PNG\r\n\x1a\n"
COLOR_TYPE = {1: 0, 3: 2, 4: 6}  # channels -> PNG color type: gray, RGB, RGBA


def png_from_array(pixels: np.ndarray) -> bytes:
    """Encode uint8 pixels as PNG: (height, width), or with 3 or 4 channels last.

    The fourth channel is opacity: what is not opaque shows the page behind it.
    """
    if pixels.dtype != np.uint8:
        raise TypeError(
            f"pixels has dtype {pixels.dtype}: it must be uint8; "
            "scale to 0..255 and use .astype(np.uint8)"
        )
    channels = 1 if pixels.ndim == 2 else pixels.shape[-1]
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and channels not in (3, 4)):
        raise ValueError(
            f"pixels has shape {pixels.shape}: it must be (height, width) "
            "or (height, width, 3 or 4)"
        )
    if pixels.size == 0:
        raise ValueError(f"pixels has shape {pixels.shape}: it must not be empty")
    height, width = pixels.shape[:2]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    unfiltered = np.pad(rows, ((0, 0), (1, 0)))  # each row starts with filter type 0
    header = struct.pack(">IIBBBBB", width, height, 8, COLOR_TYPE[channels], 0, 0, 0)
    return SIGNATURE + b"".join(
        (
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", zlib.compress(unfiltered.tobytes(), 9)),
            _chunk(b"IEND", b""),
        )
    )


def png_size(png: bytes, field: str = "png") -> tuple[int, int]:
    """Width and height of a PNG; raises ValueError where the bytes are not one."""
    if not png.startswith(SIGNATURE):
        raise ValueError(
            f"{field} starts with {png[:8]!r}: bytes must be a PNG image; "
            "png_from_array encodes an array"
        )
    chunks = list(_chunks(png, field))
    kinds = [kind for kind, _ in chunks]
    complete = kinds[:1] == [b"IHDR"] and kinds[-1:] == [b"IEND"] and b"IDAT" in kinds
    if not complete or len(chunks[0][1]) != 13:
        raise ValueError(
            f"{field} has PNG chunks {kinds}: it must run from IHDR over IDAT to IEND"
        )
    width, height = struct.unpack(">II", chunks[0][1][:8])
    if width == 0 or height == 0:
        raise ValueError(f"{field} is {width} x {height} pixels: both must be positive")
    return width, height


def data_uri(content: bytes, media_type: str) -> str:
    """The content as an address that needs no file and no network."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode('ascii')}"


def _chunk(kind: bytes, content: bytes) -> bytes:
    checksum = zlib.crc32(kind + content)
    return (
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)
    )


def _chunks(png: bytes, field: str) -> Iterator[tuple[bytes, bytes]]:
    start = len(SIGNATURE)
    while start < len(png):
        length = int.from_bytes(png[start : start + 4], "big")
        kind, content = png[start + 4 : start + 8], png[start + 8 : start + 8 + length]
        end = start + 12 + length
        if end > len(png) or _chunk(kind, content) != png[start:end]:
            raise ValueError(
                f"{field} is damaged in PNG chunk {kind!r} at byte {start}: "
                "its length and checksum must hold"
            )
        yield kind, content
        start = end
