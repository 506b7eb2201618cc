"""ONNX classifiers as graphs: read them, find their last layer, cut them before it."""

from .cutting import cut
from .last_layer import LastLayer, find_last_layer
from .reading import only_input, read_onnx
from .weights import affine_weights, data_folder, parameter_count

__all__ = [
    "LastLayer",
    "affine_weights",
    "cut",
    "data_folder",
    "find_last_layer",
    "only_input",
    "parameter_count",
    "read_onnx",
]
