"""Settings files: YAML, read safely."""

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml
from yaml.constructor import ConstructorError

from .errors import InputError
from .text_file import read_text

_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$|[-+]\.\d+$")
_OCTAL = re.compile(r"[-+]?0\w")  # hexadecimal and binary numbers too
# The longest zoo known has 3,000 rows; what anchors repeat counts each time.
_MOST_BYTES, _MOST_VALUES = 16 << 20, 1_000_000
_EXCERPT = 40
_TYPES = ("null", "bool", "int", "float", "str", "seq", "map")


# libyaml's parser, where PyYAML was built with it, is eight times as fast and bounds how deep lists lie in each other.
_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Safe):  # type: ignore[misc]
    """YAML 1.1 with decimal numbers (1e-3, -.5 too); keys are words, each there once, and a date is text."""

    yaml_constructors: ClassVar[dict[str | None, Any]] = {
        **{f"tag:yaml.org,2002:{name}": getattr(yaml.SafeLoader, f"construct_yaml_{name}") for name in _TYPES},
        None: yaml.SafeLoader.construct_undefined,
    }

    def get_single_node(self) -> yaml.Node | None:
        node: yaml.Node | None = super().get_single_node()
        if node is not None and _size(node, {}) > _MOST_VALUES:
            raise ConstructorError(problem=f"more than {_MOST_VALUES:,} values, as its anchors repeat them")
        return node

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        if isinstance(node, yaml.ScalarNode) and _is_other_than_decimal(node):
            raise ConstructorError(
                problem=f"{node.value[:_EXCERPT]} found, expected a decimal number; text stands in quotes",
                problem_mark=node.start_mark,
            )
        try:
            value = super().construct_object(node, deep)
        except (ValueError, LookupError):  # `!!bool maybe`; an integer of more digits than Python converts
            raise _no_value(node) from None
        if isinstance(value, int) and abs(value) >= 2**64:
            raise _no_value(node)
        return value


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if not tag.endswith(":timestamp")]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _EXPONENT, list("-+0123456789."))


def _is_other_than_decimal(node: yaml.ScalarNode) -> bool:
    """Whether it is a number in octal (010), hexadecimal, binary, or to the base of 60 (1:30)."""
    kind = node.tag.rpartition(":")[2]
    return kind in ("int", "float") and (":" in node.value or (kind == "int" and _OCTAL.match(node.value) is not None))


def _no_value(node: yaml.Node) -> ConstructorError:
    kind = node.tag.rpartition(":")[2]
    return ConstructorError(problem=f"cannot be read as {kind} of 64 bits", problem_mark=node.start_mark)


def _size(node: yaml.Node, known: dict[int, int]) -> int:
    """How many values a node stands for, those that anchors repeat counted each time; its keys are checked."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = 0
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        parts = [value for _, value in node.value] if isinstance(node, yaml.MappingNode) else node.value
        known[id(node)] = 1 + sum(_size(one, known) for one in parts)
    if not known[id(node)]:
        raise ConstructorError(problem="an anchor that holds itself", problem_mark=node.start_mark)
    return known[id(node)]


def _check_keys(node: yaml.MappingNode) -> None:
    seen = set()
    for key, _ in node.value:
        if not isinstance(key, yaml.ScalarNode) or not key.tag.endswith((":str", ":merge")):
            shown = key.value if isinstance(key, yaml.ScalarNode) else f"a {key.id}"
            raise ConstructorError(problem=f"{shown} found as a key, expected a word", problem_mark=key.start_mark)
        if key.value in seen:
            raise ConstructorError(problem=f"{key.value!r} is set twice", problem_mark=key.start_mark)
        seen.add(key.value)


def read_yaml(path: str | Path) -> Any:
    """What a YAML file holds: words, numbers, truth values, nothing, and lists and mappings of such.

    Raises:
        InputError: The file is missing, no regular file, larger than 16 MiB, no YAML, or sets a key twice; the message
            names the line.
    """
    text = read_text(path, most=_MOST_BYTES)
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - a safe loader
    except yaml.MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, error.problem or error.context
        line, reason = mark.line if mark else None, " ".join(str(problem).split())
    except yaml.reader.ReaderError as error:
        line, reason = text.count("\n", 0, error.position), f"character {error.character:#x}"
    except RecursionError:
        line, reason = None, "lists and mappings are nested too deeply"
    where = "" if line is None else f"line {line + 1}: "
    raise InputError(f"{path}: {where}{_excerpt(text, line)}not valid YAML ({reason})")


def _excerpt(text: str, line: int | None) -> str:
    """The begin of a line, in which the field stands."""
    found = "" if line is None else "".join(text.split("\n")[line : line + 1]).strip()
    return f"{found[:_EXCERPT]}{'...' if len(found) > _EXCERPT else ''}: " if found else ""
