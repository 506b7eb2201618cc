"""What an evaluation says of one classifier."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from huggingface_hub import repocard_data as hub

from ..core.coded_warnings import CodedWarning, are_worthless, of_texts
from ..core.files import read_json, write_json
from ..core.json_values import JsonObject
from ..core.records import HASHES, OPTIONAL, check_hashes, to_json, with_hashes
from ..core.typed_json import structured
from ..metrics.proportions import Share
from ..models.preprocessing import Preprocessing
from ..trainer.features.images.samples import Unreadable
from .held_out_record import ADVICE
from .measuring.published import CpuDifference, Flips, Verdict
from .measuring.speed_figures import Speed
from .metrics import ClassTable, ConfusedPairs, Reliability, Selective, Summary

# Warnings that a later timing replaces, and how their sentences began before there were codes.
BUSY, BROKEN, UNTIMED = "busy-machine", "not-finite-in-batch", "speed-not-timed"
OLD = {
    "busy machine": BUSY,
    "its answers are NaN or infinite at a batch size": BROKEN,
    "speed was not timed": UNTIMED,
}


@dataclass(frozen=True)
class EvaluationSetup:
    """What was run, and with what.

    Attributes:
        file: The name of the file that was run.
        bytes: Its size.
        parameters: Numbers in its weights; ``None`` where nobody counted them.
        image_size: Crop edge in pixels; ``None`` for a head alone.
        crop_pct: Crop edge over resized edge; ``None`` for a head alone.
        interpolation: Of the resize, or ``None``.
        preprocessing: The recipe of resize, crop and normalisation, or ``None``.
        provider: Execution provider that ran.
        provider_name: What it was asked for by: ``cpu``, or the name of a YAML file.
        provider_options: Its options, defaults of ours among them.
        nodes: How many nodes of the graph each provider runs; empty where the runtime does not say.
        threads: Threads inside an operator.
        runtime: Name and version of the runtime.
        device: What it ran on, in words.
        batch_size: Inputs a run.
        data: Where the inputs come from.
        data_sha256: Fingerprint of classes, ids, labels and contents.
        model_sha256: Fingerprint of all that can change an answer.
        labels_sha256: Hash of the classifier's class names in order.
        preprocessing_sha256: Hash of the recipe; empty where there is none.
        versions: Python and packages.
        created: UTC time.
    """

    file: str
    bytes: int
    parameters: int | None
    image_size: int | None
    crop_pct: float | None
    interpolation: str | None
    preprocessing: Preprocessing | None
    provider: str
    provider_name: str
    provider_options: dict[str, str]
    nodes: dict[str, int]
    threads: int
    runtime: str
    device: str
    batch_size: int
    data: str
    data_sha256: str
    model_sha256: str
    labels_sha256: str
    preprocessing_sha256: str
    versions: dict[str, str]
    created: str


@dataclass(frozen=True)
class EvalResult:
    """One classifier, measured on one held-out set.

    Classes are indices into ``labels``: the classes of the held-out set in its order, so that an index means the same
    for every classifier of a table, then whatever else this classifier knows.

    Attributes:
        key: Names classifier, data and provider: the folder ``models/KEY`` holds this result.
        model: Its name in the table.
        source: What was asked for: a path, ``timm:NAME``, ...
        labels: Class names; the first ones are those of the held-out set.
        summary: All figures.
        subset: All figures where only the classes of the held-out set may be answered; ``None`` where that is all.
        groups: The figures of each group of inputs.
        classes: A line a class of the held-out set; ``None`` where inputs have several right classes.
        confused: Classes that are taken for one another, the worst first; ``None`` as above.
        reliability: The reliability curve, 15 bins of equal width.
        selective: Risk against coverage.
        speed: Times and memory.
        setup: What was run, and with what.
        verdict: Beside what was published; ``None`` where nothing was.
        against: Beside another runtime; ``None`` where none was asked for.
        warnings: What to look at before the figures are used.
        not_finite: Inputs with NaN or infinite logits; NaN counts as wrong.
        not_finite_at: Batch sizes at which an input has NaN or infinite logits that is finite at another one.
        predictions_sha256: Hash of what was answered, see `Predictions.digest`; empty of older versions.
        unreadable: What was left out.
        duplicates: Inputs that an earlier one repeats, byte by byte; they count.
        notes: Facts of the classifier's setup and of the images, in words.
        beside_cpu: Beside the same file on the CPU, of at most 256 inputs; ``None`` where that ran it.
        conditions: Hash of machine, versions, threads and batch size, under which it was measured.
    """

    key: str
    model: str
    source: str
    labels: list[str]
    summary: Summary
    subset: Summary | None
    groups: dict[str, Summary]
    classes: ClassTable | None
    confused: ConfusedPairs | None
    reliability: Reliability
    selective: Selective
    speed: Speed
    setup: EvaluationSetup
    verdict: Verdict | None
    against: Flips | None
    warnings: list[CodedWarning]
    not_finite: int
    unreadable: list[Unreadable]
    duplicates: int
    notes: list[str] = field(default_factory=list)
    conditions: str = ""
    not_finite_at: list[int] = field(default_factory=list)
    beside_cpu: CpuDifference | None = field(default=None, metadata=OPTIONAL)
    predictions_sha256: str = ""

    def __post_init__(self) -> None:
        """Refuse classes that have no label, which a damaged file may name."""
        columns = [getattr(self.classes, name) for name in ("classes", "mistaken_for") if self.classes is not None]
        columns += [getattr(self.confused, name) for name in ("first", "second") if self.confused is not None]
        for column in columns:
            if not ((column >= -1) & (column < len(self.labels))).all():
                raise ValueError(f"labels: found {len(self.labels)}, expected one for every class that is named")
        for name, found in (("num_logits", self.summary.num_logits), ("num_classes", self.summary.num_classes)):
            if found != len(self.labels):
                raise ValueError(f"summary.{name}: found {found}, expected {len(self.labels)}, one for each of labels")

    @classmethod
    def read(cls, path: Path) -> "EvalResult":
        """Read ``result.json``.

        Raises:
            InputError: No such file, or no such record in it.
            DamagedFileError: A field was edited, or the hashes by which that is found are missing; files of version 1
                had none.
        """
        values = read_json(path)
        own = {name: value for name, value in values.items() if name != HASHES}
        found = structured(_upgraded(own), cls, str(path), advice=ADVICE)
        if not isinstance(values.get("flags"), list):
            check_hashes(values, str(path), writer="the evaluation", advice="evaluate again into another folder")
        return found

    def write(self, path: Path) -> None:
        """Write ``result.json``, with the hashes of its fields."""
        write_json(path, with_hashes(to_json(self)))

    @property
    def worthless(self) -> bool:
        """Whether its warnings say that the answers are no better than guesses."""
        return are_worthless(self.warnings)

    @property
    def n(self) -> int:
        """Inputs that were scored."""
        return self.summary.n

    @property
    def top1(self) -> Share | None:
        """Share of inputs whose label has the highest logit, with its interval."""
        return self.summary.top.get(1)

    @property
    def top5(self) -> Share | None:
        """The same for the five highest; ``None`` where there are fewer than five classes, or it was not asked for."""
        return self.summary.top.get(5)

    def to_model_index(self) -> list[JsonObject]:
        """The ``model-index`` of a model card on the Hugging Face hub, as JSON values: every top-k accuracy in 0..1."""
        name = Path(self.setup.data).name
        found = [
            hub.EvalResult(
                task_type="image-classification" if self.setup.image_size else "tabular-classification",
                task_name="Image classification" if self.setup.image_size else "Classification of features",
                dataset_type=name,
                dataset_name=name,
                dataset_revision=self.setup.data_sha256,
                metric_type="accuracy" if k == 1 else f"top-{k}-accuracy",
                metric_name=f"top-{k} accuracy of {self.setup.file} under {self.setup.runtime}",
                metric_value=share.value,
            )
            for k, share in self.summary.top.items()
            if share is not None
        ]
        index: list[JsonObject] = hub.eval_results_to_model_index(self.model, found)
        return index


def _upgraded(values: JsonObject) -> JsonObject:
    """The values of any version as those of this one.

    Warnings were ``flags`` without codes, and one of the notes; recipes that drop transparency said no background.
    """
    setup = values.get("setup")
    if isinstance(setup, dict) and isinstance(setup.get("preprocessing"), dict):
        recipe = {"background": None} | setup["preprocessing"]
        values = values | {"setup": setup | {"preprocessing": recipe}}
    flags, notes = values.get("flags"), values.get("notes", [])
    if not isinstance(flags, list) or not isinstance(notes, list):
        return values
    late = [note for note in notes if _code(note) is not None]
    return {name: value for name, value in values.items() if name != "flags"} | {
        "warnings": [_coded(text) for text in of_texts([*flags, *late])],
        "notes": [note for note in notes if note not in late],
    }


def _coded(warning: Any) -> Any:
    """A warning as JSON values, under the code by which a later timing finds it."""
    code = _code(warning.get("message")) if isinstance(warning, dict) else None
    return warning if code is None else warning | {"code": code}


def _code(text: Any) -> str | None:
    return next((code for start, code in OLD.items() if isinstance(text, str) and text.startswith(start)), None)


@dataclass(frozen=True)
class FailedModel:
    """A classifier that could not be measured.

    Attributes:
        model: Its name in the table.
        source: What was asked for.
        error: Why.
        key: See `EvalResult`.
    """

    model: str
    source: str
    error: str
    key: str

    @property
    def line(self) -> str:
        """Its name and why, the name left out where the reason begins with the path that it is from."""
        file = self.error.partition(": ")[0]
        return self.error if self.model in (Path(file).name, Path(file).stem) else f"{self.model}: {self.error}"
