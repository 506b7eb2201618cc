"""What a head was trained on, wherever it lies now, and which part of it was held out."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.errors import InputError
from .held_out import HeldOutFeatures, HeldOutImages
from .provenance import TrainedOn, is_source

if TYPE_CHECKING:
    from ..trainer.features.feature_set import FeatureSet
    from ..trainer.features.images.image_set import ImageSet


def held_out_images(data: str | Path | None, origin: TrainedOn) -> HeldOutImages:
    """Open held-out images.

    Args:
        data: A folder of class folders, all of which are held out; or a source with a test split; or the source of
            the training, wherever it is now, whose held-out part is taken. ``None`` means the latter where it was.
        origin: The run's record, or the bundle's manifest.

    Raises:
        InputError: No such images any more, or none of them held out.
    """
    from ..trainer.features.images.image_set import open_images

    trained_on = _training_images(origin) if data is None else same_source(data, origin)
    if trained_on is not None:
        found = HeldOutImages(trained_on.split("test"))
    else:
        assert data is not None  # noqa: S101 - the training's own source was opened above, or refused
        found = HeldOutImages(open_images(data, splits=False))
    if not len(found):
        raise InputError(f"{found.name}: no held-out image in it")
    return found


def training_images(split: str, data: str | Path | None, origin: TrainedOn) -> HeldOutImages:
    """Open the images of one split of what a head was trained on: where they were, or at ``data``.

    Args:
        split: ``train`` or ``val``.
        data: See `held_out_images`.
        origin: See `held_out_images`.

    Raises:
        InputError: They are neither there nor at ``data``, or the split is empty.
    """
    source = None if data is None else same_source(data, origin)
    found = HeldOutImages((source or _training_images(origin)).split(split))
    if not len(found):
        raise InputError(f"{found.name}: its {split} split is empty")
    return found


def held_out_features(data: "str | Path | FeatureSet", split: str = "test") -> HeldOutFeatures:
    """Open the test split, or another one, of a feature set for a head alone.

    Raises:
        InputError: No feature set, or the split is empty.
    """
    from ..trainer.features.feature_set import FeatureSet

    try:
        features = data if isinstance(data, FeatureSet) else FeatureSet.load(data)
    except InputError as error:
        raise InputError(f"a head alone takes features, not images: {error}") from None
    found = HeldOutFeatures(features, split, given=str(features.path))
    if not len(found):
        raise InputError(f"{found.name}: its {split} split is empty")
    return found


def same_source(data: str | Path, origin: TrainedOn, **columns: Any) -> "ImageSet | None":
    """The images at ``data`` where they are the source of the training: there, or with the same contents.

    Args:
        data: See `held_out_images`.
        origin: See `held_out_images`.
        columns: ``image_column`` and ``label_column`` of `open_images`.
    """
    from ..trainer.features.extraction.request import Request
    from ..trainer.features.images.image_set import open_images

    features, test = origin.features, origin.results.test
    together = (features.source or {}).get("together", False)
    try:
        images = open_images(data, **columns, together=together is not False)
    except InputError:
        return None  # nothing to train on, so not the source of a training
    found = images.moved(together) if together is not False else images
    if is_source(found.source, features):
        return found
    if origin.backbone is None or len(found.split("test")) < (0 if test is None else test.n):
        return None  # spares hashing the images
    request = Request.of_images(origin.backbone, images.fingerprint, images.split_rule, features.dtype)
    return found if request.gave(features.fingerprint) else None


def _training_images(origin: TrainedOn) -> "ImageSet":
    """The images of the training where they were."""
    source = origin.features.source
    if source is None:
        raise InputError("the features were imported, so their images are not known; name held-out images with --data")
    from ..trainer.features.images.image_set import reopen

    try:
        return reopen(source)
    except InputError as error:
        raise InputError(
            f"the images that the features came from cannot be opened ({error}); if they moved, name held-out images "
            "with --data"
        ) from error
