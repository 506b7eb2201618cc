from .benchmarking import benchmark
from .record import BenchmarkRow
from .result import Benchmark

__all__ = ["Benchmark", "BenchmarkRow", "benchmark"]
