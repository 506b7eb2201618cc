"""Class names that are probably one class, written in two ways."""

import unicodedata
from collections import defaultdict
from collections.abc import Sequence

from ....core.coded_warnings import CodedWarning
from ....core.listed import listed
from ....core.printable import shown


def spelt_alike(names: Sequence[str]) -> list[CodedWarning]:
    """A warning about names that differ by spaces, underscores, case, Unicode form or letters without width alone.

    Of names of one letter case and compatibility forms count: ``a`` and ``A`` are classes of alphabets. Forms are those
    of Unicode Standard Annex 15.

    Args:
        names: The classes.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for name in names:
        groups[_key(name)].append(name)
    found = [" and ".join(map(_written, group)) for group in groups.values() if len(group) > 1]
    if not found:
        return []
    message = (
        f"class names that differ in spaces, case or Unicode form alone are different classes: {listed(found)}; where "
        "they are one class, give it one name"
    )
    return [CodedWarning("similar-names", message)]


def _key(name: str) -> str:
    plain = unicodedata.normalize("NFC", name)
    if len(plain.strip()) > 1:
        plain = unicodedata.normalize("NFKC", plain).casefold()
    seen = (letter for letter in plain.replace("_", " ") if unicodedata.category(letter) != "Cf")
    return " ".join("".join(seen).split()) or name


def _written(name: str) -> str:
    """A name in quotes, by its code points where it is not in the usual form, as it looks like another one then."""
    return shown(name) if unicodedata.is_normalized("NFKC", name) else ascii(name)
