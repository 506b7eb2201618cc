"""Files under proof: run whatever they answer, at several sizes of batches, on made-up inputs and on equal logits."""

from collections.abc import Iterator

import numpy as np
from scipy.special import softmax

from ...metrics.equality import alike
from ...models.onnx_session import SessionErrors, innermost
from ..errors import ParityError
from ..options import TOP_K
from ..runtime import Array, Model, Outputs
from .answer_comparison import Parity

BATCH_SIZES, LARGE = (2, 3, 5, 7), 67  # the large one is beyond 64, at which many files are served
MADE_UP = 8  # rows of each kind
CHANCE = 1e-3  # far above what another order of sums does, on GPUs that add in any order
CHEAP = 128 * 2**20  # bytes of inputs in the large one


def run_file(name: str, model: Model, inputs: Array) -> Outputs:
    """What a file answers to a batch.

    Raises:
        ParityError: It cannot run it.
    """
    try:
        return model.run(inputs)
    except SessionErrors as error:
        raise ParityError(f"{name}: cannot run a batch of {inputs.shape} ({innermost(error)})") from None


def check_repeats(name: str, model: Model, inputs: Array) -> None:
    """Run the same inputs twice.

    Raises:
        ParityError: The file answers otherwise the second time, by more than `CHANCE` of the largest logit.
    """
    before, after = (run_file(name, model, inputs).logits for _ in range(2))
    if not alike(before, after, CHANCE):
        raise ParityError(
            f"{name}: answers the same input differently each time: it draws random numbers, as dropout does in "
            "training mode; export it without them"
        )


def drawn_size(sha256: str) -> int:
    """One more size of batches, 2 to 128, another one for another file: some break at few sizes alone."""
    return 2 + int(sha256[:8], 16) % 127


def batches_of(model: Model, inputs: Array, most: int = 1, drawn: int = LARGE) -> Iterator[Array]:
    """Which rows of some inputs to run at once: each alone; then `BATCH_SIZES` of them, which a decoder does not take.

    A file of a fixed batch, which is filled up, is run at 2 and 7 alone. Others are run at `LARGE` and at ``drawn``
    too, where that is no more than `CHEAP`; and all at ``most``, where that is more than there are: again and again
    the same ones.
    """
    count = len(inputs)
    yield from np.arange(count)[:, None]
    if model.metadata.encoded:
        return
    sizes = {2, 7} if model.fixed_batch else {*BATCH_SIZES}
    if not model.fixed_batch:
        sizes |= {size for size in (LARGE, drawn) if size * inputs[0].nbytes <= CHEAP}
    if most > count:
        sizes.add(most)
    for size in sorted(sizes - {1}):
        yield np.arange(size) % count


def try_ties(name: str, model: Model, parity: Parity) -> None:
    """Look at what a file makes of made-up logits, where the operators behind its logits can be run alone.

    Raises:
        ParityError: Its top-k needs more than its logits.
    """
    logits = made_up_logits(len(model.metadata.labels))
    try:
        found = model.ranked(logits)
    except SessionErrors as error:
        raise ParityError(f"{name}: its top-k does not follow from its logits alone ({innermost(error)})") from None
    if found is not None:
        parity.add_own(found)


def answer_to(logits: Array, *, probabilities: bool) -> Outputs:
    """What follows from logits ``(N, C)``: of equal ones the lower index stands first."""
    indices = np.argsort(-logits, axis=1, kind="stable")[:, :TOP_K]
    shares = softmax(logits, axis=1)
    return Outputs(logits, np.take_along_axis(shares, indices, axis=1), indices, shares if probabilities else None)


def made_up_inputs(inputs: Array) -> Array:
    """Inputs like some real ones ``(N, ...)``, of other contents: noise, the real ones' opposites, and extremes.

    Of features each column varies, one that is constant in all real inputs too, so that each weight of a head counts.
    """
    random = np.random.default_rng(0)
    if inputs.dtype == np.uint8:
        noise = random.integers(0, 256, (2, *inputs.shape[1:]), dtype=np.uint8)
        return np.concatenate([noise, ~inputs[:1], np.zeros_like(inputs[:1]), np.full_like(inputs[:1], 255)])
    values = inputs.astype(np.float32)
    spread = values.std(axis=0)
    spread = np.maximum(spread, spread.mean() or 1.0)
    drawn = values.mean(axis=0) + spread * random.normal(size=(MADE_UP, *inputs.shape[1:]))
    made: Array = np.concatenate([drawn.astype(inputs.dtype), -inputs[:1], np.zeros_like(inputs[:1])])
    return made


def made_up_logits(classes: int) -> Array:
    """Logits ``(N, C)`` float32 with every kind of tie: all equal, pairs, small whole numbers; and of every size."""
    random = np.random.default_rng(0)
    ties = random.integers(-2, 3, (MADE_UP, classes))
    sizes = random.normal(size=(4, classes)) * np.array([[1e-3], [1.0], [30.0], [1000.0]])
    return np.concatenate([np.zeros((1, classes)), ties, ties[:1] + 100, sizes]).astype(np.float32)
