"""Own inputs on series of places and variables, beside published errors.

    python benchmarks/own_inputs.py [--data FOLDER] [--sets NAME ...] [--quick] [--write]

The next step of every series from the last steps of all: CCDS (125 places, 17 variables, 156
months), USHCN (108 places, 3 variables, 1032 months) and Foursquare (56 users in the role of
places, 15 variables, 1200 steps). The first 140, 929 and 1085 steps are for training. Penalties,
ranks, kinds of own inputs and blocks are chosen by five folds of neighbouring training samples. The
errors are those of all steps after that, without an intercept. Own inputs of an output are the past
of the same place, of the same variable, or of both. Each lag is a block.

The published errors are those of Bahadori, Yu and Liu (2014). Their label says NRMSE, and their
code computes the RMSE. Their scripts let the first test steps overlap the training steps, and use
five lags of the small file of Foursquare.

FOLDER holds climateP17.mat, climateP3.mat and norm_4sq_small.mat. They are in the folder ``data``
of the repository Eng-RSMY/MultiSourceTemporal on GitHub, and are not part of this project. The
default is $HOLRR_PUBLISHED_DIR, or ``shared/published`` beside the checkout.

Prints Markdown tables for each data set. With --write they go into docs/benchmarks.md. CCDS takes
about two minutes, USHCN five and Foursquare fifteen.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.model_selection import KFold

from holrr import HOLRRCV, RLSCV
from inputs import answer, rmse, table

ROOT = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("HOLRR_PUBLISHED_DIR", ROOT.parent / "shared" / "published"))
SOURCE = "the folder data of the repository Eng-RSMY/MultiSourceTemporal on GitHub"
FOLDS = KFold(5)
# An axis of a sample of X, (lag, place, variable), and one of y, (place, variable).
OWN = [(1, 0), (2, 1)]


@dataclass(frozen=True)
class Series:
    """A data set with what is published about it.

    Parameters
    ----------
    file : str
    n_lags : int
    n_steps : int
        How many of the steps are for training.
    published : dict
        RMSE by method.
    asked : float or None
        RMSE that the searches with own inputs are asked to reach.
    """

    file: str
    n_lags: int
    n_steps: int
    published: dict[str, float]
    asked: float | None = None


PUBLISHED = ("Tucker", "ADMM", "Forward", "Ortho", "OrthoNL", "Trace")
PUBLISHED += ("MTL l1", "MTL l21", "MTL dirty")


def _published(*errors: float) -> dict[str, float]:
    return dict(zip(PUBLISHED, errors, strict=True))


SETS = {
    "CCDS": Series(
        "climateP17.mat",
        3,
        140,
        _published(0.9438, 0.8448, 0.8810, 0.8325, 0.8555, 0.8632, 0.9105, 0.9171, 1.0950),
        asked=0.812,
    ),
    "USHCN": Series(
        "climateP3.mat",
        3,
        929,
        _published(0.8975, 0.9227, 0.9171, 0.9069, 0.9175, 0.9273, 0.9528, 0.9543, 0.9735),
        asked=0.888,
    ),
    "Foursquare": Series(
        "norm_4sq_small.mat",
        5,
        1085,
        _published(0.1492, 0.1407, 0.1241, 0.1223, 0.1234, 0.1245, 0.1495, 0.1495, 0.1504),
    ),
}


# ---------------------------------------------------------------- data


def read(path: Path) -> np.ndarray:
    """The series of a file, of shape (steps, places, variables)."""
    from scipy.io import loadmat

    parts = [np.asarray(part, dtype=float).T for part in loadmat(path)["series"].ravel()]
    return np.stack(parts, axis=-1)


def windows(series: np.ndarray, n_lags: int) -> tuple[np.ndarray, np.ndarray]:
    """The past of every step, and the step.

    Returns
    -------
    X : array of shape (n, n_lags, places, variables)
        Oldest step first.
    y : array of shape (n, places, variables)
    """
    past = np.moveaxis(sliding_window_view(series[:-1], n_lags, axis=0), -1, 1)
    return past.copy(), series[n_lags:]


# ---------------------------------------------------------------- methods


def methods(X: np.ndarray) -> dict[str, RLSCV | HOLRRCV]:
    """The searches, by name; X is used whole."""
    lags = np.repeat([f"lag {k}" for k in range(X.shape[1], 0, -1)], np.prod(X.shape[2:]))
    variants = {
        "": {},
        ", blocks": {"blocks": lags},
        ", own inputs": {"own": OWN},
        ", own inputs, blocks": {"own": OWN, "blocks": lags},
    }
    return {
        f"{kind.__name__}{name}": kind(cv=FOLDS, fit_intercept=False, input_rank=None, **more)
        for name, more in variants.items()
        for kind in (RLSCV, HOLRRCV)
    }


def chosen(model: RLSCV | HOLRRCV) -> str:
    """Which own inputs the folds have chosen, and which penalties of blocks."""
    found, names = [], {(1, 0): "place", (2, 1): "variable"}
    own = model.best_estimator_.own
    if own is not None:
        found.append("the same " + " and ".join(names[tuple(mode)] for mode in own))
    penalties = model.best_estimator_.alpha
    if isinstance(penalties, dict):
        found.append(", ".join(f"{name} {value:.3g}" for name, value in penalties.items()))
    return "; ".join(found) or "neither"


def compare(series: np.ndarray, what: Series) -> tuple[list[str], list[str]]:
    """Errors of all searches on the steps after training, and those that are published."""
    X, y = windows(series, what.n_lags)
    n = what.n_steps - what.n_lags
    rows = []
    for name, model in methods(X).items():
        start = time.perf_counter()
        model.fit(X[:n], y[:n])
        seconds = time.perf_counter() - start
        error = rmse(model.predict(X[n:]), y[n:])
        asked = what.asked if "own" in name else None
        verdict = ["-", "-"] if asked is None else [f"{asked:g}", answer(error <= asked)]
        rows.append([name, f"{error:.4f}", *verdict, chosen(model), f"{seconds:.0f}"])
        print(f"note: {name}: {error:.4f}, {seconds:.0f} s", flush=True)
    head = ["search", "RMSE", "asked, at most", "met", "chosen own inputs and penalties", "s"]
    ours = table(head, rows)
    best = min(what.published.values())
    shown = [f"**{e:.4f}**" if e == best else f"{e:.4f}" for e in what.published.values()]
    return ours, table(["published", *what.published], [["RMSE", *shown]])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--quick", action="store_true", help="few places and steps")
    parser.add_argument("--write", action="store_true", help="put it into docs/benchmarks.md")
    args = parser.parse_args(arguments)
    absent = [SETS[name].file for name in args.sets if not (args.data / SETS[name].file).is_file()]
    if absent:
        parser.error(
            f"{args.data} has no {', '.join(absent)}; download them from {SOURCE}, and pass their "
            f"folder as --data"
        )
    warnings.filterwarnings("ignore", message="The best penalty")
    lines: list[str] = []
    for name in args.sets:
        what, series = SETS[name], read(args.data / SETS[name].file)
        if args.quick:
            what, series = replace(what, n_steps=70), series[:80, :6, :3]
        ours, published = compare(series, what)
        size = " x ".join(map(str, series.shape))
        lines += [f"{name}, {size} (steps, places, variables), {what.n_lags} lags:", ""]
        lines += [*ours, "", *published, ""]
        print("\n".join(lines[-len(ours) - len(published) - 4 :]), flush=True)
    if args.write:
        from real_data import write_section

        write_section("own inputs", "\n".join(lines))


if __name__ == "__main__":
    main()
