"""The names by which the outputs of pretrained classifiers are known, and how classes are found by name.

The names of C outputs are columns: every column is one way to name all of them, a tuple of C names.
"""

from collections import Counter
from collections.abc import Sequence

from timm.data.imagenet_info import ImageNetInfo

ClassNames = tuple[tuple[str, ...], ...]


def imagenet_names(subset: str | None) -> ClassNames | None:
    """The classes of ImageNet, or of a larger set around it, as timm knows them.

    Args:
        subset: timm's name of the set, e.g. ``imagenet-1k``; ``None`` where it is not known.

    Returns:
        WordNet ids (``n01440764``), all synonyms (``tench, Tinca tinca``), and the first synonym (``tench``).
    """
    if subset is None:
        return None
    info = ImageNetInfo(subset)
    synonyms = info.label_descriptions()
    return tuple(info.label_names()), tuple(synonyms), tuple(names.split(", ")[0] for names in synonyms)


def torchvision_names(categories: Sequence[str]) -> ClassNames:
    """ImageNet's classes as torchvision names them (``tench``), with those of `imagenet_names`."""
    return tuple(categories), *(imagenet_names("imagenet-1k") or ())


def find_classes(wanted: Sequence[str], known: ClassNames) -> list[int | None]:
    """Which output bears the name of each class, in the column that knows most of them.

    A name that stands more than once in its column finds nothing.

    Args:
        wanted: Class names, each once.
        known: The names of the outputs.

    Returns:
        For each class the index of its output, or ``None``.
    """
    columns = []
    for names in known:
        count = Counter(names)
        index = {name: position for position, name in enumerate(names) if count[name] == 1}
        columns.append([index.get(name) for name in wanted])
    return max(columns, key=lambda found: len(found) - found.count(None))
