"""ONNX classifiers as graphs: read them, find their last layer, cut them before it."""

from .interface import NOT_TENSORS, free_axes
from .last_layer import LastLayer, find_last_layer
from .reading import BESIDE, only_input, read_onnx, read_proto
from .truncation import cut
from .weights import affine_weights, data_folder, parameter_count

__all__ = [
    "BESIDE",
    "NOT_TENSORS",
    "LastLayer",
    "affine_weights",
    "cut",
    "data_folder",
    "find_last_layer",
    "free_axes",
    "only_input",
    "parameter_count",
    "read_onnx",
    "read_proto",
]
