"""A first look: low-rank tensor data, ranks from cross-validation, a table, a picture, a report."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from ..datasets import make_tensor_regression
from ..model_selection import HOLRRCV, LRRCV, RLSCV
from . import images
from ._table import write_text
from .drawing import images as drawing
from .drawing._style import require_matplotlib, save_figure
from .report import Check, Section, build_report, save_section
from .report._html import figure, number, paragraph, table

__all__ = ["run_demo"]

TITLE = "holrr at a glance"
N_TRAIN, N_FEATURES, OUTPUT_SHAPE, RANK, SNR = 50, 10, (10, 10, 10), (6, 4, 4, 8), 1.0


@dataclass(frozen=True)
class Result:
    """One row of the demonstration's table."""

    method: str
    rank: str
    parameters: int
    rmse: float
    seconds: float


def compare(seed: int = 0) -> tuple[list[Result], float]:
    """Three methods on data made on the spot, and the noise that none of them can predict."""
    X, Y, W = make_tensor_regression(
        N_TRAIN + 500,
        N_FEATURES,
        OUTPUT_SHAPE,
        rank=RANK,
        snr=SNR,
        normalize=True,
        return_coef=True,
        random_state=seed,
    )
    noise = float(np.std(Y - np.tensordot(X, W, axes=1)))
    X_train, X_test, Y_train, Y_test = train_test_split(X, Y, train_size=N_TRAIN, random_state=seed)
    models: dict[str, Any] = {
        "ridge regression": RLSCV(cv=5),
        "low-rank regression": LRRCV(cv=5),
        "HOLRR": HOLRRCV(cv=5),
    }
    results = []
    for name, model in models.items():
        start = time.perf_counter()
        model.fit(X_train, Y_train)
        seconds = time.perf_counter() - start
        rmse = float(np.sqrt(np.mean((model.predict(X_test) - Y_test) ** 2)))
        rank = " x ".join(map(str, np.atleast_1d(getattr(model, "rank_", "full"))))
        results.append(Result(name, rank, model.best_estimator_.n_parameters_, rmse, seconds))
    return results, noise


def run_demo(out: Path, say: Callable[[str], None] = print) -> list[Path]:
    """Compare the methods, draw a reconstruction and write a small report.

    Parameters
    ----------
    out : Path
        Folder for the files, made where there is none.
    say : callable
        Told what happens.

    Returns
    -------
    list of Path
        The files written.
    """
    require_matplotlib()
    out.mkdir(parents=True, exist_ok=True)
    outputs = " x ".join(map(str, OUTPUT_SHAPE))
    say(f"{N_TRAIN} samples, {N_FEATURES} inputs, outputs of {outputs}, coefficients of rank")
    say(f"{' x '.join(map(str, RANK))}, noise as strong as the signal. Penalty and ranks by 5-fold")
    say("cross-validation, which tries all 10,000 ranks:\n")
    with threadpool_limits(1):
        results, noise = compare()
    for line in _lines(results, noise):
        say(line)
    config = images.Config(images=("cross", "painting"))
    say("\nA picture as coefficients, each row of pixels an input, recovered from 200 samples ...")
    draw = lambda: drawing.draw(config, "rows")  # noqa: E731
    paths = save_figure(draw, out / "reconstruction")
    save_section(_section(results, noise, draw), out / "parts")
    build_report(out / "parts", out / "report.html", TITLE)
    write_text(out / "table.txt", "\n".join(_lines(results, noise)) + "\n")
    paths += [out / "table.txt", out / "report.html"]
    say("\nYour files:")
    for path in paths:
        say(f"  {path}")
    say("\nNext: holrr fit X.npy Y.npy -o model.holrr, or holrr reproduce all --quick")
    return paths


def _lines(results: list[Result], noise: float) -> list[str]:
    lines = [f"{'method':<22}{'ranks':<16}{'parameters':>10}{'held-out RMSE':>16}{'seconds':>10}"]
    for r in results:
        lines.append(
            f"{r.method:<22}{r.rank:<16}{r.parameters:>10,}{r.rmse:>16.4f}{r.seconds:>10.3f}"
        )
    return [*lines, f"{'(the noise alone)':<22}{'':<16}{'':>10}{noise:>16.4f}"]


def _section(results: list[Result], noise: float, draw: Callable[[], Any]) -> Section:
    rows = [
        [r.method, r.rank, f"{r.parameters:,}", number(r.rmse), number(r.seconds, digits=3)]
        for r in results
    ]
    rows.append(["the noise alone", "", "", number(noise), ""])
    header = ("method", "ranks", "parameters", "held-out RMSE", "seconds")
    text = (
        f"{N_TRAIN} samples of {N_FEATURES} inputs and 1,000 outputs, noise as strong as the "
        "signal. Penalty and ranks of each method come from cross-validation."
    )
    picture = figure(
        draw,
        "Two pictures and their reconstructions",
        "The coefficients are a picture; each method sees 200 noisy samples. The error is the root "
        "mean square of the pixels, from 0 to 1; the least is in bold.",
        raster=True,
    )
    ridge, ours = results[0].rmse, results[-1].rmse
    check = Check(
        "HOLRR is nearer to the noise than ridge regression",
        ours < ridge,
        f"above the noise by {ours - noise:.4f}, ridge by {ridge - noise:.4f}",
    )
    html = paragraph(text) + table(header, rows) + picture
    return Section("demo", "A first look", html, [check])
