"""The conclusion of a report, in plain words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ._evaluate import Estimate, Evaluation

__all__ = ["conclusion", "number", "percent"]

# Largest number of entries of a mode that have a conclusion of their own.
_MOST_PARTS = 8


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


def conclusion(evaluation: Evaluation, modes: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the conclusion of an evaluation, one statement each.

    If outputs have different units along a mode, such as the variables of a weather station, each
    entry of the mode has a conclusion of its own, since their errors cannot be added up.

    Parameters
    ----------
    evaluation : Evaluation
    modes : sequence of p pairs
        Name and entries of each output mode.
    """
    lines = []
    if evaluation.source == "cross-validation":
        lines.append(
            f"Each of {evaluation.n_samples} samples was predicted by a model that was fitted "
            f"without it."
        )
    units = evaluation.modes_in_units()
    if units:
        name, entries = modes[units[0]]
        lines.append(
            f"The outputs have different units along {name}, so they are judged one by one."
        )
        parts = [evaluation.part(units[0], k) for k in range(len(entries))]
        shown = list(zip(entries, parts, strict=True))[:_MOST_PARTS]
        lines += [f"{name} {entry}: {_accuracy(part)}" for entry, part in shown]
        if len(parts) > len(shown):
            lines.append(f"The other {len(parts) - len(shown)} are in the table of errors.")
    else:
        lines.append(_accuracy(evaluation))
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


def _accuracy(evaluation: Evaluation) -> str:
    """Return statements on the R2 of the model, and on its error beside those of others."""
    model, *others = evaluation.names
    r2 = evaluation.r2(model)
    said = [f"R2 is {r2.value:.3f} ({_interval(r2, lambda x: f'{x:.3f}')})."]
    if r2.low <= 0:
        said.append(
            "The data do not show that the inputs predict the outputs: this interval contains 0, "
            "the R2 of predicting the mean."
        )
    return " ".join([*said, *(_compared(other, evaluation.gain(other)) for other in others)])


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
