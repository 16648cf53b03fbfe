"""Inputs in units of their own spread, as what they were."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from ..core.namespace import asarray_like, to_numpy
from .arrays import check_inputs, comes_from, is_dask
from .inputs import column_names, is_blocks
from .labels import Grid, Labels, features_of
from .unlabel import dimension_of_inputs, is_dataset, sample_dimension, unlabel_inputs
from .validation import Names, validate_inputs

__all__ = ["Standardizer"]


class Standardizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Each feature less its mean, over its standard deviation.

    Unlike scikit-learn's `StandardScaler` it gives back what it got: tables and objects of xarray
    keep their names and dimensions, and what Dask has not computed yet stays so. In a pipeline
    before a model it is saved with it (`holrr.io.save`).

    Parameters
    ----------
    sample_dim : str, optional
        Which dimension of xarray's objects the samples are along; by default the one that X and y
        share, or the first.

    Attributes
    ----------
    scaling_ : dict
        For each variable of a Dataset, or for "" alone, the names of the dimensions of its
        features, and their means and standard deviations: one where a feature is constant.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, where they have some.
    labels_ : Labels or None
        Labels of objects of xarray, with which those of other inputs are compared.

    Examples
    --------
    >>> import pandas as pd
    >>> from holrr.data import Standardizer
    >>> table = pd.DataFrame({"metres": [1.0, 3.0], "always": [2.0, 2.0]}, index=["mon", "tue"])
    >>> Standardizer().fit(table).transform(table)
         metres  always
    mon    -1.0     0.0
    tue     1.0     0.0
    """

    scaling_: dict[str, tuple[tuple[str, ...], np.ndarray, np.ndarray]]
    labels_: Labels | None = None

    def __init__(self, sample_dim=None):
        self.sample_dim = sample_dim

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find means and standard deviations.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), table, or object of xarray
            Without missing values. Arrays may have modes, and may be the blocks of a dict.
        y : outputs, optional
            Which tell the samples of an object of xarray from its features.

        Returns
        -------
        self
        """
        dim = sample_dimension(self.sample_dim, X, y, None)
        inputs = unlabel_inputs(X, dim, None)
        matrix, checked = inputs.X, None
        if not is_dask(matrix):
            checked = check_inputs(matrix, names=column_names(inputs, None), fitted=False)
        labels = None
        if inputs.grids and not inputs.has_names:
            labels = Labels(sample_dim=dim, inputs=inputs.grids)
        names = Names(*features_of(matrix, inputs.naming), labels)
        if comes_from(X, "xarray"):
            found = {}
            for name, A in (X.data_vars if is_dataset(X) else {"": X}).items():
                mean, spread = _mean_and_spread(A, dim=dim)
                found[name] = tuple(mean.dims), mean.to_numpy(), spread.to_numpy()
        else:
            values = matrix if checked is None else to_numpy(checked)
            mean, spread = _mean_and_spread(values.astype(np.float64), axis=0)
            found = {"": ((), np.asarray(mean), np.asarray(spread))}
        for name in ("n_features_in_", "feature_names_in_", "labels_"):
            self.__dict__.pop(name, None)
        self.__dict__.update(scaling_=found, **names.attributes())
        return self

    def transform(self, X: Any) -> Any:
        """The inputs, scaled.

        Parameters
        ----------
        X : as in `fit`
            With the features of the fit, in the same order; the dimensions of an object of xarray
            may be in any order.

        Returns
        -------
        as `X`
        """
        check_is_fitted(self)
        checked = validate_inputs(_with_names(self), X)
        mean, spread = (
            np.concatenate([np.ravel(part[k]) for part in self.scaling_.values()]) for k in (1, 2)
        )
        if comes_from(X, "xarray"):
            return _scaled(X, _with_names(self).labels_ or Labels(), mean, spread)
        if comes_from(X, "polars"):
            return type(X)((checked - mean) / spread, schema=X.columns)
        if hasattr(X, "columns"):
            return (X - mean) / spread
        if not is_dask(checked) and type(checked) is not np.ndarray:
            mean, spread = (asarray_like(A, checked, dtype=checked.dtype) for A in (mean, spread))
        return _like((checked - mean) / spread, X, (self.labels_ or Labels()).inputs)


def _like(matrix: Any, X: Any, grids: tuple[Grid, ...]) -> Any:
    """The columns of a matrix with the modes that `X` has, or as its blocks."""
    if not is_blocks(X):
        shape = tuple(getattr(X, "shape", ()))
        return matrix.reshape(shape) if len(shape) > 2 else matrix
    found, start = {}, 0
    for grid in grids:
        stop = start + math.prod(grid.shape)
        found[grid.name] = matrix[:, start:stop].reshape(np.shape(X[grid.name]))
        start = stop
    return {name: found[name] for name in X}


def _with_names(fitted: Standardizer) -> Standardizer:
    """The same with names of features, which files of older versions do not have for xarray."""
    if "n_features_in_" in vars(fitted):
        return fitted
    parts = fitted.scaling_.items()
    grids = (Grid(dims, mean.shape, {}, name or None) for name, (dims, mean, _) in parts)
    labels = Labels(inputs=tuple(grids))
    n_features = sum(mean.size for _, (_, mean, _) in parts)
    named = Standardizer(fitted.sample_dim)
    named.__dict__.update(scaling_=fitted.scaling_, **Names(n_features, None, labels).attributes())
    return named


def _scaled(X: Any, labels: Labels, mean: np.ndarray, spread: np.ndarray) -> Any:
    """An object of xarray less the means, over the spreads, of its features."""
    from xarray import Variable

    grids = unlabel_inputs(X, dimension_of_inputs(X, labels), labels).grids
    ends = np.cumsum([math.prod(grid.shape) for grid in grids])[:-1]
    parts = zip(grids, np.split(mean, ends), np.split(spread, ends), strict=True)
    scaling = {
        grid.name: [Variable(grid.dims, part.reshape(grid.shape)) for part in (m, s)]
        for grid, m, s in parts
    }

    def scaled(A: Any) -> Any:
        m, s = scaling[A.name if is_dataset(X) else None]
        return A.copy(data=((A.variable - m) / s).transpose(*A.dims).data)

    return X.map(scaled) if is_dataset(X) else scaled(X)


def _mean_and_spread(A: Any, **along: Any) -> tuple[Any, Any]:
    """Found in units of the largest deviation, whose square neither overflows nor vanishes."""
    mean = A.mean(**along)
    deviation = A - mean
    largest = abs(deviation).max(**along)
    # What rounding leaves of a constant is no spread.
    varies = largest > 8 * np.finfo(float).eps * abs(mean)
    unit = varies * largest + ~varies
    roots = np.sqrt(((deviation / unit) ** 2).mean(**along))
    return mean, unit * (varies * roots + ~varies)
