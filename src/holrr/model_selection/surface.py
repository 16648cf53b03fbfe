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
decomposed for a penalty (`OutputSidePath`). With a single output mode the multilinear rank is the
rank of a matrix, whatever the larger of its two entries, and one entry of each rank is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

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
    eigh_top,
    is_numpy_array,
    namespace_of,
    on_host,
    row_blocks,
    squared_norm,
    to_numpy,
)
from ..core.spectral import Spectral
from ..core.tensor import Tucker, fold, gram, mode_product, unfold
from ..core.threads import map_in_threads

__all__ = ["Directions", "HeldOut", "HeldOutSamples", "OutputSidePath", "RankPath", "Terms"]
__all__ += ["cumulative_sum", "error_surface", "extended", "prepare_paths", "rank_path", "rotated"]

# Bytes of held-out outputs that are centred together.
_BLOCK = 2**26
# Up to this many rows the host, on all of its cores, beats an accelerator at many eigenproblems.
_HOST_ROWS = 256
# One thread more for each so many of them.
_ROWS_OF_A_THREAD = 16
# Bytes of the cores of penalties that are taken together, on an accelerator and on the host.
_TOGETHER, _TOGETHER_ON_HOST = 2**29, 2**21
# Numbers in a problem, and rows of its modes, up to which the host finds the bases of all penalties
# together: there a call costs as much as its arithmetic.
_SMALL, _SMALL_ROWS = 2**15, 48

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

    def products(self, W: Array) -> tuple[Array, Array]:
        """``P'P`` and ``P'Yv`` of the held-out predictions ``P = F W``, for `W` of shape (r, k)."""
        return W.T @ self.C @ W, W.T @ unfold(self.B, 0)

    def inner(self, W: Array) -> Array:
        """``P'F``, the products of predictions and features, (k, r)."""
        return W.T @ self.C


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
    """

    left: Array
    core: Array
    bases: list[Array]

    def whitened(self, root: Array, output_shape: Sequence[int]) -> Tucker:
        """The directions in the coordinates of the whitened problem, see `core.approximate`.

        Parameters
        ----------
        root : array of shape (r,)
            Roots ``sqrt(s^2 + alpha)`` of the penalty of the directions.
        output_shape : sequence of int
        """
        U0, core, p = self.left * root[:, None], self.core, len(output_shape)
        if self.bases:
            return Tucker(core, (U0, *self.bases), tuple(range(p + 1)))
        core = namespace_of(core).reshape(core, (core.shape[0], *output_shape))
        return Tucker(core, (U0, *(None,) * p), (0,))


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
        errors = path.ridge_errors(alphas) / held_out.size
        surface[...] = asarray_like(errors, surface)
        for _ in alphas:
            tick()
        return surface
    path.prepare(alphas)
    for some in path.together(alphas):
        block = path.errors(*alphas[some])
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


def rank_path(problem: Any, held_out: Any, ranks: tuple[int, ...], subspaces: str) -> RankPath:
    """The terms of all penalties, from the shorter side of the unfolded problem.

    Parameters
    ----------
    problem : Spectral
        Or what has its `s`, `root`, `T` and `response_grams`.
    held_out, ranks, subspaces
        As in `RankPath`.
    """
    is_tall = problem.T.shape[0] > _rest(problem.T.shape, 0)
    return (OutputSidePath if is_tall else RankPath)(problem, held_out, ranks, subspaces)


class RankPath:
    """What the penalties of one training problem share, and the increments for each of them.

    Parameters
    ----------
    problem : Spectral
    held_out : HeldOut or HeldOutSamples
    ranks : tuple of int
        The largest rank of each mode that is reduced, input mode first.
    subspaces : {"fitted", "response"}
    """

    def __init__(self, problem: Any, held_out: Any, ranks: tuple[int, ...], subspaces: str) -> None:
        self.s, self.root, self.response_grams = problem.s, problem.root, problem.response_grams
        self.scale = safe_scale(problem.T)
        self.T = problem.T if self.scale == 1.0 else problem.T / self.scale
        self.held_out, self.yy = held_out, held_out.yy
        # Energies above the product of the other modes' sizes are zero: nothing to decompose.
        rest = [_rest(self.T.shape, mode) for mode in range(len(ranks))]
        fitted = [subspaces == "fitted" or mode == 0 for mode in range(len(ranks))]
        self.ranks = [
            min(R, d, n) if free else R
            for R, d, n, free in zip(ranks, self.T.shape, rest, fitted, strict=False)
        ]
        self.is_matrix = len(ranks) < self.T.ndim
        self.both: tuple[int, int] | None = None
        self.fixed = None
        if not all(fitted):
            assert self.response_grams is not None
            pairs = zip(self.response_grams, self.ranks[1:], strict=True)
            self.fixed = [eigh_top(G, R)[1] for G, R in pairs]
        elif len(ranks) == self.T.ndim == 2:
            # The fit of rank (R0, R1) is that of rank min(R0, R1) of a matrix.
            self.is_matrix, self.both = True, (self.ranks[0], self.ranks[1])
            self.ranks = [min(self.ranks)]
        self.found: dict[float, list[Array]] = {}
        self.room = 8 * math.prod(self.T.shape)  # bytes of bases that are kept on the host

    def prepare(self, alphas: Sequence[float]) -> None:
        """Find the bases of many penalties at once, where that is quicker than one by one."""
        prepare_paths([self], alphas)

    def scaled_grams(self, alphas: Sequence[float]) -> list[Array]:
        """For each mode that is cut the Gram matrices of Z at some penalties, (n_alphas, d, d).

        None at all where bases are found one by one: those of long modes, and on the host those of
        all but small problems.
        """
        free = range(1 if self.fixed is not None else len(self.ranks))
        sizes, here = self.T.shape, on_host(self.T)
        most = _SMALL_ROWS if here else _HOST_ROWS
        if max((sizes[i] for i in free), default=0) > most:
            return []
        if here and math.prod(sizes) > _SMALL:
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
        if all(alpha in self.found for alpha in alphas):
            # Core and products, and each once more while they are rotated.
            most = _TOGETHER_ON_HOST if on_host(self.T) else _TOGETHER
            step = max(1, most // (32 * math.prod(self.T.shape)))
        return [slice(i, min(i + step, n)) for i in range(0, n, step)]

    def errors(self, *alphas: float) -> Array:
        """Squared errors of all ranks; with a leading axis for several penalties."""
        return self.expanded(self.terms(*alphas).errors(self.yy))

    def expanded(self, errors: Array) -> Array:
        """Errors of all ranks, of shape (..., R0, ...), from those of the ranks of a matrix."""
        if self.both is None:
            return errors
        xp, n = namespace_of(errors), errors.shape[-1]
        lower = np.minimum(np.minimum.outer(*map(np.arange, self.both)), n - 1).reshape(-1)
        errors = xp.take(errors, asarray_like(lower, errors), axis=-1)
        return xp.reshape(errors, (*errors.shape[:-1], *self.both))

    def terms(self, *alphas: float) -> Terms:
        """Core, held-out products and Gram matrix; with a leading axis for several penalties."""
        xp = namespace_of(self.T)
        if len(alphas) == 1:
            root, (U0, *others) = self.root(alphas[0]), self._bases(alphas[0])
        else:
            root = xp.stack([self.root(alpha) for alpha in alphas])
            U0, *others = map(xp.stack, zip(*map(self._bases, alphas), strict=True))
        A = U0 / root[..., None]  # feature coordinates to core coordinates
        V = U0 * (self.s / root * self.scale)[..., None]
        C, B = self.held_out.C, unfold(self.held_out.B, 0)
        G = xp.matrix_transpose(A) @ C @ A
        if self.is_matrix:
            return self._matrix_terms(V, A, G)
        S, H = rotated(unfold(self.T, 0).T @ V, B.T @ A, others)
        return Terms(S, H, xp.tril(G) + xp.tril(G, k=-1))

    def ridge_errors(self, alphas: Iterable[float]) -> np.ndarray:
        """Squared errors of ridge regression."""
        squares, linear = self.ridge_products(alphas)
        return np.maximum(self.yy + np.diagonal(squares) - 2 * linear, 0.0)

    def ridge_products(self, alphas: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
        """Inner products of the ridge predictions of some penalties, and with the outputs.

        Returns
        -------
        squares : array of shape (n_alphas, n_alphas)
        linear : array of shape (n_alphas,)
        """
        xp = namespace_of(self.T)
        c = xp.stack([self.ridge_scale(alpha) for alpha in alphas])
        squares, cross = self._ridge_terms
        return to_numpy((c @ squares) @ c.T), to_numpy(c @ cross)

    def ridge_scale(self, alpha: float) -> Array:
        """What the rows of `T` are multiplied by in the coefficients of ridge regression, (r,)."""
        root = self.root(alpha)
        return self.s / root / root * self.scale

    def directions(self, alpha: float, ranks: Sequence[int]) -> Directions:
        """What the fits up to some ranks are made of, one entry for each mode that is reduced."""
        root, (U0, *bases) = self.root(alpha), self._bases(alpha, ranks)
        left, right = U0 / root[:, None], U0 * (self.s / root * self.scale)[:, None]
        columns = unfold(self.T, 0).T @ right
        if self.both is not None:
            return self._of_one_mode(left, columns)
        return self._directions(left, columns, bases)

    def _of_one_mode(self, left: Array, columns: Array) -> Directions:
        """With the orthogonal rows of the core as columns of a matrix, (D, R0)."""
        xp = namespace_of(columns)
        norm = xp.sqrt(xp.sum(columns * columns, axis=0))
        unit = xp.where(norm > 0, norm, xp.ones_like(norm))
        eye = xp.eye(norm.shape[0], dtype=norm.dtype, device=device_of(norm))
        return Directions(left, eye * norm, [columns / unit])

    def _directions(self, left: Array, columns: Array, bases: list[Array]) -> Directions:
        """With the rows of the core as columns of a matrix, (D, R0), in all outputs."""
        if not bases:
            return Directions(left, columns.T, [])
        both = columns
        for U in bases:
            both = namespace_of(U).reshape(both, (U.shape[0], -1)).T @ U
        core = namespace_of(both).reshape(both, (left.shape[1], *(U.shape[1] for U in bases)))
        return Directions(left, core, bases)

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

    def _bases(self, alpha: float, ranks: Sequence[int] | None = None) -> list[Array]:
        """Of all modes that are reduced, for one penalty, up to some ranks."""
        limits = self.ranks
        if ranks is not None:
            limits = [min(R, cap) for R, cap in zip(ranks, self.ranks, strict=False)]
        if alpha in self.found:
            found = self.found[alpha]
        else:
            found = [self._input_basis(self.root(alpha), limits[0])]
        if len(found) < len(self.ranks):
            found = [*found, *self.output_bases(self.root(alpha), limits)]
        if limits == self.ranks and alpha not in self.found and on_host(self.T):
            size = 8 * sum(math.prod(U.shape) for U in found)
            if size <= self.room:
                self.found[alpha], self.room = found, self.room - size
        return [U[:, :R] for U, R in zip(found, limits, strict=True)]

    def _input_basis(self, root: Array, rank: int) -> Array:
        d = self.s / root
        return eigh_top(self.input_gram * d[:, None] * d, rank)[1]

    def output_bases(self, root: Array, ranks: Sequence[int] | None = None) -> list[Array]:
        """Of the output modes, up to some ranks; the ranks begin with that of the input mode."""
        ranks = self.ranks if ranks is None else ranks
        if self.fixed is not None:
            return [U[:, :R] for U, R in zip(self.fixed, ranks[1:], strict=True)]
        xp, d = namespace_of(self.T), self.s / root
        Z = None
        bases = []
        for mode in range(1, self.T.ndim):
            G, R = self.row_grams[mode - 1], ranks[mode]
            if G is not None:
                n = self.T.shape[mode]
                G = xp.reshape((d * d) @ xp.reshape(G, (G.shape[0], n * n)), (n, n))
            else:
                Z = _scaled_rows(self.T, d) if Z is None else Z
                if self.T.shape[mode] > _rest(self.T.shape, mode):
                    only = [R if i == mode else d for i, d in enumerate(self.T.shape)]
                    bases.append(hosvd(Z, only, modes=(mode,)).tucker.factors[mode])
                    continue
                G = gram(Z, mode)
            bases.append(eigh_top(G, R)[1])
        return bases

    # ------------------------------------------------------------ products

    @cached_property
    def _cross(self) -> Array:
        """``T_(0) B_(0)'``."""
        return unfold(self.T, 0) @ unfold(self.held_out.B, 0).T

    @cached_property
    def _ridge_terms(self) -> tuple[Array, Array]:
        """What quadratic and linear forms in the scales of the rows of `T` are made of."""
        cross = namespace_of(self.T).linalg.diagonal(self._cross)
        return self.held_out.C * self.input_gram, cross

    def _matrix_terms(self, V: Array, A: Array, G: Array) -> Terms:
        """Terms along the input rank, the outputs in full: small matrices only.

        The rows of the core are orthogonal. So nothing is left of ``tril(G, -1) S`` when the
        increments are summed over the outputs, and the rows' norms can stand for the rows.
        """
        xp = namespace_of(self.T)
        # Rounding can leave less than nothing of an energy.
        norm = xp.sqrt(xp.clip(xp.sum(V * (self.input_gram @ V), axis=-2), 0.0, None))
        inner = xp.sum(V * (self._cross @ A), axis=-2)
        one = xp.ones_like(norm)
        H = xp.where(norm > 0, inner / xp.where(norm > 0, norm, one), 0 * one)
        eye = xp.eye(G.shape[-1], dtype=G.dtype, device=device_of(G))
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
    if all(G.shape[1] <= _ROWS_OF_A_THREAD for G in stacks):
        return [np.linalg.eigh(G)[1] for G in stacks]
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

    def scaled_grams(self, alphas: Sequence[float]) -> list[Array]:
        """None: the directions of each penalty have the size of the outputs."""
        return []

    def together(self, alphas: Sequence[float]) -> list[slice]:
        """One by one."""
        return [slice(a, a + 1) for a in range(len(alphas))]

    def terms(self, *alphas: float) -> Terms:
        xp, (alpha,) = namespace_of(self.T), alphas  # no bases are prepared: one at a time
        V, *others = self._bases(alpha)
        W = self.ridge_scale(alpha)[:, None] * (unfold(self.T, 0) @ V)
        G, H = self.held_out.products(W)
        if self.is_matrix:
            # The rows of V' are orthonormal: summed over the outputs, only diagonals are left.
            eye = xp.eye(G.shape[0], dtype=G.dtype, device=device_of(G))
            return Terms(xp.ones_like(V[0, :]), xp.sum(H * V.T, axis=1), G * eye)
        S, H = rotated(V, H.T, others)
        return Terms(S, H, xp.tril(G) + xp.tril(G, k=-1))

    def ridge_errors(self, alphas: Iterable[float]) -> np.ndarray:
        if self.held_out.C is not None:
            return super().ridge_errors(alphas)
        away = (self._ridge_predictions(alpha) - self.held_out.Y for alpha in alphas)
        return np.array([float(squared_norm(A)) for A in away])

    def ridge_products(self, alphas: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
        if self.held_out.C is not None:
            return super().ridge_products(alphas)
        xp = namespace_of(self.T)
        P = xp.stack([xp.reshape(self._ridge_predictions(alpha), (-1,)) for alpha in alphas])
        return to_numpy(P @ P.T), to_numpy(P @ xp.reshape(self.held_out.Y, (-1,)))

    def _ridge_predictions(self, alpha: float) -> Array:
        return (self.held_out.F * self.ridge_scale(alpha)) @ unfold(self.T, 0)

    def directions(self, alpha: float, ranks: Sequence[int]) -> Directions:
        V, *bases = self._bases(alpha, ranks)
        left = self.ridge_scale(alpha)[:, None] * (unfold(self.T, 0) @ V)
        return self._of_one_mode(left, V) if self.both else self._directions(left, V, bases)

    def _input_basis(self, root: Array, rank: int) -> Array:
        """The leading directions of the outputs, (D, rank), which stand for those of the inputs."""
        Z = unfold(self.T, 0) * (self.s / root)[:, None]
        return eigh_top(Z.T @ Z, rank)[1]


@dataclass(frozen=True, eq=False)
class HeldOutSamples:
    """Held-out samples themselves, in the coordinates of a training problem."""

    F: Array  # ``(K(Xv, X) - mean) basis``, (n_samples, r), times the roots of the weights
    Y: Array  # outputs less the training mean, (n_samples, D), likewise
    yy: float  # squared norm of `Y`
    weight: float  # sum of the weights

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

    def products(self, W: Array) -> tuple[Array, Array]:
        """As those of `HeldOut`."""
        P = self.F @ W
        return P.T @ P, P.T @ self.Y

    def inner(self, W: Array) -> Array:
        """As that of `HeldOut`."""
        return (self.F @ W).T @ self.F
