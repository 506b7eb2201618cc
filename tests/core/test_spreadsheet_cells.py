"""Texts in CSV files: no formula for a spreadsheet (OWASP's list of first characters), and read back unchanged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headsmith.core.spreadsheet_cells import cell, text_of


@pytest.mark.parametrize("text", ["=1+1", "+cmd|'/c calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "'=1", "''=1"])
def test_what_a_spreadsheet_would_run_is_text(text):
    assert cell(text) == f"'{text}"
    assert text_of(cell(text)) == text


@pytest.mark.parametrize("value", [-1.5, 3, None, True, "-1.5", "+3", "-inf", "a=b", "'quoted'", "", "é"])
def test_numbers_and_other_texts_stay(value):
    assert cell(value) == value


@given(st.text(alphabet="'=+-@\t\ra1. ") | st.text())
def test_every_text_is_read_back(text):
    assert text_of(cell(text)) == text
