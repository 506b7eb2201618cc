"""Files under proof: run whatever they answer, and at the sizes of batches that are tried."""

import numpy as np

from ...models.onnx_session import OrtErrors, short_reason
from ..errors import ParityError
from ..runtime import Array, Model, Outputs

BATCH_SIZES = (1, 2, 7)
FAILURES: tuple[type[Exception], ...] = (RuntimeError, ValueError, IndexError, *OrtErrors)


def run_file(name: str, model: Model, inputs: Array) -> Outputs:
    """What a file answers to a batch.

    Raises:
        ParityError: It cannot run it.
    """
    try:
        return model.run(inputs)
    except FAILURES as error:
        raise ParityError(f"{name}: cannot run a batch of {inputs.shape} ({short_reason(error)})") from None


def unlike(inputs: Array) -> Array:
    """As many other inputs ``(N, ...)``, each unlike the one in its place: pixels inverted, features negated."""
    return ~inputs if inputs.dtype == np.uint8 else -inputs


def batch_sizes(model: Model) -> tuple[int, ...]:
    """The sizes of batches that are tried: a file that decodes images takes one at a time."""
    return (1,) if model.metadata.encoded else BATCH_SIZES
