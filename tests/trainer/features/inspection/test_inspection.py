"""What `inspect` tells of a feature set: planted faults, counted by numpy and by hand."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.coded_warnings import CodedWarning
from headsmith.core.errors import InputError
from headsmith.trainer import FeatureSet, inspect_features
from headsmith.trainer.features.columns import read_columns

PIXELS, LABELS = load_digits(return_X_y=True)
DISTINCT = np.unique(PIXELS, axis=0, return_index=True)[1]
runner = CliRunner()


def digits(out, **options):
    rows = np.sort(DISTINCT)
    return FeatureSet.from_arrays(PIXELS[rows].astype(np.float32), LABELS[rows], out=out, **options)


def change(path, split, row, value, column="features"):
    """Write into the mapped file itself."""
    columns = read_columns(path / split)
    (file,) = (path / split).glob("data-*.arrow")
    array = columns.features if column == "features" else columns.labels
    content = bytearray(file.read_bytes())
    start = content.index(array.tobytes()) + row * array.strides[0]
    changed = np.full_like(array[row], value).tobytes()
    file.write_bytes(content[:start] + changed + content[start + len(changed) :])


def test_a_sound_set(tmp_path):
    features = digits(tmp_path / "set")
    found = inspect_features(features.path)
    assert found.problems == found.warnings == []
    assert (found.classes, found.feature_dim, found.dtype, found.backbone) == (10, 64, "float32", None)
    for split in features.splits:
        rows, labels = features.arrays(split)
        report = found.splits[split]
        norms = np.linalg.norm(rows.numpy(), axis=1)
        assert report.norm == pytest.approx((norms.min(), norms.mean(), norms.max()), rel=1e-6)
        assert list(report.histogram.values()) == np.bincount(labels).tolist()
        assert report.rows == len(labels)
    train, val = features.arrays("train"), features.arrays("val")
    peer = KNeighborsClassifier(5, metric="cosine", weights="distance").fit(*train).score(*val)
    assert found.neighbours.accuracy == pytest.approx(peer)
    assert found.neighbours.accuracy > 0.95
    result = runner.invoke(app, ["inspect", str(features.path)])
    assert result.exit_code == 0
    assert "nothing that would spoil a training" in result.output


def test_what_load_refuses_is_told_with_its_rows(tmp_path):
    features = digits(tmp_path / "set")
    change(features.path, "train", 3, np.nan)
    change(features.path, "train", 8, np.nan)
    change(features.path, "val", 5, np.inf)
    change(features.path, "test", 1, 77, "labels")
    with pytest.raises(InputError):
        FeatureSet.load(features.path)
    found = inspect_features(features.path)
    assert (found.splits["train"].nan.count, found.splits["train"].nan.rows) == (2, [3, 8])
    assert found.splits["val"].infinite.ids == [features.ids("val")[5]]
    assert (found.splits["test"].unlabelled.rows, found.splits["val"].nan.count) == ([1], 0)
    name, problems = features.ids("train")[3], list(map(str, found.problems))
    assert any(text.startswith(f"nan: train: 2 rows have NaN features: row 3 ({name}), row 8") for text in problems)
    assert any("unlabelled: test: 1 row has no label among the classes: row 1" in text for text in problems)
    assert any(text.startswith("damaged: test: ids and labels are not those that were written") for text in problems)
    result = runner.invoke(app, ["inspect", str(features.path), "--json"])
    assert result.exit_code == 1
    assert json.loads(result.output)["splits"]["train"]["nan"] == {
        "count": 2,
        "rows": [3, 8],
        "ids": [features.ids("train")[3], features.ids("train")[8]],
    }
    assert "problem (nan): train: 2 rows have NaN" in runner.invoke(app, ["inspect", str(features.path)]).output


def test_zero_and_repeated_rows(tmp_path):
    rows = digits(None)
    features = {split: rows.arrays(split)[0].numpy().copy() for split in rows.splits}
    features["train"][[4, 6]] = 0
    features["train"][[10, 12]] = 2
    labels = {split: rows.arrays(split)[1] for split in rows.splits}
    found = inspect_features(FeatureSet.from_arrays(features, labels, out=tmp_path / "set").path)
    report = found.splits["train"]
    assert (report.zero.rows, report.duplicates.rows) == ([4, 6], [12])
    assert found.problems == []
    assert any(
        str(one).startswith("zero-rows: train: 2 rows (0.14%) are zero throughout: row 4") for one in found.warnings
    )
    shown = runner.invoke(app, ["inspect", str(tmp_path / "set")]).output
    assert "nothing that would spoil a training, but 2 warnings above" in shown


@pytest.mark.parametrize("kind", ["imported", "extracted"])
def test_a_damaged_file_is_told(tmp_path, request, kind):
    path = tmp_path / "set"
    if kind == "imported":
        digits(path)
    else:
        shutil.copytree(request.getfixturevalue("tiny_run").record.features.path, path)
    assert inspect_features(path).problems == []
    change(path, "val", 1, read_columns(path / "val").features[0])
    FeatureSet.load(path)  # which does not see it
    found = inspect_features(path)
    assert {split: report.as_written for split, report in found.splits.items()} == {
        "train": True,
        "val": False,
        "test": True,
    }
    [problem] = found.problems
    assert problem.message.startswith("val: features are not those that were written")
    assert runner.invoke(app, ["inspect", str(path)]).exit_code == 1


def test_absurd_magnitudes(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4)) * (1, 1, 1, 1e8)  # another unit is not absurd
    rows[:, 0] *= rng.random(300) < 0.1  # nor are columns that are mostly 0
    features = FeatureSet.from_arrays(rows, np.arange(300) % 3)
    assert {report.absurd.count for report in inspect_features(features).splits.values()} == {0}
    changed = features.arrays("train")[0]
    changed[7, 2], changed[9, 0] = -1e30, 1e7
    found = inspect_features(features)
    assert found.splits["train"].absurd.rows == [7, 9]
    assert found.splits["train"].norm[2] == pytest.approx(1e30)  # whose square no float32 holds
    names = [features.ids("train")[row] for row in (7, 9)]
    rows = f"row 7 ({names[0]}), row 9 ({names[1]})"
    expected = f"outliers: train: 2 rows have features over 1,000,000 times the usual ones: {rows}"
    assert expected in map(str, found.problems)


def test_leaks(tmp_path):
    rng = np.random.default_rng(0)
    rows = {split: rng.normal(size=(30, 4)) for split in ("train", "val", "test")}
    labels = dict.fromkeys(rows, np.arange(30) % 3)
    rows["test"][7] = rows["train"][2]
    rows["test"][9] = rows["val"][4]
    ids = {split: [f"{split}{row}" for row in range(30)] for split in rows}
    ids["val"][1] = "train29"
    found = inspect_features(FeatureSet.from_arrays(rows, labels, ids=ids, out=tmp_path / "set").path)
    assert (found.leaked_ids.count, found.leaked_ids.ids) == (1, ["train29"])
    assert {split: leak.rows for split, leak in found.leaked_rows.items()} == {"test": [7, 9]}
    assert "shared-ids: 1 id is in more than one split: train29" in map(str, found.problems)
    expected = "leak: test: 2 rows (6.67%) are equal to rows of an earlier split: row 7 (test7), row 9 (test9)"
    assert expected in map(str, found.problems)


def test_labels_of_other_rows_are_a_problem(tmp_path):
    rows = np.sort(DISTINCT)
    wrong = np.random.default_rng(1).permutation(np.arange(len(rows)) % 7)
    features = FeatureSet.from_arrays(PIXELS[rows], wrong, out=tmp_path / "set", held_out_share=0.3)
    near = inspect_features(features.path).neighbours
    (x, y), (val, labels) = features.arrays("train"), features.arrays("val")
    named = KNeighborsClassifier(5, metric="cosine", weights="distance").fit(x, y).predict(val) == labels.numpy()
    with pytest.warns(UserWarning, match="zero standard deviation"):  # which inspect keeps to itself
        means = make_pipeline(StandardScaler(), NearestCentroid()).fit(x, y).score(val, labels)
    p = binomtest(int(named.sum()), len(labels), near.shuffled, alternative="greater").pvalue
    assert near.shuffled == pytest.approx(1 / 7, abs=0.01)
    assert (near.accuracy, near.p_value, near.means) == pytest.approx((named.mean(), p, means))
    result = runner.invoke(app, ["inspect", str(features.path)])
    assert result.exit_code == 1
    of = f"({near.shuffled:.1%}, p = {p:.2g})"
    numbers = f"{named.mean():.1%} of {len(labels)} val rows, no better than in random order {of}"
    assert "rows named rightly (the same answers in random order: " in " ".join(result.output.split())
    assert f"problem (chance): the 5 nearest training rows name the class of {numbers}" in result.output
    assert f"class means ({means:.1%}): are these the labels of these rows?" in result.output


def with_test(change, rows=None):
    """Digits whose test split was changed."""
    sound = digits(None, held_out_share=0.3)
    features = {split: sound.arrays(split)[0].numpy().copy() for split in sound.splits}
    labels = {split: sound.arrays(split)[1].numpy().copy() for split in sound.splits}
    features["test"], labels["test"] = change(features["test"][:rows], labels["test"][:rows])
    return FeatureSet.from_arrays(features, labels)


def accuracies(model, features):
    model.fit(*features.arrays("train"))
    return {split: model.score(*features.arrays(split)) for split in ("val", "test")}


@pytest.mark.parametrize("rows", [60, 500])
def test_labels_of_other_rows_in_test_alone_are_a_problem_of_test(rows):
    features = with_test(lambda x, y: (x, np.random.default_rng(0).permutation(y)), rows)
    found = inspect_features(features)
    peer = accuracies(KNeighborsClassifier(5, metric="cosine", weights="distance"), features)
    near = {split: found.splits[split].neighbours for split in ("val", "test")}
    assert {split: one.accuracy for split, one in near.items()} == pytest.approx(peer)
    assert peer["test"] < 0.25 < 0.9 < peer["val"]
    assert found.neighbours == near["val"]
    [problem] = found.problems
    assert f"{peer['test']:.1%} of {near['test'].n} test rows, no better than in random order" in problem.message
    assert f"but that of {peer['val']:.1%} of {near['val'].n} val rows: are these the labels" in problem.message
    with pytest.warns(UserWarning, match="zero standard deviation"):
        means = accuracies(make_pipeline(StandardScaler(), NearestCentroid()), features)
    assert near["test"].means == pytest.approx(means["test"])


def test_features_of_another_order_in_test_are_warned_of():
    features = with_test(lambda x, y: (x[:, ::-1], y))  # digits that are turned round: some are digits still
    found = inspect_features(features)
    peer = accuracies(KNeighborsClassifier(5, metric="cosine", weights="distance"), features)
    assert found.problems == []
    [warning] = found.warnings
    assert f"class of {peer['test']:.1%} of " in warning.message
    assert f"test rows, but that of {peer['val']:.1%} of " in warning.message
    assert found.splits["test"].neighbours.below == "val"


@pytest.mark.parametrize(("times", "told"), [(1000, True), (1 / 1000, True), (3, False), (1 / 3, False)])
def test_another_scale_in_test_is_a_problem(times, told):
    found = inspect_features(with_test(lambda x, y: (x * times, y)))
    assert found.splits["test"].neighbours.accuracy > 0.95  # angles do not tell
    norms = [np.median(np.linalg.norm(digits(None).arrays(split)[0], axis=1)) for split in ("train", "test")]
    assert [found.splits[split].typical_norm for split in ("train", "test")] == pytest.approx(
        [norms[0], norms[1] * times], rel=0.05
    )
    assert [str(one).startswith("scale: test: the median norm is") for one in found.problems] == [True] * told


def in_a_mixture(rng):
    """Fifty classes that overlap: one row in five is named rightly."""
    labels = np.arange(3000) % 50
    return rng.normal(size=(3000, 128)) + rng.normal(size=(50, 128))[labels] / 4, labels


def in_one_column_of_many(rng):
    """Two classes whose neighbours are anybody, but whose means differ."""
    labels = np.arange(3000) % 2
    return rng.normal(size=(3000, 512)) + 1000 + 0.7 * np.eye(512)[0] * labels[:, None], labels


def on_a_line(rng):
    """One feature: all angles are the same."""
    labels = np.arange(3000) % 3
    return 10 + rng.normal(size=(3000, 1)) + labels[:, None], labels


def with_a_rare_class(rng):
    """To name the common class always is right in 19 of 20 rows."""
    labels = (np.arange(3000) % 20 == 0).astype(int)
    return rng.normal(size=(3000, 8)) + labels[:, None] * np.eye(8)[0], labels


def of_few_rows(rng):
    """Too few to tell anything from guessing."""
    return rng.normal(size=(60, 8)), np.arange(60) % 2


def of_the_same_row(rng):
    """Rows that are all equal, three of each class: nothing to learn, but too little to say so."""
    return np.ones((30, 4)), np.arange(30) // 3


@pytest.mark.parametrize(
    "rows", [in_a_mixture, in_one_column_of_many, on_a_line, with_a_rare_class, of_few_rows, of_the_same_row]
)
@pytest.mark.parametrize("seed", range(3))
def test_hard_and_small_sets_are_no_problem(rows, seed):
    features, labels = rows(np.random.default_rng(seed))
    found = inspect_features(FeatureSet.from_arrays(features, labels, held_out_share=0.2, seed=seed))
    assert not any(found.splits[split].neighbours.at_chance for split in ("val", "test"))
    assert not any(one.code == "chance" for one in found.problems)
    assert not any("nearest training rows" in one.message for one in found.warnings)


def test_classes_without_rows(tmp_path):
    features = digits(tmp_path / "set", class_names=[f"digit {number}" for number in range(12)])
    found = inspect_features(features.path)
    assert found.empty_classes == ["digit 10", "digit 11"]
    assert CodedWarning("empty-classes", "2 classes have no row: digit 10, digit 11") in found.warnings


@pytest.mark.parametrize(("rows", "status"), [(2, 0), (20, 1)])
def test_classes_that_no_head_can_answer(tmp_path, rows, status):
    labels = {"train": np.arange(300) % 3, "val": np.arange(300) % 3, "test": np.arange(300) % 3}
    labels["val"][:rows] = 3
    rng = np.random.default_rng(0)
    features = {split: np.eye(4)[found] + rng.normal(size=(300, 4)) / 99 for split, found in labels.items()}
    path = FeatureSet.from_arrays(features, labels, out=tmp_path / "set").path
    text = f"val: {rows} rows ({rows / 300:.2%}) are of classes without a training row, which no head can answer: 3"
    result = runner.invoke(app, ["inspect", str(path)])
    assert result.exit_code == status
    kind = "problem" if status else "warning"
    assert f"{kind} (unanswerable): {text}" in result.output
    assert result.output.count("without a training row") == 1  # though the import has warned of it too
    assert ("nothing that would spoil a training" in result.output) == (not status)


def test_the_histogram_of_many_classes_is_a_line(tmp_path):
    counts = np.arange(100, 0, -1)
    labels = np.repeat(np.arange(100), counts)
    features = {"train": np.eye(100)[labels], "val": np.eye(100), "test": np.eye(100)[:3]}
    splits = {"train": labels, "val": np.arange(100), "test": np.arange(3)}
    path = FeatureSet.from_arrays(features, splits, out=tmp_path / "set").path
    lines = runner.invoke(app, ["inspect", str(path)]).output.splitlines()
    quartiles = " | ".join(map(str, np.percentile(counts, (0, 25, 50, 75, 100), method="lower")))
    expected = f"quartiles {quartiles}; fewest 99 (1), 98 (2), 97 (3); most 0 (100), 1 (99), 2 (98)"
    assert f"train, rows a class: {expected}" in lines
    assert not any(line.startswith("val, rows a class") for line in lines)  # one row each, says the table


def test_a_set_in_memory_and_a_file(tmp_path):
    rows = np.sort(DISTINCT)
    np.savez(tmp_path / "digits.npz", features=PIXELS[rows].astype(np.float32), labels=LABELS[rows])
    folder, held = inspect_features(digits(tmp_path / "set").path), inspect_features(digits(None))
    assert folder == inspect_features(FeatureSet.load(tmp_path / "set"))
    for found in (held, inspect_features(tmp_path / "digits.npz")):
        assert found.neighbours == folder.neighbours
        for split, report in found.splits.items():
            assert report == replace(folder.splits[split], as_written=None)


def test_unusable_rows_of_a_file_are_told_although_import_refuses_them(tmp_path):
    rows = PIXELS.astype(np.float32)
    rows[[3, 900], 4], rows[70, 1] = np.nan, np.inf
    file = tmp_path / "digits.npz"
    np.savez(file, features=rows, labels=LABELS)
    with pytest.raises(InputError, match="digits.npz: features: NaN or infinite features in rows 3, 70, 900"):
        FeatureSet.load(file)
    result = runner.invoke(app, ["inspect", str(file), "--json"])
    assert result.exit_code == 1
    splits = json.loads(result.output)["splits"].values()
    assert sorted(name for split in splits for name in split["nan"]["ids"]) == ["digits.npz/3", "digits.npz/900"]
    assert [name for split in splits for name in split["infinite"]["ids"]] == ["digits.npz/70"]
    np.savez(file, features=np.where(np.isinf(rows), 1e300, rows.astype(np.float64)), labels=LABELS)
    assert "1e+300 in row 70 is beyond float32" in runner.invoke(app, ["inspect", str(file)]).stderr


def test_what_is_no_feature_set(tmp_path):
    result = runner.invoke(app, ["inspect", str(tmp_path)])
    assert result.exit_code == 2
    assert "is not a feature set" in result.stderr
