"""Copy the results of a run to the documentation: ``python -m paper.guide REPORT DOCS``.

The command writes the pictures to ``images/reproduce_*.png`` and the summaries to
``results/*.csv``. For each experiment of the run, it replaces the tables between the two markers of
``reproduce.md``, and the short tables of the weather. The comparison with published forecasts is on
the page ``published.md``, see `paper.forecast_page`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from . import images, meteo, runtime, synthetic
from .drawing import images as images_drawing
from .drawing import meteo as meteo_drawing
from .drawing import runtime as runtime_drawing
from .drawing import synthetic as synthetic_drawing
from .drawing.meteo import LABELS, PAPER_GRID
from .drawing.synthetic import PANELS, VALUES
from .forecast_page import write_page
from .pages import claims, copy_figure, copy_small, markdown, replace_block
from .published import TABLE_1, TABLE_2
from .report import Check
from .tables import Row, Table, read_csv, summarise, to_csv, write_text

__all__ = ["redraw", "refresh"]


def refresh(report: Path, docs: Path) -> None:
    """Write pictures, summaries and tables of the experiments of a report.

    Parameters
    ----------
    report : Path
        Folder that ``python -m paper`` wrote.
    docs : Path
        Folder of the guides.
    """
    for name, (title, summary, tables) in SECTIONS.items():
        if not (report / f"{name}.csv").exists():
            continue
        for picture in sorted(report.glob(f"{name}_*.png")):
            copy_small(picture, docs / "images" / f"reproduce_{picture.name}")
        found = summary(read_csv(report / f"{name}.csv"))
        write_text(docs / "results" / f"{name}.csv", to_csv(found))
        text = f"### {title}\n\n{_claims(report, name)}\n{tables(found)}"
        replace_block(docs / "reproduce.md", name, text)
        if name == "meteo":
            replace_block(docs / "reproduce.md", "weather", _short_tables(found))
    if (report / "forecasts.csv").exists():
        write_text(docs / "results" / "forecasts.csv", (report / "forecasts.csv").read_text())
        write_page(docs)


def redraw(docs: Path) -> None:
    """Draw the pictures of ``reproduce.md`` from its stored results, without a run.

    The experiment on pictures is cheap: its first trial is computed.

    Parameters
    ----------
    docs : Path
        Folder of the guides.
    """
    found = {name: read_csv(docs / "results" / f"{name}.csv") for name in SECTIONS}
    times: dict[str, dict[str, float]] = {}
    for row in found["runtime"]:
        times.setdefault(row["size"], {})[row["method"]] = row["seconds"]
    config = synthetic.Config()
    figures: dict[str, Callable[[], Any]] = {
        "synthetic_rmse": lambda: synthetic_drawing.draw_means(config, found["synthetic"]),
        "runtime_seconds": lambda: runtime_drawing.draw_times(times),
        "meteo_rmse": lambda: meteo_drawing.draw_means(found["meteo"]),
    }
    for task in images.RANKS:
        figures[f"images_{task}"] = partial(images_drawing.draw, images.Config(), task)
    for name, draw in figures.items():
        copy_figure(draw, docs / "images" / f"reproduce_{name}.png")


def _claims(report: Path, name: str) -> str:
    section = json.loads((report / "parts" / f"{name}.json").read_text(encoding="utf-8"))
    return claims(Check(**check) for check in section["checks"])


# ---------------------------------------------------------------- one experiment each


def _synthetic_tables(found: Table) -> str:
    text = "![Error against the size of the training set](images/reproduce_synthetic_rmse.png)\n"
    for panel in dict.fromkeys(row["panel"] for row in found):
        cells = {(r["method"], r["n_train"]): r for r in found if r["panel"] == panel}
        trials = f"mean of {next(iter(cells.values()))['n']} trials"
        text += (
            f"\n{PANELS[panel]}, {_words(VALUES[panel])}, {trials}:\n\n{_grid(cells, 'N = ', 4)}"
        )
    return text


def _words(value: str) -> str:
    return "RMSE" if value == "rmse" else "RMSE to the outputs without noise"


def _images_summary(rows: Table) -> Table:
    labelled = [
        {**row, "label": row["method"] + ("" if row["chosen"] == "True" else f" {row['rank']}")}
        for row in rows
    ]
    return summarise(labelled, ["task", "label", "image"], "rmse")


# Descriptions of the two tasks of the paper.
TASKS = {
    "channels": "An input for each of the three colours, outputs of rows x columns of pixels "
    "(task (i) of the paper):",
    "rows": "An input for each row of pixels, outputs of columns x colours (task (ii) of the "
    "paper):",
}


def _images_tables(found: Table) -> str:
    parts = []
    for task in ("channels", "rows"):
        cells = {(r["label"], r["image"]): r for r in found if r["task"] == task}
        parts.append(f"{TASKS[task]}\n")
        parts.append(f"![Pictures and reconstructions](images/reproduce_images_{task}.png)\n")
        parts.append(f"Mean of {next(iter(cells.values()))['n']} draws:\n\n{_grid(cells, '', 4)}")
    return "\n".join(parts)


def _runtime_summary(rows: Table) -> Table:
    paper = {" x ".join(map(str, size)): times for size, times in TABLE_1.items()}
    return [
        {
            "size": size,
            "method": method,
            "seconds": seconds,
            "ratio": seconds / times["HOLRR"],
            "paper": paper.get(size, {}).get(method),
        }
        for size, times in runtime.medians(rows).items()
        for method, seconds in times.items()
    ]


def _runtime_tables(found: Table) -> str:
    sizes = list(dict.fromkeys(row["size"] for row in found))
    body = []
    for method in dict.fromkeys(row["method"] for row in found):
        of_method = {row["size"]: row for row in found if row["method"] == method}
        body.append([method, *(_seconds(of_method[size]) for size in sizes)])
    return (
        "Seconds to learn from 100 samples, the paper's in brackets, and the ratio "
        "to HOLRR:\n\n"
        + markdown(["", *sizes], body)
        + "\n![Seconds of every method](images/reproduce_runtime_seconds.png)\n"
    )


def _seconds(row: Row) -> str:
    paper = "" if row["paper"] is None else f" ({row['paper']:g})"
    return f"{row['seconds']:.2g}{paper}, {row['ratio']:.2g}"


def _meteo_summary(rows: Table) -> Table:
    found = meteo.summary(rows)
    for row in found:
        paper = TABLE_2.get((row["k"], row["n_train"]), {})
        row["paper"] = paper.get((row["kernel"], row["method"]))
    return found


def _meteo_tables(found: Table) -> str:
    others = {key: label for key, label in LABELS.items() if key not in PAPER_GRID}
    return (
        f"RMSE, mean of {max(r['n'] for r in found)} splits (trace norm "
        f"{min(r['n'] for r in found)}), the paper's in brackets:\n\n"
        + _meteo_grid(found, PAPER_GRID)
        + f"\nSearches that chose an end of this grid: {_edges(found, PAPER_GRID)}. The next table "
        "has grids that contain the optimum, cross-validation with a refit, and the calendar as "
        "inputs:\n\n"
        + _meteo_grid(found, others)
        + f"\nSearches that chose an end of their grid: {_edges(found, others)}.\n"
        + "\n![Errors of the forecasts](images/reproduce_meteo_rmse.png)\n"
    )


def _meteo_grid(found: Table, labels: dict[tuple[str, str], str]) -> str:
    cells = list(dict.fromkeys((row["k"], row["n_train"]) for row in found))
    body = []
    for key, label in labels.items():
        of_method = {(r["k"], r["n_train"]): r for r in found if (r["kernel"], r["method"]) == key}
        if of_method:
            body.append([label, *(_beside_paper(of_method[cell]) for cell in cells)])
    return markdown(["", *(f"k={k}, N={n}" for k, n in cells)], body)


def _edges(found: Table, labels: dict[tuple[str, str], str]) -> str:
    """Return text with the number of searches of each method that chose an end of the grid."""
    words = []
    for key, label in labels.items():
        rows = [r for r in found if (r["kernel"], r["method"]) == key and r["at_edge"] is not None]
        if rows:
            count, n = sum(r["at_edge"] for r in rows), sum(r["n"] for r in rows)
            words.append(f"{label.replace(', ', ' ')} {count} of {n}")
    return ", ".join(words)


# Columns of the two short tables, in the order of the experiment.
SHORT_PAPER = {
    ("linear", "RLS"): "RLS",
    ("linear", "HOLRR"): "HOLRR",
    ("rbf", "HOLRR"): "HOLRR rbf",
}
SHORT_WIDE = {
    (f"{kernel}, wide", method): method + words
    for kernel, words in (("linear", ""), ("rbf", " rbf"))
    for method in ("RLS", "LRR", "HOLRR")
}


def _short_tables(found: Table) -> str:
    linear = {key: label for key, label in PAPER_GRID.items() if key[0] == "linear"}
    linear.pop(("linear", "Trace norm"))
    return (
        _short_grid(found, SHORT_PAPER, paper=True)
        + "\nA grid of penalties up to 10 reproduces the numbers of the paper, but it does not "
        "contain the optimum:\nnearly every linear search chooses its largest penalty "
        f"({_edges(found, linear)}).\nThe next table has penalties up to 1e5, for every method:\n\n"
        + _short_grid(found, SHORT_WIDE)
    )


def _short_grid(found: Table, labels: dict[tuple[str, str], str], paper: bool = False) -> str:
    """Return a table with one row for each cell of the paper, optionally with its numbers."""
    header = ["months ahead, training samples"]
    for label in labels.values():
        header += [f"{label}, paper", "ours"] if paper else [label]
    rows: dict[str, list[str]] = {}
    for row in found:
        if (row["kernel"], row["method"]) in labels:
            values = [row["paper"], row["mean"]] if paper else [row["mean"]]
            cells = rows.setdefault(f"{row['k']}, {row['n_train']}", [])
            cells += [f"{value:.3f}" for value in values]
    return markdown(header, [[cell, *values] for cell, values in rows.items()])


def _beside_paper(row: Row) -> str:
    paper = "" if row["paper"] is None else f" ({row['paper']:.4f})"
    return f"{row['mean']:.4f}±{row['error']:.4f}{paper}"


def _grid(cells: dict[tuple[str, object], Row], prefix: str, digits: int) -> str:
    """Return a table of methods by the other key, with the least of each column in bold."""
    columns = list(dict.fromkeys(column for _, column in cells))
    least = {
        c: min(row["mean"] for (_, other), row in cells.items() if other == c) for c in columns
    }
    body = [
        [method.strip(), *(_number(cells.get((method, c)), least[c], digits) for c in columns)]
        for method in dict.fromkeys(method for method, _ in cells)
    ]
    return markdown(["", *(f"{prefix}{column}" for column in columns)], body)


def _number(row: Row | None, least: float, digits: int) -> str:
    if row is None:
        return ""
    mean = f"{row['mean']:.{digits}f}"
    words = f"{mean}±{row['error']:.{digits}f}"
    return f"**{words}**" if mean == f"{least:.{digits}f}" else words


# Title in the guide, function from rows to a summary, and function from a summary to tables.
SECTIONS: dict[str, tuple[str, Callable[[Table], Table], Callable[[Table], str]]] = {
    "synthetic": ("Figure 1", synthetic_drawing.means, _synthetic_tables),
    "images": ("Figure 2", _images_summary, _images_tables),
    "runtime": ("Table 1", _runtime_summary, _runtime_tables),
    "meteo": ("Table 2", _meteo_summary, _meteo_tables),
}


if __name__ == "__main__":
    refresh(Path(sys.argv[1]), Path(sys.argv[2]))
