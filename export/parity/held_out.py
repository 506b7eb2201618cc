"""Labelled inputs with the classes of a classifier, mostly those that no training saw: images, or cached features."""

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ...core.errors import InputError, near
from ...models.backbone_record import BackboneRecord
from ..metadata import BackboneIdentity, Metadata, identity
from ..origin import is_source
from ..runtime import Array

if TYPE_CHECKING:
    from ...trainer.features.feature_set import FeatureSet
    from ...trainer.features.images.batches import Prepare
    from ...trainer.features.images.image_set import ImageSet
    from ...trainer.features.images.samples import Sample


class Batch(NamedTuple):
    """N labelled inputs.

    Attributes:
        inputs: Pixels uint8 ``(N, H, W, 3)``, or features float ``(N, D)``.
        labels: ``(N,)`` int64, indices into the classifier's labels.
        ids: N sample ids.
    """

    inputs: Array
    labels: Array
    ids: list[str]


@dataclass
class HeldOutImages:
    """Images of one split.

    Attributes:
        images: The images.
        index: For each class of the images its index among the classifier's labels.
        preprocessing: Resize and crop, or whatever `Metadata.prepare` is.
        strict: Stop at an unreadable image instead of leaving it out.
        unreadable: Id and reason of what was left out, once the batches were read.
        remarks: How many were more than plain RGB or grey, by what, once the batches were read.
    """

    images: "ImageSet"
    index: Array
    preprocessing: "Prepare"
    strict: bool = False
    unreadable: list[dict[str, str]] = field(default_factory=list)
    remarks: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.images)

    @property
    def name(self) -> str:
        """Where they come from."""
        return str(self.images.source["source"])

    @property
    def fingerprint(self) -> str:
        """SHA-256 over classes, ids, labels and contents."""
        return self.images.fingerprint

    def batches(self, size: int) -> Iterator[Batch]:
        """Decode the images once, in order."""
        from ...trainer.features.images.batches import image_batches

        self.unreadable.clear()
        self.remarks.clear()
        found = image_batches(
            self.images, self.preprocessing, size, strict=self.strict, on_unreadable=self._note_unreadable
        )
        for batch in found:
            self.remarks.update(batch.remarks)
            yield Batch(batch.pixels, self.index[batch.labels], batch.ids)

    def sample(self, count: int) -> "HeldOutImages":
        """At most ``count`` of them at random, always the same ones."""
        chosen = [self.images.samples[index] for index in _random_rows(len(self), count)]
        return self.only(chosen)

    def only(self, samples: "list[Sample]") -> "HeldOutImages":
        """Some of them."""
        images = dataclasses.replace(self.images, samples=samples)
        return dataclasses.replace(self, images=images, unreadable=[], remarks=Counter())

    def _note_unreadable(self, sample: str, reason: str) -> None:
        self.unreadable.append({"id": sample, "reason": reason})


@dataclass
class HeldOutFeatures:
    """Rows of one split of a feature set, for a head alone; ``None`` are all rows. For the rest see `HeldOutImages`."""

    features: "FeatureSet"
    index: Array
    split: str = "test"
    rows: Array | None = None
    unreadable: list[dict[str, str]] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.features.ids(self.split)) if self.rows is None else len(self.rows)

    @property
    def name(self) -> str:
        """Where they come from."""
        return str(self.features.path)

    @property
    def fingerprint(self) -> str:
        """The feature set's fingerprint."""
        return self.features.fingerprint

    def batches(self, size: int) -> Iterator[Batch]:
        """Rows in order."""
        features, labels = self.features.arrays(self.split)
        ids = self.features.ids(self.split)
        chosen = np.arange(len(ids)) if self.rows is None else self.rows
        for start in range(0, len(chosen), size):
            rows = chosen[start : start + size]
            yield Batch(features[rows].numpy(), self.index[labels[rows].numpy()], [ids[row] for row in rows])

    def sample(self, count: int) -> "HeldOutFeatures":
        """At most ``count`` of them at random, always the same ones."""
        return dataclasses.replace(self, rows=_random_rows(len(self), count))


HeldOut = HeldOutImages | HeldOutFeatures


def _random_rows(n: int, count: int) -> Array:
    return np.sort(np.random.default_rng(0).permutation(n)[:count])


def held_out_images(
    data: str | Path | None,
    origin: Mapping[str, Any],
    labels: Sequence[str],
    preprocessing: "Prepare",
    *,
    image_column: str | None = None,
    label_column: str | None = None,
    strict: bool = False,
) -> HeldOutImages:
    """Open held-out images and match their classes to a classifier's labels by name.

    Args:
        data: A folder of class folders, all of which are held out; or a source with a test split; or the source of
            the training, wherever it is now, whose held-out part is taken. ``None`` means the latter where it was.
        origin: The run's record, or the bundle's manifest: ``features``, ``backbone`` and ``results``.
        labels: The classifier's labels.
        preprocessing: Resize and crop, or whatever `Metadata.prepare` is.
        image_column: See `open_images`.
        label_column: See `open_images`.
        strict: Stop at an unreadable image.

    Raises:
        InputError: No such images any more, none of them held out, or a class that the classifier does not know.
    """
    from ...trainer.features.images.image_set import open_images

    if data is None:
        images = _training_source(origin["features"]["source"]).split("test")
    else:
        columns: dict[str, Any] = {"image_column": image_column, "label_column": label_column}
        trained_on = same_source(data, origin, columns)
        images = trained_on.split("test") if trained_on else open_images(data, **columns, splits=False)
    where = str(images.source["source"])
    if not len(images):
        raise InputError(f"{where}: no held-out image in it")
    return HeldOutImages(images, match_classes(images.class_names, labels, where), preprocessing, strict)


def training_images(
    split: str,
    data: str | Path | None,
    origin: Mapping[str, Any],
    labels: Sequence[str],
    preprocessing: "Prepare",
) -> HeldOutImages:
    """Open the images of one split of what a head was trained on: where they were, or at ``data``.

    Args:
        split: ``train`` or ``val``.
        data: See `held_out_images`.
        origin: See `held_out_images`.
        labels: See `held_out_images`.
        preprocessing: See `held_out_images`.

    Raises:
        InputError: They are neither there nor at ``data``, or the split is empty.
    """
    source = None if data is None else same_source(data, origin, {})
    images = (source or _training_source(origin["features"]["source"])).split(split)
    where = str(images.source["source"])
    if not len(images):
        raise InputError(f"{where}: its {split} split is empty")
    return HeldOutImages(images, match_classes(images.class_names, labels, where), preprocessing)


def same_source(data: str | Path, origin: Mapping[str, Any], columns: dict[str, Any]) -> "ImageSet | None":
    """The images at ``data`` where they are the source of the training: there, or with the same contents."""
    from ...trainer.features.extraction.request import request_parts, same_images
    from ...trainer.features.images.image_set import open_images

    features = origin["features"]
    together = (features["source"] or {}).get("together", False)
    try:
        images = open_images(data, **columns, together=together is not False)
    except InputError:
        return None  # nothing to train on, so not the source of a training
    found = images.moved(together) if together is not False else images
    if is_source(found.source, features):
        return found
    if len(found.split("test")) < origin["results"]["test"]["n"]:
        return None  # spares hashing the images
    parts = request_parts(
        BackboneRecord.of(origin["backbone"]), images.fingerprint, images.split_rule, features["dtype"]
    )
    return found if same_images(parts, features["fingerprint"]) else None


def _training_source(trained_on: dict[str, Any] | None) -> "ImageSet":
    if trained_on is None:
        raise InputError("the features were imported, so their images are not known; name held-out images with --data")
    from ...trainer.features.images.image_set import reopen

    try:
        return reopen(trained_on)
    except InputError as error:
        raise InputError(
            f"the images that the features came from cannot be opened ({error}); if they moved, name held-out images "
            "with --data"
        ) from error


def held_out_features(
    data: "str | Path | FeatureSet", metadata: Metadata, labels: Sequence[str], split: str = "test"
) -> HeldOutFeatures:
    """Open the test split, or another one, of a feature set for a head alone.

    Raises:
        InputError: No feature set, another backbone or preprocessing than the head's, or an unknown class.
    """
    from ...trainer.features.feature_set import FeatureSet

    try:
        features = data if isinstance(data, FeatureSet) else FeatureSet.load(data)
    except InputError as error:
        raise InputError(f"a head alone takes features, not images: {error}") from None
    values, expected = features.manifest["backbone"], metadata.backbone
    backbone = None if values is None else BackboneRecord.of(values)
    found = identity(backbone, features.feature_dim)
    recipe = backbone.preprocessing.digest if backbone else ""
    if found != expected or recipe != metadata.preprocessing_sha256:
        raise InputError(
            f"{features.path}: features of {_brief(found)}, the head was trained on those of {_brief(expected)}; "
            "expected the same weights, tap and preprocessing"
        )
    held_out = HeldOutFeatures(features, match_classes(features.class_names, labels, str(features.path)), split)
    if not len(held_out):
        raise InputError(f"{features.path}: its {split} split is empty")
    return held_out


def _brief(backbone: BackboneIdentity) -> str:
    if backbone.spec is None:
        return f"an unknown backbone (D = {backbone.feature_dim})"
    return f"{backbone.spec} (weights {(backbone.weights_sha256 or '')[:12]}, {backbone.tap})"


def match_classes(names: Sequence[str], labels: Sequence[str], where: str) -> Array:
    """For each class of the data its index among the classifier's labels, by name, whatever the order.

    Raises:
        InputError: A class that the classifier does not know, with the names closest to it.
    """
    known = {label: index for index, label in enumerate(labels)}
    unknown = [name for name in names if name not in known]
    if unknown:
        more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
        raise InputError(
            f"{where}: class {unknown[0]!r}{more} is not among the {len(labels)} labels of the classifier"
            f"{near(unknown[0], labels) or '; it must have been in the training'}"
        )
    return np.array([known[name] for name in names], dtype=np.int64)
