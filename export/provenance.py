"""What a bundle says of the places that it was made from: names and hashes, no path of the machine that made it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, Protocol

from ..core.files import sha256_json
from ..core.records import OPTIONAL, to_json
from ..models.backbone_record import BackboneRecord
from ..trainer.features.images.samples import ImageSource
from ..trainer.run_record import FeaturesRecord, RunResults


@dataclass(frozen=True)
class FeaturesOrigin(FeaturesRecord):
    """What a bundle says of the features, without a path; bundles from before have the path and no hashes.

    Attributes:
        source_sha256: Hash of what opened the images; ``None`` of imported features.
        place_sha256: Hash of the folder that they were in.
    """

    source_sha256: str | None = field(default=None, metadata=OPTIONAL)
    place_sha256: str | None = field(default=None, metadata=OPTIONAL)


class TrainedOn(Protocol):
    """What a head was trained on: a run's record, or a bundle's manifest."""

    @property
    def backbone(self) -> BackboneRecord | None:
        """What made the features."""

    @property
    def features(self) -> FeaturesRecord:
        """What the head was fitted to."""

    @property
    def results(self) -> RunResults:
        """How good it is."""


def portable(value: Any) -> Any:
    """JSON values with each absolute path in them cut to its last component."""
    if isinstance(value, Mapping):
        return {key: portable(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [portable(entry) for entry in value]
    if isinstance(value, str):
        for kind in (PurePosixPath, PureWindowsPath):
            if kind(value).is_absolute():
                return kind(value).name
    return value


def features_origin(features: FeaturesRecord) -> FeaturesOrigin:
    """The record of features, of a run or of an older bundle, for a bundle.

    Hashes say later whether data lie at the place of the training.
    """
    if isinstance(features, FeaturesOrigin) and features.source_sha256 is not None:
        return features
    known, source = vars(features) | {"path": portable(features.path)}, features.source
    if source is None:
        return FeaturesOrigin(**known)
    hashes = {"source_sha256": _hash(source), "place_sha256": _place(source.source)}
    return FeaturesOrigin(**known | hashes | {"source": replace(source, source=portable(source.source))})


def is_source(found: ImageSource, features: FeaturesRecord) -> bool:
    """Whether images were opened as those of the training were.

    Args:
        found: What opened them.
        features: The record of the features, of a run or of a bundle.
    """
    return features.source is not None and _hash(found) == features_origin(features).source_sha256


def path_inside(path: Path, features: FeaturesRecord) -> tuple[str, ...] | None:
    """The parts of an absolute path below the folder that the images of the training were in; ``None`` elsewhere.

    Args:
        path: An absolute path.
        features: See `is_source`.
    """
    if features.source is None:
        return None
    place = features_origin(features).place_sha256
    for folder in (path, *path.parents):
        if _place(str(folder)) == place:
            return path.relative_to(folder).parts
    return None


def _hash(source: ImageSource) -> str:
    return sha256_json(to_json(source))


def _place(path: str) -> str:
    return sha256_json(path)
