"""Facts about a fitted model, as pairs of a name and a value."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..data.labels import mode_coordinates, mode_names
from ..model_selection.linear import Search

__all__ = ["describe", "folds_of"]


def describe(model: Any, notes: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    """Describe a fitted model, or a pipeline that ends with one.

    Parameters
    ----------
    model : estimator or pipeline
    notes : dict, optional
        What the file of the model says about its data, such as ``n_samples``.
    """
    notes = notes or {}
    if not isinstance(model, Pipeline):
        return _facts(model, notes)
    steps = [part if isinstance(part, str) else type(part).__name__ for _, part in model.steps[:-1]]
    return [("preprocessing", ", ".join(steps)), *_facts(model[-1], notes)]


def _facts(model: Any, notes: dict[str, Any]) -> list[tuple[str, str]]:
    best = getattr(model, "best_estimator_", model)
    shape = tuple(best.tucker_.shape)
    facts = [("model", type(best).__name__)]
    inputs = getattr(model, "feature_names_in_", None)
    called = "" if inputs is None else f" ({_range(inputs)})"
    facts += [("inputs", f"{model.n_features_in_}{called}")]
    facts += [("outputs", _times(shape[1:]) or "one number")]
    for mode, name in enumerate(mode_names(best)[1:], 1):
        if getattr(getattr(best, "labels_", None), "outputs", None) is not None:
            facts += [(f"  {name}", _range(mode_coordinates(best, mode)))]
    if "n_samples" in notes:
        dim = getattr(getattr(best, "labels_", None), "sample_dim", None)
        facts += [("samples", f"{notes['n_samples']}{f' along {dim}' if dim else ''}")]
    facts += [("ranks", _times(best.tucker_.rank))]
    mixed = model._what_is_mixed() if isinstance(model, Search) else ""
    if mixed:
        facts += [("mixture", mixed)]
    for name in ("alpha", "penalty", "beta", "kernel", "gamma"):
        value = getattr(best, name, None)
        if value is not None:
            facts += [(name, f"{value:g}" if isinstance(value, (int, float)) else str(value))]
    full, used = math.prod(shape), best.n_parameters_
    fewer = f" ({full / max(used, 1):.1f} times fewer)" if used < full else ""
    facts += [("parameters", f"{used:,} of {full:,}{fewer}")]
    return [*facts, *_certificate(best), *_errors(model, notes)]


def _range(values: np.ndarray) -> str:
    """Return the first and the last of some labels, or all of a few."""
    labels = [f"{v:g}" if isinstance(v, float) else str(v) for v in np.asarray(values).tolist()]
    if np.asarray(values).dtype.kind == "M":
        labels = np.datetime_as_string(values, unit="auto").tolist()
    return ", ".join(labels) if len(labels) <= 4 else f"{labels[0]}, {labels[1]}, ..., {labels[-1]}"


def _errors(model: Any, notes: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the held-out error, and those of ridge regression and of the mean."""
    mse = getattr(model, "held_out_mse_", notes.get("cv_mse"))
    if mse is None:
        return []
    folds = folds_of(getattr(model, "cv", notes.get("cv")))
    facts = [("held-out RMSE", f"{_root(mse)} ({folds})")]
    for name, what in (("ridge_mse_", "  of ridge"), ("null_mse_", "  of the mean")):
        other = getattr(model, name, None)
        if other is not None:
            facts += [(what, _root(other))]
    return facts


def _root(mse: float) -> str:
    return f"{math.sqrt(max(mse, 0.0)):.6g}"


def folds_of(cv: Any) -> str:
    """Return the kind of a cross-validation in words."""
    kind = {"GroupKFold": " by groups", "TimeSeriesSplit": " by time"}.get(type(cv).__name__, "")
    return f"{getattr(cv, 'n_splits', cv)}-fold cross-validation{kind}"


def _certificate(model: Any) -> list[tuple[str, str]]:
    objective = getattr(model, "objective_", None)
    bound = getattr(model, "lower_bound_", None)
    if objective is None or not bound or math.isnan(bound):  # fits with missing outputs have none
        return []
    return [("certificate", f"objective at most {objective / bound:.4f} times the minimum")]


def _times(sizes: Any) -> str:
    return " x ".join(map(str, sizes))
