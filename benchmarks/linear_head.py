"""A linear head and its loss, in one and in two steps, on a GPU."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from headsmith.trainer.losses import linear_topk_cross_entropy, topk_cross_entropy

from .timing import Timing, time_eager

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
ROWS, FEATURES, CLASSES, M = 16384, 2048, 21841, 50


def linear_rows() -> Iterator[tuple[str, Timing]]:
    """Forward and backward with the gradients of features, weight and bias."""
    torch.manual_seed(0)
    shapes = ((ROWS, FEATURES), (CLASSES, FEATURES), (CLASSES,))
    scales = (1.0, 0.05, 0.0)
    inputs = [
        (torch.randn(shape, device="cuda") * scale).bfloat16().requires_grad_()
        for shape, scale in zip(shapes, scales, strict=True)
    ]
    labels = torch.randint(CLASSES, (ROWS,), device="cuda")

    def apart(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        logits = torch.nn.functional.linear(features, weight, bias)
        return topk_cross_entropy(logits, labels, m=M)

    def together(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return linear_topk_cross_entropy(features, weight, bias, labels, m=M)

    def cross_entropy(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(torch.nn.functional.linear(features, weight, bias), labels)

    losses = {
        "F.linear + F.cross_entropy": cross_entropy,
        "two steps, neuralsort": apart,
        "in one, neuralsort": together,
    }
    for name, loss in losses.items():

        def step(i: int, loss: Loss = loss) -> object:
            return torch.autograd.grad(loss(*inputs), inputs)

        yield name, time_eager(step, 1)
    gradients = sum(x.numel() * x.element_size() for x in inputs) / 2**20
    full = 2 * ROWS * CLASSES * 2 / 2**20
    print(f"gradients {gradients:.0f} MiB (part of each peak), full logits and their gradient {full:.0f} MiB")
