"""Which implementation runs, and the one place where the two meet."""

from torch import Tensor

from .reduction import reduce_rows
from .reference import reference_losses
from .settings import Settings


def implementation(impl: str, logits: Tensor) -> str:
    """The implementation that `impl` means for these logits.

    Args:
        impl: `auto`, `torch` or `triton`.
        logits: any tensor of the device and type in question.

    Returns:
        `torch` or `triton`.

    Raises:
        ValueError: the kernels were asked for and cannot run.
    """
    if impl == "torch":
        return "torch"
    obstacle = _obstacle(logits)
    if impl == "triton" and obstacle:
        raise ValueError(f"impl is 'triton', but {obstacle}; expected impl='torch' or 'auto'")
    return "torch" if obstacle else "triton"


def _obstacle(logits: Tensor) -> str:
    return "the kernels are missing"


def label_losses(
    logits: Tensor, labels: Tensor, p_k: Tensor, settings: Settings, *, per_sample: bool, ignore_index: int
) -> Tensor:
    """The loss of each row, (B,), 0 where the label is ignored."""
    if p_k.ndim == 2 and not per_sample:
        p_k = p_k[labels.clamp(0, logits.shape[1] - 1)]
    return reference_losses(logits, labels, p_k, settings, ignore_index)


def reduced_loss(
    logits: Tensor,
    labels: Tensor,
    p_k: Tensor,
    settings: Settings,
    *,
    per_sample: bool,
    weight: Tensor | None,
    ignore_index: int,
    reduction: str,
    inplace: bool,
) -> Tensor:
    """The weighted and reduced loss for one label a row."""
    implementation(settings.impl, logits)
    losses = label_losses(logits, labels, p_k, settings, per_sample=per_sample, ignore_index=ignore_index)
    weights = (labels != ignore_index).to(losses.dtype)
    if weight is not None:
        weights = weights * weight[labels.clamp(0, logits.shape[1] - 1)]
        losses = losses * weights
    return reduce_rows(losses, weights, reduction)
