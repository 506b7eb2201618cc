"""Names that a package has not."""

import subprocess
import sys

import pytest

import headsmith


@pytest.mark.parametrize(
    ("package", "name", "places"),
    [
        ("", "load_results", "headsmith.evaluate.load_results"),
        ("", "load_result", "headsmith.evaluate.load_results"),
        ("", "load_backbon", "headsmith.load_backbone"),
        ("", "export_clasifier", "headsmith.export_classifier"),
        ("", "evalute", "headsmith.evaluate"),
        ("evaluate", "load_result", "headsmith.evaluate.load_results"),
        ("trainer", "tran", "headsmith.trainer.train"),
    ],
)
def test_a_misspelt_name_is_told_with_the_nearest(package, name, places):
    found = getattr(headsmith, package) if package else headsmith
    with pytest.raises(AttributeError, match=rf"^{found.__name__} has no '{name}'; did you mean {places}( or .*)?\?$"):
        getattr(found, name)


def test_a_name_like_no_other():
    with pytest.raises(AttributeError, match=r"^headsmith has no 'xyzzy'$"):
        _ = headsmith.xyzzy
    assert not hasattr(headsmith, "xyzzy")


def test_packages_beside_need_no_import_of_their_own():
    code = "import headsmith; print(headsmith.evaluate.load_results.__name__)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "load_results\n"
