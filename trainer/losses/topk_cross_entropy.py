"""Top-k cross-entropy (Petersen, Kuehne, Borgelt, Deussen: Differentiable Top-k Classification Learning, ICML 2022)."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Self

import torch
from torch import Tensor, nn

from ...core.arguments import named
from .rank_weights import PK, as_sample_p_k
from .settings import Settings
from .targets import check_floating, check_logits
from .weighted_loss import check_reduction, resolve_p_k, weighted_loss


@named
def topk_cross_entropy(
    logits: Tensor,
    labels: Tensor,
    *,
    p_k: PK | None = None,
    sample_p_k: PK | None = None,
    method: str = "neuralsort",
    m: int | None = 16,
    inverse_temperature: float | None = None,
    distribution: str = "logistic_phi",
    art_lambda: float = 0.5,
    softsort_power: float = 1.0,
    sinkhorn_iterations: int = 10,
    sinkhorn_tolerance: float = 1e-6,
    top1_mode: str = "smce",
    softmax_over: str = "candidates",
    floor: float = 0.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
    impl: str = "auto",
    inplace: bool = False,
) -> Tensor:
    """The top-k cross-entropy of a batch; see `TopKCrossEntropy` for every keyword.

    Args:
        logits: (B, C) floating.
        labels: (B,) integers, (B, L) integers for several labels a row, or (B, C) floating soft targets.
        p_k: (K,), or (C, K) with one distribution for each class of label; a constant, no gradient reaches it.
        sample_p_k: (B, K), one distribution for each row, in place of `p_k`; a constant too.
        method: the relaxation.
        m: number of candidates.
        inverse_temperature: sharpness of the relaxation.
        distribution: the CDF of a network's comparators.
        art_lambda: lambda of `logistic_phi`.
        softsort_power: exponent of SoftSort's distance.
        sinkhorn_iterations: iterations of SinkhornSort.
        sinkhorn_tolerance: where SinkhornSort stops.
        top1_mode: how k = 1 is treated.
        softmax_over: what that softmax runs over.
        floor: floor inside the logarithm.
        weight: (C,) class weights.
        ignore_index: label that is left out.
        reduction: `mean`, `sum` or `none`.
        label_smoothing: share of the cross-entropy with uniform targets.
        impl: `auto`, `torch` or `triton`.
        inplace: let the gradient of the logits overwrite the logits.

    Returns:
        A scalar, or (B,) for reduction `none`; float32, or float64 for float64 logits.

    Raises:
        ValueError: an argument outside its range, shapes or devices that do not fit.
        IndexError: a label out of range on the CPU; on a GPU, and in a compiled graph, its loss is NaN, because a check
            would wait for it. The same goes for soft targets that are negative, NaN or infinite, a ValueError.
        TypeError: logits that are not floating, labels that are not integers or soft targets.
    """
    settings = Settings(
        method=method,
        m=m,
        inverse_temperature=inverse_temperature,
        distribution=distribution,
        art_lambda=art_lambda,
        softsort_power=softsort_power,
        sinkhorn_iterations=sinkhorn_iterations,
        sinkhorn_tolerance=sinkhorn_tolerance,
        top1_mode=top1_mode,
        softmax_over=softmax_over,
        floor=floor,
        impl=impl,
    )
    check_reduction(reduction, label_smoothing, ignore_index)
    check_logits(logits)
    return weighted_loss(
        logits,
        labels,
        resolve_p_k(p_k, settings, logits.device) if sample_p_k is None else as_sample_p_k(sample_p_k, logits.device),
        settings,
        per_sample=sample_p_k is not None,
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
        inplace=inplace,
    )


class TopKCrossEntropy(nn.Module):
    """Drop-in replacement of `torch.nn.CrossEntropyLoss` that optimises top-1..top-K accuracy.

    Called with logits (B, C) and labels (B,), (B, L) or soft targets (B, C), and optionally `sample_p_k` (B, K).

    Args:
        p_k: distribution over k, (K,) or (C, K) with one row for each class of label: `p_k[i]` is the weight of
            top-(i + 1). Non-negative, sum 1, K at most m and C; a constant, no gradient reaches it, and it keeps its
            precision when the module is cast. None is (1,) for method `softmax` and (.5, 0, 0, 0, .5) otherwise.
        method: `softmax` (plain cross-entropy over all classes, K = 1), `neuralsort`, `softsort`, `sinkhorn`, or the
            networks `odd_even`, `bitonic` and `splitter_selection`.
        m: number of highest scores of a row that enter the relaxation, the label always among them. None keeps all
            classes; more than C is C.
        inverse_temperature: 1 / tau, above 0; for `sinkhorn` 1 / regularisation. None takes
            `default_inverse_temperature`.
        distribution: for networks, whose CDF swaps: `logistic`, `logistic_phi`, `cauchy`, `gaussian`, `reciprocal`,
            `optimal`.
        art_lambda: lambda of `logistic_phi`, in [0, 1).
        softsort_power: exponent of SoftSort's distance, above 0.
        sinkhorn_iterations: at most this many Sinkhorn iterations.
        sinkhorn_tolerance: a row stops once no potential moves by more than this.
        top1_mode: `smce` takes k = 1 from a separate cross-entropy, `sm` from a softmax inside the logarithm, `sort`
            from the relaxation like every other k.
        softmax_over: `candidates` (the authors' package) or `classes` (the paper's text).
        floor: e of log(p (1 - 2 e) + e), 1e-7 in the authors' package; 0 works in the log domain and keeps the gradient
            of the rows that are most wrong.
        weight: (C,) class weights; as in PyTorch `mean` divides by their sum over the labels.
        ignore_index: rows with this label cost nothing and are not counted; padding of (B, L) labels.
        reduction: `mean` (0 for an empty batch or one that is wholly ignored), `sum` or `none`.
        label_smoothing: e in [0, 1]: (1 - e) of this loss and e of the cross-entropy between all classes' softmax and
            uniform targets, `weight` in it as in PyTorch.
        impl: `triton` (fused kernels), `torch` (the reference), or `auto`: kernels on CUDA, the reference elsewhere and
            for float64. `implementation` says which.
        inplace: let the gradient of the logits overwrite the logits, where the implementation can.

    Raises:
        ValueError: an option outside its range or of another type.
        TypeError: a `weight` that is no floating tensor.
    """

    p_k: Tensor
    weight: Tensor | None

    @named
    def __init__(
        self,
        p_k: PK | None = None,
        method: str = "neuralsort",
        m: int | None = 16,
        inverse_temperature: float | None = None,
        *,
        distribution: str = "logistic_phi",
        art_lambda: float = 0.5,
        softsort_power: float = 1.0,
        sinkhorn_iterations: int = 10,
        sinkhorn_tolerance: float = 1e-6,
        top1_mode: str = "smce",
        softmax_over: str = "candidates",
        floor: float = 0.0,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
        impl: str = "auto",
        inplace: bool = False,
    ) -> None:
        super().__init__()
        self.settings = Settings(
            method=method,
            m=m,
            inverse_temperature=inverse_temperature,
            distribution=distribution,
            art_lambda=art_lambda,
            softsort_power=softsort_power,
            sinkhorn_iterations=sinkhorn_iterations,
            sinkhorn_tolerance=sinkhorn_tolerance,
            top1_mode=top1_mode,
            softmax_over=softmax_over,
            floor=floor,
            impl=impl,
        )
        check_reduction(reduction, label_smoothing, ignore_index)
        if weight is not None:
            check_floating("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction
        self.label_smoothing = label_smoothing
        self.inplace = inplace
        self.register_buffer("p_k", resolve_p_k(p_k, self.settings, torch.device("cpu")), persistent=False)
        self.register_buffer("weight", weight)

    def forward(self, logits: Tensor, labels: Tensor, sample_p_k: PK | None = None) -> Tensor:
        """Return the loss, a scalar or (B,)."""
        check_logits(logits)
        if self.p_k.device != logits.device:
            self.p_k = self.p_k.to(logits.device)
        if self.weight is not None and self.weight.device != logits.device:
            self.weight = self.weight.to(logits.device)
        return weighted_loss(
            logits,
            labels,
            self.p_k if sample_p_k is None else as_sample_p_k(sample_p_k, logits.device),
            self.settings,
            per_sample=sample_p_k is not None,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
            inplace=self.inplace,
        )

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move to another device, or change the type of everything but `p_k`, which lower precisions would round."""
        p_k = self.p_k
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.p_k = p_k.to(self.p_k.device)
        return self

    @property
    def inverse_temperature(self) -> float | None:
        """The inverse temperature in use; None where it depends on the number of classes (`sinkhorn` with `m=None`)."""
        settings = self.settings
        if settings.m is None and settings.method == "sinkhorn":
            return settings.inverse_temperature
        return settings.beta(settings.m or 1)

    def extra_repr(self) -> str:
        """Every option, so that a log of the module repeats the run."""
        options = asdict(self.settings) | {"reduction": self.reduction, "ignore_index": self.ignore_index}
        return ", ".join([f"p_k={self.p_k.tolist()}", *(f"{k}={v!r}" for k, v in options.items())])
