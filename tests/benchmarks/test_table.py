"""One command prints the whole table of speed; its rows are those that were asked for."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import busy  # noqa: E402
import table  # noqa: E402

CPU = [
    ("HOLRR.fit / X'Y", 6),
    ("predict of one row / Ridge", 1),
    ("score / (predict + r2_score)", 1),
    ("KernelHOLRR.fit / KernelRidge", 1),
    ("KernelHOLRRCV / KernelRLSCV", 1),
    ("busy cores, default threads / one: HOLRR.fit", 3),
]
SEARCHES = [
    ("HOLRRCV / RidgeCV", 1),
    ("HOLRRCV / single fit", 2),
    ("HOLRRCV / RLSCV", 1),
    ("KernelHOLRRCV / KernelRLSCV", 4),
    ("HOLRRCV / LRRCV", 1),
    ("LRRCV / HOLRRCV", 2),
    ("RLSCV / LRRCV", 1),
    ("RLSCV missing / complete", 1),
    ("HOLRRCV missing / complete", 1),
    ("HOLRRCV of torch / NumPy", 1),
    ("HOLRR of a DataFrame / array", 1),
]


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_every_row_can_be_measured(capsys):
    pytest.importorskip("torch", reason="a row of torch tensors is measured")
    table.main(["--quick", "--repeats", "1", "--threads", "1"])
    head, *printed = capsys.readouterr().out.split("\n\n")
    assert "1 threads" in head
    for text, expected in zip(printed, (CPU, SEARCHES), strict=True):
        names, rule, *rows = text.splitlines()
        assert names.count("|") == rule.count("|") == rows[0].count("|")
        for what, n in expected:
            assert sum(row.startswith(f"| {what}") for row in rows) == n, what
        assert len(rows) == sum(n for _, n in expected)
        for row in rows:
            check(*(cell.strip().replace(",", "") for cell in row.split("|")[2:-1]))


def check(ours, theirs, ratio, asked, met):
    """A row has times, their ratio, and whether it is as small as asked."""
    assert float(ours) > 0
    assert float(theirs) > 0
    assert abs(float(ratio) - float(ours) / float(theirs)) < 0.1 + 0.2 * float(ratio)
    if abs(float(ratio) - float(asked)) > 0.01:
        assert met == ("yes" if float(ratio) < float(asked) else "no")


def test_a_row_without_another_library_has_a_time_as_its_target():
    assert table.line(("a", 0.003, None, 0.002)) == "| a | 3.00 | | | 2 ms | no |"
    assert table.line(("a", 0.003, 0.002, 1.5)) == "| a | 3.00 | 2.00 | 1.50 | 1.5 | yes |"


def test_busy_programs_end_with_what_they_were_started_for():
    with busy.busy_cores(2) as ids:
        assert len(ids) == 2
        for pid in ids:
            os.kill(pid, 0)  # it is there
    for pid in ids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_the_guide_has_a_place_for_both_tables():
    guide = (ROOT / "docs" / "developer_benchmarks.md").read_text(encoding="utf-8")
    for name in ("speed on cores", "speed on a GPU"):
        assert guide.index(f"<!-- {name} -->") < guide.index(f"<!-- end of {name} -->")
