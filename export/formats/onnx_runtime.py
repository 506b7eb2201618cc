"""Run an ONNX file under onnxruntime."""

import time
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import TensorProto

from ...core.errors import InputError
from ...models.onnx_session import open_session, session_settings
from ..metadata import Metadata
from ..runtime import Array, Model, Outputs
from .decoding import DOMAIN, extensions
from .session_runner import SessionRunner


class OnnxModel(Model):
    """A file under onnxruntime.

    Attributes:
        session: Its session.
    """

    def __init__(self, path: Path, provider: str, threads: int) -> None:
        self.path, self.provider = path, provider
        start = time.perf_counter()
        domains = _check_file(path)
        operators = extensions().get_library_path() if DOMAIN in domains else None
        self.session = open_session(path, provider, threads, name=str(path), operators=operators)
        self._runner = SessionRunner(self.session, provider)
        self.load_seconds = time.perf_counter() - start
        self.metadata = Metadata.from_strings(self.session.get_modelmeta().custom_metadata_map, str(path))
        self.settings = session_settings(self.session, provider, threads)
        self._check_interface()

    def feed(self, inputs: Array) -> Array:
        """As declared, in float16 where the file takes that."""
        fed = super().feed(inputs)
        return fed.astype(np.float16) if self.session.get_inputs()[0].type == "tensor(float16)" else fed

    def answer(self, fed: Array) -> Outputs:
        """Run the session."""
        return Outputs(*self._runner.run(self._outputs, {self.metadata.input_name: fed}))

    def _check_interface(self) -> None:
        """The file has the inputs and outputs of its metadata, and one logit a label."""
        inputs = [value.name for value in self.session.get_inputs()]
        outputs = {value.name: value.shape for value in self.session.get_outputs()}
        self._outputs = list(outputs)
        expected = (self.metadata.input_name, *Outputs._fields)
        if (*inputs, *outputs) not in (expected, expected[:-1]):
            raise InputError(f"{self.path}: inputs and outputs {(*inputs, *outputs)}, expected {expected[:-1]}")
        if outputs["logits"][1] != len(self.metadata.labels):
            raise InputError(
                f"{self.path}: {outputs['logits'][1]} logits, but {len(self.metadata.labels)} labels in its metadata"
            )


def _check_file(path: Path) -> set[str]:
    """Refuse external data that are missing or lie elsewhere; the domains of the operators.

    Raises:
        DamagedFileError: Such data, or no ONNX file.
    """
    try:
        model = onnx.load(path, load_external_data=False)
        if any(tensor.data_location == TensorProto.EXTERNAL for tensor in model.graph.initializer):
            onnx.checker.check_model(path)  # by path: looks for the data, inside the folder of the file
    except (onnx.checker.ValidationError, DecodeError) as error:
        from ...models.onnx_graph.reading import damaged_onnx

        raise damaged_onnx(path, error) from None
    return {entry.domain for entry in model.opset_import}
