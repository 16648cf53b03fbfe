"""What the penalised estimators add to the search: solvers that may not converge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..core.caution import warn
from ..core.namespace import namespace_of
from ..core.spectral import Spectral
from ..core.tensor import mode_product, multi_mode_product
from ..core.tucker import Tucker
from ..model_selection.final_model import of_the_final_model
from ..model_selection.folds import Folds
from ..model_selection.held_out import HeldOut
from ..model_selection.linear_search import LinearSearchCV
from ..model_selection.penalties import default_alphas
from ..model_selection.sweep import Errors, Sweep
from ..progress import Progress

__all__ = ["PenalizedCV", "held_out_mse"]


def held_out_mse(held_out: HeldOut, coefficients: Tucker) -> float:
    """Mean squared error on held-out data of coefficients in spectral coordinates."""
    V = multi_mode_product(coefficients.core, coefficients.factors)
    xp = namespace_of(V)
    cross, square = xp.sum(held_out.B * V), xp.sum(V * mode_product(V, held_out.C, 0))
    return max(held_out.yy - 2 * float(cross) + float(square), 0.0) / held_out.size


class PenalizedCV(LinearSearchCV):
    """Choose a penalty by held-out error, each fold solved for all penalties."""

    alpha = 0.0

    @abstractmethod
    def _fold_errors(
        self, plan: Any, penalties: np.ndarray, problem: Spectral, held_out: HeldOut
    ) -> np.ndarray:
        """Errors of all candidates, for one fold; complains where one is not converged."""

    def _shape(self, plan: Any, n_penalties: int) -> tuple[int, ...]:
        """Shape of the errors of one fold."""
        return (n_penalties,)

    def _min_alpha(self, penalties: np.ndarray, folds: Folds) -> float:
        return folds.units.alpha(float(self.alpha))

    def _ridge_alphas(self, plan: Any, penalties: np.ndarray, folds: Any) -> Any:
        return default_alphas(*folds.energy())

    def _sweep(self, folds: Folds, plan: Any, penalties: np.ndarray, bar: Progress) -> Sweep:
        """One warning for all the fits that did not converge."""
        self._complaints: list[str] = []
        try:
            found = super()._sweep(folds, plan, penalties, bar)
            if self._complaints:
                warn(
                    f"{len(self._complaints)} fits of the cross-validation did not converge; the "
                    f"first of them: {self._complaints[0]}",
                    ConvergenceWarning,
                )
        finally:
            del self._complaints
        return found

    def _errors(
        self, plan: Any, penalties: np.ndarray, folds: Folds
    ) -> tuple[Errors, tuple[int, ...]]:
        scaled = self._to_units(penalties, folds)

        def errors(
            problem: Spectral, held_out: HeldOut, out: np.ndarray, tick: Callable[[], object]
        ) -> None:
            out[...] = self._fold_errors(plan, scaled, problem, held_out)
            for _ in penalties:
                tick()

        return errors, self._shape(plan, penalties.size)

    n_iter_ = of_the_final_model("n_iter_", "Iterations of the final fit.")
