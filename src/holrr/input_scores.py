"""What every estimator says of its inputs: their scores, and how much each of them counts."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .core.namespace import Array, namespace_of
from .core.threads import few_threads_for
from .data.labels import Grid, comes_from, free
from .data.put_labels import put_labels
from .data.source import is_dask
from .data.take_labels import take_inputs

__all__ = ["InputScores"]


class InputScores(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Scores of the inputs as a transformer of scikit-learn gives them."""

    tucker_: Any
    _dense_coef: Callable[[], Array]

    def transform(self, X: Any) -> Array:
        """The input scores, which are all that predictions depend on.

        They are ``X @ factors_[0]``, in the units of `X` and not centred; kernel estimators have
        the kernel values with `X_fit_` in the place of `X`. Predictions are ``core_`` times the
        scores along its first mode and the output factors along the others, plus `intercept_`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, R0)
            A Dask array, not computed yet, where `X` is one; a DataArray where `X` is of xarray.
            Where the input mode is not cut, as in `RLS`, the scores are the inputs themselves (or
            the kernel values). A direction that the core makes no use of, since the rank is above
            that of the data, is not determined: its scores are zero.

        Examples
        --------
        >>> from holrr import HOLRR
        >>> from holrr.datasets import make_tensor_regression
        >>> X, Y = make_tensor_regression(50, 6, (4, 3), rank=2, snr=9, random_state=0)
        >>> HOLRR(rank=2).fit(X, Y).transform(X).shape  # two numbers that 12 outputs depend on
        (50, 2)
        """
        check_is_fitted(self)
        model: Any = getattr(self, "best_estimator_", self)
        scores = model._score_array(take_inputs(model, X))
        if model.labels_ is None or not comes_from(X, "xarray"):
            return scores
        grid = Grid((free("component", X.dims),), tuple(scores.shape[1:]), name="score")
        labels = replace(model.labels_, kind="dataarray", flat=False, outputs=grid)
        return put_labels(labels, X, scores)

    def _score_array(self, X: Array) -> Array:
        """Scores without labels, for checked inputs or a Dask array."""
        if is_dask(X):
            from .data.dask import map_lazily

            return map_lazily(self, X, "_score_array", self.tucker_.rank[:1])
        with self._threads_for(X.shape[0]):
            return self._read(X, self._scores)

    def _read(self, X: Array, read: Callable[[Array], Array]) -> Array:
        """What `read` makes of the features of checked inputs."""
        return read(X)

    def _threads_for(self, n_samples: int) -> AbstractContextManager[None]:
        """The threads that so many predictions are worth."""
        n_inputs, *outputs = self.tucker_.shape
        per_sample = n_inputs + self.tucker_.rank[0] * math.prod(outputs)
        return few_threads_for(n_samples * per_sample)

    def _scores(self, F: Array) -> Array:
        """Scores of features that were checked."""
        tucker, xp = self.tucker_.beside(F), namespace_of(F)
        F = xp.astype(F, getattr(xp, self._dtype_name()), copy=False)
        if tucker.factors[0] is None:
            return F
        held = _row_norms(tucker.core)
        used = held > 1e3 * xp.finfo(held.dtype).eps * xp.max(held)
        return F @ xp.where(used, tucker.factors[0], xp.zeros_like(tucker.factors[0]))

    @property
    def _n_features_out(self) -> int:
        return self.tucker_.rank[0]

    @property
    def feature_importances_(self) -> Array:
        """Norm of the coefficients of each input over all outputs, of shape (n_features,).

        For ``RFE(model, importance_getter="feature_importances_")`` and its kin, which would read
        `coef_`, whose first axis is the input mode here (but with `output_shape`), the wrong way
        round. Inputs in different units are to be scaled first. There where `coef_` is.
        """
        check_is_fitted(self)
        coef = self._dense_coef()
        xp = namespace_of(coef)
        return _row_norms(xp.where(xp.isnan(coef), xp.zeros_like(coef), coef))  # never observed


def _row_norms(A: Array) -> Array:
    """Norm of each slice along the first mode."""
    rows = namespace_of(A).reshape(A, (A.shape[0], math.prod(A.shape[1:])))
    return namespace_of(A).linalg.vector_norm(rows, axis=1)
