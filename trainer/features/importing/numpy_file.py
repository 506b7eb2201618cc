"""numpy's files: ``.npz``, and ``.npy`` with labels beside them. Never a pickle."""

import math
import shutil
import tempfile
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from ....core.errors import InputError
from ....core.listed import listed
from ..size_limits import check_text, check_unpacked
from .arrow_file import arrow_columns
from .labels_files import labels_of
from .table import Array, Column, Table, block_rows, by_split, dtype_name, slices, split_in, to_numpy

DType = np.dtype[Any]
ALL = slice(None)
_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0, (3, 0): npy.read_array_header_2_0}
# What numpy's reader of headers raises: they are read as Python literals.
_BAD_HEADER = (ValueError, TypeError, EOFError, OSError, MemoryError, RecursionError, tokenize.TokenError)
_BAD_ARCHIVE = (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError, NotImplementedError, RuntimeError)

_PICKLED = (
    "holds pickled Python objects, which could run code; where you trust it, write it again as numbers or text: "
    "numpy.save(path, numpy.asarray(values.tolist()))"
)


class _Header(NamedTuple):
    shape: tuple[int, ...]
    fortran: bool
    dtype: DType

    @property
    def size(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_npz(path: Path) -> list[Table]:
    """Open an ``.npz`` archive. Its arrays are read a block at a time, compressed or not.

    Raises:
        InputError: It is damaged, or unpacks to far more than it takes on disk.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if entry.filename.endswith(".npy")]
            columns = [_member(path, archive, entry) for entry in entries]
    except _BAD_ARCHIVE as error:
        raise _damaged(path, "damaged or no .npz archive", error) from None
    return by_split(columns, str(path), path.name)


def _damaged(where: Path | str, what: str, error: BaseException) -> InputError:
    if isinstance(error, InputError):
        return error
    return InputError(f"{where}: {what} ({(str(error).splitlines() or [type(error).__name__])[0]}); get it again")


def _member(path: Path, archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Column:
    where, key = f"{path}: {entry.filename}", entry.filename.removesuffix(".npy")
    with archive.open(entry) as file:
        header = _header(file, where)
        if header.dtype.hasobject:
            return Column.unreadable(key, header.shape, f"{entry.filename}: {_PICKLED}")
        _check_size(where, header.size, entry.file_size - file.tell())
    check_unpacked(where, header.size, path.stat().st_size)
    read = _transposed if header.fortran and len(header.shape) > 1 else _stream
    return _column(key, header, partial(read, path, entry.filename, header))


def _check_size(where: str, said: int, found: int) -> None:
    if said != found:
        raise InputError(
            f"{where}: truncated or damaged: {found:,} bytes of values, its header says {said:,}; get it again"
        )


def _stream(path: Path, name: str, header: _Header) -> Iterator[Array]:
    """The rows of an array, which lie one after the other."""
    row = header.dtype.itemsize * math.prod(header.shape[1:])
    step = block_rows(1, row)
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            _header(file, f"{path}: {name}")
            for start in range(0, header.shape[0], step):
                rows = min(step, header.shape[0] - start)
                yield to_numpy(np.frombuffer(file.read(rows * row), header.dtype).reshape(rows, *header.shape[1:]))
            file.read(1)  # at its end the archive compares its checksum
    except _BAD_ARCHIVE as error:
        raise _damaged(path, f"{name} is damaged", error) from None


def _transposed(path: Path, name: str, header: _Header) -> Iterator[Array]:
    """The rows of an array whose columns lie together: unpacked into a file that is gone afterwards."""
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as file, tempfile.TemporaryFile() as unpacked:
            _header(file, f"{path}: {name}")
            shutil.copyfileobj(file, unpacked, 1 << 20)
            unpacked.flush()
            array = np.memmap(unpacked, header.dtype, "r", 0, header.shape, "F") if header.size else None
            yield from slices(np.empty(header.shape, header.dtype) if array is None else array)
    except _BAD_ARCHIVE as error:
        raise _damaged(path, f"{name} is damaged", error) from None


def _header(file: IO[bytes], where: str) -> _Header:
    """What an array's header says.

    Raises:
        InputError: It is damaged, or the values are nothing.
    """
    try:
        version = npy.read_magic(file)
        if version not in _HEADERS:
            raise ValueError(f"version {version[0]}.{version[1]} is not known")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            header = _Header(*_HEADERS[version](file))
    except _BAD_HEADER as error:
        raise _damaged(where, "truncated or no .npy file", error) from None
    shape, _, dtype = header
    if any(type(length) is not int or length < 0 for length in shape) or not dtype.itemsize:
        raise InputError(f"{where}: shape {shape} of {dtype} found, expected lengths of 0 or more; get it again")
    if dtype.kind == "U":
        check_text(where, dtype.itemsize // 4)
    return header


def _column(name: str, header: _Header, blocks: Callable[[], Iterable[Array]]) -> Column:
    return Column(name, header.shape, dtype_name(header.dtype), blocks)


def read_npy(path: Path, labels: Path | None = None, rows: slice = ALL) -> list[Table]:
    """Map an ``.npy`` of features, with the labels of a file of their own.

    Args:
        path: The features.
        labels: An ``.npy`` of labels or a table with them; by default the file beside the features.
        rows: Which labels of an ``.npy`` are of these features.

    Returns:
        One table; none where the file holds labels, which belong beside another.

    Raises:
        InputError: It is truncated or damaged, holds objects, or has no labels beside it, or several.
    """
    features = open_npy(path, "features")
    if labels is None and len(features.shape) == 1:
        return []
    labels = labels or labels_of(path)
    others = [open_npy(labels, "labels", rows)] if labels.suffix == ".npy" else arrow_columns(labels)
    values = [column for column in others if column.one_a_row]
    left_out = tuple(column.name for column in others if not column.one_a_row)
    return [Table(str(path), path.name, split_in(path.stem), [features, *values], left_out=left_out)]


def open_npy(path: Path, name: str, rows: slice = ALL) -> Column:
    """One array of a file, mapped, or some of its rows.

    Raises:
        InputError: It is truncated or damaged, or holds objects.
    """
    with path.open("rb") as file:
        header = _header(file, str(path))
        offset = file.tell()
    if header.dtype.hasobject:
        raise InputError(f"{path}: {_PICKLED}")
    if header.dtype.kind == "V":
        fields = listed([*(header.dtype.names or ())], 4)
        found = f"a structured array with the fields {fields}" if fields else f"an array of raw bytes ({header.dtype})"
        raise InputError(f"{path}: {found} found, expected one of plain numbers; write it again as such")
    _check_size(str(path), header.size, path.stat().st_size - offset)
    order: Any = "F" if header.fortran else "C"
    if header.size and header.shape:
        array: Array = np.memmap(path, header.dtype, "r", offset, header.shape, order)[rows]
    else:
        array = np.empty(header.shape, header.dtype)
    return _column(name, header._replace(shape=array.shape), partial(slices, array))


def is_labels(path: Path) -> bool:
    """Whether an ``.npy`` file holds one value a row, so that it belongs beside another."""
    return len(open_npy(path, "labels").shape) == 1


def share_labels(arrays: Sequence[Path], labels: Path) -> dict[Path, slice]:
    """The rows in one file of labels that are of each of several arrays, which follow each other.

    Raises:
        InputError: It has more labels than they have rows together, or fewer.
    """
    lengths = [open_npy(path, "features").shape[0] for path in arrays]
    ends = np.cumsum(lengths).tolist()
    if (found := open_npy(labels, "labels").shape[0]) != ends[-1]:
        rows = ", ".join(f"{path.name} {length:,}" for path, length in zip(arrays, lengths, strict=True))
        raise InputError(
            f"{labels}: {found:,} labels, but the arrays named with it have {ends[-1]:,} rows together ({rows}); "
            f"expected a label for every row of them in this order, or a file for each: {arrays[0].stem}_labels.npy"
        )
    return {path: slice(end - length, end) for path, length, end in zip(arrays, lengths, ends, strict=True)}
