"""Conversion of fitted attributes of older files to this version."""

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
# Fitted attributes that a search takes from its final model.
_OF_MODEL = ["tucker_", "intercept_", "solver_", "objective_", "lower_bound_", "energy_"]
_OF_MODEL += ["spectra_", "n_iter_", "n_dropped_", "_hat", "_noise", "rank_", "labels_"]
_OF_MODEL += ["history_", "penalty_max_", "_output_weight"]
# Parameters of the final model that a search has as fitted attributes.
_CHOSEN = {"alpha": "alpha_", "penalty": "penalty_", "beta": "beta_"}


def upgrade(estimator: Any, version: int) -> None:
    """Convert the fitted attributes of a loaded estimator to this version, in place.

    Parameters
    ----------
    estimator : estimator
        Estimator with the attributes of the file.
    version : int
        Version of the file format.
    """
    if version < 3:
        _to_version_3(estimator)
    if version < 4 and "cv_results_" in vars(estimator):
        _to_version_4(vars(estimator))


def _to_version_4(state: dict[str, Any]) -> None:
    """Separate the attributes of the model that predicts from those of the best single model."""
    results, index = state["cv_results_"], state.get("best_index_")
    score = state.get("best_score_")
    if "mean_mse" in results and score is not None:
        results.setdefault("held_out_mse", -score)
    if "n_parameters" not in results or index is None:
        return
    split = len(index) - results["n_parameters"].ndim
    model_rank = vars(state["best_estimator_"]).get("rank_")
    best: dict[str, Any] = {"alpha": float(results["alphas"][index[split - 1]])}
    rank = tuple(i + 1 for i in index[split:])
    if rank:
        best["rank"] = rank if isinstance(model_rank, tuple) else rank[0]
    if "kernels_" in state:
        best |= state["kernels_"][index[0]]
    state.setdefault("best_params_", best)
    if "mean_mse" in results:
        state["best_score_"] = -float(results["mean_mse"][index])
    for name in ("stack_mse_", "stack_gap_"):
        state.pop(name, None)
    results.pop("stack_path_mse", None)
    if "stack_ranks_" in state and "stack_alphas_" not in state:
        state["stack_alphas_"] = np.full(len(state["stack_ranks_"]), float(state["alpha_"]))
    if model_rank is not None:
        state["rank_"] = model_rank


def _to_version_3(estimator: Any) -> None:
    """Rename attributes, and copy the attributes of the final model of a search to the search."""
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
    if "kernels_" in state:
        place = state["best_index_"] if place is None else place
        state["kernel_params_"] = dict(state["kernels_"][place[0]])
        state["gamma_"] = state["kernel_params_"].get("gamma")
