"""Run an ONNX file under onnxruntime."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from onnxruntime import OrtValue

from ...core.errors import DamagedFileError, InputError
from ...models.execution_provider import CPU, ExecutionProvider
from ...models.onnx_session import SessionErrors, check_used, open_session, session_settings, short_reason
from ..metadata import Metadata
from ..runtime import Array, Model, Outputs
from .extensions import DOMAIN, extensions


class SessionRunner:
    """Runs a session again and again.

    On a GPU with CUDA inputs go to a buffer that stays there as long as batches have one shape; another shape gets a
    new one. Outputs are allocated by every run and copied to the host, so that an earlier answer never changes.
    """

    def __init__(self, session: onnxruntime.InferenceSession, provider: ExecutionProvider, *, name: str) -> None:
        """Bind nothing yet.

        Args:
            session: The session.
            provider: What runs it; one on CUDA has buffers bound there.
            name: How to call its file in an error.
        """
        self._session, self._device, self._name = session, "cuda" if provider.on_cuda else "cpu", name
        self._binding = session.io_binding() if provider.on_cuda else None
        self._buffers: dict[str, OrtValue] = {}

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        """Run the session.

        Args:
            outputs: Names of the outputs that are wanted.
            feeds: Arrays by the names of the inputs.

        Returns:
            The outputs, in the order of ``outputs``.

        Raises:
            InputError: The graph does not run on these inputs: it contradicts itself, or does not take them.
        """
        try:
            return self._answers(outputs, {name: np.asarray(array, order="C") for name, array in feeds.items()})
        except SessionErrors as error:
            shapes = ", ".join(str(array.shape) for array in feeds.values())
            raise InputError(
                f"{self._name}: cannot run inputs of {shapes} under onnxruntime ({short_reason(error)}); feed it what "
                "it takes, or export it again"
            ) from None

    def _answers(self, outputs: Sequence[str], feeds: Mapping[str, Array]) -> list[Array]:
        if self._binding is None:
            found: list[Array] = self._session.run(list(outputs), dict(feeds))
            return found
        for name, array in feeds.items():
            self._fill(name, array, self._binding)
        self._binding.clear_binding_outputs()
        for name in outputs:
            self._binding.bind_output(name, self._device)
        self._session.run_with_iobinding(self._binding)
        copied: list[Array] = self._binding.copy_outputs_to_cpu()
        return copied

    def _fill(self, name: str, array: Array, binding: onnxruntime.IOBinding) -> None:
        """Copy an array into the buffer of its input."""
        buffer = self._buffers.get(name)
        if buffer is not None and buffer.shape() == list(array.shape):
            buffer.update_inplace(array)
            return
        self._buffers[name] = OrtValue.ortvalue_from_numpy(array, self._device)
        binding.bind_ortvalue_input(name, self._buffers[name])


# The key under which every tensor with external data says where they are.
EXTERNAL_DATA = b"location"


class OnnxModel(Model):
    """A file under onnxruntime.

    Attributes:
        session: Its session.
    """

    def __init__(self, path: Path, provider: ExecutionProvider, threads: int) -> None:
        self.path, self.provider = path, provider
        start = time.perf_counter()
        operators = extensions().get_library_path() if DOMAIN in _domains(path) else None
        self.session = open_session(path, provider, threads, name=str(path), operators=operators)
        check_used(self.session, str(path))
        self._runner = SessionRunner(self.session, provider, name=str(path))
        self.load_seconds = time.perf_counter() - start
        try:
            self.metadata = Metadata.from_strings(self.session.get_modelmeta().custom_metadata_map, str(path))
            self._check_interface()
        except UnicodeDecodeError:
            raise DamagedFileError(f"{path}: damaged (text in it is not UTF-8); export it again") from None
        self.settings = session_settings(self.session, provider, threads)

    def feed(self, inputs: Array) -> Array:
        """As declared, in float16 where the file takes that."""
        fed = super().feed(inputs)
        return fed.astype(np.float16) if self.session.get_inputs()[0].type == "tensor(float16)" else fed

    def answer(self, fed: Array) -> Outputs:
        """Run the session."""
        return Outputs(*self._runner.run(self._outputs, {self.metadata.input_name: fed}))

    def ranked(self, logits: Array) -> Outputs:
        """Run the operators behind the logits alone."""
        import onnx

        whole = onnx.load(self.path, load_external_data=False)
        for tensor in whole.graph.initializer:
            if tensor.data_location == onnx.TensorProto.EXTERNAL and np.prod(tensor.dims) <= 1:
                onnx.external_data_helper.load_external_data_for_tensor(tensor, str(self.path.parent))
                tensor.data_location = onnx.TensorProto.DEFAULT
        part = onnx.utils.Extractor(whole).extract_model(["logits"], self._outputs[1:])
        name = f"{self.path}: top-k"
        session = open_session(part.SerializeToString(), CPU, 1, name=name)
        return Outputs(logits, *SessionRunner(session, CPU, name=name).run(self._outputs[1:], {"logits": logits}))

    def _check_interface(self) -> None:
        """The file has the inputs and outputs of its metadata, and one logit a label."""
        inputs = [value.name for value in self.session.get_inputs()]
        outputs = {value.name: value.shape for value in self.session.get_outputs()}
        self._outputs = list(outputs)
        expected = (self.metadata.input_name, *Outputs._fields)
        if (*inputs, *outputs) not in (expected, expected[:-1]):
            raise InputError(f"{self.path}: inputs and outputs {(*inputs, *outputs)}, expected {expected[:-1]}")
        if len(outputs["logits"]) != 2:
            raise InputError(f"{self.path}: logits of shape {outputs['logits']}, expected (N, C); export it again")
        if outputs["logits"][1] != len(self.metadata.labels):
            raise InputError(
                f"{self.path}: {outputs['logits'][1]} logits, but {len(self.metadata.labels)} labels in its metadata"
            )


def _domains(path: Path) -> set[str]:
    """The domains of a file's operators beside onnx's own. External data that are missing or lie elsewhere are refused.

    Most files, which have neither, are told by their bytes: the package onnx takes longer to import than a small file
    to run.

    Raises:
        DamagedFileError: Such data, or no ONNX file.
    """
    content = path.read_bytes()
    if not any(mark in content for mark in (DOMAIN.encode(), EXTERNAL_DATA)):
        return set()
    from ...models.onnx_graph.reading import read_proto

    return {entry.domain for entry in read_proto(path).opset_import}
