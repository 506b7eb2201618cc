from .backbone import Backbone, backbone_from_record, load_backbone
from .backbones.catalogue import BackboneInfo, list_backbones
from .heads import Head, Linear, build_head, load_head, save_head
from .preprocessing import Preprocessing
from .preprocessing_layers import Normalize
from .pretrained import backbone_classifier

__all__ = [
    "Backbone",
    "BackboneInfo",
    "Head",
    "Linear",
    "Normalize",
    "Preprocessing",
    "backbone_classifier",
    "backbone_from_record",
    "build_head",
    "list_backbones",
    "load_backbone",
    "load_head",
    "save_head",
]
