"""Whether the features of a split are still those that were written."""

from pathlib import Path

from ....core.files import read_json
from ..columns import Columns
from ..manifest import FeatureSetManifest
from ..split_checksums import mark_of


def as_written(folder: Path, split: str, manifest: FeatureSetManifest, columns: Columns, digest: str) -> bool | None:
    """Compare features with the mark that ``split_file`` of `..feature_writer` left beside them.

    Args:
        folder: The feature set.
        split: One of its splits.
        manifest: The feature set's.
        columns: The split.
        digest: XXH3-128 of the features' bytes, in hexadecimal.

    Returns:
        Whether they are the same; ``None`` for features that are not in a folder.
    """
    state = folder / split / "state.json"
    if not state.is_file():
        return None
    mark = mark_of(digest, manifest.rows_sha256[split], columns.class_names or manifest.class_names)
    return bool(read_json(state).get("_fingerprint") == mark)
