"""The loss of both methods in spectral coordinates, in units in which nothing overflows.

Both penalties are invariant under rotations of mode 0 and do not grow when mode 0 is projected
onto a subspace, while the loss sees the coefficients on the row space of the inputs only. So a
minimiser lies in that row space, and with ``X = Q diag(s) P'`` and ``W = P V`` the problem is one
in `V`, of shape (r, d1, ..., dp), with the diagonal matrix ``diag(s)^2`` in place of ``X'X``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..core.namespace import Array, namespace_of, squared_norm
from ..core.spectral import Spectral
from ..core.tensor import Tucker

__all__ = ["ScaledProblem", "lift_spectral"]


@dataclass(frozen=True, eq=False)
class ScaledProblem:
    """The loss ``||diag(s) V - T||^2 + rest`` in units in which `s` and `T` are at most one.

    Output modes of size one are left out: they have no rank to lower and nothing to share. So
    targets of shape (n,) and (n, 1) make the same problem.

    Coefficients are those found here times ``unit_t / unit_s``.
    """

    s: Array  # singular values of the inputs over the largest of them, (r,)
    T: Array  # ``Q'Y`` over its entry of largest modulus, (r, d1, ..., dp)
    modes: tuple[int, ...]  # the modes of the data that those of `T` are
    shape: tuple[int, ...]  # what that of `T` is with all the modes of the data
    rest: float  # what no coefficients explain of ``||Y||^2``, in the square of the unit of `T`
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


def lift_spectral(V: Tucker, problem: Spectral) -> Tucker:
    """From spectral coordinates of mode 0 to coefficients."""
    U = V.factors[0]
    return Tucker(V.core, (problem.basis if U is None else problem.basis @ U, *V.factors[1:]))
