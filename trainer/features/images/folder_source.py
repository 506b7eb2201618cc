"""Images in a folder of class folders, with or without train, val and test inside."""

import logging
import os
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ....core.errors import InputError
from .labels import check_names
from .samples import Listing, Sample, by_split, listed, split_called

IMAGE_SUFFIXES = frozenset(
    ".avif .bmp .gif .ico .j2k .jfif .jp2 .jpe .jpeg .jpg .pbm .pgm .png .ppm .tif .tiff .webp".split()  # noqa: SIM905
)
_LAYOUT = "expected one folder of images for each class, e.g. cat/1.jpg and dog/2.jpg"
_log = logging.getLogger(__name__)


def list_folder(root: Path) -> Listing:
    """List the images of ``root`` by split and class.

    Classes are ordered by name, as text (``10`` before ``2``), as torchvision does. Folders may be nested within a
    class and symbolic links are followed; a folder that links lead to twice is listed once. Hidden files are skipped,
    and with a count files without an image suffix, named pipes, sockets and devices. A link that leads nowhere is an
    image that cannot be read. Control characters in file names are kept, and made visible where they are printed.

    Raises:
        InputError: A folder that cannot be listed, no class folders, images outside of them, a class folder without an
            image, a name that is not UTF-8 or, of a class, not one line, or two folders for one class.
    """
    root = root.resolve()
    splits = _split_folders(root)
    folders = {split: _class_folders(root / name) for split, name in splits.items()} or {"train": _class_folders(root)}
    names = sorted({name for classes in folders.values() for name in classes})
    check_names(names, str(root))
    index = {name: label for label, name in enumerate(names)}
    skipped: Counter[str] = Counter()
    samples = [
        Sample(image, index[name], split)
        for split, classes in folders.items()
        for name, folder in sorted(classes.items())
        for image in _images(root, folder, skipped)
    ]
    _tell(root, skipped)
    content, size = partial(_path, root), partial(_size, root)
    return Listing({"source": str(root)}, names, samples, bool(splits), content, size)


def _path(root: Path, sample: Sample) -> Path:
    return root / sample.id


def _size(root: Path, sample: Sample) -> int | None:
    try:
        return _path(root, sample).stat().st_size
    except OSError:
        return None


def images_under(folder: Path) -> list[Path]:
    """All images under a folder, whatever the folders between, in the order of file names; others are told."""
    skipped: Counter[str] = Counter()
    found = []
    for path, kind in _walk(folder):
        if kind in IMAGE_SUFFIXES:
            found.append(path)
        else:
            skipped[kind] += 1
    _tell(folder, skipped)
    return sorted(found, key=lambda path: (path.name, path))


def image_files(folder: Path) -> list[str]:
    """The paths of `images_under`, relative to the folder.

    Raises:
        InputError: A name that is not UTF-8.
    """
    return [_text(path.relative_to(folder).as_posix(), path) for path in images_under(folder)]


def _tell(folder: Path, skipped: Counter[str]) -> None:
    if skipped:
        kinds = listed([f"{count} {suffix or 'without suffix'}" for suffix, count in skipped.most_common()])
        _log.warning("%s: skipped files that are not images by their suffix or kind: %s", folder, kinds)


def _split_folders(root: Path) -> dict[str, str]:
    """The folders that hold splits, by split; none where a class only happens to be called ``train``."""
    named = [path for path in _folders(root) if split_called(path.name)]
    others = [path for path in _folders(root) if not split_called(path.name)]
    if not named or (others and all(_has_image(path) for path in named)):
        return {}
    splits = by_split([path.name for path in named], str(root))
    beside = [path.name for path in others if _has_image(path)]
    if beside:
        raise InputError(
            f"{root}: holds {listed(list(splits.values()))} beside folders of images ({listed(beside)}); expected "
            "either train, val and test, or class folders; move the others away"
        )
    return splits


def _class_folders(folder: Path) -> dict[str, Path]:
    folders = _folders(folder)
    if not folders:
        found = "images, but no class folders" if _has_image(folder) else "no class folders"
        raise InputError(f"{folder}: has {found}; {_LAYOUT}")
    loose = [path.name for path in _visible(folder) if _is_image(path)]
    if loose:
        raise InputError(f"{folder}: has images outside of the class folders ({listed(loose)}); {_LAYOUT}")
    classes: dict[str, Path] = {}
    for path in folders:
        name = unicodedata.normalize("NFC", _text(path.name, path))
        if name in classes:
            raise InputError(f"{folder}: two folders are called {name!r} in different Unicode forms; merge them")
        classes[name] = path
    return classes


def _images(root: Path, folder: Path, skipped: Counter[str]) -> list[str]:
    """Paths of all images under a class folder, relative to ``root``, sorted."""
    found, other = [], Counter[str]()
    for path, kind in _walk(folder):
        if kind in IMAGE_SUFFIXES:
            found.append(_text(path.relative_to(root).as_posix(), path))
        else:
            other[kind] += 1
    if not found:
        holds = f"only {listed(sorted(other))} files" if other else "no file"
        raise InputError(
            f"{folder}: class folder without an image (holds {holds}); expected files ending in "
            f"{' '.join(sorted(IMAGE_SUFFIXES))}; add images or remove the folder"
        )
    skipped.update(other)
    return sorted(found)


def _walk(folder: Path, entered: set[Path] | None = None) -> Iterator[tuple[Path, str]]:
    """Every visible file under ``folder`` and its suffix, or ``special`` for what is no file that ends.

    A folder that links lead to twice is entered once.
    """
    entered = set() if entered is None else entered
    here = folder.resolve()
    if here in entered:
        return
    entered.add(here)
    try:
        with os.scandir(folder) as found:
            entries = sorted((entry for entry in found if not _is_hidden(entry.name)), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be listed ({error.strerror}); correct its permissions, or move it away"
        ) from None
    for entry in entries:
        path = Path(entry.path)
        if _says(entry.is_dir):
            yield from _walk(path, entered)
        else:
            # What a link that leads nowhere is, decoding will say.
            regular = _says(entry.is_file) or not path.exists()
            yield path, path.suffix.lower() if regular else "special"


def _says(question: Callable[[], bool]) -> bool:
    try:
        return question()
    except OSError:  # a circle of links
        return False


def _folders(folder: Path) -> list[Path]:
    return [path for path in _visible(folder) if path.is_dir()]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not _is_hidden(path.name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name in ("__MACOSX", "__pycache__", "Thumbs.db", "desktop.ini")


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES and not path.is_dir()


def _has_image(folder: Path) -> bool:
    return any(_is_image(path) for path in _visible(folder))


def _text(name: str, path: Path) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"{os.fsencode(path)!r}: the name is not UTF-8; rename it") from None
    return name
