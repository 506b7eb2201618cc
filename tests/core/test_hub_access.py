"""What is loaded from the hub where there is none: one line, soon, and nothing of the tries."""

import logging

import datasets
import pytest
from huggingface_hub import constants

from headsmith.core.errors import InputError
from headsmith.core.hub import hub_access
from headsmith.models import load_backbone
from headsmith.trainer.features import import_features, open_images

LOG = logging.getLogger("huggingface_hub.utils._http")


@pytest.fixture
def no_hub(monkeypatch, tmp_path):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)


def test_a_hub_that_is_there_is_asked(hub):
    with hub_access() as unreachable:
        assert (unreachable, constants.HF_HUB_OFFLINE) == ("", False)
        assert not LOG.isEnabledFor(logging.WARNING)
    assert LOG.isEnabledFor(logging.WARNING)


def test_without_a_hub_the_cache_is_taken(no_hub):
    with hub_access() as unreachable:
        assert "http://127.0.0.1:9 cannot be reached" in unreachable
        assert constants.HF_HUB_OFFLINE and datasets.config.HF_HUB_OFFLINE
    assert not constants.HF_HUB_OFFLINE and not datasets.config.HF_HUB_OFFLINE


@pytest.mark.parametrize(
    "ask",
    [
        lambda out: import_features("nobody/nothing_here", out=out),
        lambda _: open_images("nobody/nothing_here"),
        lambda _: load_backbone("timm:resnet18"),
    ],
)
def test_what_cannot_be_had_is_one_line_after_one_try(no_hub, tmp_path, caplog, capfd, monkeypatch, ask):
    monkeypatch.setattr("time.sleep", lambda seconds: pytest.fail(f"waits for {seconds} s to try again"))
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9 cannot be reached") as error:
        ask(tmp_path / "out")
    assert "\n" not in str(error.value)
    assert not [record for record in caplog.records if record.name.startswith("huggingface_hub")]
    assert "Retrying" not in "".join(capfd.readouterr())
