"""How a network answers a split."""

from collections.abc import Sequence
from contextlib import nullcontext

import torch
from torch import nn

from ...models.preprocessing_layers import Normalize
from ..fitting.label_ranks import label_ranks
from ..fitting.scoring import scores_of_ranks
from ..losses import TopKCrossEntropy
from ..scores import SplitScores
from .pictures import Pictures


@torch.no_grad()
def score(
    network: nn.Module,
    normalize: Normalize,
    loss: TopKCrossEntropy,
    pictures: Pictures,
    weights: Sequence[float],
    batch_size: int,
) -> SplitScores | None:
    """Score every image of a split, without augmentation, in float32 and without TF32, as it is deployed.

    Args:
        network: Normalised images to logits.
        normalize: What comes before it, on its device.
        loss: The loss, row by row.
        pictures: The images.
        weights: Of top-1, top-2, ... in the score.
        batch_size: Images at once.

    Returns:
        The scores; ``None`` without images.
    """
    if not len(pictures):
        return None
    device = normalize.mean.device
    network.eval()
    ranks, losses, classes = [], [], 0
    count = len(pictures)
    sizes = [min(batch_size, count - start) for start in range(0, count, batch_size)]
    exact = torch.backends.cudnn.flags(enabled=True, allow_tf32=False) if device.type == "cuda" else nullcontext()
    with exact:
        for pixels, labels in pictures.batches(torch.arange(count), sizes):
            targets = labels.to(device, non_blocking=True)
            logits = network(normalize(pixels.to(device, non_blocking=True)))
            classes = logits.shape[1]
            ranks.append(label_ranks(logits, targets))
            losses.append(loss(logits, targets).double())
    return scores_of_ranks(torch.cat(ranks).cpu(), float(torch.cat(losses).mean()), weights, classes)
