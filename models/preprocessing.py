"""The recipe from a decoded image to what a backbone sees: resize and crop here, with PIL alone."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from PIL import Image

from ..core.errors import InputError
from ..core.files import sha256_json
from ..core.json_values import JsonObject
from ..core.records import OPTIONAL, to_json
from ..core.typed_json import structured
from .images import MOST_PIXELS, UnreadableImage, flatten

RESIZE_MODES = ("shortest", "exact")
INTERPOLATIONS = ("nearest", "nearest-exact", "bilinear", "bicubic", "box", "hamming", "lanczos")
_NEAREST_EXACT = "nearest-exact"  # torchvision's word for what PIL's nearest does
CHANNEL_ORDERS, LAYOUTS = ("rgb", "bgr"), ("nchw", "nhwc")
Triple = tuple[float, float, float]
WHITE = (255, 255, 255)


@dataclass(frozen=True)
class Preprocessing:
    """A backbone's own recipe, from RGB image to normalised tensor.

    Attributes:
        resize_mode: ``shortest`` scales the shorter edge to ``resize_size`` and keeps the aspect ratio; ``exact``
            squashes to ``resize_size``.
        resize_size: ``(height, width)`` in pixels; both equal for ``shortest``.
        crop_size: ``(height, width)`` of the centre crop, in pixels.
        interpolation: ``nearest``, ``bilinear``, ``bicubic``, ``box``, ``hamming`` or ``lanczos``.
        mean: Per channel in ``channel_order``, subtracted after ``scale``.
        std: Per channel in ``channel_order``, divided by last.
        scale: What a pixel in 0..255 is multiplied by first.
        antialias: Whether shrinking filters over all pixels (PIL always does).
        channel_order: The order of the channels that the backbone expects: ``rgb`` or ``bgr``.
        layout: The axes that the backbone expects: ``nchw`` or ``nhwc``.
        background: What transparent pixels are composited on, RGB in 0..255; ``None`` drops alpha, as recipes from
            before this field did. It has no key in `to_dict` then, so that their hashes stay true.
    """

    resize_mode: str
    resize_size: tuple[int, int]
    crop_size: tuple[int, int]
    interpolation: str
    mean: Triple
    std: Triple
    scale: float = 1 / 255
    antialias: bool = True
    channel_order: str = "rgb"
    layout: str = "nchw"
    background: tuple[int, int, int] | None = field(default=WHITE, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        if self.resize_mode not in RESIZE_MODES:
            raise InputError(f"resize_mode: {self.resize_mode!r} is not known; expected one of {RESIZE_MODES}")
        if self.interpolation not in INTERPOLATIONS:
            raise InputError(f"interpolation: {self.interpolation!r} is not known; expected one of {INTERPOLATIONS}")
        if self.resize_mode == "shortest" and self.resize_size[0] != self.resize_size[1]:
            raise InputError(f"resize_size: {self.resize_size} is not square, but resize_mode is 'shortest'")
        if self.channel_order not in CHANNEL_ORDERS:
            raise InputError(f"channel_order: {self.channel_order!r} is not known; expected one of {CHANNEL_ORDERS}")
        if self.layout not in LAYOUTS:
            raise InputError(f"layout: {self.layout!r} is not known; expected one of {LAYOUTS}")
        if self.antialias is not True:
            raise InputError(f"antialias: {self.antialias!r} found, only true is supported")
        for name in ("resize_size", "crop_size"):
            height, width = getattr(self, name)
            if height * width > MOST_PIXELS:
                raise InputError(f"{name}: {height} x {width} pixels, expected at most {MOST_PIXELS / 1e6:.0f} million")
        if self.background is not None and not _is_colour(self.background):
            raise InputError(f"background: {self.background!r} found, expected three whole numbers from 0 to 255")

    def __call__(self, image: Image.Image) -> np.ndarray[Any, np.dtype[np.uint8]]:
        """Composite, resize and crop an RGB or RGBA image.

        Returns:
            Pixels ``(height, width, 3)``, uint8, RGB: what an exported file takes.
        """
        resized = self.resize(image)
        height, width = self.crop_size
        top, left = _middle(resized.height, height), _middle(resized.width, width)
        return np.array(resized.crop((left, top, left + width, top + height)))  # black beyond the edges

    def resize(self, image: Image.Image) -> Image.Image:
        """Composite and resize an RGB or RGBA image, before the crop; see `resized` for what is raised."""
        size = self.resized(image.size)
        image = self.flatten(image)
        return image if image.size == size else image.resize(size, self.resampling)

    @property
    def resampling(self) -> Image.Resampling:
        """PIL's filter of the resize."""
        name = "nearest" if self.interpolation == _NEAREST_EXACT else self.interpolation
        return Image.Resampling[name.upper()]

    def flatten(self, image: Image.Image) -> Image.Image:
        """An RGB image of an RGB or RGBA one, composited on the background."""
        return flatten(image, self.background)

    def resized(self, size: tuple[int, int]) -> tuple[int, int]:
        """``(width, height)`` after the resize of an image of ``(width, height)``.

        Raises:
            UnreadableImage: That were more pixels than any image may have: a strip, and a recipe for large images.
        """
        height, width = self.resize_size
        if self.resize_mode == "shortest":
            height, width = height * size[1] // min(size), height * size[0] // min(size)
        if height * width > MOST_PIXELS:
            raise UnreadableImage(
                f"{size[0]} x {size[1]} pixels, which this recipe resizes to {width} x {height}, expected at most "
                f"{MOST_PIXELS / 1e6:.0f} million; divide it"
            )
        return width, height

    @property
    def crop_pct(self) -> float:
        """Crop edge over resized edge, as timm states it."""
        return self.crop_size[0] / self.resize_size[0]

    @property
    def digest(self) -> str:
        """SHA-256 of the recipe: equal recipes have equal digests, whatever they came from."""
        return sha256_json(self.to_dict())

    def to_dict(self) -> JsonObject:
        """The recipe as JSON values."""
        values: JsonObject = to_json(self)
        return values

    @classmethod
    def from_dict(cls, values: JsonObject, where: str = "preprocessing") -> Self:
        """Read what `to_dict` gave.

        Args:
            values: The keys with their values.
            where: What holds them, for errors.

        Raises:
            InputError: A key is missing, unknown, or holds a value of another kind.
        """
        advice = "a recipe is never guessed: make the file anew"
        return structured(upgraded_recipe(values), cls, where, advice=advice)

    @classmethod
    def from_timm(cls, config: Mapping[str, Any]) -> Self:
        """The recipe of a timm data configuration (``timm.data.resolve_data_config``).

        Raises:
            InputError: A crop mode or an input shape that this recipe cannot express.
        """
        _, height, width = config["input_size"]
        mode = config.get("crop_mode") or "center"
        squash = mode == "squash"
        if mode == "border" or (height != width and not squash):
            raise InputError(f"crop_mode {mode!r} at {height}x{width}: expected 'center' (square) or 'squash'")
        resized = (math.floor(height / config["crop_pct"]), math.floor(width / config["crop_pct"]))
        return cls(
            resize_mode="exact" if squash else "shortest",
            resize_size=resized,
            crop_size=(height, width),
            interpolation=config["interpolation"],
            mean=tuple(config["mean"]),
            std=tuple(config["std"]),
        )

    @classmethod
    def from_torchvision(cls, preset: Any, image_size: int | None = None) -> Self:
        """The recipe of a torchvision ``ImageClassification`` preset (``weights.transforms()``).

        Args:
            preset: The preset.
            image_size: Another crop edge in pixels; the resize edge keeps its ratio to it.
        """
        crop, resize = preset.crop_size[0], preset.resize_size[0]
        if image_size is not None:
            crop, resize = image_size, math.floor(resize * image_size / crop)
        return cls(
            resize_mode="shortest",
            resize_size=(resize, resize),
            crop_size=(crop, crop),
            interpolation=preset.interpolation.value,
            mean=tuple(preset.mean),
            std=tuple(preset.std),
        )


def upgraded_recipe(values: Any) -> Any:
    """The JSON values of a recipe as this version has them, whatever version wrote them."""
    return {"background": None} | values if isinstance(values, dict) else values


def _middle(size: int, crop: int) -> int:
    """Where a centre crop begins, as torchvision's ``center_crop`` has it; below 0 where the crop is larger."""
    return round((size - crop) / 2) if size >= crop else -((crop - size) // 2)


def _is_colour(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 3
        and all(isinstance(level, int) and not isinstance(level, bool) and 0 <= level <= 255 for level in value)
    )
