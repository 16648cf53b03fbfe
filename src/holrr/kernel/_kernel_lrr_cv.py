"""Low-rank kernel regression with kernel, penalty and rank chosen by cross-validation."""

from __future__ import annotations

from ..model_selection.grid import MatrixRanks
from ._kernel_lrr import KernelLRR
from .search import KernelSearchCV

__all__ = ["KernelLRRCV"]


class KernelLRRCV(MatrixRanks, KernelSearchCV):
    """Low-rank kernel regression; kernel, penalty and rank cross-validated.

    The held-out errors of all ranks and penalties come from one eigendecomposition for each fold
    and kernel, exactly.

    Parameters
    ----------
    ranks : None, int or list of ints, default=None
        None to try all ranks, an int for all up to it, a list for just those.
    alphas, cv, kernel, gammas, degree, coef0, kernel_params, kernels
        What is tried, and on which folds, as in `KernelHOLRRCV`.
    criterion, selection, max_bytes, n_jobs, verbose
        As in `HOLRRCV`.
    fit_intercept, center_kernel, n_components, landmarks, random_state
        As in `KernelHOLRRCV`.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    rank_ : int
        The chosen rank.
    best_estimator_ : KernelLRR
        The chosen model, fitted to all the data.
    cv_results_ : dict
        As in `KernelHOLRRCV`; the surfaces have the shape (n_kernels, n_alphas, R0).
    kernel_params_, gamma_, alpha_, kernels_, alphas_, landmarks_, noise_
        What was chosen, what was tried, and the noise of each output, as in `KernelHOLRRCV`.
    best_score_, best_index_, null_mse_, ridge_mse_
        As in `KernelHOLRRCV`.
    dual_coef_, intercept_, tucker_, n_parameters_, core_, factors_, spectra_
        Those of the final model.
    n_features_in_, feature_names_in_, labels_
        As in `KernelRLS`.

    References
    ----------
    A. Mukherjee, J. Zhu (2011). Reduced rank ridge regression and its kernel extensions.
    Statistical Analysis and Data Mining 4(6), 612-622.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.kernel import KernelLRRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(80, 1))
    >>> Y = np.hstack([np.sin(2 * X), np.cos(X)]) @ rng.normal(size=(2, 20))
    >>> Y = (Y + 0.2 * rng.normal(size=(80, 20))).reshape(80, 4, 5)
    >>> model = KernelLRRCV(selection="1se").fit(X, Y)
    >>> model.rank_
    2
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _plain = KernelLRR

    def __init__(
        self,
        alphas=None,
        ranks=None,
        cv=5,
        *,
        kernel="rbf",
        gammas=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        kernels=None,
        criterion="cv",
        selection="stack",
        fit_intercept=True,
        center_kernel=True,
        n_components=None,
        landmarks=None,
        random_state=None,
        max_bytes=2**30,
        n_jobs=None,
        verbose=False,
        output_shape=None,
        sample_dim=None,
    ):
        self.alphas = alphas
        self.ranks = ranks
        self.cv = cv
        self.kernel = kernel
        self.gammas = gammas
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.kernels = kernels
        self.criterion = criterion
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.max_bytes = max_bytes
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.output_shape = output_shape
        self.sample_dim = sample_dim
