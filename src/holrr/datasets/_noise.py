"""Noise for synthetic tensor responses: its level and its shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def noise_std(signal: Array, noise: float, noise_unit: str, snr: float | None) -> float:
    """Standard deviation of the noise from whichever of the two descriptions was given."""
    if snr is not None:
        if not snr > 0:
            raise ValueError(f"snr must be a positive number or None, got snr={snr!r}.")
        return float(signal.std() / snr)
    if not noise >= 0:
        raise ValueError(f"noise must be a number that is not negative, got noise={noise!r}.")
    if noise_unit == "std":
        return float(noise)
    if noise_unit == "variance":
        return float(np.sqrt(noise))
    raise ValueError(f"noise_unit must be 'std' or 'variance', got noise_unit={noise_unit!r}.")


def draw_noise(
    shape: tuple[int, ...],
    std: float,
    kind: str,
    mode: int,
    n_directions: int,
    ratio: float,
    rng: np.random.RandomState,
) -> Array:
    """Gaussian noise of root mean square `std`, white or strong in a few directions of a mode."""
    if kind == "isotropic":
        return std * rng.standard_normal(shape)
    if kind != "anisotropic":
        raise ValueError(
            f"noise_kind must be 'isotropic' or 'anisotropic', got noise_kind={kind!r}."
        )
    _check_directions(shape, mode, n_directions, ratio)
    shaping = _shaping_matrix(shape[mode], n_directions, ratio, rng)
    white = rng.standard_normal(shape)
    return std * np.moveaxis(np.tensordot(white, shaping, axes=(mode, 0)), -1, mode)


def _check_directions(shape: tuple[int, ...], mode: int, n_directions: int, ratio: float) -> None:
    if not 1 <= mode < len(shape):
        raise ValueError(
            f"noise_mode must name an output mode, from 1 to {len(shape) - 1}, "
            f"got noise_mode={mode!r}."
        )
    if not 1 <= n_directions <= shape[mode]:
        raise ValueError(
            f"n_noise_directions must be from 1 to the size of mode {mode}, {shape[mode]}, "
            f"got n_noise_directions={n_directions!r}."
        )
    if not ratio > 0:
        raise ValueError(f"noise_ratio must be a positive number, got noise_ratio={ratio!r}.")


def _shaping_matrix(
    size: int, n_directions: int, ratio: float, rng: np.random.RandomState
) -> Array:
    """Symmetric root of a covariance of mean variance one, strong in random directions."""
    Q, _ = np.linalg.qr(rng.standard_normal((size, size)))
    scale = np.ones(size)
    scale[:n_directions] = ratio
    scale /= np.sqrt(np.mean(scale**2))
    return (Q * scale) @ Q.T
