"""The page in Chromium: it fits on a phone, and its tables are sorted, filtered and recomputed there."""

import shutil
from pathlib import Path

import pytest
from browser import CHROMIUM, posted_by
from made_up_results import CLASSES, FEW
from sklearn.metrics import recall_score

DRIVER = Path(__file__).with_name("in_a_browser.html")


@pytest.fixture(scope="module")
def seen(made, need, tmp_path_factory):
    need(CHROMIUM, "Chromium")
    root = tmp_path_factory.mktemp("site")
    shutil.copy(made.page, root / "report.html")
    shutil.copy(DRIVER, root)
    return posted_by(root, DRIVER.name)


def test_nothing_is_wider_than_the_screen(seen):
    assert {width: found for width, found in seen["widths"].items() if found > int(width)} == {}


def test_no_number_of_a_table_is_cut_by_the_edge_of_a_phone(seen):
    assert seen["cut"] == {width: [[], [], []] for width in ("320", "390")}


def test_it_complains_of_nothing(seen):
    assert seen["complaints"] == []


def test_sorting(seen):
    accuracies = [float(row[1]) for row in seen["sorted"]]
    assert accuracies == sorted(accuracies)
    assert len(set(accuracies)) == len(FEW)
    assert seen["ariaSort"] == "ascending"


def test_two_models_that_were_chosen(seen, made):
    first, second = FEW[2].name, FEW[1].name
    assert seen["heading"] == first
    recalls = [recall_score(made.labels, made.logits[name].argmax(axis=1), average=None) for name in (first, second)]
    shown = {row[0]: row[2:5] for row in seen["classes"]}
    for name, one, other in zip(CLASSES, *recalls, strict=True):
        assert shown[name] == [
            f"{100 * one:.1f}",
            f"{100 * other:.1f}",
            f"{100 * (one - other):+.1f}".replace("-", "−"),
        ]
    ahead = sum(recalls[0] > recalls[1])
    assert f"{first} is ahead in {ahead} classes" in seen["finding"]


def test_filtering(seen):
    assert seen["filtered"] == [CLASSES[1]]
    assert seen["count"] == "1 of 6 shown"
