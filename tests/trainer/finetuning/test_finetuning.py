"""From images to a run folder whose backbone learnt too, and what may go wrong on the way."""

import json
import shutil

import numpy as np
import pytest
import timm
import torch
from PIL import Image
from typer.testing import CliRunner

from headsmith.cli import app
from headsmith.core.errors import DamagedFileError, InputError
from headsmith.models.backbone import load_backbone
from headsmith.trainer import Run, extract, finetune, train
from headsmith.trainer.finetuning.fit import Fit
from headsmith.trainer.finetuning.network import Network
from headsmith.trainer.finetuning.steps import Steps
from headsmith.trainer.run_writer import DivergedError


def epochs_of(run) -> list[dict]:
    return [json.loads(line) for line in (run.path / "metrics.jsonl").read_text().splitlines()]


def weights_of(run) -> list[bytes]:
    return [(run.path / name).read_bytes() for name in ("backbone.safetensors", "head.safetensors")]


def test_epoch_0_is_the_head_run(tuned_run, tiny_run):
    first, *rest = epochs_of(tuned_run)
    recorded = tiny_run.record.results.val
    assert first["epoch"] == 0
    assert [one["epoch"] for one in rest] == [1, 2]
    assert first["val"]["top1"] == recorded.top1
    assert first["val"]["loss"] == pytest.approx(recorded.loss, rel=1e-3)  # of features in half precision
    assert tuned_run.record.finetuning.before.top1 == recorded.top1
    assert tuned_run.record.finetuning.backbone_sha256 == tiny_run.record.backbone.weights_sha256


def test_a_head_that_was_trained_on_other_images_is_warned_of(tuned_run, tiny_run, image_folder, tmp_path):
    assert tuned_run.record.warnings == []
    others = image_folder(dict.fromkeys(tiny_run.class_names, 6))
    run = finetune(others, out=tmp_path / "run", start=str(tuned_run.path), unfreeze="none", epochs=1, device="cpu")
    assert [one.code for one in run.record.warnings] == ["other-images"]


def test_a_run_that_moved_is_still_a_whole_one(tuned_run, tmp_path):
    moved = Run.load(shutil.copytree(tuned_run.path, tmp_path / "moved"))
    assert moved.record.backbone.checkpoint == str(tmp_path / "moved" / "backbone.safetensors")
    backbone = load_backbone(str(moved.path))
    assert backbone.weights_sha256 == moved.record.backbone.weights_sha256
    assert backbone.record().probe == moved.record.backbone.probe
    (moved.path / "backbone.safetensors").write_bytes(weights_of(moved)[0][:-1] + b"\0")
    with pytest.raises(InputError, match="not the backbone that run.json describes .hash differs.; fine-tune again"):
        Run.load(moved.path)
    (moved.path / "backbone.safetensors").unlink()
    with pytest.raises(InputError, match="backbone.safetensors: not found, though run.json describes it"):
        Run.load(moved.path)


def test_its_features_are_its_own(tuned_run, tiny_run, photos, tmp_path):
    features = extract(photos, out=tmp_path / "features", backbone=str(tuned_run.path))
    assert features.fingerprint == tuned_run.record.features.fingerprint != tiny_run.record.features.fingerprint
    head = train(features, out=tmp_path / "head", start=str(tuned_run.path), epochs=1, device="cpu")
    assert head.record.results.test.top1 == tuned_run.record.results.test.top1
    with pytest.raises(InputError, match="weights_sha256 differs"):
        train(tiny_run.record.features.path, out=tmp_path / "old", start=str(tuned_run.path))


def test_images_are_divided_as_an_extraction_divides_them(image_folder, tiny_backbone, tmp_path):
    photos = image_folder({"cat": 12, "dog": 12, "emu": 12})
    for name in ("cat/000", "cat/001", "dog/003"):  # copies in another format
        with Image.open(photos / f"{name}.png") as image:
            image.save(photos / f"{name}x.bmp")
    for name in ("dog/000.png", "emu/004.png"):
        (photos / name).write_bytes((photos / name).read_bytes()[:300])
    features = extract(photos, out=tmp_path / "features", **tiny_backbone._asdict())
    run = finetune(photos, out=tmp_path / "run", epochs=1, device="cpu", **tiny_backbone._asdict())
    assert run.record.features.source == features.manifest.source
    results = run.record.results
    assert (results.val.n, results.test.n) == (features.manifest.splits["val"], features.manifest.splits["test"])
    assert {"unreadable", "copies"} <= {one.code for one in run.record.warnings}


def test_after_an_interruption_the_bits_are_those_of_an_unbroken_run(tune, tmp_path, monkeypatch):
    settings = {"augmentation": "randaugment", "mixup": 0.2, "cutmix": 1.0, "erasing": 0.5, "averaging": 0.9}
    settings |= {"epochs": 3, "batch_size": 40, "batch_norm": "trained", "warmup": 1.0, "loss": "neuralsort"}
    unbroken = tune("unbroken", **settings)
    run = Steps.run

    def interrupted(self, epoch, *others):
        if epoch == 3:
            raise KeyboardInterrupt
        return run(self, epoch, *others)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt) as stop:
        patch.setattr(Steps, "run", interrupted)
        tune("broken", **settings)
    kept = tmp_path / "broken.partial"
    assert stop.value.__notes__ == [
        f"{kept} keeps the epochs up to its last checkpoint; the same command goes on from there"
    ]
    with pytest.raises(InputError, match="an unfinished run with other settings .seed 0, now 1."):
        tune("broken", **settings, seed=1)
    torch.rand(7)  # somebody else draws meanwhile
    found = tune("broken", **settings)
    assert weights_of(found) == weights_of(unbroken)
    assert [one["val"] for one in epochs_of(found)] == [one["val"] for one in epochs_of(unbroken)]
    assert not kept.exists()


def test_images_that_memory_does_not_hold_give_the_same_bits(tune, monkeypatch):
    settings = {"epochs": 2, "batch_size": 40, "unfreeze": "last:1"}
    kept = tune("kept", **settings)
    monkeypatch.setattr("headsmith.trainer.finetuning.pictures.free_memory", lambda: 0)
    decoded = tune("decoded", workers=2, **settings)
    assert weights_of(decoded) == weights_of(kept)
    placements = [run.record.features.placement for run in (kept, decoded)]
    assert placements == ["images in memory", "images decoded in every epoch"]


def test_the_settings_of_a_run_are_a_file_of_settings(tuned_run, photos, tmp_path):
    again = finetune(photos, out=tmp_path / "again", config=tuned_run.path / "config.yaml")
    assert again.config == tuned_run.config
    assert weights_of(again) == weights_of(tuned_run)


@pytest.mark.parametrize("loss", ["lapsum", "bitonic", "sinkhorn", "smooth_topk", "average_topk"])
def test_losses_take_the_soft_targets_of_mixup(tune, loss):
    run = tune(loss=loss, mixup=0.4, epochs=1, augmentation="none", unfreeze="last:1")
    assert np.isfinite(epochs_of(run)[0]["loss"])
    assert run.record.loss["method"] == loss


def test_from_scratch_all_learns(photos, tmp_path):
    named = {"backbone": "timm:test_resnet", "image_size": 32, "from_scratch": True}
    run = finetune(photos, out=tmp_path / "run", epochs=2, device="cpu", **named)
    record = run.record.finetuning
    assert record.from_scratch
    assert run.config.batch_norm == "trained"
    assert record.learning == sum(one.numel() for one in timm.create_model("test_resnet", num_classes=6).parameters())


def test_a_loss_that_is_not_finite_keeps_the_start(tiny_run, photos, tmp_path):
    run = finetune(photos, out=tmp_path / "run", start=str(tiny_run.path), learning_rate=1e30, epochs=5, device="cpu")
    assert run.record.results.best_epoch == 0
    assert run.record.results.test.top1 == tiny_run.record.results.test.top1
    (warning,) = [one for one in run.record.warnings if one.code == "diverged"]
    assert "the start was kept" in warning.message
    assert len(epochs_of(run)) < 5


def test_a_loss_that_was_never_finite_names_epoch_and_rate(tune, tmp_path):
    with pytest.raises(DivergedError, match=r"fine-tuning softmax: .* epoch 1.*; lower `learning_rate` \(now 1e\+30\)"):
        tune(learning_rate=1e30, batch_size=16)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("can't allocate memory: 9")]
)
def test_the_batch_that_would_fit_is_named(tune, monkeypatch, error):
    forward = Network.forward

    def small(self, images):
        if len(images) > 30:
            raise error
        return forward(self, images)

    monkeypatch.setattr(Network, "forward", small)
    with pytest.raises(InputError, match="batch_size: 96 images do not fit the memory, 24 would; choose that"):
        tune(batch_size=96)


BAD = {
    "onnx": ({"backbone": "onnx:zoo.onnx"}, "an ONNX file, which cannot learn; choose timm:NAME"),
    "one": ({"batch_size": 1, "batch_norm": "trained"}, "batch_size: 1 found, but batch normalisation takes"),
    "small": (
        {"augmentation": "cifar", "image_size": 64},
        "the smallest one has a shorter edge of 40 pixels, the crop 64",
    ),
    "blocks": ({"unfreeze": "last:0"}, "unfreeze: 'last:0' found, expected one of all, last:N, norms, none"),
    "optimiser": ({"optimizer": "adamv"}, "optimizer: 'adamv' found, expected one of timm's.*did you mean"),
    "nothing learns": ({"unfreeze": "none", "batch_norm": "trained"}, "batch_norm: trained found, but nothing"),
    "two weights": ({"from_scratch": True}, "from_scratch: found beside `checkpoint`"),
    "two starts": ({"start": "backbone", "from_scratch": True}, "from_scratch: found beside `start` backbone"),
    "start": ({"start": "nowhere"}, "start: 'nowhere' found, expected random, zeros, backbone"),
    "name": ({"backbone": "cifar:resnet20", "checkpoint": None}, "expected cifar:resnet18; did you mean resnet18"),
    "weights": (
        {"backbone": "cifar:resnet18", "checkpoint": None},
        "nobody published weights of it",
    ),
    "warmup": ({"warmup": 3.0, "epochs": 2}, "warmup: 3.0 epochs found, expected at most `epochs` .2."),
    "unused": ({"m": 8}, "m: 8 found, but `loss` softmax, plain cross-entropy, does not read it; leave it out"),
    "setting": ({"dropuot": 0.1}, "dropuot: no keyword of finetune"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(tune, tmp_path, name):
    settings, message = BAD[name]
    with pytest.raises(InputError, match=message) as found:
        tune(**settings)
    assert "\n" not in str(found.value)
    assert list(tmp_path.iterdir()) == []


def test_a_start_of_other_classes_or_of_another_backbone(tiny_run, image_folder, photos, tmp_path):
    others = image_folder({"cat": 4, "cow": 4})
    with pytest.raises(InputError, match="a head of 6 classes for images of 2: .* .'dog', 'emu', 'fox'.*'cow'"):
        finetune(others, out=tmp_path / "run", start=str(tiny_run.path))
    with pytest.raises(InputError, match="trained on timm:test_resnet, `backbone` is timm:test_vit with other weights"):
        torch.save(load_backbone("timm:test_vit", from_scratch=True).network.state_dict(), tmp_path / "vit.pth")
        finetune(
            photos,
            out=tmp_path / "run",
            start=str(tiny_run.path),
            backbone="timm:test_vit",
            checkpoint=tmp_path / "vit.pth",
        )
    with pytest.raises(InputError, match="from_scratch: found beside `start`"):
        finetune(photos, out=tmp_path / "run", start=str(tiny_run.path), from_scratch=True)


def test_features_are_no_images(tiny_run, tmp_path):
    with pytest.raises(InputError, match="is a feature set, which holds no images; expected the images themselves"):
        finetune(tiny_run.record.features.path, out=tmp_path / "run")


def test_a_folder_or_file_that_holds_no_backbone(tiny_run, tuned_run, tmp_path):
    with pytest.raises(InputError, match="backbone.safetensors: not found in this folder; `headsmith finetune`"):
        load_backbone(str(tiny_run.path))
    with pytest.raises(InputError, match="expected 'headsmith.backbone'; not a backbone of headsmith's"):
        load_backbone(str(tiny_run.path / "head.safetensors"))
    cut = tmp_path / "backbone.safetensors"
    cut.write_bytes(weights_of(tuned_run)[0][:50])
    with pytest.raises(InputError, match="damaged or not safetensors"):
        load_backbone(str(tmp_path))
    with pytest.raises(InputError, match="checkpoint: `backbone` .* has its own weights"):
        load_backbone(str(tuned_run.path), checkpoint=cut)


def test_an_edited_record_is_refused(tuned_run, tmp_path):
    copy = shutil.copytree(tuned_run.path, tmp_path / "copy")
    values = json.loads((copy / "run.json").read_text())
    values["finetuning"]["from_scratch"] = True
    (copy / "run.json").write_text(json.dumps(values))
    with pytest.raises(DamagedFileError, match="finetuning: not what the training wrote"):
        Run.load(copy)


def test_the_command_takes_every_setting(tiny_run, photos, tmp_path):
    arguments = ["finetune", photos, "--start", tiny_run.path, "--unfreeze", "last:1", "--epochs", "1", "--no-amp"]
    found = CliRunner().invoke(app, [*map(str, arguments), "--device", "cpu", "--out", str(tmp_path / "run")])
    assert found.exit_code == 0, found.output
    run = Run.load(tmp_path / "run")
    assert (run.config.unfreeze, run.config.amp, run.config.epochs) == ("last:1", False, 1)
    assert found.stdout.split()[0].endswith("run")


def test_the_command_says_what_an_interruption_leaves(tiny_run, photos, tmp_path, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Fit, "tuned", interrupt)
    arguments = ["finetune", photos, "--start", str(tiny_run.path), "--epochs", "2", "--device", "cpu"]
    found = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "run")])
    assert found.exit_code == 130
    assert f"interrupted: {tmp_path / 'run.partial'} keeps the epochs up to its last checkpoint" in found.stderr
