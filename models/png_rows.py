"""Whether the data of a PNG holds all its rows: PIL takes a complete zlib stream that ends too soon."""

import struct
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from ..core.errors import InputError

_BLOCK, _STEP = 1 << 16, 1 << 20
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def check_rows(file: BinaryIO) -> None:
    """Inflate the image data step by step and count its bytes (W3C Recommendation PNG, sections 7.2, 8 and 11.2.1).

    Args:
        file: At the signature of a PNG whose checksums hold.

    Raises:
        InputError: Fewer bytes than the header says.
    """
    header = file.read(33)
    width, height, depth, kind, interlaced = struct.unpack(">IIBB2xB", header[16:29])
    bits = depth * _CHANNELS[kind]
    passes = _ADAM7 if interlaced else ((0, 0, 1, 1),)
    expected = sum(_size(-(-(width - x) // across), -(-(height - y) // down), bits) for x, y, across, down in passes)
    found, stream = 0, zlib.decompressobj()
    for block in _data(file):
        while block and found < expected:
            found += len(stream.decompress(block, _STEP))
            block = stream.unconsumed_tail
        if found >= expected or stream.eof:
            break
    found += len(stream.flush()) if found < expected else 0
    if found < expected:
        raise InputError(f"cut before its end (a PNG of {found:,} bytes, expected {expected:,} of rows)")


def _size(width: int, height: int, bits: int) -> int:
    """Bytes of the rows of a pass, each with its filter."""
    return max(0, height) * (1 + (width * bits + 7) // 8) if width > 0 else 0


def _data(file: BinaryIO) -> Iterator[bytes]:
    """The content of the IDAT chunks, in blocks."""
    while len(head := file.read(8)) == 8:
        length, kind = struct.unpack(">I4s", head)
        if kind == b"IDAT":
            while length:
                block = file.read(min(length, _BLOCK))
                if not block:
                    return
                length -= len(block)
                yield block
        elif kind == b"IEND":
            return
        file.seek(length + 4, 1)
