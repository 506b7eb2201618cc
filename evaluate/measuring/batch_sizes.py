"""Whether the answers of a file depend on how many inputs it is given at once, or on chance."""

import numpy as np

from ...export.parity.file_runner import batches_of
from ...export.runtime import Array, Model
from ...metrics.equality import alike

# A share of the largest logit: ten times what one layer moves by where both factors are rounded to 11 bits (2**-10), as
# in float16 and TF32, whose kernels depend on the batch. What mixes the rows of a batch moves by the logits' own size.
TOLERANCE = 1e-2


class BatchSizes:
    """What was seen of a file at batches of several sizes.

    Attributes:
        varies: Whether a batch had other logits when it was run again.
        differ: Whether an input had other logits in a batch of another size, and not by that.
        not_finite: Sizes at which the logits of an input were NaN or infinite that were finite at another size.
    """

    def __init__(self, model: Model) -> None:
        """Begin with nothing seen."""
        self._model = model
        self.varies = self._differ = False
        self._broken: set[int] = set()

    @property
    def differ(self) -> bool:
        """See the class."""
        return self._differ and not self.varies

    @property
    def not_finite(self) -> list[int]:
        """See the class."""
        return sorted(self._broken)

    def repeat(self, before: Array, after: Array) -> None:
        """Compare the logits ``(N, C)`` of a batch in two runs."""
        self.varies |= not alike(before, after, TOLERANCE)

    def look(self, inputs: Array, together: Array) -> None:
        """Run the first, the middle and the last input of a batch alone, and at other sizes.

        A file of one input a run is not run again.

        Args:
            inputs: The batch.
            together: ``(N, C)`` its logits, as the file answered them at once.
        """
        if self._model.fixed_batch == 1:
            return
        some = np.unique([0, len(inputs) // 2, len(inputs) - 1])
        sound = np.isfinite(together[some]).all(axis=1)
        broken = {len(inputs): ~sound}
        for rows in batches_of(self._model, inputs[some]):
            logits, expected = self._model.run(inputs[some[rows]]).logits, together[some[rows]]
            self._differ |= not alike(expected, logits, TOLERANCE)
            finite = np.isfinite(logits).all(axis=1)
            sound[rows[finite]] = True
            broken.setdefault(len(rows), np.zeros(len(some), bool))[rows[~finite]] = True
        self._broken |= {size for size, which in broken.items() if (which & sound).any()}
