"""Run by test_accuracy.py under Triton's interpreter."""

import pytest
import torch

from headsmith.trainer.fitting.label_ranks import label_ranks
from headsmith.trainer.fitting.label_ranks_kernel import fused_label_ranks


@pytest.mark.parametrize("shape", [(0, 5), (7, 1), (9, 13), (4, 1024), (3, 2050)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_kernel_is_the_reference(shape, dtype):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randint(-3, 4, shape, generator=generator).to(dtype)  # many ties
    labels = torch.randint(shape[1], shape[:1], generator=generator)
    if shape[0] > 3:
        logits[1, 0], logits[2] = float("nan"), float("-inf")
    assert torch.equal(fused_label_ranks(logits, labels), label_ranks(logits, labels))
