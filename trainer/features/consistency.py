"""Whether what a manifest says of itself in several places, and what the files say, is the same."""

from collections.abc import Mapping

from ...core.files import sha256_json
from ...models.preprocessing import upgraded_recipe
from .columns import Columns
from .extraction.request import RequestedBackbone
from .manifest import FeatureSetManifest


def contradictions(manifest: FeatureSetManifest, columns: Mapping[str, Columns]) -> list[str]:
    """What was changed by hand, each as ``FIELD: found, expected``.

    Args:
        manifest: Of a feature set.
        columns: Its splits.
    """
    request, found = manifest.request, list[str]()
    names, dtype = manifest.class_names, manifest.dtype
    kept = [split.class_names for split in columns.values() if split.class_names is not None]
    if any(own != names for own in kept) or request.class_names not in (None, sha256_json(names)):
        found.append("class_names: are not those that were written, so that labels may mean other classes")
    for split, one in columns.items():
        if one.features.dtype != dtype:
            found.append(f"dtype: found {dtype}, but the features of {split} are {one.features.dtype}")
    backbone = manifest.backbone
    recipe = backbone and upgraded_recipe(backbone.preprocessing.to_dict())
    same = {
        "backbone": request.backbone == RequestedBackbone.of(backbone),
        "weights": request.weights == (backbone and backbone.weights_sha256),
        "transform": request.transform is None or upgraded_recipe(request.transform) == recipe,
        "rows": request.rows in (None, manifest.rows_sha256),
        "source": request.source in (None, manifest.source_fingerprint),
    }
    found += [f"{field}: is not what was written" for field, is_same in same.items() if not is_same]
    if request.fingerprint != manifest.fingerprint:
        found.append("fingerprint: is not that of the request beside it")
    return found
