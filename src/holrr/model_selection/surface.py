"""Exact held-out errors of all ranks from one decomposition for each penalty.

Let ``Z = S x_0 U0 x_1 U1 ... x_p Up`` be the full HOSVD of a training problem. The fit of rank R
keeps the leading block of `S`. The fits are therefore nested, and their held-out errors are
cumulative sums. Let ``A`` be the map from the input mode of the core to predictions. With
``G = A'A`` and ``H = A'Yv x_1 U1' ...`` over the held-out samples::

    inc = S * (diag(G) S + 2 tril(G, -1) S - 2 H)        (elementwise *, mode 0 along the rows)
    squared error of all ranks = ||Yv||^2 + cumulative sum of inc along every axis.

The problem may be a primal, a dual or a kernel problem. To cross-validate a new kind of model,
build for each fold the `Spectral` problem of its training samples and the `HeldOut` data in the
coordinates of this problem, from moments or from features, and call `error_surface`. All penalties
share the products with the data, since a penalty only scales rows.

If there are more input directions than outputs, no matrix of the size of the inputs is decomposed
for a penalty (`OutputSidePath`). With a single output mode, the fit of rank (R0, R1) is the matrix
fit of rank min(R0, R1), and the error of each matrix rank is computed once.
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
from ..core.tensor import Tucker, gram, mode_product, unfold
from ..core.threads import map_in_threads

__all__ = ["Directions", "HeldOut", "HeldOutSamples", "OutputSidePath", "RankPath", "Terms"]
__all__ += ["cumulative_sum", "error_surface", "extended", "prepare_paths", "rank_path", "rotated"]

# Bytes of held-out outputs that are centred together.
_BLOCK = 2**26
# Up to this many rows, all cores of the host solve many eigenproblems faster than an accelerator.
_HOST_ROWS = 256
# Number of rows for each additional thread.
_ROWS_OF_A_THREAD = 16
# Bytes of the cores of penalties that are computed together, on an accelerator and on the host.
_TOGETHER, _TOGETHER_ON_HOST = 2**29, 2**21
# Size of a problem, and number of rows of its modes, up to which the host computes the bases of all
# penalties together, since a call of NumPy costs as much as its arithmetic.
_SMALL, _SMALL_ROWS = 2**15, 48

# ---------------------------------------------------------------- held-out data


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Held-out data in the coordinates of a training problem, centred at its means.

    The features of the held-out inputs are ``F = (Xv - mean_x) basis``. They do not include the
    factor ``1 / sqrt(lam + alpha)``, so that they are the same for all penalties.

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
        """Compute the held-out data from moments of the held-out samples (primal problems)."""
        m = m.about(problem.mean_x, problem.mean_y)
        P = problem.basis
        return cls(P.T @ m.Sxx @ P, mode_product(m.Sxy, P.T, 0), m.syy, m.weight)

    @classmethod
    def from_features(
        cls, F: Array, Y: Array, mean_y: Array, sample_weight: Array | None = None
    ) -> HeldOut:
        """Compute the held-out data from features and outputs (dual and kernel problems).

        Parameters
        ----------
        F : array of shape (n_samples, r)
            Features ``(Xv - mean_x) basis``; for a kernel ``K(Xv, X) basis``, centred as in the
            training problem.
        Y : array of shape (n_samples, d1, ..., dp)
            Outputs, not centred.
        mean_y : array of shape (d1, ..., dp)
            Mean of the training outputs.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples.
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

    @property
    def size(self) -> float:
        """Weight times number of outputs, the divisor of a mean of squares."""
        return self.weight * math.prod(self.B.shape[1:])

    def products(self, W: Array) -> tuple[Array, Array]:
        """Return ``P'P`` and ``P'Yv`` of the predictions ``P = F W``, for `W` of shape (r, k)."""
        return W.T @ self.C @ W, W.T @ unfold(self.B, 0)

    def inner(self, W: Array) -> Array:
        """Return ``P'F``, the products of predictions and features, of shape (k, r)."""
        return W.T @ self.C

    def times(self, W: Array) -> tuple[Array, Array]:
        """Return ``F'P`` and the inner product of ``P = F W`` and `Yv`, for `W` of shape (r, D)."""
        return self.C @ W, namespace_of(W).sum(W * unfold(self.B, 0))

    def gains(self, W: Array) -> Array:
        """Return squared errors of ``P = F W`` minus those of the mean, (D,)."""
        return namespace_of(W).sum(W * (self.C @ W - 2 * unfold(self.B, 0)), axis=0)


# ---------------------------------------------------------------- terms of the surface


@dataclass(frozen=True, eq=False)
class Directions:
    """Directions and core that give the fits of all ranks at one penalty.

    The coefficients of the features of rank R are ``left[:, :R0] @ core[:R0, ...]``, where the
    output modes of the core are multiplied by the leading columns of the bases.

    Parameters
    ----------
    left : array of shape (r, R0)
        Input directions, divided by the roots of the penalised eigenvalues.
    core : array of shape (R0, R1, ...), or (R0, D)
        Core; of shape (R0, D) if the outputs are not reduced.
    bases : list of arrays of shape (d_i, R_i)
        Bases of the output modes; empty if the outputs are not reduced.
    """

    left: Array
    core: Array
    bases: list[Array]

    def whitened(self, root: Array, output_shape: Sequence[int]) -> Tucker:
        """Return the directions in the coordinates of the whitened problem.

        Parameters
        ----------
        root : array of shape (r,)
            Roots ``sqrt(s^2 + alpha)`` at the penalty of the directions.
        output_shape : sequence of int
            Shape of the outputs of a sample.
        """
        U0, core, p = self.left * root[:, None], self.core, len(output_shape)
        if self.bases:
            return Tucker(core, (U0, *self.bases), tuple(range(p + 1)))
        core = namespace_of(core).reshape(core, (core.shape[0], *output_shape))
        return Tucker(core, (U0, *(None,) * p), (0,))


@dataclass(frozen=True, eq=False)
class Terms:
    """Core, products and Gram matrix of an error surface, for all modes or the input mode.

    Parameters
    ----------
    S, H : arrays of shape (..., R0, ..., Rp)
        Core and products.
    M : array of shape (..., R0, R0)
        Matrix ``diag(G) + 2 tril(G, -1)``.
    """

    S: Array
    H: Array
    M: Array

    def errors(self, yy: float) -> Array:
        """Return the squared errors of all ranks; `yy` is the error of predicting the mean."""
        block, lead = self.increments(), self.M.ndim - 2
        block[(slice(None),) * lead + (0,) * (block.ndim - lead)] += yy  # first term of all sums
        for axis in reversed(range(lead, block.ndim)):
            block = cumulative_sum(block, axis)
        return block

    def increments(self) -> Array:
        """Return ``inc``, whose sum over a leading block is the excess error of that rank."""
        xp, S = namespace_of(self.S), self.S
        rows = xp.reshape(S, (*S.shape[: self.M.ndim - 1], -1))
        inc = xp.reshape(self.M @ rows, tuple(S.shape))
        inc -= 2 * self.H
        inc *= S
        return inc


def cumulative_sum(A: Array, axis: int) -> Array:
    """Return the cumulative sums along an axis; `A` may be changed in place, which is faster."""
    n, rest = A.shape[axis], math.prod(A.shape[axis + 1 :])
    if not is_numpy_array(A) or (rest < 16 and n > 32):
        return namespace_of(A).cumulative_sum(A, axis=axis)
    slices = A.reshape(-1, n, rest)
    for j in range(1, n):
        slices[:, j] += slices[:, j - 1]
    return A


def extended(block: Array, ranks: Sequence[int]) -> Array:
    """Repeat the last slices of `block`, of shape (..., R0, ...), up to the ranks."""
    lead = block.ndim - len(ranks)
    for axis, R in enumerate(ranks, start=lead):
        n = block.shape[axis]
        if n != R:
            index = asarray_like(np.minimum(np.arange(R), n - 1), block)
            block = namespace_of(block).take(block, index, axis=axis)
    return block


def rotated(A: Array, B: Array, bases: Sequence[Array]) -> tuple[Array, Array]:
    """Return the tensors ``A' x_1 U1' ...`` and ``B' x_1 U1' ...`` of matrices (..., D, k).

    The matrices are concatenated, so that each step multiplies both. Each step multiplies along the
    leading mode, which becomes the last mode. This is one matrix product without a copy. After all
    steps, the modes have their original order.
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
    """Compute the held-out mean squared errors of all penalties and of all ranks up to `ranks`.

    Parameters
    ----------
    path : RankPath
        Path of the training problem and the held-out data, see `rank_path`.
    held_out : HeldOut
        Held-out data.
    alphas : sequence of n_alphas floats
        Penalties.
    ranks : sequence of int
        Largest rank of each mode, input mode first. If there are fewer entries than modes, only
        these modes are reduced: no mode for ridge regression, ``(R0,)`` for low-rank regression.
    out : array of shape (n_alphas, R0, ...), optional
        Array for the result, on the host or on the device of the problem.
    tick : callable, optional
        Function that is called after each penalty.

    Returns
    -------
    array of shape (n_alphas, R0, ...)
        Errors, on the host or in `out`. Entry ``[a, i, j, ...]`` belongs to the rank
        ``(i + 1, j + 1, ...)``. Ranks that the problem does not support have the error of the
        largest rank that it supports.
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
        # Rounding can make the errors of nearly exact fits negative.
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


def rank_path(problem: Spectral, held_out: Any, ranks: tuple[int, ...]) -> RankPath:
    """Return the path of a problem, which uses the shorter side of the unfolded problem.

    Parameters
    ----------
    problem : Spectral
        Training problem.
    held_out, ranks
        Parameters of `RankPath`.
    """
    is_tall = problem.T.shape[0] > _rest(problem.T.shape, 0)
    return (OutputSidePath if is_tall else RankPath)(problem, held_out, ranks)


class RankPath:
    """Errors of all ranks and penalties of one training problem.

    The path keeps the values that the penalties share.

    Parameters
    ----------
    problem : Spectral
        Training problem.
    held_out : HeldOut or HeldOutSamples
        Held-out data.
    ranks : tuple of int
        Largest rank of each mode that is reduced, input mode first.
    """

    def __init__(self, problem: Spectral, held_out: Any, ranks: tuple[int, ...]) -> None:
        self.problem, self.s = problem, problem.s
        self.scale = safe_scale(problem.T)
        self.T = problem.T if self.scale == 1.0 else problem.T / self.scale
        self.held_out, self.yy = held_out, held_out.yy
        # Singular values beyond the product of the sizes of the other modes are zero.
        rest = [_rest(self.T.shape, mode) for mode in range(len(ranks))]
        self.ranks = [min(some) for some in zip(ranks, self.T.shape, rest, strict=False)]
        self.is_matrix = len(ranks) < self.T.ndim
        self.both: tuple[int, int] | None = None
        if len(ranks) == self.T.ndim == 2:
            # The fit of rank (R0, R1) is the matrix fit of rank min(R0, R1).
            self.is_matrix, self.both = True, (self.ranks[0], self.ranks[1])
            self.ranks = [min(self.ranks)]
        self.found: dict[float, list[Array]] = {}
        self.room = 8 * math.prod(self.T.shape)  # bytes of bases that are kept on the host

    def root(self, alpha: float) -> Array:
        """Return ``sqrt(s^2 + alpha)``."""
        return self.problem.root(alpha)

    def prepare(self, alphas: Sequence[float]) -> None:
        """Compute the bases of many penalties together, if that is faster than one by one."""
        prepare_paths([self], alphas)

    def scaled_grams(self, alphas: Sequence[float]) -> list[Array]:
        """Return the Gram matrices of Z of each reduced mode at some penalties, (n_alphas, d, d).

        Return an empty list if the bases are computed one by one: for long modes and, on the host,
        for all but small problems.
        """
        free = range(len(self.ranks))
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
        """Keep the leading eigenvectors of `scaled_grams`, given by increasing eigenvalue."""
        pairs = zip(vectors, self.ranks, strict=False)
        # The errors do not depend on the signs of the eigenvectors.
        bases: list[Array] = all_to_device_of([U[:, :, : -R - 1 : -1] for U, R in pairs], self.T)
        self.found |= {alpha: [U[a, ...] for U in bases] for a, alpha in enumerate(alphas)}

    def together(self, alphas: Sequence[float]) -> list[slice]:
        """Return slices of penalties whose terms are computed together."""
        n, step = len(alphas), 1
        if all(alpha in self.found for alpha in alphas):
            # Core and products, and a copy of each while they are rotated.
            most = _TOGETHER_ON_HOST if on_host(self.T) else _TOGETHER
            step = max(1, most // (32 * math.prod(self.T.shape)))
        return [slice(i, min(i + step, n)) for i in range(0, n, step)]

    def errors(self, *alphas: float) -> Array:
        """Return the squared errors of all ranks, with a leading axis for several penalties."""
        return self.expanded(self.terms(*alphas).errors(self.yy))

    def expanded(self, errors: Array) -> Array:
        """Expand the errors of matrix ranks to all multilinear ranks, of shape (..., R0, ...)."""
        if self.both is None:
            return errors
        xp, n = namespace_of(errors), errors.shape[-1]
        lower = np.minimum(np.minimum.outer(*map(np.arange, self.both)), n - 1).reshape(-1)
        errors = xp.take(errors, asarray_like(lower, errors), axis=-1)
        return xp.reshape(errors, (*errors.shape[:-1], *self.both))

    def terms(self, *alphas: float) -> Terms:
        """Return core, products and Gram matrix, with a leading axis for several penalties."""
        xp = namespace_of(self.T)
        if len(alphas) == 1:
            root, (U0, *others) = self.root(alphas[0]), self._bases(alphas[0])
        else:
            root = xp.stack([self.root(alpha) for alpha in alphas])
            U0, *others = map(xp.stack, zip(*map(self._bases, alphas), strict=True))
        A = U0 / root[..., None]  # map from feature coordinates to core coordinates
        V = U0 * (self.s / root * self.scale)[..., None]
        C, B = self.held_out.C, unfold(self.held_out.B, 0)
        G = xp.matrix_transpose(A) @ C @ A
        if self.is_matrix:
            return self._matrix_terms(V, A, G)
        S, H = rotated(unfold(self.T, 0).T @ V, B.T @ A, others)
        return Terms(S, H, xp.tril(G) + xp.tril(G, k=-1))

    def ridge_errors(self, alphas: Iterable[float]) -> np.ndarray:
        """Return the squared errors of ridge regression."""
        squares, linear = self.ridge_products(alphas)
        return np.maximum(self.yy + np.diagonal(squares) - 2 * linear, 0.0)

    def ridge_products(self, alphas: Iterable[float]) -> tuple[np.ndarray, np.ndarray]:
        """Return the inner products of ridge predictions with each other and with the outputs.

        Returns
        -------
        squares : array of shape (n_alphas, n_alphas)
            Inner products of the predictions at all pairs of penalties.
        linear : array of shape (n_alphas,)
            Inner products of the predictions with the outputs.
        """
        xp = namespace_of(self.T)
        c = xp.stack([self.ridge_scale(alpha) for alpha in alphas])
        squares, cross = self._ridge_terms
        return to_numpy((c @ squares) @ c.T), to_numpy(c @ cross)

    def ridge_scale(self, alpha: float) -> Array:
        """Return the factors of the rows of `T` in the coefficients of ridge regression, (r,)."""
        root = self.root(alpha)
        return self.s / root / root * self.scale

    def directions(self, alpha: float, ranks: Sequence[int]) -> Directions:
        """Return the directions and the core of all fits up to `ranks` at one penalty."""
        root, (U0, *bases) = self.root(alpha), self._bases(alpha, ranks)
        left, right = U0 / root[:, None], U0 * (self.s / root * self.scale)[:, None]
        columns = unfold(self.T, 0).T @ right
        if self.both is not None:
            return self._of_one_mode(left, columns)
        return self._directions(left, columns, bases)

    def _of_one_mode(self, left: Array, columns: Array) -> Directions:
        """Return `Directions` from the orthogonal rows of the core, given as columns, (D, R0)."""
        xp = namespace_of(columns)
        norm = xp.sqrt(xp.sum(columns * columns, axis=0))
        unit = xp.where(norm > 0, norm, xp.ones_like(norm))
        eye = xp.eye(norm.shape[0], dtype=norm.dtype, device=device_of(norm))
        return Directions(left, eye * norm, [columns / unit])

    def _directions(self, left: Array, columns: Array, bases: list[Array]) -> Directions:
        """Return `Directions` from the rows of the core in all outputs, as columns, (D, R0)."""
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
        """Gram matrices of every row of `T` for each output mode.

        The Gram matrices of Z are weighted sums of these matrices. The entry of a mode is None if
        its matrices would take more than twice the memory of `T`.
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
        """Return the bases of all reduced modes at one penalty, up to some ranks."""
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
        """Return the bases of the output modes; `ranks` has the rank of the input mode first."""
        ranks = self.ranks if ranks is None else ranks
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
        """Product ``T_(0) B_(0)'``."""
        return unfold(self.T, 0) @ unfold(self.held_out.B, 0).T

    @cached_property
    def _ridge_terms(self) -> tuple[Array, Array]:
        """Coefficients of the quadratic and linear forms in the factors of the rows of `T`."""
        cross = namespace_of(self.T).linalg.diagonal(self._cross)
        return self.held_out.C * self.input_gram, cross

    def _matrix_terms(self, V: Array, A: Array, G: Array) -> Terms:
        """Return the terms along the input rank for outputs of full rank, from small matrices.

        The rows of the core are orthogonal. The sum of ``S * (tril(G, -1) S)`` over the
        outputs is therefore zero, and the norms of the rows replace the rows.
        """
        xp = namespace_of(self.T)
        # Rounding can make squared norms negative.
        norm = xp.sqrt(xp.clip(xp.sum(V * (self.input_gram @ V), axis=-2), 0.0, None))
        inner = xp.sum(V * (self._cross @ A), axis=-2)
        one = xp.ones_like(norm)
        H = xp.where(norm > 0, inner / xp.where(norm > 0, norm, one), 0 * one)
        eye = xp.eye(G.shape[-1], dtype=G.dtype, device=device_of(G))
        return Terms(norm, H, G * eye)


def prepare_paths(paths: Sequence[RankPath], alphas: Sequence[float]) -> None:
    """Compute the bases of many problems and penalties on all cores, with one transfer each way."""
    new = [[alpha for alpha in alphas if alpha not in path.found] for path in paths]
    grams = [path.scaled_grams(some) for path, some in zip(paths, new, strict=True)]
    found = iter(_eigenvectors(all_to_numpy([*chain(*grams)])))
    for path, some, own in zip(paths, new, grams, strict=True):
        if own:
            path.keep(some, [next(found) for _ in own])


def _eigenvectors(stacks: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return eigenvectors of all matrices by increasing eigenvalue; threads share large ones."""
    if all(G.shape[1] <= _ROWS_OF_A_THREAD for G in stacks):
        return [np.linalg.eigh(G)[1] for G in stacks]
    parts = [np.array_split(G, min(len(G), 1 + G.shape[1] // _ROWS_OF_A_THREAD)) for G in stacks]
    found = iter(map_in_threads(lambda G: np.linalg.eigh(G)[1], [*chain(*parts)]))
    return [np.concatenate([next(found) for _ in some]) for some in parts]


def _scaled_rows(T: Array, d: Array) -> Array:
    """Return ``T x_0 diag(d)``."""
    return T * namespace_of(T).reshape(d, (-1, *(1,) * (T.ndim - 1)))


def _rest(shape: Sequence[int], mode: int) -> int:
    """Return the product of the sizes of the other modes."""
    return math.prod(shape[:mode]) * math.prod(shape[mode + 1 :])


# ---------------------------------------------------------------- few outputs


class OutputSidePath(RankPath):
    """Path of a problem with fewer outputs than input directions.

    With the singular value decomposition ``Z = U0 diag(sigma) V'``, the fit of input rank R is the
    ridge fit projected onto the leading R columns of `V`. With the ridge predictions ``P`` of the
    held-out samples,

        S = V' x_1 U1' ... ,    H = V'P'Yv x_1 U1' ... ,    G = V'P'P V

    replace core, products and Gram matrix of the error surface, since the factors ``sigma`` of the
    core and ``1 / sigma`` of the others cancel in every term.
    """

    def scaled_grams(self, alphas: Sequence[float]) -> list[Array]:
        """Return an empty list, since the directions of a penalty have the size of the outputs."""
        return []

    def together(self, alphas: Sequence[float]) -> list[slice]:
        """Return one slice for each penalty."""
        return [slice(a, a + 1) for a in range(len(alphas))]

    def terms(self, *alphas: float) -> Terms:
        xp, (alpha,) = namespace_of(self.T), alphas  # penalties are computed one at a time
        V, *others = self._bases(alpha)
        W = self.ridge_scale(alpha)[:, None] * (unfold(self.T, 0) @ V)
        G, H = self.held_out.products(W)
        if self.is_matrix:
            # The rows of V' are orthonormal, so the sum over the outputs has only diagonal terms.
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
        """Return the leading output directions, (D, rank), in place of input directions."""
        Z = unfold(self.T, 0) * (self.s / root)[:, None]
        return eigh_top(Z.T @ Z, rank)[1]


@dataclass(frozen=True, eq=False)
class HeldOutSamples:
    """Held-out samples in the coordinates of a training problem."""

    F: Array  # ``(K(Xv, X) - mean) basis``, (n_samples, r), times the roots of the weights
    Y: Array  # outputs minus the training mean, (n_samples, D), times the roots of the weights
    yy: float  # squared norm of `Y`
    weight: float  # sum of the weights

    # Products of the features, which `HeldOut` has in place of the samples, are not computed.
    C = None
    B = None

    @classmethod
    def of(cls, F: Array, Y: Array, mean_y: Array, w: Array | None) -> HeldOutSamples:
        """Return held-out samples from features and outputs that are not centred or weighted."""
        xp = namespace_of(F)
        Y = xp.reshape(xp.astype(Y, xp.float64, copy=False) - mean_y, (F.shape[0], -1))
        if w is not None:
            root = xp.sqrt(w)[:, None]
            F, Y = F * root, Y * root
        weight = float(F.shape[0]) if w is None else float(xp.sum(w))
        return cls(F, Y, float(squared_norm(Y)), weight)

    @property
    def size(self) -> float:
        """Weight times number of outputs, the divisor of a mean of squares."""
        return self.weight * self.Y.shape[1]

    def products(self, W: Array) -> tuple[Array, Array]:
        """Return ``P'P`` and ``P'Yv`` of the predictions ``P = F W``, for `W` of shape (r, k)."""
        P = self.F @ W
        return P.T @ P, P.T @ self.Y

    def inner(self, W: Array) -> Array:
        """Return ``P'F``, the products of predictions and features, of shape (k, r)."""
        return (self.F @ W).T @ self.F

    def times(self, W: Array) -> tuple[Array, Array]:
        """Return ``F'P`` and the inner product of ``P = F W`` and `Y`, for `W` of shape (r, D)."""
        P = self.F @ W
        return self.F.T @ P, namespace_of(W).sum(P * self.Y)

    def gains(self, W: Array) -> Array:
        """Return squared errors of ``P = F W`` minus those of the mean, (D,)."""
        P = self.F @ W
        return namespace_of(W).sum(P * (P - 2 * self.Y), axis=0)
