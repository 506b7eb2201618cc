"""``.pt2``: plain torch runs it, and what torch's reader would run for a file is refused before it is read."""

import json
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch

from headsmith.core.errors import InputError
from headsmith.export import Classifier, open_model
from headsmith.export.formats.exported_program_format import write_exported_program
from headsmith.export.metadata import Metadata, identity
from headsmith.models import Linear

ABOUT = Metadata(tuple("abcdef"), "features", None, identity(None, 8), "feature set")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("pt2") / "model.pt2"
    head = Linear(8, 6)
    torch.nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(0))
    write_exported_program(Classifier(head, probabilities=True), ABOUT, path)
    return head, path


def test_plain_torch_needs_nothing_of_ours(program):
    head, path = program
    extra = {"labels": ""}
    module = torch.export.load(path, extra_files=extra).module()
    features = torch.randn(5, 8, generator=torch.Generator().manual_seed(1))
    logits, _, indices, probabilities = module(features)
    torch.testing.assert_close(logits, head(features))
    torch.testing.assert_close(probabilities, head(features).softmax(1))
    assert indices[:, 0].tolist() == head(features).argmax(1).tolist()
    assert json.loads(extra["labels"]) == list("abcdef")


def test_it_holds_no_example_and_no_trace(program):
    with zipfile.ZipFile(program[1]) as archive:
        sizes = {name.partition("/")[2]: archive.getinfo(name).file_size for name in archive.namelist()}
        (graph,) = [archive.read(name) for name in archive.namelist() if name.endswith("model.json")]
    assert sizes["data/sample_inputs/model.pt"] == 0
    assert b"stack_trace" not in graph


@pytest.mark.parametrize("share", [0, 0.5, 0.99])
def test_a_truncated_file_is_named(program, tmp_path, share):
    content = program[1].read_bytes()
    (tmp_path / "model.pt2").write_bytes(content[: int(share * len(content))])
    with pytest.raises(InputError, match=r"model\.pt2: damaged .* export it again") as caught:
        open_model(tmp_path / "model.pt2")
    assert "\n" not in str(caught.value)


def test_a_flipped_bit_is_found(program, tmp_path):
    content = bytearray(program[1].read_bytes())
    content[content.index(b'"config"') + 3] ^= 1
    (tmp_path / "model.pt2").write_bytes(content)
    with pytest.raises(InputError, match=r"model\.pt2: damaged"):
        open_model(tmp_path / "model.pt2")


class Canary:
    """Unpickling it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def rewritten(path, target, change):
    """A copy of an archive; ``change(name, content)`` gives the new content of each member."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            new.writestr(name, change(name, old.read(name)))
    return target


def edit(ending, old, new):
    return lambda name, content: content.replace(old, new, 1) if name.endswith(ending) else content


@pytest.mark.parametrize(
    "change",
    [
        edit("weights_config.json", b'"use_pickle": false', b'"use_pickle": true'),
        edit("model.json", b'"torch.ops.aten.linear.default"', b'"torch.hub.load"'),
        edit("model.json", b'"torch.ops.aten.linear.default"', b'"#headsmith.extension"'),
        edit("model.json", b'"range_constraints": {"', b'"range_constraints": {"__import__(1)+'),
        edit("model.json", b'"metadata": {}', b'"metadata": {"torch_fn": "x"}'),
    ],
)
def test_what_could_run_code_is_refused(program, tmp_path, change):
    path = rewritten(program[1], tmp_path / "model.pt2", change)
    assert path.read_bytes() != program[1].read_bytes()
    with pytest.raises(InputError, match=r"model\.pt2: holds .*, which could run code"):
        open_model(path)


@pytest.mark.parametrize(
    "member", ["data/sample_inputs/model.pt", "data/weights/model.pt", "data/constants/opaque_obj_0"]
)
def test_pickles_are_not_opened(program, tmp_path, member):
    canary, path = tmp_path / "canary", shutil.copy(program[1], tmp_path / "model.pt2")
    with zipfile.ZipFile(path) as archive:
        root = archive.namelist()[0].partition("/")[0]
        members = {name: archive.read(name) for name in archive.namelist()} | {
            f"{root}/{member}": pickle.dumps(Canary(canary))
        }
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(InputError, match=r"model\.pt2: "):
        open_model(path)
    assert not canary.exists()


def test_ties_go_to_the_lower_index(tmp_path):
    about = Metadata(tuple(map(str, range(1000))), "features", None, identity(None, 8), "feature set")
    write_exported_program(Classifier(Linear(8, 1000)), about, tmp_path / "model.pt2")
    found = open_model(tmp_path / "model.pt2").run(np.zeros((3, 8), np.float32))
    assert found.topk_indices.tolist() == [[0, 1, 2, 3, 4]] * 3


class Switches(Linear):
    """A head that switches autocast off, as timm's EfficientViT does in its attention, and gradients too."""

    def forward(self, x):
        with torch.autocast("cpu", enabled=False):
            scaled, shifted = x * 2, x + 1
            with torch.no_grad():
                shifted = shifted.tanh()
                with torch.autocast("cpu", enabled=False):
                    scaled = scaled.sin()
        with torch.no_grad():
            return super().forward(scaled) + shifted.sum(1, keepdim=True)


def test_what_a_network_switches_off_stands_among_its_other_operators(tmp_path):
    torch.manual_seed(0)
    network = Switches(8, 6).requires_grad_(False)
    torch.nn.init.normal_(network.weight)
    write_exported_program(Classifier(network), ABOUT, tmp_path / "model.pt2")
    with zipfile.ZipFile(tmp_path / "model.pt2") as archive:
        assert b"higher_order" not in archive.read("model/models/model.json")
    features = torch.randn(5, 8)
    found = open_model(tmp_path / "model.pt2").run(features.numpy()).logits
    np.testing.assert_allclose(found, network(features).numpy(), rtol=1e-6)


def test_what_a_network_computes_with_autocast_is_refused_when_it_is_opened(tmp_path):
    class Mixed(Switches):
        def forward(self, x):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return super().forward(x)

    write_exported_program(Classifier(Mixed(8, 6).requires_grad_(False)), ABOUT, tmp_path / "model.pt2")
    with pytest.raises(InputError, match=r"holds 'torch\.ops\.higher_order\.wrap_with_autocast'"):
        open_model(tmp_path / "model.pt2")
