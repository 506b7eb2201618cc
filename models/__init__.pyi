from .backbone import Backbone, backbone_from_record, load_backbone
from .heads import Head, Linear, build_head, load_head, save_head
from .preprocessing import Preprocessing
from .preprocessing_layers import Normalize
from .pretrained import backbone_classifier

__all__ = [
    "Backbone",
    "Head",
    "Linear",
    "Normalize",
    "Preprocessing",
    "backbone_classifier",
    "backbone_from_record",
    "build_head",
    "load_backbone",
    "load_head",
    "save_head",
]
