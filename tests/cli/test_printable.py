"""Names from files do nothing to a terminal or a spreadsheet."""

import csv
import io

from cloneproof.cli.display.output import new_table, print_table
from cloneproof.sweeps.table import SweepTable


def test_escapes_in_cells_are_shown_and_not_obeyed(capsys):
    table = new_table("title\x1b[31m", "name")
    table.add_row("a\x1b[2J\x9bb\x07")
    print_table(table)
    out = capsys.readouterr().out
    assert "a\\x1b[2J\\x9bb\\x07" in out
    assert not {"\x1b", "\x9b", "\x07"} & set(out)


def test_text_in_a_csv_file_is_no_formula():
    table = SweepTable({"market": ['=HYPERLINK("x")', "+1", "plain"], "value": [-0.5, 1.5, None]})
    rows = list(csv.DictReader(io.StringIO(table.to_csv())))
    assert [row["market"] for row in rows] == ['\'=HYPERLINK("x")', "'+1", "plain"]
    assert [row["value"] for row in rows] == ["-0.5", "1.5", ""]
