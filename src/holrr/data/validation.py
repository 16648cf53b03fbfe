"""Validation: conversion of user data to checked samples in memory, or to data in chunks.

Every `fit`, `partial_fit`, `predict` and `score` validates its data here. Validation does not
change the estimator: names and labels are returned as a record, which `fit` assigns at its end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..core.checks import check_finite, unit_of
from ..core.moments import check_sizes
from ..core.namespace import (
    Array,
    all_to_numpy,
    is_small_on_device,
    namespace_of,
    to_numpy,
)
from ..core.sparse import is_sparse
from ..streaming.chunks import Chunks, for_workers, open_chunks
from .arrays import (
    check_inputs,
    check_matrix,
    check_outputs,
    check_pair,
    check_weights,
    comes_from,
    computed,
    ignores_missing,
    is_dask,
    nan_for_masked,
    refuse_sparse,
    take,
    weights_of,
)
from .inputs import (
    Inputs,
    column_names,
    drop_missing,
    find_used_cells,
    grids_of_shape,
    n_columns,
    select_columns,
    whole_axes,
    with_inputs,
)
from .labels import Grid, Labels, check_features, features_of, other_features
from .scores import check_scored, errors_of
from .unlabel import Unlabelled, dimension_of_inputs, has_dims, unlabel, unlabel_inputs
from .unusual import largest_leverage

__all__ = ["Names", "Samples", "SparseSamples", "compare_inputs", "named", "names_of_inputs"]
__all__ += ["names_of_moments"]
__all__ += ["open_data", "score_errors", "sparse_samples", "validate"]
__all__ += ["validate_inputs", "validate_points", "whole_points", "without_missing"]


@dataclass(frozen=True, eq=False)
class Names:
    """Number and names of the features of a fit, labels of its data, and largest leverage."""

    n_features: int
    features: np.ndarray | None = None  # of shape (n_features,)
    labels: Labels | None = None
    largest_leverage: float | None = None

    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes that store names and labels."""
        found: dict[str, Any] = {"n_features_in_": self.n_features}
        if self.features is not None:
            found["feature_names_in_"] = self.features
        if self.labels is not None:
            found["labels_"] = self.labels
        if self.largest_leverage is not None:
            found["_largest_leverage"] = self.largest_leverage
        return found

    def with_leverage(self, hat: dict[str, Any] | None, data: Any) -> Names:
        """Return the names with the largest leverage of training samples in memory.

        Parameters
        ----------
        hat : dict or None
            As `Fit.hat`.
        data : Samples or Chunks
        """
        if not isinstance(data, Samples):
            return self
        limit = largest_leverage(hat, data.X, data.w, data.x_unit)
        return replace(self, largest_leverage=limit)


@dataclass(frozen=True, eq=False)
class Samples:
    """Checked samples in memory.

    `Y` has the array library, the device and the dtype of `X`. The first pass over `Y` checks that
    it is finite, since a separate pass would cost as much as a fit.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    Y : array of shape (n_samples, d1, ..., dp)
    w : array of shape (n_samples,), or None
        Weights, in float64.
    x_unit, y_unit : float
        Powers of two that the user's data were divided by.
    """

    X: Array
    Y: Array
    w: Array | None = None
    x_unit: float = 1.0
    y_unit: float = 1.0

    @property
    def n_samples(self) -> int:
        """Number of samples, including those without weight."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return self.X.shape[1]

    @property
    def output_shape(self) -> tuple[int, ...]:
        """``(d1, ..., dp)``."""
        return tuple(self.Y.shape[1:])

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(self.n_samples) if self.w is None else float(namespace_of(self.w).sum(self.w))

    @property
    def work(self) -> float:
        """Estimated multiply-adds of a linear fit."""
        n, d = self.X.shape
        return n * d * (d + math.prod(self.Y.shape[1:]))

    def rows(self, index: np.ndarray) -> Samples:
        """Return some of the samples."""
        X, Y, w = (take(A, index) for A in (self.X, self.Y, self.w))
        return replace(self, X=X, Y=Y, w=w)

    def scaled(self, *, inputs: bool = True) -> Samples:
        """Return samples divided by powers of two, so that squares neither overflow nor underflow.

        Data of ordinary size are returned unchanged. With ``inputs=False`` inputs are not divided:
        a kernel depends on their scale.
        """
        x_unit, y_unit = unit_of(self.X) if inputs else 1.0, unit_of(self.Y)
        if x_unit == y_unit == 1.0:
            return self
        X = self.X if x_unit == 1.0 else self.X / x_unit
        Y = self.Y if y_unit == 1.0 else self.Y / y_unit
        return Samples(X, Y, self.w, x_unit * self.x_unit, y_unit * self.y_unit)

    def to_host_if_small(self) -> Samples:
        """Return the samples on the host if they are small and on an accelerator."""
        size = math.prod(self.X.shape) + math.prod(self.Y.shape)
        if type(self.X) is np.ndarray or not is_small_on_device(self.X, size):
            return self
        X, Y = all_to_numpy([self.X, self.Y])
        return replace(self, X=X, Y=Y, w=None if self.w is None else to_numpy(self.w))


def sparse_samples(data: Chunks) -> Samples:
    """Return samples with sparse inputs in CSR format, whose outputs must be finite."""
    X, Y = data.X.astype(data.dtype, copy=False), data.outputs
    check_finite(Y, "y")
    check_sizes(float(np.max(np.abs(X.data), initial=0.0)), 0.0, 1.0)
    return SparseSamples(X, Y, data.w)


class SparseSamples(Samples):
    """Samples with sparse inputs in CSR format."""

    def rows(self, index: np.ndarray) -> Samples:
        w = None if self.w is None else self.w[index]
        return SparseSamples(self.X[index], self.Y[index], w)

    def scaled(self, *, inputs: bool = True) -> Samples:
        """Return the samples, which stay in their units."""
        return self

    def to_host_if_small(self) -> Samples:
        """Return the samples, which are on the host."""
        return self


def validate(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    groups: Any = None,
    sample_dim: Any = None,
    first: bool = True,
    in_chunks: bool = True,
) -> tuple[Samples | Chunks, Names]:
    """Check the data of a fit, and return them with their names.

    Parameters
    ----------
    estimator : estimator
        Its parameters `input_shape`, `output_shape` and `missing` are read.
    X, y, sample_weight
        As in `fit`.
    groups : array of shape (n_samples,), optional
        Groups of the samples, whose row labels must agree with those of `X` and `y`.
    sample_dim : str, optional
        Sample dimension of xarray objects.
    first : bool
        Whether this is a new fit. If not, names are compared with those of earlier batches.
    in_chunks : bool
        Whether the estimator fits data in chunks. If not, memory maps are read completely, and Dask
        arrays are an error.
    """
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. Pass "
            f"the outputs, of shape (n_samples, d1, ..., dp)."
        )
    others = [A for A in (y, sample_weight, groups) if A is not None]
    plain = {type(A) for A in (X, *others)} == {np.ndarray} and X.ndim == 2
    asked = [getattr(estimator, name, None) for name in ("output_shape", "input_shape")]
    if plain and first and all(given is None for given in (*asked, sample_dim)):
        X, Y = check_pair(X, y, fitted=False)  # no labels, and in memory
        w = None if sample_weight is None else check_weights(sample_weight, X)
        return Samples(X, Y, w), Names(X.shape[1])
    _check_sparse(estimator, X)
    known = None if first else estimator.labels_
    data = unlabel(
        estimator, X, y, sample_weight, groups=groups, sample_dim=sample_dim, known=known
    )
    if first:
        data, names = named(data)
    else:
        check_features(estimator, data.X, data.inputs.naming)
        features = getattr(estimator, "feature_names_in_", None)
        names = Names(estimator.n_features_in_, features, estimator.labels_)
        data = without_missing(data, known)
    if in_chunks:
        return _open(data, first, ignores_missing(estimator)), names
    return _samples(data, first), names


def _check_sparse(estimator: Any, X: Any) -> None:
    """Raise a TypeError for sparse inputs that an estimator does not support."""
    if is_sparse(X) and not estimator.__sklearn_tags__().input_tags.sparse:
        loss = getattr(estimator, "loss", "squared")
        what = "" if loss == "squared" else f" with loss={loss!r}"
        refuse_sparse(X, "X", f"for {type(estimator).__name__}{what}")


def named(data: Unlabelled) -> tuple[Unlabelled, Names]:
    """Return the data of a new fit, without cells that are missing in every sample, and names."""
    n_features, features = features_of(data.X, data.inputs.naming)
    used = find_used_cells(data.inputs)
    if used is not None:
        data = replace(data, labels=with_inputs(data.labels or Labels(), data.inputs, used))
        data = without_missing(data, data.labels)
    return data, Names(n_features, features, data.labels)


def without_missing(data: Unlabelled, labels: Labels | None) -> Unlabelled:
    """Return data without the cells that, by the labels of a fit, are missing in every sample."""
    used = None if labels is None else labels.used
    return replace(data, X=drop_missing(data.X, used, column_names(data.inputs, None)))


def open_data(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    missing: str = "raise",
) -> tuple[Samples | Chunks, Names]:
    """Check data without an estimator, and return them with their names.

    Parameters
    ----------
    X, y, sample_weight
        As in `fit`.
    missing : {"raise", "ignore"}
        Whether outputs may be missing. With "ignore", masked outputs become NaN.
    """
    data = unlabel(SimpleNamespace(missing=missing), X, y, sample_weight)
    data, names = named(data)
    return _open(data, True, missing == "ignore"), names


def _open(data: Unlabelled, first: bool, ignore_missing: bool) -> Samples | Chunks:
    chunks = open_chunks(data.X, data.y, data.sample_weight)
    if chunks is not None:
        return chunks
    X, y, w = computed(data.X, data.y, data.sample_weight)
    y = nan_for_masked(y) if ignore_missing else y
    return _samples(replace(data, X=X, y=y, sample_weight=w), first)


def _samples(data: Unlabelled, first: bool) -> Samples:
    """Return checked samples, of a new fit (`first`) or of a later batch."""
    used = None if data.labels is None else data.labels.used
    X, Y = check_pair(data.X, data.y, column_names(data.inputs, used), fitted=not first)
    w = data.sample_weight
    return Samples(X, Y, None if w is None else check_weights(w, X))


def validate_inputs(estimator: BaseEstimator, X: Any, *, sparse: bool = False) -> Array:
    """Check inputs of `predict` and their labels, and return them without labels.

    Dask arrays are checked when they are computed. With `sparse`, inputs may be sparse if the
    estimator supports sparse inputs.
    """
    if type(X) is np.ndarray and X.ndim <= 2 and getattr(estimator, "labels_", None) is None:
        checked = check_inputs(X)
        check_features(estimator, X)
        return checked
    if sparse:
        _check_sparse(estimator, X)
    else:
        refuse_sparse(X)
    inputs = compare_inputs(estimator, X)
    used = (getattr(estimator, "labels_", None) or Labels()).used
    X = select_columns(inputs.X, used)
    return X if is_dask(X) else check_inputs(X, names=column_names(inputs, used), sparse=sparse)


def compare_inputs(estimator: BaseEstimator, X: Any) -> Inputs:
    """Compare the labels of inputs with those of the fit, without a check of the entries."""
    if type(X) is np.ndarray and X.ndim < 2:
        check_matrix(X)  # raises an error
    labels: Labels = getattr(estimator, "labels_", None) or Labels()
    inputs = unlabel_inputs(X, dimension_of_inputs(X, labels) if has_dims(X) else None, labels)
    check_features(estimator, inputs.X, inputs.naming)
    return inputs


def names_of_inputs(inputs: Inputs, dim: str | None, used: np.ndarray | None = None) -> Names:
    """Return the names for a fit to inputs without outputs.

    Parameters
    ----------
    inputs : Inputs
    dim : str or None
        Sample dimension of xarray objects.
    used : array of int, optional
        Columns that have values, if others are missing in every sample.
    """
    labels = None
    if used is not None:
        labels = with_inputs(Labels(sample_dim=dim), inputs, used)
    elif inputs.grids and not inputs.has_names:  # the columns of a table are compared by name
        labels = Labels(sample_dim=dim, inputs=inputs.grids)
    return Names(*features_of(inputs.X, inputs.naming), labels)


def validate_points(points: Any, names: Names, name: str) -> Array:
    """Check additional inputs, such as landmarks, and return them without labels.

    Parameters
    ----------
    points : array of shape (n_points, n_features)
    names : Names
        Names of the inputs of the fit, which must agree with those of the points.
    name : str
        Name of the argument in messages.
    """
    labels = names.labels or Labels()
    dim = dimension_of_inputs(points, labels) if comes_from(points, "xarray") else None
    inputs = unlabel_inputs(points, dim, labels)
    n_features, found = features_of(inputs.X, inputs.naming, name)
    if n_features != names.n_features:
        raise ValueError(
            f"{name} must have as many columns as X, {names.n_features}; got {n_features}."
        )
    differ = other_features(found, names.features, name, "X")
    if differ is not None:
        raise ValueError(f"{name} has other features than X: {differ}. Put them in the order of X.")
    kept = select_columns(inputs.X, labels.used)
    return check_inputs(kept, name, column_names(inputs, labels.used))


def whole_points(points: Array, names: Names) -> Array:
    """Return checked points with a column for every cell of the inputs; NaN for unused cells."""
    used = None if names.labels is None else names.labels.used
    grid = Grid(("feature",), (names.n_features,))
    return whole_axes(points.T, Labels(inputs=(grid,), used=used), names.n_features)[0].T


def names_of_moments(estimator: Any, moments: Any) -> Names:
    """Return the names for a fit to moments, which contain the shape of flat outputs."""
    shape, wanted = moments.output_shape, getattr(estimator, "output_shape", None)
    labels: Labels | None = moments.labels
    if wanted is not None:
        if tuple(wanted) != shape:
            raise ValueError(f"output_shape={wanted} differs from that of the moments, {shape}.")
        labels = replace(labels or Labels(), kind="array", flat=True, outputs=None)
    modes = getattr(estimator, "input_shape", None)
    if modes is not None:
        known = () if labels is None else labels.inputs
        n_cells = n_columns(labels) or moments.n_features
        labels = replace(labels or Labels(), inputs=grids_of_shape(modes, n_cells, known))
    n_features = n_columns(labels) or moments.n_features
    return Names(n_features, moments.feature_names, labels)


def score_errors(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    sums_of: Any = None,
) -> Any:
    """Compute the sums for scores of a fitted model in one pass over the data.

    Parameters
    ----------
    model : estimator
    X, y, sample_weight
        As in `score`.
    sums_of : callable, optional
        Maps inputs, outputs and weights of checked samples to sums that can be added. The default
        is `Errors` of the predictions.
    """
    if sums_of is None:
        _check_sparse(model, X)
    else:
        refuse_sparse(X)
    data = unlabel(model, X, y, sample_weight, known=model.labels_)
    check_features(model, data.X, data.inputs.naming)
    used = None if model.labels_ is None else model.labels_.used
    X = select_columns(data.X, used)
    chunks, shape = open_chunks(X, data.y, data.sample_weight), model._output_shape
    if chunks is not None:
        check_scored((chunks.n_samples, *chunks.output_shape), (chunks.n_samples, *shape))
        return chunks.errors(sums_of or partial(errors_of, for_workers(model)))
    X, y, w = computed(X, data.y, data.sample_weight)
    checked: Any = check_inputs(X, names=column_names(data.inputs, used))
    Y = check_outputs(nan_for_masked(y) if ignores_missing(model) else y)
    check_scored(Y.shape, (checked.shape[0], *shape))
    w = weights_of(w, Y.shape[0])
    return (sums_of or partial(errors_of, model))(checked, Y, w)
