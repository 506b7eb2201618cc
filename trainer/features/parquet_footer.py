"""The footer of a parquet file, read here: what pyarrow tells of row groups can end the process where it is damaged.

pyarrow declares ``FileMetaData::RowGroup`` and ``RowGroupMetaData::ColumnChunk`` of Arrow's C++ as functions that
raise nothing. They do, and nobody can catch that. Its reader, which is C++ alone, gives an error instead.

The format: Apache Thrift's compact protocol, and ``parquet.thrift`` of Apache Parquet.
"""

import struct
from pathlib import Path
from typing import Any, NamedTuple

_MAGIC, _TAIL = b"PAR1", struct.Struct("<L4s")
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_BITS, _SIZES = {_I16: 16, _I32: 32, _I64: 64}, {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}
_DEEPEST, _LONGEST = 32, 70  # structures in one another; bits of a number
# Fields that are read, with their types; a field of another type is passed over, as by pyarrow.
_ROW_GROUPS, _COLUMNS, _ROWS, _ABOUT = (4, _LIST), (1, _LIST), (3, _I64), (3, _STRUCT)
_KIND, _ENCODINGS, _VALUES, _UNPACKED = (1, _I32), (2, _LIST), (5, _I64), (6, _I64)
_TEXT, _DICTIONARIES = 6, {2, 8}
_ENTRY_BYTES = {0: 1, 1: 4, 4: 4}  # booleans, 32-bit integers and floats; others take 8


class Chunk(NamedTuple):
    """A column in a row group.

    Attributes:
        rows: Of the row group.
        bytes: What its values take, without the letters of texts.
        unpacked: What its pages take.
        in_dictionary: Whether it is text or bytes of which each stands once, however often it is repeated.
    """

    rows: int
    bytes: int
    unpacked: int
    in_dictionary: bool


def read_footer(path: Path) -> list[list[Chunk]]:
    """The columns of every row group.

    Raises:
        ValueError: The footer is damaged, or none.
        IndexError: It ends too early.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _TAIL.size))
        length, magic = _TAIL.unpack(file.read())
        if magic != _MAGIC or length > size - _TAIL.size:
            raise ValueError(f"a footer of {length:,} bytes, then {magic!r}")
        file.seek(size - _TAIL.size - length)
        footer = _Compact(file.read(length)).structure()
    return [
        [_chunk(group.get(_ROWS, 0), column.get(_ABOUT, {})) for column in _structures(group, _COLUMNS)]
        for group in _structures(footer, _ROW_GROUPS)
    ]


def _structures(of: dict[Any, Any], field: tuple[int, int]) -> list[dict[Any, Any]]:
    found: list[Any] = of.get(field, [])
    if not all(isinstance(one, dict) for one in found):
        raise ValueError(f"field {field[0]} holds other than structures")
    return found


def _chunk(rows: int, about: dict[Any, Any]) -> Chunk:
    values, kind = max(0, about.get(_VALUES, 0)), about.get(_KIND, -1)
    encodings = about.get(_ENCODINGS, [])
    if not all(isinstance(one, int) for one in encodings):
        raise ValueError(f"field {_ENCODINGS[0]} holds other than numbers")
    in_dictionary = kind == _TEXT and not _DICTIONARIES.isdisjoint(encodings)
    return Chunk(rows, values * _ENTRY_BYTES.get(kind, 8), about.get(_UNPACKED, 0), in_dictionary)


class _Compact:
    """Reads structures of the compact protocol: fields by number and type. Of texts and fractions nothing is kept.

    What readers understand in several ways is refused: Arrow's C++ cuts numbers to their bits, and puts structures that
    stand twice together.
    """

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def structure(self, depth: int = 0) -> dict[tuple[int, int], Any]:
        found: dict[tuple[int, int], Any] = {}
        field, seen = 0, set[int]()
        while head := self._byte():
            step, kind = head >> 4, head & 15
            field = field + step if step else self._integer(16)
            if field in seen:
                raise ValueError(f"field {field} is repeated")
            seen.add(field)
            found[field, kind] = None if kind in (_TRUE, _FALSE) else self._value(kind, depth + 1)
        return found

    def _value(self, kind: int, depth: int) -> Any:
        if kind in _BITS:
            return self._integer(_BITS[kind])
        if kind == _BINARY:
            return self._skip(self._varint())
        if depth > _DEEPEST:
            raise ValueError("structures nested too deeply")
        if kind == _STRUCT:
            return self.structure(depth)
        if kind in (_LIST, _SET):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15, depth + 1) for _ in range(count)]
        if kind == _MAP:
            count = self._varint()
            kinds = self._byte() if count else 0
            return [(self._value(kinds >> 4, depth + 1), self._value(kinds & 15, depth + 1)) for _ in range(count)]
        if kind not in _SIZES:
            raise ValueError(f"a field of type {kind}")
        return self._skip(_SIZES[kind])

    def _byte(self) -> int:
        value = self._data[self._place]
        self._place += 1
        return value

    def _skip(self, size: int) -> None:
        self._place += size
        if self._place > len(self._data):
            raise IndexError("it ends too early")

    def _varint(self) -> int:
        value = self._data[self._place]  # nearly all take one byte
        self._place += 1
        if value < 0x80:
            return value
        value, shift = value & 0x7F, 7
        while shift < _LONGEST:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise ValueError("a number of more than 64 bits")

    def _integer(self, bits: int) -> int:
        """A signed number, in zigzag."""
        value = self._varint()
        if value >> bits:
            raise ValueError(f"a number of more than {bits} bits")
        return (value >> 1) ^ -(value & 1)
