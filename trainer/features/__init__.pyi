from .batches import Batch, image_batches
from .extraction import extract
from .feature_set import FeatureSet
from .image_set import ImageSet, open_images
from .importing import import_features
from .inspection import Inspection, inspect_features
from .samples import Sample

__all__ = [
    "Batch",
    "FeatureSet",
    "ImageSet",
    "Inspection",
    "Sample",
    "extract",
    "image_batches",
    "import_features",
    "inspect_features",
    "open_images",
]
