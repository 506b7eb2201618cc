from .features import FeatureSet, ImageSet, Inspection, extract, import_features, inspect_features, open_images
from .finetuning.finetuning import finetune
from .finetuning.settings import FinetuneConfig
from .run import Run
from .train_config import TrainConfig
from .training import train

__all__ = [
    "FeatureSet",
    "FinetuneConfig",
    "ImageSet",
    "Inspection",
    "Run",
    "TrainConfig",
    "extract",
    "finetune",
    "import_features",
    "inspect_features",
    "open_images",
    "train",
]
