"""What both methods share: a spectral form of the data, in units in which nothing overflows.

Both penalties are invariant under rotations of mode 0 and do not grow when mode 0 is projected
onto a subspace, while the loss sees the coefficients on the row space of the inputs only. So a
minimiser lies in that row space, and with ``X = Q diag(s) P'`` and ``W = P V`` the problem is one
in `V`, of shape (r, d1, ..., dp), with the diagonal matrix ``diag(s)^2`` in place of ``X'X``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.utils._param_validation import StrOptions

from ..core.namespace import Array, namespace_of, squared_norm
from ..core.samples import spectral_from_samples
from ..core.spectral import Spectral, spectral_from_moments
from ..core.tucker import Tucker
from ..data.moments import Moments
from ..data.samples import Samples
from ..data.source import Source
from ..data.wide import spectral_from_source
from ..linear.base import LinearTensorRegressor

__all__ = ["ScaledProblem", "SpectralRegressor", "lift"]


@dataclass(frozen=True, eq=False)
class ScaledProblem:
    """The loss ``||diag(s) V - T||^2 + rest`` in units in which `s` and `T` are at most one.

    Output modes of size one are left out: they have no rank to lower and nothing to share. So
    targets of shape (n,) and (n, 1) make the same problem.

    Parameters
    ----------
    s : array of shape (r,)
        Singular values of the inputs over the largest of them.
    T : array of shape (r, d1, ..., dp)
        ``Q'Y`` over its entry of largest modulus.
    modes : tuple of int
        The modes of the data that those of `T` are.
    shape : tuple of int
        Shape that `T` has with all the modes of the data.
    rest : float
        What no coefficients explain of ``||Y||^2``, in the square of the unit of `T`.
    unit_s, unit_t : float
        The units: coefficients are those found here times ``unit_t / unit_s``.
    """

    s: Array
    T: Array
    modes: tuple[int, ...]
    shape: tuple[int, ...]
    rest: float
    unit_s: float
    unit_t: float

    @classmethod
    def of(cls, problem: Spectral) -> ScaledProblem:
        """The problem in its own units."""
        xp = namespace_of(problem.T)
        unit_s = float(xp.max(problem.s))
        unit_t = float(xp.max(xp.abs(problem.T))) or 1.0
        shape = tuple(problem.T.shape)
        modes = tuple(i for i, d in enumerate(shape) if i == 0 or d > 1)
        T = xp.reshape(problem.T / unit_t, tuple(shape[i] for i in modes))
        rest = max(problem.syy / unit_t / unit_t - float(squared_norm(T)), 0.0)
        return cls(problem.s / unit_s, T, modes, shape, rest, unit_s, unit_t)

    def pick(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Of values for all the modes of the data those for the modes of `T`."""
        return tuple(values[i] for i in self.modes)

    def restore(self, V: Tucker) -> Tucker:
        """A tensor like `T` with the modes of size one put back."""
        sizes, factors = [1] * len(self.shape), [None] * len(self.shape)
        for mode, R, U in zip(self.modes, V.core.shape, V.factors, strict=True):
            sizes[mode], factors[mode] = R, U
        return Tucker(namespace_of(V.core).reshape(V.core, tuple(sizes)), tuple(factors))

    def rows(self, a: Array) -> Array:
        """A vector of shape (r,) shaped so that it multiplies the rows of `T`."""
        return namespace_of(a).reshape(a, (-1, *[1] * (self.T.ndim - 1)))

    def squared_error(self, V: Array) -> float:
        """``||diag(s) V - T||^2 + rest``."""
        return float(squared_norm(self.rows(self.s) * V - self.T)) + self.rest


def lift(V: Tucker, problem: Spectral) -> Tucker:
    """From spectral coordinates of mode 0 to coefficients."""
    U = V.factors[0]
    return Tucker(V.core, (problem.basis if U is None else problem.basis @ U, *V.factors[1:]))


class SpectralRegressor(LinearTensorRegressor):
    """Linear estimators that are solved by iteration in spectral coordinates."""

    _parameter_constraints: dict = {  # noqa: RUF012
        "verbose": ["verbose", StrOptions({"rich"})],
    }

    alpha = 0.0
    rank_: tuple[int, ...]

    def _problem_of_samples(self, data: Samples) -> Spectral:
        problem = spectral_from_samples(
            data.X,
            data.Y,
            data.w,
            min_alpha=data.units.alpha(float(self.alpha)),
            fit_intercept=self.fit_intercept,
        )
        return replace(problem, units=data.units)

    def _problem_of_source(self, source: Source) -> Spectral:
        return spectral_from_source(
            source, min_alpha=float(self.alpha), fit_intercept=self.fit_intercept
        )

    def _problem_of_moments(self, moments: Moments) -> Spectral:
        centred = moments.centred(self.fit_intercept)
        return spectral_from_moments(centred, warn_below=float(self.alpha))
