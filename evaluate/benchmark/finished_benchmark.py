"""A finished benchmark on disk."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ...core.arguments import typed
from ...core.errors import InputError
from ...core.files import write_json
from ...core.records import HASHES, check_hashes, read_values, to_json, with_hashes
from ...core.typed_json import structured
from .benchmark_record import FORMAT, FORMAT_VERSION, RECORD, BenchmarkRecord, BenchmarkRow
from .leaderboard import cells, columns
from .verdict import headline

if TYPE_CHECKING:
    import pandas as pd

_AGAIN = "run the benchmark again"


@dataclass(frozen=True)
class Benchmark:
    """A finished benchmark.

    The folder holds ``benchmark.json``, ``leaderboard.csv``, ``leaderboard.md``, ``bundles``, and what a further run
    goes on from: ``rows``, ``features``, ``sweeps`` and ``results``.

    Attributes:
        path: The folder.
        record: What ``benchmark.json`` holds.
    """

    path: Path
    record: BenchmarkRecord

    def __repr__(self) -> str:
        """Its rows and what to deploy."""
        return f"Benchmark({str(self.path)!r}: {len(self.rows)} rows, {self.record.sentence})"

    @property
    def rows(self) -> list[BenchmarkRow]:
        """The rows of the leaderboard, the best first."""
        return self.record.rows

    @property
    def winner(self) -> BenchmarkRow | None:
        """The row to deploy."""
        return next((row for row in self.rows if row.name == self.record.winner), None)

    @property
    def headline(self) -> str:
        """What to deploy, or that nothing meets the bounds, in a few words."""
        if self.winner is None:
            return "Nothing could be measured"
        return headline(self.winner, self.rows, self.record.bounds)

    @property
    def failed(self) -> list[BenchmarkRow]:
        """The rows that have a reason in place of figures."""
        return [row for row in self.rows if row.state == "failed"]

    def __getitem__(self, name: str) -> BenchmarkRow:
        """A row by its name.

        Raises:
            InputError: There is none.
        """
        for row in self.rows:
            if row.name == name:
                return row
        raise InputError(f"{self.path}: holds no row {name!r}; it holds {', '.join(row.name for row in self.rows)}")

    def to_pandas(self) -> "pd.DataFrame":
        """``leaderboard.csv`` as a pandas frame: timm's columns first, shares in per cent."""
        import pandas as pd

        return pd.DataFrame([cells(row) for row in self.rows], columns=columns(self.rows))

    @classmethod
    @typed
    def load(cls, path: str | Path) -> Self:
        """Open a finished benchmark.

        Raises:
            InputError: No such folder, or none that holds a benchmark.
            DamagedFileError: A field of its record is missing, unknown, of another kind, or was edited.
        """
        path = Path(path)
        if not (path / RECORD).exists():
            raise InputError(f"{path}: no benchmark (no {RECORD} in it); `headsmith benchmark` makes one")
        values = read_values(path / RECORD, format=FORMAT, version=FORMAT_VERSION, advice=_AGAIN)
        own = {name: value for name, value in values.items() if name != HASHES}
        record = structured(own, BenchmarkRecord, str(path / RECORD), advice=_AGAIN)
        check_hashes(values, str(path / RECORD), writer="the benchmark", advice=_AGAIN)
        return cls(path, record)

    def write(self) -> None:
        """Write ``benchmark.json``, with the hashes of its fields."""
        write_json(self.path / RECORD, with_hashes(to_json(self.record)))
