from .features import FeatureSet, ImageSet, Inspection, extract, import_features, inspect_features, open_images
from .run import Run
from .train_config import TrainConfig
from .training import train

__all__ = [
    "FeatureSet",
    "ImageSet",
    "Inspection",
    "Run",
    "TrainConfig",
    "extract",
    "import_features",
    "inspect_features",
    "open_images",
    "train",
]
