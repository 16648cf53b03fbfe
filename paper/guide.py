"""Carry the results of a run into the guide: ``python -m paper.guide REPORT DOCS``.

The pictures go to ``images/reproduce_*.png``, the summaries to ``results/*.csv``, and the tables
of ``reproduce.md`` are written anew between their two markers.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from . import runtime
from .drawing.meteo import LABELS
from .drawing.synthetic import PANELS, VALUES
from .published import TABLE_1, TABLE_2
from .tables import Row, Table, read_csv, summarise, to_csv, write_text

__all__ = ["refresh"]

BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def refresh(report: Path, docs: Path) -> None:
    """Write pictures, summaries and tables.

    Parameters
    ----------
    report : Path
        Folder that ``python -m paper all`` wrote.
    docs : Path
        Folder of the guides.
    """
    for picture in sorted(report.glob("*_*.png")):
        _copy_small(picture, docs / "images" / f"reproduce_{picture.name}")
    parts = [_claims(report)]
    for name, summary, tables in (
        ("synthetic", _synthetic_summary, _synthetic_tables),
        ("images", _images_summary, _images_tables),
        ("runtime", _runtime_summary, _runtime_tables),
        ("meteo", _meteo_summary, _meteo_tables),
    ):
        rows = read_csv(report / f"{name}.csv")
        found = summary(rows)
        write_text(docs / "results" / f"{name}.csv", to_csv(found))
        parts.append(tables(found))
    guide = docs / "reproduce.md"
    before, _, rest = guide.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    write_text(guide, before + BEGIN + "\n\n" + "\n".join(parts) + "\n" + END + after)


def _copy_small(source: Path, target: Path, colours: int = 256) -> None:
    """The picture with fewer colours, which nobody sees and a repository is glad of."""
    from PIL import Image

    with Image.open(source) as image:
        image.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(target, optimize=True)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, the first column a label and the others numbers."""
    rule = ["---", *["---:"] * (len(header) - 1)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, rule, *rows))


def _claims(report: Path) -> str:
    lines = ["### What held, and what did not\n"]
    for name in ("synthetic", "images", "runtime", "meteo"):
        section = json.loads((report / "parts" / f"{name}.json").read_text(encoding="utf-8"))
        for check in section["checks"]:
            found = "; ".join(check["found"].split("\n"))
            lines.append(f"- {'Held' if check['holds'] else '**Did not hold**'}: {check['claim']}.")
            lines.append(f"  ({found})")
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- one experiment each


def _synthetic_summary(rows: Table) -> Table:
    found: Table = []
    for panel in dict.fromkeys(row["panel"] for row in rows):
        chosen = [row for row in rows if row["panel"] == panel]
        found += [
            {"panel": panel, "value": VALUES[panel], **row}
            for row in summarise(chosen, ["method", "n_train"], VALUES[panel])
        ]
    return found


def _synthetic_tables(found: Table) -> str:
    text = "### Figure 1\n\n![Error against the size of the training set]"
    text += "(images/reproduce_synthetic_rmse.png)\n"
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


def _images_tables(found: Table) -> str:
    text = "### Figure 2\n"
    for task in ("channels", "rows"):
        cells = {(r["label"], r["image"]): r for r in found if r["task"] == task}
        text += f"\n![Pictures and reconstructions](images/reproduce_images_{task}.png)\n\n"
        text += f"Mean of {next(iter(cells.values()))['n']} draws:\n\n{_grid(cells, '', 4)}"
    return text


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
        "### Table 1\n\nSeconds to learn from 100 samples, the paper's in brackets, and the ratio "
        "to HOLRR:\n\n"
        + markdown(["", *sizes], body)
        + "\n![Seconds of every method](images/reproduce_runtime_seconds.png)\n"
    )


def _seconds(row: Row) -> str:
    paper = "" if row["paper"] is None else f" ({row['paper']:g})"
    return f"{row['seconds']:.2g}{paper}, {row['ratio']:.2g}"


def _meteo_summary(rows: Table) -> Table:
    found = summarise(rows, ["k", "n_train", "kernel", "method"], "rmse")
    for row in found:
        paper = TABLE_2.get((row["k"], row["n_train"]), {})
        row["paper"] = paper.get((row["kernel"], row["method"]))
    return found


def _meteo_tables(found: Table) -> str:
    cells = list(dict.fromkeys((row["k"], row["n_train"]) for row in found))
    body = []
    for key, label in LABELS.items():
        of_method = {(r["k"], r["n_train"]): r for r in found if (r["kernel"], r["method"]) == key}
        if of_method:
            body.append([label, *(_beside_paper(of_method[cell]) for cell in cells)])
    header = ["", *(f"k={k}, N={n}" for k, n in cells)]
    return (
        f"### Table 2\n\nRMSE, mean of {max(r['n'] for r in found)} splits (trace norm "
        f"{min(r['n'] for r in found)}), the paper's in brackets:\n\n"
        + markdown(header, body)
        + "\n![Errors of the forecasts](images/reproduce_meteo_rmse.png)\n"
    )


def _beside_paper(row: Row) -> str:
    paper = "" if row["paper"] is None else f" ({row['paper']:.4f})"
    return f"{row['mean']:.4f}±{row['error']:.4f}{paper}"


def _grid(cells: dict[tuple[str, object], Row], prefix: str, digits: int) -> str:
    """Methods down, the other key across, the least of each column in bold."""
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


if __name__ == "__main__":
    refresh(Path(sys.argv[1]), Path(sys.argv[2]))
