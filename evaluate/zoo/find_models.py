"""Find classifiers, and what must be known of each before it can be evaluated."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

import onnx_ir as ir

from ...core.errors import InputError
from ...core.files import regular_file, sha256_file, sha256_json
from ...export.bundle.bundle import Bundle
from ...export.bundle.hub import HUB
from ...export.bundle.manifest import MANIFEST
from ...export.metadata import Metadata
from ...export.runtime import open_model
from ...models.class_names import ClassNames
from ...models.onnx_graph import BESIDE, parameter_count, read_onnx
from ...models.preprocessing import Preprocessing
from .candidate import Candidate, Failed, Setup
from .external_class_names import columns
from .external_graph import describe_external
from .failure import failure
from .labels_in_metadata import other_labels
from .manifest import ZooRow, known_files
from .zoo_rows import expand, is_library

SAID = ("preprocessing", "labels", "background", "output")


@dataclass(frozen=True)
class Said:
    """What is said of all models whose rows do not say it; see `find_candidates`."""

    preprocessing: str | None
    labels: str | None
    background: int | None
    output: str | None
    checkpoint: str | None


def find_candidates(
    sources: Sequence[str | Path | ZooRow],
    *,
    preprocessing: str | Path | None = None,
    labels: str | Path | None = None,
    background: int | None = None,
    output: str | None = None,
    checkpoint: str | Path | None = None,
) -> Iterator[Candidate | Failed]:
    """Find classifiers, one after the other: a network is exported only when its turn has come.

    Args:
        sources: Each a bundle; an ONNX, TorchScript or ``.pt2`` file; a folder of such; ``hf:USER/REPO``; ``lite0``;
            ``timm:NAME`` or ``torchvision:NAME[/WEIGHTS]``, also as a pattern (``timm:resnet*``), which are exported
            to ONNX and kept in a cache; a zoo in YAML (see `headsmith.evaluate.zoo.manifest`), or ``zoo:NAME``, one
            that headsmith brings; or a row of one.
        preprocessing: YAML file with the recipe of ONNX files that do not say it.
        labels: Of such files: a text file with a name a line in the order of the outputs, or timm's name of a set
            of classes, as ``imagenet-1k``.
        background: Of such files: the output that is no class.
        output: Of such files: the output with the scores, where several could be.
        checkpoint: Local weights of a ``timm:`` or ``torchvision:`` network.

    Yields:
        Each of them as a candidate, or why it is none.

    Raises:
        InputError: A source that names nothing or stands twice, a zoo that cannot be read, or something said that none
            of them asks for; before the first one.
    """
    said = Said(_absolute(preprocessing), _absolute(labels), background, output, _absolute(checkpoint))
    rows = expand(sources)
    _check_read(rows, said)
    return map(partial(_found, said=said), rows)


def _check_read(rows: Sequence[ZooRow], said: Said) -> None:
    """Refuse what is said of files of others where every model, or its row in a zoo, says it itself."""
    given = [name for name, value in vars(said).items() if value is not None]
    foreign = [row for row in rows if _may_be_foreign(row)] if set(given) & {*SAID} else []
    for name in given:
        readers = foreign if name in SAID else [row for row in rows if is_library(row.source)]
        if all(getattr(row, name) is not None for row in readers):
            whose = "ONNX files that do not say it themselves" if name in SAID else "timm: and torchvision: networks"
            raise InputError(
                f"--{name}: {getattr(said, name)} found, but it is for {whose}, of which none is named; leave it out"
            )


def _may_be_foreign(row: ZooRow) -> bool:
    """Whether a row may be an ONNX file that says nothing of itself; one that cannot be read is told in its turn."""
    path = row.folder / row.source
    if is_library(row.source) or path.suffix != ".onnx" or not path.is_file():
        return False
    try:
        return "headsmith_version" not in read_onnx(path).metadata_props
    except InputError:
        return True


def _absolute(value: str | Path | None) -> str | None:
    """A file wherever it is looked for from; other texts as they are."""
    if value is None:
        return None
    return str(Path(value).absolute() if Path(value).is_file() else value)


def _found(row: ZooRow, said: Said) -> Candidate | Failed:
    try:
        return _candidate(row, said)
    except Exception as error:  # noqa: BLE001 - a file may make its reader raise anything, and the others are measured
        return Failed(row.id, row.source, failure(error, row.source))


def _candidate(row: ZooRow, said: Said) -> Candidate:
    if is_library(row.source):
        given = row.folder / row.checkpoint if row.checkpoint else said.checkpoint
        checkpoint = None if given is None else Path(given)
        from .exported import exported

        network = exported(row.source, checkpoint)
        _check_hash(row, network.weights_sha256, row.source)
        found = _onnx(row, network.path, said)
        figures = row.published or network.published
        return replace(found, published=figures, parameters=network.parameters, checkpoint=checkpoint)
    path = row.folder / row.source
    if row.source.startswith(HUB) or (path / MANIFEST).is_file():
        bundle = Bundle.load(row.source if row.source.startswith(HUB) else path)
        found = _file(row, bundle.path / next(iter(bundle.model_files.values())), said)
        return replace(found, parameters=bundle.manifest.parameters, bundle=bundle)
    return _file(row, path, said)


def _file(row: ZooRow, path: Path, said: Said) -> Candidate:
    if not path.exists() or path.is_dir():
        raise InputError(f"{path}: no such model; expected a bundle, a file, timm:NAME, torchvision:NAME or a zoo.yaml")
    regular_file(path)
    if row.checkpoint is not None:
        raise InputError(f"{path}: checkpoint {row.checkpoint} found, which is for timm: and torchvision: networks")
    _check_hash(row, row.sha256 and sha256_file(path), str(path))
    if path.suffix == ".onnx":
        return _onnx(row, path, said)
    return _own(row, path, open_model(path).metadata, None)


def _check_hash(row: ZooRow, found: str | None, where: str) -> None:
    if row.sha256 is not None and found != row.sha256:
        raise InputError(f"{where}: sha256 {found} found, its row says {row.sha256}; is it another version?")


def _onnx(row: ZooRow, path: Path, said: Said) -> Candidate:
    model = read_onnx(path)
    if "headsmith_version" in model.metadata_props:
        return _own(row, path, Metadata.from_strings(dict(model.metadata_props), str(path)), model)
    by_option = tuple(key for key in SAID if getattr(row, key) is None and getattr(said, key) is not None)
    row = replace(row, **{key: getattr(said, key) for key in by_option}, by_option=by_option)
    known = known_files().get(sha256_file(path)) if all(getattr(row, key) is None for key in SAID) else None
    if known is not None:
        row = replace(known, id=row.id, source=row.source, published=row.published or known.published)
    external = describe_external(model, row, str(path))
    found = _build(row, path, external.names, external.preprocessing, model, external.setup)
    origin = () if known is None else (f"known by its hash as {known.id} of the ONNX Model Zoo",)
    warnings = (*external.setup.warnings, *other_labels(model, external.names))
    return replace(found, notes=(*origin, *external.setup.notes), warnings=warnings)


def _own(row: ZooRow, path: Path, metadata: Metadata, model: ir.Model | None) -> Candidate:
    said = [key for key in SAID if getattr(row, key) is not None]
    if said:
        raise InputError(f"{path}: already has its {said[0]}; leave that out of its row")
    found = _build(row, path, columns(metadata.labels), metadata.preprocessing, model, None)
    return replace(found, head_only=metadata.head_only)


def _build(
    row: ZooRow,
    path: Path,
    names: ClassNames,
    preprocessing: Preprocessing | None,
    model: ir.Model | None,
    setup: Setup | None,
) -> Candidate:
    files = [path, *(model.meta[BESIDE] if model else ())]
    hashes = [sha256_file(file) for file in files]
    recipe = None if preprocessing is None else preprocessing.to_dict()
    return Candidate(
        id=row.id,
        source=row.source,
        path=path,
        names=names,
        preprocessing=preprocessing,
        head_only=False,
        setup=setup,
        published=row.published,
        parameters=None if model is None else parameter_count(model),
        bytes=sum(file.stat().st_size for file in files),
        fingerprint=sha256_json([hashes, recipe, setup and asdict(setup), [list(column) for column in names]]),
    )
