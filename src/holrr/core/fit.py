"""Conversion of an approximation in whitened coordinates to a fitted model.

`lift` maps it to coefficients, `fit_approximation` collects all results of the fit, and the methods
of `Fit` undo transformations of the data: weights of outputs (`unweighted`), units (`rescaled`) and
scales of outputs (`multiplied`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .approximate import Approximation
from .input_map import InputMap
from .namespace import Array, asarray_like, device_of, namespace_of, to_device_of, to_numpy
from .output_weights import product_of, unscale
from .own_inputs import OwnCoefficients
from .spectral import Spectral, SpectralFactor, Whitened
from .tensor import Tucker, multi_mode_product, unfold

__all__ = ["Fit", "fit_approximation", "fit_by_output", "intercept_of", "lift", "scaled_alpha"]

# Largest penalty in scaled units. Far smaller penalties already shrink all coefficients to zero.
_LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model.

    Parameters
    ----------
    tucker : Tucker
        Coefficients, of shape (n_inputs, d1, ..., dp).
    intercept : array of shape (d1, ..., dp)
        NaN for outputs that were never observed or have no weight.
    solver, dtype : str
        As in `Whitened`.
    objective, lower_bound : float
        The objective at this fit, and a lower bound on its minimum at these ranks.
    energy : float
        ``||Z||^2``.
    spectra : list of p + 1 arrays
        Leading squared singular values of each unfolding of Z.
    n_iter : int
        Number of rounds.
    hat : dict or None
        Result of `Whitened.kept`, with "intercept": whether an intercept was fitted.
    rss_root : array of shape (d1, ..., dp), or None
        Roots of the residual sums of squares, if they are known.
    weight : float, or array of shape (d1, ..., dp)
        Effective number of samples, as in `Spectral`.
    inputs : InputMap or None
        Map from the inputs to the fitted features, if these are not the inputs themselves.
    output_weight : array of shape (d1, ..., dp), optional
        Weights of the squared errors of the outputs in the objective, if they are not equal.
    own : OwnCoefficients or None
        Coefficients of own inputs, which are added to those in Tucker form.
    mean_x : array of shape (n_inputs,), or None
        Centre of the inputs: their mean, or zero without an intercept.
    spread : array of shape (d1, ..., dp), or None
        Roots of the sums of squares of the outputs about their centres, up to a common factor.
    """

    tucker: Tucker
    intercept: Array
    solver: str
    dtype: str
    objective: float
    lower_bound: float
    energy: float = math.nan
    spectra: list[np.ndarray] | None = None
    n_iter: int = 1
    hat: dict[str, Any] | None = None
    rss_root: Array | None = None
    weight: Any = 0.0
    inputs: InputMap | None = None
    output_weight: np.ndarray | None = None
    own: OwnCoefficients | None = None
    mean_x: Array | None = None
    spread: Array | None = None

    def predict(self, X: Array) -> Array:
        """Return predictions for inputs, of shape (n, d1, ..., dp)."""
        out = self.tucker.map_input(X) + self.intercept
        if self.own is None:
            return out
        xp = namespace_of(out)
        return out + xp.reshape(self.own.times(X), tuple(out.shape))

    def lifted(self, features: InputMap, mean_x: Array | None = None) -> Fit:
        """Return the fit to the inputs, from a fit to their features in the same units.

        Parameters
        ----------
        features : InputMap
        mean_x : array of shape (n_inputs,), optional
            Centre of the inputs in these units, if it is needed later.
        """
        coef, xp = self.tucker, namespace_of(self.tucker.core)
        first, (_, *others) = coef.factors[0], coef.factors
        core = coef.core
        if first is not None:
            first = features.lift(first)
        elif features.keeps_columns:
            core = xp.reshape(features.lift(unfold(core, 0)), tuple(core.shape))
        else:
            first = features.lift(xp.eye(core.shape[0], dtype=core.dtype, device=device_of(core)))
        coef = Tucker(core, (first, *others), coef.leading)
        hat = None if self.hat is None else {**self.hat, "inputs": replace(features, own=None)}
        if hat is not None and features.own is not None:
            hat["freedom"] = np.reshape(features.own.freedom, tuple(coef.shape[1:]))
            hat["is_shared"] = features.own.is_shared
        own = features.own
        return replace(self, tucker=coef, hat=hat, inputs=features, own=own, mean_x=mean_x)

    def unweighted(self, weights: Sequence[np.ndarray]) -> Fit:
        """Return the fit to the outputs, from a fit to outputs times the roots of their weights."""
        coef, intercept = unscale(self.tucker, self.intercept, weights)
        of_outputs = product_of(weights)
        return replace(
            self,
            tucker=coef,
            intercept=intercept,
            rss_root=_over_roots(self.rss_root, of_outputs),
            output_weight=of_outputs,
            own=None if self.own is None else self.own.unweighted(of_outputs),
            spread=_over_roots(self.spread, of_outputs),
        )

    def multiplied(self, scale: np.ndarray) -> Fit:
        """Return the fit to the outputs, from a fit to outputs that were divided by a scale.

        The objective and the spectra remain those of the divided outputs.

        Parameters
        ----------
        scale : array of shape (d1, ..., dp)
            Positive numbers.
        """
        core, intercept, root = self.tucker.core, self.intercept, self.rss_root
        weight = np.square(scale.min() / scale)
        if self.output_weight is not None:
            weight = weight * self.output_weight
        return replace(
            self,
            tucker=replace(self.tucker, scale=asarray_like(scale, core, dtype=core.dtype)),
            intercept=intercept * asarray_like(scale, intercept, dtype=intercept.dtype),
            rss_root=None if root is None else root * asarray_like(scale, root),
            output_weight=weight,
            own=None if self.own is None else self.own.multiplied(scale),
        )

    @np.errstate(over="ignore", invalid="ignore")  # checked by `_dtype_for`
    def rescaled(self, x_unit: float, y_unit: float) -> Fit:
        """Return the fit in the units and the dtype of the data, from a fit to scaled data.

        Parameters
        ----------
        x_unit, y_unit : float
            Powers of two that inputs and outputs were divided by.
        """
        coef, intercept, squares = self.tucker, self.intercept, y_unit * y_unit
        if x_unit != 1.0 or y_unit != 1.0:
            first, *others = coef.factors
            if first is None:
                coef = Tucker(coef.core * (y_unit / x_unit), coef.factors, coef.leading)
            else:  # separately, since the product may leave the range of float32
                coef = Tucker(coef.core * y_unit, (first / x_unit, *others), coef.leading)
            intercept = intercept * y_unit
        xp = namespace_of(coef.core)
        dtype = getattr(xp, self.dtype)
        if self.dtype == "float32" or x_unit != 1.0 or y_unit != 1.0:
            dtype = _dtype_for(dtype, coef, intercept)
        return replace(
            self,
            tucker=coef.astype(dtype),
            intercept=xp.astype(intercept, dtype),
            objective=self.objective * squares,
            lower_bound=self.lower_bound * squares,
            energy=self.energy * squares,
            spectra=None if self.spectra is None else [s * squares for s in self.spectra],
            hat=None if self.hat is None else {**self.hat, "unit": x_unit},
            rss_root=None if self.rss_root is None else self.rss_root * y_unit,
            own=None if self.own is None else self.own.rescaled(x_unit, y_unit),
            mean_x=None if self.mean_x is None else self.mean_x * x_unit,
        )

    def with_prior(self, prior: float | None) -> Fit:
        """Return the fit with leverages for a given prior variance of the coefficients.

        Parameters
        ----------
        prior : float or None
            Variance of the coefficients divided by that of the noise, in the units of the scaled
            inputs. None uses the variance that corresponds to the penalty.
        """
        if prior is None or self.hat is None:
            return self
        return replace(self, hat={**self.hat, "prior": prior})

    def to_device_of(self, like: Array) -> Fit:
        """Return the fit with coefficients and intercept on the device of `like`."""
        return replace(
            self,
            tucker=self.tucker.to_device_of(like),
            intercept=to_device_of(self.intercept, like),
        )


def _over_roots(A: Array | None, weight: np.ndarray) -> Array | None:
    """Return an array of the outputs over the roots of their weights; NaN without weight."""
    if A is None:
        return None
    xp, v = namespace_of(A), asarray_like(weight, A)
    return xp.where(v > 0, A / xp.sqrt(xp.where(v > 0, v, xp.ones_like(v))), math.nan)


def scaled_alpha(alpha: Any, x_unit: float) -> Any:
    """Return the penalty for inputs divided by `x_unit` that is equivalent to `alpha`.

    It is an array, with a penalty for each output, if `alpha` is an array.
    """
    if isinstance(alpha, np.ndarray):
        return np.minimum(alpha / x_unit / x_unit, _LARGEST)
    return min(float(alpha) / x_unit / x_unit, _LARGEST)


def lift(V: Tucker, problem: Whitened) -> Tucker:
    """Map an approximation from the whitened coordinates of mode 0 to coefficients."""
    if V.factors[0] is not None:
        return Tucker(V.core, (problem.lift(V.factors[0]), *V.factors[1:]), V.leading)
    factor, n_features = problem.factor, problem.mean_x.shape[0]
    if isinstance(factor, SpectralFactor) and is_smaller_factored(n_features, V.core.shape):
        return Tucker(V.core, (factor.matrix(), *V.factors[1:]), V.leading)
    core = problem.lift(unfold(V.core, 0))
    core = namespace_of(core).reshape(core, (core.shape[0], *V.core.shape[1:]))
    return Tucker(core, V.factors, V.leading)


def is_smaller_factored(n_features: int, core: tuple[int, ...]) -> bool:
    """Return whether a factor and a core together have fewer entries than their product.

    This holds if there are many more inputs than samples, and many outputs. Ridge regression then
    keeps its coefficients in factored form, which takes less memory and makes predictions faster.

    Parameters
    ----------
    n_features : int
        Number of rows of the factor, and of the product.
    core : tuple of int
        Shape (r, R1, ..., Rp) of the core.

    Examples
    --------
    >>> is_smaller_factored(5000, (50, 40, 40)), is_smaller_factored(5000, (50, 3))
    (True, False)
    """
    r, n_columns = core[0], math.prod(core[1:])
    return r * (n_features + n_columns) < n_features * n_columns


def fit_approximation(problem: Whitened, found: Approximation, fit_intercept: bool) -> Fit:
    """Return the fitted model of an approximation of ``problem.Z``.

    Parameters
    ----------
    problem : Whitened
    found : Approximation
    fit_intercept : bool
    """
    coef, rss, root = lift(found.tucker, problem), problem.residual_squares(found.tucker), None
    squares = problem.squares
    if rss is not None:
        xp = namespace_of(rss)
        root = xp.where(xp.isnan(problem.mean_y), xp.full_like(rss, math.nan), xp.sqrt(rss))
    return Fit(
        tucker=coef,
        intercept=intercept_of(coef, problem),
        solver=problem.solver,
        dtype=problem.dtype,
        objective=problem.residual + found.error,
        lower_bound=problem.residual + found.lower_bound,
        energy=problem.norm,
        spectra=list(found.spectra),
        n_iter=1 + found.n_iter,
        hat={**problem.kept(found.share * problem.share(found.tucker)), "intercept": fit_intercept},
        rss_root=root,
        weight=problem.weight,
        mean_x=problem.mean_x,
        spread=None if squares is None else namespace_of(squares).sqrt(squares),
    )


def fit_by_output(problem: Spectral, alphas: np.ndarray, fit_intercept: bool) -> Fit:
    """Fit a ridge regression with a penalty for each output.

    Parameters
    ----------
    problem : Spectral
    alphas : array of shape (d1, ..., dp)
    fit_intercept : bool

    Notes
    -----
    All outputs share one leverage, which is that of the geometric mean of the penalties. Degrees of
    freedom and noise are computed for each output.
    """
    xp, s, T = namespace_of(problem.s), problem.s, problem.T
    rows = (-1, *(1,) * (T.ndim - 1))
    positive = alphas[alphas > 0]
    common = float(np.exp(np.log(positive).mean())) if positive.size else 0.0
    squares = xp.reshape(s * s, rows)
    shrink = squares / (squares + asarray_like(alphas, T, dtype=T.dtype))  # (r, d1, ..., dp)
    # In the coordinates of the common penalty, whose hat matrix has the leverage of all outputs.
    V = T * shrink * xp.reshape(problem.root(common) / s, rows)
    found = Approximation(Tucker(V, (None,) * T.ndim), 0.0, (0.0,), ())
    fit = fit_approximation(problem.at(common), found, fit_intercept)
    explained = float(xp.sum(T * T * shrink))
    objective = max(problem.syy - explained, 0.0)
    trace = to_numpy(xp.sum(shrink, axis=0))
    return replace(
        fit,
        objective=objective,
        lower_bound=objective,
        energy=explained,
        hat={**(fit.hat or {}), "trace": trace},
    )


def intercept_of(coef: Tucker, problem: Any) -> Array:
    """Return ``mean_y - <mean_x, W>`` of a problem with these centres."""
    row = problem.mean_x[None, :]
    latent = row if coef.factors[0] is None else row @ coef.factors[0]
    xp, (R0, *rank) = namespace_of(coef.core), coef.core.shape
    mean = xp.reshape(latent @ xp.reshape(coef.core, (R0, math.prod(rank))), tuple(rank))
    return problem.mean_y - multi_mode_product(mean, coef.factors[1:])


def _dtype_for(dtype: Any, coef: Tucker, intercept: Array) -> Any:
    """Return the dtype of the data, or float64 if the coefficients are out of its range."""
    xp = namespace_of(coef.core)
    arrays = [A for A in (intercept, coef.core, *coef.factors) if A is not None]
    largest = xp.stack([xp.max(xp.abs(A)) for A in arrays[1:]])
    for wide, least in ((dtype, float(xp.finfo(dtype).smallest_normal)), (xp.float64, 0.0)):
        # Check overflow and underflow. NaN is allowed: it marks outputs that were never observed.
        lost = [xp.any(xp.isinf(xp.astype(A, wide, copy=False))) for A in arrays]
        lost.append(xp.any((largest > 0) & (largest < least)))
        if not bool(xp.any(xp.stack(lost))):  # a single transfer from an accelerator
            return wide
    raise ValueError(
        "The coefficients overflow: y is very large, or X or the penalty is very small. Rescale X "
        "or y."
    )
