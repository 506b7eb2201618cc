"""A tensor of an ONNX file holds as many numbers as its shape says, which onnx's checker does not look at."""

import math

import onnx_ir as ir
from onnx import TensorProto, helper

from ...core.errors import DamagedFileError

_COMPLEX = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)


def check_size(tensor: TensorProto, where: str, room: int | None = None) -> None:
    """Refuse a tensor with fewer or more numbers than its shape says.

    Args:
        tensor: The tensor. One of no type is left to the checker.
        where: The file and the tensor, for errors.
        room: Of a tensor that lies beside the file, the bytes from its first one on.

    Raises:
        DamagedFileError: It is so, or its shape or its type is none.
    """
    if tensor.data_type == TensorProto.UNDEFINED or tensor.HasField("segment"):
        return
    if tensor.data_type not in list(ir.DataType) or any(size < 0 for size in tensor.dims):
        raise DamagedFileError(
            f"{where}: type {tensor.data_type} and shape {list(tensor.dims)}, which no tensor has; download it again"
        )
    found, expected = _found(tensor) if room is None else room, _expected(tensor, raw=room is not None)
    if found < expected or (room is None and found > expected):
        raise DamagedFileError(
            f"{where}: shape {list(tensor.dims)[:8]}, which takes {expected:,} entries or bytes, but {found:,} are "
            "there; download it again"
        )


def _found(tensor: TensorProto) -> int:
    """The bytes of a tensor, or the entries of the field of its type."""
    if tensor.HasField("raw_data"):
        return len(tensor.raw_data)
    return len(getattr(tensor, helper.tensor_dtype_to_field(tensor.data_type)))


def _expected(tensor: TensorProto, *, raw: bool) -> int:
    """The same, as shape and type say; entries of types of 2 and 4 bits hold what goes into a byte."""
    count: int = math.prod(tensor.dims)
    if tensor.data_type == TensorProto.STRING:
        return count
    bits: int = ir.DataType(tensor.data_type).bitwidth
    if raw or tensor.HasField("raw_data") or bits in (2, 4):
        return -(-count * bits // 8)
    return count * (2 if tensor.data_type in _COMPLEX else 1)
