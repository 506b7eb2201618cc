"""A feature set on disk: what a frozen backbone said of every image, and where it came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from ...core.arguments import typed
from ...core.errors import InputError, near
from .columns import Columns, read_columns
from .images.carving import HELD_OUT_SHARE, SEED
from .manifest import MANIFEST, FeatureSetManifest, contradictions, read_manifest
from .split_checksums import pictures_sha256, rows_sha256

Values = ArrayLike | Tensor
_BLOCK_BYTES = 4 << 20


@dataclass(frozen=True)
class FeatureSet:
    """Cached features of one data set under one backbone.

    The folder is a `datasets` one (``datasets.load_from_disk`` opens it) with a ``manifest.json``. It holds no pickle.

    Attributes:
        path: The folder.
        manifest: What ``manifest.json`` holds: backbone, source, class names, splits, statistics, versions.
        columns: Ids, labels and features by split.
    """

    path: Path
    manifest: FeatureSetManifest = field(repr=False)
    columns: dict[str, Columns] = field(repr=False)

    @classmethod
    @typed
    def load(cls, path: str | Path) -> Self:
        """Open a feature set; checked are its shapes, ids, labels and that all features are finite.

        That the features are, bit by bit, those that were written is not checked here, but by `inspect_features`.

        Args:
            path: Its folder; or a file with features and labels (``.p``, ``.pt``, ``.npz``, ``.npy``, safetensors,
                parquet, Arrow), which is read into memory and divided as `import_features` does.

        Raises:
            InputError: The folder or a part of it is missing or damaged, rows do not match the manifest, a label is
                outside of the class names, or a feature is NaN or infinite.
        """
        path = Path(path)
        if path.is_file():
            from .importing.builder import FeatureSetBuilder  # and with it datasets, for which folders need not wait

            return cls(path, *FeatureSetBuilder.of_file(path).keep())
        manifest = read_manifest(path)
        columns = {split: read_columns(path / split) for split in manifest.splits}
        found = cls(path, manifest, columns)
        for contradiction in contradictions(manifest, columns):
            raise InputError(f"{path / MANIFEST}: {contradiction}; make it again with --overwrite")
        for split, rows in manifest.splits.items():
            found._check(split, rows)
        return found

    @classmethod
    @typed
    def from_arrays(
        cls,
        features: Values | Mapping[str, Values],
        labels: Values | Mapping[str, Values],
        *,
        out: str | Path | None = None,
        ids: Values | Mapping[str, Values] | None = None,
        groups: Values | Mapping[str, Values] | None = None,
        class_names: Sequence[str] | None = None,
        dtype: str | None = None,
        held_out_share: float = HELD_OUT_SHARE,
        seed: int = SEED,
        overwrite: bool = False,
    ) -> Self:
        """Make a feature set of arrays or tensors.

        Args:
            features: ``(N, D)``, or that for each of ``train``, ``val``, ``test``; those that lack are carved out of
                train.
            labels: ``(N,)``, whole numbers or text; by split where the features are.
            out: A folder to write; ``None`` keeps it in memory.
            ids: ``(N,)``, an id for every row.
            groups: ``(N,)``; rows that share a value stay in one split.
            class_names: What whole-number labels count from 0.
            dtype: ``float16`` or ``float32``; by default float16 where the features are, else float32.
            held_out_share: Of each class for each missing split.
            seed: Decides which rows.
            overwrite: Replace a feature set at ``out``.

        Raises:
            InputError: As for `import_features`.
        """
        from .importing.arrays import builder_of

        columns = {"features": features, "labels": labels, "ids": ids, "groups": groups}
        names = None if class_names is None else list(class_names)
        builder = builder_of(columns, names, dtype=dtype, held_out_share=held_out_share, seed=seed)
        if out is None:
            return cls(Path("(in memory)"), *builder.keep())
        builder.write(Path(out), overwrite=overwrite)
        return cls.load(out)

    def __repr__(self) -> str:
        rows = ", ".join(f"{split} {count:,}" for split, count in self.manifest.splits.items())
        return (
            f"FeatureSet({str(self.path)!r}: {rows} rows, {len(self.class_names):,} classes, D = {self.feature_dim}, "
            f"{self.manifest.dtype})"
        )

    @property
    def class_names(self) -> list[str]:
        """Name of every class; a label is an index into them."""
        return self.manifest.class_names

    @property
    def feature_dim(self) -> int:
        """D, the length of a feature."""
        return self.manifest.feature_dim

    @property
    def fingerprint(self) -> str:
        """SHA-256 over all that decides the features: backbone weights, transform, source, split rule, dtype."""
        return self.manifest.fingerprint

    @property
    def splits(self) -> list[str]:
        """The splits that are there, in the order train, val, test."""
        return list(self.manifest.splits)

    def arrays(self, split: str) -> tuple[Tensor, Tensor]:
        """Features ``(N, D)``, float16 or float32, and labels ``(N,)``, int64, on the CPU.

        Features are mapped from the file, not read: memory fills as rows are used, and the system may take it back.
        Writing to them changes memory only, never the file.
        """
        columns = self._columns(split)
        return torch.from_numpy(columns.features), torch.from_numpy(columns.labels)

    def ids(self, split: str) -> list[str]:
        """The sample id of every row."""
        return self._columns(split).ids

    def _columns(self, split: str) -> Columns:
        if split not in self.columns:
            raise InputError(f"{self.path}: has no split {split!r}, found {self.splits}{near(str(split), self.splits)}")
        return self.columns[split]

    def _check(self, split: str, rows: int) -> None:
        columns, where = self.columns[split], f"{self.path}: {split}"
        shape = (len(columns.names), *columns.features.shape)
        if shape != (rows, rows, self.feature_dim):
            raise InputError(
                f"{where}: has {shape[0]} ids and features {shape[1:]}, the manifest says "
                f"{(rows, self.feature_dim)}; make it again with --overwrite"
            )
        _check_labels(columns, len(self.class_names), where)
        if rows_sha256(columns.names, columns.labels) != self.manifest.rows_sha256.get(split):
            raise InputError(f"{where}: ids and labels are not those that were written; make it again with --overwrite")
        self._check_pictures(split, columns.pictures)
        _check_finite(columns, where)

    def _check_pictures(self, split: str, pictures: pa.StringArray | None) -> None:
        written = (self.manifest.pictures_sha256 or {}).get(split)
        if written != (None if pictures is None else pictures_sha256(pictures)):
            raise InputError(
                f"{self.path}: {split}: the hashes of the pictures are not those that were written; make it again with "
                "--overwrite"
            )


def _check_labels(columns: Columns, classes: int, where: str) -> None:
    labels = columns.labels
    wrong = np.flatnonzero((labels < 0) | (labels >= classes))
    if wrong.size:
        row = int(wrong[0])
        raise InputError(
            f"{where}: labels go from {labels.min()} to {labels.max()}, expected 0 to {classes - 1} for {classes} "
            f"classes; the first wrong one is {labels[row]} in row {row} ({columns.ids[row]})"
        )


def _check_finite(columns: Columns, where: str) -> None:
    bad = not_finite(columns.features)
    if bad:
        first = ", ".join(columns.ids[row] for row in bad[:3])
        raise InputError(
            f"{where}: {len(bad)} of {len(columns.features)} rows have NaN or infinite features, first {first}; "
            "make it again (with --dtype float32 where float16 overflows)"
        )


def not_finite(features: np.ndarray[Any, Any]) -> list[int]:
    """Rows with a NaN or infinite feature, found at the speed of memory where there are none."""
    rows, bad = torch.from_numpy(features), list[int]()
    step = max(1, _BLOCK_BYTES // max(1, features.itemsize * features.shape[1]))
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        if not torch.stack(torch.aminmax(block)).isfinite().all():
            bad += [start + row for row in (~block.isfinite().all(dim=1)).nonzero().flatten().tolist()]
    return bad
