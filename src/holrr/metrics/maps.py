"""The skill of a model for each output."""

from __future__ import annotations

from typing import Any

from sklearn.utils import _safe_indexing

from ..data.arrays import is_memory_map
from ..data.labels import Labels
from ..data.relabel import labelled
from .scores import compare, skill_of

__all__ = ["skill_map"]


def skill_map(
    model: Any, X: Any, y: Any, reference: Any = None, *, sample_weight: Any = None
) -> Any:
    """Return the skill of a model for each output, with the labels of the outputs.

    Parameters
    ----------
    model : estimator
        Any fitted estimator, such as a pipeline, that predicts outputs of the shape of `y`.
    X : array of shape (n_samples, n_features)
        Inputs, preferably of samples that the fit has not seen. Memory maps are predicted in
        chunks.
    y : array of shape (n_samples, d1, ..., dp)
        Outputs. NaN entries are skipped.
    reference : array of shape (n_samples, d1, ..., dp) or (d1, ..., dp), optional
        Another forecast, or a constant forecast for all samples. The default is the mean of `y`,
        for which the skill of an output equals its R2.
    sample_weight : array of shape (n_samples,), optional
        Weights of the samples.

    Returns
    -------
    array of shape (d1, ..., dp)
        The skill: 1 is perfect, 0 is no better than the reference, and NaN means that the output
        has no entries to compare. It is a DataArray if the outputs, or those of the fit, are from
        xarray, and a Series if they are columns of a table.

    See Also
    --------
    skill : Skill of given predictions.
    holrr.plotting.PredictionDisplay : Plot of observed against predicted outputs.

    Examples
    --------
    >>> from holrr import HOLRR
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.metrics import skill_map
    >>> X, Y = make_tensor_regression(200, 5, (4, 3), rank=2, snr=1.0, random_state=0)
    >>> model = HOLRR(rank=2).fit(X[:100], Y[:100])
    >>> found = skill_map(model, X[100:], Y[100:], reference=Y[:100].mean(axis=0))
    >>> found.shape, bool(found.max() > 0.5)
    ((4, 3), True)
    """
    predicted: Any = lambda rows: model.predict(_safe_indexing(X, rows))  # noqa: E731
    if not (is_memory_map(X) or is_memory_map(y)):
        predicted = model.predict(X)
    fitted: Labels | None = getattr(model, "labels_", None)
    forecasts = [predicted] if reference is None else [predicted, reference]
    dim = None if fitted is None else fitted.sample_dim
    errors, labels = compare(y, forecasts, sample_weight, sample_dim=dim)
    named = labels is not None and labels.outputs is not None
    return labelled(labels if named else fitted, skill_of(errors), "skill")
