"""What an exported file says about itself, in the file itself, and the rule for its class names."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from PIL import Image

from ..core.errors import InputError
from ..core.files import parse_json, sha256_json
from ..core.records import to_json
from ..core.typed_json import structured
from ..core.version import __version__
from ..models.backbone_record import BackboneRecord
from ..models.preprocessing import Preprocessing
from .options import ENCODED, FEATURES, FP32, PIXEL_FORMATS, UINT8_NHWC


def check_labels(labels: Sequence[str], num_classes: int, where: str) -> tuple[str, ...]:
    """Refuse labels that could not be told apart or could not stand one on a line.

    Any text on one line is a label: commas, quotes, emoji and markup are kept as they are.

    Args:
        labels: Class names in the order of the logits.
        num_classes: C, the number of logits.
        where: What holds the labels, for the error.

    Raises:
        InputError: Another number than C, two alike, an empty name, or one with a line break.
    """
    if len(labels) != num_classes:
        raise InputError(f"{where}: {len(labels)} labels for {num_classes} outputs; expected one label an output")
    for index, label in enumerate(labels):
        if label.splitlines() != [label]:
            raise InputError(f"{where}: label {index} is {label!r}; expected text on one line, so rename that class")
    name, count = Counter(labels).most_common(1)[0]
    if count > 1:
        raise InputError(f"{where}: label {name!r} found {count} times, expected every class name once")
    return tuple(labels)


def describe(labels: Sequence[str]) -> dict[str, str]:
    """What each label means: of a WordNet id (``n01440764``) its synonyms (``tench, Tinca tinca``), else the label."""
    if not any(re.fullmatch(r"n\d{8}", label) for label in labels):
        return {label: label for label in labels}
    from timm.data.imagenet_info import ImageNetInfo

    info = ImageNetInfo("imagenet-22k")
    known = set(info.label_names())
    return {label: info.label_name_to_description(label) if label in known else label for label in labels}


AGAIN = "export it again"
KEYS = (
    "headsmith_version",
    "labels",
    "labels_sha256",
    "input_format",
    "preprocessing",
    "preprocessing_sha256",
    "backbone",
    "backbone_weights_sha256",
    "feature_set",
    "head",
    "label_descriptions",
    "resize",
    "precision",
)


@dataclass(frozen=True)
class BackboneIdentity:
    """What identifies a backbone anywhere; ``None`` for what nobody knows."""

    spec: str | None
    tap: str | None
    feature_dim: int | None
    weights_sha256: str | None


def identity(record: BackboneRecord | None, feature_dim: int) -> BackboneIdentity:
    """What of a backbone's record identifies it anywhere; paths of the machine that made it stay behind.

    Of a backbone that nobody knows (imported features) it is D, and ``None`` for the rest.
    """
    if record is None:
        return BackboneIdentity(None, None, feature_dim, None)
    return BackboneIdentity(record.spec, record.tap, record.feature_dim, record.weights_sha256)


@dataclass(frozen=True)
class Metadata:
    """The side of a classifier that is no tensor.

    Attributes:
        labels: C class names, in the order of the logits.
        input_format: ``float-nchw``: float32 RGB ``(N, 3, H, W)`` in 0..255; ``uint8-nhwc``: uint8 RGB
            ``(N, H, W, 3)``; ``encoded``: the bytes of one JPEG or PNG file, uint8; ``features``: float32 ``(N, D)``, a
            head alone.
        preprocessing: Resize and crop, before the file unless it has `resize`, and normalisation inside it. With
            ``features``: what the backbone of those features saw, ``None`` where nobody knows it.
        backbone: What identifies the backbone: see `identity`.
        feature_set: Fingerprint of the feature set that the head was trained on.
        head: The kind of head that was trained.
        resize: Resize and crop are inside the file, which takes images of any size.
        precision: What the file computes in: ``fp32``, ``fp16``, ``int8`` or ``int8-dynamic``.
        version: The headsmith that wrote the file.
        descriptions: What each label means; ``None`` is what `describe` says, and in files from before they said it.
    """

    labels: tuple[str, ...]
    input_format: str
    preprocessing: Preprocessing | None
    backbone: BackboneIdentity
    feature_set: str
    head: str = "linear"
    resize: bool = False
    precision: str = FP32
    version: str = __version__
    descriptions: dict[str, str] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        known = (*PIXEL_FORMATS, FEATURES)
        if self.input_format not in known:
            raise InputError(f"--input: {self.input_format!r} is not known; expected one of {', '.join(known)}")
        if self.resize and self.input_format not in (UINT8_NHWC, ENCODED):
            raise InputError(f"--resize: found with --input {self.input_format}, expected --input {UINT8_NHWC}")

    @property
    def head_only(self) -> bool:
        """Whether the file takes features instead of pixels."""
        return self.input_format == FEATURES

    @property
    def encoded(self) -> bool:
        """Whether the file decodes images itself."""
        return self.input_format == ENCODED

    @property
    def prepare(self) -> Callable[[Image.Image], np.ndarray[Any, Any]]:
        """From an RGB or RGBA image to pixels ``(H, W, 3)``, uint8, for `Model.run`: resized and cropped, or whole."""
        return self._whole if self.resize else self.recipe

    def _whole(self, image: Image.Image) -> np.ndarray[Any, Any]:
        self.recipe.resized(image.size)  # which the graph will do, within the same limit
        return np.array(self.recipe.flatten(image))

    def batch_size(self, asked: int) -> int:
        """How many images a run takes: one where they are of any size."""
        return 1 if self.resize else asked

    @property
    def input_name(self) -> str:
        """The name of the graph's input."""
        return FEATURES if self.head_only else "pixel_values"

    def input_shape(self, shape: tuple[int, ...]) -> tuple[int | str, ...]:
        """The shape of the file's input, free axes by name.

        Args:
            shape: That of one input of a file without `resize`.
        """
        if self.encoded:
            return ("bytes",)
        return ("batch", "height", "width", 3) if self.resize else ("batch", *shape)

    @property
    def recipe(self) -> Preprocessing:
        """The preprocessing of a file that takes pixels.

        Raises:
            InputError: Nobody knows it.
        """
        if self.preprocessing is None:
            raise InputError(
                "the features were imported without their backbone, so pixels cannot be classified: export features to "
                "logits with --head-only, or import the features again with --backbone"
            )
        return self.preprocessing

    @property
    def preprocessing_sha256(self) -> str:
        """A hash over the preprocessing; empty where nobody knows it."""
        return "" if self.preprocessing is None else self.preprocessing.digest

    @property
    def labels_sha256(self) -> str:
        """A hash over the class names in order: files with another order have another one."""
        return sha256_json(list(self.labels))

    def _hashes(self) -> dict[str, str]:
        """What a file says of itself in hashes, by which it is checked."""
        return {
            "labels_sha256": self.labels_sha256,
            "preprocessing_sha256": self.preprocessing_sha256,
            "backbone_weights_sha256": self.backbone.weights_sha256 or "",
        }

    def to_strings(self) -> dict[str, str]:
        """The string map of ONNX ``metadata_props`` and of TorchScript ``_extra_files``."""
        values = (
            self.version,
            json.dumps(list(self.labels), ensure_ascii=False),
            self.labels_sha256,
            self.input_format,
            json.dumps(self.preprocessing and self.preprocessing.to_dict()),
            self.preprocessing_sha256,
            json.dumps(to_json(self.backbone), ensure_ascii=False),
            self.backbone.weights_sha256 or "",
            self.feature_set,
            self.head,
            json.dumps(self.descriptions or describe(self.labels), ensure_ascii=False),
            str(self.resize),
            self.precision,
        )
        return dict(zip(KEYS, values, strict=True))

    @classmethod
    def from_strings(cls, values: dict[str, str], where: str) -> Self:
        """Read what `to_strings` gave.

        Args:
            values: The file's string map.
            where: The file, for errors.

        Raises:
            InputError: The file carries no recipe, or one that contradicts its own hashes.
        """
        if not values.get("headsmith_version"):  # TorchScript names every key that is asked for
            raise InputError(
                f"{where}: no headsmith metadata (labels, preprocessing) found, expected a file of `headsmith export`; "
                "a recipe is never guessed"
            )
        try:
            recipe, said = parse_json(values["preprocessing"]), values.get("label_descriptions")
            about, own = f"{where}: label_descriptions", f"{where}: metadata: preprocessing"
            found = cls(
                labels=structured(parse_json(values["labels"]), tuple[str, ...], f"{where}: labels", advice=AGAIN),
                input_format=values["input_format"],
                preprocessing=None if recipe is None else Preprocessing.from_dict(recipe, own),
                backbone=structured(
                    parse_json(values["backbone"]), BackboneIdentity, f"{where}: backbone", advice=AGAIN
                ),
                feature_set=values["feature_set"],
                head=values.get("head") or "linear",  # the only kind that the first files knew
                resize=values.get("resize") == "True",
                precision=values.get("precision") or FP32,  # as above
                version=values["headsmith_version"],
                descriptions=None
                if said is None
                else structured(parse_json(said), dict[str, str], about, advice=AGAIN),
            )
        except InputError:
            raise
        except KeyError as error:
            raise InputError(
                f"{where}: headsmith metadata is incomplete or damaged ({error} is missing); {AGAIN}"
            ) from None
        except ValueError as error:
            raise InputError(f"{where}: headsmith metadata is incomplete or damaged ({error}); {AGAIN}") from None
        check_labels(found.labels, len(found.labels), where)
        expected = found._hashes()
        for key in expected:
            if values.get(key, "") != expected[key]:
                raise InputError(f"{where}: metadata `{key}` does not fit the rest of the metadata; export it again")
        return found
