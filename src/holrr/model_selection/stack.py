"""Stacking: the best mixture of the fits of all ranks, from the terms of the error surface.

The fits of all ranks at one penalty are leading blocks of one core. So a mixture of them is a mask
`m` on that core, and its held-out error is convex in `m`. With the terms of `RankPath`,

    E(m)  =  mean over the folds of  (||Yv||^2 + <S m, G (S m)> - 2 <S m, H>) / size .

Over the mixtures of all ranks and the null model, the linear step of Frank-Wolfe asks which block
has the least sum of the gradient: a cumulative sum along every axis, as for the surface. The blocks
found are kept and their weights are solved for again (fully corrective). The gradient is linear in
these weights, so that a block costs one product with the core of each fold.

The number of blocks is chosen by cross-fitting: each fold evaluates the mixture of the first L
blocks with the weights that the other folds give it. The first block is the best single rank, so
that nothing worse is chosen.

The weights are the projection of the origin onto the convex hull of the residuals, by Wolfe's
active set method (`project_onto_hull`).

References
----------
M. Jaggi (2013). Revisiting Frank-Wolfe: projection-free sparse convex optimization. ICML.

P. Wolfe (1976). Finding the nearest point in a polytope. Mathematical Programming 11, 128-149.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.namespace import (
    Array,
    all_to_numpy,
    asarray_like,
    device_of,
    is_numpy_array,
    namespace_of,
    on_host,
    to_numpy,
)
from .surface import HeldOut, Terms, cumulative_sum

__all__ = ["MAX_BLOCKS", "FoldTerms", "Stack", "best_stack", "mask_of", "project_onto_hull"]
__all__ += ["quadratic_form", "stack_ranks"]

Index = tuple[int, ...]

# Longest path of blocks.
MAX_BLOCKS = 20
# Penalties in a row that are worse than a neighbour before a search along them ends.
_PATIENCE = 2


@dataclass(frozen=True, eq=False)
class FoldTerms:
    """The terms of one fold at one penalty, in arrays of NumPy or on an accelerator.

    Folds may support different ranks; what one lacks counts as zero.
    """

    S: Array  # (R0, ...)
    H: Array  # (R0, ...)
    G: Array  # (R0, R0), symmetric
    yy: float  # squared norm of the held-out outputs
    size: float  # what sums of squares are divided by

    @classmethod
    def of(cls, terms: Terms, held_out: HeldOut) -> FoldTerms:
        """From what `RankPath.terms` gives."""
        parts = (terms.S, terms.H, terms.M)
        S, H, M = (to_numpy(A) if on_host(A) else A for A in parts)
        return cls(S, H, (M + M.T) / 2, held_out.yy, held_out.size)  # M = diag(G) + 2 tril(G, -1)


@dataclass(frozen=True, eq=False)
class Stack:
    """A mixture of ranks.

    The cross-fitted error is that of mixtures of as many blocks whose weights come from the other
    folds. On the path the null model counts as a block.
    """

    blocks: tuple[Index, ...]
    weights: np.ndarray  # positive; what their sum lacks of one is the weight of the null model
    mask: np.ndarray  # the weights of the blocks that keep an entry of the core, up to their ranks
    mse: float  # mean over the folds
    cross_fitted_mse: float
    path_mse: np.ndarray  # for every number of blocks
    path_cross_fitted_mse: np.ndarray
    gap: float  # no mixture has an error below ``path_mse[-1] - gap``
    fold_masks: tuple[np.ndarray, ...]  # with the weights from the other folds


def stack_ranks(
    folds: Sequence[FoldTerms],
    start: Index,
    *,
    candidates: np.ndarray | None = None,
    bound: float = math.inf,
    tol: float = 1e-6,
    patience: float = 5,
    max_blocks: float = MAX_BLOCKS,
) -> Stack | None:
    """The best mixture of ranks at one penalty, or None if its error must exceed a bound.

    Parameters
    ----------
    folds : sequence of FoldTerms
        A single fold has to judge its own weights, so that the longest path is taken.
    start : tuple of int
        The best single rank.
    candidates : bool array of shape (R0, ...), optional
        Which ranks may be used; all by default.
    bound : float
        Give up once it is certain that the cross-fitted error is larger.
    tol, patience, max_blocks : float
        Stop where the gap is at most `tol` times the error, where the last `patience` blocks have
        not lowered the cross-fitted error any further, or with so many blocks.
    """
    path = _Path(folds, start, candidates)
    while True:
        block, gap = path.step()
        # The cross-fitted error is not below the least error: see `_Path.cross_fit`.
        if not path.mse[-1] - gap <= bound + path.rounding:
            return None
        n, best = len(path.blocks), int(np.argmin(path.cross_fitted)) + 1
        converged = gap <= tol * path.mse[-1] + path.rounding or block in path.blocks
        if converged or n >= max_blocks or n >= best + patience:
            return path.stack(best, gap)
        path.add(block)


# ---------------------------------------------------------------- the path of blocks


class _Path:
    """The blocks found so far, and all that their mixtures need.

    The weights add up to one, so that the residual of a mixture is that mixture of the residuals of
    its blocks, and its error is ``w' B w`` with the Gram matrix `B` of these. The null model is the
    block that keeps nothing.
    """

    def __init__(self, folds: Sequence[FoldTerms], start: Index, candidates: np.ndarray | None):
        K, self.folds, self.candidates = len(folds), folds, candidates
        self.shares = np.array([1 / (K * fold.size) for fold in folds])
        self.yy = self.shares * np.array([fold.yy for fold in folds])
        self.rounding = 1e-14 * float(self.yy.sum())  # of differences of sums of this size
        self.others = np.ones((K, K)) - np.eye(K) if K > 1 else np.ones((1, 1))
        self.groups = _groups(folds, self.shares)
        # <S b, H> for every block b, summed over the folds.
        caps = np.max([start, *(fold.S.shape for fold in folds)], axis=0)
        sums = self._zeros(caps.tolist() if candidates is None else candidates.shape)
        for share, fold in zip(self.shares, folds, strict=True):
            sums[_leading(fold.S.shape)] += float(share) * fold.S * fold.H
        self.linear_sums = _block_sums(sums)
        self.blocks: list[Index] = []
        self.products: list[Array | None] = []  # S * G(S b), summed over the folds
        self.linear = np.empty((K, 0))  # <S b, H> for each fold
        self.grams = np.empty((K, 0, 0))  # B for each fold
        self.weights = [np.empty(0)]  # for each number of blocks
        self.fold_weights = [np.empty(0)] * K
        self.mse: list[float] = []
        self.cross_fitted: list[float] = []
        self.path_of_fold_weights: list[list[np.ndarray]] = []
        self.add(tuple(int(R) for R in start))

    def _zeros(self, shape: Iterable[int]) -> Array:
        """Zeros on the device of the terms."""
        S = self.folds[0].S
        return namespace_of(S).zeros(tuple(shape), dtype=S.dtype, device=device_of(S))

    def add(self, block: Index) -> None:
        """Add a block and solve for the weights."""
        self.blocks.append(block)
        (K, n), product = self.linear.shape, None
        inner, linear = np.zeros((K, n + 1)), np.zeros((K, 1))
        if all(block):
            product = self._zeros((self.linear_sums.shape[0], *block[1:]))
            found = []
            for group in self.groups:
                part, ones = _products(*group, block)
                product[_leading(part.shape[1:])] += _sum_of_folds(part)
                found += [_corner_sums(part, self.blocks), ones]
            found = all_to_numpy(found)
            inner = np.concatenate(found[::2])
            linear = np.concatenate(found[1::2]) * self.shares[:, None]
        self.products.append(product)
        self.linear = np.append(self.linear, linear, axis=1)
        self.grams = np.pad(self.grams, ((0, 0), (0, 1), (0, 1)))
        row = inner - self.linear - linear + self.yy[:, None]
        self.grams[:, n, :] = self.grams[:, :, n] = row
        B = self.grams.sum(axis=0)
        self.weights.append(project_onto_hull(B, self.weights[-1]))
        self.mse.append(quadratic_form(B, self.weights[-1]))
        self.cross_fitted.append(self.cross_fit())
        self.path_of_fold_weights.append(self.fold_weights)

    def cross_fit(self) -> float:
        """The error with the weights for each fold from the others.

        It is not below that of the best mixture `m` of these blocks. With `F` the sum of all errors
        and `v` the best mixture for the others, whose sum is ``F - E_k``:
        E_k(v) = F(v) - (F - E_k)(v) >= F(m) - (F - E_k)(m) = E_k(m).
        """
        B = np.tensordot(self.others, self.grams, 1)
        self.fold_weights = list(map(project_onto_hull, B, self.fold_weights))
        return sum(map(quadratic_form, self.grams, self.fold_weights))

    def step(self) -> tuple[Index, float]:
        """The block that the gradient points to, and the Frank-Wolfe gap."""
        slope = self._slope()
        xp, shape = namespace_of(slope), tuple(slope.shape)
        slope = xp.reshape(slope, (-1,))
        if self.candidates is not None:
            wanted = asarray_like(self.candidates.reshape(-1), slope)
            slope = xp.where(wanted, slope, xp.full_like(slope, math.inf))
        least = float(xp.min(slope))
        # Of blocks that rounding cannot tell apart, such as ranks above the product of the others,
        # the first: it is no larger than they are.
        room = 1e-12 * abs(least) + 1e-14 * float(self.yy.sum())
        place = int(xp.argmax(xp.astype(slope <= least + room, xp.int8)))
        least = min(least, 0.0)
        here = self.mse[-1] - self.yy.sum() + self.linear.sum(axis=0) @ self.weights[-1]
        gap = 2 * max(float(here - least), 0.0)
        index = np.unravel_index(place, shape)
        return tuple(int(i) + 1 if least < 0 else 0 for i in index), gap

    def _slope(self) -> Array:
        """For every block its product with half of the gradient."""
        pairs = zip(self.weights[-1], self.products, strict=True)
        used = [(float(w), product) for w, product in pairs if w > 0 and product is not None]
        if not used:
            return -self.linear_sums
        sums = self._zeros(np.max([product.shape for _, product in used], axis=0).tolist())
        for w, product in used:
            sums[_leading(product.shape)] += w * product
        sums = _block_sums(sums)
        # Beyond the largest rank in use the quadratic part is constant.
        slope = namespace_of(sums).empty_like(self.linear_sums)
        sides = [((slice(n), slice(n)), (slice(n - 1, n), slice(n, None))) for n in sums.shape]
        for parts in itertools.product(*sides):
            here, there = zip(*parts, strict=True)
            if is_numpy_array(sums):
                np.subtract(sums[here], self.linear_sums[there], out=slope[there])
            else:
                slope[there] = sums[here] - self.linear_sums[there]
        return slope

    def stack(self, n: int, gap: float) -> Stack:
        """The mixture of the first `n` blocks."""
        pairs = zip(self.blocks[:n], self.weights[n], strict=True)
        kept = [(block, float(w)) for block, w in pairs if w > 0 and all(block)]
        blocks, weights = tuple(block for block, _ in kept), np.array([w for _, w in kept])
        order = self.linear_sums.ndim
        mask = mask_of(blocks, weights, order)
        paths = np.array(self.mse), np.array(self.cross_fitted)
        rows = [i for i in range(n) if all(self.blocks[i])]
        used = [self.blocks[i] for i in rows]
        masks = tuple(mask_of(used, w[rows], order) for w in self.path_of_fold_weights[n - 1])
        errors = self.mse[n - 1], self.cross_fitted[n - 1]
        return Stack(blocks, weights, mask, *errors, *paths, gap, masks)


def mask_of(blocks: Sequence[Index], weights: Iterable[float], order: int) -> np.ndarray:
    """The weighted sum of leading blocks of ones; zero, of size one, where there are none."""
    mask = np.zeros(np.max(blocks, axis=0) if len(blocks) else (1,) * order)
    for block, w in zip(blocks, weights, strict=True):
        mask[_leading(block)] += w
    return mask


def _leading(shape: Iterable[int]) -> tuple[slice, ...]:
    return tuple(slice(int(R)) for R in shape)


def _block_sums(A: Array) -> Array:
    """Sum of every leading block of `A`, which is overwritten."""
    for axis in reversed(range(A.ndim)):
        A = cumulative_sum(A, axis)
    return A


def _groups(folds: Sequence[FoldTerms], shares: np.ndarray) -> list[tuple[Array, Array, Array]]:
    """`S`, `H` and `G` times its share with an axis for the folds: all of them on an accelerator.

    There, where it is launches that cost time, they are padded with zeros to the same shape. On the
    host each fold is by itself, and nothing is copied.
    """
    pairs = zip(folds, map(float, shares), strict=True)
    parts = [(fold.S, fold.H, share * fold.G) for fold, share in pairs]
    xp = namespace_of(folds[0].S)
    if on_host(folds[0].S):
        return [(S[None, ...], H[None, ...], G[None, ...]) for S, H, G in parts]

    def padded(arrays: Sequence[Array]) -> Array:
        shape = np.max([A.shape for A in arrays], axis=0).tolist()
        out = xp.zeros((len(arrays), *shape), dtype=arrays[0].dtype, device=device_of(arrays[0]))
        for k, A in enumerate(arrays):
            out[(k, *_leading(A.shape))] = A
        return out

    S, H, G = map(padded, zip(*parts, strict=True))
    return [(S, H, G)]


def _sum_of_folds(A: Array) -> Array:
    return A[0, ...] if A.shape[0] == 1 else namespace_of(A).sum(A, axis=0)


def _corner_sums(A: Array, blocks: Sequence[Index]) -> Array:
    """Sum of some leading blocks of the `A` of each fold: one matrix product, then small ones."""
    xp, K, n = namespace_of(A), A.shape[0], len(blocks)
    inside = [
        asarray_like((np.arange(d) < np.reshape(R, (-1, 1))).astype(float), A)
        for d, R in zip(A.shape[1:], zip(*blocks, strict=True), strict=True)
    ]
    sums = inside[0] @ xp.reshape(A, (K, A.shape[1], -1))
    for ones in reversed(inside[1:]):
        sums = (xp.reshape(sums, (K, n, -1, ones.shape[1])) @ ones[:, :, None])[..., 0]
    return xp.reshape(sums, (K, n))


def _products(S: Array, H: Array, G: Array, block: Index) -> tuple[Array, Array]:
    """``S * G(S b)``, which vanishes beyond the block but for the input mode, and ``<S b, H>``."""
    xp, inside = namespace_of(S), (slice(None), *_leading(block))
    K, H = S.shape[0], H[inside]
    rows = xp.reshape(S[inside], (K, H.shape[1], -1))
    product = xp.reshape(G[:, :, : H.shape[1]] @ rows, (K, -1, *H.shape[2:]))
    product *= S[(slice(None), slice(None), *_leading(block[1:]))]
    linear = xp.reshape(rows, (K, 1, -1)) @ xp.reshape(H, (K, -1, 1))
    return product, linear[:, 0, :]


# ---------------------------------------------------------------- projection onto a convex hull


def quadratic_form(B: np.ndarray, w: np.ndarray) -> float:
    """``w' B w``, no smaller than what rounding leaves where long vectors cancel each other."""
    return max(float(w @ B @ w), 1e-14 * float(w @ np.abs(B) @ w))


def project_onto_hull(B: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Weights that add up to one, none negative, with the least ``w' B w``.

    Parameters
    ----------
    B : array of shape (n, n)
        Gram matrix of the corners; may be singular.
    w : array of shape (n - 1,)
        The answer for all corners but the last.

    Examples
    --------
    >>> project_onto_hull(np.diag([1.0, 3.0]), np.ones(1))
    array([0.75, 0.25])
    """
    w = np.append(w, 0.0 if w.size else 1.0)
    active = np.flatnonzero(w).tolist()
    slope = B @ w
    while True:
        j, error = int(np.argmin(slope)), w @ slope
        rounding = np.finfo(float).eps * (w @ np.abs(B) @ w)
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
        target, now = _affine(B[np.ix_(active, active)]), w[active]
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
    C, rise = C[np.ix_(others, others)] / d / d[:, None], (B[j, j] - B[others, j]) / d
    w[others] = np.linalg.lstsq(C, rise, rcond=None)[0] / d
    w[j] = 1 - w.sum()
    return w


# ---------------------------------------------------------------- the best penalty


def best_stack(
    alphas: np.ndarray,
    least: np.ndarray,
    stack_at: Callable[[Index, float], Stack | None],
    is_promising: Callable[[int, tuple[Index, Stack] | None], bool] = lambda candidate, best: True,
) -> tuple[tuple[Index, Stack], dict[Index, float]]:
    """The place ``(candidate, alpha)`` of the best stack with that stack, and all errors computed.

    For each candidate the search goes from the penalty of the best single rank in both directions,
    as long as stacks get better.

    Parameters
    ----------
    alphas : array of shape (n_alphas,)
    least : array of shape (n_candidates, n_alphas)
        Least error of a single rank at each place.
    stack_at : callable
        Gives the stack of a place, or None if its error must exceed a bound.
    is_promising : callable
        Whether the other penalties of a candidate are tried after the stack of the first one
        exceeded the bound, given the best stack so far.
    """
    best: tuple[Index, Stack] | None = None
    found: dict[Index, float] = {}
    for candidate in map(int, np.argsort(np.min(least, axis=1), kind="stable")):
        promising = is_promising(candidate, best)
        errors: dict[int, float] = {}
        for a in _around(alphas, int(np.argmin(least[candidate])), errors):
            place = (candidate, a)
            bound = np.inf if best is None else best[1].cross_fitted_mse
            stack = stack_at(place, bound)
            found[place] = errors[a] = np.inf if stack is None else stack.cross_fitted_mse
            if stack is not None and (best is None or errors[a] < best[1].cross_fitted_mse):
                best = place, stack
            if stack is None and len(errors) == 1 and not promising:
                break
    if best is None:
        raise ValueError("No mixture of ranks has a finite held-out error.")
    return best, found


def _around(alphas: np.ndarray, start: int, errors: dict[int, float]) -> Iterator[int]:
    """The start, then its neighbours one by one, in both directions while they get better.

    The caller puts the error of each into `errors`.
    """
    order = np.argsort(alphas)
    middle = int(np.flatnonzero(order == start)[0])
    yield start
    for side in (order[middle + 1 :], order[:middle][::-1]):
        least, worse = errors[start], 0
        for a in map(int, side):
            if worse >= _PATIENCE:
                break
            yield a
            worse = 0 if errors[a] < least else worse + 1
            least = min(least, errors[a])
