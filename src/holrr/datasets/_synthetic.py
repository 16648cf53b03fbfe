"""Synthetic regression problems whose coefficients have a given multilinear rank."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

Array = NDArray[np.float64]


def make_tensor_regression(
    n_samples: int = 100,
    n_features: int = 10,
    output_shape: int | Sequence[int] = (10, 10),
    *,
    rank: int | Sequence[int] | None = None,
    kind: str = "linear",
    noise: float = 0.1,
    noise_unit: str = "std",
    snr: float | None = None,
    noise_kind: str = "isotropic",
    noise_mode: int = 1,
    n_noise_directions: int = 2,
    noise_ratio: float = 10.0,
    normalize: bool | None = None,
    return_coef: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[Array, ...]:
    """Generate a regression problem with vector inputs and tensor outputs.

    The outputs are ``Y = W x_0 f(x) + E``: the first mode of the coefficient tensor ``W`` is
    contracted with the input of each sample. ``W`` is a Gaussian core multiplied in every mode by
    a Gaussian factor. Neither is normalised, so the multilinear rank of ``W`` is `rank` with
    probability one. The inputs are standard normal.

    Parameters
    ----------
    n_samples : int, default=100
        Number of samples.
    n_features : int, default=10
        Number of inputs.
    output_shape : int or sequence of int, default=(10, 10)
        Shape ``(d1, ..., dp)`` of the outputs of a sample.
    rank : int, sequence of int or None, default=None
        Multilinear rank of ``W``, the input mode first. An int is the rank of every mode, capped at
        the size of the mode. None does not constrain the rank.
    kind : {"linear", "quadratic"}, default="linear"
        "linear" is ``f(x) = x``. "quadratic" is ``f(x) = x kron x``, the ``n_features**2`` products
        ``x_i x_j``.
    noise : float, default=0.1
        Level of the Gaussian noise, in the unit `noise_unit`.
    noise_unit : {"std", "variance"}, default="std"
        Whether `noise` is a standard deviation or a variance.
    snr : float or None, default=None
        Signal-to-noise ratio: the standard deviation of all entries of the noiseless outputs
        divided by the standard deviation of the noise. It replaces `noise` if given.
    noise_kind : {"isotropic", "anisotropic"}, default="isotropic"
        Anisotropic noise is strong in a few random directions of the mode `noise_mode`. Its
        variance, averaged over the outputs of a sample, is that of the isotropic noise.
    noise_mode : int, default=1
        Output mode, from 1 to p, in which anisotropic noise has its directions.
    n_noise_directions : int, default=2
        Number of strong directions of anisotropic noise.
    noise_ratio : float, default=10.0
        Standard deviation of anisotropic noise in the strong directions, divided by its standard
        deviation in all other directions.
    normalize : bool or None, default=None
        Whether to divide ``W``, and so the noiseless outputs, by the standard deviation of the
        noiseless outputs before noise is added. None means True for quadratic data and False for
        linear data.
    return_coef : bool, default=False
        Whether to also return ``W``.
    random_state : int, RandomState instance or None, default=None
        Seed of the random draws.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Inputs.
    Y : ndarray of shape (n_samples, d1, ..., dp)
        Outputs.
    coef : ndarray of shape (n_features, d1, ..., dp) or (n_features**2, d1, ..., dp)
        Coefficients ``W``. Only returned if `return_coef` is True.

    Notes
    -----
    For a training and a test set with the same coefficients, draw all samples in one call and
    split them, as below. Two calls with the same `random_state` have the same inputs; two calls
    with different values have different ``W``.

    The linear data of the paper [1]_ are ``n_features=10, output_shape=(10, 10, 10),
    rank=(6, 4, 4, 8)``, and the nonlinear data are ``kind="quadratic", n_features=5,
    output_shape=(10, 10, 10), rank=(5, 6, 4, 2)``. The paper writes the noise as ``N(0, 0.1)``,
    which denotes a variance, but its authors used a standard deviation of 0.1. The factors are not
    normalised, so linear signals are large, about 85 with these ranks, and the noise is small in
    comparison. Use `snr` for a problem with more noise.

    References
    ----------
    .. [1] G. Rabusseau and H. Kadri, "Low-Rank Regression with Tensor Responses", Advances in
       Neural Information Processing Systems 29, 2016.

    Examples
    --------
    >>> from sklearn.model_selection import train_test_split
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y, W = make_tensor_regression(
    ...     n_samples=150, n_features=6, output_shape=(4, 5), rank=(3, 2, 2), snr=1.0,
    ...     return_coef=True, random_state=0)
    >>> X.shape, Y.shape, W.shape
    ((150, 6), (150, 4, 5), (6, 4, 5))
    >>> X_train, X_test, Y_train, Y_test = train_test_split(X, Y, test_size=100, random_state=0)
    >>> Y_train.shape, Y_test.shape
    ((50, 4, 5), (100, 4, 5))
    """
    rng = check_random_state(random_state)
    check_sizes(n_samples=n_samples, n_features=n_features)
    d0 = n_features if _is_linear(kind) else n_features**2
    shape = (d0, *_check_output_shape(output_shape))
    # The coefficients are drawn first, so that they do not depend on the number of samples.
    W = _draw_coef(shape, _check_rank(rank, shape), rng)
    X = rng.standard_normal((n_samples, n_features))
    signal = np.tensordot(X if _is_linear(kind) else _kron_with_itself(X), W, axes=1)
    if not _is_linear(kind) if normalize is None else normalize:
        scale = signal.std()
        W, signal = W / scale, signal / scale
    std = _noise_std(signal, noise, noise_unit, snr)
    Y = signal + _draw_noise(
        signal.shape, std, noise_kind, noise_mode, n_noise_directions, noise_ratio, rng
    )
    return (X, Y, W) if return_coef else (X, Y)


def _is_linear(kind: str) -> bool:
    if kind not in ("linear", "quadratic"):
        raise ValueError(f"kind must be 'linear' or 'quadratic'; got kind={kind!r}.")
    return kind == "linear"


def _kron_with_itself(X: Array) -> Array:
    """Return ``x kron x`` of each row, of shape (n_samples, n_features**2)."""
    return (X[:, :, None] * X[:, None, :]).reshape(len(X), -1)


def _draw_coef(shape: tuple[int, ...], rank: tuple[int, ...], rng: np.random.RandomState) -> Array:
    """Return a Gaussian core of shape `rank` times a Gaussian factor in every mode."""
    W = rng.standard_normal(rank)
    for d, r in zip(shape, rank, strict=True):
        # Contracting the leading mode appends its product as the last mode: a contraction of all
        # modes restores the order.
        W = np.tensordot(W, rng.standard_normal((d, r)), axes=(0, 1))
    return W


def check_sizes(**sizes: int) -> None:
    """Raise a ValueError unless each size is a positive int."""
    for name, size in sizes.items():
        if not _is_size(size):
            raise ValueError(f"{name} must be an int of at least 1; got {name}={size!r}.")


def _is_size(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and bool(value >= 1)


def _check_output_shape(output_shape: int | Sequence[int]) -> tuple[int, ...]:
    shape = tuple(np.atleast_1d(np.asarray(output_shape, dtype=object)))
    if not shape or not all(_is_size(d) for d in shape):
        raise ValueError(
            "output_shape must be an int or a non-empty sequence of ints, each at least 1; "
            f"got output_shape={output_shape!r}."
        )
    return tuple(int(d) for d in shape)


def _check_rank(rank: int | Sequence[int] | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Check the multilinear rank of a tensor of this shape, and return one entry for each mode."""
    if rank is None:
        return _attainable(shape)
    if isinstance(rank, (int, np.integer)):
        check_sizes(rank=rank)
        return _attainable(tuple(min(int(rank), d) for d in shape))
    ranks = tuple(rank)
    if len(ranks) != len(shape) or not all(
        _is_size(r) and r <= d for r, d in zip(ranks, shape, strict=True)
    ):
        raise ValueError(
            f"rank must have {len(shape)} entries, each at least 1 and at most the size of its "
            f"mode of the coefficients, whose shape is {shape}; got rank={rank!r}."
        )
    if _attainable(ranks) != ranks:
        raise ValueError(
            "rank must have no entry above the product of the others, since no tensor has such a "
            f"multilinear rank; got rank={rank!r}, for which {_attainable(ranks)} is the nearest."
        )
    return ranks


def _attainable(ranks: tuple[int, ...]) -> tuple[int, ...]:
    """Return the nearest possible rank: no entry exceeds the product of the others."""
    return tuple(min(r, prod(ranks[:i] + ranks[i + 1 :])) for i, r in enumerate(ranks))


# ---------------------------------------------------------------- noise


def _noise_std(signal: Array, noise: float, noise_unit: str, snr: float | None) -> float:
    """Return the standard deviation of the noise, from `snr` or `noise`."""
    if snr is not None:
        if not snr > 0:
            raise ValueError(f"snr must be a positive number or None; got snr={snr!r}.")
        return float(signal.std() / snr)
    if not noise >= 0:
        raise ValueError(f"noise must be a number that is not negative; got noise={noise!r}.")
    if noise_unit == "std":
        return float(noise)
    if noise_unit == "variance":
        return float(np.sqrt(noise))
    raise ValueError(f"noise_unit must be 'std' or 'variance'; got noise_unit={noise_unit!r}.")


def _draw_noise(
    shape: tuple[int, ...],
    std: float,
    kind: str,
    mode: int,
    n_directions: int,
    ratio: float,
    rng: np.random.RandomState,
) -> Array:
    """Return Gaussian noise of root mean square `std`, white or strong in a few directions."""
    if kind == "isotropic":
        return std * rng.standard_normal(shape)
    if kind != "anisotropic":
        raise ValueError(
            f"noise_kind must be 'isotropic' or 'anisotropic'; got noise_kind={kind!r}."
        )
    _check_directions(shape, mode, n_directions, ratio)
    shaping = _shaping_matrix(shape[mode], n_directions, ratio, rng)
    white = rng.standard_normal(shape)
    return std * np.moveaxis(np.tensordot(white, shaping, axes=(mode, 0)), -1, mode)


def _check_directions(shape: tuple[int, ...], mode: int, n_directions: int, ratio: float) -> None:
    if not 1 <= mode < len(shape):
        raise ValueError(
            f"noise_mode must be an output mode, from 1 to {len(shape) - 1}; "
            f"got noise_mode={mode!r}."
        )
    if not 1 <= n_directions <= shape[mode]:
        raise ValueError(
            f"n_noise_directions must be from 1 to the size of mode {mode}, {shape[mode]}; "
            f"got n_noise_directions={n_directions!r}."
        )
    if not ratio > 0:
        raise ValueError(f"noise_ratio must be a positive number; got noise_ratio={ratio!r}.")


def _shaping_matrix(
    size: int, n_directions: int, ratio: float, rng: np.random.RandomState
) -> Array:
    """Return the symmetric root of a covariance with mean variance one and strong directions."""
    Q, _ = np.linalg.qr(rng.standard_normal((size, size)))
    scale = np.ones(size)
    scale[:n_directions] = ratio
    scale /= np.sqrt(np.mean(scale**2))
    return (Q * scale) @ Q.T
