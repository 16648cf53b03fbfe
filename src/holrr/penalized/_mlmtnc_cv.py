"""MLMT-NC with ranks and penalty chosen by cross-validation."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..core.namespace import squared_norm
from ..core.ranks import check_rank
from ..core.spectral import Spectral
from ..model_selection.folds import Folds
from ..model_selection.grid import RankGrid, parameter_counts
from ..model_selection.held_out import HeldOut
from ..model_selection.penalties import default_alphas
from ..model_selection.search import Index
from ..model_selection.selection import best_index
from ..model_selection.sweep import RankErrors, Sweep, sweep
from ._alternating import balance, penalty
from ._cv import PenalizedCV, held_out_mse
from ._mlmtnc import (
    MLMTNC,
    beta_in_units,
    least_squares,
    start_of,
    unconverged,
    unit_of_blocks,
)
from ._spectral import ScaledProblem

__all__ = ["MLMTNCCV"]

# Relative to the penalty that weighs as much as all the outputs do at the least squares solution.
_RELATIVE_BETAS = np.logspace(-6, 0, 13)
_SURFACE_BYTES = 2**28


class MLMTNCCV(PenalizedCV):
    """Multilinear multitask learning (MLMT-NC), ranks and penalty chosen by cross-validation.

    Parameters
    ----------
    ranks : list, optional
        The candidates, each as the `rank` of `MLMTNC`. By default the one that `HOLRR` predicts
        held-out data best with, among all: this costs about one fit a fold.
    betas : array-like, optional
        The penalties to try, above 0. By default 13 in half decades, scaled to the data.
    cv, n_jobs, verbose
        As in `TraceNormRegressionCV`.
    max_iter, tol, init, n_init, random_state, fit_intercept
        As in `MLMTNC`.
    output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    beta_ : float
        The chosen penalty.
    ranks_ : list of tuples
        The candidates.
    betas_ : array of shape (n_betas,)
    cv_results_ : dict
        "mean_mse" and "std_mse", of shape (n_ranks, n_betas), "fold_mse", of shape (n_folds,
        n_ranks, n_betas), "ranks" and "betas".
    best_estimator_ : MLMTNC
        Fitted to all the data.
    coef_, intercept_, core_, factors_, rank_, n_iter_, objective_, lower_bound_
        Those of `best_estimator_`.
    best_index_, best_score_, null_mse_, ridge_mse_, n_features_in_, feature_names_in_, labels_
        As in `TraceNormRegressionCV`.

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

    _parameter_constraints: dict = {  # noqa: RUF012
        **MLMTNC._parameter_constraints,
        "ranks": ["array-like", None],
        "betas": ["array-like", None],
    }

    _plain = MLMTNC
    _penalties = "betas"
    _zero_is_a_penalty = False

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
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    @property
    def beta_(self) -> float:
        """The chosen penalty."""
        return float(self.best_estimator_.beta)

    def _check_grid(self, data: Any) -> None:
        super()._check_grid(data)
        if self.ranks is not None:
            _check_ranks(self.ranks, (data.n_features, *data.output_shape))

    def _prepare(self, folds: Folds) -> None:
        # One seed for all candidates and the final fit: a generator would not repeat itself.
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = int(check_random_state(seed).randint(np.iinfo(np.int32).max))
        self.seed_ = seed
        given = None if self.ranks is None else _check_ranks(self.ranks, folds.shape)
        self.ranks_ = given or [_holrr_rank(folds, self.n_jobs)]

    def _default_penalties(self, folds: Folds) -> np.ndarray:
        data = ScaledProblem.of(folds.full_problem()[0])
        return _default_betas(data, self.ranks_[-1], folds.n_inputs)

    def _penalty_axis(self, folds: Folds) -> int:
        return 1

    def _to_units(self, penalties: np.ndarray, folds: Folds) -> np.ndarray:
        order = 1 + sum(d > 1 for d in folds.output_shape)
        return np.array([beta_in_units(float(beta), folds.units, order) for beta in penalties])

    def _plan(self, folds: Folds, n_penalties: int) -> MLMTNC:
        """The model whose ranks and penalty are varied."""
        return self._model(random_state=self.seed_)

    def _shape(self, plan: MLMTNC, n_penalties: int) -> tuple[int, ...]:
        return (len(self.ranks_), n_penalties)

    def _fold_errors(
        self, plan: MLMTNC, penalties: np.ndarray, problem: Spectral, held_out: HeldOut
    ) -> np.ndarray:
        data = ScaledProblem.of(problem)
        errors = np.empty((len(self.ranks_), penalties.size))
        for i, rank in enumerate(self.ranks_):
            spectral = start_of(data, rank, problem.basis.shape[0])
            for k, beta in enumerate(penalties):
                found = plan._descend(data, spectral, float(beta))
                if not found.converged:
                    self._complaints.append(unconverged(self.max_iter, self.tol))
                errors[i, k] = held_out_mse(held_out, found.tucker)
        return errors

    def _results(self, found: Sweep, plan: MLMTNC, folds: Folds) -> dict[str, Any]:
        return {**super()._results(found, plan, folds), "ranks": self.ranks_}

    def _candidate(self, index: Index) -> MLMTNC:
        rank, beta = self.ranks_[index[0]], float(self.betas_[index[1]])
        return self._model(rank=rank, beta=beta, random_state=self.seed_)


def _check_ranks(ranks: Any, shape: tuple[int, ...]) -> list[Any]:
    """Candidates, each checked as a single rank is; ints stand for all modes."""
    found = list(ranks)
    if not found:
        raise ValueError("ranks must name at least one candidate; got an empty list.")
    for R in found:
        try:
            check_rank(R, shape)
        except (TypeError, ValueError) as error:
            raise type(error)(
                f"ranks must be a list of candidates, each an int or a tuple with {len(shape)} "
                f"entries; got ranks={ranks!r}: {error}"
            ) from None
    return [tuple(R) if np.ndim(R) else int(R) if isinstance(R, Integral) else R for R in found]


def _holrr_rank(folds: Folds, n_jobs: int | None) -> tuple[int, ...]:
    """The rank that HOLRR predicts held-out data best with, for the best of its penalties."""
    s = folds.full_problem()[0].s
    alphas = default_alphas(float(squared_norm(s)), s.shape[0])
    grid = RankGrid(folds.shape).within_others(folds.shape)
    grid = grid.within_input_rank(folds.max_input_rank)
    grid = grid.within_budget(folds.n_folds * len(alphas), _SURFACE_BYTES)
    found = sweep(folds, RankErrors(alphas, grid.caps), (len(alphas), *grid.caps), n_jobs=n_jobs)
    index = best_index(found.mean_mse, parameter_counts(folds.shape, grid.caps))
    return tuple(i + 1 for i in index[1:])


def _default_betas(data: ScaledProblem, rank: Any, n_features: int) -> np.ndarray:
    """Penalties from a negligible one to one at which hardly anything is left."""
    start = balance(least_squares(start_of(data, rank, n_features).tucker, data))
    explained = float(squared_norm(data.T)) * data.unit_t**2
    weight = penalty(start) * unit_of_blocks(data) ** 2
    return _RELATIVE_BETAS * (explained / weight if explained > 0 and weight > 0 else 1.0)
