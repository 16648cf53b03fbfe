"""Searches of the penalised estimators, which refit each fold for each penalty."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from ..base import TensorRegressor
from ..core.approximate import MultilinearRank, check_rank
from ..core.checks import check_finite
from ..core.fit import scaled_alpha
from ..core.namespace import namespace_of, squared_norm
from ..core.results import Results
from ..core.spectral import Spectral
from ..core.tensor import Tucker, mode_product, multi_mode_product
from ..core.threads import few_threads_for
from ..core.warn import warn
from ..data.validation import Names, Samples, names_of_moments, validate
from ..model_selection.folds import (
    Folds,
    Problems,
    check_fold_moments,
    gather_folds,
    moment_folds,
    sample_folds,
    split,
    splits_of,
)
from ..model_selection.grid import (
    RankGrid,
    candidate_ranks,
    check_penalties,
    default_alphas,
    parameter_counts,
    warn_at_edge,
    widened,
)
from ..model_selection.linear import SEARCH_CONSTRAINTS, Search, shared_parameters
from ..model_selection.search import (
    SearchOptions,
    Surface,
    best_index,
    compute_surface,
    in_units,
    n_parallel,
    over_folds,
    search_work,
    std_over_folds,
)
from ..model_selection.surface import HeldOut, rank_path
from ..progress import Progress, progress
from ..streaming.moments import Moments
from ..streaming.stream import Stream
from .admm import trace_norm
from .alternating import balance, penalty
from .mlmtnc import (
    MLMTNC,
    least_squares,
    scaled_beta,
    start_of,
    unconverged,
    unit_of_blocks,
)
from .scaled import ScaledProblem
from .trace_norm import TraceNormRegression, penalized_problem
from .trace_norm import unconverged as trace_norm_unconverged

__all__ = ["MLMTNCCV", "TraceNormRegressionCV"]

# Penalties relative to the one that makes all coefficients zero, three for each decade.
_RELATIVE_PENALTIES = np.logspace(0, -5, 16)
# Penalties relative to the one that equals the squared outputs at the least squares solution.
_RELATIVE_BETAS = np.logspace(-6, 0, 13)
_SURFACE_BYTES = 2**28


class PenalizedSearch(Search):
    """Base class of searches that solve each fold for all penalties.

    A subclass defines its parameters, the candidates, the default penalties, the errors of a fold
    and the chosen model.
    """

    _zero_allowed = True
    alpha: float = 0.0
    cv: Any
    fit_intercept: bool
    n_jobs: int | None
    verbose: Any

    # Penalised coefficients have no leverage, so there are no prediction intervals.
    predict_interval: Any = TensorRegressor.predict_interval

    def _candidates(self, folds: Any) -> list[Any]:
        """Return the candidates apart from penalties."""
        return [None]

    def _default_penalties(self, folds: Any, candidates: list[Any]) -> np.ndarray:
        """Return penalties scaled to the data, in the units of the user's data."""
        raise NotImplementedError

    def _largest(self, folds: Any) -> float:
        """Return the penalty beyond which all penalties give the same model."""
        return np.inf

    def _fold_errors(
        self,
        folds: Any,
        candidates: list[Any],
        penalties: np.ndarray,
        problem: Spectral,
        held_out: HeldOut,
    ) -> tuple[np.ndarray, list[str]]:
        """Return the errors of one fold, (n_candidates, n_penalties), and convergence warnings."""
        raise NotImplementedError

    def _model(self, candidate: Any, penalty: float) -> Any:
        """Return the unfitted estimator for a candidate and a penalty."""
        raise NotImplementedError

    def _check(self, n_features: int, output_shape: Sequence[int]) -> None:
        """Raise an error for invalid candidates before any computation."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Choose the penalty by cross-validation, and fit the chosen model to all data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            Inputs: a NumPy array, an array of another library that follows the array API standard
            (PyTorch, CuPy, ...), a DataFrame or an xarray object. Memory maps, HDF5, Zarr and Dask
            arrays are read in blocks (see docs/streaming.md).
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0. Scalar targets have shape (n_samples,).
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in fits and held-out errors.
        groups : array of shape (n_samples,), optional
            Group labels of the samples, for splitters such as ``GroupKFold``.

        Returns
        -------
        self
            The fitted estimator.
        """
        data, names = validate(self, X, y, sample_weight, groups=groups)
        self._given_penalties()
        self._check(data.n_features, data.output_shape)
        if isinstance(data, Stream):
            parts, splits = gather_folds(data, splits_of(data, self.cv, groups))
            parts = check_fold_moments(parts, False)
            folds = moment_folds(parts, splits, fit_intercept=self.fit_intercept)
            return self._fit_folds(folds, names)
        splits = split(data, self.cv, groups)
        if data.w is not None:  # samples without weight are not read later
            check_finite(data.Y, "y")
        data = data.scaled()
        folds = sample_folds(data, splits, fit_intercept=self.fit_intercept, max_bytes=2**30)
        return self._fit_folds(folds, names.with_input_model(data, splits), data)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_fold_moments(self, moments: Sequence[Moments]) -> Any:
        """Cross-validate and fit the model from the moments of disjoint folds.

        Parameters
        ----------
        moments : sequence of Moments
            Moments of each fold, at least two.

        Returns
        -------
        self
            The fitted estimator.

        Examples
        --------
        >>> from holrr import Moments, TraceNormRegressionCV
        >>> from holrr.datasets import make_tensor_regression
        >>> X, Y = make_tensor_regression(60, 4, (3, 2), rank=2, snr=1, random_state=0)
        >>> folds = [Moments.from_arrays(X[k::3], Y[k::3]) for k in range(3)]
        >>> model = TraceNormRegressionCV(penalties=[1, 10, 100]).fit_fold_moments(folds)
        >>> again = TraceNormRegressionCV.from_fold_moments(folds, penalties=[1, 10, 100])
        >>> model.penalty_ == again.penalty_
        True
        """
        parts = check_fold_moments(moments, False)
        folds = moment_folds(parts, fit_intercept=self.fit_intercept)
        self._given_penalties()
        self._check(folds.shape[0], folds.shape[1:])
        total = folds.total()
        assert total is not None
        return self._fit_folds(folds, names_of_moments(self, total))

    @classmethod
    def from_fold_moments(cls, moments: Sequence[Moments], **parameters: Any) -> Any:
        """Create an estimator with the given parameters, and fit it by `fit_fold_moments`.

        Parameters
        ----------
        moments : sequence of Moments
            Moments of each fold, at least two.
        parameters : dict
            Parameters of the estimator.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        return cls(**parameters).fit_fold_moments(moments)

    def _given_penalties(self) -> np.ndarray | None:
        given = getattr(self, self._penalties)
        return check_penalties(given, self._penalties, zero=self._zero_allowed)

    def _fit_folds(self, folds: Folds, names: Names, data: Samples | None = None) -> Any:
        """Compute the errors of all penalties, choose a model, and fit it to all data."""
        problems, given = Problems(folds), self._given_penalties()
        with few_threads_for(13 * search_work(folds)):
            candidates = self._candidates(folds)
            penalties = self._default_penalties(folds, candidates) if given is None else given
            largest = self._largest(folds)
            with progress(type(self).__name__, self.verbose) as bar:

                def compute(more: np.ndarray) -> Surface:
                    return self._surface(problems, candidates, more, bar)

                if given is not None:
                    surface = compute(penalties)
                else:
                    surface, penalties = widened(compute, penalties, largest=largest)
            warn_at_edge(surface, penalties, self._penalties, largest=largest)
            mean = surface.mean_mse
            index = tuple(int(i) for i in np.unravel_index(np.nanargmin(mean), mean.shape))
            model = self._model(candidates[index[0]], float(penalties[index[1]]))
            if data is None:
                total: Any = folds.total()
                model._fit_moments(total, names, keep=False)
            else:
                model._fit_data(data, names)
        named = len(candidates) > 1 or candidates[0] is not None
        axis = slice(None) if named else 0
        results: dict[str, Any] = {
            "mean_mse": mean[axis],
            "std_mse": std_over_folds(surface.fold_mse[:, axis], mean[axis]),
            "fold_mse": surface.fold_mse[:, axis],
            "null_mse": surface.null_mse,
            "ridge_mse": surface.ridge_mse,
            "held_out_mse": float(mean[index]),
            self._penalties: penalties,
        }
        if named:
            results["ranks"] = [rank for rank, _ in candidates]
        results = in_units(Results(results), folds.y_unit)
        index = index if named else index[1:]
        fitted = {name: v for name, v in vars(model).items() if name not in model.get_params()}
        fitted |= {
            "cv_results_": results,
            "best_index_": index,
            "best_score_": -float(results["mean_mse"][index]),
            "best_estimator_": model,
            f"{self._penalties}_": penalties,
            self._chosen: float(getattr(model, self._chosen.rstrip("_"))),
        }
        if named:
            fitted["ranks_"] = results["ranks"]
        return self._replace_fitted({k: v for k, v in fitted.items() if k != "moments_"})

    def _surface(
        self, problems: Problems, candidates: list[Any], penalties: np.ndarray, bar: Progress
    ) -> Surface:
        """Compute the held-out errors of all folds and candidates for some penalties."""
        folds, min_alpha = problems.folds, scaled_alpha(self.alpha, problems.folds.x_unit)
        ridge_alphas, complaints = folds.default_alphas(), []
        bar.expect(folds.n_folds * penalties.size)
        folds.prepare(0)

        def run(fold: int) -> tuple[np.ndarray, float, np.ndarray]:
            problem, held = problems(fold, 0, min_alpha)
            errors, found = self._fold_errors(folds, candidates, penalties, problem, held)
            complaints.extend(found)
            for _ in penalties:
                bar.tick()
            ridge = rank_path(problem, held, (), "fitted").ridge_errors(ridge_alphas)
            return errors, held.yy / held.size, ridge / held.size

        n_jobs = n_parallel(folds, 1 if self.n_jobs is None else self.n_jobs)
        errors, nulls, ridge = zip(*over_folds(folds.n_folds, run, n_jobs), strict=True)
        if complaints:
            warn(
                f"{len(complaints)} fits of the cross-validation did not converge. The first "
                f"warning: {complaints[0]}",
                ConvergenceWarning,
            )
        null_mse, by_ridge = float(np.mean(nulls)), np.mean(ridge, axis=0)[None]
        return Surface(np.array(errors), penalties, RankGrid(()), null_mse, 1, by_ridge)

    @property
    def _chosen(self) -> str:
        return {"penalties": "penalty_", "betas": "beta_"}[self._penalties]


def held_out_mse(held_out: HeldOut, coefficients: Tucker) -> float:
    """Return the held-out mean squared error of coefficients in spectral coordinates."""
    V = multi_mode_product(coefficients.core, coefficients.factors)
    xp = namespace_of(V)
    cross, square = xp.sum(held_out.B * V), xp.sum(V * mode_product(V, held_out.C, 0))
    return max(held_out.yy - 2 * float(cross) + float(square), 0.0) / held_out.size


class TraceNormRegressionCV(PenalizedSearch):
    """Trace norm regression with cross-validated penalty.

    The search solves each fold for all penalties, from the largest to the smallest. Each solution
    is the start of the next one. See docs/trace_norm_and_mlmtnc.md.

    Parameters
    ----------
    penalties : array of shape (n_penalties,) or None, default=None
        Penalties to try, at least 0. By default, the search tries 16 penalties, from the penalty
        that makes all coefficients zero down to 1e-5 times this penalty.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or an iterable of pairs of training and test
        indices.
    alpha : float, default=0.0
        Ridge penalty, at least 0.
    mode_weights : sequence of p + 1 floats or None, default=None
        Relative weights :math:`w_i` of the modes, input mode first. By default all weights are one.
        A mode of weight 0 is not penalised.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The intercept is not penalised.
    max_iter : int, default=1000
        Maximum number of iterations of the solver.
    tol : float, default=1e-6
        Relative duality gap, ``1 - lower_bound_ / objective_``, at which the solver stops.
    n_jobs : int or None, default=None
        Number of folds that run in parallel. By default, the folds run one after the other.
    verbose : bool, default=False
        Whether to show a progress bar, which needs ``pip install "holrr[progress]"``.
    missing_features : {"raise", "drop"}, default="raise"
        How to handle inputs that are missing in every sample, such as land in a field of sea
        temperatures. "raise" raises an error. "drop" leaves these inputs out of the model: their
        coefficients are NaN, and `predict` ignores their values.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    sample_dim : str or None, default=None
        Name of the sample dimension of xarray objects. By default, it is the dimension that `X` and
        `y` share, or the first one.

    Attributes
    ----------
    penalty_ : float
        Chosen penalty.
    penalties_ : array of shape (n_penalties,)
        Penalties that the search tried.
    cv_results_ : dict
        Results of the search: "mean_mse" and "std_mse", of shape (n_penalties,), are the mean and
        the standard deviation of the mean squared error over the folds. "fold_mse", of shape
        (n_folds, n_penalties), has the error of each fold, and "penalties" the penalties.
    best_index_ : tuple of int
        Index of the chosen model in ``mean_mse``.
    best_score_ : float
        Score of the chosen model: minus its held-out error.
    null_mse_ : float
        Held-out error of predicting the mean, for comparison.
    ridge_mse_ : float
        Least held-out error of ridge regression on the same folds, for comparison.
    best_estimator_ : TraceNormRegression
        Final model, fitted to all data.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. If `X` has modes, the shape is
        (m1, ..., mq, d1, ..., dp). If `X` has several blocks, `coef_` is a dict of such arrays.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    core_ : array of shape (R0, ..., Rp)
        Core of the Tucker form of the coefficients.
    factors_ : list of p + 1 arrays of shape (d_i, R_i)
        Factors of the Tucker form with orthonormal columns, input mode first.
    rank_ : tuple of int
        Multilinear rank of the coefficients. All entries are zero if the coefficients are zero.
    objective_ : float
        Objective of the fit.
    lower_bound_ : float
        Lower bound on the optimal objective, from the dual problem.
    n_iter_ : int
        Number of iterations of the solver.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.penalized import TraceNormRegressionCV
    >>> rng = np.random.default_rng(0)
    >>> W = np.multiply.outer(rng.normal(size=6), np.multiply.outer(rng.normal(size=3), np.ones(4)))
    >>> X = rng.normal(size=(60, 6))
    >>> Y = np.tensordot(X, W, 1) + rng.normal(size=(60, 3, 4))
    >>> model = TraceNormRegressionCV(cv=3).fit(X, Y)
    >>> model.coef_.shape, bool(model.penalty_ < model.penalties_.max())
    ((6, 3, 4), True)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **TraceNormRegression._parameter_constraints,
        "penalties": ["array-like", None],
        "cv": SEARCH_CONSTRAINTS["cv"],
        "n_jobs": SEARCH_CONSTRAINTS["n_jobs"],
        "verbose": SEARCH_CONSTRAINTS["verbose"],
    }
    _penalties = "penalties"

    def __init__(
        self,
        penalties=None,
        cv=5,
        *,
        alpha=0.0,
        mode_weights=None,
        fit_intercept=True,
        max_iter=1000,
        tol=1e-6,
        n_jobs=None,
        verbose=False,
        missing_features="raise",
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.penalties = penalties
        self.cv = cv
        self.alpha = alpha
        self.mode_weights = mode_weights
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing_features = missing_features
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _default_penalties(self, folds: Any, candidates: list[Any]) -> np.ndarray:
        return _RELATIVE_PENALTIES * self._zeroing(folds)

    def _largest(self, folds: Any) -> float:
        return self._zeroing(folds)

    def _zeroing(self, folds: Any) -> float:
        """Return the penalty that makes all coefficients zero, in the units of the user's data."""
        alpha = scaled_alpha(self.alpha, folds.x_unit)
        scaled = penalized_problem(folds.full_problem(0, alpha)[0], alpha, self.mode_weights)
        largest = scaled.penalty_max() * scaled.data.unit_s * scaled.data.unit_t
        # The penalty is zero if the outputs are constant, and infinite if no mode is penalised.
        return (largest if 0 < largest < np.inf else 1.0) * folds.x_unit * folds.y_unit

    def _fold_errors(
        self,
        folds: Any,
        candidates: list[Any],
        penalties: np.ndarray,
        problem: Spectral,
        held_out: HeldOut,
    ) -> tuple[np.ndarray, list[str]]:
        alpha = scaled_alpha(self.alpha, folds.x_unit)
        scaled = penalized_problem(problem, alpha, self.mode_weights)
        data, state, complaints = scaled.data, None, []
        unit = data.unit_s * data.unit_t * folds.x_unit * folds.y_unit
        errors = np.empty((1, penalties.size))
        for k in np.argsort(-penalties):
            found = trace_norm(
                scaled,
                float(penalties[k]) / unit,
                start=state,
                max_iter=self.max_iter,
                tol=self.tol,
            )
            if not found.converged:
                complaints.append(trace_norm_unconverged(found, self.max_iter, self.tol))
            errors[0, k] = held_out_mse(held_out, found.coefficients(data))
            state = found.state
        return errors, complaints

    def _model(self, candidate: Any, penalty: float) -> TraceNormRegression:
        shared = shared_parameters(self, TraceNormRegression)
        return TraceNormRegression(penalty=penalty, alpha=self.alpha, **shared)


class MLMTNCCV(PenalizedSearch):
    """Multilinear multitask learning (MLMT-NC) with cross-validated ranks and penalty.

    See docs/trace_norm_and_mlmtnc.md.

    Parameters
    ----------
    ranks : list or None, default=None
        Ranks to try, each as the parameter `rank` of `MLMTNC`. By default, the search uses the
        multilinear rank with which `HOLRR` has the least held-out error. Finding this rank costs
        about one fit for each fold.
    betas : array of shape (n_betas,) or None, default=None
        Penalties to try, above 0. By default, the search tries 13 penalties in half decades, scaled
        to the data.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or an iterable of pairs of training and test
        indices.
    max_iter : int, default=1000
        Maximum number of iterations. An iteration updates the core and all factors.
    tol : float, default=1e-7
        Tolerance. The solver stops when an iteration lowers the objective by at most this share of
        the objective.
    init : {"holrr", "random"}, default="holrr"
        Start of the first descent: the HOLRR solution, or random values as in the original method.
    n_init : int, default=1
        Number of descents, of which the best is kept. All descents after the first start at random.
    random_state : int, RandomState or None, default=None
        Random state of the random starts.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The intercept is not penalised.
    n_jobs : int or None, default=None
        Number of folds that run in parallel. By default, the folds run one after the other.
    verbose : bool, default=False
        Whether to show a progress bar, which needs ``pip install "holrr[progress]"``.
    missing_features : {"raise", "drop"}, default="raise"
        How to handle inputs that are missing in every sample, such as land in a field of sea
        temperatures. "raise" raises an error. "drop" leaves these inputs out of the model: their
        coefficients are NaN, and `predict` ignores their values.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    sample_dim : str or None, default=None
        Name of the sample dimension of xarray objects. By default, it is the dimension that `X` and
        `y` share, or the first one.

    Attributes
    ----------
    beta_ : float
        Chosen penalty.
    betas_ : array of shape (n_betas,)
        Penalties that the search tried.
    ranks_ : list of tuples
        Ranks that the search tried.
    cv_results_ : dict
        Results of the search: "mean_mse" and "std_mse", of shape (n_ranks, n_betas), are the mean
        and the standard deviation of the mean squared error over the folds. "fold_mse", of shape
        (n_folds, n_ranks, n_betas), has the error of each fold, and "ranks" and "betas" the
        candidates.
    best_index_ : tuple of int
        Index of the chosen model in ``mean_mse``.
    best_score_ : float
        Score of the chosen model: minus its held-out error.
    null_mse_ : float
        Held-out error of predicting the mean, for comparison.
    ridge_mse_ : float
        Least held-out error of ridge regression on the same folds, for comparison.
    best_estimator_ : MLMTNC
        Final model, fitted to all data.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. If `X` has modes, the shape is
        (m1, ..., mq, d1, ..., dp). If `X` has several blocks, `coef_` is a dict of such arrays.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    core_ : array of shape (R0, ..., Rp)
        Core of the coefficients.
    factors_ : list of p + 1 arrays of shape (d_i, R_i)
        Factors, input mode first. The core and the factors have equal norms.
    rank_ : tuple of int
        Shape of the core. The fit lowers a rank that the data do not support or that is above the
        product of the other ranks.
    objective_ : float
        Objective of the fit.
    lower_bound_ : float
        Lower bound on the optimal objective: a lower bound on the squared error of tensors of these
        ranks, which is tight only for a small `beta`.
    n_iter_ : int
        Number of iterations of the best descent.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.penalized import MLMTNCCV
    >>> rng = np.random.default_rng(0)
    >>> W = np.multiply.outer(rng.normal(size=6), np.multiply.outer(rng.normal(size=3), np.ones(4)))
    >>> X = rng.normal(size=(60, 6))
    >>> Y = np.tensordot(X, W, 1) + rng.normal(size=(60, 3, 4))
    >>> model = MLMTNCCV(ranks=[1, (2, 1, 2)], betas=[0.1, 1, 10], cv=3).fit(X, Y)
    >>> model.rank_, model.cv_results_["mean_mse"].shape
    ((1, 1, 1), (2, 3))
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **MLMTNC._parameter_constraints,
        "ranks": ["array-like", None],
        "betas": ["array-like", None],
        "cv": SEARCH_CONSTRAINTS["cv"],
        "n_jobs": SEARCH_CONSTRAINTS["n_jobs"],
        "verbose": SEARCH_CONSTRAINTS["verbose"],
    }
    _penalties = "betas"
    _zero_allowed = False

    def __init__(
        self,
        ranks=None,
        betas=None,
        cv=5,
        *,
        max_iter=1000,
        tol=1e-7,
        init="holrr",
        n_init=1,
        random_state=None,
        fit_intercept=True,
        n_jobs=None,
        verbose=False,
        missing_features="raise",
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.ranks = ranks
        self.betas = betas
        self.cv = cv
        self.max_iter = max_iter
        self.tol = tol
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.fit_intercept = fit_intercept
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.missing_features = missing_features
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _check(self, n_features: int, output_shape: Sequence[int]) -> None:
        if self.ranks is not None:
            _check_ranks(self.ranks, (n_features, *output_shape))

    def _candidates(self, folds: Any) -> list[Any]:
        """Return the ranks to try, each with the seed of its random starts."""
        # One seed for all candidates and the final fit; a generator would give other starts.
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
        given = None if self.ranks is None else _check_ranks(self.ranks, folds.shape)
        return [(rank, seed) for rank in given or [_holrr_rank(folds, self.n_jobs)]]

    def _default_penalties(self, folds: Any, candidates: list[Any]) -> np.ndarray:
        data = ScaledProblem.of(folds.full_problem(0, 0.0)[0])
        one = scaled_beta(1.0, folds.x_unit, folds.y_unit, data.T.ndim)
        return _default_betas(data, candidates[-1][0], folds.shape[0]) / one

    def _fold_errors(
        self,
        folds: Any,
        candidates: list[Any],
        penalties: np.ndarray,
        problem: Spectral,
        held_out: HeldOut,
    ) -> tuple[np.ndarray, list[str]]:
        data, complaints = ScaledProblem.of(problem), []
        model = self._model(candidates[0], 1.0)
        errors = np.empty((len(candidates), penalties.size))
        for i, (rank, _) in enumerate(candidates):
            spectral = start_of(data, rank, problem.basis.shape[0])
            for k, value in enumerate(penalties):
                beta = scaled_beta(float(value), folds.x_unit, folds.y_unit, data.T.ndim)
                found = model._descend(data, spectral, beta)
                if not found.converged:
                    complaints.append(unconverged(self.max_iter, self.tol))
                errors[i, k] = held_out_mse(held_out, found.tucker)
        return errors, complaints

    def _model(self, candidate: Any, penalty: float) -> MLMTNC:
        rank, seed = candidate
        shared = shared_parameters(self, MLMTNC) | {"random_state": seed}
        return MLMTNC(rank=rank, beta=penalty, **shared)


def _check_ranks(ranks: Any, shape: tuple[int, ...]) -> list[Any]:
    """Check each candidate rank; an int is used for all modes."""
    found = candidate_ranks(ranks)
    for R in found:
        try:
            check_rank(R, shape)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"ranks must be a list of candidates, each an int or a tuple with {len(shape)} "
                f"entries; got ranks={ranks!r}: {error}"
            ) from None
    return [tuple(R) if np.ndim(R) else int(R) if isinstance(R, Integral) else R for R in found]


def _holrr_rank(folds: Any, n_jobs: int | None) -> tuple[int, ...]:
    """Return the rank of the HOLRR model with the least held-out error over all penalties."""
    s = folds.full_problem(0, 0.0)[0].s
    alphas = default_alphas(float(squared_norm(s)), s.shape[0])
    grid = RankGrid(folds.shape).within_others(folds.shape)
    grid = grid.within_input_rank(folds.max_input_rank)
    grid = grid.within_budget(folds.n_folds * len(alphas), _SURFACE_BYTES)
    options = SearchOptions("", lambda shape: grid, MultilinearRank, n_jobs=n_jobs)
    found = compute_surface(
        Problems(folds), alphas * folds.x_unit * folds.x_unit, grid, options, Progress()
    )
    index = best_index(found.mean_mse, parameter_counts(folds.shape, grid.caps))
    return tuple(i + 1 for i in index[2:])


def _default_betas(data: ScaledProblem, rank: Any, n_features: int) -> np.ndarray:
    """Return penalties from a negligible one to one that makes coefficients almost zero."""
    start = balance(least_squares(start_of(data, rank, n_features).tucker, data))
    explained = float(squared_norm(data.T)) * data.unit_t**2
    weight = penalty(start) * unit_of_blocks(data) ** 2
    return _RELATIVE_BETAS * (explained / weight if explained > 0 and weight > 0 else 1.0)
