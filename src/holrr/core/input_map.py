"""Structured inputs: their arrangement in blocks, and the features that a fit derives from them.

The inputs of a sample are cells, which are arranged in blocks. A block can have several modes, such
as latitude and longitude. The flattened cells of all blocks are the columns of the matrix `X`. A
fit with structured inputs is a fit to the features

    F = (X * scale) P

where `scale` has one number for each column (penalties of blocks), and `P` is the Kronecker product
of an orthonormal basis for each mode of a block. The coefficients of `X` are ``scale * (P W)``,
where `W` are the coefficients of the features. Since the map is linear, moments of the features
follow from moments of the inputs.

If outputs have own inputs (see `own_inputs`), the features are fitted to the residuals of the fit
to own inputs.

`InputSpace` is the arrangement, `InputDesign` specifies the features, and `InputMap` is the map
that was fitted to training data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from .moments import CentredMoments, weighted_mean
from .namespace import (
    Array,
    asarray_like,
    device_of,
    eigh,
    eigh_top,
    namespace_of,
    symmetrise,
    to_numpy,
)
from .own_inputs import OwnCoefficients, OwnInputs, all_outputs, least_squares, varies
from .state import record
from .tensor import fold, gram, multi_mode_product, unfold

__all__ = ["InputDesign", "InputMap", "InputProducts", "InputSpace", "Ranks", "mode_bases"]

Ranks = tuple[int, ...]
Record = TypeVar("Record", bound=Any)


@record
@dataclass(frozen=True, eq=False)
class InputSpace:
    """Arrangement of the columns of the input matrix in blocks of cells.

    Parameters
    ----------
    shapes : tuple of tuples of int
        Shape ``(m1, ..., mq)`` of each block. Cells are numbered from zero, block by block, in C
        order within a block.
    cells : array of shape (n_columns,), or None
        Number of the cell of each column; None if column j is cell j. Cells without a column are
        zero after centring.

    Examples
    --------
    Two blocks, a map of 2 x 3 cells and a vector of 2 cells:

    >>> space = InputSpace(((2, 3), (2,)))
    >>> space.n_cells, space.columns(1)
    (8, array([6, 7]))
    """

    shapes: tuple[tuple[int, ...], ...]
    cells: np.ndarray | None = None

    @property
    def n_cells(self) -> int:
        """Number of cells of all blocks."""
        return sum(map(math.prod, self.shapes))

    @property
    def n_columns(self) -> int:
        """Number of columns of the input matrix."""
        return self.n_cells if self.cells is None else self.cells.size

    def bounds(self, block: int) -> tuple[int, int]:
        """Return the first cell of a block, and the first cell after it."""
        sizes = [math.prod(shape) for shape in self.shapes]
        start = sum(sizes[:block])
        return start, start + sizes[block]

    def columns(self, block: int) -> np.ndarray:
        """Return the columns of a block."""
        start, stop = self.bounds(block)
        if self.cells is None:
            return np.arange(start, stop)
        return np.flatnonzero((self.cells >= start) & (self.cells < stop))

    def tensor(self, A: Array, block: int) -> Array:
        """Return the columns of a block of `A` as a tensor of shape (n, m1, ..., mq).

        `A` has shape (n, n_columns). Cells without a column are zero.
        """
        xp, (start, stop), n = namespace_of(A), self.bounds(block), A.shape[0]
        if self.cells is None:
            return xp.reshape(A[:, start:stop], (n, *self.shapes[block]))
        # The column of each cell; an additional last column is zero.
        place = np.full(stop - start, A.shape[1])
        own = self.columns(block)
        place[self.cells[own] - start] = own
        padded = xp.concat([A, xp.zeros_like(A[:, :1])], axis=1)
        return xp.reshape(xp.take(padded, asarray_like(place, A), axis=1), (n, *self.shapes[block]))

    def rows(self, T: Array, block: int) -> Array:
        """Return the rows of a block of coefficients, from those of its cells, (m1, ..., mq, k)."""
        xp, start = namespace_of(T), self.bounds(block)[0]
        T = xp.reshape(T, (-1, T.shape[-1]))
        if self.cells is None:
            return T
        return xp.take(T, asarray_like(self.cells[self.columns(block)] - start, T), axis=0)


@record
@dataclass(frozen=True, eq=False)
class Partial:
    """Regression of all inputs on the unpenalised inputs U, with residuals ``X - U B``.

    By the theorem of Frisch, Waugh and Lovell, regressing the residuals of the outputs on those of
    the inputs gives the coefficients of a fit to all inputs.

    Parameters
    ----------
    columns : array of int, of shape (k,)
        Positions of the unpenalised inputs.
    B : array of shape (k, n_columns)
    """

    columns: np.ndarray
    B: Array

    @classmethod
    def of(
        cls, columns: np.ndarray, products: np.ndarray, mean: np.ndarray, weight: float, like: Array
    ) -> Partial:
        """Return the regression on the unpenalised inputs that vary.

        Parameters
        ----------
        columns : array of int, of shape (k,)
        products : array of shape (k, n_columns)
            ``U'X`` of centred inputs.
        mean : array of shape (k,)
            Means of the unpenalised inputs; zero without an intercept.
        weight : float
            Sum of the sample weights.
        like : array
            Array of the library and device of `B`.
        """
        G = products[:, columns]
        seen = varies(G.diagonal(), mean, weight)
        G, C = G * seen * seen[:, None], products * seen[:, None]
        return cls(columns, asarray_like(least_squares(G, C), like))

    def leave(self, X: Array) -> Array:
        """Return the residuals ``X - U B``."""
        xp = namespace_of(X)
        U = xp.take(X, asarray_like(self.columns, X), axis=1)
        return X - U @ xp.astype(self.B, X.dtype, copy=False)

    def lift(self, M: Array) -> Array:
        """Return the coefficients of the inputs, from those of their residuals."""
        xp = namespace_of(M)
        rows = np.zeros((M.shape[0], self.columns.size))
        rows[self.columns, np.arange(self.columns.size)] = 1.0
        B = xp.astype(self.B, M.dtype, copy=False)
        return M - asarray_like(rows, M, dtype=M.dtype) @ (B @ M)


@record
@dataclass(frozen=True, eq=False)
class InputMap:
    """A linear map from the columns of the input matrix to features.

    Parameters
    ----------
    space : InputSpace
    scale : array of shape (n_columns,), or None
        Factor that each column is multiplied by first.
    bases : tuple
        For each block None, if its columns are features themselves, or the orthonormal bases of
        its modes, of shape (m_k, r_k).
    own : OwnCoefficients or None
        Coefficients of own inputs, whose part is subtracted from the outputs.
    partial : Partial or None
        Regression on the unpenalised inputs, whose fit is subtracted from the other inputs first.

    Examples
    --------
    >>> import numpy as np
    >>> space = InputSpace(((2, 3),))
    >>> reduce = InputMap(space, None, ((np.ones((2, 1)) / 2**0.5, np.eye(3)[:, :2]),))
    >>> reduce(np.arange(6.0)[None, :]).round(3)
    array([[2.121, 3.536]])
    >>> reduce.lift(np.eye(2)).shape
    (6, 2)
    """

    space: InputSpace
    scale: Array | None
    bases: tuple[tuple[Array, ...] | None, ...]
    own: OwnCoefficients | None = None
    partial: Partial | None = None

    @property
    def ranks(self) -> tuple[Ranks | None, ...]:
        """Number of directions that are kept in each mode of each block."""
        return tuple(None if P is None else tuple(U.shape[1] for U in P) for P in self.bases)

    @property
    def keeps_columns(self) -> bool:
        """Whether every column is a feature, so that the map only scales the columns."""
        return all(P is None for P in self.bases)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return sum(
            self.space.columns(b).size if r is None else math.prod(r)
            for b, r in enumerate(self.ranks)
        )

    def __call__(self, X: Array) -> Array:
        """Return the features of the rows of `X`, of shape (n, n_features)."""
        xp, here = namespace_of(X), self.to_device_of(X)
        if here.partial is not None:
            X = here.partial.leave(X)
        if here.scale is not None:
            X = X * xp.astype(here.scale, X.dtype, copy=False)
        if here.keeps_columns:
            return X
        parts = []
        for block, bases in enumerate(here.bases):
            if bases is None:
                parts.append(xp.take(X, asarray_like(self.space.columns(block), X), axis=1))
                continue
            T = self.space.tensor(X, block)
            T = multi_mode_product(
                T, [None, *(xp.astype(U, X.dtype, copy=False) for U in bases)], transposed=True
            )
            parts.append(xp.reshape(T, (X.shape[0], -1)))
        return parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)

    def lift(self, M: Array) -> Array:
        """Return coefficients of columns (n_columns, k), from those of features (n_features, k)."""
        xp, here = namespace_of(M), self.to_device_of(M)
        if not here.keeps_columns:
            found, start, order = [], 0, []
            for block, (bases, ranks) in enumerate(zip(here.bases, self.ranks, strict=True)):
                columns = self.space.columns(block)
                stop = start + (columns.size if ranks is None else math.prod(ranks))
                part = M[start:stop, :]
                if bases is not None:
                    assert ranks is not None
                    own = [xp.astype(U, M.dtype, copy=False) for U in bases]
                    T = multi_mode_product(xp.reshape(part, (*ranks, M.shape[1])), [*own, None])
                    part = self.space.rows(T, block)
                found.append(part)
                order.append(columns)
                start = stop
            M = xp.concat(found, axis=0)
            place = np.argsort(np.concatenate(order))
            if (place != np.arange(place.size)).any():
                M = xp.take(M, asarray_like(place, M), axis=0)
        if here.scale is not None:
            M = M * xp.astype(here.scale, M.dtype, copy=False)[:, None]
        return M if here.partial is None else here.partial.lift(M)

    def moments(self, m: CentredMoments) -> CentredMoments:
        """Return the moments of the features and of the residuals of the fit to own inputs."""
        m = m if self.own is None else self.own.leave_moments(m)
        Sxy = self(unfold(m.Sxy, 0).T).T
        Sxx = self(self(m.Sxx).T)
        return replace(
            m,
            mean_x=self(m.mean_x[None, :])[0, :],
            Sxx=symmetrise(Sxx),
            Sxy=fold(Sxy, 0, (Sxy.shape[0], *m.output_shape)),
        )

    def samples(self, part: Record) -> Record:
        """Return samples whose inputs are features and whose outputs are residuals of own inputs.

        Parameters
        ----------
        part : record with the fields `X` and `Y`
        """
        Y = part.Y if self.own is None else self.own.leave(part.X, part.Y)
        return replace(part, X=self(part.X), Y=Y)

    def of(self, data: Any) -> Any:
        """Return the samples or the moments of the features."""
        return self.moments(data) if isinstance(data, CentredMoments) else self.samples(data)

    def positions(self, ranks: Sequence[Ranks | None]) -> np.ndarray:
        """Return the positions of the features of the leading directions of each mode."""
        found, start = [], 0
        for block, (full, r) in enumerate(zip(self.ranks, ranks, strict=True)):
            shape = (self.space.columns(block).size,) if full is None else full
            index = np.arange(math.prod(shape)).reshape(shape)
            found.append(start + (index if r is None else index[tuple(map(slice, r))]).ravel())
            start += index.size
        return np.concatenate(found)

    def to_device_of(self, like: Array) -> InputMap:
        """Return the same map in the array library and on the device of `like`."""
        arrays = [self.scale, *(U for P in self.bases if P is not None for U in P)]
        arrays += [] if self.partial is None else [self.partial.B]
        if all(
            A is None or (type(A) is type(like) and device_of(A) == device_of(like)) for A in arrays
        ):
            return self
        move = lambda A: asarray_like(to_numpy(A), like)  # noqa: E731
        return replace(
            self,
            scale=None if self.scale is None else move(self.scale),
            bases=tuple(None if P is None else tuple(map(move, P)) for P in self.bases),
            partial=self.partial and replace(self.partial, B=move(self.partial.B)),
        )


@dataclass(frozen=True, eq=False)
class InputDesign:
    """Specification of the features that a fit derives from its inputs.

    Parameters
    ----------
    space : InputSpace
    scale : array of shape (n_columns,), or None
        Factor that each column is multiplied by.
    ranks : tuple
        For each block None, or the number of directions to keep in each of its modes. The size of
        a mode keeps all directions.
    alpha : float
        Penalty of the ridge fit that the directions come from, as a multiple of the mean eigenvalue
        of ``X'X``.
    own : OwnInputs or None
        Own inputs of each output.
    free : array of int, or None
        Positions of the unpenalised inputs, whose fit is subtracted from inputs and outputs first.
        Their scale is zero. They cannot be combined with own inputs.

    Notes
    -----
    The bases are those of a Tucker decomposition of ridge coefficients of the scaled inputs. With
    many samples, a small penalty finds the directions of the coefficients. An infinite penalty
    gives the directions of ``X'Y``, as in partial least squares. A rank that exceeds the number of
    directions with nonzero energy is lowered to this number.
    """

    space: InputSpace
    scale: np.ndarray | None = None
    ranks: tuple[Ranks | None, ...] = ()
    alpha: float = 1.0
    own: OwnInputs | None = None
    free: np.ndarray | None = None

    def in_units(self, x_unit: float) -> InputDesign:
        """Return the design for inputs that are multiplied by `x_unit`."""
        if self.own is None or x_unit == 1.0:
            return self
        return replace(self, own=replace(self.own, beta=self.own.beta * x_unit * x_unit))

    def from_moments(self, m: CentredMoments) -> InputMap:
        """Return the map for training data, from their moments."""
        own, partial = None, None
        if self.free is not None:
            own = all_outputs(self.free, m.n_features, m.output_shape).from_moments(m, None)
            rows, mean = to_numpy(m.Sxx)[self.free, :], to_numpy(m.mean_x)[self.free]
            partial = Partial.of(self.free, rows, mean, m.weight, m.Sxx)
        elif self.own is not None:
            own = self.own.from_moments(m, self.scale)
        products = None
        if self.reduces:
            first = InputMap(self.space, None, (None,) * len(self.space.shapes), own, partial)
            products = self.products_of_moments(first.moments(m))
        return self.map_of(products, m.Sxx, own, partial)

    def from_samples(self, X: Array, Y: Array, w: Array | None, fit_intercept: bool) -> InputMap:
        """Return the map for training samples."""
        own, partial = None, None
        if self.free is not None:
            how = X, Y, w, fit_intercept
            own = all_outputs(self.free, X.shape[1], Y.shape[1:]).from_samples(*how, None)
            A = to_numpy(_centred(X, Y, w, fit_intercept)[0])
            weight = float(X.shape[0] if w is None else w.sum())
            means = weighted_mean(X, w, weight) if fit_intercept else 0.0 * X[0, :]
            mean = to_numpy(means)[self.free]
            partial = Partial.of(self.free, A[:, self.free].T @ A, mean, weight, X)
        elif self.own is not None:
            own = self.own.from_samples(X, Y, w, fit_intercept, self.scale)
        products = None
        if self.reduces:
            left = Y if own is None else own.leave(X, Y)
            inputs = X if partial is None else partial.leave(X)
            products = self.products_of_samples(inputs, left, w, fit_intercept)
        return self.map_of(products, X, own, partial)

    @property
    def reduces(self) -> bool:
        """Whether the features of some block are fewer than its inputs."""
        return any(r is not None for r in self.ranks)

    def map_of(
        self,
        products: InputProducts | None,
        like: Array,
        own: OwnCoefficients | None = None,
        partial: Partial | None = None,
    ) -> InputMap:
        """Return the map, from the products of training data; only `reduces` needs them.

        The map is in the array library and on the device of `like`.
        """
        scale = None if self.scale is None else asarray_like(self.scale, like)
        bases: tuple[tuple[Array, ...] | None, ...] = (None,) * len(self.space.shapes)
        if products is not None:
            C = products.coefficients(self.alpha)
            bases = tuple(
                None if r is None else mode_bases(self.space.tensor(C, block), r)
                for block, r in enumerate(self.ranks)
            )
        return InputMap(self.space, scale, bases, own, partial)

    def products_of_moments(self, m: CentredMoments) -> InputProducts:
        """Return the inputs in their principal directions, and their products with the outputs."""
        S, C = m.Sxx, unfold(m.Sxy, 0)
        if self.scale is not None:
            scale = asarray_like(self.scale, S)
            S, C = scale[:, None] * S * scale, scale[:, None] * C
        lam, V = eigh(S)
        return InputProducts(lam, V, V.T @ C)

    def products_of_samples(
        self, X: Array, Y: Array, w: Array | None, fit_intercept: bool
    ) -> InputProducts:
        """Return the products of samples, with outputs replaced by a root of their Gram matrix."""
        xp, scale = namespace_of(X), self.scale
        X, Y = _centred(X if scale is None else X * asarray_like(scale, X), Y, w, fit_intercept)
        n, d = X.shape
        if Y.shape[1] > n:
            # Y Y' = R R': the products with R have the Gram matrices of those with Y.
            lam, Q = eigh(symmetrise(Y @ Y.T))
            Y = Q * xp.sqrt(xp.clip(lam, 0.0, None))
        if n >= d:
            lam, V = eigh(symmetrise(X.T @ X))
            return InputProducts(lam, V, V.T @ (X.T @ Y))
        lam, Q = eigh(symmetrise(X @ X.T))
        kept = int(xp.sum(xp.astype(lam > lam[0] * d * xp.finfo(lam.dtype).eps, xp.int64)))
        lam, Q = lam[:kept], Q[:, :kept]
        root = xp.sqrt(lam)
        return InputProducts(lam, X.T @ (Q / root), root[:, None] * (Q.T @ Y))


@dataclass(frozen=True, eq=False)
class InputProducts:
    """``X'X = V diag(values) V'`` and ``V'X'Y``, from which ridge coefficients follow.

    Parameters
    ----------
    values : array of shape (k,)
    V : array of shape (n_columns, k)
    products : array of shape (k, D)
    """

    values: Array
    V: Array
    products: Array

    def coefficients(self, alpha: float) -> Array:
        """Return ridge coefficients, of shape (D, n_columns), up to a factor.

        The penalty is a multiple of the mean of the positive eigenvalues, which does not depend on
        the number of samples: samples without weight, and repeated samples, are not counted. An
        infinite penalty gives ``X'Y``.
        """
        xp = namespace_of(self.values)
        values = xp.clip(self.values, 0.0, None)
        rounding = values[0] * self.V.shape[0] * float(xp.finfo(values.dtype).eps)
        n_positive = int(xp.sum(xp.astype(values > rounding, xp.int64)))
        mean = float(xp.sum(values)) / max(n_positive, 1)
        P = self.products
        if math.isfinite(alpha) and mean > 0:
            penalty = max(alpha, 1e-12) * mean
            P = P * (mean / (values + penalty))[:, None]
        return (self.V @ P).T


def mode_bases(C: Array, ranks: Ranks) -> tuple[Array, ...]:
    """Return an orthonormal basis of the leading directions of each mode but the first.

    The bases are those of the higher-order singular value decomposition, improved by two rounds of
    higher-order orthogonal iteration.

    Parameters
    ----------
    C : array of shape (k, m1, ..., mq)
    ranks : tuple of q ints
        Number of directions of each mode. The size of a mode keeps all of its directions; otherwise
        directions without energy are dropped.
    """
    bases = [_basis(gram(C, mode), r) for mode, r in enumerate(ranks, start=1)]
    is_reduced = [U.shape[1] < U.shape[0] for U in bases]
    if sum(is_reduced) < 2:  # the other modes are kept in full: nothing to improve
        return tuple(bases)
    for _ in range(_ROUNDS):
        for k in range(len(bases)):
            if is_reduced[k]:
                others = [None if j == k else U for j, U in enumerate(bases)]
                reduced = multi_mode_product(C, [None, *others], transposed=True)
                bases[k] = _basis(gram(reduced, k + 1), bases[k].shape[1])
    return tuple(bases)


_ROUNDS = 2


def _basis(G: Array, rank: int) -> Array:
    """Return the leading eigenvectors of a Gram matrix, without those of eigenvalue zero.

    Entries of the size of rounding errors are zero, so that features made only of them are zero.
    """
    m, eps = G.shape[0], float(np.finfo(float).eps)
    if rank >= m:
        U = eigh(G)[1]
    else:
        values, U = eigh_top(G, rank)
        largest = max(float(values.max(initial=0.0)), 0.0)
        n_supported = int((values > largest * eps * m).sum())
        U = U[:, : max(1, min(rank, n_supported))]
    xp = namespace_of(U)
    return xp.where(xp.abs(U) > eps * m, U, xp.zeros_like(U))


def _centred(X: Array, Y: Array, w: Array | None, fit_intercept: bool) -> tuple[Array, Array]:
    """Return samples as centred matrices, times the roots of their weights."""
    xp = namespace_of(X)
    X, Y = (xp.astype(A, xp.float64, copy=False) for A in (X, xp.reshape(Y, (Y.shape[0], -1))))
    missing = xp.isnan(Y)
    if bool(xp.any(missing)):  # missing outputs are replaced by their means
        seen = xp.astype(~missing, xp.float64)
        seen = seen if w is None else seen * w[:, None]
        Y = xp.where(missing, xp.zeros_like(Y), Y)
        if fit_intercept:
            mean = xp.sum(seen * Y, axis=0) / xp.clip(xp.sum(seen, axis=0), 1e-300, None)
            Y = xp.where(missing, xp.zeros_like(Y), Y - mean)
    if fit_intercept:
        weight = float(X.shape[0]) if w is None else float(xp.sum(w))
        X, Y = (A - weighted_mean(A, w, weight) for A in (X, Y))
    if w is not None:
        root = xp.sqrt(w)[:, None]
        X, Y = X * root, Y * root
    return X, Y
