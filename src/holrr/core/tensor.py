"""Tensors of any array library: unfoldings, mode products, and the Tucker form.

The mode-n unfolding puts mode n along the rows and the other modes, in C order, along the columns.
No formula of the library depends on the order of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

from .namespace import (
    Array,
    all_to_device_of,
    device_of,
    is_numpy_array,
    namespace_of,
    to_device_of,
)
from .sparse import is_sparse
from .state import record

__all__ = ["Tucker", "fold", "gram", "mode_product", "multi_mode_product", "n_parameters"]
__all__ += ["partial_traces", "unfold"]

# Number of entries of a transposed copy that fits into the cache of a core.
_CACHED = 2**16


def unfold(T: Array, mode: int) -> Array:
    """Return the mode-`mode` unfolding, of shape (T.shape[mode], T.size / T.shape[mode]).

    >>> import numpy as np
    >>> unfold(np.arange(6).reshape(1, 2, 3), 1)
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    xp = namespace_of(T)
    if mode > 0:
        T = xp.permute_dims(T, (mode, *range(mode), *range(mode + 1, T.ndim)))
    return xp.reshape(T, (T.shape[0], math.prod(T.shape[1:])))


def fold(M: Array, mode: int, shape: Sequence[int]) -> Array:
    """Return the tensor of the given shape whose mode-`mode` unfolding is `M`."""
    xp = namespace_of(M)
    T = xp.reshape(M, (shape[mode], *shape[:mode], *shape[mode + 1 :]))
    if mode == 0:
        return T
    return xp.permute_dims(T, (*range(1, mode + 1), 0, *range(mode + 1, T.ndim)))


def mode_product(T: Array, M: Array, mode: int) -> Array:
    """Return ``T x_mode M``: every mode-`mode` fibre of `T` multiplied by the matrix `M`."""
    before, after = T.shape[:mode], T.shape[mode + 1 :]
    left, d, right = math.prod(before), T.shape[mode], math.prod(after)
    reshape = namespace_of(T).reshape
    # A batch of matrix products, without a transposed copy.
    out = M @ reshape(T, (left, d, right)) if right != 1 else reshape(T, (left, d)) @ M.T
    return reshape(out, (*before, M.shape[0], *after))


def multi_mode_product(
    T: Array, matrices: Sequence[Array | None], *, skip: int | None = None, transposed: bool = False
) -> Array:
    """Return ``T x_0 M_0 x_1 M_1 ...`` (or with the transposes); None means the identity.

    The product that shrinks the tensor most is computed first, so that the others are cheap.
    """
    chosen = [
        None if M is None or mode == skip else M.T if transposed else M
        for mode, M in enumerate(matrices)
    ]
    pairs = [(mode, M) for mode, M in enumerate(chosen) if M is not None]
    for mode, M in sorted(pairs, key=lambda pair: pair[1].shape[0] / max(pair[1].shape[1], 1)):
        T = mode_product(T, M, mode)
    return T


def gram(T: Array, mode: int) -> Array:
    """Return ``T_(mode) T_(mode)'``, of shape (T.shape[mode], T.shape[mode])."""
    if mode == T.ndim - 1:  # no transposed copy: the last mode is along the columns already
        A = namespace_of(T).reshape(T, (math.prod(T.shape[:-1]), T.shape[-1]))
        return A.T @ A
    size = max(_CACHED, 4 * T.shape[mode] ** 2)
    if 0 < mode and 1 < T.shape[0] and 2 * size < math.prod(T.shape) and is_numpy_array(T):
        step = max(1, size * T.shape[0] // math.prod(T.shape))
        return sum(gram(T[i : i + step], mode) for i in range(0, T.shape[0], step))
    A = unfold(T, mode)
    return A @ A.T


def partial_traces(S: Array, shape: Sequence[int]) -> tuple[Array, ...]:
    """Return Gram matrices of the modes 1 to p of a tensor `Z`, from ``S = Z_(0)' Z_(0)``.

    Parameters
    ----------
    S : array of shape (d1 ... dp, d1 ... dp)
    shape : sequence of int
        ``(d1, ..., dp)``.

    >>> import numpy as np
    >>> Z = np.arange(24.0).reshape(2, 3, 4)
    >>> S = unfold(Z, 0).T @ unfold(Z, 0)
    >>> [bool(np.allclose(G, gram(Z, i + 1))) for i, G in enumerate(partial_traces(S, (3, 4)))]
    [True, True]
    """
    xp, found = namespace_of(S), []
    for mode, d in enumerate(shape):
        before, after = math.prod(shape[:mode]), math.prod(shape[mode + 1 :])
        T = xp.reshape(S, (before, d, after, before, d, after))
        # The larger trace first: the second one then reads a smaller array.
        axes = (1, 4, 0, 3, 2, 5) if after >= before else (1, 4, 2, 5, 0, 3)
        once = xp.sum(xp.linalg.diagonal(xp.permute_dims(T, axes)), axis=-1)
        found.append(xp.linalg.trace(once))
    return tuple(found)


# ---------------------------------------------------------------- Tucker form


@record
@dataclass(frozen=True, eq=False)
class Tucker:
    """Tensor in Tucker form: a core multiplied by a factor along every mode.

    It is ``core x_0 factors[0] x_1 factors[1] ...``, times `scale` if there is one.

    Parameters
    ----------
    core : array of shape (R0, ..., Rp)
    factors : tuple of p + 1 arrays of shape (d_i, R_i)
        None means the identity of size R_i, which is never stored.
    leading : tuple of int
        Modes whose factors contain leading directions, in order. `truncate` keeps the first of
        these directions, which gives the fit of lower rank. Other modes cannot be truncated.
    scale : array of shape (d_1, ..., d_p), optional
        Factor of each entry of modes 1 to p, which need not be a product over the modes.

    Examples
    --------
    >>> import numpy as np
    >>> T = Tucker(np.ones((1, 2)), (np.ones((3, 1)), None))
    >>> T.shape, T.rank, T.to_dense().shape
    ((3, 2), (1, 2), (3, 2))

    The methods do not form the dense tensor:

    >>> [U.shape for U in T.dense_factors()], T.map_input(np.eye(3)[:2]).shape
    ([(3, 1), (2, 2)], (2, 2))
    >>> T = Tucker(T.core, T.factors, leading=(0, 1))
    >>> T.truncate((1, 1)).rank, T.masked(np.array([[1.0, 0.5]])).core
    ((1, 1), array([[1. , 0.5]]))
    >>> T.astype(np.float32).to_device_of(np.ones(1)).core.dtype
    dtype('float32')
    >>> T.expanded().shape  # the output factors only
    (1, 2)
    """

    core: Array
    factors: tuple[Array | None, ...]
    leading: tuple[int, ...] = ()
    scale: Array | None = None

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
        """Return the dense tensor."""
        return self._scaled(multi_mode_product(self.core, self.factors))

    def _scaled(self, A: Array) -> Array:
        """Return an array of shape (n, d1, ..., dp) times the scale."""
        return A if self.scale is None else A * self.scale

    def dense_factors(self) -> list[Array]:
        """Return all factors, with identity matrices for None."""
        xp = namespace_of(self.core)
        return [
            xp.eye(R, dtype=self.core.dtype, device=device_of(self.core)) if U is None else U
            for R, U in zip(self.core.shape, self.factors, strict=True)
        ]

    def expanded(self) -> Array:
        """Return the core times the output factors, of shape (R0, d1, ..., dp)."""
        return self._scaled(multi_mode_product(self.core, (None, *self.factors[1:])))

    def truncate(self, rank: Sequence[int]) -> Tucker:
        """Return the tensor of the leading block of the core and leading columns of the factors.

        Parameters
        ----------
        rank : sequence of p + 1 ints
            The new rank. It may be lower than the present rank only in the modes of `leading`.
        """
        self._check_cut(rank)
        core = self.core[tuple(slice(R) for R in rank)]
        factors = tuple(
            None if U is None else U[:, :R] for U, R in zip(self.factors, rank, strict=True)
        )
        return replace(self, core=core, factors=factors)

    def masked(self, mask: Array) -> Tucker:
        """Return the tensor with its core truncated to the size of a mask and multiplied by it.

        Parameters
        ----------
        mask : array of shape (R0, ...)
            Mask, which may have fewer and shorter modes than the core. The core is truncated to the
            size of the mask. Modes that the mask does not have are unchanged.
        """
        xp, order = namespace_of(self.core), self.core.ndim
        rank = [*map(min, mask.shape, self.rank), *self.rank[mask.ndim :]]
        self._check_cut([0] * mask.ndim + rank[mask.ndim :])
        short = self.truncate(rank)
        mask = mask[tuple(slice(R) for R in rank[: mask.ndim])]
        mask = xp.reshape(mask, tuple(mask.shape) + (1,) * (order - mask.ndim))
        return replace(short, core=short.core * mask)

    def _check_cut(self, rank: Sequence[int]) -> None:
        for mode, (R, full) in enumerate(zip(rank, self.rank, strict=True)):
            if R < full and mode not in self.leading:
                raise ValueError(
                    f"mode {mode} of this tensor cannot be truncated from rank {full} to {R}: its "
                    f"factor is not in leading directions, so the first columns are not the fit of "
                    f"lower rank. Fit again with rank {R} in this mode."
                )

    def map_input(self, M: Array) -> Array:
        """Return the mode-0 product with `M`, of shape (n, d0), as an array (n, d1, ..., dp).

        The dense tensor is never formed. Either the core is expanded along the output modes first
        and each row is one combination of its R0 slices, or each row is mapped into the core's
        coordinates and expanded there. The order with fewer operations is used. `M` may be sparse.
        """
        xp = namespace_of(self.core) if is_sparse(M) else namespace_of(M, self.core)
        rows = M if self.factors[0] is None else M @ self.factors[0]
        if self._expand_core_first(rows.shape[0]):
            out = rows @ self._expanded_matrix()
            return xp.reshape(out, (M.shape[0], *self.shape[1:]))
        small = rows @ xp.reshape(self.core, (self.core.shape[0], math.prod(self.core.shape[1:])))
        small = xp.reshape(small, (M.shape[0], *self.core.shape[1:]))
        return self._scaled(multi_mode_product(small, (None, *self.factors[1:])))

    def _expanded_matrix(self) -> Array:
        """Return the core times the output factors, as a matrix (R0, d1 ... dp).

        A small matrix is cached, since for a single row it would be most of the work.
        """
        found = _EXPANDED.get(self)
        if found is None:
            core = self.expanded()
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
        # One matrix product that combines slices is far faster, per operation, than the many
        # small products of an expansion row by row.
        return R0 < self.shape[0] and core_first <= 4 * rows_first

    def astype(self, dtype: object) -> Tucker:
        """Return the same tensor in another floating-point type."""
        xp = namespace_of(self.core)
        core, scale, *factors = (
            None if A is None else xp.astype(A, dtype, copy=False)
            for A in (self.core, self.scale, *self.factors)
        )
        return Tucker(core, tuple(factors), self.leading, scale)

    def to_device_of(self, like: Array) -> Tucker:
        """Return the same tensor in the array library and on the device of `like`."""
        if type(self.core) is type(like) and to_device_of(self.core, like) is self.core:
            return self
        arrays = [self.core, self.scale, *self.factors]
        core, scale, *factors = all_to_device_of(arrays, like)
        return Tucker(core, tuple(factors), self.leading, scale)


# A cache outside of the tensors, so that files and copies do not contain it.
_EXPANDED: WeakKeyDictionary[Tucker, Array] = WeakKeyDictionary()
_MAX_KEPT = 2**16


def _expansion_cost(rank: Sequence[int], shape: Sequence[int]) -> int:
    """Return the number of multiplications that expand one core slice, mode by mode."""
    cost, size = 0, math.prod(rank)
    for R, d in zip(rank, shape, strict=True):
        size = size // max(R, 1) * d
        cost += size * R
    return cost


def n_parameters(shape: Sequence[int], rank: Sequence[int]) -> int:
    """Return the dimension of the set of tensors of the given shape and multilinear rank.

    The core has ``prod(R)`` entries and each subspace ``R_i (d_i - R_i)`` degrees of freedom. Full
    ranks give the number of entries of the tensor. A rank above the product of the others adds
    nothing and is counted as that product.

    Examples
    --------
    >>> n_parameters((10, 4, 5), (10, 4, 5)), n_parameters((10, 4, 5), (2, 2, 2))
    (200, 34)
    """
    R = list(rank)
    for _ in R:  # lowering one rank can lower the bound on another
        R = [min(R[i], math.prod(R[:i]) * math.prod(R[i + 1 :])) for i in range(len(R))]
    return math.prod(R) + sum(r * (d - r) for r, d in zip(R, shape, strict=True))
