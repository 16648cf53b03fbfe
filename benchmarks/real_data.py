"""Errors of ridge regression, low rank, best multilinear rank and stack on real data.

    python benchmarks/real_data.py [--quick] [--tasks NAME ...] [--jobs 2] [--csv FILE]

The tasks are those of `real_data_tasks.py`. Each has five outer folds. If rows are exchangeable,
the folds are shuffled. Otherwise they are blocks of neighbouring rows, and rows that overlap the
test block are left out of the training set. Inputs are standardised on the training rows. Five
inner folds of the same kind choose penalties, ranks and kernels. All linear methods choose from the
same 25 penalties over twelve decades, and all kernel methods from the same 19 penalties and the
default widths. RidgeCV of scikit-learn, with the same grid, is a check.

Tasks with fewer than 60 samples have three repetitions of the outer folds: three shuffles, or
blocks that start a third of a block later each time. Repetitions test the same samples and are not
independent, so the standard error is that of one repetition: the root of the mean over the
repetitions of the squared standard errors over its folds.

The script prints a table of differences in percent and, for each method, how often it has a lower
error than its peer and the geometric mean of the ratios of the RMSE. --csv also writes the errors
of all folds to a file, for comparisons of two versions of the library. It takes twenty minutes.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler

from common import options_of, percent, quietly, rmse, show
from holrr import HOLRRCV, LRRCV, RLSCV, KernelHOLRRCV, KernelRLSCV
from real_data_tasks import TASKS, Task, available

PENALTIES = np.logspace(-8, 4, 25)  # times the number of samples: the mean eigenvalue of X'X
KERNEL_PENALTIES = np.logspace(-7, 2, 19)  # times one: kernels have at most that on the diagonal
MAX_KERNEL_SAMPLES = 1500
# Tasks with fewer samples than SMALL have REPETITIONS of the outer folds.
SMALL, REPETITIONS = 60, 3
# Methods, and the method with which each is compared.
AGAINST = {
    "ridge": "mean",
    "scikit-learn": "ridge",
    "LRR": "ridge",
    "best rank": "ridge",
    "stack": "ridge",
    "kernel ridge": "ridge",
    "kernel best rank": "kernel ridge",
    "kernel stack": "kernel ridge",
}
# Errors of a method, of shape (repetitions, folds), by task and method.
Errors = dict[str, dict[str, np.ndarray]]


def inner_folds(rows: str) -> KFold:
    return KFold(5) if rows == "blocks" else KFold(5, shuffle=True, random_state=0)


def methods(n: int, rows: str, kernels: bool, step: int = 1) -> dict:
    """Return the searches by name; searches of one kind have the same grid and inner folds."""
    cv, alphas = inner_folds(rows), n * PENALTIES[::step]
    found = {
        "ridge": RLSCV(alphas, cv=cv),
        "scikit-learn": RidgeCV(alphas, cv=cv, scoring="neg_mean_squared_error"),
        "LRR": LRRCV(alphas, cv=cv, selection="min"),
        "best rank": HOLRRCV(alphas, cv=cv, selection="min"),
        "stack": HOLRRCV(alphas, cv=cv, selection="stack"),
    }
    if kernels:
        alphas = n * KERNEL_PENALTIES[::step]
        found["kernel ridge"] = KernelRLSCV(alphas, cv=cv)
        found["kernel best rank"] = KernelHOLRRCV(alphas, cv=cv, selection="min")
        found["kernel stack"] = KernelHOLRRCV(alphas, cv=cv, selection="stack")
    return found


def outer_folds(
    task: Task, n: int, n_folds: int, repetition: int = 0
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield training and test rows; training rows share no observations with the test block.

    Parameters
    ----------
    task : Task
        Task whose rows are split.
    n, n_folds : int
        Number of samples and of folds.
    repetition : int, default=0
        Number of the repetition. Each repetition tests every row once. Shuffled rows have another
        order in each repetition. Blocks start a third of a block later each time, and the last
        block continues with the first rows.

    Yields
    ------
    train, test : arrays of int
        Indices in increasing order.
    """
    shuffle = task.rows == "shuffled"
    shift = 0 if shuffle else round(repetition * n / (n_folds * REPETITIONS))
    folds = KFold(n_folds, shuffle=shuffle, random_state=repetition if shuffle else None)
    for train, test in folds.split(np.empty(n)):
        train, test = (np.sort((rows + shift) % n) for rows in (train, test))
        if not shuffle:
            train = train[np.abs(train[:, None] - test).min(axis=1) > task.overlap]
        yield train, test


@quietly
def one_fold(task: Task, X, Y, train, test, step: int) -> dict[str, float]:
    """Return the error of every method."""
    scaler = StandardScaler().fit(X[train])
    X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
    found = {"mean": rmse(np.broadcast_to(Y[train].mean(axis=0), Y[test].shape), Y[test])}
    searches = methods(len(train), task.rows, len(X) <= MAX_KERNEL_SAMPLES, step)
    for name, search in searches.items():
        outputs = Y[train].reshape(len(train), -1) if name == "scikit-learn" else Y[train]
        found[name] = rmse(search.fit(X_train, outputs).predict(X_test), Y[test])
    return found


def one_task(name: str, quick: bool, jobs: int) -> dict[str, np.ndarray]:
    """Return the errors of each method, of shape (repetitions, folds)."""
    task, n_folds, step = TASKS[name], 3 if quick else 5, 4 if quick else 1
    X, Y = task.load()
    if quick:
        X, Y = X[:120], Y[:120]
    repetitions = REPETITIONS if len(X) < SMALL else 1
    folds = Parallel(n_jobs=jobs)(
        delayed(one_fold)(task, X, Y, train, test, step)
        for repetition in range(repetitions)
        for train, test in outer_folds(task, len(X), n_folds, repetition)
    )
    return {
        method: np.reshape([fold[method] for fold in folds], (repetitions, n_folds))
        for method in folds[0]
    }


def difference(errors: np.ndarray, peer: np.ndarray) -> tuple[float, float]:
    """Return the mean difference over the folds in percent, and its standard error.

    Parameters
    ----------
    errors, peer : arrays of shape (n_folds,) or (n_repetitions, n_folds)
        Errors of two methods.
    """
    found = np.atleast_2d(100 * (errors / peer - 1))
    # Repetitions are not independent: they test the same samples with nearly the same training
    # sets. The variance is therefore that of the mean of one repetition, averaged over the
    # repetitions and not divided by their number.
    variance = found.var(axis=1, ddof=1) / found.shape[1]
    return float(found.mean()), float(np.sqrt(variance.mean()))


def clear(change: float, error: float) -> bool:
    """Return whether a rounded difference is not zero and exceeds two standard errors."""
    return abs(change) > max(2 * error, 0.005)


def table_row(name: str, errors: dict[str, np.ndarray]) -> list[str]:
    """Return the ratio of ridge regression to the mean, and differences of the other methods."""
    X, Y = TASKS[name].load()
    size = [name, str(len(X)), str(X.shape[1]), "x".join(map(str, Y.shape[1:]))]
    row = [*size, f"{1 + difference(errors['ridge'], errors['mean'])[0] / 100:.3f}"]
    for method in list(AGAINST)[2:]:
        found = difference(errors[method], errors[AGAINST[method]]) if method in errors else None
        row.append("" if found is None else percent(*found, bold=clear(*found)))
    return row


def verdicts(errors: Errors) -> Iterator[list[object]]:
    """Yield how often each method is better or worse than its peer, and the mean ratio."""
    pairs = [*AGAINST.items(), ("stack", "best rank"), ("kernel stack", "kernel best rank")]
    for method, peer in pairs[1:]:
        found = [(e[method], e[peer]) for e in errors.values() if method in e]
        if not found:
            continue
        changes = [difference(*pair) for pair in found]
        lower = [change for change in changes if change[0] < -0.005]
        higher = [change for change in changes if change[0] > 0.005]
        # Ratios of means are consistent, unlike means of ratios: that of stack to best rank times
        # that of best rank to ridge is that of stack to ridge.
        ratio = np.exp(np.mean([np.log(a.mean() / b.mean()) for a, b in found]))
        counts = [len(lower), sum(clear(*c) for c in lower)]
        counts += [len(higher), sum(clear(*c) for c in higher)]
        median = f"{np.median([change for change, _ in changes]):+.2f} %"
        yield [f"{method} against {peer}", len(found), *counts, median, f"{ratio:.4f}"]


def write_csv(path: str, errors: Errors) -> None:
    """Write a row for each task, method, repetition and fold."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "method", "repetition", "fold", "rmse"])
        for task, found in errors.items():
            for method, values in found.items():
                for (repetition, fold), value in np.ndenumerate(values):
                    writer.writerow([task, method, repetition, fold, repr(float(value))])


def main(arguments: list[str] | None = None) -> None:
    parser = options_of(__doc__)
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--csv", metavar="FILE", help="write the errors of all folds to this file")
    args = parser.parse_args(arguments)
    if args.csv and not os.path.isdir(os.path.dirname(os.path.abspath(args.csv))):
        parser.error(f"--csv: the folder of {args.csv} does not exist")
    errors: Errors = {}

    def rows() -> Iterator[list[str]]:
        for name in args.tasks:
            if available(name):
                errors[name] = one_task(name, args.quick, args.jobs)
                yield table_row(name, errors[name])

    head = ["task", "N", "inputs", "outputs", "ridge / mean", *list(AGAINST)[2:]]
    show("Difference of the RMSE to (kernel) ridge regression, in percent", head, rows())
    head = ["methods", "tasks", "lower", "clearly", "higher", "clearly", "median", "mean ratio"]
    show("How often errors are lower or higher", head, verdicts(errors))
    if args.csv:
        write_csv(args.csv, errors)


if __name__ == "__main__":
    main()
