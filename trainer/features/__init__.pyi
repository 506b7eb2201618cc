from .extraction.extraction import extract
from .feature_set import FeatureSet
from .images.batches import ImageBatch, image_batches
from .images.image_set import ImageSet, open_images
from .images.samples import Sample
from .importing.importing import import_features
from .inspection.inspection import inspect_features
from .inspection.report import Inspection

__all__ = [
    "FeatureSet",
    "ImageBatch",
    "ImageSet",
    "Inspection",
    "Sample",
    "extract",
    "image_batches",
    "import_features",
    "inspect_features",
    "open_images",
]
