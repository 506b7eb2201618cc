"""What a head starts from: nothing, its backbone's own classifier, or a saved head."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch

from ..core.errors import InputError, near
from ..core.printable import shown
from ..models.backbone_record import BackboneRecord
from ..models.class_names import find_classes, match_classes
from ..models.heads import Head, Linear, build_head
from .feature_scale import first_weights
from .run import HEAD, Run
from .run_record import InitializationRecord
from .train_config import TrainConfig

if TYPE_CHECKING:
    from ..models.pretrained import Pretrained

RANDOM, ZEROS, BACKBONE, BACKBONE_IN_ORDER = "random", "zeros", "backbone", "backbone-in-order"
STARTS = (RANDOM, ZEROS, BACKBONE, BACKBONE_IN_ORDER)
OPTIONS = {"norm_linear": ("norm",), "mlp": ("hidden",)}


class Initialization(NamedTuple):
    """A head before its first step.

    Attributes:
        head: A single head, on the CPU.
        record: Where it comes from.
    """

    head: Head
    record: InitializationRecord

    @torch.no_grad()
    def __call__(self, fresh: Head, size: float = 1.0) -> None:
        """Make a fresh head of the same settings, or every head of a bank, compute what this one does.

        A start from nothing is small beside normalised features, so that it is copied behind the normalisation.

        Args:
            fresh: The head or the bank.
            size: Of the features, see `column_size`: random weights of a linear head are smaller for larger ones.
        """
        if self.record.source in (RANDOM, ZEROS):
            _copy_parameters(fresh, self.head)
            if isinstance(fresh, Linear):
                fresh.weight.mul_(first_weights(size))
        else:
            _take_over(fresh, self.head)


def initialized_head(
    config: TrainConfig, feature_dim: int, class_names: Sequence[str], backbone: BackboneRecord | None
) -> Initialization:
    """Build the head of a run as it is before the first step.

    ``zeros``: as `build_head` gives it. ``random``: the same with small random weights of the classes. ``backbone``:
    the classifier of the pretrained network, its outputs found by the names of the classes: WordNet ids, or ImageNet's
    synonyms as timm or torchvision write them. Classes without an output start from zeros. ``backbone-in-order``: the
    same without names; output i is class i. Else a run folder, or the head file in one: the head of that run, its
    classes put in order by name.

    Args:
        config: ``start``, ``head`` with its options, and ``seed``.
        feature_dim: D of the feature set.
        class_names: Its C classes, in order.
        backbone: Its backbone's record; ``None`` where nobody knows it.

    Raises:
        InputError: A start that cannot be had, or that belongs to other features or classes.
    """
    options = {name: getattr(config, name) for name in OPTIONS.get(config.head, ())}
    try:
        head = build_head(config.head, feature_dim, len(class_names), seed=config.seed, **options)
    except (RuntimeError, MemoryError):
        said = "".join(f" with {name} {value}" for name, value in options.items())
        raise InputError(f"--head: {config.head}{said} does not fit the memory; choose a smaller head") from None
    if config.start in (RANDOM, ZEROS):
        if config.start == RANDOM:
            _break_ties(head, config.seed)
        return Initialization(head, InitializationRecord(config.start))
    if config.start in (BACKBONE, BACKBONE_IN_ORDER):
        return _from_backbone(head, config.start, class_names, backbone)
    if not config.start:
        raise InputError(f"--start: '' found, expected {RANDOM}, {ZEROS}, {BACKBONE} or a run folder")
    return _from_run(head, Path(config.start), class_names, backbone)


def _from_backbone(
    head: Head, start: str, class_names: Sequence[str], backbone: BackboneRecord | None
) -> Initialization:
    if backbone is None:
        raise InputError(
            f"--start: {start} found, but the feature set does not say which backbone it is from; use zeros"
        )
    from ..models.backbone import backbone_from_record
    from ..models.pretrained import backbone_classifier

    own = backbone_classifier(backbone_from_record(backbone))
    found = _by_name(class_names, own) if start == BACKBONE else _in_order(class_names, own)
    weight, bias = own.weight.new_zeros(len(found), own.weight.shape[1]), own.bias.new_zeros(len(found))
    rows = [row for row, output in enumerate(found) if output is not None]
    outputs = [output for output in found if output is not None]
    weight[rows], bias[rows] = own.weight[outputs], own.bias[outputs]
    head.start_from(weight, bias)
    unmatched = [name for name, output in zip(class_names, found, strict=True) if output is None]
    return Initialization(head, InitializationRecord(start, backbone.spec, unmatched))


def _in_order(class_names: Sequence[str], own: "Pretrained") -> list[int | None]:
    if len(own.bias) != len(class_names):
        raise InputError(
            f"--start: {BACKBONE_IN_ORDER} found, but the backbone's classifier has {len(own.bias)} outputs, the "
            f"feature set {len(class_names)} classes; use {BACKBONE}, which goes by name, or zeros"
        )
    return list(range(len(class_names)))


def _by_name(class_names: Sequence[str], own: "Pretrained") -> list[int | None]:
    hint = f"use zeros, or {BACKBONE_IN_ORDER} where output i is class i"
    if own.names is None:
        raise InputError(
            f"--start: {BACKBONE} found, but the classes of the backbone's {len(own.bias)} outputs are not "
            f"known; {hint}"
        )
    found = find_classes(class_names, own.names)
    if all(output is None for output in found):
        known = ", ".join(repr(names[0]) for names in own.names)
        raise InputError(
            f"--start: {BACKBONE} found, but the backbone's classifier knows none of the classes "
            f"({shown(class_names[0])}, ...); its first output is called {known}; {hint}"
        )
    return found


def _from_run(head: Head, path: Path, class_names: Sequence[str], backbone: BackboneRecord | None) -> Initialization:
    run = Run.load(path.parent if path.name == HEAD else _run_folder(path))
    _check_backbone(run, head.in_features, backbone)
    if sorted(run.class_names) != sorted(class_names):
        raise InputError(f"--start: {path}: {_difference(run.class_names, class_names)}")
    saved = run.head.with_classes(match_classes(class_names, (tuple(run.class_names),), str(path)).tolist())
    if (head.kind, head.options) != (saved.kind, saved.options) and not isinstance(saved.folded(), Linear):
        raise InputError(f"--start: {path}: its head is {_named(saved)}, expected {_named(head)}, or an affine one")
    _take_over(head, saved)
    return Initialization(head, InitializationRecord(str(path), head_sha256=run.record.head_sha256))


def _run_folder(path: Path) -> Path:
    if not path.is_dir():
        raise InputError(
            f"--start: {shown(str(path))} found, expected {RANDOM}, {ZEROS}, {BACKBONE}, {BACKBONE_IN_ORDER}, a run "
            f"folder, or the {HEAD} in one{near(str(path), STARTS)}"
        )
    return path


def _check_backbone(run: Run, feature_dim: int, backbone: BackboneRecord | None) -> None:
    theirs, ours = run.record.backbone, backbone
    if run.head.in_features != feature_dim:
        raise InputError(
            f"--start: {run.path}: its head takes {run.head.in_features} features, the feature set has {feature_dim}"
        )
    for key in ("weights_sha256", "tap"):
        mine, other = (getattr(record, key, None) for record in (ours, theirs))
        if mine != other:
            raise InputError(
                f"--start: {run.path}: its head was trained on features of {_backbone_name(theirs)}, the feature set "
                f"is of {_backbone_name(ours)} ({key} differs); a head fits the features of its own backbone only"
            )


def _backbone_name(record: BackboneRecord | None) -> str:
    if record is None:
        return "an unknown backbone"
    return f"{record.spec} {record.weights_sha256[:12]}"


def _difference(theirs: Sequence[str], ours: Sequence[str]) -> str:
    surplus, lacking = sorted(set(theirs) - set(ours)), sorted(set(ours) - set(theirs))
    named = f"only the head has {surplus[:3]}, only the feature set {lacking[:3]}"
    return f"a head of {len(theirs)} classes for a feature set of {len(ours)}; {named}; the classes must be the same"


@torch.no_grad()
def _break_ties(head: Head, seed: int) -> None:
    weight = head.get_parameter("weight")
    bound = 0.1 / weight.shape[-1] ** 0.5
    weight.add_(torch.empty_like(weight).uniform_(-bound, bound, generator=torch.Generator().manual_seed(seed)))


@torch.no_grad()
def _take_over(head: Head, single: Head) -> None:
    """The function of a single head where that is affine, else its parameters; statistics of ``head`` stay."""
    folded = single.folded()
    if isinstance(folded, Linear):
        head.start_from(folded.weight, folded.bias)
    else:
        _copy_parameters(head, single)


@torch.no_grad()
def _copy_parameters(head: Head, single: Head) -> None:
    for name, parameter in head.named_parameters():
        parameter.copy_(single.get_parameter(name))


def _named(head: Head) -> str:
    return " ".join([head.kind, *(f"{name}={value}" for name, value in head.options.items())])
