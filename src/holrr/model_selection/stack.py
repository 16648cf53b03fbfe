"""Stacks: mixtures of the fits of several ranks and penalties, weighted by held-out errors.

The error surface determines the models of a stack (`find_parts`): for each mode and a few of its
ranks, the best model with this rank at the best penalty; the best rank at a smaller and at a larger
penalty; ridge regression at these penalties and at its own best penalty; and the null model, which
predicts the mean.

The weights are not negative and add up to one. The residual of a mixture is therefore the mixture
of the residuals, and its held-out error is ``w' B w``, where B is the Gram matrix of the residuals.
Its minimisation is a quadratic programme: the projection of the origin onto a convex hull.
`least_in_hull` solves it exactly by Wolfe's active set method.

With few samples, the folds do not determine many weights accurately. Each pair of folds is
therefore left out in turn, and the weights of all these programmes are averaged (`stack_weights`).
The programmes that leave a fold out give the weights for this fold, and these weights give the
cross-fitted error. The cross-fitted error also determines how far the mixture is shrunk towards the
mean and, if it is clearly worse than ridge regression, towards ridge regression.

References
----------
L. Breiman (1996). Stacked regressions. Machine Learning 24, 49-64.

P. Wolfe (1976). Finding the nearest point in a polytope. Mathematical Programming 11, 128-149.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.namespace import Array, all_to_numpy, asarray_like, is_numpy_array, namespace_of
from ..core.tensor import multi_mode_product, unfold
from .grid import RankGrid
from .surface import Directions, RankPath, cumulative_sum

__all__ = ["Part", "Stack", "find_parts", "fold_gram", "least_in_hull", "other_places"]
__all__ += ["quadratic_form", "stack_weights"]

Index = tuple[int, ...]

# Number of ranks of each mode whose best models are part of the stack.
_RANKS_OF_MODE = 8
# Distance of the smaller and the larger penalty from the best one, in decades.
_DECADES = 1.5
# Maximum number of groups of folds; each pair of groups is left out once.
_MAX_GROUPS = 5
# The mixture is shrunk towards ridge regression if it is worse by this many standard errors.
_N_ERRORS = 2.0
# Numbers that are added to the diagonals of Gram matrices, as shares of the least error and of the
# largest: larger than rounding errors, and small enough to have no other effect.
_TIE, _ROUNDING = 1e-8, 1e-14
# Up to this size, a call of NumPy costs as much as its arithmetic.
_SMALL = 2**12


@dataclass(frozen=True)
class Part:
    """Model of a stack.

    Parameters
    ----------
    place : int
        Index of its penalty in the grid.
    rank : tuple of int, or None
        Rank with one entry for each mode that is reduced; None for ridge regression.
    """

    place: int
    rank: Index | None


@dataclass(frozen=True, eq=False)
class Stack:
    """Mixture of models.

    Parameters
    ----------
    parts : tuple of Part
        Models of the stack.
    weights : array of shape (n_parts,)
        Weights, all at least 0. One minus their sum is the weight of the null model.
    fold_weights : array of shape (n_folds, n_parts)
        Weights for each fold, from programmes that leave the fold out.
    mse : float
        Mean held-out error over the folds.
    cross_fitted_mse : float
        Mean held-out error over the folds with `fold_weights`.
    """

    parts: tuple[Part, ...]
    weights: np.ndarray
    fold_weights: np.ndarray
    mse: float
    cross_fitted_mse: float


# ---------------------------------------------------------------- models of a stack


def find_parts(
    errors: np.ndarray,
    n_parameters: np.ndarray,
    best: Index,
    others: Sequence[int] = (),
    ridge: Mapping[int, float] | None = None,
) -> tuple[Part, ...]:
    """Return the models of a stack.

    Parameters
    ----------
    errors : array of shape (R0, ...)
        Mean held-out errors of all ranks at the best penalty; NaN for ranks that are not
        candidates.
    n_parameters : array of shape (R0, ...)
        Number of parameters of each rank.
    best : tuple of int
        Index of the best penalty, followed by the best rank at this penalty.
    others : sequence of int
        Indices of other penalties at which the best rank is mixed.
    ridge : dict from int to float, optional
        Indices of the penalties at which ridge regression is mixed, with its errors.
    """
    place, *rank = best
    ranks, ridge = [tuple(rank)], {} if ridge is None else ridge
    for mode, size in enumerate(_distinct_sizes(errors.shape)):
        away = tuple(i for i in range(errors.ndim) if i != mode)
        there = 1 + np.flatnonzero(np.isfinite(errors).any(axis=away))
        there = there[there <= max(size, there[0])]
        some = np.geomspace(1, there.size, min(_RANKS_OF_MODE, there.size)).round().astype(int)
        for R in there[np.unique(some) - 1]:
            index = list(_least(*(np.take(A, R - 1, axis=mode) for A in (errors, n_parameters))))
            index.insert(mode, int(R) - 1)
            ranks.append(tuple(i + 1 for i in index))
    # Ridge regression replaces full rank of the folds, which all data may exceed.
    full = ridge.get(place, math.nan)
    low = [
        R
        for R, error in _different(ranks, errors, n_parameters)
        if not abs(error - full) <= 1e-12 * abs(full)
    ]
    parts = [Part(place, R) for R in low]
    parts += [Part(a, R) for a in others for R in low[:1] if R == ranks[0]]
    parts += [Part(a, None) for a in ridge]
    return tuple(parts)


def _distinct_sizes(shape: Sequence[int]) -> Sequence[int]:
    """Return the largest rank of each mode at which the model still changes."""
    return RankGrid(tuple(shape)).within_others(shape).caps if len(shape) > 1 else shape


def _different(
    ranks: Sequence[Index], errors: np.ndarray, n_parameters: np.ndarray
) -> list[tuple[Index, float]]:
    """Return ranks and their errors, without ranks that give the same model as a smaller rank.

    For example, the rank of one mode of a matrix need not exceed the rank of the other mode.
    """
    found: dict[float, Index] = {}
    for rank in dict.fromkeys(ranks):
        error = float(errors[tuple(R - 1 for R in rank)])
        same = [e for e in found if abs(e - error) <= 1e-12 * abs(error)]
        if not same:
            found[error] = rank
        elif _size(rank, n_parameters) < _size(found[same[0]], n_parameters):
            found[same[0]] = rank
    return [(rank, error) for error, rank in found.items()]


def _size(rank: Index, n_parameters: np.ndarray) -> tuple[int, int]:
    return int(n_parameters[tuple(R - 1 for R in rank)]), sum(rank)


def _least(errors: np.ndarray, n_parameters: np.ndarray) -> Index:
    """Return the index of the smallest entry; the smallest model among equal entries."""
    least = np.nanmin(errors)
    tied = np.flatnonzero(errors <= least + 1e-12 * abs(least))
    first = tied[np.argmin(n_parameters.reshape(-1)[tied])]
    return tuple(int(i) for i in np.unravel_index(first, errors.shape))


def other_places(alphas: np.ndarray, place: int) -> list[int]:
    """Return the indices of a smaller and of a larger penalty, if the grid has them.

    Examples
    --------
    >>> other_places(np.logspace(-2, 2, 9), 4)
    [1, 7]
    """
    if not alphas[place] > 0:
        return []
    with np.errstate(divide="ignore"):
        away = np.log10(alphas) - math.log10(alphas[place])
    found = []
    for side in (-1.0, 1.0):
        there = np.flatnonzero((side * away > 1e-9) & np.isfinite(away))
        if there.size:
            distance = np.round(np.abs(side * away[there] - _DECADES), 6)
            # Of two penalties at the same distance, choose the one nearer to the best penalty.
            found.append(int(there[np.lexsort((side * away[there], distance))[0]]))
    return found


# ---------------------------------------------------------------- Gram matrices of residuals


def fold_gram(
    path: RankPath, parts: Sequence[Part], alphas: np.ndarray
) -> tuple[np.ndarray, dict[int, Directions]]:
    """Compute the mean products of the held-out residuals of all parts in a fold.

    No predictions are computed. The products of two fits of low rank follow from products of their
    cores, which have the size of the ranks.

    Parameters
    ----------
    path : RankPath
        Error surface of the fold.
    parts : sequence of Part
        Models of the stack.
    alphas : array of shape (n_alphas,)
        Penalties in the units of the scaled data.

    Returns
    -------
    gram : array of shape (n_parts + 1, n_parts + 1)
        Gram matrix of the residuals, divided by their number. The null model is last.
    directions : dict
        `Directions` of the parts of low rank, by the index of their penalty.
    """
    n, held_out = len(parts), path.held_out
    groups = _low_ranks(path, parts, alphas)
    # Indices of parts, indices of other parts (empty for the outputs), and inner products.
    found: list[tuple[list[int], list[int], Array]] = []
    for number, group in enumerate(groups):
        found.append((group.where, [], group.products(group.outputs)))
        for other in groups[: number + 1]:
            many, few = sorted((group, other), key=lambda some: -len(some.where))
            G = many.inner @ few.directions.left
            for i, rank in zip(few.where, few.ranks, strict=True):
                A = _times(G[:, : rank[0]], few.core_of(rank))
                found.append((many.where, [i], many.products(A, few.maps_to(many, rank))))
    ridge = [i for i, part in enumerate(parts) if part.rank is None]
    penalties = [float(alphas[parts[i].place]) for i in ridge]
    for group in groups if ridge else ():
        found.append((group.where, ridge, _with_ridge(path, group, penalties)))
    squares, linear = np.zeros((n, n)), np.zeros(n)
    # One transfer from an accelerator for all values.
    values = all_to_numpy([values for _, _, values in found]) if found else []
    for (rows, columns, _), value in zip(found, values, strict=True):
        if columns:
            value = value.reshape(len(rows), len(columns))
            squares[np.ix_(rows, columns)] = value
            squares[np.ix_(columns, rows)] = value.T
        else:
            linear[rows] = value
    if ridge:
        squares[np.ix_(ridge, ridge)], linear[ridge] = path.ridge_products(penalties)
    B = np.full((n + 1, n + 1), held_out.yy)
    B[:n, :n] += squares - linear[:, None] - linear
    B[n, :n] -= linear
    B[:n, n] -= linear
    return B / held_out.size, {group.place: group.directions for group in groups}


@dataclass(frozen=True, eq=False)
class _LowRanks:
    """Parts of low rank at one penalty.

    Parameters
    ----------
    place : int
        Index of the penalty.
    where : list of int
        Indices of the parts.
    ranks : list of tuple
        Ranks of the parts, capped at the shape of the core.
    directions : Directions
        Directions and core of the fits.
    inner : array of shape (R0, r)
        Products of the directions with the held-out features.
    outputs : array of shape (R0, R1, ...)
        Products of the directions with the held-out outputs.
    """

    place: int
    where: list[int]
    ranks: list[Index]
    directions: Directions
    inner: Array
    outputs: Array

    @property
    def core(self) -> Array:
        """Core of the directions."""
        return self.directions.core

    def core_of(self, rank: Index) -> Array:
        """Return the core of one rank."""
        return self.core[tuple(map(slice, rank))]

    def maps_to(self, other: _LowRanks, rank: Index) -> list[Array] | None:
        """Return the maps from output directions of a rank to those of another group.

        Returns None if the directions are the same.
        """
        if other is self or not self.directions.bases:
            return None
        pairs = zip(self.directions.bases, other.directions.bases, rank[1:], strict=True)
        return [V.T @ U[:, :R] for U, V, R in pairs]

    def products(self, A: Array, maps: list[Array] | None = None) -> Array:
        """Return the inner products of the core of each part with `A`, of shape (n,).

        Entries of the core outside the shape of `A` count as zero.

        Parameters
        ----------
        A : array of shape (R0, n1, ...)
            Array in output directions.
        maps : list of arrays of shape (R_i, n_i), optional
            Maps from the output directions of `A` to those of the core.
        """
        if maps is not None:
            A = multi_mode_product(A, (None, *maps))
        sums = self.core[tuple(map(slice, A.shape))] * A
        shape = tuple(sums.shape)
        last = np.minimum(self.ranks, shape) - 1
        xp, is_small = namespace_of(sums), is_numpy_array(sums) and math.prod(shape) <= _SMALL
        for axis in reversed(range(sums.ndim)):
            if is_small:
                sums = np.add.accumulate(sums, axis=axis)
            elif (last[:, axis] == shape[axis] - 1).all():
                sums, last[:, axis] = xp.sum(sums, axis=axis, keepdims=True), 0
            else:
                sums = cumulative_sum(sums, axis)
        if is_numpy_array(sums):
            return sums[tuple(last.T)]
        index = asarray_like(np.ravel_multi_index(tuple(last.T), tuple(sums.shape)), sums)
        return xp.take(xp.reshape(sums, (-1,)), index)


def _low_ranks(path: RankPath, parts: Sequence[Part], alphas: np.ndarray) -> list[_LowRanks]:
    """Group the parts of low rank by penalty."""
    found = []
    for place in dict.fromkeys(part.place for part in parts if part.rank is not None):
        some = [(i, part.rank) for i, part in enumerate(parts) if part.place == place]
        low = [(i, rank) for i, rank in some if rank is not None]
        largest = np.max([rank for _, rank in low], axis=0)
        directions = path.directions(float(alphas[place]), largest.tolist())
        outputs = path.held_out.products(directions.left)[1]
        outputs = _in_directions(outputs, directions, path.T.shape[1:])
        shape = tuple(directions.core.shape)
        ranks = [tuple(map(min, (*rank, *shape[len(rank) :]), shape)) for _, rank in low]
        where, inner = [i for i, _ in low], path.held_out.inner(directions.left)
        found.append(_LowRanks(place, where, ranks, directions, inner, outputs))
    return found


def _in_directions(A: Array, directions: Directions, output_shape: Sequence[int]) -> Array:
    """Project rows of outputs, (k, D), onto the directions of the reduced output modes."""
    if not directions.bases:
        return A
    A = namespace_of(A).reshape(A, (A.shape[0], *output_shape))
    return multi_mode_product(A, (None, *directions.bases), transposed=True)


def _times(G: Array, core: Array) -> Array:
    """Return ``core x_0 G``."""
    xp, (R0, *rest) = namespace_of(core), core.shape
    return xp.reshape(G @ xp.reshape(core, (R0, math.prod(rest))), (G.shape[0], *rest))


def _with_ridge(path: RankPath, group: _LowRanks, alphas: Sequence[float]) -> Array:
    """Return inner products of held-out predictions of a group and of ridge fits, (n, n_ridge)."""
    xp, (r, *shape) = namespace_of(path.T), path.T.shape
    T = _in_directions(unfold(path.T, 0), group.directions, shape)
    scales = xp.stack([path.ridge_scale(alpha) for alpha in alphas])
    found: list[Any] = [None] * len(group.where)
    for outputs in dict.fromkeys(rank[1:] for rank in group.ranks):
        same = [i for i, rank in enumerate(group.ranks) if rank[1:] == outputs]
        most, size = max(group.ranks[i][0] for i in same), math.prod(outputs)
        box = xp.reshape(T[(slice(None), *map(slice, outputs))], (r, size))
        core = xp.reshape(group.core_of((most, *outputs)), (most, size))
        sums = cumulative_sum((group.inner[:most, :] * (core @ box.T)) @ scales.T, 0)
        for i in same:
            found[i] = sums[group.ranks[i][0] - 1, :]
    return xp.stack(found)


# ---------------------------------------------------------------- weights


def stack_weights(grams: np.ndarray, ridge: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the weights of a mixture, and weights for each fold from the other folds.

    Parameters
    ----------
    grams : array of shape (n_folds, n, n)
        Gram matrices of held-out residuals, the null model last.
    ridge : int, optional
        Index of the best ridge regression.

    Returns
    -------
    weights : array of shape (n,)
        Weights of the models.
    fold_weights : array of shape (n_folds, n)
        Weights for each fold, which do not depend on the fold.
    """
    n_folds, n, _ = grams.shape
    # Identical models share their weight; without this term, rounding would choose one of them.
    errors = np.diagonal(grams.mean(axis=0))
    grams = grams + (_TIE * errors.min() + _ROUNDING * errors.max()) * np.eye(n)
    group = np.arange(n_folds) * min(n_folds, _MAX_GROUPS) // n_folds
    sums = np.stack([grams[group == g].sum(axis=0) for g in range(group[-1] + 1)])
    total, n_groups = sums.sum(axis=0), len(sums)
    # With two groups, each is left out alone; a single group is used for its own weights.
    left_out = itertools.combinations(range(n_groups), min(2, n_groups - 1))
    start = least_in_hull(total)
    found = {some: least_in_hull(total - sums[list(some)].sum(axis=0), start) for some in left_out}
    weights = np.mean(list(found.values()), axis=0)
    others = np.stack(
        [
            np.mean([w for some, w in found.items() if g in some or n_groups == 1], axis=0)
            for g in range(n_groups)
        ]
    )
    others = others[group]
    null = np.eye(n)[-1]
    weights, others = _shrunk(grams, weights, others, null)
    if ridge is not None and n_folds > 2:
        target = np.eye(n)[ridge]
        excess = _errors(grams, others) - grams[:, ridge, ridge]
        if excess.mean() > _N_ERRORS * excess.std(ddof=1) / math.sqrt(n_folds):
            weights, others = _shrunk(grams, weights, others, target)
    return weights, others


def _errors(grams: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the error of each fold with its own weights."""
    return np.array([quadratic_form(B, w) for B, w in zip(grams, weights, strict=True)])


def _shrunk(
    grams: np.ndarray, weights: np.ndarray, others: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Shrink weights towards a target as far as the cross-fitted error decreases."""
    away = others - target
    slope = sum(float(v @ B @ target) for B, v in zip(grams, away, strict=True))
    curvature = sum(float(v @ B @ v) for B, v in zip(grams, away, strict=True))
    if not curvature > 0:
        return weights, others
    share = min(max(-slope / curvature, 0.0), 1.0)
    return target + share * (weights - target), target + share * away


# ---------------------------------------------------------------- projection onto a convex hull


def quadratic_form(B: np.ndarray, w: np.ndarray) -> float:
    """Return ``w' B w``, at least the rounding error of the sum if its terms cancel."""
    return max(float(w @ B @ w), 1e-14 * float(w @ np.abs(B) @ w))


def least_in_hull(B: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Minimise ``w' B w`` over weights that are at least zero and add up to one.

    Parameters
    ----------
    B : array of shape (n, n)
        Gram matrix of the corners, which may be singular.
    start : array of shape (n,), optional
        Weights near the solution.

    Examples
    --------
    >>> least_in_hull(np.diag([1.0, 3.0]))
    array([0.75, 0.25])
    """
    size = np.abs(B)
    if start is None:
        w = np.zeros(len(B))
        w[np.argmin(np.diagonal(B))] = 1.0
    else:
        w = _least_within(B, start, np.flatnonzero(start).tolist())
    active, slope = np.flatnonzero(w).tolist(), B @ w
    while True:
        j, error = int(np.argmin(slope)), w @ slope
        rounding = np.finfo(float).eps * (w @ size @ w)
        if j in active or not slope[j] < error - rounding:
            return w
        active.append(j)
        v = _least_within(B, w, active)
        slope = B @ v
        if not v @ slope < error - rounding:  # no progress beyond rounding: stop
            return w
        w = v


def _least_within(B: np.ndarray, w: np.ndarray, active: list[int]) -> np.ndarray:
    """Return the best weights of the active corners; remove corners whose weights become zero."""
    while True:
        target, now = _affine(B[np.array(active)[:, None], active]), w[active]
        w, falls, way = np.zeros_like(w), target <= 0, now - target
        if not falls.any():
            w[active] = target
            return w
        ratio = np.where(falls, now / np.where(way > 0, way, 1.0), np.inf)
        now = np.where(ratio > ratio.min(), now - ratio.min() * way, 0.0)
        w[active] = now / now.sum()
        active[:] = [j for j in active if w[j] > 0]


def _affine(B: np.ndarray) -> np.ndarray:
    """Minimise ``w' B w`` over weights of any sign that add up to one."""
    # Relative to the shortest corner j, in units of distances:
    # w = e_j + sum_i z_i (e_i - e_j) / d_i. Corners at distance zero, such as j itself, have no
    # equation, since their row would consist of rounding errors.
    j = int(np.argmin(np.diagonal(B)))
    C = B - B[:, [j]] - B[[j], :] + B[j, j]
    d = np.sqrt(np.maximum(np.diagonal(C), 0.0))
    d[j] = 0.0
    others, w = np.flatnonzero(d), np.zeros(len(B))
    d = d[others]
    C, rise = C[others[:, None], others] / d / d[:, None], (B[j, j] - B[others, j]) / d
    w[others] = _solved(C, rise) / d
    w[j] = 1 - w.sum()
    return w


def _solved(C: np.ndarray, rise: np.ndarray) -> np.ndarray:
    """Return the minimum-norm solution of ``C z = rise`` for a possibly singular Gram matrix."""
    if len(rise) == 1:
        return rise / C[0]
    try:
        z = np.linalg.solve(C, rise)
    except np.linalg.LinAlgError:
        z = np.full_like(rise, np.inf)
    if np.abs(z).max(initial=0.0) < 1e6:  # the matrix is well conditioned
        return z
    return np.linalg.lstsq(C, rise, rcond=None)[0]
