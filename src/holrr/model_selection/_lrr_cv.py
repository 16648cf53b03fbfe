"""Low-rank regression with penalty and rank chosen by cross-validation."""

from __future__ import annotations

from ..linear import LRR
from .grid import MatrixRanks
from .linear_search import LinearSurfaceSearchCV

__all__ = ["LRRCV"]


class LRRCV(MatrixRanks, LinearSurfaceSearchCV):
    """Low-rank regression, penalty and rank chosen by cross-validation.

    The held-out errors of all ranks and penalties are exact, and nothing is refitted: they are
    those of `HOLRRCV` at full output ranks, from small matrices alone.

    Parameters
    ----------
    ranks : None, int or list of int, default=None
        None to try all ranks, an int for all up to that, a list for just those.
    alphas, cv, criterion, selection, max_bytes, n_jobs, verbose
        What is tried, how it is judged and what is chosen, as in `HOLRRCV`.
    fit_intercept, solver, missing, output_weight
        As in `HOLRRCV`.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    rank_ : int
        The chosen rank; of a stack, the best single one.
    best_estimator_ : LRR
        The chosen model, fitted to all the data.
    cv_results_ : dict
        As in `HOLRRCV`; the surfaces have the shape (n_alphas, R0).
    alpha_, alphas_, best_score_, best_index_, null_mse_, ridge_mse_, noise_, n_dropped_
        As in `HOLRRCV`.
    stack_ranks_, stack_weights_, stack_mse_, stack_gap_
        Of a stack, as in `HOLRRCV`.
    coef_, intercept_, tucker_, core_, factors_, spectra_, n_parameters_
        Those of the final model.
    n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

    See Also
    --------
    HOLRRCV : The same with all multilinear ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.model_selection import LRRCV
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(60, 6)), rng.normal(size=(6, 2)) @ rng.normal(size=(2, 20))
    >>> Y = (X @ W).reshape(60, 4, 5) + 0.5 * rng.normal(size=(60, 4, 5))
    >>> model = LRRCV(alphas=[0, 0.1, 1, 10]).fit(X, Y)
    >>> model.rank_, model.cv_results_["mean_mse"].shape
    (2, (4, 6))
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _plain = LRR

    def __init__(
        self,
        alphas=None,
        ranks=None,
        cv=5,
        *,
        criterion="cv",
        selection="stack",
        fit_intercept=True,
        solver="auto",
        max_bytes=2**30,
        missing="raise",
        output_weight=None,
        n_jobs=None,
        verbose=False,
        output_shape=None,
        sample_dim=None,
    ):
        self.alphas = alphas
        self.ranks = ranks
        self.cv = cv
        self.criterion = criterion
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_bytes = max_bytes
        self.missing = missing
        self.output_weight = output_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.output_shape = output_shape
        self.sample_dim = sample_dim
