"""Right classes that stand in a file of their own, for images without class folders around them."""

import re
import textwrap
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

from ..core.coded_warnings import CodedWarning
from ..core.counted import counted
from ..core.csv_file import csv_of
from ..core.errors import InputError
from ..core.files import parse_json, regular_file
from ..core.listed import listed
from ..core.text_file import read_lines, read_text
from ..export.held_out import HeldOutImages
from ..models.class_names import imagenet_names
from ..trainer.features.images.folder_source import IMAGE_SUFFIXES, image_files
from ..trainer.features.images.image_set import ImageSet
from ..trainer.features.images.labels import check_names
from ..trainer.features.images.samples import ImageSource, Sample
from .metrics import right_classes

IMAGENET = "imagenet-1k"
# Of ILSVRC 2012 it has 127 KB; loadmat unpacks what it holds into memory.
_MOST_DEVKIT = 1 << 20


class _Row(NamedTuple):
    file: str
    classes: list[str]
    group: str | None


def labelled_by(truth: Path, root: Path, class_ids: str | Path | None, group_column: str | None) -> HeldOutImages:
    """Give classes to the images under a folder.

    Args:
        truth: A CSV file with a file name and a class a row, with or without a heading; a text file with a class a
            line, in the order of file names (the devkit's ``ILSVRC2012_validation_ground_truth.txt``); or a JSON list
            with the places of the right classes of each image, in that order (ReaL's ``real.json``).
        root: The folder.
        class_ids: See `class_names_of`; for a JSON list ImageNet's sorted WordNet ids by default.
        group_column: Column of the CSV file with the group of each image.

    Raises:
        InputError: Files that do not belong together.
    """
    if not root.is_dir():
        raise InputError(f"{root}: no such folder; --truth says what the images in a folder are")
    regular_file(truth)
    files = image_files(root)
    if not files:
        raise InputError(f"{root}: no image in it; expected files ending in {' '.join(sorted(IMAGE_SUFFIXES))}")
    if truth.suffix.lower() in (".csv", ".tsv"):
        images = _Images.under(root, files)
        rows, found = _fitting(_csv_rows(truth, group_column, images.named), images, truth)
    elif group_column is not None:
        raise InputError(f"--group-column: {truth} has no columns; expected a CSV file")
    else:
        rows, found = _line_rows(truth, files, root), []
    ids = class_names_of(class_ids or (IMAGENET if truth.suffix.lower() == ".json" else None))
    if ids is not None:
        rows = [row._replace(classes=[_named(name, ids, str(truth)) for name in row.classes]) for row in rows]
    elif all(name.isdecimal() for row in rows for name in row.classes):
        numbers = {int(name) for row in rows for name in row.classes}
        based = "; one-based?" if min(numbers) == 1 else ""
        raise InputError(
            f"{truth}: classes are the numbers {min(numbers)}..{max(numbers)}{based}; say what they stand for with "
            "--class-ids: a file with `id name` lines, the devkit's meta.mat, or imagenet-1k"
        )
    return _labelled(rows, root, truth, ids, found)


def class_names_of(class_ids: str | Path | None) -> Mapping[str, str] | None:
    """What numbered classes are called.

    Args:
        class_ids: ``imagenet-1k``: places among its sorted WordNet ids, from 0; ``meta.mat`` of the devkit; or a text
            file with ``id name`` a line, or a name a line for the numbers from 0. ``None`` gives ``None``.

    Returns:
        The name of each id.

    Raises:
        InputError: No such file, or a line without a name.
    """
    if class_ids is None:
        return None
    if class_ids == IMAGENET:
        return {str(place): name for place, name in enumerate((imagenet_names(IMAGENET) or ((),))[0])}
    path = Path(class_ids)
    if not path.exists():
        raise InputError(f"--class-ids {class_ids}: no such file; expected one with `id name` lines, or {IMAGENET}")
    if path.suffix.lower() == ".mat":
        return _devkit_names(regular_file(path))
    lines = [(number, line.split(maxsplit=1)) for number, line in enumerate(read_lines(path), 1) if line.strip()]
    if 2 * sum(len(parts) == 2 and parts[0].isdecimal() for _, parts in lines) <= len(lines):
        return {str(place): " ".join(parts) for place, (_, parts) in enumerate(lines)}
    found: dict[str, str] = {}
    for number, parts in lines:
        if len(parts) != 2 or not parts[0].isdecimal() or parts[0] in found:
            what = "has its id twice" if parts[0] in found else "is no `id name`"
            raise InputError(f"{path}: line {number}: {' '.join(parts)!r} {what}, expected every id once with its name")
        found[parts[0]] = parts[1].strip()
    return found


def _devkit_names(path: Path) -> dict[str, str]:
    """The WordNet id of every number in the devkit's ``meta.mat``."""
    if (size := path.stat().st_size) > _MOST_DEVKIT:
        raise InputError(f"{path}: {size:,} bytes, expected the devkit's meta.mat, below {_MOST_DEVKIT:,}")
    try:
        import scipy.io

        synsets = scipy.io.loadmat(path, squeeze_me=True, variable_names=["synsets"])["synsets"]
        return {str(entry["ILSVRC2012_ID"]): str(entry["WNID"]) for entry in synsets}
    except Exception as error:  # noqa: BLE001 - of a damaged file loadmat raises whatever its readers meet
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"{path}: truncated, damaged or not the devkit's meta.mat ({reason}); get it again, or give `id name` lines"
        ) from None


def renamed(images: ImageSet, ids: Mapping[str, str], where: str) -> ImageSet:
    """The same images with class folders that are numbers called by their names, such as those of ImageNet-V2."""
    names = [_named(name, ids, where) for name in images.class_names]
    order = sorted(names)
    samples = [replace(sample, label=order.index(names[sample.label])) for sample in images.samples]
    return replace(images, class_names=order, samples=samples)


def _named(number: str, ids: Mapping[str, str], where: str) -> str:
    if number not in ids:
        raise InputError(f"{where}: class {number} is none of the {len(ids)} ids of --class-ids; expected one of them")
    return ids[number]


def _csv_rows(path: Path, group_column: str | None, known: Container[str]) -> list[_Row]:
    lines = csv_of(read_text(path), str(path)).rows
    first = [cell.strip() for cell in lines[0].cells]
    named = first[0] in known or Path(first[0]).suffix.lower() in IMAGE_SUFFIXES
    heading = [] if named else first
    if group_column is not None and group_column not in heading:
        raise InputError(f"{path}: no --group-column {group_column}; its columns are {', '.join(heading) or 'none'}")
    place = None if group_column is None else heading.index(group_column)
    rows = lines[1:] if heading else lines
    if not rows:
        raise InputError(f"{path}: a header only, expected a file name and a class in every row")
    found = []
    for line, (file, *others) in rows:
        name = _first_box(others[0].strip())
        check_names([name], f"{path}: line {line}")
        found.append(_Row(file.strip(), [name], None if place is None else [file, *others][place]))
    return found


def _first_box(text: str) -> str:
    """``n01978287 85 1 499 272``, as Kaggle writes a class with its box, without the box."""
    return text.split(" ", maxsplit=1)[0] if re.match(r"n\d{8} ", text) else text


@dataclass(frozen=True)
class _Images:
    """The images of a folder, as rows name them: by path, by name, or by name without its suffix.

    Attributes:
        root: The folder.
        files: Their paths in it.
        named: By each of these names the images that it fits; a whole path fits no other, nor a name another's stem.
    """

    root: Path
    files: Sequence[str]
    named: Mapping[str, list[str]]

    @classmethod
    def under(cls, root: Path, files: Sequence[str]) -> Self:
        """Of these files."""
        named: dict[str, list[str]] = {}
        for name in (str, lambda file: Path(file).name, lambda file: Path(file).stem):
            found: dict[str, list[str]] = {}
            for file in files:
                found.setdefault(name(file), []).append(file)
            named = found | named
        return cls(root, files, named)

    def of(self, row: str, truth: Path) -> str | None:
        """The image that a row names; nothing where it is not there."""
        fitting = self.named.get(row, [])
        if len(fitting) > 1:
            raise InputError(
                f"{truth}: {row} found, which matches {len(fitting)} images in {self.root} ({listed(fitting, 3)}); "
                "write the path of the one that is meant"
            )
        return fitting[0] if fitting else None


def _fitting(rows: list[_Row], images: _Images, truth: Path) -> tuple[list[_Row], list[CodedWarning]]:
    """The rows whose image is there, in the order of the images; and what is missing."""
    places = [(row, images.of(row.file, truth)) for row in rows]
    fitting = [row._replace(file=file) for row, file in places if file is not None]
    found = {row.file: row for row in reversed(fitting)}
    for row in fitting:
        if row != found[row.file]:
            one, other = (" of ".join([*each.classes, *filter(None, [each.group])]) for each in (found[row.file], row))
            raise InputError(f"{truth}: {row.file} is {one} in one row and {other} in another; keep the right one")
    gone = [row.file for row, file in places if file is None]
    bare = [file for file in images.files if file not in found]
    if not found:
        raise InputError(f"{truth}: none of its {len(rows)} files is in {images.root}, such as {rows[0].file}")
    again = len(fitting) - len(found)
    lacking = counted(len(gone), f"row of {truth.name} has", f"rows of {truth.name} have")
    left_out = counted(
        len(bare), f"image has no row in {truth.name} and is", f"images have no row in {truth.name} and are"
    )
    repeated = counted(
        again,
        f"row of {truth.name} repeats an earlier one and counts",
        f"rows of {truth.name} repeat an earlier one and count",
    )
    said = {
        "rows-without-image": gone and f"{lacking} no image: {listed(gone)}",
        "images-without-row": bare and f"{left_out} left out: {listed(bare)}",
        "repeated-rows": again and f"{repeated} once",
    }
    warnings = [CodedWarning(code, str(message)) for code, message in said.items() if message]
    return [found[file] for file in images.files if file in found], warnings


def _line_rows(path: Path, files: Sequence[str], root: Path) -> list[_Row]:
    """One entry an image, in the order of file names."""
    as_json = path.suffix.lower() == ".json"
    classes = _json_classes(path) if as_json else [[line.strip()] for line in read_lines(path)]
    if [""] in classes:
        raise InputError(f"{path}: line {classes.index(['']) + 1}: empty, expected the class of an image in every line")
    if len(classes) != len(files):
        raise InputError(
            f"{path}: {len(classes)} labels for the {len(files)} images in {root}; expected one an image, in the order "
            "of file names"
        )
    return [_Row(file, names, None) for file, names in zip(files, classes, strict=True)]


def _json_classes(path: Path) -> list[list[str]]:
    """A JSON list with a list of classes, texts or whole numbers, for each image."""
    expected = "expected a JSON list with a list of classes for each image"
    try:
        lists = parse_json(read_text(path))
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: {expected} ({error})") from None
    for place, names in enumerate(lists if isinstance(lists, list) else [lists]):
        if not isinstance(names, list) or any(isinstance(one, bool) or not isinstance(one, str | int) for one in names):
            shown = textwrap.shorten(repr(names), 60, placeholder=" ...")
            raise InputError(f"{path}: {expected}; entry {place} is {shown}")
    return [[str(name) for name in names] for names in lists]


def _labelled(
    rows: Sequence[_Row], root: Path, truth: Path, ids: Mapping[str, str] | None, found: list[CodedWarning]
) -> HeldOutImages:
    """The images with their classes; where several are right, a sample's label is the first of them."""
    multi_label = any(len(row.classes) != 1 for row in rows)
    names = sorted(set(ids.values()) if multi_label and ids else {name for row in rows for name in row.classes})
    index = {name: place for place, name in enumerate(names)}
    sets = [[index[name] for name in row.classes] for row in rows]
    samples = [Sample(row.file, right[0] if right else 0, "test") for row, right in zip(rows, sets, strict=True)]
    images = ImageSet(ImageSource(str(root)), names, samples, f"classes from {truth.name}", lambda one: root / one.id)
    without = sum(not right for right in sets)
    left_out = counted(without, "image has no right class and is", "images have no right class and are")
    none = [CodedWarning("no-right-class", f"{left_out} left out")] if without else []
    groups = None if rows[0].group is None else [str(row.group) for row in rows]
    return HeldOutImages(
        images, sets=right_classes(sets) if multi_label else None, groups=groups, warnings=(*found, *none)
    )
