"""What is done to training images, by torchvision's transforms."""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor
from torchvision.transforms import v2

from ...models.preprocessing import Preprocessing
from .settings import FinetuneConfig

# A smaller crop often misses what an image is labelled with; fine-tunings are short.
SMALLEST_CROP = 0.35
CIFAR_PADDING = 4
_AFTER = {"crop-flip": (), "randaugment": (v2.RandAugment,), "trivial": (v2.TrivialAugmentWide,)}

Mix = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def training_recipe(recipe: Preprocessing, augmentation: str) -> Preprocessing:
    """How training images are resized before they are augmented: with what a crop may be taken from."""
    if augmentation not in _AFTER:
        return recipe
    pairs = zip(recipe.resize_size, recipe.crop_size, strict=True)
    height, width = (max(pair) for pair in pairs)
    return replace(recipe, crop_size=(height, width))


class Augmentation:
    """Pixels ``(N, 3, H, W)``, uint8, to those of crops; each image by itself, from torch's generator.

    Args:
        config: ``augmentation`` and ``erasing``.
        size: ``(height, width)`` of a crop.
    """

    def __init__(self, config: FinetuneConfig, size: tuple[int, int]) -> None:
        self._change = _transform(config.augmentation, size)
        self._erase = v2.RandomErasing(config.erasing) if config.erasing else None

    def __call__(self, pixels: Tensor) -> Tensor:
        """Augment a batch."""
        return pixels if self._change is None else torch.stack([self._change(one) for one in pixels])

    def erased(self, inputs: Tensor) -> Tensor:
        """Normalised images ``(N, 3, H, W)`` with rectangles of the mean colour in some."""
        return inputs if self._erase is None else torch.stack([self._erase(one) for one in inputs])


def _transform(kind: str, size: tuple[int, int]) -> v2.Transform | None:
    if kind == "none":
        return None
    if kind == "cifar":
        return v2.Compose([v2.RandomCrop(size, padding=CIFAR_PADDING), v2.RandomHorizontalFlip()])
    crop = v2.RandomResizedCrop(size, scale=(SMALLEST_CROP, 1.0), antialias=True)
    return v2.Compose([crop, v2.RandomHorizontalFlip(), *(more() for more in _AFTER[kind])])


def mixing(config: FinetuneConfig, num_classes: int) -> Mix | None:
    """Mixup (Zhang et al., 2018), CutMix (Yun et al., 2019), or one of both for each batch; ``None`` for neither.

    From images ``(N, 3, H, W)`` and labels ``(N,)`` int64 to mixed ones and soft targets ``(N, C)``.
    """
    kinds = [
        kind(alpha=alpha, num_classes=num_classes)
        for kind, alpha in ((v2.MixUp, config.mixup), (v2.CutMix, config.cutmix))
        if alpha
    ]
    return None if not kinds else kinds[0] if len(kinds) == 1 else v2.RandomChoice(kinds)
