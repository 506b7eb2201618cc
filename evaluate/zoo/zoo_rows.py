"""From what a user names to rows of a zoo."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ...core.errors import InputError, near
from ...export.bundle.hub import HUB
from ...export.bundle.manifest import MANIFEST
from ...export.formats.registry import FORMATS
from ...models.backbones.libraries import TIMM, TORCHVISION, matching
from .manifest import KNOWN, SHIPPED, ZooRow, read_manifest

ZOO = "zoo:"
SUFFIXES = {Path(entry.file).suffix for entry in FORMATS.values()} - {".safetensors"}


def expand(sources: Sequence[str | Path | ZooRow]) -> list[ZooRow]:
    """Rows in the order given; those of a folder and of a pattern by name.

    Args:
        sources: See `headsmith.evaluate.zoo.find_candidates`; rows are taken as they are.

    Raises:
        InputError: A source that names nothing, or one that is named twice.
    """
    rows = [row for one in sources for row in ([one] if isinstance(one, ZooRow) else _rows(str(one)))]
    count = Counter(row.id for row in rows)
    rows = [row if count[row.id] == 1 else replace(row, id=row.source) for row in rows]
    name, most = Counter(row.id for row in rows).most_common(1)[0] if rows else ("", 0)
    if not most:
        raise InputError("no model named; expected bundles, files, timm:NAME, torchvision:NAME or a zoo.yaml")
    if most > 1:
        raise InputError(f"{name}: named {most} times; expected every model once")
    return rows


def is_library(source: str) -> bool:
    """Whether a network of a library is meant."""
    return source == "lite0" or source.startswith((TIMM, TORCHVISION))


def is_local(row: ZooRow) -> bool:
    """Whether a file or a folder of this machine is meant."""
    return not is_library(row.source) and not row.source.startswith(HUB)


def _rows(source: str) -> Iterator[ZooRow]:
    path = Path(source)
    if source.startswith(ZOO):
        yield from read_manifest(_shipped(source))
    elif path.suffix in (".yaml", ".yml"):
        yield from read_manifest(path)
    elif source.startswith((TIMM, TORCHVISION)):
        yield from (ZooRow(name, name) for name in matching(source, source))
    elif path.is_dir() and not (path / MANIFEST).is_file():
        yield from _inside(path)
    elif source.startswith(HUB) or source == "lite0":
        yield ZooRow(source, source)
    else:
        yield ZooRow(path.resolve().stem if path.suffix in SUFFIXES else path.resolve().name, source)


def _shipped(source: str) -> Path:
    known = {path.stem: path for path in sorted(SHIPPED.glob("*.yaml")) if path != KNOWN}
    name = source.removeprefix(ZOO)
    if name not in known:
        raise InputError(f"{source}: no such zoo; expected one of {', '.join(known)}{near(name, known)}")
    return known[name]


def _inside(folder: Path) -> Iterator[ZooRow]:
    """Bundles and model files in a folder."""
    found = [path for path in sorted(folder.iterdir()) if path.suffix in SUFFIXES or (path / MANIFEST).is_file()]
    if not found:
        raise InputError(
            f"{folder}: no model in it; expected bundles or files that end in {', '.join(sorted(SUFFIXES))}"
        )
    yield from (ZooRow(path.stem if path.is_file() else path.name, str(path)) for path in found)
