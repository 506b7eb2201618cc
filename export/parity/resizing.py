"""How near resize and crop inside the graph come to PIL's, which the head was trained with."""

import numpy as np
import torch
from PIL import Image

from ...core.progress import progress
from ...metrics.equality import Difference, difference
from ...models.resize import Resize
from ..bundle.manifest import ResizeParity
from ..held_out import HeldOutImages
from ..options import ExportOptions
from .parity import Parity
from .python_module import PythonModule, python_outputs
from .tolerance import MOST


@torch.inference_mode()
def compare_with_pil(module: PythonModule, held_out: HeldOutImages, options: ExportOptions) -> ResizeParity:
    """Answer every held-out image twice with the Python module: whole, and after PIL's resize and crop."""
    classifier, metadata = module
    resize, behind = Resize(metadata.recipe), classifier.without_resize()
    tolerance = MOST if options.tolerance is None else options.tolerance
    parity, pixels = Parity("resize inside", metadata.labels, tolerance), Difference()
    means: list[float] = []
    with progress("Comparing resizes", len(held_out), "images") as advance:
        for batch in held_out.batches(1):
            by_pil = metadata.recipe(Image.fromarray(batch.inputs[0]))[None]
            inside = resize(torch.from_numpy(batch.inputs).permute(0, 3, 1, 2)).permute(0, 2, 3, 1).numpy()
            found = difference(by_pil.astype(np.float32), inside)
            pixels += found
            means.append(found.mean)
            parity.add(
                batch.ids,
                python_outputs(behind, metadata, by_pil),
                python_outputs(classifier, metadata, batch.inputs),
            )
            advance(1)
    return ResizeParity(
        **vars(parity.report()),
        largest_pixel_difference=pixels.largest,
        mean_pixel_difference=float(np.mean(means)),
    )
