"""Writes the run folder of a fine-tuned network, and proves that it opens as it was written."""

import math
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import torch

from ...core.coded_warnings import CHANCE, CodedWarning
from ...core.environment import describe_device, versions
from ...core.errors import HeadsmithError, with_keywords
from ...core.files import new_folder, sha256_file
from ...models.backbone import hash_weights, load_backbone
from ...models.backbone_record import BackboneRecord
from ...models.backbones.tuned import BACKBONE, save_backbone
from ...models.heads import save_head
from ..criterion import criterion
from ..features.extraction.request import Request
from ..features.images.image_set import ImageSet
from ..fitting import METRICS
from ..run import CONFIG, HEAD
from ..run_record import RECORD, FeaturesRecord, FinetuningRecord, RunRecord, RunResults, write_run_record
from ..run_warnings import divergence, like_guessing
from ..run_writer import DivergedError
from .fit import Tuned
from .pictures import TRAIN, DividedPictures
from .start import Start

# Extraction stores what this says by default; the fingerprint names the features that nobody computed yet.
DTYPE = "float16"


def check_finite(tuned: Tuned) -> None:
    """Raise a `DivergedError` for a network that never had a finite loss."""
    if tuned.best is None:
        raise DivergedError(f"fine-tuning {tuned.config.loss}: {_divergence(tuned)}")


def write_tuned(
    out: Path, tuned: Tuned, start: Start, opened: ImageSet, pictures: DividedPictures, metrics: Path, overwrite: bool
) -> None:
    """Write the folder of a fine-tuned network.

    Args:
        out: The folder.
        tuned: How it was fitted.
        start: Its modules, with the weights of the best epoch.
        opened: The images as they were opened.
        pictures: What it was fitted to.
        metrics: The file with the rows of every epoch.
        overwrite: Replace an existing run folder.

    Raises:
        HeadsmithError: What was written does not open as the same network.
        InputError: ``out`` exists.
    """
    with new_folder(out, replace=RECORD if overwrite else None) as folder:
        shutil.copyfile(metrics, folder / METRICS)
        tuned.config.save(folder / CONFIG)
        save_head(start.head.cpu().eval(), folder / HEAD)
        start.backbone.cpu()
        save_backbone(start.backbone, start.network, folder / BACKBONE)
        backbone = _written(start, folder)
        write_run_record(folder / RECORD, _record(tuned, start, backbone, opened, pictures, folder))


def _written(start: Start, folder: Path) -> BackboneRecord:
    """Build the backbone again from its file: what every later command will do; its record, with the file's name."""
    found = load_backbone(str(folder))
    expected, recipe = hash_weights(start.backbone.network), start.backbone.preprocessing
    if found.weights_sha256 != expected or found.preprocessing != recipe or found.tap != start.backbone.tap:
        raise HeadsmithError(
            f"{start.network.spec}: its weights cannot be read back as they were written; choose another backbone"
        )
    return replace(found.record(), checkpoint=BACKBONE)


def _record(
    tuned: Tuned, start: Start, backbone: BackboneRecord, opened: ImageSet, pictures: DividedPictures, folder: Path
) -> RunRecord:
    config, best = tuned.config, tuned.best
    assert best is not None  # noqa: S101 - see `check_finite`
    request = Request.of_images(backbone, opened.fingerprint, opened.split_rule, DTYPE)
    begun = tuned.history[0]
    return RunRecord(
        class_names=opened.class_names,
        loss=criterion(config).options.recorded() | {"p_k": list(config.p_k or ())},
        initialization=start.record,
        backbone=backbone,
        features=FeaturesRecord(
            path=None,
            fingerprint=request.fingerprint,
            source=pictures.images.source,
            dtype=DTYPE,
            placement="images in memory" if pictures.in_memory else "images decoded in every epoch",
        ),
        results=RunResults(best.epoch, round(tuned.seconds, 3), tuned.val, tuned.test),
        finetuning=FinetuningRecord(
            backbone=start.network.spec,
            backbone_sha256=start.backbone.weights_sha256,
            from_scratch=start.from_scratch,
            images=opened.fingerprint,
            learning=tuned.learning,
            before=begun.val if begun.epoch == 0 else None,
        ),
        warnings=[*_origin(start, opened), *_warnings(tuned, pictures)],
        device=describe_device(torch.device(config.device)),
        seed=config.seed,
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        head_sha256=sha256_file(folder / HEAD),
        config_sha256=sha256_file(folder / CONFIG),
    )


def _origin(start: Start, opened: ImageSet) -> list[CodedWarning]:
    if start.knew(opened):
        return []
    message = (
        f"the head of {start.record.source} was trained on other images, or on these divided in another way: held-out "
        "images may have been among them, and accuracies too high; train it on features of these images"
    )
    return [CodedWarning("other-images", message)]


def _warnings(tuned: Tuned, pictures: DividedPictures) -> list[CodedWarning]:
    assert tuned.best is not None  # noqa: S101 - see `check_finite`
    found = list(pictures.warnings)
    if tuned.diverged:
        kept = f"epoch {tuned.best.epoch}" if tuned.best.epoch else "the start"
        found.append(CodedWarning("diverged", f"{_divergence(tuned)}; {kept} was kept"))
    elif tuned.best.epoch == 0:
        found.append(
            CodedWarning(
                "start-kept",
                "no epoch was better on validation than the start, which was kept; lower --learning-rate "
                f"(now {tuned.config.learning_rate:g})",
            )
        )
    labels = {split: one.labels.numpy() for split, one in pictures.splits.items()}
    scores, split = (tuned.val, "val") if tuned.val else (tuned.test, "test")
    guesses = None if scores is None else like_guessing(scores, labels[TRAIN], labels[split], split)
    if guesses:
        found.append(CodedWarning(CHANCE, f"{guesses}; try another --learning-rate, more --epochs or --loss softmax"))
    return [replace(one, message=with_keywords(one.message)) for one in found]


def _divergence(tuned: Tuned) -> str:
    last = tuned.history[-1]
    at = "" if math.isfinite(last.loss) else f", at a step size of {tuned.rate:.3g}"
    return f"{divergence(last)}{at}; lower --learning-rate (now {tuned.config.learning_rate:g})"
