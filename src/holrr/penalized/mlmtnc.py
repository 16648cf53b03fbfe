"""Multilinear multitask learning with a non-convex penalty (MLMT-NC)."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from ..core.approximate import Approximation, check_rank, hosvd
from ..core.fit import Fit
from ..core.spectral import Spectral
from ..core.tensor import Tucker
from ..core.warn import warn
from ..data.output_scale import SCALE_CONSTRAINT
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

    Parameters
    ----------
    rank : int, float, tuple or None, default=None
        Shape of the core. An int is used for every mode, capped at the size of the mode. A float in
        (0, 1) selects, for each mode, the smallest rank that keeps this share of the squared norm
        of the whitened data. A tuple ``(R0, ..., Rp)`` has one such entry for each mode, input mode
        first. None is full rank.
    beta : float, default=1.0
        Penalty on the squared norms of the core and the factors, above 0.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The intercept is not penalised.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    init : {"holrr", "random"}, default="holrr"
        Start of the first descent: the HOLRR solution, or random values as in the original method.
    n_init : int, default=1
        Number of descents, of which the best is kept. All descents after the first start at random.
    verbose : bool, int or "rich", default=False
        Whether to print the progress of the solver. "rich" updates a single line and needs
        ``pip install "holrr[progress]"``.
    random_state : int, RandomState or None, default=None
        Random state of the random starts.
    max_iter : int, default=1000
        Maximum number of iterations. An iteration updates the core and all factors.
    tol : float, default=1e-7
        Tolerance. The solver stops when an iteration lowers the objective by at most this share of
        the objective.

    Attributes
    ----------
    core_ : array of shape (R0, ..., Rp)
        Core of the coefficients.
    factors_ : list of p + 1 arrays of shape (d_i, R_i)
        Factors, input mode first. The core and the factors have equal norms.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. If `X` has modes, the shape is
        (m1, ..., mq, d1, ..., dp). If `X` has several blocks, `coef_` is a dict of such arrays.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    rank_ : tuple of int
        Shape of the core. The fit lowers a rank that the data do not support or that is above the
        product of the other ranks.
    objective_ : float
        Objective of the fit.
    lower_bound_ : float
        Lower bound on the optimal objective: a lower bound on the squared error of tensors of these
        ranks, which is tight only for a small `beta`.
    n_iter_ : int
        Number of iterations of the best descent.
    history_ : array of shape (n_iterations + 1,)
        Objective of the best descent at its start and after each iteration.
    solver_ : str
        Factorisation that the fit used.
    moments_ : Moments
        Moments of the data, after `partial_fit` and `fit_moments`.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    See Also
    --------
    TraceNormRegression : Regression with a convex penalty on the ranks.
    HOLRR : Higher-order low-rank regression, with a penalty on the coefficients.

    References
    ----------
    B. Romera-Paredes, M. H. Aung, N. Bianchi-Berthouze, M. Pontil (2013). Multilinear multitask
    learning. Proceedings of the 30th International Conference on Machine Learning, 1444-1452.

    Examples
    --------
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
    """

    _parameter_constraints: dict = {  # noqa: RUF012
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
        rank=None,
        beta=1.0,
        *,
        fit_intercept=True,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        init="holrr",
        n_init=1,
        verbose=False,
        random_state=None,
        max_iter=1000,
        tol=1e-7,
    ):
        self.rank = rank
        self.beta = beta
        self.fit_intercept = fit_intercept
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.init = init
        self.n_init = n_init
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.tol = tol

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
