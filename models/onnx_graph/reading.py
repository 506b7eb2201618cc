"""Read an ONNX file without loading its weights."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError, Message

from ...core.errors import DamagedFileError, InputError
from ...core.files import regular_file
from ...core.printable import printable
from .external import external_files, tensors_of
from .interface import NOT_TENSORS, free_axes, take_out_others
from .last_layer import SPARSE
from .nested_tensors import settle

BESIDE, LONGEST = "beside", 200


def read_proto(path: Path) -> onnx.ModelProto:
    """Parse an ONNX file; its external data are looked for, and stay where they are.

    Raises:
        DamagedFileError: No ONNX file, or see `external_files`.
        InputError: No such file, or no regular one.
    """
    try:
        model = onnx.load(regular_file(path), format="protobuf", load_external_data=False)
    except (DecodeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise _damaged(path, error) from None
    strange = next((name for name, text in _texts(model) if isinstance(text, bytes)), None)
    if strange is not None:
        raise _damaged(path, ValueError(f"text in it, of the field `{strange}`, is not UTF-8"))
    external_files(model, path)
    return model


def _texts(message: Message) -> Iterator[tuple[str, str | bytes]]:
    """The fields of text of a message and those in it, with their values: bytes where they are not UTF-8."""
    for field, value in message.ListFields():
        values = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else (value,)
        if field.type == field.TYPE_STRING:
            yield from ((field.name, text) for text in values)
        elif field.type == field.TYPE_MESSAGE:
            for one in values:
                yield from _texts(one)


def read_onnx(path: Path) -> ir.Model:
    """Read an ONNX file; weights that lie in files beside it stay there, and are mapped when they are used.

    Axes of no possible size are free, see `free_axes`. Outputs that are no tensors (sequences, maps, optional and
    sparse ones) are not among the graph's; ``model.meta["not_tensors"]`` has their kinds by their names, and
    ``model.meta["beside"]`` lists the files that hold weights.

    Raises:
        DamagedFileError: The file is damaged or of a newer IR version than the installed onnx, or its external data
            are missing or lie outside its folder.
        InputError: It is missing, holds no network, or takes or gives no tensor.
    """
    proto = read_proto(path)
    try:
        check_model(proto, path)
        free_axes(proto)
        others = take_out_others(proto, str(path))
        with _quiet(logging.getLogger("onnx_ir")):  # it warns of sparse weights, which it does not know
            model = ir.from_proto(proto)
        settle(model, path.parent)
    except (onnx.checker.ValidationError, UnicodeDecodeError) as error:
        raise _damaged(path, error) from None
    except (ir.serde.SerdeError, ir.passes.PassError, NotImplementedError) as error:
        raise InputError(f"{path}: holds what cannot be read here ({_reason(error)}); export it otherwise") from None
    model.meta[NOT_TENSORS], model.meta[BESIDE] = others, external_files(proto, path)
    model.meta[SPARSE] = bool(proto.graph.sparse_initializer)
    if not (len(model.graph) and (model.graph.outputs or others)):
        raise InputError(f"{path}: holds no network (a graph of {len(model.graph)} nodes)")
    return model


def only_input(model: ir.Model, where: str) -> ir.Value:
    """The one input of a classifier; weights that old files list among the inputs are not counted.

    Raises:
        InputError: There is none, or more than one.
    """
    inputs = [value for value in model.graph.inputs if not value.is_initializer()]
    if len(inputs) != 1:
        names = ", ".join(str(value.name) for value in inputs) or "none"
        raise InputError(f"{where}: inputs {names}; expected one, the images")
    return inputs[0]


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _damaged(path: Path, error: Exception) -> DamagedFileError:
    return DamagedFileError(f"{path}: not a valid ONNX file ({_reason(error)}); download or export it again")


def _reason(error: BaseException) -> str:
    """What is at the bottom of an error, short."""
    while error.__cause__ is not None:
        error = error.__cause__
    first = str(error).strip().split("\n", maxsplit=1)[0]
    return printable(first[:LONGEST])


def check_model(model: onnx.ModelProto, path: Path) -> None:
    """What `onnx.checker.check_model` says of a model, shapes that its inputs and outputs lack aside.

    Args:
        model: The model; its external data were checked.
        path: Its file.

    Raises:
        onnx.checker.ValidationError: It is not valid.
    """
    if not any(_unshaped(model)):
        onnx.checker.check_model(str(path))  # by path: a model in memory may have 2 GB at most
        return
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for value in _unshaped(copy):
        value.type.tensor_type.shape.SetInParent()
    for tensor in tensors_of(copy):
        if tensor.data_location == onnx.TensorProto.EXTERNAL:  # which the checker would look for in this folder
            tensor.CopyFrom(onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=[0]))
    onnx.checker.check_model(copy)


def _unshaped(model: onnx.ModelProto) -> Iterator[onnx.ValueInfoProto]:
    for value in (*model.graph.input, *model.graph.output):
        if value.type.HasField("tensor_type") and not value.type.tensor_type.HasField("shape"):
            yield value
