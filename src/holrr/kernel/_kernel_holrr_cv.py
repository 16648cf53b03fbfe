"""Higher-order low-rank kernel regression with all its parameters cross-validated."""

from __future__ import annotations

from ..model_selection.grid import MultilinearRanks
from ._kernel_holrr import KernelHOLRR
from .search import KernelSearchCV

__all__ = ["KernelHOLRRCV"]


class KernelHOLRRCV(MultilinearRanks, KernelSearchCV):
    """Higher-order low-rank kernel regression; kernel, penalty and all ranks cross-validated.

    The held-out error of *every* multilinear rank and penalty is computed exactly, from one
    eigendecomposition for each fold and kernel and without a refit for any of them.

    Parameters
    ----------
    alphas : array of shape (n_alphas,) or None, default=None
        Penalties to try, at least 0 and different from each other, in any order. None for half
        decades from 1e-5 to 1e2 times the mean eigenvalue of the Gram matrix (from the least to
        the largest one of the kernels).
    ranks : None, int, tuple or list of tuples, default=None
        None to try all, an int or a tuple of caps, or a list of just those, as in `HOLRRCV`.
    cv : int, splitter or iterable, default=5
        Folds, as in `HOLRRCV`.
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
    subspaces : {"fitted", "response"}, default="fitted"
        Where the output subspaces come from, as in `KernelHOLRR`.
    refine : bool, default=False
        Whether the final fit is refined; the errors are those of the fits before refinement.
    criterion, selection, max_bytes, search, n_jobs, verbose
        As in `HOLRRCV`.
    fit_intercept, center_kernel : bool, default=True
        As in `KernelRLS`.
    n_components, landmarks, random_state
        As in `KernelRLS`. The landmarks are drawn once, from all samples, for all folds and
        kernels; drawing them looks at no outputs.
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
    rank_ : tuple of int
        The chosen ranks.
    best_score_, best_index_ : float, tuple of int
        Minus the mean held-out error (or the criterion) of the choice, and its place in the
        surface: kernel, penalty, ranks.
    null_mse_, ridge_mse_ : float
        Held-out errors of the mean and of kernel ridge regression, for comparison.
    best_estimator_ : KernelHOLRR
        The chosen model, fitted to all the data.
    cv_results_ : dict
        As in `HOLRRCV`; the surfaces ``mean_mse``, ``std_mse`` and ``fold_mse`` have an axis for
        the kernels before that of the penalties, however many there are:
        (n_kernels, n_alphas, R0, ..., Rp). ``kernels`` is `kernels_`.
    kernels_ : list of dict
        The kernels that were tried.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried.
    landmarks_ : array of shape (n_components, n_features)
        With landmarks only.
    noise_ : array of shape (d1, ..., dp), or float for scalar targets
        As in `HOLRRCV`.
    dual_coef_, intercept_, tucker_, n_parameters_, core_, factors_, spectra_
        Those of the final model.
    n_features_in_, feature_names_in_, labels_
        As in `KernelRLS`.

    Notes
    -----
    Entry ``[k, a, i, j, ...]`` of the surface belongs to ``kernels_[k]``, ``alphas_[a]`` and the
    rank ``(i + 1, j + 1, ...)``. The input rank goes up to the number of outputs, above which it
    changes nothing, or to what the largest training fold supports.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.kernel import KernelHOLRRCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(100, 1))
    >>> latent = np.hstack([np.sin(2 * X), np.cos(X)])
    >>> U1, U2 = rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    >>> Y = np.einsum("na,abc,jb,kc->njk", latent, rng.normal(size=(2, 2, 2)), U1, U2)
    >>> Y += 0.3 * rng.normal(size=Y.shape)
    >>> model = KernelHOLRRCV(gammas=[0.1, 1.0], selection="1se").fit(X, Y)
    >>> model.rank_, model.kernel_params_
    ((2, 2, 2), {'kernel': 'rbf', 'gamma': 1.0})
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _plain = KernelHOLRR

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
        subspaces="fitted",
        refine=False,
        criterion="cv",
        selection="stack",
        fit_intercept=True,
        center_kernel=True,
        n_components=None,
        landmarks=None,
        random_state=None,
        max_bytes=2**30,
        search="pruned",
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
        self.subspaces = subspaces
        self.refine = refine
        self.criterion = criterion
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.center_kernel = center_kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.random_state = random_state
        self.max_bytes = max_bytes
        self.search = search
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.output_shape = output_shape
        self.sample_dim = sample_dim
