"""Section of the report on Table 1: running times, and ratios to HOLRR."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .. import runtime
from ..drawing import runtime as drawing
from ..published import TABLE_1
from ..tables import Table
from .markup import Cell, figure, paragraph, settings, table
from .page import Check

__all__ = ["TITLE", "checks", "figures", "html"]

TITLE = "Running time (Table 1)"
METHODS = ("RLS", "LRR", "Trace norm", "MLMT-NC", "HOLRR", "HOLRR (paper)")


def figures(config: runtime.Config, rows: Table) -> dict[str, Any]:
    """Return the name of each figure and the function that draws it."""
    return {"seconds": lambda: drawing.draw(rows)}


def html(config: runtime.Config, rows: Table) -> str:
    """Return the HTML of the section."""
    ours = runtime.medians(rows)
    text = (
        f"The first table has the median seconds of one fit to {config.n_samples} samples. All "
        "methods run in turn on one thread of the same machine. Machines differ, so the second "
        "table compares ratios to HOLRR with those of the paper. HOLRR computes its subspaces from "
        "the fitted outputs; HOLRR (paper) computes them from the outputs, as Algorithm 1 does."
    )
    remark = (
        "The data are random. The two iterative methods run until their own stopping rules are "
        "met, which may differ from those of the paper. The paper has no times for some cells. Its "
        "LRR decomposes a matrix as wide as the flattened outputs. LRR of this library decomposes "
        "the smaller of two matrices and is therefore the faster low-rank method. MLMT-NC of this "
        "library uses exact steps on the moments of the data and starts from HOLRR, which explains "
        "the difference from the 15 minutes of the paper."
    )
    return (
        paragraph(text)
        + figure(
            figures(config, rows)["seconds"],
            "Seconds of each method on a logarithmic scale, with the times of the paper as rings",
            "Dots: this library. Rings: times of the paper on its own machine.",
        )
        + _seconds_table(ours)
        + _ratio_table(ours)
        + paragraph(remark)
        + settings(asdict(config))
    )


def _paper(size: str) -> dict[str, float | None]:
    found = {" x ".join(map(str, s)): times for s, times in TABLE_1.items()}.get(size, {})
    return {**found, "HOLRR (paper)": found.get("HOLRR")}


def _seconds_table(ours: dict[str, dict[str, float]]) -> str:
    body = []
    for method in METHODS:
        cells: list[Any] = [method]
        for size, times in ours.items():
            cells += [_seconds(times.get(method)), _seconds(_paper(size).get(method))]
        body.append(cells)
    header = ["seconds"] + [c for size in ours for c in (size.replace(" x ", "×"), "paper")]
    return table(header, body, "Seconds of one fit")


def _ratio_table(ours: dict[str, dict[str, float]]) -> str:
    body = []
    for method in METHODS[:4]:
        cells: list[Any] = [method]
        for size, times in ours.items():
            cells += [_ratio(times, method), _ratio(_paper(size), method)]
        body.append(cells)
    header = ["times HOLRR's"] + [c for size in ours for c in (size.replace(" x ", "×"), "paper")]
    return table(header, body, "Seconds of one fit over those of HOLRR")


def _seconds(value: float | None) -> Cell:
    return Cell("–") if value is None else Cell(_short(value))


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _ratio(times: dict[str, Any], method: str) -> Cell:
    if times.get(method) is None or not times.get("HOLRR"):
        return Cell("–")
    return Cell(_short(times[method] / times["HOLRR"]))


def checks(config: runtime.Config, rows: Table) -> list[Check]:
    """Check that HOLRR is faster than the other methods that use the tensor structure."""
    found = []
    for method in ("Trace norm", "MLMT-NC"):
        ratios = {
            size.replace(" x ", "×"): times[method] / times["HOLRR"]
            for size, times in runtime.medians(rows).items()
        }
        words = ", ".join(f"{size} {ratio:.0f} times" for size, ratio in ratios.items())
        claim = f"HOLRR is faster than {method} at every size"
        found.append(Check(claim, min(ratios.values()) > 1, words))
    return found
