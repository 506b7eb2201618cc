"""From a feature set to a run folder."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..models.environment import describe_device, pick_device, versions
from ..models.errors import InputError
from ..models.files import new_folder, sha256_file, write_json
from ..models.heads import save_head
from .config import TrainConfig
from .features.feature_set import FeatureSet
from .loop import Training
from .losses import TopKCrossEntropy, default_inverse_temperature
from .run import CONFIG, FORMAT, HEAD, METRICS, RECORD, Run


def train(
    features: str | Path | FeatureSet,
    *,
    out: str | Path,
    loss: str = TrainConfig.loss,
    p_k: Sequence[float] | None = TrainConfig.p_k,
    m: int | None = TrainConfig.m,
    inverse_temperature: float | None = TrainConfig.inverse_temperature,
    head: str = TrainConfig.head,
    epochs: int = TrainConfig.epochs,
    batch_size: int = TrainConfig.batch_size,
    learning_rate: float | None = TrainConfig.learning_rate,
    patience: int = TrainConfig.patience,
    seed: int = TrainConfig.seed,
    device: str = TrainConfig.device,
    overwrite: bool = False,
) -> Run:
    """Train a head and write a run folder.

    After every epoch the validation split is scored; the epoch with the highest ``sum_k p_k * (top-k accuracy)`` is
    kept, the lower validation loss deciding between equals. The test split is scored once, with that head.

    Args:
        features: A feature set, or its folder.
        out: The run folder to make.
        loss: See `TrainConfig`, as for the keywords that follow.
        p_k: Non-negative weights of top-1, top-2, ... that sum to 1.
        m: Scores that enter the relaxation.
        inverse_temperature: Sharpness of the relaxation.
        head: The kind of head.
        epochs: Passes over the training split, at the most.
        batch_size: Rows a step.
        learning_rate: Adam's step size.
        patience: Epochs without a better validation accuracy before stopping.
        seed: Fixes the order of the rows.
        device: ``auto``, ``cpu`` or ``cuda``.
        overwrite: Replace an existing run folder.

    Returns:
        The run.

    Raises:
        InputError: A setting that does not fit the feature set, a damaged feature set, or an ``out`` that exists.
    """
    feature_set = features if isinstance(features, FeatureSet) else FeatureSet.load(features)
    config = TrainConfig(
        loss=loss,
        p_k=None if p_k is None else tuple(p_k),
        m=m,
        inverse_temperature=inverse_temperature,
        head=head,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        patience=patience,
        seed=seed,
        device=device,
    )
    criterion, config = _resolve(config, num_classes=len(feature_set.class_names))
    with new_folder(out, replace=RECORD if overwrite else None) as folder:
        training = Training(feature_set, config, criterion)
        training.run(folder / METRICS)
        config.save(folder / CONFIG)
        save_head(training.best_head, folder / HEAD)
        record = _record(feature_set, config, training) | {"head_sha256": sha256_file(folder / HEAD)}
        write_json(folder / RECORD, record)
    return Run.load(out)


def _resolve(config: TrainConfig, num_classes: int) -> tuple[TopKCrossEntropy, TrainConfig]:
    """The loss, and the settings with every default that it fills in."""
    try:
        asked = TopKCrossEntropy(config.p_k, config.loss, config.m, config.inverse_temperature)
    except (ValueError, TypeError) as error:
        raise InputError(f"--loss {config.loss}: {error}") from None
    p_k = tuple(float(weight) for weight in asked.p_k)
    if len(p_k) > num_classes:
        raise InputError(
            f"--p-k: {len(p_k)} weights, for top-1 to top-{len(p_k)}, but only {num_classes} classes; give fewer"
        )
    m = num_classes if config.m is None else min(config.m, num_classes)
    temperature = config.inverse_temperature
    if temperature is None:
        temperature = default_inverse_temperature(config.loss, asked.settings.distribution, m)
    resolved = dataclasses.replace(
        config,
        p_k=p_k,
        m=m,
        inverse_temperature=temperature,
        learning_rate=config.step_size,
        device=str(pick_device(config.device)),
    )
    return TopKCrossEntropy(p_k, config.loss, m, temperature), resolved


def _record(feature_set: FeatureSet, config: TrainConfig, training: Training) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "format_version": 1,
        "class_names": feature_set.class_names,
        "loss": dataclasses.asdict(training.criterion.settings) | {"p_k": list(config.p_k or ())},
        "backbone": feature_set.manifest["backbone"],
        "features": {
            "path": str(feature_set.path),
            "fingerprint": feature_set.fingerprint,
            "source": feature_set.manifest["source"],
            "dtype": feature_set.manifest["dtype"],
        },
        "results": {
            "best_epoch": training.best["epoch"],
            "seconds": round(training.seconds, 3),
            "val": training.best["val"],
            "test": training.test,
        },
        "device": describe_device(training.device),
        "seed": config.seed,
        "versions": versions(),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
    }
