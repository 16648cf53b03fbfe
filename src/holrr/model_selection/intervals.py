"""Prediction intervals from the held-out residuals of a search (cross-conformal prediction).

Each fold has a fit of the chosen model to its training samples, and held-out samples. A score is
the residual of a held-out sample divided by its factor ``sqrt(1 + 1/n + h(x))`` (`core.leverage`).
Quantiles of the scores, multiplied by the factor of a new sample, give intervals with the requested
coverage for any distribution of the noise, provided that samples and folds are exchangeable. If
neighbouring samples depend on each other, the correction for a finite number of samples uses their
effective number (`dependence`). The
quantiles are computed for each output ("entry"), for all outputs together in units of the noise of
each output ("pooled"), and from the largest score of each sample in units of the noise that a fit
estimates from its training samples ("simultaneous"). If only moments are available, the scores are
assumed to be normal.

References
----------
V. Vovk (2015). Cross-conformal predictors. Annals of Mathematics and Artificial Intelligence 74,
9-28.

J. Lei, M. G'Sell, A. Rinaldo, R. J. Tibshirani, L. Wasserman (2018). Distribution-free predictive
inference for regression. Journal of the American Statistical Association 113(523), 1094-1111.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import t

from ..core.fit import Fit
from ..core.leverage import extra_share, leverage, noise_level
from ..core.moments import CentredMoments
from ..core.namespace import (
    Array,
    asarray_like,
    eigh,
    is_numpy_array,
    namespace_of,
    on_host,
    to_device_of,
    to_numpy,
)
from ..core.row_residuals import CONSISTENT, RowResiduals
from ..core.tensor import multi_mode_product, unfold
from ..data.arrays import is_dask, take
from .dependence import Dependence, find_dependence

__all__ = ["Calibration", "FoldResiduals", "MomentResiduals", "calibrate", "interval_factor"]
__all__ += ["half_width", "own_noise", "residual_outputs"]

KINDS = ("entry", "pooled", "simultaneous")
# Levels of the quantiles that are kept; if there are few scores, all of them are kept.
LEVELS = np.concatenate(
    [
        np.arange(0.1, 0.65, 0.1),
        np.arange(0.7, 0.88, 0.05),
        np.arange(0.9, 0.975, 0.01),
        1 - np.array([20, 15, 10, 7.5, 5, 2.5, 1, 0.5, 0.0]) / 1000,
    ]
)
_FEW = 40
# Residuals below this multiple of the rounding error of the outputs count as zero.
_DIGITS = 64
# Bytes of residuals that are processed together, and number of scores that are pooled.
_BLOCK, _DEVICE_BLOCK, _POOL = 2**25, 2**28, 2**18
_N_BLOCKS = 10


@dataclass(frozen=True, eq=False)
class FoldResiduals:
    """Held-out samples of a fold, and their predictions by the fit to its training samples.

    The predictions are ``latent @ core + intercept``, plus `added`.
    """

    Y: Array  # outputs of all samples, (n_samples, D), NaN if they are missing
    rows: np.ndarray  # (n,): indices of the held-out samples with positive weight
    latent: Array  # (n, R0)
    core: Array  # (R0, D)
    intercept: Array  # (D,)
    factor: Array  # (n,): sqrt(1 + 1/n + h(x)) of each sample
    w: np.ndarray  # weights of shape (n,), all positive
    own: np.ndarray  # (D,): `own_noise` of the fit
    has_intercept: bool
    added: Array | None = None  # (n, D): predictions from own inputs

    @classmethod
    def of(
        cls, fit: Fit, F: Array, factor: Array, Y: Array, w: Array | None, rows: np.ndarray
    ) -> FoldResiduals:
        """Return the record of a fit and its held-out samples.

        Parameters
        ----------
        fit : Fit
            Fit to the training samples of the fold.
        F : array of shape (n, n_inputs)
            Features of the held-out samples.
        factor : array of shape (n,)
            ``sqrt(1 + 1/n + h(x))`` of each held-out sample.
        Y : array of shape (n_samples, d1, ..., dp)
            Outputs of all samples.
        w : array of shape (n_samples,) or None
            Weights of all samples.
        rows : array of shape (n,)
            Indices of the held-out samples.
        """
        T, xp = fit.tucker, namespace_of(F)
        assert fit.hat is not None
        has_intercept, U = fit.hat["intercept"], T.factors[0]
        latent = F if U is None else F @ xp.astype(to_device_of(U, F), F.dtype, copy=False)
        core = to_device_of(unfold(multi_mode_product(T.core, (None, *T.factors[1:])), 0), F)
        core = xp.astype(core, F.dtype, copy=False)  # some libraries do not mix types
        intercept = xp.astype(to_device_of(xp.reshape(fit.intercept, (-1,)), F), F.dtype)
        latent, core, intercept, factor = (
            to_device_of(A, Y) for A in (latent, core, intercept, factor)
        )
        Y, own = namespace_of(Y).reshape(Y, (Y.shape[0], -1)), own_noise(fit).reshape(-1)
        added = None if fit.own is None else to_device_of(fit.own.times(F), Y)
        weights = np.ones(rows.size) if w is None else to_numpy(w)[rows]
        if w is not None:
            keep = np.flatnonzero(weights > 0)
            latent, factor, weights, rows = (take(A, keep) for A in (latent, factor, weights, rows))
            added = None if added is None else take(added, keep)
        return cls(Y, rows, latent, core, intercept, factor, weights, own, has_intercept, added)

    def scaled(self, columns: slice) -> Array:
        """Return the residuals of some outputs divided by the factors, (n, n_columns)."""
        R = take(self.Y[:, columns], self.rows) - self.latent @ self.core[:, columns]
        R -= self.intercept[columns]
        if self.added is not None:
            R -= namespace_of(R).astype(self.added[:, columns], R.dtype, copy=False)
        R /= namespace_of(R).astype(self.factor, R.dtype, copy=False)[:, None]
        return R

    def rounding(self, columns: slice, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the size of residuals that are rounding errors, and which outputs are constant.

        Low-rank predictions of a constant output are computed from the factors of all outputs.
        Their residuals belong to this output, and not to the pool of all outputs. Without an
        intercept, only an output of zeros has such residuals.

        Parameters
        ----------
        columns : slice
            Outputs.
        rows : array of int
            Indices of the samples that are held out by some fold.
        """
        Y = take(self.Y[:, columns], rows)
        xp = namespace_of(Y)
        if is_numpy_array(Y):
            least, most = np.fmin.reduce(Y, axis=0), np.fmax.reduce(Y, axis=0)
        else:
            unknown = xp.isnan(Y)
            least = to_numpy(xp.min(xp.where(unknown, xp.full_like(Y, xp.inf), Y), axis=0))
            most = to_numpy(xp.max(xp.where(unknown, xp.full_like(Y, -xp.inf), Y), axis=0))
        size = _DIGITS * float(xp.finfo(Y.dtype).eps) * np.maximum(np.abs(least), np.abs(most))
        if not self.has_intercept:
            least, most = np.minimum(least, 0), np.maximum(most, 0)
        return size, ~(least < most)


@dataclass(frozen=True, eq=False)
class MomentResiduals:
    """Held-out moments of a fold, and the fit to its training moments."""

    fit: Fit
    held_out: CentredMoments
    own_leverage: float = 0.0  # leverage of own inputs, summed over the samples


@dataclass(frozen=True, eq=False)
class Calibration:
    """Noise of each output, and quantiles for prediction intervals.

    Parameters
    ----------
    noise : array of shape (d1, ..., dp)
        Noise of each output.
    quantiles : dict
        Levels and quantiles of the scores, and numbers of scores. If the levels are None, the
        scores are assumed to be normal.
    errors : array of shape (n_folds, d1, ..., dp), or None
        Mean squared held-out error of each output in every fold; None unless the folds are moments.
    rows : RowResiduals or None
        Residuals of each sample. None if the folds are moments.
    dependence : Dependence or None
        Dependence of neighbouring samples. None if it is not strong, or if the folds are moments.
    """

    noise: np.ndarray
    quantiles: dict[str, Any]
    errors: np.ndarray | None = None
    rows: RowResiduals | None = None
    dependence: Dependence | None = None

    def placed(self, rows: np.ndarray, n_samples: int) -> Calibration:
        """Return the calibration with residuals of all samples, NaN except for `rows`."""
        placed = None if self.rows is None else self.rows.placed(rows, n_samples)
        return replace(self, rows=placed)


def own_noise(fit: Fit) -> np.ndarray:
    """Return the noise of each output from training residuals, (d1, ..., dp); NaN if unknown."""
    if fit.hat is None or fit.rss_root is None:
        return np.full(tuple(fit.tucker.shape[1:]), np.nan)
    return to_numpy(noise_level(fit.hat, fit.rss_root, fit.weight))


def calibrate(
    folds: Sequence[FoldResiduals] | Sequence[MomentResiduals],
    shape: Sequence[int],
    own: np.ndarray | None = None,
    splits: Sequence[tuple[np.ndarray, np.ndarray]] | None = None,
    groups: Any = None,
) -> Calibration | None:
    """Compute noise and quantiles from the residuals of all folds.

    Returns None if moments lack the sums of squares of the outputs.

    Parameters
    ----------
    folds : sequence of FoldResiduals or MomentResiduals
        Residuals of all folds.
    shape : sequence of int
        Shape of the outputs of a sample, ``(d1, ..., dp)``.
    own : array of shape (d1, ..., dp), optional
        `own_noise` of the fit to all data, in the units of the folds.
    splits : list of index pairs, optional
        Training and test samples of each fold.
    groups : array of shape (n_samples,), optional
        Groups of the samples.
    """
    moments = [fold for fold in folds if isinstance(fold, MomentResiduals)]
    if moments:
        noise, errors = held_out_noise(moments)
        df = _n_residuals([fold.held_out for fold in moments])
        quantiles = {"levels": None, "df": df}
        return None if noise is None else Calibration(noise, quantiles, errors)
    samples = [fold for fold in folds if isinstance(fold, FoldResiduals)]
    noise, kept, rows = held_out_scores(samples, None if own is None else own.reshape(-1))
    for name in ("entry", "n_entry", "own"):
        if np.ndim(kept[name]):
            kept[name] = kept[name].reshape(kept[name].shape[:-1] + tuple(shape))
    dependence = find_dependence(samples, splits, groups)
    if dependence is not None:
        kept["effective"] = dependence.share
    return Calibration(noise.reshape(tuple(shape)), kept, rows=rows, dependence=dependence)


def _n_residuals(parts: Sequence[CentredMoments]) -> float:
    """Return the number of held-out residuals; for scaled moments, the effective number."""
    if all(part.weight_squares is None for part in parts):
        return sum(part.n_samples for part in parts)
    weights = np.array([part.weight for part in parts])
    squares = np.array([part.weight * (part.weight / part.n_effective) for part in parts])
    return float(weights.sum() ** 2 / squares.sum())


def residual_outputs(Y: Array) -> Array:
    """Return outputs on an accelerator unchanged, and other outputs as NumPy arrays."""
    return to_numpy(Y) if on_host(Y) else Y


def held_out_scores(
    folds: Sequence[FoldResiduals], own: np.ndarray | None = None
) -> tuple[np.ndarray, dict[str, Any], RowResiduals]:
    """Return the noise of each output, (D,), quantiles of the scores, and residuals of samples.

    The unit of the largest score of a sample is the noise from the training residuals of its fold,
    which do not include the sample. For new samples, the unit is `own`, of shape (D,), the noise
    from the training residuals of the fit to all data. The noise from held-out residuals of other
    folds depends on fits that include the sample. It is used only for outputs for which a fit has
    no estimate from its training residuals.
    """
    parts, order, n_samples = _parts(folds)
    w = np.concatenate([fold.w for fold in folds])[order]
    weights = None if (w == w[0]).all() else w
    n, D = w.size, folds[0].Y.shape[1]
    levels = np.arange(1, n + 1) / n if n <= _FEW else LEVELS
    noise, entry = np.empty(D), np.empty((levels.size, D), dtype=np.float32)
    counts = np.full(D, float(n_samples))
    largest, n_seen, pool, pool_w = np.full(n, np.nan), np.zeros(n), [], []
    levels_of_folds = np.stack([fold.own for fold in folds])
    fold_of_row = np.repeat(np.arange(len(folds)), [fold.w.size for fold in folds])[order]
    every = np.full((1, D), np.nan) if own is None else own[None]
    with np.errstate(invalid="ignore"):
        known = np.all(np.concatenate([levels_of_folds, every]) > 0, axis=0).reshape(D)
    ratio = np.ones(D)
    with_median = np.append(levels, (n + 1) / (2 * n))
    row_squares, row_counts = np.zeros(n), np.zeros(n)
    index = np.concatenate([fold.rows for fold in folds])[order]
    width = max((_BLOCK if on_host(folds[0].Y) else _DEVICE_BLOCK) // (8 * n), 1)
    for start in range(0, D, width):
        columns = slice(start, min(start + width, D))
        R = _scores(folds, columns, order, weights is not None)
        R, seen, squares, sums = _with_sums(R, w, parts)
        with np.errstate(invalid="ignore", divide="ignore"):
            noise[columns] = np.sqrt(squares.sum(axis=0) / sums.sum(axis=0))
        if seen is not None:
            counts[columns] = seen.sum(axis=0) * (n_samples / n)
        rounding, is_constant = folds[0].rounding(columns, index)
        unit = np.where(noise[columns] > rounding, noise[columns], np.nan)
        *found, median = _quantiles(R.T, with_median, weights, seen is not None)
        entry[:, columns] = np.array(found) / unit
        scale = np.where(median > rounding, CONSISTENT * median, unit)
        scale = np.where(is_constant, np.nan, scale)
        _add_rows(R, seen, scale, row_squares, row_counts)
        use = known[columns] & ~np.isnan(unit) & ~is_constant
        own_scores = _own_scores(R, levels_of_folds[:, columns], fold_of_row, use)
        pooled_unit = np.where(is_constant, np.nan, unit)
        _scale_rows(R, squares, sums, pooled_unit, parts, rounding)
        if own_scores is None:
            np.fmax(largest, _row_maxima(R), out=largest)
        else:
            ratio[columns][use] = every[0, columns][use] / unit[use]
            np.fmax(largest, _row_maxima(own_scores), out=largest)
            if not use.all():
                np.fmax(largest, _row_maxima(_columns(R, ~use)), out=largest)
        n_seen += R.shape[1] if seen is None else seen.sum(axis=1)
        step = _pool_step(n * D, R.shape[1])
        pool.append(to_numpy(namespace_of(R).reshape(R, (-1,))[::step]).copy())
        if weights is not None:
            pool_w.append(np.repeat(w, R.shape[1])[::step])
    pooled, pooled_w = np.concatenate(pool), np.concatenate(pool_w) if pool_w else None
    some, pooled_levels = n_seen > 0, levels if pooled.size <= _FEW else LEVELS
    rows = _by_sample(row_squares, row_counts, index, folds[0].Y.shape[0])
    kept = {
        "levels": levels,
        "pooled_levels": pooled_levels,
        "seen": float(n_seen[some].mean() / np.count_nonzero(counts)),
        "n_entry": float(n_samples) if (counts == n_samples).all() else counts,
        "n_pooled": float(counts.sum()),
        "n_simultaneous": n_samples * float(some.mean()),
        "own": ratio.astype(np.float32),
        "entry": entry,
        "pooled": _quantiles(pooled[None], pooled_levels, pooled_w, True)[:, 0],
        "simultaneous": _quantiles(largest[None], levels, weights, True)[:, 0],
    }
    return noise, kept, rows


def _add_rows(
    R: Array, seen: np.ndarray | None, scale: np.ndarray, squares: np.ndarray, counts: np.ndarray
) -> None:
    """Add squares of scores divided by a robust scale, and their numbers, in place.

    Parameters
    ----------
    R : array of shape (n, n_columns)
    seen : array of bool of shape (n, n_columns), or None
        Mask of observed scores; None if all are observed.
    scale : array of shape (n_columns,)
        Robust scale of each output; NaN for outputs without noise, which do not count.
    squares, counts : arrays of shape (n,)
    """
    use = ~np.isnan(scale)
    inverse = asarray_like(np.where(use, 1 / np.where(use, scale, 1.0) ** 2, 0.0), R, dtype=R.dtype)
    if seen is None:
        squares += to_numpy((R * R) @ inverse)
        counts += np.count_nonzero(use)
    else:
        squares += np.where(seen, R * R, 0.0) @ inverse
        counts += seen @ use.astype(float)


def _by_sample(
    squares: np.ndarray, counts: np.ndarray, index: np.ndarray, n_samples: int
) -> RowResiduals:
    """Return residuals of samples: the mean over the folds that hold out a sample."""
    times = np.bincount(index, minlength=n_samples)
    totals, seen = (np.bincount(index, A, n_samples) for A in (squares, counts))
    with np.errstate(invalid="ignore", divide="ignore"):
        return RowResiduals(np.where(seen > 0, totals / seen, np.nan), seen / np.maximum(times, 1))


def _own_scores(
    R: Array, levels: np.ndarray, fold_of_row: np.ndarray, use: np.ndarray
) -> Array | None:
    """Divide scores by the noise of their fold, for the outputs to use; None if there are none.

    Parameters
    ----------
    R : array of shape (n, n_columns)
        Scores.
    levels : array of shape (n_folds, n_columns)
        Noise of each output in every fold.
    fold_of_row : array of shape (n,)
        Index of the fold of each row.
    use : array of bool, of shape (n_columns,)
        Outputs to use.
    """
    if not use.any():
        return None
    found = asarray_like(levels[:, use], R, dtype=R.dtype)
    rows = asarray_like(fold_of_row, R)
    return _columns(R, use) / namespace_of(R).take(found, rows, axis=0)


def _columns(R: Array, mask: np.ndarray) -> Array:
    """Return some columns of a matrix."""
    if mask.all():
        return R
    return namespace_of(R).take(R, asarray_like(np.flatnonzero(mask), R), axis=1)


def _scores(folds: Sequence[FoldResiduals], columns: slice, order: Any, weighted: bool) -> Array:
    """Return the absolute scores of some outputs, (n, n_columns); on the host with weights."""
    found = [fold.scaled(columns) for fold in folds]
    if weighted or on_host(found[0]):
        R = np.concatenate([to_numpy(part) for part in found])[order]
        return np.abs(R, out=R)
    xp = namespace_of(found[0])
    R = xp.abs(xp.concat(found))
    return R if isinstance(order, slice) else xp.take(R, asarray_like(order, R), axis=0)


def _pool_step(n_scores: int, n_columns: int) -> int:
    """Return the step between pooled scores, coprime to the number of outputs."""
    step = max(1, n_scores // _POOL)
    while math.gcd(step, n_columns) > 1:
        step += 1
    return step


def _row_maxima(R: Array) -> np.ndarray:
    """Return the largest score of each sample, ignoring NaN; NaN if all scores are NaN."""
    if is_numpy_array(R):
        return np.fmax.reduce(R, axis=1)
    xp = namespace_of(R)
    found = to_numpy(xp.max(xp.where(xp.isnan(R), -xp.ones_like(R), R), axis=1))
    return np.where(found < 0, np.nan, found)


def _parts(folds: Sequence[FoldResiduals]) -> tuple[list[slice], Any, int]:
    """Divide the held-out samples into parts.

    Return the slice of each part, the order of the rows of all folds, and the number of samples.
    The parts are the folds. If there is one fold, or samples are held out several times, the parts
    are blocks of samples.
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
    """Return scores, the mask of observed scores, and `_sums`; on the host if some are missing."""
    squares, sums = _sums(R, None, w, parts)
    if not np.isnan(squares).any():
        return R, None, squares, sums
    R = to_numpy(R)
    seen = ~np.isnan(R)
    return R, seen, *_sums(R, seen, w, parts)


def _sums(
    R: Array, seen: np.ndarray | None, w: np.ndarray, parts: list[slice]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the weighted sums of squares of each part and output, and the sums of weights."""
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
    R: Array,
    squares: np.ndarray,
    sums: np.ndarray,
    unit: np.ndarray,
    parts: list[slice],
    rounding: np.ndarray,
) -> None:
    """Divide the residuals of each part by the noise of the other parts, or by `unit`.

    Noise that is a rounding error does not count.
    """
    K = len(parts)
    others = np.ones((K, K)) - np.eye(K) if K > 1 else np.ones((1, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        level = np.sqrt((others @ squares) / (others @ sums))
        level = np.where((level > rounding) & ~np.isnan(unit), level, unit)
        for rows, found in zip(parts, level, strict=True):
            R[rows, :] /= asarray_like(found, R, dtype=R.dtype)


def _quantiles(S: Array, levels: np.ndarray, w: np.ndarray | None, missing: bool) -> np.ndarray:
    """Return the quantiles of each row of `S`, of shape (n_levels, n_rows).

    The i-th of n scores is the quantile of level i/n. Quantiles are linear between these levels,
    and zero at level zero.
    """
    if w is None and not (missing and np.isnan(S).any()):
        xp, n = namespace_of(S), S.shape[1]
        # A stable sort, the default, takes five times as long.
        S, place = xp.sort(S, axis=1, stable=False), levels * n
        last = np.clip(np.ceil(place - 1e-9).astype(int), 1, n)
        host = is_numpy_array(S)  # `take` would copy all of a NumPy array
        at = lambda i: S[:, i] if host else to_numpy(xp.take(S, asarray_like(i, S), axis=1))  # noqa: E731
        here, below = at(last - 1), np.where(last > 1, at(np.maximum(last - 2, 0)), 0.0)
        with np.errstate(invalid="ignore"):  # infinity minus infinity
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


# ---------------------------------------------------------------- noise from moments


def held_out_noise(
    folds: Sequence[MomentResiduals],
) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """Return the noise of each output, (d1, ..., dp), from held-out moments, and its errors.

    The mean squared errors have shape (n_folds, d1, ..., dp). Both are None if the moments lack
    the sums of squares of the outputs.
    """
    squares, spread = [], 0.0
    for fold in folds:
        hat, W = fold.fit.hat, fold.fit.tucker
        assert hat is not None
        if fold.held_out.squares is None:
            return None, None
        mean = fold.fit.intercept + W.map_input(hat["mean"][None, :])[0, ...]
        m = fold.held_out.about(hat["mean"], mean)
        A = np.eye(m.n_features) if W.factors[0] is None else to_numpy(W.factors[0])
        core = to_numpy(multi_mode_product(W.core, (None, *W.factors[1:])))
        inner = np.tensordot(A.T, to_numpy(m.Sxy), 1) * core
        fitted = core * np.tensordot(A.T @ to_numpy(m.Sxx) @ A, core, 1)
        squares.append(to_numpy(m.squares) - 2 * inner.sum(axis=0) + fitted.sum(axis=0))
        # The sum of the leverages of the samples equals that of the rows of a root of X'X.
        lam, U = eigh(m.Sxx)
        xp = namespace_of(lam)
        rows = (U * xp.sqrt(xp.clip(lam, 0.0, None))).T
        h = hat["share"] * float(xp.sum(leverage(hat, rows)))
        if fold.own_leverage:
            h += extra_share(hat) * fold.own_leverage / hat.get("density", 1.0)
        spread += h + m.weight * (1 + (1 / hat["weight"] if hat["intercept"] else 0.0))
    total = np.clip(sum(squares), 0.0, None)
    errors = [part / fold.held_out.weight for part, fold in zip(squares, folds, strict=True)]
    return np.sqrt(total / spread), np.clip(np.stack(errors), 0.0, None)


# ---------------------------------------------------------------- from quantiles to intervals


def half_width(mean: Any, std: Any, factor: np.ndarray) -> Any:
    """Return the half-width of intervals, which is at least the rounding error of predictions.

    An output without noise, such as a pixel that is always empty, has a standard deviation of zero.
    Its predictions are computed from the factors of all outputs, and have their rounding error.

    Parameters
    ----------
    mean, std : arrays of shape (n_samples, d1, ..., dp)
        Predictions and standard deviations, as arrays of an array library or of Dask.
    factor : array of shape () or (d1, ..., dp)
        Result of `interval_factor`.
    """
    modes = tuple(range(1, mean.ndim))
    if is_dask(std):
        width, sizes = std * factor.astype(std.dtype), abs(mean)
        sizes = np.where(np.isnan(sizes), 0, sizes).max(axis=modes, keepdims=True)
        return np.maximum(width, _DIGITS * np.finfo(std.dtype).eps * sizes)
    xp = namespace_of(std)
    width, sizes = std * asarray_like(factor, std, dtype=std.dtype), xp.abs(mean)
    sizes = xp.where(xp.isnan(sizes), xp.zeros_like(sizes), sizes)
    if modes:
        sizes = xp.max(sizes, axis=modes, keepdims=True)
    return xp.maximum(width, _DIGITS * float(xp.finfo(std.dtype).eps) * sizes)


def interval_factor(kept: dict[str, Any], coverage: float, kind: str, noise: Any) -> np.ndarray:
    """Return the half-width of intervals in standard deviations, of shape () or (d1, ..., dp).

    Parameters
    ----------
    kept : dict
        Entries of `Calibration.quantiles`.
    coverage : float
        Coverage of the intervals.
    kind : {"entry", "pooled", "simultaneous"}
        Kind of the intervals, see `Search.predict_interval`.
    noise : array of shape (d1, ..., dp)
        Noise of each output.
    """
    if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        raise ValueError(f"coverage must be a number between 0 and 1; got {coverage!r}.")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
    levels = kept["levels"]
    if levels is None:
        n = max(int(np.count_nonzero(~np.isnan(to_numpy(noise)))), 1)
        share = coverage ** (1 / n) if kind == "simultaneous" else coverage
        return np.asarray(t.ppf((1 + share) / 2, kept["df"]))  # the noise is an estimate
    levels = kept["pooled_levels"] if kind == "pooled" else levels
    # In a sample with missing outputs, a missing entry might have had the largest score.
    share = coverage ** kept["seen"] if kind == "simultaneous" else coverage
    n = kept["n_" + kind]
    with np.errstate(divide="ignore"):
        wanted = share * (1 + 1 / np.asarray(n, dtype=float))
    if kind == "simultaneous":  # rounds up to a whole number of scores, without interpolation
        wanted = np.ceil(wanted * n - 1e-9) / n
    if not wanted.min() <= 1 + 1e-12:
        needed = math.ceil(share / (1 - share) - 1e-9)
        pooled = ', or kind="pooled"' if kind == "entry" else ""
        raise ValueError(
            f"coverage={coverage:g} needs at least {needed} held-out samples, and "
            f"there are {int(np.max(n))}. Use a smaller coverage, or more samples"
            f"{pooled}."
        )
    if "effective" in kept:
        # Samples depend on each other. Outputs of a sample do not count as several scores, and the
        # largest score is the limit.
        samples = kept["n_simultaneous"] if kind == "pooled" else n
        with np.errstate(divide="ignore"):
            more = np.minimum(share * (1 + 1 / (np.asarray(samples) * kept["effective"])), 1.0)
        wanted = np.where(wanted <= 1, np.maximum(wanted, more), wanted)
    scores = kept[kind]
    points = np.concatenate([[0.0], levels])
    at = np.clip(np.searchsorted(points, np.minimum(wanted, 1.0)), 1, levels.size)
    part = (wanted - points[at - 1]) / (points[at] - points[at - 1])
    # Outputs without noise have no scores; their standard deviation is zero.
    scores = np.nan_to_num(scores.astype(np.float64), posinf=np.inf)
    scores = np.concatenate([np.zeros_like(scores[:1]), scores])
    if wanted.ndim:
        low, high = (np.take_along_axis(scores, i[None], axis=0)[0] for i in (at - 1, at))
    else:
        low, high = scores[at - 1], scores[at]
    # The interval of an output with too few observations is infinite.
    found = np.where(wanted <= 1 + 1e-12, low + np.minimum(part, 1.0) * (high - low), np.inf)
    return found * kept["own"] if kind == "simultaneous" else found
