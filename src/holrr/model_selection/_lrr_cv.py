"""Low-rank regression with penalty and rank chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..linear import LRR
from .grid import RankGrid, check_ranks
from .linear_search import LinearSurfaceSearchCV
from .search import Index

__all__ = ["LRRCV"]


class LRRCV(LinearSurfaceSearchCV):
    """Low-rank regression, penalty and rank chosen by cross-validation.

    The held-out errors of all ranks and penalties are exact, and nothing is refitted: they are
    those of `HOLRRCV` at full output ranks, from small matrices alone.

    Parameters
    ----------
    alphas : array of shape (n_alphas,) or None, default=None
        Penalties to try, at least 0 and different from each other, in any order. None for
        thirteen in half decades, from 1e-4 to 1e2 times the mean eigenvalue of ``X'X`` (of the
        centred inputs where an intercept is fitted; over as many directions as there are features
        or samples, whichever are fewer), and more as long as the error falls towards an edge.
    ranks : None, int or list of int, default=None
        None to try all ranks, an int for all up to that, a list for just those.
    cv : int, splitter or iterable, default=5
        Number of folds, any splitter of scikit-learn, or pairs of training and test indices.
    criterion : {"cv", "aic", "bic", "gcv"}, default="cv"
        Held-out error, or a criterion computed from one decomposition of all the data, which needs
        no folds. Its degrees of freedom are the number of parameters times the share that the
        penalty leaves of the input directions, and one for each output's intercept.
    selection : {"stack", "min", "1se"} or callable, default="stack"
        "stack" is the mixture of all ranks, and of the null model, with the least held-out error:
        a soft mask on one core. Each fold judges mixtures whose weights come from the other folds,
        which chooses how many ranks to mix, and the penalty. "min" is the candidate of least error.
        "1se" is the smallest model, counted in parameters, within one standard error of the best,
        and of these that with the largest penalty. A callable gets `cv_results_` and returns an
        index into the error surface. Where there is nothing to stack (an information criterion, or
        refined fits, which are not nested) "stack" is "min".
    fit_intercept : bool, default=True
        Whether an intercept is fitted.
    solver : {"auto", "eigh", "svd"}, default="auto"
        "eigh" factorises ``X'X``, "svd" the inputs themselves. "auto" takes the former where there
        are more samples than features and half of the digits survive it.
    max_bytes : float, default=2**30
        Memory for the error surfaces of all folds, their mean and their standard deviation. Where
        they would take more, every rank is capped at the largest common number that fits, with a
        warning.
    missing : {"raise", "fill"}, default="raise"
        What NaN and masked entries of y are: an error, or missing outputs, which count neither in
        the fits nor in the held-out errors. Then the
        surface is an approximation, exact at the choice (see docs/missing.md).
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
    rank_ : int
        The chosen rank; of a stack, the best single one.
    best_score_ : float
        Minus the mean held-out error (or the criterion) of the choice: larger is better. That of a
        stack is cross-fitted: no fold has judged weights of its own.
    null_mse_, ridge_mse_ : float
        Held-out errors of the mean and of ridge regression, for comparison.
    best_index_ : tuple of int
        Place of the choice (of a stack, of the best single rank) in the error surface.
    best_estimator_ : LRR
        The chosen model, fitted to all the data.
    cv_results_ : dict
        ``mean_mse`` and ``std_mse``, arrays of shape (n_alphas, R0): mean and standard deviation
        over the folds of each fold's mean squared error, over its samples (weighted) and outputs.
        ``fold_mse``, the same for each fold, first axis the folds. ``n_parameters``, of shape
        (R0,). ``alphas``, and ``null_mse``, the error of predicting the mean. With an
        information criterion: its values, under its name, ``train_mse``, ``degrees_of_freedom``
        and ``n_observations``.
        With `output_weight`, ``unweighted_mse``: the held-out error of the choice with all outputs
        alike.
        With missing outputs, ``fitted_index`` and ``fitted_mse``: the candidates that were fitted
        to every fold around its holes, and their exact held-out errors.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried.
    stack_ranks_ : list of tuples
        Of a stack: the ranks that are mixed.
    stack_weights_ : array of shape (n_ranks,)
        Their weights; what they lack of one is the weight of the null model.
    stack_mse_, stack_gap_ : float
        Held-out error of the stack with these weights, and by how much the best mixture of all
        ranks could be below that of the longest one that was tried.
    noise_ : array of shape (d1, ..., dp), or float for scalar targets
        Standard deviation of the noise of each output: from held-out residuals, see
        docs/intervals.md.
    coef_, intercept_, tucker_, core_, factors_, spectra_, n_parameters_
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
    >>> from holrr.model_selection import LRRCV
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(60, 6)), rng.normal(size=(6, 2)) @ rng.normal(size=(2, 20))
    >>> Y = (X @ W).reshape(60, 4, 5) + 0.5 * rng.normal(size=(60, 4, 5))
    >>> model = LRRCV(alphas=[0, 0.1, 1, 10]).fit(X, Y)
    >>> model.rank_, model.cv_results_["mean_mse"].shape
    (2, (4, 6))
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

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

    def _rank_grid(self, shape: Sequence[int]) -> RankGrid:
        ranks = self.ranks
        if ranks is None or np.ndim(ranks) == 0:
            return check_ranks(ranks, shape[:1])
        return check_ranks([(R,) for R in ranks], shape[:1])

    def _model(self, index: Index, rank: tuple[int, ...]) -> LRR:
        return LRR(
            rank=rank[0],
            alpha=float(self.alphas_[index[0]]),
            fit_intercept=self.fit_intercept,
            solver=self.solver,
            missing=self.missing,
        )
