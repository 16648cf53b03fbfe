"""Figure 2 of the paper: pictures as regression coefficients, estimated by three methods.

In task (i) of the paper, "channels", the three colours are the inputs, and the outputs are rows x
columns. In task (ii), "rows", the rows of pixels are the inputs, and the outputs are columns x
colours. LRR limits the rank of the input mode alone. HOLRR limits the ranks of rows, columns and
colours.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV
from holrr.datasets import image_from_coef, load_image, make_image_regression

from .experiment import Table, Unit, grid, seed_for, summarise

SERIAL = False


@dataclass(frozen=True)
class Config:
    """Settings of the image experiment.

    Parameters
    ----------
    images : tuple of str
        Names of pictures of `holrr.datasets.load_image`.
    n_samples : int
        Size of the training set.
    noise : float
        Standard deviation of the noise, in units of full brightness.
    alpha : float
        Ridge penalty of all methods.
    n_trials : int
        Number of draws of the data. The figure shows the first.
    seed : int
        Seed of the data.
    """

    images: tuple[str, ...] = ("cross", "painting", "triangles")
    n_samples: int = 200
    noise: float = 1.0
    alpha: float = 1.0
    n_trials: int = 10
    seed: int = 0

    @classmethod
    def quick(cls, **changes: Any) -> Config:
        """Return settings that take at most a minute."""
        return cls(**{"n_trials": 3, **changes})

    @classmethod
    def full(cls, **changes: Any) -> Config:
        """Return the settings of the committed results."""
        return cls(**{"n_trials": 20, **changes})


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """Estimate of one picture by one method.

    Parameters
    ----------
    method : str
        Name of the method.
    rank : str
        Rank as text, empty without a rank.
    chosen : bool
        Whether cross-validation chose the rank.
    coef : ndarray
        Estimated coefficients, input mode first.
    rmse : float
        Root mean square error of the coefficients.
    """

    method: str
    rank: str
    chosen: bool
    coef: NDArray[np.float64]
    rmse: float


# Ranks of the paper; in task (i) it shows HOLRR from (3, 1, 1) upwards.
RANKS: dict[str, tuple[tuple[int, ...], tuple[tuple[int, int, int], ...]]] = {
    "channels": ((1, 2, 3), ((3, 1, 1), (3, 2, 2), (3, 4, 4), (3, 8, 8))),
    "rows": ((2, 3, 4, 8), ((2, 2, 2), (4, 4, 3), (8, 8, 3))),
}


def reconstruct(config: Config, image: str, task: str, trial: int = 0) -> list[Reconstruction]:
    """Estimate one picture by every method.

    Parameters
    ----------
    config : Config
        Settings of the experiment.
    image : str
        Name of a picture.
    task : {"channels", "rows"}
        Task of the paper.
    trial : int
        Number of the draw.

    Returns
    -------
    list of Reconstruction
        RLS, then LRR and HOLRR with increasing ranks, then all three methods with penalty and ranks
        chosen by the same cross-validation.
    """
    X, Y, W = make_image_regression(
        image,
        task=task,
        n_samples=config.n_samples,
        noise=config.noise,
        random_state=seed_for(config.seed, "images", trial),
    )
    found = []
    for method, rank, model in _models(config, task, W.shape):
        coef = model.fit(X, Y).coef_
        error = float(np.sqrt(np.mean((coef - W) ** 2)))
        words = _in_words(getattr(model, "rank_", ())) if rank is None else rank
        found.append(Reconstruction(method, words, rank is None, coef, error))
    return found


def _models(config: Config, task: str, shape: tuple[int, ...]):
    """Yield method, rank as text and estimator, without ranks above the size of the picture."""
    common: dict[str, Any] = {"alpha": config.alpha, "fit_intercept": False}
    lrr_ranks, holrr_ranks = RANKS[task]
    yield "RLS", "", RLS(**common)
    for R in lrr_ranks:
        if shape[0] >= R:
            yield "LRR", str(R), LRR(R, **common)
    for ranks in holrr_ranks:
        if all(d >= R for d, R in zip(shape, ranks, strict=True)):
            yield "HOLRR", _in_words(ranks), HOLRR(ranks, subspaces="response", **common)
    # Larger ranks hardly lower the error of a picture of this size, and take long to try.
    caps = tuple(min(d, 40) for d in shape)
    chosen: dict[str, Any] = {"selection": "min", "fit_intercept": False}
    yield "RLS-CV", None, RLSCV(**chosen)
    yield "LRR-CV", None, LRRCV(max_rank=caps[0], **chosen)
    yield "HOLRR-CV", None, HOLRRCV(max_rank=caps, **chosen)


def _in_words(ranks: int | Sequence[int]) -> str:
    """Return ranks as text: empty, a number, or several numbers in brackets."""
    if isinstance(ranks, Sequence):
        return f"({','.join(map(str, ranks))})" if ranks else ""
    return str(ranks)


def units(config: Config) -> list[Unit]:
    return [
        (image, task, trial)
        for image in config.images
        for task in RANKS
        for trial in range(config.n_trials)
    ]


def run_unit(config: Config, unit: Unit) -> Table:
    image, task, trial = unit
    return [
        {
            "image": image,
            "task": task,
            "trial": trial,
            "method": found.method,
            "rank": found.rank,
            "chosen": found.chosen,
            "rmse": found.rmse,
        }
        for found in reconstruct(config, image, task, trial)
    ]


# ---------------------------------------------------------------- tables and figures

TASKS = {
    "channels": "An input for each of the three colours: the outputs are rows × columns of pixels",
    "rows": "An input for each row of pixels: the outputs are columns × colours",
}


def text(rows: Table) -> str:
    """Return a table of errors for each task."""
    parts = []
    for task, words in TASKS.items():
        chosen = [
            {**row, "label": row["method"] + ("" if row["chosen"] else f" {row['rank']}").rstrip()}
            for row in rows
            if row["task"] == task
        ]
        found = summarise(chosen, ["label", "image"], "rmse")
        parts.append(f"{words}. Mean of {found[0]['n']} draws:\n\n{grid(found, 'label', 'image')}")
    return "\n".join(parts)


def figures(config: Config, rows: Table) -> dict[str, Any]:
    """Draw the true pictures and the reconstructions of the first trial, for each task."""
    return {task: _draw(config, task) for task in TASKS}


def _draw(config: Config, task: str) -> Any:
    from matplotlib.figure import Figure

    truths = [load_image(image) for image in config.images]
    found = [_first_trial(config, image, task) for image in config.images]
    n_columns = 1 + max(map(len, found))
    heights = [truth.shape[0] / truth.shape[1] + 0.28 for truth in truths]
    figure = Figure(figsize=(1.32 * n_columns, 1.32 * sum(heights) + 0.4), layout="constrained")
    figure.suptitle(TASKS[task], fontsize=11.5, fontweight="bold", x=0.01, ha="left")
    grid_of_axes = figure.subplots(len(truths), n_columns, squeeze=False, height_ratios=heights)
    for axes, truth, name, estimates in zip(
        grid_of_axes, truths, config.images, found, strict=True
    ):
        for ax in axes:
            ax.set_axis_off()
        axes[0].imshow(truth)
        axes[0].set_title(f"{name}\n", fontsize=8, pad=3)
        best = min(f.rmse for f in estimates)
        for ax, f in zip(axes[1:], estimates, strict=False):
            ax.imshow(image_from_coef(f.coef, task))
            weight = "bold" if f.rmse == best else "normal"
            title = f"{f.method} {f.rank}\nerror {f.rmse:.3f}"
            ax.set_title(title, fontsize=8, pad=3, fontweight=weight)
    return figure


def _first_trial(config: Config, image: str, task: str) -> list[Reconstruction]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The best penalty")
        return reconstruct(config, image, task)
