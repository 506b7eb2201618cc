"""What a bundle says of itself: ``manifest.json``."""

from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from ...core.coded_warnings import CodedWarning
from ...core.errors import InputError
from ...core.files import read_json
from ...core.json_values import JsonObject
from ...core.records import OPTIONAL
from ...core.typed_json import structured
from ...metrics.paired import PairedCounts
from ...metrics.proportions import Share
from ...models.backbone_record import BackboneRecord, upgraded_backbone
from ...models.preprocessing import Preprocessing, upgraded_recipe
from ...models.runtime_settings import RuntimeSettings
from ...trainer.features.images.samples import Unreadable
from ...trainer.run_record import RunResults
from ..parity.parity_report import ParityReport, ParitySummary
from ..provenance import FeaturesOrigin

FORMAT, FORMAT_VERSION = "headsmith.bundle", 1
MANIFEST = "manifest.json"
# Where ``parity.json`` has a hash of each field, less those of the files, among them its own, and the date, in which
# two equal exports differ.
FIELD, UNHASHED = "manifest", ("files", "created")
AGAIN = "export it again"
Setting = bool | int | float | str | list[float] | None


@dataclass(frozen=True)
class InputRecord:
    """What the files take.

    Attributes:
        name: The input's name.
        format: See `Metadata.input_format`.
        dtype: Of its elements.
        shape: Its axes, free ones by name.
        resize: Whether resize and crop are inside the files.
    """

    name: str
    format: str
    dtype: str
    shape: tuple[int | str, ...]
    resize: bool


@dataclass(frozen=True)
class HeadRecord:
    """The head that was trained.

    Attributes:
        kind: Its kind.
        options: What it was built with.
        in_features: D.
        num_classes: C.
        sha256: Of its file in the run.
    """

    kind: str
    options: dict[str, Setting]
    in_features: int
    num_classes: int
    sha256: str


@dataclass(frozen=True)
class ProofInputs:
    """The inputs of the proof.

    Attributes:
        fingerprint: SHA-256 over classes, ids, labels and contents.
        n: How many were read.
        unreadable: Those that were left out.
    """

    fingerprint: str
    n: int
    unreadable: tuple[Unreadable, ...]


@dataclass(frozen=True)
class Accuracy:
    """The accuracy of a file's own logits; ``top5`` is ``None`` where there are fewer than five classes."""

    top1: Share
    top5: Share | None


@dataclass(frozen=True)
class MeasuredPrecision:
    """A file on the validation inputs.

    Attributes:
        top1: Accuracy of its logits.
        top5: The same for the five best; ``None`` with fewer than five classes.
        images_per_second: Through the runtime; decoding and layout are not counted.
    """

    top1: Share
    top5: Share | None
    images_per_second: float


@dataclass(frozen=True, kw_only=True)
class PrecisionRecord:
    """A file in lower precision beside the float32 file: the figures of a `GateReport`, without the list of flips."""

    precision: str
    data: str
    full: MeasuredPrecision
    lower: MeasuredPrecision
    tests: dict[str, PairedCounts]
    agreement: ParitySummary
    most_predicted: str
    most_predicted_share: float
    settings: RuntimeSettings
    max_drop: float
    top1_drop: float
    top5_drop: float | None
    flips: int
    passed: bool
    one_input: float
    smallest_drop: float | None
    power: str


@dataclass(frozen=True)
class Confidence:
    """How a head's probabilities fit the labels of a split.

    Attributes:
        n: Rows.
        nll: Mean negative log-likelihood of the labels, in nats.
        ece: Expected calibration error, in 0..1, over 15 bins of equal width.
    """

    n: int
    nll: float
    ece: float


@dataclass(frozen=True)
class Calibration:
    """A temperature, and what it changes. The order of the classes stays.

    Attributes:
        temperature: What the logits are divided by; 1 where validation has no best one.
        before: By split (``val``, on which it was fitted, and ``test``), with the logits as they were.
        after: The same with the logits divided.
    """

    temperature: float
    before: dict[str, Confidence]
    after: dict[str, Confidence]


@dataclass(frozen=True, kw_only=True)
class ResizeParity(ParityReport):
    """How near resize and crop inside the files come to PIL's, which are the reference; flips excuse nothing.

    Attributes:
        largest_pixel_difference: Of 255. PIL rounds to whole pixels, the graph does not.
        mean_pixel_difference: Mean absolute difference of a pixel.
    """

    largest_pixel_difference: float
    mean_pixel_difference: float


@dataclass(frozen=True)
class FileRecord:
    """A file of a bundle: its hash and its size."""

    sha256: str
    bytes: int


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A bundle, as ``manifest.json`` holds it.

    Attributes:
        format: ``headsmith.bundle``.
        format_version: 1.
        labels: C class names, in the order of the logits.
        labels_sha256: See `Metadata.labels_sha256`.
        preprocessing: See `Metadata.preprocessing`.
        preprocessing_sha256: See `Metadata.preprocessing_sha256`.
        input: What the files take.
        outputs: The names of what they answer, in order.
        k: How many classes they name by themselves.
        parameters: How many weights the classifier has.
        backbone: What made the features; ``None`` where nobody said it.
        head: The head that was trained.
        training: The settings of the training, by name.
        results: How good the head is on cached features.
        features: What the head was fitted to.
        held_out: The inputs of the proof.
        accuracy: Of each model file.
        parity: Of each model file, with the Python module.
        precision: What a lower precision costs, where one was asked for.
        calibration: The temperature in the weights, where one was asked for.
        resize: How near a resize inside the files comes to PIL's.
        warnings: What makes the figures doubtful; bundles from before have none.
        versions: Of headsmith, Python and the packages that exported.
        created: When, in UTC (ISO 8601).
        files: Every other file of the bundle, by its name relative to the folder.
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    labels: tuple[str, ...]
    labels_sha256: str
    preprocessing: Preprocessing | None
    preprocessing_sha256: str
    input: InputRecord
    outputs: tuple[str, ...]
    k: int
    parameters: int
    backbone: BackboneRecord | None
    head: HeadRecord
    training: dict[str, Setting]
    results: RunResults
    features: FeaturesOrigin
    held_out: ProofInputs
    accuracy: dict[str, Accuracy]
    parity: dict[str, ParitySummary]
    precision: PrecisionRecord | None
    calibration: Calibration | None
    resize: ResizeParity | None = field(default=None, metadata=OPTIONAL)
    warnings: tuple[CodedWarning, ...] = ()
    versions: dict[str, str]
    created: str
    files: dict[str, FileRecord]

    def __post_init__(self) -> None:
        """Refuse files outside of the folder, and a recipe that is not that of its hash."""
        for name in self.files:
            if not _is_inside(name):
                raise ValueError(f"files: found {name!r}, expected files inside the bundle's folder; do not use it")
        if self.preprocessing_sha256 != ("" if self.preprocessing is None else self.preprocessing.digest):
            raise ValueError("preprocessing: is not what preprocessing_sha256 was taken of: edited by hand?")


def read_manifest(path: Path) -> Manifest:
    """Read a bundle's manifest, of this version or an older one.

    Raises:
        InputError: No such file, or one of another format.
        DamagedFileError: A field is missing, unknown, of another kind, or contradicts its own hash; or a file lies
            outside of the bundle's folder.
    """
    values = read_json(path)
    if (values.get("format"), values.get("format_version")) != (FORMAT, FORMAT_VERSION):
        raise InputError(
            f"{path}: format {values.get('format')!r} {values.get('format_version')!r}, expected {FORMAT!r} "
            f"{FORMAT_VERSION}; {AGAIN}"
        )
    return structured(_upgraded(values), Manifest, str(path), advice=AGAIN)


def _upgraded(values: JsonObject) -> JsonObject:
    """The values of an older manifest as this version writes them, without what follows from others."""
    new: JsonObject = {"precision": None, "calibration": None} | values
    for name, upgraded in (("preprocessing", upgraded_recipe), ("backbone", upgraded_backbone)):
        if name in new:
            new[name] = upgraded(new[name])
    if isinstance(results := new.get("results"), dict):
        new["results"] = results | {split: results.get(split) or None for split in ("val", "test")}
    if isinstance(resize := new.get("resize"), dict):
        new["resize"] = {name: value for name, value in resize.items() if name not in ResizeParity.derived}
    if isinstance(found := new["precision"], dict) and isinstance(limits := found.get("limits"), dict):
        rest = {name: value for name, value in found.items() if name != "limits"}
        new["precision"] = rest | {"max_drop": limits.get("max_top1_drop")}
    return new


def _is_inside(name: str) -> bool:
    """Whether it is a relative name on every system, and never goes up; what it may link to is the hub's cache."""
    windows = PureWindowsPath(name)
    return not (PurePosixPath(name).is_absolute() or windows.anchor or ".." in windows.parts)
