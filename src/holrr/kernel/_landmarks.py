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

from ..core.namespace import Array, asarray_like, namespace_of, row_blocks, to_numpy
from ..core.spectral import Whitened
from ..data.arrays import check_inputs
from ..data.moments import Moments
from ._gram import KernelFunction, centred_gram
from ._problem import positive_part

__all__ = ["Landmarks", "about_centres", "beside", "choose_landmarks", "copy_of"]

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


def about_centres(moments: Moments, *, fit_intercept: bool, center_kernel: bool) -> Moments:
    """Moments of features and outputs about what is taken off each of them."""
    if not fit_intercept:
        return moments.about_zero()
    if center_kernel:
        return moments
    return moments.about(0.0 * moments.mean_x, moments.mean_y)


def choose_landmarks(
    X: Array, kernel: Any, n_components: int | None, landmarks: Any, random_state: Any
) -> Array:
    """The landmarks that were given, checked, or rows of `X`, drawn without replacement."""
    if kernel == "precomputed":
        raise ValueError(
            "n_components and landmarks need the inputs themselves, which kernel='precomputed' "
            "does not have; pass X and a kernel."
        )
    if landmarks is None:
        assert n_components is not None
        return _draw(X, int(n_components), random_state)
    points = copy_of(beside(check_inputs(landmarks), X))
    if points.shape[1] != X.shape[1]:
        raise ValueError(
            f"landmarks must have as many columns as X, {X.shape[1]}; got {points.shape[1]}."
        )
    if n_components not in (None, points.shape[0]):
        raise ValueError(
            f"n_components={n_components} disagrees with the {points.shape[0]} rows of landmarks; "
            f"leave one of the two out."
        )
    return points


def _draw(X: Array, n_components: int, random_state: Any) -> Array:
    n = X.shape[0]
    if n_components > n:
        warnings.warn(
            f"n_components={n_components} is more than the {n} samples to draw landmarks from; "
            f"all of these are taken.",
            UserWarning,
            stacklevel=2,
        )
    if n_components >= n:
        return copy_of(X)
    rows = check_random_state(random_state).permutation(n)[:n_components]
    return namespace_of(X).take(X, asarray_like(rows, X), axis=0)


def copy_of(X: Array) -> Array:
    """The same array in memory of its own."""
    return namespace_of(X).asarray(X, copy=True)


def beside(A: Array, X: Array) -> Array:
    """`A` in the array library and on the device of `X`."""
    same = type(A) is type(X) and getattr(A, "device", None) == getattr(X, "device", None)
    return A if same else asarray_like(to_numpy(A), X)
