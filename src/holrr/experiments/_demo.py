"""A first look: low-rank tensor data, three methods, a table and a picture, in seconds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from .. import HOLRR, LRR, RLS
from ..datasets import make_tensor_regression
from . import images
from .drawing import images as images_drawing
from .drawing._style import save_figure

__all__ = ["run_demo"]


def run_demo(out: Path, say: Any = print) -> list[Path]:
    """Compare the methods on data made on the spot; returns the files written."""
    rank = (6, 4, 4, 8)
    X, Y = make_tensor_regression(200, 10, (10, 10, 10), rank=rank, snr=1.0, random_state=0)
    X_train, X_test, Y_train, Y_test = train_test_split(X, Y, train_size=50, random_state=0)
    say(f"50 samples, 10 inputs, outputs of {Y.shape[1:]}, noise as strong as the signal")
    say(f"{'method':<24}{'parameters':>12}{'held-out RMSE':>16}{'seconds':>10}")
    for name, model in (
        ("ridge (RLS)", RLS(alpha=10.0)),
        ("LRR, rank 6", LRR(6, alpha=10.0)),
        (f"HOLRR, rank {rank}", HOLRR(rank, alpha=10.0)),
    ):
        start = time.perf_counter()
        model.fit(X_train, Y_train)
        seconds = time.perf_counter() - start
        rmse = float(np.sqrt(np.mean((model.predict(X_test) - Y_test) ** 2)))
        say(f"{name:<24}{model.n_parameters_:>12}{rmse:>16.2f}{seconds:>10.4f}")
    out.mkdir(parents=True, exist_ok=True)
    config = images.Config(images=("cross", "painting"))
    paths = save_figure(lambda: images_drawing.draw(config, "rows"), out / "reconstruction")
    for path in paths:
        say(f"wrote {path}")
    return paths
