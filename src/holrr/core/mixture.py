"""Mixtures: weighted sums of fits of several ranks, as one model.

The fits of all ranks at one penalty are leading blocks of one core, the HOSVD of the whitened
tensor `Z`, so that their mixture multiplies this core by a mask. Ridge regression at the same
penalty is `Z` itself. Ridge regression that averages penalties for each output
(`average_of_penalties`) is another filter of the singular values in the same coordinates. The sum
of the three terms is one tensor, and `add_tuckers` computes its Tucker form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .approximate import Approximation, MatrixRank, RankSpec, Structure
from .average import average_of_penalties
from .fit import scaled_alpha
from .namespace import (
    Array,
    asarray_like,
    device_of,
    eigh_top,
    namespace_of,
    squared_norm,
    svd,
    to_numpy,
)
from .spectral import Spectral, Whitened
from .tensor import Tucker, gram, mode_product, multi_mode_product, unfold

__all__ = ["Mixture", "add_tuckers", "mask_of"]

Rank = tuple[int, ...]

# Share of the norm of a core below which a direction is rounding noise.
_NOTHING = 1e-14


@dataclass(frozen=True, eq=False)
class Mixture:
    """A weighted sum of fits: a structure.

    The weights are at least zero, and their sum is at most one; the rest is the weight of the mean.

    Parameters
    ----------
    base : MatrixRank or MultilinearRank
        Structure of the fits of low rank; its rank is replaced by the rank of each fit.
    alpha : float
        Penalty of the fits of low rank and of `ridge`.
    ranks : tuple of (rank, weight)
        Ranks of the fits, with an entry for each mode that is reduced, and their weights.
    ridge : float
        Weight of ridge regression.
    averaged : tuple of float
        Penalties that a second ridge regression averages for each output.
    by_output : float
        Weight of this second ridge regression.
    compact : bool
        Whether the sum is converted to Tucker form; otherwise it is a dense tensor.
    """

    base: Any
    alpha: float
    ranks: tuple[tuple[Rank, float], ...] = ()
    ridge: float = 0.0
    averaged: tuple[float, ...] = ()
    by_output: float = 0.0
    compact: bool = True

    @property
    def needs_response_grams(self) -> bool:
        """Whether the Gram matrices of the raw outputs are needed."""
        return self.base.needs_response_grams

    @property
    def min_alpha(self) -> float:
        """The smallest penalty."""
        return min((self.alpha, *self.averaged))

    def about(self, alpha: float) -> Mixture:
        """Return the mixture with all penalties times one factor, such that its own is `alpha`."""
        if alpha == self.alpha or self.alpha == 0:
            return self
        return replace(self.in_units(math.sqrt(self.alpha / alpha)), alpha=alpha)

    def in_units(self, unit: float) -> Mixture:
        """Return the mixture for inputs that were divided by `unit`."""
        averaged = tuple(scaled_alpha(alpha, unit) for alpha in self.averaged)
        return replace(self, alpha=scaled_alpha(self.alpha, unit), averaged=averaged)

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """Return the largest rank of each reduced mode."""
        return self._of_rank((n_inputs, *output_shape), n_inputs, output_shape).check(
            n_inputs, output_shape
        )

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Return the number of input directions of Z that `approximate` reads: all."""
        return None

    def approximate(
        self,
        problem: Whitened,
        n_inputs: int,
        *,
        rotate: bool = False,
        known: Tucker | None = None,
    ) -> Approximation:
        """Return the sum as an approximation of Z.

        Parameters
        ----------
        problem : Whitened
            Problem at the penalty of the mixture, with the `spectral` problem of all penalties.
        n_inputs : int
            Number of inputs, which bounds the rank of the input mode.
        rotate : bool
            Not used: all reduced modes are in leading directions.
        known : Tucker, optional
            Decomposition of Z of at least the ranks that are mixed, with all reduced modes in
            leading directions. It is not computed again, and the result has no spectra of Z.
        """
        spectral, trace = problem.spectral, problem.factor.trace()
        assert isinstance(spectral, Spectral)
        assert trace is not None
        shape = spectral.T.shape
        parts, freedom = [], self.ridge * trace
        spectra: tuple[np.ndarray, ...] | None = None if known is None else ()
        if self.ranks:
            mask = mask_of(*zip(*self.ranks, strict=True))
            low = known
            if low is None:
                # The columns of outputs that are never observed are used as they are.
                fit = self._of_rank(mask.shape, n_inputs, shape[1:])
                found = fit.approximate(replace(problem, never=None), n_inputs, rotate=True)
                low, spectra = found.tucker, found.spectra
            low = low.masked(asarray_like(mask, low.core))
            parts.append(low)
            for rank, weight in self.ranks:
                one = low.truncate([*map(min, rank, low.rank), *low.rank[len(rank) :]])
                freedom += weight * problem.share(one) * trace
        dense = self.ridge * problem.Z if self.ridge else None
        if self.by_output:
            W, traces = average_of_penalties(spectral, self.averaged)
            scale = namespace_of(W).reshape(spectral.root(self.alpha), (-1, *(1,) * (W.ndim - 1)))
            W = W * (self.by_output * scale)
            dense = W if dense is None else dense + W
            freedom += self.by_output * float(np.mean(traces))
        if dense is not None:
            parts.append(Tucker(dense, (None,) * dense.ndim))
        if not parts:  # the mean alone
            parts.append(Tucker(0 * problem.Z, (None,) * problem.Z.ndim))
        if self.compact:
            V = add_tuckers(parts, range(1 if self._is_matrix else len(shape)))
        else:
            total: Any = sum(multi_mode_product(part.core, part.factors) for part in parts)
            V = Tucker(total, (None,) * total.ndim)
        if spectra is None:
            ones = self._of_rank((1,) * len(shape), n_inputs, shape[1:])
            spectra = ones.approximate(replace(problem, never=None), n_inputs).spectra
        whole = trace * problem.share(V)
        return Approximation(
            V,
            _distance(problem, V),
            tails=(0.0,) * V.core.ndim,
            spectra=spectra,
            share=freedom / whole if whole > 0 else 1.0,
        )

    @property
    def _is_matrix(self) -> bool:
        """Whether only the input mode is reduced."""
        return isinstance(self.base, MatrixRank)

    def _of_rank(self, rank: Sequence[int], n_inputs: int, outputs: Sequence[int]) -> Structure:
        """Return the structure of one rank, capped at the sizes of the modes."""
        capped = tuple(map(min, rank, (n_inputs, *outputs)))
        return replace(self.base, rank=capped[0] if self._is_matrix else capped)


def mask_of(ranks: Sequence[Rank], weights: Iterable[float]) -> np.ndarray:
    """Return the weighted sum of leading blocks of ones, of the size of the largest ranks.

    Examples
    --------
    >>> mask_of([(1, 2), (2, 1)], [0.75, 0.25])
    array([[1.  , 0.75],
           [0.25, 0.  ]])
    """
    mask = np.zeros(np.max(ranks, axis=0))
    for rank, weight in zip(ranks, weights, strict=True):
        mask[tuple(slice(R) for R in rank)] += weight
    return mask


def _distance(problem: Whitened, V: Tucker) -> float:
    """Return ``||Z - V||^2`` over the observed outputs; the factors of V are orthonormal."""
    if problem.never is not None:
        away = problem.Z - multi_mode_product(V.core, V.factors)
        return float(squared_norm(away[:, ~problem.never]))
    within = multi_mode_product(problem.Z, V.factors, transposed=True)
    inside = float(squared_norm(within - V.core))
    return max(problem.norm - float(squared_norm(within)), 0.0) + inside


# ---------------------------------------------------------------- sums of Tucker tensors


def add_tuckers(parts: Sequence[Tucker], modes: Iterable[int]) -> Tucker:
    """Return the sum of tensors of one shape in Tucker form, exact up to rounding.

    Parameters
    ----------
    parts : sequence of Tucker
    modes : iterable of int
        Modes that get an orthonormal factor, in leading directions of the sum. The other modes get
        no factor (None).

    Examples
    --------
    >>> one = Tucker(np.ones((1, 1)), (np.eye(3)[:, :1], np.eye(4)[:, :1]))
    >>> two = Tucker(np.ones((1, 1)), (np.eye(3)[:, 1:2], np.eye(4)[:, 1:2]))
    >>> total = add_tuckers([one, two], (0, 1))
    >>> total.rank, bool(np.allclose(total.to_dense(), one.to_dense() + two.to_dense()))
    ((2, 2), True)
    """
    shape, modes = parts[0].shape, tuple(modes)
    bases = [
        _joint_basis(parts, mode, d) if mode in modes else None for mode, d in enumerate(shape)
    ]
    core: Any = sum(_within(part, bases) for part in parts)
    factors: list[Array | None] = list(bases)
    for mode in modes:
        U = _rotation(core, mode)
        core = mode_product(core, U.T, mode)
        core, U = _with_energy(core, U, mode)
        Q = factors[mode]
        factors[mode] = U if Q is None else Q @ U
    for mode in sorted(modes, reverse=True):
        U = factors[mode]
        assert U is not None
        # The coordinates of the input mode are arbitrary. Its signs are chosen so that the largest
        # entry of each slice of the core is positive.
        signs = _signs(unfold(core, 0).T if mode == 0 else U)
        along = [1] * core.ndim
        along[mode] = signs.shape[0]
        core = core * namespace_of(core).reshape(signs, tuple(along))
        factors[mode] = U * signs
    return Tucker(core, tuple(factors), modes)


def _signs(A: Array) -> Array:
    """Return the sign of the entry of largest modulus of each column (the first, in a tie)."""
    xp = namespace_of(A)
    largest = A[xp.argmax(xp.abs(A), axis=0), xp.arange(A.shape[1], device=device_of(A))]
    return 1 - 2 * xp.astype(largest < 0, A.dtype)


def _eye_like(A: Array, n: int) -> Array:
    return namespace_of(A).eye(n, dtype=A.dtype, device=device_of(A))


def _with_energy(core: Array, U: Array, mode: int) -> tuple[Array, Array]:
    """Return the core and the directions of a mode, without directions of zero energy."""
    xp = namespace_of(core)
    rows = unfold(core, mode)
    scale = float(xp.max(xp.abs(rows)))
    if not 0 < scale < math.inf:
        return core, U
    norms = to_numpy(xp.sqrt(xp.sum((rows / scale) ** 2, axis=1)))
    # Directions of lower energy are rounding errors. The others are sorted, since those near the
    # precision of squares may be out of order.
    keep = np.flatnonzero(norms > _NOTHING * np.linalg.norm(norms))
    if keep.size == norms.size:
        return core, U
    keep = keep[np.argsort(-norms[keep], kind="stable")]
    index = xp.asarray(keep, device=device_of(core))
    return xp.take(core, index, axis=mode), xp.take(U, index, axis=1)


def _joint_basis(parts: Sequence[Tucker], mode: int, size: int) -> Array | None:
    """Return an orthonormal basis of the factors of a mode together; None for the whole mode."""
    factors: list[Any] = [part.factors[mode] for part in parts]
    if any(U is None for U in factors) or sum(U.shape[1] for U in factors) >= size:
        return None
    xp = namespace_of(factors[0])
    return xp.linalg.qr(xp.concat(factors, axis=1))[0]


def _within(part: Tucker, bases: Sequence[Array | None]) -> Array:
    """Return the core of a tensor in the coordinates of the bases, whose span contains it."""
    maps = [
        U if Q is None else (Q.T if U is None else Q.T @ U)
        for U, Q in zip(part.factors, bases, strict=True)
    ]
    return multi_mode_product(part.core, maps)


def _rotation(core: Array, mode: int) -> Array:
    """Return orthonormal directions of a mode, the leading ones first, as many as possible."""
    R, rest = core.shape[mode], math.prod(core.shape) // max(core.shape[mode], 1)
    if R <= rest:
        G = gram(core, mode)
        xp = namespace_of(G)
        largest = float(xp.max(xp.abs(G)))
        if not 1e-280 < largest < 1e280:  # squares would underflow or overflow
            if not 0 < largest < math.inf:
                return _eye_like(core, R)
            G = G / largest
        return eigh_top(G, R)[1]
    return svd(unfold(core, mode))[0]
