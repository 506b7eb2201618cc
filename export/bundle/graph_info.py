"""What an ONNX graph says of itself."""

from dataclasses import dataclass

import onnx_ir as ir

from ...core.errors import InputError
from ...models.onnx_graph import NOT_TENSORS, affine_weights, find_last_layer, parameter_count


@dataclass(frozen=True)
class ValueInfo:
    """An input or an output.

    Attributes:
        name: Its name.
        dtype: Of its elements; of what is no tensor its kind; ``None`` where nothing is said.
        shape: Its axes, free ones by name; ``None`` where nothing is said.
    """

    name: str | None
    dtype: str | None
    shape: tuple[int | str, ...] | None

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} {None if self.shape is None else list(self.shape)}"


@dataclass(frozen=True)
class LastLayerInfo:
    """The layer before which a classifier is cut.

    Attributes:
        name: Its name.
        operator: Its operator.
        features: What it takes, D.
        outputs: What it gives, C.
        softmaxes: How many softmaxes follow.
    """

    name: str
    operator: str
    features: int
    outputs: int
    softmaxes: int

    def __str__(self) -> str:
        softmaxes = ("no softmax", "a softmax", "two softmaxes")[min(2, self.softmaxes)]
        return (
            f"{self.name} ({self.operator}), {self.features:,} features to {self.outputs:,} outputs, then {softmaxes}"
        )


@dataclass(frozen=True)
class NoLastLayer:
    """Why no such layer is found."""

    not_found: str

    def __str__(self) -> str:
        return self.not_found


@dataclass(frozen=True)
class GraphInfo:
    """What a graph says of itself.

    Attributes:
        inputs: Without weights.
        outputs: What it answers.
        opsets: Versions of the operator sets, by domain.
        ir_version: Of the format.
        producer: What wrote it; ``None`` where it does not say.
        parameters: How many weights it has.
        last_layer: Before which `headsmith extract --backbone onnx:FILE` cuts it.
    """

    inputs: tuple[ValueInfo, ...]
    outputs: tuple[ValueInfo, ...]
    opsets: dict[str, int]
    ir_version: int | None
    producer: str | None
    parameters: int
    last_layer: LastLayerInfo | NoLastLayer


def describe_graph(model: ir.Model, where: str) -> GraphInfo:
    """Look at a model; ``where`` is its file, for errors."""
    graph = model.graph
    others = (ValueInfo(name, kind, None) for name, kind in model.meta[NOT_TENSORS].items())
    return GraphInfo(
        inputs=tuple(_value(value) for value in graph.inputs if not value.is_initializer()),
        outputs=(*map(_value, graph.outputs), *others),
        opsets={domain or "ai.onnx": version for domain, version in model.opset_imports.items()},
        ir_version=model.ir_version,
        producer=" ".join(filter(None, (model.producer_name, model.producer_version))) or None,
        parameters=parameter_count(model),
        last_layer=_last_layer(model, where),
    )


def _value(value: ir.Value) -> ValueInfo:
    shape = None if value.shape is None else tuple(size if isinstance(size, int) else str(size) for size in value.shape)
    return ValueInfo(value.name, None if value.dtype is None else value.dtype.name.lower(), shape)


def _last_layer(model: ir.Model, where: str) -> LastLayerInfo | NoLastLayer:
    """What `find_last_layer` finds."""
    try:
        layer = find_last_layer(model, where)
        weight, _ = affine_weights(model, layer, where)
    except InputError as error:
        return NoLastLayer(str(error))
    outputs, features = weight.shape
    return LastLayerInfo(layer.name, layer.node.op_type, features, outputs, layer.softmaxes)
