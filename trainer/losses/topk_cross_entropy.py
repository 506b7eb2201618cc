"""Top-k cross-entropy (Petersen, Kuehne, Borgelt, Deussen: Differentiable Top-k Classification Learning, ICML 2022)."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Self, Unpack

import torch
from torch import Tensor, nn

from ...core.arguments import named
from ..loss_options import KeywordOnly, LossKeywords, LossOptions
from .cached_options import loss_options
from .option_signatures import with_option_lines, with_options
from .rank_weights import PK, as_sample_p_k, resolve_p_k
from .targets import Targets, check_logits, check_weights
from .weighted_loss import weighted_loss


@named
@with_options()
def topk_cross_entropy(
    logits: Tensor,
    labels: Tensor,
    *,
    p_k: PK | None = None,
    sample_p_k: PK | None = None,
    weight: Tensor | None = None,
    class_counts: Tensor | None = None,
    **options: Unpack[LossKeywords],
) -> Tensor:
    """The top-k cross-entropy of a batch; see `TopKCrossEntropy` for `p_k`.

    Args:
        logits: (B, C) floating.
        labels: (B,) integers, (B, L) integers for several labels a row, or (B, C) floating soft targets.
        p_k: (K,), or (C, K) with one distribution for each class of label; a constant, no gradient reaches it.
        sample_p_k: (B, K), one distribution for each row, in place of `p_k`; a constant too.
        weight: (C,) class weights, 0 or more; as in PyTorch `mean` divides by their sum over the labels.
        class_counts: (C,) rows of training of each class, for `imbalanced_noised_topk`; None is equally many.
        **options: see `LossOptions`.

    Returns:
        A scalar, or (B,) for reduction `none`; float32, or float64 for float64 logits.

    Raises:
        ValueError: an argument outside its range, shapes or devices that do not fit.
        IndexError: a label out of range on the CPU; on a GPU, and in a compiled graph, its loss is NaN, because a check
            would wait for it. The same goes for soft targets that are negative, NaN or infinite, a ValueError.
        TypeError: logits that are not floating, labels that are not integers or soft targets.
    """
    chosen = loss_options(**options)
    check_logits(logits)
    if sample_p_k is None:
        targets = Targets(labels, resolve_p_k(p_k, chosen, logits.device), None, weight, class_counts)
    else:
        targets = Targets(labels, None, as_sample_p_k(sample_p_k, logits.device), weight, class_counts)
    return weighted_loss(logits, targets, chosen)


@with_option_lines
class TopKCrossEntropy(nn.Module):
    """Drop-in replacement of `torch.nn.CrossEntropyLoss` that optimises top-1..top-K accuracy.

    Called with logits (B, C) and labels (B,), (B, L) or soft targets (B, C), and optionally `sample_p_k` (B, K).

    Args:
        p_k: distribution over k, (K,) or (C, K) with one row for each class of label: `p_k[i]` is the weight of
            top-(i + 1). Non-negative, sum 1, K at most m and C; a constant, no gradient reaches it, and it keeps its
            precision when the module is cast. None is (1,) for method `softmax` and (.5, 0, 0, 0, .5) otherwise.
        weight: (C,) class weights; as in PyTorch `mean` divides by their sum over the labels.
        class_counts: (C,) rows of training of each class, for `imbalanced_noised_topk`; None is equally many.
        **options: see `LossOptions`.

    Attributes:
        options: all of them as one `LossOptions`.

    Raises:
        ValueError: an option outside its range or of another type, or a `weight` that is negative, NaN, infinite or
            all 0.
        TypeError: a `weight` that is no floating tensor.
    """

    p_k: Tensor
    weight: Tensor | None
    class_counts: Tensor | None

    @named
    @with_options()
    def __init__(
        self,
        p_k: PK | None = None,
        method: str = LossOptions.method,
        m: int | None = LossOptions.m,
        inverse_temperature: float | None = LossOptions.inverse_temperature,
        *,
        weight: Tensor | None = None,
        class_counts: Tensor | None = None,
        **options: Unpack[KeywordOnly],
    ) -> None:
        super().__init__()
        self.options = loss_options(method=method, m=m, inverse_temperature=inverse_temperature, **options)
        if weight is not None:
            check_weights("weight", weight)
        self.register_buffer("p_k", resolve_p_k(p_k, self.options, torch.device("cpu")), persistent=False)
        self.register_buffer("weight", weight)
        self.register_buffer("class_counts", class_counts)

    def forward(self, logits: Tensor, labels: Tensor, sample_p_k: PK | None = None) -> Tensor:
        """Return the loss, a scalar or (B,)."""
        check_logits(logits)
        device = logits.device
        held = self._buffers  # as attributes they would be searched for at every step
        for name, tensor in held.items():
            if tensor is not None and tensor.device != device:
                held[name] = tensor.to(device)
        weight, class_counts = held["weight"], held["class_counts"]
        if sample_p_k is None:
            targets = Targets(labels, held["p_k"], None, weight, class_counts)
        else:
            targets = Targets(labels, None, as_sample_p_k(sample_p_k, device), weight, class_counts)
        return weighted_loss(logits, targets, self.options)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move to another device, or change the type of everything but `p_k`, which lower precisions would round."""
        p_k = self.p_k
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.p_k = p_k.to(self.p_k.device)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        """Keep the counts where a state has none, as states once had."""
        if self.class_counts is not None:
            state_dict.setdefault(f"{prefix}class_counts", self.class_counts)
        super()._load_from_state_dict(state_dict, prefix, *args)

    @property
    def inverse_temperature(self) -> float | None:
        """The inverse temperature in use; None where it depends on the number of classes (`sinkhorn` with `m=None`)."""
        return None if self.options.beta_by_row else self.options.beta(self.options.m or 1)

    def extra_repr(self) -> str:
        """Every option, so that a log of the module repeats the run; of tensors by class the shape."""
        by_class = {"weight": self.weight, "class_counts": self.class_counts}
        shapes = [f"{name}={tuple(held.shape)}" for name, held in by_class.items() if held is not None]
        options = [f"{name}={value!r}" for name, value in asdict(self.options).items()]
        return ", ".join([f"p_k={self.p_k.tolist()}", *shapes, *options])
