"""Write the page on published forecasts from its stored results: ``python -m paper.forecast_page``.

The results are in ``results/forecasts.csv`` in the folder of the guides, ``docs`` by default. The
command replaces the tables, lists and sentences between the markers of ``published.md``, and draws
the picture ``images/published_forecasts.png``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from .drawing import forecasts as drawing
from .forecast_results import (
    AFTER,
    SCRIPTS,
    Place,
    beaten,
    of_kind,
    ours,
    places,
    published,
    rows_of,
)
from .forecasts import SETTINGS, Config
from .pages import claims, copy_figure, markdown, replace_block
from .report.forecasts import checks
from .tables import Row, Table, read_csv

__all__ = ["blocks", "write_page"]

PAGE, RESULTS, PICTURE = "published.md", "forecasts.csv", "published_forecasts.png"


def write_page(docs: Path) -> None:
    """Update the page and its picture.

    Parameters
    ----------
    docs : Path
        Folder with ``results/forecasts.csv`` and ``published.md``.

    Raises
    ------
    FileNotFoundError
        If the results are missing. The message has the commands that compute them.
    """
    path = docs / "results" / RESULTS
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} does not exist. Run `python -m paper forecasts`, then "
            "`python -m paper.guide holrr-report docs`."
        )
    rows = read_csv(path)
    for name, text in blocks(rows).items():
        replace_block(docs / PAGE, name, text)
    copy_figure(lambda: drawing.draw(rows), docs / "images" / PICTURE)


def blocks(rows: Table) -> dict[str, str]:
    """Return the text between the markers of the page, by the names of the markers."""
    methods = tuple(dict.fromkeys(row["method"] for row in of_kind(rows, "chosen")))
    return {
        "claims": claims(checks(Config(methods=methods), rows)),
        "same settings": _same(rows),
        "kasai": _kasai(rows),
        "penalties": _penalties(rows),
        "nips": _nips(rows),
        "overlap": _overlap(rows),
        "baselines": _baselines(rows),
        "ridge wins": _ridge_wins(rows),
        "losses": _losses(rows),
        "choices": _choices(rows),
    }


# ---------------------------------------------------------------- Kasai et al.


def _same(rows: Table) -> str:
    """Return a table with one line for each data set, number of lags and rank."""
    lines: dict[tuple[str, int, str], dict[str, Row]] = {}
    for row in of_kind(rows, "same"):
        lines.setdefault((row["data"], row["lags"], row["rank"]), {})[row["method"]] = row
    body = []
    for (data, lags, rank), cells in lines.items():
        line = [data, str(lags), rank.replace("x", ", ")]
        for method in ("holrr", "proposed"):
            line += _same_cells(cells.get(method))
        body.append(line)
    header = ["data", "lags", "ranks"]
    for name in ("HOLRR", "Riemannian"):
        header += [f"{name}: penalty", "published", "ours"]
    return markdown(header, body)


def _same_cells(row: Row | None) -> list[str]:
    if row is None:
        return ["", "", ""]
    return [f"{row['alpha']:g}", f"{row['published']:.6f}", f"{row['error']:.6f}"]


def _kasai(rows: Table) -> str:
    columns = places(rows, "kasai")
    theirs = [published(rows, place) for place in columns]
    mine = [ours(rows, place) for place in columns]
    plain = [ours(rows, place, kind="baseline") for place in columns]
    names = {name: f"{name}, published" for found in theirs for name in found}
    return markdown(
        ["mean squared error", *map(str, columns)],
        _lines(theirs, names) + _lines(mine) + _lines(plain, bold=False),
    )


def _lines(
    columns: list[dict[str, float]], names: dict[str, str] | None = None, *, bold: bool = True
) -> list[list[str]]:
    """Return a line for each method, with the least error of each column in bold."""
    methods = dict.fromkeys(method for column in columns for method in column)
    return [
        [
            (names or {}).get(method, method),
            *(_error(column.get(method), column if bold else {}) for column in columns),
        ]
        for method in methods
    ]


def _error(error: float | None, column: dict[str, float]) -> str:
    if error is None:
        return ""
    text = f"{error:.4f}"
    return f"**{text}**" if column and text == f"{min(column.values()):.4f}" else text


def _penalties(rows: Table) -> str:
    cells = [row for row in of_kind(rows, "same") if row["method"] == "holrr"]
    on_test = [row for row in cells if row["alpha"] == row["alpha_test"]]
    by_folds = [row for row in cells if row["alpha"] == row["alpha_folds"]]
    other = [row for row in cells if row not in on_test or row not in by_folds]
    apart = [row for row in cells if row in on_test and row not in by_folds]
    data = " and ".join(dict.fromkeys(row["data"] for row in other)) or "none"
    text = (
        f"In {len(on_test)} of {len(cells)} cells, the penalty of HOLRR is the decade with the "
        f"least test error at its ranks. In {len(by_folds)} cells, 5-fold cross-validation on the "
        f"training part chooses the same decade as the authors. In {len(apart)} cells, the penalty "
        f"has the least test error and cross-validation chooses another one.\n"
    )
    if not other:
        return text
    body = [
        [
            f"{row['data']}, {row['lags']} lags, {row['rank'].replace('x', ', ')}",
            *(f"{row[name]:g}" for name in ("alpha", "alpha_test", "alpha_folds")),
            *(f"{row[name]:.4f}" for name in ("published", "error_folds")),
        ]
        for row in other
    ]
    header = ["data, lags, ranks", "penalty of the authors", "least test error", "chosen by folds"]
    header += ["MSE, authors", "MSE, folds"]
    return f"{text}\nThe cells in which the three differ (all of them of {data}):\n\n" + markdown(
        header, body
    )


# ---------------------------------------------------------------- NIPS 2014


def _nips(rows: Table) -> str:
    columns = places(rows, "nips")
    header = ["root mean squared error"]
    for place in columns:
        header += [f"{place.data}, scripts' split", f"{place.data}, after training"]
    theirs: list[dict[str, float]] = []
    mine: list[dict[str, float]] = []
    plain: list[dict[str, float]] = []
    for place in columns:
        theirs += [published(rows, place), {}]
        mine += [ours(rows, place, split) for split in (SCRIPTS, AFTER)]
        plain += [ours(rows, place, split, kind="baseline") for split in (SCRIPTS, AFTER)]
    names = {name: f"{name}, published" for found in theirs for name in found}
    return markdown(header, _lines(theirs, names) + _lines(mine) + _lines(plain, bold=False))


def _overlap(rows: Table) -> str:
    """Return a table of the test steps of the scripts and the effect of the overlap."""
    body = []
    for place in places(rows, "nips"):
        after, scripts = (rows_of(rows, place, split) for split in (AFTER, SCRIPTS))
        name = next(iter(after))
        n_after, n_scripts = after[name]["n_test"], scripts[name]["n_test"]
        changes = [100 * (scripts[m]["error"] / after[m]["error"] - 1) for m in after]
        body.append(
            [
                str(place),
                str(SETTINGS[place.data].n_steps),
                str(n_after),
                str(n_scripts),
                str(n_scripts - n_after),
                f"{min(changes):+.2f} % to {max(changes):+.2f} %".replace("-", "−"),
            ]
        )
    header = ["data", "training steps", "test steps after them", "test steps of the scripts"]
    return markdown([*header, "of them training steps", "our errors change by"], body)


# ---------------------------------------------------------------- comparisons


def _list(words: list[str]) -> str:
    return "; ".join(words) if words else "none"


def _where(place: Place) -> str:
    who = {"kasai": "Kasai et al.", "nips": "NIPS 2014"}[place.table]
    return f"{who}, {place}"


def _baselines(rows: Table) -> str:
    """List published errors above that of zero, and columns where the month of the year wins."""
    lines = []
    for place in places(rows):
        split = SCRIPTS if place.table == "nips" else AFTER
        zero = ours(rows, place, split, kind="baseline")["zero"]
        worse = {m: e for m, e in published(rows, place).items() if e >= zero}
        if worse:
            shown = ", ".join(f"{method} {error:.4f}" for method, error in worse.items())
            lines.append(
                f"- {_where(place)}: predicting zero has the error {zero:.4f}. These published "
                f"errors are not lower: {shown}."
            )
    for place in places(rows):
        month = ours(rows, place, kind="baseline").get("month of the year")
        if month is None:
            continue
        theirs = min(published(rows, place).values())
        best = min(ours(rows, place).values())
        if month < max(theirs, best):
            lines.append(
                f"- {_where(place)}: the mean of the month of the year has the error {month:.4f}, "
                f"the least published error is {theirs:.4f}, and our least error is {best:.4f}."
            )
    return "\n".join(lines) + "\n"


PAIRS = (("stack", "ridge"), ("best rank", "ridge"), ("LRR", "ridge"))
WITH = ("blocks", "own inputs", "blocks, own inputs")


def _ridge_wins(rows: Table) -> str:
    lines = []
    pairs = [*PAIRS, *((f"stack, {words}", f"ridge, {words}") for words in WITH)]
    for method, other in pairs:
        found = [f"{_where(p)} ({e:.4f}, ridge {o:.4f})" for p, e, o in beaten(rows, method, other)]
        name = method.replace(", ", " with ", 1).replace(", ", " and ")
        same = other.replace("ridge", "").replace(", ", " with ", 1).replace(", ", " and ")
        lines.append(
            f"- Ridge{same} has a lower error than {_article(name)} in {len(found)} of "
            f"{len(places(rows))} columns: {_list(found)}."
        )
    return "\n".join(lines) + "\n"


def _article(name: str) -> str:
    return name if name.startswith("LRR") else f"the {name}"


def _losses(rows: Table) -> str:
    """List columns with a lower published error, and columns where an extension does harm."""
    lines = []
    for method in dict.fromkeys(row["method"] for row in of_kind(rows, "chosen")):
        found = []
        for place in places(rows):
            theirs = published(rows, place)
            best = min(theirs, key=lambda name: theirs[name])
            error = ours(rows, place).get(method)
            if error is not None and error >= theirs[best]:
                found.append(f"{_where(place)} ({error:.4f}, {best} {theirs[best]:.4f})")
        if found:
            lines.append(f"- {method}: {_list(found)}.")
    text = "Columns in which the error of a search is not below the least published error:\n\n"
    text += "\n".join(lines) + "\n" if lines else "- none.\n"
    text += "\nColumns in which an extension that cross-validation chose has a larger error:\n\n"
    for kind in ("ridge", "stack"):
        for words in WITH:
            found = [
                f"{_where(place)} ({error:.4f}, without {other:.4f})"
                for place, error, other in beaten(rows, f"{kind}, {words}", kind)
            ]
            text += f"- {kind} with {words.replace(', ', ' and ')}: {_list(found)}.\n"
    return text


OWN_WORDS = {
    "": "none",
    "variable": "same variable",
    "place": "same place",
    "variable and place": "its own past",
}


def _choices(rows: Table) -> str:
    body = []
    for place in places(rows):
        found = rows_of(rows, place)
        own, block = found.get("stack, own inputs", {}), found.get("stack, blocks", {})
        body.append(
            [
                _where(place),
                str(found.get("LRR", {}).get("rank", "")),
                str(found.get("best rank", {}).get("rank", "")).replace("x", ", "),
                OWN_WORDS[own.get("own", "")],
                str(block.get("blocks", "")).replace(";", ",") or "equal",
                f"{sum(row['seconds'] for row in found.values()):.0f}",
            ]
        )
    header = ["column", "rank of LRR", "best rank", "own inputs of the stack"]
    return markdown([*header, "penalties of its blocks", "seconds, all searches"], body)


if __name__ == "__main__":
    write_page(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
