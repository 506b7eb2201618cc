"""The last layer of an ONNX classifier against the file's own answer under onnxruntime."""

import numpy as np
import onnx
import onnx_ir
import onnxruntime
import pytest
from scipy.special import log_softmax, softmax

from headsmith.core.errors import InputError
from headsmith.models.onnx_graph import affine_weights, cut, find_last_layer, read_onnx

BODY = "c = Conv(images, k) r = Relu(c) p = GlobalAveragePool(r) f = Flatten(p)"
HEADER = "(float[N,3,8,8] images) => (float[N,C] scores)"
WEIGHTS = {"k": (4, 3, 1, 1), "w": (5, 4), "b": (5,)}
TAILS = {
    "a Gemm": "scores = Gemm<transB=1>(f, w, b)",
    "a Gemm with factors": "scores = Gemm<transB=1, alpha=0.5, beta=2.0>(f, w, b)",
    "a Gemm without bias": "scores = Gemm<transB=1>(f, w)",
    "a Gemm of transposed weights": "t = Transpose<perm=[1,0]>(w) scores = Gemm(f, t, b)",
    "a product and a sum": "t = Transpose<perm=[1,0]>(w) m = MatMul(f, t) scores = Add(m, b)",
    "a sum the other way": "t = Transpose<perm=[1,0]>(w) m = MatMul(f, t) scores = Add(b, m)",
    "casts before its bias": "t = Transpose<perm=[1,0]>(w) m = MatMul(f, t) "
    "d = Cast<to=11>(m) e = Cast<to=1>(d) scores = Add(b, e)",
    "a product": "t = Transpose<perm=[1,0]>(w) scores = MatMul(f, t)",
    "shapes behind it": "g = Gemm<transB=1>(f, w, b) i = Identity(g) d = Dropout(i) scores = Flatten(d)",
}


def answer(path, images):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: images})[0]


def parts(path, images, name=None):
    """Features, weights and bias, and the layer."""
    model = read_onnx(path)
    layer = find_last_layer(model, str(path), name)
    weight, bias = affine_weights(model, layer, str(path))
    features = answer(onnx_ir.to_proto(cut(model, layer, str(path))).SerializeToString(), images)
    return features, weight, bias, layer


@pytest.fixture
def images():
    return np.random.default_rng(1).normal(size=(3, 3, 8, 8)).astype(np.float32)


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS)
@pytest.mark.parametrize(
    ("end", "link", "count"),
    [
        ("", lambda x: x, 0),
        ("Softmax", lambda x: softmax(x, 1), 1),
        ("LogSoftmax", lambda x: log_softmax(x, 1), 1),
        ("Softmax Softmax", lambda x: softmax(softmax(x, 1), 1), 2),
    ],
)
def test_features_weights_and_softmaxes_give_the_answer_of_the_file(onnx_file, images, tail, end, link, count):
    names = [f"s{index}" for index in range(count)] + ["scores"]
    text = tail.replace("scores =", f"{names[0]} =") if count else tail
    for index, operator in enumerate(end.split()):
        text += f" {names[index + 1]} = {operator}<axis=-1>({names[index]})"
    path = onnx_file(f"{HEADER} {{ {BODY} {text} }}", **WEIGHTS)
    features, weight, bias, layer = parts(path, images)
    assert (layer.softmaxes, layer.is_affine, features.shape) == (count, True, (3, 4))
    np.testing.assert_allclose(link(features @ weight.T + bias), answer(path, images), atol=1e-5)


@pytest.mark.parametrize("pool", ["GlobalAveragePool", "AveragePool<kernel_shape=[8,8]>", "ReduceMean<axes=[2,3]>"])
def test_a_convolution_before_the_pooling(onnx_file, images, pool):
    path = onnx_file(
        f"{HEADER} {{ c = Conv(images, k) r = Relu(c) v = Conv<kernel_shape=[1,1]>(r, w, b) p = {pool}(v) "
        "f = Flatten(p) scores = Softmax(f) }",
        **WEIGHTS | {"w": (5, 4, 1, 1)},
    )
    features, weight, bias, layer = parts(path, images)
    assert (layer.node.op_type, layer.is_affine) == ("Conv", True)
    np.testing.assert_allclose(softmax(features @ weight.T + bias, 1), answer(path, images), atol=1e-5)


def test_squeezenet_has_an_activation_after_its_layer(onnx_file, images):
    """Its features are good for a new head, but its own layer is no affine function of them."""
    path = onnx_file(
        f"{HEADER} {{ c = Conv(images, w, b) r = Relu(c) p = GlobalAveragePool(r) scores = Flatten(p) }}",
        w=(5, 3, 1, 1),
        b=(5,),
    )
    features, _, _, layer = parts(path, images)
    assert not layer.is_affine
    np.testing.assert_allclose(features, images.mean((2, 3)), atol=1e-6)


TWO = f"(float[N,3,8,8] images) => (float[N,5] main, float[N,5] aux) {{ {BODY} main = Gemm<transB=1>(f, w, b) "
TWO += "aux = Gemm<transB=1>(f, v, b) }"


def test_of_two_layers_one_must_be_named(onnx_file, images):
    path = onnx_file(TWO, **WEIGHTS, v=(5, 4))
    expected = r"2 layers could be the last one; name it with `layer`: main \(Gemm with weights 5x4\), aux \(Gemm"
    with pytest.raises(InputError, match=expected):
        parts(path, images)
    features, weight, bias, layer = parts(path, images, "main")
    assert layer.name == "main"
    np.testing.assert_allclose(features @ weight.T + bias, answer(path, images), atol=1e-5)
    with pytest.raises(InputError, match=r"`layer` mian: no such layer; did you mean main\?"):
        parts(path, images, "mian")


def test_an_output_called_logits_decides(onnx_file, images):
    path = onnx_file(TWO.replace("main", "logits"), **WEIGHTS, v=(5, 4))
    assert parts(path, images)[3].name == "logits"


def test_no_last_layer(onnx_file, images):
    path = onnx_file(f"{HEADER} {{ {BODY} g = Gemm<transB=1>(f, w, b) scores = Sigmoid(g) }}", **WEIGHTS)
    with pytest.raises(InputError, match=r"no last layer was recognised; name it with `layer`: c \(Conv .* g \(Gemm"):
        parts(path, images)
    assert parts(path, images, "g")[1].shape == (5, 4)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("scores = Softmax(f)", r"x\.onnx: has no Gemm, MatMul or 1x1 Conv with constant weights, before which"),
        ("scores = ArgMax(f)", r"x\.onnx: has no Gemm"),
        ("scores = Gemm<transB=1>(f, f)", r"x\.onnx: has no Gemm"),
        (
            "scores = my.ops.Evil(f)",
            r"x\.onnx: has operators that onnxruntime does not know \(my\.ops\.Evil\), and has",
        ),
    ],
)
@pytest.mark.parametrize("name", [None, "g"])
def test_a_file_without_any_such_layer_is_not_told_to_name_one(nodes, reason, name):
    text = "(float[N,3,8,8] images) => (float[N,M] scores) { p = GlobalAveragePool(images) f = Flatten(p) "
    opsets = 'ir_version: 8, opset_import: ["" : 13, "my.ops" : 1]'
    model = onnx_ir.from_proto(onnx.parser.parse_model(f"<{opsets}> net {text} {nodes} }}"))
    with pytest.raises(InputError, match=reason) as caught:
        find_last_layer(model, "x.onnx", name)
    assert "layer`" not in str(caught.value)
