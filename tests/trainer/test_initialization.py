"""What a head starts from: the backbone's classifier, found by name, or a saved head; never by luck."""

import copy
import dataclasses

import pytest
import torch
from timm.data import ImageNetInfo

from headsmith.core.errors import InputError
from headsmith.core.files import sha256_file
from headsmith.models import Preprocessing, backbone_classifier, build_head, load_backbone, save_head
from headsmith.models.backbone_record import BackboneRecord
from headsmith.trainer import TrainConfig
from headsmith.trainer.initialization import initialized_head
from headsmith.trainer.run import CONFIG, HEAD
from headsmith.trainer.run_record import (
    RECORD,
    FeaturesRecord,
    InitializationRecord,
    RunRecord,
    RunResults,
    write_run_record,
)

RECIPE = Preprocessing("shortest", (36, 36), (32, 32), "bicubic", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
RECORD_A = BackboneRecord(
    spec="a", tap="pooled", feature_dim=5, weights_sha256="a" * 64, preprocessing=RECIPE, probe=(0.0,)
)


@pytest.fixture(scope="module")
def lite0():
    return load_backbone("lite0")


@pytest.fixture(scope="module")
def classifier(lite0):
    return backbone_classifier(lite0)


def start(value, features, names, record, **settings):
    return initialized_head(TrainConfig(start=str(value), **settings), features, names, record)


def test_zeros():
    initialization = start("zeros", 5, ["a", "b"], None, head="mlp", hidden=3)
    assert initialization.head.options == {"hidden": 3}
    assert initialization.record == InitializationRecord("zeros")


@pytest.mark.parametrize(("head", "size", "factor"), [("linear", 10.0, 0.2), ("linear", 0.1, 1), ("cosine", 10.0, 1)])
def test_random_weights_of_a_linear_head_are_smaller_for_large_features(head, size, factor):
    initialization = start("random", 5, ["a", "b"], None, head=head)
    fresh = build_head(head, 5, 2)
    initialization(fresh, size)
    torch.testing.assert_close(fresh.weight, factor * initialization.head.weight)


def test_a_pretrained_classifier_is_itself_whatever_the_features(lite0, classifier):
    initialization = start("backbone-in-order", 1280, [str(index) for index in range(1000)], lite0.record())
    fresh = build_head("linear", 1280, 1000)
    initialization(fresh, 10.0)
    assert torch.equal(fresh.weight, classifier.weight)


@pytest.mark.parametrize("head", ["linear", "norm_linear"])
def test_classes_of_a_subset_are_found_by_name(lite0, classifier, head):
    synsets = ImageNetInfo().label_names()
    outputs = torch.randperm(1000, generator=torch.Generator().manual_seed(0))[:200].tolist()
    names = [synsets[output] for output in outputs]
    names.insert(50, "unicorn")
    head, record = start("backbone", 1280, names, lite0.record(), head=head)
    x = torch.randn(3, 1280)
    logits, expected = head(x), x @ classifier.weight.T + classifier.bias
    known = [index for index in range(201) if index != 50]
    torch.testing.assert_close(logits[:, known], expected[:, outputs], atol=1e-4, rtol=0)
    assert logits[:, 50].abs().max() == 0
    assert record == InitializationRecord("backbone", "lite0", ["unicorn"])


def test_unknown_names_are_refused_unless_the_order_is_said_to_be_right(lite0, classifier):
    numbers = [str(index) for index in range(1000)]
    with pytest.raises(InputError, match="knows none of the classes .*'0'.*'n01440764'.*backbone-in-order"):
        start("backbone", 1280, numbers, lite0.record())
    initialization = start("backbone-in-order", 1280, numbers, lite0.record())
    assert torch.equal(initialization.head.weight, classifier.weight)
    with pytest.raises(InputError, match="has 1000 outputs, the feature set 999 classes"):
        start("backbone-in-order", 1280, numbers[:-1], lite0.record())


def test_a_backbone_whose_outputs_nobody_names(lite0, monkeypatch):
    nameless = copy.copy(lite0)
    nameless.source = dataclasses.replace(lite0.source, class_names=lambda: None)
    monkeypatch.setattr("headsmith.models.backbone.backbone_from_record", lambda record: nameless)
    with pytest.raises(InputError, match="the classes of the backbone's 1000 outputs are not known"):
        start("backbone", 1280, ["n01440764", "n01443537"], lite0.record())


@pytest.mark.parametrize(("head", "norm"), [("cosine", "standard"), ("mlp", "standard"), ("norm_linear", "layer")])
def test_heads_that_are_not_affine_cannot_start_from_a_classifier(lite0, head, norm):
    with pytest.raises(InputError, match="cannot start from an affine classifier"):
        start("backbone", 1280, ["n01440764", "n01443537"], lite0.record(), head=head, norm=norm)


def test_a_feature_set_of_unknown_origin_has_no_classifier():
    with pytest.raises(InputError, match="does not say which backbone it is from; use zeros"):
        start("backbone", 5, ["a", "b"], None)


@pytest.fixture
def saved(tmp_path):
    """A function: a kind of head to a run folder with a random head of classes a, b, c on 5 features."""

    def make(kind="linear", record=RECORD_A, **options):
        folder = tmp_path / kind
        folder.mkdir()
        torch.manual_seed(0)
        head = build_head(kind, 5, 3, **options)
        for parameter in head.parameters():
            torch.nn.init.normal_(parameter)
        if options.get("norm") == "standard":
            head.fit_statistics(torch.randn(5), torch.rand(5) + 0.1)
        save_head(head, folder / HEAD)
        TrainConfig(head=kind).save(folder / CONFIG)
        made = RunRecord(
            class_names=["a", "b", "c"],
            loss={},
            initialization=InitializationRecord("zeros"),
            backbone=record,
            features=FeaturesRecord("features", "f", None, "float16"),
            results=RunResults(1, 1.0, None, None),
            warnings=[],
            device="cpu",
            seed=0,
            versions={},
            created="2026-01-01",
            head_sha256=sha256_file(folder / HEAD),
            config_sha256=sha256_file(folder / CONFIG),
        )
        write_run_record(folder / RECORD, made)
        return folder, head

    return make


KINDS = [
    ("linear", {}),
    ("norm_linear", {"norm": "standard"}),
    ("norm_linear", {"norm": "layer"}),
    ("cosine", {}),
    ("mlp", {"hidden": 4}),
]


@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_a_saved_head_is_taken_over_its_classes_in_order(saved, kind, options):
    folder, head = saved(kind, **options)
    x = torch.randn(6, 5)
    for path in (folder, folder / HEAD):
        initialization = start(path, 5, ["c", "a", "b"], RECORD_A, head=kind, **options)
        torch.testing.assert_close(initialization.head(x), head(x)[:, [2, 0, 1]])
        assert initialization.record == InitializationRecord(str(path), head_sha256=sha256_file(folder / HEAD))


@pytest.mark.parametrize("bank", [None, 3])
@pytest.mark.parametrize(("kind", "options"), KINDS)
def test_it_gives_a_fresh_head_or_bank_its_function(saved, kind, options, bank):
    folder, head = saved(kind, **options)
    fresh = build_head(kind, 5, 3, bank=bank, seed=1, **options)
    if options.get("norm") == "standard":
        fresh.fit_statistics(torch.ones(5), torch.full((5,), 2.0))
    start(folder, 5, ["a", "b", "c"], RECORD_A, head=kind, **options)(fresh)
    x = torch.randn(6, 5)
    expected = head(x) if bank is None else head(x).expand(3, 6, 3)
    torch.testing.assert_close(fresh(x), expected, atol=1e-4, rtol=1e-4)
    if options.get("norm") == "standard":
        assert fresh.mean.tolist() == [1] * 5


@pytest.mark.parametrize(("old", "new"), [("linear", "norm_linear"), ("norm_linear", "linear")])
def test_affine_heads_start_from_each_other(saved, old, new):
    folder, head = saved(old, **({"norm": "standard"} if old == "norm_linear" else {}))
    x = torch.randn(6, 5)
    initialization = start(folder, 5, ["a", "b", "c"], RECORD_A, head=new)
    assert initialization.head.kind == new
    torch.testing.assert_close(initialization.head(x), head(x), atol=1e-4, rtol=1e-4)


def test_other_kinds_do_not(saved):
    folder, _ = saved("mlp", hidden=4)
    with pytest.raises(InputError, match="its head is mlp hidden=4, expected mlp hidden=8"):
        start(folder, 5, ["a", "b", "c"], RECORD_A, head="mlp", hidden=8)
    with pytest.raises(InputError, match="its head is mlp hidden=4, expected linear"):
        start(folder, 5, ["a", "b", "c"], RECORD_A)


@pytest.mark.parametrize(
    ("features", "names", "record", "message"),
    [
        (6, "abc", RECORD_A, "its head takes 5 features, the feature set has 6"),
        (5, "ab", RECORD_A, r"a head of 3 classes for a feature set of 2; only the head has \['c'\]"),
        (5, "abd", RECORD_A, r"only the head has \['c'\], only the feature set \['d'\]"),
        (
            5,
            "abc",
            dataclasses.replace(RECORD_A, weights_sha256="b" * 64),
            "of a aaaaaaaaaaaa, the feature set is of a bbb",
        ),
        (5, "abc", dataclasses.replace(RECORD_A, tap="hidden"), "tap differs"),
        (5, "abc", None, "the feature set is of an unknown backbone"),
    ],
)
def test_a_head_of_other_features_or_classes_is_refused(saved, features, names, record, message):
    folder, _ = saved()
    with pytest.raises(InputError, match=message):
        start(folder, features, list(names), record)


def test_heads_of_an_unknown_backbone_fit_features_of_an_unknown_backbone(saved):
    folder, head = saved(record=None)
    assert torch.equal(start(folder, 5, list("abc"), None).head.weight, head.weight)


def test_a_start_that_is_not_there(tmp_path):
    with pytest.raises(
        InputError, match="start: '.*gone' found, expected random, zeros, backbone, backbone-in-order, a run folder"
    ):
        start(tmp_path / "gone", 5, ["a", "b"], RECORD_A)
    save_head(build_head("linear", 5, 2), tmp_path / HEAD)
    with pytest.raises(InputError, match="run.json: not found"):
        start(tmp_path / HEAD, 5, ["a", "b"], RECORD_A)
