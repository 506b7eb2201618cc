"""Features that exist already, as a feature set."""

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np

from ....core.arguments import typed
from ....core.builtin_types import is_number, to_builtin
from ....core.environment import free_memory, versions
from ....core.errors import InputError, near, with_keywords
from ....core.files import new_folder, read_json, sha256_json, write_json
from ....core.printable import shown
from ....core.records import to_json
from ....core.text_file import read_lines
from ....models.backbone import load_backbone
from ....models.backbone_record import BackboneRecord
from ....models.preprocessing import Preprocessing
from ..columns import Columns
from ..extraction.request import fingerprint
from ..feature_set import FeatureSet, rows_sha256
from ..feature_writer import FeatureWriter, MemoryFeatureWriter, split_file
from ..images.samples import HELD_OUT_SHARE, SEED, SPLITS
from ..manifest import FORMAT, FORMAT_VERSION, MANIFEST
from .column_roles import Chosen, Names, choose
from .feature_copy import Statistics, copy_features
from .origin import Origin
from .row_columns import gather
from .sources import open_tables
from .table import Table, check_different

IN_MEMORY = Path("(in memory)")
DTYPES = ("float16", "float32")


@typed
def import_features(
    files: str | Path | Sequence[str | Path],
    *,
    out: str | Path,
    feature_column: str | None = None,
    label_column: str | None = None,
    id_column: str | None = None,
    group_column: str | None = None,
    class_names: str | Path | None = None,
    dtype: str | None = None,
    backbone: str | None = None,
    checkpoint: str | Path | None = None,
    image_size: int | None = None,
    preprocessing: str | Path | Preprocessing | None = None,
    layer: str | None = None,
    drop_background: bool = False,
    held_out_share: float = HELD_OUT_SHARE,
    seed: int = SEED,
    overwrite: bool = False,
) -> FeatureSet:
    """Make a feature set of embeddings that exist already.

    Read are dictionaries of ``torch.save`` (``.p``, ``.pt``), ``.npz``, ``.npy`` with labels beside them
    (``x_labels.npy``, ``metadata_0.parquet``), safetensors, parquet, Arrow, CSV and TSV, folders of these,
    and `datasets` folders and hub names. Features are copied some at a time, so they may exceed the memory; nothing in
    a file is ever run.

    Args:
        files: Files, folders or names, or a single one. A split is what stands before it (``train=FILE``), else
            what a column ``split`` says row by row, else what the name of a key, file or folder says
            (``train_embeddings``, ``test.npz``). A file of labels counts for the array that it is named with,
            or for several, row after row in the order in which they are named.
        out: The feature set to make.
        feature_column: Key or column with the features ``(N, D)``; by default the only possible one.
        label_column: Key or column with the labels ``(N,)``: whole numbers or text.
        id_column: Key or column with the ids; by default text called ``id``, else ``FILE/ROW``.
        group_column: Rows that share its value stay in one split.
        class_names: A text file with the names, one a line, that whole-number labels count from 0.
        dtype: ``float16`` or ``float32``; by default float16 where the files have it, else float32.
        backbone: What computed the features, as for `extract`; without it only the head can be exported.
        checkpoint: Local weights for the backbone.
        image_size: Another crop edge in pixels than the backbone's own.
        preprocessing: Of an ONNX file that does not say it itself: a recipe, or a YAML file with one.
        layer: The last layer of an ONNX file, where it is not plain.
        drop_background: The first output of an ONNX file is no class.
        held_out_share: Of each class for each split that the files lack.
        seed: Decides which rows.
        overwrite: Replace a feature set at ``out``.

    Returns:
        The feature set.

    Raises:
        InputError: A file, column, label or feature that cannot be used; the message says which row.
    """
    given = {"--checkpoint": checkpoint, "--image-size": image_size, "--preprocessing": preprocessing, "--layer": layer}
    for flag, value in given.items():
        if value is not None and backbone is None:
            raise InputError(f"{flag}: {value} found without --backbone; say which backbone it belongs to")
    files = [files] if isinstance(files, str | Path) else list(files)
    names = None if class_names is None else _read_names(Path(class_names))
    record = None
    if backbone is not None:
        network = load_backbone(
            backbone,
            checkpoint=checkpoint,
            image_size=image_size,
            preprocessing=preprocessing,
            layer=layer,
            drop_background=drop_background,
        )
        record = network.record()
    asked = Names(feature_column, label_column, id_column, group_column)
    maker = FeatureSetBuilder(
        open_tables(files),
        [str(name) for name in files],
        asked,
        class_names=names,
        dtype=dtype,
        backbone=record,
        held_out_share=held_out_share,
        seed=seed,
    )
    return maker.write(Path(out), overwrite=overwrite)


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
        self.chosen = [choose(table, asked) for table in tables]
        self.width = _width(self.chosen, backbone)
        found = {one.features.dtype for one in self.chosen}
        self.dtype = dtype or ("float16" if found == {"float16"} else "float32")
        self.rows = gather(self.chosen, class_names, held_out_share, seed)
        self.backbone = backbone
        self.files = list(files)

    @classmethod
    def of_files(cls, files: Sequence[str | Path]) -> Self:
        """From files whose columns and splits go without saying."""
        return cls(open_tables(files), [str(name) for name in files], Names(origin=Origin.FILE))

    @property
    def splits(self) -> dict[str, int]:
        """Rows by split."""
        return {split: int((self.rows.splits == code).sum()) for code, split in enumerate(SPLITS)}

    def write(self, out: Path, *, overwrite: bool = False) -> FeatureSet:
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
            write_json(folder / MANIFEST, self._manifest(statistics))
        return FeatureSet.load(out)

    def keep(self, *, unusable: bool = False) -> FeatureSet:
        """Make it in memory.

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
        return FeatureSet(IN_MEMORY, self._manifest(statistics), columns)

    def _manifest(self, statistics: Statistics) -> dict[str, Any]:
        rows, backbone = self.rows, to_json(self.backbone)
        hashes = {split: rows_sha256(*rows.of(split)) for split in self.splits}
        request = {
            "backbone": backbone and {key: backbone[key] for key in ("spec", "tap", "feature_dim")},
            "weights": backbone and backbone["weights_sha256"],
            "class_names": sha256_json(rows.class_names),
            "rows": hashes,
            "features": statistics.sha256,
            "split_rule": rows.split_rule,
            "dtype": self.dtype,
        }
        return {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "fingerprint": fingerprint(request),
            "request": request,
            "backbone": backbone,
            "source": None,
            "imported": {
                "files": self.files,
                "columns": {one.table.name: one.names for one in self.chosen},
                "equal_rows": statistics.copies(rows),
                "not_read": list(dict.fromkeys(name for one in self.chosen for name in one.not_read)),
            },
            "class_names": rows.class_names,
            "splits": self.splits,
            "split_rule": rows.split_rule,
            "warnings": [
                with_keywords(told) for told in (*rows.warnings, *statistics.lost.told(self.chosen[0].features))
            ],
            "rows_sha256": hashes,
            "feature_dim": self.width,
            "dtype": self.dtype,
            "unreadable": [],
            "statistics": statistics.summary(),
            "versions": versions(),
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
        }


def _width(chosen: Sequence[Chosen], backbone: BackboneRecord | None) -> int:
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


def _read_names(path: Path) -> list[str]:
    names = read_lines(path)
    check_different(names, str(path))
    return names
