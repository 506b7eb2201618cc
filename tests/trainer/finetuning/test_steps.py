"""The arithmetic of a fine-tuning beside plain torch and timm."""

import math

import pytest
import timm
import torch
from safetensors.torch import load_file
from timm.data import create_transform, resolve_data_config
from torch import nn

from headsmith.models.backbone import load_backbone
from headsmith.models.heads import Linear
from headsmith.models.images import open_image
from headsmith.trainer import extract, finetune
from headsmith.trainer.features.images.image_set import reopen
from headsmith.trainer.finetuning.fit import Fit
from headsmith.trainer.finetuning.network import Network
from headsmith.trainer.finetuning.optimization import Optimization, parameter_groups
from headsmith.trainer.finetuning.pictures import read_pictures
from headsmith.trainer.finetuning.resolved_settings import resolve
from headsmith.trainer.finetuning.settings import FinetuneConfig
from headsmith.trainer.finetuning.start import NetworkChoice, find_start

PLAIN = {"augmentation": "none", "batch_size": 1000, "schedule": "constant", "weight_decay": 0.0, "device": "cpu"}


def plain_network(run) -> nn.Module:
    """A run as timm alone builds it: a fresh network with its weights, the head in place of the classifier."""
    network = timm.create_model("test_resnet")
    backbone = run.path / "backbone.safetensors"
    if backbone.is_file():
        network.load_state_dict(load_file(backbone))
    else:
        network.load_state_dict(torch.load(run.record.backbone.checkpoint))
    network.reset_classifier(len(run.class_names))
    network.get_classifier().load_state_dict(load_file(run.path / "head.safetensors"))
    return network.eval()


def plain_batch(run, split: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The images of a split by timm's own transform."""
    network = timm.create_model("test_resnet")
    config = resolve_data_config({"input_size": (3, 32, 32)}, model=network)
    transform = create_transform(**config)
    images = reopen(run.record.features.source).split(split)
    pixels = [transform(open_image(images.content(one), one.id)) for one in images.samples]
    return torch.stack(pixels), torch.tensor([one.label for one in images.samples])


def test_what_is_reported_is_what_timm_computes_with_the_files(tuned_run):
    images, labels = plain_batch(tuned_run, "test")
    with torch.inference_mode():
        logits = plain_network(tuned_run)(images)
    scores = tuned_run.record.results.test
    assert scores.hits == int((logits.argmax(1) == labels).sum())
    assert scores.loss == pytest.approx(float(nn.functional.cross_entropy(logits, labels)), rel=1e-4)
    assert tuned_run.class_names == ["cat", "dog", "emu", "fox", "gnu", "hen"]


@pytest.mark.parametrize("batch_norm", ["frozen", "trained"])
def test_a_step_is_that_of_plain_torch(tiny_run, batch_norm):
    network = plain_network(tiny_run)
    network.train(batch_norm == "trained")
    images, labels = plain_batch(tiny_run, "train")
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    loss = nn.functional.cross_entropy(network(images), labels)
    loss.backward()
    optimizer.step()

    opened = reopen(tiny_run.record.features.source)
    start = find_start(str(tiny_run.path), NetworkChoice(), tiny_run.class_names, 0)
    recipe = start.backbone.preprocessing
    named = {"start": str(tiny_run.path), "optimizer": "sgd", "learning_rate": 0.1, "batch_norm": batch_norm}
    config = resolve(FinetuneConfig(epochs=1, **named, **PLAIN), 6, 96, from_scratch=False)
    fit = Fit(start, config, read_pictures(opened, recipe, recipe, 1).splits, 6)
    assert fit.steps.run(1, None, lambda images: None) == pytest.approx(float(loss.detach()), rel=1e-5)
    expected, head = network.state_dict(), fit.network.head.state_dict()
    found = fit.network.backbone.state_dict() | {f"fc.{name}": value for name, value in head.items()}
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5)


def test_a_frozen_backbone_is_a_fit_to_its_features(tiny_run, tiny_backbone, photos, tmp_path):
    features = extract(photos, out=tmp_path / "features", dtype="float32", **tiny_backbone._asdict())
    run = finetune(
        photos,
        out=tmp_path / "run",
        unfreeze="none",
        epochs=4,
        learning_rate=0.05,
        head_learning_rate=0.05,
        **{**tiny_backbone._asdict(), **PLAIN},
    )
    rows, labels = features.arrays("train")
    start = finetune(  # the random head, from a rate that changes nothing
        photos,
        out=tmp_path / "start",
        unfreeze="none",
        epochs=1,
        learning_rate=1e-30,
        head_learning_rate=1e-30,
        **{**tiny_backbone._asdict(), **PLAIN},
    )
    head = nn.Linear(96, 6)
    head.load_state_dict(start.head.state_dict())
    optimizer = torch.optim.AdamW(head.parameters(), lr=0.05, weight_decay=0.0)
    for _ in range(run.record.results.best_epoch):
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(rows), labels).backward()
        optimizer.step()
    torch.testing.assert_close(run.head.weight, head.weight, rtol=1e-4, atol=1e-5)
    before = run.record.finetuning.backbone_sha256
    assert run.record.backbone.weights_sha256 == before == features.manifest.backbone.weights_sha256


def rates_of(groups, network) -> dict[str, float]:
    names = {id(one): name for name, one in network.named_parameters()}
    return {
        names[id(one)]: group.get("lr_scale", 1.0) for group in groups for one in group["params"] if id(one) in names
    }


def test_rates_fall_from_layer_to_layer_as_in_timm():
    peer = timm.create_model("test_vit")
    expected = rates_of(timm.optim.param_groups_layer_decay(peer, layer_decay=0.5), peer)
    config = FinetuneConfig(layer_decay=0.5, learning_rate=1e-3, head_learning_rate=2e-3, batch_norm="frozen")
    network = Network(backbone("test_vit"), Linear(64, 6), config)
    groups = parameter_groups(network, config)
    found = rates_of(groups, network.backbone)
    assert found == {name: rate for name, rate in expected.items() if not name.startswith("head.")}
    assert rates_of(groups, network.head) == {"weight": 2.0, "bias": 2.0}
    assert min(found.values()) == 0.5**7  # of the patches, below six blocks and the head


def backbone(name):
    return load_backbone(f"timm:{name}", from_scratch=True)


def test_the_step_size_rises_and_then_is_half_a_cosine():
    config = FinetuneConfig(
        learning_rate=0.1, head_learning_rate=0.1, epochs=3, warmup=1.0, batch_norm="frozen", unfreeze="none"
    )
    optimization = Optimization(Network(backbone("test_resnet"), Linear(96, 6), config), config, 4)
    rates = []
    for number in range(12):
        optimization.step(number)
        rates.append(optimization.rate)
    rise = [0.02 + number * 0.08 / 4 for number in range(4)]
    fall = [0.05 * (1 + math.cos(math.pi * number / 8)) for number in range(8)]
    assert rates == pytest.approx(rise + fall)
