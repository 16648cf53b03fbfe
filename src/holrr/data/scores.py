"""The coefficient of determination of data that are looked at in blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.namespace import to_numpy

__all__ = ["Errors", "add_errors"]


@dataclass(frozen=True, eq=False)
class Errors:
    """What R2 needs of some samples.

    Parameters
    ----------
    weight : float
    mean : array of shape (d1, ..., dp)
        Mean of each output.
    scatter : array of shape (d1, ..., dp)
        ``sum w (y - mean)^2``.
    error : array of shape (d1, ..., dp)
        ``sum w (y - prediction)^2``.
    """

    weight: float
    mean: np.ndarray
    scatter: np.ndarray
    error: np.ndarray

    @classmethod
    def of(cls, model: Any, X: Any, Y: Any, w: np.ndarray | None) -> Errors | None:
        """Those of a block of samples; None where it has no weight."""
        w = np.ones(len(X)) if w is None else w
        if not w.any():
            return None
        Y = to_numpy(Y).astype(np.float64, copy=False)
        wanted = to_numpy(model.predict(X))
        if not np.isfinite(Y).all():
            raise ValueError("y contains NaN or infinity; every entry must be finite.")
        weight = float(w.sum())
        mean = np.tensordot(w, Y, 1) / weight
        squares = lambda D: np.tensordot(w, np.square(D), 1)  # noqa: E731
        return cls(weight, mean, squares(Y - mean), squares(Y - wanted))

    def __add__(self, other: Errors) -> Errors:
        """All samples together, by the pairwise formula (see `Moments`)."""
        weight = self.weight + other.weight
        delta = other.mean - self.mean
        share = other.weight / weight
        return Errors(
            weight,
            self.mean + share * delta,
            self.scatter + other.scatter + self.weight * share * np.square(delta),
            self.error + other.error,
        )

    def r2(self) -> float:
        """R2 averaged over the outputs; a constant output counts 1 if it is met and else 0."""
        constant = self.scatter == 0
        r2 = 1 - self.error / np.where(constant, 1, self.scatter)
        return float(np.mean(np.where(constant, self.error == 0, r2)))


def add_errors(parts: Any) -> Errors | None:
    """All of them together; None stands for samples without weight."""
    found = [part for part in parts if part is not None]
    return sum(found[1:], start=found[0]) if found else None
