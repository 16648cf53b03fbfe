"""Kernel estimators, which are linear in the features of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, Literal, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.metrics.pairwise import PAIRWISE_KERNEL_FUNCTIONS
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ..annotations import InputShape, Kernel, RandomState, Rank
from ..base import TensorRegressor
from ..calls import validates_parameters, with_named_errors
from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.fit import Fit
from ..core.namespace import Array, namespace_of, row_blocks, to_device_of, to_numpy
from ..core.spectral import check_moments
from ..data.output_scale import SCALE_CONSTRAINT, divide_outputs, multiply_outputs
from ..data.validation import Names, Samples, validate, validate_points
from ..docstrings import document
from ..linear.estimators import DATA_CONSTRAINTS, MULTILINEAR_CONSTRAINTS, check_batch
from ..streaming.chunks import Chunks
from ..streaming.moments import Moments
from .candidates import KernelSpec, kernel_function
from .fit import KernelOptions, fit_landmarks, fit_samples, kernel_std_factor
from .gram import KernelFunction
from .landmarks import Landmarks, choose_landmarks, copy_of

__all__ = ["KERNEL_CONSTRAINTS", "KernelHOLRR", "KernelLRR", "KernelRLS", "KernelRegressor"]

# Bytes of the kernel values of one block of samples in `predict`.
_BLOCK = 2**27

KERNEL_CONSTRAINTS: dict[str, list[Any]] = {
    "kernel": [StrOptions({*PAIRWISE_KERNEL_FUNCTIONS, "precomputed"}), callable],
    "gamma": [Interval(Real, 0, None, closed="left"), None],
    "degree": [Interval(Real, 0, None, closed="left")],
    "coef0": [Interval(Real, None, None, closed="neither")],
    "kernel_params": [dict, None],
    "fit_intercept": ["boolean"],
    "center_kernel": ["boolean"],
    "scale_outputs": SCALE_CONSTRAINT,
    "landmarks": [Interval(Integral, 1, None, closed="left"), "array-like", None],
    "random_state": ["random_state"],
    **DATA_CONSTRAINTS,
}


def _has_landmarks(estimator: Any) -> bool:
    if not estimator._uses_landmarks:
        raise AttributeError(
            "partial_fit needs landmarks, since the exact fit has a dual coefficient for every "
            "sample. Set landmarks."
        )
    return True


Method = TypeVar("Method", bound=Callable[..., Any])


def _with_landmarks(method: Method) -> Method:
    """Let an estimator have a method only with landmarks."""
    return cast(Method, available_if(_has_landmarks)(method))


class KernelRegressor(TensorRegressor):
    """Base class of models that are linear in the features of a kernel.

    The model has coefficients of the kernel values with the training samples or with landmarks.
    With landmarks, the problem is linear in a feature map, so that moments, batches and data that
    are read in chunks work as for linear models.
    """

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "alpha": [Interval(Real, 0, None, closed="left")],
        **KERNEL_CONSTRAINTS,
    }

    alpha: float
    kernel: Any
    gamma: float | None
    fit_intercept: bool
    center_kernel: bool
    landmarks: Any
    random_state: Any

    X_fit_: Array | None
    objective_: float
    lower_bound_: float
    solver_: str
    moments_: Moments

    def _structure(self) -> Structure:
        """Return the structure of the coefficients."""
        raise NotImplementedError

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
            Inputs: an array of any array library, a DataFrame or an xarray object, or with
            ``kernel="precomputed"`` the Gram matrix of shape (n_samples, n_samples). With
            landmarks, memory maps and Dask arrays are read in chunks (see docs/streaming.md).
            Cells of maps that are NaN in every sample are left out.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0. Scalar targets have shape (n_samples,).
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in the squared error.
        sample_dim : str, optional
            Sample dimension of xarray objects. By default, the first one that `X` and `y` share.
        """
        data, names = validate(
            self, X, y, sample_weight, sample_dim=sample_dim, in_chunks=self._uses_landmarks
        )
        options = self._options()
        data, scale = divide_outputs(self, data, names.labels)
        if not self._uses_landmarks:
            assert isinstance(data, Samples)
            fit = fit_samples(data, self._kernel_function(), options)
            fit = multiply_outputs(self, fit, scale, names.labels)
            return self._assign_fit(fit, names, inputs=data.X)
        features, y_unit = self._draw_features(data, names), 1.0
        if isinstance(data, Samples):
            data = data.scaled(inputs=False)
            y_unit = data.y_unit
        moments = features.moments(data, options.structure.needs_response_grams)
        fit = fit_landmarks(features, moments, options, y_unit=y_unit)
        fit = multiply_outputs(self, fit, scale, names.labels)
        return self._assign_fit(fit, names, features=features)

    @_with_landmarks
    @with_named_errors
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

        Available with landmarks, which are given or drawn from the first batch. The estimator keeps
        the data as moments of the features. `fit` keeps no moments: after `fit`, `partial_fit`
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
        >>> from holrr import KernelRLS
        >>> from holrr.datasets import make_tensor_regression
        >>> X, Y = make_tensor_regression(60, 4, (3, 2), rank=2, snr=1, random_state=0)
        >>> model = KernelRLS(landmarks=9, random_state=0).partial_fit(X[:30], Y[:30])
        >>> model.partial_fit(X[30:], Y[30:]).moments_.n_samples
        60
        """
        data, names, seen = check_batch(self, X, y, sample_weight, decay, sample_dim)
        options = self._options()
        features = (
            self._draw_features(data, names) if seen is None else self._features_so_far(names)
        )
        moments = features.moments(data, options.structure.needs_response_grams)
        moments = moments if seen is None else seen + moments
        check_moments(moments)
        part, scale = divide_outputs(self, moments, names.labels)
        fit = fit_landmarks(features, part, options)
        fit = multiply_outputs(self, fit, scale, names.labels)
        return self._assign_fit(fit, names, features=features, moments=moments)

    def _options(self) -> KernelOptions:
        return KernelOptions(
            structure=self._structure(),
            alpha=float(self.alpha),
            fit_intercept=self.fit_intercept,
            center_kernel=self.center_kernel,
        )

    def _assign_fit(
        self,
        fit: Fit,
        names: Names,
        *,
        inputs: Array | None = None,
        features: Landmarks | None = None,
        moments: Moments | None = None,
    ) -> Any:
        """Assign the attributes of an exact fit (`inputs`) or of a fit with landmarks."""
        structure, attributes = self._structure(), {}
        if isinstance(structure, MultilinearRank):
            attributes = {"rank_": fit.tucker.rank, "n_iter_": fit.n_iter}
        elif isinstance(structure, MatrixRank):
            attributes = {"rank_": fit.tucker.rank[0]}
        points, kept = None, None
        if features is not None:
            points = features.points
            kept = (self._kernel_settings(), features.s, features.Q)
        elif self.kernel != "precomputed":
            points = copy_of(inputs)
        self._assign(fit, names, moments_=moments, _features=kept, **attributes)
        self.X_fit_ = points
        return self

    # ------------------------------------------------------------ predictions

    def _feature_blocks(self, X: Array) -> Iterator[tuple[Array, Array]]:
        """Yield blocks of inputs with their kernel values."""
        kernel, points = self._kernel_function(), self.X_fit_
        for rows in row_blocks(X.shape[0], 8 * self.tucker_.shape[0], _BLOCK):
            x = X[rows, :]
            yield x, kernel(x, x if points is None else to_device_of(points, x))

    def _std_factor(self, X: Array, F: Array) -> Array:
        features = self._landmarks() if self._uses_landmarks else None
        return kernel_std_factor(self._hat, self._kernel_function(), X, F, features)

    @property
    def dual_coef_(self) -> Array:
        check_is_fitted(self)
        dual = self.tucker_.to_dense()
        if not self._is_flat:
            return dual
        return namespace_of(dual).reshape(dual, (dual.shape[0], -1))

    def _dense_coef(self) -> Array:
        """Return the coefficients of the inputs, which are defined only for a linear kernel."""
        if self.kernel != "linear":
            raise AttributeError(
                f"coef_ is available only with kernel='linear'; got kernel={self.kernel!r}. Use "
                f"dual_coef_, the coefficients of the kernel values."
            )
        (U, *others), X = self.tucker_.factors, self.X_fit_
        assert X is not None
        dual = replace(self.tucker_, factors=(None, *others), leading=())
        return dual.map_input(X.T if U is None else X.T @ U)

    # ------------------------------------------------------------ kernel and landmarks

    @property
    def _uses_landmarks(self) -> bool:
        return self.landmarks is not None

    def _kernel_spec(self) -> KernelSpec:
        names = ("kernel", "gamma", "degree", "coef0", "kernel_params")
        return {name: getattr(self, name) for name in names}

    def _kernel_settings(self) -> dict[str, Any]:
        """Return the parameters that must not change between batches."""
        n_landmarks = self.landmarks if isinstance(self.landmarks, Integral) else None
        return {**self._kernel_spec(), "landmarks": n_landmarks}

    def _kernel_function(self) -> KernelFunction:
        return kernel_function(self._kernel_spec())

    def _draw_features(self, data: Samples | Chunks, names: Names) -> Landmarks:
        points = choose_landmarks(data, names, self.kernel, self.landmarks, self.random_state)
        return Landmarks.of(self._kernel_function(), points)

    def _landmarks(self) -> Landmarks:
        """Return the feature map of the fit."""
        _, s, Q = self._features
        return Landmarks(self._kernel_function(), self.X_fit_, s, Q)

    def _features_so_far(self, names: Names) -> Landmarks:
        """Return the feature map of earlier batches, and check that the parameters are the same."""
        seen = dict(self._features[0])
        n_landmarks = seen.pop("landmarks")
        for name, before in seen.items():
            value = getattr(self, name)
            if value is not before and value != before:
                raise ValueError(
                    f"partial_fit cannot continue with {name}={value!r}: earlier batches used "
                    f"{name}={before!r}. Restore {name}, or start again with fit or a clone."
                )
        if isinstance(self.landmarks, Integral):
            is_same = self.landmarks == n_landmarks
        else:
            given = to_numpy(validate_points(self.landmarks, names, "landmarks"))
            is_same = np.array_equal(given, to_numpy(self.X_fit_))
        if not is_same:
            raise ValueError(
                "partial_fit cannot continue, since landmarks differs from the landmarks of "
                "earlier batches. Restore landmarks, or start again with fit or a clone."
            )
        return self._landmarks()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags


@document
class KernelRLS(KernelRegressor):
    r"""Kernel ridge regression for tensor outputs.

    The fit minimises :math:`\sum_n \|f(x_n) - \mathcal{Y}_n\|^2 + \alpha \|f\|^2` over all
    functions of the kernel's feature space. The outputs are independent of each other: without an
    intercept, the fit is scikit-learn's ``KernelRidge`` on the flattened outputs. See
    docs/kernels.md.

    >>> import numpy as np
    >>> from holrr.kernel import KernelRLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 1))
    >>> Y = np.sin(X * np.arange(1, 4))[:, :, None] * np.ones(2)
    >>> model = KernelRLS(alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, Y)
    >>> model.predict(X).shape, model.score(X, Y) > 0.999
    ((200, 3, 2), True)

    See Also
    --------
    KernelRLSCV : Kernel ridge regression with cross-validated kernel and penalty.
    KernelLRR : Kernel ridge regression with coefficients of low matrix rank.
    KernelHOLRR : Kernel ridge regression with coefficients of low multilinear rank.

    Notes
    -----
    If the Gram matrix of the data is not positive semidefinite, which can happen with "sigmoid",
    the fit uses the nearest positive semidefinite matrix and warns.
    """

    _shares_directions = False

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        kernel: Kernel = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        fit_intercept: bool = True,
        center_kernel: bool = True,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        landmarks: int | ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.landmarks = landmarks
        self.random_state = random_state

    def _structure(self) -> FullRank:
        return FullRank()


@document
class KernelLRR(KernelRegressor):
    r"""Low-rank (reduced-rank) kernel ridge regression for tensor outputs.

    The fit minimises :math:`\sum_n \|f(x_n) - \mathcal{Y}_n\|^2 + \alpha \|f\|^2` over the
    functions whose values, flattened to vectors, lie in a subspace of at most `rank` dimensions.
    The solution is exact. See docs/kernels.md.

    >>> import numpy as np
    >>> from holrr.kernel import KernelLRR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 1))
    >>> Y = (np.hstack([np.sin(2 * X), np.cos(X)]) @ rng.normal(size=(2, 20))).reshape(200, 4, 5)
    >>> model = KernelLRR(rank=2, alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, Y)
    >>> model.factors_[0].shape, model.core_.shape, model.score(X, Y) > 0.999
    ((200, 2), (2, 4, 5), True)

    See Also
    --------
    KernelLRRCV : Low-rank kernel regression with cross-validated kernel, penalty and rank.
    LRR : Low-rank regression, linear in the inputs.

    References
    ----------
    A. Mukherjee, J. Zhu (2011). Reduced rank ridge regression and its kernel extensions.
    Statistical Analysis and Data Mining 4(6), 612-622.
    """

    rank_: int
    spectra_: list[Array]
    energy_: float

    def __init__(
        self,
        rank: int | float | None = None,
        alpha: float = 1.0,
        *,
        kernel: Kernel = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        fit_intercept: bool = True,
        center_kernel: bool = True,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        landmarks: int | ArrayLike | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.rank = rank
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.landmarks = landmarks
        self.random_state = random_state

    def _structure(self) -> MatrixRank:
        return MatrixRank(self.rank)


@document
class KernelHOLRR(KernelRegressor):
    r"""Higher-order low-rank kernel regression for tensor outputs.

    The fit approximately minimises :math:`\sum_n \|f(x_n) - \mathcal{Y}_n\|^2 + \alpha \|f\|^2`
    over the functions :math:`f(x) = \mathcal{W} \times_0 \phi(x)` of the kernel's feature space
    whose coefficients have multilinear rank at most :math:`(R_0, \dots, R_p)`. The problem is not
    convex. The spectral fit is within a factor of p + 1 of the minimum, and
    ``objective_ / lower_bound_`` bounds the actual factor. See docs/kernels.md.

    >>> import numpy as np
    >>> from holrr.kernel import KernelHOLRR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 1))
    >>> latent = np.hstack([np.sin(2 * X), np.cos(X)])
    >>> U1, U2 = rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    >>> Y = np.einsum("na,abc,jb,kc->njk", latent, rng.normal(size=(2, 2, 2)), U1, U2)
    >>> model = KernelHOLRR(rank=2, alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, Y)
    >>> [U.shape for U in model.factors_], model.score(X, Y) > 0.999
    ([(200, 2), (5, 2), (6, 2)], True)

    See Also
    --------
    KernelHOLRRCV : Higher-order low-rank kernel regression with cross-validation.
    HOLRR : Higher-order low-rank regression, linear in the inputs.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.
    """

    rank_: tuple[int, ...]
    spectra_: list[Array]
    energy_: float
    n_iter_: int

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        **KernelRegressor._parameter_constraints,
        **MULTILINEAR_CONSTRAINTS,
    }

    def __init__(
        self,
        rank: Rank = None,
        alpha: float = 1.0,
        *,
        kernel: Kernel = "linear",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1,
        kernel_params: Mapping[str, Any] | None = None,
        refine: bool = False,
        subspaces: Literal["fitted", "response"] = "fitted",
        fit_intercept: bool = True,
        center_kernel: bool = True,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        landmarks: int | ArrayLike | None = None,
        random_state: RandomState = None,
        max_iter: int = 100,
        tol: float = 1e-6,
    ) -> None:
        self.rank = rank
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.refine = refine
        self.subspaces = subspaces
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.landmarks = landmarks
        self.random_state = random_state
        self.max_iter = max_iter
        self.tol = tol

    def _structure(self) -> MultilinearRank:
        return MultilinearRank(
            self.rank, self.subspaces, self.refine, max_iter=self.max_iter, tol=self.tol
        )
