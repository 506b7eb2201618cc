"""Read an ONNX file without loading its weights."""

from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from ...core.errors import DamagedFileError, InputError


def read_onnx(path: Path) -> ir.Model:
    """Read an ONNX file; weights that lie in files beside it stay there, and are mapped when they are used.

    Raises:
        DamagedFileError: The file is damaged or of a newer IR version than the installed onnx, or its external data
            are missing or lie outside its folder.
        InputError: It is missing, or holds no network.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file")
    try:
        onnx.checker.check_model(str(path))  # by path: external data must be there, inside the folder of the file
        model = ir.load(path)
    except (onnx.checker.ValidationError, DecodeError) as error:
        raise damaged_onnx(path, error) from None
    if not (len(model.graph) and model.graph.outputs):
        raise InputError(f"{path}: holds no network (a graph of {len(model.graph)} nodes)")
    return model


def damaged_onnx(path: Path, error: Exception) -> DamagedFileError:
    """What is wrong with a file that onnx refuses: weights beside it are missing, or what onnx says."""
    missing = next((file for file in _external_files(path) if not file.exists()), None)
    if missing:
        return DamagedFileError(f"{missing}: missing, but {path.name} has weights in it; put it there")
    return DamagedFileError(f"{path}: not a valid ONNX file ({_first_line(error)}); download or export it again")


def _external_files(path: Path) -> list[Path]:
    try:
        tensors = onnx.load(path, load_external_data=False).graph.initializer
    except DecodeError:
        return []
    return [path.parent / ExternalDataInfo(tensor).location for tensor in tensors if uses_external_data(tensor)]


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


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", maxsplit=1)[0]
