"""A launch that is remembered hands the driver what Triton's own dispatch hands it; nothing is compiled or run here."""

from collections import namedtuple
from types import SimpleNamespace

import pytest
import torch

triton = pytest.importorskip("triton")
from triton import knobs  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402
from triton.runtime import driver  # noqa: E402

from headsmith.trainer.loss_options import LossOptions  # noqa: E402
from headsmith.trainer.losses.kernels import prepared_launches, run_kernels  # noqa: E402
from headsmith.trainer.losses.kernels.backward import backward_kernel, reduce_kernel, scatter_kernel  # noqa: E402
from headsmith.trainer.losses.kernels.direct_launch import Launch  # noqa: E402
from headsmith.trainer.losses.kernels.forward import forward_kernel  # noqa: E402
from headsmith.trainer.losses.targets import Targets  # noqa: E402

KERNELS = (forward_kernel, reduce_kernel, backward_kernel, scatter_kernel)
PREPARED = (
    prepared_launches.forward_launch,
    prepared_launches.reduce_launch,
    prepared_launches.backward_launch,
    prepared_launches.scatter_launch,
)
Launched = namedtuple("Launched", "kernel compiled_for grid stream hooks arguments")


class Compiled:
    """Stands for a compiled kernel, and writes down each launch."""

    function, packed_metadata = 1, (1, 1, 0)

    def __init__(self, source, options, log):
        values = {at: getattr(value, "value", value) for at, value in source.constants.items()}
        what = (source.signature, values, source.attrs, options["num_warps"], options.get("launch_pdl"))
        self.name, self.what, self.log = source.fn.__name__, repr(what), log

    def launch_metadata(self, grid, stream, *arguments):
        return None

    def run(self, x, y, z, stream, function, packed, metadata, enter, leave, *arguments):
        seen = tuple(one.data_ptr() if isinstance(one, torch.Tensor) else one for one in arguments)
        self.log.append(Launched(self.name, self.what, (x, y, z), stream, (enter, leave), seen))


@pytest.fixture
def log(monkeypatch):
    """Every launch, on CPU tensors that stand for a GPU's."""
    launched = []
    device = SimpleNamespace(
        get_current_device=lambda: None,
        get_current_stream=lambda device: 7,
        get_current_target=lambda: GPUTarget("cuda", 90, 32),
    )
    monkeypatch.setattr(
        triton.compiler, "compile", lambda source, target=None, options=None, **_: Compiled(source, options, launched)
    )
    monkeypatch.setattr(prepared_launches, "_can_chain", lambda device: True)
    monkeypatch.setattr(driver, "_active", device)
    yield launched
    for kernel in KERNELS:
        kernel.device_caches.pop(None, None)
    forget()


def forget():
    for prepared in PREPARED:
        prepared.cache_clear()


def step(kept, logits, targets, options, upstream):
    """Every kernel that a step may take, over tensors that stay where they are."""
    zeros = torch.empty(logits.shape, dtype=logits.dtype)
    result, saved = run_kernels.forward(logits, targets, options, zeros)
    run_kernels.forward(logits, targets, options)
    run_kernels.scatter(zeros, upstream, saved, options)
    run_kernels.backward(zeros, upstream, saved, logits, options)
    kept += [zeros, result, saved]


def without_own(launched):
    """Without the addresses of what a step allocates itself."""
    return [one._replace(arguments=tuple(x if x < 2**20 else x % 16 for x in numbers(one))) for one in launched]


def numbers(one):
    return [x for x in one.arguments if isinstance(x, (int, float))]


def wide(rows, classes, dtype=torch.float32, start=0):
    return torch.zeros(rows * classes + start, dtype=dtype)[start:].view(rows, classes)


LABELS, P_K = torch.zeros(48, dtype=torch.int64), torch.tensor([0.5, 0.5], dtype=torch.float64)
CALLS = {
    "aligned": (wide(4, 1000), Targets(LABELS[:4], P_K)),
    "more rows": (wide(16, 1000), Targets(LABELS[:16], P_K)),
    "begins in the middle": (wide(4, 1000, start=1), Targets(LABELS[1:5], P_K)),
    "16 bits": (wide(4, 1000, torch.bfloat16), Targets(LABELS[:4], P_K.float())),
    "odd classes": (wide(4, 1001, torch.float16), Targets(LABELS[:4], P_K)),
    "one class": (wide(1, 1), Targets(LABELS[:1], P_K[:1] * 2)),
    "far rows": (wide(4, 2000)[:, :1000], Targets(LABELS[:4], P_K)),
    "by class": (wide(4, 16), Targets(LABELS[:4], P_K.expand(16, 2))),
    "by row": (wide(4, 16), Targets(LABELS[:4], None, P_K.expand(4, 2))),
    "weights": (wide(4, 16), Targets(LABELS[:4], P_K, None, torch.ones(16))),
    "weights of 16 bits": (wide(4, 16), Targets(LABELS[:4], P_K, None, torch.ones(17).bfloat16()[1:])),
}


@pytest.mark.parametrize(
    "options",
    [LossOptions(m=1), LossOptions(method="bitonic", softmax_over="classes"), LossOptions(reduction="none", floor=0.1)],
    ids=["neuralsort", "bitonic", "rows"],
)
def test_same_as_triton(log, options):
    kept = []
    calls = []
    for logits, targets in CALLS.values():
        size = len(logits) if options.reduction == "none" else ()
        calls += [(logits, targets, options, torch.ones(size))]
        calls += [(logits, targets, options, torch.ones(3).sum().expand(size))]
    for call in calls:
        forget()
        step(kept, *call)
    by_triton = without_own(log)
    log.clear()
    forget()
    for call in calls:
        step(kept, *call)
    log.clear()
    for call in calls:
        step(kept, *call)
    assert all(one.hooks == (None, None) for one in log)
    remembered = without_own(log)
    assert [one._replace(hooks=None) for one in remembered] == [one._replace(hooks=None) for one in by_triton]


def launch(device="cpu"):
    return Launch(reduce_kernel, torch.device(device), (), {"MEAN": True, "BLOCK": 128, "num_warps": 1})


TENSORS = (torch.zeros(4), torch.zeros(5), torch.zeros(()))


def test_a_profiler_is_told(log):
    reduce, told = launch(), []
    reduce(1, TENSORS, 4)
    reduce(1, TENSORS, 4)
    assert log[-1].hooks == (None, None)
    knobs.runtime.launch_enter_hook.add(told.append)
    try:
        reduce(1, TENSORS, 4)
    finally:
        knobs.runtime.launch_enter_hook.remove(told.append)
    assert log[-1].hooks[0] is knobs.runtime.launch_enter_hook
    reduce(1, TENSORS, 4)
    assert log[-1].hooks == (None, None)


def test_the_stream_and_the_device_of_the_moment(log, monkeypatch):
    current = [1]

    class On:
        def __init__(self, index):
            self.index, self.before = index, current[0]

        def __enter__(self):
            current[0] = self.index

        def __exit__(self, *_):
            current[0] = self.before

    monkeypatch.setattr(torch.cuda, "device", On)
    monkeypatch.setattr(driver.active, "get_current_device", lambda: current[0])
    streams = iter((10, 11, 12))
    monkeypatch.setattr(driver.active, "get_current_stream", lambda index: (index, next(streams)))
    reduce = launch("cuda:0")
    for _ in range(3):
        reduce(1, TENSORS, 4)
    assert [one.stream for one in log] == [(0, 10), (0, 11), (0, 12)]
    assert current == [1]
    reduce_kernel.device_caches.pop(0, None)


def test_one_binary_for_other_numbers(log):
    """Of classes, distances between rows, ways of p_k, and labels that are ignored."""
    kept, shared = [], Targets(LABELS[:4], P_K)
    for logits, targets, ignored in [
        (wide(4, 1000), shared, -100),
        (wide(4, 1024), shared, -100),
        (wide(4, 2000)[:, :1000], shared, -1),
        (wide(4, 1000), Targets(LABELS[:4], P_K.expand(1000, 2)), -100),
        (wide(4, 1000), Targets(LABELS[:4], None, P_K.expand(4, 2)), 0),
    ]:
        step(kept, logits, targets, LossOptions(softmax_over="classes", ignore_index=ignored), torch.ones(()))
    binaries = {(one.kernel, one.compiled_for) for one in log}
    assert sorted(name for name, _ in binaries) == sorted(
        ["forward_kernel"] * 2 + ["backward_kernel", "scatter_kernel", "reduce_kernel"]
    ), "the forward has two, with zeros for the gradient and without"
