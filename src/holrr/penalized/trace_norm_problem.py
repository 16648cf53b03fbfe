"""Problem of trace norm regression: objective, lower bound, and solutions in closed form.

With the inputs in spectral coordinates, the problem is

    min_W  1/2 ||diag(s) W - T||^2 + alpha/2 ||W||^2 + penalty sum_i w_i ||W_(i)||_* .

Multipliers `M_i` are feasible for the dual problem if the singular values of their mode-i unfolding
are at most ``penalty w_i``. The dual objective is a lower bound on the minimum. With
``M = sum_i M_i`` it is

    rest/2 + alpha/2 sum T^2 / (s^2 + alpha) + sum M (sT - M/2) / (s^2 + alpha) .
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..core.namespace import Array, device_of, namespace_of, squared_norm
from ..core.tensor import Tucker, mode_product, multi_mode_product
from .scaled import ScaledProblem
from .shrink import nuclear_norm, spectral_norm

__all__ = ["HISTORY", "Penalized", "Solution", "State", "ridge_solution", "zero_solution"]

# Quantities that are recorded each time the objective is evaluated.
HISTORY = ("iteration", "objective", "lower_bound", "primal_residual", "dual_residual", "rho")


@dataclass(frozen=True, eq=False)
class Penalized:
    """Trace norm problem for all penalties: the loss and the weights of the modes."""

    data: ScaledProblem
    alpha: float  # ridge penalty in the units of the data
    weights: tuple[float, ...]  # weights of the trace norms of all p + 1 modes, at least 0

    @cached_property
    def gradient(self) -> Array:
        """Negative gradient of the loss at zero, ``sT``."""
        return self.data.rows(self.data.s) * self.data.T

    @cached_property
    def curvature(self) -> Array:
        """Curvature ``s^2 + alpha`` of each row."""
        return self.data.rows(self.data.s) ** 2 + self.alpha

    @property
    def splits(self) -> list[tuple[int, float]]:
        """Penalised modes and their weights; both modes of a matrix have the same trace norm."""
        modes = list(enumerate(self.weights))
        if len(modes) == 2:
            modes = [(0, sum(self.weights))]
        return [(i, w) for i, w in modes if w > 0]

    def penalty_max(self) -> float:
        """Return a penalty at and above which the solution is zero.

        Zero is optimal if the gradient is a sum of feasible multipliers. The multiples
        ``c_i gradient`` are feasible if ``c_i ||gradient_(i)|| <= penalty w_i``. The result is the
        smallest penalty for which such ``c_i`` can add up to one. With one penalised mode, it is
        the smallest penalty at which the solution is zero.
        """
        total = sum(w / max(spectral_norm(self.gradient, i), 1e-300) for i, w in self.splits)
        zero = float(squared_norm(self.gradient)) == 0.0
        return 0.0 if zero else math.inf if total == 0 else 1.0 / total

    def objective(self, core: Array, bases: Sequence[Array | None], penalty: float) -> float:
        """Return the objective at a Tucker tensor with orthonormal factors."""
        W = multi_mode_product(core, bases)
        # Orthonormal factors do not change singular values, so core and W have the same norms.
        norms = sum(w * nuclear_norm(core, i) for i, w in self.splits)
        ridge = self.alpha * float(squared_norm(core))
        return 0.5 * (self.data.squared_error(W) + ridge) + penalty * norms

    def lower_bound(self, M: Array) -> float:
        """Return the dual objective at a sum of feasible multipliers."""
        xp = namespace_of(M)
        T, b, q = self.data.T, self.gradient, self.curvature
        ridge = self.alpha * float(xp.sum(T * T / q)) if self.alpha else 0.0
        return 0.5 * (self.data.rest + ridge) + float(xp.sum(M * (b - 0.5 * M) / q))


@dataclass(frozen=True, eq=False)
class State:
    """State of the solver, from which it can continue with the same or another penalty."""

    W: Array  # (r, d1, ..., dp)
    copies: tuple[Array, ...]  # arrays with the shape of `W`, one for each penalised mode
    multipliers: tuple[Array, ...]  # arrays with the shape of `W`, one for each penalised mode
    rho: float  # step size
    penalty: float  # penalty of the multipliers

    def at(self, penalty: float) -> State:
        """Return the state for another penalty, with scaled multipliers."""
        scale = penalty / self.penalty
        return replace(
            self, multipliers=tuple(scale * M for M in self.multipliers), penalty=penalty
        )

    def moved(
        self, B: Array, units: tuple[float, float, float], scale: Callable[[Any, float], Any]
    ) -> State:
        """Multiply mode 0 by `B`, and scale by the units of step size, `W` and multipliers."""
        rho, w, m = units
        copies = tuple(scale(mode_product(Z, B, 0), w) for Z in self.copies)
        multipliers = tuple(scale(mode_product(M, B, 0), m) for M in self.multipliers)
        W = scale(mode_product(self.W, B, 0), w)
        return State(W, copies, multipliers, scale(self.rho, rho), scale(self.penalty, m))


@dataclass(frozen=True, eq=False)
class Solution:
    """Solution in spectral coordinates, with its objective and lower bound."""

    tucker: Tucker  # solution with orthonormal factors
    is_zero: bool  # whether all coefficients are zero
    objective: float
    lower_bound: float
    n_iter: int
    converged: bool
    history: dict[str, list[float]]  # one entry for each evaluation of the objective
    state: State | None  # None for a solution in closed form

    def coefficients(self, data: ScaledProblem) -> Tucker:
        """Return the solution in the units of the data, with all its modes."""
        unit = data.unit_t / data.unit_s
        return data.restore(Tucker(self.tucker.core * unit, self.tucker.factors))

    @property
    def gap(self) -> float:
        """Relative duality gap."""
        return (self.objective - self.lower_bound) / self.objective if self.objective > 0 else 0.0


# ---------------------------------------------------------------- closed forms


def ridge_solution(problem: Penalized) -> Solution:
    """Return the solution without trace norms."""
    W = problem.gradient / problem.curvature
    ridge = problem.alpha * float(squared_norm(W))
    objective = 0.5 * (problem.data.squared_error(W) + ridge)
    return _closed(Tucker(W, (None,) * W.ndim), False, objective)


def zero_solution(problem: Penalized) -> Solution:
    """Return the solution zero, which is optimal at and above `Penalized.penalty_max`."""
    xp, like = namespace_of(problem.gradient), problem.gradient
    zeros = lambda *shape: xp.zeros(shape, dtype=like.dtype, device=device_of(like))  # noqa: E731
    tucker = Tucker(zeros(*[1] * like.ndim), tuple(zeros(d, 1) for d in like.shape))
    objective = 0.5 * problem.data.squared_error(zeros(*like.shape))
    return _closed(tucker, True, objective)


def _closed(tucker: Tucker, is_zero: bool, objective: float) -> Solution:
    history = {name: [float("nan")] for name in HISTORY}
    history |= {"iteration": [1.0], "objective": [objective], "lower_bound": [objective]}
    return Solution(tucker, is_zero, objective, objective, 1, True, history, None)
