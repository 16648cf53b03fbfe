"""Base class of the penalised estimators: fits to samples, data in chunks, and moments."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ..base import TensorRegressor
from ..calls import validates_parameters
from ..core.fit import Fit, intercept_of, scaled_alpha
from ..core.namespace import namespace_of
from ..core.spectral import (
    Spectral,
    check_moments,
    spectral_from_moments,
    spectral_from_samples,
)
from ..core.tensor import Tucker
from ..core.threads import few_threads_for
from ..data.output_scale import divide_outputs, multiply_outputs
from ..data.validation import Names, Samples, sparse_samples, validate
from ..linear.estimators import add_batch, check_batch, check_moments_argument
from ..streaming.chunks import Chunks
from ..streaming.moments import Moments
from .scaled import lift_spectral

__all__ = ["PenalizedRegressor"]


class PenalizedRegressor(TensorRegressor):
    """Base class of linear models that an iterative solver fits in spectral coordinates.

    A subclass solves a spectral problem (`_solve`).
    """

    alpha: float = 0.0
    fit_intercept: bool

    rank_: tuple[int, ...]
    objective_: float
    lower_bound_: float
    n_iter_: int
    solver_: str
    moments_: Moments

    @abstractmethod
    def _solve(self, problem: Spectral, x_unit: float, y_unit: float) -> tuple[Fit, dict[str, Any]]:
        """Solve a problem of scaled data; return the fit and attributes in the user's units."""

    def _check_shape(self, n_features: int, output_shape: tuple[int, ...]) -> None:
        """Raise an error if parameters are not valid for data of this shape."""

    @validates_parameters
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sample_dim: str | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Inputs: an array of any array library, a DataFrame or an xarray object. Memory maps and
            Dask arrays are read in chunks (see docs/streaming.md). Cells of maps that are NaN in
            every sample are left out of the model: their coefficients are NaN.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0. Scalar targets have shape (n_samples,).
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.
        sample_dim : str, optional
            Sample dimension of xarray objects. By default, the first one that `X` and `y` share.
        """
        data, names = validate(self, X, y, sample_weight, sample_dim=sample_dim)
        data, scale = divide_outputs(self, data, names.labels)
        return self._fit_data(data, names, scale)

    def _fit_data(
        self, data: Samples | Chunks, names: Names, scale: np.ndarray | None = None
    ) -> Any:
        """Fit the model to validated data, whose outputs were divided by a scale."""
        self._check_shape(data.n_features, data.output_shape)
        if isinstance(data, Chunks):
            if not data.is_wide:
                return self._fit_moments(data.moments(), names, scale)
            data = sparse_samples(data)
        with few_threads_for(data.work):
            scaled = data.to_host_if_small().scaled()
            problem = spectral_from_samples(
                scaled.X,
                scaled.Y,
                scaled.w,
                min_alpha=scaled_alpha(self.alpha, scaled.x_unit),
                fit_intercept=self.fit_intercept,
            )
            fit, attributes = self._solve(problem, scaled.x_unit, scaled.y_unit)
        fit = multiply_outputs(self, fit.to_device_of(data.Y), scale, names.labels)
        return self._assign(fit, names, **attributes)

    @validates_parameters
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        decay: float = 1.0,
        sample_dim: str | None = None,
    ) -> Self:
        """Add a batch of samples, and fit the model to all batches.

        The estimator keeps the data as moments. `fit` keeps no moments: after `fit`, `partial_fit`
        starts from an empty model and warns.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Inputs of the batch.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of the batch.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.
        decay : float, default=1.0
            Factor in (0, 1] that multiplies the weights of all earlier batches. With a factor
            below 1, older batches count less. See docs/streaming.md.
        sample_dim : str, optional
            As in `fit`, for the first batch.

        Returns
        -------
        self
            The fitted estimator.

        Examples
        --------
        >>> from holrr import TraceNormRegression
        >>> from holrr.datasets import make_tensor_regression
        >>> X, Y = make_tensor_regression(60, 4, (3, 2), rank=2, snr=1, random_state=0)
        >>> model = TraceNormRegression(1.0).partial_fit(X[:30], Y[:30])
        >>> model.partial_fit(X[30:], Y[30:]).moments_.n_samples
        60
        """
        data, names, seen = check_batch(self, X, y, sample_weight, decay, sample_dim)
        return self._fit_raw_moments(add_batch(data, seen, names, False), names)

    @validates_parameters
    def fit_moments(self, moments: Moments) -> Self:
        """Fit the model to moments of the data.

        Parameters
        ----------
        moments : Moments
            Moments of X and y, computed in this process or elsewhere. See docs/streaming.md.

        Returns
        -------
        self
            The fitted estimator.

        Examples
        --------
        >>> from holrr import Moments, TraceNormRegression
        >>> from holrr.datasets import make_tensor_regression
        >>> X, Y = make_tensor_regression(60, 4, (3, 2), rank=2, snr=1, random_state=0)
        >>> parts = [Moments.from_arrays(X[k::2], Y[k::2]) for k in range(2)]
        >>> TraceNormRegression(1.0).fit_moments(sum(parts)).coef_.shape
        (4, 3, 2)
        """
        return self._fit_raw_moments(moments, check_moments_argument(self, moments))

    def _fit_raw_moments(self, moments: Moments, names: Names) -> Any:
        """Fit the model to moments of the user's outputs, and keep them for later batches."""
        part, scale = divide_outputs(self, moments, names.labels)
        return self._fit_moments(part, names, scale, keep=moments)

    def _fit_moments(
        self,
        moments: Moments,
        names: Names,
        scale: np.ndarray | None = None,
        *,
        keep: Moments | None = None,
    ) -> Any:
        """Fit the model to moments whose outputs were divided by a scale."""
        check_moments(moments)
        self._check_shape(moments.n_features, moments.output_shape)
        centred = moments.centred(self.fit_intercept)
        problem = spectral_from_moments(centred, warn_below=float(self.alpha))
        fit, attributes = self._solve(problem, 1.0, 1.0)
        fit = multiply_outputs(self, fit, scale, names.labels)
        return self._assign(fit, names, moments_=keep, **attributes)


def penalized_fit(
    tucker: Tucker, problem: Spectral, objective: float, lower_bound: float, n_iter: int
) -> Fit:
    """Return the `Fit` of coefficients in spectral coordinates."""
    coef, squares = lift_spectral(tucker, problem), problem.squares
    return Fit(
        tucker=coef,
        intercept=intercept_of(coef, problem),
        solver=problem.solver,
        dtype=problem.dtype,
        objective=objective,
        lower_bound=lower_bound,
        n_iter=n_iter,
        weight=problem.weight,
        spread=None if squares is None else namespace_of(squares).sqrt(squares),
    )
