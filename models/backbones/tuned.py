"""The file of a fine-tuned backbone: all its weights, by the names of its library, and how to build the network."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import safetensors.torch
from safetensors import SafetensorError, safe_open

from ...core.errors import InputError
from ...core.files import new_file, parse_json, regular_file
from ...core.typed_json import structured

if TYPE_CHECKING:
    from ..backbone import Backbone

BACKBONE = "backbone.safetensors"
METADATA = "headsmith.backbone"
_AGAIN = "fine-tune again"


@dataclass(frozen=True)
class Network:
    """How to build a network before its weights are read.

    Attributes:
        spec: ``timm:NAME``, ``torchvision:NAME[/WEIGHTS]`` or ``cifar:NAME``.
        image_size: Another crop edge in pixels than the network's own.
    """

    spec: str
    image_size: int | None


class TunedBackbone(NamedTuple):
    """What a fine-tuned run says of its backbone.

    Attributes:
        spec: See `Network`.
        image_size: See `Network`.
        file: The weights.
    """

    spec: str
    image_size: int | None
    file: Path


def save_backbone(backbone: "Backbone", network: Network, path: Path) -> None:
    """Write the weights of a backbone as safetensors, atomically; `headsmith.load_backbone` takes file and folder."""
    state = backbone.source.state()
    tensors = {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
    with new_file(path) as temporary:
        temporary.write_bytes(safetensors.torch.save(tensors, {METADATA: json.dumps(asdict(network))}))


def tuned_backbone(spec: str) -> TunedBackbone | None:
    """The backbone of a run folder, or the file in one; ``None`` of what names no folder and no such file.

    Raises:
        InputError: A folder without a backbone, or a file that is damaged or of another kind.
    """
    path = Path(spec).expanduser()
    file = path if path.suffix == ".safetensors" and path.is_file() else path / BACKBONE
    if not spec or (file != path and not path.is_dir()):
        return None
    if not file.is_file():
        raise InputError(
            f"--backbone {spec}: {BACKBONE}: not found in this folder; `headsmith finetune` makes one, and a run of "
            "`headsmith train` uses the backbone of its features"
        )
    try:
        with safe_open(regular_file(file), framework="pt") as opened:
            metadata = opened.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise InputError(f"{file}: damaged or not safetensors ({error}); {_AGAIN}") from None
    if METADATA not in metadata:
        raise InputError(f"{file}: metadata {sorted(metadata)}, expected {METADATA!r}; not a backbone of headsmith's")
    try:
        values = parse_json(metadata[METADATA])
    except ValueError as error:
        raise InputError(f"{file}: {METADATA}: not valid JSON ({error}); {_AGAIN}") from None
    network = structured(values, Network, str(file), advice=_AGAIN)
    return TunedBackbone(network.spec, network.image_size, file)
