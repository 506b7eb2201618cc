"""A small ONNX classifier, and how its backbone is loaded."""

from headsmith.models import load_backbone

HEAD = "scores = Gemm<transB=1>(f, w, b)"


BODY = f"c = Conv(images, k) r = Relu(c) p = GlobalAveragePool(r) f = Flatten(p) {HEAD}"


WEIGHTS = {"k": (4, 3, 1, 1), "w": (5, 4), "b": (5,)}


def classifier(shape="N,3,8,8", body=BODY, kind="float"):
    return f"({kind}[{shape}] images) => ({kind}[N,5] scores) {{ {body} }}"


def load(path, recipe, **options):
    return load_backbone(f"onnx:{path}", preprocessing=recipe, **options)
