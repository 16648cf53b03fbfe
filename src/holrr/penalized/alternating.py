"""Solver of MLMT-NC: alternating ridge regressions.

With the inputs in spectral coordinates, the objective is

    ||diag(s) V - T||^2 + rest + beta (||G||^2 + sum_i ||A_i||^2),   V = G x_0 A_0 ... x_p A_p .

Given the other blocks, each of ``A_0, ..., A_p, G`` is the solution of a ridge regression. Its
matrix is a product of small Gram matrices, whose eigenvectors give the exact solution. `balance`
minimises exactly over the bases of the coordinates of the core, on which the penalty depends but
the fit does not. Without `balance`, the ridge regressions converge to the same bases, but need
thousands of iterations in place of a few.

References
----------
B. Romera-Paredes, M. H. Aung, N. Bianchi-Berthouze, M. Pontil (2013). Multilinear multitask
learning. Proceedings of the 30th International Conference on Machine Learning, 1444-1452.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ..core.namespace import (
    Array,
    asarray_like,
    eigh,
    namespace_of,
    squared_norm,
    svd,
    symmetrise,
)
from ..core.tensor import Tucker, fold, multi_mode_product, unfold
from .scaled import ScaledProblem

__all__ = ["Descent", "alternate", "balance", "core_step", "factor_step", "objective"]
__all__ += ["penalty", "random_start"]


@dataclass(frozen=True, eq=False)
class Descent:
    """Result of a descent."""

    tucker: Tucker  # solution with all factors, in spectral coordinates
    objectives: list[float]  # objective at the start and after each iteration; never increasing
    converged: bool

    @property
    def objective(self) -> float:
        """Objective at the end of the descent."""
        return self.objectives[-1]


def alternate(
    problem: ScaledProblem,
    start: Tucker,
    beta: float,
    *,
    max_iter: int = 1000,
    tol: float = 1e-7,
    report: Callable[[int, float], None] | None = None,
) -> Descent:
    """Minimise over each block in turn until the relative decrease is at most `tol`.

    The decrease of an iteration is relative to its objective. `start` is in spectral coordinates
    and has all factors. The penalty `beta` is in the units of the problem. `report` is called with
    the number and the objective of each iteration. If the descent ends above the objective of zero
    coefficients, in a local minimum or at `max_iter`, the solution is zero.
    """
    V = balance(start)
    objectives = [objective(problem, V, beta)]
    for n_iter in range(1, max_iter + 1):
        new = balance(_round(problem, V, beta))
        value = objective(problem, new, beta)
        # Rounding can make a tiny gain negative; the better of the two is kept.
        gain = objectives[-1] - value
        V, value = (new, value) if gain >= 0 else (V, objectives[-1])
        objectives.append(value)
        if report is not None:
            report(n_iter, value)
        if gain <= tol * value:
            return _not_above_zero(problem, Descent(V, objectives, True))
    return _not_above_zero(problem, Descent(V, objectives, False))


def _not_above_zero(problem: ScaledProblem, found: Descent) -> Descent:
    """Return the result of a descent, or zero coefficients if their objective is lower."""
    zero = float(squared_norm(problem.T)) + problem.rest
    if found.objective <= zero:
        return found
    core, *factors = (0.0 * B for B in (found.tucker.core, *found.tucker.dense_factors()))
    nothing = Tucker(core, tuple(factors))
    return Descent(nothing, [*found.objectives[:-1], zero], found.converged)


def _round(problem: ScaledProblem, V: Tucker, beta: float) -> Tucker:
    for mode in range(V.core.ndim):
        V = factor_step(problem, V, beta, mode)
    return core_step(problem, V, beta)


def penalty(V: Tucker) -> float:
    """Return ``||G||^2 + sum_i ||A_i||^2``."""
    return float(squared_norm(V.core)) + sum(float(squared_norm(A)) for A in V.factors)


def objective(problem: ScaledProblem, V: Tucker, beta: float) -> float:
    """Return the penalised squared error."""
    return problem.squared_error(multi_mode_product(V.core, V.factors)) + beta * penalty(V)


# ---------------------------------------------------------------- block steps


def factor_step(problem: ScaledProblem, V: Tucker, beta: float, mode: int) -> Tucker:
    """Minimise over the factor of one mode with all other blocks fixed.

    ``A`` solves ``L A M + beta A = N``, where ``M`` is the Gram matrix of the matrix that `A`
    multiplies, and ``L`` is ``diag(s)^2`` for the input mode and the identity for other modes. In
    the eigenvectors of ``M``, the solution is a division of entries.
    """
    G, mapped = unfold(V.core, mode), _mapped(problem, V)
    grams = [A.T @ A for A in mapped]
    M = unfold(multi_mode_product(V.core, grams, skip=mode), mode) @ G.T
    N = unfold(multi_mode_product(problem.T, mapped, skip=mode, transposed=True), mode) @ G.T
    m, E = _eigh(M)
    if mode == 0:
        s = problem.s[:, None]
        A = (s * (N @ E) / (s * s * m + beta)) @ E.T
    else:
        A = ((N @ E) / (m + beta)) @ E.T
    return Tucker(V.core, (*V.factors[:mode], A, *V.factors[mode + 1 :]))


def core_step(problem: ScaledProblem, V: Tucker, beta: float) -> Tucker:
    """Minimise over the core with fixed factors.

    The matrix of this ridge regression is the Kronecker product of the Gram matrices of the
    factors. Its eigenvectors are the Kronecker products of their eigenvectors.
    """
    mapped = _mapped(problem, V)
    pairs = [_eigh(A.T @ A) for A in mapped]
    vectors = [E for _, E in pairs]
    product = multi_mode_product(problem.T, mapped, transposed=True)
    coordinates = multi_mode_product(product, vectors, transposed=True)
    eigenvalues = reduce(lambda outer, m: outer[..., None] * m, [m for m, _ in pairs])
    core = multi_mode_product(coordinates / (eigenvalues + beta), vectors)
    return Tucker(core, V.factors)


def balance(V: Tucker) -> Tucker:
    """Minimise the penalty over changes of basis that keep the tensor, one mode after the other.

    The tensor does not change if ``A_i`` becomes ``A_i Q`` and ``G`` becomes ``G x_i Q^-1`` for any
    invertible ``Q``. The minimum of ``||A_i||^2 + ||G||^2`` over ``Q`` gives both blocks the square
    roots of the singular values of ``A_i G_(i)``. Finally, all blocks are scaled to equal norms.
    """
    core, factors = V.core, list(V.factors)
    xp = namespace_of(core)
    for mode, A in enumerate(factors):
        Q, R = xp.linalg.qr(A)
        U, s, P = svd(R @ unfold(core, mode))
        root = xp.sqrt(s)
        factors[mode] = (Q @ U) * root
        shape = (*core.shape[:mode], s.shape[0], *core.shape[mode + 1 :])
        core = fold(root[:, None] * P.T, mode, shape)
    return _same_norms(Tucker(core, tuple(factors)))


def _same_norms(V: Tucker) -> Tucker:
    """Scale all blocks to the geometric mean of their norms, which minimises the penalty."""
    blocks = [V.core, *V.dense_factors()]
    norms = [math.sqrt(float(squared_norm(B))) for B in blocks]
    if min(norms) <= 0.0:
        core, *factors = [0.0 * B for B in blocks]
        return Tucker(core, tuple(factors))
    mean = math.exp(sum(math.log(n) for n in norms) / len(norms))
    core, *factors = [B * (mean / n) for B, n in zip(blocks, norms, strict=True)]
    return Tucker(core, tuple(factors))


# ---------------------------------------------------------------- small parts


def _mapped(problem: ScaledProblem, V: Tucker) -> list[Array]:
    """Return the factors, with the factor of the input mode multiplied by the inputs."""
    first, *others = V.factors
    return [problem.s[:, None] * first, *others]


def _eigh(M: Array) -> tuple[Array, Array]:
    m, E = eigh(symmetrise(M))
    return namespace_of(m).clip(m, 0.0, None), E


def random_start(like: Array, rank: tuple[int, ...], rng: np.random.RandomState) -> Tucker:
    """Draw a Gaussian core and Gaussian factors for a tensor with the shape of `like`."""

    def draw(*shape: int) -> Array:
        return asarray_like(np.asarray(rng.standard_normal(shape)), like)

    factors = tuple(draw(d, R) for d, R in zip(like.shape, rank, strict=True))
    return Tucker(draw(*rank), factors)
