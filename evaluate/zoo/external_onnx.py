"""ONNX classifiers that say nothing of themselves, under onnxruntime, as they are."""

import time
from functools import cache
from typing import Any

import numpy as np

from ...core.errors import InputError
from ...export.formats.onnx_runtime import SessionRunner
from ...export.metadata import BackboneIdentity, Metadata
from ...export.options import TOP_K
from ...export.runtime import Array, Model, Outputs
from ...models.execution_provider import ExecutionProvider
from ...models.onnx_session import check_used, session_settings
from ...models.preprocessing import Preprocessing
from .candidate import Candidate
from .external_session import open_external

DTYPES: dict[str, np.dtype[Any]] = {
    "tensor(float)": np.dtype(np.float32),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(double)": np.dtype(np.float64),
    "tensor(uint8)": np.dtype(np.uint8),
}
TINY = np.finfo(np.float32).tiny
# Of probabilities in float16, u = 2**-11, each moves by u of itself, so their sum by u; and a softmax whose n terms are
# added pairwise in float16 by log2(n) u (Higham 2002, 4.2), 5e-3 for 1,000 classes: twice that.
SUMS = 1e-2


class ExternalOnnxModel(Model):
    """A file that is fed as its recipe says.

    Pixels are normalised outside the file. A batch of fixed size is filled up with zeros, whose answers are dropped.
    Of a file that gives probabilities the logarithm is taken, which is as good as its logits for every figure; one that
    was rounded to 0 is taken as the smallest normal float32.

    Attributes:
        session: Its session.
        strange_sums: Whether a row of probabilities, of all that were answered, did not sum to 1.
        like_probabilities: Whether all scores of a file without a softmax at its end, as far as it answered, lie in
            0..1.
    """

    def __init__(self, candidate: Candidate, provider: ExecutionProvider, threads: int) -> None:
        if candidate.setup is None or candidate.preprocessing is None:
            raise ValueError(f"{candidate.path}: says all of itself")
        self.path, self.provider, self._setup = candidate.path, provider, candidate.setup
        self._preprocessing = candidate.preprocessing
        start = time.perf_counter()
        self.session = open_external(candidate.path, provider, threads)
        check_used(self.session, str(candidate.path))
        self._runner = SessionRunner(self.session, provider, name=str(candidate.path))
        self.load_seconds = time.perf_counter() - start
        self.metadata = _metadata(candidate)
        self.settings = session_settings(self.session, provider, threads)
        (self._input,) = self.session.get_inputs()
        self._dtype = DTYPES[self._input.type]
        self.strange_sums = False
        self.like_probabilities = not self._setup.probabilities

    @property
    def fixed_batch(self) -> int | None:
        """See `Model.fixed_batch`."""
        return self._setup.batch

    @property
    def takes_floats(self) -> bool:
        """Whether pixels can be normalised outside the file."""
        return np.issubdtype(self._dtype, np.floating)

    def feed(self, inputs: Array) -> Array:
        """Normalised pixels in the layout and dtype that the file declares."""
        return self.fed_by(self._preprocessing, inputs)

    def fed_by(self, preprocessing: Preprocessing, inputs: Array) -> Array:
        """What `feed` would give under another recipe, of the same crop."""
        levels = normalised_levels(preprocessing).astype(self._dtype)  # of whole numbers only for pixels as they are
        order = (2, 1, 0) if preprocessing.channel_order == "bgr" else (0, 1, 2)
        axis = 1 if preprocessing.layout == "nchw" else 3
        return np.stack([levels[place][inputs[..., channel]] for place, channel in enumerate(order)], axis=axis)

    def answer(self, fed: Array) -> Outputs:
        """Run the session, in batches of the file's own size where that is fixed."""
        size = self.fixed_batch or len(fed)
        parts = [self._scores(fed[start : start + size], size) for start in range(0, len(fed), size)]
        return best(np.concatenate(parts))

    def _scores(self, fed: Array, size: int) -> Array:
        n = len(fed)
        if n < size:
            fed = np.concatenate([fed, np.zeros((size - n, *fed.shape[1:]), fed.dtype)])
        (scores,) = self._runner.run([self._setup.output], {self._input.name: np.ascontiguousarray(fed)})
        expected = len(self.metadata.labels) + (self._setup.background is not None)
        if np.shape(scores)[:1] != (size,) or np.size(scores) != size * expected:
            raise InputError(
                f"{self.path}: output {self._setup.output} is {np.shape(scores)} for {size} images, expected "
                f"{expected} scores an image; name another with --output"
            )
        found = np.asarray(scores, np.float32).reshape(size, -1)[:n]
        if self._setup.quantised:
            found = (found - self._setup.zero_point) * np.float32(self._setup.scale or 1)
        if self._setup.probabilities and not self._setup.quantised:
            sums = found.sum(axis=1)
            self.strange_sums |= bool((np.isfinite(sums) & (np.abs(sums - 1) > SUMS)).any())
        if self._setup.background is not None:
            found = np.delete(found, self._setup.background, axis=1)
        if not self._setup.probabilities:
            self.like_probabilities &= bool(((found >= 0) & (found <= 1)).all())
            return found
        rounded_to_zero = (found >= 0) & (found < TINY)
        with np.errstate(invalid="ignore"):
            return np.log(np.where(rounded_to_zero, TINY, found))


@cache
def normalised_levels(preprocessing: Preprocessing) -> Array:
    """What becomes of the values 0..255 of a pixel: ``(3, 256)`` float32, per channel in the order of the recipe.

    To look pixels up is several times as fast on a CPU as to compute with them, and gives the same numbers.
    """
    mean, std = (np.asarray(values, np.float32)[:, None] for values in (preprocessing.mean, preprocessing.std))
    levels: Array = (np.arange(256, dtype=np.float32) * np.float32(preprocessing.scale) - mean) / std
    return levels


def best(logits: Array) -> Outputs:
    """Logits ``(N, C)`` with the five best classes; of equal ones the lower index stands first."""
    order = np.argsort(-logits, axis=1, kind="stable")[:, :TOP_K]
    with np.errstate(invalid="ignore"):  # NaN and infinity are counted where answers are judged
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        scores = powers / powers.sum(axis=1, keepdims=True)
    return Outputs(logits, np.take_along_axis(scores, order, axis=1), order)


def _metadata(candidate: Candidate) -> Metadata:
    """What the file would say, were it ours."""
    unknown = BackboneIdentity(candidate.source, None, None, None)
    return Metadata(candidate.labels, "float-nchw", candidate.preprocessing, unknown, "", version="")
