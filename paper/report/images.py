"""Section of the report on Figure 2: pictures as regression coefficients."""

from __future__ import annotations

from dataclasses import asdict

from .. import images
from ..drawing import images as drawing
from ..tables import Row, Table, summarise
from .markup import Cell, details, figure, number, paragraph, settings, table
from .page import Check

__all__ = ["TITLE", "checks", "figures", "html"]

TITLE = "Pictures (Figure 2)"
CAPTIONS = {
    "channels": "Task (i) of the paper: the three colours are the inputs, and the outputs are rows "
    "x columns of pixels. Each row shows one picture: the truth, then the estimate of each method "
    "with its rank and the root mean square error of the coefficients. The least error is bold.",
    "rows": "Task (ii) of the paper: the rows of pixels are the inputs, and the outputs are "
    "columns x colours.",
}


def figures(config: images.Config, rows: Table) -> dict:
    """Return the name of each figure and the function that draws it."""
    return {task: (lambda task=task: drawing.draw(config, task)) for task in images.RANKS}


def html(config: images.Config, rows: Table) -> str:
    """Return the HTML of the section."""
    parts = [
        paragraph(
            "The coefficients are a picture, inputs and noise are standard normal, and there are "
            f"{config.n_samples} samples. LRR limits only the rank of the input mode. HOLRR also "
            "limits the ranks of rows and columns, and removes noise that LRR keeps. The pictures "
            "are drawn by this package in the sizes and style of the paper, which has no errors "
            "for this experiment."
        )
    ]
    for task, draw in figures(config, rows).items():
        text = f"True pictures and their reconstructions, {task} as inputs"
        parts.append(figure(draw, text, CAPTIONS[task], raster=True))
        parts.append(details("Errors over all trials", _error_table(rows, task)))
    parts.append(
        paragraph(
            "The third picture has slanting edges and therefore full rank. As in the paper, no low "
            "rank fits it. RLS-CV, LRR-CV and HOLRR-CV are additions of this library. They choose "
            "penalty and ranks by the same cross-validation. HOLRR-CV chooses nearly the true "
            "ranks for the first two pictures, and high ranks for the third."
        )
    )
    return "".join(parts) + settings(asdict(config))


def _error_table(rows: Table, task: str) -> str:
    found = _summary(rows, task)
    names = list(dict.fromkeys(row["image"] for row in found))
    methods = list(dict.fromkeys(row["label"] for row in found))
    by_place = {(row["label"], row["image"]): row for row in found}
    least = {name: min(r["mean"] for r in found if r["image"] == name) for name in names}
    body = [
        [method, *(_cell(by_place.get((method, n)), least[n]) for n in names)] for method in methods
    ]
    return table(("method", *names), body)


def _cell(row: Row | None, least: float) -> Cell:
    if row is None:
        return Cell("–")
    return number(row["mean"], row["error"], bold=row["mean"] == least)


def _summary(rows: Table, task: str) -> Table:
    labelled = [
        # Chosen ranks differ between trials, but belong to one method.
        {**row, "label": row["method"] + ("" if row["chosen"] else f" {row['rank']}")}
        for row in rows
        if row["task"] == task
    ]
    return summarise(labelled, ["image", "label"], "rmse")


def checks(config: images.Config, rows: Table) -> list[Check]:
    """Check the claims of the paper on pictures of low rank."""
    found = []
    for task, ours in (("channels", "HOLRR (3,4,4)"), ("rows", "HOLRR (4,4,3)")):
        low_rank = [name for name in ("cross", "painting") if name in config.images]
        ratios = [ratio for name in low_rank if (ratio := _gain(rows, task, name, ours))]
        if ratios:
            found.append(
                Check(
                    f"Pictures of low rank, {task} as inputs: {ours} beats RLS and every LRR",
                    min(ratios) > 1,
                    "error of the best of the others over ours: "
                    + ", ".join(f"{n} {r:.2f}" for n, r in zip(low_rank, ratios, strict=True)),
                )
            )
    return found


def _gain(rows: Table, task: str, image: str, ours: str) -> float | None:
    means = {r["label"]: r["mean"] for r in _summary(rows, task) if r["image"] == image}
    others = [mean for label, mean in means.items() if label.startswith(("RLS", "LRR"))]
    return min(others) / means[ours] if others and ours in means else None
