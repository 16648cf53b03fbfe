"""Penalties for blocks of inputs: errors, intervals and times compared with himalaya.

    python benchmarks/blocks.py [--part NAME ...] [--quick] [--seeds N] [--write]

Each of the six parts prints a Markdown table of measured values and targets:

- penalties: ten simulated problems of 2, 3 and 6 blocks, 300 samples, 200 outputs. The table
  compares the held-out error of ridge regression with the penalties of RLSCV with the best of 1,000
  random draws of himalaya with 21 common penalties each, and the time of RLSCV with that of
  GroupRidgeCV of himalaya with 100 draws. Folds are the same. In the comparison of errors,
  penalties are common to all outputs;
- encoding: two feature spaces at four delays, the second nearly useless, 150 voxels of 5 subjects,
  with folds that leave out a run. The table has the R2 of two other runs as a share of the R2 of
  the true signal. himalaya has 100 draws, and penalties for each output;
- white: one block of 20 inputs with an effect and ten blocks of 20 without, 120 samples. The table
  has the test error as a multiple of the error of a model with only the first block;
- coverage: intervals of 90 percent with 60 samples and six blocks of ten inputs;
- time: HOLRRCV with six blocks and without, 2000 x 300 -> 20 x 20;
- real: tasks of `real_data.py` whose inputs have natural blocks, or modes that the outputs share.
  The table has the error of searches with blocks, with own inputs, with both and with neither, in
  percent of the error of tuned ridge regression, with standard errors over the outer folds.

Times are CPU seconds on one thread; the methods take turns. With --write the script writes the
tables of all parts to docs/developer_benchmarks.md. This takes about forty minutes, most of
them for the draws of himalaya.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold, LeaveOneGroupOut, PredefinedSplit
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from holrr import HOLRRCV, RLSCV
from inputs import answer, rmse, table
from pages import parse_options, write_section
from real_data import PENALTIES, clear, difference, outer_folds
from real_data_tasks import (
    LAYOUTS,
    METEO,
    TASKS,
    Layout,
    available,
    set_meteo_folder,
    unavailable,
)

FOLDS = KFold(5)
# Common penalties that himalaya tries with each draw, and parameters of its Dirichlet draws.
ALPHAS = np.logspace(-5, 5, 21)
CONCENTRATIONS = (0.1, 0.3, 1.0, 3.0)
KINDS = ("entry", "pooled", "simultaneous")


# ---------------------------------------------------------------- data


@dataclass(frozen=True)
class Problem:
    """Blocks of inputs with different effects on 20 x 10 outputs.

    Parameters
    ----------
    sizes : tuple of int
        Number of inputs of each block.
    strengths : tuple of float
        Standard deviation of the part of the outputs that is due to each block, up to a factor.
    noise : float
        Standard deviation of the noise, in units of that of the signal.
    """

    sizes: tuple[int, ...]
    strengths: tuple[float, ...]
    noise: float = 1.0

    def __str__(self) -> str:
        sizes = " + ".join(map(str, self.sizes))
        return f"{sizes}; {', '.join(f'{s:g}' for s in self.strengths)}; noise {self.noise:g}"


PROBLEMS = (
    Problem((32, 32), (1, 0.1)),
    Problem((24, 100), (1, 0.3)),
    Problem((100, 60), (1, 1), 2.0),
    Problem((60, 120), (1, 0.0)),
    Problem((20, 40, 60), (1, 0.5, 0.1)),
    Problem((70, 70, 70), (1, 0.2, 0.0)),
    Problem((100, 60, 40), (0.1, 0.5, 1), 2.0),
    Problem((12, 12, 12, 12, 12, 12), (1, 0.7, 0.4, 0.2, 0.1, 0)),
    Problem((37, 37, 37, 37, 37, 37), (1, 0.5, 0.25, 0.1, 0.05, 0)),
    Problem((10, 20, 30, 40, 50, 60), (0.1, 0, 1, 0, 0.5, 0.2), 2.0),
)


def labels_of(sizes: Iterable[int]) -> np.ndarray:
    """Return the label of the block of each column."""
    sizes = list(sizes)
    return np.repeat([f"block {k}" for k in range(len(sizes))], sizes)


def simulate(
    n: int,
    sizes: Iterable[int],
    strengths: Iterable[float],
    outputs: tuple[int, int],
    rank: int,
    noise: float,
    rng: np.random.Generator,
    correlation: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate blocks of inputs with the same output factors and effects of different strength.

    Parameters
    ----------
    n : int
        Number of samples.
    sizes, strengths, noise
        Parameters of `Problem`.
    outputs : pair of int
        Shape of the outputs.
    rank : int
        Number of directions of each block with an effect, and of each output mode.
    rng : Generator
        Random generator.
    correlation : float, default=0.0
        Correlation of neighbouring columns of a block, which are a stationary process.

    Returns
    -------
    X : array of shape (n, n_columns)
        Inputs.
    signal, y : arrays of shape (n, d1, d2)
        Signal of standard deviation one, and outputs.
    """
    U, V = (rng.normal(size=(d, rank)) for d in outputs)
    parts, signal = [], np.zeros((n, *outputs))
    for size, strength in zip(sizes, strengths, strict=True):
        E = rng.normal(size=(n, size))
        for j in range(1, size):
            E[:, j] = correlation * E[:, j - 1] + np.sqrt(1 - correlation**2) * E[:, j]
        parts.append(E)
        part = np.einsum("nr,ir,jr->nij", E @ rng.normal(size=(size, rank)), U, V)
        signal += strength * part / part.std()
    signal /= signal.std()
    y = signal + noise * rng.normal(size=signal.shape)
    return np.concatenate(parts, axis=1), signal, y


@dataclass(frozen=True, eq=False)
class Encoding:
    """Encoding model: responses of voxels of several subjects to delayed features of a stimulus.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        All delays of the first feature space, then those of the second.
    y : array of shape (n_samples, n_voxels, n_subjects)
        Responses.
    blocks : array of shape (n_features,)
        Feature space of each column.
    runs : array of shape (n_samples,)
        Run of each sample.
    ceiling : float
        R2 of the signal on the test runs.
    """

    X: np.ndarray
    y: np.ndarray
    blocks: np.ndarray
    runs: np.ndarray
    ceiling: float

    @property
    def is_test(self) -> np.ndarray:
        """Whether each sample belongs to one of the last two runs."""
        return self.runs >= self.runs.max() - 1


def encoding_data(
    noise: float,
    seed: int,
    n_runs: int = 8,
    n_times: int = 60,
    sizes: tuple[int, ...] = (60, 120),
    shape: tuple[int, int] = (150, 5),
) -> Encoding:
    """Simulate feature spaces that vary slowly in each run, the last of them nearly useless.

    Features are autoregressive with coefficient 0.7 and come at delays of one to four steps. The
    responses have three components. The feature spaces have effects of 1 and 0.05 on them.
    """
    rng = np.random.default_rng(seed)
    delays, rank, strengths = (1, 2, 3, 4), 3, (1.0, *[0.05] * (len(sizes) - 1))
    spaces, longest = [], max(delays)
    for size in sizes:
        features = rng.normal(size=(n_runs, n_times + longest, size))
        for t in range(1, n_times + longest):
            features[:, t] = 0.7 * features[:, t - 1] + np.sqrt(1 - 0.7**2) * features[:, t]
        delayed = [features[:, longest - k : longest - k + n_times] for k in delays]
        spaces.append(np.concatenate(delayed, axis=2).reshape(n_runs * n_times, -1))
    voxels, subjects = (rng.normal(size=(d, rank)) for d in shape)
    scores = 0.0
    for space, strength in zip(spaces, strengths, strict=True):
        d = space.shape[1]
        scores = scores + strength * (space @ rng.normal(size=(d, rank)) / np.sqrt(d))
    signal = np.einsum("nr,vr,sr->nvs", scores, voxels, subjects)
    signal /= signal.std()
    y = signal + noise * rng.normal(size=signal.shape)
    runs = np.repeat(np.arange(n_runs), n_times)
    blocks = np.repeat([f"space {k}" for k in range(len(sizes))], [S.shape[1] for S in spaces])
    test = runs >= n_runs - 2
    return Encoding(np.hstack(spaces), y, blocks, runs, pooled_r2(y[test], signal[test]))


def pooled_r2(y: np.ndarray, predicted: np.ndarray) -> float:
    """Return the explained share of the variance of all outputs."""
    return 1 - float(np.sum((y - predicted) ** 2) / np.sum((y - y.mean(axis=0)) ** 2))


# ---------------------------------------------------------------- himalaya


def himalaya(groups: np.ndarray, cv: Any, n_iter: Any = 100, **more: Any) -> Any:
    """Return GroupRidgeCV with random draws of the shares of the blocks."""
    from himalaya.ridge import GroupRidgeCV

    names = list(dict.fromkeys(groups))
    options = {"n_iter": n_iter, "alphas": ALPHAS, "progress_bar": False, "warn": False, **more}
    index = np.array([names.index(group) for group in groups])
    return GroupRidgeCV(index, solver_params=options, fit_intercept=True, cv=cv, random_state=0)


def himalaya_in_dual(
    data: Encoding, train: np.ndarray, test: np.ndarray, n_iter: Any = 100
) -> np.ndarray:
    """Return the predictions of the search of himalaya with a linear kernel for each block.

    They equal those of GroupRidgeCV. himalaya recommends this search if there are fewer samples
    than inputs, since each draw takes a fraction of the time.
    """
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    parts = [data.X[:, data.blocks == name] for name in dict.fromkeys(data.blocks)]
    K, K_test = (np.stack([A[rows] @ A[train].T for A in parts]) for rows in (train, test))
    model = MultipleKernelRidgeCV(
        kernels="precomputed",
        solver_params={"n_iter": n_iter, "alphas": ALPHAS, "progress_bar": False},
        fit_intercept=True,
        cv=PredefinedSplit(data.runs[train]),
        random_state=0,
    )
    y = data.y[train]
    return model.fit(K, y.reshape(len(y), -1)).predict(K_test).reshape(-1, *y.shape[1:])


def draws(n: int, n_blocks: int, seed: int) -> np.ndarray:
    """Return shares of the blocks: equal shares, then Dirichlet draws of several concentrations."""
    rng = np.random.default_rng(seed)
    found = [
        rng.dirichlet(np.full(n_blocks, CONCENTRATIONS[k % len(CONCENTRATIONS)])) for k in range(n)
    ]
    found[0] = np.full(n_blocks, 1 / n_blocks)
    return np.array(found)


def error_of_draws(X: np.ndarray, y: np.ndarray, groups: np.ndarray, shares: np.ndarray) -> float:
    """Return the least held-out error of ridge regression over draws and common penalties."""
    model = himalaya(groups, FOLDS, shares, local_alpha=False)
    scores = model.fit(X, y.reshape(len(y), -1)).cv_scores_
    return -float(np.max(np.mean(scores, axis=1)))


# ---------------------------------------------------------------- parts


def seconds(run: Callable[..., Any], *args: Any) -> float:
    """Return the CPU seconds of a call."""
    start = time.process_time()
    run(*args)
    return time.process_time() - start


def found_penalties(
    problems: Iterable[Problem], n_draws: int, n_timed: int, repeats: int
) -> list[str]:
    """Compare the penalties of RLSCV with random draws, and the times of both.

    Parameters
    ----------
    problems : iterable of Problem
        Problems to solve.
    n_draws : int
        Number of draws for the comparison of errors.
    n_timed : int
        Number of draws of himalaya for the comparison of times.
    repeats : int
        Number of turns.
    """
    rows = []
    for k, problem in enumerate(problems):
        rng = np.random.default_rng(k)
        how = (20, 10), 3, problem.noise, rng
        X, _, y = simulate(300, problem.sizes, problem.strengths, *how, correlation=0.3 * (k % 3))
        groups, flat = labels_of(problem.sizes), y.reshape(len(y), -1)
        model, peer = RLSCV(cv=FOLDS, blocks=groups), himalaya(groups, FOLDS, n_timed)
        equal = float(RLSCV(cv=FOLDS).fit(X, y).cv_results_["mean_mse"].min())
        taken = []
        for _ in range(repeats):
            taken.append([seconds(model.fit, X, y), seconds(peer.fit, X, flat)])
        ours, theirs = (statistics.median(column) for column in zip(*taken, strict=True))
        error = -float(model.best_score_)
        drawn = error_of_draws(X, y, groups, draws(n_draws, len(problem.sizes), k))
        rows.append(
            [str(problem), f"{equal:.4f}", f"{drawn:.4f}", f"{error:.4f}", f"{error / drawn:.4f}"]
        )
        rows[-1] += ["1", answer(error <= drawn), f"{theirs:.3g}", f"{ours:.3g}"]
        rows[-1] += [f"{ours / theirs:.3f}", "0.2", answer(ours <= 0.2 * theirs)]
    head = ["sizes of blocks; strengths; noise", "equal penalties, MSE", f"best of {n_draws} draws"]
    head += ["RLSCV with blocks", "ratio", "asked, at most", "met"]
    head += [
        f"himalaya, {n_timed} draws, s",
        "RLSCV with blocks, s",
        "ratio",
        "asked, at most",
        "met",
    ]
    return table(head, rows)


def encoding_scores(data: Encoding, n_draws: int) -> dict[str, float]:
    """Return the R2 of each method on the test runs, as a share of the ceiling."""
    test = data.is_test
    X, y, runs = data.X[~test], data.y[~test], data.runs[~test]
    cv = LeaveOneGroupOut()
    searches = {
        "RLSCV": RLSCV(cv=cv),
        "HOLRRCV": HOLRRCV(cv=cv),
        "RLSCV, blocks": RLSCV(cv=cv, blocks=data.blocks),
        "HOLRRCV, blocks": HOLRRCV(cv=cv, blocks=data.blocks),
    }
    found = {}
    for name, model in searches.items():
        predicted = model.fit(X, y, groups=runs).predict(data.X[test])
        found[name] = pooled_r2(data.y[test], predicted) / data.ceiling
    predicted = himalaya_in_dual(data, ~test, test, n_draws)
    found["himalaya"] = pooled_r2(data.y[test], predicted) / data.ceiling
    return found


ASKED_SHARES = {0.5: 0.95, 1.0: 0.93, 2.0: 0.85, 3.0: 0.75}


def encoding(seeds: int, noises: Iterable[float], n_draws: int, **size: Any) -> list[str]:
    """Return the mean shares of the ceiling of R2 at each level of noise."""
    columns: dict[float, dict[str, float]] = {}
    for noise in noises:
        found = [encoding_scores(encoding_data(noise, s, **size), n_draws) for s in range(seeds)]
        columns[noise] = {name: statistics.fmean(f[name] for f in found) for name in found[0]}
        print(f"note: noise {noise:g}: {columns[noise]}", flush=True)
    names = next(iter(columns.values()))
    rows = [[name, *(f"{columns[noise][name]:.3f}" for noise in columns)] for name in names]
    ours = {noise: columns[noise]["HOLRRCV, blocks"] for noise in columns}
    rows.append(["asked of HOLRRCV, blocks, at least", *(f"{ASKED_SHARES[s]:g}" for s in columns)])
    rows.append(["met", *(answer(r2 >= ASKED_SHARES[s]) for s, r2 in ours.items())])
    return table(["share of the ceiling of R2", *(f"noise {s:g}" for s in columns)], rows)


def white(seeds: int) -> list[str]:
    """Return errors with ten useless blocks, divided by errors with only the useful block."""
    sizes, strengths, n = [20] * 11, [1.0] + [0.0] * 10, 120
    groups, ratios = labels_of(sizes), []
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, _, y = simulate(n + 1000, sizes, strengths, (6, 5), 2, 1.0, rng)
        knowing = HOLRRCV(cv=FOLDS).fit(X[:n, :20], y[:n])
        least = rmse(knowing.predict(X[n:, :20]), y[n:])
        searches = {
            "HOLRRCV": HOLRRCV(cv=FOLDS),
            "RLSCV, blocks": RLSCV(cv=FOLDS, blocks=groups),
            "HOLRRCV, blocks": HOLRRCV(cv=FOLDS, blocks=groups),
        }
        ratios.append(
            {
                name: rmse(model.fit(X[:n], y[:n]).predict(X[n:]), y[n:]) / least
                for name, model in searches.items()
            }
        )
    rows = []
    for name in ratios[0]:
        found = np.array([ratio[name] for ratio in ratios])
        asked = name == "HOLRRCV, blocks"
        rows.append([name, f"{found.mean():.4f}", f"{found.max():.4f}"])
        rows[-1] += ["1.02", answer(found.mean() <= 1.02)] if asked else ["-", "-"]
    head = ["search", "RMSE / that of knowing the block", "largest of a seed", "asked, at most"]
    return table([*head, "met"], rows)


def covered(model: RLSCV | HOLRRCV, X: np.ndarray, y: np.ndarray) -> list[float]:
    """Return the coverage of intervals of 90 percent: of entries, or of samples (simultaneous)."""
    found = []
    for kind in KINDS:
        lower, upper = model.predict_interval(X, 0.9, kind)
        inside = ((lower <= y) & (y <= upper)).reshape(len(y), -1)
        found.append(float(np.mean(inside.all(axis=1) if kind == "simultaneous" else inside)))
    return found


def intervals(seeds: int) -> list[str]:
    """Return the coverage of intervals of 90 percent with few samples and six blocks."""
    sizes, strengths, n = [10] * 6, (1, 0.7, 0.4, 0.2, 0.1, 0), 60
    groups = labels_of(sizes)
    searches = {
        "RLSCV": RLSCV(),
        "HOLRRCV": HOLRRCV(),
        "RLSCV, blocks": RLSCV(blocks=groups),
        "HOLRRCV, blocks": HOLRRCV(blocks=groups),
    }
    found: dict[str, list[list[float]]] = {name: [] for name in searches}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        X, _, y = simulate(n + 1000, sizes, strengths, (5, 4), 2, 1.0, rng)
        for name, model in searches.items():
            found[name].append(covered(model.fit(X[:n], y[:n]), X[n:], y[n:]))
    rows = []
    for name, shares in found.items():
        means = 100 * np.mean(shares, axis=0)
        verdict = ["-", "-"]
        if "blocks" in name:
            verdict = ["87 to 93", answer(bool(np.all(np.abs(means - 90) <= 3)))]
        rows.append([name, *(f"{mean:.1f}" for mean in means), *verdict])
    return table(["search", *KINDS, "asked", "met"], rows)


def times(n: int, size: int, outputs: tuple[int, int], repeats: int) -> list[str]:
    """Return the median CPU seconds of searches with six blocks and without; they take turns."""
    sizes, strengths = [size] * 6, (1, 0.7, 0.4, 0.2, 0.1, 0)
    rng = np.random.default_rng(0)
    X, _, y = simulate(n, sizes, strengths, outputs, 3, 1.0, rng)
    models = [HOLRRCV(), HOLRRCV(blocks=labels_of(sizes))]
    taken = [[seconds(model.fit, X, y) for model in models] for _ in range(repeats + 1)]
    plain, ours = (statistics.median(column) for column in zip(*taken[1:], strict=True))
    what = f"{n} x {6 * size} -> {outputs[0]} x {outputs[1]}, six blocks"
    row = [
        what,
        f"{plain:.3g}",
        f"{ours:.3g}",
        f"{ours / plain:.2f}",
        "5",
        answer(ours <= 5 * plain),
    ]
    head = ["HOLRRCV", "without blocks, s", "with blocks, s", "ratio", "asked, at most", "met"]
    return table(head, [row])


# ---------------------------------------------------------------- real data


def labelled(X: np.ndarray, layout: Layout) -> Any:
    """Return flat inputs as arrays with named modes."""
    import xarray as xr

    found, start = {}, 0
    for name, modes in layout.inputs.items():
        sizes = tuple(modes.values())
        stop = start + int(np.prod(sizes))
        found[name] = xr.DataArray(X[:, start:stop].reshape(-1, *sizes), dims=("sample", *modes))
        start = stop
    return found if len(found) > 1 else next(iter(found.values()))


def real_methods(n: int, rows: str, layout: Layout, step: int) -> dict[str, Any]:
    """Return the searches by name, all with the same grid and the same inner folds."""
    cv = FOLDS if rows == "blocks" else KFold(5, shuffle=True, random_state=0)
    same = {"alphas": n * PENALTIES[::step], "cv": cv, "input_rank": None, "sample_dim": "sample"}
    blocks = {} if layout.blocks is None else {"blocks": layout.blocks}
    own = {} if not layout.own else {"own": list(layout.own)}
    found = {"ridge": RLSCV(**same), "stack": HOLRRCV(**same)}
    for name, more in (("blocks", blocks), ("own inputs", own)):
        if more:
            found[name] = HOLRRCV(**same, **more)
    if blocks and own:
        found["both"] = HOLRRCV(**same, **blocks, **own)
    return found


def real_errors(name: str, n_folds: int, quick: bool) -> dict[str, np.ndarray]:
    """Return the RMSE of each search on each outer fold of a task."""
    import xarray as xr

    task, layout = TASKS[name], LAYOUTS[name]
    X, Y = task.load()
    if quick:
        X, Y = X[:120], Y[:120]
    Y = xr.DataArray(Y, dims=("sample", *layout.outputs))
    found: dict[str, list[float]] = {}
    for train, test in outer_folds(task, len(X), n_folds):
        scaler = StandardScaler().fit(X[train])
        seen, unseen = (labelled(scaler.transform(X[rows]), layout) for rows in (train, test))
        searches = real_methods(len(train), task.rows, layout, 4 if quick else 1)
        for method, search in searches.items():
            predicted = search.fit(seen, Y[train]).predict(unseen)
            error = rmse(np.asarray(predicted), Y[test].values)
            found.setdefault(method, []).append(error)
    return {method: np.array(errors) for method, errors in found.items()}


def real(names: Iterable[str], n_folds: int, quick: bool) -> list[str]:
    """Return differences to ridge and to the stack in percent, with standard errors."""
    rows, shown = [], ("stack", "blocks", "own inputs", "both")
    for name in names:
        task, layout = TASKS[name], LAYOUTS[name]
        if not available(task):
            print(f"note: {name} is left out, since {task.package} is not available")
            continue
        errors = real_errors(name, n_folds, quick)
        of_ridge = {m: difference(errors[m], errors["ridge"]) for m in shown if m in errors}
        of_stack = {m: difference(errors[m], errors["stack"]) for m in shown[1:] if m in errors}
        worse = [m for m, (p, e) in of_stack.items() if p > 0 and clear({"percent": p, "error": e})]
        cells = [_difference(of_ridge.get(m)) for m in shown]
        cells += [_difference(of_stack.get(m)) for m in shown[1:]]
        rows.append([name, layout.what, *cells, f"no: {', '.join(worse)}" if worse else "yes"])
        print(f"note: {name}: {rows[-1]}", flush=True)
    head = ["task", "blocks; own inputs", *(f"{m} / ridge, %" for m in shown)]
    head += [*(f"{m} / stack, %" for m in shown[1:]), "never clearly worse than the stack"]
    return table(head, rows)


def _difference(found: tuple[float, float] | None) -> str:
    if found is None:
        return ""
    return f"{round(found[0], 2) + 0.0:+.2f} ± {found[1]:.2f}".replace("-", "−")


# ---------------------------------------------------------------- all parts


def parts(quick: bool, seeds: int | None) -> Iterator[tuple[str, str, Callable[[], list[str]]]]:
    """Return name, title and function of every part."""
    if quick:
        small = {"n_runs": 5, "n_times": 20, "sizes": (6, 12), "shape": (12, 3)}
        yield "penalties", "Penalties", lambda: found_penalties(PROBLEMS[:1], 20, 5, 1)
        yield "encoding", "Encoding", lambda: encoding(1, (1.0,), 5, **small)
        yield "white", "White blocks", lambda: white(1)
        yield "coverage", "Coverage", lambda: intervals(1)
        yield "time", "Time", lambda: times(200, 5, (4, 4), 1)
        yield "real", "Real data", lambda: real(["EEG"], 3, True)
        return
    yield (
        "penalties",
        "Penalties that are found, and the time that it takes",
        lambda: found_penalties(PROBLEMS[:seeds], 1000, 100, 3),
    )
    yield "encoding", "Encoding model", lambda: encoding(seeds or 5, ASKED_SHARES, 100)
    yield "white", "One block of eleven matters", lambda: white(seeds or 20)
    yield "coverage", "Coverage of intervals of 90 percent", lambda: intervals(seeds or 40)
    yield "time", "Time of the search", lambda: times(2000, 50, (20, 20), 5)
    yield "real", "Real data", lambda: real(LAYOUTS, 5, False)


PARTS = ("penalties", "encoding", "white", "coverage", "time", "real")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true", help="few seeds, small data")
    parser.add_argument("--seeds", type=int, help="of each part; of problems, for penalties")
    parser.add_argument("--meteo", default=METEO, help="folder of the Met Office files")
    args = parse_options(parser, arguments)
    if args.write and args.part != list(PARTS):
        parser.error("--write needs all parts and cannot be combined with --part")
    set_meteo_folder(args.meteo)
    if args.write and unavailable(LAYOUTS):
        parser.error(f"--write needs the data of all tasks, also of {unavailable(LAYOUTS)}")
    warnings.filterwarnings("ignore", message="The best penalty")
    lines: list[str] = []
    with threadpool_limits(1):
        for name, title, part in parts(args.quick, args.seeds):
            if name not in args.part:
                continue
            start = time.perf_counter()
            new = [f"{title}:", "", *part(), ""]
            print("\n".join(new), flush=True)
            print(f"note: {name} took {time.perf_counter() - start:.0f} s\n", flush=True)
            lines += new
    if args.write:
        write_section("blocks", "\n".join(lines))


if __name__ == "__main__":
    main()
