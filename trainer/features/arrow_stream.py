"""Arrow files of strangers: every record batch is checked in full before anything else touches it.

Arrow trusts offsets and lengths that a file states, so that wrong ones reach memory of others or end the process. The
bytes of a compressed buffer are counted before it is unpacked.
"""

import struct
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from ...core.errors import InputError
from ...core.files import regular_file
from .size_limits import check_memory, check_unpacked

# Of the format with a table of contents, which stands at its end and is not needed: before it lies a stream.
_MAGIC, _END = b"ARROW1\0\0", b"ARROW1"
_DICTIONARY, _BATCH = 2, 3
BAD_ARROW = (pa.ArrowException, OSError, ValueError, KeyError, OverflowError, struct.error, IndexError)


def damaged(path: Path, error: BaseException) -> InputError:
    """What is said of an Arrow or parquet file that cannot be read."""
    if isinstance(error, InputError):
        return error
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return InputError(f"{path}: truncated, damaged or not {path.suffix or 'Arrow'} ({reason}); get it again")


class ArrowStream:
    """The record batches of an ``.arrow`` or ``.feather`` file.

    Attributes:
        schema: Its columns.
        rows: N.

    Raises:
        InputError: The file is damaged, or unpacks to far more than it takes on disk.
    """

    def __init__(self, path: Path) -> None:
        self.path = regular_file(path)
        try:
            self._check_sizes()
            with self._source() as source, pa.ipc.open_stream(source) as reader:
                self.schema: pa.Schema = reader.schema
            self.rows = sum(batch.num_rows for batch in self.batches())
        except BAD_ARROW as error:
            raise damaged(path, error) from None

    def batches(self, names: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows in order, of some columns; mapped where they are not compressed.

        Raises:
            InputError: The file is damaged.
        """
        fields = None if names is None else [self.schema.get_field_index(name) for name in names]
        options = pa.ipc.IpcReadOptions(included_fields=fields)
        try:
            with self._source() as source, pa.ipc.open_stream(source, options=options) as reader:
                for batch in reader:
                    batch.validate(full=True)
                    yield batch if names is None else batch.select(names)
        except BAD_ARROW as error:
            raise damaged(self.path, error) from None

    def _source(self) -> pa.MemoryMappedFile:
        source = pa.memory_map(str(self.path))
        start = len(_MAGIC) if source.read(len(_MAGIC)) == _MAGIC else 0
        source.seek(max(0, source.size() - len(_END)))
        if start and source.read(len(_END)) != _END:
            raise ValueError("its end is missing")
        source.seek(start)
        return source

    def _check_sizes(self) -> None:
        total = 0
        with self._source() as source:
            messages = pa.ipc.MessageReader.open_stream(source)
            while True:
                try:
                    message = messages.read_next_message()
                except StopIteration:
                    break
                size = unpacked_size(message)
                check_memory(str(self.path), size)
                total += size
        check_unpacked(str(self.path), total, self.path.stat().st_size)


def unpacked_size(message: pa.Message) -> int:
    """Bytes that the compressed buffers of a record batch unpack to; 0 where none is compressed."""
    table = _Table.root(message.metadata.to_pybytes())
    kind, batch = table.number(1, "B"), table.table(2)
    if kind == _DICTIONARY and batch is not None:
        batch = batch.table(1)
    if kind not in (_DICTIONARY, _BATCH) or batch is None or batch.table(3) is None:
        return 0
    body, total = message.body, 0
    for offset, length in batch.pairs(2):
        if length >= 8:
            total += max(0, struct.unpack("<q", body.slice(offset, 8).to_pybytes())[0])
    return total


class _Table:
    """A table of a flatbuffer, the form of Arrow's messages (flatbuffers.dev/internals)."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data, self.place = data, place
        self.fields = place - self._at(place, "i")

    @classmethod
    def root(cls, data: bytes) -> "_Table":
        return cls(data, struct.unpack_from("<I", data)[0])

    def _at(self, place: int, form: str) -> int:
        return int(struct.unpack_from(f"<{form}", self.data, place)[0])

    def _field(self, number: int) -> int | None:
        """Where a field lies; nowhere where it was left out."""
        entry = 4 + 2 * number
        offset = self._at(self.fields + entry, "H") if entry < self._at(self.fields, "H") else 0
        return self.place + offset if offset else None

    def number(self, number: int, form: str) -> int:
        place = self._field(number)
        return 0 if place is None else self._at(place, form)

    def table(self, number: int) -> "_Table | None":
        place = self._field(number)
        return None if place is None else _Table(self.data, place + self._at(place, "I"))

    def pairs(self, number: int) -> Iterator[tuple[int, int]]:
        """The entries of a vector of structures with two 64-bit numbers."""
        place = self._field(number)
        if place is not None:
            start = place + self._at(place, "I")
            for entry in range(self._at(start, "I")):
                yield self._at(start + 4 + 16 * entry, "q"), self._at(start + 12 + 16 * entry, "q")
