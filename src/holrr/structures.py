"""The structures that coefficients can have, for linear and kernel estimators alike.

Each is a way to approximate a whitened tensor: not at all, by a matrix of low rank, or by a tensor
of low multilinear rank.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from sklearn.utils._param_validation import Interval, StrOptions

from .base import Approximating
from .core.approximate import Approximation, bases_from_grams, hooi, hosvd
from .core.holes import Observed
from .core.missing import (
    Completion,
    Structure,
    complete,
    complete_ridge,
    low_multilinear_rank,
)
from .core.ranks import RankSpec, check_matrix_rank, check_rank
from .core.spectral import Whitened

__all__ = ["LowRank", "MultilinearRank", "Unconstrained"]


# Rounds, and when they end, of low-rank regression around missing outputs.
_ROUNDS = {"max_iter": 500, "tol": 1e-7}


def _hosvd(problem: Whitened, rank: Sequence[RankSpec], **options: Any) -> Approximation:
    """A tensor of the given multilinear rank near Z, with what the problem knows of Z."""
    known = {"input_rank": problem.input_rank, "norm": problem.norm, "whole": problem.whole}
    return hosvd(problem.Z, rank, **known, **options)


def _low_rank(problem: Whitened, rank: RankSpec, *, rotate: bool = False) -> Approximation:
    """The nearest tensor to Z whose mode-0 unfolding has the given rank (Eckart and Young)."""
    return _hosvd(problem, (rank, *problem.Z.shape[1:]), modes=(0,), rotate=rotate)


def _complete(
    observed: Observed,
    alpha: float,
    rank: Sequence[RankSpec],
    full: Sequence[int],
    approximate: Callable[[Whitened], Approximation],
    structure: Callable[[tuple[int, ...]], Structure],
    **rounds: Any,
) -> Completion:
    """A fit of some rank around missing outputs.

    Ranks that are shares become those of ridge regression, and full ranks are ridge regression.
    """
    free = all(not isinstance(R, float) and R >= d for R, d in zip(rank, full, strict=True))
    if free or any(isinstance(R, float) for R in rank):
        ridge = complete_ridge(observed, alpha)
        found = approximate(ridge.problem)
        if free:
            return replace(ridge, found=found)
        rank = found.tucker.rank
    return complete(observed, alpha, structure(tuple(int(R) for R in rank)), **rounds)


class Unconstrained(Approximating):
    """All tensors: ridge regression."""

    def _approximate(self, problem: Whitened, n_features: int, rotate: bool) -> Approximation:
        return hosvd(problem.Z, problem.Z.shape, modes=())

    def _complete(self, observed: Observed, alpha: float, n_features: int) -> Completion:
        return complete_ridge(observed, alpha)


class LowRank(Approximating):
    """Tensors whose unfolding, inputs by all outputs, has a low rank."""

    rank: Any

    def _approximate(self, problem: Whitened, n_features: int, rotate: bool) -> Approximation:
        return _low_rank(problem, self._check_shape(n_features, problem.Z.shape[1:]), rotate=rotate)

    def _check_shape(self, n_features: int, output_shape: Sequence[int]) -> RankSpec:
        return check_matrix_rank(self.rank, self._n_directions(n_features, output_shape))

    def _complete(self, observed: Observed, alpha: float, n_features: int) -> Completion:
        rank = self._check_shape(n_features, observed.shape)
        full = min(observed.samples.s.size, math.prod(observed.shape))
        return _complete(
            observed,
            alpha,
            [rank],
            [full],
            lambda problem: _low_rank(problem, rank),
            lambda ranks: lambda problem, before: _low_rank(problem, ranks[0]),
            **_ROUNDS,
        )

    def _n_leading(self, n_features: int, output_shape: Sequence[int]) -> int | None:
        rank = self._check_shape(n_features, output_shape)
        return None if isinstance(rank, float) else rank

    def _set_rank(self, found: Approximation) -> None:
        self.rank_ = found.tucker.rank[0]


class MultilinearRank(Approximating):
    """Tensors of low multilinear rank: Algorithm 1 of the paper and its kin."""

    _parameter_constraints: dict = {  # noqa: RUF012
        "subspaces": [StrOptions({"fitted", "response"})],
        "refine": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    rank: Any
    subspaces: str
    refine: bool
    max_iter: int
    tol: float

    def _approximate(self, problem: Whitened, n_features: int, rotate: bool) -> Approximation:
        bases = None
        if self.subspaces == "response":
            assert problem.response_grams is not None
            bases = bases_from_grams(problem.response_grams)
        rank = self._check_shape(n_features, problem.Z.shape[1:])
        found = _hosvd(problem, rank, output_bases=bases, rotate=rotate)
        if not self.refine:
            return found
        return hooi(
            problem.Z, found, residual=problem.residual, max_iter=self.max_iter, tol=self.tol
        )

    def _complete(self, observed: Observed, alpha: float, n_features: int) -> Completion:
        if self.subspaces == "response":
            raise ValueError(
                "subspaces='response' takes the subspaces from complete outputs, and entries of y "
                "are missing; use subspaces='fitted'."
            )
        rank = self._check_shape(n_features, observed.shape)
        return _complete(
            observed,
            alpha,
            rank,
            (observed.samples.s.size, *observed.shape),
            lambda problem: _hosvd(problem, rank),
            low_multilinear_rank,
            max_iter=self.max_iter,
            tol=self.tol,
        )

    def _check_shape(self, n_features: int, output_shape: Sequence[int]) -> Sequence[RankSpec]:
        first, *others = check_rank(self.rank, (n_features, *output_shape))
        if not isinstance(first, float):
            first = min(first, self._n_directions(n_features, output_shape))
        return (first, *others)

    def _n_leading(self, n_features: int, output_shape: Sequence[int]) -> int | None:
        rank = self._check_shape(n_features, output_shape)[0]
        return None if self.refine or isinstance(rank, float) else rank

    def _set_rank(self, found: Approximation) -> None:
        self.rank_ = found.tucker.rank
        self.n_iter_ = 1 + found.n_iter

    def _wants_response_grams(self) -> bool:
        return self.subspaces == "response"
