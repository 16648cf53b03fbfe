"""R2, RMSE and skill for outputs of any order, with weights and missing entries."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from sklearn.metrics import make_scorer

from ..core.checks import check_choice, check_finite
from ..core.namespace import row_blocks, to_numpy
from ..core.output_weights import weight_of_outputs
from ..data.arrays import (
    check_kind,
    check_outputs,
    comes_from,
    is_dask,
    is_memory_map,
    locate_rows,
    nan_for_masked,
    weights_of,
)
from ..data.labels import Labels, check_rows, row_index
from ..data.relabel import labelled
from ..data.scores import AVERAGES, Errors, errors_between
from ..data.unlabel import unlabel_output_weight, unlabel_outputs, unlabel_weights

__all__ = ["compare", "open_all", "r2", "rmse", "rows_of", "scorers", "skill", "skill_of"]

_BLOCK = 2**24  # bytes of outputs that are read at a time


def r2(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    output_weight: Any = None,
    average: str | None = "pooled",
    missing: str = "skip",
    sample_dim: str | None = None,
) -> Any:
    """Return the coefficient of determination R2, the explained part of the variance.

    Parameters
    ----------
    y_true, y_pred : array of shape (n_samples, d1, ..., dp)
        Observed and predicted outputs of any order p >= 0: arrays, tables or xarray objects, whose
        dimensions are matched by name. Memory maps and Dask arrays are read in chunks.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples.
    output_weight : array of shape (d1, ..., dp), or list of p arrays of shape (d_i,), optional
        Weights of the outputs in sums and averages over outputs. They do not change the R2 of each
        output. With the `output_weight` of a model, the pooled R2 equals its `score`. In a list,
        None means weights of one; xarray weights are matched by name.
    average : {"pooled", "uniform"} or None, default="pooled"
        "pooled" divides the squared error of all outputs by their variance, so that outputs count
        in proportion to their variance. It equals ``multioutput="variance_weighted"`` of
        scikit-learn, and is returned by `score`. "uniform" is the mean of the R2 of all outputs,
        which a few outputs of small variance can dominate. None returns the R2 of each output.
    missing : {"skip", "raise"}, default="skip"
        Whether entries that are NaN, in `y_true` or `y_pred`, are skipped or raise an error.
    sample_dim : str, optional
        Sample dimension of xarray objects. The default is their first dimension.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``
        R2. With labelled outputs and ``average=None`` it is a DataArray or a Series. It is NaN
        with fewer than two samples. The R2 of a constant output is 1 if the predictions are exact
        and 0 otherwise. Constant outputs do not count in the pooled R2 unless all are constant.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.metrics import r2
    >>> y_true = np.array([[0.0, 1.00], [2.0, 1.01], [4.0, np.nan], [6.0, 1.01]])
    >>> y_pred = np.array([[0.0, 1.10], [2.0, 1.11], [4.0, 1.00], [6.0, 1.11]])
    >>> print(f"{r2(y_true, y_pred):.3f}")
    0.999
    >>> print(f"{r2(y_true, y_pred, average='uniform'):.0f}")
    -224
    >>> r2(y_true, y_pred, average=None).round().tolist()
    [1.0, -449.0]
    """
    options = sample_weight, average, missing, sample_dim
    (errors,), labels = compare(y_true, [y_pred], *options)
    v = _output_weight(output_weight, errors, labels)
    return labelled(labels, errors.r2(average, output_weight=v), "r2")


def rmse(
    y_true: Any,
    y_pred: Any,
    *,
    sample_weight: Any = None,
    output_weight: Any = None,
    average: str | None = "pooled",
    missing: str = "skip",
    sample_dim: str | None = None,
) -> Any:
    """Return the root of the mean squared error, in the units of the outputs.

    Parameters
    ----------
    y_true, y_pred, sample_weight, output_weight, missing, sample_dim
        As in `r2`.
    average : {"pooled", "uniform"} or None, default="pooled"
        "pooled" is the root of the mean over all entries, "uniform" is the mean of the RMSE of all
        outputs, and None returns the RMSE of each output.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``
        The RMSE.

    Examples
    --------
    >>> from holrr.metrics import rmse
    >>> rmse([[0.0, 1.0], [0.0, 1.0]], [[3.0, 1.0], [3.0, 1.0]], average=None).tolist()
    [3.0, 0.0]
    """
    options = sample_weight, average, missing, sample_dim
    (errors,), labels = compare(y_true, [y_pred], *options)
    v = _output_weight(output_weight, errors, labels)
    return labelled(labels, errors.rmse(average, output_weight=v), "rmse")


def skill(
    y_true: Any,
    y_pred: Any,
    reference: Any = None,
    *,
    sample_weight: Any = None,
    output_weight: Any = None,
    average: str | None = "pooled",
    missing: str = "skip",
    sample_dim: str | None = None,
) -> Any:
    """Return the skill score ``1 - squared error / squared error of a reference``.

    Perfect predictions have a skill of 1. A skill of 0 is no better than the reference, and a
    negative skill is worse.

    Parameters
    ----------
    y_true, y_pred, sample_weight, output_weight, missing, sample_dim
        As in `r2`.
    reference : array of shape (n_samples, d1, ..., dp) or (d1, ..., dp), optional
        Another forecast, or a constant forecast for all samples, such as the mean of the training
        data. The default is the mean of `y_true`, for which the skill equals R2.
    average : {"pooled", "uniform"} or None, default="pooled"
        As in `r2`, with the squared error of the reference in place of the variance.

    Returns
    -------
    float, or array of shape (d1, ..., dp) with ``average=None``
        The skill.

    Examples
    --------
    >>> from holrr.metrics import skill
    >>> y_true, persistence = [1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0]
    >>> skill(y_true, [1.5, 2.5, 3.5, 4.5], persistence)
    0.75
    >>> skill(y_true, [1.5, 2.5, 3.5, 4.5], 2.5)
    0.8
    """
    forecasts = [y_pred] if reference is None else [y_pred, reference]
    options = sample_weight, average, missing, sample_dim
    errors, labels = compare(y_true, forecasts, *options)
    v = _output_weight(output_weight, errors[0], labels)
    return labelled(labels, skill_of(errors, average, v), "skill")


#: Scorers for the parameter ``scoring`` of `cross_validate`, `GridSearchCV` and other tools of
#: scikit-learn: a dict with ``"r2_pooled"``, ``"r2_uniform"`` and ``"neg_rmse"``. Pass one of them,
#: or the dict to compute all scores.
scorers: dict[str, Any] = {
    "r2_pooled": make_scorer(r2),
    "r2_uniform": make_scorer(r2, average="uniform"),
    "neg_rmse": make_scorer(rmse, greater_is_better=False),
}


# ---------------------------------------------------------------- errors in blocks of samples


def skill_of(
    errors: Sequence[Errors], average: str | None = None, output_weight: np.ndarray | None = None
) -> Any:
    """Return the skill, from the errors of predictions and of their reference, or of the mean."""
    if len(errors) == 1:
        return errors[0].r2(average, output_weight=output_weight)
    against = replace(errors[0], scatter=errors[1].error)
    return against.r2(average, output_weight=output_weight, least=1)


def _output_weight(output_weight: Any, errors: Errors, labels: Labels | None) -> np.ndarray | None:
    """Return the weight of every output, (d1, ..., dp), in the order of the outputs."""
    if output_weight is None:
        return None
    return weight_of_outputs(unlabel_output_weight(output_weight, labels), errors.error.shape)


def compare(
    y_true: Any,
    forecasts: Sequence[Any],
    sample_weight: Any = None,
    average: str | None = None,
    missing: str = "skip",
    sample_dim: str | None = None,
) -> tuple[list[Errors], Labels | None]:
    """Compute the errors of predictions and of their reference, and the labels of the outputs.

    An entry that is missing in one of them is skipped in all. The predictions may be a function
    from a slice of the samples to predictions.
    """
    check_choice(average, AVERAGES, "average")
    check_choice(missing, ("skip", "raise"), "missing")
    named = dict(zip(("y_pred", "reference"), forecasts, strict=False))
    Y, readers, w, labels = open_all(y_true, named, sample_weight, sample_dim)

    def of_block(rows: slice) -> list[Errors]:
        block, parts = rows_of(Y, rows), [read(rows) for read in readers]
        v = None if w is None else w[rows]
        if missing == "skip" and len(parts) > 1:
            block = np.where(reduce(np.logical_or, map(np.isnan, parts)), np.nan, block)
        with locate_rows(rows):
            if missing == "raise":
                for name, part in zip(("y_true", *named), (block, *parts), strict=True):
                    check_finite(part, name)
            return [errors_between(block, part, v, missing=missing == "skip") for part in parts]

    blocks = row_blocks(Y.shape[0], 8 * math.prod(Y.shape[1:]), _BLOCK)
    if is_dask(Y):
        from ..streaming.dask import slices

        blocks = slices(Y.chunks[0])
    return [reduce(add, found) for found in zip(*map(of_block, blocks), strict=True)], labels


def open_all(
    y_true: Any, forecasts: Mapping[str, Any], sample_weight: Any, sample_dim: str | None = None
) -> tuple[Any, list[Callable[[slice], np.ndarray]], np.ndarray | None, Labels]:
    """Return outputs, a reader of the rows of each forecast, weights, and the labels of outputs."""
    values, labels = unlabel_outputs(y_true, sample_dim)
    Y, readers = _opened(values, "y_true"), []
    for name, forecast in forecasts.items():
        reader, found = _reader_of(Y, y_true, labels, forecast, name, sample_dim)
        readers.append(reader)
        labels = found if labels.outputs is None else labels
    check_rows(None, sample_dim=labels.sample_dim, y_true=y_true, sample_weight=sample_weight)
    return Y, readers, weights_of(unlabel_weights(sample_weight), Y.shape[0]), labels


def _opened(A: Any, name: str) -> Any:
    """Return an array that can be indexed by rows; arrays in memory are checked."""
    if is_dask(A):
        from ..streaming.dask import known_chunks

        return known_chunks(A, name)
    if is_memory_map(A):
        check_kind(A, name)
        return A
    return to_numpy(check_outputs(nan_for_masked(A), name))


def rows_of(A: Any, rows: slice) -> np.ndarray:
    """Return the given rows of outputs, with NaN for masked entries."""
    block = A[rows, ...]
    return np.asarray(nan_for_masked(block.compute() if is_dask(A) else block))


def _reader_of(
    Y: Any, y_true: Any, labels: Labels, forecast: Any, name: str, sample_dim: str | None
) -> tuple[Callable[[slice], np.ndarray], Labels]:
    """Return a reader of the rows of a forecast, which may be the same for all samples."""
    if callable(forecast):
        return lambda rows: to_numpy(forecast(rows)), labels
    dim, outputs = sample_dim or labels.sample_dim, tuple(Y.shape[1:])
    row = _as_row(forecast, dim, outputs) if name == "reference" else None
    one, forecast = row is not None, forecast if row is None else row
    if not one and sample_dim is None and comes_from(forecast, "xarray") and dim is not None:
        first = next(iter(forecast.dims), None)
        if first != dim:
            raise ValueError(
                f"y_true begins with the dimension {dim!r} and {name} with {first!r}; choose the "
                f"sample dimension with sample_dim=..."
            )
    try:
        values, found = unlabel_outputs(forecast, dim, labels, flat=len(outputs) == 1)
        F = _opened(values, name)
        if tuple(F.shape) != (1 if one else Y.shape[0], *outputs):
            raise ValueError(f"it has shape {tuple(F.shape)}, but y_true has {tuple(Y.shape)}.")
        if not one and not _is_numbered(forecast):
            check_rows(None, sample_dim=dim, y_true=y_true, **{name: forecast})
    except ValueError as error:
        raise ValueError(f"{name} does not match y_true: {error}") from error
    if one:
        return lambda rows: np.broadcast_to(F, (rows.stop - rows.start, *outputs)), found
    return lambda rows: rows_of(F, rows), found


def _is_numbered(forecast: Any) -> bool:
    """Return whether row labels are only numbers, as in predictions for inputs without labels."""
    index = row_index(forecast) if comes_from(forecast, "pandas") else None
    steps = tuple(getattr(index, name, None) for name in ("start", "stop", "step"))
    return index is not None and steps == (0, len(index), 1)


def _as_row(reference: Any, dim: str | None, outputs: tuple[int, ...]) -> Any:
    """Return a reference that is the same for all samples, as one row; None otherwise."""
    if comes_from(reference, "xarray"):
        return reference.expand_dims(dim) if dim not in (None, *reference.dims) else None
    if comes_from(reference, "pandas") and not hasattr(reference, "columns") and outputs:
        return reference.to_frame().T
    return np.asarray(reference)[None] if np.shape(reference) == outputs else None
