"""A feature set in the making, from tables: in memory, or as a folder."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import numpy as np

from ....core.builtin_types import is_number, to_builtin
from ....core.environment import free_memory, versions
from ....core.errors import InputError, near, with_keywords
from ....core.files import new_folder, read_json, sha256_json, write_json
from ....core.printable import shown
from ....core.records import write_record
from ....models.backbone_record import BackboneRecord
from ..columns import Columns
from ..extraction.request import Request, RequestedBackbone
from ..feature_writer import FeatureWriter, MemoryFeatureWriter, split_file
from ..images.carving import HELD_OUT_SHARE, SEED
from ..images.samples import SPLITS
from ..manifest import FORMAT, MANIFEST, FeatureSetManifest, Imported
from ..split_checksums import rows_sha256
from .cast_and_check import Statistics, copy_features
from .column_roles import ColumnRoles, Names, find_roles
from .open_tables import open_file
from .origin import Origin
from .row_columns import gather
from .table import Table

DTYPES = ("float16", "float32")


class FeatureSetBuilder:
    """A feature set in the making, from tables of any kind."""

    def __init__(
        self,
        tables: Sequence[Table],
        files: Sequence[str],
        asked: Names,
        *,
        class_names: list[str] | None = None,
        dtype: str | None = None,
        backbone: BackboneRecord | None = None,
        held_out_share: float = HELD_OUT_SHARE,
        seed: int = SEED,
    ) -> None:
        if dtype not in (None, *DTYPES):
            raise InputError(
                f"--dtype: {shown(dtype)} found, expected one of {', '.join(DTYPES)}{near(dtype or '', DTYPES)}"
            )
        seed = to_builtin(seed)
        if not is_number(seed) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise InputError(f"--seed: {seed!r} found, expected a whole number from 0 to {2**63 - 1}")
        held_out_share = to_builtin(held_out_share)
        if not is_number(held_out_share) or not 0 < held_out_share < 0.5:
            raise InputError(f"--held-out-share: {held_out_share} found, expected a share above 0 and below 0.5")
        if not tables:
            raise InputError(f"{', '.join(files)}: labels without features beside them; name those too")
        self.chosen = [find_roles(table, asked) for table in tables]
        self.width = _width(self.chosen, backbone)
        found = {one.features.dtype for one in self.chosen}
        self.dtype = dtype or ("float16" if found == {"float16"} else "float32")
        self.rows = gather(self.chosen, class_names, held_out_share, seed)
        self.backbone = backbone
        self.files = list(files)

    @classmethod
    def of_file(cls, path: Path) -> Self:
        """From a file whose columns and splits go without saying."""
        return cls(open_file(path), [str(path)], Names(origin=Origin.FILE))

    @property
    def splits(self) -> dict[str, int]:
        """Rows by split."""
        return {split: int((self.rows.splits == code).sum()) for code, split in enumerate(SPLITS)}

    def write(self, out: Path, *, overwrite: bool = False) -> None:
        """Make the folder.

        Raises:
            InputError: ``out`` exists and is not to be replaced, or is no feature set.
            OSError: It cannot be written, such as on a full disk; its ``filename`` is set.
        """
        if overwrite and (out / MANIFEST).is_file() and read_json(out / MANIFEST).get("format") != FORMAT:
            raise InputError(f"{out}: exists and is not a feature set; choose another `out`")
        names, width, dtype = self.rows.class_names, self.width, self.dtype
        made = new_folder(out, replace=MANIFEST if overwrite else None)
        with made as folder, ExitStack() as open_files:
            sinks: dict[str, FeatureWriter] = {
                split: open_files.enter_context(split_file(folder / split, *self.rows.of(split), names, width, dtype))
                for split in self.splits
            }
            statistics = copy_features(self.chosen, self.rows, sinks, dtype)
            open_files.close()
            write_json(folder / "dataset_dict.json", {"splits": list(self.splits)})
            write_record(folder / MANIFEST, self._manifest(statistics))

    def keep(self, *, unusable: bool = False) -> tuple[FeatureSetManifest, dict[str, Columns]]:
        """Make the manifest and the columns of every split in memory.

        Args:
            unusable: Keep NaN and infinite features too.

        Raises:
            InputError: It would take more than half of what is free.
        """
        size = len(self.rows.labels) * self.width * np.dtype(self.dtype).itemsize
        if size > free_memory() / 2:
            raise InputError(
                f"{', '.join(self.files)}: {size / 1e9:.1f} GB of features; write them once with headsmith import, and "
                "load that: it is mapped, not read"
            )
        sinks = {split: MemoryFeatureWriter(rows, self.width, self.dtype) for split, rows in self.splits.items()}
        statistics = copy_features(self.chosen, self.rows, sinks, self.dtype, unusable=unusable)
        columns = {split: Columns(*self.rows.of(split), sink.features) for split, sink in sinks.items()}
        return self._manifest(statistics), columns

    def _manifest(self, statistics: Statistics) -> FeatureSetManifest:
        rows, backbone = self.rows, self.backbone
        hashes = {split: rows_sha256(*rows.of(split)) for split in self.splits}
        request = Request(
            backbone=RequestedBackbone.of(backbone),
            weights=None if backbone is None else backbone.weights_sha256,
            class_names=sha256_json(rows.class_names),
            rows=hashes,
            features=statistics.sha256,
            split_rule=rows.split_rule,
            dtype=self.dtype,
        )
        found = [*rows.warnings, *statistics.warnings(rows, self.chosen[0].features)]
        found += dict.fromkeys(warning for one in self.chosen for warning in one.warnings)
        return FeatureSetManifest(
            fingerprint=request.fingerprint,
            request=request,
            backbone=backbone,
            source=None,
            imported=Imported(
                files=self.files,
                columns={one.table.name: one.names for one in self.chosen},
                not_read=list(dict.fromkeys(name for one in self.chosen for name in one.not_read)),
            ),
            class_names=rows.class_names,
            splits=self.splits,
            split_rule=rows.split_rule,
            warnings=[replace(warning, message=with_keywords(warning.message)) for warning in found],
            rows_sha256=hashes,
            feature_dim=self.width,
            dtype=self.dtype,
            unreadable=[],
            statistics=statistics.summary(),
            versions=versions(),
            created=datetime.now(UTC).isoformat(timespec="seconds"),
        )


def _width(chosen: Sequence[ColumnRoles], backbone: BackboneRecord | None) -> int:
    first = chosen[0]
    for one in chosen:
        if not one.features.shape[0]:
            raise InputError(f"{one.table.name}: {one.features.name} has no rows; leave it out")
        if one.features.shape[1] != first.features.shape[1]:
            raise InputError(
                f"{one.table.name}: features have D = {one.features.shape[1]}, but {first.features.shape[1]} in "
                f"{first.table.name}; expected the same backbone in all"
            )
    width = first.features.shape[1]
    if backbone is not None and backbone.feature_dim != width:
        raise InputError(
            f"--backbone {backbone.spec}: gives features of D = {backbone.feature_dim}, the files have "
            f"D = {width}; name the backbone that computed them, or none"
        )
    return int(width)
