"""Own inputs of each output, such as the past of the same station and variable.

The coefficients are a sum ``S + W``: S is sparse, with entries only where an input is an own input
of an output, and W has low rank. This is a "low rank plus sparse" decomposition with known support.
It is fitted in two steps. First, each output j has a ridge fit on its own inputs O_j,

    S_j = (X_O'X_O + beta I)^-1 X_O'y_j ,

and then W is fitted to the residuals ``Y - X S``. Outputs with the same own inputs share a
factorisation (a *group*), and groups of the same size are computed together (`OwnGroups`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array

from .moments import CentredMoments, weighted_mean
from .namespace import Array, asarray_like, is_numpy_array, namespace_of, to_numpy
from .state import record

__all__ = ["OwnCoefficients", "OwnGroups", "OwnInputs", "all_outputs", "groups_of"]
__all__ += ["least_squares", "own_inputs_of", "varies"]

_BLOCK = 2**26  # bytes of gathered inputs that are processed together
# Relative size of the deviations of a constant column from its computed mean.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


@record
@dataclass(frozen=True, eq=False)
class OwnGroups:
    """Groups of outputs of the same size, each with the own inputs that its outputs share.

    Parameters
    ----------
    columns : array of int, of shape (n_groups, k)
    outputs : array of int, of shape (n_groups, m)
        Positions among the flattened outputs.
    """

    columns: np.ndarray
    outputs: np.ndarray


@dataclass(frozen=True, eq=False)
class OwnInputs:
    """Own inputs of each output, and the penalty of their coefficients.

    Parameters
    ----------
    groups : tuple of OwnGroups
    shape : tuple of int
        Number of columns of the inputs, and of the flattened outputs.
    beta : float
        Penalty, at least 0.
    modes : tuple
        Modes along which own inputs and their output agree, by name or as pairs of positions;
        empty if own inputs were specified by a boolean matrix.
    is_shared : bool
        Whether own inputs are also inputs of the low-rank part of the model.

    Examples
    --------
    >>> own = own_inputs_of(np.eye(3, 2, dtype=bool))
    >>> [(g.columns.tolist(), g.outputs.tolist()) for g in own.groups]
    [([[0], [1]], [[0], [1]])]
    """

    groups: tuple[OwnGroups, ...]
    shape: tuple[int, int]
    beta: float = 1.0
    modes: tuple[Any, ...] = ()
    is_shared: bool = True

    def from_moments(self, m: CentredMoments, scale: np.ndarray | None) -> OwnCoefficients:
        """Return the coefficients of own inputs, from moments about the centres of a fit.

        Parameters
        ----------
        m : CentredMoments
        scale : array of shape (n_columns,), or None
            Factors that the inputs are multiplied by. The coefficients are those of the inputs
            without these factors.
        """
        d = m.n_features
        Sxx, Sxy = to_numpy(m.Sxx), np.reshape(to_numpy(m.Sxy), (d, -1))
        s = np.ones(d) if scale is None else scale
        s = s * varies(Sxx.diagonal(), to_numpy(m.mean_x), m.weight)
        parts = []
        for g in self.groups:
            root = s[g.columns]
            G = Sxx[g.columns[:, :, None], g.columns[:, None, :]]
            G = root[:, :, None] * G * root[:, None, :]
            C = root[:, :, None] * Sxy[g.columns[:, :, None], g.outputs[:, None, :]]
            lam, Q = np.linalg.eigh(G)
            parts.append(_solved(lam, Q, np.swapaxes(Q, 1, 2) @ C, self.beta, root))
        return self._coefficients(parts, to_numpy(m.mean_x))

    def from_samples(
        self, X: Array, Y: Array, w: Array | None, fit_intercept: bool, scale: np.ndarray | None
    ) -> OwnCoefficients:
        """Return the coefficients of own inputs from samples, with any pattern of missing outputs.

        Parameters
        ----------
        X : array of shape (n, n_columns)
        Y : array of shape (n, d1, ..., dp)
            NaN where an output is missing.
        w : array of shape (n,), or None
        fit_intercept : bool
        scale : array of shape (n_columns,), or None
        """
        X, Y = (to_numpy(A).astype(np.float64) for A in (X, Y))
        Y = Y.reshape(Y.shape[0], -1)
        v = np.ones(X.shape[0]) if w is None else to_numpy(w)
        s = np.ones(X.shape[1]) if scale is None else scale
        mean = weighted_mean(X, v, float(v.sum())) if fit_intercept else np.zeros(X.shape[1])
        Xc = X - mean
        s = s * varies(v @ np.square(Xc), mean, float(v.sum()))
        Xc *= s
        missing = np.isnan(Y)
        parts = []
        for g in self.groups:
            if missing[:, g.outputs].any():
                parts.append(_each_observed(Xc, Y, v, fit_intercept, g, self.beta, s))
                continue
            Yg = Y - weighted_mean(Y, v, float(v.sum())) if fit_intercept else Y
            parts.append(_all_observed(Xc, Yg, np.sqrt(v), g, self.beta, s))
        return self._coefficients(parts, mean, missing[v > 0].all(axis=0))

    def _coefficients(
        self, parts: Sequence[_Part], mean: np.ndarray, never: np.ndarray | bool = False
    ) -> OwnCoefficients:
        freedom = np.zeros(self.shape[1])
        for g, part in zip(self.groups, parts, strict=True):
            freedom[g.outputs] = part.freedom
        freedom = np.where(never, np.nan, freedom)
        return OwnCoefficients(
            groups=self.groups,
            shape=self.shape,
            values=tuple(part.values for part in parts),
            maps=tuple(part.maps for part in parts),
            freedom=freedom,
            mean=mean,
            is_shared=self.is_shared,
        )


def own_inputs_of(owned: np.ndarray) -> OwnInputs:
    """Return the own inputs that a boolean matrix specifies.

    Parameters
    ----------
    owned : array of bool, of shape (n_columns, n_outputs)
    """
    owned = np.asarray(owned, dtype=bool)
    _, first, inverse = np.unique(owned.T, axis=0, return_index=True, return_inverse=True)
    keys = inverse.reshape(-1)
    pairs = [(np.flatnonzero(owned[:, j]), np.flatnonzero(keys == keys[j])) for j in np.sort(first)]
    return OwnInputs(groups_of(pairs), (owned.shape[0], owned.shape[1]))


def all_outputs(columns: np.ndarray, n_columns: int, output_shape: Sequence[int]) -> OwnInputs:
    """Return own inputs that all outputs share, without a penalty."""
    n_outputs = math.prod(output_shape)
    groups = groups_of([(columns, np.arange(n_outputs))])
    return OwnInputs(groups, (n_columns, n_outputs), beta=0.0, is_shared=False)


def least_squares(G: np.ndarray, C: np.ndarray) -> np.ndarray:
    """Return the solution ``G^+ C`` of least norm, for a symmetric G (k, k) and C (k, m)."""
    lam, Q = np.linalg.eigh(G)
    return _solved(lam[None], Q[None], (Q.T @ C)[None], 0.0, np.ones((1, G.shape[0]))).values[0]


def groups_of(pairs: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[OwnGroups, ...]:
    """Return groups, collected by size, from pairs of columns and outputs."""
    by_size: dict[tuple[int, int], list[tuple[np.ndarray, np.ndarray]]] = {}
    for columns, outputs in pairs:
        if columns.size and outputs.size:
            by_size.setdefault((columns.size, outputs.size), []).append((columns, outputs))
    return tuple(
        OwnGroups(np.stack([c for c, _ in found]), np.stack([o for _, o in found]))
        for found in by_size.values()
    )


# ---------------------------------------------------------------- ridge fits of groups


@dataclass(frozen=True, eq=False)
class _Part:
    """Coefficients of groups of one size."""

    values: np.ndarray  # (n_groups, k, m), of the inputs themselves
    maps: np.ndarray  # (n_groups, k, r): the squares of ``(x - mean) map`` are the leverage
    freedom: np.ndarray  # (n_groups, m), degrees of freedom


def varies(squares: np.ndarray, mean: np.ndarray, weight: float) -> np.ndarray:
    """Return whether columns vary by more than the rounding errors of their mean.

    Parameters
    ----------
    squares : array of shape (k,)
        Weighted sums of squares about the mean.
    mean : array of shape (k,)
        Zero without an intercept.
    weight : float
        Sum of the weights.
    """
    return squares > weight * (_ROUNDING * mean) ** 2


def _solved(lam: np.ndarray, Q: np.ndarray, C: np.ndarray, beta: float, root: np.ndarray) -> _Part:
    """Return ridge fits from eigenvalues (g, r), eigenvectors (g, k, r) and ``Q'X'Y`` (g, r, m)."""
    most = np.maximum(lam.max(axis=1, keepdims=True), 0.0)
    seen = lam > most * lam.shape[1] * np.finfo(float).eps  # directions with variance
    weight = np.where(seen, 1.0 / np.where(seen, lam + beta, 1.0), 0.0)
    values = root[:, :, None] * (Q @ (weight[:, :, None] * C))
    maps = root[:, :, None] * Q * np.sqrt(weight)[:, None, :]
    freedom = np.sum(np.where(seen, lam, 0.0) * weight, axis=1)
    return _Part(values, maps, np.repeat(freedom[:, None], C.shape[2], axis=1))


def _all_observed(
    X: np.ndarray, Y: np.ndarray, root_w: np.ndarray, g: OwnGroups, beta: float, s: np.ndarray
) -> _Part:
    """Return ridge fits of groups, from centred inputs and outputs."""
    n, k = X.shape[0], g.columns.shape[1]
    step = max(1, _BLOCK // (8 * n * k))
    found = []
    for start in range(0, g.columns.shape[0], step):
        columns, outputs = g.columns[start : start + step], g.outputs[start : start + step]
        A = np.moveaxis(X[:, columns], 1, 0) * root_w[:, None]  # (g, n, k)
        B = np.moveaxis(Y[:, outputs], 1, 0) * root_w[:, None]  # (g, n, m)
        At = np.swapaxes(A, 1, 2)
        if k <= n:
            lam, Q = np.linalg.eigh(At @ A)
            C = np.swapaxes(Q, 1, 2) @ (At @ B)
        else:
            lam, U = np.linalg.eigh(A @ At)
            most = lam.max(axis=1, keepdims=True) * n * np.finfo(float).eps
            inverse = np.where(lam > most, 1.0 / np.sqrt(np.where(lam > most, lam, 1.0)), 0.0)
            Q = (At @ U) * inverse[:, None, :]
            C = np.sqrt(np.maximum(lam, 0.0))[:, :, None] * (np.swapaxes(U, 1, 2) @ B)
        found.append(_solved(lam, Q, C, beta, s[columns]))
    return _Part(
        *(np.concatenate([getattr(p, f) for p in found]) for f in ("values", "maps", "freedom"))
    )


def _each_observed(
    X: np.ndarray,
    Y: np.ndarray,
    w: np.ndarray,
    fit_intercept: bool,
    g: OwnGroups,
    beta: float,
    s: np.ndarray,
) -> _Part:
    """Return the ridge fit of each output of the groups to the samples that observe it."""
    n_groups, k = g.columns.shape
    # The leverage is computed from all samples.
    maps = _all_observed(X, np.zeros_like(Y), np.sqrt(w), g, beta, s).maps
    values = np.zeros((n_groups, k, g.outputs.shape[1]))
    freedom = np.zeros(g.outputs.shape)
    alone = OwnGroups(np.arange(k)[None], np.zeros((1, 1), dtype=int))
    for i, j in np.ndindex(*g.outputs.shape):
        output, columns = g.outputs[i, j], g.columns[i]
        rows = np.flatnonzero(~np.isnan(Y[:, output]) & (w > 0))
        if not rows.size:
            continue
        A, y, v = X[np.ix_(rows, columns)], Y[rows, output], w[rows]
        root = s[columns]
        if fit_intercept:
            mean = (v @ A) / v.sum()
            A, y = A - mean, y - (v @ y) / v.sum()
            use = varies(v @ np.square(A), mean, float(v.sum()))
            A, root = A * use, root * use
        part = _all_observed(A, y[:, None], np.sqrt(v), alone, beta, root)
        values[i, :, j], freedom[i, j] = part.values[0, :, 0], part.freedom[0, 0]
    return _Part(values, maps, freedom)


# ---------------------------------------------------------------- coefficients


@record
@dataclass(frozen=True, eq=False)
class OwnCoefficients:
    """Coefficients S of own inputs, for inputs that are not scaled.

    Parameters
    ----------
    groups : tuple of OwnGroups
    shape : tuple of int
        Number of columns of the inputs, and of the flattened outputs.
    values : tuple of arrays of shape (n_groups, k, m)
    maps : tuple of arrays of shape (n_groups, k, r)
        The squares of ``(x - mean) map`` add up to the leverage of the outputs of a group.
    freedom : array of shape (n_outputs,)
        Degrees of freedom of the fit of each output; NaN for outputs that are never observed.
    mean : array of shape (n_columns,)
        Centre of the inputs.
    is_shared : bool
        Whether own inputs are also inputs of the low-rank part of the model.
    """

    groups: tuple[OwnGroups, ...]
    shape: tuple[int, int]
    values: tuple[np.ndarray, ...]
    maps: tuple[np.ndarray, ...]
    freedom: np.ndarray
    mean: np.ndarray
    is_shared: bool = True

    @cached_property
    def matrix(self) -> csc_array:
        """S as a sparse matrix of shape (n_columns, n_outputs)."""
        rows, columns, values = [], [], []
        for g, v in zip(self.groups, self.values, strict=True):
            rows.append(np.broadcast_to(g.columns[:, :, None], v.shape).ravel())
            columns.append(np.broadcast_to(g.outputs[:, None, :], v.shape).ravel())
            values.append(v.ravel())
        if not rows:
            return csc_array(self.shape)
        entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
        return csc_array(entries, shape=self.shape)

    def to_dense(self, like: Array | None = None) -> Array:
        """Return S as an array (n_columns, n_outputs), in the library and dtype of `like`."""
        S = self.matrix.toarray()
        return S if like is None else asarray_like(S, like, dtype=like.dtype)

    def times(self, X: Array, columns: np.ndarray | None = None) -> Array:
        """Return ``X S``, of shape (n, n_outputs).

        Parameters
        ----------
        X : array of shape (n, n_columns), or (n, k) with `columns`
        columns : array of int, of shape (k,), optional
            The inputs that are the columns of `X`; all others are left out.
        """
        if is_numpy_array(X):
            S = self.matrix if columns is None else self.matrix[columns]
            return (S.T.astype(X.dtype, copy=False) @ X.T).T
        S = self.to_dense(X)
        if columns is not None:
            S = namespace_of(X).take(S, asarray_like(columns, X), axis=0)
        return X @ S

    def leave(self, X: Array, Y: Array) -> Array:
        """Return the residuals of the outputs, ``Y - X S``."""
        xp = namespace_of(Y)
        fitted = xp.reshape(self.times(X), tuple(Y.shape))
        return Y - xp.astype(fitted, Y.dtype, copy=False)

    def leave_moments(self, m: CentredMoments) -> CentredMoments:
        """Return the moments of the residuals ``Y - X S``, without Gram matrices of the outputs."""
        xp, shape = namespace_of(m.Sxx), tuple(m.output_shape)
        Sxy = xp.reshape(m.Sxy, (m.n_features, -1))
        fitted = self.times(m.Sxx)  # X'X S, since X'X is symmetric
        left = Sxy - fitted
        squares = None
        syy = m.syy
        S = self.to_dense(m.Sxx)
        change = xp.sum(S * (fitted - 2 * Sxy), axis=0)
        if m.squares is not None:
            squares = xp.clip(m.squares + xp.reshape(change, shape), 0.0, None)
        syy = max(syy + float(xp.sum(change)), 0.0)
        mean_y = m.mean_y - xp.reshape(self.times(m.mean_x[None, :])[0, :], shape)
        return replace(
            m,
            Sxy=xp.reshape(left, (m.n_features, *shape)),
            mean_y=mean_y,
            syy=syy,
            squares=squares,
            response_grams=None,
        )

    def rescaled(self, x_unit: float, y_unit: float) -> OwnCoefficients:
        """Return the coefficients in the user's units, from data divided by powers of two."""
        return replace(
            self,
            values=tuple(v * (y_unit / x_unit) for v in self.values),
            maps=tuple(B / x_unit for B in self.maps),
            mean=self.mean * x_unit,
        )

    def unweighted(self, weight: np.ndarray) -> OwnCoefficients:
        """Return the coefficients of the outputs, from outputs times the roots of their weights."""
        root = np.sqrt(weight.reshape(-1))
        root = np.where(root > 0, root, math.inf)
        pairs = zip(self.groups, self.values, strict=True)
        return replace(self, values=tuple(v / root[g.outputs][:, None, :] for g, v in pairs))

    def multiplied(self, scale: np.ndarray) -> OwnCoefficients:
        """Return the coefficients of the outputs, from outputs that were divided by a scale."""
        s, pairs = scale.reshape(-1), zip(self.groups, self.values, strict=True)
        return replace(self, values=tuple(v * s[g.outputs][:, None, :] for g, v in pairs))

    def leverage(self, X: Array) -> Array:
        """Return the leverage of own inputs, averaged over the observed outputs, of shape (n,).

        Parameters
        ----------
        X : array of shape (n, n_columns)
            Inputs, not centred.
        """
        Xc, total = to_numpy(X).astype(np.float64) - self.mean, np.zeros(X.shape[0])
        for g, B in zip(self.groups, self.maps, strict=True):
            for columns, of_group, m in zip(g.columns, B, self._n_observed(g.outputs), strict=True):
                t = Xc[:, columns] @ of_group
                total += m * np.einsum("ij,ij->i", t, t)
        total /= max(self._n_observed(), 1)
        return asarray_like(total, X, dtype=namespace_of(X).float64)

    def _n_observed(self, outputs: Any = slice(None)) -> Any:
        """Return the number of observed outputs, of all or of each row of `outputs`."""
        return np.count_nonzero(~np.isnan(self.freedom[outputs]), axis=-1)

    def total_leverage(self, m: CentredMoments) -> float:
        """Return the sum of the leverages of samples, from their moments."""
        m = m.about(asarray_like(self.mean, m.mean_x), m.mean_y)
        Sxx, total = to_numpy(m.Sxx), 0.0
        for g, B in zip(self.groups, self.maps, strict=True):
            for columns, of_group, n in zip(g.columns, B, self._n_observed(g.outputs), strict=True):
                part = Sxx[np.ix_(columns, columns)] @ of_group
                total += n * float(np.vdot(of_group, part))
        return total / max(self._n_observed(), 1)
