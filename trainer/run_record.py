"""What a run says of itself: ``run.json``."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.coded_warnings import CodedWarning, of_texts
from ..core.files import write_json
from ..core.json_values import JsonObject
from ..core.records import OPTIONAL, check_hashes, read_values, to_json, with_hashes
from ..core.typed_json import structured
from ..models.backbone_record import BackboneRecord, upgraded_backbone
from .features.images.samples import ImageSource
from .scores import SplitScores

RECORD = "run.json"
FORMAT, FORMAT_VERSION = "headsmith.run", 1
_AGAIN = "train again"


@dataclass(frozen=True)
class InitializationRecord:
    """What a head was before its first step.

    Attributes:
        source: ``random``, ``zeros``, ``backbone``, ``backbone-in-order``, or the run whose head it was.
        spec: The backbone whose classifier it was.
        unmatched: The classes that this classifier does not know, which start from zeros.
        head_sha256: Hash of the run's head.
    """

    source: str
    spec: str | None = None
    unmatched: list[str] = field(default_factory=list)
    head_sha256: str | None = None


@dataclass(frozen=True)
class FeaturesRecord:
    """What a head was fitted to.

    Attributes:
        path: The folder of the feature set; ``None`` of a fine-tuned network, whose features nobody stored.
        fingerprint: Its fingerprint, or what that of such features would be.
        source: What opened the images; ``None`` of imported features.
        dtype: Of the features.
        placement: Where the training features were, in words.
    """

    path: str | None
    fingerprint: str
    source: ImageSource | None
    dtype: str
    placement: str = ""

    @property
    def of_tuned(self) -> bool:
        """Whether the backbone learnt too, so that nothing was cached."""
        return self.path is None


@dataclass(frozen=True)
class RunResults:
    """How good a head is.

    Attributes:
        best_epoch: The epoch that was kept, from 1; 0 is what a fine-tuning started from.
        seconds: What the fit took, validation included.
        val: The scores of the kept head on validation; ``None`` without that split.
        test: The same on the test split.
    """

    best_epoch: int
    seconds: float
    val: SplitScores | None
    test: SplitScores | None


@dataclass(frozen=True, kw_only=True)
class FinetuningRecord:
    """What a fine-tuned network was before its first step, and how much of it learnt.

    Attributes:
        backbone: Its name, see `headsmith.load_backbone`.
        backbone_sha256: A hash over its parameters and buffers then.
        from_scratch: Whether they were random.
        images: Fingerprint of the images.
        learning: How many weights learnt, the head's among them.
        before: The scores of the start on validation; ``None`` where its head was not trained on its backbone.
    """

    backbone: str
    backbone_sha256: str
    from_scratch: bool
    images: str
    learning: int
    before: SplitScores | None


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A run, as ``run.json`` holds it.

    Attributes:
        format: ``headsmith.run``.
        format_version: 1.
        class_names: The C classes, in the order of the logits.
        loss: The options of the loss, by name.
        initialization: What the head was before its first step.
        backbone: What made the features; ``None`` where nobody said it.
        features: What the head was fitted to.
        results: How good it is.
        finetuning: What the backbone was before, where it learnt too; its weights are then beside the record.
        warnings: What makes it doubtful.
        device: What computed, in words.
        processes: How many did.
        seed: See `TrainConfig.seed`.
        versions: Of headsmith, Python and the packages that computed.
        created: When, in UTC (ISO 8601).
        head_sha256: Hash of ``head.safetensors``.
        config_sha256: Hash of ``config.yaml``.
        fields_sha256: Hash of each other field.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    class_names: list[str]
    loss: dict[str, bool | int | float | str | list[float] | None]
    initialization: InitializationRecord
    backbone: BackboneRecord | None
    features: FeaturesRecord
    results: RunResults
    finetuning: FinetuningRecord | None = field(default=None, metadata=OPTIONAL)
    warnings: list[CodedWarning]
    device: str
    processes: int = 1
    seed: int
    versions: dict[str, str]
    created: str
    head_sha256: str
    config_sha256: str
    fields_sha256: dict[str, str] = field(default_factory=dict)


def write_run_record(path: Path, record: RunRecord) -> None:
    """Write a record with the hashes of its fields."""
    write_json(path, with_hashes(to_json(record)))


def read_run_record(path: Path) -> RunRecord:
    """Read a run's record, of this version or an older one.

    Raises:
        InputError: No such file, or one of another format or a later version.
        DamagedFileError: A field is missing, unknown, of another kind, or was edited; or the hashes by which that is
            found are missing, as in the first runs.
    """
    values = read_values(path, format=FORMAT, version=FORMAT_VERSION, advice=_AGAIN)
    check_hashes(values, str(path), writer="the training", advice=_AGAIN)
    return structured(_upgraded(values), RunRecord, str(path), advice=_AGAIN)


def upgraded_initialization(value: Any) -> Any:
    """What older records call ``start``, as this version writes it."""
    return (
        {"source" if name == "from" else name: one for name, one in value.items()} if isinstance(value, dict) else value
    )


def _upgraded(values: JsonObject) -> JsonObject:
    """The values of an older record as this version writes them."""
    values = values | {"backbone": upgraded_backbone(values.get("backbone"))}
    if "initialization" in values:
        return values
    new: JsonObject = {"loss": {}} | values
    new["initialization"] = upgraded_initialization(new.pop("start", {"from": "zeros"}))
    new["warnings"] = of_texts(new.pop("doubts", []))
    if isinstance(results := new.get("results"), dict):
        new["results"] = results | {split: results.get(split) or None for split in ("val", "test")}
    return new
