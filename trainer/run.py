"""A run folder: a trained head, and its backbone where that learnt too, with settings, history and origin."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from ..core.arguments import typed
from ..core.coded_warnings import are_worthless
from ..core.errors import DamagedFileError, InputError
from ..core.files import sha256_file
from ..models.backbones.tuned import BACKBONE
from ..models.heads import Head, load_head
from .finetuning.settings import FinetuneConfig
from .run_record import RECORD, RunRecord, read_run_record
from .train_config import TrainConfig

CONFIG, HEAD = "config.yaml", "head.safetensors"


@dataclass(frozen=True)
class Run:
    """A finished training run.

    Attributes:
        path: The run folder.
        config: The settings, every value resolved.
        head: The head of the best epoch, in evaluation mode, on the CPU.
        record: What ``run.json`` holds; the weights of a backbone that learnt too by where they lie.
    """

    path: Path
    config: TrainConfig | FinetuneConfig
    head: Head
    record: RunRecord

    def __repr__(self) -> str:
        results = self.record.results
        scores = [
            f"{split} {name} {100 * share:.1f} %"
            for split, found in (("val", results.val), ("test", results.test))
            if found is not None
            for name, share in (("top-1", found.top1), ("top-5", found.top5))
            if share is not None
        ]
        return f"Run({str(self.path)!r}: {self.config.loss}, {len(self.class_names):,} classes, {', '.join(scores)})"

    @property
    def class_names(self) -> list[str]:
        """The names of the classes, in the order of the logits."""
        return self.record.class_names

    @property
    def worthless(self) -> bool:
        """Whether its warnings say that the head is no better than guesses."""
        return are_worthless(self.record.warnings)

    @classmethod
    @typed
    def load(cls, path: str | Path) -> Self:
        """Open a run folder.

        Raises:
            InputError: A part is missing or damaged, or the head is not the one that the record describes.
            DamagedFileError: The record or the settings were edited, or the hashes by which that is found are missing.
        """
        path = Path(path)
        if not path.is_dir():
            raise InputError(f"{path}: no such run folder; `headsmith train` makes one")
        if not (path / RECORD).exists():
            raise InputError(f"{path / RECORD}: not found; {_instead(path)}")
        record = read_run_record(path / RECORD)
        head = load_head(path / HEAD)
        if sha256_file(path / HEAD) != record.head_sha256:
            raise InputError(f"{path / HEAD}: not the head that {RECORD} describes (hash differs); train again")
        if head.num_classes != len(record.class_names):
            raise InputError(f"{path}: a head of {head.num_classes} classes, {len(record.class_names)} names")
        config = (TrainConfig if record.finetuning is None else FinetuneConfig).load(path / CONFIG)
        if record.config_sha256 != sha256_file(path / CONFIG):
            raise DamagedFileError(f"{path / CONFIG}: not the settings of this run (hash differs): edited? train again")
        return cls(path, config, head, record if record.finetuning is None else _with_backbone(record, path))


def _with_backbone(record: RunRecord, path: Path) -> RunRecord:
    """The record of a fine-tuned network that names its backbone's weights where they lie now."""
    backbone, file = record.backbone, path / BACKBONE
    if backbone is None or not file.is_file():
        raise InputError(f"{file}: not found, though {RECORD} describes it; fine-tune again")
    if sha256_file(file) != backbone.checkpoint_sha256:
        raise InputError(f"{file}: not the backbone that {RECORD} describes (hash differs); fine-tune again")
    return replace(record, backbone=replace(backbone, checkpoint=str(file)))


def _instead(path: Path) -> str:
    """What a folder without a run's record is, and what to do."""
    if (path / "sweep.json").is_file():
        return f"{path} is a sweep, whose winner is {path / 'best'}"
    if (path / "dataset_dict.json").is_file():
        return f"{path} is a feature set; train a head on it with `headsmith train` first"
    return "expected a run folder, which `headsmith train` makes"
