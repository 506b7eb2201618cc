"""The rows of a split among the shards, in which they were computed for this split or for another one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..copies import Shown
from ..images.samples import SPLITS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SplitRows:
    """Rows of mapped tables, of which none is read before it is written.

    Attributes:
        parts: Tables, and a mark for each of their rows that belongs to the split.
    """

    parts: list[tuple[pa.Table, Array]]

    @classmethod
    def of(cls, split: str, tables: Mapping[str, pa.Table], moved: Mapping[str, str]) -> Self:
        """The rows of a split: those of its own shards that stay, and of other shards the images that come to it.

        Of the latter only the view that is deployed is taken, as of all held-out images.
        """
        parts = []
        leaving = pa.array(list(moved), pa.string())
        coming = pa.array([name for name, target in moved.items() if target == split], pa.string())
        for origin in SPLITS:
            table = tables[origin]
            if origin == split:
                mark = ~_among(table, leaving)
            else:
                mark = _among(table, coming)
                if "view" in table.column_names:
                    mark &= table["view"].to_numpy() == 0
            parts.append((table, mark))
        return cls(parts)

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.parts[0][0].column_names)

    @cached_property
    def ids(self) -> pa.StringArray:
        """N ids."""
        return self.column("id")

    @cached_property
    def labels(self) -> Array:
        """``(N,)`` int64."""
        labels: Array = self.column("label").to_numpy()
        return labels

    @property
    def width(self) -> int:
        """D."""
        return int(self.parts[0][0].schema.field("features").type.list_size)

    @property
    def dtype(self) -> str:
        """``float16`` or ``float32``."""
        return str(np.dtype(self.parts[0][0].schema.field("features").type.value_type.to_pandas_dtype()))

    def column(self, name: str) -> pa.Array:
        """A column other than the features."""
        found = [table[name].filter(pa.array(mark)).combine_chunks() for table, mark in self.parts]
        return pa.concat_arrays([one if isinstance(one, pa.Array) else pa.concat_arrays(one.chunks) for one in found])

    def shown(self) -> Shown:
        """Its images, one row each."""
        found = Shown(self.ids, self.labels, self.column("picture"))
        return found.where(self.column("view").to_numpy() == 0) if "view" in self.names else found

    def blocks(self) -> Iterator[Array]:
        """The features, some rows at a time, ``(n, D)``."""
        for table, mark in self.parts:
            start = 0
            for chunk in table["features"].chunks:
                chosen = mark[start : start + len(chunk)]
                start += len(chunk)
                block = chunk.flatten().to_numpy().reshape(len(chunk), -1) if len(chunk) else None
                if block is not None and chosen.any():
                    yield block if chosen.all() else block[chosen]


def _among(table: pa.Table, names: pa.Array) -> Array:
    found: Array = pc.is_in(table["id"], value_set=names).to_numpy()
    return found
