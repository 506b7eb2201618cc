"""Processes that are asked to end while their main thread is in onnxruntime, in a loop that never ends."""

import os
import signal
import time

import numpy as np
import onnxruntime
import pytest
from forked import PATIENCE, end, run_command, start
from onnx import TensorProto, helper, numpy_helper

from headsmith.core import signals
from headsmith.core.files import new_folder
from headsmith.core.signals import EndedError, endable, if_ended

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
RECIPE = """
resize_mode: exact
resize_size: 8
crop_size: 8
interpolation: bilinear
scale: 1
channel_order: rgb
mean: 0
std: 1
"""


def endless_file(path):
    """A classifier of images 8 x 8 that takes a step as long as it is to go on, which it always is."""
    value = helper.make_tensor_value_info
    steps = [helper.make_node("Identity", [name], [f"{name}_out"]) for name in ("go", "y")]
    body = helper.make_graph(
        steps,
        "step",
        [value("i", INT64, []), value("go", BOOL, []), value("y", FLOAT, ["N", 3])],
        [value("go_out", BOOL, []), value("y_out", FLOAT, ["N", 3])],
    )
    nodes = [
        helper.make_node("GlobalAveragePool", ["images"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("Gemm", ["flat", "weight"], ["scores"]),
        helper.make_node("Loop", ["", "true", "scores"], ["logits"], body=body),
    ]
    constants = {"true": np.array(True), "weight": np.eye(3, dtype=np.float32)}
    graph = helper.make_graph(
        nodes,
        "endless",
        [value("images", FLOAT, ["N", 3, 8, 8])],
        [value("logits", FLOAT, ["N", 3])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())
    return path


def telling(marker, run, *arguments, **keywords):
    """Call, after a file was written by which others know it."""
    marker.touch()
    return run(*arguments, **keywords)


def run_endless(file, out, marker):
    """Fill a folder with what an endless session answers."""
    session = onnxruntime.InferenceSession(file)
    with endable(), new_folder(out, replace="old") as made:
        (made / "half").touch()
        telling(marker, session.run, None, {"images": np.zeros((1, 3, 8, 8), np.float32)})


def evaluate_endless(marker, *arguments):
    """The command, which tells that its session begins to run."""
    from headsmith.export.formats.onnx_runtime import SessionRunner

    run = SessionRunner.run
    SessionRunner.run = lambda *given: telling(marker, run, *given)
    run_command("evaluate", *arguments)


def signalled(process, marker, *numbers):
    """The status of a process that gets signals after it has written a file."""
    until = time.monotonic() + PATIENCE
    while not marker.exists() and process.is_alive() and time.monotonic() < until:
        time.sleep(0.05)
    for number in numbers:
        time.sleep(0.5)
        os.kill(process.pid, number)
    return end(process)


@pytest.mark.parametrize(
    ("numbers", "status"),
    [
        ((signal.SIGTERM,), 143),
        ((signal.SIGHUP,), 129),
        ((signal.SIGINT, signal.SIGINT), 130),
        ((signal.SIGINT, signal.SIGTERM), 143),
    ],
)
def test_a_session_without_end_is_ended(numbers, status, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "old").touch()
    file = endless_file(tmp_path / "endless.onnx")
    process = start(run_endless, file, out, tmp_path / "marker", printed=tmp_path / "printed")
    assert signalled(process, tmp_path / "marker", *numbers) == status
    assert {path.name for path in tmp_path.iterdir()} == {"endless.onnx", "marker", "out", "printed"}
    assert [path.name for path in out.iterdir()] == ["old"]


def test_a_command_is_ended(image_folder, tmp_path):
    (tmp_path / "recipe.yaml").write_text(RECIPE)
    (tmp_path / "labels.txt").write_text("disc\nsquare\nstripes\n")
    images, marker = image_folder({"disc": 2, "square": 2}), tmp_path / "marker"
    arguments = [endless_file(tmp_path / "endless.onnx"), "--data", images, "--out", tmp_path / "out"]
    arguments += ["--preprocessing", tmp_path / "recipe.yaml", "--labels", tmp_path / "labels.txt"]
    process = start(evaluate_endless, marker, *map(str, arguments), printed=tmp_path / "printed")
    assert signalled(process, marker, signal.SIGTERM) == 143, (tmp_path / "printed").read_text()
    assert not [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"]


def test_what_is_heard_is_unwound_once():
    """A second signal, while what is half written is taken away, does not disturb that."""
    found = []
    with pytest.raises(EndedError) as stop, endable():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            found.append("put right")
    assert (stop.value.code, found) == (143, ["put right"])


def test_nothing_is_left_behind():
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with endable(), if_ended(lambda: None):
        assert len(signals._actions) == 1
    assert not signals._actions
    assert signal.set_wakeup_fd(-1) == -1
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_a_forked_process_has_no_part_in_it():
    """Its signals do not reach the watch of the process that it comes from."""
    with endable():
        pid = os.fork()
        if not pid:
            os._exit(signal.set_wakeup_fd(-1) != -1)
        assert os.waitpid(pid, 0)[1] == 0
