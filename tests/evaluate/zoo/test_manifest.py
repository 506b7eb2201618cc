"""Zoos in YAML: those that ship, and what is refused in others."""

import re
from pathlib import Path

import numpy as np
import onnx
import pytest
import yaml
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import InputError
from headsmith.core.files import sha256_file
from headsmith.evaluate import evaluation, load_results
from headsmith.evaluate.measuring import timing_in_turns
from headsmith.evaluate.zoo import Failed, find_candidates, find_models, open_candidate
from headsmith.evaluate.zoo.manifest import known_files
from headsmith.models.recipe_file import recipe_of

ROW = {"id": "a", "source": "a.onnx"}
GRAPH = "(float[N,3,8,8] images) => (float[N,3] scores) { p = GlobalAveragePool(images) scores = Flatten(p) }"
RECIPE = {"resize_mode": "exact", "resize_size": 8, "crop_size": 8, "interpolation": "bilinear", "scale": 1}
RECIPE |= {"channel_order": "rgb", "mean": 0, "std": 1}


@pytest.fixture
def zoo(tmp_path):
    """A function: rows, and further keys, to a file."""

    def write(*rows, **top):
        path = tmp_path / "zoo.yaml"
        path.write_text(yaml.safe_dump({"models": list(rows)} | top))
        return path

    return write


def test_a_zoo_of_one_file(zoo, onnx_file, tmp_path):
    file = onnx_file(GRAPH).rename(tmp_path / "a.onnx")
    published = {"top1": 70.1, "top5": 89.5, "source": "https://example.org"}
    row = ROW | {
        "sha256": sha256_file(file),
        "preprocessing": RECIPE,
        "labels": ["x", "y", "z"],
        "published": published,
    }
    (found,) = find_candidates([zoo(row)])
    assert (found.id, found.path, found.labels) == ("a", file, ("x", "y", "z"))
    assert (found.published.top1, found.published.top5) == (70.1, 89.5)
    assert found.bytes == file.stat().st_size
    assert open_candidate(found, threads=1).run(np.full((1, 8, 8, 3), (1, 9, 5), np.uint8)).topk_indices.tolist() == [
        [1, 2, 0]
    ]
    (other,) = find_candidates([zoo(row | {"sha256": "0" * 64})])
    assert isinstance(other, Failed)
    assert "sha256 " in other.error
    assert "its row says 000" in other.error


def test_one_that_fails_does_not_stop_the_others(zoo, onnx_file, tmp_path):
    onnx_file(GRAPH).rename(tmp_path / "a.onnx")
    good = ROW | {"preprocessing": RECIPE, "labels": ["x", "y", "z"]}
    found = list(
        find_candidates([zoo(good, good | {"id": "b", "source": "gone.onnx"}, good | {"id": "c", "labels": "no"})])
    )
    assert [isinstance(one, Failed) for one in found] == [False, True, True]
    assert found[2].error.endswith("labels no: no such file; expected one with a name a line, or imagenet-1k")


def test_flags_say_what_a_row_does_not(zoo, onnx_file, tiny_bundle, tmp_path):
    """A file that says all itself is not touched by them."""
    onnx_file(GRAPH).rename(tmp_path / "a.onnx")
    Path("names.txt").write_text("x\ny\nz\n")
    file, bundle = find_candidates([zoo(ROW | {"preprocessing": RECIPE}), tiny_bundle.path], labels="names.txt")
    assert file.labels == ("x", "y", "z")
    assert bundle.labels == tuple(tiny_bundle.class_names)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("names.txt", r"^\S*names\.txt: label 'x' found 2 times"),
        (["x", "x", "z"], r"^\S*zoo\.yaml: model 1 \(a\): labels: label 'x' found 2 times"),
        (["x", "", "z"], r"^\S*zoo\.yaml: model 1 \(a\): labels: label 1 is ''"),
    ],
)
def test_faults_of_labels_are_told_with_what_says_them(zoo, onnx_file, tmp_path, labels, message):
    onnx_file(GRAPH).rename(tmp_path / "a.onnx")
    (tmp_path / "names.txt").write_text("x\nx\nz\n")
    (found,) = find_candidates([zoo(ROW | {"preprocessing": RECIPE, "labels": labels})])
    assert re.search(message, found.error)


@pytest.mark.parametrize(
    ("rows", "top", "message"),
    [
        ([ROW | {"preprocesing": {}}], {}, r"model 1 \(a\): preprocesing: is no field.*did you mean preprocessing\?"),
        ([ROW, ROW], {}, r"model 2 \(a\): id is that of model 1 too; expected every id once"),
        ([ROW | {"labels": ["x", ["y"]]}], {}, r"model 1 \(a\): labels\[1\]: found a list, expected text"),
        ([ROW | {"labels": ["x", True]}], {}, r"labels\[1\]: found true, expected text; .* stands in quotes"),
        ([ROW | {"labels": [None, "x"]}], {}, r"labels\[0\]: found null, expected text"),
        ([ROW | {"labels": ["x", 7]}], {}, r"labels\[1\]: found 7, expected text"),
        ([ROW | {"labels": ["x", 0.5]}], {}, r"labels\[1\]: found 0\.5, expected text"),
        ([ROW | {"id": ""}], {}, r"model 1 \(\): id: found nothing, expected a text"),
        ([ROW | {"id": "\x1b[31m" + "x" * 999, "source": 1}], {}, r"model 1 \(\\x1b\[31mx{55}\): source: found 1,"),
        ([ROW | {"published": {"top1": True, "source": "x"}}], {}, r"published\.top1: found true, expected a number"),
        ([ROW | {"checkpoint": {"a": 1}}], {}, "checkpoint: found an object, expected text"),
        ([ROW], {"package": "__main__"}, "package: '__main__' is not installed"),
        ([ROW], {"package": ["onnx"]}, "package: found a list, expected text"),
        ([{"id": "a"}], {}, r"model 1 \(a\): source: missing, expected text"),
        ([ROW | {"background": "0"}], {}, r"model 1 \(a\): background: found '0', expected a whole number"),
        ([ROW | {"labels": []}], {}, r"model 1 \(a\): labels: found nothing, expected names"),
        ([ROW | {"labels": 3}], {}, "labels: found 3, expected a list or text"),
        (
            [ROW | {"published": {"top1": 170, "source": "x"}}],
            {},
            "published: top1: found 170, expected per cent, from 0 to 100",
        ),
        ([ROW | {"published": {"top1": 70}}], {}, r"published\.source: missing, expected text"),
        (
            [ROW | {"published": {"top_1": 70, "top1": 70, "source": "x"}}],
            {},
            r"published\.top_1: is no field.*did you mean top1",
        ),
        (["a.onnx"], {}, "model 1: expected an object"),
        ([], {}, "models: found an empty list, expected rows"),
        ([ROW], {"packge": "onnx"}, r"packge: is no field.*did you mean package\?"),
        ([ROW], {"package": "no_such_package"}, "package: 'no_such_package' is not installed"),
    ],
)
def test_a_zoo_that_cannot_be_read(zoo, rows, top, message):
    with pytest.raises(InputError, match=message):
        find_candidates([zoo(*rows, **top)])


def test_a_recipe_key_that_is_not_known(zoo, onnx_file, tmp_path):
    onnx_file(GRAPH).rename(tmp_path / "a.onnx")
    (found,) = find_candidates(
        [zoo(ROW | {"labels": ["x", "y", "z"], "preprocessing": RECIPE | {"chanel_order": "bgr"}})]
    )
    assert "zoo.yaml: model 1 (a): preprocessing: chanel_order is not known" in found.error
    assert "did you mean channel_order?" in found.error


@pytest.mark.parametrize("changed", [{"scale": float("nan")}, {"std": 0}, {"mean": [0, float("inf"), 0]}])
def test_a_recipe_that_cannot_be_is_told_with_zoo_and_row(zoo, onnx_file, tmp_path, changed):
    onnx_file(GRAPH).rename(tmp_path / "a.onnx")
    path = zoo(ROW | {"labels": ["x", "y", "z"], "preprocessing": RECIPE | changed})
    (found,) = find_candidates([path])
    assert f"{path}: model 1 (a): preprocessing: {next(iter(changed))} holds" in found.error


def test_the_files_of_the_onnx_model_zoo_have_recipes_and_sources():
    rows = known_files().values()
    assert len(rows) == 32
    recipes = {row.id: recipe_of(row.preprocessing, row.id, "nchw") for row in rows}
    assert {recipe.layout for recipe in recipes.values()} == {"nchw", "nhwc"}
    assert recipes["efficientnet-lite4-11"].layout == "nhwc"
    assert recipes["googlenet-12"].channel_order == "bgr"
    assert all(
        row.published is None or row.published.source.startswith("https://github.com/onnx/models") for row in rows
    )


def test_a_file_of_the_onnx_model_zoo_is_known_by_its_contents(onnx_file, recipe_file, only, monkeypatch):
    graph = "(float[N,3,224,224] images) => (float[N,1000] scores) { p = GlobalAveragePool(images) f = Flatten(p) "
    path = onnx_file(graph + "scores = MatMul(f, w) }", w=(3, 1000))
    row = next(row for row in known_files().values() if row.id == "resnet50-v1-7")
    monkeypatch.setattr(find_models, "known_files", lambda: {sha256_file(path): row})
    found = only(path)
    assert found.notes == ("known by its hash as resnet50-v1-7 of the ONNX Model Zoo",)
    assert (found.id, found.published.top1, found.preprocessing.mean) == ("zoo", 74.93, (0.485, 0.456, 0.406))
    assert only(path, preprocessing=recipe_file(crop_size=224), labels="imagenet-1k").published is None


def test_the_light_models_of_the_onnx_package_run_as_a_zoo_in_one_command(image_folder, tmp_path, monkeypatch):
    """All nine, in their real structure; their answers are those that the package stores, no better than guesses."""
    monkeypatch.setattr(timing_in_turns, "ROUNDS", 1)  # others measure speed
    monkeypatch.setattr(timing_in_turns, "LEAST", 1)
    monkeypatch.setattr(evaluation, "CHEAP", timing_in_turns.Effort(0, 1, ()))
    images, out = image_folder({"n01440764": 1, "n01443537": 1}), tmp_path / "results"
    command = [
        "evaluate",
        "zoo:onnx-light",
        "--data",
        str(images),
        "--out",
        str(out),
        "--threads",
        "1",
        "--save-logits",
    ]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 4, result.output
    folder = Path(onnx.__file__).parent / "backend/test/data/light"
    found = load_results(out)
    assert sorted(one.model for one in found) == sorted(path.stem for path in folder.glob("*.onnx"))
    assert len(found) == 9
    for one in found:
        stored = onnx.TensorProto()
        stored.ParseFromString((folder / f"{one.model}_output_0.pb").read_bytes())
        expected = onnx.numpy_helper.to_array(stored).reshape(1, 1000)
        logits = np.load(out / "models" / one.key / "logits.npz")["logits"]
        probabilities = one.model != "light_densenet121"
        np.testing.assert_allclose(np.exp(logits) if probabilities else logits, expected.repeat(2, 0), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "found"), [("- a\n", "\\['a'\\]"), ("", "nothing"), ("hello\n", "'hello'"), ("3", "3")]
)
def test_a_zoo_that_is_no_zoo(tmp_path, text, found):
    (tmp_path / "zoo.yaml").write_text(text)
    with pytest.raises(
        InputError, match=rf"zoo\.yaml: {found} found, expected `models:` and below it rows such as - id"
    ):
        find_candidates([tmp_path / "zoo.yaml"])


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"output": "nothing"}, "output nothing: no such output"),
        ({"background": 9}, "background 9: expected one of 0..3"),
    ],
)
def test_what_a_row_says_is_not_told_as_an_option(zoo, onnx_file, tmp_path, said, message):
    onnx_file(GRAPH).rename(tmp_path / "a.onnx")
    labels = ["x", "y", "z"][: 3 - ("background" in said)]
    row = ROW | {"preprocessing": RECIPE, "labels": labels}
    (found,) = find_candidates([zoo(row | said)])
    expected = message.replace("0..3", f"0..{len(labels)}")
    assert re.search(rf"zoo\.yaml: model 1 \(a\): {expected}", found.error)
    (found,) = find_candidates([zoo(row)], **said)
    assert re.search(rf"a\.onnx: `?{expected.partition(' ')[0]}`? {expected.partition(' ')[2]}", found.error)
