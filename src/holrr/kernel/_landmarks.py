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
import warnings
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from sklearn.utils import check_random_state

from ..core.moments import Moments
from ..core.namespace import Array, asarray_like, is_numpy_array, namespace_of, row_blocks
from ..core.spectral import Whitened
from ._gram import KernelFunction, centred_gram
from ._problem import positive_part

__all__ = ["Landmarks", "draw_landmarks"]

# Bytes of the kernel values and features of one block of samples.
_BLOCK = 2**26


@dataclass(frozen=True, eq=False)
class Landmarks:
    """A feature map that is linear in the kernel values with some landmarks.

    Parameters
    ----------
    kernel : KernelFunction
    points : array of shape (n_landmarks, n_features)
    s : array of shape (r,)
        Roots of the positive eigenvalues of their Gram matrix.
    Q : array of shape (n_landmarks, r)
        The eigenvectors.
    """

    kernel: KernelFunction
    points: Array
    s: Array
    Q: Array

    @classmethod
    def of(cls, kernel: KernelFunction, points: Array) -> Landmarks:
        """The feature map of the given landmarks."""
        return cls(kernel, points, *positive_part(centred_gram(kernel, points)))

    def features(self, X: Array) -> Array:
        """``phi(x)`` for each row of `X`, of shape (n_samples, r)."""
        return self.kernel(X, self.points) @ (self.Q / self.s)

    def moments(self, X: Array, Y: Array, w: Array | None, response_grams: bool) -> Moments:
        """Moments of the features and the outputs, in blocks of rows."""
        row_bytes = 8 * (2 * self.points.shape[0] + math.prod(Y.shape[1:]))
        return reduce(
            add,
            (
                Moments.from_checked(
                    self._features_like(X[rows, :], Y),
                    Y[rows, ...],
                    None if w is None else w[rows],
                    response_grams,
                )
                for rows in row_blocks(X.shape[0], row_bytes, _BLOCK)
                if w is None or bool(namespace_of(w).any(w[rows] > 0))
            ),
        )

    def _features_like(self, X: Array, Y: Array) -> Array:
        """Features in the floating-point type of `Y`."""
        return namespace_of(Y).astype(self.features(X), Y.dtype, copy=False)

    def on_kernel_values(self, problem: Whitened) -> Whitened:
        """A problem in the features as one in the kernel values with the landmarks."""
        return replace(
            problem,
            lift=lambda M: (self.Q / self.s) @ problem.lift(M),
            mean_x=(self.Q * self.s) @ problem.mean_x,
        )


def draw_landmarks(X: Array, n_components: int, random_state: Any) -> Array:
    """Rows of `X`, drawn without replacement."""
    n = X.shape[0]
    if n_components >= n:
        if n_components > n:
            warnings.warn(
                f"n_components={n_components} is more than the {n} samples to draw landmarks from; "
                f"all of these are taken.",
                UserWarning,
                stacklevel=2,
            )
        return copy_of(X)
    rows = check_random_state(random_state).permutation(n)[:n_components]
    if is_numpy_array(X):
        return X[rows]
    return namespace_of(X).take(X, asarray_like(rows, X), axis=0)


def copy_of(X: Array) -> Array:
    """The same array in memory of its own."""
    return namespace_of(X).asarray(X, copy=True)
