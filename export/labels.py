"""The rule for class names in a deployed file."""

import re
from collections import Counter
from collections.abc import Sequence

from ..core.errors import InputError


def check_labels(labels: Sequence[str], num_classes: int, where: str) -> tuple[str, ...]:
    """Refuse labels that could not be told apart or could not stand one on a line.

    Any text on one line is a label: commas, quotes, emoji and markup are kept as they are.

    Args:
        labels: Class names in the order of the logits.
        num_classes: C, the number of logits.
        where: What holds the labels, for the error.

    Raises:
        InputError: Another number than C, two alike, an empty name, or one with a line break.
    """
    if len(labels) != num_classes:
        raise InputError(f"{where}: {len(labels)} labels for {num_classes} outputs; expected one label an output")
    for index, label in enumerate(labels):
        if label.splitlines() != [label]:
            raise InputError(f"{where}: label {index} is {label!r}; expected text on one line, so rename that class")
    name, count = Counter(labels).most_common(1)[0]
    if count > 1:
        raise InputError(f"{where}: label {name!r} stands {count} times; expected every class name once")
    return tuple(labels)


def describe(labels: Sequence[str]) -> dict[str, str]:
    """What each label means: of a WordNet id (``n01440764``) its synonyms (``tench, Tinca tinca``), else the label."""
    if not any(re.fullmatch(r"n\d{8}", label) for label in labels):
        return {label: label for label in labels}
    from timm.data.imagenet_info import ImageNetInfo

    info = ImageNetInfo("imagenet-22k")
    known = set(info.label_names())
    return {label: info.label_name_to_description(label) if label in known else label for label in labels}
