"""Regression with the overlapped trace norm, by the alternating direction method of multipliers.

In spectral coordinates (see `trace_norm_problem`), each trace norm has its own copy of `W` (Gandy,
Recht and Yamada 2011). The step in `W` then divides rows by numbers, for any step size `rho`, and
the step in each copy is a singular value thresholding. The remainder of the thresholding, times
rho, has singular values of at most ``penalty w_i``. The multipliers are therefore feasible for the
dual problem after every iteration and give a lower bound on the minimum. The solver stops when the
duality gap is small enough.

References
----------
S. Gandy, B. Recht, I. Yamada (2011). Tensor completion and low-n-rank tensor recovery via convex
optimization. Inverse Problems 27(2), 025010.

S. Boyd, N. Parikh, E. Chu, B. Peleato, J. Eckstein (2011). Distributed optimization and
statistical learning via the alternating direction method of multipliers. Foundations and Trends in
Machine Learning 3(1), 1-122.

B. Stellato, G. Banjac, P. Goulart, A. Bemporad, S. Boyd (2020). OSQP: an operator splitting solver
for quadratic programs. Mathematical Programming Computation 12, 637-672.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from ..core.namespace import Array, namespace_of, squared_norm
from ..core.tensor import Tucker, mode_product, multi_mode_product, unfold
from .shrink import shrink, spectral_norm
from .trace_norm_problem import (
    HISTORY,
    Penalized,
    Solution,
    State,
    ridge_solution,
    zero_solution,
)

__all__ = ["trace_norm"]

# Over-relaxation, between 1 (none) and 2. Boyd et al. recommend 1.5 to 1.8.
_RELAXATION = 1.6
# Number of iterations between evaluations of objective, lower bound and residuals.
_CHECK_EVERY = 4
# The step size changes if the square root of the ratio of residuals exceeds _BALANCE, at most
# _MAX_CHANGES times, since the iteration may not converge if the step size keeps changing.
_BALANCE, _MAX_CHANGES = 1.5, 50

# Smaller curvatures of the loss, relative to the largest, are raised to this share for the start.
_CONDITION = 1e-3


def trace_norm(
    problem: Penalized,
    penalty: float,
    *,
    start: State | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    report: Callable[[int, float, float], object] | None = None,
) -> Solution:
    """Minimise the penalised objective to a relative duality gap of at most `tol`.

    The iteration starts at `start`, or at the solution without trace norms. `report` is called with
    the iteration, the objective and the lower bound each time the objective is evaluated.
    """
    if penalty == 0 or not problem.splits:
        return ridge_solution(problem)
    if penalty >= problem.penalty_max():
        return zero_solution(problem)
    state = _first_state(problem, penalty) if start is None else start.at(penalty)
    best: Solution | None = None
    history: dict[str, list[float]] = {name: [] for name in HISTORY}
    changes = 0
    for n_iter in range(1, max_iter + 1):
        state, bases, moved = _iterate(problem, state)
        if n_iter % _CHECK_EVERY and n_iter < max_iter:
            continue
        best = _better(best, _candidate(problem, state, bases, n_iter, history), problem, tol)
        residuals = _residuals(problem, state, moved)
        _record(history, best, state, residuals)
        if report is not None:
            report(n_iter, best.objective, best.lower_bound)
        if best.gap <= tol:
            return replace(best, converged=True)
        if changes < _MAX_CHANGES:
            before, state = state.rho, _adapted(state, residuals)
            changes += state.rho != before
    assert best is not None
    return best


def _first_state(problem: Penalized, penalty: float) -> State:
    """Return the ridge solution as the start, with the best step size for the loss alone.

    The start shrinks directions in which the inputs hardly vary, since the ridge solution is mostly
    noise in them.
    """
    xp, n = namespace_of(problem.gradient), len(problem.splits)
    largest = float(xp.max(problem.curvature))
    q = xp.clip(problem.curvature, _CONDITION * largest, None)
    W = problem.gradient / q
    rho = math.sqrt(float(xp.min(q)) * largest) / n
    return State(W, (W,) * n, (xp.zeros_like(W),) * n, rho, penalty)


def _iterate(problem: Penalized, state: State) -> tuple[State, list[Array | None], Array]:
    """Perform one iteration; also return the ranges of the copies and the change of their sum."""
    rho, n = state.rho, len(state.copies)
    before = sum(state.copies)
    W = (problem.gradient + rho * before - sum(state.multipliers)) / (problem.curvature + n * rho)
    relaxed = _RELAXATION * W
    copies, multipliers = [], []
    bases: list[Array | None] = [None] * W.ndim
    for (mode, w), Z, M in zip(problem.splits, state.copies, state.multipliers, strict=True):
        A = relaxed + (1 - _RELAXATION) * Z + M / rho
        Z, bases[mode] = shrink(A, mode, state.penalty * w / rho)
        copies.append(Z)
        multipliers.append(rho * (A - Z))
    moved = sum(copies) - before
    return replace(state, W=W, copies=tuple(copies), multipliers=tuple(multipliers)), bases, moved


def _residuals(problem: Penalized, state: State, moved: Array) -> tuple[float, float]:
    """Return the primal and the dual residual, each relative to the terms of its difference.

    The dual residual is relative to the larger of the multipliers and the gradient (as in OSQP).
    Otherwise small multipliers would determine the step size in place of the loss.
    """
    norm = lambda A: math.sqrt(float(squared_norm(A)))  # noqa: E731
    apart = math.hypot(*(norm(state.W - Z) for Z in state.copies))
    size = max(
        norm(state.W) * math.sqrt(len(state.copies)), math.hypot(*(norm(Z) for Z in state.copies))
    )
    scale = max(norm(sum(state.multipliers)), norm(problem.gradient))
    return apart / max(size, 1e-300), state.rho * norm(moved) / scale


def _adapted(state: State, residuals: tuple[float, float]) -> State:
    """Change the step size so that the residuals become more equal."""
    factor = math.sqrt(residuals[0] / max(residuals[1], 1e-300))
    if 1 / _BALANCE < factor < _BALANCE:
        return state
    return replace(state, rho=state.rho * min(max(factor, 0.1), 10.0))


def _candidate(
    problem: Penalized,
    state: State,
    bases: list[Array | None],
    n_iter: int,
    history: dict[str, list[float]],
) -> Solution:
    """Project `W` onto the ranges of all copies, so that it has exactly their ranks."""
    core = multi_mode_product(state.W, bases, transposed=True)
    bound = problem.lower_bound(_feasible(problem, state, state.multipliers))
    if is_zero := 0 in core.shape:
        zero = zero_solution(problem)
        tucker, objective = zero.tucker, zero.objective
    else:
        tucker = _compressed(core, bases)
        objective = problem.objective(tucker.core, tucker.factors, state.penalty)
    return Solution(tucker, is_zero, objective, bound, n_iter, False, history, state)


def _feasible(problem: Penalized, state: State, multipliers: Sequence[Array]) -> Array:
    """Return the sum of the multipliers, scaled so that all are feasible."""
    over = max(
        spectral_norm(M, mode) / (state.penalty * w)
        for (mode, w), M in zip(problem.splits, multipliers, strict=True)
    )
    return sum(multipliers) / max(over, 1.0)


def _second_bound(problem: Penalized, state: State) -> float:
    """Return a lower bound that is accurate even if the loss is nearly flat in some directions.

    In such directions, the first bound is poor unless the multipliers add up to the gradient. This
    function changes the multipliers so that they add up to the gradient at `W`, and scales them so
    that they are feasible.
    """
    n = len(state.multipliers)
    missing = problem.gradient - problem.curvature * state.W - sum(state.multipliers)
    multipliers = [M + missing / n for M in state.multipliers]
    return problem.lower_bound(_feasible(problem, state, multipliers))


def _compressed(core: Array, bases: Sequence[Array | None]) -> Tucker:
    """Remove directions of modes without penalty that the core does not use."""
    xp, factors = namespace_of(core), list(bases)
    for mode, U in enumerate(bases):
        if U is None and core.shape[mode] > math.prod(core.shape) // core.shape[mode]:
            Q, _ = xp.linalg.qr(unfold(core, mode))
            core, factors[mode] = mode_product(core, Q.T, mode), Q
    return Tucker(core, tuple(factors))


def _better(best: Solution | None, new: Solution, problem: Penalized, tol: float) -> Solution:
    """Combine the lower objective with the higher bound; bounds of all iterations are valid."""
    if new.gap > tol and new.state is not None:
        second = _second_bound(problem, new.state)
        new = replace(new, lower_bound=max(new.lower_bound, second))
    if best is None:
        return new
    chosen = new if new.objective <= best.objective else best
    bound = max(best.lower_bound, new.lower_bound)
    return replace(chosen, lower_bound=bound, n_iter=new.n_iter, state=new.state)


def _record(
    history: dict[str, list[float]], best: Solution, state: State, residuals: tuple[float, float]
) -> None:
    values = (best.n_iter, best.objective, best.lower_bound, *residuals, state.rho)
    for name, value in zip(HISTORY, values, strict=True):
        history[name].append(value)
