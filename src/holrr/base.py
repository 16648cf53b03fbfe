"""The skeleton that every estimator shares: validate, whiten, approximate, map back, predict."""

from __future__ import annotations

import math
import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin, _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from .core.approximate import Approximation
from .core.namespace import Array, asarray_like, namespace_of, to_numpy
from .core.spectral import SOLVERS, Spectral, Whitened, whiten_arrays, whiten_moments
from .core.tucker import Tucker
from .data.arrays import check_inputs, check_outputs, check_pair, check_weights
from .data.moments import Moments
from .data.scores import r2
from .data.source import Source, is_dask, open_source
from .data.wide import whiten_source

__all__ = ["LinearTensorRegressor", "TensorRegressor", "all_or_nothing", "check_features"]


def all_or_nothing(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that leaves the estimator as it was when it raises."""

    @wraps(method)
    def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded


def check_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> None:
    """Remember number and names of the features, or compare them with those of the fit."""
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        raise TypeError(f"X must be an array of numbers; got a {type(X).__name__}.")
    validate_data(estimator, X, skip_check_array=True, reset=reset)


class TensorRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator, metaclass=ABCMeta):
    """Regression from vectors to tensors with coefficients in Tucker form.

    A subclass says how the whitened tensor is approximated (`_approximate`) and how the data
    become a whitened problem (`fit`).
    """

    @abstractmethod
    def _approximate(self, problem: Whitened, n_features: int) -> Approximation:
        """The constrained tensor near ``problem.Z``."""

    def _solve(self, problem: Whitened, n_features: int) -> None:
        """Approximate, map back to coefficients and set the fitted attributes."""
        found = self._approximate(problem, n_features)
        self._set_coefficients(_lift(found.tucker, problem), problem)
        self.objective_ = problem.residual + found.error
        self.lower_bound_ = problem.residual + found.lower_bound
        self.spectra_ = list(found.spectra)
        self._set_rank(found)

    def _set_coefficients(self, coef: Tucker, problem: Whitened | Spectral) -> None:
        """Set the attributes that predictions need, in the type of the data."""
        xp = namespace_of(coef.core)
        dtype = getattr(xp, problem.dtype)
        intercept = problem.mean_y - coef.map_input(problem.mean_x[None, :])[0, ...]
        self.tucker_ = coef.astype(dtype)
        self.intercept_ = _scalar_if_0d(xp.astype(intercept, dtype))
        self.solver_ = problem.solver

    def _set_rank(self, found: Approximation) -> None:
        """Set what the kind of model says of its rank."""

    @property
    def coef_(self) -> Array:
        """Dense coefficients, of shape (n_features, d1, ..., dp), built when asked for."""
        check_is_fitted(self)
        return self.tucker_.to_dense()

    @property
    def core_(self) -> Array:
        """Core of the coefficients in Tucker form, of shape (R0, ..., Rp)."""
        check_is_fitted(self)
        return self.tucker_.core

    @property
    def factors_(self) -> list[Array]:
        """Factors of the coefficients, of shape (d_i, R_i), input mode first."""
        check_is_fitted(self)
        return self.tucker_.dense_factors()

    @property
    def n_parameters_(self) -> int:
        """Degrees of freedom of the coefficients (the intercept not counted)."""
        check_is_fitted(self)
        return self.tucker_.n_parameters

    def predict(self, X: Any) -> Array:
        """Predict the outputs, never building the dense coefficients.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, d1, ..., dp)
            In the array library and on the device of `X`; a Dask array, not computed yet, where
            `X` is one.
        """
        check_is_fitted(self)
        if is_dask(X):
            return self._predict_lazily(X)
        X = self._check_inputs(X)
        xp = namespace_of(X)
        out = self._beside(X).map_input(xp.astype(X, getattr(xp, self._dtype_name()), copy=False))
        out += asarray_like(to_numpy_or_scalar(self.intercept_), out, dtype=out.dtype)
        return out

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Coefficient of determination R2, averaged over all outputs with equal weights.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples, d1, ..., dp)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        float
            The same as scikit-learn's ``r2_score`` on the flattened outputs.
        """
        check_is_fitted(self)
        source = open_source(X, y, sample_weight)
        if source is not None:
            check_features(self, X, reset=False)
            return source.score(self)
        predicted, Y = self.predict(X), check_outputs(y)
        return r2(Y, predicted, check_weights(sample_weight, Y))

    def save(self, path: Any) -> None:
        """Save the estimator to a file that holds no code; `holrr.load` brings it back.

        Parameters
        ----------
        path : str or path
            Written atomically: a crash leaves the old file or the new one.
        """
        from .io import save

        save(self, path)

    # ------------------------------------------------------------ helpers

    def _check_inputs(self, X: Any) -> Array:
        """Inputs to predict for, checked against those of the fit."""
        checked = check_inputs(X)
        check_features(self, X, reset=False)
        return checked

    def _predict_lazily(self, X: Any) -> Any:
        """Predictions for a Dask array, as another."""
        from .data.dask import predict_lazily

        check_features(self, X, reset=False)
        return predict_lazily(self, X)

    def _dtype_name(self) -> str:
        return "float32" if str(self.tucker_.core.dtype).endswith("float32") else "float64"

    def _beside(self, X: Array) -> Tucker:
        """The coefficients in the array library and on the device of `X`."""
        core = self.tucker_.core
        if type(core) is type(X) and getattr(core, "device", None) == getattr(X, "device", None):
            return self.tucker_
        move = lambda a: asarray_like(to_numpy(a), X)  # noqa: E731
        return Tucker(
            move(core), tuple(None if U is None else move(U) for U in self.tucker_.factors)
        )


class LinearTensorRegressor(TensorRegressor):
    """Estimators that are linear in the inputs and so need the data only through their moments."""

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "solver": [StrOptions(set(SOLVERS))],
    }

    alpha: float
    fit_intercept: bool
    solver: str

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            NumPy, or any library that follows the array API standard (torch, cupy, ...); the fit
            is computed where the arrays live. Memory maps, HDF5 and Zarr arrays are read in blocks,
            Dask arrays are reduced on the active scheduler (see docs/streaming.md).
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0; p = 0 are scalar targets.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.

        Returns
        -------
        self
        """
        check_features(self, X, reset=True)
        source = open_source(X, y, sample_weight)
        if source is None:
            X, Y = check_pair(X, y)
            problem = self._problem_of_arrays(X, Y, check_weights(sample_weight, X))
        else:
            problem = self._problem_of_source(source)
        self._solve(problem, self.n_features_in_)
        self.__dict__.pop("moments_", None)
        return self

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Add a batch of samples to those seen so far and fit the model to all of them.

        The data are kept as moments, whose size does not depend on the number of samples, and
        every call solves the problem anew: with many small batches it is quicker to merge
        `Moments` and to call `fit_moments` once. After `fit`, which keeps no moments, it starts
        anew and says so in a warning.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : array of shape (n_samples, d1, ..., dp)
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "moments_")
        if first and hasattr(self, "tucker_"):
            warnings.warn(
                "partial_fit starts anew: fit keeps no moments of its data to go on from. To add "
                "batches to earlier data, start with partial_fit or fit_moments.",
                UserWarning,
                stacklevel=4,
            )
        check_features(self, X, reset=first)
        if first:
            grams = self._wants_response_grams()
            return self._fit_moments(Moments.from_arrays(X, y, sample_weight, grams))
        grams = self.moments_.response_grams is not None
        batch = Moments.from_arrays(X, y, sample_weight, grams)
        _check_batch(batch, self.moments_)
        return self._fit_moments(self.moments_ + batch)

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit_moments(self, moments: Moments) -> Any:
        """Fit the model to moments, gathered here or elsewhere.

        Parameters
        ----------
        moments : Moments

        Returns
        -------
        self
        """
        if not isinstance(moments, Moments):
            raise TypeError(f"moments must be a Moments object; got {type(moments).__name__}.")
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = moments.n_features
        return self._fit_moments(moments)

    def _fit_moments(self, moments: Moments) -> Any:
        if self._wants_response_grams() and moments.response_grams is None:
            raise ValueError(
                "subspaces='response' needs moments that were gathered with response_grams=True."
            )
        self._solve(self._problem_of_moments(moments), moments.n_features)
        self.moments_ = moments
        return self

    def _problem_of_arrays(self, X: Array, Y: Array, w: Array | None) -> Any:
        """What `_solve` wants, from (validated) data."""
        return whiten_arrays(
            X,
            Y,
            w,
            float(self.alpha),
            solver=self.solver,
            fit_intercept=self.fit_intercept,
            response_grams=self._wants_response_grams(),
        )

    def _problem_of_source(self, source: Source) -> Any:
        """What `_solve` wants, from data beyond memory."""
        return whiten_source(
            source,
            float(self.alpha),
            solver=self.solver,
            fit_intercept=self.fit_intercept,
            response_grams=self._wants_response_grams(),
        )

    def _problem_of_moments(self, moments: Moments) -> Any:
        """What `_solve` wants, from moments."""
        return whiten_moments(
            moments, float(self.alpha), solver=self.solver, fit_intercept=self.fit_intercept
        )

    def _wants_response_grams(self) -> bool:
        return False


def _check_batch(batch: Moments, seen: Moments) -> None:
    if batch.output_shape != seen.output_shape:
        raise ValueError(
            f"y of this batch has outputs of shape {batch.output_shape}; the batches before had "
            f"{seen.output_shape}."
        )


def _lift(V: Tucker, problem: Whitened) -> Tucker:
    """From whitened coordinates of mode 0 to coefficients."""
    if V.factors[0] is not None:
        return Tucker(V.core, (problem.lift(V.factors[0]), *V.factors[1:]))
    xp = namespace_of(V.core)
    flat = xp.reshape(V.core, (V.core.shape[0], math.prod(V.core.shape[1:])))
    core = problem.lift(flat)
    return Tucker(xp.reshape(core, (core.shape[0], *V.core.shape[1:])), V.factors)


def _scalar_if_0d(a: Array) -> Any:
    """Scalar targets have a scalar intercept, as in scikit-learn."""
    return float(a) if a.ndim == 0 else a


def to_numpy_or_scalar(a: Any) -> np.ndarray:
    """An intercept, of any library or a float, as a NumPy array."""
    return np.asarray(a) if isinstance(a, float) else to_numpy(a)
