import pytest
from digits_features import digits_with

from headsmith.trainer import FeatureSet


@pytest.fixture(scope="session")
def digits() -> FeatureSet:
    return digits_with(("train", "val", "test"))
