"""The kernels compile for a Hopper GPU on any machine; the interpreter accepts programs that the compiler does not."""

import pytest

triton = pytest.importorskip("triton")
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

from headsmith.trainer.losses.kernels import (  # noqa: E402
    dftopk,
    lapsum,
    neuralsort,
    sinkhorn,
    softmax,
    softsort,
    sorting_network,
)
from headsmith.trainer.losses.kernels.backward import (  # noqa: E402
    backward_kernel,
    reduce_kernel,
    scatter_kernel,
)
from headsmith.trainer.losses.kernels.forward import forward_kernel  # noqa: E402
from headsmith.trainer.losses.kernels.lapsum_of_all import (  # noqa: E402
    backward_of_all_kernel,
    forward_of_all_kernel,
)

FLOATS = {"beta", "setting", "floor", "smoothing", "uniform"}
INTEGER_POINTERS = {"labels_ptr": "*i64", "codes_ptr": "*i32"}
FORWARD = {
    "RELAX": neuralsort.relax,
    "MEMBERSHIPS": False,
    "VARIANT": "",
    "MODE": "sm",
    "OVER_CLASSES": False,
    "FLOORED": False,
    "SMOOTHED": False,
    "WEIGHTED": True,
    "ZEROS": True,
    "CHAINED": False,
    "WIDE": False,
    "VECTOR": 8,
    "GROUP": 32,
    "TILE_GROUPS": 32,
    "TILES": 1,
    "ROWS": 1,
    "M": 16,
    "WEIGHTS": 8,
    "RANKS": 8,
    "LAYERS": 0,
}
NETWORK = {"RELAX": sorting_network.relax, "VARIANT": "logistic_phi", "WEIGHTS": 0}


def compile_for_hopper(kernel, constants, logits="bf16"):
    def type_of(name):
        if name in constants:
            return "constexpr"
        if name.endswith("_ptr"):
            kind = logits if name in ("logits_ptr", "output_ptr", "zeros_ptr") else "fp32"
            return INTEGER_POINTERS.get(name, f"*{kind}")
        return "fp32" if name in FLOATS else "i32"

    names = kernel.arg_names
    values = {(names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, {name: type_of(name) for name in names}, constexprs=values)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 1})


@pytest.mark.parametrize(
    ("options", "logits"),
    [
        ({}, "bf16"),
        ({"RELAX": softmax.relax, "WEIGHTS": 0, "OVER_CLASSES": True, "WIDE": True, "VECTOR": 4}, "fp32"),
        ({"RELAX": softsort.relax, "VARIANT": "power", "MODE": "smce", "FLOORED": True, "SMOOTHED": True}, "fp16"),
        ({"RELAX": sinkhorn.relax, "MODE": "sort", "WIDE": True, "VECTOR": 1, "WEIGHTS": 16}, "fp32"),
        ({"RELAX": lapsum.relax, "MEMBERSHIPS": True, "MODE": "smce"}, "bf16"),
        ({"RELAX": dftopk.relax, "MEMBERSHIPS": True, "MODE": "sort", "WIDE": True, "VECTOR": 4}, "fp32"),
        (NETWORK | {"LAYERS": 3, "VARIANT": "gaussian", "ROWS": 2, "CHAINED": True}, "bf16"),
        (NETWORK | {"LAYERS": 3, "VARIANT": "cauchy", "OVER_CLASSES": True}, "bf16"),
        (NETWORK | {"M": 64, "TILE_GROUPS": 64, "TILES": 4}, "bf16"),
    ],
)
def test_forward(options, logits):
    assert compile_for_hopper(forward_kernel, FORWARD | options, logits).asm["cubin"]


def test_layers_of_a_network_share_their_loads():
    """The compiler's time grows with each load of an unrolled network."""
    one, six = (
        compile_for_hopper(forward_kernel, FORWARD | NETWORK | {"LAYERS": layers}).asm["ttir"] for layers in (1, 6)
    )
    assert six.count("tt.load") == one.count("tt.load")


@pytest.mark.parametrize("over_classes", [False, True])
def test_backward(over_classes):
    constants = {
        "OVER_CLASSES": over_classes,
        "SMOOTHED": over_classes,
        "SCALED": over_classes,
        "CHAINED": True,
        "VECTOR": 8,
        "TILE": 1024,
        "TILES": 2,
        "M": 16,
    }
    assert compile_for_hopper(backward_kernel, constants).asm["cubin"]


@pytest.mark.parametrize(("mode", "tiles"), [("sm", 1), ("sort", 3)])
def test_lapsum_of_all_classes(mode, tiles):
    row = {"MODE": mode, "SMOOTHED": tiles > 1, "VECTOR": 8, "TILE": 1024, "TILES": tiles}
    forward = {"FLOORED": tiles > 1, "WEIGHTED": tiles > 1, "RANKS": 8}
    assert compile_for_hopper(forward_of_all_kernel, row | forward).asm["cubin"]
    assert compile_for_hopper(backward_of_all_kernel, row | {"SCALED": tiles > 1}).asm["cubin"]


def test_scatter():
    assert compile_for_hopper(scatter_kernel, {"SCALED": True, "ROWS": 64, "M": 16}).asm["cubin"]


def test_reduce():
    assert compile_for_hopper(reduce_kernel, {"MEAN": True, "BLOCK": 1024}).asm["cubin"]
