"""Which file of labels goes with an array of features: one that was named with it, else one that lies beside it."""

import re
from collections.abc import Sequence
from pathlib import Path

from ....core.errors import InputError

_FEATURE_WORD = re.compile(r"(?<![a-z])(features?|feats?|embeddings?|embeds?|img_emb|emb|x)(?![a-z])", re.IGNORECASE)
_LABEL_WORDS = ("labels", "label", "y", "targets", "target")


def labels_of(path: Path) -> Path:
    """The labels beside an array: ``x_labels.npy`` of ``x.npy``, else the only file with another name they may have.

    Raises:
        InputError: There is none, or several may be it.
    """
    found = [file for file in labels_beside(path) if file.is_file()]
    if not found:
        names = ", ".join(file.name for file in labels_beside(path)[:4])
        raise InputError(
            f"{path}: has no labels beside it; expected one of {names} (one label a row), or name their file too "
            f"where it is imported: {path} LABELS.npy"
        )
    if (own := _clear(path, found)) is None:
        raise InputError(
            f"{path}: has several files of labels: {', '.join(map(str, found))}; name the right one too "
            f"where it is imported: {path} {found[-1]}"
        )
    return own


def pairs(arrays: Sequence[Path], labels: Sequence[Path]) -> dict[Path, Path]:
    """Array to its labels, where both were named.

    Of a single array and a single file of labels the names do not matter; of several they do.
    """
    if len(arrays) == len(labels) == 1:
        return {arrays[0]: labels[0]}
    named = {file.resolve() for file in labels}
    found = {path: _clear(path, [file for file in labels_beside(path) if file.resolve() in named]) for path in arrays}
    return {path: own for path, own in found.items() if own is not None}


def labels_beside(path: Path) -> list[Path]:
    """Where the labels of ``path`` may lie, best known first.

    Where the name has a word for features, that is replaced too: ``train_features_3.npy`` may go with
    ``train_labels_3.npy``, ``img_emb_0.npy`` with ``metadata_0.parquet``.
    """
    stem = path.stem
    names = [f"{stem}_labels"]
    if match := list(_FEATURE_WORD.finditer(stem)):
        start, end = match[-1].span()
        names += [f"{stem[:start]}{word}{stem[end:]}" for word in _LABEL_WORDS]
        places = [path.parent, path.parent / ".." / "metadata"]
        tables = [place / f"{stem[:start]}metadata{stem[end:]}.parquet" for place in places]
    else:
        tables = []
    files = [path.with_name(f"{name}.npy") for name in names]
    return [file for file in dict.fromkeys([*files, *tables, path.with_name(f"{stem}.parquet")]) if file != path]


def _clear(path: Path, found: Sequence[Path]) -> Path | None:
    """The one of ``found`` with exactly the array's name before ``_labels``, else the only one."""
    own = path.with_name(f"{path.stem}_labels.npy")
    if own in found:
        return own
    return found[0] if len(found) == 1 else None
