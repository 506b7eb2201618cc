"""Are the held-out pictures of a proof those of the features that the head was measured on?"""

from collections.abc import Mapping

from ...core.coded_warnings import CodedWarning
from ...core.printable import printable
from ...trainer.features.feature_set import FeatureSet
from ..held_out import HeldOut, HeldOutImages

NAMED = 3


def cached_pictures(cached: FeatureSet | None) -> dict[str, str]:
    """The hashes of the test split's pictures by their ids; none where they are not known."""
    columns = None if cached is None else cached.columns.get("test")
    if columns is None or columns.pictures is None:
        return {}
    return dict(zip(columns.ids, columns.pictures.to_pylist(), strict=True))


def replaced(found: Mapping[str, str], expected: Mapping[str, str]) -> set[str]:
    """The ids under which there is another picture now."""
    return {one for one, picture in found.items() if expected.get(one, picture) != picture}


def changes(held_out: HeldOut, expected: Mapping[str, str]) -> list[CodedWarning]:
    """Tell of pictures that were replaced, are missing or unreadable now, or were added since the features were made.

    Args:
        held_out: Inputs that were read; images with ``identify``.
        expected: See `cached_pictures`.

    Returns:
        One warning, which names a few of each; none where all are the same, or nobody knows.
    """
    if not expected or not isinstance(held_out, HeldOutImages):
        return []
    found = held_out.pictures
    groups = {
        "not those of the features": sorted(replaced(found, expected)),
        "missing or unreadable now": [one for one in expected if one not in found],
        "new": [one for one in found if one not in expected],
    }
    told = [
        f"{len(ids):,} {'is' if len(ids) == 1 else 'are'} {what} ({_few(ids)})" for what, ids in groups.items() if ids
    ]
    if not told:
        return []
    message = (
        f"the head was measured on {len(expected):,} held-out pictures, of which some are others now: "
        f"{'; '.join(told)}; bring them back, or extract and train again"
    )
    return [CodedWarning("held-out-changed", message)]


def _few(ids: list[str]) -> str:
    return ", ".join(map(printable, ids[:NAMED])) + ", ..." * (len(ids) > NAMED)
