import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="session")
def images(image_folder, tiny_bundle):
    """Held-out images with harder classes than those of the training: 7 each, so that batches do not come out even."""
    folder = image_folder(dict.fromkeys(tiny_bundle.class_names, 7), size=45)
    for number, path in enumerate(sorted(folder.glob("*/*.png"))):
        if number % 3 == 0:
            noise = np.random.default_rng(number).integers(0, 256, (45, 45, 3), dtype=np.uint8)
            Image.fromarray(noise).save(path)
    return folder
