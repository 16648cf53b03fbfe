"""Nystroem approximation: features from the kernel values with a few landmarks.

With the Gram matrix of the landmarks, ``K = Q diag(s^2) Q'``, the inner products of the features

    phi(x) = k(x, landmarks) Q diag(1 / s)

equal the kernel values for landmarks, and approximate them for other samples. The fit needs only
the moments of the features, which are computed in blocks of samples.

References
----------
C. K. I. Williams, M. Seeger (2001). Using the Nystroem method to speed up kernel machines.
Advances in Neural Information Processing Systems 13, 682-688.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..core.checks import check_finite
from ..core.fit import Fit
from ..core.namespace import Array, namespace_of, row_blocks, to_device_of, to_numpy
from ..core.tensor import Tucker, mode_product
from ..core.warn import warn
from ..data.arrays import take
from ..data.validation import Names, Samples, validate_points
from ..streaming.chunks import Chunks
from ..streaming.moments import Moments
from .gram import KernelFunction, centred_gram
from .problem import positive_part

__all__ = ["Landmarks", "choose_landmarks", "copy_of"]

# Bytes of the kernel values and features of one block of samples.
_BLOCK = 2**26


@dataclass(frozen=True, eq=False)
class Landmarks:
    """Feature map that is linear in the kernel values with landmarks."""

    kernel: KernelFunction
    points: Array  # the landmarks, (n_landmarks, n_features)
    s: Array  # square roots of the positive eigenvalues of their Gram matrix, (r,)
    Q: Array  # eigenvectors of these eigenvalues, (n_landmarks, r)

    @classmethod
    def of(cls, kernel: KernelFunction, points: Array) -> Landmarks:
        """Return the feature map of the given landmarks."""
        return cls(kernel, points, *positive_part(centred_gram(kernel, points)))

    def features(self, X: Array) -> Array:
        """Return ``phi(x)`` for each row of `X`, of shape (n_samples, r), in the type of `X`."""
        xp = namespace_of(X)
        dtype = X.dtype if xp.isdtype(X.dtype, "real floating") else xp.float64
        return xp.astype(self.kernel(X, self.points) @ (self.Q / self.s), dtype, copy=False)

    def moments(self, data: Samples | Chunks, response_grams: bool = False) -> Moments:
        """Compute the moments of the features and the outputs, in blocks of rows."""
        return self.fold_moments(data, None, 1, response_grams)[0]

    def fold_moments(
        self,
        data: Samples | Chunks,
        labels: np.ndarray | None,
        n_folds: int,
        response_grams: bool = False,
    ) -> list[Moments]:
        """Compute the moments of the samples of each fold, see `Chunks.fold_moments`."""
        if isinstance(data, Chunks):
            how: Any = {"features": self.features, "n_mapped": 2 * self.points.shape[0]}
            return data.fold_moments(labels, n_folds, response_grams, **how)
        check_finite(data.Y, "y")  # all of y, so that the message has indices into all data
        labels = np.zeros(data.n_samples, dtype=int) if labels is None else labels
        return [
            self.moments_of(data, np.flatnonzero(labels == k), response_grams)
            for k in range(n_folds)
        ]

    def moments_of(self, data: Samples, index: np.ndarray, response_grams: bool) -> Moments:
        """Compute the moments of some of the samples, in blocks of rows."""
        if data.w is not None:  # samples without weight do not count
            index = index[to_numpy(data.w)[index] > 0]
        row_bytes = 8 * (2 * self.points.shape[0] + math.prod(data.output_shape))
        blocks = (data.rows(index[i]) for i in row_blocks(index.size, row_bytes, _BLOCK))
        first, *others = [
            Moments.from_checked(self.features(block.X), block.Y, block.w, response_grams)
            for block in blocks
        ]
        return first.merge(*others)

    def on_kernel_values(self, fit: Fit) -> Fit:
        """Return the fit in the kernel values with the landmarks, from a fit in the features."""
        coef, lift = fit.tucker, self.Q / self.s
        core, first = coef.core, coef.factors[0]
        if first is None:
            core = mode_product(core, lift, 0)
        else:
            first = lift @ first
        return replace(fit, tucker=Tucker(core, (first, *coef.factors[1:]), coef.leading))


def choose_landmarks(
    data: Samples | Chunks,
    names: Names,
    kernel: Any,
    landmarks: Any,
    random_state: Any,
) -> Array:
    """Return the given landmarks, or rows of `X` that are drawn without replacement.

    Samples without weight are not drawn.
    """
    if kernel == "precomputed":
        raise ValueError(
            "landmarks need the inputs and cannot be used with kernel='precomputed'. Pass the "
            "inputs as X, and the name of a kernel or a callable."
        )
    if isinstance(landmarks, Integral):
        return _draw(data, int(landmarks), random_state)
    # A Dataset or a dict has no shape; if its blocks are empty, `validate_points` raises an error.
    shape = tuple(landmarks.shape) if hasattr(landmarks, "shape") else (len(landmarks),)
    if shape[:1] == (0,):
        raise ValueError(f"landmarks must contain at least one row; got landmarks={landmarks!r}.")
    points = validate_points(landmarks, names, "landmarks")
    return copy_of(to_device_of(points, data.X) if isinstance(data, Samples) else points)


def _draw(data: Samples | Chunks, n_landmarks: int, random_state: Any) -> Array:
    w = data.w
    rows = np.arange(data.n_samples) if w is None else np.flatnonzero(to_numpy(w) > 0)
    n = rows.size
    if n_landmarks > n:
        warn(
            f"landmarks={n_landmarks} exceeds the number of samples with positive weight, {n}. "
            f"All of these samples become landmarks."
        )
    if n_landmarks < n:
        rows = rows[check_random_state(random_state).permutation(n)[:n_landmarks]]
    return copy_of(take(data.X, rows)) if isinstance(data, Samples) else data.input_rows(rows)


def copy_of(X: Array) -> Array:
    """Return a copy of an array."""
    return namespace_of(X).asarray(X, copy=True)
