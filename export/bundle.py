"""The folder of an exported classifier."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from ..models.errors import DamagedFileError, InputError
from ..models.files import read_json, sha256_file
from ..models.preprocessing import Preprocessing
from .formats import FORMATS, open_model
from .hub import local_folder
from .labels import check_labels
from .runtime import Model

FORMAT = "headsmith.bundle"
FORMAT_VERSION = 1
MANIFEST, LABELS, CARD, PARITY = "manifest.json", "labels.txt", "README.md", "parity.json"


@dataclass(frozen=True)
class Bundle:
    """An exported classifier: model files, labels, manifest, model card and parity report.

    Attributes:
        path: The folder.
        manifest: What ``manifest.json`` holds.
        source: What it was loaded from: the folder, or ``hf:USER/REPO``.
    """

    path: Path
    manifest: dict[str, Any]
    source: str

    @property
    def class_names(self) -> list[str]:
        """The labels, in the order of the logits."""
        return list(self.manifest["labels"])

    @cached_property
    def preprocessing(self) -> Preprocessing:
        """What stands before the files (resize, crop) and inside them (scale, mean, std).

        Raises:
            InputError: The files take features of a backbone that nobody knows.
        """
        if self.manifest["preprocessing"] is None:
            raise InputError(f"{self.path}: takes features whose backbone is not known, it cannot take images")
        return Preprocessing.from_dict(self.manifest["preprocessing"])

    @property
    def head_only(self) -> bool:
        """Whether the files take features instead of pixels."""
        return bool(self.manifest["input"]["format"] == "features")

    @classmethod
    def load(cls, source: str | Path) -> Self:
        """Open a bundle and check that its parts belong together.

        Args:
            source: Its folder, or ``hf:USER/REPO`` on the Hugging Face hub; see `headsmith.export.hub`.

        Raises:
            InputError: A part is missing, damaged or of another bundle, or the labels are not one an output.
        """
        path = local_folder(str(source))
        if not path.is_dir():
            raise InputError(f"{path}: no such bundle; `headsmith export` makes one")
        manifest = read_json(path / MANIFEST)
        if (manifest.get("format"), manifest.get("format_version")) != (FORMAT, FORMAT_VERSION):
            raise InputError(
                f"{path / MANIFEST}: format {manifest.get('format')!r} {manifest.get('format_version')!r}, expected "
                f"{FORMAT!r} {FORMAT_VERSION}; export it again"
            )
        bundle = cls(path, manifest, str(source))
        bundle._check_files()
        check_labels(bundle.class_names, manifest["head"]["num_classes"], str(path / MANIFEST))
        if read_labels(path / LABELS) != bundle.class_names:
            raise InputError(f"{path / LABELS}: not the labels of {MANIFEST}; export it again")
        return bundle

    def open(self, format: str = "onnx", *, provider: str = "cpu", threads: int | None = None) -> Model:
        """Open one of the model files; see `headsmith.export.formats`.

        Raises:
            InputError: The bundle has no such file, it cannot run here, or its own metadata name other labels.
        """
        if format not in FORMATS:
            raise InputError(f"--format {format}: not known; expected one of {', '.join(FORMATS)}")
        pattern = FORMATS[format].file
        name = next((name for name in self.manifest["files"] if fnmatchcase(name, pattern)), None)
        if name is None:
            raise InputError(f"{self.path}: holds no {pattern}; export it again with --format {format}")
        model = open_model(self.path / name, provider=provider, threads=threads)
        expected = (self.class_names, self.manifest["preprocessing_sha256"])
        if (list(model.metadata.labels), model.metadata.preprocessing_sha256) != expected:
            raise InputError(f"{model.path}: its labels or preprocessing are not those of {MANIFEST}; export it again")
        return model

    def _check_files(self) -> None:
        for name, expected in self.manifest["files"].items():
            file = self.path / name
            if not file.is_file():
                raise DamagedFileError(f"{file}: missing, but {MANIFEST} lists it; export it again")
            size = file.stat().st_size
            if size != expected["bytes"]:
                raise DamagedFileError(
                    f"{file}: {size} bytes, {MANIFEST} says {expected['bytes']}: truncated or from another bundle; "
                    "export it again"
                )
            if sha256_file(file) != expected["sha256"]:
                raise DamagedFileError(
                    f"{file}: not the file that {MANIFEST} lists (its hash differs): damaged or from another bundle; "
                    "export it again"
                )


def write_labels(labels: list[str], path: Path) -> None:
    """Write the labels one a line, UTF-8, in the order of the logits."""
    path.write_text("".join(f"{label}\n" for label in labels), encoding="utf-8", newline="\n")


def read_labels(path: Path) -> list[str]:
    """Read what `write_labels` wrote."""
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
