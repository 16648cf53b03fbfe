"""The skeleton of the kernel estimators: kernel values in place of features."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..base import Approximating
from ..core.namespace import Array, beside, namespace_of, row_blocks, to_numpy
from ..core.spectral import Whitened, check_moments, whiten_moments
from ..core.threads import few_threads_for
from ..core.tucker import Tucker
from ..data.arrays import check_inputs
from ..data.moments import Moments
from ..data.samples import Samples
from ..data.source import Source
from ._gram import Gram, KernelFunction, centred_gram
from ._kernels import KernelSpec, kernel_function
from ._landmarks import Landmarks, choose_landmarks, copy_of
from ._problem import SOLVERS, whiten_gram
from ._responses import Responses, centre_responses

__all__ = ["KernelParameters", "KernelTensorRegressor", "kernel_constraints"]

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
    if not estimator._uses_landmarks:
        raise AttributeError(
            "partial_fit needs landmarks, since the exact fit has a coefficient for every sample: "
            "set n_components or landmarks."
        )
    return True


class KernelParameters:
    """The parameters that a kernel estimator and its search have in common."""

    kernel: str | Callable[..., float]
    degree: float
    coef0: float
    kernel_params: dict[str, Any] | None
    fit_intercept: bool
    center_kernel: bool
    n_components: int | None
    landmarks: Any
    random_state: Any

    @property
    def _uses_landmarks(self) -> bool:
        return self.n_components is not None or self.landmarks is not None

    def _kernel_spec(self) -> KernelSpec:
        names = ("kernel", "degree", "coef0", "kernel_params")
        return {name: getattr(self, name) for name in names}


class KernelTensorRegressor(KernelParameters, Approximating):
    """Estimators that are linear in the features of a kernel.

    The coefficients are those of the kernel values with the training samples, or with the
    landmarks that stand for them. With landmarks the kernel is a feature map in front of a linear
    problem, which is all that is new: data of every kind and batches come with it.
    """

    _parameter_constraints: dict = {  # noqa: RUF012
        "alpha": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(set(SOLVERS))],
        **kernel_constraints,
    }

    alpha: float
    gamma: float | None
    solver: str
    moments_: Moments

    partial_fit = available_if(_has_landmarks)(Approximating.partial_fit)

    @property
    def _streams(self) -> bool:  # type: ignore[override]
        return self._uses_landmarks

    def _add_batch(self, data: Samples | Source, seen: Moments | None) -> Any:
        features = self._draw_features(data) if seen is None else self._features_so_far()
        batch = features.moments(data, self._wants_response_grams())
        moments = batch if seen is None else seen + batch
        check_moments(moments, self.solver)
        self._check_shape(features.points.shape[0], data.output_shape)
        return self._put_off({"moments_": moments, **self._kept_features(features)})

    def _solve_later(self, **options: Any) -> Any:
        moments, (_, s, Q) = self.moments_, self._fitted_features
        self._fit_features(Landmarks(self._kernel_function(), self.X_fit_, s, Q), moments)
        self.moments_ = moments

    def _read(self, X: Array, read: Callable[[Array], Array]) -> Array:
        blocks = row_blocks(X.shape[0], 8 * self.tucker_.shape[0], _BLOCK)
        parts = [read(self._features(X[rows, :])) for rows in blocks]
        return parts[0] if len(parts) == 1 else namespace_of(parts[0]).concat(parts, axis=0)

    def _predict_with_spread(self, X: Array) -> tuple[Array, Array]:
        blocks = row_blocks(X.shape[0], 8 * self.tucker_.shape[0], _BLOCK)
        of_block, concat = super()._predict_with_spread, namespace_of(X).concat
        predicted, spreads = zip(*(of_block(X[rows, :]) for rows in blocks), strict=True)
        return concat(predicted, axis=0), concat(spreads, axis=0)

    def _spread_of(self, X: Array, F: Array) -> Array:
        """The spread from kernel values, with the squared norms of the centred features."""
        K, xp, hat = F, namespace_of(F), self._fitted_hat
        if "diagonal" in hat:  # precomputed, so that nobody knows k(x, x)
            norms = xp.full_like(K[:, 0], hat["diagonal"])
        else:
            norms = self._kernel_function().diagonal(X)
        if self._uses_landmarks:
            _, s, Q = self._fitted_features
            phi = K @ beside(Q / s, K)
            lacking = xp.clip(norms - xp.sum(phi * phi, axis=1), 0.0, None)
            centred = phi - beside(hat["mean"], K)
            return self._spread(phi, lacking + xp.sum(centred * centred, axis=1))
        shift, mean, root = 0.0, beside(hat["mean"], K), hat["sample_root"]
        root = xp.ones_like(mean) if root is None else beside(root, K)
        if hat["centred"]:
            share = root * root / xp.sum(root * root)
            shift = K @ share - share @ mean
            norms = xp.clip(norms - shift - K @ share, 0.0, None)
        if hat["form"] == "gram":
            K = (K - mean - xp.reshape(shift, (-1, 1))) * root + mean
        return self._spread(K, norms)

    def _features(self, X: Array) -> Array:
        """With the training samples or landmarks; `X` itself where they are precomputed."""
        fitted = self.X_fit_
        return self._kernel_function()(X, X if fitted is None else beside(fitted, X))

    @property
    def dual_coef_(self) -> Array:
        """Dense dual coefficients, of shape (n_samples or n_landmarks, d1, ..., dp)."""
        check_is_fitted(self)
        return self.tucker_.to_dense()

    def _dense_coef(self) -> Array:
        """Those of the inputs, which a linear kernel has only."""
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ is there with kernel='linear' only; with kernel={self.kernel!r} the model "
                f"is linear in the kernel values, with coefficients dual_coef_."
            )
        (U, *others), X = self.tucker_.factors, self.X_fit_
        assert X is not None
        return Tucker(self.tucker_.core, (None, *others)).map_input(X.T if U is None else X.T @ U)

    # ------------------------------------------------------------ from data to fitted attributes

    def _fit_data(self, data: Samples | Source, **options: Any) -> Any:
        if isinstance(data, Samples):
            data = data.in_units(inputs=False)
        if self._uses_landmarks:
            features = self._draw_features(data)
            moments = features.moments(data, self._wants_response_grams())
            return self._fit_features(features, moments, data, **options)
        assert isinstance(data, Samples)
        X, w = data.X, data.w
        outputs = centre_responses(
            data.Y, w, fit_intercept=self.fit_intercept, grams=self._wants_response_grams()
        )
        n, D = outputs.values.shape
        with few_threads_for(n * n * (n + D + data.n_features)):
            problem = self._whiten(lambda: self._gram(X, w), outputs)
            self._forget()
            with few_threads_for(n * math.prod(problem.Z.shape)):
                self._solve(replace(problem, units=data.units), n, **options)
        self._keep_samples(X)
        return self

    def _keep_samples(self, X: Array) -> None:
        """Keep what kernel values of other samples take."""
        self.X_fit_ = None if self.kernel == "precomputed" else copy_of(X)
        if self.X_fit_ is None:
            xp = namespace_of(X)
            self._fitted_hat["diagonal"] = float(xp.max(xp.linalg.diagonal(X)))

    def _kept_features(self, features: Landmarks) -> dict[str, Any]:
        """What kernel values of other samples take where there are landmarks."""
        chosen = {**self._kernel_spec(), "n_components": self.n_components}
        return {"X_fit_": features.points, "_fitted_features": (chosen, features.s, features.Q)}

    def _fit_features(
        self, features: Landmarks, moments: Moments, data: Any = None, **options: Any
    ) -> Any:
        """Fit to the moments of the features of landmarks."""
        centred = moments.centred(self.fit_intercept, centre_inputs=self.center_kernel)
        problem = whiten_moments(centred, float(self.alpha), solver=self.solver)
        problem = features.on_kernel_values(problem)
        if isinstance(data, Samples):
            problem = replace(problem, units=data.units)
        self._forget()
        self._solve(problem, features.points.shape[0], **options)
        self.__dict__.update(self._kept_features(features))
        return self

    def _n_directions(self, n_features: int, output_shape: Sequence[int]) -> int:
        return min(n_features, math.prod(output_shape))  # more directions than outputs add nothing

    def _n_leading(self, n_features: int, output_shape: Sequence[int]) -> int | None:
        """How many leading input directions of Z the approximation takes; None for all of them."""
        return None

    def _gram(self, X: Array, w: Array | None) -> Gram:
        center = self.fit_intercept and self.center_kernel
        # Threads of NumPy's BLAS would be in the way of SciPy's, which is about to factorise.
        with few_threads_for(X.shape[0] ** 2 * X.shape[1]):
            return centred_gram(self._kernel_function(), X, w, center=center)

    def _whiten(self, build: Callable[[], Gram], outputs: Responses) -> Whitened:
        k = self._n_leading(outputs.values.shape[0], outputs.shape)
        return whiten_gram(build, outputs, float(self.alpha), solver=self.solver, n_leading=k)

    # ------------------------------------------------------------ kernel and landmarks

    def _kernel_spec(self) -> KernelSpec:
        return {**super()._kernel_spec(), "gamma": self.gamma}

    def _kernel_function(self) -> KernelFunction:
        return kernel_function(self._kernel_spec())

    def _draw_features(self, data: Samples | Source) -> Landmarks:
        points = choose_landmarks(
            data, self.kernel, self.n_components, self.landmarks, self.random_state
        )
        return Landmarks.of(self._kernel_function(), points)

    def _features_so_far(self) -> Landmarks:
        """The features of the batches before, whose kernel must still be the same."""
        spec, s, Q = self._fitted_features
        for name, before in spec.items():
            value = getattr(self, name)
            if value is not before and value != before:
                raise ValueError(
                    f"partial_fit cannot go on with {name}={value!r}: the batches before were seen "
                    f"with {name}={before!r}. Set it back, or start anew with fit or a clone."
                )
        points, given = to_numpy(self.X_fit_), self.landmarks
        if given is not None and not np.array_equal(to_numpy(check_inputs(given)), points):
            raise ValueError(
                "partial_fit cannot go on with other landmarks than those of the batches before. "
                "Set them back, or start anew with fit or a clone."
            )
        return Landmarks(self._kernel_function(), self.X_fit_, s, Q)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags
