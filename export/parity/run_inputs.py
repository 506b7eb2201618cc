"""The inputs that belong to a run: what its head was trained on, and what was held out."""

from pathlib import Path

from ...core.errors import InputError
from ...trainer.features.feature_set import FeatureSet
from ...trainer.run import Run
from ..held_out import HeldOut, HeldOutFeatures
from ..metadata import Metadata
from ..training_source import held_out_features, held_out_images, training_images


class RunInputs:
    """The inputs of one export. A feature set is opened once, whatever asks for it: opening reads all of it.

    Args:
        run: What is exported.
        metadata: What its files will say of themselves.
        data: Held-out images, for a head alone a feature set; ``None`` takes what the head was trained on.
    """

    def __init__(self, run: Run, metadata: Metadata, data: str | Path | FeatureSet | None) -> None:
        self._run, self._metadata, self._data = run, metadata, data
        self._features = run.record.features
        self._opened: dict[str, FeatureSet] = {}
        if metadata.head_only:
            return
        metadata.recipe  # noqa: B018 - raises where nobody knows it, before images are looked for
        if isinstance(data, FeatureSet):
            raise InputError("--data: a feature set proves a head alone (--head-only), name images for a classifier")

    def held_out(self) -> HeldOut:
        """The test split, or what ``data`` holds.

        Raises:
            InputError: They cannot be had; see `held_out_images`, `held_out_features` and `HeldOut.for_classifier`.
        """
        if not self._metadata.head_only:
            assert not isinstance(self._data, FeatureSet)  # noqa: S101 - refused above
            return held_out_images(self._data, self._run.record).for_classifier(self._metadata)
        if self._data is None and not Path(self._features.path).exists():
            raise InputError(
                f"{self._features.path}: the feature set that the head was trained on is not there; name one with "
                "--data"
            )
        return self._rows("test")

    def split(self, name: str) -> HeldOut:
        """The ``train`` or ``val`` split of what a head was trained on: where it was, or at ``data``.

        Raises:
            InputError: It is in neither place, or the split is empty.
        """
        if self._metadata.head_only:
            return self._rows(name)
        assert not isinstance(self._data, FeatureSet)  # noqa: S101 - refused above
        return training_images(name, self._data, self._run.record).for_classifier(self._metadata)

    def trained_features(self) -> FeatureSet:
        """The feature set that a head was trained on.

        Raises:
            InputError: It is not there any more, or is another one now.
        """
        features = self._open(self._features.path)
        if features.fingerprint != self._features.fingerprint:
            raise InputError(f"{features.path} has changed since the head was trained on it; train again")
        return features

    def cached_features(self) -> FeatureSet | None:
        """The same; ``None`` where it is not there any more, or is another one now."""
        if not Path(self._features.path).is_dir():
            return None
        features = self._open(self._features.path)
        return features if features.fingerprint == self._features.fingerprint else None

    def _open(self, path: str) -> FeatureSet:
        if path not in self._opened:
            self._opened[path] = FeatureSet.load(path)
        return self._opened[path]

    def _rows(self, split: str) -> HeldOutFeatures:
        data = self._data or self._features.path
        key = str(data.path if isinstance(data, FeatureSet) else data)
        found = held_out_features(self._opened.get(key, data), split).for_classifier(self._metadata)
        self._opened[key] = found.features
        return found
