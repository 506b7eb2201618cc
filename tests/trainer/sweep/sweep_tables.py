"""The tables of a finished sweep, as text."""

import csv

from headsmith.trainer.sweep import Sweep


def table(sweep: Sweep, name: str) -> list[dict[str, str]]:
    with (sweep.path / name).open(newline="") as file:
        return list(csv.DictReader(file))
