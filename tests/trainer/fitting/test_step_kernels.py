"""The trainer's kernels: right values under Triton's interpreter, and compiled for a Hopper GPU on any machine."""

from pathlib import Path

import pytest

triton = pytest.importorskip("triton")
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.compiler import ASTSource  # noqa: E402

from headsmith.trainer.fitting.fused_optimizer import _update  # noqa: E402
from headsmith.trainer.fitting.gather_kernel import _fetch  # noqa: E402

HALF, FLOATS = ("features_ptr", "out_ptr", "rounded_ptr"), ("scale", "momentum", "beta1", "beta2", "epsilon")


def compile_for_hopper(kernel, **constants):
    def type_of(name):
        if name in constants:
            return "constexpr"
        if name.endswith("_ptr"):
            return (
                "*fp16" if name in HALF else "*i64" if name in ("labels_ptr", "rows_ptr", "out_labels_ptr") else "*fp32"
            )
        return "fp32" if name in FLOATS else "i32"

    names = kernel.arg_names
    values = {(names.index(name),): value for name, value in constants.items()}
    source = ASTSource(kernel, {name: type_of(name) for name in names}, constexprs=values)
    return triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"num_warps": 4})


def test_rows_are_addressed_in_64_bits():
    text = compile_for_hopper(_fetch, ROWS=2, COLUMNS=1024).asm["ttir"]
    products = [line for line in text.splitlines() if "arith.muli" in line and "tensor" in line]
    assert len(products) == 2  # a row's and a place's, times the width
    assert all("i64" in line for line in products)


@pytest.mark.parametrize("pair", [False, True])
@pytest.mark.parametrize("kind", ["adam", "adamw", "sgd"])
def test_the_update_compiles(kind, pair):
    compiled = compile_for_hopper(_update, KIND=kind, PAIR=pair, ROUNDED=True, BLOCK=1024)
    # Parameter, first moment, second moment unless it is SGD, and the rounded copy.
    assert compiled.asm["ttir"].count("tt.store") == (3 if kind == "sgd" else 4)


def test_values_under_the_interpreter(under_the_interpreter):
    here = Path(__file__)
    steps = f"{here.with_name('test_optimizers.py')}::test_steps_are_those_of_torch"
    assert "48 passed" in under_the_interpreter(here.with_name("interpreted_kernels.py"), steps)
