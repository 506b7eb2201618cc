"""Where the network is in an exported graph: behind the preprocessing, before the top-k."""

import onnx

from .errors import ExportError

PRODUCTS = ("Conv", "Gemm", "MatMul")
HEAD, LOGITS = "classifier.head.", "logits"


def network_part(graph: onnx.GraphProto, *, with_head: bool = True) -> tuple[str, str]:
    """The tensors between which an exported classifier is a network.

    Args:
        graph: What `write_onnx` wrote.
        with_head: Whether the head belongs to it.

    Returns:
        The input of the first product (convolution or matrix product), and the logits; without the head, the input of
        the head's first product in their place.

    Raises:
        ExportError: No product is between them.
    """
    products = [node for node in graph.node if node.op_type in PRODUCTS]
    head = next((node for node in products if node.input[1].startswith(HEAD)), None)
    if not with_head and head is not None:
        products = products[: products.index(head)]
    if not products:
        raise ExportError("no convolution or matrix product is left in the file to compute in lower precision")
    return products[0].input[0], LOGITS if with_head or head is None else head.input[0]
