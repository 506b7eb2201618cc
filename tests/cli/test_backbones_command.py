"""`headsmith backbones` as a user meets it."""

import json

from typer.testing import CliRunner

from headsmith.cli import app

COLUMNS = {"name", "lists", "parameters", "image_size", "feature_dim", "top1", "license", "weights", "problem"}


def backbones(*arguments):
    return CliRunner().invoke(app, ["backbones", *arguments], env={"COLUMNS": "160"})


def test_a_table():
    found = backbones("everything-packaged", "torchvision:shufflenet_v2_x1_0", "timm:test_vit")
    assert found.exit_code == 0, found.output
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in found.output.splitlines() if "│" in line]
    assert [row[0] for row in rows] == ["lite0", "torchvision:shufflenet_v2_x1_0", "timm:test_vit"]
    assert rows[1][1:5] == ["1.3", "224", "1024", "69.4"]
    assert "3 backbones, the weights of 1 on this machine" in found.output


def test_what_nobody_knows_has_no_column():
    assert "top-1" not in backbones("lite0").output
    assert "licence" not in backbones("torchvision:shufflenet*").output


def test_many_say_what_is_left_out():
    found = backbones("torchvision:*", "torchvision:*/*").output
    assert "parameters and D are told where fewer are listed" in found
    assert "M parameters" not in found


def test_json():
    (row,) = json.loads(backbones("lite0", "--json").stdout)
    assert set(row) == COLUMNS
    assert (row["name"], row["image_size"], row["weights"]) == ("lite0", [224, 224], "package")


def test_a_file_that_cannot_be_used_is_told_below_the_table(tmp_path):
    (tmp_path / "a.onnx").write_bytes(b"nothing")
    found = backbones(f"onnx:{tmp_path}")
    assert found.exit_code == 0
    assert f"{tmp_path}/a.onnx: " in found.output.replace("\n", "")


def test_one_is_counted_as_one():
    assert "\n1 backbone, the weights of 1 on this machine" in backbones("lite0").output


def test_a_name_that_means_nothing_is_told_as_the_argument_that_it_is():
    found = backbones("nope")
    assert found.exit_code == 2
    assert "names nope: expected a list (" in found.stderr
    assert "--backbones" not in found.stderr


def test_a_mistake_is_one_line():
    found = backbones("mobil")
    assert found.exit_code == 2
    assert found.stderr.count("\n") == 1
    assert "did you mean mobile?" in found.stderr
