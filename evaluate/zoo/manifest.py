"""A zoo: a list of classifiers in YAML, with what their files do not say of themselves."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from ... import models
from ...core.errors import InputError, near
from ...core.printable import printable
from ...core.yaml_file import read_yaml
from .candidate import Published

SHIPPED = Path(models.__file__).parent / "manifests"
KNOWN = SHIPPED / "onnx-model-zoo.yaml"
TOP = ("package", "models")
KINDS: dict[str, tuple[type, ...]] = {
    "background": (int,),
    "preprocessing": (dict, str),
    "labels": (list, str),
    "published": (dict,),
}
LONGEST = 60
PUBLISHED = tuple(field.name for field in fields(Published))


@dataclass(frozen=True)
class ZooRow:
    """One line of a zoo.

    Attributes:
        id: Its name in tables, each another one.
        source: A bundle, a file, ``timm:NAME``, ``torchvision:NAME[/WEIGHTS]``, ``lite0`` or ``hf:USER/REPO``.
        sha256: What the file must hash to; of a ``timm:`` or ``torchvision:`` network its weights.
        preprocessing: Of an ONNX file without headsmith's metadata: the keys of `headsmith.models.recipe_file`, or
            the YAML file with them.
        labels: Of such a file, in the order of its outputs: a list of names, a text file with one a line, or timm's
            name of a set of classes, as ``imagenet-1k``, whose order is that of the WordNet ids.
        background: Of such a file: the output that is no class.
        output: Of such a file: the output with the scores, where several could be.
        checkpoint: Local weights of a ``timm:`` or ``torchvision:`` network.
        published: Accuracy that its authors state.
        folder: Where relative paths start.
        where: The zoo's file and the place of the row in it, for errors; empty where it stands in none.
    """

    id: str
    source: str
    sha256: str | None = None
    preprocessing: dict[str, Any] | str | None = None
    labels: list[str] | str | None = None
    background: int | None = None
    output: str | None = None
    checkpoint: str | None = None
    published: Published | None = None
    folder: Path = field(default=Path(), repr=False)
    where: str = field(default="", repr=False)


KEYS = tuple(field.name for field in fields(ZooRow) if field.name not in ("folder", "where"))


def read_manifest(path: str | Path) -> list[ZooRow]:
    """Read a zoo.

    ``models`` lists rows with the keys of `ZooRow`; paths start at the manifest's folder, or at the folder of the
    Python package that ``package`` names. Keys under ``published`` are those of `Published`.

    Args:
        path: A YAML file.

    Raises:
        InputError: The file is missing or no YAML; a key is unknown, missing or of another kind; an id stands twice.
    """
    values = _mapping(read_yaml(path), str(path), TOP)
    if not isinstance(values.get("models"), list) or not values["models"]:
        found = _short(values.get("models"))
        raise InputError(f"{path}: models holds {found}, expected a list of rows such as - id: NAME")
    folder = _folder(Path(path), values.get("package"))
    rows = [_row(row, f"{path}: model {number}", folder) for number, row in enumerate(values["models"], 1)]
    first: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        if first.setdefault(row.id, number) != number:
            raise InputError(
                f"{path}: model {number} ({printable(row.id)}): id stands at model {first[row.id]} too; expected every "
                "id once"
            )
    return rows


@cache
def known_files() -> Mapping[str, ZooRow]:
    """The files of the ONNX Model Zoo by their SHA-256."""
    return {str(row.sha256): row for row in read_manifest(KNOWN)}


def _row(values: Any, where: str, folder: Path) -> ZooRow:
    values = _mapping(values, where, KEYS)
    where = f"{where} ({printable(str(values.get('id', '?'))[:LONGEST])})"
    for key, value in values.items():
        kinds = KINDS.get(key, (str,))
        if not isinstance(value, kinds) or isinstance(value, bool):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise InputError(f"{where}: {key} holds {_short(value)}, expected {expected}")
    labels = values.get("labels")
    for number, label in enumerate(labels if isinstance(labels, list) else (), 1):
        if not isinstance(label, str):
            raise InputError(
                f"{where}: labels holds {_short(label)} at place {number}, expected a name; text that YAML reads as "
                "something else (yes, no, null, 1) stands in quotes"
            )
    if labels == []:
        raise InputError(f"{where}: labels holds [], expected a list of names")
    lacking = [key for key in ("id", "source") if not values.get(key)]
    if lacking:
        raise InputError(f"{where}: {' and '.join(lacking)} missing")
    published = values.pop("published", None)
    figures = published and _published(published, f"{where}: published")
    return ZooRow(**values, published=figures, folder=folder, where=where)


def _published(values: Any, where: str) -> Published:
    values = {"top5": None} | _mapping(values, where, PUBLISHED)
    numbers = [values.get("top1"), values["top5"]]
    right = [type(number) in (int, float) and 0 <= number <= 100 for number in numbers]
    if not (right[0] and (right[1] or numbers[1] is None) and isinstance(values.get("source"), str)):
        raise InputError(f"{where}: {_short(values)} found, expected top1 and top5 in per cent, and their source")
    return Published(**values)


def _mapping(values: Any, where: str, known: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(values, dict):
        raise InputError(f"{where}: holds {type(values).__name__}, expected keys such as {known[0]}")
    for key in values:
        if key not in known:
            raise InputError(
                f"{where}: {printable(key[:LONGEST])} is not known; expected some of {', '.join(known)}"
                f"{near(key, known)}"
            )
    return dict(values)


def _folder(path: Path, package: Any) -> Path:
    if package is None:
        return path.parent
    known = isinstance(package, str) and package.isidentifier() and package != "__main__"
    found = importlib.util.find_spec(package) if known else None
    if found is None or not found.submodule_search_locations:
        raise InputError(f"{path}: package {_short(package)} is not installed")
    return Path(found.submodule_search_locations[0])


def _short(value: Any) -> str:
    """A value of the file, short and printable."""
    text = repr(value)
    return printable(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
