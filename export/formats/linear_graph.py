"""The graph of a linear head alone."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from ..classifier import BATCH, Classifier
from ..options import FEATURES

IR_VERSION = 10
WEIGHT, BIAS = "classifier.head.weight", "classifier.head.bias"


def linear_graph(classifier: Classifier, opset: int) -> onnx.ModelProto:
    """Write the operators that torch's exporter makes of a linear head and the top-k, without its seconds.

    Args:
        classifier: A `Linear` head without a backbone.
        opset: The ONNX operator set, 18 or more.

    Returns:
        The graph, ``features`` to `Classifier.outputs`, without metadata.
    """
    head, k = classifier.head, classifier.k
    nodes = [
        helper.make_node("Gemm", [FEATURES, WEIGHT, BIAS], ["logits"], transB=1),
        helper.make_node("TopK", ["logits", "k"], ["top", "topk_indices"]),
        helper.make_node("Softmax", ["logits"], ["probabilities"]),
        helper.make_node("GatherElements", ["probabilities", "topk_indices"], ["topk_scores"], axis=-1),
    ]
    for node in nodes:
        node.name = node.output[0]  # tools that convert a graph tell its nodes apart by name
    constants = {
        WEIGHT: head.get_parameter("weight").detach().numpy(),
        BIAS: head.get_parameter("bias").detach().numpy(),
        "k": np.array([k]),
    }
    outputs = {
        "logits": (TensorProto.FLOAT, head.num_classes),
        "topk_scores": (TensorProto.FLOAT, k),
        "topk_indices": (TensorProto.INT64, k),
        "probabilities": (TensorProto.FLOAT, head.num_classes),
    }
    graph = helper.make_graph(
        nodes,
        "main_graph",
        [helper.make_tensor_value_info(FEATURES, TensorProto.FLOAT, [BATCH, head.in_features])],
        [_output(name, *outputs[name]) for name in classifier.outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=IR_VERSION)


def _output(name: str, kind: int, width: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [BATCH, width])
