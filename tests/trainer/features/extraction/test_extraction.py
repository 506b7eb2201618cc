import json
import logging
from collections import Counter

import datasets
import numpy as np
import pytest
import timm
import torch
from PIL import Image
from sklearn.datasets import load_sample_image
from timm.data import create_transform, resolve_data_config

from headsmith.core.errors import InputError
from headsmith.core.files import sha256_json
from headsmith.models import load_backbone
from headsmith.models.images import UnreadableImage
from headsmith.trainer.features import FeatureSet, extract, open_images
from headsmith.trainer.features.extraction import extraction
from headsmith.trainer.features.images import batches
from headsmith.trainer.features.images.samples import ImageSource


@pytest.fixture(scope="module")
def folder(image_folder):
    return image_folder({"cat": 12, "dog": 11, "owl": 10})


@pytest.fixture(scope="module")
def features(folder, tiny_backbone, tmp_path_factory):
    return extract(
        folder, out=tmp_path_factory.mktemp("out") / "set", dtype="float32", device="cpu", **tiny_backbone._asdict()
    )


def reference(tiny_backbone):
    """The network and transform of timm itself."""
    network = timm.create_model("test_resnet")
    network.load_state_dict(torch.load(tiny_backbone.checkpoint, weights_only=True))
    size = tiny_backbone.image_size
    config = resolve_data_config({"input_size": (3, size, size)}, model=network)
    return network.eval(), create_transform(**config)


def test_every_row_is_timms_own_feature_of_its_image(folder, features, tiny_backbone):
    network, transform = reference(tiny_backbone)
    for split in ("train", "val", "test"):
        stored, labels = features.arrays(split)
        samples = open_images(folder).split(split).samples
        assert features.ids(split) == [s.id for s in samples]
        assert labels.tolist() == [s.label for s in samples]
        for row, name in enumerate(features.ids(split)):
            with torch.inference_mode():
                image = transform(Image.open(folder / name).convert("RGB"))[None]
                direct = network.forward_head(network.forward_features(image), pre_logits=True)[0]
            torch.testing.assert_close(stored[row], direct, atol=2e-3, rtol=0)  # a pixel may round the other way
            assert stored[row].any()


def test_row_0_is_a_direct_forward(folder, features, tiny_backbone):
    network, _ = reference(tiny_backbone)
    recipe = load_backbone(**arguments(tiny_backbone)).preprocessing
    pixels = recipe(Image.open(folder / features.ids("train")[0]).convert("RGB"))
    image = (torch.from_numpy(pixels).permute(2, 0, 1)[None] / 255 - 0.5) / 0.5
    with torch.inference_mode():
        direct = network.forward_head(network.forward_features(image), pre_logits=True)
    torch.testing.assert_close(features.arrays("train")[0][:1], direct, atol=1e-5, rtol=0)


def arguments(tiny):
    return {"spec": tiny.backbone, "checkpoint": tiny.checkpoint, "image_size": tiny.image_size}


@pytest.mark.parametrize("workers", [4, 12])  # threads, and processes
def test_a_feature_is_the_same_alone_and_in_a_batch(folder, features, tiny_backbone, tmp_path, workers, monkeypatch):
    monkeypatch.setattr(batches, "_FEW", 0)
    options = {"dtype": "float32", "device": "cpu", **tiny_backbone._asdict()}
    alone = extract(folder, out=tmp_path / "set", batch_size=1, workers=workers, **options)
    for split in ("train", "val", "test"):
        assert alone.ids(split) == features.ids(split)
        torch.testing.assert_close(alone.arrays(split)[0], features.arrays(split)[0], atol=1e-5, rtol=0)


def test_batch_norm_statistics_stay(folder, tiny_backbone, tmp_path, monkeypatch):
    built = []
    monkeypatch.setattr(extraction, "load_backbone", lambda *a, **k: built.append(load_backbone(*a, **k)) or built[-1])
    extract(folder, out=tmp_path / "set", device="cpu", **tiny_backbone._asdict())
    before = load_backbone(**arguments(tiny_backbone)).state_dict()
    after = built[0].state_dict()
    assert any("running_var" in name for name in after)
    assert all(torch.equal(after[name], value) for name, value in before.items())
    assert not any(module.training for module in built[0].modules())


def test_datasets_opens_the_folder(features):
    data = datasets.load_from_disk(str(features.path))
    assert {split: len(rows) for split, rows in data.items()} == {"train": 27, "val": 3, "test": 3}
    train = data["train"]
    assert train.features == datasets.Features(
        {
            "id": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["cat", "dog", "owl"]),
            "features": datasets.List(datasets.Value("float32"), length=96),
            "picture": datasets.Value("string"),
        }
    )
    assert train["id"][:] == features.ids("train")
    assert np.array_equal(train.with_format("numpy")["features"][:], features.arrays("train")[0].numpy())
    assert train[26]["label"] == 2


def test_the_manifest_says_where_the_features_came_from(folder, features, tiny_backbone):
    manifest, images = features.manifest, open_images(folder)
    assert manifest.source == images.source == ImageSource(str(folder))
    assert manifest.source_fingerprint == images.fingerprint
    assert manifest.split_rule == images.split_rule
    assert manifest.splits == {"train": 27, "val": 3, "test": 3}
    assert manifest.backbone == load_backbone(**arguments(tiny_backbone)).record()
    values = np.concatenate([features.arrays(split)[0].numpy() for split in manifest.splits])
    statistics = manifest.statistics
    assert statistics.min == values.min()
    assert statistics.max == values.max()
    assert statistics.mean_norm == pytest.approx(np.linalg.norm(values, axis=1).mean(), rel=1e-6)
    assert statistics.images_per_second == pytest.approx(33 / statistics.seconds, rel=0.1)
    assert not manifest.unreadable
    assert not features.path.with_name("set.partial").exists()


def test_float16_is_the_rounded_feature(folder, features, tiny_backbone, tmp_path):
    half = extract(folder, out=tmp_path / "set", **tiny_backbone._asdict())
    assert half.arrays("val")[0].dtype == torch.float16
    assert torch.equal(half.arrays("val")[0], features.arrays("val")[0].half())
    assert half.fingerprint != features.fingerprint


def test_unreadable_images_are_left_out_and_listed(image_folder, tiny_backbone, tmp_path):
    folder = image_folder({"train": {"cat": 4, "dog": 4}, "val": {"cat": 2, "dog": 2}, "test": {"cat": 2, "dog": 2}})
    (folder / "train/cat/001.png").rename(folder / "train/cat/001.jpg")
    (folder / "train/cat/001.jpg").write_text("dear diary")
    photo = folder / "test/dog/000.png"
    photo.write_bytes(photo.read_bytes()[:200])
    found = extract(folder, out=tmp_path / "set", **tiny_backbone._asdict())
    assert [one.id for one in found.manifest.unreadable] == ["train/cat/001.jpg", "test/dog/000.png"]
    assert found.manifest.unreadable[0].reason.startswith("not a readable image")
    assert found.manifest.splits == {"train": 7, "val": 4, "test": 3}
    assert "train/cat/001.jpg" not in found.ids("train")
    with pytest.raises(UnreadableImage, match="train/cat/001.jpg: not a readable image.*without `strict`"):
        extract(folder, out=tmp_path / "strict", strict=True, **tiny_backbone._asdict())
    assert not (tmp_path / "strict").exists()


@pytest.mark.parametrize(
    ("gone", "message"),
    [("train/cat", r"no training image of class 'cat' is readable: train/cat/000.png \("), ("val", "no image of val")],
)
def test_too_few_readable_images(image_folder, tiny_backbone, tmp_path, gone, message):
    folder = image_folder({"train": {"cat": 2, "dog": 4}, "val": {"dog": 2}, "test": {"dog": 2}})
    for path in (folder / gone).rglob("*.png"):
        path.write_text("")
    with pytest.raises(InputError, match=message):
        extract(folder, out=tmp_path / "set", **tiny_backbone._asdict())
    assert not (tmp_path / "set").exists()


def scaled(tiny_backbone, tmp_path, factor):
    state = torch.load(tiny_backbone.checkpoint, weights_only=True)
    for name, value in state.items():
        if name == "layer4.0.downsample.2.weight":
            value *= factor
    torch.save(state, tmp_path / "scaled.pth")
    return tiny_backbone._replace(checkpoint=tmp_path / "scaled.pth")._asdict()


def test_float16_overflow_names_the_sample_and_the_way_out(folder, tiny_backbone, tmp_path):
    backbone = scaled(tiny_backbone, tmp_path, 1e7)
    first = open_images(folder).samples[0].id
    with pytest.raises(InputError, match=f"{first}: a feature is beyond .*float16's range; .* `dtype` float32"):
        extract(folder, out=tmp_path / "set", **backbone)
    assert not (tmp_path / "set").exists()
    wide = extract(folder, out=tmp_path / "wide", dtype="float32", **backbone)
    assert wide.manifest.statistics.max > 65504


def test_a_backbone_that_gives_nan_is_refused(folder, tiny_backbone, tmp_path):
    with pytest.raises(InputError, match="NaN"):
        extract(folder, out=tmp_path / "set", dtype="float32", **scaled(tiny_backbone, tmp_path, float("nan")))
    assert not (tmp_path / "set").exists()


def test_bad_arguments(folder, tmp_path, tiny_backbone):
    with pytest.raises(InputError, match="dtype: 'bfloat16' is not known; expected one of"):
        extract(folder, out=tmp_path / "set", dtype="bfloat16", **tiny_backbone._asdict())
    with pytest.raises(InputError, match="batch_size: 0 found, expected at least 1"):
        extract(folder, out=tmp_path / "set", batch_size=0, **tiny_backbone._asdict())
    assert not list(tmp_path.iterdir())


def test_a_datasets_source_extracts_to_the_same_features(folder, features, tiny_backbone, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "_FEW", 0)
    images = open_images(folder)
    kind = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=images.class_names)})
    data = {
        split: datasets.Dataset.from_dict(
            {
                "image": [str(folder / s.id) for s in images.split(split).samples],
                "label": [s.label for s in images.split(split).samples],
            },
            features=kind,
        )
        for split in ("train", "val", "test")
    }
    datasets.DatasetDict(data).save_to_disk(tmp_path / "images")
    found = extract(tmp_path / "images", out=tmp_path / "set", dtype="float32", device="cpu", **tiny_backbone._asdict())
    for split in data:
        assert torch.equal(found.arrays(split)[0], features.arrays(split)[0])
        assert torch.equal(found.arrays(split)[1], features.arrays(split)[1])
    assert found.manifest.source.image_column == "image"


def test_real_photographs_under_lite0(tmp_path):
    for name in ("china", "flower"):
        photo = Image.fromarray(load_sample_image(f"{name}.jpg"))
        (tmp_path / "photos" / name).mkdir(parents=True)
        for number, edge in enumerate((0, 8, 16)):
            crop = photo.crop((edge, edge, 640 - edge, 427 - edge))
            crop.save(tmp_path / "photos" / name / f"{number}.jpg", quality=90)
    found = extract(tmp_path / "photos", out=tmp_path / "set")
    head = load_backbone("lite0").network.classifier
    names = timm.data.ImageNetInfo()
    for split in ("train", "val", "test"):
        rows, labels = found.arrays(split)
        with torch.inference_mode():
            best = head(rows.float()).topk(5).indices
        for row, label in enumerate(labels.tolist()):
            words = " ".join(names.index_to_description(int(index)) for index in best[row])
            assert {"china": "monastery", "flower": "daisy"}[found.class_names[label]] in words
    assert Counter(found.manifest.splits) == {"train": 2, "val": 2, "test": 2}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_gives_the_features_of_the_cpu(folder, features, tiny_backbone, tmp_path):
    found = extract(folder, out=tmp_path / "set", dtype="float32", device="cuda", **tiny_backbone._asdict())
    for split in features.splits:
        torch.testing.assert_close(found.arrays(split)[0], features.arrays(split)[0], atol=1e-5, rtol=1e-4)


def test_nothing_is_printed(folder, tiny_backbone, tmp_path, capfd, caplog):
    with caplog.at_level(logging.INFO, "headsmith"):
        assert isinstance(extract(folder, out=tmp_path / "set", **tiny_backbone._asdict()), FeatureSet)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_an_output_inside_the_images_is_refused(image_folder, tiny_backbone):
    images = image_folder({"cat": 4, "dog": 4})
    with pytest.raises(InputError, match="is inside the images"):
        extract(images, out=images / "features", **tiny_backbone._asdict())
    assert sorted(path.name for path in images.iterdir()) == ["cat", "dog"]


def test_what_images_held_beside_plain_colours_is_counted_and_seen(image_folder, tiny_backbone, tmp_path):
    folder = image_folder({"cat": 6, "dog": 6})
    for name, hidden in (("cat/000.png", (255, 0, 0, 0)), ("cat/001.png", (0, 0, 255, 0))):
        Image.new("RGBA", (40, 40), hidden).save(folder / name)
    Image.new("CMYK", (40, 40)).save(folder / "dog/000.jpg")
    Image.new("F", (40, 40), 0.5).save(folder / "dog/001.tiff")
    found = extract(folder, out=tmp_path / "set", **tiny_backbone._asdict())
    assert found.manifest.remarks == {"transparency": 2, "CMYK pixels, converted": 1}
    assert found.manifest.request.transform["background"] == [255, 255, 255]
    (entry,) = found.manifest.unreadable
    assert entry.id == "dog/001.tiff"
    assert "mode F" in entry.reason
    rows = {
        name: row for split in found.splits for name, row in zip(found.ids(split), found.arrays(split)[0], strict=True)
    }
    assert torch.equal(rows["cat/000.png"], rows["cat/001.png"])


def test_features_from_before_backgrounds_are_of_another_transform(image_folder, tiny_backbone, tmp_path):
    folder, out = image_folder({"cat": 4, "dog": 4}), tmp_path / "set"
    extract(folder, out=out, **tiny_backbone._asdict())
    manifest = json.loads((out / "manifest.json").read_text())
    del manifest["request"]["transform"]["background"], manifest["backbone"]["preprocessing"]["background"]
    manifest["fingerprint"] = sha256_json(manifest["request"])
    (out / "manifest.json").write_text(json.dumps(manifest))
    assert FeatureSet.load(out).feature_dim == 96
    with pytest.raises(InputError, match="another transform .*or background"):
        extract(folder, out=out, **tiny_backbone._asdict())
