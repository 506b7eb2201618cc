import io
import json
import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from headsmith.core.printable import json_printable, printable
from headsmith.core.terminal import Once, Terminal, escape


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


@given(st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_stays_the_same_value(value):
    text = json_printable(json.dumps(value, ensure_ascii=False, indent=2))
    assert json.loads(text) == value
    assert not any("\x7f" <= letter <= "\x9f" or letter in "\x1b\u202e" for letter in text)
    text.encode()


def test_a_terminal_shows_what_files_hold(capsys):
    terminal = Terminal(width=80, color_system=None)
    table = Table("label \x1b[2J")
    table.add_row("\x1b]0;title\x07 [b]")
    terminal.print(table)
    terminal.print("[bold]" + escape("a[/] \x1b[31m\nb") + "[/]")
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert r"\x1b[2J" in shown
    assert r"a[/] \x1b[31m\nb" in shown


def test_a_line_of_the_log_is_said_once():
    log, shown = logging.getLogger("headsmith.test_once"), io.StringIO()
    handler = logging.StreamHandler(shown)
    handler.addFilter(Once())
    log.addHandler(handler)
    log.propagate = False
    for name in ("a", "a", "b", "a"):
        log.warning("%s: skipped", name)
    assert shown.getvalue() == "a: skipped\nb: skipped\n"
