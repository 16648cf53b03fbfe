"""Ridge regression with the penalty chosen by cross-validation."""

from __future__ import annotations

from ..linear import RLS
from .grid import NoRanks
from .linear_search import LinearSurfaceSearchCV

__all__ = ["RLSCV"]


class RLSCV(NoRanks, LinearSurfaceSearchCV):
    """Ridge regression for tensor outputs, the penalty chosen by cross-validation.

    One decomposition of each training fold serves all penalties, and their held-out errors are
    exact: nothing is refitted.

    Parameters
    ----------
    alphas, cv, n_jobs, verbose
        What is tried, and on which folds, as in `HOLRRCV`.
    criterion : {"cv", "aic", "bic", "gcv"}, default="cv"
        As in `HOLRRCV`; the degrees of freedom are those of ridge regression, and one for each
        output's intercept.
    selection : {"min", "1se"} or callable, default="min"
        "min" is the penalty of least error, "1se" the largest within one standard error of it. A
        callable gets `cv_results_` and returns an index into ``mean_mse``.
    fit_intercept, solver, output_weight
        As in `HOLRRCV`.
    missing : {"raise", "fill"}, default="raise"
        As in `HOLRRCV`; the errors are exact for every penalty.
    max_bytes : float, default=2**30
        Memory for the moments of all folds; where they would take more, each fold is gathered on
        its own.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    alpha_ : float
        The chosen penalty.
    best_estimator_ : RLS
        The chosen model, fitted to all the data.
    cv_results_ : dict
        As in `HOLRRCV`; ``mean_mse`` and its like have the shape (n_alphas,).
    alphas_, best_score_, best_index_, null_mse_, ridge_mse_, noise_, n_dropped_
        As in `HOLRRCV`.
    coef_, intercept_, tucker_, spectra_, n_parameters_
        Those of the final model.
    n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

    See Also
    --------
    HOLRRCV : The same with all multilinear ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.model_selection import RLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> Y = np.tensordot(X, rng.normal(size=(5, 4, 3)), 1) + rng.normal(size=(40, 4, 3))
    >>> model = RLSCV(alphas=[0.1, 1, 10]).fit(X, Y)
    >>> model.alpha_, model.cv_results_["mean_mse"].round(2)
    (1.0, array([1.16, 1.16, 1.68]))
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _plain = RLS

    def __init__(
        self,
        alphas=None,
        cv=5,
        *,
        criterion="cv",
        selection="min",
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
