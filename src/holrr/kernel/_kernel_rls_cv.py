"""Kernel ridge regression with kernel and penalty chosen by cross-validation."""

from __future__ import annotations

from ..model_selection.grid import NoRanks
from ._kernel_rls import KernelRLS
from .search import KernelSearchCV

__all__ = ["KernelRLSCV"]


class KernelRLSCV(NoRanks, KernelSearchCV):
    """Kernel ridge regression for tensor outputs; kernel and penalty cross-validated.

    One eigendecomposition for each fold and kernel serves all penalties.

    Parameters
    ----------
    alphas, cv, kernel, gammas, degree, coef0, kernel_params, kernels
        What is tried, and on which folds, as in `KernelHOLRRCV`.
    selection : {"min", "1se"} or callable, default="min"
        As in `HOLRRCV`; the simplest of equals is that with the largest penalty.
    criterion, max_bytes, n_jobs, verbose
        As in `HOLRRCV`.
    fit_intercept, center_kernel, n_components, landmarks, random_state
        As in `KernelHOLRRCV`.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    best_estimator_ : KernelRLS
        The chosen model, fitted to all the data.
    cv_results_ : dict
        As in `KernelHOLRRCV`; the surfaces have the shape (n_kernels, n_alphas).
    kernel_params_, gamma_, alpha_, kernels_, alphas_, landmarks_, noise_
        What was chosen, what was tried, and the noise of each output, as in `KernelHOLRRCV`.
    best_score_, best_index_, null_mse_, ridge_mse_
        As in `KernelHOLRRCV`.
    dual_coef_, intercept_, tucker_, n_parameters_
        Those of the final model.
    n_features_in_, feature_names_in_, labels_
        As in `KernelRLS`.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.kernel import KernelRLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(80, 1))
    >>> Y = np.sin(X * np.arange(1, 4))[:, :, None] + 0.1 * rng.normal(size=(80, 3, 2))
    >>> model = KernelRLSCV().fit(X, Y)
    >>> model.score(X, Y) > 0.97, model.kernel_params_["kernel"]
    (True, 'rbf')
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _plain = KernelRLS

    def __init__(
        self,
        alphas=None,
        cv=5,
        *,
        kernel="rbf",
        gammas=None,
        degree=3,
        coef0=1,
        kernel_params=None,
        kernels=None,
        criterion="cv",
        selection="min",
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
