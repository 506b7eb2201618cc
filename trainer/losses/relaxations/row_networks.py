"""The network of each row, where the host may not ask how many of its scores are masked."""

import torch
from torch import Tensor

from ..constants import on_device
from .networks import codes_by_count


@torch.library.custom_op("headsmith::row_networks", mutates_args=())
def row_networks(counts: Tensor, method: str, n: int, k: int) -> tuple[Tensor, Tensor]:
    """The layers of each row's network; an operator, so that a compiled graph need not hold the networks of all counts.

    Args:
        counts: (B,) int64, how many scores of a row are not masked.
        method: `odd_even`, `bitonic` or `splitter_selection`.
        n: number of wires, 1..128.
        k: how many ranks come out in order.

    Returns:
        Each wire's partner (layers, n, B) int64, itself when idle, and (layers, n, 1, B) int64, 1 where it gets the
        higher score, else -1.
    """
    codes = on_device(("row networks", method, n, k), [codes_by_count(method, n, k, n)], counts.device)[0]
    own = codes[n - counts.clamp_min(1)].permute(1, 2, 0).contiguous()
    return own % n, (2 * (own // n) - 1).unsqueeze(2)


@row_networks.register_fake
def _(counts: Tensor, method: str, n: int, k: int) -> tuple[Tensor, Tensor]:
    layers, rows = codes_by_count(method, n, k, n).shape[1], counts.shape[0]
    return counts.new_empty(layers, n, rows), counts.new_empty(layers, n, 1, rows)
