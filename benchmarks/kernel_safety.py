"""Every kernel over odd shapes, between guard words, for a memory checker.

    python -m benchmarks.kernel_safety                                  # compiles, checks values and guards
    compute-sanitizer --tool memcheck python -m benchmarks.kernel_safety

With `--slice I N` only every N-th case runs, from the I-th on.
"""

import argparse
import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from headsmith.trainer.loss_defaults import FUSED
from headsmith.trainer.losses import topk_cross_entropy

GUARD = 977.0
Case = tuple[str, int | None, int, torch.dtype, str, bool, float]


def cases() -> Iterator[Case]:
    """Method, m, classes, type, reduction, whether the gradient overwrites the logits, and label smoothing."""
    shapes = ((2, torch.float32), (5, torch.bfloat16), (1000, torch.float16), (1000, torch.float32))
    for method, (classes, dtype) in itertools.product(FUSED, (*shapes, (10450, torch.bfloat16))):
        m = 50 if classes > 1000 else 16
        yield method, m, classes, dtype, "mean", False, 0.0
        yield method, m, classes, dtype, "none", True, 0.0
        yield method, m, classes, dtype, "none", False, 0.1
    for classes, dtype in ((130, torch.float32), *shapes[2:], (10450, torch.bfloat16), (65536, torch.float16)):
        yield "lapsum", None, classes, dtype, "mean", False, 0.0
        yield "lapsum", None, classes, dtype, "none", True, 0.1


def guarded(rows: int, classes: int, dtype: torch.dtype, device: str) -> tuple[Tensor, Tensor]:
    """Random logits as a slice of a wider tensor whose other values are guards."""
    whole = torch.full((rows + 2, classes + 16), GUARD, dtype=dtype, device=device)
    inner = whole[1 : rows + 1, 8 : classes + 8]
    inner.copy_(torch.randn(rows, classes, device=device) * 3)
    return whole, inner


def check(case: Case, rows: int, device: str) -> None:
    """Loss and gradient of one case on a side stream, against plain torch; RuntimeError where they differ."""
    method, m, classes, dtype, reduction, inplace, smoothing = case
    whole, logits = guarded(rows, classes, dtype, device)
    labels = torch.randint(classes, (rows,), device=device)
    if rows > 4:
        logits[2, classes // 2] = torch.nan
        logits[3, 1:] = -torch.inf
        labels[3], labels[4] = 0, -100
    p_k = [1.0] if method == "softmax" or classes < 5 else [0.5, 0.0, 0.0, 0.0, 0.5]
    options = {"method": method, "m": m, "p_k": p_k, "reduction": "none", "label_smoothing": smoothing}
    expected = topk_cross_entropy(logits.clone(), labels, impl="torch", **options)
    options["reduction"] = reduction
    stream = torch.cuda.Stream() if device == "cuda" else None
    if stream is not None:
        stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        leaf = logits.detach().requires_grad_()
        loss = topk_cross_entropy(leaf, labels, impl="triton", inplace=inplace, **options)
        (gradient,) = torch.autograd.grad(loss, leaf, torch.ones_like(loss))
    if stream is not None:
        stream.synchronize()
    outer = torch.ones_like(whole, dtype=torch.bool)
    outer[1 : rows + 1, 8 : classes + 8] = False
    broken = rows > 4
    if not (whole[outer] == GUARD).all():
        raise RuntimeError(f"{case}, {rows} rows: a guard was overwritten")
    if reduction == "none":
        torch.testing.assert_close(loss, expected, rtol=2e-3, atol=1e-4, equal_nan=True)
    elif broken != bool(loss.isnan()):
        raise RuntimeError(f"{case}, {rows} rows: the loss is {loss.item()}")
    if gradient.isnan().any(dim=1).sum() != int(broken):
        raise RuntimeError(f"{case}, {rows} rows: {gradient.isnan().any(dim=1).sum()} rows of the gradient are NaN")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--slice", type=int, nargs=2, default=(0, 1), metavar=("I", "N"))
    parser.add_argument("--rows", type=int, nargs="+", default=[0, 1, 7, 500])
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    start, step = arguments.slice
    count = 0
    for case in itertools.islice(cases(), start, None, step):
        for rows in arguments.rows:
            check(case, rows, device)
            count += 1
    print(f"{count} steps, values right and guards intact")


if __name__ == "__main__":
    main()
