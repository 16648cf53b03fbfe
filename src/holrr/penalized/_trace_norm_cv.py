"""Trace norm regression with the penalty chosen by cross-validation."""

from __future__ import annotations

import numpy as np

from ..core.spectral import Spectral
from ..model_selection.folds import Folds
from ..model_selection.held_out import HeldOut
from ..model_selection.search import Index
from ._admm import trace_norm
from ._cv import PenalizedCV, held_out_mse
from ._trace_norm import TraceNormRegression, unconverged
from ._trace_norm_problem import State

__all__ = ["TraceNormRegressionCV"]

# Relative to the penalty from which on all coefficients are zero: three a decade.
_RELATIVE_PENALTIES = np.logspace(0, -5, 16)


class TraceNormRegressionCV(PenalizedCV):
    """Trace norm regression, the penalty chosen by cross-validation.

    Each fold is solved for all penalties from the largest to the smallest, each solution the
    start for the next.

    Parameters
    ----------
    penalties : array-like, optional
        The candidates, at least 0. By default 16 of them, from the one that makes all
        coefficients zero down to 1e-5 times that.
    cv : int, splitter or iterable, default=5
        Folds, as in scikit-learn.
    alpha, mode_weights, fit_intercept, max_iter, tol
        As in `TraceNormRegression`.
    n_jobs : int, optional
        Number of folds that are worked on at a time.
    verbose : bool, int or "rich", default=False
        Whether progress is shown.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    penalty_ : float
        The chosen penalty.
    penalties_ : array of shape (n_penalties,)
    cv_results_ : dict
        "mean_mse" and "std_mse", of shape (n_penalties,), "fold_mse", of shape (n_folds,
        n_penalties), and "penalties".
    best_index_ : tuple of int
    best_score_ : float
        The smallest mean squared error, with its sign changed.
    null_mse_, ridge_mse_ : float
        Held-out errors of the mean and of ridge regression, for comparison.
    best_estimator_ : TraceNormRegression
        Fitted to all the data.
    coef_, intercept_, core_, factors_, rank_, n_iter_, objective_, lower_bound_
        Those of `best_estimator_`.
    n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

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

    _parameter_constraints: dict = {  # noqa: RUF012
        **TraceNormRegression._parameter_constraints,
        "penalties": ["array-like", None],
    }

    _plain = TraceNormRegression
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
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    @property
    def penalty_(self) -> float:
        """The chosen penalty."""
        return float(self.best_estimator_.penalty)

    def _default_penalties(self, folds: Folds) -> np.ndarray:
        return _RELATIVE_PENALTIES * self._zeroing(folds)

    def _largest_penalty(self, folds: Folds) -> float:
        return float(self._to_data(np.array([self._zeroing(folds)]), folds)[0])

    def _zeroing(self, folds: Folds) -> float:
        """The penalty, in the units of the folds, that makes all coefficients zero."""
        folds.min_alpha = folds.units.alpha(float(self.alpha))
        scaled = self._plan(folds, 1)._penalized(folds.full_problem()[0])
        largest = scaled.penalty_max() * scaled.data.unit_s * scaled.data.unit_t
        # Otherwise there is nothing to explain, or nothing that is penalised.
        return largest if 0 < largest < np.inf else 1.0

    def _to_units(self, penalties: np.ndarray, folds: Folds) -> np.ndarray:
        return penalties / folds.units.x / folds.units.y

    def _plan(self, folds: Folds, n_penalties: int) -> TraceNormRegression:
        """The model whose penalty is varied, with a ridge penalty in the units of the folds."""
        return self._model(alpha=folds.units.alpha(float(self.alpha)))

    def _fold_errors(
        self, plan: TraceNormRegression, penalties: np.ndarray, problem: Spectral, held_out: HeldOut
    ) -> np.ndarray:
        scaled = plan._penalized(problem)
        data = scaled.data
        state: State | None = None
        errors = np.empty(penalties.size)
        for k in np.argsort(-penalties):
            penalty = float(penalties[k]) / (data.unit_s * data.unit_t)
            found = trace_norm(scaled, penalty, start=state, max_iter=self.max_iter, tol=self.tol)
            if not found.converged:
                self._complaints.append(unconverged(found, self.max_iter, self.tol))
            errors[k], state = held_out_mse(held_out, found.coefficients(data)), found.state
        return errors

    def _candidate(self, index: Index) -> TraceNormRegression:
        return self._model(penalty=float(self.penalties_[index]))
