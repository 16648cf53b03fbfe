"""Prediction intervals from the held-out residuals of a search (cross-conformal).

A search has fitted its choice to every fold, or can do so from what it has gathered, and each of
these fits meets samples that it has not seen. A residual over its spread g (`core.hat`) is a score;
quantiles of the scores, times the spread of a new prediction, are how far an observation may lie
from it, whatever the distribution of the noise: for each output entry by itself, for all entries
alike ("pooled", in units of each entry's noise, which comes from the other folds), and for all
entries at once ("simultaneous", from the largest score of each sample). Kept are quantiles at some
levels. With the (n + 1)-th part for the new sample itself the coverage is that asked for, or more,
as far as samples and folds are exchangeable.

Where only moments are at hand the scores are taken as normal.

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
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy.stats import t
from sklearn.utils.validation import check_is_fitted

from ..base import lift
from ..core.hat import leverage
from ..core.namespace import eigh, namespace_of, to_numpy
from ..core.spectral import Whitened
from ..core.tensor import multi_mode_product, unfold
from ..core.tucker import Tucker
from ..data.moments import Moments
from ..data.named import take_inputs
from .folds import take

__all__ = ["FoldResiduals", "Intervals", "held_out_noise", "held_out_scores"]

KINDS = ("entry", "pooled", "simultaneous")
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
# Bytes of the residuals that are looked at together, and how many scores are pooled.
_BLOCK, _POOL = 2**25, 2**18
_N_BLOCKS = 10


class Intervals:
    """What a search knows of the residuals of its choice, and the intervals that follow."""

    best_estimator_: Any
    # Levels and quantiles of the scores, and their number; without levels they are normal.
    _fitted_intervals: dict[str, Any]

    def predict_interval(self, X: Any, coverage: float = 0.9, kind: str = "entry") -> Any:
        """Intervals in which new observations lie with a given probability.

        They are quantiles of the held-out residuals of the search, scaled by the spread of a
        prediction, about the final model's predictions; see docs/intervals.md. From moments alone
        (`fit_fold_moments`, data beyond memory) the residuals are taken as normal.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        coverage : float, default=0.9
            The probability, between 0 and 1.
        kind : {"entry", "pooled", "simultaneous"}, default="entry"
            Whether each output entry has its own quantile, all have that of their scaled residuals
            together (which needs fewer samples), or all entries of a sample at once lie within
            theirs with the given probability.

        Returns
        -------
        lower, upper : arrays of shape (n_samples, d1, ..., dp)
            As `predict` returns them.
        """
        check_is_fitted(self)
        if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
            raise ValueError(f"coverage must be a number between 0 and 1; got {coverage!r}.")
        if not isinstance(kind, str) or kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(map(repr, KINDS))}; got {kind!r}.")
        if not hasattr(self, "_fitted_intervals"):
            raise ValueError(
                "predict_interval needs the held-out residuals of a search, and this one has none: "
                "it went by an information criterion, or comes from a file or moments of an older "
                "version. Fit again, with criterion='cv'."
            )
        model = self.best_estimator_
        factor = _factor(self._fitted_intervals, float(coverage), kind, model.noise_)
        mean, std = model._predict_pair(take_inputs(model, X))
        width = std * _like(factor, std)
        return model._label(X, mean - width), model._label(X, mean + width)


def _like(factor: np.ndarray, std: Any) -> Any:
    if type(std).__module__.startswith("dask"):
        return factor.astype(std.dtype)
    return namespace_of(std).asarray(factor, dtype=std.dtype, device=getattr(std, "device", None))


def _factor(kept: dict[str, Any], coverage: float, kind: str, noise: Any) -> np.ndarray:
    """How many standard deviations an interval reaches, for all outputs or for each of them."""
    levels = kept["levels"]
    if levels is None:
        n = max(int(np.count_nonzero(~np.isnan(to_numpy(noise)))), 1)
        share = coverage ** (1 / n) if kind == "simultaneous" else coverage
        return np.asarray(t.ppf((1 + share) / 2, kept["df"]))  # the noise is an estimate
    levels = kept["pooled_levels"] if kind == "pooled" else levels
    # Of a sample that was observed in part, what is missing might have been the largest.
    share = coverage ** kept["seen"] if kind == "simultaneous" else coverage
    n = kept["n_" + kind]
    with np.errstate(divide="ignore"):
        wanted = share * (1 + 1 / np.asarray(n, dtype=float))
    if kind == "simultaneous":  # a whole score, not part of the way to it
        wanted = np.ceil(wanted * n - 1e-9) / n
    if not wanted.min() <= 1 + 1e-12:
        raise ValueError(
            f"coverage={coverage:g} needs {math.ceil(share / (1 - share))} held-out samples "
            f"at least, and there are {int(np.max(n))}; ask for less, or fit more samples."
        )
    scores = kept[kind]
    points = np.concatenate([[0.0], levels])
    at = np.clip(np.searchsorted(points, np.minimum(wanted, 1.0)), 1, levels.size)
    part = (wanted - points[at - 1]) / (points[at] - points[at - 1])
    # Without noise there are no scores, and nothing that they would be multiplied by.
    scores = np.nan_to_num(scores.astype(np.float64), posinf=np.inf)
    scores = np.concatenate([np.zeros_like(scores[:1]), scores])
    if wanted.ndim:
        low, high = (np.take_along_axis(scores, i[None], axis=0)[0] for i in (at - 1, at))
    else:
        low, high = scores[at - 1], scores[at]
    # An output that was observed too rarely has no bound.
    return np.where(wanted <= 1 + 1e-12, low + np.minimum(part, 1.0) * (high - low), np.inf)


# ---------------------------------------------------------------- scores from samples


@dataclass(frozen=True, eq=False)
class FoldResiduals:
    """The held-out samples of a fold beside the fit to its training samples.

    Parameters
    ----------
    Y : array of shape (n_samples, D)
        Outputs of all samples, NaN where they are missing.
    rows : array of shape (n,)
        Which of them are held out, and have a weight.
    latent, core, intercept : arrays of shape (n, R0), (R0, D) and (D,)
        The predictions are ``latent @ core + intercept``.
    spread : array of shape (n,)
    w : array of shape (n,)
        Weights, all positive.
    """

    Y: np.ndarray
    rows: np.ndarray
    latent: np.ndarray
    core: np.ndarray
    intercept: np.ndarray
    spread: np.ndarray
    w: np.ndarray

    @classmethod
    def of(cls, model: Any, X: Any, Y: np.ndarray, w: Any, rows: np.ndarray) -> FoldResiduals:
        """Of a fitted model, the held-out inputs, and the outputs and weights of all samples."""
        weights = np.ones(rows.size) if w is None else to_numpy(w)[rows]
        F, T, keep = model._features(X), model.tucker_, weights > 0
        spread = to_numpy(model._spread_of(X, F))
        U = T.factors[0]
        latent = to_numpy(F if U is None else F @ namespace_of(F).astype(U, F.dtype, copy=False))
        core = to_numpy(unfold(multi_mode_product(T.core, (None, *T.factors[1:])), 0))
        Y = Y.reshape(len(Y), -1)
        intercept = to_numpy(model.intercept_).reshape(-1)
        return cls(Y, rows[keep], latent[keep], core, intercept, spread[keep], weights[keep])

    def scaled(self, columns: slice) -> np.ndarray:
        """Residuals of some outputs over the spread, (n, n_columns)."""
        Y = take(self.Y[:, columns], self.rows)
        R = Y - self.latent @ self.core[:, columns]
        R -= self.intercept[columns]
        R /= self.spread[:, None]
        return R


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
    width = max(_BLOCK // (8 * n), 1)
    for start in range(0, D, width):
        columns = slice(start, min(start + width, D))
        R = np.concatenate([fold.scaled(columns) for fold in folds])[order]
        np.abs(R, out=R)
        squares, sums = _sums(R, None, w, parts)
        holes = bool(np.isnan(squares).any())
        if holes:
            seen = ~np.isnan(R)
            squares, sums = _sums(R, seen, w, parts)
        with np.errstate(invalid="ignore", divide="ignore"):
            noise[columns] = np.sqrt(squares.sum(axis=0) / sums.sum(axis=0))
        if holes:
            counts[columns] = seen.sum(axis=0) * (n_samples / n)
        unit = np.where(noise[columns] > 0, noise[columns], np.nan)
        entry[:, columns] = _quantiles(R.T, levels, weights, holes) / unit
        _scale_rows(R, squares, sums, unit, parts)
        np.fmax(largest, np.fmax.reduce(R, axis=1), out=largest)
        n_seen += seen.sum(axis=1) if holes else R.shape[1]
        step = max(1, n * D // _POOL)
        while math.gcd(step, R.shape[1]) > 1:  # so that all outputs have their turn
            step += 1
        pool.append(R.reshape(-1)[::step].copy())
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


def _sums(
    R: np.ndarray, seen: np.ndarray | None, w: np.ndarray, parts: list[slice]
) -> tuple[np.ndarray, np.ndarray]:
    """Weighted sums of squares of each part and output, and the weights that they have."""
    squares = np.empty((len(parts), R.shape[1]))
    sums = np.empty_like(squares)
    for k, rows in enumerate(parts):
        part = R[rows] if seen is None else np.where(seen[rows], R[rows], 0.0)
        squares[k] = np.einsum("i,ij,ij->j", w[rows], part, part)
        sums[k] = w[rows].sum() if seen is None else w[rows] @ seen[rows]
    return squares, sums


def _scale_rows(
    R: np.ndarray, squares: np.ndarray, sums: np.ndarray, unit: np.ndarray, parts: list[slice]
) -> None:
    """Divide the residuals of each part by the noise that the other parts find, or by `unit`."""
    K = len(parts)
    others = np.ones((K, K)) - np.eye(K) if K > 1 else np.ones((1, 1))
    with np.errstate(invalid="ignore", divide="ignore"):
        level = np.sqrt((others @ squares) / (others @ sums))
        level = np.where(level > 0, level, unit)
        for rows, found in zip(parts, level, strict=True):
            R[rows] /= found


def _quantiles(S: np.ndarray, levels: np.ndarray, w: np.ndarray | None, holes: bool) -> np.ndarray:
    """Quantiles, (n_levels, n_rows), of each row of `S`: piecewise linear from zero on.

    The i-th of n scores is the quantile of level i/n.
    """
    if w is None and not (holes and np.isnan(S).any()):
        S = np.sort(S, axis=1)
        n = S.shape[1]
        place = levels * n
        last = np.clip(np.ceil(place - 1e-9).astype(int), 1, n)
        below = np.where(last > 1, S[:, np.maximum(last - 2, 0)], 0.0)
        with np.errstate(invalid="ignore"):  # infinite less infinite
            rise = np.where(S[:, last - 1] > below, S[:, last - 1] - below, 0.0)
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


def held_out_noise(parts: Sequence[tuple[Any, Whitened, Tucker, Moments]]) -> np.ndarray | None:
    """Noise of each output, (d1, ..., dp), from held-out moments; None where these lack it.

    Parameters
    ----------
    parts : sequence of (model, problem, V, moments)
        For each fold the fitted model, its problem and approximation, and the held-out moments.
    """
    squares, spread = 0.0, 0.0
    for model, problem, V, moments in parts:
        if moments.squares is None:
            return None
        m, W = moments.about(problem.mean_x, problem.mean_y), lift(V, problem)
        A = np.eye(m.n_features) if W.factors[0] is None else to_numpy(W.factors[0])
        core = to_numpy(multi_mode_product(W.core, (None, *W.factors[1:])))
        inner = np.tensordot(A.T, to_numpy(m.Sxy), 1) * core
        fitted = core * np.tensordot(A.T @ to_numpy(m.Sxx) @ A, core, 1)
        squares = squares + to_numpy(m.squares) - 2 * inner.sum(axis=0) + fitted.sum(axis=0)
        # The leverages of the samples add up to those of the rows of a root of X'X.
        hat, (lam, U) = model._fitted_hat, eigh(m.Sxx)
        xp = namespace_of(lam)
        rows = (U * xp.sqrt(xp.clip(lam, 0.0, None))).T
        h = hat["share"] * float(xp.sum(leverage(hat, rows)))
        spread += h + m.weight * (1 + (1 / hat["weight"] if hat["intercept"] else 0.0))
    return np.sqrt(np.clip(squares, 0.0, None) / spread)
