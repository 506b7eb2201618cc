"""What holds for a bundle of every kind: its README's code runs as it stands, no path, the same bytes every time."""

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import ExifTags, Image, UnidentifiedImageError

from headsmith.evaluate.evaluation_warnings import was_trained_on
from headsmith.export import export_classifier, verify
from headsmith.export.bundle.card import ENCODED_CODE, snippet
from headsmith.export.provenance import FeaturesOrigin
from headsmith.export.training_source import same_source
from headsmith.models.images import open_image
from headsmith.trainer.features.feature_set import FeatureSet

KINDS = {
    "float-nchw": {"formats": ("onnx", "torchscript", "pt2", "timm", "triton")},
    "fp16": {"precision": "fp16", "max_drop": 100},
    "uint8-nhwc": {"input_format": "uint8-nhwc", "formats": ("onnx", "torchscript")},
    "resize": {"input_format": "uint8-nhwc", "resize": True},
    "encoded": {"input_format": "encoded"},
    "head-only": {"head_only": True, "formats": ("onnx", "torchscript", "pt2")},
}


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    if request.param == "encoded":
        pytest.importorskip("onnxruntime_extensions", reason="encoded images are decoded by onnxruntime-extensions")
    return request.param


@pytest.fixture(scope="module")
def bundle(kind, tiny_run, tmp_path_factory):
    return export_classifier(tiny_run, out=tmp_path_factory.mktemp("kind") / "bundle", **KINDS[kind])


@pytest.fixture(scope="module")
def again(kind, tiny_run, tmp_path_factory):
    return export_classifier(tiny_run, out=tmp_path_factory.mktemp("again") / "bundle", **KINDS[kind])


def image_of(run, name: str) -> Path:
    return sorted((Path(run.record.features.source.source) / name).iterdir())[0]


def test_the_code_of_the_readme_runs_as_it_stands(kind, bundle, tiny_run, tmp_path):
    folder = shutil.copytree(bundle.path, tmp_path / "bundle")
    shutil.copyfile(image_of(tiny_run, "emu"), folder / "photo.jpg")
    features, labels = FeatureSet.load(tiny_run.record.features.path).arrays("train")
    np.save(folder / "features.npy", features[:2].numpy())
    blocks = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 1
    done = subprocess.run([sys.executable, "-c", blocks[0]], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    best = [eval(line)[0][0] for line in done.stdout.splitlines()]  # noqa: S307 - our own code printed it
    assert best == (["emu"] if kind != "head-only" else [bundle.class_names[label] for label in labels[:2]])
    title = (folder / "README.md").read_text().split("\n\n")[1]
    assert title.startswith("A classification head" if kind == "head-only" else "An image classifier")


@pytest.mark.parametrize("kind", ["float-nchw", "resize"], indirect=True)
def test_the_code_of_the_readme_sees_what_predict_sees_of_transparency(bundle, tmp_path):
    """Every alpha over every level, turned by EXIF, and hidden colours."""
    folder = shutil.copytree(bundle.path, tmp_path / "bundle")
    levels, alpha = np.meshgrid(np.arange(256, dtype=np.uint8), np.arange(256, dtype=np.uint8))
    image = Image.fromarray(np.stack([levels, 255 - levels, levels // 2, alpha], -1)[:200])
    exif = Image.Exif()
    exif[ExifTags.Base.Orientation] = 6
    image.save(folder / "photo.png", exif=exif)
    (code,) = re.findall(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    code = code.replace("photo.jpg", "photo.png") + "\nnp.save('pixels.npy', pixels)"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = bundle.open("onnx").metadata.prepare(open_image(folder / "photo.png", "photo"))
    seen = np.load(folder / "pixels.npy")[0]
    np.testing.assert_array_equal(seen if seen.shape[-1] == 3 else seen.transpose(1, 2, 0), expected)


RECIPES = {
    "resized and cropped": {},
    "black beyond the edges": {"resize_size": (21, 21), "crop_size": (32, 32)},
    "black at one edge": {"resize_mode": "exact", "resize_size": (40, 21), "crop_size": (32, 32)},
    "squashed": {"resize_mode": "exact", "resize_size": (37, 51), "crop_size": (32, 32)},
    "nearest-exact": {"interpolation": "nearest-exact"},
    "on grey": {"background": (128, 128, 128)},
    "alpha dropped": {"background": None},
}


@pytest.mark.parametrize("changes", RECIPES.values(), ids=RECIPES)
def test_the_code_of_the_readme_prepares_as_the_recipe_says(tiny_bundle, tmp_path, monkeypatch, changes):
    monkeypatch.chdir(tmp_path)
    metadata = replace(tiny_bundle.open().metadata, input_format="uint8-nhwc")
    metadata = replace(metadata, preprocessing=replace(metadata.recipe, **changes))
    random = np.random.default_rng(0)
    for size in ((50, 40), (40, 57), (33, 33)):
        Image.fromarray(random.integers(0, 256, (*size, 4)).astype(np.uint8)).save("photo.png")
        code = snippet(metadata).replace("photo.jpg", "photo.png")
        space = {}
        code = (
            f"import numpy as np\nfrom PIL import Image, ImageOps\n{code[code.index('image =') : code.index('logits')]}"
        )
        exec(code, space)  # noqa: S102 - our own code
        expected = metadata.prepare(open_image("photo.png", "photo"))
        np.testing.assert_array_equal(space["pixels"][0], expected)


def run_card(metadata, path):
    code = snippet(metadata).replace('Image.open("photo.jpg"', f"Image.open({str(path)!r}")
    code = f"import numpy as np\nfrom PIL import Image, ImageOps\n{code[code.index('image =') : code.index('logits')]}"
    exec(code, {})  # noqa: S102 - our own code


@pytest.mark.parametrize("kind", ["grey, 16 bits", "grey, a level transparent", "RGB, a colour transparent", "strip"])
def test_the_code_of_the_readme_refuses_what_pil_would_read_wrongly(tiny_bundle, tmp_path, kind):
    levels = np.arange(64 * 64).reshape(64, 64)
    colours = np.stack([levels % 256] * 3, -1).astype(np.uint8)
    images = {
        "grey, 16 bits": (levels.astype(np.uint16), {}),
        "grey, a level transparent": ((levels % 256).astype(np.uint8), {"transparency": 5}),
        "RGB, a colour transparent": (colours, {"transparency": (5, 5, 5)}),
        "strip": (colours.reshape(1, -1, 3), {}),
    }
    pixels, options = images[kind]
    Image.fromarray(pixels).save(tmp_path / "photo.png", **options)
    with pytest.raises(SystemExit, match="divide it" if kind == "strip" else "convert it to RGB or RGBA first"):
        run_card(tiny_bundle.open().metadata, tmp_path / "photo.png")


@pytest.mark.parametrize("suffix", ["eps", "tga", "tif", "pcx", "jp2"])
def test_the_code_of_the_readme_opens_no_other_container(tiny_bundle, tmp_path, suffix):
    """PIL starts Ghostscript for EPS, and takes any bytes for TGA; of TIFF it reads some kinds wrongly."""
    Image.new("RGB", (40, 40)).save(tmp_path / f"photo.{suffix}")
    with pytest.raises(UnidentifiedImageError):
        run_card(tiny_bundle.open().metadata, tmp_path / f"photo.{suffix}")


CUT_PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR a PNG that was cut"


@pytest.mark.parametrize(
    "content", [b"", b"GIF89a", b"<html>", b"\xff\xd8\xff", b"\xff\xd8\xff\xe0 a JPEG that was cut", CUT_PNG]
)
def test_the_code_for_encoded_images_refuses_what_its_decoder_does_not_survive(tmp_path, monkeypatch, content):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photo.jpg").write_bytes(content)
    code = f"import numpy as np\n{ENCODED_CODE[ENCODED_CODE.index('image =') : ENCODED_CODE.index('logits')]}"
    with pytest.raises(SystemExit, match="not a whole JPEG or PNG file"):
        exec(code, {})  # noqa: S102 - our own code


@pytest.mark.parametrize("kind", ["float-nchw", "head-only"], indirect=True)
def test_two_exports_are_the_same_bytes(bundle, again):
    """But for the date in the manifest."""
    names = sorted(str(path.relative_to(bundle.path)) for path in bundle.path.rglob("*") if path.is_file())
    assert names == sorted(str(path.relative_to(again.path)) for path in again.path.rglob("*") if path.is_file())
    differing = [name for name in names if (bundle.path / name).read_bytes() != (again.path / name).read_bytes()]
    assert set(differing) <= {"manifest.json"}
    one, other = (json.loads((found.path / "manifest.json").read_text()) for found in (bundle, again))
    assert {key for key in one if one[key] != other[key]} <= {"created"}


def test_no_path_of_this_machine_is_in_a_bundle(bundle, tiny_run):
    run = tiny_run.record
    places = [run.features.path, run.features.source.source, run.backbone.checkpoint]
    places = [str(Path(place).parent) for place in places] + [
        sys.prefix,
        str(Path(__file__).parents[3]),
        str(Path.home()),
    ]
    for path in bundle.path.rglob("*"):
        for place in places if path.is_file() else ():
            assert place.encode() not in path.read_bytes(), (path.name, place)


def test_a_bundle_knows_the_place_of_its_training(bundle, tiny_run):
    """By hashes; an older bundle by the path itself."""
    features = tiny_run.record.features
    source = features.source.source
    older = replace(bundle, manifest=replace(bundle.manifest, features=FeaturesOrigin(**vars(features))))
    for found in (bundle, older):
        assert same_source(source, found.manifest) is not None
        assert was_trained_on(f"{source}/train/cat", found)
        assert not was_trained_on(f"{source}/test", found)
        assert not was_trained_on(f"{source}elsewhere/train", found)
    data = features.path if bundle.head_only else source
    verified = verify(bundle, data=data)
    assert verified.passed
    assert verified.changed == []
