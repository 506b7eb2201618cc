"""What every reader gives: the columns of a file, named and typed, with nothing large read yet."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import torch

from ....core.builtin_types import to_builtin
from ....core.coded_warnings import CodedWarning
from ....core.errors import InputError
from ....core.listed import listed
from ....core.printable import short, shown
from ..images.samples import split_called
from ..size_limits import BLOCK_BYTES, check_memory

Array = np.ndarray[Any, Any]
Batches = Callable[[list[str]], Iterator[pa.RecordBatch]]
CLASS_NAMES = ("classes", "class_names", "label_names")
OBJECTS = "object"
TORCH_ONLY = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


@dataclass(frozen=True)
class Column:
    """One column of a file.

    Attributes:
        name: The key or column name in the file.
        shape: ``(N,)`` or ``(N, D)``; anything else is no feature and no label.
        dtype: ``float16``, ``int64``, ``str``, ...; numpy's names where it has them.
        blocks: The rows in order, some at a time: numpy arrays, float32 where numpy lacks the dtype.
        class_names: The names of the classes, where the file itself says that the column holds indices into them.
        place: From row and column to where a value stands in a file of text, and what is written there.
        parts: The columns of the file that make up a matrix, where each feature has one.
        fault: Why it cannot be read, with its name; whoever needs it is told, to others it is a column not read.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    blocks: Callable[[], Iterable[Array]]
    class_names: list[str] | None = None
    place: Callable[[int, int], str] | None = None
    parts: Sequence[str] = ()
    fault: str = ""

    @classmethod
    def unreadable(cls, name: str, shape: tuple[int, ...], fault: str, dtype: str = OBJECTS) -> Self:
        """A column of which nothing can be read."""
        return cls(name, shape, dtype, lambda: (), fault=fault)

    def needed(self, table: str) -> Self:
        """The column itself, for a part that it alone can have.

        Raises:
            InputError: It cannot be read.
        """
        if self.fault:
            raise InputError(f"{table}: {self.fault}")
        return self

    def part(self, column: int) -> str:
        """What to call one column of a matrix."""
        return short(self.parts[column]) if self.parts else f"column {column}"

    @property
    def one_a_row(self) -> bool:
        """Whether every row has a single value."""
        return len(self.shape) == 1 or (len(self.shape) == 2 and self.shape[1] == 1)

    def where(self, row: int, table: str) -> str:
        """What stands in a row of a small column, with its line where the file is text.

        Args:
            row: From 0.
            table: What to call the file, for those that are no text.
        """
        if self.place is not None:
            return f"{self.place(row, 0)} found"
        value = to_builtin(self.read()[row])
        missing = "missing (null)" if value is None else "missing (null or NaN)" if value != value else shown(value)
        return f"{table}: {short(self.name)} is {missing} in row {row}"

    def read(self) -> Array:
        """All of a small column, ``(N,)``.

        Raises:
            InputError: It is no small one.
        """
        blocks, size = list[Array](), 0
        for block in self.blocks():
            text = sum(len(one) for one in block.flat if isinstance(one, str)) if block.dtype == object else 0
            size += block.nbytes + text
            check_memory(self.name, 2 * size)  # the blocks, and what they are put together into
            blocks.append(block)
        return np.concatenate(blocks).reshape(-1) if blocks else np.empty(0)

    def __str__(self) -> str:
        return f"{short(self.name)} {self.dtype} ({', '.join(map(str, self.shape))})"


@dataclass(frozen=True)
class Table:
    """Columns that belong together, row by row.

    Attributes:
        name: For messages: the file, and the split inside it.
        ids: What goes before ``/row`` in the ids of rows that have none.
        split: ``train``, ``val`` or ``test`` where the file says so.
        columns: All columns of the file that may be of use.
        class_names: What the file says that whole-number labels count.
        said: Whether a person said the split: nothing in the file counts against that.
        left_out: Names of the file's other columns.
        warning: Of how it is read.
    """

    name: str
    ids: str
    split: str | None
    columns: list[Column]
    class_names: list[str] | None = None
    said: bool = False
    left_out: tuple[str, ...] = ()
    warning: CodedWarning | None = None


def block_rows(width: int, itemsize: int) -> int:
    """How many rows of a matrix to read at a time."""
    return max(1, BLOCK_BYTES // max(1, width * itemsize))


def slices(matrix: Any) -> Iterator[Array]:
    """Blocks of anything that is cut by rows: a (mapped) array or tensor, or a slice of a safetensors file."""
    shape = tuple(matrix.get_shape()) if hasattr(matrix, "get_shape") else tuple(matrix.shape)
    itemsize = matrix.dtype.itemsize if hasattr(matrix, "dtype") else 8
    step = block_rows(math.prod(shape[1:]), itemsize)
    for start in range(0, shape[0], step):
        yield to_numpy(matrix[start : start + step])


def to_numpy(block: Any) -> Array:
    """A tensor or array as a numpy array in the machine's byte order; float32 for what numpy does not know."""
    if not isinstance(block, torch.Tensor):
        return np.asarray(block, np.asarray(block).dtype.newbyteorder("="))
    block = block.detach().cpu().resolve_conj().resolve_neg()
    unknown = str(block.dtype).removeprefix("torch.") in TORCH_ONLY
    array: Array = (block.float() if unknown else block).numpy()
    return array


def check_filled(name: str, tensor: torch.Tensor) -> None:
    """Raise an `InputError` for a tensor that is sparse, without values (``meta``), or of several lengths (nested)."""
    if not tensor.is_nested and tensor.layout != torch.strided:
        raise InputError(f"{name}: a sparse tensor found, expected a dense one; write it again as its .to_dense()")
    if tensor.is_nested or tensor.is_meta:
        found = "a nested tensor" if tensor.is_nested else "a tensor without values (device meta)"
        raise InputError(f"{name}: {found} found, expected a plain tensor with values; write it again as one")


def array_of(name: str, values: Any) -> Array:
    """Lists, arrays and what else numpy takes for one.

    Raises:
        InputError: None, a masked or structured array, rows of several lengths, or text among numbers, which numpy
            would take for text.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InputError(
            f"{name}: a masked array found, whose masked values would count; leave those rows out and pass .data"
        )
    if isinstance(values, list | tuple):
        kinds = [isinstance(value, str) for value in values]
        if any(kinds) and not all(kinds):
            row = kinds.index(not kinds[0])
            raise InputError(
                f"{name}: {shown(values[0])} in row 0 and {shown(values[row])} in row {row}, expected numbers or text, "
                "not both"
            )
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise InputError(f"{name}: no array can be made of it ({error}); give rows of one length") from None
    except RuntimeError as error:  # a list of tensors that torch alone can read
        raise InputError(f"{name}: no array can be made of it ({error}); use torch.stack") from None
    if array.dtype.names:
        fields = array.dtype.names
        raise InputError(
            f"{name}: a structured array with the fields {listed(fields)} found, expected a plain one; take one field "
            f"(array[{fields[0]!r}]), or make all of them columns with "
            "numpy.lib.recfunctions.structured_to_unstructured(array)"
        )
    if values is None or array.dtype.kind == "V":
        raise InputError(f"{name}: {shown(values)} found, expected an array or a list")
    return array


def dtype_name(dtype: "np.dtype[Any]") -> str:
    """What a `Column` calls a dtype of numpy, whatever its byte order."""
    return "str" if dtype.kind in "OU" else str(dtype.newbyteorder("="))


def by_split(columns: Iterable[Column], name: str, ids: str) -> list[Table]:
    """Tables of a file whose column names may say a split: ``train_embeddings``, ``y_test``, ``val/labels``.

    Else the file's name may.

    Args:
        columns: All columns.
        name: The file's path.
        ids: Its name.
    """
    groups: dict[str | None, list[Column]] = {}
    columns, names = _without_names(list(columns), name)
    for column in columns:
        groups.setdefault(split_in(column.name), []).append(column)
    others = groups.get(None, [])
    if set(groups) <= {None}:
        return [Table(name, ids, split_in(Path(ids).stem), others, names)]
    left_out = tuple(column.name for column in others)
    return [
        Table(f"{name}: {split}", f"{ids}/{split}", split, found, names, left_out=left_out)
        for split, found in groups.items()
        if split is not None
    ]


def _without_names(columns: list[Column], where: str) -> tuple[list[Column], list[str] | None]:
    """The columns without the one that lists the classes, and what it lists.

    It is text called ``classes`` or so, and shorter than another column: as long as all, it is the labels.
    """
    longest = max((column.shape[0] for column in columns if column.shape), default=0)
    for column in columns:
        shorter = column.dtype == "str" and len(column.shape) == 1 and column.shape[0] < longest
        if shorter and column.name.rpartition("/")[2].lower() in CLASS_NAMES:
            names = [str(name) for name in column.read()]
            check_different(names, f"{where}: {column.name}")
            return [other for other in columns if other is not column], names
    return columns, None


def check_different(names: Sequence[str], where: str) -> None:
    """Raise an `InputError` unless these are two or more class names, none empty or twice."""
    repeated = listed(sorted(repr(name) for name, count in Counter(names).items() if count > 1))
    if len(names) < 2 or repeated or "" in names:
        found = f"twice: {repeated}" if repeated else "some empty" if "" in names else "expected 2 or more"
        raise InputError(f"{where}: {len(names)} class names, {found}; give one for every class, all different")


def split_in(name: str) -> str | None:
    """The split that a name contains as a word, or ``None`` where it contains none, or several."""
    found = {split for word in words(name) if (split := split_called(word))}
    return found.pop() if len(found) == 1 else None


def words(name: str) -> list[str]:
    """The parts of a name between anything that is no letter or digit."""
    return "".join(letter if letter.isalnum() else " " for letter in name).split()


def without_split(name: str) -> str:
    """A column's name without the word that says its split: ``train_embeddings`` is ``embeddings``."""
    return "_".join(word for word in words(name) if split_called(word) is None)
