"""The best labels of any image file, from the exported file."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import softmax

from ..core.errors import InputError
from ..export.bundle.bundle import Bundle
from ..export.runtime import Array
from ..models.images import open_image

BATCH = 32


@dataclass(frozen=True)
class Prediction:
    """What a classifier says of one image.

    Attributes:
        path: The image file.
        labels: The k best class names, best first; fewer where there are fewer classes.
        scores: Their softmax probabilities.
    """

    path: str
    labels: tuple[str, ...]
    scores: tuple[float, ...]


def predict(
    bundle: str | Path | Bundle,
    images: Sequence[str | Path],
    *,
    k: int = 5,
    provider: str = "cpu",
    threads: int | None = None,
) -> list[Prediction]:
    """Name the best labels of images with a bundle's ONNX file.

    Args:
        bundle: A bundle, its folder, or ``hf:USER/REPO`` on the Hugging Face hub.
        images: Image files; each is decoded as in training and evaluation.
        k: Labels an image.
        provider: ``cpu`` or ``cuda``; it runs, or it is an error.
        threads: Threads of onnxruntime; ``None`` takes ``OMP_NUM_THREADS``, else the CPUs of this process.

    Returns:
        One prediction an image, in order.

    Raises:
        InputError: A damaged bundle, a head alone, a provider that does not run here, or ``k`` below 1.
        UnreadableImage: An image that does not decode.
    """
    if k < 1:
        raise InputError(f"--k: {k} found, expected at least 1")
    bundle = bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)
    if bundle.head_only:
        raise InputError(f"{bundle.path}: a head alone takes features, not images; export it without --head-only")
    model = bundle.open("onnx", provider=provider, threads=threads)
    found: list[Prediction] = []
    size = model.metadata.batch_size(BATCH)
    for start in range(0, len(images), size):
        paths = [str(path) for path in images[start : start + size]]
        pixels = np.stack([model.metadata.prepare(open_image(path, path)) for path in paths])
        found += _best(model.run(pixels).logits, bundle.class_names, paths, k)
    return found


def _best(logits: Array, labels: Sequence[str], paths: Sequence[str], k: int) -> list[Prediction]:
    """The k best of each row; of equal logits the lower index stands first."""
    order = np.argsort(-logits, axis=1, kind="stable")[:, :k]
    scores = np.take_along_axis(softmax(logits.astype(np.float64), axis=1), order, axis=1)
    return [
        Prediction(path, tuple(labels[index] for index in row), tuple(float(score) for score in share))
        for path, row, share in zip(paths, order, scores, strict=True)
    ]
