"""Parts of an exported graph that torch keeps as a graph inside, put back in their place."""

import operator
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

_AUTOCAST = torch.ops.higher_order.wrap_with_autocast  # device, dtype, enabled, cached, graph, what it is given
_GRADIENTS = torch.ops.higher_order.wrap_with_set_grad_enabled  # enabled, graph, what it is given


def inline(program: ExportedProgram) -> None:
    """Put what a network computes without autocast, or with or without gradients, among the other nodes.

    timm's EfficientViT switches autocast off for its attention, for example. A file computes without autocast and
    without gradients anyway, so that the answers stay; and a graph inside a graph is not opened again, see
    `headsmith.export.formats.pt2_schema`. What a network computes with autocast stays as it is.
    """
    with program.graph_module._set_replace_hook(program.graph_signature.get_replace_hook()):  # outputs have names
        _inline(program.graph_module)


def _inline(module: GraphModule) -> None:
    for part in [node for node in module.graph.nodes if _is_switched(node)]:
        place = 4 if part.target is _AUTOCAST else 1
        inner, given = part.args[place], part.args[place + 1 :]
        body = getattr(module, inner.target)
        _inline(body)  # which knows its own inner graphs by name
        values = dict(zip(body.graph.find_nodes(op="placeholder"), given, strict=True))
        with module.graph.inserting_before(part):
            answer = module.graph.graph_copy(body.graph, values)
        _replace(part, answer)
        module.graph.erase_node(part)
        if not inner.users:
            module.graph.erase_node(inner)
    module.graph.lint()
    module.recompile()


def _is_switched(node: Node) -> bool:
    return node.target is _GRADIENTS or (node.target is _AUTOCAST and node.args[2] is False)


def _replace(part: Node, answer: Any) -> None:
    """Let what took an entry of a part's answer take the value itself."""
    for user in list(part.users):
        if user.target is not operator.getitem:
            raise ValueError(f"{user.name} takes all answers of {part.name} at once")
        user.replace_all_uses_with(answer[user.args[1]])
        user.graph.erase_node(user)
