"""Scores of held-out samples, and their quantiles: what prediction intervals are made of.

A residual over its spread g (`core.hat`) is a score. Its quantiles are kept at some levels: for
each output entry by itself, for all entries alike ("pooled", in units of each entry's noise, which
comes from the other folds), and for all entries at once ("simultaneous", from the largest score of
each sample). Residuals stay where the outputs are; an accelerator sorts far faster than a host.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.namespace import (
    Array,
    asarray_like,
    beside,
    is_numpy_array,
    namespace_of,
    on_host,
    to_numpy,
)
from ..core.tensor import multi_mode_product, unfold
from ..data.arrays import take

__all__ = ["FoldResiduals", "LEVELS", "held_out_scores", "residual_home"]

# Levels at which quantiles are kept of many scores; of few, each score is one.
LEVELS = np.concatenate(
    [
        np.arange(0.1, 0.65, 0.1),
        np.arange(0.7, 0.88, 0.05),
        np.arange(0.9, 0.975, 0.01),
        1 - np.array([20, 15, 10, 7.5, 5, 2.5, 1, 0.5, 0.0]) / 1000,
    ]
)
_FEW = 40
# Residuals of fewer times the rounding of the outputs are none.
_DIGITS = 64
# Bytes of the residuals that are looked at together, and how many scores are pooled.
_BLOCK, _DEVICE_BLOCK, _POOL = 2**25, 2**28, 2**18
_N_BLOCKS = 10


@dataclass(frozen=True, eq=False)
class FoldResiduals:
    """The held-out samples of a fold beside the fit to its training samples.

    The predictions are ``latent @ core + intercept``.
    """

    Y: Array  # outputs of all samples, (n_samples, D), NaN where they are missing
    rows: np.ndarray  # (n,): which of them are held out, and have a weight
    latent: Array  # (n, R0)
    core: Array  # (R0, D)
    intercept: Array  # (D,)
    spread: Array  # (n,)
    w: np.ndarray  # weights of shape (n,), all positive

    @classmethod
    def of(cls, model: Any, X: Any, Y: Array, w: Any, rows: np.ndarray) -> FoldResiduals:
        """Of a fitted model, the held-out inputs, and the outputs and weights of all samples."""
        F, T = model._features(X), model.tucker_
        U, xp = T.factors[0], namespace_of(F)
        latent = F if U is None else F @ xp.astype(beside(U, F), F.dtype, copy=False)
        core = beside(unfold(multi_mode_product(T.core, (None, *T.factors[1:])), 0), F)
        core = xp.astype(core, F.dtype, copy=False)  # libraries that mix no types
        intercept = np.reshape(to_numpy(model.intercept_), -1).astype(model._dtype_name())
        latent, core, intercept, spread = (
            beside(A, Y) for A in (latent, core, intercept, model._spread_of(X, F))
        )
        Y = namespace_of(Y).reshape(Y, (Y.shape[0], -1))
        if w is None:
            return cls(Y, rows, latent, core, intercept, spread, np.ones(rows.size))
        weights = to_numpy(w)[rows]
        keep = np.flatnonzero(weights > 0)
        latent, spread = take(latent, keep), take(spread, keep)
        return cls(Y, rows[keep], latent, core, intercept, spread, weights[keep])

    def scaled(self, columns: slice) -> Array:
        """Residuals of some outputs over the spread, (n, n_columns)."""
        R = take(self.Y[:, columns], self.rows) - self.latent @ self.core[:, columns]
        R -= self.intercept[columns]
        R /= namespace_of(R).astype(self.spread, R.dtype, copy=False)[:, None]
        return R


def residual_home(Y: Array) -> Array:
    """The outputs where their residuals are looked at: on the host those of NumPy."""
    return to_numpy(Y) if on_host(Y) else Y


def held_out_scores(folds: Sequence[FoldResiduals]) -> tuple[np.ndarray, dict[str, Any]]:
    """Noise of each output, (D,), and the quantiles of the scores."""
    parts, order, n_samples = _parts(folds)
    w = np.concatenate([fold.w for fold in folds])[order]
    weights = None if (w == w[0]).all() else w
    n, D = w.size, folds[0].Y.shape[1]
    levels = np.arange(1, n + 1) / n if n <= _FEW else LEVELS
    noise, entry = np.empty(D), np.empty((levels.size, D), dtype=np.float32)
    counts = np.full(D, float(n_samples))
    largest, n_seen, pool, pool_w = np.full(n, np.nan), np.zeros(n), [], []
    width = max((_BLOCK if on_host(folds[0].Y) else _DEVICE_BLOCK) // (8 * n), 1)
    for start in range(0, D, width):
        columns = slice(start, min(start + width, D))
        R = _scores(folds, columns, order, weights is not None)
        R, seen, squares, sums = _with_sums(R, w, parts)
        with np.errstate(invalid="ignore", divide="ignore"):
            noise[columns] = np.sqrt(squares.sum(axis=0) / sums.sum(axis=0))
        if seen is not None:
            counts[columns] = seen.sum(axis=0) * (n_samples / n)
        rounding = _rounding(folds[0].Y[:, columns])
        unit = np.where(noise[columns] > rounding, noise[columns], np.nan)
        entry[:, columns] = _quantiles(R.T, levels, weights, seen is not None) / unit
        _scale_rows(R, squares, sums, unit, parts)
        np.fmax(largest, _row_maxima(R), out=largest)
        n_seen += R.shape[1] if seen is None else seen.sum(axis=1)
        step = _pool_step(n * D, R.shape[1])
        pool.append(to_numpy(namespace_of(R).reshape(R, (-1,))[::step]).copy())
        if weights is not None:
            pool_w.append(np.repeat(w, R.shape[1])[::step])
    pooled, pooled_w = np.concatenate(pool), np.concatenate(pool_w) if pool_w else None
    some, pooled_levels = n_seen > 0, levels if pooled.size <= _FEW else LEVELS
    return noise, {
        "levels": levels,
        "pooled_levels": pooled_levels,
        "seen": float(n_seen[some].mean() / np.count_nonzero(counts)),
        "n_entry": float(n_samples) if (counts == n_samples).all() else counts,
        "n_pooled": float(counts.sum()),
        "n_simultaneous": n_samples * float(some.mean()),
        "entry": entry,
        "pooled": _quantiles(pooled[None], pooled_levels, pooled_w, True)[:, 0],
        "simultaneous": _quantiles(largest[None], levels, weights, True)[:, 0],
    }


def _scores(folds: Sequence[FoldResiduals], columns: slice, order: Any, weighted: bool) -> Array:
    """Absolute scores of some outputs, (n, n_columns); on the host where these have weights."""
    found = [fold.scaled(columns) for fold in folds]
    if weighted or on_host(found[0]):
        R = np.concatenate([to_numpy(part) for part in found])[order]
        return np.abs(R, out=R)
    xp = namespace_of(found[0])
    R = xp.abs(xp.concat(found))
    return R if isinstance(order, slice) else xp.take(R, asarray_like(order, R), axis=0)


def _rounding(Y: Array) -> np.ndarray:
    """What the residuals of each output can be where there is only rounding, (n_columns,)."""
    xp = namespace_of(Y)
    sizes = xp.abs(Y)
    if is_numpy_array(Y):
        largest = np.fmax.reduce(sizes, axis=0)
    else:
        largest = to_numpy(xp.max(xp.where(xp.isnan(sizes), xp.zeros_like(sizes), sizes), axis=0))
    return _DIGITS * float(xp.finfo(Y.dtype).eps) * largest


def _pool_step(n_scores: int, n_columns: int) -> int:
    """Every how manyth score is pooled: so that all of some outputs have their turn."""
    step = max(1, n_scores // _POOL)
    while math.gcd(step, n_columns) > 1:
        step += 1
    return step


def _row_maxima(R: Array) -> np.ndarray:
    """The largest score of each sample; NaN, of outputs without noise, only where all are."""
    if is_numpy_array(R):
        return np.fmax.reduce(R, axis=1)
    xp = namespace_of(R)
    found = to_numpy(xp.max(xp.where(xp.isnan(R), -xp.ones_like(R), R), axis=1))
    return np.where(found < 0, np.nan, found)


def _parts(folds: Sequence[FoldResiduals]) -> tuple[list[slice], Any, int]:
    """Parts of the samples, stretches of the folds' rows in an order, and how many samples.

    Parts are the folds or, where samples are held out several times or in one fold only, blocks.
    """
    rows = np.concatenate([fold.rows for fold in folds])
    order: Any = slice(None)
    samples, of = np.unique(rows, return_inverse=True)
    sizes = np.array([fold.rows.size for fold in folds])
    if sizes.size == 1 or samples.size < rows.size:
        block = of * _N_BLOCKS // samples.size
        sizes, order = np.bincount(block), np.argsort(block, kind="stable")
    ends = np.cumsum(sizes)
    return [slice(end - n, end) for end, n in zip(ends, sizes, strict=True)], order, samples.size


def _with_sums(
    R: Array, w: np.ndarray, parts: list[slice]
) -> tuple[Array, np.ndarray | None, np.ndarray, np.ndarray]:
    """The scores, which of them are there, and `_sums`; on the host where some are missing."""
    squares, sums = _sums(R, None, w, parts)
    if not np.isnan(squares).any():
        return R, None, squares, sums
    R = to_numpy(R)
    seen = ~np.isnan(R)
    return R, seen, *_sums(R, seen, w, parts)


def _sums(
    R: Array, seen: np.ndarray | None, w: np.ndarray, parts: list[slice]
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums of squares of each part and output, and the weights that they have."""
    if not is_numpy_array(R):  # without weights
        xp = namespace_of(R)
        found = [xp.sum(R[rows, :] * R[rows, :], axis=0, dtype=xp.float64) for rows in parts]
        lengths = np.array([[float(rows.stop - rows.start)] for rows in parts])
        return w[0] * to_numpy(xp.stack(found)), w[0] * np.repeat(lengths, R.shape[1], axis=1)
    squares = np.empty((len(parts), R.shape[1]))
    sums = np.empty_like(squares)
    for k, rows in enumerate(parts):
        part = R[rows] if seen is None else np.where(seen[rows], R[rows], 0.0)
        squares[k] = np.einsum("i,ij,ij->j", w[rows], part, part)
        sums[k] = w[rows].sum() if seen is None else w[rows] @ seen[rows]
    return squares, sums


def _scale_rows(
    R: Array, squares: np.ndarray, sums: np.ndarray, unit: np.ndarray, parts: list[slice]
) -> None:
    """Divide the residuals of each part by the noise that the other parts find, or by `unit`."""
    K = len(parts)
    others = np.ones((K, K)) - np.eye(K) if K > 1 else np.ones((1, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        level = np.sqrt((others @ squares) / (others @ sums))
        level = np.where((level > 0) & ~np.isnan(unit), level, unit)
        for rows, found in zip(parts, level, strict=True):
            R[rows, :] /= asarray_like(found, R, dtype=R.dtype)


def _quantiles(S: Array, levels: np.ndarray, w: np.ndarray | None, holes: bool) -> np.ndarray:
    """Quantiles, (n_levels, n_rows), of each row of `S`: piecewise linear from zero on.

    The i-th of n scores is the quantile of level i/n.
    """
    if w is None and not (holes and np.isnan(S).any()):
        xp, n = namespace_of(S), S.shape[1]
        # A stable sort, the default, takes five times as long.
        S, place = xp.sort(S, axis=1, stable=False), levels * n
        last = np.clip(np.ceil(place - 1e-9).astype(int), 1, n)
        host = is_numpy_array(S)  # of which `take` would copy all first
        at = lambda i: S[:, i] if host else to_numpy(xp.take(S, asarray_like(i, S), axis=1))  # noqa: E731
        here, below = at(last - 1), np.where(last > 1, at(np.maximum(last - 2, 0)), 0.0)
        with np.errstate(invalid="ignore"):  # infinite less infinite
            rise = np.where(here > below, here - below, 0.0)
        return (below + (place - (last - 1)) * rise).T
    found = np.full((levels.size, S.shape[0]), np.nan)
    for j, row in enumerate(S):
        seen = ~np.isnan(row)
        if seen.any():
            order = np.argsort(row[seen])
            total = np.cumsum((np.ones(row.size) if w is None else w)[seen][order])
            points = np.concatenate([[0.0], total / total[-1]])
            found[:, j] = np.interp(levels, points, np.concatenate([[0.0], row[seen][order]]))
    return found
