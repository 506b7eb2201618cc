from dataclasses import replace

import datasets
import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import functional as transforms

from headsmith.core.errors import InputError
from headsmith.core.records import to_json
from headsmith.models import Preprocessing, load_backbone
from headsmith.trainer import train
from headsmith.trainer.features import FeatureSet, extract, inspect_features, open_images
from headsmith.trainer.features.extraction.embedding import Embedder
from headsmith.trainer.features.extraction.request import Request
from headsmith.trainer.features.extraction.views import Views

RECIPE = Preprocessing("shortest", (40, 40), (32, 32), "bicubic", (0.5,) * 3, (0.5,) * 3)
TEN = [
    *("centre", "top left", "top right", "bottom left", "bottom right", "centre, mirrored"),
    *("top left, mirrored", "top right, mirrored", "bottom left, mirrored", "bottom right, mirrored"),
]


@pytest.fixture(scope="module")
def folder(image_folder):
    found = image_folder({"cat": 8, "dog": 7}, size=53)
    (found / "cat" / "004.png").write_text("no image")
    return found


@pytest.fixture(scope="module")
def options(folder, tiny_backbone):
    return {"images": folder, "dtype": "float32", "device": "cpu", "batch_size": 7, **tiny_backbone._asdict()}


@pytest.fixture(scope="module")
def plain(options, tmp_path_factory):
    return extract(out=tmp_path_factory.mktemp("plain") / "set", **options)


@pytest.fixture(scope="module")
def ten(options, tmp_path_factory):
    return extract(out=tmp_path_factory.mktemp("ten") / "set", crops=5, flip=True, **options)


def noise(width, height):
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8))


@pytest.mark.parametrize("size", [(53, 53), (70, 45), (41, 90)])
def test_views_are_torchvisions_ten_crops_with_the_deployed_one_first(size):
    image = noise(*size)
    expected = [np.array(crop) for crop in transforms.ten_crop(RECIPE.resize(image), [32, 32])]
    found = Views(RECIPE, 5, True)(image, "train")
    order = [4, 0, 1, 2, 3, 9, 6, 5, 8, 7]  # the mirror image of its top left is that of our top right
    assert np.array_equal(found, [expected[place] for place in order])
    assert np.array_equal(found[0], RECIPE(image))
    assert Views(RECIPE, 5, True).names == TEN


def test_fewer_views():
    image = noise(60, 50)
    ten = Views(RECIPE, 5, True)(image, "train")
    assert np.array_equal(Views(RECIPE, 5)(image, "train"), ten[:5])
    assert np.array_equal(Views(RECIPE, 1, True)(image, "train"), ten[[0, 5]])
    assert np.array_equal(Views(RECIPE)(image, "train"), ten[:1])
    for split in ("val", "test"):
        assert np.array_equal(Views(RECIPE, 5, True)(image, split), ten[:1])


def test_views_are_rows_with_the_same_id(ten, plain, folder, tiny_backbone):
    assert ten.ids("train")[::10] == plain.ids("train")
    assert all(ten.ids("train")[row] == name for row, name in enumerate(np.repeat(plain.ids("train"), 10)))
    rows, labels = ten.arrays("train")
    assert torch.equal(labels, plain.arrays("train")[1].repeat_interleave(10))
    torch.testing.assert_close(rows[::10], plain.arrays("train")[0], atol=1e-5, rtol=0)
    network = load_backbone(tiny_backbone.backbone, checkpoint=tiny_backbone.checkpoint, image_size=32)
    image = Image.open(folder / ten.ids("train")[20])
    corner = transforms.five_crop(network.preprocessing.resize(image), [32, 32])[3]
    with torch.inference_mode():
        direct = network((transforms.pil_to_tensor(transforms.hflip(corner))[None] / 255 - 0.5) / 0.5)[0]
    torch.testing.assert_close(rows[20 + TEN.index("bottom right, mirrored")], direct, atol=1e-4, rtol=0)


def test_what_is_measured_keeps_the_one_view_that_is_deployed(ten, plain):
    for split in ("val", "test"):
        assert ten.ids(split) == plain.ids(split)
        torch.testing.assert_close(ten.arrays(split)[0], plain.arrays(split)[0], atol=1e-5, rtol=0)


def test_views_are_recorded(ten, plain):
    assert ten.manifest.views == ten.manifest.request.views == TEN
    assert plain.manifest.views is None
    assert ten.manifest.splits == plain.manifest.splits | {"train": 10 * plain.manifest.splits["train"]}
    assert ten.manifest.unreadable == plain.manifest.unreadable
    data = datasets.load_from_disk(str(ten.path))
    assert data["train"]["view"][:] == list(range(10)) * plain.manifest.splits["train"]
    assert set(data["test"]["view"][:]) == {0}
    assert "view" not in datasets.load_from_disk(str(plain.path))["train"].column_names
    assert FeatureSet.load(ten.path).fingerprint == ten.fingerprint != plain.fingerprint
    statistics = ten.manifest.statistics
    assert statistics.images_per_second == pytest.approx(14 / statistics.seconds, rel=0.1)


def test_repeated_ids_are_no_leak(ten):
    found = inspect_features(ten.path)
    assert found.leaked_ids.count == 0
    assert found.problems == []


def test_a_head_trains_on_views(ten, tmp_path):
    run = train(ten, out=tmp_path / "run", epochs=2, device="cpu")
    assert run.record.results.test.n == len(ten.ids("test"))


def test_other_views_are_refused_by_name_both_ways(options, ten, plain):
    for found, asked in ((ten, {}), (ten, {"flip": True}), (plain, {"crops": 5})):
        with pytest.raises(InputError, match=r"made with other views of the training images \(`crops`, `flip`\);"):
            extract(out=found.path, **options, **asked)


def test_the_images_are_known_again_whatever_the_views(ten, plain, folder):
    images = open_images(folder)
    request = Request.of_images(plain.manifest.backbone, images.fingerprint, images.split_rule, "float32")
    assert request.fingerprint == plain.fingerprint
    assert to_json(request).keys() == {"backbone", "weights", "transform", "source", "split_rule", "dtype"}
    assert request.gave(plain.fingerprint)
    assert request.gave(ten.fingerprint)
    assert request.gave(replace(request, amp="float16").fingerprint)
    assert not replace(request, source="0" * 64).gave(ten.fingerprint)


@pytest.mark.parametrize(
    ("crops", "message"), [(3, "^crops: 3 found, expected 1 or 5$"), (10, "ten crops are `crops` 5 `flip`")]
)
def test_numbers_of_crops_that_are_none(options, tmp_path, crops, message):
    with pytest.raises(InputError, match=message):
        extract(out=tmp_path / "set", crops=crops, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("resized", [(32, 32), (32, 64), (30, 40)])
def test_crops_of_an_image_that_is_not_larger(resized):
    recipe = Preprocessing("exact", resized, (32, 32), "bicubic", (0.5,) * 3, (0.5,) * 3)
    if resized == (32, 64):
        assert len(Views(recipe, 5).names) == 5
        return
    with pytest.raises(InputError, match=r"crops 5: this backbone resizes images to .* and crops 32 x 32"):
        Views(recipe, 5)


def test_autocast_is_refused_on_a_cpu(options, tmp_path):
    with pytest.raises(InputError, match="amp: only for CUDA devices, this one is cpu; leave it out"):
        extract(out=tmp_path / "set", amp=True, **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_autocast_on_a_gpu(options, plain, tmp_path):
    found = extract(out=tmp_path / "set", amp=True, **options | {"device": "cuda"})
    assert found.manifest.amp == found.manifest.request.amp == "float16"
    torch.testing.assert_close(found.arrays("train")[0], plain.arrays("train")[0], atol=0.02, rtol=0.02)
    with pytest.raises(InputError, match=r"another precision of the network \(`amp`\)"):
        extract(out=tmp_path / "set", **options | {"device": "cuda"})


def test_features_in_flight_come_in_order_and_name_the_bad_one(tiny_backbone):
    network = load_backbone(tiny_backbone.backbone, checkpoint=tiny_backbone.checkpoint, image_size=32)
    embed = Embedder(network, torch.device("cpu"), torch.float16, False)
    pixels = np.random.default_rng(0).integers(0, 256, (6, 32, 32, 3), dtype=np.uint8)
    pending = [embed(pixels[[row]], [str(row)]) for row in range(6)]
    together = embed(pixels, list("abcdef")).wait()
    torch.testing.assert_close(torch.cat([found.wait() for found in pending]), together, atol=1e-3, rtol=1e-3)
    beyond = replace(pending[2], stored=torch.full((1, 96), torch.inf, dtype=torch.float16))
    with pytest.raises(InputError, match="^2: a feature is beyond torch.float16's range"):
        beyond.wait()
