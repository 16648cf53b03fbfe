"""Names that data carry: of the features, and of the rows that belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

__all__ = ["check_features", "check_rows"]


def check_features(estimator: BaseEstimator, X: Any, *, reset: bool) -> None:
    """Remember number and names of the features, or compare them with those of the fit."""
    if isinstance(X, Mapping) and not hasattr(X, "shape"):
        raise TypeError(f"X must be an array of numbers; got a {type(X).__name__}.")
    validate_data(estimator, X, skip_check_array=True, reset=reset)


def check_rows(X: Any, **others: Any) -> None:
    """Rows that carry labels must carry the same ones, in the same order.

    Pairing them by position would mix samples up in silence.

    Parameters
    ----------
    X : anything; its labels count where it is a pandas object
    others : dict
        What the rows of `X` are paired with, by the name of the argument.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"a": [1.0, 2.0]}, index=["mon", "tue"])
    >>> check_rows(X, y=pd.Series([1.0, 2.0], index=["tue", "mon"]))
    Traceback (most recent call last):
    ...
    ValueError: the rows of X and y carry different labels: at position 0 X has 'mon' and y has
    'tue'. Align them first, with y = y.loc[X.index] for instance, or pass y.to_numpy() to pair rows
    by position.
    """
    found = {name: _index(A) for name, A in {"X": X, **others}.items()}
    first = next((name for name, labels in found.items() if labels is not None), "X")
    index = found.pop(first)
    for name, labels in found.items():
        if labels is None or len(index) != len(labels) or index.equals(labels):
            continue  # other lengths are another error, with its own message
        differ = np.flatnonzero([a != b for a, b in zip(index, labels, strict=True)])
        if not differ.size:  # NaN, say, which differs from itself only
            continue
        k = int(differ[0])
        raise ValueError(
            f"the rows of {first} and {name} carry different labels: at position {k} {first} has "
            f"{index[k]!r} and {name} has {labels[k]!r}. Align them first, with {name} = {name}"
            f".loc[{first}.index] for instance, or pass {name}.to_numpy() to pair rows by position."
        )


def _index(A: Any) -> Any:
    """The row labels of a pandas object, or None."""
    return getattr(A, "index", None) if type(A).__module__.partition(".")[0] == "pandas" else None
