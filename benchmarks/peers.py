"""Time of fits and searches compared with other libraries, and accuracy on the same folds.

    python benchmarks/peers.py [--quick] [--part fits searches kernels penalised libraries]
                               [--threads 2] [--repeats 5]

Each row of the first four parts is a ratio of two medians: of calls of this library and of another
one (or of a bare product, or of another search of ours). The two take turns after a warm-up.

- fits: `HOLRR` with rank 5 in every mode, and scikit-learn's `Ridge` on flattened outputs or the
  product X'Y. With several threads, the BLAS libraries of NumPy and SciPy slow each other down for
  a tenth of a second, so each call is preceded by a rest.
- searches: over 13 penalties and all ranks in five folds, and searches without ranks.
- kernels: rbf kernels, and `KernelRidge`, its grid search, and himalaya's `KernelRidgeCV`.
- penalised: trace norm and MLMT-NC on 100 samples with coefficients 10x10x10x10, and `HOLRR`.

The part "libraries" compares searches of six libraries on simulated climate maps and real data, as
R2 of all test samples of five outer folds, and CPU seconds of the search on one thread. Every
search chooses its settings by the same five inner folds:

- HOLRRCV, and RidgeCV of scikit-learn and himalaya: 13 penalties from 0.01 to 10,000. HOLRRCV also
  tries all ranks. RidgeCV of himalaya chooses a penalty for each output.
- PLSRegression: 1 to 32 components, 10 numbers of them.
- CPRegressor: CP ranks 1, 2, 4, 8 and 16, as long as rank x inputs is at most 600 (the time grows
  with the square of this product), and penalties 1, 10 and 100. It stops after 25 iterations, since
  50 changed the R2 on new samples by at most 0.003 on the first two data sets.
- CPCCA of xeofs: 1 to 12 modes, 7 numbers of them, and exponents 0, 0.5 and 1 of the inputs.

Libraries that are not installed are left out.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold
from threadpoolctl import threadpool_limits

from common import medians, options_of, quietly, show, size_of
from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    MLMTNC,
    RLS,
    RLSCV,
    KernelHOLRR,
    KernelHOLRRCV,
    KernelLRRCV,
    KernelRLSCV,
    TraceNormRegression,
)
from holrr.datasets import make_climate_maps, make_tensor_regression
from real_data import inner_folds, outer_folds
from real_data_tasks import TASKS, available

ALPHAS = np.logspace(-2, 4, 13)
KERNEL_ALPHAS = np.logspace(-4, 2, 13)
REST = 0.2
Size = tuple[int, int, tuple[int, ...]]
# Name, our call and that of the peer.
Pair = tuple[str, Callable[[], Any], Callable[[], Any]]


def data(n: int, d0: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return inputs, outputs of rank 4 with noise as strong as the signal, and flat outputs."""
    rank = tuple(min(4, d) for d in (d0, *shape))
    X, Y = make_tensor_regression(
        n, n_features=d0, output_shape=shape, rank=rank, snr=1.0, random_state=0
    )
    return X, Y, Y.reshape(n, -1)


def of_rank(rank: int, d0: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(min(rank, d) for d in (d0, *shape))


def fits(quick: bool) -> Iterator[Pair]:
    sizes: list[Size] = [(2000, 50, (20, 20, 20)), (20_000, 50, (20, 20)), (100_000, 20, (10, 10))]
    sizes += [(100, 10, (10, 10, 10)), (100, 3, (70, 70)), (100, 160, (5, 16, 5))]
    for n, d0, shape in [(50, 5, (3, 4))] if quick else sizes:
        X, Y, flat = data(n, d0, shape)
        model, where = HOLRR(of_rank(5, d0, shape)), size_of(n, d0, shape)
        fit = partial(model.fit, X, Y)
        yield f"HOLRR / Ridge, {where}", fit, partial(Ridge().fit, X, flat)
        yield f"HOLRR / X'Y, {where}", fit, partial(np.matmul, X.T, flat)
    X, Y, flat = data(1000, 20, (10, 10))
    ours, peer = HOLRR(5).fit(X, Y), Ridge().fit(X, flat)
    yield (
        "predict of one row / Ridge, 20 -> 10x10",
        *(partial(m.predict, X[:1]) for m in (ours, peer)),
    )


def with_missing(Y: np.ndarray) -> np.ndarray:
    """Return outputs of which a fifth is missing at random."""
    return np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)


def searches(quick: bool) -> Iterator[Pair]:
    cases: list[tuple[Any, Any, Size]] = [
        (HOLRRCV(ALPHAS), RidgeCV(ALPHAS, cv=5), (2000, 50, (20, 20, 20))),
        (HOLRRCV(), RLSCV(), (4400, 790, (24, 12, 6))),
        (HOLRRCV(), LRRCV(), (300, 40, (20000,))),
        (LRRCV(), HOLRRCV(), (1029, 972, (108, 3))),
        (RLSCV(), LRRCV(), (122, 6375, (125, 17))),
    ]
    small = (60, 8, (4, 3))
    for ours, peer, size in cases:
        n, d0, shape = small if quick else size
        X, Y, flat = data(n, d0, shape)
        name = f"{type(ours).__name__} / {type(peer).__name__}, {size_of(n, d0, shape)}"
        target = flat if isinstance(peer, RidgeCV) else Y
        yield name, partial(ours.fit, X, Y), partial(peer.fit, X, target)
    for n, d0, shape in [small] if quick else [(2000, 50, (20, 20, 20)), (200, 10, (12, 8, 6))]:
        X, Y, _ = data(n, d0, shape)
        models = HOLRRCV(ALPHAS), HOLRR(of_rank(4, d0, shape))
        yield (
            f"HOLRRCV / single fit, {size_of(n, d0, shape)}",
            *(partial(m.fit, X, Y) for m in models),
        )
    n, d0, shape = small if quick else (478, 324, (3, 16, 5))
    X, Y, _ = data(n, d0, shape)
    holes = with_missing(Y)
    for kind in (RLSCV, HOLRRCV):
        name = f"{kind.__name__}, a fifth missing / complete, {size_of(n, d0, shape)}"
        yield name, partial(kind(missing="ignore").fit, X, holes), partial(kind().fit, X, Y)


def kernels(quick: bool) -> Iterator[Pair]:
    rbf, small = {"kernel": "rbf", "gamma": 0.05}, (60, 8, (4, 3))
    X, Y, flat = data(*(small if quick else (3000, 20, (10, 10, 10))))
    name = f"KernelHOLRR / KernelRidge, {size_of(*X.shape, Y.shape[1:])}"
    model = KernelHOLRR(of_rank(4, 20, Y.shape[1:]), **rbf)
    yield name, partial(model.fit, X, Y), partial(KernelRidge(**rbf).fit, X, flat)
    for size in [small] if quick else [(1000, 20, (10, 10)), (2000, 20, (5, 16, 5))]:
        X, Y, flat = data(*size)
        grid = GridSearchCV(KernelRidge(**rbf), {"alpha": KERNEL_ALPHAS}, cv=5)
        ours = {k.__name__: k(KERNEL_ALPHAS, gammas=0.05) for k in (KernelRLSCV, KernelLRRCV)}
        ours["KernelHOLRRCV"] = KernelHOLRRCV(KERNEL_ALPHAS, gammas=0.05)
        if find_spec("himalaya"):
            from himalaya.kernel_ridge import KernelRidgeCV

            one = {"kernel_params": {"gamma": 0.05}, "solver_params": {"local_alpha": False}}
            ours["himalaya KernelRidgeCV"] = KernelRidgeCV(KERNEL_ALPHAS, "rbf", cv=5, **one)
        for name, model in ours.items():
            y = flat if "himalaya" in name else Y
            name = f"{name} / GridSearchCV(KernelRidge), {size_of(*size)}"
            yield name, partial(model.fit, X, y), partial(grid.fit, X, flat)
    sizes = [(548, 15, (33, 49)), (24, 4, (116, 18)), (59, 1200, (12, 10, 50))]
    for size in [small] if quick else sizes:
        X, Y, _ = data(*size)
        grid = {"gammas": np.logspace(-3, 0, 6)}
        models = [k(KERNEL_ALPHAS, **grid) for k in (KernelHOLRRCV, KernelRLSCV)]
        yield (
            f"KernelHOLRRCV / KernelRLSCV, six widths, {size_of(*size)}",
            *(partial(m.fit, X, Y) for m in models),
        )


def penalised(quick: bool) -> Iterator[Pair]:
    shape, rank = ((4, 3, 4), (2, 2, 2)) if quick else ((10, 10, 10, 10), (6, 4, 4, 8))
    for what, noise in (("little noise", {"noise": 0.1}), ("noise as the signal", {"snr": 1.0})):
        X, Y = make_tensor_regression(
            100, n_features=shape[0], output_shape=shape[1:], rank=rank, random_state=0, **noise
        )
        holrr = HOLRR(rank, fit_intercept=False)
        models = {
            "RLS": RLS(fit_intercept=False),
            "LRR": LRR(rank[0], fit_intercept=False),
            "trace norm": TraceNormRegression(10.0, fit_intercept=False),
            "MLMT-NC": MLMTNC(rank, 1.0, fit_intercept=False),
        }
        for name, model in models.items():
            where = size_of(100, shape[0], shape[1:])
            yield (
                f"{name} / HOLRR, {what}, {where}",
                *(partial(m.fit, X, Y) for m in (model, holrr)),
            )


PARTS = {"fits": fits, "searches": searches, "kernels": kernels, "penalised": penalised}


def timed(pairs: Iterator[Pair], repeats: int, rest: float) -> Iterator[list[str]]:
    for name, ours, peer in pairs:
        a, b = medians([ours, peer], repeats, rest=rest)
        yield [name, f"{1e3 * a:.4g}", f"{1e3 * b:.4g}", f"{a / b:.3g}"]


# ---------------------------------------------------------------- accuracy of libraries

MAPS = "climate maps"
DATA = (MAPS, "EEG", "antibodies", "countries", "faces")
LARGEST_CP = 600  # rank x inputs
SLOW = ("TensorLy CPRegressor", "xeofs CPCCA")
FLAT = ("scikit-learn RidgeCV", "scikit-learn PLSRegression", "himalaya RidgeCV")


class CP(RegressorMixin, BaseEstimator):
    """CPRegressor of TensorLy with an intercept, and with parameters as GridSearchCV wants them."""

    def __init__(self, rank: int = 1, penalty: float = 1.0):
        self.rank, self.penalty = rank, penalty

    def fit(self, X: np.ndarray, Y: np.ndarray) -> CP:
        from tensorly.regression.cp_regression import CPRegressor

        self.means_ = X.mean(axis=0), Y.mean(axis=0)
        model = CPRegressor(self.rank, reg_W=self.penalty, n_iter_max=25, random_state=0, verbose=0)
        with np.errstate(all="ignore"):  # it divides by weights that may vanish
            self.model_ = model.fit(X - self.means_[0], Y - self.means_[1])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.predict(X - self.means_[0]) + self.means_[1]


class CrossPatterns(RegressorMixin, BaseEstimator):
    """CPCCA of xeofs (CCA, MCA and what lies between) as a regression."""

    def __init__(self, n_modes: int = 1, power: float = 1.0):
        self.n_modes, self.power = n_modes, power

    def fit(self, X: np.ndarray, Y: np.ndarray) -> CrossPatterns:
        from xeofs.cross import CPCCA

        self.model_ = CPCCA(self.n_modes, alpha=[self.power, 1.0], use_pca=False)
        self.model_.fit(_labelled(X), _labelled(Y), dim="row")
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.model_.inverse_transform(Y=self.model_.predict(_labelled(X))).to_numpy()


def _labelled(array: np.ndarray) -> Any:
    import xarray as xr

    names = ["row", *(f"mode{i}" for i in range(1, array.ndim))]
    coords = {name: np.arange(d) for name, d in zip(names, array.shape, strict=True)}
    return xr.DataArray(array, coords=coords)


def neg_mse(model: Any, X: np.ndarray, Y: np.ndarray) -> float:
    """Return the negative mean squared error; a score for GridSearchCV."""
    error = np.mean((model.predict(X) - Y) ** 2)
    return -float(error) if np.isfinite(error) else -1e300


def library_searches(n_samples: int, n_inputs: int, folds: KFold) -> dict[str, Any]:
    """Return the searches of the installed libraries by name.

    Parameters
    ----------
    n_samples, n_inputs : int
        Numbers of samples and inputs of the smallest training set, which limit the settings.
    folds : KFold
        Inner folds.
    """
    options = {"cv": folds, "scoring": neg_mse}
    rank = min(n_inputs, n_samples - n_samples // 5 - 2)
    components = [k for k in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32) if k <= rank]
    pls = PLSRegression(scale=False)
    found: dict[str, Any] = {
        "HOLRRCV": HOLRRCV(ALPHAS, cv=folds),
        "scikit-learn RidgeCV": RidgeCV(ALPHAS, cv=folds, scoring="neg_mean_squared_error"),
        "scikit-learn PLSRegression": GridSearchCV(pls, {"n_components": components}, **options),
    }
    if find_spec("himalaya"):
        from himalaya.ridge import RidgeCV as HimalayaRidgeCV

        found["himalaya RidgeCV"] = HimalayaRidgeCV(ALPHAS, cv=folds, fit_intercept=True)
    if find_spec("tensorly"):
        ranks = [k for k in (1, 2, 4, 8, 16) if k * n_inputs <= LARGEST_CP]
        grid: dict[str, list] = {"rank": ranks, "penalty": [1.0, 10.0, 100.0]}
        found["TensorLy CPRegressor"] = GridSearchCV(CP(), grid, **options)
    if find_spec("xeofs"):
        modes = [k for k in (1, 2, 3, 4, 6, 8, 12) if k <= rank]
        grid = {"n_modes": modes, "power": [0.0, 0.5, 1.0]}
        found["xeofs CPCCA"] = GridSearchCV(CrossPatterns(), grid, **options)
    return found


def load(name: str) -> tuple[np.ndarray, np.ndarray, list, KFold]:
    """Return inputs, outputs, outer folds and inner folds of a data set."""
    if name == MAPS:
        X, Y = make_climate_maps(random_state=0)
        return X, Y, [(np.arange(60), np.arange(60, 480))], KFold(5)
    X, Y = TASKS[name].load()
    return X, Y, list(outer_folds(TASKS[name], len(X), 5)), inner_folds(TASKS[name].rows)


@quietly
def libraries(name: str, left_out: Sequence[str] = ()) -> dict[str, str]:
    """Return R2 and, in brackets, CPU seconds of the searches of libraries on one data set."""
    X, Y, outer, inner = load(name)
    n_samples = min(len(train) for train, _ in outer)
    found = {}
    for library, search in library_searches(n_samples, X.shape[1], inner).items():
        if library in left_out:
            continue
        residual = total = seconds = 0.0
        for train, test in outer:
            A = (X - X[train].mean(axis=0)) / np.maximum(X[train].std(axis=0), 1e-12)
            B = (Y - Y[train].mean(axis=0)) / Y[train].std()
            B = B.reshape(len(B), -1) if library in FLAT else B
            start = time.process_time()
            model = clone(search).fit(A[train], B[train])
            seconds += (time.process_time() - start) / len(outer)
            total += float(np.sum(B[test] ** 2))
            predicted = np.asarray(model.predict(A[test])).reshape(B[test].shape)
            residual += float(np.sum((predicted - B[test]) ** 2))
        found[library] = f"{1 - residual / total:.3f} ({seconds:.3g})"
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = options_of(__doc__)
    names = [*PARTS, "libraries"]
    parser.add_argument("--part", nargs="+", choices=names, default=names)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", message="The best penalty|The error surfaces")
    repeats, rest = (1, 0.0) if args.quick else (args.repeats, REST)
    for part in args.part:
        if part == "libraries":
            known = [n for n in DATA[: 1 if args.quick else None] if n == MAPS or available(n)]
            columns = {name: libraries(name, SLOW if args.quick else ()) for name in known}
            of_any = dict.fromkeys(lib for found in columns.values() for lib in found)
            rows = [[lib, *(found.get(lib, "") for found in columns.values())] for lib in of_any]
            show("R2 on new samples (CPU seconds of the search)", ["", *columns], rows)
            continue
        with threadpool_limits(args.threads):
            head = ["ours / theirs", "ours, ms", "theirs, ms", "ratio"]
            show(
                f"Time, {args.threads} threads, {part}",
                head,
                timed(PARTS[part](args.quick), repeats, rest),
            )


if __name__ == "__main__":
    main()
