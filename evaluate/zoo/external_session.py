"""Files of others under onnxruntime: a session, and what it says where a file does not say it."""

from pathlib import Path

import numpy as np
import onnx_ir as ir
import onnxruntime

from ...core.errors import InputError
from ...models.execution_provider import CPU, ExecutionProvider
from ...models.onnx_graph import free_axes, only_input, read_proto
from ...models.onnx_session import SessionErrors, open_session, short_reason

BATCH = 2


def open_external(path: Path, provider: ExecutionProvider, threads: int) -> onnxruntime.InferenceSession:
    """Open a file, axes of no possible size made free.

    Raises:
        DamagedFileError: See `read_proto` and `open_session`.
        ProviderError: The provider cannot run here.
    """
    model = read_proto(path)
    if not free_axes(model):
        return open_session(path, provider, threads, name=str(path))
    return open_session(model.SerializeToString(), provider, threads, name=str(path), data_folder=path.parent)


def ask_shapes(model: ir.Model, batch: int | None, image: tuple[int, ...], where: str) -> None:
    """Give the outputs of a graph the shapes that they have when onnxruntime answers two images of zeros.

    Args:
        model: The graph; its outputs are changed.
        batch: How many images it takes at once; ``None`` where any number will do.
        image: The shape of one, (3, H, W) or (H, W, 3).
        where: Its file.

    Raises:
        InputError: onnxruntime cannot run them.
    """
    count, images = batch or BATCH, only_input(model, where)
    pixels = np.zeros((count, *image), (images.dtype or ir.DataType.FLOAT).numpy())
    session = open_external(Path(where), CPU, 1)
    names = [str(value.name) for value in model.graph.outputs]
    try:
        found = session.run(names, {str(images.name): pixels})
    except SessionErrors as error:
        raise InputError(
            f"{where}: outputs {', '.join(names)} do not say their shape, and onnxruntime cannot run {count} images of "
            f"{image} to find it ({short_reason(error)}); export it with shapes"
        ) from None
    for value, answer in zip(model.graph.outputs, found, strict=True):
        free = batch is None and np.shape(answer)[:1] == (count,)
        value.shape = ir.Shape(["N", *np.shape(answer)[1:]] if free else np.shape(answer))
