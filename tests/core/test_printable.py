import pytest
from hypothesis import given
from hypothesis import strategies as st

from headsmith.core.printable import printable


@pytest.mark.parametrize("text", ["caf\u00e9", "\u732b", "\U0001f468\u200d\U0001f469", "a [b] {c}", "\u2764\ufe0f"])
def test_text_of_any_script_stays(text):
    assert printable(text) == text


def test_what_moves_a_terminal_is_shown():
    assert printable("\x1b[31mred\x1b[0m\r\n\t\x07") == r"\x1b[31mred\x1b[0m\r\n\t\x07"
    assert printable("\x9b2J\u202egnp.exe\u2028\u2066") == r"\x9b2J\u202egnp.exe\u2028\u2066"
    assert printable("a\nb\x00", keep="\n") == "a\nb\\x00"


@given(st.text())
def test_no_control_character_is_left(text):
    shown = printable(text)
    assert not any(letter < " " or "\x7f" <= letter <= "\x9f" for letter in shown)
    assert printable(shown) == shown
