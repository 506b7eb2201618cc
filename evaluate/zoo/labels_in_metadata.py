"""The labels that a file of others carries in its metadata."""

from collections.abc import Iterator

import onnx_ir as ir

from ...core.coded_warnings import CodedWarning
from ...core.files import parse_json
from ...core.printable import short
from ...models.class_names import ClassNames

KEYS = ("labels", "classes", "class_names", "names", "id2label")


def other_labels(model: ir.Model, names: ClassNames) -> Iterator[CodedWarning]:
    """A warning where the file itself calls its outputs otherwise than is said of it.

    Its own labels are JSON: a list, or an object from the number of an output to its name.

    Args:
        model: The graph.
        names: What is said.
    """
    for key in KEYS:
        own = _labels(model.metadata_props.get(key, ""))
        if not own or own in names:
            continue
        said = next((column for column in names if len(column) == len(own)), names[0])
        place = next((place for place, pair in enumerate(zip(own, said, strict=False)) if pair[0] != pair[1]), None)
        found = f"{len(own)} labels" if place is None else f"{short(own[place])} for output {place}"
        expected = f"{len(said)}" if place is None else short(said[place])
        yield CodedWarning(
            "other-labels", f"its metadata ({key}) say {found}, its labels here {expected}; use the right ones"
        )


def _labels(text: str) -> tuple[str, ...]:
    try:
        found = parse_json(text)
    except ValueError:
        return ()
    if isinstance(found, dict) and all(key.isdecimal() for key in found):
        found = [found[key] for key in sorted(found, key=int)]
    return tuple(found) if isinstance(found, list) and all(isinstance(name, str) for name in found) else ()
