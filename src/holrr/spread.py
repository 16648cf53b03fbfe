"""How far observations lie from predictions: the noise of outputs, the spread of samples."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from .core.hat import leverage, noise_level
from .core.namespace import Array, asarray_like, beside, namespace_of, to_numpy
from .core.spectral import Whitened
from .core.tucker import Tucker
from .data.source import is_dask

__all__ = ["Spread", "no_intervals", "scalar_if_0d"]


def _no_intervals(self: Any) -> Any:
    """Held-out residuals are what intervals are made of."""
    raise AttributeError(
        f"{type(self).__name__} has no predict_interval, which needs the held-out residuals of a "
        f"search among ridge or low-rank models: use HOLRRCV, LRRCV, RLSCV or their kernel forms. "
        f"predict(X, return_std=True) gives the spread of a single fit, where it is known."
    )


no_intervals: Any = property(_no_intervals)


class Spread:
    """What an estimator knows of its noise, and what it predicts of the spread of observations."""

    tucker_: Tucker
    fit_intercept: bool
    # Numbers and arrays that `leverage` needs.
    _fitted_hat: dict[str, Any]
    # The noise, or what it follows from.
    _fitted_noise: Any

    predict_interval = no_intervals

    _map: Callable[[Array], Array]
    _predict_array: Callable[[Array], Array]
    _threads_for: Callable[[int], AbstractContextManager[None]]

    def _predict_pair(self, X: Array) -> tuple[Array, Array]:
        """Predictions and standard deviations without labels, for checked inputs or Dask."""
        self._check_spread()
        if is_dask(X):
            from .data.dask import map_lazily

            shape = self.tucker_.shape[1:]
            return self._predict_array(X), map_lazily(self, X, "_std_array", shape)
        with self._threads_for(X.shape[0]):
            mean, spread = self._predict_with_spread(X)
            return mean, self._std(spread, mean)

    def _std_array(self, X: Array) -> Array:
        return self._predict_pair(X)[1]

    def _predict_with_spread(self, X: Array) -> tuple[Array, Array]:
        """Predictions, and by how much more than the noise observations spread about them, (n,)."""
        F = self._features(X)
        return self._map(F), self._spread_of(X, F)

    def _features(self, X: Array) -> Array:
        """What the model is linear in."""
        return X

    def _spread_of(self, X: Array, F: Array) -> Array:
        """The spread of samples, (n,), from inputs and features."""
        return self._spread(F)

    def _spread(self, F: Array, norms: Array | None = None) -> Array:
        """``sqrt(1 + 1/n + h(x))`` of each row; arguments of `leverage`, not centred."""
        xp, hat = namespace_of(F), self._fitted_hat
        F = xp.astype(F, xp.float64, copy=False)
        F = (F if hat["unit"] == 1.0 else F / hat["unit"]) - beside(hat["mean"], F)
        h = hat["share"] * leverage(hat, F, norms)
        return xp.sqrt(1.0 + (1.0 / hat["weight"] if hat["intercept"] else 0.0) + h)

    def _std(self, spread: Array, like: Array) -> Array:
        """The noise times the spread of each sample, in the type of the predictions `like`."""
        xp, noise = namespace_of(like), asarray_like(to_numpy(self.noise_), like, dtype=like.dtype)
        spread = xp.astype(spread, like.dtype, copy=False)
        return xp.reshape(spread, (-1, *(1,) * noise.ndim)) * noise

    def _check_spread(self) -> None:
        """Whether there is a noise level to multiply."""
        if hasattr(self, "noise_"):
            return
        why = (
            "the moments that it was fitted to were gathered by an older version, without the sums "
            "of squares of each output: gather them again."
            if hasattr(self, "_fitted_hat")
            else "this estimator has no formula for it, or comes from a file of an older version: "
            "use a ridge or low-rank estimator, or fit again."
        )
        raise ValueError(f"return_std needs the noise of each output, which is not known; {why}")

    def _set_spread(self, problem: Whitened, V: Tucker, kept: float) -> None:
        """Set the noise of each output, where it is known, and what its spread needs."""
        hat, units = problem.hat, problem.units
        assert hat is not None
        rss, share = hat.residual_squares(problem.Z, V), kept * hat.share(V)
        self._fitted_hat = {**hat.kept(units.x, share), "intercept": self.fit_intercept}
        if rss is not None:
            xp = namespace_of(rss)
            nan = xp.full_like(rss, math.nan)
            root = xp.where(xp.isnan(problem.mean_y), nan, units.y * xp.sqrt(rss))
            self._fitted_noise = {"root": root, "weight": hat.weight}

    @property
    def noise_(self) -> Any:
        """Standard deviation of the noise of each output."""
        if "_fitted_noise" not in vars(self):
            raise AttributeError(
                f"this {type(self).__name__} does not know the noise of its outputs"
            )
        if isinstance(self._fitted_noise, dict):  # found out when asked for
            self._fitted_noise = self._noise()
        return self._fitted_noise

    @noise_.setter
    def noise_(self, noise: Any) -> None:
        self._fitted_noise = noise

    def _noise(self) -> Any:
        """The noise, of which a fit has kept the residuals: degrees of freedom can cost a fit."""
        core = self.tucker_.core  # which may lie elsewhere than a small problem was solved
        noise = beside(noise_level(self._fitted_hat, **self._fitted_noise), core)
        return scalar_if_0d(namespace_of(noise).astype(noise, core.dtype))


def scalar_if_0d(a: Array) -> Any:
    """Scalar targets have a scalar intercept and noise, as in scikit-learn."""
    return float(a) if a.ndim == 0 else a
