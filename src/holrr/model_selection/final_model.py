"""What a cross-validated estimator has from the model that it ends with."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from ..base import TensorRegressor
from ..input_scores import InputScores
from ..spread import no_intervals

__all__ = ["FinalModel", "of_the_final_model"]


def of_the_final_model(name: str, doc: str) -> property:
    """An attribute of `best_estimator_` as one's own."""

    def get(self: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, name)

    return property(get, doc=doc)


class FinalModel(InputScores):
    """Predictions and attributes of `best_estimator_`, as if they were one's own."""

    best_estimator_: Any

    coef_ = of_the_final_model("coef_", "Dense coefficients, built when asked for.")
    core_ = of_the_final_model("core_", "Core of the coefficients.")
    factors_ = of_the_final_model("factors_", "Factors of the coefficients, input mode first.")
    tucker_ = of_the_final_model("tucker_", "Coefficients in Tucker form.")
    intercept_ = of_the_final_model("intercept_", "Intercept.")
    rank_ = of_the_final_model("rank_", "The chosen rank.")
    spectra_ = of_the_final_model("spectra_", "Squared singular values of each mode of Z.")
    energy_ = of_the_final_model("energy_", "Squared norm of Z.")
    objective_ = of_the_final_model("objective_", "The objective at the final fit.")
    lower_bound_ = of_the_final_model("lower_bound_", "What no fit of these ranks is below.")
    n_dropped_ = of_the_final_model("n_dropped_", "Number of samples without an observed output.")
    n_parameters_ = of_the_final_model("n_parameters_", "Degrees of freedom of the coefficients.")

    noise_ = of_the_final_model("noise_", "Standard deviation of the noise of each output.")

    labels_ = None
    predict_interval = no_intervals
    save = TensorRegressor.save
    to_xarray = TensorRegressor.to_xarray
    name_modes = TensorRegressor.name_modes
    _forget = TensorRegressor._forget

    def _dense_coef(self) -> Any:
        return self.best_estimator_._dense_coef()

    def predict(self, X: Any, return_std: bool = False) -> Any:
        check_is_fitted(self)
        return self.best_estimator_.predict(X, return_std)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        check_is_fitted(self)
        return self.best_estimator_.score(X, y, sample_weight)

    predict.__doc__, score.__doc__ = TensorRegressor.predict.__doc__, TensorRegressor.score.__doc__
