"""Description of a saved model and its errors, as a dict for JSON and as lines of text."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from .._version import __version__
from ..core.namespace import to_numpy
from ..data.labels import Labels, mode_coordinates, mode_names
from ..data.pipelines import last_step
from ..data.scores import Errors
from ..model_selection.linear import Search

__all__ = ["describe", "describe_scores", "fact_lines", "facts_of"]

# Version of the keys. It changes if a key is removed or changes its meaning.
FORMAT = 1
_PENALTIES = ("alpha", "penalty", "beta")


# ---------------------------------------------------------------- facts


def facts_of(whole: Any, notes: dict[str, Any]) -> dict[str, Any]:
    """Return a description of a fitted model as plain values.

    Parameters
    ----------
    whole : estimator or Pipeline
        Fitted model. A pipeline must end with an estimator of this library.
    notes : dict
        Notes of the file, such as ``n_samples``.

    Returns
    -------
    dict
        Description, with the keys that docs/command_line.md lists. Numbers that are not finite are
        None.
    """
    steps = whole.steps[:-1] if isinstance(whole, Pipeline) else []
    model = last_step(whole)
    best = getattr(model, "best_estimator_", model)
    shape = tuple(best.tucker_.shape)
    objective, bound = (getattr(best, name, None) for name in ("objective_", "lower_bound_"))
    found = {
        "format": FORMAT,
        "holrr": __version__,
        "model": type(best).__name__,
        "search": type(model).__name__ if model is not best else None,
        "preprocessing": [_step(name, step) for name, step in steps],
        "inputs": _inputs(model, best),
        "outputs": _outputs(best),
        "n_samples": notes.get("n_samples"),
        "sample_dim": getattr(best.labels_, "sample_dim", None),
        "rank": best.tucker_.rank,
        "stack": _stack(model),
        "penalty": _penalty(best),
        "kernel": _kernel(best),
        "fit_intercept": best.fit_intercept,
        "n_parameters": best.n_parameters_,
        "n_coefficients": math.prod(shape),
        "objective": objective,
        "lower_bound": bound,
        "certificate": _ratio(objective, bound),
        "held_out": _held_out(model, notes),
        "has_intervals": "_intervals" in vars(model),
    }
    return {key: _plain(value) for key, value in found.items()}


def _ratio(objective: float | None, bound: float | None) -> float | None:
    """Return the objective divided by its lower bound; None without a bound."""
    if objective is None or not bound or math.isnan(bound):
        return None
    return objective / bound


def _step(name: str, step: Any) -> dict[str, Any]:
    if isinstance(step, str):
        return {"name": name, "class": step, "parameters": {}, "description": step}
    parameters = step.get_params(deep=False)
    default = {} if isinstance(step, Pipeline) else _defaults(type(step))
    changed = {k: v for k, v in parameters.items() if k not in default or not _same(v, default[k])}
    return {
        "name": name,
        "class": type(step).__name__,
        "parameters": changed,
        "description": type(step).__name__,
    }


def _defaults(cls: type) -> dict[str, Any]:
    import inspect

    return {k: p.default for k, p in inspect.signature(cls).parameters.items()}


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and not isinstance(a, np.ndarray) and bool(a == b)


def _inputs(model: Any, best: Any) -> dict[str, Any]:
    labels = best.labels_ or Labels()
    names = getattr(model, "feature_names_in_", None)
    blocks = vars(model).get("blocks_")
    alphas = vars(model).get("block_alphas_") or {}
    return {
        "n_features": model.n_features_in_,
        "n_used": model.n_features_in_ if labels.used is None else labels.used.size,
        "names": names,
        "arrays": [
            {"name": grid.name, "modes": _modes(grid.dims, grid.shape, grid.coordinate)}
            for grid in labels.inputs
        ],
        "rank": vars(model).get("input_rank_"),
        "blocks": None
        if blocks is None
        else [
            {
                "name": name,
                "n_features": columns.size,
                "alpha": alphas.get(name),
                "left_out": alphas.get(name) == math.inf,
            }
            for name, columns in blocks.items()
        ],
        "own": vars(best).get("own") if getattr(best, "_own", None) is not None else None,
    }


def _outputs(best: Any) -> dict[str, Any]:
    labels = best.labels_ or Labels()
    names, shape = mode_names(best)[1:], best.tucker_.shape[1:]
    is_named = labels.outputs is not None
    unknown = 0
    if best._has_unknown_outputs():
        b = best._intercept
        unknown = int(np.isnan(np.asarray(b) if isinstance(b, float) else to_numpy(b)).sum())
    return {
        "shape": shape,
        "kind": labels.kind,
        "modes": _modes(names, shape, lambda k: mode_coordinates(best, k + 1))
        if is_named
        else None,
        "n_never_observed": unknown,
        "weighted": getattr(best, "output_weight", None) is not None,
        "scaled": best.tucker_.scale is not None,
        "missing": getattr(best, "missing", "raise"),
    }


def _modes(names: Any, sizes: Any, coordinate: Any) -> list[dict[str, Any]]:
    return [
        {"name": name, "size": size, "coordinates": coordinate(k)}
        for k, (name, size) in enumerate(zip(names, sizes, strict=True))
    ]


def _stack(model: Any) -> dict[str, Any] | None:
    """Return the models of a stack in order of decreasing weight."""
    if not isinstance(model, Search) or "stack_weights_" not in vars(model):
        return None
    parts = zip(model.stack_weights_, model.stack_ranks_, model.stack_alphas_, strict=True)
    return {
        "description": model._what_is_mixed(),
        "models": [{"weight": w, "rank": rank, "alpha": alpha} for w, rank, alpha in parts],
    }


def _penalty(best: Any) -> dict[str, Any]:
    """Return penalties by the names of their parameters."""
    known = best.get_params(deep=False)
    return {name: known[name] for name in _PENALTIES if known.get(name) is not None}


def _kernel(best: Any) -> dict[str, Any] | None:
    if not best._has_dual_form:
        return None
    kernel = best.kernel
    name = kernel if isinstance(kernel, str) else getattr(kernel, "__name__", "function")
    n = len(best.X_fit_) if best._uses_landmarks else None
    return {"name": name, "gamma": best.gamma, "landmarks": n}


def _held_out(model: Any, notes: dict[str, Any]) -> dict[str, Any] | None:
    """Return the held-out errors of the model, of ridge regression and of the mean."""
    mse = getattr(model, "held_out_mse_", notes.get("cv_mse"))
    if mse is None:
        return None
    cv = getattr(model, "cv", notes.get("cv"))
    kind = type(cv).__name__ if isinstance(cv, BaseEstimator) or hasattr(cv, "split") else "KFold"
    return {
        "rmse": _root(mse),
        "ridge_rmse": _root(getattr(model, "ridge_mse_", None)),
        "mean_rmse": _root(getattr(model, "null_mse_", None)),
        "cv": {"kind": kind, "n_splits": getattr(cv, "n_splits", cv)},
    }


def _root(mse: Any) -> float | None:
    return None if mse is None else math.sqrt(max(float(mse), 0.0))


def _plain(value: Any) -> Any:
    """Convert a value for JSON: numbers that are not finite become None, other objects text."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "M":
            value = np.datetime_as_string(value, unit="auto")
        return _plain(value.tolist())
    if isinstance(value, (list, tuple, set, range)):
        return [_plain(v) for v in value]
    if hasattr(value, "__array__"):
        return _plain(np.asarray(value))
    return str(value)


# ---------------------------------------------------------------- lines of text


def describe(facts: dict[str, Any]) -> str:
    """Return the facts about a model as lines of text."""
    return _in_columns(fact_lines(facts))


def fact_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the facts about a model as pairs of a name and a value.

    Parameters
    ----------
    facts : dict
        Result of `facts_of`.
    """
    inputs, outputs = facts["inputs"], facts["outputs"]
    names = inputs["names"]
    lines = [("model", facts["model"])]
    if facts["preprocessing"]:
        steps = [step["description"] for step in facts["preprocessing"]]
        lines += [("preprocessing", ", ".join(steps))]
    lines += [("inputs", f"{inputs['n_features']}{f' ({_range(names)})' if names else ''}")]
    lines += _block_lines(inputs)
    lines += [("outputs", _times(outputs["shape"]) or "one number")]
    for mode in outputs["modes"] or []:
        lines += [(f"  {mode['name']}", _range(mode["coordinates"]))]
    if outputs["weighted"]:
        lines += [("  weights", "of the outputs, in errors and scores")]
    if outputs["scaled"]:
        lines += [("  scale", "of the outputs; errors are those of the divided outputs")]
    if facts["n_samples"] is not None:
        dim = facts["sample_dim"]
        lines += [("samples", f"{facts['n_samples']}{f' along {dim}' if dim else ''}")]
    lines += [("ranks", _times(facts["rank"]))]
    if facts["stack"] is not None:
        lines += [("mixture", facts["stack"]["description"])]
    penalties = facts["penalty"].items()
    lines += [(name, f"{value:g}") for name, value in penalties if isinstance(value, (int, float))]
    kernel = facts["kernel"]
    if kernel is not None:
        lines += [("kernel", kernel["name"])]
        lines += [("gamma", f"{kernel['gamma']:g}")] if kernel["gamma"] is not None else []
    full, used = facts["n_coefficients"], facts["n_parameters"]
    fewer = f" ({full / max(used, 1):.1f} times fewer)" if used < full else ""
    lines += [("parameters", f"{used:,} of {full:,}{fewer}")]
    return [*lines, *_error_lines(facts["held_out"])]


def _block_lines(inputs: dict[str, Any]) -> list[tuple[str, str]]:
    """Return lines about blocks of inputs with their penalties, and own inputs."""
    lines = []
    for block in inputs["blocks"] or []:
        penalty = "left out" if block["left_out"] else f"alpha {block['alpha']:g}"
        penalty = "" if block["alpha"] is None and not block["left_out"] else f", {penalty}"
        lines.append((f"  {block['name']}", f"{block['n_features']}{penalty}"))
    if inputs["own"] is not None:
        own = inputs["own"] if isinstance(inputs["own"], list) else [inputs["own"]]
        lines.append(("  own inputs", ", ".join(map(str, own))))
    return lines


def _error_lines(held_out: dict[str, Any] | None) -> list[tuple[str, str]]:
    if held_out is None:
        return []
    kind = {"GroupKFold": " by groups", "TimeSeriesSplit": " by time"}
    cv = held_out["cv"]
    folds = f"{cv['n_splits']}-fold cross-validation{kind.get(cv['kind'], '')}"
    lines = [("held-out RMSE", f"{held_out['rmse']:.6g} ({folds})")]
    for key, what in (("ridge_rmse", "  of ridge"), ("mean_rmse", "  of the mean")):
        if held_out[key] is not None:
            lines += [(what, f"{held_out[key]:.6g}")]
    return lines


def weight_and_scale(model: Any) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return the weights of the outputs of a fitted model, and their scale.

    Squared errors of the divided outputs have these weights. Each is None if the model has none.
    """
    weight, scale = model._output_weight, model.tucker_.scale
    if scale is None:
        return weight, None
    s = np.asarray(to_numpy(scale), dtype=np.float64)
    has_weight = getattr(model, "output_weight", None) is not None
    return (weight * np.square(s / s.min()) if has_weight else None), s


def describe_scores(
    errors: Errors, output_weight: np.ndarray | None = None, output_scale: np.ndarray | None = None
) -> str:
    """Return R2 and RMSE of predictions, compared with the mean of the outputs, as text.

    Parameters
    ----------
    errors : Errors
    output_weight : array of shape (d1, ..., dp), optional
        Weights of the outputs in the fit.
    output_scale : array of shape (d1, ..., dp), optional
        Divisor of each output. Errors are those of the divided outputs.
    """
    if output_scale is not None:
        s = output_scale
        errors = replace(errors, error=errors.error / s / s, scatter=errors.scatter / s / s)
    of_mean, v = replace(errors, error=errors.scatter), output_weight
    r2, each = (errors.r2(average, output_weight=v) for average in ("pooled", "uniform"))
    lines = [("samples", str(np.max(errors.n_samples)))]
    lines += [("R2", f"{r2:.6g} (of all outputs together)")]
    lines += [("  of each output", f"{each:.6g} (mean over outputs)")]
    lines += [("RMSE", f"{errors.rmse(output_weight=v):.6g}")]
    lines += [("  of the mean", f"{of_mean.rmse(output_weight=v):.6g}")]
    if v is not None:
        lines += [("weights", "those of the outputs in the fit")]
    if output_scale is not None:
        lines += [("scale", "errors are those of the outputs divided by their scale in the fit")]
    return _in_columns(lines)


def _in_columns(lines: list[tuple[str, str]]) -> str:
    """Return names and values as text, one pair in each line."""
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in lines)


def _range(values: list[Any]) -> str:
    """Return all labels if there are at most four, or the first two and the last."""
    labels = [f"{v:g}" if isinstance(v, float) else str(v) for v in values]
    return ", ".join(labels) if len(labels) <= 4 else f"{labels[0]}, {labels[1]}, ..., {labels[-1]}"


def _times(sizes: Any) -> str:
    return " x ".join(map(str, sizes))
