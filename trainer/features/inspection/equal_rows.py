"""Rows that are copies: of one picture, equal, equal but for rounding, or one the other with fewer digits.

Networks round in another way in batches of another size: float16 features of one picture differ by some 1e-4 of their
length, those of different pictures by a good part of it. Near rows are found by random projections: each of some tables
puts rows into cells far wider than the tolerance, and neighbours within a cell are compared (Datar, Immorlica, Indyk
and Mirrokni, Locality-sensitive hashing scheme based on p-stable distributions, SCG 2004).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ....core.progress import progress
from ..columns import Columns
from ..images.carving import SEED
from ..images.samples import SPLITS
from .rounded_rows import rounded_pairs

Array = np.ndarray[Any, Any]
# Of a row's length; and of the usual distance of two rows of a class, so that narrow classes are no copies.
TOLERANCE, OF_USUAL = 1e-3, 0.02
# With fewer columns, rows come as near by chance, and only equal ones are told.
COLUMNS = 8
# At the tolerance one pair in a thousand is missed, at a tenth of it one in a billion.
TABLES, DIRECTIONS, NEXT, CELL = 4, 5, 3, 20
_SAMPLE, _BLOCK = 2_000, 4_096


def same_rows(
    columns: Mapping[str, Columns], hashes: Mapping[str, Array], usable: Mapping[str, Array]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Compare every row with all others.

    Args:
        columns: The rows by split.
        hashes: By split, ``(N,)`` uint64, equal for rows that are equal bit by bit.
        usable: By split, ``(N,)`` bool: rows that are finite and not zero throughout. Others are no copies.

    Returns:
        By split, ``(N,)`` bool: whether a row is the same as an earlier one of the split, and whether as one of an
        earlier split (train, val, test).
    """
    order = sorted(columns, key=lambda split: SPLITS.index(split) if split in SPLITS else len(SPLITS))
    parts = [columns[split] for split in order]
    place = np.repeat(np.arange(len(parts)), [len(one.labels) for one in parts])
    fits = np.flatnonzero(np.concatenate([usable[split] for split in order]))
    bits = np.concatenate([hashes[split] for split in order])
    pairs = [fits[_chains(bits[fits])], _pictures(parts), _near(parts, fits), _rounded(parts, fits)]
    one, other = np.concatenate(pairs).T
    links = coo_array((np.ones(len(one), bool), (one, other)), shape=(len(place), len(place)))
    group = connected_components(links, directed=False)[1].astype(np.int64)
    first = np.full(len(place), len(parts))
    np.minimum.at(first, group, place)
    repeated = np.ones(len(place), bool)
    repeated[np.unique(group * len(parts) + place, return_index=True)[1]] = False
    leaked = first[group] < place
    here = {split: place == number for number, split in enumerate(order)}
    return {split: repeated[mark] for split, mark in here.items()}, {
        split: leaked[mark] for split, mark in here.items()
    }


def _chains(codes: Array) -> Array:
    """``(P, 2)`` pairs of places that link all with equal codes."""
    order = np.argsort(codes, kind="stable")
    same = codes[order][1:] == codes[order][:-1]
    return np.stack([order[:-1][same], order[1:][same]], axis=1)


def _pictures(parts: Sequence[Columns]) -> Array:
    """Pairs of rows that show one picture in one view; the views of an image are no copies of each other."""
    known = [(one.names, one.pictures) for one in parts if one.pictures is not None]
    if len(known) < len(parts):
        return np.empty((0, 2), np.int64)
    names = pa.concat_arrays([name for name, _ in known]).dictionary_encode().indices.to_numpy()
    codes = pa.concat_arrays([picture for _, picture in known]).dictionary_encode().indices.to_numpy()
    rows = np.arange(len(names))
    begins = np.maximum.accumulate(np.where(np.r_[True, names[1:] != names[:-1]], rows, 0))
    views = rows - begins
    return _chains(codes.astype(np.int64) * (1 + views.max(initial=0)) + views)


def _near(parts: Sequence[Columns], fits: Array) -> Array:
    """Pairs of rows that differ by no more than rounding does."""
    width = parts[0].features.shape[1]
    none = np.empty((0, 2), np.int64)
    if width < COLUMNS or len(fits) < 2:
        return none
    rng = np.random.default_rng(SEED)
    tolerance = min(TOLERANCE, OF_USUAL * _usual_distance(parts, fits, rng))
    if not tolerance > 0:
        return none
    seen = _projected(parts, fits, rng.normal(size=(width, TABLES * (DIRECTIONS + 1))).astype(np.float32))
    found = [none]
    for table in np.split(seen, TABLES, axis=1):
        cells = np.floor(table[:, :DIRECTIONS] / (CELL * tolerance) + rng.random(DIRECTIONS)).astype(np.int64)
        codes = cells @ rng.integers(1, 2**62, DIRECTIONS)  # wraps around; a collision costs a comparison
        order = np.lexsort((table[:, DIRECTIONS], codes))
        for step in range(1, NEXT + 1):
            one, other = order[:-step], order[step:]
            alike = codes[one] == codes[other]
            pairs = fits[np.stack([one[alike], other[alike]], axis=1)]
            found.append(pairs[_equal_but_for(tolerance, parts, pairs)])
    return np.concatenate(found)


def _rounded(parts: Sequence[Columns], fits: Array) -> Array:
    """Pairs of rows of which one has the digits of the other, but for the last ones."""
    width = parts[0].features.shape[1]
    if width < COLUMNS or len(fits) < 2:
        return np.empty((0, 2), np.int64)
    precision = max(float(np.finfo(one.features.dtype).eps) / 2 for one in parts)
    pairs: Array = fits[rounded_pairs(lambda places: _rows(parts, fits[places]), len(fits), width, precision)]
    return pairs


def _usual_distance(parts: Sequence[Columns], fits: Array, rng: np.random.Generator) -> float:
    """The median distance of two rows of a class, of a sample, divided by their length."""
    some = rng.permutation(fits)[:_SAMPLE]
    labels = np.concatenate([one.labels for one in parts])[some]
    some, labels = some[np.argsort(labels, kind="stable")], np.sort(labels)
    same = labels[1:] == labels[:-1]
    same = same if same.any() else ~same
    one, other = _unit(_rows(parts, some[:-1][same])), _unit(_rows(parts, some[1:][same]))
    return float(np.median(np.linalg.norm(one - other, axis=1)))


def _projected(parts: Sequence[Columns], fits: Array, directions: Array) -> Array:
    """``(N, K)`` float32, the directions of the rows seen from K directions."""
    found = np.empty((len(fits), directions.shape[1]), np.float32)
    with progress("Comparing rows", len(fits), "rows") as advance:
        for start in range(0, len(fits), _BLOCK):
            rows = fits[start : start + _BLOCK]
            found[start : start + _BLOCK] = _unit(_rows(parts, rows)) @ directions
            advance(len(rows))
    return found


def _equal_but_for(tolerance: float, parts: Sequence[Columns], pairs: Array) -> Array:
    blocks = (pairs[start : start + _BLOCK] for start in range(0, len(pairs), _BLOCK))
    found = [np.empty(0, bool)]
    for block in blocks:
        one, other = _rows(parts, block[:, 0]), _rows(parts, block[:, 1])
        found.append(np.linalg.norm(one - other, axis=1) <= tolerance * np.linalg.norm(one, axis=1))
    return np.concatenate(found)


def _rows(parts: Sequence[Columns], rows: Array) -> Array:
    """Features ``(n, D)`` float64 of rows that are counted through all parts; float16 has room for no squares."""
    found, first = np.empty((len(rows), parts[0].features.shape[1])), 0
    for part in parts:
        here = (rows >= first) & (rows < first + len(part.labels))
        found[here] = part.features[rows[here] - first]
        first += len(part.labels)
    return found


def _unit(rows: Array) -> Array:
    unit: Array = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit
