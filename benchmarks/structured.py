"""Structured searches: tensor inputs, blocks of inputs and own inputs, and encoding models.

    python benchmarks/structured.py [--quick] [--part spectra white penalties encoding real]
                                    [--jobs 2]

- spectra: excitation-emission matrices of mixtures, 45 training samples of 60 x 25, three analytes
  and an interferent that is twice as strong, at four levels of noise. Outputs are the exact
  concentrations, or the analytes at ten times with noise. All methods choose penalties, ranks and
  numbers of components (up to 8) by the same five folds. Means of 20 seeds.
- white: inputs with noise as strong as the signal, whose coefficients use all directions of the
  input modes, or two directions of each. `HOLRRCV` with and without input ranks, ten seeds.
- penalties: ten simulated problems of 2, 3 and 6 blocks with different effects, 300 samples, 200
  outputs of rank 3. The held-out error of ridge regression with the penalties of `RLSCV` and the
  best of 1,000 random draws of himalaya with 21 common penalties each, and CPU seconds of both with
  100 draws.
- encoding: two feature spaces at four delays, the second nearly useless, 150 voxels of 5 subjects,
  with folds that leave out a run. R2 of two other runs as a share of the R2 of the signal. himalaya
  has 100 draws and a penalty for each output. Means of five seeds.
- real: tasks of `real_data_tasks.py` whose inputs have natural blocks, or modes that the outputs
  share. Searches with blocks, with own inputs, with both and with neither, in percent of the error
  of tuned ridge regression, with standard errors over the outer folds.

All parts together take about 40 minutes.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import KFold, LeaveOneGroupOut, PredefinedSplit
from sklearn.preprocessing import StandardScaler

from common import medians, options_of, percent, quietly, rmse, show
from holrr import HOLRRCV, RLSCV
from real_data import PENALTIES, clear, difference, inner_folds, outer_folds
from real_data_tasks import LAYOUTS, TASKS, Layout, available

FOLDS = KFold(5)
Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def flat(A: np.ndarray) -> np.ndarray:
    return A.reshape(len(A), -1)


# ---------------------------------------------------------------- spectra

NOISES = (0.05, 0.2, 0.5, 1.0)
MOST_COMPONENTS = 8
N_TRAIN, N_TEST = 45, 200
# Bands of the three analytes and of the interferent, whose concentrations are twice as large.
EMISSION = {"size": 60, "centres": (0.3, 0.45, 0.6, 0.5), "width": 0.12}
EXCITATION = {"size": 25, "centres": (0.35, 0.5, 0.55, 0.4), "width": 0.15}
LARGEST = np.array([1.0, 1.0, 1.0, 2.0])
# Decay rate of each analyte, for the outputs at ten times.
RATES, TIMES, OUTPUT_NOISE = np.array([0.5, 1.5, 4.0]), np.linspace(0, 1, 10), 0.1


def bands(size: int, centres: Iterable[float], width: float) -> np.ndarray:
    """Return Gaussian bands on a grid from 0 to 1, of shape (size, n_bands)."""
    distance = np.linspace(0, 1, size)[:, None] - np.asarray(centres)
    return np.exp(-(distance**2) / (2 * width**2))


def excitation_emission(noise: float, seed: int) -> Data:
    """Return fluorescence landscapes of mixtures, and concentrations of their three analytes.

    Returns
    -------
    X, y, X_test, y_test : arrays of shape (n, 60, 25) and (n, 3)
    """
    rng = np.random.default_rng([seed, round(1000 * noise)])
    n = N_TRAIN + N_TEST
    amounts = LARGEST * rng.random(size=(n, 4))
    loads = amounts[:, None, :] * bands(**EMISSION)  # (n, 60, 4)
    X = loads @ bands(**EXCITATION).T + rng.normal(scale=noise, size=(n, 60, 25))
    y = amounts[:, :3]
    return X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:]


def decay(noise: float, seed: int) -> Data:
    """Return the same landscapes, with the analytes at ten times as outputs, (n, 3, 10).

    Outputs of the training samples have noise; outputs of the test samples are exact.
    """
    X, y, X_test, y_test = excitation_emission(noise, seed)
    curves = np.exp(-RATES[:, None] * TIMES)
    y, y_test = y[:, :, None] * curves, y_test[:, :, None] * curves
    rng = np.random.default_rng([seed, 7])
    return X, y + OUTPUT_NOISE * rng.normal(size=y.shape), X_test, y_test


def with_components(
    path: Callable[..., list[np.ndarray]], X: np.ndarray, y: np.ndarray, X_test: np.ndarray
) -> np.ndarray:
    """Predict with the number of components that has the least cross-validated error.

    Parameters
    ----------
    path : callable
        Function that returns the predictions for `X_test` with 1 to `MOST_COMPONENTS` components.
    """
    Y, errors = flat(y), np.zeros(MOST_COMPONENTS)
    for train, test in FOLDS.split(X):
        found = path(X[train], Y[train], X[test])
        errors += [np.mean((predicted - Y[test]) ** 2) for predicted in found]
    return path(X, Y, X_test)[int(np.argmin(errors))].reshape(-1, *y.shape[1:])


def pls_path(X: np.ndarray, Y: np.ndarray, X_test: np.ndarray) -> list[np.ndarray]:
    models = (PLSRegression(k, scale=False) for k in range(1, MOST_COMPONENTS + 1))
    return [model.fit(flat(X), Y).predict(flat(X_test)) for model in models]


def cp_plsr_path(X: np.ndarray, Y: np.ndarray, X_test: np.ndarray) -> list[np.ndarray]:
    """Return predictions of one fit; a new component does not change the earlier ones."""
    from tensorly.regression import CP_PLSR

    model = CP_PLSR(MOST_COMPONENTS).fit(X, Y)
    T, B, Q = model.transform(X_test), model.coef_, model.Y_factors[1]
    return [T[:, :k] @ B[:k, :k] @ Q[:, :k].T + model.Y_mean_ for k in range(1, len(B) + 1)]


METHODS: dict[str, Callable[..., np.ndarray]] = {
    "ridge, flat X": lambda X, y, new: RLSCV(cv=FOLDS).fit(flat(X), y).predict(flat(new)),
    "PLS, flat X": lambda X, y, new: with_components(pls_path, X, y, new),
    "CP_PLSR": lambda X, y, new: with_components(cp_plsr_path, X, y, new),
    "RLSCV, tensor X": lambda X, y, new: RLSCV(cv=FOLDS).fit(X, y).predict(new),
    "HOLRRCV, flat X": lambda X, y, new: HOLRRCV(cv=FOLDS).fit(flat(X), y).predict(flat(new)),
    "HOLRRCV, tensor X": lambda X, y, new: HOLRRCV(cv=FOLDS).fit(X, y).predict(new),
}


@quietly
def one_mixture(make: Callable[[float, int], Data], noise: float, seed: int) -> list[float]:
    X, y, X_test, y_test = make(noise, seed)
    return [rmse(method(X, y, X_test), y_test) for method in METHODS.values()]


def spectra(quick: bool, jobs: int) -> None:
    seeds, noises = (1, NOISES[1:2]) if quick else (20, NOISES)
    for make, what in ((excitation_emission, "three analytes"), (decay, "at ten times")):
        columns = [
            np.mean(Parallel(jobs)(delayed(one_mixture)(make, s, k) for k in range(seeds)), axis=0)
            for s in noises
        ]
        rows = [[m, *(f"{c[i]:.4f}" for c in columns)] for i, m in enumerate(METHODS)]
        show(f"RMSE, {what}", ["method", *(f"noise {noise:g}" for noise in noises)], rows)


# ---------------------------------------------------------------- white inputs

N_WHITE = 1000
# Number of directions of each input mode that the coefficients of white inputs use.
KINDS = {None: "all directions", 2: "two directions of each mode"}


def white_inputs(
    n: int, modes: tuple[int, int], outputs: tuple[int, int], input_rank: int | None, seed: int
) -> Data:
    """Return white inputs with noise as strong as the signal; three directions have an effect.

    Parameters
    ----------
    n : int
        Number of training samples.
    modes, outputs : pairs of int
        Sizes of the modes of inputs and outputs.
    input_rank : int or None
        Number of directions of each input mode that the coefficients use. None uses all: each of
        the three directions is a matrix without structure.
    seed : int
        Seed of the data.

    Returns
    -------
    X, y : arrays of shape (n, m1, m2) and (n, d1, d2)
        Training samples.
    X_test, signal : arrays of shape (N_WHITE, m1, m2) and (N_WHITE, d1, d2)
        Test samples, without noise.
    """
    rng = np.random.default_rng(seed)
    if input_rank is None:
        directions = rng.normal(size=(*modes, 3))
    else:
        P, Q = (np.linalg.qr(rng.normal(size=(m, input_rank)))[0] for m in modes)
        directions = np.einsum("ia,jb,abr->ijr", P, Q, rng.normal(size=(input_rank, input_rank, 3)))
    U, V = (rng.normal(size=(d, 3)) for d in outputs)
    coef = np.einsum("ijr,rst,ks,lt->ijkl", directions, rng.normal(size=(3, 3, 3)), U, V)
    X = rng.normal(size=(n + N_WHITE, *modes))
    signal = np.tensordot(X, coef, 2)
    signal /= signal.std()
    y = signal + rng.normal(size=signal.shape)
    return X[:n], y[:n], X[n:], signal[n:]


@quietly
def one_white(n: int, input_rank: int | None, seed: int) -> tuple[list[float], str]:
    """Return errors without and with input ranks, about outputs and signal, and the chosen rank."""
    X, y, X_test, signal = white_inputs(n, (10, 8), (6, 5), input_rank, seed)
    y_test = signal + np.random.default_rng([seed, 1]).normal(size=signal.shape)
    models = HOLRRCV(cv=FOLDS, input_rank=None).fit(X, y), HOLRRCV(cv=FOLDS).fit(X, y)
    predicted = [model.predict(X_test) for model in models]
    errors = [rmse(P, truth) for truth in (y_test, signal) for P in predicted]
    return errors, str(getattr(models[1], "input_rank_", None) or "all of X")


def white(quick: bool, jobs: int) -> None:
    def rows() -> Iterator[list[str]]:
        for input_rank, what in KINDS.items():
            for n in (120,) if quick else (40, 100, 300):
                work = (delayed(one_white)(n, input_rank, s) for s in range(1 if quick else 10))
                errors, chosen = zip(*Parallel(jobs)(work), strict=True)
                a, b, a_signal, b_signal = np.mean(errors, axis=0)
                changes = [
                    f"{100 * (b / a - 1):+.2f} %",
                    f"{100 * (b_signal / a_signal - 1):+.2f} %",
                ]
                ranks = "; ".join(f"{k} times {rank}" for rank, k in Counter(chosen).most_common())
                yield [f"{what}, {n} samples", f"{a:.4f}", f"{b:.4f}", *changes, ranks]

    head = ["coefficients use", "flat search", "input ranks", "difference", "about the signal"]
    show("White inputs (10 x 8) -> 6 x 5, RMSE", [*head, "chosen input ranks"], rows())


# ---------------------------------------------------------------- penalties of blocks

# Common penalties that himalaya tries with each draw, and parameters of its Dirichlet draws.
ALPHAS = np.logspace(-5, 5, 21)
CONCENTRATIONS = (0.1, 0.3, 1.0, 3.0)


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
    problem: Problem,
    outputs: tuple[int, int],
    rank: int,
    rng: np.random.Generator,
    correlation: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Simulate blocks of inputs with the same output factors and effects of different strength.

    Parameters
    ----------
    n : int
        Number of samples.
    problem : Problem
        Sizes and strengths of the blocks, and noise.
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
    for size, strength in zip(problem.sizes, problem.strengths, strict=True):
        E = rng.normal(size=(n, size))
        for j in range(1, size):
            E[:, j] = correlation * E[:, j - 1] + np.sqrt(1 - correlation**2) * E[:, j]
        parts.append(E)
        part = np.einsum("nr,ir,jr->nij", E @ rng.normal(size=(size, rank)), U, V)
        signal += strength * part / part.std()
    signal /= signal.std()
    y = signal + problem.noise * rng.normal(size=signal.shape)
    return np.concatenate(parts, axis=1), signal, y


def himalaya(groups: np.ndarray, cv: Any, n_iter: Any = 100, **more: Any) -> Any:
    """Return GroupRidgeCV with random draws of the shares of the blocks."""
    from himalaya.ridge import GroupRidgeCV

    names = list(dict.fromkeys(groups))
    options = {"n_iter": n_iter, "alphas": ALPHAS, "progress_bar": False, "warn": False, **more}
    index = np.array([names.index(group) for group in groups])
    return GroupRidgeCV(index, solver_params=options, fit_intercept=True, cv=cv, random_state=0)


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
    scores = model.fit(X, flat(y)).cv_scores_
    return -float(np.max(np.mean(scores, axis=1)))


@quietly
def one_problem(k: int, problem: Problem, n_draws: int, n_timed: int) -> list[str]:
    rng = np.random.default_rng(k)
    X, _, y = simulate(300, problem, (20, 10), 3, rng, correlation=0.3 * (k % 3))
    groups = labels_of(problem.sizes)
    model, peer = RLSCV(cv=FOLDS, blocks=groups), himalaya(groups, FOLDS, n_timed)
    calls = (lambda: model.fit(X, y), lambda: peer.fit(X, flat(y)))
    ours, theirs = medians(calls, 1, clock=time.process_time)
    equal = -RLSCV(cv=FOLDS, selection="min").fit(X, y).best_score_
    drawn = error_of_draws(X, y, groups, draws(n_draws, len(problem.sizes), k))
    errors = [equal, drawn, -model.best_score_]
    cells = [f"{error:.4f}" for error in errors] + [f"{errors[2] / drawn:.4f}"]
    return [str(problem), *cells, f"{theirs:.3g}", f"{ours:.3g}", f"{ours / theirs:.3f}"]


def penalties(quick: bool, jobs: int) -> None:
    n_draws, n_timed = (20, 5) if quick else (1000, 100)
    head = ["sizes; strengths; noise", "equal penalties, MSE", f"best of {n_draws} draws"]
    head += ["RLSCV with blocks", "ratio", f"himalaya, {n_timed} draws, s", "RLSCV, s", "ratio"]
    problems = enumerate(PROBLEMS[: 1 if quick else None])
    rows = (one_problem(k, problem, n_draws, n_timed) for k, problem in problems)
    show("Penalties of blocks", head, rows)


# ---------------------------------------------------------------- encoding model


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
        Run of each sample. The last two are the test runs.
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
        delayed_ = [features[:, longest - k : longest - k + n_times] for k in delays]
        spaces.append(np.concatenate(delayed_, axis=2).reshape(n_runs * n_times, -1))
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


def himalaya_in_dual(data: Encoding, n_iter: Any = 100) -> np.ndarray:
    """Return predictions of the test runs by the search of himalaya with a kernel for each block.

    They equal those of GroupRidgeCV. himalaya recommends this search if there are fewer samples
    than inputs, since each draw takes a fraction of the time.
    """
    from himalaya.kernel_ridge import MultipleKernelRidgeCV

    train, test = ~data.is_test, data.is_test
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
    return model.fit(K, flat(y)).predict(K_test).reshape(-1, *y.shape[1:])


@quietly
def encoding_scores(data: Encoding, n_draws: int) -> dict[str, float]:
    """Return the R2 of each method on the test runs, as a share of the ceiling."""
    test, cv = data.is_test, LeaveOneGroupOut()
    X, y, runs = data.X[~test], data.y[~test], data.runs[~test]
    searches = {
        "RLSCV": RLSCV(cv=cv),
        "HOLRRCV": HOLRRCV(cv=cv),
        "RLSCV, blocks": RLSCV(cv=cv, blocks=data.blocks),
        "HOLRRCV, blocks": HOLRRCV(cv=cv, blocks=data.blocks),
    }
    predicted = {
        name: model.fit(X, y, groups=runs).predict(data.X[test]) for name, model in searches.items()
    }
    predicted["himalaya"] = himalaya_in_dual(data, n_draws)
    return {name: pooled_r2(data.y[test], p) / data.ceiling for name, p in predicted.items()}


def encoding(quick: bool, jobs: int) -> None:
    small = {"n_runs": 5, "n_times": 20, "sizes": (6, 12), "shape": (12, 3)}
    seeds, n_draws, noises = (1, 5, (1.0,)) if quick else (5, 100, (0.5, 1.0, 2.0, 3.0))
    columns = []
    for noise in noises:
        data = [encoding_data(noise, seed, **(small if quick else {})) for seed in range(seeds)]
        found = [encoding_scores(d, n_draws) for d in data]
        columns.append({name: np.mean([f[name] for f in found]) for name in found[0]})
    rows = [[name, *(f"{column[name]:.3f}" for column in columns)] for name in columns[0]]
    show(
        "Encoding model, share of the ceiling of R2", ["", *(f"noise {s:g}" for s in noises)], rows
    )


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


@quietly
def one_fold(name: str, train: np.ndarray, test: np.ndarray, n: int, step: int) -> dict[str, float]:
    """Return the error of each search, all with the same grid and the same inner folds."""
    import xarray as xr

    task, layout = TASKS[name], LAYOUTS[name]
    X, Y = (A[:n] for A in task.load())
    outputs = xr.DataArray(Y, dims=("sample", *layout.outputs))
    scaler = StandardScaler().fit(X[train])
    seen, unseen = (labelled(scaler.transform(X[rows]), layout) for rows in (train, test))
    same = {"alphas": len(train) * PENALTIES[::step], "cv": inner_folds(task.rows)}
    same["input_rank"] = None
    blocks = {} if layout.blocks is None else {"blocks": layout.blocks}
    own = {} if not layout.own else {"own": list(layout.own)}
    searches = {"ridge": RLSCV(**same), "stack": HOLRRCV(**same)}
    for words, more in (("blocks", blocks), ("own inputs", own)):
        if more:
            searches[words] = HOLRRCV(**same, **more)
    if blocks and own:
        searches["both"] = HOLRRCV(**same, **blocks, **own)
    return {
        method: rmse(search.fit(seen, outputs[train]).predict(unseen), Y[test])
        for method, search in searches.items()
    }


def real(quick: bool, jobs: int) -> None:
    shown = ("stack", "blocks", "own inputs", "both")

    def rows() -> Iterator[list[str]]:
        for name in ("EEG",) if quick else LAYOUTS:
            if not available(name):
                continue
            n = 120 if quick else len(TASKS[name].load()[0])
            folds = outer_folds(TASKS[name], n, 3 if quick else 5)
            step = 4 if quick else 1
            found = Parallel(jobs)(delayed(one_fold)(name, *fold, n, step) for fold in folds)
            errors = {m: np.array([fold[m] for fold in found]) for m in found[0]}
            cells = []
            for peer, methods in (("ridge", shown), ("stack", shown[1:])):
                for m in methods:
                    change = difference(errors[m], errors[peer]) if m in errors else None
                    cells.append("" if change is None else percent(*change, bold=clear(*change)))
            yield [name, LAYOUTS[name].what, *cells]

    head = ["task", "blocks; own inputs", *(f"{m} / ridge, %" for m in shown)]
    show("Real data", [*head, *(f"{m} / stack, %" for m in shown[1:])], rows())


PARTS = {
    "spectra": spectra,
    "white": white,
    "penalties": penalties,
    "encoding": encoding,
    "real": real,
}


def main(arguments: list[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--part", nargs="+", choices=PARTS, default=list(PARTS))
    args = parser.parse_args(arguments)
    for part in args.part:
        PARTS[part](args.quick, args.jobs)


if __name__ == "__main__":
    main()
