import pytest

from headsmith.core.errors import InputError
from headsmith.core.yaml_file import read_yaml


def written(tmp_path, text):
    path = tmp_path / "settings.yaml"
    path.write_text(text)
    return path


def test_numbers_are_those_of_yaml_1_2(tmp_path):
    text = "a: 1e-3\nb: -2.5E+4\nc: .5\nd: 7\ne: one\nf: [1e-2, null]\ng: [-.5, +.25, 0, -7]\nh: '010'\n"
    assert read_yaml(written(tmp_path, text)) == {
        "a": 0.001,
        "b": -25000.0,
        "c": 0.5,
        "d": 7,
        "e": "one",
        "f": [0.01, None],
        "g": [-0.5, 0.25, 0, -7],
        "h": "010",
    }


def test_a_key_twice_is_refused_with_its_line(tmp_path):
    with pytest.raises(InputError, match=r"settings\.yaml: line 2: epochs: 3: .*'epochs' is set twice"):
        read_yaml(written(tmp_path, "epochs: 2\nepochs: 3\n"))


def test_nothing_is_run(tmp_path):
    with pytest.raises(InputError, match="not valid YAML"):
        read_yaml(written(tmp_path, "!!python/object/apply:os.mkdir [marker]\n"))


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{own}: &{own} [{', '.join([f'*{other}'] * 9)}]\n" for other, own in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: " + "9" * 5000, r"settings\.yaml: line 2: b: 999.*cannot be read as int"),
        ("b: 0x" + "f" * 5000, "line 1: b: 0xfff.*found, expected a decimal number"),
        ("b: 010", r"line 1: b: 010: .*010 found, expected a decimal number"),
        ("a: 1\nb: [1:30]", r"line 2: .*1:30 found, expected a decimal number; text stands in quotes"),
        ("b: 1:30.5", "1:30.5 found, expected a decimal number"),
        ("b: -0b11", "-0b11 found, expected a decimal number"),
        ("b: !!bool maybe", "line 1: b: !!bool maybe: .*cannot be read as bool"),
        ("b: !!int ''", "line 1: .*cannot be read as int"),
        ("a: " + "[" * 3000 + "]" * 3000, r"settings\.yaml: .*not valid YAML \(.*(too deep|nesting)"),
        ("".join(" " * depth + "a:\n" for depth in range(2000)), "too deep|nesting"),
        (LAUGHS, "more than 1,000,000 values, as its anchors repeat them"),
        ("a: &a [*a]", "line 1: .*an anchor that holds itself"),
        ("epochs: 2\n1: 2", "line 2: 1: 2: .*1 found as a key, expected a word"),
        ("? [a, b]\n: 3", "a sequence found as a key, expected a word"),
        ("yes: 3", "yes found as a key, expected a word"),
        ("a: 1\nb: \x01", "line 2: b: .*character 0x1"),
        ("a: !!timestamp foo", "line 1: a: "),
        ("a: *b", "undefined alias"),
        ("a: 1\n---\nb: 2", "another document"),
    ],
    ids=lambda text: text[:12],
)
def test_what_is_no_settings_file_is_refused_in_one_line(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        read_yaml(written(tmp_path, text))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < len(str(tmp_path)) + 250


def test_a_date_is_text_and_anchors_are_merged(tmp_path):
    text = "made: 2026-02-30\nbase: &base {m: 1, p: 2}\ngrids:\n- <<: *base\n  p: 3\n- *base\n"
    assert read_yaml(written(tmp_path, text)) == {
        "made": "2026-02-30",
        "base": {"m": 1, "p": 2},
        "grids": [{"m": 1, "p": 3}, {"m": 1, "p": 2}],
    }


def test_only_regular_files_of_a_bounded_size(tmp_path):
    large = tmp_path / "large.yaml"
    with large.open("wb") as file:
        file.truncate(100 << 20)
    with pytest.raises(InputError, match=r"large\.yaml: 104,857,600 bytes, expected a text file of at most 16,777,216"):
        read_yaml(large)
    for path in ("/dev/zero", tmp_path):
        with pytest.raises(InputError, match="expected a regular file"):
            read_yaml(path)
