"""Multilinear multitask learning with a non-convex penalty (MLMT-NC)."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from ..annotations import InputShape, RandomState, Rank
from ..core.approximate import Approximation, check_rank, hosvd
from ..core.fit import Fit
from ..core.spectral import Spectral
from ..core.tensor import Tucker
from ..core.warn import warn
from ..data.output_scale import SCALE_CONSTRAINT
from ..docstrings import document
from ..linear.estimators import DATA_CONSTRAINTS
from ..progress import status_line
from .alternating import Descent, alternate, random_start
from .base import PenalizedRegressor, penalized_fit
from .scaled import ScaledProblem

__all__ = ["MLMTNC", "least_squares", "scaled_beta", "start_of", "unconverged", "unit_of_blocks"]

# Largest penalty, in units in which the data are about one.
_LARGEST = 1e150


def least_squares(Z: Tucker, problem: ScaledProblem) -> Tucker:
    """Convert whitened coordinates without penalty, ``Z = diag(s) V``, to spectral ones."""
    first, *others = Z.dense_factors()
    return Tucker(Z.core, (first / problem.s[:, None], *others))


@document
class MLMTNC(PenalizedRegressor):
    r"""Multilinear multitask learning with a non-convex penalty (MLMT-NC).

    The fit minimises

    .. math::
        \|\mathcal{W} \times_0 X - \mathcal{Y}\|^2
        + \beta \Big( \|\mathcal{G}\|^2 + \sum_{i=0}^p \|A_i\|^2 \Big),
        \qquad \mathcal{W} = \mathcal{G} \times_0 A_0 \times_1 A_1 \dots \times_p A_p

    over a core :math:`\mathcal{G}` of shape :math:`(R_0, \dots, R_p)` and one factor :math:`A_i`
    for each mode. The solver alternates exact minimisations over the core and each factor, so that
    the objective never increases. See docs/trace_norm_and_mlmtnc.md.

    >>> import numpy as np
    >>> from holrr.penalized import MLMTNC
    >>> rng = np.random.default_rng(0)
    >>> U0, U1, U2 = rng.normal(size=(8, 2)), rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    >>> W = np.einsum("abc,ia,jb,kc->ijk", rng.normal(size=(2, 2, 2)), U0, U1, U2)
    >>> X = rng.normal(size=(100, 8))
    >>> Y = np.tensordot(X, W, 1) + 0.1 * rng.normal(size=(100, 5, 6))
    >>> model = MLMTNC(rank=2, beta=0.1).fit(X, Y)
    >>> model.core_.shape, [A.shape for A in model.factors_]
    ((2, 2, 2), [(8, 2), (5, 2), (6, 2)])
    >>> bool(np.all(np.diff(model.history_) <= 0))
    True

    See Also
    --------
    TraceNormRegression : Regression with a convex penalty on the ranks.
    HOLRR : Higher-order low-rank regression, with a penalty on the coefficients.

    References
    ----------
    B. Romera-Paredes, M. H. Aung, N. Bianchi-Berthouze, M. Pontil (2013). Multilinear multitask
    learning. Proceedings of the 30th International Conference on Machine Learning, 1444-1452.
    """

    history_: NDArray[Any]

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        "beta": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "init": [StrOptions({"holrr", "random"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "fit_intercept": ["boolean"],
        "scale_outputs": SCALE_CONSTRAINT,
        "verbose": ["verbose", StrOptions({"rich"})],
        **DATA_CONSTRAINTS,
    }

    def __init__(
        self,
        rank: Rank = None,
        beta: float = 1.0,
        *,
        fit_intercept: bool = True,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        init: Literal["holrr", "random"] = "holrr",
        n_init: int = 1,
        random_state: RandomState = None,
        max_iter: int = 1000,
        tol: float = 1e-7,
        verbose: bool | int | Literal["rich"] = False,
    ) -> None:
        self.rank = rank
        self.beta = beta
        self.fit_intercept = fit_intercept
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.init = init
        self.n_init = n_init
        self.random_state = random_state
        self.max_iter = max_iter
        self.tol = tol
        self.verbose = verbose

    def _check_shape(self, n_features: int, output_shape: Sequence[int]) -> None:
        check_rank(self.rank, (n_features, *output_shape))

    def _solve(self, problem: Spectral, x_unit: float, y_unit: float) -> tuple[Fit, dict[str, Any]]:
        data = ScaledProblem.of(problem)
        spectral = start_of(data, self.rank, problem.basis.shape[0])
        beta = scaled_beta(float(self.beta), x_unit, y_unit, data.T.ndim)
        with status_line(type(self).__name__, self.verbose, _line) as report:
            found = self._descend(data, spectral, beta, report)
        if not found.converged:
            warn(unconverged(self.max_iter, self.tol), ConvergenceWarning)
        bound = (data.rest + spectral.lower_bound) * data.unit_t * data.unit_t
        n_iter = len(found.objectives) - 1
        fit = penalized_fit(found.tucker, problem, found.objective, bound, n_iter)
        with np.errstate(over="ignore"):  # squares that overflow are infinite
            history = np.asarray(found.objectives) * y_unit * y_unit
        return fit.rescaled(x_unit, y_unit), {
            "rank_": found.tucker.rank,
            "n_iter_": n_iter,
            "history_": history,
        }

    def _descend(
        self, data: ScaledProblem, spectral: Approximation, beta: float, report: Any = None
    ) -> Descent:
        """Return the best of `n_init` descents, with a penalty in the units of the data.

        The approximation `spectral` of ``data.T`` has the ranks of the core.
        """
        unit, rng = unit_of_blocks(data), check_random_state(self.random_state)
        # Far smaller penalties already give zero; the limit keeps the penalty finite.
        scaled = min(beta * unit / data.unit_t * unit / data.unit_t, _LARGEST)
        best: Descent | None = None
        for trial in range(self.n_init):
            if trial == 0 and self.init == "holrr":
                start = least_squares(spectral.tucker, data)
            else:
                start = random_start(data.T, spectral.tucker.rank, rng)
            found = alternate(
                data, start, scaled, max_iter=self.max_iter, tol=self.tol, report=report
            )
            best = found if best is None or found.objective < best.objective else best
        assert best is not None
        V = best.tucker
        core, *factors = [B * unit for B in (V.core, *V.dense_factors())]
        blocks = data.restore(Tucker(core, tuple(factors)))
        energy = data.unit_t * data.unit_t
        return Descent(blocks, [value * energy for value in best.objectives], best.converged)


def unit_of_blocks(data: ScaledProblem) -> float:
    """Return the unit of the core and of each factor for the units of the data."""
    return (data.unit_t / data.unit_s) ** (1 / (data.T.ndim + 1))


def scaled_beta(beta: float, x_unit: float, y_unit: float, order: int) -> float:
    """Return the penalty of scaled data that has the effect of `beta`.

    The core and the factors of the `order` modes are all scaled by the same number.
    """
    power = 2 / (order + 1)
    return beta / y_unit * (y_unit**power / x_unit**power) / y_unit


def start_of(data: ScaledProblem, rank: Any, n_features: int) -> Approximation:
    """Return the truncated HOSVD of the least squares problem, with the ranks of the core."""
    specs = check_rank(rank, (n_features, *data.shape[1:]))
    return hosvd(data.T, data.pick(specs), inputs=data)


def unconverged(max_iter: int, tol: float) -> str:
    """Return the warning that a descent has not converged."""
    return (
        f"MLMT-NC did not converge in max_iter={max_iter} iterations: the last iteration lowered "
        f"the objective by more than the share tol={tol}. Increase max_iter or tol."
    )


def _line(n_iter: int, objective: float) -> str:
    return f"iteration {n_iter}, objective {objective:.6g} in the units of the fit"
