"""Class folders, or something that `datasets` loads?"""

from pathlib import Path

_DATA_FILES = ("*.parquet", "*.arrow", "*.tar")
_LABEL_FILES = ("metadata.csv", "metadata.jsonl")


def is_datasets_folder(path: Path) -> bool:
    """Whether a folder was saved by `datasets` or holds data files that it loads, rather than class folders."""
    if is_saved(path):
        return True
    places = [place for place in (path, path / "data", path / "train", path / "test") if place.is_dir()]
    return any(
        any(found for pattern in _DATA_FILES for found in place.glob(pattern))
        or any(_names_files(place / name) for name in _LABEL_FILES)
        for place in places
    )


def _names_files(path: Path) -> bool:
    """Whether a file gives labels to images by their ``file_name``, as the image folders of `datasets` may."""
    if not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        return "file_name" in file.readline()


def is_saved(path: Path) -> bool:
    """Whether a folder was saved by `datasets`."""
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()
