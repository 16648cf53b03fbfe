"""Families of random cases: functions of a random generator that raise where something is wrong.

A case of `pairs` combines features at random and checks all relations that apply. The others
compare two computations of the same result (another memory layout, a naive loop), or check that bad
data are refused. The estimators come from the registry.
"""

from __future__ import annotations

import contextlib
import io as streams
import math
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from brute_force import brute_force
from features import draw
from known import explanation
from naive_choice import mixture
from numpy.testing import assert_allclose
from relations import failures_of
from scipy.optimize import nnls
from sklearn.model_selection import KFold, PredefinedSplit, RepeatedKFold, ShuffleSplit

import crafted
import holrr
import pipelines
import reference
from holrr import HOLRR, HOLRRCV, RLS, RLSCV, KernelHOLRRCV, Moments
from holrr.cli import main
from holrr.model_selection.stack import least_in_hull
from problems import assert_same_state, low_rank_tensor
from registry import ROWS, Row

FAMILIES: dict[str, Callable[[np.random.Generator], None]] = {}

# Sizes at which another algorithm is used, and their neighbours.
LIMITS = [n + d for n in (64, 128, 256) for d in (-1, 0, 1)]


def family(case: Callable[[np.random.Generator], None]) -> Callable[[np.random.Generator], None]:
    FAMILIES[case.__name__] = case
    return case


# ---------------------------------------------------------------- what the cases share


def a_row(rng: np.random.Generator, wanted: Callable[[Row], bool] = lambda row: True) -> Row:
    rows = [row for row in ROWS if wanted(row)]
    return rows[rng.integers(len(rows))]


def a_problem(rng, n=None, d0=None, shape=None) -> tuple[np.ndarray, np.ndarray]:
    """Low-rank outputs of any order, with noise and means."""
    n = int(rng.integers(12, 60)) if n is None else n
    d0 = int(rng.integers(1, 9)) if d0 is None else d0
    if shape is None:
        shape = tuple(int(d) for d in rng.integers(1, 6, size=rng.integers(0, 4)))
    X = rng.normal(size=(n, d0)) + rng.normal()
    W = low_rank_tensor(rng, (d0, *shape), [min(2, d) for d in (d0, *shape)])
    Y = np.tensordot(X, W / max(np.abs(W).max(), 1e-3), 1) + rng.normal()
    return X, Y + 0.2 * rng.normal(size=Y.shape)


def some_weights(rng, n: int) -> np.ndarray:
    """Weights of which some are zero; each of three folds has positive ones."""
    w = rng.uniform(0.2, 3.0, n) * (rng.uniform(size=n) < 0.7)
    w[:9] = np.maximum(w[:9], 0.5)
    return w


def close(row: Row, found: Any, expected: Any, tol: float = 1e-6) -> None:
    """Assert that predictions are equal relative to the largest, up to the solver's tolerance."""
    tol = max(tol, 1e3 * row.tol)
    expected = np.asarray(expected)
    assert np.isfinite(found).all()
    assert_allclose(found, expected, rtol=0, atol=tol * np.abs(expected).max(initial=1e-300))


def tied(found: Any, expected: Any) -> bool:
    """Whether two searches chose different candidates that rounding can hardly tell apart."""
    if not hasattr(expected, "best_index_") or found.best_index_ == expected.best_index_:
        return False
    results = expected.cv_results_
    surface = results.get("mean_mse")
    if surface is None or np.shape(surface) != np.shape(found.cv_results_.get("mean_mse", surface)):
        return False
    a, b = surface[found.best_index_], surface[expected.best_index_]
    return bool(abs(a - b) <= 1e-6 * abs(b)) or getattr(expected, "selection", "") == "1se"


def fit(row: Row, X: Any, Y: Any, w: Any = None, **params: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return row.make(**params).fit(X, Y, w)


# ---------------------------------------------------------------- pairs of features


@family
def pairs(rng) -> None:
    """An estimator with two or three features has the relations that apply to it.

    Failures of known defects are expected, see known.py.
    """
    seed = int(rng.integers(2**31))
    case = draw(seed)
    found = {
        name: reason
        for name, reason in failures_of(case, seed).items()
        if explanation(case, name, reason) is None
    }
    what = f"{case.row.id} with {', '.join(case.features)}, seed {seed}"
    assert not found, f"{what}: {found}"


# ---------------------------------------------------------------- sizes and layouts


def strided(rng, a):
    wide = np.full([2 * n for n in a.shape], np.nan)
    every = tuple(slice(None, None, 2) for _ in a.shape)
    wide[every] = a
    return wide[every]


LAYOUTS: list[Callable[[Any, np.ndarray], np.ndarray]] = [
    lambda rng, a: np.asfortranarray(a),
    strided,
    lambda rng, a: np.flip(np.flip(a, axis=0).copy(), axis=0),
    lambda rng, a: np.moveaxis(np.moveaxis(a, 0, -1).copy(), -1, 0),
    lambda rng, a: a.astype(">f8"),
    lambda rng, a: a[:, None][:, 0],
    lambda rng, a: np.ma.masked_array(a),
    lambda rng, a: a.tolist(),
    lambda rng, a: a.astype(object),
]


@family
def layouts(rng) -> None:
    row, (X, Y) = a_row(rng), a_problem(rng)
    lay_x, lay_y = (LAYOUTS[rng.integers(len(LAYOUTS))] for _ in range(2))
    expected, found = fit(row, X, Y), fit(row, lay_x(rng, X), lay_y(rng, Y))
    if not tied(found, expected):
        close(row, found.predict(lay_x(rng, X)), expected.predict(X))


@family
def sizes(rng) -> None:
    """Rotated inputs and outputs give rotated predictions, on both sides of every size limit."""
    row = a_row(rng, lambda row: not row.robust)  # whose outputs have scales of their own
    size, small = int(rng.choice(LIMITS)), int(rng.integers(2, 5))
    d0, shape = [(size, (small,)), (small, (size,)), (small, (2, size))][rng.integers(3)]
    X, Y = a_problem(rng, n=int(rng.integers(20, 90)), d0=d0, shape=shape)
    Q, R = (reference.random_orthonormal(rng, d, d) for d in (d0, shape[-1]))
    widths = {"gamma": 0.5 / size, "gammas": [0.5 / size]}
    params = {name: value for name, value in widths.items() if name in row.params}
    expected = fit(row, X, Y, **params)
    found = fit(row, X @ Q, reference.mode_product(Y, R, Y.ndim - 1), **params)
    if not tied(found, expected):
        turned = reference.mode_product(expected.predict(X), R, Y.ndim - 1)
        close(row, found.predict(X @ Q), turned, 1e-5)


# ---------------------------------------------------------------- searches against naive loops


def a_splitter(rng, n: int) -> Any:
    seed = int(rng.integers(1000))
    return [
        KFold(3),
        KFold(4, shuffle=True, random_state=seed),
        ShuffleSplit(3, test_size=0.3, random_state=seed),
        RepeatedKFold(n_splits=2, n_repeats=2, random_state=seed),
        PredefinedSplit(rng.integers(-1, 3, n)),
    ][rng.integers(5)]


def degrees(shape, rank) -> int:
    """Dimension of the tensors of a multilinear rank that can be attained."""
    rank = list(rank)
    for _ in rank:
        rank = [min(R, math.prod(rank[:i] + rank[i + 1 :])) for i, R in enumerate(rank)]
    return math.prod(rank) + sum(R * (d - R) for R, d in zip(rank, shape, strict=True))


@family
def selections(rng) -> None:
    """Errors of all candidates, and the choice among them, equal those of a loop of fits."""
    n, d0 = int(rng.integers(14, 26)), int(rng.integers(1, 4))
    shape = tuple(int(d) for d in rng.integers(1, 4, size=rng.integers(1, 3)))
    X, Y = a_problem(rng, n, d0, shape)
    w = some_weights(rng, n) if rng.uniform() < 0.5 else None
    alphas = list(10.0 ** rng.uniform(-3, 2, size=2))
    options = {"fit_intercept": bool(rng.integers(2))}
    cv, selection = a_splitter(rng, n), ["min", "1se"][rng.integers(2)]
    splits = [(a, b) for a, b in cv.split(X) if w is None or (w[a].any() and w[b].any())]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = HOLRRCV(alphas, cv=splits, selection=selection, **options).fit(X, Y, w)
    shape = model.cv_results_["mean_mse"].shape[1:]
    errors = brute_force(X, Y, splits, alphas, shape, w, **options)
    assert_allclose(model.cv_results_["fold_mse"], errors, rtol=1e-6, atol=1e-9 * errors.max())
    mean = errors.mean(axis=0)
    best, bound = mean.min(), mean.min() * (1 + 1e-9)
    if selection == "1se":
        at = np.unravel_index(mean.argmin(), mean.shape)
        bound = best + errors[(slice(None), *at)].std(ddof=1) / math.sqrt(len(splits))
        count = np.empty(mean.shape[1:])
        for index in np.ndindex(*count.shape):
            count[index] = degrees((d0, *Y.shape[1:]), [i + 1 for i in index])
        allowed = np.broadcast_to(count, mean.shape)[mean <= bound * (1 - 1e-9)]
        assert count[model.best_index_[1:]] <= allowed.min(initial=np.inf)
    assert mean[model.best_index_] <= bound * (1 + 1e-9)
    final = HOLRR(model.rank_, model.alpha_, **options).fit(X, Y, w)
    assert_allclose(model.predict(X), final.predict(X), rtol=1e-7, atol=1e-8)


# ---------------------------------------------------------------- outputs that are never observed


def a_mask(rng, shape: tuple[int, ...]) -> np.ndarray:
    """A mask of outputs: some of any place, a box, or whole slices; never all of them."""
    kind, mask = rng.integers(3), np.zeros(shape, dtype=bool)
    if kind == 0:
        mask = rng.uniform(size=shape) < 0.3
    elif kind == 1:
        mask[tuple(slice(*sorted(rng.integers(0, d + 1, size=2))) for d in shape)] = True
    else:
        mode = int(rng.integers(len(shape)))
        some = rng.uniform(size=shape[mode]) < 0.3
        mask |= some.reshape([-1 if i == mode else 1 for i in range(len(shape))])
    mask[tuple(int(rng.integers(d)) for d in shape)] = False
    return mask


def completed(X, Y, rank, alpha: float, seen: np.ndarray, rng) -> float:
    """Least objective over observed outputs of rounds of imputing and refitting, of any start."""
    best = math.inf
    for start in range(3):
        filled = np.where(seen, Y, Y[:, seen].mean())
        if start:
            W = low_rank_tensor(rng, (X.shape[1], *Y.shape[1:]), rank)
            guess = np.tensordot(X - X.mean(axis=0), W / np.abs(W).max(), 1)
            filled = np.where(seen, Y, guess * np.abs(Y[:, seen]).std() + Y[:, seen].mean())
        for _ in range(60):
            model = HOLRR(rank, alpha).fit(X, filled)
            predicted = model.predict(X)
            error = np.sum((predicted - Y)[:, seen] ** 2) + alpha * np.sum(model.coef_**2)
            best = min(best, float(error))
            filled = np.where(seen, Y, predicted)
    return best


@family
def never_observed_outputs(rng) -> None:
    """Cells that are never observed are completed by the model itself."""
    shape = tuple(int(d) for d in rng.integers(2, 6, size=rng.integers(1, 3)))
    X, Y = a_problem(rng, n=int(rng.integers(20, 40)), d0=int(rng.integers(2, 5)), shape=shape)
    seen, alpha = ~a_mask(rng, shape), 10.0 ** rng.uniform(-2, 1)
    gaps = np.where(seen, Y, np.nan)
    rank = tuple(min(2, d) for d in (X.shape[1], *shape))
    model = HOLRR(rank, alpha, missing="ignore").fit(X, gaps)
    assert model.objective_ <= 1.01 * completed(X, Y, rank, alpha, seen, rng)


# ---------------------------------------------------------------- units, weights, labels, criteria


@family
def labelled_moments(rng) -> None:
    """Moments of tables merge to those of all rows, and those of reordered columns are refused."""
    import pandas as pd

    n, d0, D = int(rng.integers(12, 40)), int(rng.integers(2, 5)), int(rng.integers(2, 5))
    X, Y = a_problem(rng, n, d0, (D,))
    X = pd.DataFrame(X, columns=[f"x{i}" for i in range(d0)])
    Y = pd.DataFrame(Y, columns=[f"y{i}" for i in range(D)])
    cut = int(rng.integers(2, n - 2))
    parts = [(X[:cut], Y[:cut]), (X[cut:], Y[cut:])]
    expected = holrr.RLS(0.3).fit(X, Y)
    moments = [Moments.from_arrays(*part) for part in parts]
    for merged in (moments[0] + moments[1], sum(moments), Moments.from_batches(parts)):
        found = holrr.RLS(0.3).fit_moments(merged)
        assert list(found.feature_names_in_) == list(X.columns)
        predicted = found.predict(X)
        assert list(predicted.columns) == list(Y.columns)
        assert_allclose(predicted, expected.predict(X), rtol=1e-7, atol=1e-9)
    which = int(rng.integers(2))
    columns = rng.permutation([d0, D][which])
    turned = list(parts[1])
    turned[which] = turned[which].iloc[:, columns]
    same = (columns == np.arange(columns.size)).all()
    others = [moments[0], Moments.from_arrays(*turned)]
    for merge in (
        lambda: others[0] + others[1],
        lambda: others[1].merge(others[0]),
        lambda: Moments.from_batches([parts[0], tuple(turned)]),
        lambda: RLSCV(alphas=[1.0]).fit_fold_moments(others),
    ):
        if same:
            merge()
            continue
        try:
            merge()
        except ValueError:
            continue
        raise AssertionError(f"moments of columns in the order {columns} were merged")


# ---------------------------------------------------------------- stacks


def least_mixture(A: np.ndarray) -> tuple[float, float]:
    """Bounds of the least ``||A w||^2`` over weights that are not negative and add up to one.

    Above by non-negative least squares, below by the duality gap of its solution.
    """
    large = 1e3 * np.abs(A).max()
    rows = np.vstack([A, np.full((1, A.shape[1]), large)])
    w = nnls(rows, np.r_[np.zeros(len(A)), large], maxiter=100 * A.shape[1])[0]
    w /= w.sum()
    slope = A.T @ (A @ w)
    value = float(w @ slope)
    return value - 2 * (value - float(slope.min())), value


@family
def projections_onto_hulls(rng) -> None:
    """The weights of a stack solve their quadratic programme, with equal corners, in any unit."""
    n, m = int(rng.integers(1, 30)), int(rng.integers(1, 14))
    A = rng.normal(size=(n, m)) * 10.0 ** rng.uniform(-2, 1) + rng.normal(size=(n, 1))
    if rng.uniform() < 0.5:
        A = A[:, rng.integers(0, m, size=m)]
    if rng.uniform() < 0.3:
        A = np.cumsum(A, axis=1)
    unit = 10.0 ** rng.uniform(-60, 60)
    w = least_in_hull((unit * A).T @ (unit * A))
    lower, upper = least_mixture(A)
    assert w.min() >= 0
    assert_allclose(w.sum(), 1.0, rtol=1e-9)
    rounding = 1e-9 * float((A**2).sum(axis=0).max())
    assert lower - rounding <= float(np.sum((A @ w) ** 2)) <= upper + rounding


@family
def stacks(rng) -> None:
    """A stack is the weighted sum of its models, and its error that of its held-out predictions.

    The predictions of each output are mixtures, too, so that no fold has a smaller error than the
    best mixtures of its outputs.
    """
    n, d0 = int(rng.integers(12, 24)), int(rng.integers(1, 4))
    shape = tuple(int(d) for d in rng.integers(1, 4, size=rng.integers(1, 3)))
    X, Y = a_problem(rng, n, d0, shape)
    Y = Y + rng.uniform(0.0, 2.0) * rng.normal(size=Y.shape)
    alphas, splits = 10.0 ** rng.uniform(-2, 2) * np.array([0.03, 1.0, 30.0]), KFold(3)
    splits = list(splits.split(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = HOLRRCV(alphas, cv=splits, selection="stack").fit(X, Y)
    w, size = model.stack_weights_, float(np.abs(Y - Y.mean(axis=0)).max())
    assert w.min(initial=1.0) > 0
    assert w.sum() <= 1 + 1e-12
    assert_allclose(model.predict(X), mixture(model, X, Y), atol=1e-8 * size)
    errors, least = [], []
    held_out = model.held_out_predictions(X, Y)
    for train, test in splits:
        errors.append(np.mean((held_out[test] - Y[test]) ** 2))
        every = [Y[train].mean(axis=0) - Y[test]]
        for alpha in alphas:
            every.append(RLS(alpha).fit(X[train], Y[train]).predict(X[test]) - Y[test])
            for index in np.ndindex(*model.cv_results_["mean_mse"].shape[1:]):
                one = HOLRR(tuple(i + 1 for i in index), alpha).fit(X[train], Y[train])
                every.append(one.predict(X[test]) - Y[test])
        each = [[residual[(slice(None), *at)] for residual in every] for at in np.ndindex(*shape)]
        least.append(sum(least_mixture(np.stack(one, axis=1))[0] for one in each) / Y[test].size)
    assert_allclose(model.held_out_mse_, np.mean(errors), rtol=1e-9, atol=1e-14 * size**2)
    assert model.held_out_mse_ >= np.mean(least) - 1e-7 * size**2


# ---------------------------------------------------------------- bad data, files and commands


@family
def bad_entries(rng) -> None:
    """NaN or infinity is refused with its index, and a fitted model does not change."""
    row, (X, Y) = a_row(rng), a_problem(rng)
    model = fit(row, X, Y)
    before = model.predict(X)
    where, A = [("X", X), ("y", Y)][rng.integers(2)]
    at = tuple(int(rng.integers(d)) for d in A.shape)
    A = A.copy()
    A[at] = [np.nan, np.inf, -np.inf][rng.integers(3)]
    data = (A, Y) if where == "X" else (X, A)
    w = None if rng.uniform() < 0.5 else some_weights(rng, len(X))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            model.fit(*data, w)
    except ValueError as error:
        assert where in str(error)  # noqa: PT017
        assert str(at) in str(error), (str(at), str(error))  # noqa: PT017
    else:
        raise AssertionError(f"{row.id} accepted {A[at]} at {at} of {where}")
    np.testing.assert_array_equal(model.predict(X), before)


def damaged(rng, content: bytes) -> bytes:
    """The content with some bytes changed, cut off, removed, repeated or inserted."""
    a, b = sorted(int(i) for i in rng.integers(0, len(content) + 1, size=2))
    b = min(b, a + 64)
    kind = rng.integers(6)
    if kind == 0:
        changed = bytearray(content)
        for i in rng.integers(0, len(content), size=rng.integers(1, 4)):
            changed[i] ^= int(rng.integers(1, 256))
        return bytes(changed)
    noise = rng.bytes(int(rng.integers(1, 40)))
    return [
        content[:a],
        content[:a] + content[b:],
        content[:b] + content[a:b] + content[b:],
        content[:a] + noise + content[a:],
        content + noise,
    ][kind - 1]


def labelled_model(rng) -> Any:
    """A fitted search over a labelled array, a table with levels, blocks or kernels."""
    import pandas as pd
    import xarray as xr

    X, Y = a_problem(rng, n=30, d0=6, shape=(4, 3))
    search: Any = HOLRRCV(cv=3)
    kind = rng.integers(4)
    if kind == 0:
        dates = pd.date_range("2000-01-01", periods=30)
        grid = xr.DataArray(
            X.reshape(30, 2, 3), {"time": dates, "lat": [0.5, 1.5]}, ["time", "lat", "lon"]
        )
        outputs = xr.DataArray(Y, {"time": dates, "place": list("abcü")}, ["time", "place", "kind"])
        return search.fit(grid, outputs)
    if kind == 1:
        levels = pd.MultiIndex.from_product([["s", "t"], ["u", "v", "w"]], names=["site", "kind"])
        columns = pd.MultiIndex.from_product([["p", "q", "r", "s"], [1, 2, 3]])
        return search.fit(
            pd.DataFrame(X, columns=levels), pd.DataFrame(Y.reshape(30, 12), columns=columns)
        )
    if kind == 2:
        return search.fit({"a": X[:, :2], "b": X[:, 2:]}, Y)
    return KernelHOLRRCV(cv=3, kernel=["rbf", "linear"]).fit(X, Y)


def a_saved_model(rng, path: Path) -> None:
    """Write the file of a model with or without labels, or of a pipeline."""
    kind = rng.integers(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if kind == 0:
            model = crafted.pick(rng, pipelines.PIPELINES)()
            model.fit(*pipelines.objects(seed=int(rng.integers(100))))
        else:
            model = labelled_model(rng) if kind == 1 else fit(a_row(rng), *a_problem(rng))
    holrr.save(model, path)


@family
def damaged_files(rng) -> None:
    """A file with a flipped bit, or damaged otherwise, raises ValueError or loads as before.

    The files are of models with and without labels, of pipelines and of moments. 250 cases write
    5,000 files.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        read: Callable[[Path], Any] = holrr.load
        if rng.uniform() < 0.25:
            read = Moments.load
            Moments.from_arrays(*a_problem(rng), response_grams=bool(rng.integers(2))).save(path)
        else:
            a_saved_model(rng, path)
        expected, content = read(path), path.read_bytes()
        for k in range(20):
            path.write_bytes(flipped(rng, content) if k < 10 else damaged(rng, content))
            try:
                found = read(path)
            except ValueError:
                continue
            assert_same_state(found, expected)


def flipped(rng, content: bytes) -> bytes:
    """The content with one bit changed."""
    changed = bytearray(content)
    changed[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


@family
def crafted_files(rng) -> None:
    """A file that names foreign classes or functions is refused, and nothing of it is run.

    The files are of models with and without labels, and of pipelines.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        a_saved_model(rng, path)
        repr(holrr.load(path))  # imports what loading needs
        crafted.craft(rng, crafted.Contents.of(path)).write(path)
        assert loaded_or_refused(path) is None, "the file was loaded"


def loaded_or_refused(path: Path) -> Any:
    """What a file holds, or None where it is refused with a reason; no code may be run."""
    with pipelines.watching() as events, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of another version of scikit-learn
        try:
            found = holrr.load(path)
        except ValueError as error:
            assert str(path) in str(error), error  # noqa: PT017
            assert len(str(error)) > len(str(path)) + 20, error  # noqa: PT017
            found = None
    assert not events, events
    return found


WORDS = [
    "0.5",
    "2",
    "1,2",
    "0",
    "-1",
    "nan",
    "inf",
    "1e400",
    "",
    "x",
    "0.1,1",
    "3,3,3",
    "99999999999",
    "0:2",
    "1:",
    "a=0:1;b=*",
    "a=1,b=0.1",
    "auto",
    "0:0",
    "blocks=auto",
    "loss=huber",
    "input_rank=(1, 2)",
]
OPTIONS = ["--rank", "--max-rank", "--alpha", "--cv", "--kernel", "--output-weight", "--set"]
KINDS = ["holrr", "lrr", "rls", "kernel-holrr", "kernel-lrr", "kernel-rls"]


def run(*words: str) -> tuple[int, str]:
    """Exit code and messages of a command line."""
    said = streams.StringIO()
    with (
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(streams.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", UserWarning)
        code = main(list(words))
    return code, said.getvalue()


@family
def command_lines(rng) -> None:
    """Any words give a model that predicts, or one line that explains the error."""
    X, Y = a_problem(rng, n=24)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        np.save(place / "X.npy", X)
        np.save(place / "Y.npy", Y)
        words = ["fit", str(place / "X.npy"), str(place / "Y.npy"), "-o", str(place / "model")]
        words += ["--model", KINDS[rng.integers(len(KINDS))]]
        for name in rng.choice(OPTIONS, size=rng.integers(0, 4), replace=False):
            words += [str(name), WORDS[rng.integers(len(WORDS))]]
        code, said = run(*words)
        assert "Traceback" not in said
        if code != 0:
            assert len(said.strip().splitlines()) == 1, said
            assert not (place / "model").exists()
            return
        model = holrr.load(place / "model")
        code, said = run("predict", str(place / "model"), words[1], "-o", str(place / "P.npy"))
        assert code == 0, said
        np.testing.assert_allclose(np.load(place / "P.npy"), model.predict(X), rtol=1e-12)
        for more in ([], ["--json"]):
            assert run("info", str(place / "model"), *more)[0] == 0


@family
def foreign_tables(rng) -> None:
    """Of text files with odd cells all rows are read, or a line explains the error."""
    X, Y = a_problem(rng, n=20, d0=int(rng.integers(2, 6)), shape=(3,))
    rows = [",".join(f"{v:.17g}" for v in row) for row in X]
    at = int(rng.integers(len(rows)))
    bad = ["NA", "", "nan", "inf", "one", "1;2", "0x10"][rng.integers(7)]
    cells = rows[at].split(",")
    cells[rng.integers(len(cells))] = bad
    rows[at] = ",".join(cells)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "X.csv").write_text("\n".join(rows) + "\n")
        np.save(place / "Y.npy", Y)
        np.save(place / "good.npy", X)
        code, _ = run(
            "fit",
            str(place / "good.npy"),
            str(place / "Y.npy"),
            "-o",
            str(place / "m"),
            "--rank",
            "1",
        )
        assert code == 0
        code, said = run(
            "predict", str(place / "m"), str(place / "X.csv"), "-o", str(place / "P.npy")
        )
        assert "Traceback" not in said
        if code == 0:  # only the first line may be taken for a header
            assert at == 0
            assert len(np.load(place / "P.npy")) == len(X), f"a row with {bad!r} was left out"
