"""Bundles to the Hugging Face hub and back: the hub's own client, over HTTP, to a stand-in for the hub."""

import json
import socket
from pathlib import Path

import pytest
from huggingface_hub import constants, metadata_load
from typer.testing import CliRunner

from headsmith import predict, push
from headsmith.cli import app
from headsmith.core.errors import InputError
from headsmith.export import Bundle

pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of the hub's client to its own
runner = CliRunner()


@pytest.fixture
def images(tiny_run):
    return Path(tiny_run.record.features.source.source)


def test_a_bundle_comes_back_as_it_was(hub, tiny_bundle, images):
    assert push(tiny_bundle, "me/birds") == f"{hub.address}/me/birds"
    files = hub.repositories["me/birds"].files
    assert set(files) == {*tiny_bundle.manifest.files, "manifest.json"}
    assert files["model.onnx"] == (tiny_bundle.path / "model.onnx").read_bytes()
    bundle = Bundle.load("hf:me/birds")
    some = sorted(images.glob("*/*.png"))[:3]
    assert predict(bundle, some) == predict(tiny_bundle, some)
    push(bundle, "hf:me/again")
    assert hub.repositories["me/again"].files == files


def test_by_the_commands(hub, tiny_bundle, images):
    pushed = runner.invoke(app, ["push", str(tiny_bundle.path), "me/birds", "--private", "--license", "mit"])
    assert pushed.exit_code == 0, pushed.output
    assert pushed.stdout == f"{hub.address}/me/birds\n"
    assert hub.repositories["me/birds"].private
    evaluated = runner.invoke(app, ["evaluate", "hf:me/birds", "--data", str(images), "--json"])
    assert evaluated.exit_code == 0, evaluated.output
    (result,) = json.loads(evaluated.stdout)["models"]
    assert result["model"] == "hf:me/birds"


def test_the_card_has_what_the_hub_searches(hub, tiny_bundle, tmp_path):
    push(tiny_bundle, "me/birds", license="apache-2.0")
    card = tmp_path / "README.md"
    card.write_bytes(hub.repositories["me/birds"].files["README.md"])
    assert metadata_load(card) == {
        "library_name": "headsmith",
        "pipeline_tag": "image-classification",
        "tags": ["headsmith", "onnx", "torchscript"],
        "license": "apache-2.0",
    }
    assert card.read_text().endswith((tiny_bundle.path / "README.md").read_text())
    push(Bundle.load("hf:me/birds"), "me/again")
    assert hub.repositories["me/again"].files["README.md"] == card.read_bytes()


def test_files_of_an_earlier_bundle_go(hub, tiny_bundle):
    push(tiny_bundle, "me/birds")
    files = hub.repositories["me/birds"].files
    listed = json.loads(files["manifest.json"])
    listed["files"]["model.pt2"] = {}
    files |= {"model.pt2": b"earlier", "manifest.json": json.dumps(listed).encode(), "notes.txt": b"somebody's"}
    push(tiny_bundle, "me/birds")
    assert "model.pt2" not in files
    assert "model.pt2" not in json.loads(files["manifest.json"])["files"]
    assert files["notes.txt"] == b"somebody's"


def test_what_was_downloaded_is_there_without_a_network(hub, tiny_bundle, monkeypatch):
    push(tiny_bundle, "me/birds")
    online = Bundle.load("hf:me/birds")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{closed.getsockname()[1]}")
        assert Bundle.load("hf:me/birds") == online
        with pytest.raises(InputError, match=r"^hf:me/other: .*; check the name, the network and the token"):
            Bundle.load("hf:me/other")
        with pytest.raises(InputError, match=r"^hf:me/birds: .*; check the name, the network and the token"):
            push(tiny_bundle, "me/birds")


def test_private_is_never_public(hub, tiny_bundle):
    push(tiny_bundle, "me/birds")
    hub.repositories["me/birds"].files.clear()
    with pytest.raises(InputError, match="hf:me/birds: is public, but `private` was asked for"):
        push(tiny_bundle, "me/birds", private=True)
    assert not hub.repositories["me/birds"].files


def test_a_damaged_bundle_is_not_sent(hub, tiny_bundle, tmp_path):
    push(tiny_bundle, "me/birds")
    hub.repositories["me/birds"].files["labels.txt"] += b"another\n"
    with pytest.raises(InputError, match=r"labels\.txt: \d+ bytes, manifest\.json says \d+"):
        Bundle.load("hf:me/birds")


@pytest.mark.parametrize("name", ["nobody/nothing", "no name", "a/b/c", ""])
def test_what_the_hub_does_not_have(hub, name):
    with pytest.raises(InputError, match=rf"^hf:{name}: .*; check the name, the network and the token") as error:
        Bundle.load(f"hf:{name}")
    assert "\n" not in str(error.value)
