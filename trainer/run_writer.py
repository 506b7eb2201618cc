"""Writes the folder of a finished run."""

import shutil
from datetime import UTC, datetime
from pathlib import Path

import torch

from ..core.environment import describe_device, versions
from ..core.errors import InputError
from ..core.files import new_folder, sha256_file
from ..models.heads import save_head
from .criterion import criterion
from .features.feature_set import FeatureSet
from .fitting import METRICS, Fitted
from .run import CONFIG, HEAD
from .run_record import RECORD, FeaturesRecord, RunRecord, RunResults, write_run_record
from .run_warnings import divergence, run_warnings


class DivergedError(InputError):
    """A loss that was never finite."""


def write_run(
    out: str | Path,
    feature_set: FeatureSet,
    fitted: Fitted,
    metrics: Path,
    *,
    processes: int = 1,
    overwrite: bool = False,
) -> None:
    """Write the folder of a finished run.

    Args:
        out: The folder.
        feature_set: What the head was fitted to.
        fitted: The head.
        metrics: The file with the rows of every epoch.
        processes: How many fitted it.
        overwrite: Replace an existing run folder.

    Raises:
        DivergedError: The head never had a finite loss.
        InputError: ``out`` exists.
    """
    check_finite(fitted)
    with new_folder(out, replace=RECORD if overwrite else None) as folder:
        shutil.copyfile(metrics, folder / METRICS)
        fitted.config.save(folder / CONFIG)
        save_head(fitted.head, folder / HEAD)
        write_run_record(folder / RECORD, _record(feature_set, fitted, processes, folder))


def check_finite(fitted: Fitted) -> None:
    """Raise a `DivergedError` for a head that never had a finite loss."""
    if fitted.best is None:
        raise DivergedError(
            f"training {fitted.config.loss}: {divergence(fitted.history[-1])}; lower --learning-rate "
            f"(now {fitted.config.step_size:g})"
        )


def _record(feature_set: FeatureSet, fitted: Fitted, processes: int, folder: Path) -> RunRecord:
    config, manifest = fitted.config, feature_set.manifest
    return RunRecord(
        class_names=feature_set.class_names,
        loss=criterion(config).options.recorded() | {"p_k": list(config.p_k or ())},
        initialization=fitted.initialization,
        backbone=manifest.backbone,
        features=FeaturesRecord(
            path=str(feature_set.path),
            fingerprint=feature_set.fingerprint,
            source=manifest.source,
            dtype=manifest.dtype,
            placement=fitted.placement,
        ),
        results=RunResults(fitted.kept.epoch, round(fitted.seconds, 3), fitted.val, fitted.test),
        warnings=run_warnings(fitted, feature_set),
        device=describe_device(torch.device(fitted.device)),
        processes=processes,
        seed=config.seed,
        versions=versions(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        head_sha256=sha256_file(folder / HEAD),
        config_sha256=sha256_file(folder / CONFIG),
    )
