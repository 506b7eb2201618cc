"""What this machine can do: versions, devices, and the execution providers that really load."""

from dataclasses import dataclass

import onnxruntime
import torch
from onnx import TensorProto, helper
from rich.table import Table

from .core.cpus import default_threads
from .core.environment import describe_device, versions
from .core.records import to_json
from .models.onnx_session import OrtErrors
from .show import console, show_json

NOT_LOADED: tuple[type[Exception], ...] = (RuntimeError, *OrtErrors)


@dataclass(frozen=True)
class Machine:
    """What a machine can do.

    Attributes:
        versions: Of Python and the packages.
        cores: Threads that are used where nobody says how many.
        devices: The processor and the GPUs, in words.
        providers: By execution provider of onnxruntime, whether a session on it really starts.
    """

    versions: dict[str, str]
    cores: int
    devices: list[str]
    providers: dict[str, bool]


def examine() -> Machine:
    """What this machine can do."""
    devices = [describe_device(torch.device("cpu"))]
    devices += [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return Machine(
        versions(), default_threads(), devices, {name: _loads(name) for name in onnxruntime.get_available_providers()}
    )


def _loads(provider: str) -> bool:
    """Start a session on a one-node model and see whether the provider is in it."""
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "probe", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnxruntime.set_default_logger_severity(4)  # a missing library is an answer here, not an error to print
    if torch.cuda.is_available():
        onnxruntime.preload_dlls()
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=[provider], enable_fallback=0)
    except NOT_LOADED:
        return False
    return provider in session.get_providers()


def show(found: Machine, as_json: bool) -> None:
    """Print what `examine` found."""
    if as_json:
        show_json(to_json(found))
        return
    table = Table("what", "found", show_header=False)
    for name, version in found.versions.items():
        table.add_row(name, version)
    table.add_row("cores", str(found.cores))
    for device in found.devices:
        table.add_row("device", device)
    for provider, loads in found.providers.items():
        table.add_row(provider, "[green]loads[/]" if loads else "[red]installed, but does not load[/]")
    console.print(table)
