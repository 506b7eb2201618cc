"""Which module may import which: every floor only what lies below it, and no two each other."""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FLOORS = ("core", "metrics", "models", "trainer", "export", "evaluate", "command line")


def modules() -> dict[str, Path]:
    """The file of every module of the product, by name."""
    folders = ("models", "trainer", "export", "evaluate", "headsmith")
    found = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        parts = parts if parts[0] == "headsmith" else ("headsmith", *parts)
        found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(name: str, path: Path, known: dict[str, Path]) -> Iterator[str]:
    """The modules of the product that a module imports, inside functions too, but not for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.unparse(block.test)
        for node in ast.walk(block)
    }
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node not in for_types:
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            asked = {f"{base}.{alias.name}" for alias in node.names}
            yield from asked & known.keys() if asked & known.keys() else {base} & known.keys()


def floor(name: str) -> int:
    part = [*name.split("."), ""][1]
    return FLOORS.index(part) if part in FLOORS else len(FLOORS) - 1


KNOWN = modules()
GRAPH = {name: set(imports(name, path, KNOWN)) - {name} for name, path in KNOWN.items()}


def test_no_module_imports_from_a_floor_above_it():
    upwards = [f"{name} -> {other}" for name, others in GRAPH.items() for other in others if floor(other) > floor(name)]
    assert upwards == []


def test_no_modules_import_each_other():
    order = list(graphlib.TopologicalSorter(GRAPH).static_order())
    assert set(order) == set(KNOWN)


def test_losses_import_nothing_of_the_trainer_but_methods_and_options():
    inside = {name for name in KNOWN if name.startswith("headsmith.trainer.losses")}
    others = {other for name in inside for other in GRAPH[name] if other.startswith("headsmith.trainer")} - inside
    assert others <= {f"headsmith.trainer{name}" for name in ("", ".loss_defaults", ".loss_options", ".option_checks")}


@pytest.mark.parametrize("circle", [{"a": {"b"}, "b": {"a"}}])
def test_a_circle_is_found(circle):
    with pytest.raises(graphlib.CycleError):
        list(graphlib.TopologicalSorter(circle).static_order())
