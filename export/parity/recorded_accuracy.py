"""Is the module that is exported as accurate as its training said?"""

import numpy as np

from ...trainer.scores import SplitScores
from ..errors import ParityError
from ..runtime import Array

# Features that were cached may differ from those of the proof by 1 % (`proof.FEATURE_TOLERANCE`), and each of two
# logits moves by about as much of the largest one; so rows nearer to the border than twice that may fall either way.
CLOSE = 2e-2


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
