"""A proof tells where its held-out pictures are others than those that the head was measured on."""

import shutil

import numpy as np
import pytest
from PIL import Image

from headsmith.core.coded_warnings import CodedWarning
from headsmith.export import ParityError, export_classifier
from headsmith.show import show_bundle
from headsmith.trainer import extract, train

CLASSES = ("ant", "bee")


@pytest.fixture(scope="module")
def trained(image_folder, tiny_backbone, tmp_path_factory):
    """A run, and its images."""
    images = image_folder({split: dict.fromkeys(CLASSES, count) for split, count in (("train", 6), ("test", 10))})
    out = tmp_path_factory.mktemp("trained")
    features = extract(images, out=out / "features", **tiny_backbone._asdict())
    return train(features, out=out / "run", epochs=40, learning_rate=0.05, patience=40, device="cpu"), images


@pytest.fixture
def test_split(trained, tmp_path):
    """The folder of the held-out images, as it was before after the test."""
    folder = trained[1] / "test"
    shutil.copytree(folder, tmp_path / "kept")
    yield folder
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)


def change_a_pixel(path):
    pixels = np.array(Image.open(path))
    pixels[0, 0] ^= 1
    Image.fromarray(pixels).save(path)


def test_pictures_that_were_replaced_lost_or_added(trained, test_split, tmp_path, capsys):
    change_a_pixel(test_split / "bee" / "009.png")
    (test_split / "ant" / "003.png").unlink()
    cut = test_split / "bee" / "004.png"
    cut.write_bytes(cut.read_bytes()[:200])
    shutil.copy(test_split / "ant" / "000.png", test_split / "ant" / "more.png")
    bundle = export_classifier(trained[0], out=tmp_path / "bundle")
    (warning,) = bundle.manifest.warnings
    assert warning == CodedWarning(
        "held-out-changed",
        "the head was measured on 20 held-out pictures, of which some are others now: 1 is not those of the "
        "features (test/bee/009.png); 2 are missing or unreadable now (test/ant/003.png, test/bee/004.png); 1 is new "
        "(test/ant/more.png); bring them back, or extract and train again",
    )
    show_bundle(bundle)
    assert f"warning (held-out-changed): {warning.message}" in capsys.readouterr().out
    assert "others than the training measured" in (bundle.path / "README.md").read_text()


def test_the_same_pictures_in_other_bytes_are_the_same(trained, test_split, tmp_path):
    for path in test_split.glob("*/*.png"):
        Image.open(path).save(path, compress_level=0)
    assert export_classifier(trained[0], out=tmp_path / "bundle").manifest.warnings == ()


def test_where_the_accuracy_is_another_one_the_pictures_are_named(trained, test_split, tmp_path):
    """The first of them too, on which the features are compared."""
    for path in (test_split / "ant").iterdir():
        shutil.copy(test_split / "bee" / path.name, path)
    message = (
        r"training said 20, and .*: the head was measured on 20 .*: 10 are not .* \(test/ant/000.png, .*, \.\.\.\)"
    )
    with pytest.raises(ParityError, match=message):
        export_classifier(trained[0], out=tmp_path / "bundle")
