"""Images in a folder of class folders, with or without train, val and test inside."""

import logging
import os
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ....core.errors import InputError
from ....core.listed import listed
from ....core.printable import printable
from .labels import check_names
from .samples import ImageSource, Listing, Sample, by_split, split_called

_OTHERS = ".apng .avif .avifs .bmp .dib .gif .ico .mpo .png .tif .tiff .webp".split()  # noqa: SIM905
_JPEG = ".j2c .j2k .jfif .jp2 .jpc .jpe .jpeg .jpf .jpg .jpx".split()  # noqa: SIM905
_NETPBM = ".pbm .pfm .pgm .pnm .ppm".split()  # noqa: SIM905
IMAGE_SUFFIXES = frozenset([*_OTHERS, *_JPEG, *_NETPBM])  # PIL's of all formats that are read
_ARCHIVES = frozenset(".7z .bz2 .gz .rar .tar .tgz .xz .zip .zst".split())  # noqa: SIM905
_LAYOUT = "expected one folder of images for each class, e.g. cat/1.jpg and dog/2.jpg"
_log = logging.getLogger(__name__)


def list_folder(root: Path) -> Listing:
    """List the images of ``root`` by split and class.

    Classes are ordered by name, as text (``10`` before ``2``), as torchvision does. Folders may be nested within a
    class and symbolic links are followed, but for those to folders that are listed already or hold the class, which are
    told. Hidden files are skipped, and with a count those that may be images, files without an image suffix, named
    pipes, sockets and devices. A link that leads nowhere is an image that cannot be read. Control characters in file
    names are kept, and made visible where they are printed.

    Raises:
        InputError: A folder that cannot be listed, no class folders, images outside of them, a class folder without an
            image, a name that is not UTF-8 or, of a class, not one line, two folders for one class, or one for two.
    """
    splits = _split_folders(root)
    folders = {split: _class_folders(root / name) for split, name in splits.items()} or {"train": _class_folders(root)}
    names = sorted({name for classes in folders.values() for name in classes})
    check_names(names, str(root))
    index = {name: label for label, name in enumerate(names)}
    walk = _Walk.over(root, [folder for classes in folders.values() for folder in classes.values()])
    samples = [
        Sample(image, index[name], split)
        for split, classes in folders.items()
        for name, folder in sorted(classes.items())
        for image in _images(root, folder, walk)
    ]
    walk.tell()
    place = root.resolve()
    content, size = partial(_path, place), partial(_size, place)
    return Listing(ImageSource(str(place)), names, samples, bool(splits), content, size)


def _path(root: Path, sample: Sample) -> Path:
    return root / sample.id


def _size(root: Path, sample: Sample) -> int | None:
    try:
        return _path(root, sample).stat().st_size
    except OSError:
        return None


def images_under(folder: Path) -> list[Path]:
    """All images under a folder, whatever the folders between, in the order of file names; others are told."""
    walk = _Walk.over(folder, [folder])
    found = walk.images(folder)
    walk.tell()
    return sorted(found, key=lambda path: (path.name, path))


def image_files(folder: Path) -> list[str]:
    """The paths of `images_under`, relative to the folder.

    Raises:
        InputError: A name that is not UTF-8.
    """
    return [_text(path.relative_to(folder).as_posix(), path) for path in images_under(folder)]


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
        archives = [path.name for path in _visible(folder) if _is_archive(path)]
        packed = f", only archives ({listed(archives, 3)}), which are not opened; unpack them" if archives else ""
        raise InputError(f"{folder}: has {found}{packed}; {_LAYOUT}")
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


def _images(root: Path, folder: Path, walk: "_Walk") -> list[str]:
    """Paths of all images under a class folder, relative to ``root``, sorted."""
    before, links = Counter(walk.skipped), len(walk.links)
    found = [_text(path.relative_to(root).as_posix(), path) for path in walk.images(folder)]
    if not found:
        other = walk.skipped - before
        holds = f"only {listed(sorted(other))} files" if other else "no file"
        holds = "links to folders that are listed already" if len(walk.links) > links else holds
        packed = other.keys() & _ARCHIVES
        todo = "archives are not opened, unpack them there" if packed else "add images or remove the folder"
        raise InputError(
            f"{folder}: class folder without an image (holds {holds}); expected files ending in "
            f"{' '.join(sorted(IMAGE_SUFFIXES))}; {todo}"
        )
    return sorted(found)


@dataclass
class _Walk:
    """One way through folders that enters none twice, whatever links there are.

    Attributes:
        root: Where they lie.
        folders: The real paths of the folders that are walked from.
        above: The folders that hold them.
        entered: The real paths of those that were entered.
        skipped: How many files were no images, by suffix, or ``special`` for what is no file that ends.
        links: Links that were not followed.
    """

    root: Path
    folders: set[Path]
    above: set[Path]
    entered: set[Path] = field(default_factory=set)
    skipped: Counter[str] = field(default_factory=Counter)
    links: list[Path] = field(default_factory=list)

    @classmethod
    def over(cls, root: Path, folders: list[Path]) -> "_Walk":
        """Begin.

        Raises:
            InputError: Links make one of the folders another one, or a part of it.
        """
        by_place: dict[Path, Path] = {}
        for folder in folders:
            other = by_place.setdefault(folder.resolve(), folder)
            if other is not folder:
                raise InputError(f"{folder}: is the same folder as {other} by a link; remove the link")
        for place, folder in by_place.items():
            outer = next((by_place[parent] for parent in place.parents if parent in by_place), None)
            if outer is not None:
                raise InputError(f"{folder}: lies inside {outer} by a link; remove the link")
        return cls(root, set(by_place), {parent for place in by_place for parent in place.parents})

    def images(self, folder: Path) -> list[Path]:
        """Every visible image under a folder; the others are counted."""
        found: list[Path] = []
        self._enter(folder, found)
        return found

    def tell(self) -> None:
        """Say what was skipped."""
        if self.skipped:
            kinds = listed([f"{count} {suffix or 'without suffix'}" for suffix, count in self.skipped.most_common()])
            _log.warning("%s: skipped files that are not images by their suffix or kind: %s", self.root, kinds)
        if self.links:
            names = printable(listed([str(path.relative_to(self.root)) for path in self.links], 3))
            _log.warning("%s: not followed, as they lead to folders that are listed already: %s", self.root, names)

    def _enter(self, folder: Path, found: list[Path]) -> None:
        self.entered.add(folder.resolve())
        for entry in _entries(folder):
            path = Path(entry.path)
            if _is_hidden(entry.name):
                if path.suffix.lower() in IMAGE_SUFFIXES and not _says(entry.is_dir):
                    self.skipped[f"hidden {path.suffix.lower()}"] += 1
                continue
            if _says(entry.is_dir):
                if self._is_listed(path.resolve(), entry.is_symlink()):
                    self.links.append(path)
                else:
                    self._enter(path, found)
                continue
            # What a link that leads nowhere is, decoding will say.
            regular = _says(entry.is_file) or not path.exists()
            kind = path.suffix.lower() if regular else "special"
            if kind in IMAGE_SUFFIXES:
                found.append(path)
            else:
                self.skipped[kind] += 1

    def _is_listed(self, place: Path, linked: bool) -> bool:
        """Whether a folder was entered, or is one that a link must not lead to: in what is walked, or above it."""
        inside = linked and not self.folders.isdisjoint((place, *place.parents))
        return place in self.entered or place in self.above or inside


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(
            f"{folder}: cannot be listed ({error.strerror}); correct its permissions, or move it away"
        ) from None


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


def _is_archive(path: Path) -> bool:
    return path.suffix.lower() in _ARCHIVES and path.is_file()


def _has_image(folder: Path) -> bool:
    return any(_is_image(path) for path in _visible(folder))


def _text(name: str, path: Path) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(f"{os.fsencode(path)!r}: the name is not UTF-8; rename it") from None
    return name
