"""From what a user names (files, folders, data sets, ``train=FILE``) to tables."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from ....core.errors import InputError, near
from ....core.files import regular_file
from ..images.samples import split_called
from .arrow_file import read_arrow
from .csv_table import read_csv_table
from .datasets_folder import read_dataset
from .labels_files import labels_beside, pairs
from .numpy_file import ALL, is_labels, read_npy, read_npz, share_labels
from .safetensors_file import read_safetensors
from .table import Table, split_in
from .torch_file import SAFE_WAY, read_torch

READERS: dict[str, Callable[[Path], list[Table]]] = {
    ".p": read_torch,
    ".pt": read_torch,
    ".pth": read_torch,
    ".npz": read_npz,
    ".npy": read_npy,
    ".safetensors": read_safetensors,
    ".parquet": read_arrow,
    ".pq": read_arrow,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".csv": read_csv_table,
    ".tsv": read_csv_table,
}
TEXT_TABLES = (".csv", ".tsv")
_PICKLES = (".pkl", ".pickle", ".joblib")


def open_tables(files: Sequence[str | Path]) -> list[Table]:
    """Open everything that was named, in that order; a folder's files in the order of the numbers in their names.

    Raises:
        InputError: Something is not there or of no known kind.
    """
    if not files:
        raise InputError("files: none given, expected at least one file with features")
    named = [_named(name) for name in files]
    labels = _labels([Path(name).expanduser() for name, _ in named])
    apart = len({_folder(Path(name)) for name, _ in named}) > 1
    return _with_own_ids(table for name, split in named for table in _open(name, split, labels, apart=apart))


def open_file(path: Path) -> list[Table]:
    """Open a file that is there, with the labels that lie beside it.

    Raises:
        InputError: It is of no known kind.
    """
    return _with_own_ids(_read(path))


def _named(name: str | Path) -> tuple[str, str | None]:
    """What was named, and the split before it."""
    said, _, file = str(name).partition("=")
    if not file or Path(name).exists():
        return str(name), None
    split = split_called(said)
    if split is None and Path(file).expanduser().exists():
        raise InputError(f"{name}: split {said!r} is not known; expected train={file}, or val= or test=")
    return (str(name), None) if split is None else (file, split)


def _labels(files: Sequence[Path]) -> dict[Path, tuple[Path, slice] | None]:
    """From each named array of features to the labels that were named with it, and from those to nothing."""
    arrays = [file for file in files if file.suffix.lower() == ".npy" and file.is_file()]
    features = [file for file in arrays if not is_labels(file)]
    for file in files:
        if file.is_symlink() and not file.exists():  # it leads nowhere, or to itself
            regular_file(file)
    beside = {place.resolve() for file in features for place in labels_beside(file)}
    labels = [file for file in files if file not in features and (file in arrays or file.resolve() in beside)]
    found = {path: (own, ALL) for path, own in pairs(features, labels).items()}
    if not found and len(features) > 1 and len(labels) == 1 and labels[0] in arrays:
        _check_order(features)
        found = {path: (labels[0], rows) for path, rows in share_labels(features, labels[0]).items()}
    return {**found, **dict.fromkeys(labels)}


def _check_order(files: Sequence[Path]) -> None:
    """Refuse numbered files in another order than that of their numbers: a shell puts 10 before 9."""
    for one, other in pairwise(files):
        numbered = re.sub(r"\d+", "", one.as_posix()) == re.sub(r"\d+", "", other.as_posix())
        if numbered and natural(one) > natural(other):
            raise InputError(
                f"{one}: named before {other.name}, with one file of labels for all; expected the order of their rows: "
                "name them by rising numbers"
            )


def _open(
    name: str, split: str | None, labels: Mapping[Path, tuple[Path, slice] | None], *, apart: bool
) -> list[Table]:
    """What one name stands for; ``apart`` where several folders, or files of several, were named."""
    path = Path(name).expanduser()
    if path in labels:
        beside = labels[path]
        tables = [] if beside is None else read_npy(path, *beside)
    elif path.exists() and not path.is_dir():
        tables = _read(regular_file(path))
    elif path.is_dir() and not (path / "dataset_dict.json").is_file() and not (path / "state.json").is_file():
        tables = [table for file in _inside(path) for table in _read(file, path)]
    elif path.exists() or (re.fullmatch(r"[\w.-]+/[\w.-]+", name) and path.suffix not in READERS):
        tables = read_dataset(str(path) if path.exists() else name)
    else:
        raise InputError(
            f"{name}: no such file or folder, and no OWNER/NAME of a data set on the hub; correct the path"
        )
    if split is not None:
        inside = {table.split for table in tables if table.split is not None}
        if len(inside) > 1:
            raise InputError(f"{split}={name}: holds {len(inside)} splits of its own; name it without {split}=")
        return [replace(table, split=split, said=True) for table in tables]
    own = _said_by_folder(path, apart=apart)
    return [replace(table, split=table.split or own) for table in tables]


def _folder(path: Path) -> Path:
    return path if path.is_dir() else path.parent


def _said_by_folder(path: Path, *, apart: bool) -> str | None:
    """The split that a folder's own name says, or a word in it where there are others to tell it from."""
    if apart and path.exists():
        return split_in(_folder(path).name)
    return split_called(path.name) if path.is_dir() else None


def _read(path: Path, root: Path | None = None) -> list[Table]:
    suffix = path.suffix.lower()
    if suffix in _PICKLES:
        raise InputError(f"{path}: is a pickle, which could run code; {SAFE_WAY}")
    if suffix not in READERS:
        known = ", ".join(READERS)
        raise InputError(f"{path}: files ending in {suffix!r} are not read{near(suffix, READERS)}; expected {known}")
    tables = READERS[suffix](path)
    if root is None:
        return tables
    inside = path.relative_to(root)
    return [
        replace(
            table, ids=table.ids.replace(path.name, inside.as_posix(), 1), split=table.split or _folder_split(inside)
        )
        for table in tables
    ]


def _folder_split(path: Path) -> str | None:
    return next((split for part in path.parent.parts if (split := split_in(part))), None)


def _inside(folder: Path) -> list[Path]:
    """The files with features in a folder, without the labels and tables that lie beside them."""
    files = [path for path in sorted(folder.rglob("*"), key=natural) if path.is_file() and path.suffix in READERS]
    arrays = [path for path in files if path.suffix == ".npy"]
    if arrays:
        files = [path for path in arrays if not is_labels(path)]
    tables = [path for path in files if path.suffix not in TEXT_TABLES]
    files = tables or files  # text lies beside other files to say what they are
    if not files:
        raise InputError(f"{folder}: holds no file with features, expected some of {', '.join(READERS)}")
    return files


def natural(path: Path) -> list[tuple[int, str]]:
    """A key that puts 10 after 9."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path.as_posix())]


def _with_own_ids(tables: Iterable[Table]) -> list[Table]:
    """Let no two tables make the same ids: where names repeat, they get the number of the file."""
    seen: dict[str, int] = {}
    found = []
    for table in tables:
        count = seen[table.ids] = seen.get(table.ids, 0) + 1
        found.append(table if count == 1 else replace(table, ids=f"{table.ids}{os.extsep}{count}"))
    return found
