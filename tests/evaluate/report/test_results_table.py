"""The table that a person sees of a results folder."""

import pytest
from made_up_results import MODELS, made_up_results
from rich.console import Console

from headsmith import show_results
from headsmith.evaluate import load_results


@pytest.mark.parametrize(("width", "dropped"), [(80, "ECE, NLL, MB, images/s, ms"), (160, None)])
def test_names_stay_whole_however_many_columns_have_no_room(tmp_path, monkeypatch, width, dropped):
    made_up_results(tmp_path, MODELS, n=60)
    console = Console(width=width, record=True, soft_wrap=True, highlight=False)
    monkeypatch.setattr(show_results, "console", console)
    show_results.show_results(load_results(tmp_path), as_json=False)
    text = console.export_text()
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert max(map(len, rows)) <= width
    assert {row.split("│")[1].strip() for row in rows} == {model.name for model in MODELS}
    assert sum(row.split("│")[2].strip() == "=" for row in rows) > 0
    assert (f"no room here for {dropped}" in text) == (dropped is not None)
