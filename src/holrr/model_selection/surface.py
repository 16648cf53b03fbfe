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
from functools import cached_property
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..core.approximate import hosvd, safe_scale
from ..core.namespace import (
    Array,
    all_beside,
    all_to_numpy,
    asarray_like,
    device_of,
    eigh_top,
    is_numpy_array,
    namespace_of,
    on_host,
    to_numpy,
)
from ..core.spectral import Spectral
from ..core.tensor import gram, unfold
from ..core.threads import map_in_threads
from .held_out import HeldOut
from .terms import Terms, extended, rotated

__all__ = ["RankPath", "error_surface", "prepare_paths", "rank_path"]

# Up to this many rows the host, on all of its cores, beats an accelerator at many eigenproblems.
_HOST_ROWS = 256
# One thread more for each so many of them.
_ROWS_OF_A_THREAD = 16
# Bytes of the cores of penalties that an accelerator takes together.
_TOGETHER = 2**29


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
        Where to put the result: on the host, or where the problem is.
    tick : callable, optional
        Called after each penalty.

    Returns
    -------
    array of shape (n_alphas, R0, ...)
        On the host, or `out`. Entry ``[a, i, j, ...]`` belongs to the rank ``(i + 1, j + 1, ...)``.
        Ranks above what the problem supports repeat the error of those that it does.
    """
    alphas, ranks = list(alphas), tuple(ranks)
    surface: Array = np.empty((len(alphas), *ranks)) if out is None else out
    path = rank_path(problem, held_out, ranks, subspaces)
    if not ranks:
        errors = np.maximum(path.yy + path.ridge_errors(alphas), 0.0) / held_out.size
        surface[...] = asarray_like(errors, surface)
        for _ in alphas:
            tick()
        return surface
    path.prepare(alphas)
    for some in path.together(alphas):
        # Rounding leaves errors of nearly exact fits a little below zero.
        block = _mean_errors(path.terms(*alphas[some]).errors(path.yy), held_out.size)
        surface[some, ...] = extended(to_numpy(block) if is_numpy_array(surface) else block, ranks)
        for _ in alphas[some]:
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
    """The terms of all penalties; held-out data of another form bring their own way to them.

    On an accelerator, where its bases are dear, it is there for as long as the held-out data are.
    """
    make: type[RankPath] = getattr(held_out, "path", RankPath)
    if on_host(problem.T):
        return make(problem, held_out, ranks, subspaces)
    paths, key = _PATHS.setdefault(held_out, {}), (ranks, subspaces)
    if key not in paths:
        paths[key] = make(problem, held_out, ranks, subspaces)
    return paths[key]


_PATHS: WeakKeyDictionary[Any, dict[Any, RankPath]] = WeakKeyDictionary()


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
        prepare_paths([self], alphas)

    def scaled_grams(self, alphas: Sequence[float]) -> list[Array]:
        """For each mode that is cut the Gram matrices of Z at some penalties, (n_alphas, d, d).

        None at all where bases are found one by one: on the host, and those of long modes.
        """
        free = range(1 if self.fixed is not None else len(self.ranks))
        sizes, tall = self.T.shape, self.T.shape[0] > _rest(self.T.shape, 0)
        if on_host(self.T) or tall or max((sizes[i] for i in free), default=0) > _HOST_ROWS:
            return []
        rows = [self.row_grams[mode - 1] for mode in free[1:]]
        if not alphas or not free or any(G is None for G in rows):
            return []
        xp = namespace_of(self.T)
        d = xp.stack([self.s / self.root(alpha) for alpha in alphas])
        grams = [self.input_gram * d[:, :, None] * d[:, None, :]]
        for G, n in zip(rows, sizes[1:], strict=False):
            grams.append(xp.reshape((d * d) @ xp.reshape(G, (-1, n * n)), (-1, n, n)))
        return grams

    def keep(self, alphas: Sequence[float], vectors: Sequence[np.ndarray]) -> None:
        """Keep the leading ones of the eigenvectors of `scaled_grams`, smallest first."""
        pairs = zip(vectors, self.ranks, strict=False)
        # What comes of them does not depend on their signs.
        bases: list[Array] = all_beside([U[:, :, : -R - 1 : -1] for U, R in pairs], self.T)
        self.found |= {alpha: [U[a, ...] for U in bases] for a, alpha in enumerate(alphas)}

    def together(self, alphas: Sequence[float]) -> list[slice]:
        """Which penalties to ask the terms of at the same time."""
        n, step = len(alphas), 1
        if len(self.ranks) == self.T.ndim and all(alpha in self.found for alpha in alphas):
            # Core and products, and each once more while they are rotated.
            step = max(1, _TOGETHER // (32 * math.prod(self.T.shape)))
        return [slice(i, min(i + step, n)) for i in range(0, n, step)]

    def terms(self, *alphas: float) -> Terms:
        """Core, held-out products and Gram matrix; with a leading axis for several penalties."""
        xp = namespace_of(self.T)
        if len(alphas) == 1:
            root, (U0, *others) = self.root(alphas[0]), self._bases(alphas[0])
        else:
            root = xp.stack([self.root(alpha) for alpha in alphas])
            U0, *others = map(xp.stack, zip(*map(self._bases, alphas), strict=True))
        A = U0 / root[..., None]  # feature coordinates to core coordinates
        G = xp.matrix_transpose(A) @ self.C @ A
        V = U0 * (self.s / root * self.scale)[..., None]
        if len(self.ranks) < self.T.ndim:
            return self._matrix_terms(V, A, G)
        S, H = rotated(unfold(self.T, 0).T @ V, unfold(self.B, 0).T @ A, others)
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

    def _bases(self, alpha: float) -> list[Array]:
        """Of all modes that are cut, for one penalty."""
        if alpha in self.found:
            found, root = self.found[alpha], None
        else:
            root = self.root(alpha)
            found = [self._input_basis(root)]
        if len(found) < len(self.ranks) == self.T.ndim:
            return [*found, *self.output_bases(root)]
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


def prepare_paths(paths: Sequence[RankPath], alphas: Sequence[float]) -> None:
    """Find the bases of many problems and penalties on all cores, with one transfer each way."""
    new = [[alpha for alpha in alphas if alpha not in path.found] for path in paths]
    grams = [path.scaled_grams(some) for path, some in zip(paths, new, strict=True)]
    found = iter(_eigenvectors(all_to_numpy([*chain(*grams)])))
    for path, some, own in zip(paths, new, grams, strict=True):
        if own:
            path.keep(some, [next(found) for _ in own])


def _eigenvectors(stacks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Those of every matrix of stacks of them, smallest first; large ones share the threads."""
    parts = [np.array_split(G, min(len(G), 1 + G.shape[1] // _ROWS_OF_A_THREAD)) for G in stacks]
    found = iter(map_in_threads(lambda G: np.linalg.eigh(G)[1], [*chain(*parts)]))
    return [np.concatenate([next(found) for _ in some]) for some in parts]


def _scaled_rows(T: Array, d: Array) -> Array:
    """``T x_0 diag(d)``."""
    return T * namespace_of(T).reshape(d, (-1, *(1,) * (T.ndim - 1)))


def _rest(shape: Sequence[int], mode: int) -> int:
    """Product of the sizes of the other modes."""
    return math.prod(shape[:mode]) * math.prod(shape[mode + 1 :])
