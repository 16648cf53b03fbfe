"""Samples that depend on each other: autocorrelation of held-out residuals, and its consequences.

Neighbouring samples of a time series have similar noise. The residuals r_i of held-out samples,
each output minus its mean and in units of its root mean square, have the autocorrelation at lag k

    rho_k = sum_i <r_i, r_(i+k)> / sum_i (||r_i||^2 + ||r_(i+k)||^2) / 2

over pairs of samples at distance k along the order of the samples, or within groups. All outputs
of a sample enter one inner product, so that correlated outputs do not count as independent
evidence. Dependence counts as strong if rho_1 is significantly larger than 0.3: for `d_i`, the
terms of ``sum_i <r_i, r_(i+1)> - 0.3 sum_i (||r_i||^2 + ||r_(i+1)||^2) / 2``, the self-normalised
sum ``sum_i d_i / sqrt(sum_i d_i^2)`` exceeds a quantile of the normal distribution. The margin
covers correlations of held-out residuals that come from the errors of the coefficients.

If dependence is strong, intervals use an effective number of samples (`Dependence.share`),
and a search warns if training and test samples are neighbours (`warn_of_neighbours`).

References
----------
M. S. Bartlett (1946). On the theoretical specification and sampling properties of autocorrelated
time-series. Supplement to the Journal of the Royal Statistical Society 8(1), 27-41.

J. Racine (2000). Consistent cross-validatory model-selection for dependent data: hv-block
cross-validation. Journal of Econometrics 99(1), 39-61.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.namespace import to_numpy
from ..core.warn import warn

if TYPE_CHECKING:
    from .intervals import FoldResiduals

__all__ = ["Dependence", "find_dependence", "warn_of_neighbours"]

# Autocorrelation above which samples are neighbours, and below which they count as independent.
_NEAR, _FAR = 0.3, 0.1
# Quantile of level 0.99 of the standard normal distribution.
_QUANTILE = 2.326
# A gap is at most this share of the samples.
_LONGEST_GAP = 0.1
# Share of the test samples with neighbours in the training set above which a search warns.
_TOLERATED = 0.1
# Residuals and outputs that are used.
_NUMBERS, _OUTPUTS = 2**22, 256


@dataclass(frozen=True, eq=False)
class Dependence:
    """Strong dependence of neighbouring samples.

    Parameters
    ----------
    correlation : float
        Autocorrelation of the held-out residuals at lag one.
    share : float
        Effective number of samples divided by the number of samples.
    near, gap : int
        Largest lag of correlations above 0.3, and above 0.1; at most a tenth of the samples.
    exposed : float
        Share of the test samples with neighbours in the training set of their fold.
    n_folds : int
        Number of folds.
    grouped : bool
        Whether neighbours are samples of the same group.
    """

    correlation: float
    share: float
    near: int
    gap: int
    exposed: float
    n_folds: int
    grouped: bool


def find_dependence(
    folds: Sequence[FoldResiduals],
    splits: Sequence[tuple[np.ndarray, np.ndarray]] | None,
    groups: Any = None,
) -> Dependence | None:
    """Return the dependence of neighbouring samples, or None if it is not strong.

    Parameters
    ----------
    folds : sequence of FoldResiduals
        Residuals of all folds.
    splits : list of index pairs, or None
        Training and test samples of each fold; None if they are not known.
    groups : array of shape (n_samples,), optional
        Groups of the samples. Neighbours are then successive samples of the same group.
    """
    R = _residuals(folds)
    codes = None if groups is None else _numbers_of(np.asarray(groups))
    order: Any = slice(None) if codes is None else np.argsort(codes, kind="stable")
    pairs = _Pairs(R[order], None if codes is None else codes[order])
    products, sizes = pairs.at(1)
    terms = products - _NEAR * sizes
    spread = math.sqrt(terms @ terms)
    if not terms.sum() > _QUANTILE * spread > 0:
        return None
    lags, rho, share_of_pairs = _autocorrelations(pairs)
    # Normal residuals with correlation rho have squares with correlation rho^2.
    every = np.arange(1, lags[-1] + 1)
    terms = np.interp(every, lags, rho**2 * share_of_pairs)
    longest = max(int(_LONGEST_GAP * len(R)), 1)
    near, gap = (
        min(max(int(np.interp(-level, -rho, lags)), 1), longest) for level in (_NEAR, _FAR)
    )
    return Dependence(
        correlation=float(rho[0]),
        share=float(1 / (1 + 2 * terms.sum())),
        near=near,
        gap=gap,
        exposed=_exposed(splits or (), near, codes),
        n_folds=len(folds),
        grouped=codes is not None,
    )


def _numbers_of(groups: np.ndarray) -> np.ndarray:
    """Return the number of the group of each sample, for labels of any type."""
    known: dict[Any, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in groups.tolist()])


def _residuals(folds: Sequence[FoldResiduals]) -> np.ndarray:
    """Return held-out residuals of at most 256 outputs, (n_samples, n_outputs).

    Each output has a mean of zero and a mean square of one: the residuals of a model without
    intercept have a common part, which does not depend on the order of the samples. NaN stands for
    samples that no fold holds out and for missing outputs. The residual of a sample that several
    folds hold out is their mean. Residuals that are rounding errors, as those of constant outputs,
    are zero.
    """
    n, D = folds[0].Y.shape
    step = max(1, math.ceil(D / min(_OUTPUTS, max(_NUMBERS // n, 1))))
    while math.gcd(step, D) > 1 and step < D:
        step += 1
    columns = slice(0, D, step)
    total, times = np.zeros((n, len(range(0, D, step)))), np.zeros((n, 1))
    for fold in folds:
        total[fold.rows] += to_numpy(fold.scaled(columns))
        times[fold.rows] += 1
    R = total / np.where(times > 0, times, np.nan)
    seen = ~np.isnan(R)
    number = np.maximum(seen.sum(axis=0), 1)
    R -= np.sum(R, axis=0, where=seen) / number
    unit = np.sqrt(np.sum(R**2, axis=0, where=seen) / number)
    rounding, is_constant = folds[0].rounding(columns, np.flatnonzero(times))
    return R / np.where((unit > rounding) & ~is_constant, unit, np.inf)


class _Pairs:
    """Inner products of the residuals of samples at a distance.

    Parameters
    ----------
    R : array of shape (n_samples, n_outputs)
        Residuals, sorted by group; NaN if they are missing.
    groups : array of shape (n_samples,), or None
        Groups.
    """

    def __init__(self, R: np.ndarray, groups: np.ndarray | None) -> None:
        seen = ~np.isnan(R)
        self.complete = bool((seen.all(axis=1) | ~seen.any(axis=1)).all())
        self.R, self.groups = np.where(seen, R, 0.0), groups
        self.seen = seen[:, 0] if self.complete else seen
        self.squares = np.einsum("ij,ij->i", self.R, self.R)
        self.n = int(seen.any(axis=1).sum())

    def at(self, lag: int) -> tuple[np.ndarray, np.ndarray]:
        """Return inner products and mean squared norms of all pairs at a lag."""
        A, B, a, b = self.R[:-lag], self.R[lag:], self.seen[:-lag], self.seen[lag:]
        products = np.einsum("ij,ij->i", A, B)
        if self.complete:
            sizes = np.where(a & b, self.squares[:-lag] + self.squares[lag:], 0.0) / 2
        else:
            sizes = np.sum(A * A + B * B, axis=1, where=a & b) / 2
        if self.groups is None:
            return products, sizes
        same = self.groups[:-lag] == self.groups[lag:]
        return np.where(same, products, 0.0), np.where(same, sizes, 0.0)


def _autocorrelations(pairs: _Pairs) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return lags, autocorrelations and numbers of pairs divided by the number of samples.

    The lags increase by about a fifth. The last one is the first with a correlation below 0.1.
    """
    found, lag, longest = [], 1, max(len(pairs.R) // 2, 2)
    while True:
        products, sizes = pairs.at(lag)
        total = sizes.sum()
        rho = products.sum() / total if total > 0 else 0.0
        found.append((lag, max(rho, 0.0), np.count_nonzero(sizes) / pairs.n))
        if rho < _FAR or lag >= longest:
            break
        lag = min(max(lag + 1, int(1.2 * lag)), longest)
    lags, rho, share = np.array(found).T
    return lags, np.minimum.accumulate(rho), share


def _exposed(
    splits: Sequence[tuple[np.ndarray, np.ndarray]], near: int, groups: np.ndarray | None
) -> float:
    """Return the share of the test samples with neighbours in the training set of their fold.

    Neighbours are samples at a distance of at most `near`, or samples of the same group.
    """
    held_out = found = 0
    for train, test in splits:
        held_out += test.size
        if groups is not None:
            found += int(np.count_nonzero(np.isin(groups[test], groups[train])))
            continue
        train = np.sort(train)
        at = np.searchsorted(train, test)
        before, after = train[np.maximum(at - 1, 0)], train[np.minimum(at, train.size - 1)]
        distance = np.minimum(abs(test - before), abs(after - test))
        found += int(np.count_nonzero(distance <= near))
    return found / max(held_out, 1)


def warn_of_neighbours(found: Dependence | None) -> None:
    """Warn if many test samples have neighbours in the training sets."""
    if found is None or found.exposed <= _TOLERATED:
        return
    n = found.n_folds
    what = f"similar (autocorrelation {found.correlation:.2f}), and {found.exposed:.0%} of the test"
    if found.grouped:
        warn(
            f"Held-out residuals of samples of the same group are {what} samples have samples of "
            f"their group in the training set. Held-out errors and prediction intervals are too "
            f"small for new groups. Use cv=GroupKFold({n})."
        )
        return
    warn(
        f"Held-out residuals of neighbouring samples are {what} samples have training samples at a "
        f"distance of at most {found.near}. In a time series, held-out errors and prediction "
        f"intervals are then too small. Use contiguous folds with a gap, "
        f"cv=holrr.model_selection.BlockKFold({n}, gap={found.gap}) or cv=TimeSeriesSplit({n}, "
        f"gap={found.gap}). If neighbouring samples are groups, use cv=GroupKFold({n}) and "
        f"fit(X, y, groups=...). If the order of the samples has no meaning, shuffle the samples."
    )
