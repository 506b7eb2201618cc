"""From what a user names to the heads that a benchmark trains and the files that it measures."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from ...core.errors import InputError, near
from ...core.files import sha256_file, sha256_json
from ...core.printable import short, shown
from ...core.yaml_file import read_yaml
from ...export.bundle.hub import HUB
from ...models.backbones.libraries import ONNX
from ...models.backbones.lists import expand_backbones
from ...models.execution_provider import ExecutionProvider, provider_of
from ...trainer.sweep.grid import read_plan
from ..zoo.zoo_rows import ZOO, is_library
from .options import BenchmarkOptions

DEFAULT = "default"
FULL = "fp32"
SUFFIXES = (".yaml", ".yml")
_KEYS = "backbones: [lite0]"
_FILES = {"checkpoint": "local weights such as net.pth", "preprocessing": "a YAML file with a recipe"}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A backbone as a benchmark takes it; see `headsmith.extract` for all but the name.

    Attributes:
        backbone: ``lite0``, ``timm:NAME``, ``torchvision:NAME[/WEIGHTS]`` or ``onnx:FILE``.
        name: Its name in tables; by default made of the backbone's.
        checkpoint: Local weights.
        image_size: Crop edge in pixels.
        preprocessing: YAML file with the recipe of an ONNX file.
        layer: Last layer of an ONNX file.
        drop_background: Whether the first output of an ONNX file is no class.
    """

    backbone: str
    name: str = ""
    checkpoint: str | None = None
    image_size: int | None = None
    preprocessing: str | None = None
    layer: str | None = None
    drop_background: bool = False


@dataclass(frozen=True)
class Unit:
    """What is extracted and swept once, and exported at each precision.

    Attributes:
        entry: The backbone with its image size.
        base: The name of its features.
        sweep: The preset of the sweep, or its file.
        precisions: Of the files.
    """

    entry: Entry
    base: str
    sweep: str
    precisions: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of its sweep, and of its float32 file."""
        grid = Path(self.sweep).stem if self.config else self.sweep.replace("/", "-")
        return self.base if self.sweep == DEFAULT else f"{self.base}-{grid}"

    @property
    def config(self) -> str | None:
        """The file of the sweep, where it is none of the presets."""
        return self.sweep if self.sweep.endswith(SUFFIXES) else None

    @property
    def preset(self) -> str | None:
        """The preset of the sweep, where it is no file."""
        return None if self.config else self.sweep

    def named(self, precision: str) -> str:
        """The name of a file in tables, and of its bundle's folder."""
        return self.name if precision == FULL else f"{self.name}-{precision}"


def read_config(path: str | Path) -> tuple[list[Entry], dict[str, Any]]:
    """The backbones and the options that a YAML file names; paths start at its folder.

    Raises:
        InputError: No such file, no YAML, or a key that is unknown or of another kind.
    """
    if not Path(path).exists():
        raise InputError(
            f"--config: {path}: not found, expected a YAML file with keys such as `{_KEYS}`; correct the path"
        )
    values = read_yaml(path)
    known = ("backbones", *(field.name for field in fields(BenchmarkOptions)))
    if not isinstance(values, Mapping):
        raise InputError(f"{path}: {shown(values)} found, expected keys such as `{_KEYS}`")
    for key in values:
        if key not in known:
            hint = near(key, known) or f"; expected some of {', '.join(known)}"
            raise InputError(f"{path}: {short(key)}: is not known{hint}")
    options = {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
    several = {field.name for field in fields(BenchmarkOptions) if isinstance(field.default, tuple)}
    options |= {key: (value,) for key, value in options.items() if key in several and not isinstance(value, tuple)}
    if all(isinstance(one, str) for one in options.get("sweep", ())):
        grids = [str(Path(path).parent / one) if one.endswith(SUFFIXES) else one for one in options.get("sweep", ())]
        options |= {"sweep": tuple(grids)} if grids else {}
    if "provider" in options:
        options |= {"provider": tuple(_provider_from(Path(path), one) for one in options["provider"])}
    if all(isinstance(one, str) for one in options.get("also", ())):
        there = tuple(_model_from(Path(path).parent, one) for one in options.get("also", ()))
        options |= {"also": there} if there else {}
    rows = values.get("backbones", [])
    if isinstance(rows, str):
        rows = [rows]
    if not isinstance(rows, list):
        raise InputError(f"{path}: backbones: {shown(rows)} found, expected a list of backbones")
    entries = [_entry(row, f"{path}: backbone {number}", Path(path).parent) for number, row in enumerate(rows, 1)]
    return entries, {key: value for key, value in options.items() if key != "backbones"}


def expanded(entries: Sequence[Entry], *, many: bool) -> list[Entry]:
    """The backbones that lists, patterns and folders stand for; of several names of the same weights the first stays.

    Args:
        entries: Whose backbone may be whatever `expand_backbones` takes, where nothing else is said of it.
        many: Whether there may be more than 50 of them.

    Raises:
        InputError: See `expand_backbones`.
    """
    plain = [entry.backbone for entry in entries if entry == Entry(backbone=entry.backbone)]
    named = [Entry(backbone=spec) for spec in expand_backbones(plain, allow_many=many)] if plain else []
    said = [entry for entry in entries if entry != Entry(backbone=entry.backbone)]
    for entry in said:
        if expand_backbones([entry.backbone], allow_many=True) != [entry.backbone]:
            raise InputError(f"--backbones {entry.backbone}: stands for several, expected one where more is said of it")
    return [*named, *said]


def _entry(row: Any, where: str, folder: Path) -> Entry:
    if isinstance(row, str):
        return Entry(backbone=_from(folder, row))
    if not isinstance(row, Mapping):
        raise InputError(f"{where}: {shown(row)} found, expected a backbone such as lite0, or keys such as `backbone:`")
    kinds = {field.name: field.type for field in fields(Entry)}
    for key, value in row.items():
        if key not in kinds:
            raise InputError(
                f"{where}: {short(key)}: is not known; expected some of {', '.join(kinds)}{near(key, kinds)}"
            )
        kind = {"image_size": int, "drop_background": bool}.get(key, str)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise InputError(f"{where}: {key}: {shown(value)} found, expected {kind.__name__}")
    if not row.get("backbone"):
        raise InputError(f"{where}: backbone: missing, expected one such as lite0 or timm:resnet18")
    found = Entry(**row)
    paths: dict[str, Any] = {key: str(folder / value) for key in _FILES if (value := getattr(found, key)) is not None}
    for key, there in paths.items():
        if not Path(there).exists():
            raise InputError(
                f"{where}: {key}: {there}: not found, expected {_FILES[key]}; correct the path, or leave it out"
            )
    return replace(found, backbone=_from(folder, found.backbone), **paths)


def _from(folder: Path, backbone: str) -> str:
    """A backbone whose files start at a folder."""
    if backbone.startswith(ONNX):
        return f"{ONNX}{folder / backbone.removeprefix(ONNX)}"
    return str(folder / backbone) if backbone.endswith(SUFFIXES) else backbone


def _provider_from(path: Path, given: Any) -> ExecutionProvider:
    """An execution provider; a file of one starts at the folder of the file that names it."""
    there = path.parent / given if isinstance(given, str) and given.endswith(SUFFIXES) else given
    return provider_of(there, f"{path}: provider")


def _model_from(folder: Path, source: str) -> str:
    """A bundle or a file that starts at a folder; names of a library, a hub or a packaged zoo as they are."""
    return source if is_library(source) or source.startswith((ZOO, HUB)) else str(folder / source)


def units_of(entries: Sequence[Entry], options: BenchmarkOptions) -> list[Unit]:
    """Every backbone at every image size with every sweep.

    Raises:
        InputError: No backbone, one that is named twice, or a preset that is not known.
    """
    if not entries:
        raise InputError(
            "--backbones: none found, expected some such as lite0, timm:resnet18 or a list; see `headsmith backbones`"
        )
    units = [
        Unit(sized, _name(sized), sweep, options.precision)
        for entry in entries
        for sized in _sized(entry, options.image_size)
        for sweep in options.sweep
    ]
    for unit in units[: len(options.sweep)]:
        _check_sweep(unit)
    name, most = Counter(unit.name for unit in units).most_common(1)[0]
    if most > 1:
        raise InputError(
            f"--backbones: {name}: named {most} times, expected each once; a `name` in a --config tells two apart"
        )
    return units


def _check_sweep(unit: Unit) -> None:
    """Refuse a preset or a file that no sweep takes, before anything is done."""
    try:
        read_plan(unit.config, unit.preset, None)
    except InputError as error:
        raise InputError(f"--sweep: {str(error).removeprefix('preset: ')}" if unit.preset else str(error)) from None


def _sized(entry: Entry, sizes: Sequence[int]) -> list[Entry]:
    if entry.backbone.startswith(ONNX) or entry.image_size is not None or not sizes:
        return [entry]
    name = f"{entry.name}-{{}}" if entry.name else ""
    return [replace(entry, image_size=size, name=name.format(size)) for size in sizes]


def _name(entry: Entry) -> str:
    """A backbone's name as that of a folder: ``timm-resnet18.a1_in1k-224``."""
    named = entry.name
    if not named:
        library, colon, rest = entry.backbone.partition(":")
        named = f"{library}-{Path(rest).stem if library == 'onnx' else rest}" if colon else library
    if entry.image_size is not None and not entry.name:
        named = f"{named}-{entry.image_size}"
    return re.sub(r"[^\w.+-]+", "-", named).strip("-.") or "backbone"


def keys_of(units: Sequence[Unit], images: str, max_drop: float) -> dict[str, str]:
    """The key of every row by its name: see `key_of`. It reads all weights."""
    return {
        unit.named(precision): key_of(unit, precision, images, max_drop)
        for unit in units
        for precision in unit.precisions
    }


def key_of(unit: Unit, precision: str, images: str, max_drop: float) -> str:
    """A hash of all that decides a row: the images, the backbone and its weights, the sweep, the precision.

    Args:
        unit: Backbone and sweep.
        precision: Of the file.
        images: Fingerprint of the images.
        max_drop: What a lower precision may lose.
    """
    entry = unit.entry
    onnx_file = Path(entry.backbone.removeprefix(ONNX)) if entry.backbone.startswith(ONNX) else None
    files = [entry.checkpoint, entry.preprocessing, onnx_file, unit.config, *_weights_beside(onnx_file)]
    hashes = [sha256_file(file) if file and Path(file).is_file() else None for file in files]
    asked = [
        entry.backbone if onnx_file is None else ONNX,  # a file is its bytes, wherever it is called from
        entry.image_size,
        entry.layer,
        entry.drop_background,
        hashes,
        unit.sweep if unit.preset else None,
    ]
    return sha256_json([images, asked, precision, None if precision == FULL else max_drop])[:32]


def _weights_beside(onnx_file: Path | None) -> list[Path]:
    """The files that hold weights of an ONNX file; none of one that cannot be read, whose row will say why."""
    if onnx_file is None or not onnx_file.is_file():
        return []
    from ...models.onnx_graph import read_proto
    from ...models.onnx_graph.external import external_files

    try:
        return external_files(read_proto(onnx_file), onnx_file)
    except InputError:
        return []
