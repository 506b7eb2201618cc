"""Labelled inputs, mostly those that no training saw: as they lie there, and as a classifier takes them."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from PIL import Image

from ..core.coded_warnings import CodedWarning
from ..core.errors import InputError
from ..core.files import sha256_json
from ..models.class_names import ClassNames, match_classes
from ..models.images import flatten
from ..models.preprocessing import WHITE
from ..trainer.features.images.samples import Unreadable
from .metadata import BackboneIdentity, Metadata, identity
from .runtime import Array

if TYPE_CHECKING:
    from ..trainer.features.feature_set import FeatureSet
    from ..trainer.features.images.batches import Prepare
    from ..trainer.features.images.image_set import ImageSet


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


@dataclass(kw_only=True, eq=False)
class HeldOut(ABC):
    """Labelled inputs: images or features.

    Attributes:
        given: Where it comes from, as it was given; empty where nobody named it.
        index: For each of its classes the index among the classifier's labels; empty before `for_classifier`.
        sets: ``(N, L)`` int64, the right classes of each input, -1 where it has fewer; ``None`` where each has one.
        groups: The group of each input, or ``None``.
        warnings: What was found while it was opened.
        unreadable: What was left out, once the batches were read.
        remarks: How many images were more than plain RGB or grey, by what, once the batches were read.
    """

    given: str = ""
    index: Array = field(default_factory=lambda: np.empty(0, np.int64))
    sets: Array | None = None
    groups: list[str] | None = None
    warnings: tuple[CodedWarning, ...] = ()
    unreadable: list[Unreadable] = field(default_factory=list)
    remarks: Counter[str] = field(default_factory=Counter)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def name(self) -> str:
        """Where it comes from, as it was given; of ``.`` and the like the folder's own name."""
        given = Path(self.given or self.place)
        return str(given if given.name not in ("", "..") else given.resolve().name)

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it comes from, as an absolute path if it is one."""

    @property
    @abstractmethod
    def class_names(self) -> list[str]:
        """Its classes, in its order."""

    @property
    @abstractmethod
    def ids(self) -> list[str]:
        """Its sample ids, in order."""

    @abstractmethod
    def only(self, rows: Sequence[int]) -> Self:
        """Some of the inputs by their places, for the same classifier; sets and groups are left out."""

    @property
    @abstractmethod
    def _contents(self) -> str:
        """SHA-256 over classes, ids, labels and contents."""

    @abstractmethod
    def _check(self, metadata: Metadata) -> None:
        """Refuse a classifier that takes other inputs."""

    @abstractmethod
    def _read(self, size: int) -> Iterator[Batch]:
        """All inputs in order, with labels that are indices into ``class_names``."""

    def for_classifier(self, metadata: Metadata, names: ClassNames | None = None, *, strict: bool = False) -> Self:
        """The inputs as a classifier takes them, with its own numbers of the classes.

        Args:
            metadata: What its file says of itself.
            names: Ways to name its outputs; by default its labels.
            strict: Stop at an unreadable image instead of leaving it out.

        Raises:
            InputError: A class that the classifier does not know; images for a head alone and the reverse; features of
                another backbone or preprocessing than the head's.
        """
        self._check(metadata)
        index = match_classes(self.class_names, names or (metadata.labels,), self.name)
        return replace(self, index=index, unreadable=[], remarks=Counter())

    def batches(self, size: int) -> Iterator[Batch]:
        """Read the inputs once, in order."""
        self.unreadable.clear()
        self.remarks.clear()
        for batch in self._read(size):
            yield batch._replace(labels=self.index[batch.labels])

    def sample(self, count: int) -> Self:
        """At most ``count`` of them at random, always the same ones."""
        return self.only(np.sort(np.random.default_rng(0).permutation(len(self))[:count]).tolist())

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over classes, ids, labels, contents and groups."""
        further = {"sets": None if self.sets is None else self.sets.tolist(), "groups": self.groups}
        return sha256_json([self._contents, further]) if any(further.values()) else self._contents

    @property
    def duplicates(self) -> int:
        """Images that repeat an earlier one, byte by byte."""
        return 0

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {sample: row for row, sample in enumerate(self.ids)}

    def rows_of(self, ids: Sequence[str]) -> list[int]:
        """Which inputs have these ids."""
        return [self._rows[sample] for sample in ids]

    def image(self, sample: str) -> Image.Image:
        """The image with an id, upright 8-bit RGB on white.

        Raises:
            InputError: There is none, or it does not decode.
        """
        raise InputError(f"{self.name}: holds no image {sample}")


@dataclass(eq=False)
class HeldOutImages(HeldOut):
    """Images.

    Attributes:
        images: The images.
        prepare: Resize and crop, or whatever `Metadata.prepare` is; set by `for_classifier`.
        strict: Stop at an unreadable image instead of leaving it out.
        identify: From an image to what tells it from others; ``None`` where nobody asks.
        pictures: That of each image by its id, once the batches were read.
    """

    images: "ImageSet"
    prepare: "Prepare | None" = None
    strict: bool = False
    identify: Callable[[Image.Image], str] | None = None
    pictures: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where they come from."""
        return self.images.source.source

    @property
    def class_names(self) -> list[str]:
        """Their classes, in their order."""
        return self.images.class_names

    @cached_property
    def ids(self) -> list[str]:
        """Their sample ids, in order."""
        return [sample.id for sample in self.images.samples]

    @property
    def _contents(self) -> str:
        return self.images.fingerprint

    @cached_property
    def duplicates(self) -> int:
        """Images that repeat an earlier one, byte by byte."""
        count = Counter(self.images.hashes)
        return sum(times - 1 for content, times in count.items() if content is not None)

    def only(self, rows: Sequence[int]) -> Self:
        """Some of them by their places."""
        images = replace(self.images, samples=[self.images.samples[row] for row in rows])
        return replace(self, images=images, sets=None, groups=None, unreadable=[], remarks=Counter(), pictures={})

    def _check(self, metadata: Metadata) -> None:
        if metadata.head_only:
            raise InputError(f"{self.name}: holds images, a head alone takes features; name a feature set")

    def for_classifier(self, metadata: Metadata, names: ClassNames | None = None, *, strict: bool = False) -> Self:
        """The images as a classifier takes them: see `HeldOut`."""
        return replace(super().for_classifier(metadata, names), prepare=metadata.prepare, strict=strict)

    def _read(self, size: int) -> Iterator[Batch]:
        from ..trainer.features.images.batches import image_batches

        if self.prepare is None:
            raise ValueError("images are decoded for a classifier")
        self.pictures.clear()
        for batch in image_batches(
            self.images,
            self.prepare,
            size,
            strict=self.strict,
            on_unreadable=self._leave_out,
            identify=self.identify,
        ):
            self.remarks.update(batch.remarks)
            self.pictures.update(zip(batch.ids, batch.pictures, strict=self.identify is not None))
            yield Batch(batch.pixels, batch.labels, batch.ids)

    def _leave_out(self, sample: str, reason: str) -> None:
        self.unreadable.append(Unreadable(sample, reason))

    def image(self, sample: str) -> Image.Image:
        """The image with an id: see `HeldOut`."""
        if sample not in self._rows:
            return super().image(sample)
        return flatten(self.images.read(self._rows[sample]), WHITE)


@dataclass(eq=False)
class HeldOutFeatures(HeldOut):
    """Rows of one split of a feature set, for a head alone.

    Attributes:
        features: The feature set.
        split: The split.
        rows: Which of its rows; ``None`` are all.
    """

    features: "FeatureSet"
    split: str = "test"
    rows: Array | None = None

    @property
    def place(self) -> str:
        """Where they come from."""
        return str(Path(self.features.path).resolve())

    @property
    def class_names(self) -> list[str]:
        """Their classes, in their order."""
        return self.features.class_names

    @cached_property
    def ids(self) -> list[str]:
        """Their sample ids, in order."""
        ids = self.features.ids(self.split)
        return ids if self.rows is None else [ids[row] for row in self.rows]

    @property
    def _contents(self) -> str:
        return self.features.fingerprint

    def only(self, rows: Sequence[int]) -> Self:
        """Some of them by their places."""
        chosen = np.array(rows, dtype=np.int64)
        return replace(self, rows=chosen if self.rows is None else self.rows[chosen], sets=None, groups=None)

    def _check(self, metadata: Metadata) -> None:
        if not metadata.head_only:
            raise InputError(f"{self.name}: is a feature set, which only heads that were exported alone take")
        backbone, expected = self.features.manifest.backbone, metadata.backbone
        found = identity(backbone, self.features.feature_dim)
        recipe = backbone.preprocessing.digest if backbone else ""
        if found != expected or recipe != metadata.preprocessing_sha256:
            raise InputError(
                f"{self.name}: features of {_brief(found)}, the head was trained on those of {_brief(expected)}; "
                "expected the same weights, layer and preprocessing"
            )

    def _read(self, size: int) -> Iterator[Batch]:
        features, labels = self.features.arrays(self.split)
        chosen = np.arange(len(self)) if self.rows is None else self.rows
        for start in range(0, len(chosen), size):
            rows = chosen[start : start + size]
            yield Batch(features[rows].numpy(), labels[rows].numpy(), self.ids[start : start + size])


def _brief(backbone: BackboneIdentity) -> str:
    if backbone.spec is None:
        return f"an unknown backbone (D = {backbone.feature_dim})"
    return f"{backbone.spec} (weights {(backbone.weights_sha256 or '')[:12]}, {backbone.tap})"
