"""Demonstration (``holrr demo`` or ``python -m holrr.demo``): fits, a comparison and a report."""

from __future__ import annotations

import io
import shlex
import shutil
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from .datasets import image_from_coef, load_image, make_image_regression, make_tensor_regression
from .extras import need
from .metrics import rmse
from .model_selection import HOLRRCV, LRRCV, RLSCV
from .report import Report, make_report

__all__ = ["run_demo"]

N_TRAIN, N_NEW, N_FEATURES, SNR = 50, 500, 10, 1.0
OUTPUT_SHAPE, RANK = (10, 10, 10), (6, 4, 4, 8)
IMAGES, N_SAMPLES = ("cross", "painting"), 200
HEADER = ("method", "ranks", "parameters", f"RMSE on {N_NEW} new samples", "seconds")
# All methods use the same folds and penalties, and predict with the best single model, whose
# ranks are in the table, and not with a stack.
OPTIONS: dict[str, Any] = {"cv": 5, "selection": "min"}
METHODS: dict[str, type] = {
    "ridge regression": RLSCV,
    "low-rank regression": LRRCV,
    "HOLRR": HOLRRCV,
}
DATA = (
    f"The data have {N_TRAIN} samples, {N_FEATURES} inputs, outputs of shape "
    f"{' x '.join(map(str, OUTPUT_SHAPE))}, coefficients of rank {' x '.join(map(str, RANK))}, and "
    "noise as strong as the signal. Penalty and ranks are chosen by 5-fold cross-validation, which "
    "tries all 10,000 ranks. The table has the best single model of each method "
    '(selection="min"):'
)
PICTURE = (
    f"An image as coefficients, where each row of pixels is an input, estimated from {N_SAMPLES} "
    "samples:"
)


def simulate(seed: int = 0) -> tuple[np.ndarray, ...]:
    """Simulate training inputs, test inputs, training outputs, test outputs and the noise level."""
    X, Y, W = make_tensor_regression(
        N_TRAIN + N_NEW,
        N_FEATURES,
        OUTPUT_SHAPE,
        rank=RANK,
        snr=SNR,
        normalize=True,
        return_coef=True,
        random_state=seed,
    )
    noise = rmse(Y, np.tensordot(X, W, axes=1))
    return *train_test_split(X, Y, train_size=N_TRAIN, random_state=seed), noise


def compare(seed: int = 0) -> tuple[list[tuple[str, ...]], Report]:
    """Return a table row for each method on simulated data, and a report on HOLRR."""
    X_train, X_test, Y_train, Y_test, noise = simulate(seed)
    rows: list[tuple[str, ...]] = []
    models = {}
    for name, method in METHODS.items():
        start = time.perf_counter()
        model = models[name] = method(**OPTIONS).fit(X_train, Y_train)
        seconds = time.perf_counter() - start
        error = rmse(Y_test, model.predict(X_test))
        count = f"{model.n_parameters_:,}"
        rows.append((name, _ranks(model), count, f"{error:.4f}", f"{seconds:.3f}"))
    last = models.pop("HOLRR")
    notes = {"n_samples": N_TRAIN}
    report = make_report(
        last, X_test, Y_test, compare=models, title="Regression report (demo)", notes=notes
    )
    return [*rows, ("(noise level)", "", "", f"{noise:.4f}")], report


def _ranks(model: Any) -> str:
    """Return the ranks of a model."""
    return " x ".join(map(str, np.atleast_1d(model.best_params_.get("rank", "full"))))


def draw(seed: int = 0) -> Any:
    """Draw true images and the estimates of each method, as a matplotlib Figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.6, 5.8), layout="constrained")
    heights = [np.divide(*load_image(image).shape[:2]) for image in IMAGES]
    grid = figure.subplots(len(IMAGES), 1 + len(METHODS), height_ratios=heights)
    for axes, image in zip(grid, IMAGES, strict=True):
        X, Y, W = make_image_regression(image, "rows", N_SAMPLES, random_state=seed)
        _show(axes[0], load_image(image), f"{image}\n")
        for ax, (name, method) in zip(axes[1:], METHODS.items(), strict=True):
            model = method(**OPTIONS, fit_intercept=False).fit(X, Y)
            rank = f"rank {_ranks(model)}" if "rank" in model.best_params_ else "full rank"
            title = f"{name}\n{rank}, error {rmse(W, model.coef_):.3f}"
            _show(ax, image_from_coef(model.coef_, "rows"), title)
    return figure


def _show(ax: Any, picture: np.ndarray, title: str) -> None:
    ax.imshow(picture, interpolation="nearest")
    ax.set_title(title, fontsize=9)
    ax.set_axis_off()


def run_demo(out: Path) -> list[Path]:
    """Compare the methods, draw estimated images, write a report, and return its files."""
    need("matplotlib", "the demo draws with matplotlib", "plot")
    out.mkdir(parents=True, exist_ok=True)
    print(textwrap.fill(DATA, 88) + "\n")
    with threadpool_limits(1):
        rows, report = compare()
        table = "\n".join(_line(row) for row in [HEADER, *rows]) + "\n"
        print(table)
        print(PICTURE[:-1] + " ...")
        figure = draw()
    files = {
        "report.html": report.html.encode(),
        "reconstruction.png": _rendered(figure, "png"),
        "reconstruction.svg": _rendered(figure, "svg"),
        "table.txt": table.encode(),
    }
    for name, content in files.items():
        (out / name).write_bytes(content)
    print("\nYour files:")
    for name in files:
        print(f"  {out / name}")
    print(f"\nNext: {_command()} fit X.npy Y.npy -o model.holrr")
    return [out / name for name in files]


def _command() -> str:
    """Return a command that runs holrr in the current folder with the running Python."""
    python, command = Path(sys.executable), shutil.which("holrr")
    if command is not None and Path(command).absolute().parent == python.parent:
        return "holrr"
    if python.is_relative_to(Path.cwd()):
        python = python.relative_to(Path.cwd())
    return f"{shlex.quote(str(python))} -m holrr"


def _line(row: tuple[str, ...]) -> str:
    widths = ("<22", "<16", ">10", ">25", ">10")
    return "".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=False))


def _rendered(figure: Any, kind: str) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=150)
    return buffer.getvalue()


if __name__ == "__main__":
    from .cli import main

    sys.exit(main(["demo", *sys.argv[1:]]))
