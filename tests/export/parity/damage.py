"""Ways to damage an ONNX file that headsmith exported, so that it still opens and its hashes still fit."""

from collections.abc import Callable

import ml_dtypes
import numpy as np
import onnx
from onnx import helper, numpy_helper

Damage = Callable[[onnx.GraphProto], None]
DAMAGES: dict[str, Damage] = {}
HEAD, BIAS = "classifier.head.weight", "classifier.head.bias"


def named(name: str) -> Callable[[Damage], Damage]:
    def keep(damage: Damage) -> Damage:
        DAMAGES[name] = damage
        return damage

    return keep


def weight(graph, name):
    return next(tensor for tensor in graph.initializer if tensor.name == name)


def reweigh(graph, name, change):
    """Put ``change(array)`` in the place of a weight."""
    tensor = weight(graph, name)
    tensor.CopyFrom(numpy_helper.from_array(np.ascontiguousarray(change(numpy_helper.to_array(tensor).copy())), name))


def at(index, value):
    def change(array):
        array[index] = value(array[index]) if callable(value) else value
        return array

    return change


def constant(graph, value):
    name = f"damage_{len(graph.initializer)}"
    graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    return name


def maker(graph, output):
    return next(node for node in graph.node if output in node.output)


def after(graph, value, build):
    """Let ``build(before)``, a list of nodes that ends in one for ``value``, stand behind what makes ``value``."""
    before = f"{value}_undamaged"
    node = maker(graph, value)
    node.output[list(node.output).index(value)] = before
    place = list(graph.node).index(node) + 1
    for added in reversed(build(before)):
        graph.node.insert(place, added)


def replace(graph, output, kind, **attributes):
    """Let another operator make an output of the same inputs."""
    old = maker(graph, output)
    new = helper.make_node(kind, list(old.input), list(old.output), name=f"{old.name}_damaged", **attributes)
    old.CopyFrom(new)


def last(graph, kind):
    return [node for node in graph.node if node.op_type == kind][-1]


def last_conv(graph):
    return last(graph, "Conv").input[1]


def reader(graph, value):
    """The one node that takes a value."""
    (node,) = (node for node in graph.node if value in node.input)
    return node


def channels_first(graph):
    return reader(graph, "pixel_values").output[0]


def prepared(graph, kind):
    """What a step between the pixels and the first convolution gives: a ``Mul``, then a ``Sub``, then a ``Div``."""
    value = "pixel_values"
    while (node := reader(graph, value)).op_type != kind:
        value = node.output[0]
    return node.output[0]


def features(graph):
    return maker(graph, "logits").input[0]


def best_logits(graph):
    return last(graph, "TopK").output[0]


def apart(graph, output):
    """Give an output a node of its own, so that damage to it damages no other output."""
    inside = f"{output}_inside"
    for node in graph.node:
        for names in (node.input, node.output):
            names[:] = [inside if name == output else name for name in names]
    graph.node.append(helper.make_node("Identity", [inside], [output]))


def simple(kind, value, amount):
    """Add or multiply a value, an output or what ``value(graph)`` names, by a constant."""

    def damage(graph):
        name, found = constant(graph, amount), value if isinstance(value, str) else value(graph)
        after(graph, found, lambda before: [helper.make_node(kind, [before, name], [found])])

    return damage


OUTPUTS = ("logits", "topk_scores", "probabilities")
for output in OUTPUTS:
    for bad in (np.nan, np.inf, -np.inf):
        DAMAGES[f"{output} is {bad}"] = simple("Mul" if np.isnan(bad) else "Add", output, np.float32(bad))


def at_batch(graph, value, size, otherwise):
    """Give ``otherwise(before)`` for batches of one size alone."""

    def build(before):
        nodes, other = otherwise(before)
        zero, one = constant(graph, np.int64(0)), constant(graph, np.int64(size))
        return [
            *nodes,
            helper.make_node("Shape", [before], [f"{value}_shape"]),
            helper.make_node("Gather", [f"{value}_shape", zero], [f"{value}_n"]),
            helper.make_node("Equal", [f"{value}_n", one], [f"{value}_is"]),
            helper.make_node("Where", [f"{value}_is", other, before], [value]),
        ]

    after(graph, value, build)


for output in OUTPUTS:
    for size in (1, 2, 3, 5, 64):
        DAMAGES[f"{output} NaN at batch {size} alone"] = lambda graph, output=output, size=size: at_batch(
            graph, output, size, lambda _: ([], constant(graph, np.float32(np.nan)))
        )


def first_row(graph, value):
    """Repeat the first row of the batch."""
    zero = constant(graph, np.array([0]))
    after(
        graph,
        value,
        lambda before: [
            helper.make_node("Gather", [before, zero], [f"{value}_first"], axis=0),
            helper.make_node("Shape", [before], [f"{value}_rows"]),
            helper.make_node("Expand", [f"{value}_first", f"{value}_rows"], [value]),
        ],
    )


def row_65(graph, value):
    """Let the rows after the 65th be the 65th."""
    zero, one, place = (constant(graph, np.int64(number)) for number in (0, 1, 64))
    after(
        graph,
        value,
        lambda before: [
            helper.make_node("Shape", [before], [f"{value}_size"]),
            helper.make_node("Gather", [f"{value}_size", zero], [f"{value}_length"]),
            helper.make_node("Range", [zero, f"{value}_length", one], [f"{value}_places"]),
            helper.make_node("Min", [f"{value}_places", place], [f"{value}_kept"]),
            helper.make_node("Gather", [before, f"{value}_kept"], [value], axis=0),
        ],
    )


for output in ("logits", "topk_scores", "topk_indices", "probabilities"):
    DAMAGES[f"{output} of the 65th row for all after it"] = lambda graph, output=output: row_65(graph, output)
    DAMAGES[f"{output} of the first row for all"] = lambda graph, output=output: first_row(graph, output)

for index, amount in ((0, 0.01), (3, -0.01), (5, 0.001)):
    DAMAGES[f"bias of class {index} {amount:+g}"] = lambda graph, index=index, amount=amount: reweigh(
        graph, BIAS, at(index, lambda value: value + amount)
    )
DAMAGES |= {
    "pixels of the first row for all": lambda graph: first_row(graph, channels_first(graph)),
    "pixels of the 65th row for all after it": lambda graph: row_65(graph, channels_first(graph)),
    "features of the first row for all": lambda graph: first_row(graph, features(graph)),
    "all biases + 0.01": lambda graph: reweigh(graph, BIAS, lambda array: array + np.float32(0.01)),
    "one bias NaN": lambda graph: reweigh(graph, BIAS, at(2, np.nan)),
    "one weight of the head + 1 %": lambda graph: reweigh(graph, HEAD, at((1, 7), lambda value: value * 1.01)),
    "one weight of the head 0": lambda graph: reweigh(graph, HEAD, at((4, 20), 0.0)),
    "one weight of the head negated": lambda graph: reweigh(graph, HEAD, at((0, 3), lambda value: -value)),
    "one weight of a convolution + 1": lambda graph: reweigh(graph, last_conv(graph), at((0, 0, 0, 0), 1.0)),
    "a channel 0": lambda graph: reweigh(graph, last_conv(graph), at(5, 0.0)),
    "two channels swapped": lambda graph: reweigh(graph, last_conv(graph), lambda array: array[[1, 0, *range(2, 96)]]),
    "head transposed": lambda graph: reweigh(graph, HEAD, lambda array: array.T.reshape(array.shape)),
    "head's rows rotated": lambda graph: reweigh(graph, HEAD, lambda array: np.roll(array, 1, axis=0)),
    "two rows of the head swapped": lambda graph: reweigh(graph, HEAD, lambda array: array[[1, 0, 2, 3, 4, 5]]),
    "head's columns reversed": lambda graph: reweigh(graph, HEAD, lambda array: array[:, ::-1]),
    "biases of two classes swapped": lambda graph: reweigh(graph, BIAS, lambda array: array[[0, 1, 2, 3, 5, 4]]),
    "logits times 1.001": simple("Mul", "logits", np.float32(1.001)),
    "logits + 1, which softmax does not see": simple("Add", "logits", np.float32(1.0)),
    "features + 1e-3": simple("Add", features, np.float32(1e-3)),
    "features nearly beyond float32": simple("Mul", features, np.float32(3e38)),
    "scores times 1.001": simple("Mul", "topk_scores", np.float32(1.001)),
    "probabilities times 1.001": simple("Mul", "probabilities", np.float32(1.001)),
    "indices + 1": simple("Add", "topk_indices", np.int64(1)),
    "indices that are no classes": simple("Add", "topk_indices", np.int64(100)),
    "no ReLU behind the last block": lambda graph: replace(graph, last(graph, "Relu").output[0], "Identity"),
    "the largest in place of the mean": lambda graph: replace(
        graph, last(graph, "AveragePool").output[0], "MaxPool", kernel_shape=[2, 2], strides=[2, 2]
    ),
    "mean subtracted twice": lambda graph: replace(graph, prepared(graph, "Div"), "Sub"),
    "no mean": simple("Add", lambda graph: prepared(graph, "Sub"), np.float32(0.5)),
    "another deviation": simple("Mul", lambda graph: prepared(graph, "Div"), np.float32(0.5 / 0.226)),
    "ImageNet's mean": simple(
        "Add",
        lambda graph: prepared(graph, "Sub"),
        np.array([0.015, 0.044, 0.094], np.float32).reshape(1, 3, 1, 1),
    ),
    "no scale": simple("Mul", lambda graph: prepared(graph, "Mul"), np.float32(255)),
    "height and width swapped": lambda graph: replace(graph, channels_first(graph), "Transpose", perm=[0, 3, 2, 1]),
    "scores are logits": lambda graph: replace_input(graph, "topk_scores", best_logits(graph)),
    "scores without their exponential": lambda graph: after(
        graph, "topk_scores", lambda before: [helper.make_node("Log", [before], ["topk_scores"])]
    ),
    "scores are sigmoids": lambda graph: replace_input(graph, "topk_scores", best_logits(graph), "Sigmoid"),
    "probabilities are sigmoids": lambda graph: replace_input(graph, "probabilities", "logits", "Sigmoid"),
    "probabilities over the batch": lambda graph: replace_input(graph, "probabilities", "logits", "Softmax", axis=0),
    "top-k of the smallest": lambda graph: smallest(last(graph, "TopK")),
}


def smallest(node):
    kept = [attribute for attribute in node.attribute if attribute.name != "largest"]
    del node.attribute[:]
    node.attribute.extend([*kept, helper.make_attribute("largest", 0)])


def replace_input(graph, output, value, kind="Identity", **attributes):
    node = maker(graph, output)
    node.CopyFrom(helper.make_node(kind, [value], [output], name=f"{node.name}_damaged", **attributes))


@named("BGR")
def bgr(graph):
    order, value = constant(graph, np.array([2, 1, 0])), channels_first(graph)
    after(graph, value, lambda before: [helper.make_node("Gather", [before, order], [value], axis=1)])


@named("of equal logits the higher index first")
def ties(graph):
    backwards, highest = constant(graph, np.arange(6)[::-1].copy()), constant(graph, np.int64(5))
    node = last(graph, "TopK")
    place, indices = list(graph.node).index(node), node.output[1]
    graph.node.insert(place, helper.make_node("Gather", ["logits", backwards], ["turned"], axis=1))
    node.input[0], node.output[1] = "turned", "turned_indices"
    graph.node.insert(place + 2, helper.make_node("Sub", [highest, "turned_indices"], [indices]))


@named("k = 4")
def fewer(graph):
    reweigh(graph, last(graph, "TopK").input[1], lambda array: array - 1)
    for output in graph.output:
        if output.name.startswith("topk"):
            output.type.tensor_type.shape.dim[1].dim_value = 4


@named("the first two answers swapped")
def swapped(graph):
    order = constant(graph, np.array([1, 0, 2, 3, 4]))
    for value in ("topk_scores", "topk_indices"):
        after(graph, value, lambda before, value=value: [helper.make_node("Gather", [before, order], [value], axis=1)])


def rounded(graph, kind, only=None):
    for tensor in list(graph.initializer):
        if only in (None, tensor.name) and tensor.data_type == onnx.TensorProto.FLOAT and np.prod(tensor.dims) > 10:
            reweigh(graph, tensor.name, lambda array: array.astype(kind).astype(np.float32))


DAMAGES["weights of float16"] = lambda graph: rounded(graph, np.float16)
DAMAGES["the head's weights of float16"] = lambda graph: rounded(graph, np.float16, HEAD)
DAMAGES["weights of bfloat16"] = lambda graph: rounded(graph, ml_dtypes.bfloat16)


def damaged(content: bytes, name: str) -> bytes:
    """A file with one of `DAMAGES`."""
    model = onnx.load_from_string(content)
    del model.graph.value_info[:]
    for output in ("topk_scores", "topk_indices", "probabilities"):
        apart(model.graph, output)
    DAMAGES[name](model.graph)
    return model.SerializeToString()
