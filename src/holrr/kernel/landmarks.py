"""The Nystroem approximation: features from the kernel with a few landmarks, for many samples.

With the landmarks' Gram matrix ``K = Q diag(s^2) Q'``, the features

    phi(x) = k(x, landmarks) Q diag(1 / s)

have the inner products of the kernel for the landmarks, and nearly so for other samples. What the
fit needs of the data are the moments of the features, gathered block by block.

References
----------
C. K. I. Williams, M. Seeger (2001). Using the Nystroem method to speed up kernel machines.
Advances in Neural Information Processing Systems 13, 682-688.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from ..core.checks import check_finite
from ..core.namespace import Array, namespace_of, row_blocks, to_device_of, to_numpy
from ..core.spectral import Whitened
from ..core.warn import warn
from ..data.arrays import take
from ..data.validation import Names, Samples, validate_points
from ..streaming.moments import Moments
from ..streaming.stream import Stream
from .gram import KernelFunction, centred_gram
from .problem import positive_part

__all__ = ["Landmarks", "choose_landmarks", "copy_of"]

# Bytes of the kernel values and features of one block of samples.
_BLOCK = 2**26


@dataclass(frozen=True, eq=False)
class Landmarks:
    """A feature map that is linear in the kernel values with some landmarks."""

    kernel: KernelFunction
    points: Array  # the landmarks, (n_landmarks, n_features)
    s: Array  # roots of the positive eigenvalues of their Gram matrix, (r,)
    Q: Array  # the eigenvectors, (n_landmarks, r)

    @classmethod
    def of(cls, kernel: KernelFunction, points: Array) -> Landmarks:
        """The feature map of the given landmarks."""
        return cls(kernel, points, *positive_part(centred_gram(kernel, points)))

    def features(self, X: Array) -> Array:
        """``phi(x)`` for each row of `X`, of shape (n_samples, r), in the type of the inputs."""
        xp = namespace_of(X)
        dtype = X.dtype if xp.isdtype(X.dtype, "real floating") else xp.float64
        return xp.astype(self.kernel(X, self.points) @ (self.Q / self.s), dtype, copy=False)

    def moments(
        self, data: Samples | Stream, response_grams: bool = False, *, double: bool = False
    ) -> Moments:
        """Moments of the features and the outputs, in blocks of rows; see `fold_moments`."""
        return self.fold_moments(data, None, 1, response_grams, double=double)[0]

    def fold_moments(
        self,
        data: Samples | Stream,
        labels: np.ndarray | None,
        n_folds: int,
        response_grams: bool = False,
        *,
        double: bool = False,
    ) -> list[Moments]:
        """The same of the samples of each label (see `Stream.fold_moments`)."""
        if isinstance(data, Stream):
            stream = data.mapped(self.features, 2 * self.points.shape[0])
            return stream.fold_moments(labels, n_folds, response_grams, double=double)
        check_finite(data.Y, "y")  # all of it, so that places are those in all the data
        labels = np.zeros(data.n_samples, dtype=int) if labels is None else labels
        return [
            self.moments_of(data, np.flatnonzero(labels == k), response_grams)
            for k in range(n_folds)
        ]

    def moments_of(self, data: Samples, index: np.ndarray, response_grams: bool) -> Moments:
        """Moments of some of the samples, a block at a time."""
        if data.w is not None:  # samples without weight do not count
            index = index[to_numpy(data.w)[index] > 0]
        row_bytes = 8 * (2 * self.points.shape[0] + math.prod(data.output_shape))
        blocks = (data.rows(index[i]) for i in row_blocks(index.size, row_bytes, _BLOCK))
        first, *others = [
            Moments.from_checked(self.features(block.X), block.Y, block.w, response_grams)
            for block in blocks
        ]
        return first.merge(*others)

    def on_kernel_values(self, problem: Whitened) -> Whitened:
        """A problem in the features as one in the kernel values with the landmarks."""
        return replace(
            problem,
            lift=lambda M: (self.Q / self.s) @ problem.lift(M),
            mean_x=(self.Q * self.s) @ problem.mean_x,
        )


def choose_landmarks(
    data: Samples | Stream,
    names: Names,
    kernel: Any,
    n_components: int | None,
    landmarks: Any,
    random_state: Any,
) -> Array:
    """The landmarks that were given, checked, or rows of `X`, drawn without replacement.

    Samples without weight are not drawn.
    """
    if kernel == "precomputed":
        raise ValueError(
            "n_components and landmarks need the inputs themselves, which kernel='precomputed' "
            "does not have; pass X and a kernel."
        )
    if landmarks is None:
        assert n_components is not None
        return _draw(data, int(n_components), random_state)
    points = validate_points(landmarks, names, "landmarks")
    points = copy_of(to_device_of(points, data.X) if isinstance(data, Samples) else points)
    if n_components not in (None, points.shape[0]):
        raise ValueError(
            f"n_components={n_components} disagrees with the {points.shape[0]} rows of landmarks; "
            f"leave one of the two out."
        )
    return points


def _draw(data: Samples | Stream, n_components: int, random_state: Any) -> Array:
    w = data.w if isinstance(data, Samples) else data.weights
    rows = np.arange(data.n_samples) if w is None else np.flatnonzero(to_numpy(w) > 0)
    n = rows.size
    if n_components > n:
        warn(
            f"n_components={n_components} is more than the {n} samples to draw landmarks from; "
            f"all of these are taken."
        )
    if n_components < n:
        rows = rows[check_random_state(random_state).permutation(n)[:n_components]]
    return copy_of(take(data.X, rows)) if isinstance(data, Samples) else data.input_rows(rows)


def copy_of(X: Array) -> Array:
    """The same array in memory of its own."""
    return namespace_of(X).asarray(X, copy=True)
