"""Small pictures of held-out images, as part of the page."""

import base64
import io
from collections.abc import Iterable

from PIL import Image

from ...core.errors import InputError
from ..results import Results

EDGE, QUALITY = 96, 72
ATTEMPTS = 3


def thumbnails(results: Results, ids: Iterable[str]) -> tuple[dict[str, str], str]:
    """Square JPEG pictures of held-out images as ``data:`` addresses.

    Args:
        results: Knows where the images lie.
        ids: Of the images that are wanted.

    Returns:
        The pictures by id, without those of images that are not there or do not decode; and why some are missing,
        empty where all are there. Where the first few are all missing, the others are not looked for.
    """
    found: dict[str, str] = {}
    reason, failures = "", 0
    for sample in dict.fromkeys(ids):
        if not found and failures == ATTEMPTS:
            break
        try:
            found[sample] = _address(results.image(sample))
        except InputError as error:
            failures += 1
            reason = reason or str(error)
    return found, reason


def _address(image: Image.Image) -> str:
    edge = min(image.size)
    left, top = (image.width - edge) // 2, (image.height - edge) // 2
    small = image.resize((EDGE, EDGE), Image.Resampling.BICUBIC, (left, top, left + edge, top + edge), reducing_gap=2.0)
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=QUALITY, optimize=True)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
