"""Draws each method's loss against the label's rank and margin: python -m benchmarks.plot_losses docs/losses.png."""

import sys

import matplotlib as mpl
import torch
from torch import Tensor

from headsmith.trainer.losses import RELAXATIONS, topk_cross_entropy

mpl.use("Agg")
from matplotlib import pyplot

CLASSES = 100
DASHED = {"linestyle": "--", "color": "black"}
ROWS = RELAXATIONS[:3], RELAXATIONS[3:]
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
    figure, axes = pyplot.subplot_mosaic(
        [["rank", "margin", *ROWS[0]], ["rank", "margin", *ROWS[1]]],
        figsize=(15, 5),
        width_ratios=[3, 3, 2, 2, 2],
    )
    ranks = torch.arange(1, 13)
    margins = torch.linspace(-8, 4, 481)
    reference = losses("softmax", margins)[1]
    for method in ("softmax", *RELAXATIONS):
        plain = method == "softmax"
        (line,) = axes["rank"].plot(
            ranks, losses(method, 1.5 - ranks)[0], marker=".", label=method, **(DASHED if plain else {})
        )
        value, slope = losses(method, margins)
        axes["margin"].plot(margins, value, **(DASHED if plain else {"color": line.get_color()}))
        if not plain:
            axes[method].plot(margins, reference, **DASHED, linewidth=0.8)
            axes[method].plot(margins, slope, color=line.get_color())
            axes[method].set_title(method, fontsize=9)
            axes[method].set(ylim=(-3.5, 0.5), xlim=(-8, 4))
    axes["rank"].set(xlabel="rank of the label", ylabel="loss", xticks=range(1, 13))
    axes["margin"].set(xlabel="label's score less the best other", ylabel="loss")
    for row in ROWS:
        axes[row[0]].set_ylabel("gradient", fontsize=9)
    axes[ROWS[1][1]].set_xlabel("label's score less the best other")
    axes["rank"].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(sys.argv[1], dpi=80)


if __name__ == "__main__":
    main()
