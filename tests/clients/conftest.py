"""Programs that nobody here wrote run the exported glyph classifier; each must give the labels that Python gives."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from headsmith import predict
from headsmith.export import Bundle
from headsmith.models.images import open_image


@dataclass(frozen=True)
class Glyphs:
    """The demo's bundle with its test images, and what Python says of them.

    Attributes:
        bundle: EfficientNet-Lite0 with a head: model.onnx and model.ts, float NCHW.
        files: The images, one file each.
        crops: The same resized and cropped, as PNG files.
        pixels: What is in those, uint8 `(N, H, W, 3)`.
        labels: The best label of each.
        logits: `(N, C)` of model.onnx.
    """

    bundle: Bundle
    files: list[Path]
    crops: list[Path]
    pixels: np.ndarray[Any, Any]
    labels: list[str]
    logits: np.ndarray[Any, Any]


@pytest.fixture(scope="session")
def glyphs(glyph_demo: Path, tmp_path_factory: pytest.TempPathFactory) -> Glyphs:
    bundle = Bundle.load(glyph_demo / "bundles" / "lapsum")
    files = sorted((glyph_demo / "glyphs" / "test").glob("*/*.png"))
    pixels = np.stack([bundle.preprocessing(open_image(file, str(file))) for file in files])
    folder = tmp_path_factory.mktemp("crops")
    crops = [folder / f"{number}.png" for number in range(len(files))]
    for crop, image in zip(crops, pixels, strict=True):
        Image.fromarray(image).save(crop)
    labels = [prediction.labels[0] for prediction in predict(bundle, files)]
    assert len(set(labels)) > 5, "a classifier that always says the same would agree with anything"
    return Glyphs(bundle, files, crops, pixels, labels, bundle.open().run(pixels).logits)
