"""The held-out error of every rank at once, exactly, from one decomposition for each penalty.

Take the full HOSVD ``Z = S x_0 U0 x_1 U1 ... x_p Up`` of a training problem. The fit of rank R
keeps the leading block of `S`, so the fits are nested and their held-out errors are cumulative
sums. With ``A`` the map from the core's input mode to predictions, ``G = A'A`` and
``H = A'Yv x_1 U1' ...`` over the held-out samples::

    inc = S * (diag(G) S + 2 tril(G, -1) S - 2 H)        (elementwise *, mode 0 along the rows)
    squared error of all ranks = ||Yv||^2 + cumulative sum of inc along every axis.

The problem may be primal, dual or that of a kernel. To cross-validate a new kind of model, build
for each fold the `Spectral` problem of its training part and the `HeldOut` data in the coordinates
of that problem, from moments or from features, and call `error_surface`. All penalties share the
products with the data: a penalty is a scaling of rows.

Where there are more input directions than outputs, nothing of the size of the inputs has to be
decomposed for a penalty (`OutputSidePath`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from ..core.approximate import hosvd, safe_scale
from ..core.checks import check_finite
from ..core.moments import CentredMoments
from ..core.namespace import (
    Array,
    all_to_device_of,
    all_to_numpy,
    asarray_like,
    device_of,
    eigh,
    eigh_top,
    is_numpy_array,
    namespace_of,
    on_host,
    row_blocks,
    squared_norm,
    to_numpy,
)
from ..core.spectral import Spectral
from ..core.tensor import fold, gram, mode_product, unfold
from ..core.threads import map_in_threads

__all__ = ["Directions", "HeldOut", "HeldOutSamples", "OutputSidePath", "RankPath", "Terms"]
__all__ += ["cumulative_sum", "error_surface", "extended", "prepare_paths", "rank_path", "rotated"]

# Bytes of held-out outputs that are centred together.
_BLOCK = 2**26
# Up to this many rows the host, on all of its cores, beats an accelerator at many eigenproblems.
_HOST_ROWS = 256
# One thread more for each so many of them.
_ROWS_OF_A_THREAD = 16
# Bytes of the cores of penalties that an accelerator takes together.
_TOGETHER = 2**29

# ---------------------------------------------------------------- held-out data


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out data in the coordinates of a training problem, centred at its means.

    With the features ``F = (Xv - mean_x) basis`` of the held-out inputs (in which the factor
    ``1 / sqrt(lam + alpha)`` is left out, so that they serve every penalty):

    Parameters
    ----------
    C : array of shape (r, r)
        ``F'F``.
    B : array of shape (r, d1, ..., dp)
        ``F'(Yv - mean_y)``.
    yy : float
        ``||Yv - mean_y||^2``.
    weight : float
        Sum of the weights of the held-out samples.
    """

    C: Array
    B: Array
    yy: float
    weight: float

    @classmethod
    def from_moments(cls, problem: Spectral, m: CentredMoments) -> HeldOut:
        """From the held-out samples' own moments (primal problems)."""
        m = m.about(problem.mean_x, problem.mean_y)
        P = problem.basis
        return cls(P.T @ m.Sxx @ P, mode_product(m.Sxy, P.T, 0), m.syy, m.weight)

    @classmethod
    def from_features(
        cls, F: Array, Y: Array, mean_y: Array, sample_weight: Array | None = None
    ) -> HeldOut:
        """From features and outputs of the held-out samples (dual and kernel problems).

        Parameters
        ----------
        F : array of shape (n_samples, r)
            ``(Xv - mean_x) basis``; for a kernel ``K(Xv, X) basis``, centred as in training.
        Y : array of shape (n_samples, d1, ..., dp)
            Outputs as they are.
        mean_y : array of shape (d1, ..., dp)
            The training mean.
        sample_weight : array of shape (n_samples,), optional
        """
        xp, (n, r), size = namespace_of(F), F.shape, math.prod(Y.shape[1:])
        w = xp.ones_like(F[:, 0]) if sample_weight is None else sample_weight
        B, yy = 0.0, 0.0
        for rows in row_blocks(n, 8 * size, _BLOCK):
            Yc = xp.astype(Y[rows, ...], xp.float64, copy=False) - mean_y
            Yc = xp.reshape(Yc, (Yc.shape[0], size)) * xp.sqrt(w[rows])[:, None]
            B = B + (F[rows, :] * xp.sqrt(w[rows])[:, None]).T @ Yc
            yy += float(squared_norm(Yc))
        if not math.isfinite(yy):
            check_finite(Y, "y")
        C = (F * w[:, None]).T @ F
        return cls(C, xp.reshape(B, (r, *Y.shape[1:])), yy, float(xp.sum(w)))

    @classmethod
    def of_training(cls, problem: Spectral, weight: float) -> HeldOut:
        """The training samples themselves, for criteria that judge the fit by its residual."""
        s = problem.s
        C = namespace_of(s).eye(s.shape[0], dtype=s.dtype, device=device_of(s)) * (s * s)
        return cls(
            C, fold(unfold(problem.T, 0) * s[:, None], 0, problem.T.shape), problem.syy, weight
        )

    @property
    def size(self) -> float:
        """Weight times number of outputs: what a sum of squares is divided by for its mean."""
        return self.weight * math.prod(self.B.shape[1:])

    def coordinates(self) -> tuple[Array, Array]:
        """``R`` and ``b`` such that ``F'F = R'R`` and ``F'Y = R'b``: few rows in place of samples.

        Inner products of predictions ``F W`` with each other, and with the outputs, are those of
        ``R W`` with each other, and with ``b``.
        """
        xp = namespace_of(self.C)
        lam, Q = eigh(self.C)
        noise = float(xp.max(lam)) * float(np.finfo(float).eps) * lam.shape[0]
        some = lam > max(noise, 0.0)
        root = xp.sqrt(xp.where(some, lam, xp.zeros_like(lam)))
        inverse = xp.where(some, 1 / xp.where(some, root, xp.ones_like(root)), 0 * root)
        return root[:, None] * Q.T, inverse[:, None] * (Q.T @ unfold(self.B, 0))


# ---------------------------------------------------------------- terms of the surface


@dataclass(frozen=True, eq=False)
class Directions:
    """What the fits of all ranks at one penalty are made of.

    The coefficients of rank R, in the features, are ``left[:, :R0] @ core[:R0, ...]`` with the
    output modes of the core expanded by the leading columns of the bases.

    Parameters
    ----------
    left : array of shape (r, R0)
    core : array of shape (R0, R1, ...)
        Or (R0, D), where the outputs are not reduced.
    bases : list of arrays of shape (d_i, R_i)
        Of the output modes that are reduced: all of them, or none.
    n_slices : int
        Size of the first output mode.
    """

    left: Array
    core: Array
    bases: list[Array]
    n_slices: int = 1

    def expanded(self, rank: Sequence[int], rows: slice) -> tuple[Array, Array]:
        """``left`` and the core of one rank, of shapes (r, R0) and (R0, n_columns).

        Parameters
        ----------
        rank : sequence of int
        rows : slice
            Of the first output mode: the outputs that are wanted.
        """
        xp, core = namespace_of(self.core), self.core
        if not self.bases:
            width = core.shape[1] // self.n_slices
            R = min(rank[0], core.shape[0])
            return self.left[:, :R], core[:R, rows.start * width : rows.stop * width]
        core = core[tuple(slice(min(R, n)) for R, n in zip(rank, core.shape, strict=True))]
        shape, trail = core.shape, 1
        # The last mode first: one matrix product, and what follows has long rows.
        for mode in range(len(self.bases), 0, -1):
            U = self.bases[mode - 1][:, : shape[mode]]
            U = U[rows, :] if mode == 1 else U
            lead = math.prod(shape[:mode])
            if trail == 1:
                core = xp.reshape(core, (lead, shape[mode])) @ U.T
            else:
                core = U @ xp.reshape(core, (lead, shape[mode], trail))
            trail *= U.shape[0]
        return self.left[:, : shape[0]], xp.reshape(core, (shape[0], trail))


@dataclass(frozen=True, eq=False)
class Terms:
    """Core, products and Gram matrix of `surface`, of all modes or along the input rank only.

    Parameters
    ----------
    S, H : arrays of shape (..., R0, ..., Rp)
    M : array of shape (..., R0, R0)
        ``diag(G) + 2 tril(G, -1)``.
    """

    S: Array
    H: Array
    M: Array

    def errors(self, yy: float) -> Array:
        """Squared errors of all ranks; `yy` is that of predicting the mean."""
        block, lead = self.increments(), self.M.ndim - 2
        block[(slice(None),) * lead + (0,) * (block.ndim - lead)] += yy  # where all sums begin
        for axis in reversed(range(lead, block.ndim)):
            block = cumulative_sum(block, axis)
        return block

    def increments(self) -> Array:
        """``inc``: the sum over a leading block is the excess error of the fit of that rank."""
        xp, S = namespace_of(self.S), self.S
        rows = xp.reshape(S, (*S.shape[: self.M.ndim - 1], -1))
        inc = xp.reshape(self.M @ rows, tuple(S.shape))
        inc -= 2 * self.H
        inc *= S
        return inc


def cumulative_sum(A: Array, axis: int) -> Array:
    """Running sums along an axis; in place, slice by slice, where that is quicker."""
    n, rest = A.shape[axis], math.prod(A.shape[axis + 1 :])
    if not is_numpy_array(A) or (rest < 16 and n > 32):
        return namespace_of(A).cumulative_sum(A, axis=axis)
    slices = A.reshape(-1, n, rest)
    for j in range(1, n):
        slices[:, j] += slices[:, j - 1]
    return A


def extended(block: Array, ranks: Sequence[int]) -> Array:
    """`block`, of shape (..., R0, ...), with its last slices repeated up to the ranks."""
    lead = block.ndim - len(ranks)
    for axis, R in enumerate(ranks, start=lead):
        n = block.shape[axis]
        if n != R:
            index = asarray_like(np.minimum(np.arange(R), n - 1), block)
            block = namespace_of(block).take(block, index, axis=axis)
    return block


def rotated(A: Array, B: Array, bases: Sequence[Array]) -> tuple[Array, Array]:
    """Matrices of shape (..., D, k) as tensors ``A' x_1 U1' ...`` and ``B' x_1 U1' ...``.

    Side by side: each step multiplies along the leading mode, which becomes the last. That is one
    matrix product without a copy, and after all modes their order is the old one.
    """
    xp, (*lead, _, k) = namespace_of(A), A.shape
    both = xp.concat([A, B], axis=-1)
    for U in bases:
        both = xp.matrix_transpose(xp.reshape(both, (*lead, U.shape[-2], -1))) @ U
    both = xp.reshape(both, (*lead, 2 * k, *(U.shape[-1] for U in bases)))
    before = (slice(None),) * len(lead)
    return both[(*before, slice(k), ...)], both[(*before, slice(k, None), ...)]


# ---------------------------------------------------------------- the surface of one fold


def error_surface(
    path: RankPath,
    held_out: HeldOut,
    alphas: Iterable[float],
    ranks: Sequence[int],
    *,
    out: Array | None = None,
    tick: Callable[[], object] = lambda: None,
) -> Array:
    """Held-out mean squared error for all penalties and all ranks up to the given ones.

    Parameters
    ----------
    path : RankPath
        Of the training problem and the held-out data, see `rank_path`.
    held_out : HeldOut
    alphas : sequence of n_alphas floats
    ranks : sequence of int
        The largest rank of each mode, input mode first. With fewer entries than modes only these
        modes are reduced: none for ridge regression, ``(R0,)`` for low-rank regression.
    out : array of shape (n_alphas, R0, ...), optional
        Where to put the result: on the host, or on the device of the problem.
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
    if not ranks:
        errors = np.maximum(path.yy + path.ridge_errors(alphas), 0.0) / held_out.size
        surface[...] = asarray_like(errors, surface)
        for _ in alphas:
            tick()
        return surface
    groups = [slice(a, a + 1) for a in range(len(alphas))]
    if not on_host(path.T):
        path.prepare(alphas)
        groups = path.together(alphas)
    for some in groups:
        block = path.terms(*alphas[some]).errors(path.yy)
        # Rounding leaves errors of nearly exact fits a little below zero.
        if is_numpy_array(block):
            np.maximum(block, 0.0, out=block)
            np.divide(block, held_out.size, out=block)
        else:
            block = namespace_of(block).clip(block, 0.0, None) / held_out.size
        if tuple(block.shape[block.ndim - len(ranks) :]) != ranks:
            block = extended(block, ranks)
        surface[some, ...] = to_numpy(block) if is_numpy_array(surface) else block
        for _ in alphas[some]:
            tick()
    return surface


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
        bases: list[Array] = all_to_device_of([U[:, :, : -R - 1 : -1] for U, R in pairs], self.T)
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

    def directions(self, alpha: float) -> Directions:
        """What the fits of all ranks are made of."""
        root, (U0, *bases) = self.root(alpha), self._bases(alpha)
        left, right = U0 / root[:, None], U0 * (self.s / root * self.scale)[:, None]
        return self._directions(left, unfold(self.T, 0).T @ right, bases)

    def _directions(self, left: Array, columns: Array, bases: list[Array]) -> Directions:
        """With the rows of the core as columns of a matrix, (D, R0), in all outputs."""
        n_slices = self.T.shape[1] if self.T.ndim > 1 else 1
        if not bases:
            return Directions(left, columns.T, [], n_slices)
        both = columns
        for U in bases:
            both = namespace_of(U).reshape(both, (U.shape[0], -1)).T @ U
        core = namespace_of(both).reshape(both, (left.shape[1], *(U.shape[1] for U in bases)))
        return Directions(left, core, bases, n_slices)

    def ridge_scale(self, alpha: float) -> Array:
        """What the rows of `T` are multiplied by in the coefficients of ridge regression, (r,)."""
        root = self.root(alpha)
        return self.s / root / root * self.scale

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


# ---------------------------------------------------------------- few outputs


class OutputSidePath(RankPath):
    """The terms of the surface for each penalty, of a problem with fewer outputs than directions.

    With the singular value decomposition ``Z = U0 diag(sigma) V'``, the fit of input rank R is the
    ridge fit projected onto the leading R columns of `V`. With the ridge predictions ``P`` of the
    held-out samples,

        S = V' x_1 U1' ... ,    H = V'P'Yv x_1 U1' ... ,    G = V'P'P V

    take the places of core, products and Gram matrix of the surface, since the factors ``sigma`` of
    the core and ``1 / sigma`` of the others cancel in every term.
    """

    def __init__(
        self, problem: Spectral, held_out: Any, ranks: tuple[int, ...], subspaces: str
    ) -> None:
        super().__init__(problem, held_out, ranks, subspaces)
        self.F, self.Y, self.T0 = held_out.F, held_out.Y, unfold(self.T, 0)

    def scaled_grams(self, alphas: Sequence[float]) -> list[Array]:
        """None: the directions of each penalty have the size of the outputs."""
        return []

    def terms(self, *alphas: float) -> Terms:
        xp, (alpha,) = namespace_of(self.T), alphas  # no bases are prepared: one at a time
        root = self.root(alpha)
        Z = self.T0 * (self.s / root)[:, None]
        V = eigh_top(Z.T @ Z, self.ranks[0])[1]
        PV = self._predictions(root, V)
        H, G = PV.T @ self.Y, PV.T @ PV
        if len(self.ranks) < self.T.ndim:
            # The rows of V' are orthonormal: summed over the outputs, only diagonals are left.
            eye = xp.eye(G.shape[0], dtype=G.dtype, device=device_of(G))
            return Terms(xp.ones_like(V[0, :]), xp.sum(H * V.T, axis=1), G * eye)
        S, H = rotated(V, H.T, self.output_bases(root))
        return Terms(S, H, xp.tril(G) + xp.tril(G, k=-1))

    def ridge_errors(self, alphas: Iterable[float]) -> np.ndarray:
        predictions = (self._predictions(self.root(alpha), None) for alpha in alphas)
        return np.array([float(namespace_of(P).sum((P - 2 * self.Y) * P)) for P in predictions])

    def products(self, W: Array) -> tuple[Array, Array]:
        P = self.F @ W
        return P.T @ P, P.T @ self.Y

    def directions(self, alpha: float) -> Directions:
        root = self.root(alpha)
        Z = self.T0 * (self.s / root)[:, None]
        V = eigh_top(Z.T @ Z, self.ranks[0])[1]
        left = (self.s / root / root * self.scale)[:, None] * (self.T0 @ V)
        bases = self.output_bases(root) if len(self.ranks) == self.T.ndim else []
        return self._directions(left, V, bases)

    def _predictions(self, root: Array, V: Array | None) -> Array:
        """``P V``, or the ridge predictions ``P = F diag(s / (s^2 + alpha)) T`` themselves."""
        c = self.scale * self.s / root / root
        if V is None:
            return (self.F * c) @ self.T0
        (n, r), (D, R) = self.F.shape, V.shape
        if R * r * (D + n) < n * D * (r + R):
            return self.F @ (c[:, None] * (self.T0 @ V))
        return ((self.F * c) @ self.T0) @ V


@dataclass(frozen=True, eq=False)
class HeldOutSamples:
    """Held-out samples themselves, in the coordinates of a training problem."""

    F: Array  # ``(K(Xv, X) - mean) basis``, (n_samples, r), times the roots of the weights
    Y: Array  # outputs less the training mean, (n_samples, D), likewise
    yy: float  # squared norm of `Y`
    weight: float  # sum of the weights

    path = OutputSidePath
    # Products of the features, which `HeldOut` has in the place of the samples, are not formed.
    C = None
    B = None

    @classmethod
    def of(cls, F: Array, Y: Array, mean_y: Array, w: Array | None) -> HeldOutSamples:
        """From features and outputs as they are."""
        xp = namespace_of(F)
        Y = xp.reshape(xp.astype(Y, xp.float64, copy=False) - mean_y, (F.shape[0], -1))
        if w is not None:
            root = xp.sqrt(w)[:, None]
            F, Y = F * root, Y * root
        weight = float(F.shape[0]) if w is None else float(xp.sum(w))
        return cls(F, Y, float(squared_norm(Y)), weight)

    @property
    def size(self) -> float:
        """Weight times number of outputs: what a sum of squares is divided by for its mean."""
        return self.weight * self.Y.shape[1]

    def coordinates(self) -> tuple[Array, Array]:
        """As that of `HeldOut`: features and outputs themselves."""
        return self.F, self.Y
