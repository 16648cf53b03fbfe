"""Kernel ridge regression for tensor outputs, no constraint on the rank."""

from __future__ import annotations

from collections.abc import Callable

from ..core.spectral import Whitened
from ..structures import Unconstrained
from ._gram import Gram
from ._problem import ridge_gram
from ._responses import Responses
from .base import KernelTensorRegressor

__all__ = ["KernelRLS"]


class KernelRLS(Unconstrained, KernelTensorRegressor):
    r"""Kernel ridge regression for tensor outputs.

    Minimises :math:`\sum_n \|f(x_n) - \mathcal{Y}_n\|^2 + \alpha \|f\|^2` over all functions of
    the kernel's feature space. The outputs are independent of each other: without intercept it is
    scikit-learn's ``KernelRidge`` on the flattened outputs.

    Parameters
    ----------
    alpha : float, default=1.0
        Ridge penalty, at least 0. With 0, the solution of least norm.
    kernel : str or callable, default="linear"
        One of scikit-learn's pairwise kernels ("linear", "rbf", "poly", "laplacian", "cosine",
        "sigmoid", ...), "precomputed", or a function of two samples. Those that need no more than
        products of the inputs ("linear", "poly", "rbf", "sigmoid") take arrays of any library.
    gamma : float, default=None
        Parameter of the rbf, laplacian, polynomial, exponential chi2 and sigmoid kernels; None for
        their default, which for most of them is ``1 / n_features``.
    degree : float, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1
        Constant term of the polynomial and sigmoid kernels.
    kernel_params : dict, default=None
        Keyword arguments of a callable kernel.
    fit_intercept : bool, default=True
        Whether an intercept is fitted, by centring the outputs. It is not penalised.
    center_kernel : bool, default=True
        Whether the features are centred, too, where an intercept is fitted. Only then is the
        intercept optimal, and only then does the linear kernel give what `RLS` does.
    solver : {"auto", "cholesky", "eigh"}, default="auto"
        "cholesky" factorises ``K + alpha I``, "eigh" decomposes `K`. "auto" takes the first where
        half of the digits survive it.
    n_components : int, default=None
        Number of landmarks of the Nystroem approximation, which are drawn from the samples. Memory
        and time then grow no faster than the number of samples, and `partial_fit` takes more of
        them. None for the exact fit.
    landmarks : array of shape (n_components, n_features), default=None
        The landmarks themselves.
    random_state : int, RandomState or None, default=None
        For drawing the landmarks.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    dual_coef_ : array of shape (n_samples, d1, ..., dp)
        Coefficients of the kernel values with `X_fit_`; dense, built when asked for.
    intercept_ : array of shape (d1, ..., dp), or float for scalar targets
    noise_ : array of shape (d1, ..., dp), or float for scalar targets
        Standard deviation of the noise of each output: residual squares over the residual
        degrees of freedom, see docs/intervals.md.
    X_fit_ : array of shape (n_samples, n_features), or None for a precomputed kernel
        The training samples, or the landmarks.
    coef_ : array of shape (n_features, d1, ..., dp)
        With ``kernel="linear"`` only.
    objective_ : float
        The minimum.
    lower_bound_ : float
        The same, since the problem is solved exactly.
    solver_ : str
        The factorisation that was used.
    moments_ : Moments
        Of the features, with landmarks only.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
    labels_ : Labels or None

    Notes
    -----
    A kernel that is not positive semidefinite on the data (such as "sigmoid" may be) is replaced
    by the nearest one that is, with a warning.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.kernel import KernelRLS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 1))
    >>> Y = np.sin(X * np.arange(1, 4))[:, :, None] * np.ones(2)
    >>> model = KernelRLS(alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, Y)
    >>> model.predict(X).shape, model.score(X, Y) > 0.999
    ((200, 3, 2), True)
    """

    def __init__(
        self,
        alpha=1.0,
        *,
        kernel="linear",
        gamma=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        fit_intercept=True,
        center_kernel=True,
        solver="auto",
        n_components=None,
        landmarks=None,
        random_state=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.alpha = alpha
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.solver = solver
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _whiten(self, build: Callable[[], Gram], outputs: Responses) -> Whitened:
        return ridge_gram(build, outputs, float(self.alpha), solver=self.solver)
