"""Figure 2 of the paper: pictures as regression coefficients, estimated by three methods.

In task (i) of the paper, "channels", the three colours are the inputs, and the outputs are rows x
columns. In task (ii), "rows", the rows of pixels are the inputs, and the outputs are columns x
colours. LRR limits the rank of the input mode alone. HOLRR limits the ranks of rows, columns and
colours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV
from holrr.datasets import load_image, make_image_regression

from .running import Experiment, Unit, run, seed_for
from .tables import Row, Table

__all__ = ["EXPERIMENT", "Config", "Reconstruction", "read_image", "reconstruct", "table"]

PAPER_SIZES = {"cross": (50, 50), "painting": (70, 44), "triangles": (70, 70)}


@dataclass(frozen=True)
class Config:
    """Settings of the image experiment.

    Parameters
    ----------
    images : tuple of str
        Names of pictures of `holrr.datasets.load_image`, or paths of picture files.
    n_samples : int
        Size of the training set.
    noise : float
        Standard deviation of the noise, in units of full brightness.
    alpha : float
        Ridge penalty of all methods.
    n_trials : int
        Number of draws of the data. The figure shows the first.
    max_side : int
        Largest side of pictures from files; larger pictures are reduced.
    seed : int
        Seed of the data.
    """

    images: tuple[str, ...] = ("cross", "painting", "triangles")
    n_samples: int = 200
    noise: float = 1.0
    alpha: float = 1.0
    n_trials: int = 10
    max_side: int = 128
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
    """Return estimate one picture by every method.

    Parameters
    ----------
    config : Config
        Settings of the experiment.
    image : str
        Name of a picture or path of a file.
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
        read_image(image, config.max_side),
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


def read_image(image: str, max_side: int = 128) -> NDArray[np.float64]:
    """Load a picture by name, or read it from a file.

    Matplotlib reads PNG files; other formats need pillow.

    Parameters
    ----------
    image : str
        Name of a picture of `load_image`, or path of a file.
    max_side : int
        Largest side. A larger picture from a file is reduced by averaging blocks of pixels.

    Returns
    -------
    ndarray of shape (height, width, 3)
        Values from 0 to 1.
    """
    if image in PAPER_SIZES:
        return load_image(image)
    if not Path(image).is_file():
        raise FileNotFoundError(
            f"The picture {image!r} does not exist. Pass the path of a file, or one of "
            f"{', '.join(PAPER_SIZES)}."
        )
    return _shrink(_to_rgb(_pixels(image)), max_side)


def _pixels(path: str) -> NDArray[Any]:
    try:
        from matplotlib.image import imread
    except ImportError as error:
        raise ImportError(
            "Reading a picture needs matplotlib, which is not installed: run "
            'pip install "holrr[plot]".'
        ) from error
    try:
        return np.asarray(imread(path))
    except Exception as error:  # pillow raises exceptions of many types
        raise ValueError(f"{path} cannot be read as a picture: {error}") from error


def _to_rgb(pixels: NDArray[Any]) -> NDArray[np.float64]:
    """Convert to three channels from 0 to 1; grey is repeated, and transparency is dropped."""
    scale = np.iinfo(pixels.dtype).max if pixels.dtype.kind in "ui" else 1.0
    values = pixels.astype(float) / scale
    if values.ndim == 2:
        values = values[:, :, None]
    return np.repeat(values[:, :, :1], 3, axis=2) if values.shape[2] < 3 else values[:, :, :3]


def _shrink(values: NDArray[np.float64], max_side: int) -> NDArray[np.float64]:
    step = -(-max(values.shape[:2]) // max_side)
    height, width = (side // step for side in values.shape[:2])
    if min(height, width) == 0:
        raise ValueError(
            f"The picture of {values.shape[:2]} pixels is too narrow to be reduced to a largest "
            f"side of {max_side}."
        )
    blocks = values[: height * step, : width * step].reshape(height, step, width, step, 3)
    return blocks.mean(axis=(1, 3))


def _units(config: Config) -> list[Unit]:
    return [
        (image, task, trial)
        for image in config.images
        for task in RANKS
        for trial in range(config.n_trials)
    ]


def _run_unit(config: Config, unit: Unit) -> Table:
    image, task, trial = unit
    return [_row(found, image, task, trial) for found in reconstruct(config, image, task, trial)]


def _row(found: Reconstruction, image: str, task: str, trial: int) -> Row:
    return {
        "image": Path(image).stem,
        "task": task,
        "trial": trial,
        "method": found.method,
        "rank": found.rank,
        "chosen": found.chosen,
        "rmse": found.rmse,
    }


EXPERIMENT = Experiment("images", Config, _units, _run_unit)


def table(config: Config | None = None, n_jobs: int = 1) -> Table:
    """Compute the errors of all reconstructions.

    Parameters
    ----------
    config : Config, optional
        Settings; those of the paper by default.
    n_jobs : int, default=1
        Number of processes.

    Returns
    -------
    list of dict
        Columns image, task, trial, method, rank, rmse.

    Examples
    --------
    >>> from paper import images
    >>> rows = images.table(images.Config(images=("cross",), n_trials=1))
    >>> rows[0]["method"], rows[0]["rmse"] > rows[-1]["rmse"]
    ('RLS', True)
    """
    return run(EXPERIMENT, config or Config(), n_jobs=n_jobs)
