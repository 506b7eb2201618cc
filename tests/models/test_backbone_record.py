"""What files say of a backbone, in the form of this version and of those before it."""

import json

import pytest

from headsmith.core.errors import DamagedFileError
from headsmith.core.files import sha256_json
from headsmith.core.records import to_json
from headsmith.models.backbone_record import BackboneRecord

RECIPE = {
    "resize_mode": "shortest",
    "resize_size": [36, 36],
    "crop_size": [32, 32],
    "interpolation": "bicubic",
    "mean": [0.5, 0.5, 0.5],
    "std": [0.5, 0.5, 0.5],
    "scale": 1 / 255,
    "antialias": True,
    "channel_order": "rgb",
    "layout": "nchw",
    "background": [255, 255, 255],
}
# As the version before wrote it, in run.json and manifest.json.
TIMM = {
    "spec": "timm:test_resnet",
    "checkpoint": "/weights/tiny.pth",
    "image_size": 32,
    "checkpoint_sha256": "c" * 64,
    "tap": "timm forward_head(pre_logits=True)",
    "feature_dim": 96,
    "weights_sha256": "a" * 64,
    "preprocessing": RECIPE,
    "probe": [0.5, 0, 1e-6],
}
ONNX = TIMM | {
    "spec": "onnx:zoo.onnx",
    "checkpoint": None,
    "image_size": None,
    "file": "models/zoo.onnx",
    "layer": "last",
    "drop_background": False,
}


@pytest.mark.parametrize("written", [TIMM, ONNX])
def test_a_record_has_the_fields_of_the_version_before(written):
    record = BackboneRecord.of(json.loads(json.dumps(written)))
    assert to_json(record) == written
    assert BackboneRecord.of(to_json(record)) == record


def test_recipes_from_before_transparency_keep_their_hash():
    old = {key: value for key, value in RECIPE.items() if key != "background"}
    record = BackboneRecord.of(TIMM | {"preprocessing": old})
    assert record.preprocessing.background is None
    assert to_json(record)["preprocessing"] == old
    assert record.preprocessing.digest == sha256_json(old)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"probe": "0.5"}, "backbone: probe: found '0.5', expected a list; extract the features again"),
        ({"preprocessing": 3}, "backbone: preprocessing: found 3, expected an object"),
        ({"preprocessing": RECIPE | {"mean": [0.5]}}, "preprocessing.mean: found a list, expected a list of 3"),
        ({"wieghts": 1}, "wieghts: is no field of this version"),
    ],
)
def test_damage_is_told_with_its_field(change, message):
    with pytest.raises(DamagedFileError, match=message):
        BackboneRecord.of(TIMM | change)
