"""Tensor regression with the overlapped trace norm, a convex relaxation of HOLRR."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from ..annotations import InputShape
from ..core.fit import Fit, scaled_alpha
from ..core.spectral import Spectral
from ..core.warn import warn
from ..data.output_scale import SCALE_CONSTRAINT
from ..docstrings import document
from ..linear.estimators import DATA_CONSTRAINTS
from ..progress import status_line
from .admm import trace_norm
from .base import PenalizedRegressor, penalized_fit
from .scaled import ScaledProblem
from .trace_norm_problem import Penalized, Solution, State

__all__ = ["TraceNormRegression", "penalized_problem", "unconverged"]


@document
class TraceNormRegression(PenalizedRegressor):
    r"""Tensor regression with a convex penalty on the ranks of all unfoldings (trace norm).

    The fit minimises

    .. math::
        \tfrac12 \|\mathcal{W} \times_0 X - \mathcal{Y}\|^2 + \tfrac{\alpha}{2} \|\mathcal{W}\|^2
        + \lambda \sum_{i=0}^p w_i \|W_{(i)}\|_*

    where :math:`\|W_{(i)}\|_*`, the trace norm, is the sum of the singular values of the mode-i
    unfolding. The problem is convex. The solver computes a lower bound on the minimum and stops
    when the relative duality gap is at most `tol`. See docs/trace_norm_and_mlmtnc.md.

    >>> import numpy as np
    >>> from holrr.penalized import TraceNormRegression
    >>> rng = np.random.default_rng(0)
    >>> U0, U1, U2 = rng.normal(size=(8, 2)), rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    >>> W = np.einsum("abc,ia,jb,kc->ijk", rng.normal(size=(2, 2, 2)), U0, U1, U2)
    >>> X = rng.normal(size=(100, 8))
    >>> Y = np.tensordot(X, W, 1) + 0.1 * rng.normal(size=(100, 5, 6))
    >>> model = TraceNormRegression(penalty=5.0).fit(X, Y)
    >>> model.rank_, model.coef_.shape
    ((2, 2, 2), (8, 5, 6))
    >>> model.objective_ <= (1 + 1e-6) * model.lower_bound_
    True

    See Also
    --------
    trace_norm_path : Fits of several penalties, each started at the previous one.
    HOLRR : Regression with a constraint on the ranks, in place of a penalty.

    Notes
    -----
    Matrices (p = 1) have the same singular values in both unfoldings, so the penalty is
    ``(w_0 + w_1) * penalty`` times the trace norm. For vectors (p = 0), the penalty is
    ``w_0 * penalty`` times the Euclidean norm of the coefficients.

    References
    ----------
    S. Gandy, B. Recht, I. Yamada (2011). Tensor completion and low-n-rank tensor recovery via
    convex optimization. Inverse Problems 27(2), 025010.

    R. Tomioka, K. Hayashi, H. Kashima (2010). Estimation of low-rank tensors via convex
    optimization. arXiv:1010.0789.
    """

    history_: dict[str, NDArray[Any]]
    penalty_max_: float

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "penalty": [Interval(Real, 0, None, closed="left")],
        "mode_weights": ["array-like", None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "warm_start": ["boolean"],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "fit_intercept": ["boolean"],
        "scale_outputs": SCALE_CONSTRAINT,
        "verbose": ["verbose", StrOptions({"rich"})],
        **DATA_CONSTRAINTS,
    }

    def __init__(
        self,
        penalty: float = 1.0,
        *,
        alpha: float = 0.0,
        mode_weights: Sequence[float] | None = None,
        fit_intercept: bool = True,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        warm_start: bool = False,
        max_iter: int = 1000,
        tol: float = 1e-6,
        verbose: bool | int | Literal["rich"] = False,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.mode_weights = mode_weights
        self.fit_intercept = fit_intercept
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.warm_start = warm_start
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _check_shape(self, n_features: int, output_shape: Sequence[int]) -> None:
        check_mode_weights(self.mode_weights, 1 + len(output_shape))

    def _solve(self, problem: Spectral, x_unit: float, y_unit: float) -> tuple[Fit, dict[str, Any]]:
        scaled = penalized_problem(problem, scaled_alpha(self.alpha, x_unit), self.mode_weights)
        data = scaled.data
        # In the units of the solver, singular values and products are at most one.
        unit = data.unit_s * data.unit_t * x_unit * y_unit
        here = _units(data, x_unit, y_unit)
        with status_line(type(self).__name__, self.verbose, _line) as report:
            found = trace_norm(
                scaled,
                float(self.penalty) / x_unit / y_unit / (data.unit_s * data.unit_t),
                start=self._warm_state(problem, scaled, here),
                max_iter=self.max_iter,
                tol=self.tol,
                report=report,
            )
        if not found.converged:
            warn(unconverged(found, self.max_iter, self.tol), ConvergenceWarning)
        squares = data.unit_t * data.unit_t
        tucker = found.coefficients(data)
        bound = min(found.lower_bound, found.objective) * squares
        fit = penalized_fit(tucker, problem, found.objective * squares, bound, found.n_iter)
        history = {name: np.asarray(values) for name, values in found.history.items()}
        with np.errstate(over="ignore"):  # squares that overflow are infinite
            for name in ("objective", "lower_bound"):
                history[name] = history[name] * squares * y_unit * y_unit
        history["rho"] = history["rho"] * here[0]
        warm = None
        if self.warm_start and found.state is not None:
            warm = vars(found.state.moved(problem.basis, here, operator.mul))
        return fit.rescaled(x_unit, y_unit), {
            "rank_": (0,) * len(data.shape) if found.is_zero else tucker.rank,
            "n_iter_": found.n_iter,
            "history_": history,
            "penalty_max_": scaled.penalty_max() * unit,
            "_warm": warm,
        }

    def _warm_state(
        self, problem: Spectral, scaled: Penalized, here: tuple[float, float, float]
    ) -> State | None:
        """Return the state of the previous fit if `warm_start` is set and the shape is the same."""
        warm = vars(self).get("_warm") if self.warm_start else None
        if warm is None or len(warm["copies"]) != len(scaled.splits):
            return None
        shape = (problem.basis.shape[0], *scaled.data.T.shape[1:])
        if tuple(warm["W"].shape) != shape or type(warm["W"]) is not type(problem.T):
            return None
        return State(**warm).moved(problem.basis.T, here, operator.truediv)


def penalized_problem(problem: Spectral, alpha: float, mode_weights: Any) -> Penalized:
    """Return the problem with trace norms, for all penalties."""
    data = ScaledProblem.of(problem)
    weights = check_mode_weights(mode_weights, problem.T.ndim)
    return Penalized(data, alpha / data.unit_s / data.unit_s, data.pick(weights))


def check_mode_weights(mode_weights: Any, order: int) -> tuple[float, ...]:
    """Return one weight for the norm of each unfolding, input mode first."""
    if mode_weights is None:
        return (1.0,) * order
    if not isinstance(mode_weights, (Sequence, np.ndarray)) or len(mode_weights) != order:
        raise ValueError(
            f"mode_weights must have {order} entries, one for the input mode and one for each of "
            f"the {order - 1} output modes of y; got {mode_weights!r}."
        )
    try:
        weights = tuple(float(w) for w in mode_weights)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"mode_weights must be numbers; got mode_weights={mode_weights!r}."
        ) from error
    if not all(math.isfinite(w) and w >= 0 for w in weights):
        raise ValueError(
            f"mode_weights must be finite and at least 0; got mode_weights={mode_weights!r}."
        )
    return weights


def unconverged(found: Solution, max_iter: int, tol: float) -> str:
    """Return the warning that the solver has not converged."""
    return (
        f"The trace norm solver did not converge in max_iter={max_iter} iterations: the relative "
        f"duality gap is {found.gap:.1e}, above tol={tol}. Increase max_iter or tol. A larger "
        f"alpha, or inputs on a common scale, also help convergence."
    )


def _line(n_iter: int, objective: float, bound: float) -> str:
    return f"iteration {n_iter}, relative duality gap {(objective - bound) / objective:.1e}"


def _units(data: ScaledProblem, x_unit: float, y_unit: float) -> tuple[float, float, float]:
    """Return the units of step size, coefficients and multipliers, in units of the user's data."""
    unit_s, unit_t = data.unit_s * x_unit, data.unit_t * y_unit
    return unit_s**2, unit_t / unit_s, unit_t * unit_s
