"""The inputs that belong to a run: what its head was trained on, and what was held out."""

from pathlib import Path

from ...core.errors import InputError
from ...trainer.features.feature_set import FeatureSet
from ...trainer.run import Run
from ..metadata import Metadata
from .held_out import HeldOut, held_out_features, held_out_images, training_images


def held_out_of(run: Run, metadata: Metadata, data: str | Path | FeatureSet | None) -> HeldOut:
    """The held-out inputs of a run: its test split, or those at ``data``.

    Raises:
        InputError: They cannot be had; see `held_out_images` and `held_out_features`.
    """
    features = run.record["features"]
    if metadata.head_only:
        if data is None and not Path(features["path"]).exists():
            raise InputError(
                f"{features['path']}: the feature set that the head was trained on is not there; name one with --data"
            )
        return held_out_features(data or features["path"], metadata, metadata.labels)
    if isinstance(data, FeatureSet):
        raise InputError("--data: a feature set proves a head alone (--head-only), name images for a classifier")
    return held_out_images(data, run.record, metadata.labels, metadata.prepare)


def split_of(run: Run, metadata: Metadata, data: str | Path | FeatureSet | None, split: str) -> HeldOut:
    """The ``train`` or ``val`` split of what a head was trained on: where it was, or at ``data``.

    Raises:
        InputError: It is in neither place, or the split is empty.
    """
    if metadata.head_only:
        return held_out_features(data or run.record["features"]["path"], metadata, metadata.labels, split)
    if isinstance(data, FeatureSet):
        raise InputError("--data: a feature set proves a head alone (--head-only), name images for a classifier")
    return training_images(split, data, run.record, metadata.labels, metadata.prepare)


def trained_features(run: Run) -> FeatureSet:
    """The feature set that a head was trained on, for a temperature.

    Raises:
        InputError: It is not there any more, or is another one now.
    """
    record = run.record["features"]
    try:
        features = FeatureSet.load(record["path"])
    except InputError as error:
        raise InputError(f"--calibrate: fits on the features that the head was trained on, but {error}") from None
    if features.fingerprint != record["fingerprint"]:
        raise InputError(f"--calibrate: {features.path} has changed since the head was trained on it; train again")
    return features
