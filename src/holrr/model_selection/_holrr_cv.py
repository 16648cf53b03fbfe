"""Higher-order low-rank regression with penalty and ranks chosen by cross-validation."""

from __future__ import annotations

from ..linear import HOLRR
from .grid import MultilinearRanks
from .linear_search import LinearSurfaceSearchCV

__all__ = ["HOLRRCV"]


class HOLRRCV(MultilinearRanks, LinearSurfaceSearchCV):
    """Higher-order low-rank regression, penalty and ranks chosen by cross-validation.

    The held-out error of *every* multilinear rank and penalty is computed exactly, without a refit
    for any of them: the fits of all ranks keep leading blocks of one core, so that their errors
    are cumulative sums. A fold and a penalty cost about one fit, whatever the number of ranks.

    Parameters
    ----------
    alphas : array of shape (n_alphas,) or None, default=None
        Penalties to try, at least 0 and different from each other, in any order. None for
        thirteen in half decades, from 1e-4 to 1e2 times the mean eigenvalue of ``X'X`` (of the
        centred inputs where an intercept is fitted; over as many directions as there are features
        or samples, whichever are fewer), and more as long as the error falls towards an edge.
    ranks : None, int, tuple or list of tuples, default=None
        None to try all ranks; an int, or a tuple ``(R0, ..., Rp)``, input mode first, for all up to
        these caps; a list of tuples for just those (the surface is NaN elsewhere).
    cv : int, splitter or iterable, default=5
        Number of folds, any splitter of scikit-learn, or pairs of training and test indices.
    subspaces : {"fitted", "response"}, default="fitted"
        Where the output subspaces come from, as in `HOLRR`.
    refine : bool, default=False
        Whether the final fit is refined by alternating least squares, as in `HOLRR`. Refined fits
        of different ranks are not nested: the errors are those of the fits before refinement.
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
        Memory for the error surfaces of all folds, their mean and their standard deviation, and for
        the terms of a stack. Where they would take more, every rank is capped at the largest common
        number that fits, with a warning.
    search : {"pruned", "exhaustive"}, default="pruned"
        Whether the surfaces of all penalties are computed, or with more than 192 input
        directions and outputs of those only that can be chosen (see docs/model_selection.md).
        Smaller problems, callables for `selection`, lists of input ranks above 64, missing outputs,
        accelerators: always all.
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
    rank_ : tuple of int
        The chosen ranks; of a stack, the best single ones.
    best_score_ : float
        Minus the mean held-out error (or the criterion) of the choice: larger is better. That of a
        stack is cross-fitted: no fold has judged weights of its own.
    null_mse_, ridge_mse_ : float
        Held-out errors of the mean and of ridge regression, for comparison.
    best_index_ : tuple of int
        Place of the choice (of a stack, of the best single rank) in the error surface.
    best_estimator_ : HOLRR
        The chosen model, fitted to all the data.
    cv_results_ : dict
        ``mean_mse`` and ``std_mse``, arrays of shape (n_alphas, R0, ..., Rp): mean and standard
        deviation over the folds of each fold's mean squared error, over its samples (weighted)
        and outputs.
        ``fold_mse``, the same for each fold, first axis the folds. ``n_parameters``, of shape
        (R0, ..., Rp). ``alphas``, and ``null_mse``, the error of predicting the mean. With an
        information criterion: its values, under its name, ``train_mse``, ``degrees_of_freedom``
        and ``n_observations``.
        Of a pruned search: NaN at penalties that were not computed, ranks up to twice the best one
        (up to 16 at least), and ``screened_mse``, of shape (n_alphas,): the least error at each
        penalty, nearly; NaN far from the best ones.
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
    n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

    Notes
    -----
    Entry ``[a, i, j, ...]`` of the surface belongs to ``alphas_[a]`` and the rank
    ``(i + 1, j + 1, ...)``. The rank of a mode goes up to its size, or to the product of the other
    sizes, above which it changes nothing; that of the input mode no higher than the largest
    training fold supports. A fold that supports fewer directions has the same error for all ranks
    above.

    Where the folds partition the data, the moments of each fold are gathered in one pass and the
    training moments are merged from those of the other folds. `fit_fold_moments` starts from such
    moments.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.

    Examples
    --------
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.model_selection import HOLRRCV
    >>> X, Y = make_tensor_regression(
    ...     200, n_features=8, output_shape=(6, 7), rank=(3, 2, 3), snr=2.0, random_state=0
    ... )
    >>> model = HOLRRCV().fit(X, Y)
    >>> model.rank_, model.cv_results_["mean_mse"].shape
    ((3, 2, 3), (13, 8, 6, 7))
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _plain = HOLRR

    def __init__(
        self,
        alphas=None,
        ranks=None,
        cv=5,
        *,
        subspaces="fitted",
        refine=False,
        criterion="cv",
        selection="stack",
        fit_intercept=True,
        solver="auto",
        max_bytes=2**30,
        search="pruned",
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
        self.subspaces = subspaces
        self.refine = refine
        self.criterion = criterion
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_bytes = max_bytes
        self.search = search
        self.missing = missing
        self.output_weight = output_weight
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.output_shape = output_shape
        self.sample_dim = sample_dim
