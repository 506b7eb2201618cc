"""A zoo: a list of classifiers in YAML, with what their files do not say of themselves."""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from ... import models
from ...core.errors import InputError
from ...core.json_values import JsonObject
from ...core.printable import printable, shown
from ...core.typed_json import structured
from ...core.yaml_file import read_yaml
from .candidate import Published

SHIPPED = Path(models.__file__).parent / "manifests"
KNOWN = SHIPPED / "onnx-model-zoo.yaml"
LONGEST = 60
_ADVICE = "correct it; text that YAML reads as something else (yes, no, null, 1) stands in quotes"


@dataclass(frozen=True, kw_only=True)
class _Zoo:
    """What a zoo's file holds."""

    package: str | None = None
    models: list[Any]

    def __post_init__(self) -> None:
        if not self.models:
            raise ValueError("models: found an empty list, expected rows such as - id: NAME")


@dataclass(frozen=True)
class ZooEntry:
    """One line of a zoo, as its file holds it.

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
    """

    id: str
    source: str
    sha256: str | None = None
    preprocessing: JsonObject | str | None = None
    labels: list[str] | str | None = None
    background: int | None = None
    output: str | None = None
    checkpoint: str | None = None
    published: Published | None = None

    def __post_init__(self) -> None:
        for name in ("id", "source", "labels"):
            if getattr(self, name) in ("", []):
                raise ValueError(f"{name}: found nothing, expected {'names' if name == 'labels' else 'a text'}")


@dataclass(frozen=True)
class ZooRow(ZooEntry):
    """One line of a zoo, where it stands.

    Attributes:
        folder: Where relative paths start.
        where: The zoo's file and the place of the row in it, for errors; empty where it stands in none.
        by_option: What an option says, for all rows that do not.
        option: The option that named it, of a command where nothing but a zoo says more of a file; empty elsewhere.
    """

    folder: Path = field(default=Path(), repr=False)
    where: str = field(default="", repr=False)
    by_option: tuple[str, ...] = field(default=(), repr=False)
    option: str = field(default="", repr=False)

    def called(self, key: str, file: str) -> str:
        """What says something of a file, for errors: a key of the zoo's row, or an option."""
        option = key in self.by_option or not self.where
        return f"{file}: --{key}" if option else f"{self.where}: {key}"

    def advised(self, key: str, value: str = "") -> str:
        """How to say something of a file: as a key of the zoo's row, or as an option."""
        row = f"{key}: {value}".rstrip() + " in its row"
        if self.where:
            return row
        return f"{row} of a zoo.yaml, given as {self.option} zoo.yaml" if self.option else f"--{key} {value}".rstrip()


def read_manifest(path: str | Path) -> list[ZooRow]:
    """Read a zoo.

    ``models`` lists rows with the keys of `ZooEntry`; paths start at the manifest's folder, or at the folder of the
    Python package that ``package`` names. Keys under ``published`` are those of `Published`.

    Args:
        path: A YAML file.

    Raises:
        InputError: The file is missing or no YAML; a key is unknown, missing or of another kind; an id stands twice.
    """
    values = read_yaml(path)
    if not isinstance(values, dict):
        found = "nothing" if values is None else shown(values)
        raise InputError(f"{path}: {found} found, expected `models:` and below it rows such as - id: NAME")
    zoo = structured(values, _Zoo, str(path), advice=_ADVICE)
    folder = _folder(Path(path), zoo.package)
    rows = [_row(row, f"{path}: model {number}", folder) for number, row in enumerate(zoo.models, 1)]
    first: dict[str, int] = {}
    for number, row in enumerate(rows, 1):
        if first.setdefault(row.id, number) != number:
            raise InputError(
                f"{path}: model {number} ({printable(row.id)}): id is that of model {first[row.id]} too; expected "
                "every id once"
            )
    return rows


@cache
def known_files() -> Mapping[str, ZooRow]:
    """The files of the ONNX Model Zoo by their SHA-256."""
    return {str(row.sha256): row for row in read_manifest(KNOWN)}


def _row(values: Any, where: str, folder: Path) -> ZooRow:
    if isinstance(values, dict):
        where = f"{where} ({printable(str(values.get('id', '?'))[:LONGEST])})"
    return ZooRow(**vars(structured(values, ZooEntry, where, advice=_ADVICE)), folder=folder, where=where)


def _folder(path: Path, package: str | None) -> Path:
    if package is None:
        return path.parent
    known = package.isidentifier() and package != "__main__"
    found = importlib.util.find_spec(package) if known else None
    if found is None or not found.submodule_search_locations:
        raise InputError(f"{path}: package: {shown(package)} is not installed")
    return Path(found.submodule_search_locations[0])
