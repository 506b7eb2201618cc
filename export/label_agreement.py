"""Do all files of an export name their outputs alike and in one order: labels, manifest, model files, Python module?"""

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path

from ..core.errors import DamagedFileError
from .bundle.manifest import MANIFEST, Manifest
from .errors import ParityError
from .metadata import Metadata, check_labels
from .runtime import Model, open_model

LABELS = "labels.txt"


def write_labels(labels: list[str], path: Path) -> None:
    """Write the labels one a line, UTF-8, in the order of the logits."""
    path.write_text("".join(f"{label}\n" for label in labels), encoding="utf-8", newline="\n")


def read_labels(path: Path) -> list[str]:
    """Read what `write_labels` wrote.

    Raises:
        DamagedFileError: It is not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DamagedFileError(f"{path}: not UTF-8 ({error.reason}); export it again") from None


def check_label_files(folder: Path, manifest: Manifest, file: str) -> None:
    """Compare the labels of a manifest with ``labels.txt``.

    Args:
        folder: The bundle.
        manifest: What it says of itself.
        file: One of its model files, which is asked where the two differ.

    Raises:
        InputError: The labels of the manifest are not one an output.
        DamagedFileError: The two are not the same, in the same order.
    """
    stated = list(manifest.labels)
    check_labels(stated, manifest.head.num_classes, str(folder / MANIFEST))
    listed = read_labels(folder / LABELS)
    if listed == stated:
        return
    own = list(open_model(folder / file).metadata.labels)
    wrong = [name for name, labels in ((MANIFEST, stated), (LABELS, listed)) if labels != own]
    raise DamagedFileError(f"{folder}: the labels of {' and of '.join(wrong)} are not those of {file}; export it again")


def check_stated_labels(model: Model, stated: Manifest) -> None:
    """Compare the labels and the preprocessing that a model file carries with those of its bundle's manifest.

    Raises:
        DamagedFileError: They differ.
    """
    own = model.metadata
    for what, found, expected in (
        ("labels", own.labels, stated.labels),
        ("preprocessing", own.preprocessing_sha256, stated.preprocessing_sha256),
        ("input", (own.input_format, own.resize), (stated.input.format, stated.input.resize)),
    ):
        if found != expected:
            raise DamagedFileError(f"{model.path}: its {what} differ from those of {MANIFEST}; export it again")


def check_metadata(models: Mapping[str, Model], metadata: Metadata) -> None:
    """Compare labels and everything else that files say of themselves, precision and writer aside.

    Args:
        models: The files, by their names.
        metadata: What was exported.

    Raises:
        ParityError: A file says something else.
    """
    for name, model in models.items():
        own = replace(model.metadata, precision=metadata.precision, version=metadata.version)
        if None in (own.descriptions, metadata.descriptions):
            own = replace(own, descriptions=metadata.descriptions)
        wrong = [field.name for field in fields(own) if getattr(own, field.name) != getattr(metadata, field.name)]
        if wrong:
            raise ParityError(f"{name}: its {' and '.join(wrong)} differ from those that were exported; export again")
