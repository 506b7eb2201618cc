"""Which block of a network a parameter stands in, and which parameters learn."""

from collections.abc import Iterator
from typing import Any

from timm.models import group_parameters
from torch import nn

from ...core.errors import InputError
from ...models.backbone import Backbone
from .settings import ALL, LAST, NONE, NORMS


def give_matcher(network: Any) -> None:
    """Let a network of torchvision say, as those of timm do by ``group_matcher``, in which layer a parameter is."""
    if not hasattr(network, "group_matcher"):
        blocks = enumerate(_blocks(network))
        places = {f"{name}.{inner}": place for place, (name, one) in blocks for inner, _ in one.named_parameters()}
        network.group_matcher = lambda coarse=False: lambda name: places.get(name, 0)


def let_learn(backbone: Backbone, unfreeze: str) -> None:
    """Mark the parameters of a backbone that learn; its classifier, which nobody asks, does not.

    Args:
        backbone: Its network has a matcher, see `give_matcher`.
        unfreeze: See `FinetuneConfig`.

    Raises:
        InputError: More blocks than there are.
    """
    network = backbone.network
    unused = {id(one) for one in _classifier_parameters(backbone)}
    used = {name: one for name, one in network.named_parameters() if id(one) not in unused}
    learning: set[str] = set() if unfreeze == NONE else set(used)
    if unfreeze == NORMS:
        learning = {
            f"{name}.{inner}"
            for name, module in network.named_modules()
            if "norm" in type(module).__name__.lower()
            for inner, _ in module.named_parameters(recurse=False)
        }
    if last := LAST.fullmatch(unfreeze):
        blocks = _by_block(network, used)
        count = int(last[1])
        if count > len(blocks):
            raise InputError(
                f"--unfreeze: {unfreeze} found, but {backbone.request.spec} has {len(blocks)} blocks; expected fewer, "
                f"or {ALL}"
            )
        learning = {name for block in blocks[-count:] for name in block}
    for name, parameter in network.named_parameters():
        parameter.requires_grad_(name in learning and name in used)


def _by_block(network: Any, used: dict[str, nn.Parameter]) -> list[list[str]]:
    """The parameters of every block; a layer of vectors alone, such as the last norm, goes with the one before it."""
    layers: dict[str, int] = group_parameters(network, network.group_matcher(coarse=False), reverse=True)
    blocks: list[list[str]] = []
    for layer in sorted({layers[name] for name in used}):
        names = [name for name in used if layers[name] == layer]
        if blocks and all(used[name].ndim < 2 for name in names):
            blocks[-1] += names
        else:
            blocks.append(names)
    return blocks


def _classifier_parameters(backbone: Backbone) -> Iterator[nn.Parameter]:
    """Those of a classifier that still stands in its network; some have two."""
    found = backbone.source.classifier
    for module in found if isinstance(found, tuple) else (found,):
        if isinstance(module, nn.Module):
            yield from module.parameters()


def _blocks(network: nn.Module, name: str = "", most: int = 0) -> Iterator[tuple[str, nn.Module]]:
    """The children of a network of torchvision, and in turn those of what is a mere row of them or most of it."""
    most = most or _weights(network) // 2
    for child, module in network.named_children():
        path = f"{name}.{child}" if name else child
        row = isinstance(module, nn.Sequential | nn.ModuleList) or _weights(module) > most
        if row and list(module.children()):
            yield from _blocks(module, path, most)
        elif _weights(module):
            yield path, module


def _weights(module: nn.Module) -> int:
    return sum(one.numel() for one in module.parameters())
