"""Ridge regression with the penalty chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

from sklearn.utils._param_validation import StrOptions

from ..linear import RLS
from .grid import RankGrid
from .linear_search import LinearSurfaceSearchCV
from .search import Index

__all__ = ["RLSCV"]


class RLSCV(LinearSurfaceSearchCV):
    """Ridge regression for tensor outputs, the penalty chosen by cross-validation.

    One decomposition of each training fold serves all penalties, and their held-out errors are
    exact: nothing is refitted.

    Parameters
    ----------
    alphas : array of shape (n_alphas,) or None, default=None
        Penalties to try, at least 0 and different from each other, in any order. None for
        thirteen in half decades, from 1e-4 to 1e2 times the mean eigenvalue of ``X'X`` (of the
        centred inputs where an intercept is fitted; over as many directions as there are features
        or samples, whichever are fewer).
    cv : int, splitter or iterable, default=5
        Number of folds, any splitter of scikit-learn, or pairs of training and test indices.
    criterion : {"cv", "aic", "bic", "gcv"}, default="cv"
        Held-out error, or a criterion computed from one decomposition of all the data, which needs
        no folds. Its degrees of freedom are those of ridge regression, and one for each
        output's intercept.
    selection : {"min", "1se"} or callable, default="min"
        "min" is the penalty of least error, "1se" the largest within one standard error of it. A
        callable gets `cv_results_` and returns an index into ``mean_mse``.
    fit_intercept : bool, default=True
        Whether an intercept is fitted.
    solver : {"auto", "eigh", "svd"}, default="auto"
        "eigh" factorises ``X'X``, "svd" the inputs themselves. "auto" takes the former where there
        are more samples than features and half of the digits survive it.
    max_bytes : float, default=2**30
        Memory for the moments of all folds; where they would take more, each fold is gathered on
        its own.
    missing : {"raise", "fill"}, default="raise"
        What NaN and masked entries of y are: an error, or missing outputs, which count neither in
        the fits nor in the held-out errors. Then the
        errors are exact for every penalty (see docs/missing.md).
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in fits and held-out errors: one vector, or None, for each output
        mode, or an array that is the product of such vectors.
    n_jobs : int or None, default=None
        Number of folds that are worked on at a time, each by a share of the threads. None for as
        many as the linear algebra has threads.
    verbose : bool, default=False
        Whether a progress bar is drawn (``pip install holrr[progress]``).
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    alpha_ : float
        The chosen penalty.
    best_score_ : float
        Minus the mean held-out error (or the criterion) of the choice: larger is better.
    null_mse_, ridge_mse_ : float
        Held-out errors of the mean and of ridge regression, for comparison.
    best_index_ : tuple of int
        Its place in the error surface.
    best_estimator_ : RLS
        The chosen model, fitted to all the data.
    cv_results_ : dict
        ``mean_mse`` and ``std_mse``, arrays of shape (n_alphas,): mean and standard deviation
        over the folds of each fold's mean squared error, over its samples (weighted) and outputs.
        ``fold_mse``, the same for each fold, first axis the folds. ``n_parameters``, of shape
        (). ``alphas``, and ``null_mse``, the error of predicting the mean. With an
        information criterion: its values, under its name, ``train_mse``, ``degrees_of_freedom``
        and ``n_observations``.
        With `output_weight`, ``unweighted_mse``: the held-out error of the choice with all outputs
        alike.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried.
    noise_ : array of shape (d1, ..., dp), or float for scalar targets
        Standard deviation of the noise of each output: from held-out residuals, see
        docs/intervals.md.
    coef_, intercept_, tucker_, spectra_, n_parameters_
        Those of the final model.
    n_dropped_ : int
        With ``missing="fill"``: number of samples without any observed output.
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,)
    labels_ : Labels or None

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

    _parameter_constraints: dict = {  # noqa: RUF012
        **LinearSurfaceSearchCV._parameter_constraints,
        "selection": [StrOptions({"min", "1se"}), callable],
    }

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

    def _rank_grid(self, shape: Sequence[int]) -> RankGrid:
        return RankGrid(())

    def _model(self, index: Index, rank: tuple[int, ...]) -> RLS:
        return RLS(
            alpha=float(self.alphas_[index[0]]),
            fit_intercept=self.fit_intercept,
            solver=self.solver,
            missing=self.missing,
        )
