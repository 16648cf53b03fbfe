"""A case of the pairs of features: an estimator, its data, and what is observed of its fit.

`features.py` has the features, `relations.py` the relations that a fit with these features must
have, and `known.py` the defects that are known.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import Normalizer

from holrr import Moments, RollingMoments
from holrr.data import Along, Standardizer
from holrr.streaming import memory_budget
from problems import on_disk
from registry import Row

KINDS = ("entry", "pooled", "simultaneous")
SMALL = 2**7  # bytes of a memory budget in which no data fit: they are read in chunks
N_PARTS = 3  # batches, or sets of moments, of data that arrive in parts


@contextmanager
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class Case:
    """Data as plain arrays, and how they are passed to the estimator.

    Inputs are flat here. `modes`, `labels`, `dtype` and `source` say in what form they are passed.
    What refers to inputs or outputs (`own`, `output_weight`, ...) is part of the case, and not of
    `params`, so that a relation can permute it.
    """

    row: Row
    X: np.ndarray  # (n, d)
    Y: np.ndarray  # (n, d1, ..., dp), with NaN where missing
    Q: np.ndarray  # (m, d), inputs of the predictions
    params: dict[str, Any] = field(default_factory=dict)
    splits: list[tuple[np.ndarray, np.ndarray]] | None = None
    w: np.ndarray | None = None
    modes: tuple[int, ...] | dict[str, tuple[int, ...]] | None = None
    labels: str = "arrays"
    dtype: type = float
    source: str = "memory"
    transformer: str | None = None
    input_weight: np.ndarray | None = None  # (d,), of the transformer
    decay: float = 1.0
    output_weight: list[np.ndarray | None] | None = None
    own: np.ndarray | None = None  # (d, d1, ..., dp)
    block_of: np.ndarray | None = None  # (d,)
    block_alphas: list[float] | None = None
    alpha_of: np.ndarray | None = None  # (d1, ..., dp)
    landmarks: np.ndarray | None = None  # (k, d)
    scale: float = 1.0  # of Y, in units in which its signal is about one
    features: tuple[str, ...] = ()

    @property
    def n(self) -> int:
        return len(self.X)

    @property
    def n_weighted(self) -> int:
        return self.n if self.w is None else int(np.count_nonzero(self.w))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.Y.shape[1:]

    def param(self, name: str) -> Any:
        return self.params.get(name, self.row.params.get(name))

    @property
    def robust(self) -> bool:
        return self.param("loss") == "huber"

    @property
    def kernel(self) -> bool:
        return "kernel" in self.row.params

    @property
    def full_rank(self) -> bool:
        """Ridge regression, which treats every output separately."""
        return "RLS" in type(self.row.estimator).__name__

    @property
    def stacks(self) -> bool:
        return self.param("selection") == "auto" and not self.param("refine")

    @cached_property
    def unseen(self) -> np.ndarray:
        """Outputs that are never observed, or have no weight."""
        found = np.isnan(self.Y).all(axis=0)
        for mode, v in enumerate(self.output_weight or []):
            if v is not None:
                found = found | np.expand_dims(
                    v == 0, [k for k in range(len(self.shape)) if k != mode]
                )
        return found

    @cached_property
    def incomplete(self) -> bool:
        """Outputs that are observed in some samples are missing in others."""
        return bool((np.isnan(self.Y) & ~np.isnan(self.Y).all(axis=0)).any())

    @property
    def kept_slices(self) -> list[np.ndarray]:
        """Slices of each output mode in which some output is observed."""
        axes = range(len(self.shape))
        return [
            np.flatnonzero(~self.unseen.all(axis=tuple(k for k in axes if k != mode)))
            for mode in axes
        ]

    @property
    def slices_only(self) -> bool:
        """Whole slices are never observed, and no other outputs."""
        return not self.unseen[np.ix_(*self.kept_slices)].any()

    @property
    def imputes(self) -> bool:
        """The fit alternates with imputations, and stops at a tolerance."""
        cells = "HOLRR" in type(self.row.estimator).__name__ and not self.slices_only
        return not self.full_rank and (self.incomplete or cells)

    @property
    def iterates(self) -> bool:
        """The fit stops at a tolerance instead of at the last digit."""
        return bool(self.row.tol > 1e-9 or self.param("refine") or self.imputes)

    @property
    def interpolates(self) -> bool:
        """The residuals of a fit without penalty are rounding errors, and so is its noise."""
        free = self.X.shape[1] + self.param("fit_intercept")
        return self.param("alpha") == 0 and self.n_weighted <= free

    @property
    def searches_blocks(self) -> bool:
        return self.row.searches and self.block_of is not None

    @property
    def tol(self) -> float:
        """How much two computations may differ, relative to the size of the quantity."""
        if self.imputes:
            return 2e-2  # missing.md: coefficients differ from the limit by up to 2 %
        if self.dtype == np.float32:
            return 3e-3
        if self.searches_blocks:
            return 1e-3  # of a quasi-Newton method
        if self.kernel:
            return 1e-5  # a Gram matrix squares the condition number
        return 1e-4 if self.iterates else 1e-6

    # ------------------------------------------------------------ other cases

    def take(self, rows: np.ndarray) -> Case:
        """The case of these samples, in this order; one that repeats stays in its fold."""
        splits = self.splits and [
            tuple(np.flatnonzero(np.isin(rows, part)) for part in pair) for pair in self.splits
        ]
        w = None if self.w is None else self.w[rows]
        return replace(self, X=self.X[rows], Y=self.Y[rows], w=w, splits=splits)

    def with_inputs(self, change: Callable[[np.ndarray], np.ndarray], **others: Any) -> Case:
        """The case of other inputs: of the samples, the landmarks and the predictions."""
        landmarks = None if self.landmarks is None else change(self.landmarks)
        return replace(self, X=change(self.X), Q=change(self.Q), landmarks=landmarks, **others)

    def with_penalties(self, factor: float) -> Case:
        """All penalties on squared coefficients, multiplied."""
        params = dict(self.params)
        for name in ("alpha", "own_alpha"):
            if self.param(name) is not None:
                params[name] = self.param(name) * factor
        if self.param("alphas") is not None:
            params["alphas"] = [value * factor for value in self.param("alphas")]
        blocks = self.block_alphas and [value * factor for value in self.block_alphas]
        alpha_of = None if self.alpha_of is None else self.alpha_of * factor
        return replace(self, params=params, block_alphas=blocks, alpha_of=alpha_of)

    # ------------------------------------------------------------ what the estimator gets

    def parameters(self) -> dict[str, Any]:
        found = dict(self.params)
        if self.splits is not None:
            found["cv"] = self.splits
        if self.output_weight is not None:
            found["output_weight"] = self.output_weight
        if self.own is not None:
            found["own"] = self.own.reshape(len(self.own), -1)
        if self.block_of is not None:
            named = isinstance(self.modes, dict)
            found["blocks"] = "auto" if named else [f"b{k}" for k in self.block_of]
            if self.block_alphas is not None:
                names = list(self.modes) if named else [f"b{k}" for k in np.unique(self.block_of)]
                found["alpha"] = dict(zip(names, self.block_alphas, strict=True))
        if self.alpha_of is not None:
            found["alpha"] = self.alpha_of
        if self.landmarks is not None:
            found["landmarks"] = self.inputs(self.landmarks)
        if self.labels == "flat":
            found |= {"output_shape": self.shape, "input_shape": self.modes}
        if self.labels == "precomputed":
            found["kernel"] = "precomputed"
        return found

    def inputs(self, X: np.ndarray) -> Any:
        """Inputs in the form in which they are passed."""
        return TRANSFORMERS[self.transformer](self, X)

    def outputs(self) -> Any:
        return LABELS[self.labels][1](self, self.Y.astype(self.dtype))

    def model(self) -> Any:
        """The fitted estimator."""
        with quiet():
            return SOURCES[self.source][0](self, self.row.make(**self.parameters()))

    def neighbours_depend(self) -> bool:
        """Whether the search warns that neighbouring samples depend on each other."""
        if not self.row.has_intervals:
            return False
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            SOURCES[self.source][0](self, self.row.make(**self.parameters()))
        return any("residuals of neighbouring samples" in str(one.message) for one in found)

    def effective_weights(self) -> np.ndarray | None:
        """Weights with which one fit in memory is the same as that of the source."""
        return SOURCES[self.source][1](self)

    # ------------------------------------------------------------ what is observed of a fit

    def plain(self, found: Any, n: int | None = None) -> np.ndarray:
        """Predictions of any type as an array of shape (n, d1, ..., dp)."""
        found = found.compute() if hasattr(found, "compute") else found
        if hasattr(found, "data_vars"):
            found = np.stack([found[name].to_numpy() for name in found.data_vars], axis=1)
        elif hasattr(found, "to_numpy"):
            found = found.to_numpy()
        return np.asarray(found).reshape((*(() if n is None else (n,)), *self.shape))

    def query(self) -> Any:
        return self.inputs(self.Q)

    def observe(self, model: Any) -> dict[str, Any]:
        """Predictions, uncertainties, errors and choices, by name."""
        Q, m, found = self.query(), len(self.Q), {}
        with quiet():
            found["predict"] = self.plain(model.predict(Q), m)
            if self.row.has_noise:
                found["std"] = self.plain(model.predict(Q, return_std=True)[1], m)
                found["noise"] = self.plain(model.noise_)
            if self.row.has_intervals:
                for kind in KINDS:
                    ends = model.predict_interval(Q, 0.5, kind=kind)
                    for end, values in zip(("lower", "upper"), ends, strict=True):
                        found[f"{end} {kind}"] = self.plain(values, m)
        for name in NUMBERS:
            value = getattr(model, name, None)
            if value is not None:
                found[name] = value
        if not self.row.ridge:
            found.pop("objective_", None)
            found.pop("lower_bound_", None)
        return found

    def unit(self, name: str) -> float:
        """Size of a quantity below which differences are rounding."""
        unit = self.scale ** POWERS.get(name, 1)
        return unit * self.Y.size if name in ("objective_", "lower_bound_") else unit  # sums


# Attributes that are compared, and the power with which the unit of y enters them.
NUMBERS = (
    "held_out_mse_",
    "null_mse_",
    "ridge_mse_",
    "objective_",
    "lower_bound_",
    "robust_weight_",
    "rank_",
    "input_rank_",
)
POWERS = dict.fromkeys(NUMBERS, 2) | dict.fromkeys(("robust_weight_", "rank_", "input_rank_"), 0)


# ---------------------------------------------------------------- forms of the data


def columns(case: Case, X: np.ndarray) -> dict[str, np.ndarray]:
    """Blocks of inputs by name."""
    ends = np.cumsum([int(np.prod(shape)) for shape in case.modes.values()])
    parts = np.split(X, ends[:-1], axis=1)
    return {
        name: part.reshape(len(X), *shape)
        for (name, shape), part in zip(case.modes.items(), parts, strict=True)
    }


def arrays_x(case: Case, X: np.ndarray) -> Any:
    if isinstance(case.modes, dict):
        return columns(case, X)
    return X if case.modes is None else X.reshape(len(X), *case.modes)


def names_of(letter: str, shape: tuple[int, ...]) -> Any:
    import pandas as pd

    levels = [[f"{letter}{k}{i}" for i in range(d)] for k, d in enumerate(shape)]
    if len(levels) == 1:
        return levels[0]
    return pd.MultiIndex.from_product(levels, names=[f"{letter}{k}" for k in range(len(shape))])


def pandas_x(case: Case, X: np.ndarray) -> Any:
    import pandas as pd

    return pd.DataFrame(X, columns=names_of("x", case.modes or (X.shape[1],)))


def pandas_y(case: Case, Y: np.ndarray) -> Any:
    import pandas as pd

    if Y.ndim == 1:
        return pd.Series(Y)
    return pd.DataFrame(Y.reshape(len(Y), -1), columns=names_of("y", Y.shape[1:]))


def polars_x(case: Case, X: np.ndarray) -> Any:
    import polars as pl

    return pl.DataFrame(X, schema=[f"x{i}" for i in range(X.shape[1])], orient="row")


def polars_y(case: Case, Y: np.ndarray) -> Any:
    import polars as pl

    return pl.DataFrame(Y, schema=[f"y{i}" for i in range(Y.shape[1])], orient="row")


def xarray_x(case: Case, X: np.ndarray) -> Any:
    import xarray as xr

    def one(A: np.ndarray, name: str) -> Any:
        dims = [f"{name}{k}" for k in range(A.ndim - 1)]
        return xr.DataArray(A, dims=["time", *dims], name=name)

    data = arrays_x(case, X)
    if isinstance(data, dict):
        return xr.Dataset({name: one(A, name) for name, A in data.items()})
    return one(data, "x")


def xarray_y(case: Case, Y: np.ndarray) -> Any:
    import xarray as xr

    return xr.DataArray(Y, dims=["time", *(f"y{k}" for k in range(Y.ndim - 1))], name="y")


def dataset_y(case: Case, Y: np.ndarray) -> Any:
    import xarray as xr

    dims = ["time", *(f"y{k}" for k in range(1, Y.ndim - 1))]
    return xr.Dataset({f"v{k}": (dims, Y[:, k]) for k in range(Y.shape[1])})


def precomputed_x(case: Case, X: np.ndarray) -> Any:
    return rbf_kernel(X, case.X, gamma=case.row.params.get("gamma") or 0.1)


def same(case: Case, A: np.ndarray) -> np.ndarray:
    return A


# Name -> functions of the case that give inputs and outputs.
LABELS: dict[str, tuple[Callable[[Case, np.ndarray], Any], Callable[[Case, np.ndarray], Any]]] = {
    "arrays": (arrays_x, same),
    "flat": (same, lambda case, Y: Y.reshape(len(Y), -1)),
    "pandas": (pandas_x, pandas_y),
    "polars": (polars_x, polars_y),
    "xarray": (xarray_x, xarray_y),
    "Dataset": (xarray_x, dataset_y),
    "precomputed": (precomputed_x, same),
}


def as_labelled(case: Case, X: np.ndarray) -> Any:
    return LABELS[case.labels][0](case, X.astype(case.dtype))


def weight_of(case: Case) -> np.ndarray | None:
    """Weights of the inputs in the shape of the inputs of a sample."""
    if case.input_weight is None or case.modes is None or case.labels == "flat":
        return case.input_weight
    return case.input_weight.reshape(case.modes)


TRANSFORMERS: dict[str | None, Callable[[Case, np.ndarray], Any]] = {
    None: as_labelled,
    "Standardizer": lambda case, X: (
        Standardizer(weight=weight_of(case))
        .fit(as_labelled(case, case.X))
        .transform(as_labelled(case, X))
    ),
    "Along": lambda case, X: (
        Along(Normalizer()).fit(as_labelled(case, case.X)).transform(as_labelled(case, X))
    ),
}


# ---------------------------------------------------------------- sources


def parts_of(case: Case) -> list[np.ndarray]:
    return np.array_split(np.arange(case.n), N_PARTS)


def data_of(case: Case, rows: np.ndarray | None = None) -> tuple[Any, Any, Any]:
    part = case if rows is None else replace(case, X=case.X[rows], Y=case.Y[rows])
    w = case.w if rows is None or case.w is None else case.w[rows]
    return replace(part, transformer=None).inputs(part.X), part.outputs(), w


def in_memory(case: Case, model: Any) -> Any:
    return model.fit(case.inputs(case.X), case.outputs(), case.w)


def from_disk(case: Case, model: Any) -> Any:
    X, Y, w = data_of(case)
    with tempfile.TemporaryDirectory() as folder, memory_budget(SMALL):
        return model.fit(on_disk(Path(folder), "X", X), on_disk(Path(folder), "Y", Y), w)


def from_hdf5(case: Case, model: Any) -> Any:
    import dask.array as da
    import h5py

    X, Y, w = data_of(case)
    with (
        tempfile.TemporaryDirectory() as folder,
        h5py.File(Path(folder) / "data.h5", "w") as file,
        memory_budget(SMALL),
    ):
        stored = [file.create_dataset(name, data=A) for name, A in (("X", X), ("Y", Y))]
        return model.fit(*map(da.from_array, stored), w)


def from_dask(case: Case, model: Any) -> Any:
    import dask.array as da

    X, Y, w = data_of(case)
    chunk = case.n // 3 + 1
    lazy = [
        da.from_array(A, chunks=(chunk, *(max(1, k // 2) for k in A.shape[1:]))) for A in (X, Y)
    ]
    return model.fit(*lazy, w)


def from_sparse(case: Case, model: Any) -> Any:
    import scipy.sparse

    X, Y, w = data_of(case)
    return model.fit(scipy.sparse.csr_array(X), Y, w)


def from_batches(case: Case, model: Any) -> Any:
    for rows in parts_of(case):
        model.partial_fit(*data_of(case, rows), decay=case.decay)
    return model


def moments_of(case: Case, rows: np.ndarray) -> Moments:
    missing = "ignore" if np.isnan(case.Y).any() else "raise"
    grams = case.param("subspaces") == "response"
    return Moments.from_arrays(*data_of(case, rows), missing=missing, response_grams=grams)


def from_moments(case: Case, model: Any) -> Any:
    first, *rest = [moments_of(case, rows) for rows in parts_of(case)]
    return model.fit_moments(first.merge(*rest))


def from_window(case: Case, model: Any) -> Any:
    window = RollingMoments(n_parts=N_PARTS - 1)
    for rows in parts_of(case):
        window.append(moments_of(case, rows))
    return model.fit_moments(window.total())


def from_folds(case: Case, model: Any) -> Any:
    return model.fit_fold_moments([moments_of(case, test) for _, test in case.splits])


def all_weights(case: Case) -> np.ndarray | None:
    return case.w


def decayed(case: Case) -> np.ndarray:
    w = np.ones(case.n) if case.w is None else case.w.astype(float)
    for age, rows in enumerate(reversed(parts_of(case))):
        w = w.copy()
        w[rows] *= case.decay**age
    return w


def in_window(case: Case) -> np.ndarray:
    w = np.ones(case.n) if case.w is None else case.w.astype(float)
    w = w.copy()
    w[parts_of(case)[0]] = 0
    return w


# Name -> the fit, and the weights with which a fit in memory is the same.
SOURCES: dict[str, tuple[Callable[[Case, Any], Any], Callable[[Case], np.ndarray | None]]] = {
    "memory": (in_memory, all_weights),
    "disk": (from_disk, all_weights),
    "hdf5": (from_hdf5, all_weights),
    "dask": (from_dask, all_weights),
    "sparse": (from_sparse, all_weights),
    "batches": (from_batches, decayed),
    "moments": (from_moments, all_weights),
    "window": (from_window, in_window),
    "fold moments": (from_folds, all_weights),
}
