"""What is counted is called as it is counted."""

import pytest

from headsmith.core.counted import counted


@pytest.mark.parametrize(
    ("count", "words", "said"),
    [
        (0, ("image",), "0 images"),
        (1, ("image",), "1 image"),
        (1024, ("image",), "1,024 images"),
        (1, ("class", "classes"), "1 class"),
        (2, ("row has", "rows have"), "2 rows have"),
    ],
)
def test_one_is_no_plural(count, words, said):
    assert counted(count, *words) == said
