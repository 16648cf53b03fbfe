"""Low-rank kernel regression: features by all outputs as an operator of low rank."""

from __future__ import annotations

from ..structures import LowRank
from .base import KernelTensorRegressor

__all__ = ["KernelLRR"]


class KernelLRR(LowRank, KernelTensorRegressor):
    r"""Low-rank (reduced-rank) kernel ridge regression for tensor outputs.

    Minimises :math:`\sum_n \|f(x_n) - \mathcal{Y}_n\|^2 + \alpha \|f\|^2` over the functions whose
    values, all outputs in a row, stay in a subspace of at most `rank` dimensions. The minimum is
    exact.

    Parameters
    ----------
    rank : int, float or None, default=None
        Largest rank; a float in (0, 1) is the share of the energy of Z to keep; None for full rank.
    alpha : float, default=1.0
        Ridge penalty, at least 0.
    kernel, gamma, degree, coef0, kernel_params
        See `KernelRLS`.
    fit_intercept, center_kernel, solver, n_components, landmarks, random_state
        See `KernelRLS`.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    core_ : array of shape (R, d1, ..., dp)
        Outputs for each of the R latent functions.
    factors_ : list of p + 1 arrays
        First the coefficients of the latent functions, (n_samples, R), then identities.
    dual_coef_ : array of shape (n_samples, d1, ..., dp)
        Dense coefficients, built when asked for.
    rank_ : int
        The rank that was used: lower than asked for where the data do not support it, and never
        above the number of outputs.
    objective_, lower_bound_, spectra_
        As in `LRR`.
    intercept_, noise_, X_fit_, coef_, solver_, moments_, n_features_in_, feature_names_in_, labels_
        See `KernelRLS`.

    References
    ----------
    A. Mukherjee, J. Zhu (2011). Reduced rank ridge regression and its kernel extensions.
    Statistical Analysis and Data Mining 4(6), 612-622.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.kernel import KernelLRR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(200, 1))
    >>> Y = (np.hstack([np.sin(2 * X), np.cos(X)]) @ rng.normal(size=(2, 20))).reshape(200, 4, 5)
    >>> model = KernelLRR(rank=2, alpha=1e-3, kernel="rbf", gamma=1.0).fit(X, Y)
    >>> model.factors_[0].shape, model.core_.shape, model.score(X, Y) > 0.999
    ((200, 2), (2, 4, 5), True)
    """

    def __init__(
        self,
        rank=None,
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
        self.rank = rank
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
