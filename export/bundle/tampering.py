"""Is a bundle what its export wrote: no field of its manifest edited or untrue, nothing beside what it lists?"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...core.coded_warnings import CodedWarning
from ...core.errors import DamagedFileError
from ...core.files import read_json
from ...core.listed import listed
from ...core.records import changed_fields
from ...core.typed_json import structured
from ..runtime import Array, Model, Outputs
from .bundle import PARITY, Bundle
from .hub import HUB
from .manifest import AGAIN, FIELD, MANIFEST, UNHASHED, Manifest

# What a runtime may be given, or a file of weights beside it; then what runs when it is opened.
SUFFIXES = (
    *(".onnx", ".data", ".ts", ".pt2", ".safetensors"),
    *(".pkl", ".pickle", ".joblib", ".p", ".pt", ".pth", ".ckpt", ".bin"),
    *(".py", ".pyc", ".pyw", ".pyd", ".ipynb", ".sh", ".bat", ".cmd", ".ps1", ".js", ".jar"),
    *(".exe", ".dll", ".so", ".dylib"),
)
# How scripts, programs of Linux and of Windows, and pickles begin.
STARTS = (b"#!", b"\x7fELF", b"MZ", *(bytes([0x80, protocol]) for protocol in range(2, 6)))
# What git and the hub put into a folder.
OWN = (".git", ".gitattributes", ".gitignore", ".cache")
UNLISTED = "unlisted"


def check_listed(bundle: Bundle) -> list[CodedWarning]:
    """Compare the files in a bundle's folder with those that its manifest lists and has figures of.

    Returns:
        A warning with the names of others that somebody may have put there, such as notes.

    Raises:
        DamagedFileError: A model file, a program, a script or a pickle is not listed, so that nobody vouches for it; or
            figures are missing, or of no file.
    """
    where = bundle.path / MANIFEST
    strange = list(_unlisted(bundle))
    if wrong := next((path for path in strange if _is_model_or_program(path)), None):
        raise DamagedFileError(f"{wrong}: is in the bundle, but {MANIFEST} does not list it; remove it, or {AGAIN}")
    models = set(bundle.model_files.values())
    for key, stated in (("parity", bundle.manifest.parity.keys()), ("accuracy", bundle.manifest.accuracy.keys())):
        if other := models.symmetric_difference(stated):
            raise DamagedFileError(
                f"{where}: {key}: found {', '.join(stated) or 'nothing'}, expected the model files "
                f"{', '.join(sorted(models))} ({min(other)} is in one of them alone); {AGAIN}"
            )
    found = list(_links_out(bundle))
    if not strange:
        return found
    names = listed([path.relative_to(bundle.path).as_posix() for path in strange])
    are, them = ("is", "it") if len(strange) == 1 else ("are", "them")
    return [
        *found,
        CodedWarning(
            UNLISTED, f"{names}: {are} in the bundle, but {MANIFEST} does not list {them}; no hash covers {them}"
        ),
    ]


def _links_out(bundle: Bundle) -> Iterator[CodedWarning]:
    """Files of a bundle that lie outside of its folder; the hub's cache keeps all of them so."""
    inside = bundle.path.resolve()
    names = [name for name in bundle.manifest.files if not (bundle.path / name).resolve().is_relative_to(inside)]
    if names and not bundle.source.startswith(HUB):
        yield CodedWarning(
            "link-out", f"{listed(names)}: a symbolic link to a file outside of the bundle, which may change or be gone"
        )


def _unlisted(bundle: Bundle) -> Iterator[Path]:
    """What lies in a bundle's folder besides the manifest and what it lists, folders aside."""
    for path in sorted(bundle.path.rglob("*")):
        name = path.relative_to(bundle.path)
        if name.parts[0] in OWN or (path.is_dir() and not path.is_symlink()):
            continue
        if name.as_posix() != MANIFEST and name.as_posix() not in bundle.manifest.files:
            yield path


def _is_model_or_program(path: Path) -> bool:
    if path.suffix.lower() in SUFFIXES:
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4).startswith(STARTS)


def check_fields(bundle: Bundle) -> None:
    """Compare each field of a bundle's manifest with its hash in ``parity.json``.

    Raises:
        DamagedFileError: A field is another one now; or ``parity.json`` is not listed or lacks the hashes, as in the
            first bundles.
    """
    where = bundle.path / MANIFEST
    if PARITY not in bundle.manifest.files:
        raise DamagedFileError(f"{where}: `files` does not list {PARITY}; {AGAIN}")
    parity = bundle.path / PARITY
    hashes = structured(read_json(parity).get(FIELD), dict[str, str], f"{parity}: {FIELD}", advice=AGAIN)
    if wrong := changed_fields(read_json(where), hashes, without=UNHASHED):
        raise DamagedFileError(
            f"{where}: {', '.join(wrong[:3])}: not what was exported, by the hash in {PARITY}: edited by hand? {AGAIN}"
        )


def check_stated(manifest: Manifest, model: Model, inputs: Array, found: Outputs) -> None:
    """Compare the fields that no hash covers with a run.

    Args:
        manifest: The bundle's.
        model: One of its files.
        inputs: What it was given, for `Model.run`.
        found: What it answered.

    Raises:
        DamagedFileError: They disagree.
    """
    outputs = tuple(name for name, values in found._asdict().items() if values is not None)
    declared = Model.feed(model, inputs[:1])  # a network in a file of weights alone is fed in its own way
    half = model.feed(inputs[:1]).dtype == np.float16
    stated = [name for name in manifest.outputs if model.probabilities or name != "probabilities"]
    own, backbone = model.metadata, manifest.backbone
    pairs: dict[str, tuple[Any, Any]] = {
        "k": (found.topk_indices.shape[1], manifest.k),
        "outputs": (outputs, tuple(stated)),
        "input.name": (own.input_name, manifest.input.name),
        "input.dtype": ("float16" if half else str(declared.dtype), manifest.input.dtype),
        "input.shape": (own.input_shape(declared.shape[1:]), manifest.input.shape),
        "head.kind": (own.head, manifest.head.kind),
        "labels_sha256": (own.labels_sha256, manifest.labels_sha256),
        "backbone.weights_sha256": (own.backbone.weights_sha256, backbone and backbone.weights_sha256),
        "features.fingerprint": (own.feature_set, manifest.features.fingerprint),
    }
    for field, (expected, said) in pairs.items():
        if said != expected:
            raise DamagedFileError(
                f"{model.path}: has {field} {expected!r}, {MANIFEST} says {said!r}: edited by hand? export it again"
            )
