"""Draw the picture of when_it_helps.md, from a table of benchmarks.md, into the current folder."""

from __future__ import annotations

import re
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

BLUE, GREY, BLACK = "#1f5a99", "#8b919a", "#1f2328"
PAGE = Path(__file__).with_name("benchmarks.md")


def changes(column: str) -> list[tuple[str, float, float]]:
    """Name, change of the RMSE in percent and standard error of each task, largest gains last."""
    text = PAGE.read_text("utf-8")
    head, rows = re.findall(r"^(\| task \| N .*)\n\|[-:| ]*\n((?:\|.*\n)+)", text, re.M)[0]
    names = [cell.strip() for cell in head.strip("|").split("|")]
    found = []
    for line in rows.splitlines():
        row = dict(zip(names, (cell.strip() for cell in line.strip("|").split("|")), strict=True))
        value = row[column].strip("*").replace("−", "-")
        if value:
            change, error = map(float, value.split(" ± "))
            label = f"{row['task']}, {row['N']} x {row['inputs']} → {row['outputs']}"
            found.append((label, change, error))
    return sorted(found, key=lambda task: -task[1])


def draw(ax: Axes, column: str, title: str) -> None:
    tasks = changes(column)
    for place, (_, change, error) in enumerate(tasks):
        color = BLUE if abs(change) > 2 * error else GREY
        ax.plot([change - error, change + error], [place, place], color=color, lw=1.5)
        ax.plot(change, place, "o", color=color, ms=5)
    ax.axvline(0, color=BLACK, lw=1)
    ax.set_xscale("symlog", linthresh=1)
    ticks = [-30, -10, -3, -1, 0, 1, 3]
    ax.set_xticks(ticks, [f"{tick}".replace("-", "−") for tick in ticks])
    ax.set_yticks(range(len(tasks)), [label for label, _, _ in tasks], fontsize=8)
    ax.set(xlabel="change of the RMSE, %", ylim=(-0.7, len(tasks) - 0.3))
    ax.set_title(title, fontsize=11)
    ax.grid(axis="x", color=GREY, alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    figure, axes = plt.subplots(1, 2, figsize=(12, 6), layout="constrained")
    draw(axes[0], "stack", "HOLRRCV against ridge regression")
    draw(axes[1], "kernel stack", "KernelHOLRRCV against kernel ridge regression")
    figure.savefig("real_data.png", dpi=110)
    plt.close(figure)
