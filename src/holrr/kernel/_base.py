"""The skeleton of the kernel estimators: kernel values in place of features."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..base import TensorRegressor, all_or_nothing, check_features
from ..core.namespace import Array, asarray_like, namespace_of, row_blocks, to_numpy
from ..core.spectral import Whitened, whiten_moments
from ..core.tucker import Tucker
from ..data.arrays import check_pair, check_weights
from ..data.moments import Moments
from ..data.source import is_dask
from ._candidates import kernel_function
from ._gram import Gram, KernelFunction, centred_gram
from ._landmarks import Landmarks, about_centres, beside, choose_landmarks, copy_of
from ._problem import SOLVERS, whiten_gram
from ._responses import Responses, centre_responses

__all__ = ["KernelTensorRegressor", "kernel_constraints"]

# Bytes of the kernel values of one block of samples to predict for.
_BLOCK = 2**27

kernel_constraints: dict[str, list[Any]] = {
    "kernel": [StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable],
    "gamma": [Interval(Real, 0, None, closed="left"), None],
    "degree": [Interval(Real, 0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "kernel_params": [dict, None],
    "fit_intercept": ["boolean"],
    "center_kernel": ["boolean"],
    "n_components": [Interval(Integral, 1, None, closed="left"), None],
    "landmarks": ["array-like", None],
    "random_state": ["random_state"],
}


def _has_landmarks(estimator: Any) -> bool:
    if estimator.n_components is None and estimator.landmarks is None:
        raise AttributeError(
            "partial_fit needs landmarks, since the exact fit has a coefficient for every sample: "
            "set n_components or landmarks."
        )
    return True


class KernelTensorRegressor(TensorRegressor):
    """Estimators that are linear in the features of a kernel.

    The coefficients are those of the kernel values with the training samples, or with the
    landmarks that stand for them.
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "alpha": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(set(SOLVERS))],
        **kernel_constraints,
    }

    alpha: float
    kernel: str | Callable[..., float]
    gamma: float | None
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    fit_intercept: bool
    center_kernel: bool
    solver: str
    n_components: int | None
    landmarks: Any
    random_state: Any

    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Fit the model.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the Gram matrix (n_samples, n_samples). The kernels that
            need no more than products of the inputs ("linear", "poly", "rbf", "sigmoid") take
            arrays of any library that follows the array API standard, too.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0; p = 0 are scalar targets.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.

        Returns
        -------
        self
        """
        X, Y = self._check_data(X, y, reset=True)
        w = check_weights(sample_weight, Y)
        if self.n_components is not None or self.landmarks is not None:
            features = self._draw_features(X)
            return self._fit_moments(features, features.moments(X, Y, w, self._wants_grams()))
        outputs = centre_responses(
            Y, w, fit_intercept=self.fit_intercept, grams=self._wants_grams()
        )
        self._solve(self._whiten(lambda: self._gram(X, w), outputs), X.shape[0])
        self.X_fit_ = None if self.kernel == "precomputed" else copy_of(X)
        for name in ("moments_", "_landmark_spectrum"):
            self.__dict__.pop(name, None)
        return self

    @available_if(_has_landmarks)
    @all_or_nothing
    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Add a batch of samples to those seen so far and fit the model to all of them.

        Only with landmarks: those given, or drawn from the first batch.

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
            raise ValueError(
                "partial_fit cannot go on from an exact fit, which has no landmarks; clone the "
                "estimator first."
            )
        X, Y = self._check_data(X, y, reset=first)
        if first:
            features = self._draw_features(X)
        else:
            features = Landmarks(self._kernel_function(), self.X_fit_, *self._landmark_spectrum)
            self._check_batch(Y)
        batch = features.moments(X, Y, check_weights(sample_weight, Y), self._wants_grams())
        return self._fit_moments(features, batch if first else self.moments_ + batch)

    def predict(self, X: Any) -> Array:
        """Predict the outputs, never building the dense coefficients.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            With ``kernel="precomputed"``, the kernel values (n_samples, n_samples_fitted) with the
            training samples.

        Returns
        -------
        array of shape (n_samples, d1, ..., dp)
            In the array library and on the device of `X`.
        """
        check_is_fitted(self)
        if is_dask(X):
            return self._predict_lazily(X)
        X = self._check_inputs(X)
        blocks = row_blocks(X.shape[0], 8 * self.tucker_.shape[0], _BLOCK)
        parts = [self._predict_checked(X[rows, :]) for rows in blocks]
        return parts[0] if len(parts) == 1 else namespace_of(parts[0]).concat(parts, axis=0)

    @property
    def dual_coef_(self) -> Array:
        """Dense dual coefficients, of shape (n_samples or n_landmarks, d1, ..., dp)."""
        check_is_fitted(self)
        return self.tucker_.to_dense()

    @property
    def coef_(self) -> Array:
        """Dense coefficients of the inputs, (n_features, d1, ..., dp); of a linear kernel only."""
        check_is_fitted(self)
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ is there with kernel='linear' only; with kernel={self.kernel!r} the model "
                f"is linear in the kernel values, with coefficients dual_coef_."
            )
        core, factors = self.tucker_.core, self.tucker_.factors
        return Tucker(core, (None, *factors[1:])).map_input(self._input_map())

    # ------------------------------------------------------------ helpers

    def _kernel_function(self) -> KernelFunction:
        return kernel_function(
            {
                "kernel": self.kernel,
                "gamma": self.gamma,
                "degree": self.degree,
                "coef0": self.coef0,
                "kernel_params": self.kernel_params,
            }
        )

    def _gram(self, X: Array, w: Array | None) -> Gram:
        center = self.fit_intercept and self.center_kernel
        return centred_gram(self._kernel_function(), X, w, center=center)

    def _whiten(self, build: Callable[[], Gram], outputs: Responses) -> Whitened:
        return whiten_gram(build, outputs, float(self.alpha), solver=self.solver)

    def _wants_grams(self) -> bool:
        return False

    # ------------------------------------------------------------ landmarks

    def _draw_features(self, X: Array) -> Landmarks:
        points = choose_landmarks(
            X, self.kernel, self.n_components, self.landmarks, self.random_state
        )
        return Landmarks.of(self._kernel_function(), points)

    def _check_batch(self, Y: Array) -> None:
        if tuple(Y.shape[1:]) != self.moments_.output_shape:
            raise ValueError(
                f"y of this batch has outputs of shape {tuple(Y.shape[1:])}; the batches before "
                f"had {self.moments_.output_shape}."
            )

    def _fit_moments(self, features: Landmarks, moments: Moments) -> Any:
        about = about_centres(
            moments, fit_intercept=self.fit_intercept, center_kernel=self.center_kernel
        )
        problem = whiten_moments(about, float(self.alpha), solver=self.solver)
        self._solve(features.on_kernel_values(problem), features.points.shape[0])
        self.X_fit_, self.moments_ = features.points, moments
        self._landmark_spectrum = (features.s, features.Q)
        return self

    # ------------------------------------------------------------ data

    def _check_data(self, X: Any, y: Any, reset: bool) -> tuple[Array, Array]:
        checked = check_pair(X, y)
        check_features(self, X, reset=reset)
        return checked

    def _predict_checked(self, X: Array) -> Array:
        K = self._kernel_function()(X, self._fitted_inputs_beside(X))
        dtype = self._dtype_name()
        xp = namespace_of(K)
        out = self._beside(K).map_input(xp.astype(K, getattr(xp, dtype), copy=False))
        out += asarray_like(np.asarray(to_numpy(self.intercept_)), out, dtype=out.dtype)
        return out

    def _fitted_inputs_beside(self, X: Array) -> Array:
        """The training samples or landmarks in the array library of `X`."""
        fitted = self.X_fit_
        if fitted is None:
            return X  # precomputed kernel values
        return beside(fitted, X)

    def _input_map(self) -> Array:
        """``X_fit' factors[0]``, of shape (n_features, R0)."""
        U, X = self.tucker_.factors[0], self.X_fit_
        assert X is not None
        return X.T if U is None else X.T @ U

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
