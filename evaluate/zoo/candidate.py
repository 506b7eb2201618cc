"""What is known of a classifier before it is run."""

from dataclasses import dataclass
from pathlib import Path

from ...core.coded_warnings import CodedWarning
from ...export.bundle.bundle import Bundle
from ...models.class_names import ClassNames
from ...models.preprocessing import Preprocessing


@dataclass(frozen=True, kw_only=True)
class Published:
    """What its authors say of a classifier.

    Attributes:
        top1: Accuracy in per cent.
        top5: The same among five answers; ``None`` where they do not say it.
        source: Where that stands.
    """

    top1: float
    top5: float | None = None
    source: str

    def __post_init__(self) -> None:
        for name, value in (("top1", self.top1), ("top5", self.top5)):
            if value is not None and not 0 <= value <= 100:
                raise ValueError(f"{name}: found {value:g}, expected per cent, from 0 to 100")


@dataclass(frozen=True)
class Setup:
    """What an ONNX file of unknown origin does not say of itself.

    Attributes:
        output: The output with the scores of the classes.
        probabilities: Those are probabilities (a softmax is inside), not logits.
        background: Which output is no class and is left out; ``None`` where there is none.
        batch: The fixed size of its batch; ``None`` where that is free.
        quantised: Its scores are whole numbers.
        scale: What these are multiplied by after `zero_point` was subtracted; ``None`` where the graph does not say it.
        zero_point: See `scale`.
        further: Other outputs that could be the scores; `output` was chosen because it is called ``logits``.
    """

    output: str
    probabilities: bool
    background: int | None
    batch: int | None
    quantised: bool = False
    scale: float | None = None
    zero_point: int = 0
    further: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Facts that somebody who reads the figures may want."""
        found = {
            "gives probabilities, of which the logarithm is taken": self.probabilities,
            f"output {self.background} is a background class and left out": self.background is not None,
            "takes one image at a time": self.batch == 1,
            f"takes batches of {self.batch} only, which are filled up": self.batch not in (None, 1),
            f"its scores are quantised in steps of {self.scale or 0:g}, so that many are equal": self.scale is not None,
        }
        return tuple(note for note, holds in found.items() if holds)

    @property
    def warnings(self) -> tuple[CodedWarning, ...]:
        """What of it may be wrong."""
        found = []
        if self.further:
            message = (
                f"its scores are taken from {self.output}, by that name; so could they be from "
                f"{', '.join(self.further)}, which --output would choose"
            )
            found.append(CodedWarning("output-by-name", message))
        if self.quantised and self.scale is None:
            message = "its scores are whole numbers of unknown scale: ranks count, probabilities do not"
            found.append(CodedWarning("unknown-scale", message))
        return tuple(found)


@dataclass(frozen=True)
class Candidate:
    """A classifier that can be opened.

    Attributes:
        id: Its name in tables; each of a zoo has another one.
        source: What it was asked by: a bundle, a file, ``timm:NAME``, ...
        path: The file that is opened.
        names: Ways to name its C classes in the order of its logits: see `headsmith.models.class_names`.
        preprocessing: Its recipe; ``None`` for a head alone whose backbone nobody knows.
        head_only: It takes features, not images.
        setup: What had to be said of a file without headsmith's metadata; ``None`` for a file that says all itself.
        published: Accuracy that its authors state, on ImageNet's validation set.
        parameters: How many weights it has; ``None`` where nobody counted.
        bytes: Size of the file, external data included.
        fingerprint: SHA-256 over all that can change an answer: files, recipe, setup, names.
        notes: Facts of its setup, in words.
        warnings: What of its setup may be wrong.
        bundle: The bundle that it is the first file of, which knows what it was trained on; ``None`` for other files.
        checkpoint: Local weights that a network of a library was given; its library's own are ``None``.
    """

    id: str
    source: str
    path: Path
    names: ClassNames
    preprocessing: Preprocessing | None
    head_only: bool
    setup: Setup | None
    published: Published | None
    parameters: int | None
    bytes: int
    fingerprint: str
    notes: tuple[str, ...] = ()
    warnings: tuple[CodedWarning, ...] = ()
    bundle: Bundle | None = None
    checkpoint: Path | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """C names in the order of the logits, no two alike."""
        return next(names for names in self.names if len(set(names)) == len(names))


@dataclass(frozen=True)
class Failed:
    """A classifier that cannot be evaluated, and stays in the table.

    Attributes:
        id: See `Candidate`.
        source: See `Candidate`.
        error: Why, on one line.
    """

    id: str
    source: str
    error: str
