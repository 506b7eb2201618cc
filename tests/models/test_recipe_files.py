"""Files that say how images are preprocessed."""

import pytest

from headsmith.core.errors import InputError
from headsmith.models import Preprocessing
from headsmith.models.recipe_file import read_recipe


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": None}, "scale missing; a recipe is never guessed"),
        ({"means": 3}, r"means is not known; .*did you mean mean\?"),
        ({"mean": [1, 2]}, "mean holds a list of 2, expected one number or a list of 3"),
        ({"mean": [5]}, "mean holds a list of 1, expected one number or a list of 3"),
        ({"crop_size": [8]}, "crop_size holds a list of 1, expected one number or a list of 2"),
        ({"std": 0}, "std holds 0, expected more than 0"),
        ({"scale": 0}, "scale holds 0, expected more than 0"),
        ({"scale": -0.5}, "scale holds -0.5, expected more than 0"),
        ({"crop_size": 8.5}, "crop_size holds 8.5, expected whole pixels"),
        ({"scale": "1/255"}, "scale holds '1/255', expected a number"),
        ({"channel_order": "BGR"}, "channel_order: 'BGR' is not known"),
    ],
)
def test_a_recipe_that_cannot_be_read(recipe_file, changes, message):
    with pytest.raises(InputError, match=message):
        read_recipe(recipe_file(**changes), "nchw")


def test_a_recipe_file_holds_keys(tmp_path):
    (tmp_path / "list.yaml").write_text("[1, 2]")
    with pytest.raises(InputError, match="holds list, expected keys such as resize_size"):
        read_recipe(tmp_path / "list.yaml", "nchw")


def test_a_whole_recipe_file_is_the_recipe(tmp_path):
    recipe = Preprocessing("exact", (40, 30), (32, 24), "bicubic", (0.1, 0.2, 0.3), (0.4, 0.5, 0.6), layout="nhwc")
    path = tmp_path / "recipe.yaml"
    path.write_text(str(recipe.to_dict()).replace("True", "true"))
    assert read_recipe(path, None) == recipe
