"""The table that a person sees of a results folder."""

import pytest
from made_up_results import MODELS, made_up_results
from rich.console import Console

from headsmith import show, show_comparison, show_results
from headsmith.evaluate import compare, load_results


@pytest.mark.parametrize(("width", "dropped"), [(80, "ECE, NLL, MB, images/s, ms"), (160, None)])
def test_names_stay_whole_however_many_columns_have_no_room(tmp_path, monkeypatch, width, dropped):
    made_up_results(tmp_path, MODELS, n=60)
    console = Console(width=width, record=True, soft_wrap=True, highlight=False)
    for module in (show, show_results):
        monkeypatch.setattr(module, "console", console)
    show_results.show_results(load_results(tmp_path), as_json=False)
    text = console.export_text()
    rows = [line for line in text.splitlines() if line.startswith("│")]
    assert max(map(len, rows)) <= width
    assert {row.split("│")[1].strip() for row in rows} == {model.name for model in MODELS}
    assert sum(row.split("│")[2].strip() == "=" for row in rows) > 0
    assert (f"no room here for {dropped}" in text) == (dropped is not None)


@pytest.mark.parametrize(("width", "dropped"), [(80, "bootstrap"), (160, None)])
def test_figures_of_a_comparison_stay_whole(tmp_path, monkeypatch, width, dropped):
    made_up_results(tmp_path, MODELS, n=60)
    console = Console(width=width, record=True, soft_wrap=True, highlight=False)
    for module in (show, show_comparison):
        monkeypatch.setattr(module, "console", console)
    found = compare(MODELS[0].name, MODELS[1].name, results=tmp_path)
    show_comparison.show_comparison(found, as_json=False)
    overall = console.export_text().split("top-1:")[0]
    assert "…" not in overall
    assert f"│ {100 * found.top[0].first:.1f} │" in overall
    assert (f"no room here for {dropped}; --json has them" in overall) == (dropped is not None)
