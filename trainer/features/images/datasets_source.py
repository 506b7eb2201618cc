"""Images in a Hugging Face `datasets` data set: saved on disk, loadable from data files, or on the hub."""

import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow.compute as pc
from huggingface_hub.constants import HF_HUB_CACHE

from ....core.errors import InputError
from ....core.hub import hub_access
from ....core.listed import listed
from ....core.printable import short
from ....models.images import UnreadableImage
from .datasets_checks import check_features, check_saved, data_files
from .labels import Labels, index_labels
from .samples import ImageSource, Listing, Sample, by_split
from .source_kind import is_saved

Array = np.ndarray[Any, Any]
_ROWS = 10_000
# What pandas and WebDataset call the columns that they add, such as __index_level_0__ and __key__.
_MADE = re.compile("__.*__")
_USUAL = ("label", "labels", "cls")  # the last one of WebDataset
_STORED = (("binary", "string"), ("binary", "null"), ("null", "string"))
_HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def list_dataset(source: str | Path, image_column: str | None, label_column: str | None) -> Listing:
    """List the rows of a `datasets` data set by split.

    Integer or text labels are mapped to classes in sorted order, numbers by value; a `ClassLabel` keeps its own.

    Raises:
        InputError: No such data set, no split called train, val or test, or columns that do not fit.
    """
    place, found = load(source)
    name = str(source)
    divided = isinstance(found, Mapping)
    tables = _tables(found, name) if isinstance(found, Mapping) else {"train": found}
    features = next(iter(tables.values())).features
    image = _image_column(features, image_column, name)
    label = _label_column(features, label_column, image, name)
    for split, table in tables.items():
        _check_same(features, table.features, (image, label), f"{name}: {split}")
    names = list(features[label].names) if isinstance(features[label], datasets.ClassLabel) else None
    columns = {split: np.asarray(table.with_format(None)[label][:]) for split, table in tables.items()}
    class_names, labels = index_labels(
        [Labels(f"{name}: {split}: {label}", column, names) for split, column in columns.items()]
    )
    images = {split: _encoded(table, image) for split, table in tables.items()}
    places = [(split, row) for split, column in columns.items() for row in range(len(column))]
    samples = [
        Sample(f"{split}/{row}", index, split) for (split, row), index in zip(places, labels.tolist(), strict=True)
    ]
    sizes = cache(lambda split: _sizes(images[split]))
    roots = (
        [Path(place)]
        if Path(place).is_dir()
        else [Path(HF_HUB_CACHE), Path(datasets.config.HF_DATASETS_CACHE)]  # not the folder around, which holds tokens
    )
    return Listing(
        ImageSource(place, image, label),
        class_names,
        samples,
        divided,
        lambda sample: _content(images, sample.id, roots),
        lambda sample: _size(sizes, images, sample.id, roots),
    )


def _tables(found: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The splits that are used, in the order train, val, test."""
    tables = {split: found[own] for split, own in by_split(found, name).items()}
    if not tables:
        raise InputError(f"{name}: has splits {listed(list(found))}, expected train, val or test among them")
    return tables


def _check_same(expected: Any, found: Any, columns: tuple[str, str], where: str) -> None:
    for column in columns:
        if found.get(column) != expected[column]:
            raise InputError(
                f"{where}: {column} holds {found.get(column)}, but {expected[column]} in the first split; expected "
                "the same in all"
            )


def load(source: str | Path) -> tuple[str, Any]:
    """The data set, and the name that loads it again from anywhere.

    Raises:
        InputError: Nothing is there that `datasets` can load.
    """
    path = Path(source).expanduser()
    if path.exists() and not path.is_dir():
        raise InputError(f"{source}: is a file, expected a folder of class folders or a `datasets` folder or name")
    if not path.exists() and not _may_be_on_hub(source):
        raise InputError(
            f"{source}: no such folder; name a folder of class folders, a `datasets` folder, or OWNER/NAME on the hub"
        )
    name = str(path.resolve()) if path.exists() else str(source)
    with _bars_for_terminals(), nullcontext("") if path.exists() else hub_access() as unreachable:
        try:
            return name, (_open_folder(path) if path.exists() else _open_name(name)).with_format(None)
        except InputError:
            raise
        except Exception as error:  # `datasets` raises anything on what it does not expect
            where = "" if path.exists() else "no such folder, and "
            cause = error.__cause__ or error
            reason = unreachable or (str(cause).splitlines() or [type(cause).__name__])[0]
            raise InputError(
                f"{source}: {where}not a data set that `datasets` can load ({reason}); check the name, or give a "
                "folder of class folders"
            ) from error


@contextmanager
def _bars_for_terminals() -> Iterator[None]:
    """Keep the progress bars of `datasets` out of files and pipes."""
    off = not sys.stderr.isatty() and not datasets.are_progress_bars_disabled()
    if off:
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        if off:
            datasets.enable_progress_bars()


def _open_folder(path: Path) -> Any:
    """What `datasets` makes of a folder that was checked."""
    if is_saved(path):
        check_saved(path)
        return datasets.load_from_disk(str(path.resolve()))
    reader, files = data_files(path)
    return datasets.load_dataset(reader, data_files=files)


def _open_name(name: str) -> Any:
    """What `datasets` makes of a name on the hub, whose columns are held to the same types as those of folders."""
    found = datasets.load_dataset(name)
    for table in found.values() if isinstance(found, Mapping) else [found]:
        check_features(table.features.to_dict(), name)
    return found


def _may_be_on_hub(source: str | Path) -> bool:
    """Whether a path that is not there could be OWNER/NAME on the hub: not where its first folder is here."""
    name = str(source)
    here = Path(name.partition("/")[0]).is_dir()
    return isinstance(source, str) and "/" in name and _HUB_NAME.fullmatch(name) is not None and not here


def _image_column(features: Any, asked: str | None, name: str) -> str:
    if asked is not None:
        kind = _column(features, asked, "--image-column", name)
        if _holds_images(kind) or getattr(kind, "dtype", None) in ("string", "binary"):
            return asked
        raise InputError(f"{name}: --image-column {asked} holds {kind}, expected images, encoded bytes or paths")
    columns: list[str] = [column for column, kind in features.items() if _holds_images(kind)]
    if len(columns) == 1:
        return columns[0]
    if columns:
        found = f"{len(columns)} image columns ({listed(columns)}), expected one"
        raise InputError(f"{name}: {found}; say which one with --image-column, e.g. --image-column {columns[0]}")
    kinds = [f"{short(column)} ({short(str(getattr(kind, 'dtype', kind)))})" for column, kind in features.items()]
    found = f"no image column among {listed(kinds, 20)}"
    raise InputError(f"{name}: has {found}; say which one with --image-column, where one holds encoded images or paths")


def _holds_images(kind: Any) -> bool:
    """Whether a column is of images, or what `datasets` stores them as: parquet files of others may lack its notes."""
    stored = isinstance(kind, Mapping) and {name: getattr(one, "dtype", None) for name, one in kind.items()}
    # a part that is missing in every row has the type null
    parts = [{"bytes": content, "path": path} for content, path in _STORED]
    return isinstance(kind, datasets.Image) or stored in parts


def _label_column(features: Any, asked: str | None, image: str, name: str) -> str:
    if asked is not None:
        return plain_column(features, asked, "--label-column", name)
    named: list[str] = [column for column, kind in features.items() if isinstance(kind, datasets.ClassLabel)]
    plain: list[str] = [
        column
        for column, kind in features.items()
        if column != image and not _MADE.fullmatch(column) and _holds_labels(kind)
    ]
    usual = [column for column in plain if column in _USUAL]
    if len(named) == 1 and (other := [column for column in usual if column not in named]):
        found = f"class names noted for {named[0]}, and another column called {other[0]}"
        raise InputError(f"{name}: has {found}; say which one holds the labels with --label-column")
    for columns in (named, plain, usual):
        if len(columns) == 1:
            return columns[0]
        if len(named) > 1:
            break
    found = f"columns that may be labels: {listed(named or plain, 20)}" if plain else "no column that may hold labels"
    raise InputError(f"{name}: has {found}; say which one with --label-column")


def _holds_labels(kind: Any) -> bool:
    return re.fullmatch(r"u?int\d+|string|large_string|bool", str(getattr(kind, "dtype", ""))) is not None


def plain_column(features: Any, asked: str, flag: str, name: str) -> str:
    """The column that was asked for, if it holds plain values: others are files that `datasets` would open.

    Raises:
        InputError: It is not there, or holds something else.
    """
    kind = _column(features, asked, flag, name)
    if not isinstance(kind, datasets.Value | datasets.ClassLabel):
        raise InputError(f"{name}: {flag} {asked} holds {kind}, expected numbers or text")
    return asked


def _column(features: Any, asked: str, flag: str, name: str) -> Any:
    if asked not in features:
        raise InputError(f"{name}: {flag} {asked} not found; its columns are {listed(list(features), 20)}")
    return features[asked]


def _encoded(table: Any, column: str) -> Any:
    """The images as they are stored: decoding is `open_image`'s, so that a damaged one is reported like any other."""
    return table.select_columns([column]).cast_column(column, datasets.Image(decode=False))


def _sizes(table: Any) -> Array:
    """``(N,)`` int64, the number of bytes of each image, -1 for those that are not in the table; none is read."""
    (column,) = table.column_names
    found = [np.empty(0, np.int64)]
    for batch in table.with_format("arrow").iter(_ROWS):
        length = pc.binary_length(pc.struct_field(batch[column], "bytes"))
        found.append(pc.fill_null(length, -1).to_numpy().astype(np.int64))
    return np.concatenate(found)


def _size(sizes: Callable[[str], Array], images: dict[str, Any], sample_id: str, roots: list[Path]) -> int | None:
    split, _, row = sample_id.partition("/")
    length = int(sizes(split)[int(row)])
    if length >= 0:
        return length
    try:
        found = _content(images, sample_id, roots)
        return found.stat().st_size if isinstance(found, Path) else None
    except (InputError, OSError):
        return None


def _content(images: dict[str, Any], sample_id: str, roots: list[Path]) -> Path | bytes:
    split, _, row = sample_id.partition("/")
    (value,) = images[split][int(row)].values()
    if value is not None and value["bytes"] is not None:
        return bytes(value["bytes"])
    if value is None or value["path"] is None:
        raise UnreadableImage(f"{sample_id}: no image in this row")
    return _inside(value["path"], sample_id, roots)


def _inside(name: str, sample_id: str, roots: list[Path]) -> Path:
    """The file that a row names, where it is in the data set's folder: a stranger's row may name any other."""
    path = Path(os.path.normpath(roots[0] / name))
    place = path.resolve() if "\0" not in name else path  # where a link leads
    if not any(path.is_relative_to(root) and place.is_relative_to(root.resolve()) for root in roots):
        raise UnreadableImage(f"{sample_id}: is {short(name)}, expected an image in {roots[0]}; move it there")
    return path
