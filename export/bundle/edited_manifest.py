"""Is a bundle what its export wrote: no field of its manifest edited, no model file beside those that it lists?"""

from ...core.errors import DamagedFileError
from ...core.field_hashes import changed_fields
from ...core.files import read_json
from ...core.typed_json import structured
from .bundle import PARITY, Bundle
from .manifest import AGAIN, MANIFEST

FIELD = "manifest"
# What a runtime may be given, or a file of weights beside it.
SUFFIXES = (".onnx", ".data", ".ts", ".pt2", ".safetensors")


# The hashes of the files, among them that of the file with these hashes; the date, in which two equal exports differ.
UNHASHED = ("files", "created")


def check_listed(bundle: Bundle) -> None:
    """Compare the model files in a bundle's folder with those that its manifest lists and has figures of.

    Raises:
        DamagedFileError: One is not listed, so that nobody vouches for it; or figures are missing, or of no file.
    """
    where, listed = bundle.path / MANIFEST, bundle.manifest.files
    found = [*bundle.path.glob("*"), *bundle.path.glob("triton/**/*")]
    beside = (path.relative_to(bundle.path).as_posix() for path in sorted(found) if path.suffix in SUFFIXES)
    strange = next((name for name in beside if name not in listed), None)
    if strange is not None:
        raise DamagedFileError(
            f"{bundle.path / strange}: lies in the bundle, but {MANIFEST} does not list it; take it out, or {AGAIN}"
        )
    models = set(bundle.model_files.values())
    for key, stated in (("parity", bundle.manifest.parity.keys()), ("accuracy", bundle.manifest.accuracy.keys())):
        if other := models.symmetric_difference(stated):
            raise DamagedFileError(
                f"{where}: {key}: found {', '.join(stated) or 'nothing'}, expected the model files "
                f"{', '.join(sorted(models))} ({min(other)} is in one of them alone); {AGAIN}"
            )


def check_fields(bundle: Bundle) -> None:
    """Compare each field of a bundle's manifest with its hash in ``parity.json``.

    Raises:
        DamagedFileError: A field is another one now; or ``parity.json`` is not listed or lacks the hashes, as in the
            first bundles.
    """
    where = bundle.path / MANIFEST
    if PARITY not in bundle.manifest.files:
        raise DamagedFileError(f"{where}: `files` says nothing of {PARITY}; {AGAIN}")
    parity = bundle.path / PARITY
    hashes = structured(read_json(parity).get(FIELD), dict[str, str], f"{parity}: {FIELD}", advice=AGAIN)
    if wrong := changed_fields(read_json(where), hashes, without=UNHASHED):
        raise DamagedFileError(
            f"{where}: {', '.join(wrong[:3])}: not what was exported, by the hash in {PARITY}: edited by hand? {AGAIN}"
        )
