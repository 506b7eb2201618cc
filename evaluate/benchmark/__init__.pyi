from .benchmark_record import BenchmarkRow
from .benchmarking import benchmark
from .finished_benchmark import Benchmark

__all__ = ["Benchmark", "BenchmarkRow", "benchmark"]
