"""Bundles of every format and input, opened by the programs that they are for."""

import dataclasses
import importlib.util
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import timm
import torch
from google.protobuf import text_format
from PIL import Image
from sklearn.datasets import load_sample_image

from headsmith.core.errors import InputError
from headsmith.evaluate import evaluate_classifiers, predict
from headsmith.export import Bundle, Classifier, export_classifier, open_model
from headsmith.export.formats.decoding import WARNING
from headsmith.export.formats.registry import FORMATS
from headsmith.export.formats.timm_format import write_timm
from headsmith.export.formats.triton_format import write_triton
from headsmith.export.metadata import Metadata, describe, identity
from headsmith.models import Linear, build_head, load_backbone
from headsmith.models.images import open_image

SIZES = [(61, 40), (33, 90), (32, 32), (427, 640)]


@pytest.fixture(scope="module")
def every(tiny_run, tmp_path_factory):
    """A bundle of all formats, with probabilities."""
    out = tmp_path_factory.mktemp("every") / "tiny"
    return export_classifier(tiny_run, out=out, formats=tuple(FORMATS), probabilities=True)


@pytest.fixture(scope="module")
def whole(tiny_run, tmp_path_factory):
    """A bundle whose files take images of any size."""
    return export_classifier(
        tiny_run,
        out=tmp_path_factory.mktemp("whole") / "tiny",
        formats=("onnx", "torchscript", "pt2"),
        input_format="uint8-nhwc",
        resize=True,
    )


@pytest.fixture(scope="module")
def encoded(tiny_run, tmp_path_factory):
    """A bundle whose file takes the bytes of an image file."""
    pytest.importorskip("onnxruntime_extensions")
    return export_classifier(tiny_run, out=tmp_path_factory.mktemp("encoded") / "tiny", input_format="encoded")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Noise and a photograph in several sizes, as PNG files."""
    folder = tmp_path_factory.mktemp("photos")
    for number, (height, width) in enumerate(SIZES[:-1]):
        pixels = np.random.default_rng(number).integers(0, 256, (height, width, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    Image.fromarray(load_sample_image("china.jpg")).save(folder / "3.png")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def colours(image_folder, every):
    """As many images as the sanity probe needs to try other setups."""
    return image_folder(dict.fromkeys(every.class_names, 4))


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_can_be_probed(every, colours, name, tmp_path):
    (result,) = evaluate_classifiers(
        [every.path / FORMATS[name].named(every.path.name)], data=colours, out=tmp_path / "results"
    )
    assert result.n == 24
    assert [note for note in result.notes if note.startswith("sanity probe: 24 images: ")]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_takes_views_of_arrays(every, name):
    pixels = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    model = every.open(name)
    for view in (pixels[..., ::-1], pixels[:, ::-1, ::2].repeat(2, 2)[::-1], pixels[::2], pixels.swapaxes(1, 2)):
        np.testing.assert_allclose(model.run(view).logits, model.run(np.array(view, order="C")).logits, atol=1e-5)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_answers_the_same(every, name, photos):
    pixels = np.stack([every.preprocessing(open_image(path, "photo")) for path in photos])
    found, expected = every.open(name).run(pixels), every.open("torchscript").run(pixels)
    np.testing.assert_allclose(found.logits, expected.logits, atol=1e-5)
    np.testing.assert_array_equal(found.topk_indices, expected.topk_indices)
    if name != "timm":
        np.testing.assert_allclose(found.probabilities, torch.from_numpy(found.logits).softmax(1), atol=1e-6)
    assert "`probabilities`" in (every.path / "README.md").read_text()


def test_every_format_is_proved(every):
    report = json.loads((every.path / "parity.json").read_text())["files"]
    assert set(report) == {FORMATS[name].named("tiny") for name in FORMATS}
    assert all(file["n"] == 12 and file["flips"] == [] for file in report.values())
    assert all(file["max_score_difference"] < 1e-5 for file in report.values())


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("damage", ["truncated", "flipped"])
def test_a_damaged_file_is_named(every, tmp_path, name, damage):
    folder = shutil.copytree(every.path, tmp_path / "copy")
    file = folder / FORMATS[name].named("tiny")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content[:-7] if damage == "truncated" else content)
    with pytest.raises(InputError, match=re.escape(f"{file}: ")):
        Bundle.load(folder)


def test_timm_opens_the_folder(every, photos):
    """timm's own transform and network, nothing of ours."""
    network = timm.create_model(f"local-dir:{every.path}", pretrained=True).eval()
    config = timm.data.resolve_data_config({}, model=network)
    transform = timm.data.create_transform(**config)
    pictures = [Image.open(path).convert("RGB") for path in photos]
    with torch.inference_mode():
        found = network(torch.stack([transform(picture) for picture in pictures]))
    expected = every.open().run(np.stack([every.preprocessing(picture) for picture in pictures]))
    np.testing.assert_allclose(found, expected.logits, atol=1e-4)
    assert network.pretrained_cfg["label_names"] == every.class_names
    assert (config["input_size"], list(config["mean"])) == ((3, 32, 32), [0.5, 0.5, 0.5])


def test_wordnet_ids_are_described():
    found = describe(["n01440764", "cat", "n99999999"])
    assert found == {"n01440764": "tench, Tinca tinca", "cat": "cat", "n99999999": "n99999999"}


def schema():
    """The message of Triton's model configuration, from NVIDIA's client; the rest of that would need grpc."""
    package = importlib.util.find_spec("tritonclient")
    if package is None:
        pytest.skip("tritonclient is not installed")
    file = Path(package.submodule_search_locations[0], "grpc", "model_config_pb2.py")
    spec = importlib.util.spec_from_file_location("model_config_pb2", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_triton_repository(every):
    model_config = schema()
    folder = every.path / "triton" / "tiny"
    config = text_format.Parse((folder / "config.pbtxt").read_text(), model_config.ModelConfig())
    assert (config.name, config.platform, config.max_batch_size) == (folder.name, "onnxruntime_onnx", 64)
    assert config.HasField("dynamic_batching")
    session = onnxruntime.InferenceSession(folder / "1" / "model.onnx", providers=["CPUExecutionProvider"])
    types = {"tensor(float)": "TYPE_FP32", "tensor(int64)": "TYPE_INT64"}
    for said, real in ((config.input, session.get_inputs()), (config.output, session.get_outputs())):
        assert [value.name for value in said] == [value.name for value in real]
        assert [list(value.dims) for value in said] == [value.shape[1:] for value in real]
        assert [model_config.DataType.Name(value.data_type) for value in said] == [types[value.type] for value in real]
    labelled = {value.name: value.label_filename for value in config.output if value.label_filename}
    assert labelled == {"logits": "labels.txt", "probabilities": "labels.txt"}
    assert (folder / "labels.txt").read_text().splitlines() == every.class_names
    assert (folder / "1" / "model.onnx").read_bytes() == (every.path / "model.onnx").read_bytes()


@pytest.mark.parametrize("name", ['a "b"', "new\\line", "ä 😀"])
def test_a_bundle_may_have_any_name(every, tmp_path, name):
    shutil.copy(every.path / "model.onnx", tmp_path)
    path = tmp_path / "triton" / name / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    write_triton(Classifier(Linear(4, 6)), every.open().metadata, path)
    config = text_format.Parse((path.parents[1] / "config.pbtxt").read_text(), schema().ModelConfig())
    assert config.name == name
    assert list(config.input[0].dims) == [3, 32, 32]


@pytest.mark.parametrize("name", ["onnx", "torchscript", "pt2"])
def test_images_of_any_size(whole, every, name, photos):
    """Nearly what PIL's resize gives: a pixel differs by 1 of 255 at most, but for where bicubic overshoots."""
    model, behind = whole.open(name), every.open()
    for path in photos:
        image = open_image(path, "photo")
        found = model.run(np.array(image)[None])
        expected = behind.run(every.preprocessing(image)[None])
        np.testing.assert_allclose(found.logits, expected.logits, atol=0.03)
    pair = np.array(image)[None].repeat(2, axis=0)
    np.testing.assert_allclose(model.run(pair).logits, found.logits.repeat(2, axis=0), atol=1e-5)


def test_nearness_to_pil_is_reported(whole):
    found = whole.manifest.resize
    assert (found.n, found.equal_top1, found.flips) == (12, 12, ())
    assert 0.2 < found.mean_pixel_difference < 0.35  # of rounding: 1/4 once, as expected of |uniform(-1/2, 1/2)|
    assert found.largest_pixel_difference < 1.1
    assert "## Resize inside the file" in (whole.path / "README.md").read_text()
    assert whole.manifest.input.shape == ("batch", "height", "width", 3)


def test_whole_images_are_evaluated_and_predicted(whole, every, photos, tiny_run, tmp_path):
    source = tiny_run.record.features.source.source
    assert evaluate_classifiers(whole, data=source, out=tmp_path / "results")[0].n == 12
    found, expected = predict(whole, photos), predict(every, photos)
    assert [one.labels for one in found] == [one.labels for one in expected]


@pytest.mark.parametrize(("mode", "quality"), [("RGB", None), ("L", None), ("RGBA", None), ("RGB", 95), ("L", 95)])
def test_encoded_images(encoded, every, mode, quality, tmp_path, monkeypatch, capsys):
    """The card's code, on PNG exactly, on JPEG nearly: the two decoders interpolate colour otherwise."""
    code = re.search(r"```python\n(.*?)```", (encoded.path / "README.md").read_text(), re.DOTALL).group(1)
    shutil.copy(encoded.path / "model.onnx", tmp_path)
    picture = Image.fromarray(load_sample_image("china.jpg")).convert(mode)
    options = {"format": "PNG"} if quality is None else {"format": "JPEG", "quality": quality}
    picture.save(tmp_path / "photo.jpg", **options)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "card", "exec"), {})  # noqa: S102
    found = dict(eval(capsys.readouterr().out))  # noqa: S307
    (expected,) = predict(every, ["photo.jpg"])
    shared = dict(zip(expected.labels, expected.scores, strict=True))
    assert max(found, key=found.get) == expected.labels[0]
    for label in found.keys() & shared.keys():
        assert found[label] == pytest.approx(shared[label], abs=0.01 if quality is None else 0.03)


def test_encoded_says_what_its_decoder_does(encoded):
    assert WARNING in (encoded.path / "README.md").read_text()
    assert encoded.manifest.input.shape == ("bytes",)


def test_cmyk_is_an_error_not_a_guess(encoded):
    session = encoded.open().session
    with io.BytesIO() as file:
        Image.new("CMYK", (40, 40), (10, 20, 30, 40)).save(file, "JPEG")
        content = np.frombuffer(file.getvalue(), np.uint8)
    with pytest.raises(Exception, match="Expand"):
        session.run(None, {"pixel_values": content})


def test_a_missing_decoder_is_told(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnxruntime_extensions", None)
    with pytest.raises(
        InputError, match=r"onnxruntime-extensions is not installed; pip install 'headsmith\[encoded\]'"
    ):
        export_classifier(tiny_run, out=tmp_path / "out", input_format="encoded")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"resize": True}, "resize: found with `input_format` float-nchw, expected `input_format` uint8-nhwc"),
        ({"resize": True, "head_only": True}, "resize: found with `input_format` features"),
        ({"input_format": "encoded", "formats": ("onnx", "pt2")}, "`input_format` encoded is for onnx alone"),
        ({"input_format": "uint8-nhwc", "resize": True, "formats": ("timm",)}, "formats timm: timm resizes before"),
        ({"input_format": "uint8-nhwc", "formats": ("timm",)}, "formats timm: timm's networks take float images"),
        ({"input_format": "uint8-nhwc", "head_only": True}, "input_format uint8-nhwc: found with `head_only`"),
        ({"batch_size": 0}, "batch_size: 0 found, expected at least 1"),
        (
            {"head_only": True, "formats": ("timm",)},
            "formats timm: a head alone found, expected a classifier on lite0",
        ),
    ],
)
def test_options_that_do_not_go_together(tiny_run, tmp_path, options, message):
    with pytest.raises(InputError, match=re.escape(message)):
        export_classifier(tiny_run, out=tmp_path / "out", **options)
    assert not list(tmp_path.iterdir())


def test_a_mlp_is_no_timm_classifier(tiny_run, tmp_path):
    unscored = dataclasses.replace(tiny_run.record.results, test=None)  # what it says of accuracy is of another head
    record = dataclasses.replace(tiny_run.record, results=unscored)
    run = dataclasses.replace(tiny_run, head=build_head("mlp", 96, 6, hidden=8), record=record)
    with pytest.raises(InputError, match="formats timm: a mlp head is not one linear layer"):
        export_classifier(run, out=tmp_path / "out", formats=("timm",))


def test_odd_class_names_in_timm_and_triton(tiny_backbone, tmp_path):
    names = ("a,b", 'the "best"', "😀", "<script>")
    backbone = load_backbone(
        tiny_backbone.backbone, checkpoint=tiny_backbone.checkpoint, image_size=tiny_backbone.image_size
    )
    known = identity(backbone.record(), backbone.feature_dim)
    about = Metadata(names, "float-nchw", backbone.preprocessing, known, "features")
    write_timm(Classifier(Linear(backbone.feature_dim, 4), backbone), about, tmp_path / "model.safetensors")
    assert json.loads((tmp_path / "config.json").read_text())["label_names"] == list(names)
    assert open_model(tmp_path / "model.safetensors").metadata == about
    path = tmp_path / "triton" / "odd" / "1" / "model.onnx"
    path.parent.mkdir(parents=True)
    write_triton(Classifier(Linear(4, 4)), dataclasses.replace(about, input_format="features"), path)
    assert (path.parents[1] / "labels.txt").read_text(encoding="utf-8").splitlines() == list(names)
