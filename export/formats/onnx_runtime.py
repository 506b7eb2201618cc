"""Run an ONNX file under onnxruntime."""

import time
from pathlib import Path

import numpy as np

from ...core.errors import DamagedFileError, InputError
from ...models.onnx_session import open_session, session_settings
from ..metadata import Metadata
from ..runtime import Array, Model, Outputs
from .extensions import DOMAIN, extensions
from .session_runner import SessionRunner

# The key under which every tensor with external data says where they are.
EXTERNAL_DATA = b"location"


class OnnxModel(Model):
    """A file under onnxruntime.

    Attributes:
        session: Its session.
    """

    def __init__(self, path: Path, provider: str, threads: int) -> None:
        self.path, self.provider = path, provider
        start = time.perf_counter()
        operators = extensions().get_library_path() if DOMAIN in _domains(path) else None
        self.session = open_session(path, provider, threads, name=str(path), operators=operators)
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
        session = open_session(part.SerializeToString(), "cpu", 1, name=name)
        return Outputs(logits, *SessionRunner(session, "cpu", name=name).run(self._outputs[1:], {"logits": logits}))

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
