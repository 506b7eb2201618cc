"""Names, lists, patterns, folders and YAML files of backbones."""

import pytest
import timm
import torchvision

from headsmith.core.errors import InputError
from headsmith.models.backbones.lists import MOST, backbone_lists, expand_backbones

LISTS = ("mobile", "small", "server", "self-supervised", "everything-packaged")
FREE = {"apache-2.0", "mit", "bsd-3-clause"}
PRETRAINED = set(timm.list_models(pretrained=True))


def test_the_lists_are_these():
    assert tuple(backbone_lists()) == LISTS


@pytest.mark.parametrize("name", LISTS)
def test_every_name_of_a_list_is_known_to_the_installed_library(name):
    found = expand_backbones([name])
    assert found == list(backbone_lists()[name])
    networks = [spec.removeprefix("timm:") for spec in found if spec.startswith("timm:")]
    assert set(networks) <= PRETRAINED
    assert [spec for spec in found if not spec.startswith("timm:")] in ([], ["lite0"])


@pytest.mark.parametrize("name", ["mobile", "small", "server"])
def test_what_may_be_deployed_has_a_licence_that_allows_it(name):
    names = [spec.removeprefix("timm:") for spec in backbone_lists()[name] if spec != "lite0"]
    assert {timm.get_pretrained_cfg(one).license for one in names} <= FREE


def test_self_supervised_has_what_it_says():
    names = " ".join(backbone_lists()["self-supervised"])
    assert all(family in names for family in ("dinov2", "dinov3", "siglip", "clip"))
    trained_with_labels = [one for one in names.split() if "_ft_" in one or one.endswith("in1k")]
    assert trained_with_labels == []


def test_patterns_are_those_of_the_libraries():
    assert expand_backbones(["timm:test_*"]) == [f"timm:{name}" for name in timm.list_models("test_*", pretrained=True)]
    resnets = torchvision.models.list_models(include="resnet*", module=torchvision.models)
    assert expand_backbones(["torchvision:resnet*"]) == [f"torchvision:{name}" for name in resnets]
    weights = torchvision.models.get_model_weights("resnet50").__members__
    unlike = [name for name in weights if name != "DEFAULT"]
    assert expand_backbones(["torchvision:resnet50/*"]) == [f"torchvision:resnet50/{name}" for name in unlike]


def test_a_pattern_without_a_library_is_for_both():
    found = expand_backbones(["vgg1?"])
    assert found == [*expand_backbones(["timm:vgg1?"]), *expand_backbones(["torchvision:vgg1?"])]
    assert expand_backbones(["shufflenet*"]) == expand_backbones(["torchvision:shufflenet*"])


def test_names_stay_in_order_and_once():
    named = ["torchvision:resnet18", "lite0", "mobile", "timm:tinynet_a", "lite0"]
    assert expand_backbones(named) == ["torchvision:resnet18", *backbone_lists()["mobile"]]


@pytest.mark.parametrize(
    ("first", "same"),
    [
        ("timm:resnet18", f"timm:resnet18.{timm.get_pretrained_cfg('resnet18').tag}"),
        ("torchvision:resnet50", "torchvision:resnet50/DEFAULT"),
        ("torchvision:resnet50", "torchvision:resnet50/IMAGENET1K_V2"),
    ],
)
def test_two_names_of_the_same_weights_are_one_backbone(first, same):
    assert expand_backbones([first, same]) == [first]
    assert expand_backbones([same, first]) == [same]


def test_other_weights_of_a_network_are_another_backbone():
    both = ["torchvision:resnet50/IMAGENET1K_V1", "torchvision:resnet50/IMAGENET1K_V2"]
    assert expand_backbones(both) == both


def test_a_network_without_pretrained_weights_can_be_named():
    """Its weights come from a checkpoint."""
    bare = next(
        name
        for name in timm.list_models()
        if timm.get_pretrained_cfg(name) is None or not timm.is_model_pretrained(name)
    )
    assert expand_backbones([f"timm:{bare}"]) == [f"timm:{bare}"]


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("zoo/b.onnx", "zoo/a.onnx", "zoo/c.txt", "zoo/deeper/d.onnx", "zoo/[1].onnx", "other/e.onnx"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("name", "files"),
    [
        ("onnx:zoo/", ["zoo/[1].onnx", "zoo/a.onnx", "zoo/b.onnx"]),
        ("onnx:zoo", ["zoo/[1].onnx", "zoo/a.onnx", "zoo/b.onnx"]),
        ("onnx:zoo/[1].onnx", ["zoo/[1].onnx"]),
        ("onnx:zoo/?.onnx", ["zoo/a.onnx", "zoo/b.onnx"]),
        ("onnx:*/e.onnx", ["other/e.onnx"]),
        ("onnx:zoo/c.txt", ["zoo/c.txt"]),
    ],
)
def test_onnx_files(zoo, name, files):
    assert expand_backbones([name]) == [f"onnx:{file}" for file in files]
    absolute = name.replace("onnx:", f"onnx:{zoo}/")
    assert expand_backbones([absolute, name]) == [f"onnx:{zoo}/{file}" for file in files]


@pytest.mark.parametrize("text", ["- {}\n", "backbones:\n- {}\n"])
def test_a_yaml_file_of_names(zoo, text):
    path = zoo / "other" / "mine.yaml"
    path.write_text(text.format("\n- ".join(["onnx:e.onnx", "lite0", "timm:test_v*", "everything-packaged"])))
    assert expand_backbones(["lite0", "other/mine.yaml"]) == [
        "lite0",
        "onnx:other/e.onnx",
        *expand_backbones(["timm:test_v*"]),
    ]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ([], r"^backbones: none named, expected a list \(mobile, small, .*\), lite0, timm:NAME"),
        (["mobil"], r"^`?backbones`? mobil: expected .*; did you mean mobile\?"),
        (["Lite0"], r"did you mean lite0\?"),
        (["resnet50"], r"did you mean timm:resnet50\?"),
        (["resnet50.a1_in1k"], r"did you mean timm:resnet50\.a1_in1k\?"),
        (["vit_b_16"], r"did you mean torchvision:vit_b_16\?"),
        (["tim:resnet50"], "expected a list"),
        ([""], "expected a list"),
        (["timm:"], "no such model in timm"),
        (["timm:resnet1888"], "no such model in timm .*; did you mean resnet18"),
        (["timm:resnet18.a9_in1k"], "no such weights; expected one of a1_in1k, a2_in1k"),
        (["torchvision:resnet5"], "no such classifier; did you mean resnet50"),
        (["torchvision:resnet18/V7"], "no such weights; expected one of IMAGENET1K_V1, DEFAULT"),
        (["torchvision:fcn_resnet50"], "no such classifier"),
        (["timm:nothing_like_it*"], "matches none of timm's pretrained models$"),
        (["timm:resnext50_32x4dd*"], "matches none of timm's pretrained models; did you mean resnext50_32x4d"),
        (["torchvision:resnett*"], "matches none of torchvision's classifiers; did you mean resnet"),
        (["torchvision:resnet50/V9*"], "matches none of torchvision's weights"),
        (["nothing_like_it*"], "matches none of timm's pretrained models"),
        (["onnx:zoo/aa.onnx"], r"no such file or folder; did you mean a\.onnx"),
        (["onnx:empty"], r"no ONNX file in it, expected files that end in \.onnx"),
        (["onnx:empty/*.onnx"], r"no ONNX file in it"),
        (["gone.yaml"], "^gone.yaml: not found"),
    ],
)
def test_names_that_mean_nothing(zoo, names, message):
    with pytest.raises(InputError, match=message) as caught:
        expand_backbones(names)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"mine\.yaml: None found, expected a list of backbones"),
        ("[]", r"mine\.yaml: \[\] found"),
        ("backbones: []", r"mine\.yaml: \[\] found"),
        ("backbones: lite0", "'lite0' found, expected a list"),
        ("models: [lite0]", "expected a list of backbones, or backbones: with one"),
        ("[lite0, 3]", r"mine\.yaml: backbone 2: 3 found, expected a name such as"),
        ("[mine.yaml]", "backbone 1: mine.yaml found, expected no other YAML file"),
        (
            "[lite0, timm:resnet1888]",
            r"mine\.yaml: backbone 2: timm:resnet1888: no such model .* resnet18",
        ),
        ("[onnx:a.onnx]", r"mine\.yaml: backbone 1: onnx:a\.onnx: no such file"),
    ],
)
def test_a_yaml_file_that_is_wrong(zoo, text, message):
    (zoo / "mine.yaml").write_text(text)
    with pytest.raises(InputError, match=message):
        expand_backbones(["mine.yaml"])


def test_too_many_are_counted_and_must_be_allowed():
    everything = len(PRETRAINED)
    with pytest.raises(InputError, match=rf"^backbones: {everything:,} backbones found, expected at most {MOST}; name"):
        expand_backbones(["timm:*"])
    assert len(expand_backbones(["timm:*"], allow_many=True)) == everything


def test_one_text_is_no_list_of_them():
    with pytest.raises(InputError, match="names: 'lite0' found, expected a list of text"):
        expand_backbones("lite0")
