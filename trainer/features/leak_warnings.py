"""Rows of one split that stand in another, so that accuracies may be too high, as far as is known without a search."""

from dataclasses import replace

from ...core.coded_warnings import CodedWarning
from ...core.counted import counted
from ...core.listed import listed
from .copies import all_of
from .feature_set import FeatureSet
from .inspection.split_coverage import shared_ids


def leaks(feature_set: FeatureSet) -> list[CodedWarning]:
    """What `extract` and `import` found of copies, and ids in several splits; `inspect` searches for more."""
    found = (_leak(feature_set), _copies(feature_set), _equal_rows(feature_set))
    return [one for one in found if one is not None]


def _copies(feature_set: FeatureSet) -> CodedWarning | None:
    """What `extract` told of copies, in one line."""
    copies, told = feature_set.manifest.copies, list[str]()
    if copies is None:
        return None
    across, conflicts = copies.across, copies.conflicts.pictures
    if across:
        counts = " and ".join(
            f"{found.images} of {feature_set.manifest.splits[split]} {split}" for split, found in across.items()
        )
        whole = [(name, count) for found in across.values() for name, count in found.classes or ()]
        told.append(
            f"{counts} images are copies of images of an earlier split{all_of(whole)}, so accuracies may be too high"
        )
    if conflicts:
        told.append(f"{counted(conflicts, 'picture is', 'pictures are')} in more than one class")
    if not told:
        return None
    return CodedWarning(
        "leak" if across else "conflicts", f"{'; '.join(told)}; see `headsmith inspect {feature_set.path}`"
    )


def _leak(feature_set: FeatureSet) -> CodedWarning | None:
    shared = shared_ids(feature_set.columns)
    if not shared:
        return None
    return CodedWarning(
        "leak",
        f"{len(shared)} ids are in more than one split ({listed(shared)}), so accuracies may be too high; take them "
        "out of all but one",
    )


def _equal_rows(feature_set: FeatureSet) -> CodedWarning | None:
    """What `import` told of rows that are equal to rows of another split."""
    manifest = feature_set.manifest
    told = [one for one in manifest.warnings if one.code == "leak"] if manifest.imported else []
    return replace(told[0], message=f"accuracies may be too high: {told[0].message}") if told else None
