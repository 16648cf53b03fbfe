"""Low-rank kernel regression with kernel, penalty and rank chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..model_selection.grid import RankGrid, check_ranks
from ..model_selection.search import Index
from ._kernel_lrr import KernelLRR
from .search import KernelSearchCV

__all__ = ["KernelLRRCV"]


class KernelLRRCV(KernelSearchCV):
    """Low-rank kernel regression; kernel, penalty and rank cross-validated.

    The held-out errors of all ranks and penalties come from one eigendecomposition for each fold
    and kernel, exactly.

    Parameters
    ----------
    alphas : array of shape (n_alphas,) or None, default=None
        Penalties to try, at least 0 and different from each other, in any order. None for half
        decades from 1e-5 to 1e2 times the mean eigenvalue of the Gram matrix (from the least to
        the largest one of the kernels).
    ranks : None, int or list of ints, default=None
        None to try all ranks, an int for all up to it, a list for just those.
    cv : int, splitter or iterable, default=5
        Number of folds, any splitter of scikit-learn, or pairs of training and test indices.
    kernel : str or callable, default="rbf"
        The kernel, as in `KernelRLS`.
    gammas : None, float or list of floats, default=None
        Values of the kernel's parameter gamma to try. None for six from the data where the kernel
        is "rbf" or "laplacian" (1/100 to 3 times one over the median of the squared, or absolute,
        distances between samples), and for the kernel's default otherwise.
    degree, coef0, kernel_params
        As in `KernelRLS`.
    kernels : list, default=None
        The candidates, in the place of `kernel`: names, callables and dicts, these with the key
        "kernel" and some of "gamma", "degree", "coef0" and "kernel_params". What a candidate leaves
        out is filled in from the parameters above; `gammas` are tried with each that has no own.
    criterion : {"cv", "aic", "bic", "gcv"}, default="cv"
        As in `HOLRRCV`.
    selection : {"stack", "min", "1se"} or callable, default="stack"
        As in `HOLRRCV`.
    fit_intercept, center_kernel : bool, default=True
        As in `KernelRLS`.
    n_components, landmarks, random_state
        As in `KernelRLS`. The landmarks are drawn once, from all samples, for all folds and
        kernels; drawing them looks at no outputs.
    max_bytes, n_jobs, verbose
        As in `HOLRRCV`.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    kernel_params_ : dict
        The chosen kernel and its parameters, with the keys of `kernels`.
    gamma_ : float or None
        Its parameter gamma; None for its default, or where it has none.
    alpha_ : float
        The chosen penalty.
    rank_ : int
        The chosen rank.
    best_score_, best_index_ : float, tuple of int
        Minus the mean held-out error (or the criterion) of the choice, and its place in the
        surface: kernel, penalty, rank.
    null_mse_, ridge_mse_ : float
        Held-out errors of the mean and of kernel ridge regression, for comparison.
    best_estimator_ : KernelLRR
        The chosen model, fitted to all the data.
    cv_results_ : dict
        As in `HOLRRCV`; the surfaces ``mean_mse``, ``std_mse`` and ``fold_mse`` have an axis for
        the kernels before that of the penalties, however many there are: (n_kernels, n_alphas, R0).
        ``kernels`` is `kernels_`.
    kernels_ : list of dict
        The kernels that were tried.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried.
    landmarks_ : array of shape (n_components, n_features)
        With landmarks only.
    noise_ : array of shape (d1, ..., dp), or float for scalar targets
        Standard deviation of the noise of each output: from held-out residuals, see
        docs/intervals.md.
    dual_coef_, intercept_, tucker_, n_parameters_,
    core_, factors_, spectra_
        Those of the final model.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
    labels_ : Labels or None

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

    def _rank_grid(self, shape: Sequence[int]) -> RankGrid:
        ranks = self.ranks
        if ranks is None or np.ndim(ranks) == 0:
            return check_ranks(ranks, shape[:1])
        return check_ranks([(R,) for R in ranks], shape[:1])

    def _model(self, index: Index, rank: tuple[int, ...]) -> KernelLRR:
        return KernelLRR(rank=rank[0], **self._shared(index))
