"""A tensor in Tucker form: a small core and one factor a mode."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from .namespace import Array, all_to_device_of, device_of, namespace_of, to_device_of
from .tensor import multi_mode_product

__all__ = ["Tucker", "n_parameters"]


@dataclass(frozen=True, eq=False)
class Tucker:
    """The tensor ``core x_0 factors[0] x_1 factors[1] ...``.

    Parameters
    ----------
    core : array of shape (R0, ..., Rp)
    factors : tuple of p + 1 arrays of shape (d_i, R_i)
        None stands for the identity of size R_i, which is never stored.
    leading : tuple of int
        The modes whose factors hold leading directions, in their order: of these `truncate` keeps
        the first, which is the fit of the lower rank. Other modes cannot be cut.

    Examples
    --------
    >>> import numpy as np
    >>> T = Tucker(np.ones((1, 2)), (np.ones((3, 1)), None))
    >>> T.shape, T.rank, T.to_dense().shape
    ((3, 2), (1, 2), (3, 2))

    It is taken apart and put to use without ever being built:

    >>> [U.shape for U in T.dense_factors()], T.map_input(np.eye(3)[:2]).shape
    ([(3, 1), (2, 2)], (2, 2))
    >>> T = Tucker(T.core, T.factors, leading=(0, 1))
    >>> T.truncate((1, 1)).rank, T.masked(np.array([[1.0, 0.5]])).core
    ((1, 1), array([[1. , 0.5]]))
    >>> T.astype(np.float32).to_device_of(np.ones(1)).core.dtype
    dtype('float32')
    """

    core: Array
    factors: tuple[Array | None, ...]
    leading: tuple[int, ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the dense tensor."""
        return tuple(
            R if U is None else U.shape[0]
            for R, U in zip(self.core.shape, self.factors, strict=True)
        )

    @property
    def rank(self) -> tuple[int, ...]:
        """Shape of the core."""
        return tuple(self.core.shape)

    @property
    def n_parameters(self) -> int:
        """Dimension of the set of tensors of this shape and rank, see `n_parameters`."""
        return n_parameters(self.shape, self.rank)

    def to_dense(self) -> Array:
        """The tensor in full."""
        return multi_mode_product(self.core, self.factors)

    def dense_factors(self) -> list[Array]:
        """All factors, the identities written out."""
        xp = namespace_of(self.core)
        return [
            xp.eye(R, dtype=self.core.dtype, device=device_of(self.core)) if U is None else U
            for R, U in zip(self.core.shape, self.factors, strict=True)
        ]

    def truncate(self, rank: Sequence[int]) -> Tucker:
        """The leading block of the core and the leading columns of the factors.

        Parameters
        ----------
        rank : sequence of p + 1 ints
            Lower than the present one only in modes that are in leading directions.
        """
        self._check_cut(rank)
        core = self.core[tuple(slice(R) for R in rank)]
        factors = tuple(
            None if U is None else U[:, :R] for U, R in zip(self.factors, rank, strict=True)
        )
        return Tucker(core, factors, self.leading)

    def masked(self, mask: Array) -> Tucker:
        """The core multiplied by a mask of its leading modes, and cut to the size of it.

        Parameters
        ----------
        mask : array of shape (R0, ...)
            With fewer modes than the core, or smaller than it: the core beyond it is dropped, the
            modes that it does not have are kept as they are.
        """
        xp, order = namespace_of(self.core), self.core.ndim
        rank = [*map(min, mask.shape, self.rank), *self.rank[mask.ndim :]]
        self._check_cut([0] * mask.ndim + rank[mask.ndim :])
        short = self.truncate(rank)
        mask = mask[tuple(slice(R) for R in rank[: mask.ndim])]
        mask = xp.reshape(mask, tuple(mask.shape) + (1,) * (order - mask.ndim))
        return Tucker(short.core * mask, short.factors, short.leading)

    def _check_cut(self, rank: Sequence[int]) -> None:
        for mode, (R, full) in enumerate(zip(rank, self.rank, strict=True)):
            if R < full and mode not in self.leading:
                raise ValueError(
                    f"mode {mode} of this tensor cannot be cut from rank {full} to {R}: its factor "
                    f"is not in leading directions, so that the first columns are no fit of lower "
                    f"rank. Fit again with the lower rank."
                )

    def map_input(self, M: Array) -> Array:
        """Mode-0 product with the rows of `M`, of shape (n, d0): the tensor (n, d1, ..., dp).

        The dense tensor is never built. Either the core is expanded along the output modes first
        and each row is one combination of its R0 slices, or each row is mapped into the core's
        coordinates and expanded there; whichever takes fewer operations.
        """
        xp = namespace_of(M, self.core)
        rows = M if self.factors[0] is None else M @ self.factors[0]
        if self._expand_core_first(rows.shape[0]):
            out = rows @ self._expanded()
            return xp.reshape(out, (M.shape[0], *self.shape[1:]))
        small = rows @ xp.reshape(self.core, (self.core.shape[0], math.prod(self.core.shape[1:])))
        small = xp.reshape(small, (M.shape[0], *self.core.shape[1:]))
        return multi_mode_product(small, (None, *self.factors[1:]))

    def _expanded(self) -> Array:
        """The core times the output factors, as a matrix (R0, d1 ... dp); kept where it is small.

        For a single row it would be most of the work.
        """
        found = _EXPANDED.get(self)
        if found is None:
            core = multi_mode_product(self.core, (None, *self.factors[1:]))
            size = math.prod(core.shape[1:])
            found = namespace_of(core).reshape(core, (core.shape[0], size))
            if core.shape[0] * size <= _MAX_KEPT:
                _EXPANDED[self] = found
        return found

    def _expand_core_first(self, n_rows: int) -> bool:
        R0, size = self.core.shape[0], math.prod(self.shape[1:])
        expand = _expansion_cost(self.rank[1:], self.shape[1:])
        core_first = R0 * expand + n_rows * R0 * size
        rows_first = n_rows * (math.prod(self.rank) + expand)
        # Slices are combined by one matrix product, at a far higher rate than the many small
        # ones of an expansion row by row.
        return R0 < self.shape[0] and core_first <= 4 * rows_first

    def astype(self, dtype: object) -> Tucker:
        """The same tensor in another floating-point type."""
        xp = namespace_of(self.core)
        return Tucker(
            xp.astype(self.core, dtype, copy=False),
            tuple(None if U is None else xp.astype(U, dtype, copy=False) for U in self.factors),
            self.leading,
        )

    def to_device_of(self, like: Array) -> Tucker:
        """The same tensor in the array library and on the device of `like`."""
        if type(self.core) is type(like) and to_device_of(self.core, like) is self.core:
            return self
        core, *factors = all_to_device_of([self.core, *self.factors], like)
        return Tucker(core, tuple(factors), self.leading)


# Kept apart from the tensors, so that files and copies do not hold them.
_EXPANDED: WeakKeyDictionary[Tucker, Array] = WeakKeyDictionary()
_MAX_KEPT = 2**16


def _expansion_cost(rank: Sequence[int], shape: Sequence[int]) -> int:
    """Multiplications that expand one core slice to an output, one mode after the other."""
    cost, size = 0, math.prod(rank)
    for R, d in zip(rank, shape, strict=True):
        size = size // max(R, 1) * d
        cost += size * R
    return cost


def n_parameters(shape: Sequence[int], rank: Sequence[int]) -> int:
    """Dimension of the set of tensors of the given shape and multilinear rank.

    The core has ``prod(R)`` entries and each subspace ``R_i (d_i - R_i)`` degrees of freedom. Full
    ranks give the number of entries of the tensor. A rank above the product of the others adds
    nothing and is counted as that product.

    Examples
    --------
    >>> n_parameters((10, 4, 5), (10, 4, 5)), n_parameters((10, 4, 5), (2, 2, 2))
    (200, 34)
    """
    R = list(rank)
    for _ in R:  # lowering one rank can lower what another may use
        R = [min(R[i], math.prod(R[:i]) * math.prod(R[i + 1 :])) for i in range(len(R))]
    return math.prod(R) + sum(r * (d - r) for r, d in zip(R, shape, strict=True))
