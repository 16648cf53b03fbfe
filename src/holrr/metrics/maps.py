"""The skill of a model, output by output."""

from __future__ import annotations

from typing import Any

from sklearn.utils import _safe_indexing

from ..data.arrays import is_on_disk
from ..data.labels import Labels
from ..data.relabel import labelled
from ._scores import compare, skill_of

__all__ = ["find_skill", "skill_map"]


def skill_map(
    model: Any, X: Any, y: Any, reference: Any = None, *, sample_weight: Any = None
) -> Any:
    """Where a model is good: its skill for each output, with the names of the outputs.

    Parameters
    ----------
    model : estimator
        Fitted; any that predicts outputs of the shape of `y`, a pipeline for instance.
    X : array of shape (n_samples, n_features)
        Better not the samples of the fit. With data on disk the predictions are made in blocks.
    y : array of shape (n_samples, d1, ..., dp)
        NaN is passed over.
    reference : array of shape (n_samples, d1, ..., dp) or (d1, ..., dp), optional
        Another forecast, or what it says of every sample. By default the mean of `y`: then the
        skill of an output is its R2.
    sample_weight : array of shape (n_samples,), optional

    Returns
    -------
    array of shape (d1, ..., dp)
        A DataArray where the outputs, or those of the fit, came from xarray, a Series where they
        are columns of a table. One is perfect, zero no better than the reference; NaN where there
        is nothing to compare with.

    See Also
    --------
    skill : The same of given predictions.
    holrr.plotting.SkillMapDisplay : Draws it.

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
    each, labels = find_skill(model, X, y, reference, sample_weight)
    return labelled(labels, each, "skill")


def find_skill(
    model: Any, X: Any, y: Any, reference: Any, sample_weight: Any
) -> tuple[Any, Labels | None]:
    """The skill of each output as an array, and what the outputs are called."""
    predicted: Any = lambda rows: model.predict(_safe_indexing(X, rows))  # noqa: E731
    if not (is_on_disk(X) or is_on_disk(y)):
        predicted = model.predict(X)
    fitted: Labels | None = getattr(model, "labels_", None)
    forecasts = [predicted] if reference is None else [predicted, reference]
    dim = getattr(model, "sample_dim", None) or (None if fitted is None else fitted.sample_dim)
    errors, labels = compare(y, forecasts, sample_weight, sample_dim=dim)
    named = labels is not None and labels.outputs is not None
    return skill_of(errors), labels if named else fitted
