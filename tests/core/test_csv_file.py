import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headsmith.core.csv_file import csv_of, read_csv
from headsmith.core.errors import InputError

CELLS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters=",;\t\"'\ufeff"), min_size=1).filter(
    str.strip
)


@given(
    st.lists(st.tuples(CELLS, CELLS), min_size=1), st.sampled_from([";", ",", "\t"]), st.sampled_from(["\n", "\r\n"])
)
def test_rows_of_any_separator_are_read_back(rows, separator, ends):
    file = io.StringIO()
    csv.writer(file, delimiter=separator, lineterminator=ends).writerows(rows)
    found = csv_of(file.getvalue().replace("\r\n", "\n"), "t.csv")
    assert found.separator == separator
    assert [tuple(row.cells) for row in found.rows] == rows


def test_signs_and_line_breaks_in_quotes_part_nothing(tmp_path):
    (tmp_path / "t.csv").write_bytes(b'\xef\xbb\xbfname;note\r\na;"one; two\r\nthree, four"\r\nb;none\r\n')
    found = read_csv(tmp_path / "t.csv")
    assert found.separator == ";"
    assert [row.cells for row in found.rows] == [["name", "note"], ["a", "one; two\nthree, four"], ["b", "none"]]
    assert [row.line for row in found.rows] == [1, 3, 4]


def test_the_last_row_of_a_part_does_not_count():
    assert [row.cells for row in csv_of('a,b\nc,d\ne,"f', "t.csv", part=True).rows] == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no rows found"),
        ("\n \n", "no rows found"),
        ("a\nb\n", "line 1: one column, expected two or more"),
        ("a,b\nc,d\n\ne\n", "line 4: 1 columns, expected 2 as in line 1"),
        ("a\tb\tc\nd\te\n", "line 2: 2 columns, expected 3 as in line 1"),
        ('a,b\n"c"d,e\n', "line 2: cannot be read as a row"),
        ("a,b;c\nd,e;f\n", "commas or semicolons could separate its columns"),
    ],
)
def test_what_is_no_table_is_refused_with_its_line(text, said):
    with pytest.raises(InputError, match=rf"t\.csv: {said}"):
        csv_of(text, "t.csv")
