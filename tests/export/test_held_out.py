"""Held-out inputs: what is held out, and classes matched by name."""

import dataclasses
import shutil

import pytest
from PIL import Image

from headsmith.core.errors import InputError
from headsmith.evaluate.held_out_record import HeldOutRecord, HeldOutSource
from headsmith.evaluate.open_held_out import open_data, part_trained_on
from headsmith.export import training_source
from headsmith.export.options import FEATURES
from headsmith.export.training_source import held_out_features, training_images
from headsmith.models.class_names import match_classes
from headsmith.trainer import FeatureSet, extract, open_images, train
from headsmith.trainer.features.extraction import extraction
from headsmith.trainer.features.images.samples import ImageSource

NUMBERS = [str(number) for number in range(12)]


def test_order_does_not_matter():
    """Folders 0..11 sort as text in one place and as numbers in another: '2' is class 4 or class 2."""
    as_text = sorted(NUMBERS)
    assert as_text.index("2") == 4
    found = match_classes(as_text, (tuple(NUMBERS),), "here")
    assert [NUMBERS[index] for index in found] == as_text


def test_a_subset_of_the_classes_is_fine():
    assert match_classes(["b"], (("a", "b", "c"),), "here").tolist() == [1]


def test_an_unknown_class_is_named_with_near_names():
    with pytest.raises(InputError, match=r"here: 1 of its 2 classes .* the 2 labels .* did you mean tabby\?"):
        match_classes(["tabby", "tabbi"], (("tabby", "lynx"),), "here")
    with pytest.raises(InputError, match="2 of its 2 classes .*, such as 'x'; its labels are 'tabby', ..."):
        match_classes(["x", "y"], (("tabby", "lynx"),), "here")


def held_out_images(data, origin, bundle):
    return training_source.held_out_images(data, origin).for_classifier(bundle.open().metadata)


def ids_of(held_out):
    return [sample for batch in held_out.batches(5) for sample in batch.ids]


@pytest.mark.parametrize("moved", [False, True])
def test_of_the_training_source_only_the_held_out_part_is_taken(tiny_run, tiny_bundle, tmp_path, moved):
    folder = tiny_run.record.features.source.source
    if moved:
        folder = shutil.copytree(folder, tmp_path / "elsewhere")
    held_out = held_out_images(folder, tiny_bundle.manifest, tiny_bundle)
    assert ids_of(held_out) == FeatureSet.load(tiny_run.record.features.path).ids("test")
    assert len(held_out) == 12


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("suffix", ["png", "bmp"])
def test_the_held_out_part_of_a_source_with_copies_is_the_one_that_was_written(
    tiny_run, tiny_bundle, tiny_backbone, image_folder, tmp_path, suffix, moved
):
    """Copies of bytes, and copies in another format, which only extraction sees; measured as it was written."""
    folder = image_folder(dict.fromkeys(tiny_run.class_names, 20))
    for path in list(folder.glob("*/*.png")):
        copy = path.with_name(f"copy_{path.stem}.{suffix}")
        Image.open(path).save(copy)
    features = extract(folder, out=tmp_path / "set", device="cpu", **tiny_backbone._asdict())
    run = train(features, out=tmp_path / "run", epochs=1, device="cpu")
    data = shutil.copytree(folder, tmp_path / "elsewhere") if moved else folder
    origin = run.record
    held_out = held_out_images(data, origin, tiny_bundle)
    assert ids_of(held_out) == features.ids("test")
    assert training_images("val", data, origin).ids == features.ids("val")
    if not moved:
        held_out = held_out_images(None, origin, tiny_bundle)
        assert ids_of(held_out) == features.ids("test")
    part = part_trained_on(HeldOutSource(str(data)), [origin])
    source = HeldOutSource(str(data), part=part)
    found = open_data(source)
    assert found.ids == features.ids("test")
    HeldOutRecord(found.name, found.fingerprint, [], 1, source, []).write(tmp_path / "data.json")
    assert open_data(HeldOutRecord.read(tmp_path / "data.json").source).ids == features.ids("test")


def test_a_run_of_an_older_version_keeps_its_held_out_part(
    tiny_run, tiny_bundle, tiny_backbone, image_folder, tmp_path, monkeypatch
):
    """Its record does not say that copies were kept together: they were not."""
    folder = image_folder(dict.fromkeys(tiny_run.class_names, 20))
    for path in list(folder.glob("*/*.png")):
        shutil.copyfile(path, path.with_name(f"copy_{path.name}"))
    old = dataclasses.replace(open_images(folder, together=False), carved=())
    monkeypatch.setattr(extraction, "open_images", lambda *_, **__: old)
    features = extract(folder, out=tmp_path / "set", device="cpu", **tiny_backbone._asdict())
    monkeypatch.undo()
    assert features.manifest.source == ImageSource(str(folder))
    assert features.manifest.copies.across.keys() == {"val", "test"}
    run = train(features, out=tmp_path / "run", epochs=1, device="cpu")
    for data in (folder, shutil.copytree(folder, tmp_path / "elsewhere")):
        held_out = held_out_images(data, run.record, tiny_bundle)
        assert ids_of(held_out) == features.ids("test") != open_images(folder).split("test").samples
        part = part_trained_on(HeldOutSource(str(data)), [run.record])
        assert open_data(HeldOutSource(str(data), part=part)).ids == features.ids("test")


def test_a_folder_of_class_folders_is_held_out_whole(tiny_run, tiny_bundle, image_folder):
    folder = image_folder({"gnu": 3, "cat": 2})
    held_out = held_out_images(folder, tiny_run.record, tiny_bundle)
    (batch,) = held_out.batches(64)
    assert batch.labels.tolist() == [0, 0, 4, 4, 4]
    assert held_out.fingerprint == open_images(folder, splits=False).fingerprint


def test_as_many_other_images_are_held_out_whole(tiny_run, tiny_bundle, image_folder):
    folder = image_folder(dict.fromkeys(tiny_run.class_names, 20), size=41)
    held_out = held_out_images(folder, tiny_run.record, tiny_bundle)
    assert len(held_out) == 120


def test_of_a_divided_source_the_test_split_is_taken(tiny_run, tiny_bundle, image_folder):
    folder = image_folder({"train": {"cat": 2, "dog": 2}, "val": {"cat": 1}, "test": {"dog": 1}})
    held_out = held_out_images(folder, tiny_run.record, tiny_bundle)
    assert ids_of(held_out) == ["test/dog/000.png"]


def test_unreadable_images_are_listed(tiny_run, tiny_bundle, image_folder):
    folder = image_folder({"cat": 3})
    (folder / "cat" / "001.png").write_text("text")
    held_out = held_out_images(folder, tiny_run.record, tiny_bundle)
    assert [batch.ids for batch in held_out.batches(64)] == [["cat/000.png", "cat/002.png"]]
    assert [one.id for one in held_out.unreadable] == ["cat/001.png"]


def test_features_of_another_backbone_are_refused(tiny_run, tiny_bundle):
    path = tiny_run.record.features.path
    about = dataclasses.replace(tiny_bundle.open().metadata, input_format=FEATURES)
    assert len(held_out_features(path).for_classifier(about)) == 12
    for key, value in (("weights_sha256", "0" * 64), ("tap", "another layer of equal width")):
        other = dataclasses.replace(about, backbone=dataclasses.replace(about.backbone, **{key: value}))
        with pytest.raises(InputError, match="expected the same weights, layer and preprocessing"):
            held_out_features(path).for_classifier(other)
    other = dataclasses.replace(about, preprocessing=dataclasses.replace(about.preprocessing, mean=(0.1, 0.2, 0.3)))
    with pytest.raises(InputError, match="expected the same weights, layer and preprocessing"):
        held_out_features(path).for_classifier(other)
