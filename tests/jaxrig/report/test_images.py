"""PNG bytes decode to the very pixels that went in, and damage is noticed."""

import base64
import struct
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxrig.report import png_from_array
from jaxrig.report.images import data_uri, png_size

SHAPES = st.one_of(
    st.tuples(st.integers(1, 9), st.integers(1, 9)),
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.sampled_from([3, 4])),
)


def decode(png: bytes) -> np.ndarray:
    """A naive reader for 8-bit images without filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, rest = {}, png[8:]
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        kind, content = rest[4:8], rest[8 : 8 + length]
        (checksum,) = struct.unpack(">I", rest[8 + length : 12 + length])
        assert checksum == zlib.crc32(rest[4 : 8 + length])
        chunks[kind] = content
        rest = rest[12 + length :]
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    width, height, depth, color, *methods = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert (depth, methods) == (8, [0, 0, 0])
    channels = {0: 1, 2: 3, 6: 4}[color]
    raw = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8)
    rows = raw.reshape(height, 1 + width * channels)
    assert not rows[:, 0].any()
    shape = (height, width) if channels == 1 else (height, width, channels)
    return rows[:, 1:].reshape(shape)


@given(hnp.arrays(np.uint8, SHAPES))
def test_pixels_survive(pixels):
    png = png_from_array(pixels)
    np.testing.assert_array_equal(decode(png), pixels)
    assert png_size(png) == (pixels.shape[1], pixels.shape[0])


def test_views_are_encoded_as_they_look():
    pixels = np.arange(60, dtype=np.uint8).reshape(4, 5, 3)
    turned = pixels.transpose(1, 0, 2)[::-1, ::2]
    np.testing.assert_array_equal(decode(png_from_array(turned)), turned)


@pytest.mark.parametrize("shape", [(3,), (2, 2, 2), (2, 2, 1), (1, 2, 2, 3), (0, 4)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match="pixels has shape"):
        png_from_array(np.zeros(shape, np.uint8))


def test_other_dtypes_are_refused():
    with pytest.raises(TypeError, match=r"float64.*uint8"):
        png_from_array(np.zeros((2, 2)))


def test_damage_is_noticed():
    png = png_from_array(np.arange(16, dtype=np.uint8).reshape(4, 4))
    for index in range(len(png)):
        damaged = bytearray(png)
        damaged[index] ^= 0x40
        with pytest.raises(ValueError, match="frame 7"):
            png_size(bytes(damaged), "frame 7")
        with pytest.raises(ValueError, match="frame 7"):
            png_size(png[:index], "frame 7")


@given(st.binary())
def test_data_uri_carries_the_bytes(content):
    head, _, body = data_uri(content, "image/png").partition(",")
    assert head == "data:image/png;base64"
    assert base64.b64decode(body, validate=True) == content
