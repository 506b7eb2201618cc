"""What a network starts from: a head run, a pretrained backbone with a head, or random weights."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from ...core.errors import InputError
from ...core.printable import shown
from ...core.progress import stage
from ...models.backbone import Backbone, backbone_from_record, load_backbone
from ...models.backbones.libraries import ONNX
from ...models.backbones.tuned import Network
from ...models.class_names import match_classes
from ...models.heads import Head
from ..features.extraction.request import Request
from ..features.images.image_set import ImageSet
from ..initialization import BACKBONE, BACKBONE_IN_ORDER, STARTS, initialized_head
from ..run import Run
from ..run_record import FeaturesRecord, InitializationRecord
from ..train_config import TrainConfig

LITE0, LITE0_IN_TIMM = "lite0", "timm:tf_efficientnet_lite0"


@dataclass(frozen=True)
class NetworkChoice:
    """Which network was asked for.

    Attributes:
        backbone: See `headsmith.load_backbone`; ``None`` takes that of the run, or else ``lite0``.
        checkpoint: Local weights.
        image_size: Another crop edge in pixels.
        from_scratch: Random weights.
    """

    backbone: str | None = None
    checkpoint: str | Path | None = None
    image_size: int | None = None
    from_scratch: bool = False


@dataclass(frozen=True)
class Start:
    """A network before its first step.

    Attributes:
        backbone: With its weights, on the CPU.
        head: A single head.
        record: Where the head comes from.
        network: How the backbone is built again.
        from_scratch: Whether the backbone's weights are random.
        trained_on: What the head was trained on; ``None`` of one that no run made.
    """

    backbone: Backbone
    head: Head
    record: InitializationRecord
    network: Network
    from_scratch: bool
    trained_on: FeaturesRecord | None

    def knew(self, images: ImageSet) -> bool:
        """Whether what is held out of these images was held out of the training of the head too, or it had none."""
        if self.trained_on is None:
            return True
        asked = Request.of_images(self.backbone.record(), images.fingerprint, images.split_rule, self.trained_on.dtype)
        return asked.gave(self.trained_on.fingerprint)

    @property
    def is_run(self) -> bool:
        """Whether the head was trained on this backbone, so that the start is a classifier already."""
        return self.record.head_sha256 is not None


def find_start(start: str, choice: NetworkChoice, class_names: Sequence[str], seed: int) -> Start:
    """Build the network that is to be trained.

    Args:
        start: ``random``, ``backbone``, ``backbone-in-order``, or a run folder.
        choice: The network.
        class_names: The C classes, in order.
        seed: Fixes random weights.

    Raises:
        InputError: A start that cannot be had, of other classes or of another backbone; an ONNX file, which cannot
            learn.
    """
    if choice.from_scratch and start in (BACKBONE, BACKBONE_IN_ORDER):
        raise InputError(f"--from-scratch: found beside `start` {start}, a pretrained classifier; leave one out")
    run = None if start in STARTS else _run(start)
    backbone = _backbone(choice, run, seed)
    if run is not None:
        head, record = _head_of(run, class_names), InitializationRecord(start, head_sha256=run.record.head_sha256)
    else:
        head, record = initialized_head(
            TrainConfig(start=start, seed=seed), backbone.feature_dim, class_names, backbone.record()
        )
    request = backbone.request
    spec = LITE0_IN_TIMM if request.spec == LITE0 else request.spec
    network = Network(spec, request.image_size)
    trained_on = None if run is None else run.record.features
    return Start(backbone, head.requires_grad_(), record, network, choice.from_scratch, trained_on)


def _run(start: str) -> Run:
    if not Path(start).is_dir():
        raise InputError(f"--start: {shown(start)} found, expected {', '.join(STARTS)} or a run folder")
    return Run.load(start)


def _backbone(choice: NetworkChoice, run: Run | None, seed: int) -> Backbone:
    spec = choice.backbone
    if run is not None and choice.from_scratch:
        raise InputError(f"--from-scratch: found beside `start` {run.path}, whose backbone has weights; leave one out")
    if run is not None and run.record.backbone is None:
        raise InputError(f"--start: {run.path}: its features were imported, nobody knows of which backbone")
    if (spec or "").startswith(ONNX) or (run and run.record.backbone and run.record.backbone.file):
        raise InputError(
            f"--backbone: {spec or (run and run.record.backbone and run.record.backbone.spec)} found, an ONNX file, "
            "which cannot learn; choose timm:NAME, torchvision:NAME or cifar:resnet18, or train a head with `headsmith "
            "train`"
        )
    with stage(f"Loading {spec or (run.path if run else LITE0)}"):
        if run is None or choice != NetworkChoice():
            found = _load(choice, seed)
        if run is None:
            return found
        assert run.record.backbone is not None  # noqa: S101 - see above
        if choice == NetworkChoice():
            return backbone_from_record(run.record.backbone)
    ours, theirs = found.record(), run.record.backbone
    if (ours.weights_sha256, ours.preprocessing) != (theirs.weights_sha256, theirs.preprocessing):
        what = "weights" if ours.weights_sha256 != theirs.weights_sha256 else "preprocessing"
        raise InputError(
            f"--start: {run.path}: its head was trained on {theirs.spec}, `backbone` is {ours.spec} with other {what}; "
            "leave `backbone` out to take the run's own"
        )
    return found


def _load(choice: NetworkChoice, seed: int) -> Backbone:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return load_backbone(
            choice.backbone or LITE0,
            checkpoint=choice.checkpoint,
            image_size=choice.image_size,
            from_scratch=choice.from_scratch,
        )


def _head_of(run: Run, class_names: Sequence[str]) -> Head:
    if sorted(run.class_names) != sorted(class_names):
        surplus = sorted(set(run.class_names) - set(class_names))
        lacking = sorted(set(class_names) - set(run.class_names))
        raise InputError(
            f"--start: {run.path}: a head of {len(run.class_names)} classes for images of {len(class_names)}: only the "
            f"head has {surplus[:3]}, only the images have {lacking[:3]}; expected the same classes"
        )
    return run.head.with_classes(match_classes(class_names, (tuple(run.class_names),), str(run.path)).tolist())
