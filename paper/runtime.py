"""Table 1 of the paper: seconds of one fit to 100 samples.

All methods run in turn in this process on one thread, so that other load on the machine affects all
of them equally. Only ratios to HOLRR can be compared with the paper, which used another machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from holrr import HOLRR, LRR, MLMTNC, RLS, TraceNormRegression
from holrr.datasets import make_tensor_regression

from .experiment import COLOURS, FAINT, Table, Unit, markdown, seed_for
from .published import TABLE_1

SERIAL = True

RANKS = {(10, 10, 10, 10): (6, 4, 4, 8), (3, 70, 70): (3, 8, 8), (160, 5, 16, 5): (10, 3, 6, 4)}


@dataclass(frozen=True)
class Config:
    """Settings of the runtime experiment.

    Parameters
    ----------
    sizes : tuple of tuple of int
        Shapes of the coefficients.
    n_samples : int
        Size of the training set.
    n_repeats : int
        Number of fits of each direct method.
    n_repeats_slow : int
        Number of fits of each iterative method.
    alpha, penalty, beta : float
        Penalties of the direct methods, of the trace norm and of MLMT-NC.
    seed : int
        Seed of the data.
    """

    sizes: tuple[tuple[int, ...], ...] = tuple(TABLE_1)
    n_samples: int = 100
    n_repeats: int = 20
    n_repeats_slow: int = 2
    alpha: float = 1.0
    penalty: float = 10.0
    beta: float = 1.0
    seed: int = 0

    @classmethod
    def quick(cls, **changes: Any) -> Config:
        """Return settings that take at most a minute."""
        return cls(**{"n_repeats": 10, "n_repeats_slow": 1, **changes})

    @classmethod
    def full(cls, **changes: Any) -> Config:
        """Return the settings of the committed results."""
        return cls(**{"n_repeats": 50, "n_repeats_slow": 5, **changes})


def _models(config: Config, rank: tuple[int, ...]) -> dict[str, tuple[Any, int]]:
    """Return the estimator and the number of fits of each method."""
    few, many = config.n_repeats_slow, config.n_repeats
    return {
        "RLS": (RLS(config.alpha, fit_intercept=False), many),
        "LRR": (LRR(rank[0], config.alpha, fit_intercept=False), many),
        "Trace norm": (TraceNormRegression(config.penalty, fit_intercept=False), few),
        "MLMT-NC": (MLMTNC(rank, config.beta, fit_intercept=False), few),
        "HOLRR": (HOLRR(rank, config.alpha, fit_intercept=False), many),
        "HOLRR (paper)": (
            HOLRR(rank, config.alpha, subspaces="response", fit_intercept=False),
            many,
        ),
    }


def _rank_for(size: tuple[int, ...]) -> tuple[int, ...]:
    return RANKS.get(size, tuple((d + 1) // 2 for d in size))


def units(config: Config) -> list[Unit]:
    return [tuple(size) for size in config.sizes]


def run_unit(config: Config, unit: Unit) -> Table:
    rank = _rank_for(unit)
    X, Y = make_tensor_regression(
        config.n_samples,
        unit[0],
        unit[1:],
        rank=rank,
        snr=1.0,
        normalize=True,
        random_state=seed_for(config.seed, "runtime"),
    )
    models = _models(config, rank)
    for name, (model, _) in models.items():
        if name not in ("Trace norm", "MLMT-NC"):
            model.fit(X, Y)  # warm-up: the first call includes loading code
    rows = []
    for repeat in range(max(n for _, n in models.values())):
        for name, (model, n) in models.items():
            if repeat < n:
                seconds = _seconds(partial(model.fit, X, Y))
                rows.append(
                    {"size": _words(unit), "method": name, "repeat": repeat, "seconds": seconds}
                )
    return rows


def _words(size: tuple[int, ...]) -> str:
    return " x ".join(map(str, size))


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def medians(rows: Table) -> dict[str, dict[str, float]]:
    """Return the median seconds by size and method."""
    times: dict[str, dict[str, list[float]]] = {}
    for row in rows:
        times.setdefault(row["size"], {}).setdefault(row["method"], []).append(row["seconds"])
    return {
        size: {method: float(np.median(t)) for method, t in methods.items()}
        for size, methods in times.items()
    }


# ---------------------------------------------------------------- table and figure


def _paper(size: str) -> dict[str, float]:
    found = {_words(shape): times for shape, times in TABLE_1.items()}.get(size, {})
    return {method: seconds for method, seconds in found.items() if seconds is not None}


def text(rows: Table) -> str:
    """Return seconds, those of the paper in brackets, and ratios to HOLRR."""
    found = medians(rows)

    def cell(size: str, method: str) -> str:
        seconds, paper = found[size][method], _paper(size).get(method)
        brackets = "" if paper is None else f" ({paper:g})"
        return f"{seconds:.2g}{brackets}, {seconds / found[size]['HOLRR']:.2g}"

    methods = next(iter(found.values()))
    body = [[method, *(cell(size, method) for size in found)] for method in methods]
    return "Seconds, those of the paper, and the ratio to HOLRR:\n\n" + markdown(["", *found], body)


def figures(config: Config, rows: Table) -> dict[str, Any]:
    """Draw a panel for each size, with dots for this library and rings for the paper."""
    from matplotlib.figure import Figure

    times = medians(rows)
    figure = Figure(figsize=(3.5 * len(times) + 0.6, 3.1), layout="constrained")
    axes = figure.subplots(1, len(times), squeeze=False, sharey=True)[0]
    for ax, (size, ours) in zip(axes, times.items(), strict=True):
        names, paper = list(ours), _paper(size)
        known = {name: paper[name] for name in names if name in paper}
        ax.hlines(list(known), [ours[n] for n in known], list(known.values()), color=FAINT, lw=1)
        ax.plot(list(ours.values()), names, "o", color=FAINT, ms=7, label="this library")
        ax.scatter(list(ours.values()), names, s=49, c=[COLOURS[n] for n in names], zorder=3)
        ring = {"mfc": "none", "mec": FAINT, "mew": 1.6, "ms": 8}
        ax.plot(list(known.values()), list(known), "o", label="the paper", **ring)
        ax.set_xscale("log")
        ax.set_ylim(len(names) - 0.4, -0.6)
        ax.set_title(size.replace(" x ", " × "), loc="left")
        ax.set_xlabel("seconds")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return {"seconds": figure}
