"""What a TorchScript file may hold: one traced and frozen module, as `write_torchscript` writes it.

Opening a TorchScript file can run its code (``__setstate__``), running it can write files (``torch.save``,
``torch.from_file``), and torch takes the sizes of its tensors as the file states them. So a file is read here first.
Its pickles are read by torch in C++, which makes tensors, numbers and the types of the file's own code of them and
calls no Python; here they are read opcode by opcode and nothing is made of them.
"""

import pickletools
import re
from collections.abc import Iterator
from typing import Any

import torch

from ...core.archive import Archive
from .operators import ATEN, PRIM

ALLOWED = re.compile(
    r"data\.pkl|constants\.pkl|constants/\d+|code/__torch__(/\w+)*\.py(\.debug_pkl)?|version|byteorder"
    r"|\.data/(version|serialization_id)|\.format_version|\.storage_alignment|extra/\w+",
    re.ASCII,
)
DEBUG = re.compile(r"code/.*\.debug_pkl")
_MODULE = re.compile(rb"\x80\x02c__torch__[\w.]*\n\w+\nq\x00\)\x81\}\(ub(q\x01)?\.")
_OPERATOR = re.compile(r"(?<![\w.])((?:torch|ops\.\w+)\.(\w+))", re.ASCII)
_SIZES = {
    "DoubleStorage": 8,
    "FloatStorage": 4,
    "HalfStorage": 2,
    "BFloat16Storage": 2,
    "LongStorage": 8,
    "IntStorage": 4,
    "ShortStorage": 2,
    "CharStorage": 1,
    "ByteStorage": 1,
    "BoolStorage": 1,
}
_REBUILD, _ORDERED = "torch._utils _rebuild_tensor_v2", "collections OrderedDict"
_MARK = object()


class UnsafeScriptError(ValueError):
    """What no traced and frozen module has."""


def check_members(archive: Archive) -> None:
    """Raise a `UnsafeScriptError` unless an archive holds one module without state of its own, and sound constants.

    Such a module has one method, ``forward``: opening it runs nothing.
    """
    strange = [name for name in archive.members if not ALLOWED.fullmatch(name)]
    sources = [name for name in archive.members if name.startswith("code/") and name.endswith(".py")]
    if strange or len(sources) != 1:
        raise UnsafeScriptError((strange or [f"{len(sources)} files of code"])[0])
    source = archive.read(sources[0])
    methods = re.findall(rb"\bdef\b[^(]{0,80}", source)
    if [b"".join(method.split()) for method in methods] != [b"defforward"] or b"__setstate__" in source:
        raise UnsafeScriptError("another method than forward")
    for operator, name in _OPERATOR.findall(source.decode()):
        if name not in ATEN and f"prim::{name}" not in PRIM:
            raise UnsafeScriptError(operator)
    if not _MODULE.fullmatch(archive.read("data.pkl")):
        raise UnsafeScriptError("a module with attributes")
    _check_constants(archive)


def check_graph(module: torch.jit.ScriptModule) -> None:
    """Raise a `UnsafeScriptError` unless an opened module computes with the operators of classifiers alone."""
    if list(module._c._method_names()) != ["forward"] or list(module.children()):
        raise UnsafeScriptError("another method than forward")
    for kind in _kinds(module.graph):
        space, _, name = kind.partition("::")
        if not (space == "aten" and name in ATEN) and kind not in PRIM:
            raise UnsafeScriptError(kind)


def _kinds(block: Any) -> Iterator[str]:
    for node in block.nodes():
        yield node.kind()
        if any(node.kindOf(name) in ("g", "gs") for name in node.attributeNames()):
            raise UnsafeScriptError(f"{node.kind()} with a graph inside")
        for inner in node.blocks():
            yield from _kinds(inner)


def _check_constants(archive: Archive) -> None:
    """Every tensor of ``constants.pkl`` must lie inside its storage, and the storage be as long as its member."""
    stack: list[Any] = []
    memo: dict[Any, Any] = {}
    for code, argument, _ in pickletools.genops(archive.read("constants.pkl")):
        match code.name:
            case "PROTO" | "STOP":
                pass
            case "BINPUT" | "LONG_BINPUT":
                if argument != len(memo):  # as torch counts them; its memo grows to the place that is stated
                    raise UnsafeScriptError(f"{code.name} {argument} in constants.pkl")
                memo[argument] = stack[-1]
            case "BINGET" | "LONG_BINGET":
                stack.append(memo[argument])
            case "MARK":
                stack.append(_MARK)
            case "EMPTY_TUPLE":
                stack.append(())
            case "TUPLE1" | "TUPLE2" | "TUPLE3":
                count = int(code.name[-1])
                stack[-count:] = [tuple(stack[-count:])]
            case "TUPLE":
                start = len(stack) - 1 - stack[::-1].index(_MARK)
                stack[start:] = [tuple(stack[start + 1 :])]
            case "GLOBAL" | "BINUNICODE" | "BININT" | "BININT1" | "BININT2" | "LONG1" | "NEWTRUE" | "NEWFALSE":
                stack.append(argument)
            case "BINPERSID":
                stack.append(_storage(archive, stack.pop()))
            case "REDUCE":
                arguments, function = stack.pop(), stack.pop()
                stack.append(_made(function, arguments))
            case other:
                raise UnsafeScriptError(f"{other} in constants.pkl")


def _storage(archive: Archive, said: Any) -> int:
    """How many entries a storage has; it may not state more than its member holds."""
    match said:
        case ("storage", str(kind), str(key), str(_), int(count)):
            size = _SIZES.get(kind.removeprefix("torch "))
            member = archive.members.get(f"constants/{key}")
            if size and member and 0 <= count * size <= member.size:
                return count
    raise UnsafeScriptError(f"storage {str(said)[:60]}")


def _made(function: Any, arguments: Any) -> Any:
    match function, arguments:
        case (str(name), ()) if name == _ORDERED:
            return None
        case (str(name), (int(count), int(offset), tuple(sizes), tuple(strides), *_)) if name == _REBUILD:
            whole = all(type(value) is int and value >= 0 for value in (*sizes, *strides, offset))
            if whole and len(sizes) == len(strides):
                last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
                if 0 in sizes or last < count:
                    return "tensor"
    raise UnsafeScriptError(f"{str(function)[:60]} with {str(arguments)[:60]}")
