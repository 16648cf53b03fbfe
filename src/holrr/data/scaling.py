"""Inputs in units of their own spread, as what they were."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from .arrays import check_inputs, comes_from, is_on_disk
from .labels import check_features, features_of
from .unlabel import is_dataset, sample_dimension

__all__ = ["Standardizer"]


class Standardizer(TransformerMixin, BaseEstimator):
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

    def __init__(self, sample_dim=None):
        self.sample_dim = sample_dim

    def fit(self, X: Any, y: Any = None) -> Any:
        """Find means and standard deviations.

        Parameters
        ----------
        X : array of shape (n_samples, n_features), or object of xarray
        y : outputs, optional
            Which tell the samples of an object of xarray from its features.

        Returns
        -------
        self
        """
        if comes_from(X, "xarray"):
            dim = sample_dimension(self.sample_dim, X, y, None)
            self.scaling_ = {}
            for name, A in (X.data_vars if is_dataset(X) else {"": X}).items():
                mean, spread = _mean_and_spread(A, dim=dim)
                self.scaling_[name] = tuple(mean.dims), mean.to_numpy(), spread.to_numpy()
            return self
        checked = check_inputs(X)
        self.n_features_in_, names = features_of(X)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None:
            self.feature_names_in_ = names
        self.scaling_ = {
            "": ((), *_mean_and_spread(checked.astype(np.float64, copy=False), axis=0))
        }
        return self

    def transform(self, X: Any) -> Any:
        """The inputs, scaled.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        as `X`
        """
        if comes_from(X, "xarray"):
            return X.map(self._scaled) if is_dataset(X) else self._scaled(X)
        check_features(self, X)
        _, mean, spread = self.scaling_[""]
        return ((np.asarray(X) if is_on_disk(X) else X) - mean) / spread

    def _scaled(self, A: Any) -> Any:
        from xarray import Variable

        # A variable that the fit had not is left to the model, which knows what to say of it.
        dims, mean, spread = self.scaling_.get("" if "" in self.scaling_ else A.name, ((), 0, 1))
        scaled = (A.variable - Variable(dims, mean)) / Variable(dims, spread)
        return A.copy(data=scaled.transpose(*A.dims).data) if set(scaled.dims) == set(A.dims) else A


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
