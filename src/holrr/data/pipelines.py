"""Estimators at the end of pipelines of scikit-learn."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline

__all__ = ["inputs_of_last_step", "last_step"]


def last_step(model: Any) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def inputs_of_last_step(model: Any, X: Any) -> Any:
    """Return the inputs of the last step of a fitted pipeline; `X` itself for other models."""
    if isinstance(model, Pipeline) and len(model) > 1:
        return model[:-1].transform(X)
    return X
