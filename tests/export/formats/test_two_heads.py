"""timm's networks with two heads, of which the mean is the answer: the exported folder has the trained head in both."""

import pytest
import timm
import torch

from headsmith.export.classifier import Classifier
from headsmith.export.formats.registry import FORMATS
from headsmith.export.metadata import Metadata, identity
from headsmith.export.options import ExportOptions
from headsmith.models.backbone import load_backbone
from headsmith.models.heads import Linear

CLASSES = tuple("abcdefg")


@pytest.fixture(params=["levit_128s", "deit_tiny_distilled_patch16_224", "repvit_m0_9"])
def classifier(request, tmp_path):
    torch.manual_seed(0)
    network = timm.create_model(request.param)
    for module in network.modules():  # statistics of a trained network
        if isinstance(module, torch.nn.BatchNorm1d):
            module.running_mean.normal_()
            module.running_var.uniform_(0.5, 2)
    torch.save(network.state_dict(), tmp_path / "w.pth")
    backbone = load_backbone(f"timm:{request.param}", checkpoint=tmp_path / "w.pth")
    head = Linear(backbone.feature_dim, len(CLASSES))
    torch.nn.init.normal_(head.weight)
    return Classifier(head, backbone).folded()


def test_timm_opens_it_and_answers_as_the_classifier(classifier, tmp_path):
    backbone = classifier.backbone
    origin = identity(backbone.record(), backbone.feature_dim)
    metadata = Metadata(CLASSES, "float-nchw", backbone.preprocessing, origin, "")
    FORMATS["timm"].check(classifier, metadata)
    FORMATS["timm"].write(classifier, metadata, tmp_path / "model.safetensors", ExportOptions())
    network = timm.create_model(f"local-dir:{tmp_path}", pretrained=True).eval()
    images = torch.randn(2, 3, *backbone.preprocessing.crop_size, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        torch.testing.assert_close(network(images), classifier.head(backbone(images)), rtol=1e-3, atol=1e-3)
