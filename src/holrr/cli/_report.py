"""What a model is and how good it is, in lines for people."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ..data import Standardizer
from ..data.labels import mode_coordinates, mode_names
from ..data.scores import Errors
from ..model_selection.linear import Search

__all__ = ["description", "of_errors"]


def description(model: Any, notes: dict[str, Any]) -> str:
    """All that there is to say about a fitted model, or a pipeline with one at its end."""
    if not isinstance(model, Pipeline):
        return _in_columns(_facts(model, notes))
    steps = [step for _, step in model.steps[:-1]]
    if [type(step) for step in steps] == [Standardizer]:
        return _in_columns(_facts(model[-1], notes, ", standardized"))
    names = [step if isinstance(step, str) else type(step).__name__ for step in steps]
    return _in_columns([("steps before", ", ".join(names)), *_facts(model[-1], notes)])


def of_errors(errors: Errors, output_weight: np.ndarray | None = None) -> str:
    """How good predictions are, beside the mean of the outputs that they are compared with.

    Parameters
    ----------
    errors : Errors
    output_weight : array of shape (d1, ..., dp), optional
        The weights of the outputs in the fit.
    """
    of_mean, v = replace(errors, error=errors.scatter), output_weight
    r2, each = (errors.r2(average, output_weight=v) for average in ("pooled", "uniform"))
    facts = [("samples", str(np.max(errors.n_samples)))]
    facts += [("R2", f"{r2:.6g} (the skill against the mean, all outputs together)")]
    facts += [("  of each output", f"{each:.6g} (their average)")]
    facts += [("RMSE", f"{errors.rmse(output_weight=v):.6g}")]
    facts += [("  of the mean", f"{of_mean.rmse(output_weight=v):.6g}")]
    if v is not None:
        facts += [("weights", "those of the outputs in the fit")]
    return _in_columns(facts)


def _in_columns(facts: list[tuple[str, str]]) -> str:
    """Names and values, one pair a line."""
    width = max(len(name) for name, _ in facts)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts)


def _facts(model: Any, notes: dict[str, Any], more: str = "") -> list[tuple[str, str]]:
    best = getattr(model, "best_estimator_", model)
    shape = tuple(best.tucker_.shape)
    facts = [("model", type(best).__name__)]
    inputs = getattr(model, "feature_names_in_", None)
    called = "" if inputs is None else f" ({_range(inputs)})"
    facts += [("inputs", f"{model.n_features_in_}{called}{more}")]
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
    """The first and the last of some labels, or all of a few."""
    labels = [f"{v:g}" if isinstance(v, float) else str(v) for v in np.asarray(values).tolist()]
    if np.asarray(values).dtype.kind == "M":
        labels = np.datetime_as_string(values, unit="auto").tolist()
    return ", ".join(labels) if len(labels) <= 4 else f"{labels[0]}, {labels[1]}, ..., {labels[-1]}"


def _errors(model: Any, notes: dict[str, Any]) -> list[tuple[str, str]]:
    """The held-out error, and those of the mean and of ridge beside it."""
    mse = getattr(model, "held_out_mse_", notes.get("cv_mse"))
    if mse is None:
        return []
    facts = [("held-out RMSE", f"{_root(mse)} ({_folds(getattr(model, 'cv', notes.get('cv')))})")]
    for name, what in (("ridge_mse_", "  of ridge"), ("null_mse_", "  of the mean")):
        other = getattr(model, name, None)
        if other is not None:
            facts += [(what, _root(other))]
    return facts


def _root(mse: float) -> str:
    return f"{math.sqrt(max(mse, 0.0)):.6g}"


def _folds(cv: Any) -> str:
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
