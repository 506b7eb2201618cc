import datasets
import pytest


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    """What `datasets` keeps lies in the test's own folder, and no server is asked."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_OFFLINE", True)
