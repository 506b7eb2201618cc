"""Every mode and container: its pixels become the ones that its specification says, or it is refused by name."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from image_rows import ROWS

from headsmith.models.images import UnreadableImage, flatten, open_image, remarks

PAGE = Path(__file__).parents[2] / "docs" / "images.md"


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.container}: {row.pixels}")
def test_pixels(row):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if isinstance(row.expected, str):
            with pytest.raises(UnreadableImage, match=f"^photo: .*{row.expected}"):
                open_image(row.content, "photo")
            return
        image = open_image(row.content, "photo")
    found = np.asarray(flatten(image, (255, 255, 255))).reshape(-1, 3)[: len(row.expected)]
    np.testing.assert_allclose(found.astype(int), row.expected, atol=row.tolerance, rtol=0)
    assert remarks(image) == row.remarks
    assert image.mode == ("RGBA" if "transparency" in row.remarks else "RGB")
