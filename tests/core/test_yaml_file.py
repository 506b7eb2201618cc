import pytest

from headsmith.core.errors import InputError
from headsmith.core.yaml_file import read_yaml


def written(tmp_path, text):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    return path


def test_numbers_are_those_of_yaml_1_2(tmp_path):
    text = "a: 1e-3\nb: -2.5E+4\nc: .5\nd: 7\ne: one\nf: [1e-2, null]\n"
    assert read_yaml(written(tmp_path, text)) == {
        "a": 0.001,
        "b": -25000.0,
        "c": 0.5,
        "d": 7,
        "e": "one",
        "f": [0.01, None],
    }


def test_a_key_twice_is_refused_with_its_line(tmp_path):
    with pytest.raises(InputError, match=r"settings\.yaml: not valid YAML \('epochs' is set twice .*line 1"):
        read_yaml(written(tmp_path, "epochs: 2\nepochs: 3\n"))


def test_nothing_is_run(tmp_path):
    with pytest.raises(InputError, match="not valid YAML"):
        read_yaml(written(tmp_path, "!!python/object/apply:os.mkdir [marker]\n"))
