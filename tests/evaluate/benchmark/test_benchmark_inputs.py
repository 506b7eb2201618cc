"""Bad input is one line, before any work."""

import shutil

import onnx
import pytest
from typer.testing import CliRunner

from headsmith import InputError, write_report
from headsmith.cli import app
from headsmith.core.errors import DamagedFileError
from headsmith.evaluate.benchmark import Benchmark, benchmark
from headsmith.evaluate.benchmark.options import BenchmarkOptions
from headsmith.evaluate.benchmark.plan import Entry, key_of, units_of
from headsmith.evaluate.benchmark.stages import Stages


@pytest.fixture
def no_work(monkeypatch):
    def refuse(self, keys):
        raise AssertionError("work was begun")

    monkeypatch.setattr(Stages, "rows", refuse)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "backbones: none found"),
        ({"backbones": ["timm:resnet_nobody_made*"]}, "backbones"),
        (
            {"backbones": ["timm:*"]},
            "name fewer, or allow so many with `yes` or a `budget` (at a minute each they take ",
        ),
        ({"backbones": ["lite0"], "device": "gpu"}, "device: 'gpu' found"),
        ({"backbones": ["lite0"], "precision": ["int8"]}, "max_drop: 1 points on 6 validation inputs found"),
        ({"backbones": ["lite0"], "sweep": ["hasty"]}, "sweep: 'hasty' found"),
        ({"backbones": ["lite0"], "sweep": ["nowhere.yaml"]}, "nowhere.yaml: not found"),
        ({"backbones": ["lite0"], "also": ["nowhere.yaml"]}, "nowhere.yaml"),
        (
            {"backbones": ["lite0"], "also": ["timm:resnet18", "nowhere.onnx"]},
            "also: nowhere.onnx: not found, expected",
        ),
        ({"backbones": ["lite0"], "also": ["bundles/nowhere"]}, "also: bundles/nowhere: not found, expected"),
        ({"backbones": ["lite0"], "provider": ["gpu"]}, "provider"),
        ({"config": "nofile.yaml"}, "config: nofile.yaml: not found, expected a YAML file with keys such as"),
    ],
)
def test_what_means_nothing_is_told_before_work(zoo, tmp_path, no_work, settings, message):
    with pytest.raises(InputError) as error:
        benchmark(zoo.images, out=tmp_path / "out", **settings)
    assert message in str(error.value) and "\n" not in str(error.value)
    assert not (tmp_path / "out" / "rows").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("backbones: []", "backbones: none found"),
        ("[lite0]", "expected keys such as"),
        ("backbone: [lite0]", "zoo.yaml: backbone: is not known; did you mean backbones?"),
        ("backbones: [{name: a}]", "zoo.yaml: backbone 1: backbone: missing"),
        ("backbones: [{backbone: lite0, chekpoint: a}]", "backbone 1: chekpoint: is not known"),
        ("backbones: [{backbone: lite0, image_size: big}]", "backbone 1: image_size: 'big' found, expected int"),
        ("backbones: [{backbone: 'timm:resnet1*', image_size: 64}]", "stands for several"),
        (
            "backbones: [lite0, {backbone: 'timm:resnet18', checkpoint: gone.pth}]",
            "gone.pth: not found, expected local weights such as net.pth; correct the path, or leave it out",
        ),
        (
            "backbones: [{backbone: 'onnx:net.onnx', preprocessing: gone.yaml}]",
            "gone.yaml: not found, expected a YAML file with a recipe; correct the path",
        ),
        ("backbones: [lite0]\nlatency: soon", "zoo.yaml: latency: 'soon' found"),
        ("backbones: [{backbone: lite0, name: a}, {backbone: 'timm:resnet18', name: a}]", "named 2 times"),
    ],
)
def test_a_wrong_file_is_told_with_its_key(zoo, tmp_path, no_work, text, message):
    (tmp_path / "zoo.yaml").write_text(text)
    with pytest.raises(InputError) as error:
        benchmark(zoo.images, config=tmp_path / "zoo.yaml", out=tmp_path / "out")
    assert message in str(error.value)


def test_a_named_backbone_at_several_sizes_has_a_name_for_each():
    entries = [Entry(backbone="lite0", name="ours"), Entry(backbone="lite0"), Entry(backbone="lite0", image_size=64)]
    found = units_of(
        [*entries, Entry(backbone="lite0", name="own", image_size=64)], BenchmarkOptions(image_size=(96, 160))
    )
    assert [unit.name for unit in found] == ["ours-96", "ours-160", "lite0-96", "lite0-160", "lite0-64", "own"]


def test_the_key_of_an_onnx_file_is_its_bytes_wherever_it_is_called_from(zoo, tmp_path, monkeypatch):
    zoo.onnx("keyed", seed=7)
    model = onnx.load(zoo.folder / "keyed.onnx")
    path = tmp_path / "net.onnx"
    onnx.save(model, path, save_as_external_data=True, location="net.data", size_threshold=0)

    def key(backbone):
        (unit,) = units_of([Entry(backbone=f"onnx:{backbone}")], BenchmarkOptions())
        return key_of(unit, "fp32", "images", 1.0)

    first = key(path)
    monkeypatch.chdir(tmp_path)
    assert key("net.onnx") == first != key(zoo.folder / "keyed.onnx")
    (tmp_path / "net.data").write_bytes(bytes(reversed((tmp_path / "net.data").read_bytes())))
    assert key(path) != first
    (tmp_path / "net.data").unlink()
    assert key(path) != first  # its row says that weights are missing


def test_a_folder_belongs_to_its_images(five, zoo, image_folder, tmp_path, no_work):
    others = image_folder({"cat": 20, "dog": 20})
    with pytest.raises(InputError, match="holds a benchmark of .*, changed or others; choose another `out`"):
        benchmark(others, config=zoo.folder / "five.yaml", out=five.path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(InputError, match="exists and is not a benchmark"):
        benchmark(zoo.images, config=zoo.folder / "five.yaml", out=tmp_path / "mine")
    with pytest.raises(InputError, match="is inside the images"):
        benchmark(zoo.images, config=zoo.folder / "five.yaml", out=zoo.images / "out")


def test_the_report_shows_a_row_for_each_and_what_to_deploy(five, tmp_path):
    page = write_report(five.path, out=tmp_path / "page.html").read_text(encoding="utf-8")
    assert f"<title>Deploy {five.winner.name}</title>" in page
    assert "Leaderboard" in page and "majority class" in page and "does not fit the backbone" in page
    assert page.count("<details><summary>") >= sum(row.top1 is not None for row in five.rows)


def test_an_edited_record_is_refused(five, tmp_path):
    text = (five.path / "benchmark.json").read_text(encoding="utf-8")
    (tmp_path / "benchmark.json").write_text(text.replace('"correct": 6', '"correct": 5', 1), encoding="utf-8")
    with pytest.raises(DamagedFileError):
        Benchmark.load(tmp_path)
    with pytest.raises(InputError, match="no benchmark"):
        Benchmark.load(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("images", "words", "message"),
    [
        ("photos", [], "--backbones: none found"),
        ("photos", ["--backbones", "timm:resnet_nobody_made*"], "--backbones timm:resnet_nobody_made*: "),
        (
            "photos",
            ["--backbones", "timm:*"],
            "expected at most 50; name fewer, or allow so many with --yes or a --budget (at a minute each they",
        ),
        ("photos", ["--backbones", "lite0", "--latency", "soon"], "--latency: 'soon' found"),
        ("one", ["--backbones", "lite0"], "class 'ant' (1), expected at least 3 each"),
        ("nowhere", ["--backbones", "lite0"], "nowhere"),
    ],
)
def test_bad_input_is_one_line_and_status_2(zoo, image_folder, tmp_path, images, words, message):
    folder = {"photos": zoo.images, "one": image_folder({"ant": 1, "bee": 20}) if images == "one" else None}
    shown = CliRunner().invoke(
        app, ["benchmark", str(folder.get(images, tmp_path / images)), "--out", str(tmp_path / "out"), *words]
    )
    assert shown.exit_code == 2
    assert message in shown.output and len(shown.output.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_command_takes_many_words_after_an_option_and_tells_failures(five, zoo, tmp_path):
    folder = shutil.copytree(five.path, tmp_path / "five")
    words = ["benchmark", str(zoo.images), "--config", str(zoo.folder / "five.yaml"), "--keep", "all"]
    shown = CliRunner().invoke(app, [*words, "--out", str(folder), "--precision", "fp32", "fp64"])
    assert shown.exit_code == 2
    assert "--precision: 'fp64' found" in shown.output
