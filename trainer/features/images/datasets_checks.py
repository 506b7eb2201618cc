"""Folders of strangers, before `datasets` opens them.

`datasets` opens and calls what such a folder names: files elsewhere and addresses in README.md and `state.json`,
functions of pyarrow as types of columns. So what it reads of a folder is chosen here, and checked.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import pyarrow as pa

from ....core.errors import InputError
from ....core.files import parse_json, read_json, regular_file
from ....core.json_values import JsonObject
from ....core.printable import shown
from ....core.typed_json import structured
from ..arrow_stream import ArrowStream
from ..parquet_rows import checked_parquet
from .folder_source import IMAGE_SUFFIXES
from .tar_file import check_same_images, check_tar

_METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
# What `datasets` calls its readers, in the order that decides between equally many files.
_READERS = {"parquet": {".parquet"}, "arrow": {".arrow"}, "webdataset": {".tar"}, "imagefolder": IMAGE_SUFFIXES}
_KINDS = re.compile(
    r"Value|ClassLabel|(Large)?List|Sequence|Array[2-5]D|Image|Audio|Video|Pdf|Nifti|Mesh|Json|Bio(Sequence|Structure)"
    r"|Translation(VariableLanguages)?"
)
_TYPED = re.compile(r"Value|Array\dD")
_TYPE = re.compile(
    r"null|bool_?|u?int(8|16|32|64)|float(16|32|64)?|halffloat|double|(large_)?(string|binary|utf8)|(string|binary)_view"
    r"|date(32|64)|time32\[m?s\]|time64\[[un]s\]|duration\[[mun]?s\]|timestamp\[[mun]?s(, ?tz=[\w/+:-]{1,40})?\]"
    r"|decimal(128|256)\(\d{1,2}, ?-?\d{1,2}\)"
)
_AGAIN = "damaged, or made to do harm: get it again, or save it again with `datasets`"
_LONGEST_NAME = 255


class _DataFile(TypedDict):
    filename: str


class _State(TypedDict):
    _data_files: list[_DataFile]


class _Splits(TypedDict):
    splits: list[str]


class _Info(TypedDict):
    features: NotRequired[JsonObject | None]
    post_processed: NotRequired[JsonObject | None]


def check_saved(folder: Path) -> None:
    """Check a folder that `datasets` saved: its records, and its Arrow files in full before they are mapped.

    Raises:
        InputError: A file is damaged, or a record names files elsewhere or types that are none.
    """
    index = folder / "dataset_dict.json"
    if (folder / "state.json").is_file():
        _check_split(folder)
    if index.is_file():
        for split in structured(read_json(index), _Splits, str(index), advice=_AGAIN)["splits"]:
            _check_split(folder / _plain(split, index))


def _check_split(folder: Path) -> None:
    info, state = folder / "dataset_info.json", folder / "state.json"
    found = structured(read_json(info), _Info, str(info), advice=_AGAIN)
    check_features([found.get("features"), found.get("post_processed")], str(info))
    for entry in structured(read_json(state), _State, str(state), advice=_AGAIN)["_data_files"]:
        path = folder / _plain(entry["filename"], state)
        _check_schema(ArrowStream(path).schema, path)


def data_files(folder: Path) -> tuple[str, Mapping[str, Any]]:
    """The files of a folder that `datasets` reads, by split, and its reader for them; README.md has no say in it.

    Raises:
        InputError: There are none, or one is damaged, unpacks to far more than it takes on disk, or describes columns
            of no type.
    """
    from datasets.data_files import DataFilesDict, DataFilesList, get_data_patterns

    base = str(folder.resolve())
    try:
        found = DataFilesDict.from_patterns(get_data_patterns(base), base_path=base)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder}: holds no data files that are read ({error}); give a folder of class folders"
        ) from None
    counts = Counter(reader for files in found.values() for file in files if (reader := _reader(file)))
    if not counts:
        raise InputError(f"{folder}: holds no data files that are read; give a folder of class folders")
    reader = max(_READERS, key=lambda name: counts[name])
    kept = {split: [file for file in files if _is_for(reader, file)] for split, files in found.items()}
    paths = [Path(file) for files in kept.values() for file in files]
    for path in paths:
        _check_file(path)
    check_same_images({path: check_tar(path) for path in paths if path.suffix.lower() == ".tar"})
    # A list of its own kind, so that no letter of a name is taken for a pattern.
    return reader, {split: DataFilesList(files, found[split].origin_metadata) for split, files in kept.items() if files}


def _reader(file: str) -> str | None:
    path = Path(file)
    if path.name in _METADATA:
        return None
    return next((reader for reader, suffixes in _READERS.items() if path.suffix.lower() in suffixes), None)


def _is_for(reader: str, file: str) -> bool:
    return _reader(file) == reader or (reader == "imagefolder" and Path(file).name in _METADATA)


def _check_file(path: Path) -> None:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        _check_schema(checked_parquet(path), path)
    elif suffix == ".arrow":
        _check_schema(ArrowStream(path).schema, path)
    elif path.name in _METADATA:
        regular_file(path)


def _check_schema(schema: pa.Schema, path: Path) -> None:
    """Check the columns that `datasets` describes in an Arrow schema."""
    noted = (schema.metadata or {}).get(b"huggingface")
    if noted is None:
        return
    try:
        found = parse_json(noted)
    except ValueError as error:
        raise InputError(f"{path}: huggingface: is no JSON ({error}); {_AGAIN}") from None
    check_features(found, str(path))


def check_features(value: Any, where: str) -> None:
    """Refuse columns for which `datasets` would look up or open what they name.

    Args:
        value: What describes them, as JSON values.
        where: For the message.

    Raises:
        InputError: A column is of no kind, or of no type of Arrow.
    """
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        check_features(one, where)
    kind = value.get("_type") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        return
    if not _KINDS.fullmatch(kind):
        raise InputError(f"{where}: _type: {kind!r} found, expected a kind of column; {_AGAIN}")
    names = value.get("names")
    twice = [name for name, times in Counter(map(str, names)).items() if times > 1] if isinstance(names, list) else []
    if twice:
        raise InputError(f"{where}: names: {shown(twice[0])} found twice, expected each class name once; {_AGAIN}")
    dtype = value.get("dtype")
    if _TYPED.fullmatch(kind) and not (isinstance(dtype, str) and _TYPE.fullmatch(dtype)):
        raise InputError(f"{where}: dtype: {shown(str(dtype))} found, expected a type of Arrow; {_AGAIN}")


def _plain(name: str, where: Path) -> str:
    """The name of something in the folder of ``where``."""
    if Path(name).name != name or name == ".." or len(name) > _LONGEST_NAME or "\\" in name or "\0" in name:
        raise InputError(f"{where}: names {shown(name)}, expected something in that folder; {_AGAIN}")
    return name
