"""A command line that cannot be read is told in one line, with where its help is."""

import pytest
from typer.testing import CliRunner

from headsmith.cli import app


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("train --epoch 3 x", "No such option: --epoch (Possible options: --epochs); see headsmith train --help"),
        ("trian", "No such command 'trian'. Did you mean 'train'?; see headsmith --help"),
        ("--nope", "No such option: --nope (Possible options: --no-debug); see headsmith --help"),
        ("train", "Missing argument 'features'; see headsmith train --help"),
    ],
)
def test_what_is_wrong_and_where_the_help_is(line, told):
    result = CliRunner().invoke(app, line.split(), prog_name="headsmith")
    assert result.exit_code == 2
    assert result.stderr == f"headsmith: {told}\n"
    assert result.stdout == ""
