"""Kernel functions and their Gram matrices, centred and weighted in place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.metrics.pairwise import pairwise_kernels

from ..core.namespace import Array, is_numpy_array, namespace_of, symmetrise, to_numpy
from ..core.warn import warn
from ..data.arrays import take

__all__ = ["Gram", "KernelFunction", "centred_gram", "warn_of_lost_inputs"]

# If no entry of a Gram matrix is larger, the entries lose digits by underflow.
_SMALLEST = 1e-302

# Kernels whose Gram matrix is positive semidefinite for all data.
_POSITIVE = {"linear", "rbf", "laplacian", "cosine", "chi2"}
_POLYNOMIAL = {"poly", "polynomial"}
# Inputs are shifted before computing distances if their mean exceeds this multiple of their range.
_FAR = 100.0
# Limit of the trace of a Gram matrix of rounding errors, relative to the limit of an eigenvalue.
_FEW_ROUNDINGS = 4.0
_EVERY_LIBRARY = ("linear", "poly", "polynomial", "precomputed", "rbf", "sigmoid")


@dataclass(frozen=True, eq=False)
class KernelFunction:
    """A kernel with its parameters, for arrays of any array library.

    The name is the name of a pairwise kernel of scikit-learn, "precomputed", or a function of two
    samples. Parameters that a named kernel does not have are ignored.

    Examples
    --------
    >>> import numpy as np
    >>> KernelFunction("poly", {"degree": 2, "gamma": 1.0, "coef0": 1.0})(np.eye(2))
    array([[4., 1.],
           [1., 4.]])
    """

    name: str | Callable[..., float]
    params: dict[str, Any] = field(default_factory=dict)

    def __call__(self, X: Array, Z: Array | None = None) -> Array:
        """Return ``k(x, z)`` for all pairs of rows, of shape (len(X), len(Z)), in float64.

        Without `Z`, the pairs are those of the rows of `X`. The result is a new array.
        """
        if self.name == "precomputed":
            return _precomputed(X) if Z is None else _float64(X, copy=True)
        X, Z = _float64(X), None if Z is None else _float64(Z)
        if self.name == "rbf":
            X, Z = _shifted(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            if is_numpy_array(X):
                K = pairwise_kernels(X, Z, metric=self.name, filter_params=True, **self.params)
                K = np.ascontiguousarray(K, dtype=np.float64)
            else:
                K = self._on_device(X, X if Z is None else Z)
            return self._check_finite(K)

    def diagonal(self, X: Array) -> Array:
        """Return ``k(x, x)`` for each row, of shape (len(X),)."""
        X, (n, d) = _float64(X), X.shape
        xp = namespace_of(X)
        if self.name in ("rbf", "laplacian"):
            return xp.ones_like(X[:, 0])
        if self.name in ("linear", "sigmoid", *_POLYNOMIAL):
            return self._of_products(xp.sum(X * X, axis=1), d)
        # Kernels without a formula for the diagonal are computed for a few rows at a time.
        blocks = (X[i : min(i + 16, n), :] for i in range(0, n, 16))
        return xp.concat([xp.linalg.diagonal(self(block)) for block in blocks])

    @property
    def is_positive(self) -> bool:
        """Whether Gram matrices of this kernel are known to be positive semidefinite."""
        if self.name in _POLYNOMIAL:
            degree, gamma = self.params.get("degree", 3), self.params.get("gamma")
            positive_terms = self.params.get("coef0", 1) >= 0 and (gamma is None or gamma >= 0)
            return bool(degree == int(degree) and positive_terms)
        return self.name in _POSITIVE

    def precision(self, X: Array) -> float:
        """Return the relative rounding error of the entries of a Gram matrix of `X`."""
        single = self.name == "precomputed" and str(X.dtype).endswith("float32")
        return float(np.finfo(np.float32 if single else np.float64).eps)

    def _on_device(self, X: Array, Z: Array) -> Array:
        """Compute a kernel that needs only products of the inputs, on the device of the inputs."""
        if self.name not in _EVERY_LIBRARY:
            raise ValueError(
                f"kernel={self.name!r} needs NumPy arrays; got {type(X).__name__}. Convert X to "
                f"NumPy, or use one of the kernels {', '.join(_EVERY_LIBRARY)}."
            )
        xp, K = namespace_of(X), X @ Z.T
        if self.name != "rbf":
            return self._of_products(K, X.shape[1])
        squares = [xp.sum(A * A, axis=1) for A in (X, Z)]
        distance = xp.clip(squares[0][:, None] + squares[1][None, :] - 2 * K, 0.0, None)
        return xp.exp(-self._gamma(X.shape[1]) * distance)

    def _of_products(self, K: Array, n_features: int) -> Array:
        """Return the kernel values from the inner products of the inputs."""
        if self.name == "linear":
            return K
        K = self._gamma(n_features) * K + float(self.params.get("coef0", 1))
        if self.name == "sigmoid":
            return namespace_of(K).tanh(K)
        return K ** float(self.params.get("degree", 3))

    def _gamma(self, n_features: int) -> float:
        gamma = self.params.get("gamma")
        return 1.0 / n_features if gamma is None else float(gamma)

    def _check_finite(self, K: Array) -> Array:
        xp = namespace_of(K)
        finite = math.isfinite(float(xp.sum(K)))
        if not finite and not bool(xp.all(xp.isfinite(K))):
            raise ValueError(
                f"The Gram matrix of kernel={self.name!r} contains NaN or infinity, although X is "
                f"finite. Scale X, or change the kernel parameters {self.params}."
            )
        return K


def _float64(X: Array, copy: bool = False) -> Array:
    """Convert to float64 and, for NumPy, to C order: rounding must not depend on the layout."""
    xp = namespace_of(X)
    X = xp.asarray(xp.astype(X, xp.float64, copy=False), copy=copy or None)
    return np.ascontiguousarray(X) if is_numpy_array(X) else X


def _shifted(X: Array, Z: Array | None) -> tuple[Array, Array | None]:
    """Subtract the mean of `Z` (or `X`) from the inputs if it is far larger than their range.

    The shift does not change distances. It avoids cancellation, since distances are computed as
    differences of squares.
    """
    xp, among = namespace_of(X), X if Z is None else Z
    centre = xp.mean(among, axis=0)
    spread = xp.max(xp.max(among, axis=0) - xp.min(among, axis=0))
    if not bool(xp.max(xp.abs(centre)) > _FAR * spread):
        return X, Z
    return X - centre, None if Z is None else Z - centre


def _precomputed(K: Array) -> Array:
    """Check a Gram matrix that was passed as `X`, and return a symmetric copy."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs a Gram matrix of shape (n_samples, n_samples) as X; "
            f"got shape {tuple(K.shape)}."
        )
    xp = namespace_of(K)
    rtol = 1e-4 if K.dtype == xp.float32 else 1e-8
    K = xp.astype(K, xp.float64, copy=False)
    gap, scale = float(xp.max(xp.abs(K - K.T))), float(xp.max(xp.abs(K)))
    if gap > rtol * scale:
        raise ValueError(
            f"kernel='precomputed' needs a symmetric Gram matrix as X; K[i, j] and K[j, i] differ "
            f"by up to {gap:.3g}, and the largest entry is {scale:.3g}."
        )
    return symmetrise(K)


# ---------------------------------------------------------------- centring and weights


@dataclass(frozen=True, eq=False)
class Gram:
    """Gram matrix of centred features, multiplied by the roots of the weights on both sides."""

    K: Array  # (n_samples, n_samples)
    mean: Array  # ``k(mean feature, x_n)``, (n_samples,); zero if the features are not centred
    scale: float  # largest entry before centring, which determines the rounding of all entries
    noise: float  # limit below which eigenvalues are rounding errors
    positive: bool  # whether the kernel is positive semidefinite: negative eigenvalues are rounding
    root: Array | None  # square roots of the weights, (n_samples,)
    centred: bool

    def kept(self) -> dict[str, Array | None]:
        """Return the entries of `Spectral.more` that centre the features of other samples."""
        return {"sample_root": self.root, "centred": self.centred}

    def as_coefficients(self, M: Array) -> Array:
        """Convert dual coefficients of weighted samples to those of the samples, (n_samples, k).

        Dual coefficients of centred features add up to zero. The rounding error of the sum is
        subtracted, since predictions would multiply it by the mean.
        """
        xp, root = namespace_of(M), self.root
        if root is None:
            return M - xp.mean(M, axis=0) if self.centred else M
        if self.centred:
            M = M - root[:, None] * ((root @ M) / xp.sum(root * root))
        return M * root[:, None]


def centred_gram(
    kernel: KernelFunction, X: Array, w: Array | None = None, *, center: bool = False
) -> Gram:
    """Return the Gram matrix of the rows of `X` about the weighted mean of their features.

    For a precomputed kernel, `X` is the Gram matrix.
    """
    K = kernel(X)
    xp, n = namespace_of(K), K.shape[0]
    sizes = xp.abs(xp.linalg.diagonal(K))
    scale = float(xp.max(sizes if w is None else sizes * w))  # ignores samples without weight
    mean = xp.zeros_like(K[0, :])
    if center:
        mean = xp.mean(K, axis=0) if w is None else (w @ K) / xp.sum(w)
        grand = xp.mean(mean) if w is None else (w @ mean) / xp.sum(w)
        shift = mean - 0.5 * grand  # each side subtracts half of the grand mean
        K -= shift[:, None]
        K -= shift[None, :]
    if not scale > _SMALLEST:
        _check_not_small(kernel, X, K, scale)
    root = None if w is None else xp.sqrt(w)
    if root is not None:
        K *= root[:, None]
        K *= root[None, :]
    noise = n * kernel.precision(X) * scale
    return Gram(K, mean, scale, noise, kernel.is_positive, root, center)


def _check_not_small(kernel: KernelFunction, X: Array, K: Array, scale: float) -> None:
    """Raise an error if the diagonal of a Gram matrix is zero although the inputs are not."""
    xp = namespace_of(X)
    largest = float(xp.max(xp.abs(X)))
    if largest > 0 and float(xp.max(xp.abs(K))) > _SMALLEST:
        raise ValueError(
            f"kernel={kernel.name!r} is not positive semidefinite: it is zero for each sample with "
            f"itself, but not for pairs of samples. Use another kernel."
        )
    if largest > 0:
        raise ValueError(
            f"X is too small for kernel={kernel.name!r}: the entries of X are at most "
            f"{largest:.1e}, and the entries of the Gram matrix are at most {scale:.1e}, which is "
            f"below the range of floating-point numbers. Multiply X by a number such as "
            f"{1 / largest:.0e}."
        )


def warn_of_lost_inputs(
    kernel: KernelFunction, X: Array, w: Array | None, G: Gram, n_roundings: float = 1.0
) -> None:
    """Warn if a centred Gram matrix has only rounding errors although the inputs vary.

    Parameters
    ----------
    kernel : KernelFunction
        Kernel.
    X : array of shape (n_samples, n_features)
        Inputs.
    w : array of shape (n_samples,) or None
        Weights of the samples.
    G : Gram
        Gram matrix of these inputs from `centred_gram`.
    n_roundings : float
        Multiple of ``G.noise`` that an eigenvalue must exceed to be kept.
    """
    spread = float(namespace_of(G.K).linalg.trace(G.K))
    if not G.centred or spread > _FEW_ROUNDINGS * n_roundings * G.noise:
        return
    rows = np.arange(X.shape[0]) if w is None else np.flatnonzero(to_numpy(w) > 0)
    some = to_numpy(take(X, rows))
    if (some == some[0]).all():
        return
    warn(
        f"kernel={kernel.name!r} has the same value for all pairs of samples, up to rounding: its "
        f"values are as large as {G.scale:.1e}, and their deviations from the mean are rounding "
        f"errors. The predictions are therefore constant. Subtract the mean of X (and scale X), or "
        f"change the kernel parameters."
    )
