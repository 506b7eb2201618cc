"""The answers of an execution provider beside those of the CPU in float32."""

import numpy as np

from ...core.coded_warnings import CodedWarning
from ...export.held_out import HeldOut
from ...export.options import FP32
from ...export.parity.allowed_difference import MOST
from ...export.runtime import Model
from ...models.execution_provider import CPU
from ..options import EvaluationOptions
from ..zoo import Candidate, open_candidate
from .published import CpuDifference, compare

COMPARED = 256


def beside_cpu(
    candidate: Candidate, model: Model, held_out: HeldOut, options: EvaluationOptions
) -> CpuDifference | None:
    """Run at most 256 inputs, always the same ones, there and on the CPU.

    Args:
        candidate: The classifier.
        model: It, opened under another provider.
        held_out: The inputs as it takes them.
        options: ``batch_size``, and ``threads`` on the CPU.

    Returns:
        The comparison; ``None`` on the CPU itself, and where not one of these inputs could be read.
    """
    if model.provider.is_cpu:
        return None
    on_cpu = open_candidate(candidate, CPU, options.threads)
    some = held_out.sample(COMPARED)
    expected, found = [], []
    for batch in some.batches(model.metadata.batch_size(options.batch_size)):
        expected.append(on_cpu.run(batch.inputs).logits)
        found.append(model.run(batch.inputs).logits)
    return None if not found else compare(np.concatenate(expected), np.concatenate(found))


def moved(found: CpuDifference | None, model: Model) -> list[CodedWarning]:
    """What to say of a float32 file whose logits a provider moves by more than one layer's rounding in TF32 does."""
    if found is None or model.metadata.precision != FP32 or not (found.share > MOST or found.not_finite):
        return []
    return [CodedWarning("other-than-cpu", f"under {model.provider} {found}; its options may ask for more precision")]
