"""Draws each method's loss against the label's rank and margin: python -m benchmarks.plot_losses docs/losses.png."""

import sys

import matplotlib as mpl
import torch
from torch import Tensor

from headsmith.trainer.losses import METHODS, topk_cross_entropy

mpl.use("Agg")
from matplotlib import pyplot

CLASSES = 100
P_K = [0.5, 0.0, 0.0, 0.0, 0.5]


def others() -> Tensor:
    """Scores of the other classes, one apart at the top."""
    return torch.cat([torch.arange(0, -20, -1.0), torch.full((CLASSES - 21,), -20.0)])


def losses(method: str, label_scores: Tensor) -> tuple[Tensor, Tensor]:
    """The loss for each score of the label, and its slope."""
    label_scores = label_scores.clone().requires_grad_()
    logits = torch.cat([label_scores.unsqueeze(1), others().expand(len(label_scores), -1)], dim=1)
    labels = torch.zeros(len(label_scores), dtype=torch.int64)
    p_k = [1.0] if method == "softmax" else P_K
    value = topk_cross_entropy(logits, labels, p_k=p_k, method=method, reduction="none")
    (slope,) = torch.autograd.grad(value.sum(), label_scores)
    return value.detach(), slope


def main() -> None:
    figure, (by_rank, by_margin, by_slope) = pyplot.subplots(1, 3, figsize=(13, 4))
    ranks = torch.arange(1, 13)
    margins = torch.linspace(-8, 4, 241)
    for method in METHODS:
        style = {"linestyle": "--", "color": "black"} if method == "softmax" else {}
        by_rank.plot(ranks, losses(method, 1.5 - ranks)[0], marker=".", label=method, **style)
        value, slope = losses(method, margins)
        by_margin.plot(margins, value, **style)
        by_slope.plot(margins, slope, **style)
    by_rank.set(xlabel="rank of the label", ylabel="loss", xticks=range(1, 13))
    by_margin.set(xlabel="label's score less the best other", ylabel="loss")
    by_slope.set(xlabel="label's score less the best other", ylabel="gradient by the label's score", ylim=(-3.5, 0.5))
    by_rank.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=80)


if __name__ == "__main__":
    main()
