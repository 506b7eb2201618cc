"""What a benchmark says: ``benchmark.json``, of which each row is one of the leaderboard."""

from dataclasses import dataclass, field

from ...core.coded_warnings import CodedWarning
from ...metrics.proportions import Share
from ...trainer.features.images.samples import ImageSource
from ..measuring.speed_figures import Latency

RECORD, FORMAT, FORMAT_VERSION = "benchmark.json", "headsmith.benchmark", 1
HEAD, ALSO, BASELINE = "head", "also", "baseline"


@dataclass(frozen=True)
class ProviderFigures:
    """A file under a further execution provider.

    Attributes:
        latency: Of one image, in milliseconds; ``None`` where it was not timed.
        images_per_second: Through the runtime.
        top1: Share of the test images that are right; ``None`` where it failed.
        flips: Images with another first answer than under the first provider.
        moved: The largest difference of a logit to that of the same file on the CPU, of at most 256 images; ``None``
            for the CPU.
        error: Why it does not run there; empty where it does.
    """

    latency: Latency | None
    images_per_second: float | None
    top1: Share | None
    flips: int | None
    moved: float | None
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class BenchmarkRow:
    """A row of the leaderboard.

    Attributes:
        name: Its name.
        kind: ``head`` of a backbone, ``also`` for a file of others, ``baseline`` for what needs no training.
        state: ``done``, ``failed`` or ``pruned``.
        reason: Why it has no figures.
        backbone: See `headsmith.extract`; empty where there is none.
        sweep: The preset of the sweep.
        precision: Of the file.
        loss: Of the head that validation chose.
        image_size: Crop edge in pixels.
        crop_pct: Crop edge over resized edge.
        interpolation: Of the resize.
        feature_dim: D.
        parameters: Numbers in its weights.
        val_top1: On validation, which all choices are made by.
        val_top5: The same of five answers.
        top1: On the test split, which chooses nothing; its interval is Wilson's.
        top5: The same of five answers; ``None`` with fewer classes.
        latency: Of one image, in milliseconds.
        images_per_second: Through the runtime.
        moved: See `ProviderFigures`, for the first provider.
        memory_mb: What the process grew by; ``None`` where that cannot be told.
        file_mb: Size of the file.
        within: Whether it meets all bounds; ``None`` where it was not measured or needs no training.
        tied: Whether the test images cannot tell it from the winner; ``None`` where it was not compared.
        p: McNemar's exact test against the winner, by Holm over all comparisons with it.
        difference: Its top-1 minus the winner's, -1 to 1.
        promise: The score of the budget.
        seconds: What each stage took.
        bundle: Its bundle, relative to the folder; empty where it has none or that was not kept.
        providers: Figures under further execution providers.
        warnings: What to look at before its figures are used.
        notes: Facts of how it was made.
    """

    name: str
    kind: str = HEAD
    state: str = "done"
    reason: str = ""
    backbone: str = ""
    sweep: str = ""
    precision: str = ""
    loss: str = ""
    image_size: int | None = None
    crop_pct: float | None = None
    interpolation: str | None = None
    feature_dim: int | None = None
    parameters: int | None = None
    val_top1: Share | None = None
    val_top5: Share | None = None
    top1: Share | None = None
    top5: Share | None = None
    latency: Latency | None = None
    images_per_second: float | None = None
    moved: float | None = None
    memory_mb: float | None = None
    file_mb: float | None = None
    within: bool | None = None
    tied: bool | None = None
    p: float | None = None
    difference: float | None = None
    promise: float | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    bundle: str = ""
    providers: dict[str, ProviderFigures] = field(default_factory=dict)
    warnings: list[CodedWarning] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def marked(self) -> bool | None:
        """Whether tables mark it as tied: the winner or one like it, but nothing that needs no training."""
        return None if self.tied is None else self.tied and self.kind != BASELINE

    @property
    def why_none(self) -> str:
        """Why it has no figures, with what it promises where that was asked."""
        return self.reason if self.promise is None else f"promise {self.promise:.3g}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class BenchmarkRecord:
    """A benchmark, as ``benchmark.json`` holds it.

    Attributes:
        format: ``headsmith.benchmark``.
        format_version: 1.
        source: The arguments that opened the images.
        images: Their fingerprint.
        class_names: C names.
        splits: Images of each split.
        provider: Whose figures the table has.
        bounds: ``latency`` in milliseconds, ``size`` and ``memory`` in MB, where they were asked for.
        winner: The row to deploy; ``None`` where none was measured.
        sentence: What to deploy, why, and how sure that is.
        rows: The best on the test split first; then those without figures.
        warnings: What makes the choice doubtful.
        versions: Of Python and packages.
        created: When, in UTC (ISO 8601).
    """

    format: str = FORMAT
    format_version: int = FORMAT_VERSION
    source: ImageSource
    images: str
    class_names: list[str]
    splits: dict[str, int]
    provider: str
    bounds: dict[str, float]
    winner: str | None
    sentence: str
    rows: list[BenchmarkRow]
    warnings: list[CodedWarning]
    versions: dict[str, str]
    created: str

    def __post_init__(self) -> None:
        """Refuse a winner that is no row, as an edited file may name."""
        if self.winner is not None and self.winner not in {row.name for row in self.rows}:
            raise ValueError(f"winner: found {self.winner!r}, expected the name of a row")
