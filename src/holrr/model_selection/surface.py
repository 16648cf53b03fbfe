"""The held-out error of every rank at once, exactly, from one decomposition for each penalty.

Take the full HOSVD ``Z = S x_0 U0 x_1 U1 ... x_p Up`` of a training problem. The fit of rank R
keeps the leading block of `S`, so the fits are nested and their held-out errors are cumulative
sums. With ``A`` the map from the core's input mode to predictions, ``G = A'A`` and
``H = A'Yv x_1 U1' ...`` over the held-out samples::

    inc = S * (diag(G) S + 2 tril(G, -1) S - 2 H)        (elementwise *, mode 0 along the rows)
    squared error of all ranks = ||Yv||^2 + cumulative sum of inc along every axis.

Nothing here knows whether the problem is primal, dual or that of a kernel. To cross-validate a new
kind of model, build for each fold the `Spectral` problem of its training part and the `HeldOut`
data in the coordinates of that problem, from moments or from features, and call `error_surface`.
All penalties share the products with the data: a penalty is a scaling of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..core.approximate import hosvd, safe_scale
from ..core.namespace import (
    HOST_LIMIT,
    Array,
    all_beside,
    all_to_numpy,
    device_of,
    eigh_top,
    is_numpy_array,
    namespace_of,
    on_host,
    to_numpy,
)
from ..core.spectral import Spectral
from ..core.tensor import gram, unfold
from ..core.threads import limit_threads
from .held_out import HeldOut

__all__ = ["RankPath", "Terms", "cumulative_sum", "error_surface", "extended", "rank_path"]
__all__ += ["rotated"]


def error_surface(
    problem: Spectral,
    held_out: HeldOut,
    alphas: Iterable[float],
    ranks: Sequence[int],
    *,
    subspaces: str = "fitted",
    out: np.ndarray | None = None,
    tick: Callable[[], object] = lambda: None,
) -> np.ndarray:
    """Held-out mean squared error for all penalties and all ranks up to the given ones.

    Parameters
    ----------
    problem : Spectral
        The training problem.
    held_out : HeldOut
        The held-out data in its coordinates.
    alphas : sequence of n_alphas floats
    ranks : sequence of int
        The largest rank of each mode, input mode first. With fewer entries than modes only these
        modes are cut: none for ridge regression, ``(R0,)`` for low-rank regression.
    subspaces : {"fitted", "response"}
        Where the output subspaces come from, as in `HOLRR`.
    out : array of shape (n_alphas, R0, ...), optional
        Where to put the result.
    tick : callable, optional
        Called after each penalty.

    Returns
    -------
    array of shape (n_alphas, R0, ...), on the host
        Entry ``[a, i, j, ...]`` belongs to the rank ``(i + 1, j + 1, ...)``. Ranks above what the
        problem supports repeat the error of those that it does.
    """
    alphas, ranks = list(alphas), tuple(ranks)
    surface = np.empty((len(alphas), *ranks)) if out is None else out
    path = rank_path(problem, held_out, ranks, subspaces)
    if not ranks:
        np.maximum(path.yy + path.ridge_errors(alphas), 0.0, out=surface)
        surface /= held_out.size
        for _ in alphas:
            tick()
        return surface
    path.prepare(alphas)
    for a, alpha in enumerate(alphas):
        # Rounding leaves errors of nearly exact fits a little below zero.
        block = to_numpy(_mean_errors(path.terms(alpha).errors(path.yy), held_out.size))
        surface[a, ...] = extended(block, ranks)
        tick()
    return surface


def _mean_errors(block: Array, size: float) -> Array:
    """Sums of squares as means, none below zero, in place where that is possible."""
    if not is_numpy_array(block):
        return namespace_of(block).clip(block, 0.0, None) / size
    np.maximum(block, 0.0, out=block)
    return np.divide(block, size, out=block)


def rank_path(
    problem: Spectral, held_out: HeldOut, ranks: tuple[int, ...], subspaces: str
) -> RankPath:
    """The terms of all penalties; held-out data of another form bring their own way to them."""
    make: type[RankPath] = getattr(held_out, "path", RankPath)
    return make(problem, held_out, ranks, subspaces)


def cumulative_sum(A: Array, axis: int) -> Array:
    """Running sums along an axis; in place, slice by slice, where that is quicker."""
    n, rest = A.shape[axis], math.prod(A.shape[axis + 1 :])
    if not is_numpy_array(A) or (rest < 16 and n > 32):
        return namespace_of(A).cumulative_sum(A, axis=axis)
    slices = A.reshape(-1, n, rest)
    for j in range(1, n):
        slices[:, j] += slices[:, j - 1]
    return A


def extended(block: np.ndarray, ranks: tuple[int, ...]) -> np.ndarray:
    """`block` with its last slices repeated up to the shape `ranks`."""
    if block.shape == ranks:
        return block
    pairs = zip(ranks, block.shape, strict=True)
    return block[np.ix_(*(np.minimum(np.arange(R), e - 1) for R, e in pairs))]


@dataclass(frozen=True, eq=False)
class Terms:
    """What the error of every truncation or weighting of a core is made of.

    Parameters
    ----------
    S, H : arrays of shape (R0, ..., Rp)
    M : array of shape (R0, R0)
        ``diag(G) + 2 tril(G, -1)``.
    """

    S: Array
    H: Array
    M: Array

    def errors(self, yy: float) -> Array:
        """Squared errors of all ranks; `yy` is that of predicting the mean."""
        block = self.increments()
        block[(0,) * block.ndim] += yy  # which every sum begins with
        for axis in reversed(range(block.ndim)):
            block = cumulative_sum(block, axis)
        return block

    def increments(self) -> Array:
        """``inc``: the sum over a leading block is the excess error of the fit of that rank."""
        xp, S = namespace_of(self.S), self.S
        inc = xp.reshape(self.M @ xp.reshape(S, (S.shape[0], -1)), tuple(S.shape))
        inc -= 2 * self.H
        inc *= S
        return inc


class RankPath:
    """What the penalties of one training problem share, and the increments for each of them."""

    def __init__(
        self, problem: Spectral, held_out: HeldOut, ranks: tuple[int, ...], subspaces: str
    ):
        self.s, self.root, self.scale = problem.s, problem.root, safe_scale(problem.T)
        self.T = problem.T if self.scale == 1.0 else problem.T / self.scale
        self.C, self.B, self.yy = held_out.C, held_out.B, held_out.yy
        # Energies above the product of the other modes' sizes are zero: nothing to decompose.
        rest = [_rest(self.T.shape, mode) for mode in range(len(ranks))]
        fitted = [subspaces == "fitted" or mode == 0 for mode in range(len(ranks))]
        self.ranks = [
            min(R, d, n) if free else R
            for R, d, n, free in zip(ranks, self.T.shape, rest, fitted, strict=False)
        ]
        self.fixed = None
        if not all(fitted):
            assert problem.response_grams is not None
            grams = problem.response_grams
            self.fixed = [eigh_top(G, R)[1] for G, R in zip(grams, self.ranks[1:], strict=True)]
        self.found: dict[float, list[Array]] = {}

    def prepare(self, alphas: Sequence[float]) -> None:
        """Find the bases of many penalties at once, where an accelerator waits for each of them."""
        free = range(1 if self.fixed is not None else len(self.ranks))
        sizes, tall = self.T.shape, self.T.shape[0] > _rest(self.T.shape, 0)
        if on_host(self.T) or tall or max(sizes[mode] for mode in free) > HOST_LIMIT:
            return
        rows = [self.row_grams[mode - 1] for mode in free[1:]]
        if any(G is None for G in rows):
            return
        xp = namespace_of(self.T)
        d = xp.stack([self.s / self.root(alpha) for alpha in alphas])
        grams = [self.input_gram * d[:, :, None] * d[:, None, :]]
        for G, n in zip(rows, sizes[1:], strict=False):
            grams.append(xp.reshape((d * d) @ xp.reshape(G, (-1, n * n)), (-1, n, n)))
        pairs = zip(all_to_numpy(grams), self.ranks, strict=False)
        with limit_threads(1):
            bases = [np.stack([eigh_top(each, R)[1] for each in G]) for G, R in pairs]
        there: list[Array] = all_beside(bases, self.T)
        self.found = {alpha: [U[a, ...] for U in there] for a, alpha in enumerate(alphas)}

    def terms(self, alpha: float) -> Terms:
        """Core, held-out products and Gram matrix for one penalty."""
        xp = namespace_of(self.T)
        root = self.root(alpha)
        found = self.found.get(alpha)
        U0 = self._input_basis(root) if found is None else found[0]
        A = U0 / root[:, None]  # feature coordinates to core coordinates
        G = A.T @ self.C @ A
        V = U0 * (self.s / root * self.scale)[:, None]
        if len(self.ranks) < self.T.ndim:
            return self._matrix_terms(V, A, G)
        others = self.output_bases(root) if found is None or self.fixed is not None else found[1:]
        S, H = self._rotated(V, A, others)
        return Terms(S, H, xp.tril(G) + xp.tril(G, k=-1))

    def ridge_errors(self, alphas: Iterable[float]) -> np.ndarray:
        """For each penalty the sum of all increments; the rows `c` turn those of `T` into fits."""
        xp = namespace_of(self.T)
        roots = [self.root(alpha) for alpha in alphas]
        c = xp.stack([self.s / root / root * self.scale for root in roots])
        squares = xp.sum((c @ (self.C * self.input_gram)) * c, axis=1)
        return to_numpy(squares - 2 * (c @ xp.linalg.diagonal(self._cross)))

    def products(self, W: Array) -> tuple[Array, Array]:
        """``P'P`` and ``P'Yv`` of the held-out predictions ``P = F W``, for `W` of shape (r, k)."""
        return W.T @ self.C @ W, W.T @ unfold(self.B, 0)

    # ------------------------------------------------------------ bases

    @cached_property
    def input_gram(self) -> Array:
        return gram(self.T, 0)

    @cached_property
    def row_grams(self) -> list[Array | None]:
        """For each output mode the Gram matrix of every row of `T`: those of Z are weighted sums.

        None where they would take more than twice the memory of `T` itself.
        """
        xp = namespace_of(self.T)
        found: list[Array | None] = []
        for mode in range(1, self.T.ndim):
            d, size = self.T.shape[mode], _rest(self.T.shape, 0)
            if d * d > 2 * size:
                found.append(None)
                continue
            rows = xp.reshape(xp.moveaxis(self.T, mode, 1), (self.T.shape[0], d, size // d))
            found.append(xp.matmul(rows, xp.permute_dims(rows, (0, 2, 1))))
        return found

    def _input_basis(self, root: Array) -> Array:
        d, R = self.s / root, self.ranks[0]
        if self.T.shape[0] > _rest(self.T.shape, 0):  # a tall unfolding: through its columns
            return hosvd(_scaled_rows(self.T, d), self._only(0), modes=(0,)).tucker.factors[0]
        return eigh_top(self.input_gram * d[:, None] * d, R)[1]

    def output_bases(self, root: Array) -> list[Array]:
        if self.fixed is not None:
            return self.fixed
        xp, d = namespace_of(self.T), self.s / root
        Z = None
        bases = []
        for mode in range(1, self.T.ndim):
            G, R = self.row_grams[mode - 1], self.ranks[mode]
            if G is not None:
                n = self.T.shape[mode]
                G = xp.reshape((d * d) @ xp.reshape(G, (G.shape[0], n * n)), (n, n))
            else:
                Z = _scaled_rows(self.T, d) if Z is None else Z
                if self.T.shape[mode] > _rest(self.T.shape, mode):
                    bases.append(hosvd(Z, self._only(mode), modes=(mode,)).tucker.factors[mode])
                    continue
                G = gram(Z, mode)
            bases.append(eigh_top(G, R)[1])
        return bases

    def _only(self, mode: int) -> list[int]:
        return [self.ranks[mode] if i == mode else d for i, d in enumerate(self.T.shape)]

    # ------------------------------------------------------------ products

    def _rotated(self, M: Array, A: Array, bases: Sequence[Array]) -> tuple[Array, Array]:
        """The core ``S = T x_0 M' x_1 U1' ...`` and ``H = B x_0 A' x_1 U1' ...``."""
        return rotated(unfold(self.T, 0).T @ M, unfold(self.B, 0).T @ A, bases)

    @cached_property
    def _cross(self) -> Array:
        """``T_(0) B_(0)'``."""
        return unfold(self.T, 0) @ unfold(self.B, 0).T

    def _matrix_terms(self, V: Array, A: Array, G: Array) -> Terms:
        """Terms along the input rank, the outputs in full: small matrices only.

        The rows of the core are orthogonal. So nothing is left of ``tril(G, -1) S`` when the
        increments are summed over the outputs, and the rows' norms can stand for the rows.
        """
        xp = namespace_of(self.T)
        # Rounding can leave less than nothing of an energy.
        norm = xp.sqrt(xp.clip(xp.sum(V * (self.input_gram @ V), axis=0), 0.0, None))
        inner = xp.sum(V * (self._cross @ A), axis=0)
        one = xp.ones_like(norm)
        H = xp.where(norm > 0, inner / xp.where(norm > 0, norm, one), 0 * one)
        eye = xp.eye(G.shape[0], dtype=G.dtype, device=device_of(G))
        return Terms(norm, H, G * eye)


def rotated(A: Array, B: Array, bases: Sequence[Array]) -> tuple[Array, Array]:
    """Matrices of shape (D, k) as tensors ``A' x_1 U1' ...`` and ``B' x_1 U1' ...``.

    Side by side: each step multiplies along the leading mode, which becomes the last. That is one
    matrix product without a copy, and after all modes their order is the old one.
    """
    xp, k = namespace_of(A), A.shape[1]
    both = xp.concat([A, B], axis=1)
    for U in bases:
        both = xp.reshape(both, (U.shape[0], -1)).T @ U
    both = xp.reshape(both, (2 * k, *(U.shape[1] for U in bases)))
    return both[:k, ...], both[k:, ...]


def _scaled_rows(T: Array, d: Array) -> Array:
    """``T x_0 diag(d)``."""
    return T * namespace_of(T).reshape(d, (-1, *(1,) * (T.ndim - 1)))


def _rest(shape: Sequence[int], mode: int) -> int:
    """Product of the sizes of the other modes."""
    return math.prod(shape[:mode]) * math.prod(shape[mode + 1 :])
