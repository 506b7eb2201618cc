"""How the kernel of a method is launched: rows, warps, registers, memory."""

from typing import NamedTuple

import numpy as np


class KernelConfig(NamedTuple):
    """What a method's kernel asks of the launch, beside what all methods have.

    Attributes:
        setting: the method's own number, read by its kernel.
        variant: the method's own constant, compiled into its kernel.
        weights: how many weights of ranks, or p_k for memberships, are loaded while the candidates are selected;
            0 leaves them to the kernel.
        rows: rows of a program.
        layers: steps of a network or of an iteration.
        unrolled: whether the layers are unrolled, and what they leave for the way back stays in registers.
        scratch: floats of memory a row.
        codes: a constant table of the method, int32, which the kernel finds on the device.
        registers: the bound on a thread's registers that ran fastest on an H100; None leaves it to the compiler.
        warps: warps of a program.
    """

    setting: float = 0.0
    variant: str = ""
    weights: int = 0
    rows: int = 1
    layers: int = 0
    unrolled: bool = False
    scratch: int = 0
    codes: np.ndarray | None = None
    registers: int | None = None
    warps: int = 1
