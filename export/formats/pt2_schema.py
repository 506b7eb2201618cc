"""What may stand in the JSON of a ``.pt2`` file.

torch's reader puts names of the file into Python source that it runs, evaluates size expressions, and looks operators
and types up by name. So every field is described here: its keys, the type of its numbers, the letters of its names. The
fields are those of ``torch/_export/serde/schema.py`` (schema 8, torch 2.10 to 2.14) that a classifier needs; a field
that is not here must be empty.
"""

import ast
import json
import keyword
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .operators import is_operator

Check = Callable[[Any], None]

_NAME, _DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,500}"), re.compile(r"[A-Za-z0-9_.]{0,1000}")
_SYMBOL, _TEXT = re.compile(r"s\d{1,9}"), re.compile(r"[A-Za-z0-9_ ,.>-]{0,100}")
_EXPRESSION, _LONGEST, _LARGEST = re.compile(r"[A-Za-z0-9_'=,()*/+ -]*"), 20_000, 1 << 63
_GUARD = re.compile(r"(L\['\w+'\]\.size\(\)\[\d\]|(torch\.sym_)?(min|max)|and|or|not|\d|[-+*/%()=!<>, ])*", re.ASCII)
_FUNCTIONS = {"Integer", "Add", "Mul", "FloorDiv", "CleanDiv", "Mod", "PythonMod", "Max", "Min"}
_ASSUMPTIONS = {"integer", "positive", "nonnegative"}


class UnknownProgramError(ValueError):
    """A field that no classifier has."""


@dataclass(frozen=True)
class Fields:
    """An object with these fields; others only where they are empty."""

    known: dict[str, Check]

    def __call__(self, value: Any) -> None:
        """Raise a `UnknownProgramError` unless a value is so."""
        _expect(isinstance(value, dict), value)
        for key, entry in value.items():
            if key in self.known:
                self.known[key](entry)
            elif entry or isinstance(entry, int):
                raise UnknownProgramError(f"{key}: {entry}")


@dataclass(frozen=True)
class OneOf(Fields):
    """An object with just one of these fields."""

    def __call__(self, value: Any) -> None:
        """Raise a `UnknownProgramError` unless a value is so."""
        _expect(isinstance(value, dict) and len(value) == 1 and set(value) <= set(self.known), value)
        super().__call__(value)


def _expect(holds: bool, value: Any) -> None:
    if not holds:
        raise UnknownProgramError(str(value))


def _text(pattern: re.Pattern[str]) -> Check:
    return lambda value: _expect(isinstance(value, str) and bool(pattern.fullmatch(value)), value)


def _number(*kinds: type) -> Check:
    return lambda value: _expect(type(value) in kinds, value)


def _each(check: Check) -> Check:
    def entries(value: Any) -> None:
        _expect(isinstance(value, list), value)
        for entry in value:
            check(entry)

    return entries


def _map(pattern: re.Pattern[str], check: Check) -> Check:
    def entries(value: Any) -> None:
        _expect(isinstance(value, dict), value)
        for key, entry in value.items():
            _text(pattern)(key)
            check(entry)

    return entries


def _or_none(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _among(*values: Any) -> Check:
    return lambda value: _expect(any(value == known and type(value) is type(known) for known in values), value)


def _name(value: Any) -> None:
    """What becomes a variable in the source that torch writes and runs."""
    _text(_NAME)(value)
    _expect(not keyword.iskeyword(value), value)


def _whole(value: Any) -> None:
    _expect(type(value) is int and abs(value) <= _LARGEST, value)


def _expression(value: Any) -> None:
    """Whole-number arithmetic on sizes, as sympy writes it; no power, which a short text makes endless."""
    _expect(isinstance(value, str) and len(value) <= _LONGEST and bool(_EXPRESSION.fullmatch(value)), value)
    try:
        _arithmetic(ast.parse(value, mode="eval").body)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise UnknownProgramError(value) from None


def _arithmetic(node: ast.AST) -> None:
    match node:
        case ast.Constant(value=int(number)):
            _whole(number)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            _arithmetic(operand)
        case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() | ast.FloorDiv(), left=left, right=right):
            _arithmetic(left)
            _arithmetic(right)
        case ast.Name(id=name):
            _text(_SYMBOL)(name)
        case ast.Call(func=ast.Name(id="Symbol"), args=[ast.Constant(value=name)], keywords=assumptions):
            _text(_SYMBOL)(name)
            for entry in assumptions:
                _expect(entry.arg in _ASSUMPTIONS and isinstance(entry.value, ast.Constant), entry.arg)
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
            _expect(name in _FUNCTIONS, name)
            for argument in arguments:
                _arithmetic(argument)
        case _:
            raise UnknownProgramError(ast.unparse(node))


def _tree(value: Any) -> None:
    """How arguments and answers nest, as JSON in a string: tuples, lists and dictionaries."""
    _expect(isinstance(value, str) and len(value) <= _LONGEST, value)
    parsed = json.loads(value)
    _expect(isinstance(parsed, list) and len(parsed) == 2 and parsed[0] == 1, value)
    _branch(parsed[1])


def _branch(value: Any) -> None:
    Fields({"type": _kind, "context": _context, "children_spec": _each(_branch)})(value)


_kind = _among(None, "builtins.tuple", "builtins.list", "builtins.dict")


def _context(value: Any) -> None:
    if value is not None:
        _expect(isinstance(value, str), value)
        keys = json.loads(value)
        if keys is not None:
            _each(_name)(keys)


_flag, _real = _number(bool), _number(int, float)
_hint = OneOf({"as_int": _whole, "as_bool": _flag, "as_float": _real})
_size = OneOf({"as_expr": Fields({"expr_str": _expression, "hint": _or_none(_hint)}), "as_int": _whole})
_device = Fields({"type": _among("cpu", "cuda"), "index": _or_none(_whole)})
_tensor = Fields({"name": _name})
_either = OneOf({"as_name": _name, "as_int": _whole})
_float = _among("Infinity", "-Infinity", "NaN")


def _floating(value: Any) -> None:
    (_float if isinstance(value, str) else _real)(value)


_plain: dict[str, Check] = {
    "as_none": _flag,
    "as_tensor": _tensor,
    "as_tensors": _each(_tensor),
    "as_optional_tensors": _each(OneOf({"as_tensor": _tensor, "as_none": _flag})),
    "as_int": _whole,
    "as_ints": _each(_whole),
    "as_float": _floating,
    "as_floats": _each(_floating),
    "as_bool": _flag,
    "as_bools": _each(_flag),
    "as_string": _text(_TEXT),
    "as_sym_int": _either,
    "as_sym_ints": _each(_either),
    "as_scalar_type": _whole,
    "as_memory_format": _whole,
    "as_layout": _whole,
    "as_device": _device,
}
_argument = OneOf(_plain)
_meta = Fields(
    {
        "dtype": _whole,
        "sizes": _each(_size),
        "requires_grad": _flag,
        "device": _device,
        "strides": _each(_size),
        "storage_offset": _size,
        "layout": _whole,
    }
)


def _operator(value: Any) -> None:
    _expect(isinstance(value, str) and is_operator(value), value)


_node = Fields(
    {
        "target": _operator,
        "inputs": _each(Fields({"name": _text(_NAME), "arg": _argument, "kind": _or_none(_whole)})),
        "outputs": _each(_argument),
        "name": _or_none(_name),
    }
)
_graph = Fields(
    {
        "inputs": _each(OneOf({"as_tensor": _tensor})),
        "outputs": _each(OneOf({"as_tensor": _tensor})),
        "nodes": _each(_node),
        "tensor_values": _map(_NAME, _meta),
        "sym_int_values": _map(_NAME, _size),
        "is_single_tensor_return": _among(False),
    }
)
_user = Fields({"arg": OneOf({"as_tensor": _tensor})})
_inputs = OneOf(
    {
        "user_input": _user,
        "parameter": Fields({"arg": _tensor, "parameter_name": _text(_DOTTED)}),
        "buffer": Fields({"arg": _tensor, "buffer_name": _text(_DOTTED), "persistent": _flag}),
        "tensor_constant": Fields({"arg": _tensor, "tensor_constant_name": _text(_DOTTED)}),
    }
)
_call = Fields(
    {
        "inputs": _each(_argument),
        "outputs": _each(_argument),
        "in_spec": _tree,
        "out_spec": _tree,
        "forward_arg_names": _or_none(_each(_name)),
    }
)
_module = Fields(
    {
        "graph": _graph,
        "signature": Fields({"input_specs": _each(_inputs), "output_specs": _each(OneOf({"user_output": _user}))}),
        "module_call_graph": _each(Fields({"fqn": _text(_DOTTED), "signature": _or_none(_call)})),
    }
)
_bounds = Fields({"min_val": _or_none(_whole), "max_val": _or_none(_whole)})

check_program: Check = Fields(
    {
        "graph_module": _module,
        "opset_version": _map(_NAME, _whole),
        "range_constraints": _map(_SYMBOL, _bounds),
        "schema_version": Fields({"major": _whole, "minor": _whole}),
        "verifiers": _each(_among("TRAINING", "ATEN")),
        "torch_version": _text(re.compile(r"[\w.+<=]{0,60}", re.ASCII)),
        "guards_code": _each(_text(_GUARD)),
    }
)

check_weights: Check = Fields(
    {
        "config": _map(
            _DOTTED,
            Fields(
                {
                    "path_name": _text(re.compile(r"(weight|tensor)_\d{1,9}", re.ASCII)),
                    "is_param": _flag,
                    "use_pickle": _among(False),
                    "tensor_meta": _meta,
                }
            ),
        )
    }
)
