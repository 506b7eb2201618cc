"""The tables that evaluations write."""

import csv


def rows_of(path):
    with (path / "results.csv").open(newline="") as file:
        return list(csv.DictReader(file))
