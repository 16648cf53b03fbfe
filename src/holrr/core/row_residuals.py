r"""Root mean square of the held-out residuals of each training row, and its limit.

The residuals of a row are those of a fit without this row. Each residual is divided by the spread
of its prediction and by the noise of its output. The noise is 1.4826 times the median of the
absolute residuals, so that a few wrong rows do not increase it. :math:`S` is the mean of the
squares of a row. In ordinary rows, :math:`S` is approximately proportional to a chi-square divided
by its degrees of freedom :math:`f`. If outputs are correlated, :math:`f` is smaller than the number
of outputs. The fourth root of :math:`S` is nearly normal (Hawkins and Wixley 1986). Up to the
scale, its mean is :math:`1 - 3x/2` and its variance is :math:`x = 1/(8f)`. Both are estimated from
the median and the 90 percent quantile over the rows, which do not depend on the values of less than
a tenth of the rows. Quantiles above the median are used since limits are above the median, and
since the distribution of :math:`S` is only approximately a chi-square if outputs are correlated.

References
----------
D. M. Hawkins, R. A. J. Wixley (1986). A note on the transformation of chi-squared variables to
normality. The American Statistician 40(4), 296-298.

F. R. Hampel (1974). The influence curve and its role in robust estimation. Journal of the American
Statistical Association 69(346), 383-393.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import stdtrit

from .state import record

__all__ = ["CONSISTENT", "RowResiduals", "residual_limits", "row_residuals"]

# Standard deviation of a normal distribution, divided by its median absolute deviation.
CONSISTENT = 1.482602218505602
# Level of the upper quantile of the rows, and this quantile of a standard normal distribution.
_UPPER, _UPPER_NORMAL = 0.9, 1.2815515655446004


@record
@dataclass(frozen=True, eq=False)
class RowResiduals:
    """Held-out residuals of the rows of a fit.

    Parameters
    ----------
    squares : array of shape (n_samples,)
        Mean over the observed outputs of the squared residuals, in units of the noise; NaN for rows
        that were not held out.
    counts : array of shape (n_samples,)
        Number of observed outputs.
    labels : array of shape (n_samples,), or None
        Labels of the rows.
    """

    squares: np.ndarray
    counts: np.ndarray
    labels: np.ndarray | None = None

    def placed(self, rows: np.ndarray, n_samples: int) -> RowResiduals:
        """Return residuals of `n_samples` samples, of which `rows` are the present ones.

        Samples that are not in `rows` have NaN.
        """
        squares, counts = np.full(n_samples, np.nan), np.zeros(n_samples)
        squares[rows], counts[rows] = self.squares, self.counts
        return replace(self, squares=squares, counts=counts)


def row_residuals(
    R: np.ndarray, rounding: np.ndarray, labels: np.ndarray | None = None
) -> RowResiduals:
    """Return the mean square of each row of residuals, with each output in units of its noise.

    Parameters
    ----------
    R : array of shape (n, D)
        Held-out residuals, divided by the spread of the predictions; NaN for missing values.
    rounding : array of shape (D,)
        Rounding error of each output. Outputs whose noise is smaller are left out.
    labels : array of shape (n,), optional
    """
    seen = ~np.isnan(R)
    some = np.flatnonzero(seen.any(axis=0))
    sizes = np.abs(R[:, some])
    typical = CONSISTENT * np.nanmedian(sizes, axis=0)
    scale = np.where(typical > rounding[some], typical, np.sqrt(np.nanmean(sizes**2, axis=0)))
    use = some[scale > rounding[some]]
    squares = np.where(seen[:, use], R[:, use] / scale[scale > rounding[some]], 0.0) ** 2
    counts = seen[:, use].sum(axis=1).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        return RowResiduals(squares.sum(axis=1) / counts, counts, labels)


def residual_limits(
    squares: np.ndarray, counts: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the root mean square of each row, about one in ordinary rows, and its limit.

    Parameters
    ----------
    squares, counts : arrays of shape (n,)
        As in `RowResiduals`.
    level : float
        Share of ordinary rows below the limit.

    Returns
    -------
    residuals, limits : arrays of shape (n,)
        NaN for rows that were not held out, and for all rows if no output has noise. A row with
        fewer observed outputs has a higher limit.

    Examples
    --------
    >>> S = np.random.default_rng(0).chisquare(20, size=90) / 20
    >>> S[3] *= 25
    >>> residuals, limits = residual_limits(S, np.full(90, 20.0), 0.99)
    >>> np.flatnonzero(residuals > limits)
    array([3])
    """
    seen = np.flatnonzero(~np.isnan(squares))
    residuals, limits = np.full(squares.size, np.nan), np.full(squares.size, np.nan)
    if not seen.size:  # all outputs are constant
        return residuals, limits
    roots, m = squares[seen] ** 0.25, np.maximum(counts[seen], 1.0)
    middle, spread = _middle_and_spread(roots)
    if not middle > 0 or not spread > 0:  # most rows have zero or equal residuals
        scale = middle**4 or 1.0
        residuals[seen], limits[seen] = np.sqrt(squares[seen] / scale), 1.0
        return residuals, limits
    # s / (1 - 1.5 s^2) = spread / middle, with s^2 = 1 / (8 f)
    ratio = spread / middle
    s = (math.sqrt(1 + 6 * ratio**2) - 1) / (3 * ratio)
    x = _inverse_freedom(m, 8 * s * s) / 8
    scale = middle / (1 - 1.5 * s * s)
    centre, width = _middle_and_spread((roots / scale - (1 - 1.5 * x)) / np.sqrt(x))
    t = stdtrit(max(seen.size - 1, 1), level)  # t quantile, since centre and width are estimates
    limit = 1 - 1.5 * x + np.sqrt(x) * (centre + t * (width or 1.0))
    residuals[seen] = (roots / scale) ** 2
    limits[seen] = np.maximum(limit, 0.0) ** 2
    return residuals, limits


def _middle_and_spread(values: np.ndarray) -> tuple[float, float]:
    """Return the median, and the standard deviation from the distance to an upper quantile."""
    middle, upper = np.quantile(values, (0.5, _UPPER), method="median_unbiased")
    return float(middle), float(upper - middle) / _UPPER_NORMAL


def _inverse_freedom(m: np.ndarray, typical: float) -> np.ndarray:
    """Return the inverse degrees of freedom of rows with `m` observed outputs.

    The variance of a mean of m squares is proportional to ``1/m + (1 - 1/m) c``, where c is the
    mean squared correlation of two outputs. It follows from `typical`, the inverse degrees of
    freedom of the median row.
    """
    usual = float(np.median(m))
    if usual <= 1:
        return np.full(m.size, typical)
    c = min(max((typical - 1 / usual) / (1 - 1 / usual), 0.0), 1.0)
    found = 1 / m + (1 - 1 / m) * c
    return found * (typical / (1 / usual + (1 - 1 / usual) * c))
