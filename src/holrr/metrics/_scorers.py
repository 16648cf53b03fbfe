"""The metrics as scorers for scikit-learn's tools."""

from __future__ import annotations

from typing import Any

from sklearn.metrics import make_scorer

from ._scores import r2, rmse

__all__ = ["scorers"]

# For ``scoring=`` of `cross_validate`, `GridSearchCV` and the like: one of them, or all at once.
scorers: dict[str, Any] = {
    "r2_pooled": make_scorer(r2),
    "r2_uniform": make_scorer(r2, average="uniform"),
    "neg_rmse": make_scorer(rmse, greater_is_better=False),
}
