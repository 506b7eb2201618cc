"""docs/losses.md names every method."""

import re
from pathlib import Path

from headsmith.trainer.loss_defaults import FUSED, METHODS

TEXT = (Path(__file__).parents[3] / "docs" / "losses.md").read_text(encoding="utf-8")


def test_the_table_has_every_method_and_says_which_are_fused():
    rows = TEXT[TEXT.index("## Every method") : TEXT.index("## What the parameters do")]
    found = {}
    for line in rows.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) == 8 and re.fullmatch(r"`\w+`", cells[1]):
            found[cells[1].strip("`")] = cells[5].startswith("yes")
    assert found == {method: method in FUSED for method in METHODS}
