"""What this machine can do: versions, devices, and the execution providers that really load."""

from typing import Any

import onnxruntime
import torch
from onnx import TensorProto, helper
from rich.table import Table

from .core.cpus import default_threads
from .core.environment import describe_device, versions
from .models.onnx_session import OrtErrors
from .show import console, show_json

NOT_LOADED: tuple[type[Exception], ...] = (RuntimeError, *OrtErrors)


def examine() -> dict[str, Any]:
    """Versions, devices, and for each execution provider whether a session on it really starts."""
    devices = [describe_device(torch.device("cpu"))]
    devices += [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "versions": versions(),
        "cores": default_threads(),
        "devices": devices,
        "providers": {name: _loads(name) for name in onnxruntime.get_available_providers()},
    }


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


def show(findings: dict[str, Any], as_json: bool) -> None:
    """Print what `examine` found."""
    if as_json:
        show_json(findings)
        return
    table = Table("what", "found", show_header=False)
    for name, version in findings["versions"].items():
        table.add_row(name, version)
    table.add_row("cores", str(findings["cores"]))
    for device in findings["devices"]:
        table.add_row("device", device)
    for provider, loads in findings["providers"].items():
        table.add_row(provider, "[green]loads[/]" if loads else "[red]installed, but does not load[/]")
    console.print(table)
