"""What a source names: bundles, files, folders, patterns."""

import shutil

import pytest
import timm
import torchvision

from headsmith.core.errors import InputError
from headsmith.evaluate.zoo import find_candidates, open_candidate
from headsmith.evaluate.zoo.exported import published
from headsmith.evaluate.zoo.zoo_rows import expand


def names(*sources):
    return [row.id for row in expand(sources)]


def test_patterns_are_those_of_the_libraries():
    assert names("timm:test_*") == [f"timm:{name}" for name in timm.list_models("test_*", pretrained=True)]
    resnets = torchvision.models.list_models(include="resnet*", module=torchvision.models)
    assert names("torchvision:resnet*") == [f"torchvision:{name}" for name in resnets]
    every = [str(weight) for weight in torchvision.models.get_model_weights("resnet50")]
    found = names("torchvision:resnet50/*")
    assert [name.partition("/")[2] for name in found] == [name.partition(".")[2] for name in every]


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ((), "no model named; expected bundles, files, timm:NAME"),
        (("timm:nothing_like_it*",), r"timm:nothing_like_it\*: matches none of timm's pretrained models"),
        (("torchvision:resnet50/nothing*",), "matches none of torchvision's weights"),
        (("zoo:onnx-ligth",), r"no such zoo; expected one of onnx-light; did you mean onnx-light\?"),
        (("lite0", "lite0"), "lite0: named 2 times; expected every model once"),
    ],
)
def test_sources_that_name_nothing(sources, message):
    with pytest.raises(InputError, match=message):
        find_candidates(sources)


def test_a_folder_without_models(tmp_path):
    with pytest.raises(InputError, match=r"no model in it; expected bundles or files that end in \.onnx, \.pt2, \.ts"):
        find_candidates([tmp_path])


def test_equal_names_are_told_apart_by_where_they_are(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "model.onnx").touch()
    assert names(tmp_path / "a" / "model.onnx", tmp_path / "b") == [
        str(tmp_path / "a" / "model.onnx"),
        str(tmp_path / "b" / "model.onnx"),
    ]


def test_a_bundle_and_its_files(tiny_bundle, tmp_path):
    """The bundle, its ONNX file and its TorchScript file are the same classifier."""
    shutil.copytree(tiny_bundle.path, tmp_path / "inside" / "tiny")
    shutil.copy(tiny_bundle.path / "model.ts", tmp_path / "inside" / "traced.ts")
    found = list(find_candidates([tiny_bundle.path / "model.onnx", tmp_path / "inside"]))
    assert [one.id for one in found] == ["model", "tiny", "traced"]
    assert {one.labels for one in found} == {tuple(tiny_bundle.class_names)}
    assert {one.preprocessing for one in found} == {tiny_bundle.preprocessing}
    assert found[0].fingerprint == found[1].fingerprint != found[2].fingerprint
    assert found[1].parameters == tiny_bundle.manifest.parameters
    assert (found[0].bundle, found[1].bundle.manifest) == (None, tiny_bundle.manifest)
    assert [type(open_candidate(one, threads=1)).__name__ for one in found] == ["OnnxModel"] * 2 + ["TorchScriptModel"]


def test_what_a_file_says_itself_is_not_said_again(tiny_bundle, tmp_path):
    zoo = tmp_path / "zoo.yaml"
    zoo.write_text(f"models: [{{id: a, source: {tiny_bundle.path}/model.onnx, labels: imagenet-1k}}]")
    (found,) = find_candidates([zoo])
    assert found.error.endswith("model.onnx: already has its labels; leave that out of its row")
    zoo.write_text(f"models: [{{id: a, source: {tiny_bundle.path}, checkpoint: w.pth}}]")
    (found,) = find_candidates([zoo])
    assert found.error.endswith("checkpoint w.pth found, which is for timm: and torchvision: networks")


@pytest.mark.parametrize("name", ["resnet50/IMAGENET1K_V1", "vit_b_16"])
def test_torchvisions_figures_are_published(name):
    network, _, tag = name.partition("/")
    meta = torchvision.models.get_model_weights(network)[tag or "DEFAULT"].meta["_metrics"]["ImageNet-1K"]
    found = published(f"torchvision:{name}")
    assert (found.top1, found.top5) == (meta["acc@1"], meta["acc@5"])
    assert published("timm:resnet50") is None


@pytest.mark.parametrize(
    "said",
    [{"labels": "names.txt"}, {"background": 0}, {"output": "logits"}, {"preprocessing": "recipe.yaml"}],
)
def test_what_no_model_asks_for_is_refused(tiny_bundle, said):
    (name,) = said
    for source in (tiny_bundle.path, tiny_bundle.path / "model.onnx", tiny_bundle.path / "model.ts", "timm:resnet18"):
        with pytest.raises(InputError, match=f"^{name}: .* found, but it is for ONNX files that do not say it"):
            find_candidates([source], **said)


def test_a_checkpoint_is_for_networks_of_libraries(tiny_bundle):
    with pytest.raises(InputError, match="^checkpoint: w.pth found, but it is for timm: and torchvision: networks"):
        find_candidates([tiny_bundle.path], checkpoint="w.pth")
