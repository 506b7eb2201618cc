"""Which execution provider runs which nodes of a graph."""

from collections import Counter, defaultdict
from pathlib import Path

import onnx
import onnxruntime
from onnx import TensorProto

INDICES = (TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL)


def nodes_by_provider(session: onnxruntime.InferenceSession) -> dict[str, int]:
    """How many nodes each provider runs."""
    count = Counter(part.ep_name for part in session.get_provider_graph_assignment_info() for _ in part.get_nodes())
    return dict(count)


def misplaced_nodes(session: onnxruntime.InferenceSession, path: Path) -> list[str]:
    """Operators of nodes that the session's first provider does not run although it should.

    onnxruntime computes shapes on the CPU whatever the provider, since that is where they are needed: a node of the CPU
    whose outputs are all integers or booleans is not misplaced.

    Args:
        session: An opened session.
        path: Its file.

    Returns:
        One operator a node, in the order of the graph.
    """
    first = session.get_providers()[0]
    parts = session.get_provider_graph_assignment_info()
    elsewhere = [node for part in parts if part.ep_name != first for node in part.get_nodes()]
    if not elsewhere:
        return []
    by_name, by_operator = _output_types(path)
    types = [by_name.get(node.name, by_operator.get(node.op_type, {0})) for node in elsewhere]
    return [node.op_type for node, found in zip(elsewhere, types, strict=True) if not found <= set(INDICES)]


def _output_types(path: Path) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """The types of outputs, 0 for one that is not known: of each node that has a name, and of each operator."""
    graph = onnx.shape_inference.infer_shapes(onnx.load(path, load_external_data=False)).graph
    known = {value.name: value.type.tensor_type.elem_type for value in (*graph.value_info, *graph.output)}
    by_name: dict[str, set[int]] = {}
    by_operator: dict[str, set[int]] = defaultdict(set)
    for node in graph.node:
        types = {known.get(name, 0) for name in node.output if name}
        by_operator[node.op_type] |= types
        if node.name:
            by_name[node.name] = types
    return by_name, by_operator
