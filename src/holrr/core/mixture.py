"""Mixtures: weighted sums of the fits of several ranks and penalties, as one model.

In the whitened coordinates of a penalty ``a`` a fit is a tensor ``V_a``, and its coefficients are
``basis diag(1 / root_a) V_a`` with ``root_a = sqrt(lam + a)``. So a sum over penalties is one
tensor in the coordinates of any of them,

    V = sum_a diag(root / root_a) V_a ,

and `add_tuckers` computes its Tucker form exactly: the factors of each mode, side by side, get one
orthonormal basis, and the small core is rotated into its leading directions. At one penalty, the
fits of all ranks are leading blocks of one core, so that their mixture multiplies this core by a
mask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .approximate import Approximation, MatrixRank, RankSpec, Structure
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

__all__ = ["Component", "Mixture", "add_tuckers", "mask_of", "mix"]

Rank = tuple[int, ...]

# Share of the norm of a core below which a direction is rounding noise.
_NOTHING = 1e-14


@dataclass(frozen=True, eq=False)
class Component:
    """The fits of a mixture that share a penalty.

    Parameters
    ----------
    alpha : float
    ranks : tuple of (rank, weight)
        Ranks of the fits, with an entry for each mode that is reduced, and their weights.
    ridge : float
        Weight of the fit of full rank.
    """

    alpha: float
    ranks: tuple[tuple[Rank, float], ...] = ()
    ridge: float = 0.0


@dataclass(frozen=True, eq=False)
class Mixture:
    """A weighted sum of fits: a structure whose components may differ in their penalties.

    Parameters
    ----------
    base : MatrixRank or MultilinearRank
        Structure of the fits; its rank is replaced by the rank of each fit.
    alpha : float
        Penalty of the problem in whose coordinates the sum is formed.
    components : tuple of Component
    compact : bool
        Whether the sum is converted to Tucker form; otherwise it is a dense tensor.
    """

    base: Any
    alpha: float
    components: tuple[Component, ...]
    compact: bool = True

    @property
    def needs_response_grams(self) -> bool:
        """Whether the Gram matrices of the raw outputs are needed."""
        return self.base.needs_response_grams

    @property
    def min_alpha(self) -> float:
        """The smallest penalty."""
        return min([self.alpha, *(part.alpha for part in self.components)])

    def about(self, alpha: float) -> Mixture:
        """Return the mixture with all penalties times one factor, such that its own is `alpha`."""
        if alpha == self.alpha or self.alpha == 0:
            return self
        return replace(self.in_units(math.sqrt(self.alpha / alpha)), alpha=alpha)

    def in_units(self, unit: float) -> Mixture:
        """Return the mixture for inputs that were divided by `unit`."""
        parts = (replace(p, alpha=scaled_alpha(p.alpha, unit)) for p in self.components)
        return replace(self, alpha=scaled_alpha(self.alpha, unit), components=tuple(parts))

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
        known: Mapping[float, Tucker] | None = None,
    ) -> Approximation:
        """Return the sum as an approximation of the Z of one penalty.

        Parameters
        ----------
        problem : Whitened
            Problem at the penalty of the mixture, with the `spectral` problem of all penalties.
        n_inputs : int
            Number of inputs, which bounds the rank of the input mode.
        rotate : bool
            Not used: all reduced modes are in leading directions.
        known : dict, optional
            Decompositions of Z for some penalties, of at least the ranks that are mixed, with all
            reduced modes in leading directions. They are not computed again, and the result has no
            spectra of Z.
        """
        spectral = problem.spectral
        assert isinstance(spectral, Spectral)
        known = {} if known is None else known
        fitted = [
            self._fitted(part, problem, spectral, n_inputs, known) for part in self.components
        ]
        parts = [fit.low for fit in fitted if fit.low is not None]
        scales = [fit.ridge_scale for fit in fitted if fit.ridge_scale is not None]
        if scales:
            Z = _scaled_rows(spectral.T, sum(scales[1:], start=scales[0]))
            parts.append(Tucker(Z, (None,) * Z.ndim))
        if self.compact:
            V = add_tuckers(parts, range(1 if self._is_matrix else spectral.T.ndim))
        else:
            dense: Any = sum(multi_mode_product(part.core, part.factors) for part in parts)
            V = Tucker(dense, (None,) * dense.ndim)
        spectra = next((fit.spectra for fit in fitted if fit.spectra is not None), None)
        if spectra is None and known:
            spectra = ()
        if spectra is None:
            ones = self._of_rank((1,) * spectral.T.ndim, n_inputs, spectral.T.shape[1:])
            spectra = ones.approximate(replace(problem, never=None), n_inputs).spectra
        whole = _trace(problem) * problem.share(V)
        return Approximation(
            V,
            _distance(problem, V),
            tails=(0.0,) * V.core.ndim,
            spectra=spectra,
            share=sum(fit.freedom for fit in fitted) / whole if whole > 0 else 1.0,
        )

    def _fitted(
        self,
        part: Component,
        problem: Whitened,
        spectral: Spectral,
        n_inputs: int,
        known: Mapping[float, Tucker],
    ) -> _Fitted:
        """Return the fits of a component in the coordinates of the mixture."""
        is_centre = part.alpha == self.alpha
        other = problem if is_centre else replace(spectral.at(part.alpha), never=problem.never)
        root, trace = spectral.root(part.alpha), _trace(other)
        ratio = spectral.root(self.alpha) / root
        scale = part.ridge * ratio * (spectral.s / root) if part.ridge else None
        freedom = part.ridge * trace
        if not part.ranks:
            return _Fitted(None, scale, freedom, None)
        mask = mask_of(*zip(*part.ranks, strict=True))
        spectra, V = None, known.get(part.alpha)
        if V is None:
            fit = self._of_rank(mask.shape, n_inputs, spectral.T.shape[1:])
            # The columns of outputs that are never observed are used as they are.
            found = fit.approximate(replace(other, never=None), n_inputs, rotate=True)
            V, spectra = found.tucker, found.spectra if is_centre else None
        V = V.masked(asarray_like(mask, V.core))
        for rank, weight in part.ranks:
            one = V.truncate([*map(min, rank, V.rank), *V.rank[len(rank) :]])
            freedom += weight * other.share(one) * trace
        low = _with_input_scale(V, ratio)
        return _Fitted(low, scale, freedom, spectra)

    @property
    def _is_matrix(self) -> bool:
        """Whether only the input mode is reduced."""
        return isinstance(self.base, MatrixRank)

    def _of_rank(self, rank: Sequence[int], n_inputs: int, outputs: Sequence[int]) -> Structure:
        """Return the structure of one rank, capped at the sizes of the modes."""
        capped = tuple(map(min, rank, (n_inputs, *outputs)))
        return replace(self.base, rank=capped[0] if self._is_matrix else capped)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """The fits of a component."""

    low: Tucker | None  # the sum of the fits of low rank
    ridge_scale: Array | None  # factors of the rows of T in the fit of full rank, (r,)
    freedom: float  # weighted sum of the degrees of freedom
    spectra: tuple[np.ndarray, ...] | None  # spectra of Z, at the penalty of the mixture


def _trace(problem: Whitened) -> float:
    """Return the degrees of freedom of each output in ridge regression."""
    trace = problem.factor.trace()
    assert trace is not None
    return trace


def mix(
    base: Any, alpha: float, parts: Iterable[tuple[float, Rank | None, float]], n_modes: int
) -> Mixture:
    """Return the mixture of fits of several ranks and penalties.

    Parameters
    ----------
    base, alpha
        As in `Mixture`.
    parts : iterable of (alpha, rank, weight)
        The rank has an entry for each mode that is reduced; None is full rank.
    n_modes : int
        Number of modes that are reduced.
    """
    found: dict[float, list[tuple[Rank | None, float]]] = {}
    for penalty, rank, weight in parts:
        found.setdefault(float(penalty), []).append((rank, float(weight)))
    components = []
    for penalty, fits in found.items():
        low = tuple((rank, weight) for rank, weight in fits if rank is not None)
        ridge = math.fsum(weight for rank, weight in fits if rank is None)
        components.append(Component(penalty, low, ridge))
    if not components:  # the null model
        components = [Component(float(alpha), (((1,) * n_modes, 0.0),))]
    return Mixture(base, float(alpha), tuple(components))


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


def _scaled_rows(T: Array, scale: Array) -> Array:
    """Return ``T x_0 diag(scale)``."""
    return T * namespace_of(T).reshape(scale, (-1, *(1,) * (T.ndim - 1)))


def _with_input_scale(V: Tucker, scale: Array) -> Tucker:
    """Return ``V x_0 diag(scale)``."""
    first, *others = V.factors
    if first is None:
        return Tucker(_scaled_rows(V.core, scale), V.factors)
    return Tucker(V.core, (first * scale[:, None], *others))


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
