"""Estimates with their standard errors, accumulated over leave-one-group-out fits."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from scipy import stats

from ..core.namespace import Array, to_numpy
from ..data.inputs import whole_axes

__all__ = ["Estimate", "Jackknife", "StandardErrors", "aligned"]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimates with their standard errors.

    Parameters
    ----------
    value, std_error : arrays of the same shape
        Full-data estimate and its standard error.
    bias : array of the same shape
        Jackknife estimate of the bias of `value`. It is rough, and includes the effect of a fixed
        penalty on fits to fewer samples.
    df : int
        Degrees of freedom of the standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> found = Estimate(np.array([3.0, 0.1]), np.array([0.5, 0.5]), np.zeros(2), df=19)
    >>> found.z(), found.significant()
    (array([6. , 0.2]), array([ True, False]))
    >>> [end.round(2) for end in found.interval(0.95)]
    [array([ 1.95, -0.95]), array([4.05, 1.15])]
    """

    value: np.ndarray
    std_error: np.ndarray
    bias: np.ndarray
    df: int

    def z(self) -> np.ndarray:
        """Return values divided by their standard errors; zero if the value is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.value == 0, 0.0, self.value / self.std_error)

    def interval(self, coverage: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper ends of pointwise confidence intervals, by the t distribution.

        Parameters
        ----------
        coverage : float, default=0.95
            The probability, between 0 and 1, with which an interval covers its entry.
        """
        _check_share(coverage, "coverage")
        half = stats.t.ppf(0.5 + coverage / 2, self.df) * self.std_error
        return self.value - half, self.value + half

    def significant(self, q: float = 0.05) -> np.ndarray:
        """Return which entries differ from zero, at a false discovery rate of at most `q`.

        Parameters
        ----------
        q : float, default=0.05
            The false discovery rate over all entries, between 0 and 1.

        References
        ----------
        Y. Benjamini, Y. Hochberg (1995). Controlling the false discovery rate: a practical and
        powerful approach to multiple testing. Journal of the Royal Statistical Society B 57(1),
        289-300.
        """
        _check_share(q, "q")
        p = np.asarray(2 * stats.t.sf(np.abs(self.z()), self.df))
        known, found = ~np.isnan(p), np.zeros(p.shape, dtype=bool)
        found[known] = stats.false_discovery_control(p[known]) <= q if known.any() else False
        return found


@dataclass(frozen=True, eq=False)
class StandardErrors:
    """Result of `standard_errors`.

    Parameters
    ----------
    model : estimator
        The fit to all data.
    coef : Estimate of shape (n_features, d1, ..., dp), or None
        Coefficients. None for a kernel, which has no coefficients of the inputs.
    intercept : Estimate of shape (d1, ..., dp)
        Intercept.
    factors : tuple of p + 1 Estimates of shape (d_i, R_i), or None
        Factors after alignment; None for a mode that is not reduced, or whose rows are the
        samples.
    predictions : Estimate of shape (n, d1, ..., dp), or None
        Predicted means for the inputs `predict_at`.
    rank : tuple
        The ranks of the model or the ranks that a search has chosen; empty without ranks.
    ranks : list of n_groups tuples, or None
        The ranks without each group.
    weights : array of shape (n_groups,)
        Number of samples, or sum of their weights, of each group.
    penalty : float, array of shape (d1, ..., dp), or None
        The penalty that a search has chosen; with `alpha_per_output`, that of each output.
    penalties : array of shape (n_groups,) or (n_groups, d1, ..., dp), or None
        The penalty that the search chooses without each group.

    Examples
    --------
    >>> from holrr import HOLRR, standard_errors
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(60, 3, (4, 2), rank=2, snr=9, random_state=0)
    >>> found = standard_errors(HOLRR(rank=2), X, Y, n_groups=10)
    >>> found.n_groups, found.rank_stability, found.to_dataset().coef_std_error.shape
    (10, 1.0, (3, 4, 2))
    """

    model: Any
    coef: Estimate | None
    intercept: Estimate
    factors: tuple[Estimate | None, ...]
    predictions: Estimate | None
    rank: tuple[int, ...]
    ranks: list[tuple[int, ...]] | None
    weights: np.ndarray
    penalty: Any = None
    penalties: np.ndarray | None = None

    @property
    def n_groups(self) -> int:
        """Number of groups that were left out, one at a time."""
        return len(self.weights)

    @property
    def rank_stability(self) -> float:
        """Share of the fits or searches without one group that have the ranks of all data."""
        if self.ranks is None:
            raise AttributeError("rank_stability needs standard_errors(..., stability=True).")
        return float(np.mean([rank == self.rank for rank in self.ranks]))

    def to_dataset(self) -> Any:
        """Return the model as a labelled Dataset, with ``coef_std_error`` and similar arrays."""
        found = self.model.to_dataset()
        coefs, factors = (
            [name for name in found if str(name).startswith(prefix)]
            for prefix in ("coef", "factor_")
        )
        first, *others = self.factors
        n_blocks = len(factors) - len(others)
        errors = {"intercept": self.intercept.std_error}
        errors |= self._by_block(coefs, self.coef) | self._by_block(factors[:n_blocks], first)
        for name, of in zip(factors[n_blocks:], others, strict=True):
            errors |= {} if of is None else {name: of.std_error}
        for name, values in errors.items():
            if values.size == found[name].size:
                data = values.reshape(found[name].shape)
                found[f"{name}_std_error"] = found[name].copy(data=data)
        return found

    def _by_block(self, names: list[Any], of: Estimate | None) -> dict[Any, np.ndarray]:
        """Return standard errors with the modes of each input block; NaN for cells without any."""
        if of is None or not names:
            return {}
        parts = whole_axes(of.std_error, self.model.labels_, self.model.n_features_in_)
        return dict(zip(names, parts, strict=True))


class Jackknife:
    """Sums over fits without one group, for the standard errors of an array.

    Let `h` be the weight of all samples divided by that of a group, and `d` the change of the
    estimate without this group. The bias is ``sum (1 - 1/h) d``, and the variance is the mean of
    ``(bias - (h - 1) d)^2 / (h - 1)``. For K equal groups it is ``(K - 1)/K sum (d - mean d)^2``.
    Changes are divided by a power of two, so that their squares neither overflow nor underflow.
    """

    def __init__(self, value: Array):
        self.value, self.ratios = _host(value), np.zeros(0)
        size = np.abs(self.value[np.isfinite(self.value)]).max(initial=0.0)
        self.unit = 2.0 ** np.floor(np.log2(size)) if size > 0 else 1.0
        self.squares, self.sum, self.bias = (np.zeros_like(self.value) for _ in range(3))

    def add(self, value: Array, h: float) -> None:
        """Add the estimate without a group, whose share of the weight is ``1 / h``."""
        d = _host(value)
        d -= self.value
        d /= self.unit
        self.ratios = np.append(self.ratios, h)
        self.sum += d
        self.bias += (1 - 1 / h) * d
        d *= d
        d *= h - 1
        self.squares += d

    def estimate(self) -> Estimate:
        """Return the value with its standard errors."""
        K = self.ratios.size
        cross = self.bias * np.sum(1 / (self.ratios - 1)) - 2 * self.sum
        variance = np.maximum((self.squares + self.bias * cross) / K, 0.0)
        return Estimate(self.value, self.unit * np.sqrt(variance), self.unit * self.bias, K - 1)


def aligned(factor: Array, to: np.ndarray) -> np.ndarray:
    """Rotate a factor to be as near as possible to another one, which may have more columns."""
    V = _host(factor)
    A, _, B = np.linalg.svd(V.T @ to, full_matrices=False)
    return V @ (A @ B)


def _host(a: Array) -> np.ndarray:
    """Return a NumPy copy in float64."""
    return np.array(a if isinstance(a, float) else to_numpy(a), dtype=np.float64)


def _check_share(value: float, name: str) -> None:
    if not isinstance(value, Real) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number between 0 and 1; got {name}={value!r}.")
