"""Views of a training image: further crops and mirror images, each a row of its own."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from ....core.errors import InputError
from ....models.preprocessing import Preprocessing

CROPS = (1, 5)
CENTRE = "centre"
_CORNERS = ("top left", "top right", "bottom left", "bottom right")
_MIRRORED = ", mirrored"
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


def view_names(crops: int, flip: bool) -> list[str]:
    """What the views are called, in the order of their rows: the deployed one first, mirrored ones last."""
    upright = [CENTRE, *_CORNERS][:crops]
    return upright + [name + _MIRRORED for name in upright if flip]


@dataclass(frozen=True)
class Views:
    """From an image to the pixels of its views.

    Attributes:
        preprocessing: The backbone's own recipe; what it gives is the first view.
        crops: 1, or 5: the four corners of the resized image as well.
        flip: Whether the mirror image of each crop follows.
    """

    preprocessing: Preprocessing
    crops: int = 1
    flip: bool = False

    def __post_init__(self) -> None:
        if self.crops not in CROPS:
            more = "; ten crops are --crops 5 --flip" if self.crops == 10 else ""
            raise InputError(f"--crops: {self.crops} found, expected 1 or 5{more}")
        resized, crop = self.preprocessing.resize_size, self.preprocessing.crop_size
        if self.crops > 1 and (resized == crop or resized[0] < crop[0] or resized[1] < crop[1]):
            raise InputError(
                f"--crops {self.crops}: this backbone resizes images to {resized[0]} x {resized[1]} pixels and crops "
                f"{crop[0]} x {crop[1]}, so that all crops would be alike; leave it out, or use --flip"
            )

    @property
    def names(self) -> list[str]:
        """What the views of a training image are called."""
        return view_names(self.crops, self.flip)

    def __call__(self, image: Image.Image, split: str) -> Pixels:
        """The views of an RGB image.

        Returns:
            Pixels ``(V, height, width, 3)``, uint8. Only training images have more than the deployed view, so that
            what is measured on the others is what is deployed.
        """
        if split != "train" or len(self.names) == 1:
            return self.preprocessing(image)[None]
        upright = list(self._crops(image))
        mirrored = [pixels[:, ::-1] for pixels in upright if self.flip]
        return np.stack(upright + mirrored)

    def _crops(self, image: Image.Image) -> Iterator[Pixels]:
        if self.crops == 1:
            yield self.preprocessing(image)
            return
        from torchvision.transforms import functional as transforms

        size = list(self.preprocessing.crop_size)
        *corners, centre = transforms.five_crop(self.preprocessing.resize(image), size)
        yield from (np.array(crop) for crop in (centre, *corners))
