"""The network inside an exported graph: behind the preprocessing, before the top-k."""

from typing import NamedTuple

import onnx
from onnx.utils import Extractor

from ..errors import ExportError

PRODUCTS = ("Conv", "Gemm", "MatMul")
HEAD, LOGITS = "classifier.head.", "logits"


class NetworkPart(NamedTuple):
    """A part of a graph as a graph of its own.

    Attributes:
        model: The part.
        start: Its input: that of the graph's first convolution or matrix product.
        end: Its output: the logits; without the head, the input of the head's first product.
    """

    model: onnx.ModelProto
    start: str
    end: str


def network_part(model: onnx.ModelProto, *, with_head: bool = True) -> NetworkPart:
    """Cut the network out of an exported classifier.

    Args:
        model: What `write_onnx` wrote. Where its network reads the size of the batch from the graph's input, it reads
            that from its own from now on.
        with_head: Whether the head belongs to it.

    Raises:
        ExportError: No convolution or matrix product is in it.
    """
    graph = model.graph
    products = [node for node in graph.node if node.op_type in PRODUCTS]
    head = next((node for node in products if node.input[1].startswith(HEAD)), None)
    if not with_head and head is not None:
        products = products[: products.index(head)]
    if not products:
        raise ExportError("no convolution or matrix product is left in the file to compute in lower precision")
    start, end = products[0].input[0], LOGITS if with_head or head is None else head.input[0]
    for node in graph.node:
        if node.op_type == "Shape" and node.input[0] == graph.input[0].name and _of_batch(node):
            node.input[0] = start
    return NetworkPart(Extractor(model).extract_model([start], [end]), start, end)


def _of_batch(node: onnx.NodeProto) -> bool:
    return {attribute.name: attribute.i for attribute in node.attribute} == {"start": 0, "end": 1}
