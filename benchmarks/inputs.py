"""Tensor inputs: errors compared with other methods, and the cost of the search.

    python benchmarks/inputs.py [--quick] [--seeds 20] [--write]

Each of the four parts prints a Markdown table of measured values and targets:

- calibration from excitation-emission matrices (45 training samples of 60 x 25, three analytes and
  an interferent) at four levels of noise: ridge regression on flat inputs, RLSCV and HOLRRCV on
  the tensor, scikit-learn's PLSRegression and TensorLy's CP_PLSR, all tuned on the same five folds;
- the same matrices, with the analytes at ten times as outputs;
- white inputs, where the coefficients use all directions of the input modes, or few: the search
  over input ranks, and the search without input ranks;
- the CPU time of both searches, 2000 x (20 x 15) -> 20 x 20; the searches take turns.

Errors are means over seeds, on 200 test samples (1000 for white inputs). With --write the script
writes the tables to docs/developer_benchmarks.md. The linear algebra uses one
thread. With 20 seeds, the script takes about four minutes on one core.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable

import numpy as np
from sklearn.cross_decomposition import PLSRegression
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from holrr import HOLRRCV, RLSCV
from pages import parse_options, write_section

NOISES = (0.05, 0.2, 0.5, 1.0)
MOST_COMPONENTS = 8
N_TRAIN, N_TEST, N_WHITE = 45, 200, 1000
FOLDS = KFold(5)
# Bands of the three analytes and of the interferent, whose concentrations are twice as large.
EMISSION = {"size": 60, "centres": (0.3, 0.45, 0.6, 0.5), "width": 0.12}
EXCITATION = {"size": 25, "centres": (0.35, 0.5, 0.55, 0.4), "width": 0.15}
LARGEST = np.array([1.0, 1.0, 1.0, 2.0])
# Decay rate of each analyte, for the outputs at ten times.
RATES, TIMES, OUTPUT_NOISE = np.array([0.5, 1.5, 4.0]), np.linspace(0, 1, 10), 0.1
# Number of directions of each input mode that the coefficients of white inputs use.
KINDS = {None: "all directions", 2: "two directions of each mode"}

Data = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


# ---------------------------------------------------------------- data


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


def white(
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


# ---------------------------------------------------------------- methods


def flat(A: np.ndarray) -> np.ndarray:
    return A.reshape(len(A), -1)


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def ridge(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    return RLSCV(cv=FOLDS).fit(flat(X), y).predict(flat(X_test))


def ridge_of_tensor(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    return RLSCV(cv=FOLDS).fit(X, y).predict(X_test)


def holrr_of_tensor(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    return HOLRRCV(cv=FOLDS).fit(X, y).predict(X_test)


def holrr_of_flat(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    return HOLRRCV(cv=FOLDS).fit(flat(X), y).predict(flat(X_test))


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


def pls(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    return with_components(pls_path, X, y, X_test)


def cp_plsr(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    return with_components(cp_plsr_path, X, y, X_test)


METHODS = {
    "ridge, flat X": ridge,
    "PLS, flat X": pls,
    "CP_PLSR": cp_plsr,
    "RLSCV, tensor X": ridge_of_tensor,
    "HOLRRCV, flat X": holrr_of_flat,
    "HOLRRCV, tensor X": holrr_of_tensor,
}


def mean_errors(
    make: Callable[[float, int], Data], noise: float, seeds: int, methods: Iterable[str]
) -> dict[str, float]:
    """Return the mean RMSE of each method over the seeds."""
    found: dict[str, list[float]] = {name: [] for name in methods}
    for seed in range(seeds):
        X, y, X_test, y_test = make(noise, seed)
        for name, errors in found.items():
            errors.append(rmse(METHODS[name](X, y, X_test), y_test))
    return {name: statistics.fmean(errors) for name, errors in found.items()}


# ---------------------------------------------------------------- parts


def table(head: list[str], rows: Iterable[list[str]]) -> list[str]:
    align = [":--"] + ["--:"] * (len(head) - 1)
    return [f"| {' | '.join(row)} |" for row in (head, align, *rows)]


def answer(is_met: bool) -> str:
    return "yes" if is_met else "no"


def error_tables(
    columns: dict[float, dict[str, float]], ratios: Iterable[tuple[str, str, float | None, int]]
) -> list[str]:
    """Return tables of errors at each level of noise, and of ratios of two methods.

    Parameters
    ----------
    columns : dict
        Mean errors by method, for each noise.
    ratios : iterable of (method, peer, target, number of levels with a target)
        Ratios of two methods. The target is None if there is none.
    """
    noises = list(columns)
    names = list(columns[noises[0]])
    head = ["RMSE", *(f"noise {noise:g}" for noise in noises)]
    lines = table(head, ([n, *(f"{columns[s][n]:.4f}" for s in noises)] for n in names))
    lines += ["", *table(["ratio", *head[1:], "asked, at most", "met"], [])]
    for name, peer, asked, n_levels in ratios:
        found = [columns[noise][name] / columns[noise][peer] for noise in noises]
        shown = [f"{r:.3f}" for r in found]
        shown = [r if k < n_levels else f"({r})" for k, r in enumerate(shown)]
        verdict = "- | -"
        if asked is not None:
            verdict = f"{asked:g} | {answer(all(r <= asked for r in found[:n_levels]))}"
        lines.append(f"| {name} / {peer} | {' | '.join(shown)} | {verdict} |")
    return lines


def calibration(seeds: int, noises: Iterable[float]) -> list[str]:
    names = [name for name in METHODS if name != "HOLRRCV, flat X"]
    columns = {s: mean_errors(excitation_emission, s, seeds, names) for s in noises}
    ratios = []
    for name in ("RLSCV, tensor X", "HOLRRCV, tensor X"):
        ratios += [(name, "CP_PLSR", 1.05, 4), (name, "ridge, flat X", 0.7, 3)]
    return error_tables(columns, ratios)


def tensor_outputs(seeds: int, noises: Iterable[float]) -> list[str]:
    columns = {s: mean_errors(decay, s, seeds, METHODS) for s in noises}
    peers = {"ridge, flat X": 1.0, "HOLRRCV, flat X": 1.0, "CP_PLSR": None}
    return error_tables(columns, [("HOLRRCV, tensor X", p, r, 4) for p, r in peers.items()])


def white_inputs(seeds: int, sizes: Iterable[int]) -> list[str]:
    """Compare searches with and without input ranks, if low ranks help and if they do not."""
    rows = []
    for (input_rank, what), n in itertools.product(KINDS.items(), sizes):
        errors, chosen = [], Counter[str]()
        for seed in range(seeds):
            X, y, X_test, signal = white(n, (10, 8), (6, 5), input_rank, seed)
            y_test = signal + np.random.default_rng([seed, 1]).normal(size=signal.shape)
            plain = HOLRRCV(cv=FOLDS, input_rank=None).fit(X, y)
            model = HOLRRCV(cv=FOLDS).fit(X, y)
            predicted = [m.predict(X_test) for m in (plain, model)]
            errors.append([rmse(P, truth) for truth in (y_test, signal) for P in predicted])
            chosen[str(getattr(model, "input_rank_", None) or "all of X")] += 1
        of_plain, of_model, *about_signal = np.mean(errors, axis=0)
        rows.append(
            [
                f"{what}, {n} samples",
                f"{of_plain:.4f}",
                f"{of_model:.4f}",
                f"{100 * (of_model / of_plain - 1):+.2f} %",
                f"{100 * (about_signal[1] / about_signal[0] - 1):+.2f} %",
                "; ".join(f"{k} times {rank}" for rank, k in chosen.most_common()),
                answer(of_model <= 1.005 * of_plain),
            ]
        )
    head = ["coefficients use", "flat search, RMSE", "input ranks searched, RMSE", "difference"]
    head += ["difference about the signal", "chosen input ranks", "at most +0.5 %"]
    return table(head, rows)


def times(n: int, modes: tuple[int, int], outputs: tuple[int, int], repeats: int) -> list[str]:
    """Return the median CPU seconds of both searches, which take turns."""
    rows = []
    for input_rank, what in KINDS.items():
        X, y, _, _ = white(n, modes, outputs, input_rank, 0)
        models = [HOLRRCV(input_rank=rank) for rank in (None, "auto")]
        taken = []
        for _ in range(repeats + 1):  # the first round is not counted
            taken.append([])
            for model in models:
                start = time.process_time()
                model.fit(X, y)
                taken[-1].append(time.process_time() - start)
        plain, own = (statistics.median(column) for column in zip(*taken[1:], strict=True))
        size = f"{n} x ({modes[0]} x {modes[1]}) -> {outputs[0]} x {outputs[1]}, {what}"
        rows.append([size, f"{plain:.2f}", f"{own:.2f}", f"{own / plain:.2f}"])
        rows[-1] += ["4", answer(own <= 4 * plain)]
    head = ["HOLRRCV, coefficients use", "flat search, s", "input ranks searched, s", "ratio"]
    return table([*head, "asked, at most", "met"], rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one noise, one seed, small data")
    parser.add_argument("--seeds", type=int, default=20)
    args = parse_options(parser, arguments)
    warnings.filterwarnings("ignore", message="The best penalty")
    warnings.filterwarnings("ignore", message="Maximum number of iterations")  # of PLS, in noise
    seeds, noises = (1, NOISES[1:2]) if args.quick else (args.seeds, NOISES)
    size = (200, (6, 5), (4, 4), 1) if args.quick else (2000, (20, 15), (20, 20), 3)
    parts = {
        "Excitation-emission matrices, three analytes": lambda: calibration(seeds, noises),
        "Outputs: three analytes at ten times": lambda: tensor_outputs(seeds, noises),
        "White inputs (10 x 8) -> 6 x 5": lambda: white_inputs(
            min(seeds, 10), (120,) if args.quick else (40, 100, 300)
        ),
        "Time of the search": lambda: times(*size),
    }
    lines: list[str] = []
    with threadpool_limits(1):
        for title, part in parts.items():
            new = [f"{title}:", "", *part(), ""]
            print("\n".join(new), flush=True)
            lines += new
    if args.write:
        write_section("tensor inputs", "\n".join(lines))


if __name__ == "__main__":
    main()
