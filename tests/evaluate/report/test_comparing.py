"""Two models side by side: the figures are statsmodels' and scikit-learn's."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from made_up_results import CLASSES, FEW, made_up_results
from sklearn.metrics import recall_score, top_k_accuracy_score
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from typer.testing import CliRunner

from headsmith import InputError, compare, write_report
from headsmith.cli import app

BEST, CLOSE, FAR = (model.name for model in FEW)


def right(made, name, k=1):
    own = np.take_along_axis(made.logits[name], made.labels[:, None], axis=1)
    return (made.logits[name] > own).sum(axis=1) < k


def exact_p(first, second):
    table = [[(first & second).sum(), (first & ~second).sum()], [(~first & second).sum(), (~first & ~second).sum()]]
    return mcnemar(table, exact=True).pvalue


@pytest.fixture(scope="module")
def comparison(made):
    return compare(BEST, FAR, results=made.folder, out=made.folder / "flips.csv")


def test_overall(made, comparison):
    assert (comparison.first, comparison.second, comparison.n) == (BEST, FAR, 600)
    for top in comparison.top:
        accuracies = [top_k_accuracy_score(made.labels, made.logits[name], k=top.k) for name in (BEST, FAR)]
        assert [top.first, top.second] == pytest.approx(accuracies)
        assert top.paired.difference == pytest.approx(accuracies[0] - accuracies[1])
        assert top.paired.p == pytest.approx(exact_p(right(made, BEST, top.k), right(made, FAR, top.k)))
        assert top.bootstrap == pytest.approx((top.paired.low, top.paired.high), abs=0.01)


def test_classes_and_groups(made, comparison):
    recalls = [recall_score(made.labels, made.logits[name].argmax(axis=1), average=None) for name in (BEST, FAR)]
    expected = dict(zip(CLASSES, recalls[0] - recalls[1], strict=True))
    differences = {part.name: part.paired.difference for part in comparison.classes}
    assert differences == pytest.approx(expected)
    sizes = [abs(part.paired.difference) for part in comparison.classes]
    assert sizes == sorted(sizes, reverse=True)
    night = np.arange(600) % 3 > 0
    raw = [exact_p(right(made, BEST)[rows], right(made, FAR)[rows]) for rows in (~night, night)]
    assert [part.name for part in comparison.groups] == ["day", "night"]
    assert [part.p for part in comparison.groups] == pytest.approx(multipletests(raw, method="holm")[1])
    assert [part.paired.n for part in comparison.groups] == [200, 400]


def test_every_flip_is_in_the_file(made, comparison):
    answers = {name: made.logits[name].argmax(axis=1) for name in (BEST, FAR)}
    rows = np.flatnonzero(answers[BEST] != answers[FAR])
    with (made.folder / "flips.csv").open(encoding="utf-8", newline="") as file:
        flips = list(csv.DictReader(file))
    found = {(flip["label"], flip["first"], flip["second"], int(flip["id"][-9:-4])) for flip in flips}
    assert found == {
        (CLASSES[made.labels[row]], CLASSES[answers[BEST][row]], CLASSES[answers[FAR][row]], row) for row in rows
    }
    one_is_right = [flip["first_right"] != flip["second_right"] for flip in flips]
    assert one_is_right == sorted(one_is_right, reverse=True)


def test_two_folders_with_one_model_each(made, tmp_path):
    for name, model in zip("ab", FEW, strict=False):
        made_up_results(tmp_path / name, (model,), n=60)
    folders = [str(tmp_path / name) for name in "ab"]
    assert compare(*folders).n == 60
    assert (compare(*folders).first, compare(*folders).second) == (BEST, CLOSE)


def test_bad_input(made, tmp_path):
    with pytest.raises(InputError, match="holds no model 'nobody'"):
        compare("nobody", FAR, results=made.folder)
    with pytest.raises(InputError, match="holds no model"):
        compare("a name too long for a path" * 20, FAR, results=made.folder)
    with pytest.raises(InputError, match=r"holds 3 models .*, expected one; name it, with `results`"):
        compare(str(made.folder), FAR, results=made.folder)
    made_up_results(tmp_path / "other", FEW[:1], n=50)
    with pytest.raises(InputError, match=r"600 inputs .* 50 of .* not the same; evaluate both on the same data"):
        compare(BEST, str(tmp_path / "other"), results=made.folder)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command(made, comparison):
    output = run("compare", BEST, FAR, "--results", made.folder)
    assert "A is better by more than chance" in output
    assert "<script>" in output
    assert f"flips: {len(comparison.flips)} inputs have different answers" in output
    said = json.loads(run("compare", BEST, FAR, "--results", made.folder, "--json"))
    assert said["top"][0]["paired"]["p"] == pytest.approx(comparison.top[0].paired.p)
    assert len(said["flips"]) == len(comparison.flips)
    assert "cannot tell A and B apart" in run("compare", BEST, CLOSE, "--results", made.folder)


def test_the_report_command(made, tmp_path):
    page = tmp_path / "page.html"
    assert run("report", made.folder, "--out", page).split() == [str(page)]
    assert Path(page).read_text(encoding="utf-8") == made.page.read_text(encoding="utf-8")


def foreign(kind: str, path: Path) -> None:
    """Something at a path that neither command wrote."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "array":
        with path.open("wb") as file:
            np.save(file, np.zeros(3))
    else:
        path.write_text({"page": "<!doctype html>\n<title>Thesis</title>\n", "table": "model,top1\na,50\n"}[kind])


@pytest.mark.parametrize("kind", ["page", "table", "array", "pipe"])
def test_only_what_a_command_wrote_is_replaced(made, tmp_path, kind):
    out = tmp_path / "file"
    foreign(kind, out)
    expected = "is a named pipe, expected a regular file" if kind == "pipe" else "exists and is not .*nothing else is"
    before = None if kind == "pipe" else out.read_bytes()
    for write in (lambda: compare(BEST, FAR, results=made.folder, out=out), lambda: write_report(made.folder, out=out)):
        with pytest.raises(InputError, match=rf"file: {expected}"):
            write()
    assert kind == "pipe" or out.read_bytes() == before
    with pytest.raises(InputError, match=r"results\.csv: exists and is not"):
        compare(BEST, FAR, results=made.folder, out=made.folder / "results.csv")


def test_an_older_one_is_replaced(made, tmp_path):
    for _ in range(2):
        compare(BEST, FAR, results=made.folder, out=tmp_path / "flips.csv")
        write_report(made.folder, out=tmp_path / "page.html")
    (tmp_path / "empty").touch()
    compare(BEST, FAR, results=made.folder, out=tmp_path / "empty")
    with pytest.raises(InputError, match=r"page\.html: exists and is not a CSV file of"):
        compare(BEST, FAR, results=made.folder, out=tmp_path / "page.html")
    with pytest.raises(InputError, match="is a folder, expected"):
        compare(BEST, FAR, results=made.folder, out=tmp_path)
