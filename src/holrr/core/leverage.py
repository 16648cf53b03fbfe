"""Noise and leverage of a ridge fit.

The hat matrix ``H = X (X'X + alpha I)^-1 X'`` maps outputs to fitted values. Its trace is the
number of degrees of freedom. With the leverage ``h(x) = (x - mx)' (X'X + alpha I)^-1 (x - mx)`` a
new observation of output j has the standard deviation

    sigma_j sqrt(1 + 1/n + h(x))

about its prediction. For a kernel, ``h(x) = (k(x, x) - k_x' (K + alpha I)^-1 k_x) / alpha``. A fit
of lower rank has fewer degrees of freedom and less leverage: both are multiplied by its number of
parameters over that of the ridge fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .moments import CentredMoments
from .namespace import (
    Array,
    inverse_squares,
    is_numpy_array,
    namespace_of,
    solve_triangular,
    to_device_of,
)
from .tensor import (
    Tucker,
    chunk_mode,
    chunks,
    is_memory_mapped,
    multi_mode_product,
    n_parameters,
    unfold,
)

__all__ = ["Hat", "cholesky_hat", "column_products", "leverage", "noise_level", "spectral_hat"]
__all__ += ["std_factor"]

# With a smaller share of the samples left as residual degrees of freedom there is no noise level.
_NO_FREEDOM = 1e-6


@dataclass(frozen=True, eq=False)
class Hat:
    """What noise and leverage need of a ridge problem.

    Parameters
    ----------
    form : {"map", "cholesky", "gram"}
        What `factor` is: a map B from centred inputs to coordinates whose squares add up to the
        leverage, the Cholesky factor L of ``X'X + alpha I``, or that of ``K + alpha I``.
    factor : callable
        Gives ``B`` of shape (m, r) or ``L`` of shape (m, m).
    alpha : float
    mean : array of shape (m,)
        Centre of the inputs of `factor`.
    weight : float, or array of shape (d1, ..., dp)
        Sum of the weights of the samples; of those observed, where outputs are missing.
    trace : callable, or None
        Gives ``sum lam / (lam + alpha)``; None where only `factor` knows it.
    n_directions : int
        How many there are of these.
    squares : array of shape (d1, ..., dp), or None
        Sums of squares of the centred outputs, where they are known.
    fitted : callable, or None
        From mode-0 coordinates M, (r, k), to pairs ``(c, F)``: the fitted values have the inner
        products ``sum c F'F``.
    residuals : array of shape (d1, ..., dp), or None
        The residual sums of squares themselves, where the problem knows them better.
    root : array of shape (r,), or None
        ``sqrt(lam + alpha)``, where inputs can have other directions than those of `factor`.
    more : dict
        What a kernel needs more.
    """

    form: str
    factor: Callable[[], Array]
    alpha: float
    mean: Array
    weight: Any
    trace: Callable[[], float] | None
    n_directions: int
    squares: Array | None = None
    fitted: Callable[[Array], list[tuple[float, Array]]] | None = None
    residuals: Array | None = None
    root: Array | None = None
    more: dict[str, Any] = field(default_factory=dict)

    def share(self, V: Tucker, n_never: int = 0) -> float:
        """The share of the ridge fit's degrees of freedom that a fit of V's rank has.

        Parameters
        ----------
        V : Tucker
        n_never : int
            Number of outputs that are never observed, for which the ridge fit has no parameters.
        """
        shape = (self.n_directions, *V.shape[1:])
        n_ridge = math.prod(shape) - self.n_directions * n_never
        return min(1.0, n_parameters(shape, V.rank) / n_ridge)

    def residual_squares(self, Z: Array, V: Tucker) -> Array | None:
        """``||y||^2 - 2 <y, fitted> + ||fitted||^2`` of each output; the products are <z, v>."""
        if self.residuals is not None or self.squares is None or self.fitted is None:
            return self.residuals
        xp, U = namespace_of(self.squares), V.factors[0]
        terms = None if U is None else sum(c * (F.T @ F) for c, F in self.fitted(U))
        rss = xp.zeros_like(self.squares)
        for box, z, core in _parts(Z, V) if is_memory_mapped(Z) else [(..., Z, V.expanded())]:
            shape = core.shape[1:]
            z, core = unfold(z, 0), unfold(core, 0)
            if U is None:
                part = sum(c * column_products(F, F) for c, F in self.fitted(core))
                part = part - 2 * column_products(z, core)
            else:
                part = column_products(core, terms @ core - 2 * (U.T @ z))
            rss[box] = xp.reshape(part, shape)
        return xp.clip(rss + self.squares, 0.0, None)

    def kept(self, share: float) -> dict[str, Any]:
        """What a fitted estimator keeps for `leverage`: numbers and arrays.

        Parameters
        ----------
        share : float
            Share of the degrees of freedom of the ridge fit.
        """
        names = ("form", "alpha", "mean", "weight", "root")
        weight = self.weight if isinstance(self.weight, float) else float(np.max(self.weight))
        return {
            **{name: getattr(self, name) for name in names},
            "weight": weight,
            "factor": self.factor(),
            "trace": None if self.trace is None else self.trace(),
            "unit": 1.0,
            "share": share,
            **self.more,
        }


def spectral_hat(problem: Any, alpha: float, root: Array) -> Hat:
    """That of a `Spectral` problem at one penalty, with ``root = sqrt(lam + alpha)``."""
    basis, shrink = problem.basis, problem.s / root
    (m, r), xp = basis.shape, namespace_of(root)
    nothing = r == 1 and not bool(xp.any(basis != 0))  # stands for inputs that are constant
    return Hat(
        form="map",
        factor=lambda: basis / root,
        alpha=alpha,
        mean=problem.mean_x,
        weight=problem.weight,
        trace=lambda: 0.0 if nothing else float(xp.sum(shrink * shrink)),
        n_directions=r,
        squares=problem.squares,
        fitted=lambda M: [(1.0, M * shrink[:, None])],
        root=root if problem.more or r < m else None,
        more=problem.more,
    )


def cholesky_hat(m: CentredMoments, L: Array, alpha: float) -> Hat:
    """That of a problem from moments, with the Cholesky factor of ``X'X + alpha I``."""
    return Hat(
        form="cholesky",
        factor=lambda: L,
        alpha=alpha,
        mean=m.mean_x,
        weight=m.weight,
        trace=None,
        n_directions=m.n_features,
        squares=m.squares,
        fitted=lambda M: [(1.0, M), (-alpha, solve_triangular(L, M, transposed=True))],
    )


def _parts(Z: Array, V: Tucker) -> Iterator[tuple[Any, Array, Array]]:
    """Boxes of outputs of a memory map, with Z and V expanded along the output modes there."""
    mode = chunk_mode(Z, avoid=0)
    for rows, chunk in chunks(Z, mode):
        core, factors = V.core, [None, *V.factors[1:]]
        box: Any = ...
        if mode > 0:
            box, U = (*(slice(None),) * (mode - 1), rows), factors[mode]
            if U is None:
                core = core[(slice(None),) * mode + (rows,)]
            else:
                factors[mode] = U[rows, :]
        yield box, chunk, multi_mode_product(core, factors)


def noise_level(hat: dict[str, Any], root: Array, weight: Any) -> Array:
    """Standard deviation of the noise of each output, (d1, ..., dp).

    Residual squares over the residual degrees of freedom; NaN where there are none of these.

    Parameters
    ----------
    hat : dict
        As `Hat.kept` gives it, with "intercept", whether one was fitted.
    root : array of shape (d1, ..., dp)
        Roots of the residual sums of squares.
    weight : float, or array of shape (d1, ..., dp)
        As in `Hat`.
    """
    xp, trace = namespace_of(root), hat["trace"]
    if trace is None:
        lost = hat["alpha"] * inverse_squares(hat["factor"]) if hat["alpha"] else 0.0
        trace = hat["factor"].shape[0] - lost
    free = weight - hat["share"] * trace - hat["intercept"] + xp.zeros_like(root)
    some = free > _NO_FREEDOM * weight
    level = root / xp.sqrt(xp.where(some, free, xp.ones_like(free)))
    return xp.where(some, level, xp.full_like(root, math.nan))


def std_factor(hat: dict[str, Any], F: Array, norms: Array | None = None) -> Array:
    """``sqrt(1 + 1/n + h(x))`` of each row, of shape (n,).

    Parameters
    ----------
    hat : dict
        As `Fit.hat`.
    F : array of shape (n, m)
        Inputs of the factor, not centred.
    norms : array of shape (n,), optional
        As in `leverage`.
    """
    xp = namespace_of(F)
    F = xp.astype(F, xp.float64, copy=False)
    F = (F if hat["unit"] == 1.0 else F / hat["unit"]) - to_device_of(hat["mean"], F)
    h = hat["share"] * leverage(hat, F, norms)
    return xp.sqrt(1.0 + (1.0 / hat["weight"] if hat["intercept"] else 0.0) + h)


def leverage(hat: dict[str, Any], F: Array, norms: Array | None = None) -> Array:
    """``h(x)`` of each row, of shape (n,).

    Parameters
    ----------
    hat : dict
        As `Hat.kept` gives it.
    F : array of shape (n, m)
        Centred inputs of the factor; kernel values, centred and weighted as in training.
    norms : array of shape (n,), optional
        Squared norms of the centred features; those of the rows of `F` by default.
    """
    xp, alpha, factor = namespace_of(F), hat["alpha"], to_device_of(hat["factor"], F)
    if hat["form"] == "map":
        t = F @ factor
    else:
        t = solve_triangular(factor, F.T)
        if hat["form"] == "gram" and alpha == 0:
            t = solve_triangular(factor, t, transposed=True)
        t = t.T
    h = _row_squares(t)
    known = hat["form"] != "gram" and hat["root"] is None
    if known or alpha == 0:
        return h
    norms = _row_squares(F) if norms is None else norms
    if hat["form"] == "gram":
        return xp.clip(norms - h, 0.0, None) / alpha
    inside = _row_squares(t * to_device_of(hat["root"], F))
    return h + xp.clip(norms - inside, 0.0, None) / alpha


def _row_squares(A: Array) -> Array:
    """Squared norms of the rows."""
    return column_products(A.T, A.T)


def column_products(A: Array, B: Array) -> Array:
    """Inner products of the columns of two matrices, without a temporary where that is possible."""
    if is_numpy_array(A):
        return np.einsum("ij,ij->j", A, B)
    return namespace_of(A).sum(A * B, axis=0)
