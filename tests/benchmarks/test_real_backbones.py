"""The parts of `benchmarks.real_backbones` that download nothing: catalogue, weights, free image sizes, artists."""

import zipfile

import numpy as np
import onnx
import pytest
import torch
import yaml
from torch import nn

from benchmarks.real_backbones.drawings import artist_of
from benchmarks.real_backbones.networks import PackagedNetwork, entries, packaged_networks, renamed
from benchmarks.real_sets.registries import PINS
from headsmith import load_backbone
from headsmith.core.files import read_json
from headsmith.models.recipe_file import recipe_of

RECIPE = {"scale": 1, "mean": [104, 117, 123], "std": 1, "channel_order": "bgr"}


def test_all_networks_are_pinned_and_have_a_library_or_a_recipe():
    networks, pins = packaged_networks(), read_json(PINS)
    assert len(networks) >= 8
    for one in networks:
        assert bool(one.library) != bool(one.recipe)
        assert one.library == "lite0" or f"pip/{one.package}" in pins


def wheel(path, **files):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"package/models/{name}.onnx", content)
    return path


@pytest.mark.parametrize(("layout", "shape"), [("nchw", "N,3,8,8"), ("nhwc", "N,8,8,3")])
def test_a_fixed_image_size_is_freed_where_the_layers_allow_it(onnx_file, tmp_path, layout, shape):
    turn = "t = Transpose<perm=[0,3,1,2]>(images)" if layout == "nhwc" else "t = Identity(images)"
    body = f"{turn} c = Conv(t, k) p = GlobalAveragePool(c) f = Flatten(p) scores = Gemm<transB=1>(f, w, b)"
    file = onnx_file(f"(float[{shape}] images) => (float[N,5] scores) {{ {body} }}", k=(4, 3, 1, 1), w=(5, 4), b=(5,))
    package = wheel(tmp_path / "package-1.0-py3-none-any.whl", net=file.read_bytes())
    network = PackagedNetwork("ours", "", "", "package", "net.onnx", recipe=RECIPE)
    (out := tmp_path / "out").mkdir()
    rows = entries(network, package, (8, 12), out)
    assert [row["name"] for row in rows] == ["ours-8", "ours-12"]
    assert sorted(path.name for path in out.iterdir()) == ["ours-12.yaml", "ours-8.yaml", "ours.onnx"]
    for row, size in zip(rows, (8, 12), strict=True):
        recipe = recipe_of(yaml.safe_load((out / row["preprocessing"]).read_text()), "recipe", layout)
        backbone = load_backbone(row["backbone"].replace("onnx:", f"onnx:{out}/"), preprocessing=recipe)
        assert backbone.preprocessing.crop_size == (size, size)
        assert backbone(backbone.pattern()).shape == (1, 4)


def test_an_image_size_that_layers_fix_stays(onnx_file, tmp_path):
    file = onnx_file(
        "(float[N,3,2,4] images) => (float[N,5] scores) { f = Flatten(images) scores = Gemm(f, w) }", w=(24, 5)
    )
    package = wheel(tmp_path / "package-1.0-py3-none-any.whl", net=file.read_bytes())
    network = PackagedNetwork("ours", "", "", "package", "net.onnx", layer="scores", recipe=RECIPE, sizes=(2, 4))
    (row,) = entries(network, package, (8, 12), tmp_path)
    assert row == {
        "backbone": "onnx:ours.onnx",
        "name": "ours-2x4",
        "preprocessing": "ours-2x4.yaml",
        "layer": "scores",
    }
    shape = onnx.load(tmp_path / "ours.onnx").graph.input[0].type.tensor_type.shape.dim
    assert [axis.dim_value for axis in shape][1:] == [3, 2, 4]


def test_tensors_take_other_names_and_another_classifier_gives_way_to_zeros():
    packaged, built = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 1)), nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 9))
    found = renamed({f"old.{key}": value for key, value in packaged.state_dict().items()}, built.state_dict())
    built.load_state_dict(found)
    images = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32))
    torch.testing.assert_close(built[0](images), packaged[0](images))
    assert not built(images).any()


def test_a_body_of_other_shapes_is_refused():
    packaged, built = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1)), nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 9))
    with pytest.raises(ValueError, match="expected \\(4, 3\\)"):
        renamed(packaged.state_dict(), built.state_dict())


SVG = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:dc="http://purl.org/dc/elements/1.1/"
  xmlns:cc="http://web.resource.org/cc/"><metadata><dc:title>Fawn</dc:title>{}</metadata></svg>"""


@pytest.mark.parametrize(
    ("creator", "artist"),
    [
        (
            "<dc:creator><cc:Agent><dc:title>Jean-Victor Balin (balin_j@epita.fr)</dc:title></cc:Agent></dc:creator>",
            "balin",
        ),
        ("<dc:creator><cc:Agent><dc:title>Jean-VIctor Balin</dc:title></cc:Agent></dc:creator>", "balin"),
        ("<dc:creator>Jakob [mail]</dc:creator>", "jakob"),
        ("<dc:creator><cc:Agent><dc:title></dc:title></cc:Agent></dc:creator>", ""),
        ("", ""),
        ("<broken>", ""),
    ],
)
def test_the_artist_of_a_drawing(creator, artist):
    assert artist_of(SVG.format(creator).encode()) == artist
