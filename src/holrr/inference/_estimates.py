"""Estimates with their standard errors, gathered one leave-out after the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ..core.namespace import Array, to_numpy

__all__ = ["Estimate", "Jackknife", "StandardErrors", "aligned"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Numbers with their standard errors.

    Parameters
    ----------
    value : array of any shape
        As estimated from all the data.
    std_error : array of the same shape
    bias : array of the same shape
        What the jackknife takes the bias to be; it is not taken off `value`. It is a rough number,
        and holds what a fixed penalty changes with the number of samples.
    df : int
        Degrees of freedom of the standard errors, one less than there are groups.

    Examples
    --------
    >>> import numpy as np
    >>> found = Estimate(np.array([3.0, 0.1]), np.array([0.5, 0.5]), np.zeros(2), df=19)
    >>> found.z()
    array([6. , 0.2])
    >>> found.significant()
    array([ True, False])
    """

    value: np.ndarray
    std_error: np.ndarray
    bias: np.ndarray
    df: int

    def z(self) -> np.ndarray:
        """Values in standard errors; zero where the value is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.value == 0, 0.0, self.value / self.std_error)

    def interval(self, coverage: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Lower and upper ends of intervals that cover an entry with the given probability.

        Parameters
        ----------
        coverage : float, default=0.95
            Between 0 and 1, for each entry by itself, with the t distribution of `df`.
        """
        _check_share(coverage, "coverage")
        half = stats.t.ppf(0.5 + coverage / 2, self.df) * self.std_error
        return self.value - half, self.value + half

    def p_values(self) -> np.ndarray:
        """Two-sided, of the hypothesis that an entry is zero."""
        return 2 * stats.t.sf(np.abs(self.z()), self.df)

    def significant(self, q: float = 0.05) -> np.ndarray:
        """Which entries differ from zero, at most a share `q` of them falsely, as expected.

        Parameters
        ----------
        q : float, default=0.05
            The false discovery rate over all entries (Benjamini and Hochberg, 1995).
        """
        _check_share(q, "q")
        p = self.p_values()
        known = ~np.isnan(p)
        found = np.zeros(p.shape, dtype=bool)
        if known.any():
            found[known] = stats.false_discovery_control(p[known]) <= q
        return found


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """What `standard_errors` finds.

    Parameters
    ----------
    coef : Estimate of shape (n_features, d1, ..., dp), or None
        None where a kernel has no coefficients of the inputs.
    intercept : Estimate of shape (d1, ..., dp)
    factors : tuple of p + 1 Estimates of shape (d_i, R_i), or None
        After alignment; None for a mode that is not reduced, or whose rows are the samples.
    predictions : Estimate of shape (n, d1, ..., dp), or None
        Of the mean at the inputs that were asked for.
    rank : tuple
        The ranks that were used, or chosen; empty where a model has none.
    ranks : list of n_groups tuples, or None
        The same without each group.
    weights : array of shape (n_groups,)
        Number of samples, or sum of their weights, of each group.
    penalty : float, or None
        What a search has chosen.
    penalties : array of shape (n_groups,), or None
        The same without each group.
    """

    coef: Estimate | None
    intercept: Estimate
    factors: tuple[Estimate | None, ...]
    predictions: Estimate | None
    rank: tuple[int, ...]
    ranks: list[tuple[int, ...]] | None
    weights: np.ndarray
    penalty: float | None = None
    penalties: np.ndarray | None = None

    @property
    def n_groups(self) -> int:
        """Number of groups that were left out, one at a time."""
        return len(self.weights)

    @property
    def rank_stability(self) -> float:
        """Share of the leave-outs that have the rank of all the data."""
        if self.ranks is None:
            raise AttributeError("rank_stability needs standard errors with stability=True.")
        return float(np.mean([rank == self.rank for rank in self.ranks]))


class Jackknife:
    """Sums over leave-outs from which the standard errors of an array follow.

    Groups may be of different sizes. With `h` the weight of all samples over that of a group and
    `d` the change of the estimate without it, the bias is ``sum (1 - 1/h) d`` and the variance the
    mean of ``(bias - (h - 1) d)^2 / (h - 1)``; for equal groups ``(K - 1)/K sum (d - mean d)^2``.

    Parameters
    ----------
    value : array
        The estimate from all the data.
    """

    def __init__(self, value: Array):
        self.value = _host(value)
        self.squares, self.sum, self.bias = (np.zeros_like(self.value) for _ in range(3))
        self.ratios: list[float] = []

    def add(self, value: Array, h: float) -> None:
        """Add the estimate without a group of the share ``1 / h`` of all weight."""
        d = _host(value)
        d -= self.value
        self.ratios.append(h)
        self.sum += d
        self.bias += (1 - 1 / h) * d
        d *= d
        d *= h - 1
        self.squares += d

    def estimate(self) -> Estimate:
        """The value with its standard errors."""
        h = np.asarray(self.ratios)
        spread = self.bias * np.sum(1 / (h - 1)) - 2 * self.sum
        variance = (self.squares + self.bias * spread) / h.size
        return Estimate(self.value, np.sqrt(np.maximum(variance, 0.0)), self.bias, h.size - 1)


def aligned(factor: Array, to: np.ndarray) -> np.ndarray:
    """A factor turned by the orthogonal map that brings it nearest to another one (Procrustes).

    The map goes from the columns of the one to those of the other, of which there may be more.
    """
    V = _host(factor)
    A, _, B = np.linalg.svd(V.T @ to, full_matrices=False)
    return V @ (A @ B)


def _host(a: Array) -> np.ndarray:
    """A copy in float64."""
    return np.array(a if isinstance(a, float) else to_numpy(a), dtype=np.float64)


def _check_share(value: float, name: str) -> None:
    if not 0 < value < 1:
        raise ValueError(f"{name} must lie between 0 and 1; got {name}={value}.")
