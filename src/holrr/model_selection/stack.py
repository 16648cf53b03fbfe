"""Stacks: mixtures of the fits of several ranks and penalties, weighted by the folds.

What is mixed is read off the error surface (`find_parts`): at the best penalty, for each mode and a
few of its ranks, the best model that has this rank; the best rank at a smaller and at a larger
penalty; ridge regression at all of these penalties and at its own best one; and the null model,
which predicts the mean.

The weights are not negative and add up to one, so that the residual of a mixture is that mixture of
the residuals, and its held-out error is ``w' B w`` with their Gram matrix B. Minimising it is a
quadratic programme, the projection of the origin onto a convex hull, which `least_in_hull` solves
exactly by Wolfe's active set method.

With few samples the folds are a poor judge of many weights. So each pair of folds is left out in
turn, and the weights of all these programmes are averaged (`stack_weights`). For each fold there
are weights to which it did not contribute, those of the programmes that leave it out; they give the
cross-fitted error. With it the folds also judge how far the mixture is shrunk towards the mean and,
where it is clearly worse than ridge regression, towards that.

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

# Ranks of each mode for which the best model is mixed.
_RANKS_OF_MODE = 8
# Distance of the smaller and the larger penalty from the best one, in decades.
_DECADES = 1.5
# Largest number of groups of folds; each pair of them is left out once.
_MAX_GROUPS = 5
# The mixture is shrunk towards ridge regression where it is worse by so many standard errors.
_N_ERRORS = 2.0
# What is added to the diagonals of Gram matrices, as shares of the least error and of the largest:
# above rounding, and far below what matters.
_TIE, _ROUNDING = 1e-8, 1e-14
# Up to this size a call costs as much as its arithmetic.
_SMALL = 2**12


@dataclass(frozen=True)
class Part:
    """One of the models that are mixed.

    Parameters
    ----------
    place : int
        Number of its penalty in the grid.
    rank : tuple of int, or None
        One entry for each mode that is reduced; None for ridge regression.
    """

    place: int
    rank: Index | None


@dataclass(frozen=True, eq=False)
class Stack:
    """A mixture of models.

    Parameters
    ----------
    parts : tuple of Part
    weights : array of shape (n_parts,)
        None is negative; what their sum lacks of one is the weight of the null model.
    fold_weights : array of shape (n_folds, n_parts)
        For each fold, from programmes to which it did not contribute.
    mse : float
        Mean held-out error over the folds.
    cross_fitted_mse : float
        The same with the weights of each fold from the others.
    """

    parts: tuple[Part, ...]
    weights: np.ndarray
    fold_weights: np.ndarray
    mse: float
    cross_fitted_mse: float


# ---------------------------------------------------------------- what is mixed


def find_parts(
    errors: np.ndarray,
    n_parameters: np.ndarray,
    best: Index,
    others: Sequence[int] = (),
    ridge: Mapping[int, float] | None = None,
) -> tuple[Part, ...]:
    """The models to mix.

    Parameters
    ----------
    errors : array of shape (R0, ...)
        Mean held-out errors of all ranks at the best penalty; NaN for what is no candidate.
    n_parameters : array of shape (R0, ...)
    best : tuple of int
        Number of the best penalty, and the best rank there.
    others : sequence of int
        Numbers of the other penalties at which the best rank is mixed.
    ridge : dict from int to float, optional
        Numbers of the penalties at which ridge regression is mixed, with its errors.
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
    # Full rank in the folds, which may not be that of all the data, gives way to ridge regression.
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
    """The largest rank of each mode that adds something; a single mode has no others."""
    return RankGrid(tuple(shape)).within_others(shape).caps if len(shape) > 1 else shape


def _different(
    ranks: Sequence[Index], errors: np.ndarray, n_parameters: np.ndarray
) -> list[tuple[Index, float]]:
    """Ranks with their errors, without those that are the same model as a smaller one.

    A rank of a matrix above that of the other mode adds nothing, for instance.
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
    """The smallest entry; among those that rounding cannot tell apart, the smallest model."""
    least = np.nanmin(errors)
    tied = np.flatnonzero(errors <= least + 1e-12 * abs(least))
    first = tied[np.argmin(n_parameters.reshape(-1)[tied])]
    return tuple(int(i) for i in np.unravel_index(first, errors.shape))


def other_places(alphas: np.ndarray, place: int) -> list[int]:
    """Numbers of a smaller and of a larger penalty, as far as the grid has them.

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
            # Of two that are equally far the one nearer to the best penalty.
            found.append(int(there[np.lexsort((side * away[there], distance))[0]]))
    return found


# ---------------------------------------------------------------- Gram matrices of residuals


def fold_gram(
    path: RankPath, parts: Sequence[Part], alphas: np.ndarray
) -> tuple[np.ndarray, dict[int, Directions]]:
    """Mean products of the held-out residuals of all parts in a fold, the null model last.

    No prediction is formed. The products of two fits of low rank are those of their cores, which
    have the size of the ranks.

    Parameters
    ----------
    path : RankPath
    parts : sequence of Part
    alphas : array of shape (n_alphas,)
        In the units of the scaled data.

    Returns
    -------
    gram : array of shape (n_parts + 1, n_parts + 1)
    directions : dict
        For the number of each penalty with parts of low rank, what these are made of.
    """
    n, held_out = len(parts), path.held_out
    groups = _low_ranks(path, parts, alphas)
    # Numbers of parts, those of others or none for the outputs, and inner products.
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
    # From an accelerator in one transfer.
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
    """The parts of low rank at one penalty.

    Parameters
    ----------
    place : int
        Number of the penalty.
    where : list of int
        Numbers of the parts.
    ranks : list of tuple
        Their ranks, none above those of the core.
    directions : Directions
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
        """That of the directions."""
        return self.directions.core

    def core_of(self, rank: Index) -> Array:
        """The core of one rank."""
        return self.core[tuple(map(slice, rank))]

    def maps_to(self, other: _LowRanks, rank: Index) -> list[Array] | None:
        """From the output directions of a rank to those of another group; None where they agree."""
        if other is self or not self.directions.bases:
            return None
        pairs = zip(self.directions.bases, other.directions.bases, rank[1:], strict=True)
        return [V.T @ U[:, :R] for U, V, R in pairs]

    def products(self, A: Array, maps: list[Array] | None = None) -> Array:
        """Inner products of the core of each part with the same entries of `A`, of shape (n,).

        Entries that `A` has fewer of than the core are zero.

        Parameters
        ----------
        A : array of shape (R0, n1, ...)
        maps : list of arrays of shape (R_i, n_i), optional
            From the output directions of `A` to those of the core.
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
    """The parts of low rank, by penalty."""
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
    """Rows of outputs, (k, D), in the directions of the output modes that are reduced."""
    if not directions.bases:
        return A
    A = namespace_of(A).reshape(A, (A.shape[0], *output_shape))
    return multi_mode_product(A, (None, *directions.bases), transposed=True)


def _times(G: Array, core: Array) -> Array:
    """``core x_0 G``."""
    xp, (R0, *rest) = namespace_of(core), core.shape
    return xp.reshape(G @ xp.reshape(core, (R0, math.prod(rest))), (G.shape[0], *rest))


def _with_ridge(path: RankPath, group: _LowRanks, alphas: Sequence[float]) -> Array:
    """Inner products of the held-out predictions of a group and of ridge fits, (n, n_ridge)."""
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
    """The weights of a mixture, and those for each fold that come from the other folds.

    Parameters
    ----------
    grams : array of shape (n_folds, n, n)
        Gram matrices of held-out residuals, the null model last.
    ridge : int, optional
        Number of the best ridge regression.

    Returns
    -------
    weights : array of shape (n,)
    fold_weights : array of shape (n_folds, n)
    """
    n_folds, n, _ = grams.shape
    # Models that agree in some folds share their weight, in place of one that rounding chooses.
    errors = np.diagonal(grams.mean(axis=0))
    grams = grams + (_TIE * errors.min() + _ROUNDING * errors.max()) * np.eye(n)
    group = np.arange(n_folds) * min(n_folds, _MAX_GROUPS) // n_folds
    sums = np.stack([grams[group == g].sum(axis=0) for g in range(group[-1] + 1)])
    total, n_groups = sums.sum(axis=0), len(sums)
    # With two groups each is left out by itself, and a single one has to judge its own weights.
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
    """The error of each fold with its own weights."""
    return np.array([quadratic_form(B, w) for B, w in zip(grams, weights, strict=True)])


def _shrunk(
    grams: np.ndarray, weights: np.ndarray, others: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights on the way to a target, as far as the cross-fitted error decreases."""
    away = others - target
    slope = sum(float(v @ B @ target) for B, v in zip(grams, away, strict=True))
    curvature = sum(float(v @ B @ v) for B, v in zip(grams, away, strict=True))
    if not curvature > 0:
        return weights, others
    share = min(max(-slope / curvature, 0.0), 1.0)
    return target + share * (weights - target), target + share * away


# ---------------------------------------------------------------- projection onto a convex hull


def quadratic_form(B: np.ndarray, w: np.ndarray) -> float:
    """``w' B w``, no smaller than what rounding leaves where long vectors cancel each other."""
    return max(float(w @ B @ w), 1e-14 * float(w @ np.abs(B) @ w))


def least_in_hull(B: np.ndarray, start: np.ndarray | None = None) -> np.ndarray:
    """Weights that add up to one, none negative, with the least ``w' B w``.

    Parameters
    ----------
    B : array of shape (n, n)
        Gram matrix of the corners; may be singular.
    start : array of shape (n,), optional
        Weights that are near to the answer.

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
        if not v @ slope < error - rounding:  # so that it ends
            return w
        w = v


def _least_within(B: np.ndarray, w: np.ndarray, active: list[int]) -> np.ndarray:
    """The best weights of the active corners; those whose weights vanish on the way leave."""
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
    """Weights of any sign that add up to one, with the least ``w' B w``."""
    # About the shortest corner, in units of the distances: w = e_j + sum_i z_i (e_i - e_j) / d_i.
    # Corners at no distance, the shortest one among them, have no say and no equation: rounding
    # would be their row, and no unit would suit it.
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
    """The solution of least norm of ``C z = rise``, for a Gram matrix that may be singular."""
    if len(rise) == 1:
        return rise / C[0]
    try:
        z = np.linalg.solve(C, rise)
    except np.linalg.LinAlgError:
        z = np.full_like(rise, np.inf)
    if np.abs(z).max(initial=0.0) < 1e6:  # well conditioned, or else small by chance
        return z
    return np.linalg.lstsq(C, rise, rcond=None)[0]
