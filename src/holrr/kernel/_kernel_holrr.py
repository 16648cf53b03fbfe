"""Higher-order low-rank kernel regression: dual coefficients of low multilinear rank."""

from __future__ import annotations

from ..structures import MultilinearRank
from .base import KernelTensorRegressor

__all__ = ["KernelHOLRR"]


class KernelHOLRR(MultilinearRank, KernelTensorRegressor):
    r"""Higher-order low-rank kernel regression.

    Minimises :math:`\sum_n \|f(x_n) - \mathcal{Y}_n\|^2 + \alpha \|f\|^2` over the functions
    :math:`f(x) = \mathcal{W} \times_0 \phi(x)` in the kernel's feature space whose coefficients
    have multilinear rank at most :math:`(R_0, \dots, R_p)`. The problem is not convex; the fit is a
    spectral approximation within a factor of p + 1 of the minimum, and
    ``objective_ / lower_bound_`` certifies how near it really is.

    Parameters
    ----------
    rank : int, float, tuple or None, default=None
        As in `HOLRR`: an int, a share of the energy or None, for all modes or, in a tuple
        ``(R0, ..., Rp)`` with the input mode first, for each.
    alpha : float, default=1.0
        Ridge penalty, at least 0.
    kernel, gamma, degree, coef0, kernel_params
        See `KernelRLS`.
    subspaces : {"fitted", "response"}, default="fitted"
        Where the output subspaces come from: what functions of the feature space explain of the
        outputs, or, as in Algorithm 2 of the paper, the outputs themselves.
    refine, max_iter, tol
        Whether, and for how long, the fit is refined, as in `HOLRR`.
    fit_intercept, center_kernel, solver, n_components, landmarks, random_state
        See `KernelRLS`.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    core_ : array of shape (R0, ..., Rp)
    factors_ : list of p + 1 arrays
        First the coefficients of the latent functions, (n_samples, R0), which are those of the
        kernel values with `X_fit_`; then the output factors, (d_i, R_i), with orthonormal columns.
    dual_coef_ : array of shape (n_samples, d1, ..., dp)
        Dense coefficients, built when asked for.
    rank_ : tuple of int
        The ranks that were used. An input rank that the data do not support, or that is above the
        number of outputs, is lowered.
    objective_, lower_bound_, spectra_, energy_, n_iter_
        As in `HOLRR`.
    intercept_, noise_, X_fit_, coef_, solver_, moments_, n_features_in_, feature_names_in_, labels_
        See `KernelRLS`.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.

    Examples
    --------
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
        subspaces="fitted",
        refine=False,
        max_iter=100,
        tol=1e-6,
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
        self.subspaces = subspaces
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.solver = solver
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.output_shape = output_shape
        self.sample_dim = sample_dim
