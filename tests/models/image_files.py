"""Image files written by hand from their specifications, so that what is in them is known without a decoder."""

import io
import struct
import zlib

from PIL import Image


def png(size, depth, kind, rows, **chunks: bytes) -> bytes:
    """A PNG (W3C Recommendation, sections 5 and 11): rows as packed bytes, without filter; chunks go before IDAT."""
    header = struct.pack(">IIBBBBB", *size, depth, kind, 0, 0, 0)
    body = zlib.compress(b"".join(b"\0" + row for row in rows))
    parts = [("IHDR", header), *chunks.items(), ("IDAT", body), ("IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name.encode(), data) for name, data in parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def tiff(size, bits, photometric, data, *, order="<", kind=1, **tags: list[int]) -> bytes:
    """A TIFF 6.0 of one strip without compression, written from section 2; further tags as ``t338=[1]``."""
    width, height = size
    entries = {256: [width], 257: [height], 258: bits, 259: [1], 262: [photometric], 273: [8], 277: [len(bits)]}
    entries |= {278: [height], 279: [len(data)], 339: [kind] * len(bits)}
    entries |= {int(name[1:]): values for name, values in tags.items()}
    data += b"\0" * (len(data) % 2)
    directory, extra = b"", b""
    beyond = 8 + len(data) + 2 + 12 * len(entries) + 4
    for tag, values in sorted(entries.items()):
        packed = struct.pack(f"{order}{len(values)}H", *values)
        if len(packed) > 4:
            place, extra = struct.pack(f"{order}I", beyond + len(extra)), extra + packed
        else:
            place = packed.ljust(4, b"\0")
        directory += struct.pack(f"{order}HHI", tag, 3, len(values)) + place
    start = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(f"{order}I", 8 + len(data))
    return start + data + struct.pack(f"{order}H", len(entries)) + directory + b"\0\0\0\0" + extra


def bmp32(size, data, masks=()) -> bytes:
    """A BMP of 32 bits a pixel, one row; with the masks of red, green, blue and alpha in a version 4 header."""
    head = 108 if masks else 40
    info = struct.pack("<IiiHHIIiiII", head, *size, 1, 32, 3 if masks else 0, len(data), 0, 0, 0, 0)
    if masks:
        info += struct.pack("<4I", *masks) + b"BGRs" + b"\0" * 48
    return b"BM" + struct.pack("<IHHI", 14 + head + len(data), 0, 0, 14 + head) + info + data


def saved(image: Image.Image, format: str, **options: object) -> bytes:
    """A file that PIL writes."""
    buffer = io.BytesIO()
    image.save(buffer, format, **options)
    return buffer.getvalue()


def exif(orientation: int) -> bytes:
    """EXIF data with an orientation and nothing else."""
    return b"Exif\0\0II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)
