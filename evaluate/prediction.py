"""The best labels of any image file, from the exported file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ..core.arguments import typed
from ..core.errors import InputError
from ..core.printable import printable
from ..export.bundle.bundle import Bundle
from ..export.runtime import Array, Model
from ..models.execution_provider import AnyProvider
from ..models.images import UnreadableImage, described, open_image, remarks

BATCH = 32


@dataclass(frozen=True)
class Prediction:
    """What a classifier says of one image.

    Attributes:
        path: The image file.
        labels: The k best class names, best first; fewer where there are fewer classes.
        scores: Their softmax probabilities.
        error: Why the file could not be read; it then has no labels. ``None`` of an image.
        remarks: What of the image was more than plain RGB or grey, and what was done with it.
    """

    path: str
    labels: tuple[str, ...]
    scores: tuple[float, ...]
    error: str | None = None
    remarks: tuple[str, ...] = ()


@typed
def predict(
    bundle: str | Path | Bundle,
    images: Sequence[str | Path],
    *,
    k: int = 5,
    provider: AnyProvider = "cpu",
    threads: int | None = None,
) -> list[Prediction]:
    """Name the best labels of images with a bundle's ONNX file.

    Args:
        bundle: A bundle, its folder, or ``hf:USER/REPO`` on the Hugging Face hub.
        images: Image files, each decoded as in training and evaluation, and folders, all of whose images are meant.
        k: Labels an image.
        provider: See `headsmith.export.open_model`; it runs, or it is an error.
        threads: Threads of onnxruntime; ``None`` takes ``OMP_NUM_THREADS``, else the CPUs of this process.

    Returns:
        One prediction an image, in order; of a file that cannot be read one that says why.

    Raises:
        InputError: A damaged bundle, a head alone, a provider that does not run here, a folder without an image, or
            ``k`` below 1.
    """
    if k < 1:
        raise InputError(f"--k: {k} found, expected at least 1")
    bundle = bundle if isinstance(bundle, Bundle) else Bundle.load(bundle)
    if bundle.head_only:
        raise InputError(f"{bundle.path}: a head alone takes features, not images; export it without `head_only`")
    model = bundle.open("onnx", provider=provider, threads=threads)
    found: list[Prediction] = []
    paths, size = [file for path in images for file in _files(Path(path))], model.metadata.batch_size(BATCH)
    for start in range(0, len(paths), size):
        found += _classified(model, paths[start : start + size], k)
    return found


def _files(path: Path) -> list[str]:
    """A file, or the images of a folder."""
    if not path.is_dir():
        return [str(path)]
    from ..trainer.features.images.folder_source import images_under

    found = [str(file) for file in images_under(path)]
    if not found:
        raise InputError(f"{path}: a folder without an image in it; name image files, or folders of them")
    return found


def _classified(model: Model, paths: Sequence[str], k: int) -> list[Prediction]:
    """What is said of some files, those that can be read being run at once."""
    prepared = [_prepared(path, model) for path in paths]
    pixels = [one[0] for one in prepared if not isinstance(one, str)]
    logits = iter(model.run(np.stack(pixels)).logits if pixels else ())
    return [
        Prediction(path, (), (), one)
        if isinstance(one, str)
        else replace(_best(path, next(logits), model.metadata.labels, k), remarks=one[1])
        for path, one in zip(paths, prepared, strict=True)
    ]


def _prepared(path: str, model: Model) -> tuple[Array, tuple[str, ...]] | str:
    """The pixels of an image and remarks, or why there are none."""
    try:
        image = open_image(path, path)
        return model.metadata.prepare(image), described(remarks(image), model.metadata.recipe.background)
    except UnreadableImage as error:
        return str(error).removeprefix(f"{printable(path)}: ")


def _best(path: str, logits: Array, labels: Sequence[str], k: int) -> Prediction:
    """The k best; of equal logits the lower index stands first."""
    if not np.isfinite(logits).all():
        return Prediction(path, (), (), "the classifier answers with NaN or infinite logits; do not use it")
    order = np.argsort(-logits, kind="stable")[:k]
    powers = np.exp(logits.astype(np.float64) - logits.max())
    scores = (powers / powers.sum())[order]
    return Prediction(path, tuple(labels[index] for index in order), tuple(scores.tolist()))
