"""Regression with the overlapped trace norm, by the alternating direction method of multipliers.

With the inputs in spectral coordinates the problem is

    min_W  1/2 ||diag(s) W - T||^2 + alpha/2 ||W||^2 + penalty sum_i w_i ||W_(i)||_* .

Each norm gets its own copy of `W` (Gandy, Recht and Yamada 2011). Then the step in `W` is a
division of rows, whatever the step size `rho`, and the step in each copy a singular value
thresholding. Its remainder, times rho, has singular values of at most ``penalty w_i``: the
multipliers `M_i` are feasible for the dual problem after every iteration, so that

    rest/2 + alpha/2 sum T^2 / (s^2 + alpha) + sum M (sT - M/2) / (s^2 + alpha),   M = sum_i M_i ,

is a lower bound of the minimum, and the iteration stops when this bound meets the objective.

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
from dataclasses import dataclass, field, replace

from ..core.namespace import Array, device_of, namespace_of, squared_norm
from ..core.tensor import mode_product, multi_mode_product, unfold
from ..core.tucker import Tucker
from ._shrink import nuclear_norm, shrink, spectral_norm
from ._spectral import ScaledProblem

__all__ = ["Penalized", "Solution", "State", "trace_norm"]

# Over-relaxation, between 1 (none) and 2; 1.5 to 1.8 is what Boyd et al. recommend.
_RELAXATION = 1.6
# Objective, bound and residuals are looked at every so many iterations.
_CHECK_EVERY = 4
# The step size changes where the residuals' square-rooted ratio is beyond this; no more often than
# this, since a step size that never settles need not converge.
_BALANCE, _MAX_CHANGES = 1.5, 50

# Curvatures of the loss below this share of the largest do not set the start.
_CONDITION = 1e-3

Report = Callable[[int, float, float], None]


@dataclass(frozen=True, eq=False)
class Penalized:
    """The problem for all penalties: the loss, and which unfoldings are penalised how much.

    Parameters
    ----------
    data : ScaledProblem
    alpha : float
        Ridge penalty in the units of `data`.
    weights : tuple of p + 1 floats
        Relative weights of the modes' norms, at least 0.
    """

    data: ScaledProblem
    alpha: float
    weights: tuple[float, ...]
    # Computed once: the gradient sT at zero, and the curvature s^2 + alpha of each row.
    gradient: Array = field(init=False)
    curvature: Array = field(init=False)

    def __post_init__(self) -> None:
        rows = self.data.rows(self.data.s)
        object.__setattr__(self, "gradient", rows * self.data.T)
        object.__setattr__(self, "curvature", rows * rows + self.alpha)

    @property
    def splits(self) -> list[tuple[int, float]]:
        """The penalised modes and their weights; a matrix has one trace norm, not two."""
        modes = list(enumerate(self.weights))
        if len(modes) == 2:
            modes = [(0, sum(self.weights))]
        return [(i, w) for i, w in modes if w > 0]

    def penalty_max(self) -> float:
        """A penalty from which on zero is the solution.

        Zero is optimal where the gradient is a sum of multipliers that are feasible. Shares
        ``c_i`` of the gradient itself are, if ``c_i ||gradient_(i)|| <= penalty w_i``, and the
        least penalty for which these shares can add up to one is the number returned. For one
        penalised mode it is the least penalty that there is.
        """
        total = sum(w / max(spectral_norm(self.gradient, i), 1e-300) for i, w in self.splits)
        zero = float(squared_norm(self.gradient)) == 0.0
        return 0.0 if zero else math.inf if total == 0 else 1.0 / total

    def objective(self, core: Array, bases: Sequence[Array | None], penalty: float) -> float:
        """The objective at a Tucker tensor with orthonormal factors."""
        W = multi_mode_product(core, bases)
        # Orthonormal factors change no singular value: the core's norms are those of W.
        norms = sum(w * nuclear_norm(core, i) for i, w in self.splits)
        ridge = self.alpha * float(squared_norm(core))
        return 0.5 * (self.data.squared_error(W) + ridge) + penalty * norms

    def lower_bound(self, M: Array) -> float:
        """The dual objective at a sum of feasible multipliers."""
        xp = namespace_of(M)
        T, b, q = self.data.T, self.gradient, self.curvature
        ridge = self.alpha * float(xp.sum(T * T / q)) if self.alpha else 0.0
        return 0.5 * (self.data.rest + ridge) + float(xp.sum(M * (b - 0.5 * M) / q))


@dataclass(frozen=True, eq=False)
class State:
    """Where an iteration stands: enough to go on from, also for another penalty.

    Parameters
    ----------
    W : array of shape (r, d1, ..., dp)
    copies : tuple of arrays like `W`
        One for each penalised mode.
    multipliers : tuple of arrays like `W`
    rho : float
        Step size.
    penalty : float
        The penalty that the multipliers belong to.
    """

    W: Array
    copies: tuple[Array, ...]
    multipliers: tuple[Array, ...]
    rho: float
    penalty: float

    def at(self, penalty: float) -> State:
        """The same for another penalty: multipliers of the size that it allows."""
        scale = penalty / self.penalty
        return replace(
            self, multipliers=tuple(scale * M for M in self.multipliers), penalty=penalty
        )


@dataclass(frozen=True, eq=False)
class Solution:
    """A Tucker tensor in spectral coordinates, and how far from the minimum it can be.

    Parameters
    ----------
    tucker : Tucker
        With orthonormal factors.
    is_zero : bool
        Whether all coefficients are zero.
    objective, lower_bound : float
    n_iter : int
    converged : bool
    history : dict of lists of floats
        One entry for each look at the objective.
    state : State or None
        None where the solution has a closed form.
    """

    tucker: Tucker
    is_zero: bool
    objective: float
    lower_bound: float
    n_iter: int
    converged: bool
    history: dict[str, list[float]]
    state: State | None

    def coefficients(self, data: ScaledProblem) -> Tucker:
        """The tensor in the units and with all the modes of the data."""
        unit = data.unit_t / data.unit_s
        return data.restore(Tucker(self.tucker.core * unit, self.tucker.factors))

    @property
    def gap(self) -> float:
        """Relative distance of the objective from its lower bound."""
        return (self.objective - self.lower_bound) / self.objective if self.objective > 0 else 0.0


def trace_norm(
    problem: Penalized,
    penalty: float,
    *,
    start: State | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
    report: Report | None = None,
) -> Solution:
    """Minimise the penalised objective to a relative duality gap of at most `tol`.

    Parameters
    ----------
    problem : Penalized
    penalty : float
    start : State, optional
        Where to start from; by default at the solution without the trace norms.
    max_iter : int
    tol : float
    report : callable, optional
        Called with the iteration, the objective and the lower bound at each look.
    """
    if penalty == 0 or not problem.splits:
        return _ridge(problem)
    if penalty >= problem.penalty_max():
        return _zero(problem)
    state = _first_state(problem, penalty) if start is None else start.at(penalty)
    best: Solution | None = None
    history: dict[str, list[float]] = {name: [] for name in _HISTORY}
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
        factor = math.sqrt(residuals[0] / max(residuals[1], 1e-300))
        if not 1 / _BALANCE < factor < _BALANCE and changes < _MAX_CHANGES:
            state = replace(state, rho=state.rho * min(max(factor, 0.1), 10.0))
            changes += 1
    assert best is not None
    return best


_HISTORY = ("iteration", "objective", "lower_bound", "primal_residual", "dual_residual", "rho")


def _first_state(problem: Penalized, penalty: float) -> State:
    """The ridge solution, with the step size that is best where the loss alone matters.

    Directions that the inputs hardly vary in are left to the trace norms: there the ridge
    solution is mostly noise.
    """
    xp, n = namespace_of(problem.gradient), len(problem.splits)
    largest = float(xp.max(problem.curvature))
    q = xp.clip(problem.curvature, _CONDITION * largest, None)
    W = problem.gradient / q
    rho = math.sqrt(float(xp.min(q)) * largest) / n
    return State(W, (W,) * n, (xp.zeros_like(W),) * n, rho, penalty)


def _iterate(problem: Penalized, state: State) -> tuple[State, list[Array | None], Array]:
    """One iteration; also the ranges of the copies, and how far the copies' sum has moved."""
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
    """Primal and dual residual, each relative to what it is the difference of.

    The dual one is measured against the gradient, too (as in OSQP): multipliers that are small
    beside it would have the step size follow their own size instead of the loss.
    """
    norm = lambda A: math.sqrt(float(squared_norm(A)))  # noqa: E731
    apart = math.hypot(*(norm(state.W - Z) for Z in state.copies))
    size = max(
        norm(state.W) * math.sqrt(len(state.copies)), math.hypot(*(norm(Z) for Z in state.copies))
    )
    scale = max(norm(sum(state.multipliers)), norm(problem.gradient))
    return apart / max(size, 1e-300), state.rho * norm(moved) / scale


def _candidate(
    problem: Penalized,
    state: State,
    bases: list[Array | None],
    n_iter: int,
    history: dict[str, list[float]],
) -> Solution:
    """`W` on the ranges of all copies: its ranks are exactly those of the copies."""
    core = multi_mode_product(state.W, bases, transposed=True)
    bound = problem.lower_bound(_feasible(problem, state, state.multipliers))
    if 0 in core.shape:
        return replace(
            _zero(problem),
            lower_bound=bound,
            n_iter=n_iter,
            converged=False,
            history=history,
            state=state,
        )
    tucker = _compressed(core, bases)
    objective = problem.objective(tucker.core, tucker.factors, state.penalty)
    return Solution(tucker, False, objective, bound, n_iter, False, history, state)


def _feasible(problem: Penalized, state: State, multipliers: Sequence[Array]) -> Array:
    """Sum of the multipliers, all lowered by the share by which one exceeds its bound."""
    over = max(
        spectral_norm(M, mode) / (state.penalty * w)
        for (mode, w), M in zip(problem.splits, multipliers, strict=True)
    )
    return sum(multipliers) / max(over, 1.0)


def _second_bound(problem: Penalized, state: State) -> float:
    """A bound that does not suffer from directions in which the loss is nearly flat.

    There the first one is poor unless the multipliers add up to the gradient precisely. Here they
    are made to, for the gradient at `W`, and then scaled until they are feasible.
    """
    n = len(state.multipliers)
    missing = problem.gradient - problem.curvature * state.W - sum(state.multipliers)
    multipliers = [M + missing / n for M in state.multipliers]
    return problem.lower_bound(_feasible(problem, state, multipliers))


def _compressed(core: Array, bases: Sequence[Array | None]) -> Tucker:
    """The same tensor without directions of the free modes that the core does not use."""
    xp, factors = namespace_of(core), list(bases)
    for mode, U in enumerate(bases):
        if U is None and core.shape[mode] > math.prod(core.shape) // core.shape[mode]:
            Q, _ = xp.linalg.qr(unfold(core, mode))
            core, factors[mode] = mode_product(core, Q.T, mode), Q
    return Tucker(core, tuple(factors))


def _better(best: Solution | None, new: Solution, problem: Penalized, tol: float) -> Solution:
    """The lower objective with the higher bound: both hold, whichever iteration they are from."""
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
    for name, value in zip(_HISTORY, values, strict=True):
        history[name].append(value)


# ---------------------------------------------------------------- closed forms


def _ridge(problem: Penalized) -> Solution:
    W = problem.gradient / problem.curvature
    ridge = problem.alpha * float(squared_norm(W))
    objective = 0.5 * (problem.data.squared_error(W) + ridge)
    return _closed(Tucker(W, (None,) * W.ndim), False, objective)


def _zero(problem: Penalized) -> Solution:
    xp, like = namespace_of(problem.gradient), problem.gradient
    zeros = lambda *shape: xp.zeros(shape, dtype=like.dtype, device=device_of(like))  # noqa: E731
    tucker = Tucker(zeros(*[1] * like.ndim), tuple(zeros(d, 1) for d in like.shape))
    objective = 0.5 * problem.data.squared_error(zeros(*like.shape))
    return _closed(tucker, True, objective)


def _closed(tucker: Tucker, is_zero: bool, objective: float) -> Solution:
    history = {name: [float("nan")] for name in _HISTORY}
    history |= {"iteration": [1.0], "objective": [objective], "lower_bound": [objective]}
    return Solution(tucker, is_zero, objective, objective, 1, True, history, None)
