"""Is what is exported what was trained: its pictures, its features, its accuracy, and resize as PIL does it?"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from PIL import Image

from ...core.coded_warnings import CodedWarning
from ...core.printable import printable
from ...core.progress import progress
from ...metrics.equality import Difference, difference
from ...models.preprocessing_layers import Resize
from ...trainer.features.feature_set import FeatureSet
from ...trainer.scores import SplitScores
from ..bundle.manifest import ResizeParity
from ..errors import ParityError
from ..held_out import HeldOut, HeldOutImages
from ..options import ExportOptions
from ..runtime import Array
from .allowed_difference import MOST
from .answer_comparison import Parity
from .python_module import PythonModule, module_input, python_outputs

NAMED = 3
FEATURE_IMAGES, FEATURE_TOLERANCE = 8, 1e-2
# Features that were cached may differ from those of the proof by `FEATURE_TOLERANCE`, and each of two logits moves by
# about as much of the largest one; so rows nearer to the border than twice that may fall either way.
CLOSE = 2e-2


def replaced(found: Mapping[str, str], expected: Mapping[str, str]) -> set[str]:
    """The ids under which there is another picture now."""
    return {one for one, picture in found.items() if expected.get(one, picture) != picture}


def changes(held_out: HeldOut, expected: Mapping[str, str]) -> list[CodedWarning]:
    """Tell of pictures that were replaced, are missing or unreadable now, or were added since the features were made.

    Args:
        held_out: Inputs that were read; images with ``identify``.
        expected: See `RunInputs.pictures`.

    Returns:
        One warning, which names a few of each; none where all are the same, or nobody knows.
    """
    if not expected or not isinstance(held_out, HeldOutImages):
        return []
    found = held_out.pictures
    groups = {
        "not those of the features": sorted(replaced(found, expected)),
        "missing or unreadable now": [one for one in expected if one not in found],
        "new": [one for one in found if one not in expected],
    }
    told = [
        f"{len(ids):,} {'is' if len(ids) == 1 else 'are'} {what} ({_few(ids)})" for what, ids in groups.items() if ids
    ]
    if not told:
        return []
    message = (
        f"the head was measured on {len(expected):,} held-out pictures, of which some are others now: "
        f"{'; '.join(told)}; bring them back, or extract and train again"
    )
    return [CodedWarning("held-out-changed", message)]


def _few(ids: list[str]) -> str:
    return ", ".join(map(printable, ids[:NAMED])) + ", ..." * (len(ids) > NAMED)


@torch.inference_mode()
def compare_features(
    module: PythonModule, held_out: HeldOut, cached: FeatureSet | None, pictures: Mapping[str, str]
) -> float | None:
    """Check on a few images that the backbone that is deployed gives the features that the head was trained on.

    Args:
        module: What is deployed.
        held_out: The inputs of the proof.
        cached: The features; ``None`` where they are not there any more.
        pictures: See `RunInputs.pictures`.

    Returns:
        The largest difference over the largest cached feature; ``None`` for a head alone, without the features, and
        where all of these images are others now.

    Raises:
        ParityError: More than 1 % (storage as float16 costs 0.05 %, another device or batch less), or features that
            are NaN or infinite.
    """
    if cached is None or not isinstance(held_out, HeldOutImages):
        return None
    row = {sample: index for index, sample in enumerate(cached.ids("test"))}
    known = [place for place, sample in enumerate(held_out.ids) if sample in row][:FEATURE_IMAGES]
    features, _ = cached.arrays("test")
    some, body = replace(held_out, prepare=module.metadata.recipe).only(known), module.classifier.without_resize().body
    found, largest = Difference(), 0.0
    for batch in some.batches(FEATURE_IMAGES):
        changed = replaced(some.pictures, pictures)
        same = [place for place, one in enumerate(batch.ids) if one not in changed]
        if not same:
            return None
        expected = features[[row[batch.ids[place]] for place in same]].float().numpy()
        found += difference(expected, body(module_input(module.metadata, batch.inputs[same])).numpy())
        largest = max(largest, float(np.abs(expected).max()))  # cached features are finite
    if not found.within(FEATURE_TOLERANCE * largest):
        off = f"{found.largest / (largest or 1):.2%}" if found.entries else "NaN or infinity"
        broken = f", {found.not_finite} of {found.rows} are NaN or infinite" if found.not_finite else ""
        raise ParityError(
            f"{cached.path}: the backbone's features of held-out images differ from the cached ones by "
            f"{off} (allowed {FEATURE_TOLERANCE:.0%}){broken}{found.shapes}: the head "
            "was trained on something else; extract and train again"
        )
    return found.largest / (largest or 1)


class RecordedAccuracy:
    """Counts, batch by batch, which inputs the Python module has right, and which may be so by rounding."""

    def __init__(self) -> None:
        self._margins: list[Array] = []

    def add(self, logits: Array, labels: Array) -> None:
        """Take note of a batch.

        Args:
            logits: ``(N, C)``, of the Python module.
            labels: ``(N,)`` integers, the right classes.
        """
        rows, largest = np.arange(len(labels)), float(np.abs(logits).max()) or 1.0
        others = logits.copy()
        others[rows, labels] = -np.inf
        self._margins.append((logits[rows, labels] - others.max(axis=1)) / largest)

    def check(self, recorded: SplitScores | None, where: str, changed: str = "") -> None:
        """Compare with the figures of the training.

        Args:
            recorded: Those of the same split; nothing is compared where they are of another number of inputs, as where
                images are unreadable now.
            where: The run, for errors.
            changed: What is known of the inputs to be another since, in words.

        Raises:
            ParityError: More inputs are right, or fewer, than those that lie on the border explain.
        """
        margins = np.concatenate(self._margins)
        if recorded is None or recorded.n != len(margins):
            return
        said = recorded.hits
        right, close = (int(np.count_nonzero(mark)) for mark in (margins > 0, np.abs(margins) <= CLOSE))
        if abs(right - said) > close:
            raise ParityError(
                f"{where}: the head has {right} of {len(margins)} held-out inputs right, its training said {said}, and "
                f"rounding explains {close} at most: "
                + (changed or "head, features or labels are others now; extract and train again")
            )


@torch.inference_mode()
def compare_with_pil(module: PythonModule, held_out: HeldOutImages, options: ExportOptions) -> ResizeParity:
    """Answer every held-out image twice with the Python module: whole, and after PIL's resize and crop."""
    classifier, metadata = module
    resize, behind = Resize(metadata.recipe), classifier.without_resize()
    tolerance = MOST if options.tolerance is None else options.tolerance
    parity, pixels = Parity("resize inside", metadata.labels, tolerance), Difference()
    means: list[float] = []
    with progress("Comparing resizes", len(held_out), "images") as advance:
        for batch in held_out.batches(1):
            by_pil = metadata.recipe(Image.fromarray(batch.inputs[0]))[None]
            inside = resize(torch.from_numpy(batch.inputs).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).numpy()
            found = difference(by_pil.astype(np.float32), inside)
            pixels += found
            means.append(found.mean)
            parity.add(
                batch.ids,
                python_outputs(behind, metadata, by_pil),
                python_outputs(classifier, metadata, batch.inputs),
            )
            advance(1)
    return ResizeParity(
        **vars(parity.report()),
        largest_pixel_difference=pixels.largest,
        mean_pixel_difference=float(np.mean(means)),
    )
