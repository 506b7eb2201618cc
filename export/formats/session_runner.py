"""How a session of onnxruntime is run: directly on a CPU, through buffers on the card on a GPU."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnxruntime import OrtValue

from ...core.errors import InputError
from ...models.onnx_session import SessionErrors, short_reason

Array = np.ndarray[Any, Any]


class SessionRunner:
    """Runs a session again and again.

    On a GPU inputs go to a buffer that stays there as long as batches have one shape; another shape gets a new one.
    Outputs are allocated by every run and copied to the host, so that an earlier answer never changes.
    """

    def __init__(self, session: onnxruntime.InferenceSession, device: str, *, name: str) -> None:
        """Bind nothing yet.

        Args:
            session: The session.
            device: ``cuda`` binds buffers there, ``cpu`` runs directly.
            name: How to call its file in an error.
        """
        self._session, self._device, self._name = session, device, name
        self._binding = session.io_binding() if device != "cpu" else None
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
