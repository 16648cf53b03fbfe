"""Sections of the pages that the scripts write, and the option with which they do so.

A section is the text between ``<!-- NAME -->`` and ``<!-- end of NAME -->``. Every script that is a
step of all.py has the option --write, which stores its results in docs/results and writes its
sections. Without --write a script only prints, and --write is refused together with --quick.
``python benchmarks/all.py`` passes --write to every script. ``python -m docs.pictures`` draws the
pictures of stored results.
"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
# Name of each section, and its page. A name occurs on one page only.
SECTIONS = {
    "real data, short": "benchmarks.md",
    "linear fit, short": "benchmarks.md",
    "search time, short": "benchmarks.md",
    "kernel search, short": "benchmarks.md",
    "case study": "case_study.md",
    "libraries": "comparison.md",
    "speed on cores": "developer_benchmarks.md",
    "speed on a GPU": "developer_benchmarks.md",
    "searches": "developer_benchmarks.md",
    "linear fit": "developer_benchmarks.md",
    "labels": "developer_benchmarks.md",
    "missing outputs": "developer_benchmarks.md",
    "kernel fit": "developer_benchmarks.md",
    "kernel search": "developer_benchmarks.md",
    "kernel landmarks": "developer_benchmarks.md",
    "competitors": "developer_benchmarks.md",
    "tensor inputs": "developer_benchmarks.md",
    "blocks": "developer_benchmarks.md",
    "real data": "developer_benchmarks.md",
    "climatology": "developer_benchmarks.md",
    "coverage": "developer_benchmarks.md",
    "files and Dask": "developer_benchmarks.md",
    "agreement on a GPU": "developer_benchmarks.md",
    "limits of inputs": "diagnostics.md",
    "unusual inputs": "diagnostics.md",
    "outliers": "diagnostics.md",
    "time of diagnostics": "diagnostics.md",
    "stacking": "model_selection.md",
    "search time": "model_selection.md",
    "time of a stack": "model_selection.md",
    "agreement of graphs": "onnx.md",
    "latency": "onnx.md",
    "wrong samples": "robust.md",
    "wrong samples, little noise": "robust.md",
    "HuberRegressor": "robust.md",
    "long tails": "robust.md",
    "robust intervals": "robust.md",
    "time of weights": "robust.md",
    "slopes": "scaling.md",
    "slopes on a cluster": "scaling.md",
    "sparse memory": "sparse.md",
    "sparse and dense": "sparse.md",
    "accuracy of standard errors": "standard_errors.md",
    "discoveries": "standard_errors.md",
    "drift": "streaming.md",
    "rolling windows": "streaming.md",
    "differences of forgetting": "streaming.md",
    "cluster": "streaming.md",
    "outputs on disk": "streaming.md",
    "competitors, short": "trace_norm_and_mlmtnc.md",
}
RULES = {"l": ":--", "r": "--:", "c": ":-:"}


def read_section(name: str) -> str:
    """Return the text of a section.

    Parameters
    ----------
    name : str
        Name of the section, a key of `SECTIONS`.

    Returns
    -------
    text : str

    Raises
    ------
    ValueError
        If the section is unknown, or if its page lacks the two markers or has them several times.
    """
    return _parts(name)[1].strip("\n") + "\n"


def write_section(name: str, text: str) -> None:
    """Replace the text between the two markers of a section.

    Parameters
    ----------
    name : str
        Name of the section, a key of `SECTIONS`.
    text : str
        New text. Empty lines at its ends are removed.

    Raises
    ------
    ValueError
        If the section is unknown, or if its page lacks the two markers or has them several times.
    """
    before, _, after = _parts(name)
    page = DOCS / SECTIONS[name]
    page.write_text(f"{before}\n\n{text.strip()}\n\n{after}", encoding="utf-8")


def _parts(name: str) -> tuple[str, str, str]:
    """Return the page up to the first marker, the section, and the page from the second marker."""
    if name not in SECTIONS:
        raise ValueError(f"The section {name!r} is unknown. Add it to SECTIONS in {__file__}.")
    page, begin, end = SECTIONS[name], f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = (DOCS / page).read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    inside, found, after = rest.partition(end)
    if not found or (text.count(begin), text.count(end)) != (1, 1):
        raise ValueError(f"docs/{page} must have {begin} once and, after it, {end} once.")
    return before + begin, inside, end + after


def table(head: Sequence[str], rows: Iterable[Sequence[object]], align: str = "") -> str:
    """Return a Markdown table.

    Parameters
    ----------
    head : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells of each row. Cells are converted to text by `str`.
    align : str, optional
        A letter for each column: l, r or c. By default, the first column is aligned to the left
        and the others to the right.

    Examples
    --------
    >>> print(table(["method", "error"], [["ridge", 0.5]]), end="")
    | method | error |
    |:--|--:|
    | ridge | 0.5 |
    """
    return "".join(f"{line}\n" for line in table_lines(head, rows, align))


def table_lines(
    head: Sequence[str], rows: Iterable[Sequence[object]], align: str = ""
) -> Iterable[str]:
    """Yield the lines of a Markdown table, each as soon as its row is there; see `table`."""
    align = align or "l" + "r" * (len(head) - 1)
    yield row_line(head)
    yield "|" + "".join(f"{RULES[letter]}|" for letter in align)
    for row in rows:
        if len(row) != len(head):
            raise ValueError(f"The row {row} has {len(row)} cells, the head has {len(head)}.")
        yield row_line(row)


def row_line(cells: Sequence[object]) -> str:
    """Return a line of a Markdown table; an empty cell is a single space."""
    return "|" + "".join(f" {cell} |" if str(cell) else " |" for cell in cells)


def paragraph(text: str) -> str:
    """Return a text in lines of at most 120 characters, as those of the pages."""
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


def span(values: Iterable[float], precision: str) -> str:
    """Return the least and the largest value as a text, or one of them if both look alike.

    Examples
    --------
    >>> span([4.1, 6.8, 5.0], ".0f")
    '4 to 7'
    >>> span([1.01, 1.02], ".1f")
    '1.0'
    """
    values = list(values)
    least, largest = format(min(values), precision), format(max(values), precision)
    return least if least == largest else f"{least} to {largest}"


def printed(lines: Iterable[str]) -> str:
    """Print each line as soon as it is there, and return the lines as one text."""
    found = []
    for line in lines:
        print(line, flush=True)
        found.append(f"{line}\n")
    return "".join(found)


def parse_options(
    parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None
) -> argparse.Namespace:
    """Add the option --write and parse the arguments of a script.

    Parameters
    ----------
    parser : ArgumentParser
        Parser of the script, which has the option --quick.
    arguments : sequence of str, optional
        Arguments, by default those of the command line.

    Returns
    -------
    options : Namespace
    """
    words = "store the results in docs/results and write the tables into the pages"
    parser.add_argument("--write", action="store_true", help=words)
    options = parser.parse_args(arguments)
    if options.write and options.quick:
        parser.error("--write needs a full run and cannot be combined with --quick")
    return options
