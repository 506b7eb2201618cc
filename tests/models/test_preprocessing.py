"""The recipe against the libraries whose recipe it states."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
import timm
import torch
import torchvision
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from sklearn.datasets import load_sample_image
from timm.data import create_transform, resolve_data_config
from torchvision.transforms import InterpolationMode, functional

from headsmith.core.errors import InputError
from headsmith.core.files import sha256_json
from headsmith.models import Normalize, Preprocessing
from headsmith.models.images import UnreadableImage
from headsmith.models.preprocessing import INTERPOLATIONS, WHITE
from headsmith.models.recipe_file import read_recipe

GENERIC = {"interpolation": "bilinear", "mean": (0.5, 0.5, 0.5), "std": (0.5, 0.5, 0.5)}


@pytest.fixture(scope="module", params=["china.jpg", "flower.jpg"])
def photo(request):
    return Image.fromarray(load_sample_image(request.param))


def normalised(recipe: Preprocessing, image: Image.Image) -> torch.Tensor:
    return Normalize(recipe)(torch.from_numpy(recipe(image)).permute(2, 0, 1)[None])[0]


@pytest.mark.parametrize("name", ["tf_efficientnet_lite0", "resnet50", "vit_base_patch16_224", "convnext_tiny"])
@pytest.mark.parametrize("size", [None, 96])
def test_equals_timm(photo, name, size):
    config = dict(timm.get_pretrained_cfg(name).to_dict())
    asked = {} if size is None else {"input_size": (3, size, size)}
    config = resolve_data_config(asked, pretrained_cfg=config)
    expected = create_transform(**config, is_training=False)(photo)
    torch.testing.assert_close(normalised(Preprocessing.from_timm(config), photo), expected, atol=1e-6, rtol=0)


def test_squash_equals_timm(photo):
    config = resolve_data_config({"crop_mode": "squash"}, pretrained_cfg=timm.get_pretrained_cfg("resnet50").to_dict())
    expected = create_transform(**config, is_training=False)(photo)
    torch.testing.assert_close(normalised(Preprocessing.from_timm(config), photo), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    "weights", ["ResNet50_Weights.IMAGENET1K_V2", "ViT_B_16_Weights.DEFAULT", "Swin_T_Weights.DEFAULT"]
)
def test_equals_torchvision(photo, weights):
    preset = torchvision.models.get_weight(weights).transforms()
    recipe = Preprocessing.from_torchvision(preset)
    torch.testing.assert_close(normalised(recipe, photo), preset(photo), atol=1e-6, rtol=0)


EDGE = st.integers(1, 40)


@given(
    size=st.tuples(EDGE, EDGE),
    resize=st.one_of(EDGE, st.tuples(EDGE, EDGE)),
    crop=st.tuples(EDGE, EDGE),
    interpolation=st.sampled_from(INTERPOLATIONS),
)
def test_pixels_equal_torchvision_s_resize_and_centre_crop(size, resize, crop, interpolation):
    noise = np.random.default_rng(sum(size)).integers(0, 256, (*size, 3), dtype=np.uint8)
    mode, edges = ("exact", resize) if isinstance(resize, tuple) else ("shortest", (resize, resize))
    found = Preprocessing(mode, edges, crop, interpolation, (0.5,) * 3, (0.5,) * 3)(Image.fromarray(noise))
    resized = functional.resize(
        Image.fromarray(noise), list(edges) if mode == "exact" else [resize], InterpolationMode(interpolation)
    )
    np.testing.assert_array_equal(found, np.asarray(functional.center_crop(resized, list(crop))))


def test_a_recipe_is_read_and_followed_without_torch():
    code = "import sys, headsmith.models.preprocessing, headsmith.models.images; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def ramp() -> Image.Image:
    """100 wide, 200 high; rows rise from 0 to 255."""
    return Image.fromarray(np.linspace(0, 255, 200).round().astype(np.uint8)[:, None].repeat(100, 1)).convert("RGB")


def test_shortest_keeps_the_middle_and_exact_squashes():
    shortest = Preprocessing("shortest", (50, 50), (50, 50), **GENERIC)(ramp())
    exact = Preprocessing("exact", (50, 50), (50, 50), **GENERIC)(ramp())
    assert shortest.shape == exact.shape == (50, 50, 3)
    assert 62 <= shortest[0, 0, 0] <= 66
    assert 189 <= shortest[-1, 0, 0] <= 193
    assert exact[0, 0, 0] < 6


def test_shrinking_filters_over_all_pixels():
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::4] = 255
    shrunk = Preprocessing("shortest", (16, 16), (16, 16), **GENERIC)(Image.fromarray(stripes))
    assert set(shrunk[2:-2, 2:-2].ravel()) <= {63, 64}


def test_uniform_grey_is_normalised_by_the_stated_constants():
    recipe = Preprocessing("shortest", (8, 8), (8, 8), **GENERIC)
    grey = normalised(recipe, Image.new("RGB", (20, 20), (128, 128, 128)))
    torch.testing.assert_close(grey, torch.full((3, 8, 8), (128 / 255 - 0.5) / 0.5))


def test_every_field_is_in_the_digest_and_survives_the_round_trip():
    recipe = Preprocessing("exact", (40, 30), (32, 24), "bicubic", (0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    assert Preprocessing.from_dict(recipe.to_dict()) == recipe
    changes = {
        "resize_mode": "shortest",
        "resize_size": (40, 40),
        "crop_size": (24, 24),
        "interpolation": "bilinear",
        "mean": (0.0, 0.2, 0.3),
        "std": (0.4, 0.5, 0.7),
        "scale": 1.0,
        "background": (0, 0, 0),
    }
    base = dataclasses.replace(recipe, resize_size=(40, 40), resize_mode="exact")
    digests = {base.digest}
    for name, value in changes.items():
        if getattr(base, name) != value:
            digests.add(dataclasses.replace(base, **{name: value}).digest)
    assert len(digests) == len(changes)  # resize_size equals the base's, every other one differs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"resize_mode": "longest"}, "resize_mode: 'longest'"),
        ({"interpolation": "cubic"}, "interpolation: 'cubic'"),
        ({"resize_size": (40, 30)}, "resize_size"),
        ({"channel_order": "grb"}, "channel_order: 'grb'"),
        ({"layout": "chw"}, "layout: 'chw'"),
        ({"antialias": False}, "antialias: False"),
        ({"background": (0, 0, 256)}, "background: .*expected three whole numbers from 0 to 255"),
        ({"background": (0.5, 0, 0)}, "background: "),
        ({"background": "white"}, "background: 'white'"),
        ({"crop_size": (20000, 20000)}, "crop_size: 20000 x 20000 pixels, expected at most 134 million"),
    ],
)
def test_what_cannot_be_done_is_refused(change, message):
    recipe = Preprocessing("shortest", (8, 8), (8, 8), **GENERIC)
    with pytest.raises(InputError, match=message):
        dataclasses.replace(recipe, **change)


def test_unknown_and_missing_keys_are_refused():
    values = Preprocessing("shortest", (8, 8), (8, 8), **GENERIC).to_dict()
    with pytest.raises(InputError, match="is no field of this version|missing"):
        Preprocessing.from_dict(values | {"crop": 1})
    del values["std"]
    with pytest.raises(InputError, match="is no field of this version|missing"):
        Preprocessing.from_dict(values)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("resize_size: .nan", "resize_size holds nan, expected a number"),
        ("std: [.inf, 1, 1]", "std holds inf, expected a number"),
        ("scale: 2026-01-01", "scale holds '2026-01-01', expected a number"),
        ("crop_size: [1, 2, 3]", "crop_size holds a list of 3, expected one number or a list of 2"),
        ("mean: yes", "mean holds True, expected a number"),
        ("layout: 3", "layout: 3 is not known"),
        ("interpolation: [bilinear]", r"interpolation: \['bilinear'\] is not known"),
    ],
)
def test_a_recipe_with_values_of_another_kind(tmp_path, line, said):
    keys = {"resize_mode": "exact", "resize_size": 8, "crop_size": 8, "interpolation": "bilinear", "mean": 0, "std": 1}
    keys |= {"scale": 1, "layout": "nchw", "channel_order": "rgb"}
    text = "".join(f"{key}: {value}\n" for key, value in keys.items() if key != line.partition(":")[0])
    (tmp_path / "recipe.yaml").write_text(text + line)
    with pytest.raises(InputError, match=rf"recipe\.yaml: {said}"):
        read_recipe(tmp_path / "recipe.yaml", None)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("", (255, 255, 255)), ("background: 7", (7, 7, 7)), ("background: [0, 128, 255]", (0, 128, 255))],
)
def test_a_recipe_says_what_transparency_is_composited_on(tmp_path, line, expected):
    keys = "resize_mode: exact\nresize_size: 8\ncrop_size: 8\ninterpolation: bilinear\nmean: 0\nstd: 1\nscale: 1\n"
    (tmp_path / "recipe.yaml").write_text(f"{keys}channel_order: rgb\nlayout: nchw\n{line}\n")
    recipe = read_recipe(tmp_path / "recipe.yaml", None)
    assert recipe.background == expected
    assert (recipe(Image.new("RGBA", (9, 9), (200, 100, 50, 0))) == expected).all()


def test_a_strip_is_resized_to_no_more_pixels_than_an_image_may_have():
    recipe = Preprocessing("shortest", (4096, 4096), (64, 64), **GENERIC)
    for size, resized in (((10, 1000), "4096 x 409600"), ((90, 10), "36864 x 4096")):
        with pytest.raises(
            UnreadableImage, match=rf"{size[0]} x {size[1]} pixels, .* resizes to {resized}, .* 134 mil"
        ):
            recipe(Image.new("RGB", size))
    assert recipe.resized((80, 10)) == (32768, 4096)  # 2^27 pixels


def test_a_recipe_from_before_backgrounds_drops_alpha_and_keeps_its_hash():
    written = {
        "resize_mode": "shortest",
        "resize_size": [8, 8],
        "crop_size": [8, 8],
        "interpolation": "bilinear",
        "mean": [0.5, 0.5, 0.5],
        "std": [0.5, 0.5, 0.5],
        "scale": 1 / 255,
        "antialias": True,
        "channel_order": "rgb",
        "layout": "nchw",
    }
    recipe = Preprocessing.from_dict(written)
    assert recipe.background is None
    assert recipe.to_dict() == written
    assert recipe.digest == sha256_json(written)
    assert Preprocessing.from_dict(Preprocessing("shortest", (8, 8), (8, 8), **GENERIC).to_dict()).background == WHITE
