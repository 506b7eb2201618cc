"""Fused Triton kernels; imported only when they are about to run, because Triton is not on every platform."""
