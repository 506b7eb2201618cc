"""Launches compiled kernels without Triton's dispatch, which costs the host more than all else in a step."""

from typing import Any

import torch
from torch import Tensor
from triton import knobs
from triton.runtime import driver


class Launch:
    """A kernel, its constants, and arguments that are the same at every launch.

    Triton's own dispatch looks at every argument of a launch to find the binary. Here that happens at the first launch;
    later ones take its binary. So one `Launch` is for arguments of the same types and alignments, and for integers
    that are the same, but for `rows`, which the kernels do not specialise on. They specialise on few of the others, so
    that one binary serves many a `Launch`. The driver would ask for each tensor's address, and check it; later launches
    hand it the addresses.

    Args:
        kernel: its arguments are tensors, `rows`, the numbers, and constants.
        device: of the tensors.
        numbers: the arguments after `rows`.
        constants: the kernel's constants and Triton's options, such as `num_warps`.
    """

    def __init__(self, kernel: Any, device: torch.device, numbers: tuple[Any, ...], constants: dict[str, Any]) -> None:
        self._kernel, self._device, self._index = kernel, device, device.index
        self._numbers, self._constants = numbers, constants
        self._arguments = (*numbers, *(constants[name] for name in kernel.arg_names if name in constants))
        self._compiled: Any = None

    def __call__(self, programs: int, tensors: tuple[Tensor, ...], rows: int) -> None:
        """Launch `programs` programs on the device's current stream."""
        compiled = self._compiled
        if compiled is None or _watched():
            self._by_triton(programs, tensors, rows)
        elif driver.active.get_current_device() != self._index:
            with torch.cuda.device(self._index):
                self(programs, tensors, rows)
        else:
            stream = driver.active.get_current_stream(self._index)
            compiled.run(
                programs,
                1,
                1,
                stream,
                compiled.function,
                compiled.packed_metadata,
                None,
                None,
                None,
                *map(Tensor.data_ptr, tensors),
                rows,
                *self._arguments,
            )

    def _by_triton(self, programs: int, tensors: tuple[Tensor, ...], rows: int) -> None:
        with torch.cuda.device(self._index if self._device.type == "cuda" else -1):
            self._compiled = self._kernel[(programs,)](*tensors, rows, *self._numbers, **self._constants)


def _watched() -> bool:
    """Whether a profiler asked Triton to tell of every launch."""
    enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))
