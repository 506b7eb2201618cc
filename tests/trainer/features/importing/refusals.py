"""What files that cannot be imported are told."""

from pathlib import Path

import pytest

from headsmith.core.errors import InputError
from headsmith.trainer import import_features

from .planted import planted

ROWS = planted(40)


def refused(match, *files, **options):
    with pytest.raises(InputError, match=match) as caught:
        import_features(files, out="set", **options)
    assert "\n" not in str(caught.value)
    assert not Path("set").exists()
