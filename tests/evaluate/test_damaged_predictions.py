"""Predictions that were damaged or edited: one line that names the file and the column."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from example_results import DATA, made_up

from headsmith.core.errors import DamagedFileError, InputError
from headsmith.core.records import with_hashes
from headsmith.evaluate.results import Predictions, ResultsFolder, load_results


def test_predictions_that_contradict_themselves_are_refused(tmp_path):
    result, predictions = made_up("a", 1)
    for name, value in (("topk_indices", 6), ("labels", -1), ("ranks", 9)):
        column = getattr(predictions.scores, name).copy()
        column.flat[0] = value
        broken = Predictions(predictions.ids, replace(predictions.scores, **{name: column}))
        ResultsFolder(tmp_path / name, DATA).add(result, broken)
        with pytest.raises(InputError, match=rf"predictions\.parquet: .*{name}: found classes outside of 0\.\.5"):
            load_results(tmp_path / name).predictions("a")


def edited(path: Path, **columns):
    """Change columns of a file of predictions."""
    table = pq.read_table(path)
    for name, change in columns.items():
        place, old = table.schema.get_field_index(name), table[name].combine_chunks()
        values = change(np.array(old.to_pylist()))
        table = table.set_column(place, table.schema.field(name), pa.array(values.tolist(), old.type))
    pq.write_table(table, path)


@pytest.mark.parametrize(
    ("column", "change", "message"),
    [
        ("rank", np.zeros_like, "rank: found 0 in row"),
        ("rank", lambda ranks: (ranks + 1) % 6, "rank: found"),
        ("label", lambda labels: (labels + 1) % 6, "rank: found"),
        ("max_probability", lambda values: values * 0 + 9, "max_probability: not the first of topk_scores"),
        ("max_probability", lambda values: values * np.nan, "max_probability: not the first of topk_scores"),
        ("topk_scores", lambda values: values + 9, "topk_scores: found .*, expected probabilities of 0 to 1"),
        ("topk_scores", lambda values: -values, "topk_scores: found .*, expected probabilities of 0 to 1"),
        ("sum_of_squares", lambda values: values + 2, "squares: found .*, expected probabilities of 0 to 1"),
        ("log_probability", np.abs, "log_probabilities: found .*, expected 0 or below"),
    ],
)
def test_edited_predictions_are_refused(tmp_path, column, change, message):
    result, predictions = made_up("a", 1)
    ResultsFolder(tmp_path, DATA).add(result, predictions)
    edited(tmp_path / "models" / result.key / "predictions.parquet", **{column: change})
    with pytest.raises(InputError, match=rf"predictions\.parquet: .*{message}.*; evaluate again") as error:
        load_results(tmp_path).predictions("a")
    assert "\n" not in str(error.value)


def test_probabilities_that_were_taken_away_are_missed(tmp_path):
    result, predictions = made_up("a", 1)
    ResultsFolder(tmp_path, DATA).add(result, predictions)
    path = tmp_path / "models" / result.key / "predictions.parquet"
    edited(path, topk_scores=lambda values: values * np.nan, max_probability=lambda values: values * np.nan)
    with pytest.raises(InputError, match=r"60 rows are without a softmax, its result\.json says 0; evaluate again"):
        load_results(tmp_path).predictions("a")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("summary", "nll"), 0.0123),
        (("summary", "brier"), 0.01),
        (("summary", "ece"), 0.3),
        (("summary", "aurc"), 0.2),
        (("summary", "mean_recall"), 0.9),
        (("classes", "mistaken", 0), 59),
        (("reliability", "accuracy", 14), 0.5),
    ],
)
def test_figures_that_do_not_follow_from_the_predictions_are_refused(tmp_path, place, value):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    (path,) = (tmp_path / "models").glob("*/result.json")
    values = json.loads(path.read_text())
    part = values
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path.write_text(json.dumps(with_hashes(values)))
    (tmp_path / "results.csv").unlink()  # whose figures are compared first
    with pytest.raises(DamagedFileError, match=rf"{place[0]}\.{place[1]}: not what follows from"):
        load_results(tmp_path).predictions(0)


def test_predictions_of_another_model_are_refused(tmp_path):
    folder = ResultsFolder(tmp_path, DATA)
    for name, seed, strength in (("weak", 1, 0.2), ("strong", 2, 4.0)):
        folder.add(*made_up(name, seed, strength))
    one, other = (tmp_path / "models" / key / "predictions.parquet" for key in ("weak-1", "strong-2"))
    one.write_bytes(other.read_bytes())
    with pytest.raises(InputError, match=r"parquet: \d+ rows are right by top-1, its result\.json says \d+"):
        load_results(tmp_path).correct()


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("topk_indices", "topk_indices missing, expected what `headsmith evaluate` writes"),
        ("rank", "columns id, label, .* found, rank missing"),
        ("group", "group missing"),
        (None, "topk_logits: .*list.* found, expected lists of one length"),
        ("note", "has no note headsmith.predictions"),
        ("all", "columns image, class found, id, label, rank, .*, group missing"),
        ("csv", "cannot be read as predictions"),
    ],
)
def test_predictions_of_another_kind_are_named_by_file_and_column(tmp_path, column, said):
    ResultsFolder(tmp_path, DATA).add(*made_up("a", 1))
    path = tmp_path / "models" / "a-1" / "predictions.parquet"
    table = pq.read_table(path)
    if column is None:
        values = pa.array(table["topk_logits"].to_pylist(), pa.list_(pa.float32()))
        table = table.set_column(table.column_names.index("topk_logits"), "topk_logits", values)
    elif column == "note":
        table = table.replace_schema_metadata(None)
    elif column == "all":
        table = pa.table({"image": ["a.png"], "class": ["ant"]})
    elif column != "csv":
        table = table.drop_columns(column)
    pq.write_table(table, path)
    if column == "csv":
        path.write_text("id,label\na,0\n")
    with pytest.raises(DamagedFileError, match=rf"predictions\.parquet: .*{said}.*evaluate again") as error:
        load_results(tmp_path).predictions("a")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("id", lambda ids: np.roll(ids, 1)),
        ("id", lambda ids: np.repeat(ids[::2], 2)[: len(ids)]),
        ("id", lambda ids: np.char.add(ids, "x")),
        ("group", lambda groups: np.roll(groups, 1)),
        ("topk_logits", lambda logits: logits - 1e-6),
    ],
)
def test_ids_and_groups_are_covered_by_the_hash_of_a_result(tmp_path, column, change):
    result, predictions = made_up("a", 1, groups=True)
    ResultsFolder(tmp_path, DATA).add(replace(result, predictions_sha256=predictions.digest), predictions)
    path = tmp_path / "models" / result.key / "predictions.parquet"
    pq.write_table(pq.read_table(path), path, compression="gzip")  # the same content
    assert load_results(tmp_path).predictions("a").ids == predictions.ids
    edited(path, **{column: change})
    with pytest.raises(DamagedFileError, match=r"predictions\.parquet: not what the evaluation wrote \(hash differs\)"):
        load_results(tmp_path).predictions("a")
