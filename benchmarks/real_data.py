"""Errors of ridge regression, low rank, best multilinear rank and stack on real data.

    python benchmarks/real_data.py [--quick] [--meteo FOLDER] [--tasks NAME ...] [--jobs 2]
                                   [--save FILE.csv] [--compare FILE.csv] [--write]

The tasks are those of `real_data_tasks.py`: data that ship inside packages
(``pip install "holrr[all,bench]"``) and the station files of the Met Office in FOLDER, by default
$HOLRR_METEO_DIR or the folder in which `fetch_met_office` keeps its downloads. A task whose data
are missing is left out with a note. Each task has five outer
folds. If rows are exchangeable, the folds are shuffled. Otherwise they are blocks of neighbouring
rows, and rows that overlap the test block are left out of the training set. Inputs are standardised
on the training rows. Five inner folds of the same kind choose penalties, ranks and kernels. All
linear methods choose from the same 25 penalties over twelve decades, and all kernel methods from
the same 19 penalties and six widths.

Tasks with fewer than 60 samples have three repetitions of the outer folds: three shuffles, or
blocks that start a third of a block later each time. Their differences are means over all folds of
all repetitions. Repetitions test the same samples and are not independent, so 15 folds do not count
as 15 observations. The standard error is that of one repetition: the root of the mean over the
repetitions of the squared standard errors over its folds. It is conservative, since the mean of the
repetitions has at most the error of one repetition.

The verdicts have the geometric mean over the tasks of the ratios of the RMSE, which is the mean
over the folds. --save writes the rows of this run to a file, for any selection of tasks. --compare
reads such a file of an older version of the library. It adds the difference of its stacks to ridge
to the table, and compares the stacks of both versions in the verdicts. Tasks with other data or
folds in the file are not compared. The comparison is only printed.

The script prints a Markdown table. With --write, which needs the data of all tasks, it stores the
figures of every method in docs/results/real_data.csv and writes the tables of
docs/developer_benchmarks.md and docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from holrr.kernel import KernelHOLRRCV, KernelRLSCV
from holrr.model_selection import HOLRRCV, LRRCV, RLSCV
from pages import DOCS, parse_options, write_section
from pages import table as page_table
from real_data_tasks import METEO, TASKS, Task, available, set_meteo_folder, unavailable

PENALTIES = np.logspace(-8, 4, 25)  # times the number of samples: the mean eigenvalue of X'X
KERNEL_PENALTIES = np.logspace(-7, 2, 19)  # times one: kernels have at most that on the diagonal
MAX_KERNEL_SAMPLES = 1500
# Tasks with fewer samples than SMALL have REPETITIONS of the outer folds.
SMALL, REPETITIONS = 60, 3
# Columns of the table, and the method with which each is compared.
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


def has_stack() -> bool:
    """Return whether this version of the library can stack models."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    try:
        HOLRRCV([1.0], cv=3, selection="stack").fit(X, X)
    except ValueError:
        return False
    return True


def methods(n: int, rows: str, kernels: bool, stack: bool, step: int = 1) -> dict:
    """Return the searches by name; searches of one kind have the same grid and inner folds."""
    cv = KFold(5) if rows == "blocks" else KFold(5, shuffle=True, random_state=0)
    alphas = n * PENALTIES[::step]
    found = {
        "ridge": RLSCV(alphas, cv=cv),
        "scikit-learn": RidgeCV(alphas, cv=cv, scoring="neg_mean_squared_error"),
        "LRR": LRRCV(alphas, cv=cv, selection="min"),
        "best rank": HOLRRCV(alphas, cv=cv, selection="min"),
    }
    if stack:
        found["stack"] = HOLRRCV(alphas, cv=cv, selection="stack")
    if kernels:
        alphas = n * KERNEL_PENALTIES[::step]
        found["kernel ridge"] = KernelRLSCV(alphas, cv=cv)
        found["kernel best rank"] = KernelHOLRRCV(alphas, cv=cv, selection="min")
        if stack:
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


def one_fold(task: Task, X, Y, train, test, stack: bool, step: int) -> dict[str, dict]:
    """Return the error and the seconds of every method, and whether the penalty is at an end."""
    scaler = StandardScaler().fit(X[train])
    X_train, X_test = scaler.transform(X[train]), scaler.transform(X[test])
    kernels = len(X) <= MAX_KERNEL_SAMPLES

    def error(predicted) -> float:
        return float(np.sqrt(np.mean((predicted.reshape(Y[test].shape) - Y[test]) ** 2)))

    mean = np.broadcast_to(Y[train].mean(axis=0), Y[test].shape)
    found = {"mean": {"rmse": error(mean), "seconds": 0.0, "least": False, "largest": False}}
    searches = methods(len(train), task.rows, kernels, stack, step)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The best penalty")
        for name, search in searches.items():
            flat = name == "scikit-learn"
            start = time.perf_counter()
            search.fit(X_train, Y[train].reshape(len(train), -1) if flat else Y[train])
            found[name] = {
                "rmse": error(search.predict(X_test)),
                "seconds": time.perf_counter() - start,
                "least": search.alpha_ == np.min(search.alphas),
                "largest": search.alpha_ == np.max(search.alphas),
            }
    return found


def one_task(name: str, n_folds: int, quick: bool, stack: bool, jobs: int) -> list[dict]:
    """Return a row for each method, with means over the outer folds and their standard errors.

    The standard errors are those of paired differences. The errors of the folds are text, with a
    semicolon after each repetition.
    """
    task = TASKS[name]
    X, Y = task.load()
    if quick:
        X, Y = X[:120], Y[:120]
    repetitions = REPETITIONS if len(X) < SMALL else 1
    folds = Parallel(n_jobs=jobs)(
        delayed(one_fold)(task, X, Y, train, test, stack, 4 if quick else 1)
        for repetition in range(repetitions)
        for train, test in outer_folds(task, len(X), n_folds, repetition)
    )

    def errors(method: str) -> np.ndarray:
        return np.reshape([fold[method]["rmse"] for fold in folds], (repetitions, n_folds))

    rows = []
    for method in folds[0]:
        rmse = errors(method)
        percent, error = difference(rmse, errors(AGAINST.get(method, "mean")))
        rows.append(
            {
                "task": name,
                "samples": len(X),
                "inputs": X.shape[1],
                "outputs": "x".join(map(str, Y.shape[1:])),
                "folds": task.rows,
                "method": method,
                "rmse": _rounded(rmse.mean()),
                "against": AGAINST.get(method, "mean"),
                "percent": _rounded(percent),
                "error": _rounded(error),
                "least": sum(fold[method]["least"] for fold in folds),
                "largest": sum(fold[method]["largest"] for fold in folds),
                "seconds": _rounded(sum(fold[method]["seconds"] for fold in folds)),
                "fold_rmse": "; ".join(" ".join(f"{v:.6g}" for v in r) for r in rmse),
            }
        )
    return rows


def difference(rmse: np.ndarray, peer: np.ndarray) -> tuple[float, float]:
    """Return the mean difference over the folds in percent, and its standard error.

    Parameters
    ----------
    rmse, peer : arrays of shape (n_folds,) or (n_repetitions, n_folds)
        Errors of two methods.

    Returns
    -------
    percent, error : float
        Mean difference and its standard error.
    """
    percent = np.atleast_2d(100 * (rmse / peer - 1))
    # Repetitions are not independent: they test the same samples with nearly the same training
    # sets. The variance is therefore that of the mean of one repetition, averaged over the
    # repetitions and not divided by their number.
    variance = percent.var(axis=1, ddof=1) / percent.shape[1]
    return percent.mean(), np.sqrt(variance.mean())


def fold_errors(row: dict) -> np.ndarray:
    """Return the errors of the folds of a row, of shape (n_repetitions, n_folds)."""
    return np.array([r.split() for r in row["fold_rmse"].split(";")], dtype=float)


def _rounded(value: float) -> float:
    """Round to six digits, for the table and the file."""
    return float(f"{value:.6g}")


# ---------------------------------------------------------------- tables and figures

SHOWN = [m for m in AGAINST if m not in ("ridge", "scikit-learn")]


def by_task(rows: list[dict]) -> dict[str, dict[str, dict]]:
    """Return the rows by names of task and method."""
    found: dict[str, dict[str, dict]] = {}
    for row in rows:
        found.setdefault(row["task"], {})[row["method"]] = row
    return found


def with_same_folds(rows: list[dict], before: list[dict]) -> list[dict]:
    """Return the rows of an older run for the tasks with the same data and folds.

    Data and folds are the same if the errors of the training mean are equal in every fold.
    """
    now, then = by_task(rows), by_task(before)
    same = set()
    for task in now.keys() & then.keys():
        a, b = (fold_errors(found[task]["mean"]) for found in (now, then))
        if a.shape == b.shape and np.allclose(a, b, rtol=1e-4):
            same.add(task)
    return [row for row in before if row["task"] in same]


def table(rows: list[dict], before: list[dict] | None = None) -> str:
    """Return the Markdown table with a line for each task.

    Parameters
    ----------
    rows : list of dict
        Rows of this run.
    before : list of dict, optional
        Rows of an older run with the same folds, whose stacks get a column.
    """
    tasks, old = by_task(rows), by_task(before or [])
    shown = []
    for method in SHOWN:
        if any(method in found for found in tasks.values()):
            shown.append((method, tasks, method))
        if method.endswith("stack") and any(method in found for found in old.values()):
            shown.append((f"{method} before", old, method))
    heads = " | ".join(head for head, _, _ in shown)
    lines = [
        f"| task | N | inputs | outputs | ridge / mean | {heads} |",
        "|---|--:|--:|:-:|--:|" + "--:|" * len(shown),
    ]
    for name, found in tasks.items():
        ridge = found["ridge"]
        cells = [name, str(ridge["samples"]), str(ridge["inputs"]), ridge["outputs"]]
        cells.append(f"{1 + ridge['percent'] / 100:.3f}")
        for _, source, method in shown:
            row = source.get(name, {}).get(method)
            cells.append("" if row is None else _cell(row))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(row: dict) -> str:
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    text = f"{round(row['percent'], 2) + 0.0:+.2f} ± {row['error']:.2f}".replace("-", "−")
    return f"**{text}**" if clear(row) else text


def clear(row: dict) -> bool:
    """Return whether a rounded difference is not zero and exceeds two standard errors."""
    return abs(row["percent"]) > max(2 * row["error"], 0.005)


def verdicts(rows: list[dict], before: list[dict] | None = None) -> str:
    """Return how often each method is better or worse than its peer, and the mean ratio.

    Parameters
    ----------
    rows : list of dict
        Rows of this run.
    before : list of dict, optional
        Rows of an older run with the same folds, whose stacks are compared with those of `rows`.
    """
    tasks, old = by_task(rows), by_task(before or [])
    pairs = [(method, AGAINST[method]) for method in SHOWN]
    pairs += [("stack", "best rank"), ("kernel stack", "kernel best rank")]
    lines = [_verdict(a, b, _differences(tasks, a, tasks, b)) for a, b in pairs]
    for stack in ("stack", "kernel stack"):
        lines.append(_verdict(stack, f"{stack} before", _differences(tasks, stack, old, stack)))
    gap = max(abs(row["percent"]) for row in rows if row["method"] == "scikit-learn")
    lines.append(
        f"- scikit-learn's RidgeCV with the same penalties and folds: at most {gap:.0e} percent "
        "from ridge."
    )
    for edge in ("least", "largest"):
        names = dict.fromkeys(row["task"] for row in rows if row[edge])
        lines.append(
            f"- The {edge} penalty was chosen in some fold: {', '.join(names) or 'never'}."
        )
    return "\n".join(line for line in lines if line) + "\n"


def _verdict(method: str, peer: str, found: list[dict]) -> str:
    if not found:
        return ""
    lower, higher, ratio = _summary(found)
    return (
        f"- {method} against {peer}, {len(found)} tasks: lower error on {len(lower)} (more than "
        f"two standard errors: {sum(map(clear, lower))}), higher on {len(higher)} "
        f"({sum(map(clear, higher))}); median "
        f"{np.median([row['percent'] for row in found]):+.2f} percent; geometric mean of the error "
        f"ratios {ratio:.4f}."
    )


def _summary(found: list[dict]) -> tuple[list[dict], list[dict], float]:
    """Return the rows with a lower and a higher error, and the geometric mean of the ratios."""
    lower = [row for row in found if row["percent"] < -0.005]
    higher = [row for row in found if row["percent"] > 0.005]
    return lower, higher, float(np.exp(np.mean([np.log(row["ratio"]) for row in found])))


def short_table(rows: list[dict]) -> str:
    """Return how often the stacks are better or worse than (kernel) ridge, and the mean ratio."""
    tasks = by_task(rows)
    columns = []
    for method in ("stack", "kernel stack"):
        found = _differences(tasks, method, tasks, AGAINST[method])
        lower, higher, ratio = _summary(found)
        counts = len(found), len(lower), sum(map(clear, lower)), sum(map(clear, higher))
        columns.append([*counts, f"{ratio:.4f}"])
    names = [
        "data sets",
        "lower RMSE than (kernel) ridge regression",
        "clearly lower",
        "clearly higher",
        "geometric mean of the RMSE ratios",
    ]
    head = ["", "linear models", "kernel models"]
    return page_table(head, zip(names, *columns, strict=True))


def _differences(tasks: dict, method: str, peers: dict, peer: str) -> list[dict]:
    """Return percent, standard error and ratio of errors on each task that has both methods."""
    found = []
    for name in tasks:
        if method in tasks[name] and peer in peers.get(name, {}):
            a, b = fold_errors(tasks[name][method]), fold_errors(peers[name][peer])
            percent, error = difference(a, b)
            # Ratios of means are consistent, unlike means of ratios: that of stack to best rank
            # times that of best rank to ridge is that of stack to ridge.
            found.append({"percent": percent, "error": error, "ratio": a.mean() / b.mean()})
    return found


def write_csv(path: Path, rows: list[dict]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_csv(path: Path) -> list[dict]:
    numbers = dict.fromkeys(("rmse", "percent", "error"), float)
    numbers |= dict.fromkeys(("least", "largest"), int)
    with path.open(newline="", encoding="utf-8") as file:
        return [{k: numbers.get(k, str)(v) for k, v in row.items()} for row in csv.DictReader(file)]


def draw(path: Path, rows: list[dict]) -> None:
    """Draw two panels of dots with standard errors: linear methods and kernel methods."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"LRR": "#e69f00", "best rank": "#d55e00", "stack": "#009e73"}
    names = list(dict.fromkeys(row["task"] for row in rows))
    figure, axes = plt.subplots(1, 2, figsize=(8, 0.36 * len(names) + 1.2), sharey=True, dpi=150)
    panels = (("ridge", "", axes[0]), ("kernel ridge", "kernel ", axes[1]))
    # All dots are visible; the error bars of the smallest tasks may be cut off.
    shown = [kind + label for _, kind, _ in panels for label in colours]
    largest = max(abs(row["percent"]) for row in rows if row["method"] in shown)
    limit = max(20, 1.2 * largest)
    ticks = [tick for tick in (-100, -30, -10, -3, -1, 0, 1, 3, 10, 30, 100) if abs(tick) < limit]
    for peer, kind, axis in panels:
        for shift, (label, colour) in zip((0.22, 0, -0.22), colours.items(), strict=True):
            found = [row for row in rows if row["method"] == kind + label]
            if not found:
                continue
            axis.errorbar(
                [row["percent"] for row in found],
                [len(names) - 1 - names.index(row["task"]) + shift for row in found],
                xerr=[row["error"] for row in found],
                fmt="o",
                markersize=4,
                linewidth=1.2,
                color=colour,
                label=label,
            )
        axis.axvline(0, color="#1f2328", linewidth=0.8)
        axis.set_xscale("symlog", linthresh=1, linscale=0.6)
        axis.set_xticks(ticks, [f"{tick}".replace("-", "−") for tick in ticks])
        axis.minorticks_off()
        axis.set_xlim(-limit, limit)
        axis.set_xlabel(f"change of the RMSE against {peer}, %")
        axis.grid(color="#e3e6ea")
        axis.set_axisbelow(True)
    axes[0].set_yticks(range(len(names)), names[::-1])
    axes[0].set_ylim(-0.6, len(names) - 0.4)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="upper center", ncols=3, frameon=False)
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    figure.savefig(path)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="120 samples, 3 folds, 7 penalties")
    parser.add_argument("--meteo", default=METEO, help="folder of the Met Office files")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--jobs", type=int, default=2, help="processes over the outer folds")
    parser.add_argument("--save", type=Path, metavar="FILE.csv", help="write all rows to this file")
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE.csv",
        help="compare the stacks with those of a file that --save wrote with an older version",
    )
    args = parse_options(parser, arguments)
    set_meteo_folder(args.meteo)
    # Checked first, since the run takes long.
    if args.write and args.tasks != list(TASKS):
        parser.error("--write needs all tasks and cannot be combined with --tasks")
    if args.write and unavailable(TASKS):
        parser.error(f"--write needs the data of all tasks, also of {unavailable(TASKS)}")
    if args.compare and not args.compare.is_file():
        parser.error(f"--compare: the file {args.compare} does not exist")
    if args.save and not args.save.resolve().parent.is_dir():
        parser.error(f"--save: the folder {args.save.resolve().parent} does not exist")
    before = read_csv(args.compare) if args.compare else []
    stack = has_stack()
    if not stack:
        print('note: this version has no selection="stack"; its columns are left out')
    rows: list[dict] = []
    for name in args.tasks:
        if not available(TASKS[name]):
            print(f"note: {name} is left out, since {TASKS[name].package} is not available")
            continue
        start = time.perf_counter()
        found = one_task(name, 3 if args.quick else 5, args.quick, stack, args.jobs)
        rows += found
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    if not rows:
        print("note: no task was run")
        return
    if args.save:
        write_csv(args.save, rows)
    same = with_same_folds(rows, before)
    if args.compare:
        others = [name for name in by_task(rows) if name not in by_task(same)]
        if others:
            print(f"note: not in {args.compare} with the same data and folds: {', '.join(others)}")
    print(f"\n{table(rows, same)}\n{verdicts(rows, same)}")
    if args.write:
        write_csv(DOCS / "results" / "real_data.csv", rows)
        write_section("real data", f"{table(rows)}\n{verdicts(rows)}")
        write_section("real data, short", short_table(rows))


if __name__ == "__main__":
    main()
