"""Classes of a held-out set and outputs of a model are brought together by name."""

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from timm.data.imagenet_info import ImageNetInfo

from headsmith.core.errors import InputError
from headsmith.evaluate.zoo.external_class_names import columns, meaning, read_names, readable
from headsmith.evaluate.zoo.labels_in_metadata import other_labels
from headsmith.models.class_names import match_classes

SYNSETS = ImageNetInfo("imagenet-1k").label_names()


@pytest.fixture(scope="module")
def imagenet(tmp_path_factory):
    return read_names("imagenet-1k", tmp_path_factory.mktemp("none"), "model.onnx")


def test_by_wordnet_id_whatever_the_order(imagenet):
    order = np.random.default_rng(0).permutation(1000)
    np.testing.assert_array_equal(match_classes([SYNSETS[place] for place in order], imagenet, "data"), order)


def test_by_name_alphabetical_against_synset_order(imagenet):
    classes = sorted(["tench", "goldfish", "great white shark", "hen"])
    assert match_classes(classes, imagenet, "data").tolist() == [1, 2, 8, 0]


def test_of_200_classes_the_200_outputs(imagenet):
    subset = SYNSETS[::5]
    np.testing.assert_array_equal(match_classes(subset, imagenet, "data"), np.arange(0, 1000, 5))


def test_labels_in_any_order_are_known_by_every_name():
    known = columns(["hen", "tench"])
    assert known[0] == ("hen", "tench")
    assert match_classes(["n01440764", "n01514859"], known, "data").tolist() == [1, 0]
    assert columns(["hen", "unheard of"]) == (("hen", "unheard of"),)


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (
            ["n01440764", "n99999999"],
            "data: 1 of its 2 classes are not among the 1000 labels of the classifier, such as 'n99999999'",
        ),
        (
            ["tench", "goldfsh"],
            r"1 of its 2 classes are not among .*, such as 'goldfsh'; did you mean goldfish",
        ),
        (["roads", "rivers"], "data: 2 of its 2 classes are not among .* such as 'roads'"),
        (["crane"], "1 of its 1 classes are not among .* such as 'crane'"),  # a bird and a machine
        ([str(number) for number in range(1, 1001)], r"its classes are the numbers 1\.\.1000, .* are different orders"),
    ],
)
def test_never_by_luck(imagenet, classes, message):
    with pytest.raises(InputError, match=message):
        match_classes(classes, imagenet, "data")


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("imagenet-2k", "labels imagenet-2k: timm knows no such set of classes; expected e.g. imagenet-1k"),
        ("none.txt", "labels none.txt: no such file"),
        (["a", "a"], "label 'a' found 2 times"),
    ],
)
def test_names_that_cannot_be_read(tmp_path, labels, message):
    with pytest.raises(InputError, match=message):
        read_names(labels, tmp_path, "model.onnx")


def test_labels_that_mean_the_same_class():
    assert [meaning(label) for label in ("n01440764", "tench", "tench, Tinca tinca")] == ["n01440764"] * 3
    assert [readable(label) for label in ("n01440764", "tench", "oak")] == ["n01440764 tench", "tench", "oak"]
    assert [meaning("oak"), meaning("crane")] == ["oak", "crane"]  # a bird and a machine


@pytest.mark.parametrize(
    ("key", "text", "said"),
    [
        ("labels", '["cat", "emu"]', "emu for output 1, its labels here dog"),
        ("names", '{"1": "cat", "0": "dog"}', "dog for output 0, its labels here cat"),
        ("classes", '["cat", "dog", "emu"]', "3 labels, its labels here 2"),
        ("labels", '["cat", "dog"]', None),
        ("labels", '["", 3]', None),
        ("labels", "cat, dog", None),
        ("labels", "[" * 100_000, None),
    ],
)
def test_labels_in_the_metadata_that_contradict_are_told(key, text, said):
    model = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], []))
    onnx.helper.set_model_props(model, {key: text})
    found = [*other_labels(ir.from_proto(model), (("cat", "dog"),))]
    assert [one.code for one in found] == ["other-labels"] * (said is not None)
    assert said is None or f"its metadata ({key}) say {said}" in found[0].message
