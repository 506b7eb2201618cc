"""Opening files: strict about damage, metadata, and the provider that was asked for."""

import os
import shutil

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from headsmith.core.cpus import default_threads
from headsmith.core.errors import InputError
from headsmith.export import open_model

NO_CUDA = not torch.cuda.is_available()


@pytest.fixture
def copy(tiny_bundle, tmp_path):
    """A function: a name of the bundle's files to a copy that may be damaged."""
    return lambda name: shutil.copy(tiny_bundle.path / name, tmp_path / name)


@pytest.mark.parametrize("name", ["model.onnx", "model.ts"])
@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_a_truncated_file_is_named(copy, name, share):
    path = copy(name)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=f"{name}: .*export it again") as caught:
        open_model(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["model.onnx", "model.ts"])
def test_text_is_no_model(tmp_path, name):
    (tmp_path / name).write_text("hello " * 1000)
    with pytest.raises(InputError, match=name):
        open_model(tmp_path / name)


def test_a_missing_file(tmp_path):
    with pytest.raises(InputError, match=r"gone\.onnx: no such file"):
        open_model(tmp_path / "gone.onnx")


def test_another_kind_of_file(tmp_path):
    (tmp_path / "model.h5").touch()
    with pytest.raises(InputError, match=r"\.h5 files; expected one of \.onnx, \.ts"):
        open_model(tmp_path / "model.h5")


def test_a_file_without_recipe_is_refused_not_guessed(copy):
    """With its metadata stripped a file has no mean and no labels: no ImageNet constants in their place."""
    path = copy("model.onnx")
    model = onnx.load(path)
    del model.metadata_props[:]
    onnx.save(model, path)
    with pytest.raises(InputError, match="no headsmith metadata .* a recipe is never guessed"):
        open_model(path)


class Wide(torch.nn.Module):
    """Five logits a row, whatever the labels."""

    def forward(self, x):
        logits = x.float().mean((1, 2, 3))[:, None] * torch.arange(5.0)
        scores, indices = logits.topk(2)
        return logits, scores, indices


def saved(path, metadata):
    module = torch.jit.freeze(torch.jit.trace(Wide().eval(), torch.zeros(1, 8, 8, 3, dtype=torch.uint8)))
    torch.jit.save(module, path, _extra_files=metadata)
    return path


@pytest.mark.filterwarnings("ignore::FutureWarning")  # TorchScript is deprecated, and still written by others
def test_torchscript_of_others_is_told_as_such(tmp_path):
    with pytest.raises(InputError, match="no headsmith metadata .* found, expected a file of `headsmith export`"):
        open_model(saved(tmp_path / "model.ts", {}))


@pytest.mark.filterwarnings("ignore::FutureWarning")  # TorchScript is deprecated, and still written by others
def test_more_logits_than_labels(tiny_bundle, tmp_path):
    metadata = open_model(tiny_bundle.path / "model.onnx").metadata
    model = open_model(saved(tmp_path / "model.ts", metadata.to_strings()))
    labels = len(metadata.labels)
    assert labels != 5
    with pytest.raises(InputError, match=rf"logits of shape \(3, 5\) found, expected \(N, {labels}\)"):
        model.run(np.zeros((3, 8, 8, 3), np.uint8))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("labels", '["a", "b"]', "labels_sha256"),
        ("labels", "[", "incomplete or damaged"),
        ("preprocessing", "{}", r"preprocessing.*: missing, expected"),
        ("feature_set", None, "incomplete or damaged"),
    ],
)
def test_metadata_that_contradict_themselves(copy, key, value, message):
    path = copy("model.onnx")
    model = onnx.load(path)
    props = {entry.key: entry.value for entry in model.metadata_props} | {key: value}
    onnx.helper.set_model_props(model, {name: text for name, text in props.items() if text is not None})
    onnx.save(model, path)
    with pytest.raises(InputError, match=message):
        open_model(path)


@pytest.mark.parametrize("name", ["model.onnx", "model.ts"])
@pytest.mark.skipif(not NO_CUDA, reason="this machine has CUDA")
def test_cuda_is_an_error_where_there_is_none(tiny_bundle, name, capfd):
    with pytest.raises(InputError, match="provider"):
        open_model(tiny_bundle.path / name, provider="cuda")
    out, err = capfd.readouterr()
    assert out == err == ""


def test_a_provider_that_is_not_installed(tiny_bundle, monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(InputError, match=r"^provider cuda: this onnxruntime.* has cpu; pip install .* or use cpu$"):
        open_model(tiny_bundle.path / "model.onnx", provider="cuda")


def test_a_session_on_another_provider_is_an_error(tiny_bundle, monkeypatch):
    """onnxruntime only warns and gives a CPU session; that must not pass."""
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)
    real = onnxruntime.InferenceSession
    fallen_back = lambda path, settings, **_: real(path, settings, providers=["CPUExecutionProvider"])  # noqa: E731
    monkeypatch.setattr(onnxruntime, "InferenceSession", fallen_back)
    with pytest.raises(InputError, match="could not start CUDAExecutionProvider"):
        open_model(tiny_bundle.path / "model.onnx", provider="cuda")


def test_an_unknown_provider(tiny_bundle):
    with pytest.raises(InputError, match="^provider tpu: not known; this onnxruntime.* has .*cpu; did you mean cpu"):
        open_model(tiny_bundle.path / "model.onnx", provider="tpu")


def test_threads_honour_omp_then_affinity(monkeypatch, tiny_bundle):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert default_threads() == 3
    assert open_model(tiny_bundle.path / "model.onnx", threads=1).settings.threads == 1
    monkeypatch.setenv("OMP_NUM_THREADS", "many")
    assert default_threads() == len(os.sched_getaffinity(0))


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no CPU affinity here")
def test_threads_are_those_of_the_process_not_of_the_host(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        assert default_threads() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_settings_say_what_runs(tiny_bundle):
    settings = open_model(tiny_bundle.path / "model.onnx").settings
    assert settings.provider == "CPUExecutionProvider"
    assert onnxruntime.__version__ in settings.runtime


@pytest.mark.parametrize(("name", "said"), [("model", "files without a suffix"), ("model.bin", r"\.bin files")])
def test_a_file_of_no_format_is_told_in_plain_words(tmp_path, name, said):
    (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=f"{name}: cannot run {said}; expected one of"):
        open_model(tmp_path / name)
