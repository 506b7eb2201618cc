"""Decode JPEG and PNG inside an ONNX graph, with the operators of onnxruntime-extensions."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from .extensions import DOMAIN

WARNING = (
    "The decoder of onnxruntime-extensions trusts its input: bytes that are neither JPEG nor PNG can end the process, "
    "and a truncated JPEG can hold it for ever. Check files before they get here."
)


def decode_first(model: onnx.ModelProto) -> None:
    """Put a decoder before a graph that takes pixels ``(N, H, W, 3)``: it then takes the bytes of one file, uint8.

    The decoder gives blue first, and one channel for a grey JPEG; CMYK, with four, fails when it runs.
    """
    graph = model.graph
    (pixels,) = graph.input
    constants = {
        "decoder.shape": np.array([1, 1, 3]),
        "decoder.rgb": np.array([2, 1, 0]),
        "decoder.batch": np.array([0]),
    }
    steps = (
        helper.make_node("DecodeImage", [f"{pixels.name}"], ["decoder.decoded"], domain=DOMAIN),
        helper.make_node("Expand", ["decoder.decoded", "decoder.shape"], ["decoder.three"]),
        helper.make_node("Gather", ["decoder.three", "decoder.rgb"], ["decoder.image"], axis=2),
        helper.make_node("Unsqueeze", ["decoder.image", "decoder.batch"], ["decoder.pixels"]),
    )
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name == pixels.name:
                node.input[index] = "decoder.pixels"
    for place, step in enumerate(steps):
        graph.node.insert(place, step)
    graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in constants.items())
    pixels.CopyFrom(helper.make_tensor_value_info(pixels.name, TensorProto.UINT8, ["bytes"]))
    model.opset_import.append(helper.make_opsetid(DOMAIN, 1))
