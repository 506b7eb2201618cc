"""numpy's files: ``.npz``, and ``.npy`` with labels beside them. Never a pickle."""

import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from ....core.errors import InputError
from .arrow_file import arrow_columns
from .labels_files import labels_of
from .table import Array, Column, Table, block_rows, by_split, dtype_name, slices, split_in, to_numpy

DType = np.dtype[Any]
ALL = slice(None)


def read_npz(path: Path) -> list[Table]:
    """Open an ``.npz`` archive. Its arrays are read a block at a time, compressed or not.

    Raises:
        InputError: It is damaged, or holds an array of objects.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".npy")]
        columns = [_member(path, name) for name in names]
    except (zipfile.BadZipFile, zlib.error, OSError, ValueError, EOFError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: damaged or no .npz archive ({error}); get it again") from None
    return by_split(columns, str(path), path.name)


def _member(path: Path, name: str) -> Column:
    with zipfile.ZipFile(path) as archive, archive.open(name) as file:
        shape, fortran, dtype = _header(file, f"{path}: {name}")
    key = name.removesuffix(".npy")
    if fortran and len(shape) > 1:  # columns lie together, so rows cannot be read one by one
        return _column(key, shape, dtype, lambda: slices(np.load(path, allow_pickle=False)[key]))
    return _column(key, shape, dtype, partial(_stream, path, name, shape, dtype))


def _stream(path: Path, name: str, shape: tuple[int, ...], dtype: DType) -> Iterator[Array]:
    row = dtype.itemsize * int(np.prod(shape[1:]))
    step = block_rows(1, max(1, row))
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as file:
            _header(file, f"{path}: {name}")
            for start in range(0, shape[0], step):
                rows = min(step, shape[0] - start)
                yield to_numpy(np.frombuffer(file.read(rows * row), dtype).reshape(rows, *shape[1:]))
    except (zipfile.BadZipFile, zlib.error, ValueError, EOFError) as error:
        raise InputError(f"{path}: {name} is damaged ({error}); get it again") from None


def _header(file: IO[bytes], where: str) -> tuple[tuple[int, ...], bool, DType]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise InputError(
            f"{where}: holds pickled Python objects, which could run code; where you trust it, write it again as "
            "numbers or text: numpy.save(path, numpy.asarray(values.tolist()))"
        )
    return shape, fortran, dtype


def _column(name: str, shape: tuple[int, ...], dtype: DType, blocks: Callable[[], Iterable[Array]]) -> Column:
    return Column(name, shape, dtype_name(dtype), blocks)


def read_npy(path: Path, labels: Path | None = None, rows: slice = ALL) -> list[Table]:
    """Map an ``.npy`` of features, with the labels of a file of their own.

    Args:
        path: The features.
        labels: An ``.npy`` of labels or a table with them; by default the file beside the features.
        rows: Which labels of an ``.npy`` are of these features.

    Raises:
        InputError: It is truncated or damaged, holds objects, or has no labels beside it, or several.
    """
    features = open_npy(path, "features")
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
        try:
            _, _, dtype = _header(file, str(path))
            array = np.load(path, mmap_mode="r", allow_pickle=False)[rows]
        except (ValueError, EOFError, OSError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{path}: {path.stat().st_size:,} bytes, truncated or no .npy file ({error}); get it again"
            ) from None
    return _column(name, array.shape, dtype, partial(slices, array))


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
