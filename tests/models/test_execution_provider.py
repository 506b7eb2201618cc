"""Execution providers by their names, their options from YAML, and where they are to be had."""

from pathlib import Path

import onnx
import onnxruntime
import pytest

from headsmith.core.errors import InputError, ProviderError
from headsmith.models import onnx_session
from headsmith.models.execution_provider import CPU, provider_of, providers_of, short_name
from headsmith.models.onnx_session import open_session, require_provider

EVERY = tuple(onnxruntime.get_all_providers())


@pytest.fixture
def all_there(monkeypatch):
    """An onnxruntime that was built with every provider."""
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: list(EVERY))


def test_every_provider_that_onnxruntime_knows_has_a_name_of_its_own(all_there):
    names = [short_name(kind) for kind in EVERY]
    assert len(set(names)) == len(names)
    assert [provider_of(name).kind for name in names] == list(EVERY)
    assert {"cpu", "cuda", "tensorrt", "openvino", "coreml", "directml", "xnnpack", "qnn"} <= set(names)
    assert provider_of("directml").kind == "DmlExecutionProvider"


def test_a_file_has_options_as_onnxruntime_takes_them(all_there, tmp_path):
    file = tmp_path / "fast.yaml"
    file.write_text(
        "provider: tensorrt\noptions:\n  trt_fp16_enable: true\n  trt_max_workspace_size: 2147483648\n"
        "  trt_engine_cache_path: cache\n"
    )
    found = provider_of(file)
    assert (found, found.name, found.kind) == (provider_of(str(file)), "fast", "TensorrtExecutionProvider")
    assert found.with_defaults(4) == {
        "trt_fp16_enable": "True",
        "trt_max_workspace_size": "2147483648",
        "trt_engine_cache_path": "cache",
    }
    assert found.others == ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert provider_of(found) is found


def test_options_of_ours_give_way(all_there):
    assert provider_of("cuda").with_defaults(3) == {"use_tf32": "0", "cudnn_conv_algo_search": "HEURISTIC"}
    own = provider_of({"provider": "cuda", "options": {"use_tf32": 1}})
    assert own.with_defaults(3) == {"use_tf32": "1", "cudnn_conv_algo_search": "HEURISTIC"}
    assert provider_of("openvino").with_defaults(3) == {"num_of_threads": "3"}
    assert provider_of("cpu").with_defaults(3) == {}


def test_a_key_is_the_same_however_it_is_called_and_as_it_ever_was(all_there):
    assert [provider_of(name).asked for name in ("cpu", "cuda")] == ["cpu", "cuda"]
    assert provider_of({"provider": "cuda", "name": "mine"}).asked == "cuda"
    first = provider_of({"provider": "cuda", "name": "a", "options": {"b": 1, "a": 2}})
    assert first.asked == provider_of({"provider": "cuda", "options": {"a": 2, "b": 1}}).asked != "cuda"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("tpu", "^provider tpu: not known; this onnxruntime.* has .*cpu"),
        ("opnvino", "did you mean openvino"),
        ("", "^provider : not known"),
        ({"options": {}}, "expected a provider, or keys such as `provider: openvino`"),
        (7, "7 found, expected a provider"),
        ({"provider": "cpu", "option": {}}, "option: is not known; .*did you mean options"),
        ({"provider": "cpu", "options": ["a"]}, "options: .*found, expected keys such as"),
        (
            {"provider": "cpu", "options": {"a": [1]}},
            r"a: \[1\] found, expected text, a number, true",
        ),
        ({"provider": "cpu", "options": {"a": None}}, "a: None found"),
        ({"provider": "cpu", "name": "../up"}, r"name: '\.\./up' found, expected letters"),
        ({"provider": "cpu", "name": 3}, "name: 3 found"),
        ("nowhere.yaml", "^nowhere.yaml: "),
    ],
)
def test_what_is_no_provider_is_told_in_one_line(given, said):
    with pytest.raises(InputError, match=said) as error:
        provider_of(given)
    assert "\n" not in str(error.value)


def test_one_that_was_not_built_in_names_what_there_is_and_the_package(monkeypatch):
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    for name, package in (
        ("cuda", "onnxruntime-gpu"),
        ("tensorrt", "tensorrt-cu13<11"),
        ("openvino", "onnxruntime-openvino"),
        ("directml", "onnxruntime-directml"),
        ("coreml", "macOS"),
        ("xnnpack", "built with XnnpackExecutionProvider"),
    ):
        with pytest.raises(ProviderError, match=f"^provider {name}: this onnxruntime.* has cpu; .*{package}.*use cpu"):
            provider_of(name)


@pytest.mark.parametrize("given", [[], ["cpu", "cpu"], ["cpu", {"provider": "cpu", "options": {}}]])
def test_several_are_each_there_once(given):
    with pytest.raises(InputError, match="^provider: .* found, expected some, each once"):
        providers_of(given)
    assert [one.name for one in providers_of(["cpu", {"provider": "cpu", "name": "twin"}])] == ["cpu", "twin"]


def raising(message, *, on_cpu=False):
    """An InferenceSession that raises, unless it is asked for the CPU."""
    real = onnxruntime.InferenceSession

    def session(model, settings, providers, **further):
        if providers[0][0] == CPU.kind and not on_cpu:
            return real(model, settings, providers=providers, **further)
        raise RuntimeError(message)

    return session


def test_a_provider_that_raises_is_not_taken_for_a_damaged_file(all_there, onnx_file, monkeypatch):
    file = onnx_file("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    monkeypatch.setattr(onnxruntime, "InferenceSession", raising("the graph\n  has a Gadget"))
    with pytest.raises(InputError, match="^zoo: xnnpack cannot run it .the graph has a Gadget.; use `provider` cpu$"):
        open_session(file, provider_of("xnnpack"), 1, name="zoo")
    with pytest.raises(ProviderError, match="^provider xnnpack: cannot start here .the graph has a Gadget.; install "):
        require_provider(provider_of("xnnpack"))
    require_provider(CPU)
    file.write_bytes(file.read_bytes()[:20])
    with pytest.raises(onnx_session.DamagedFileError, match="^zoo: onnxruntime cannot open it .*export it again"):
        open_session(file, provider_of("xnnpack"), 1, name="zoo")


def test_a_provider_that_runs_no_node_is_refused(onnx_file, monkeypatch):
    file: Path = onnx_file("(float[N,3] x) => (float[N,3] y) { y = Relu(x) }")
    onnx.checker.check_model(str(file))
    session = open_session(file, CPU, 1, name="zoo")
    onnx_session.check_used(session, "zoo")
    monkeypatch.setattr(session, "get_providers", lambda: ["AzureExecutionProvider", "CPUExecutionProvider"])
    with pytest.raises(InputError, match="^zoo: AzureExecutionProvider runs not one of its nodes"):
        onnx_session.check_used(session, "zoo")
