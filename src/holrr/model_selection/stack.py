"""Mixtures of models: the models that are mixed, products of their residuals, and weights.

The error surface determines the ranks that are mixed (`path_of_ranks`): the best rank, and for a
few ranks of each mode the best rank with this one.

The weights are not negative and add up to one. The residual of a mixture is therefore the mixture
of the residuals, and its held-out error is ``w' B w``, where B is the Gram matrix of the residuals
(`fold_gram`). Its minimisation is a quadratic programme: the projection of the origin onto a convex
hull (`least_in_hull`).

References
----------
L. Breiman (1996). Stacked regressions. Machine Learning 24, 49-64.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from ..core.average import average_of_penalties
from ..core.namespace import Array, all_to_numpy, asarray_like, is_numpy_array, namespace_of
from ..core.tensor import multi_mode_product, unfold
from .grid import RankGrid
from .surface import Directions, RankPath, cumulative_sum

__all__ = ["MEAN", "Part", "averaged_about", "fold_gram", "least_in_hull", "path_of_ranks"]
__all__ += ["quadratic_form"]

Index = tuple[int, ...]

# Number of ranks of each mode whose best models are mixed.
_RANKS_OF_MODE = 4
# Penalties that are averaged for each output, in decades from a common penalty.
_DECADES = np.arange(-3.0, 3.5)
# Up to this size, a call of NumPy costs as much as its arithmetic.
_SMALL = 2**12


@dataclass(frozen=True)
class Part:
    """Model that can be mixed with others.

    Parameters
    ----------
    place : int or None
        Index of its penalty in the grid.
    rank : tuple of int, or None
        Rank with one entry for each mode that is reduced; None for ridge regression.
    by_output : bool
        Whether ridge regression averages penalties about this one for each output.
    """

    place: int | None
    rank: Index | None
    by_output: bool = False


# The mean of the training outputs.
MEAN = Part(None, ())


def averaged_about(alphas: np.ndarray, place: int) -> np.ndarray:
    """Return the indices of penalties of the grid about whole decades from one of them."""
    if not alphas[place] > 0:
        return np.array([place])
    positive = np.flatnonzero(alphas > 0)
    away = np.log10(alphas[positive]) - math.log10(alphas[place])
    # Of two penalties at the same distance, up to rounding, the smaller one is near.
    distances = np.round(np.abs(away - _DECADES[:, None]), 6)
    nearest = [positive[np.lexsort((away, distance))[0]] for distance in distances]
    return np.unique([*nearest, place])


# ---------------------------------------------------------------- ranks that are mixed


def path_of_ranks(
    errors: np.ndarray,
    n_parameters: np.ndarray,
    best: Index,
    full: float = math.nan,
    others: Sequence[Index] | None = None,
) -> tuple[Index, ...]:
    """Return the best rank and, for a few ranks of each mode, the best rank with this one.

    Parameters
    ----------
    errors : array of shape (R0, ...)
        Mean held-out errors of all ranks at one penalty; NaN for ranks that are not candidates.
    n_parameters : array of shape (R0, ...)
        Number of parameters of each rank.
    best : tuple of int
        Best rank.
    full : float, optional
        Error of ridge regression at this penalty. Ranks with the same error are left out, since
        they are ridge regression.
    others : sequence of ranks, optional
        Other ranks that are mixed. By default, they are chosen by `errors`.
    """
    ranks = [best] if others is None else [best, *others]
    for mode, size in enumerate(_distinct_sizes(errors.shape) if others is None else ()):
        away = tuple(i for i in range(errors.ndim) if i != mode)
        there = 1 + np.flatnonzero(np.isfinite(errors).any(axis=away))
        there = there[there <= max(size, there[0])]
        some = np.geomspace(1, there.size, min(_RANKS_OF_MODE, there.size)).round().astype(int)
        for R in there[np.unique(some) - 1]:
            index = list(_least(*(np.take(A, R - 1, axis=mode) for A in (errors, n_parameters))))
            index.insert(mode, int(R) - 1)
            ranks.append(tuple(i + 1 for i in index))
    found = _different(ranks, errors, n_parameters)
    return tuple(R for R, error in found if not abs(error - full) <= 1e-12 * abs(full))


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


# ---------------------------------------------------------------- Gram matrices of residuals


def fold_gram(
    path: RankPath,
    parts: Sequence[Part],
    alphas: np.ndarray,
) -> tuple[np.ndarray, dict[int, Directions]]:
    """Compute the mean products of the held-out residuals of all parts in a fold.

    The products of fits of low rank and of ridge regression follow from products of their cores,
    which have the size of the ranks. No predictions are computed. Products of fits of low rank with
    fits at other penalties, and of fits that average penalties about different ones, are not
    needed, and are NaN.

    Parameters
    ----------
    path : RankPath
        Error surface of the fold.
    parts : sequence of Part
        Models, among which the mean is last.
    alphas : array of shape (n_alphas,)
        Penalties in the units of the scaled data.

    Returns
    -------
    gram : array of shape (n_parts, n_parts)
        Gram matrix of the residuals, divided by their number.
    directions : dict
        `Directions` of the parts of low rank, by the index of their penalty.
    """
    n, held_out = len(parts), path.held_out
    groups = _low_ranks(path, parts, alphas)
    # Indices of parts, indices of other parts (empty for the outputs), and inner products.
    found: list[tuple[list[int], list[int], Array]] = []
    every = list(enumerate(parts))
    ridge = [i for i, part in every if part.rank is None and not part.by_output]
    scaled = [float(alphas[parts[i].place]) for i in ridge]
    for group in groups:
        found.append((group.where, [], group.products(group.outputs)))
        G = group.inner @ group.directions.left
        for i, rank in zip(group.where, group.ranks, strict=True):
            A = _times(G[:, : rank[0]], group.core_of(rank))
            found.append((group.where, [i], group.products(A)))
        here = [i for i in ridge if parts[i].place == group.place]
        if here:
            found.append((group.where, here, _with_ridge(path, group, float(alphas[group.place]))))
    for i, part in every:
        if part.by_output and part.place is not None:
            some = [float(alpha) for alpha in alphas[averaged_about(alphas, part.place)]]
            found += _with_averages(path, groups, ridge, scaled, i, some)
    squares, linear = np.full((n, n), np.nan), np.zeros(n)
    mean = [i for i, part in every if part == MEAN]
    squares[mean] = squares[:, mean] = 0.0
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
        squares[np.ix_(ridge, ridge)], linear[ridge] = path.ridge_products(scaled)
    B = held_out.yy + squares - linear[:, None] - linear
    return B / held_out.size, {group.place: group.directions for group in groups}


def _with_averages(
    path: RankPath,
    groups: Sequence[_LowRanks],
    ridge: list[int],
    alphas: Sequence[float],
    part: int,
    averaged: Sequence[float],
) -> list[tuple[list[int], list[int], Array]]:
    """Return products of ridge regression that averages penalties, as in `fold_gram`."""
    xp, held_out = namespace_of(path.T), path.held_out
    shape = tuple(path.T.shape[1:])
    W = unfold(average_of_penalties(path.problem, averaged)[0], 0)
    CW, BW = held_out.times(W)
    found: list[tuple[list[int], list[int], Array]] = [
        ([part], [], xp.reshape(BW, (1,))),
        ([part], [part], xp.reshape(xp.sum(W * CW), (1,))),
    ]
    for group in groups:
        A = _in_directions(group.directions.left.T @ CW, group.directions, shape)
        found.append((group.where, [part], group.products(A)))
    if ridge:
        rows = xp.sum(unfold(path.T, 0) * CW, axis=1)
        scales = xp.stack([path.ridge_scale(alpha) for alpha in alphas])
        found.append((ridge, [part], scales @ rows))
    return found


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

    def products(self, A: Array) -> Array:
        """Return the inner products of the core of each part with `A`, of shape (n,).

        Entries of the core outside the shape of `A` count as zero.

        Parameters
        ----------
        A : array of shape (R0, n1, ...)
            Array in output directions.
        """
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
    places = [part.place for part in parts if part.rank and part.place is not None]
    for place in dict.fromkeys(places):
        some = [(i, part.rank) for i, part in enumerate(parts) if part.place == place]
        low = [(i, rank) for i, rank in some if rank]
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


def _with_ridge(path: RankPath, group: _LowRanks, alpha: float) -> Array:
    """Return inner products of held-out predictions of a group and of the ridge fit, (n,)."""
    T, shape = unfold(path.T, 0), tuple(path.T.shape[1:])
    T = T * path.ridge_scale(alpha)[:, None]
    return group.products(_in_directions(group.inner @ T, group.directions, shape))


# ---------------------------------------------------------------- projection onto a convex hull


def quadratic_form(B: np.ndarray, w: np.ndarray) -> float:
    """Return ``w' B w``, at least the rounding error of the sum if its terms cancel."""
    return max(float(w @ B @ w), 1e-14 * float(w @ np.abs(B) @ w))


def least_in_hull(B: np.ndarray) -> np.ndarray:
    """Minimise ``w' B w`` over weights that are at least zero and add up to one.

    Least squares with weights that are at least zero solves the problem: for ``B = R'R``, the sum
    ``||R w||^2 + (1 - sum w)^2`` is least at a multiple of the solution.

    Parameters
    ----------
    B : array of shape (n, n)
        Gram matrix of the corners, which may be singular.

    Examples
    --------
    >>> least_in_hull(np.diag([1.0, 3.0]))
    array([0.75, 0.25])
    """
    n, errors = len(B), np.diagonal(B)
    best = int(np.argmin(errors))
    if not errors[best] > 0:  # a corner at the origin
        return np.eye(n)[best]
    B = B / errors[best]
    try:
        R = np.linalg.cholesky(B).T
    except np.linalg.LinAlgError:
        lam, V = np.linalg.eigh(B)
        R = np.sqrt(np.maximum(lam, 0.0))[:, None] * V.T
    w = nnls(np.vstack([R, np.ones(n)]), np.append(np.zeros(n), 1.0))[0]
    return w / w.sum()
