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

# A Gram matrix without larger entries has lost their digits, or will as soon as it is multiplied.
_SMALLEST = 1e-302

# Kernels whose Gram matrix has no negative eigenvalue, whatever the data.
_POSITIVE = {"linear", "rbf", "laplacian", "cosine", "chi2"}
_POLYNOMIAL = {"poly", "polynomial"}
# Inputs whose mean is so many times their spread are shifted before distances are computed.
_FAR = 100.0
# A trace of so many times what a single eigenvalue has to exceed.
_FEW_ROUNDINGS = 4.0
_EVERY_LIBRARY = ("linear", "poly", "polynomial", "precomputed", "rbf", "sigmoid")


@dataclass(frozen=True, eq=False)
class KernelFunction:
    """A kernel with its parameters, for arrays of any library.

    Its name is one of scikit-learn's pairwise kernels, "precomputed", or a function of two samples.
    Parameters that a named kernel does not have are ignored.

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
        """``k(x, z)`` for all rows, of shape (len(X), len(Z)), in float64 and in memory of its own.

        Without `Z`, of the rows of `X` with each other.
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
        """``k(x, x)`` for each row; of kernels without a formula, a few rows at a time."""
        X, (n, d) = _float64(X), X.shape
        xp = namespace_of(X)
        if self.name in ("rbf", "laplacian"):
            return xp.ones_like(X[:, 0])
        if self.name in ("linear", "sigmoid", *_POLYNOMIAL):
            return self._of_products(xp.sum(X * X, axis=1), d)
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
        """Relative rounding error of the entries of a Gram matrix of `X`."""
        single = self.name == "precomputed" and str(X.dtype).endswith("float32")
        return float(np.finfo(np.float32 if single else np.float64).eps)

    def _on_device(self, X: Array, Z: Array) -> Array:
        """The kernels that need no more than products of the inputs, where the inputs live."""
        if self.name not in _EVERY_LIBRARY:
            raise ValueError(
                f"kernel={self.name!r} is computed for NumPy arrays only; got {type(X).__name__}. "
                f"Convert X to NumPy, or use one of {', '.join(_EVERY_LIBRARY)}."
            )
        xp, K = namespace_of(X), X @ Z.T
        if self.name != "rbf":
            return self._of_products(K, X.shape[1])
        squares = [xp.sum(A * A, axis=1) for A in (X, Z)]
        distance = xp.clip(squares[0][:, None] + squares[1][None, :] - 2 * K, 0.0, None)
        return xp.exp(-self._gamma(X.shape[1]) * distance)

    def _of_products(self, K: Array, n_features: int) -> Array:
        """The kernel from the inner products of the inputs."""
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
                f"the Gram matrix of kernel={self.name!r} contains NaN or infinity, though the "
                f"inputs are finite: scale X, or choose other parameters than {self.params}."
            )
        return K


def _float64(X: Array, copy: bool = False) -> Array:
    """In float64, and for NumPy in one order, so that rounding does not depend on the layout."""
    xp = namespace_of(X)
    X = xp.asarray(xp.astype(X, xp.float64, copy=False), copy=copy or None)
    return np.ascontiguousarray(X) if is_numpy_array(X) else X


def _shifted(X: Array, Z: Array | None) -> tuple[Array, Array | None]:
    """Inputs less the mean of `Z`, or of `X`, where this is far larger than their spread.

    Distances stay as they are, but are found as differences of squares, which would cancel.
    """
    xp, among = namespace_of(X), X if Z is None else Z
    centre = xp.mean(among, axis=0)
    spread = xp.max(xp.max(among, axis=0) - xp.min(among, axis=0))
    if not bool(xp.max(xp.abs(centre)) > _FAR * spread):
        return X, Z
    return X - centre, None if Z is None else Z - centre


def _precomputed(K: Array) -> Array:
    """A Gram matrix that was passed as `X`, checked, as a symmetric copy."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"kernel='precomputed' needs a square Gram matrix as X, (n_samples, n_samples); "
            f"got shape {tuple(K.shape)}."
        )
    xp = namespace_of(K)
    rtol = 1e-4 if K.dtype == xp.float32 else 1e-8
    K = xp.astype(K, xp.float64, copy=False)
    gap, scale = float(xp.max(xp.abs(K - K.T))), float(xp.max(xp.abs(K)))
    if gap > rtol * scale:
        raise ValueError(
            f"kernel='precomputed' needs a symmetric Gram matrix as X; entries that should be "
            f"equal differ by up to {gap:.3g}, where the largest entry is {scale:.3g}."
        )
    return symmetrise(K)


# ---------------------------------------------------------------- centring and weights


@dataclass(frozen=True, eq=False)
class Gram:
    """A Gram matrix of centred features, times the roots of the weights on both sides."""

    K: Array  # (n_samples, n_samples)
    mean: Array  # ``k(mean feature, x_n)``, (n_samples,); zero where the features are not centred
    scale: float  # largest entry before centring: none is more exact than this much rounded
    noise: float  # eigenvalues below this are rounding
    positive: bool  # whether the kernel is known to be so: negative eigenvalues are rounding, too
    root: Array | None  # roots of the weights, (n_samples,)
    centred: bool

    def kept(self) -> dict[str, Array | None]:
        """What the centred features of other samples take, beside `mean`."""
        return {"sample_root": self.root, "centred": self.centred}

    def as_coefficients(self, M: Array) -> Array:
        """Dual coefficients of the samples, (n_samples, k), from those of the weighted samples.

        Those of centred features add up to zero: rounding is taken off, since it would be
        multiplied by the mean.
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
    """The Gram matrix of the rows of `X`, about the weighted mean of their features.

    A precomputed kernel has the Gram matrix itself as `X`.
    """
    K = kernel(X)
    xp, n = namespace_of(K), K.shape[0]
    sizes = xp.abs(xp.linalg.diagonal(K))
    scale = float(xp.max(sizes if w is None else sizes * w))  # without weight, without a say
    mean = xp.zeros_like(K[0, :])
    if center:
        mean = xp.mean(K, axis=0) if w is None else (w @ K) / xp.sum(w)
        grand = xp.mean(mean) if w is None else (w @ mean) / xp.sum(w)
        shift = mean - 0.5 * grand  # both sides take off half of the grand mean's share
        K -= shift[:, None]
        K -= shift[None, :]
    if not scale > _SMALLEST:
        _check_not_small(kernel, X, scale)
    root = None if w is None else xp.sqrt(w)
    if root is not None:
        K *= root[:, None]
        K *= root[None, :]
    noise = n * kernel.precision(X) * scale
    return Gram(K, mean, scale, noise, kernel.is_positive, root, center)


def _check_not_small(kernel: KernelFunction, X: Array, scale: float) -> None:
    """Raise where the entries of a Gram matrix have vanished, though the inputs are not zero."""
    largest = float(namespace_of(X).max(namespace_of(X).abs(X)))
    if largest > 0:
        raise ValueError(
            f"X is too small for kernel={kernel.name!r}: the entries of X are at most "
            f"{largest:.1e}, and those of the Gram matrix at most {scale:.1e}, which is beyond the "
            f"range of floating-point numbers. Multiply X by a number such as {1 / largest:.0e}."
        )


def warn_of_lost_inputs(
    kernel: KernelFunction, X: Array, w: Array | None, G: Gram, n_roundings: float = 1.0
) -> None:
    """Warn where a centred Gram matrix holds rounding only, though the inputs vary.

    Parameters
    ----------
    kernel : KernelFunction
    X : array of shape (n_samples, n_features)
    w : array of shape (n_samples,) or None
    G : Gram
        Of these inputs, as `centred_gram` returns it.
    n_roundings : float
        How many times ``G.noise`` an eigenvalue has to exceed to be kept.
    """
    spread = float(namespace_of(G.K).linalg.trace(G.K))
    if not G.centred or spread > _FEW_ROUNDINGS * n_roundings * G.noise:
        return
    rows = np.arange(X.shape[0]) if w is None else np.flatnonzero(to_numpy(w) > 0)
    some = to_numpy(take(X, rows))
    if (some == some[0]).all():
        return
    warn(
        f"kernel={kernel.name!r} does not tell these samples apart: its values are as large as "
        f"{G.scale:.1e}, and what is left about their mean is rounding, so that predictions are "
        f"constant. Subtract the mean of X (and scale X), or choose other parameters of the kernel."
    )
