"""Whether a column is a matrix of features, and what makes it one."""

import re
from collections.abc import Iterator

from ....core.errors import InputError
from ..size_limits import WIDEST
from .origin import Origin
from .table import TORCH_ONLY, Column, Table

_READ = r"float(16|32|64)|u?int(8|16|32|64)"
_REMEDIES = {
    r"object|str|[|]S": "convert it with .astype('float32'), if these are numbers",
    r"bool": "convert it with .astype('float32')",
    r"complex": "make its real and imaginary parts columns of their own, or take its absolute values",
    r"q": "take its .dequantize()",
    r"datetime|timedelta": "take numbers, such as the days since a date",
    r".*\[\(": "make its fields columns: numpy.lib.recfunctions.structured_to_unstructured",
}

# Real numbers, but in a form that no reader here knows: narrow floats of safetensors, list views of Arrow.
_UNSUPPORTED = {
    r"F\d": "write it as float32, in torch with .float()",
    r"(large_)?list_view<": "write it as lists, in pyarrow with .cast(pyarrow.list_(pyarrow.float32()))",
}


def check_matrix(table: Table, features: Column, origin: Origin) -> None:
    """Refuse what is no matrix ``(N, D)`` of numbers, with what was found and what makes it one.

    Raises:
        InputError: It is none.
    """
    for fault in _faults(features):
        named = origin.column("features")
        other = f"; or name another column with {named}" if named else ""
        raise InputError(f"{table.name}: {features} {fault}{other}")


def _faults(features: Column) -> Iterator[str]:
    """What is wrong and what to do, the first thing first."""
    shape, dtype = features.shape, features.dtype
    for kind, text in _UNSUPPORTED.items():
        if re.match(kind, dtype):
            yield f"is of a type that is not read; {text}"
    if not re.match(r"b?float|u?int", dtype):
        remedy = next((text for kind, text in _REMEDIES.items() if re.match(kind, dtype)), "write it as float32")
        yield f"is not of real numbers, expected a matrix (N, D) of floats; {remedy}"
    if len(shape) == 0:
        yield "is a single value, expected a matrix (N, D)"
    if len(shape) == 1:
        yield "has one value a row, expected a matrix (N, D); for D = 1 write it with .reshape(-1, 1)"
    if len(shape) > 2:
        yield f"has {len(shape)} dimensions, expected a matrix (N, D); flatten its rows with .reshape(len(array), -1)"
    if not shape[1]:
        yield "has no columns, expected at least one number a row; look where they were lost"
    if dtype not in TORCH_ONLY and not re.fullmatch(_READ, dtype):
        yield "has a number format that is not read; write it as float32"
    if shape[1] > WIDEST:
        yield f"has more than {WIDEST:,} features a row, the most that are read; leave some out"
