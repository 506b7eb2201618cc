"""What a head was trained on, wherever it lies now, which part of it was held out, and what an export takes of it."""

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from ..core.errors import InputError
from ..trainer.features.images.picture_identity import picture_hash
from ..trainer.features.images.samples import ImageColumns
from .held_out import HeldOut, HeldOutFeatures, HeldOutImages
from .metadata import Metadata
from .provenance import TrainedOn, is_source

if TYPE_CHECKING:
    from ..trainer.features.feature_set import FeatureSet
    from ..trainer.features.images.image_set import ImageSet
    from ..trainer.run import Run


def held_out_images(data: str | Path | None, origin: TrainedOn, opened: "ImageSet | None" = None) -> HeldOutImages:
    """Open held-out images.

    Args:
        data: A folder of class folders, all of which are held out; or a source with a test split; or the source of
            the training, wherever it is now, whose held-out part is taken. ``None`` means the latter where it was.
        origin: The run's record, or the bundle's manifest.
        opened: Images that are open already, which may be those of the training.

    Raises:
        InputError: No such images any more, or none of them held out.
    """
    from ..trainer.features.images.image_set import open_images

    trained_on = _training_images(origin, opened) if data is None else same_source(data, origin)
    if trained_on is not None:
        found = HeldOutImages(trained_on.split("test"))
    else:
        assert data is not None  # noqa: S101 - the training's own source was opened above, or refused
        found = HeldOutImages(open_images(data, splits=False))
    if not len(found):
        raise InputError(f"{found.name}: no held-out image in it")
    return found


def training_images(
    split: str, data: str | Path | None, origin: TrainedOn, opened: "ImageSet | None" = None
) -> HeldOutImages:
    """Open the images of one split of what a head was trained on: where they were, or at ``data``.

    Args:
        split: ``train`` or ``val``.
        data: See `held_out_images`.
        origin: See `held_out_images`.
        opened: See there.

    Raises:
        InputError: They are neither there nor at ``data``, or the split is empty.
    """
    source = None if data is None else same_source(data, origin)
    found = HeldOutImages((source or _training_images(origin, opened)).split(split))
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


def same_source(data: str | Path, origin: TrainedOn, **columns: Unpack[ImageColumns]) -> "ImageSet | None":
    """The images at ``data`` where they are the source of the training: there, or with the same contents.

    Args:
        data: See `held_out_images`.
        origin: See `held_out_images`.
        columns: ``image_column`` and ``label_column`` of `open_images`.
    """
    from ..trainer.features.extraction.request import Request
    from ..trainer.features.images.image_set import open_images

    features, test = origin.features, origin.results.test
    together = None if features.source is None else features.source.together
    try:
        images = open_images(data, **columns, together=together is not None)
    except InputError:
        return None  # nothing to train on, so not the source of a training
    found = images if together is None else images.moved(together)
    if is_source(found.source, features):
        return found
    if origin.backbone is None or len(found.split("test")) < (0 if test is None else test.n):
        return None  # spares hashing the images
    request = Request.of_images(origin.backbone, images.fingerprint, images.split_rule, features.dtype)
    return found if request.gave(features.fingerprint) else None


def _training_images(origin: TrainedOn, opened: "ImageSet | None") -> "ImageSet":
    """The images of the training where they were, or those that are open."""
    source = origin.features.source
    if source is None:
        raise InputError("the features were imported, so their images are not known; name held-out images with --data")
    if opened is not None and (known := opened.divided_as(source)) is not None:
        return known
    from ..trainer.features.images.image_set import reopen

    try:
        return reopen(source)
    except InputError as error:
        raise InputError(
            f"the images that the features came from cannot be opened ({error}); if they moved, name held-out images "
            "with --data"
        ) from error


class RunInputs:
    """The inputs of one export. A feature set is opened once, whatever asks for it: opening reads all of it.

    Args:
        run: What is exported.
        metadata: What its files will say of themselves.
        data: Held-out images, for a head alone a feature set; ``None`` takes what the head was trained on.
        opened: See `held_out_images`.

    Raises:
        InputError: Nobody knows the recipe of images; or ``data`` is a feature set, and images are taken.
    """

    def __init__(
        self,
        run: "Run",
        metadata: Metadata,
        data: "str | Path | FeatureSet | None",
        opened: "ImageSet | None" = None,
    ) -> None:
        self._record, self._metadata, self._data, self._open_images = run.record, metadata, data, opened
        self._opened: dict[str, FeatureSet] = {}
        if metadata.head_only:
            return
        metadata.recipe  # noqa: B018 - raises where nobody knows it, before images are looked for
        if data is not None and not isinstance(data, str | Path):
            raise InputError("--data: a feature set proves a head alone (--head-only), name images for a classifier")

    def held_out(self) -> HeldOut:
        """The test split, or what ``data`` holds; images tell whether they are those of the features, see `pictures`.

        Raises:
            InputError: They cannot be had; see `held_out_images`, `held_out_features` and `HeldOut.for_classifier`.
        """
        if not self._metadata.head_only:
            found = held_out_images(self._images, self._record, self._open_images).for_classifier(self._metadata)
            recipe = self._metadata.recipe
            return (
                replace(found, identify=lambda image: picture_hash(recipe.flatten(image))) if self.pictures else found
            )
        path = self._record.features.path
        if self._data is None and path is None:
            raise InputError(
                "a head alone is proved with features, and a fine-tuned run keeps none: extract them with "
                "`headsmith extract --backbone RUN` and name them with --data"
            )
        if self._data is None and path is not None and not Path(path).exists():
            raise InputError(
                f"{path}: the feature set that the head was trained on was not found; name one with --data"
            )
        return self._rows("test")

    def split(self, name: str) -> HeldOut:
        """The ``train`` or ``val`` split of what a head was trained on: where it was, or at ``data``.

        Raises:
            InputError: It is in neither place, or the split is empty.
        """
        if self._metadata.head_only:
            return self._rows(name)
        return training_images(name, self._images, self._record, self._open_images).for_classifier(self._metadata)

    def trained_features(self) -> "FeatureSet":
        """The feature set that a head was trained on.

        Raises:
            InputError: It is not there any more, or is another one now.
        """
        if self._record.features.path is None:
            raise InputError("a fine-tuned run keeps none")
        features = self._open(self._record.features.path)
        if features.fingerprint != self._record.features.fingerprint:
            raise InputError(f"{features.path} has changed since the head was trained on it; train again")
        return features

    @cached_property
    def cached_features(self) -> "FeatureSet | None":
        """The same; ``None`` where it is not there any more, or is another one now, or ``data`` names other inputs."""
        path = self._record.features.path
        if self._data is not None or path is None or not Path(path).is_dir():
            return None
        features = self._open(path)
        return features if features.fingerprint == self._record.features.fingerprint else None

    @cached_property
    def pictures(self) -> dict[str, str]:
        """By the ids of the test split the hashes of the pictures that `cached_features` are of; none where unknown."""
        columns = None if self.cached_features is None else self.cached_features.columns.get("test")
        if columns is None or columns.pictures is None:
            return {}
        return dict(zip(columns.ids, columns.pictures.to_pylist(), strict=True))

    @property
    def _images(self) -> str | Path | None:
        assert self._data is None or isinstance(self._data, str | Path)  # noqa: S101 - others were refused
        return self._data

    def _open(self, path: str) -> "FeatureSet":
        from ..trainer.features.feature_set import FeatureSet

        if path not in self._opened:
            self._opened[path] = FeatureSet.load(path)
        return self._opened[path]

    def _rows(self, split: str) -> HeldOutFeatures:
        data = self._data or self._record.features.path
        assert data is not None  # noqa: S101 - see `held_out`
        key = str(data if isinstance(data, str | Path) else data.path)
        found = held_out_features(self._opened.get(key, data), split).for_classifier(self._metadata)
        self._opened[key] = found.features
        return found
