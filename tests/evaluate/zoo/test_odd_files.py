"""ONNX files of odd interfaces, and weights beside a file: what is run, what is refused, and that a zoo goes on."""

import re

import numpy as np
import pytest
from odd_files import WEIGHTS, WEIGHTS_IN, batch_of, beside, optional, plain, save, sequence, zipmap
from onnx import TensorProto, numpy_helper
from onnx import helper as h
from PIL import Image

from headsmith.core.errors import DamagedFileError, InputError
from headsmith.evaluate import evaluate_classifiers
from headsmith.evaluate.zoo import Candidate, Failed, open_candidate
from headsmith.export.bundle.file_info import file_info
from headsmith.export.formats.onnx_runtime import OnnxModel
from headsmith.models import load_backbone
from headsmith.models.execution_provider import CPU

SMALL = {"resize_size": 2, "crop_size": 2, "mean": 0, "std": 1, "scale": 1, "channel_order": "rgb", "layout": "nchw"}


BATCHES = [-1, 0, -(2**63), 2**40, "N"]


PIXELS = np.random.default_rng(1).integers(0, 256, (5, 2, 2, 3), dtype=np.uint8)


LOGITS = PIXELS.transpose(0, 3, 1, 2).reshape(5, 12).astype(np.float32) @ WEIGHTS


@pytest.fixture
def find(only, recipe_file, labels_file):
    """A function: a file to what is found."""
    return lambda path, **said: only(path, preprocessing=recipe_file(**SMALL), labels=labels_file(3), **said)


@pytest.fixture
def photos(tmp_path):
    """Twelve images of the three classes that `labels_file` names."""
    random = np.random.default_rng(0)
    for number in range(12):
        folder = tmp_path / "photos" / f"class {number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(random.integers(0, 256, (2, 2, 3), dtype=np.uint8)).save(folder / f"{number}.png")
    return tmp_path / "photos"


@pytest.mark.parametrize("batch", BATCHES)
def test_a_batch_axis_of_no_possible_size_is_free(tmp_path, find, recipe_file, batch):
    path = save(batch_of(batch), tmp_path / "m.onnx", None)
    found = find(path)
    assert found.setup.batch is None
    np.testing.assert_allclose(open_candidate(found, threads=1).run(PIXELS).logits, LOGITS, rtol=1e-4)
    assert load_backbone(f"onnx:{path}", preprocessing=recipe_file(**SMALL)).feature_dim == 12
    assert file_info(path).graph.last_layer.outputs == 3


def test_all_axes_may_be_written_so(tmp_path, find):
    proto = batch_of(-1)
    for axis in proto.graph.input[0].type.tensor_type.shape.dim:
        axis.dim_value = -1
    found = find(save(proto, tmp_path / "m.onnx", None))
    np.testing.assert_allclose(open_candidate(found, threads=1).run(PIXELS).logits, LOGITS, rtol=1e-4)


@pytest.mark.parametrize("make", [zipmap, sequence, optional], ids=lambda make: make.__name__)
def test_without_a_tensor_of_scores_a_file_is_refused_in_one_line(tmp_path, find, recipe_file, make):
    path = save(make(), tmp_path / "m.onnx", None)
    opened = (lambda: file_info(path), lambda: load_backbone(f"onnx:{path}", preprocessing=recipe_file(**SMALL)))
    for run in opened:
        with pytest.raises(InputError, match=r"m\.onnx: no output is a tensor \(\w+ is (a sequence|optional)\)"):
            run()
    assert "no output is a tensor" in find(path).error


def test_a_tensor_beside_a_sequence_is_taken(tmp_path, find):
    path = save(zipmap("label", "logits"), tmp_path / "m.onnx", None)
    found = find(path)
    assert found.setup.output == "logits"
    np.testing.assert_allclose(open_candidate(found, threads=1).run(PIXELS).logits, LOGITS, rtol=1e-4)
    outputs = {value.name: value.dtype for value in file_info(path).graph.outputs}
    assert outputs == {"label": "int64", "logits": "float", "probabilities": "a sequence"}


def test_a_label_is_no_tensor_of_scores(tmp_path, find):
    found = find(save(zipmap("label"), tmp_path / "m.onnx", None))
    assert "label [N], probabilities a sequence; expected a tensor of scores" in found.error


def test_a_bad_file_ends_no_zoo(tmp_path, photos, recipe_file, labels_file, monkeypatch):
    zoo = tmp_path / "zoo"
    for name, proto in (("a", zipmap()), ("b", batch_of(-1)), ("c", sequence()), ("d", batch_of("N"))):
        save(proto, zoo / f"{name}.onnx", None)
    (zoo / "e.onnx").write_bytes(b"\x08")
    (zoo / "f.ts").write_bytes(b"PK\x03\x04")
    (zoo / "g.pt2").write_bytes(b"")

    def failing(candidate, *options):
        if candidate.id == "d":
            raise RecursionError("too deep\nfor this")
        return open_candidate(candidate, *options)

    monkeypatch.setattr("headsmith.evaluate.measuring.one_classifier.open_candidate", failing)
    said = {"preprocessing": recipe_file(**SMALL), "labels": labels_file(3)}
    results = evaluate_classifiers(zoo, data=photos, out=tmp_path / "results", threads=1, **said)
    assert [result.model for result in results] == ["b"]
    reasons = {failed.model: failed.error for failed in results.failed}
    assert sorted(reasons) == ["a", "c", "d", "e", "f", "g"]
    assert reasons["d"].endswith("d.onnx: RecursionError: too deep for this")
    assert not any("\n" in reason for reason in reasons.values())


@pytest.mark.parametrize("place", WEIGHTS_IN)
def test_weights_beside_a_file_enter_its_fingerprint_wherever_they_belong(tmp_path, find, place):
    path = save(WEIGHTS_IN[place](), tmp_path / "m.onnx")
    first = find(path)
    assert isinstance(first, Candidate), first
    assert first.bytes == path.stat().st_size + WEIGHTS.nbytes == file_info(path).bytes
    np.testing.assert_allclose(open_candidate(first, threads=1).run(PIXELS).logits, LOGITS, rtol=1e-4)
    save(WEIGHTS_IN[place](), path, -WEIGHTS)
    other = find(path)
    assert other.fingerprint != first.fingerprint
    np.testing.assert_allclose(open_candidate(other, threads=1).run(PIXELS).logits, -LOGITS, rtol=1e-4)


def test_a_constant_beside_a_file_is_part_of_a_backbone(tmp_path, recipe_file):
    proto = WEIGHTS_IN["constant"]()
    last = proto.graph.node[2]
    last.output[0] = "hidden"
    proto.graph.node.add(op_type="MatMul", input=["hidden", "v"], output=["logits"])
    proto.graph.initializer.add(name="v", data_type=1, dims=[3, 3], raw_data=np.eye(3, dtype=np.float32).tobytes())
    prints = []
    for weights in (WEIGHTS, -WEIGHTS):
        path = save(proto, tmp_path / "m.onnx", weights)
        backbone = load_backbone(f"onnx:{path}", preprocessing=recipe_file(**SMALL))
        prints.append(backbone.weights_sha256)
    assert prints[0] != prints[1]


BAD = {
    "missing": ({"location": "gone.bin"}, r"gone\.bin: missing, but m\.onnx has weights in it"),
    "a folder": ({"location": "folder"}, "folder: is no regular file"),
    "absolute": ({"location": "/etc/passwd"}, "outside of the file's folder"),
    "above": ({"location": "../w.bin"}, "outside of the file's folder"),
    "up and down": ({"location": "folder/../w.bin"}, "outside of the file's folder"),
    "a link out": ({"location": "link.bin"}, "outside of the file's folder"),
    "nowhere": ({"location": ""}, "expected a file beside it"),
    "in memory": ({"location": "*/_ORT_MEM_ADDR_/*"}, "expected a file beside it"),
    "behind the end": ({"offset": "4"}, r"end at byte 148 of w\.bin, which holds 144"),
    "huge": ({"offset": str(2**63)}, "offset '9223372036854775808' found, expected a number of bytes"),
    "negative": ({"offset": "-4"}, "offset '-4' found, expected a number of bytes"),
    "too long": ({"length": str(2**40)}, "which holds 144"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("place", ["initializer", "constant in a subgraph", "function", "sparse"])
def test_data_elsewhere_are_refused_wherever_a_file_is_opened(tmp_path, find, recipe_file, kind, place):
    where, message = BAD[kind]
    path = save(WEIGHTS_IN[place](**where), tmp_path / "inside" / "m.onnx")
    (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    (path.parent / "link.bin").symlink_to(tmp_path / "w.bin")
    (path.parent / "folder").mkdir()
    opened = (
        lambda: file_info(path),
        lambda: load_backbone(f"onnx:{path}", preprocessing=recipe_file(**SMALL)),
        lambda: OnnxModel(path, CPU, 1),
    )
    for run in opened:
        with pytest.raises(DamagedFileError, match=message):
            run()
    found = find(path)
    assert isinstance(found, Failed)
    assert "\n" not in found.error


def test_a_file_whose_scores_are_not_one_row_an_image_is_refused(tmp_path, find):
    proto = batch_of("N")
    proto.graph.output[0].type.tensor_type.shape.dim[1].dim_param = "C"
    proto.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones((12, 4), np.float32), "w"))
    found = find(save(proto, tmp_path / "m.onnx", None))
    with pytest.raises(InputError, match=r"output logits is \(5, 4\) for 5 images, expected 3 scores an image"):
        open_candidate(found, threads=1).run(PIXELS)


def outputs_without_shape(*names, nodes=()):
    return plain(*nodes, outputs=[h.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names])


def symbolic(**axes):
    nodes = [h.make_node("Identity", ["f"], ["features"])]
    return plain(
        *nodes, outputs=[h.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in axes.items()]
    )


FEATURES, SCORES = h.make_node("Identity", ["f"], ["features"]), h.make_node("Identity", ["logits"], ["scores"])


SHAPELESS = {
    "one": (outputs_without_shape("logits"), "logits"),
    "features too": (outputs_without_shape("features", "scores", nodes=[FEATURES, SCORES]), "scores"),
    "free axes": (symbolic(features=["N", "D"], logits=["N", "C"]), "logits"),
    "weights beside it": (outputs_without_shape("logits"), "logits"),
}


@pytest.mark.parametrize("kind", SHAPELESS)
def test_outputs_that_say_no_shape_are_asked_for_it(tmp_path, find, recipe_file, kind):
    """onnx's checker refuses a graph whose outputs have no shape; onnxruntime infers and runs it."""
    proto, output = SHAPELESS[kind]
    if kind == "weights beside it":
        proto.graph.initializer[0].CopyFrom(beside())
        (tmp_path / "w.bin").write_bytes(WEIGHTS.tobytes())
    found = find(save(proto, tmp_path / "m.onnx", None))
    assert (found.setup.output, found.setup.batch) == (output, None)
    np.testing.assert_allclose(open_candidate(found, threads=1).run(PIXELS).logits, LOGITS, rtol=1e-4)
    backbone = load_backbone(f"onnx:{found.path}", preprocessing=recipe_file(**SMALL))
    assert backbone.feature_dim == 12
    assert file_info(found.path).graph.last_layer.outputs == 3


@pytest.mark.parametrize(
    ("node", "kind", "said"),
    [
        (
            h.make_node("Transpose", ["logits"], ["r"], perm=[1, 0]),
            TensorProto.FLOAT,
            r"outputs r FLOAT \[3,2\]; expected 3 scores",
        ),
        (
            h.make_node("ArgMax", ["logits"], ["r"], keepdims=0, axis=1),
            TensorProto.INT64,
            r"\(of ArgMax: the number of a class",
        ),
        (
            h.make_node("Reshape", ["logits", "two"], ["r"]),
            TensorProto.FLOAT,
            "onnxruntime cannot run 2 images of .3, 2, 2.",
        ),
    ],
)
def test_of_shapes_that_were_asked_for_those_that_do_not_fit_are_refused(tmp_path, find, node, kind, said):
    proto = plain(node, outputs=[h.make_tensor_value_info("r", kind, None)])
    proto.graph.initializer.append(numpy_helper.from_array(np.array([7, 5]), "two"))
    found = find(save(proto, tmp_path / "m.onnx", None))
    assert isinstance(found, Failed) and re.search(said, found.error) and "\n" not in found.error


def test_a_damaged_file_without_shapes_is_still_refused(tmp_path, find):
    proto = outputs_without_shape("logits")
    proto.graph.node[1].op_type = "NoSuchOperator"
    found = find(save(proto, tmp_path / "m.onnx", None))
    assert isinstance(found, Failed) and "not a valid ONNX file (No Op registered for NoSuchOperator" in found.error
