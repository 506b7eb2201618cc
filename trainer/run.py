"""A run folder: a trained head with its settings, its history, and what it came from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, Self, TypedDict

from ..core.arguments import typed
from ..core.errors import DamagedFileError, InputError
from ..core.field_hashes import changed_fields
from ..core.files import sha256_file
from ..core.records import read_versioned
from ..core.warnings import are_worthless
from ..models.backbone_record import KnownBackbone
from ..models.heads import Head, load_head
from .config import TrainConfig

CONFIG, HEAD, RECORD = "config.yaml", "head.safetensors", "run.json"
FORMAT, FORMAT_VERSION = "headsmith.run", 1
HASHES = "fields_sha256"


class _Scores(TypedDict):
    """Empty where the feature set has no such split."""

    top1: NotRequired[float | None]
    top5: NotRequired[float | None]


class _Results(TypedDict):
    best_epoch: int
    seconds: float
    val: _Scores | None
    test: _Scores | None


class _Features(TypedDict):
    path: str
    fingerprint: str
    source: dict[str, Any] | None


class _Record(TypedDict):
    """What is read of a record later; it may hold more."""

    class_names: list[str]
    backbone: KnownBackbone | None
    features: _Features
    results: _Results
    head_sha256: str
    config_sha256: NotRequired[str]
    fields_sha256: NotRequired[dict[str, str]]
    doubts: NotRequired[list[str]]


@dataclass(frozen=True)
class Run:
    """A finished training run.

    Attributes:
        path: The run folder.
        config: The settings, every value resolved.
        head: The head of the best epoch, in evaluation mode, on the CPU.
        record: What ``run.json`` holds: ``class_names``, ``backbone``, ``features``, ``results``, ``versions``, ...
    """

    path: Path
    config: TrainConfig
    head: Head
    record: dict[str, Any]

    def __repr__(self) -> str:
        scores = [
            f"{split} {name} {100 * self.record['results'][split][key]:.1f} %"
            for split in ("val", "test")
            for key, name in (("top1", "top-1"), ("top5", "top-5"))
            if (self.record["results"][split] or {}).get(key) is not None
        ]
        return f"Run({str(self.path)!r}: {self.config.loss}, {len(self.class_names):,} classes, {', '.join(scores)})"

    @property
    def class_names(self) -> list[str]:
        """The names of the classes, in the order of the logits."""
        names: list[str] = self.record["class_names"]
        return names

    @property
    def worthless(self) -> bool:
        """Whether its doubts say that the head is no better than guesses."""
        return are_worthless(self.record["doubts"])

    @classmethod
    @typed
    def load(cls, path: str | Path) -> Self:
        """Open a run folder.

        Raises:
            InputError: A part is missing or damaged, or the head is not the one that the record describes.
            DamagedFileError: The record or the settings were edited; runs of older versions, without hashes, are not
                checked for that.
        """
        path = Path(path)
        if not path.is_dir():
            raise InputError(f"{path}: no such run folder; `headsmith train` makes one")
        if not (path / RECORD).exists():
            raise InputError(f"{path / RECORD}: not found; {_instead(path)}")
        record = read_versioned(path / RECORD, _Record, format=FORMAT, version=FORMAT_VERSION, advice="train again")
        head = load_head(path / HEAD)
        if sha256_file(path / HEAD) != record["head_sha256"]:
            raise InputError(f"{path / HEAD}: not the head that {RECORD} describes (hash differs); train again")
        edited = changed_fields(record, record[HASHES], without=(HASHES,)) if HASHES in record else []
        if edited:
            raise DamagedFileError(
                f"{path / RECORD}: {', '.join(edited[:3])}: not what the training wrote (hash differs): edited? "
                "train again"
            )
        if head.num_classes != len(record["class_names"]):
            raise InputError(f"{path}: a head of {head.num_classes} classes, {len(record['class_names'])} names")
        config = TrainConfig.load(path / CONFIG)
        if sha256_file(path / CONFIG) != record.get("config_sha256", sha256_file(path / CONFIG)):
            raise DamagedFileError(f"{path / CONFIG}: not the settings of this run (hash differs): edited? train again")
        return cls(path, config, head, record)


def _instead(path: Path) -> str:
    """What a folder without a run's record is, and what to do."""
    if (path / "sweep.json").is_file():
        return f"{path} is a sweep, whose winner is {path / 'best'}"
    if (path / "dataset_dict.json").is_file():
        return f"{path} is a feature set; train a head on it with `headsmith train` first"
    return "expected a run folder, which `headsmith train` makes"
