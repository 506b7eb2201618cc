"""The folder of an exported classifier."""

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Self

from ...core.errors import DamagedFileError, InputError
from ...core.files import regular_file, sha256_file
from ...models.execution_provider import AnyProvider
from ...models.preprocessing import Preprocessing
from ..formats.registry import FORMATS
from ..label_agreement import LABELS, check_label_files, check_stated_labels
from ..options import FEATURES
from ..runtime import Model, open_model
from .hub import local_folder
from .manifest import MANIFEST, Manifest, read_manifest

CARD, PARITY = "README.md", "parity.json"


@dataclass(frozen=True)
class Bundle:
    """An exported classifier: model files, labels, manifest, model card and parity report.

    Attributes:
        path: The folder.
        manifest: What ``manifest.json`` holds.
        source: What it was loaded from: the folder, or ``hf:USER/REPO``.
    """

    path: Path
    manifest: Manifest
    source: str

    @property
    def class_names(self) -> list[str]:
        """The labels, in the order of the logits."""
        return list(self.manifest.labels)

    @property
    def preprocessing(self) -> Preprocessing:
        """What stands before the files (resize, crop) and inside them (scale, mean, std).

        Raises:
            InputError: The files take features of a backbone that nobody knows.
        """
        if self.manifest.preprocessing is None:
            raise InputError(f"{self.path}: takes features whose backbone is not known, it cannot take images")
        return self.manifest.preprocessing

    @property
    def head_only(self) -> bool:
        """Whether the files take features instead of pixels."""
        return self.manifest.input.format == FEATURES

    @cached_property
    def model_files(self) -> dict[str, str]:
        """By format the file to open, relative to the folder, in the order of `headsmith.export.runtime`."""
        return {
            format: name
            for format, known in FORMATS.items()
            for name in self.manifest.files
            if fnmatchcase(name, known.file)
        }

    @classmethod
    def load(cls, source: str | Path) -> Self:
        """Open a bundle and check that its parts belong together.

        Args:
            source: Its folder, or ``hf:USER/REPO`` on the Hugging Face hub; see `headsmith.export.bundle.hub`.

        Raises:
            InputError: It is no bundle of this version, or the labels are not one an output.
            DamagedFileError: A part is missing, damaged, edited or of another bundle.
        """
        path = local_folder(str(source))
        if not path.is_dir():
            raise InputError(f"{path}: no such bundle; `headsmith export` makes one")
        bundle = cls(path, read_manifest(path / MANIFEST), str(source))
        bundle._check_files()
        check_label_files(path, bundle.manifest, next(iter(bundle.model_files.values())))
        return bundle

    def open(self, format: str = "onnx", *, provider: AnyProvider = "cpu", threads: int | None = None) -> Model:
        """Open one of the model files; see `headsmith.export.runtime`.

        Raises:
            InputError: The bundle has no such file, or it cannot run here.
            DamagedFileError: The file's own metadata are not what the manifest says.
        """
        if format not in FORMATS:
            raise InputError(f"--format {format}: not known; expected one of {', '.join(FORMATS)}")
        if format not in self.model_files:
            raise InputError(f"{self.path}: holds no {FORMATS[format].file}; export it again with --format {format}")
        model = open_model(self.path / self.model_files[format], provider=provider, threads=threads)
        check_stated_labels(model, self.manifest)
        return model

    def _check_files(self) -> None:
        where, models = self.path / MANIFEST, self.model_files.values()
        if not models:
            raise DamagedFileError(f"{where}: `files` lists no model file; export it again")
        for key, names, found in (
            ("files", (LABELS, CARD), self.manifest.files.keys()),
            ("parity", models, self.manifest.parity.keys()),
        ):
            missing = [name for name in names if name not in found]
            if missing:
                raise DamagedFileError(f"{where}: `{key}` does not list {missing[0]}; export it again")
        for name, expected in self.manifest.files.items():
            file = self.path / name
            if not file.exists():
                raise DamagedFileError(f"{file}: missing, but {MANIFEST} lists it; export it again")
            size = regular_file(file).stat().st_size
            if size != expected.bytes:
                raise DamagedFileError(
                    f"{file}: {size} bytes, {MANIFEST} says {expected.bytes}: truncated or from another bundle; "
                    "export it again"
                )
            if sha256_file(file) != expected.sha256:
                raise DamagedFileError(
                    f"{file}: not the file that {MANIFEST} lists (its hash differs): damaged or from another bundle; "
                    "export it again"
                )
