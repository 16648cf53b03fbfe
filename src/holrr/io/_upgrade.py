"""Fitted attributes of files of versions 1 and 2, under the names of this version."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.output_weights import check_output_weight, product_of

__all__ = ["upgrade"]

_RENAMED = {
    "_fitted_hat": "_hat",
    "_fitted_noise": "_noise",
    "_fitted_intervals": "_intervals",
    "_fitted_features": "_features",
}
# Fitted attributes that a search has from its final model.
_OF_MODEL = ["tucker_", "intercept_", "solver_", "objective_", "lower_bound_", "energy_"]
_OF_MODEL += ["spectra_", "n_iter_", "n_dropped_", "_hat", "_noise", "rank_", "labels_"]
_OF_MODEL += ["history_", "penalty_max_", "_output_weight"]
# Parameters of the final model that a search has as fitted attributes.
_CHOSEN = {"alpha": "alpha_", "penalty": "penalty_", "beta": "beta_"}


def upgrade(estimator: Any) -> None:
    """Rename the attributes of a loaded estimator, in place."""
    state = vars(estimator)
    for old, new in _RENAMED.items():
        if old in state:
            state[new] = state.pop(old)
    state.pop("_fitted_never", None)
    noise = state.get("_noise")
    if isinstance(noise, dict):
        state["_noise"] = noise["root"], noise["weight"]
    if state.get("output_weight") is not None and "tucker_" in state:
        weights = check_output_weight(state["output_weight"], np.shape(state["intercept_"]))
        state["_output_weight"] = product_of([v / v.mean() for v in weights])
    model = state.get("best_estimator_")
    if model is None or "tucker_" in state:
        return
    fitted = vars(model)
    for name in _OF_MODEL:
        if name in fitted and name not in state:
            state[name] = fitted[name]
    for parameter, name in _CHOSEN.items():
        if parameter in fitted and parameter not in estimator.get_params():
            state[name] = float(fitted[parameter])
    place = state.pop("stack_place_", None)
    if "stack_ranks_" in state and "n_parameters" in state.get("cv_results_", {}):
        n, index = state["cv_results_"]["n_parameters"].ndim, state["best_index_"]
        best = tuple(i + 1 for i in index[len(index) - n :])
        state["rank_"] = best if isinstance(fitted.get("rank_"), tuple) else best[0]
    if "kernels_" in state:
        place = state["best_index_"] if place is None else place
        state["kernel_params_"] = dict(state["kernels_"][place[0]])
        state["gamma_"] = state["kernel_params_"].get("gamma")
