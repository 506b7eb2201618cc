"""The figures of the page are those of scikit-learn and statsmodels, and nothing in it is taken for HTML."""

import base64
import io
import json
import re
from itertools import combinations

import numpy as np
import pytest
from html_tree import parse
from made_up_results import CLASSES, FEW, Model, made_up_results
from PIL import Image
from sklearn.calibration import calibration_curve
from sklearn.metrics import confusion_matrix, recall_score, top_k_accuracy_score
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from headsmith import InputError, write_report
from headsmith.core.records import with_hashes
from headsmith.evaluate.report.class_differences import packed
from headsmith.evaluate.result import FailedModel

NAMES = [model.name for model in FEW]


def percent(share):
    return f"{100 * share:.1f}"


def points(difference):
    return f"{100 * difference:+.1f}".replace("-", "−").replace("+0.0", "0.0")


def correct(made, name):
    return made.logits[name].argmax(axis=1) == made.labels


def exact_p(first, second):
    table = [[(first & second).sum(), (first & ~second).sum()], [(~first & second).sum(), (~first & ~second).sum()]]
    return mcnemar(table, exact=True).pvalue


def p_text(p):
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".")


def test_ranking(made):
    rows = {row[0].split(" ")[0]: row for row in made.tree.one("table", id="ranking-table").rows()}
    adjusted = multipletests(
        [exact_p(correct(made, NAMES[0]), correct(made, name)) for name in NAMES[1:]], method="holm"
    )
    for name, p in zip(NAMES, [None, *adjusted[1]], strict=True):
        logits, row = made.logits[name], rows[name]
        top1, top5 = (top_k_accuracy_score(made.labels, logits, k=k) for k in (1, 5))
        low, high = proportion_confint(round(top1 * 600), 600, method="wilson")
        recall = recall_score(made.labels, logits.argmax(axis=1), average="macro")
        assert row[1:3] == [percent(top1), f"{percent(low)} to {percent(high)}"]
        assert row[3] == "best" if p is None else row[3].endswith(p_text(p))
        assert row[4:6] == [percent(top5), percent(recall)]
    assert rows["close"][3].startswith("tied")
    assert rows["best"][-1] == f"90.0 {points(correct(made, 'best').mean() - 0.9)}, outside"


def test_pairs(made):
    rows = made.tree.one("table", _class="matrix").one("tbody").all("tr")
    pairs = list(combinations(NAMES, 2))
    p_values = [exact_p(correct(made, one), correct(made, other)) for one, other in pairs]
    for (one, other), p in zip(pairs, multipletests(p_values, method="holm")[1], strict=True):
        cell = rows[NAMES.index(one)].all("td")[NAMES.index(other)]
        assert cell.text == points(correct(made, one).mean() - correct(made, other).mean())
        assert cell.attributes["title"].startswith(p_text(p))
        assert cell.attributes.get("class") == ("ahead" if p < 0.05 else None)


def test_groups(made):
    rows = {row[0]: row[1:] for row in made.tree.one("table", id="group-table").rows()}
    night = np.arange(600) % 3 > 0
    for name in NAMES:
        for group, cell in zip((~night, night), rows[name], strict=True):
            low, high = proportion_confint(correct(made, name)[group].sum(), group.sum(), method="wilson")
            assert cell == f"{percent(correct(made, name)[group].mean())} {percent(low)} to {percent(high)}"


@pytest.mark.parametrize(("field", "group"), [("snow_", "snow"), ("x" * 9, "fog"), (None, "fog")])
def test_groups_that_are_not_those_of_the_inputs_are_refused(tmp_path, field, group):
    made_up_results(tmp_path, FEW, class_names=CLASSES, n=60, groups=["fog", "snow"] * 30)
    path = next(tmp_path.glob("models/*/result.json"))
    result = json.loads(path.read_text())
    moved = result["groups"].pop(group)
    result["groups"] |= {} if field is None else {field: moved}
    path.write_text(json.dumps(with_hashes(result)))
    with pytest.raises(InputError, match="its groups are not those of its inputs; evaluate again"):
        write_report(tmp_path)


def test_a_classifier_measured_before_there_were_groups_has_empty_cells(tmp_path):
    made_up_results(tmp_path, FEW[:2], class_names=CLASSES, n=60)
    made_up_results(tmp_path, FEW[:1], class_names=CLASSES, n=60, groups=["fog", "snow"] * 30)  # the first again
    rows = {row[0]: row[1:] for row in parse(write_report(tmp_path).read_text()).one("table", id="group-table").rows()}
    assert all(rows[FEW[0].name]) and not any(rows[FEW[1].name])


def test_reliability(made):
    panels = made.tree.one("div", _class="panels").all("figure")
    for name, panel in zip(NAMES, panels, strict=True):
        powers = np.exp(made.logits[name] - made.logits[name].max(axis=1, keepdims=True))
        sure = (1 / powers.sum(axis=1)).clip(max=1)
        accuracy, confidence = calibration_curve(correct(made, name), sure, n_bins=15)
        corners = np.array([corner.split(",") for corner in panel.one("polyline").attributes["points"].split()], float)
        np.testing.assert_allclose(corners[:, 0], 100 * confidence, atol=0.02)
        np.testing.assert_allclose(corners[:, 1], 100 - 100 * accuracy, atol=0.02)
        n, _ = np.histogram(sure, bins=np.linspace(0, 1, 16))
        low, high = proportion_confint(np.round(accuracy * n[n > 0]), n[n > 0], method="wilson")
        bars = [bar.attributes for bar in panel.all("line", _class="spread")]
        np.testing.assert_allclose(
            [[float(bar["y1"]), float(bar["y2"])] for bar in bars], 100 - 100 * np.c_[low, high], atol=0.02
        )


def test_reliability_of_few_images_has_fewer_bins_with_their_intervals(tmp_path):
    logits = made_up_results(tmp_path, FEW[:1], n=82)[FEW[0].name]
    page = parse(write_report(tmp_path).read_text(encoding="utf-8"))
    powers = np.exp(logits.astype(float))
    n, _ = np.histogram(powers.max(axis=1) / powers.sum(axis=1), bins=5, range=(0, 1))
    panel = page.one("div", _class="panels")
    assert [title.text.split(" of ")[-1] for title in panel.all("title")] == [str(count) for count in n if count]
    bars = [(float(bar.attributes["y1"]), float(bar.attributes["y2"])) for bar in panel.all("line", _class="spread")]
    dots = [float(dot.attributes["cy"]) for dot in panel.all("circle")]
    assert all(low >= dot >= high and low - high > 5 for (low, high), dot in zip(bars, dots, strict=True))


HIDDEN = {
    "\x1b[2J": r"\x1b[2J",
    "\u202egpj.exe": r"\u202egpj.exe",
    "a\u2028b": r"a\u2028b",
    "zero\u200bwidth": r"zero\u200bwidth",
}


@pytest.mark.parametrize(("text", "shown"), HIDDEN.items())
def test_control_characters_are_visible_wherever_they_stand(tmp_path, text, shown):
    models = (Model(f"first {text}", 3.0, warnings=(f"warning {text}",)), Model(f"second {text}", 2.0))
    failed = (FailedModel(f"broken {text}", "broken", f"error {text}", "0" * 16),)
    classes = [f"class {text}", "other", f"third {text}"]
    source = {"data": f"folder {text}"}
    groups = [f"group {text}"] * 30
    made_up_results(tmp_path, models, class_names=classes, n=30, source=source, failed=failed, groups=groups)
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert text not in page
    tree = parse(page)
    for place in ("first", "second", "broken", "warning", "error", "class", "group", "folder"):
        assert f"{place} {shown}" in tree.text
    bits = json.loads(tree.one("script", id="packed").text)
    options = [option.attributes["value"] for option in tree.one("select", id="first-model").all("option")]
    assert list(bits["correct"]) == options == [f"first {shown}", f"second {shown}"]
    assert bits["classes"][0] == f"class {shown}"


def test_names_that_look_the_same_once_visible_are_told_apart(tmp_path):
    made_up_results(tmp_path, (Model("a\x1b", 3.0), Model(r"a\x1b", 2.0)), n=30)
    tree = parse(write_report(tmp_path).read_text(encoding="utf-8"))
    names = [row[0] for row in tree.one("table", id="ranking-table").rows()]
    assert names == [r"a\x1b (00000000)", r"a\x1b (00000001)"]


def test_class_by_class(made):
    rows = {row[0]: row for row in made.tree.one("table", id="class-table").rows()}
    recalls = [recall_score(made.labels, made.logits[name].argmax(axis=1), average=None) for name in NAMES[:2]]
    for index, name in enumerate(CLASSES):
        first, second = recalls[0][index], recalls[1][index]
        n = str((made.labels == index).sum())
        assert rows[name][1:5] == [n, percent(first), percent(second), points(first - second)]


def test_bits_are_the_right_answers(made):
    bits = json.loads(made.tree.one("script", id="packed").text)
    assert bits["classes"] == CLASSES
    assert bits["n"] == np.bincount(made.labels).tolist()
    order = np.argsort(made.labels, kind="stable")
    for name in NAMES:
        data = np.frombuffer(base64.b64decode(bits["correct"][name]), np.uint8)
        unpacked = np.unpackbits(data, bitorder="little", count=600)
        np.testing.assert_array_equal(unpacked, correct(made, name)[order])


def test_classes_without_rows_are_left_out():
    bits = packed(np.array([2, 0, 2]), {"a": np.array([True, False, True])}, ["x", "y", "z"])
    assert (bits["classes"], bits["n"]) == (["x", "z"], [1, 2])


def test_confusions(made):
    details = made.tree.one("section", id="confusions").all("details")
    for name, shown in zip(NAMES, details, strict=True):
        matrix = confusion_matrix(made.labels, made.logits[name].argmax(axis=1))
        both = np.triu(matrix + matrix.T, k=1)
        counts = [list(map(int, re.findall(r"\d+", pair.one("small").text))) for pair in shown.all("p")]
        assert [there + back for there, _, back in counts] == sorted(both[both > 0], reverse=True)[:6]


def test_the_pareto_front_is_named(made):
    latency, size = made.tree.one("div", _class="charts").all("figcaption")
    assert latency.text.endswith("than far/<i>model</i>, close, best.")
    assert size.text.endswith("than far/<i>model</i>, best.")


def test_names_are_text_wherever_they_stand(made):
    tags = [tag for tag in ("i", "b", "script") for _ in made.tree.all(tag)]
    bars = len(CLASSES)
    assert tags.count("i") == bars
    assert {element.attributes.get("data-name") for element in made.tree.all("b")} == {"first", "second"}
    assert tags.count("script") == 3
    text = made.page.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "measured on a &lt;b&gt;small&lt;/b&gt; set" in text
    assert "broken.onnx: &lt;not&gt; an ONNX file" in text


def test_nothing_is_fetched(made):
    addresses = [value for e in elements(made.tree) for name, value in e.attributes.items() if name in ("href", "src")]
    assert all(address.startswith(("#", "data:")) for address in addresses)
    styles = made.tree.one("style").text
    assert "url(" not in styles
    assert "@import" not in styles
    assert not re.search(r"https?:|fetch\(|XMLHttpRequest", made.page.read_text(encoding="utf-8"))
    policy = made.tree.one("meta", **{"http-equiv": "Content-Security-Policy"}).attributes["content"]
    assert policy.startswith("default-src 'none'; img-src data:;")


def elements(root):
    for child in root.children:
        if not isinstance(child, str):
            yield child
            yield from elements(child)


def test_every_table_and_control_says_what_it_is(made):
    ids = {e.attributes["id"] for e in elements(made.tree) if "id" in e.attributes}
    assert len(ids) == sum("id" in e.attributes for e in elements(made.tree))
    for region in made.tree.all("div", role="region"):
        assert region.attributes["aria-labelledby"] in ids
        assert region.attributes["tabindex"] == "0"
    labelled = {label.attributes["for"] for label in made.tree.all("label")}
    assert {e.attributes["id"] for tag in ("input", "select") for e in made.tree.all(tag)} == labelled
    for link in made.tree.all("a"):
        assert link.attributes["href"].removeprefix("#") in ids


def test_how_it_was_measured(made):
    text = made.tree.one("section", id="method").text
    for wanted in ("made/up/val", "f" * 64, "onnxruntime 1.31.0", "CPUExecutionProvider", "600 scored", "left out"):
        assert wanted in text


def test_one_model_without_speed_and_without_images(tmp_path):
    made_up_results(tmp_path, (Model("alone", 3.0, latency=0.0),), n=90)
    tree = parse(write_report(tmp_path, out=tmp_path / "pages" / "one.html").read_text(encoding="utf-8"))
    assert tree.one("h1").text == "alone"
    assert "Speed was not measured" in tree.one("section", id="cost").text
    assert "Pictures are missing" in tree.one("section", id="confusions").text
    assert tree.all("section", id="pairs") == []
    assert len(tree.one("table", id="class-table").rows()) == 10


def test_two_that_cannot_be_told_apart(tmp_path):
    made_up_results(tmp_path, FEW[:2], n=40)
    page = parse(write_report(tmp_path).read_text(encoding="utf-8"))
    assert page.one("h1").text == "Both classifiers are tied for the best"
    assert page.one("p", _class="lede").text.endswith("cannot be told from it on these images.")


def test_several_right_classes(tmp_path):
    made_up_results(tmp_path, FEW, n=90, multi_label=True)
    tree = parse(write_report(tmp_path).read_text(encoding="utf-8"))
    anchors = [link.attributes["href"] for link in tree.one("nav").all("a")]
    assert anchors == ["#ranking", "#warnings", "#cost", "#pairs", "#reliability", "#method"]
    assert [f"#{section.attributes['id']}" for section in tree.all("section")] == anchors


def test_pictures_of_mistakes(tmp_path):
    """Images that are blue, with red margins that a square leaves out."""
    drawn = Image.new("RGB", (60, 40), "red")
    drawn.paste("blue", (6, 0, 54, 40))
    labels = np.arange(60) % 2
    ids = [f"{'ab'[label]}/{row:02d}.png" for row, label in enumerate(labels)]
    for path in (tmp_path / "images" / name for name in ids):
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn.save(path)
    source = {"data": str(tmp_path / "images")}
    results = tmp_path / "results"
    made_up_results(results, FEW[2:], class_names=["a", "b"], n=60, labels=labels, ids=ids, source=source)
    pictures = parse(write_report(results).read_text(encoding="utf-8")).all("img")
    assert len(pictures) == 4
    for picture in pictures:
        assert picture.attributes["alt"] in ("a, answered b", "b, answered a")
        data = base64.b64decode(picture.attributes["src"].removeprefix("data:image/jpeg;base64,"))
        with Image.open(io.BytesIO(data)) as image:
            assert image.size == (96, 96)
            assert np.asarray(image)[..., 2].min() > 200
            assert np.asarray(image)[..., 0].max() < 60


def test_nothing_was_measured(tmp_path):
    made_up_results(tmp_path, (), failed=(FailedModel("broken", "broken.onnx", "not a model", "0" * 16),))
    with pytest.raises(InputError, match="no model in it was measured; broken: not a model"):
        write_report(tmp_path)


def test_bad_paths(made, tmp_path):
    with pytest.raises(InputError, match="holds no results"):
        write_report(tmp_path)
    with pytest.raises(InputError, match="out .*: is a folder, expected the name of a page"):
        write_report(made.folder, out=tmp_path)
