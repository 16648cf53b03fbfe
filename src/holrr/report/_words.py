"""The conclusion and the next steps of a report, in plain words."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..diagnostics import InputDiagnostics, Outliers
from ._evaluate import Estimate, Evaluation

__all__ = ["OUTLIER_LEVEL", "conclusion", "next_steps", "number", "percent"]

_FEW_SAMPLES = 50
# Inputs are unusual if more than this share of the samples is outside the 99 % limits.
_MANY_OUTSIDE = 0.1
# Share of ordinary training samples below the limit of their residuals.
OUTLIER_LEVEL = 0.999


def number(x: float) -> str:
    """Return a number with four significant digits."""
    return "not known" if math.isnan(x) else f"{x:.4g}"


def percent(x: float) -> str:
    """Return a share in percent, without decimals from 10 percent on."""
    if math.isnan(x):
        return "not known"
    return f"{100 * x:.0f} %" if abs(x) >= 0.0995 else f"{100 * x:.1f} %"


def _interval(found: Estimate, shown: Any) -> str:
    return f"95 % confidence interval {shown(found.low)} to {shown(found.high)}"


def conclusion(evaluation: Evaluation) -> list[str]:
    """Return the conclusion of an evaluation, one statement each.

    Parameters
    ----------
    evaluation : Evaluation
    """
    model, *others = evaluation.names
    r2 = evaluation.r2(model)
    samples = f"{evaluation.n_samples} samples"
    where, assumed = samples, ["This assumes that the fit did not use these samples."]
    if evaluation.source == "cross-validation":
        where = f"{samples}, each predicted by a model that was fitted without it"
        assumed = []
    lines = [f"R2 is {r2.value:.3f} ({_interval(r2, lambda x: f'{x:.3f}')}) on {where}."]
    lines += assumed
    if r2.low <= 0:
        lines.append(
            "The data do not show that the inputs predict the outputs: the confidence interval "
            "contains 0, which is the R2 of predicting the mean."
        )
    else:
        lines.append(
            f"The model explains {percent(r2.value)} of the variance of all outputs together."
        )
    lines += [_compared(other, evaluation.gain(other)) for other in others]
    if evaluation.intervals and 0.9 in evaluation.intervals:
        observed = evaluation.coverage(0.9)
        lines.append(
            f"Prediction intervals for 90 % of new observations contain {percent(observed)} of the "
            f"observed entries."
        )
    each = evaluation.r2()
    below, known = int(np.sum(each < 0)), int(np.sum(~np.isnan(each)))
    if known > 1:
        lines.append(f"{known - below} of {known} outputs are predicted better than by their mean.")
    return lines


def _compared(other: str, gain: Estimate) -> str:
    text = f"({_interval(gain, percent)})"
    if gain.low > 0:
        return f"The squared error is {percent(gain.value)} lower than that of {other} {text}."
    if gain.high < 0:
        return f"The squared error is {percent(-gain.value)} higher than that of {other} {text}."
    return (
        f"The squared error does not differ clearly from that of {other}: the difference is "
        f"{percent(gain.value)} {text}."
    )


def next_steps(
    evaluation: Evaluation,
    model: Any,
    rows: InputDiagnostics | None = None,
    outliers: Outliers | None = None,
) -> list[str]:
    """Return recommendations that follow from an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
    model : estimator
        The estimator that was evaluated, the last step of a pipeline.
    rows : InputDiagnostics, optional
        Distances of the inputs from the training inputs.
    outliers : Outliers, optional
        Held-out residuals of the training samples.
    """
    name, *others = evaluation.names
    r2, steps = evaluation.r2(name), []
    if r2.low <= 0:
        steps.append(
            "Look for inputs that carry more information, or collect more samples, before you use "
            "the predictions."
        )
    if "ridge regression" in others and evaluation.gain("ridge regression").high < 0:
        steps.append("Use ridge regression (RLSCV) for these data: its error is lower.")
    elif "ridge regression" in others and evaluation.gain("ridge regression").low <= 0:
        steps.append(
            "Ridge regression (RLSCV) is as accurate here and simpler. Prefer it unless you need "
            "the factors of the low-rank model."
        )
    if evaluation.n_samples < _FEW_SAMPLES:
        steps.append(
            f"Treat all figures with care: {evaluation.n_samples} samples give wide confidence "
            f"intervals. More samples help most."
        )
    if evaluation.intervals and 0.9 in evaluation.intervals:
        observed = evaluation.coverage(0.9)
        if observed < 0.85:
            steps.append(
                f"Do not rely on the prediction intervals: 90 % intervals contain "
                f"{percent(observed)} of these observations. The samples may differ from the "
                f"training samples, or depend on each other in time or by group (see the "
                f"parameters cv and groups)."
            )
    each = evaluation.r2()
    if np.any(each < 0) and each.size > 1 and r2.low > 0:
        steps.append(
            "Do not use the predictions of outputs whose R2 is below 0; the mean is better there."
        )
    if evaluation.source == "new data":
        error = getattr(model, "held_out_mse_", None) if _has_held_out(model) else None
        rmse = evaluation.rmse(name)
        if error is not None and error > 0 and rmse.high < 0.7 * math.sqrt(error):
            steps.append(
                f"Check that these samples were not used in the fit: the RMSE is "
                f"{number(rmse.value)}, much lower than the cross-validated RMSE of "
                f"{number(math.sqrt(error))}."
            )
        if error is not None and error > 0 and rmse.low > 1.3 * math.sqrt(error):
            steps.append(
                f"Find out how these samples differ from the training samples: the RMSE is "
                f"{number(rmse.value)}, and the cross-validated RMSE was "
                f"{number(math.sqrt(error))}."
            )
    if rows is not None and np.mean(rows.outside) > _MANY_OUTSIDE:
        steps.append(
            f"Check the inputs: {percent(float(np.mean(rows.outside)))} of the samples are outside "
            f"the {100 * rows.level:g} % limits of the training inputs. Their predictions are "
            f"extrapolations."
        )
    if outliers is not None and outliers.outside.any():
        first = int(outliers.order[0])
        label = first if outliers.labels is None else outliers.labels[first]
        n = int(outliers.outside.sum())
        which = f"training sample {label}: its" if n == 1 else f"{n} training samples: their"
        residual = "residual" if n == 1 else f"the residual of {label} is"
        steps.append(
            f"Check {which} outputs do not fit the other samples ({residual} "
            f"{outliers.residuals[first]:.3g}, limit {outliers.limits[first]:.3g}). Correct or "
            f'remove errors, or use a robust fit (loss="huber"). About one ordinary sample in '
            f"{1 / (1 - outliers.level):,.0f} exceeds the limit by chance."
        )
    if not hasattr(model, "best_index_"):
        steps.append(
            "Choose penalty and ranks by cross-validation (HOLRRCV, or holrr fit --cv). It often "
            "lowers the error, and it provides prediction intervals."
        )
    if not steps:
        steps.append("No problem was found. The model can be used for samples like these.")
    return steps


def _has_held_out(model: Any) -> bool:
    return "held_out_mse" in getattr(model, "cv_results_", {})
