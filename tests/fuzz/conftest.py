import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import harness
import pytest


@pytest.fixture
def fuzz(tmp_path: Path, record_property: Callable[[str, object], None]) -> Callable[[harness.Target], Counter[str]]:
    """A function: read damaged files of a target; see `harness.fuzz`."""

    def run(target: harness.Target) -> Counter[str]:
        ends = harness.fuzz(target, tmp_path)
        record_property("fuzz", (target.name, dict(ends)))
        return ends

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The counts, where they were asked for."""
    if "FUZZ_MUTATIONS" not in os.environ:
        return
    reports = terminalreporter.getreports("passed")
    for name, value in (entry for report in reports for entry in report.user_properties):
        if name == "fuzz":
            target, ends = value
            counts = ", ".join(f"{count:,} {end}" for end, count in sorted(ends.items()))
            terminalreporter.write_line(f"{target}: {sum(ends.values()):,} damaged files, {counts}")
