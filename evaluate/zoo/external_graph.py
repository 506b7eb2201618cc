"""What an ONNX file of unknown origin is, from its graph and from what is said of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from ...core.errors import InputError
from ...models.class_names import ClassNames
from ...models.onnx_graph import NOT_TENSORS, only_input
from ...models.onnx_graph.last_layer import SHAPE_ONLY
from ...models.onnx_graph.layout import check_pixels, layout_of
from ...models.preprocessing import Preprocessing
from ...models.recipe_file import read_recipe, recipe_of
from .candidate import Setup
from .external_class_names import read_names
from .external_session import ask_shapes
from .manifest import ZooRow

INPUTS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.DOUBLE, ir.DataType.UINT8)
SOFTMAXES, QUANTISING = ("Softmax", "QLinearSoftmax"), ("QuantizeLinear", "DequantizeLinear")
STEPS = {  # where a quantised operator has the scale and the zero point of its output
    "QuantizeLinear": (1, 2),
    "QLinearMatMul": (6, 7),
    "QLinearConv": (6, 7),
    "QGemm": (7, 8),
    "QLinearAdd": (6, 7),
}


@dataclass(frozen=True)
class ExternalOnnx:
    """A file's recipe, names and setup."""

    preprocessing: Preprocessing
    names: ClassNames
    setup: Setup


def describe_external(model: ir.Model, row: ZooRow, where: str) -> ExternalOnnx:
    """Bring together a graph and what its row says.

    Args:
        model: The graph.
        row: What is said of it.
        where: The file, for errors.

    Raises:
        InputError: The row does not say the recipe or the labels, or what it says does not fit the graph.
    """
    images = only_input(model, where)
    shape = _sizes(images) or [None] * 4
    if len(shape) != 4:
        raise InputError(f"{where}: input {images.name} has the shape {images.shape}, expected four axes, 3 channels")
    if images.dtype not in INPUTS:
        raise InputError(f"{where}: input {images.name} takes {images.dtype}, expected float or uint8 pixels")
    recipe = _recipe(row, layout_of(shape), where)
    _check_shape(images, shape, recipe, where)
    check_pixels(images, recipe, where)
    if row.labels is None:
        raise InputError(
            f"{where}: does not say what its outputs are, and that is never guessed; name its labels "
            f"(imagenet-1k, or a text file with one name a line) with {_place(row, 'labels')}"
        )
    names = read_names(row.labels, row.folder, _said(row, where))
    if _unsaid(model):
        ask_shapes(model, shape[0], _image(recipe), where)
    output, further = _output(model, row, len(names[0]), where)
    _check_axes(output, shape[0], where)
    fixed = shape[0] or _fixed_batch(output)
    quantised = output.dtype is not None and output.dtype.is_integer()
    setup = Setup(
        str(output.name),
        _ends_in_softmax(output),
        row.background,
        fixed,
        quantised,
        *(_steps(output) if quantised else (None, 0)),
        further,
    )
    return ExternalOnnx(recipe, names, setup)


def _check_axes(output: ir.Value, batch: int | None, where: str) -> None:
    """Refuse scores whose first axis is not the batch: the classes stand there, where a later axis is free."""
    sizes = _sizes(output)
    if batch is None and len(sizes) > 1 and sizes[0] not in (None, 1) and None in sizes[1:]:
        raise InputError(
            f"{where}: output {output.name} has the shape {output.shape}, expected the batch as its first "
            "axis; transpose it in the graph"
        )


def _sizes(value: ir.Value) -> list[int | None]:
    """The shape of a value, ``None`` for an axis of any size; nothing where the graph does not say it."""
    return [size if isinstance(size, int) else None for size in value.shape or ()]


def _recipe(row: ZooRow, layout: str | None, where: str) -> Preprocessing:
    if row.preprocessing is None:
        raise InputError(
            f"{where}: does not say how images are preprocessed, and that is never guessed; write its recipe into a "
            f"YAML file and name it with {_place(row, 'preprocessing')}"
        )
    if isinstance(row.preprocessing, str):
        return read_recipe(row.folder / row.preprocessing, layout)
    return recipe_of(row.preprocessing, f"{row.where or row.id}: preprocessing", layout)


def _place(row: ZooRow, key: str) -> str:
    """Where something is said of a file that does not say it itself."""
    return row.advised(key) if row.where or row.option else f"{row.advised(key)}, or in a zoo.yaml"


def _said(row: ZooRow, where: str) -> str:
    """What says the labels: a list stands in a zoo's row; a file or a set may be named by an option too."""
    return f"{row.where}: labels" if isinstance(row.labels, list) and row.where else where


def _image(recipe: Preprocessing) -> tuple[int, ...]:
    return (3, *recipe.crop_size) if recipe.layout == "nchw" else (*recipe.crop_size, 3)


def _unsaid(model: ir.Model) -> bool:
    """Whether an output says nothing of its shape, or several do not say how many scores they have."""
    open_ends = [value for value in model.graph.outputs if _scores(value) is None]
    return len(open_ends) > 1 or any(value.shape is None for value in open_ends)


def _check_shape(images: ir.Value, shape: list[int | None], recipe: Preprocessing, where: str) -> None:
    expected = _image(recipe)
    for found, wanted in zip(shape[1:], expected, strict=True):
        if found not in (None, wanted):
            raise InputError(
                f"{where}: input {images.name} takes {images.shape}, the recipe gives {expected} an image; correct "
                "layout or crop_size in its preprocessing"
            )


def _output(model: ir.Model, row: ZooRow, labels: int, where: str) -> tuple[ir.Value, tuple[str, ...]]:
    """The output with one score a label, and one for the background; and those that its name ``logits`` beat."""
    outputs = {str(value.name): value for value in model.graph.outputs}
    listed = ", ".join(f"{name} {value.shape}" for name, value in outputs.items())
    if row.output is not None:
        if row.output not in outputs:
            raise InputError(f"{row.called('output', where)} {row.output}: no such output; expected one of {listed}")
        outputs = {row.output: outputs[row.output]}
    expected = labels + (row.background is not None)
    counts = {name: _scores(value) for name, value in outputs.items()}
    fitting = [name for name, count in counts.items() if count in (None, expected)]
    if not fitting:
        asked = f"; is the first one a background class? say {row.advised('background', '0')}"
        extra = "" if row.background is not None else asked
        others = model.meta[NOT_TENSORS]
        if others and set(counts.values()) <= {0, 1}:
            listed += "".join(f", {name} {kind}" for name, kind in others.items())
            raise InputError(
                f"{where}: outputs {listed}; expected a tensor of scores, as skl2onnx writes with zipmap=False"
            )
        file = row.folder / row.labels if isinstance(row.labels, str) else None
        source = f" of {file if file and file.is_file() else row.labels}" if file else ""
        named = f"{labels} labels{source}" + (" and the background" if row.background is not None else "")
        raise InputError(
            f"{where}: outputs {_described(outputs)}; expected {expected} scores an image, one for each of the "
            f"{named}{extra if expected + 1 in counts.values() else ''}"
        )
    further: tuple[str, ...] = ()
    if len(fitting) > 1 and "logits" in fitting:
        further = tuple(name for name in fitting if name != "logits")
        fitting = ["logits"]
    if len(fitting) > 1:
        raise InputError(
            f"{where}: several outputs could be the scores ({listed}); name one with {row.advised('output')}"
        )
    if row.background is not None and not 0 <= row.background < expected:
        said = row.called("background", where)
        raise InputError(f"{said} {row.background}: expected one of 0..{expected - 1}")
    return outputs[fitting[0]], further


def _described(outputs: Mapping[str, ir.Value]) -> str:
    """Names, types and shapes, and whether they are the number of a class instead of scores."""
    said = [f"{name} {value.dtype} {value.shape}" for name, value in outputs.items()]
    found = [_maker(value, SHAPE_ONLY) for value in outputs.values()]
    answers = [node.op_type for node in found if node is not None and node.op_type in ("ArgMax", "ArgMin")]
    return ", ".join(said) + (
        f" (of {answers[0]}: the number of a class, no scores; make what goes into it an output)" if answers else ""
    )


def _scores(value: ir.Value) -> int | None:
    """How many numbers an image has in an output; ``None`` where the graph does not say it, 0 where that is no row."""
    if value.dtype in (ir.DataType.STRING, ir.DataType.BOOL):
        return 0
    if value.shape is None:
        return None
    sizes = _sizes(value)[1:]
    if None not in sizes and sum(size != 1 for size in sizes) == 1:
        return math.prod(size for size in sizes if size is not None)
    if not sizes or any(size not in (1, None) for size in sizes[1:]):
        return 0
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def _fixed_batch(output: ir.Value) -> int | None:
    """The batch that an output has whatever the input's, as some exporters of old wrote it."""
    return next(iter(_sizes(output)), None)


def _ends_in_softmax(value: ir.Value) -> bool:
    node = _maker(value, (*SHAPE_ONLY, *QUANTISING))
    return node is not None and node.op_type in SOFTMAXES


def _maker(value: ir.Value, passed: tuple[str, ...]) -> ir.Node | None:
    """The node that computes a value, those of some kinds left out."""
    node = value.producer()
    while node is not None and node.op_type in passed and node.inputs[0] is not None:
        node = node.inputs[0].producer()
    return node


def _steps(output: ir.Value) -> tuple[float | None, int]:
    """Scale and zero point of a quantised output; ``None`` and 0 where the graph does not say them."""
    node = _maker(output, SHAPE_ONLY)
    if node is None or node.op_type not in STEPS:
        return None, 0
    scale, zero = (_number(node, place) for place in STEPS[node.op_type])
    return None if scale is None else float(scale), int(zero or 0)


def _number(node: ir.Node, place: int) -> Any:
    value = node.inputs[place] if place < len(node.inputs) else None
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy().item()
