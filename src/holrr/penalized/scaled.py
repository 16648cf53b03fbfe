"""Loss of both penalised methods in spectral coordinates, scaled to avoid overflow.

Both penalties are invariant under rotations of mode 0, and do not increase if mode 0 is projected
onto a subspace. The loss depends only on the coefficients in the row space of the inputs. A
minimiser therefore lies in this row space. With ``X = Q diag(s) P'`` and ``W = P V``, the unknown
is `V`, of shape (r, d1, ..., dp), and ``diag(s)^2`` replaces ``X'X``.
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
    """Loss ``||diag(s) V - T||^2 + rest`` in units in which `s` and `T` are at most one.

    Output modes of size one are left out, since their rank is always one. Targets of shape (n,) and
    (n, 1) therefore give the same problem.

    The coefficients are the solution `V` times ``unit_t / unit_s``.
    """

    s: Array  # singular values of the inputs, divided by the largest, (r,)
    T: Array  # ``Q'Y`` divided by its largest absolute entry, (r, d1, ..., dp)
    modes: tuple[int, ...]  # modes of the data that `T` has
    shape: tuple[int, ...]  # shape of `T` with all modes of the data
    rest: float  # part of ``||Y||^2`` that no coefficients explain, in the squared unit of `T`
    unit_s: float
    unit_t: float

    @classmethod
    def of(cls, problem: Spectral) -> ScaledProblem:
        """Return the scaled problem of a spectral problem."""
        xp = namespace_of(problem.T)
        unit_s = float(xp.max(problem.s))
        unit_t = float(xp.max(xp.abs(problem.T))) or 1.0
        shape = tuple(problem.T.shape)
        modes = tuple(i for i, d in enumerate(shape) if i == 0 or d > 1)
        T = xp.reshape(problem.T / unit_t, tuple(shape[i] for i in modes))
        rest = max(problem.syy / unit_t / unit_t - float(squared_norm(T)), 0.0)
        return cls(problem.s / unit_s, T, modes, shape, rest, unit_s, unit_t)

    def input_rank(self) -> int:
        """Return the numerical rank of the inputs."""
        return int(self.s.shape[0])

    def pick(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Select the values of the modes of `T` from values for all modes of the data."""
        return tuple(values[i] for i in self.modes)

    def restore(self, V: Tucker) -> Tucker:
        """Insert the modes of size one into a tensor with the modes of `T`."""
        sizes, factors = [1] * len(self.shape), [None] * len(self.shape)
        for mode, R, U in zip(self.modes, V.core.shape, V.factors, strict=True):
            sizes[mode], factors[mode] = R, U
        return Tucker(namespace_of(V.core).reshape(V.core, tuple(sizes)), tuple(factors))

    def rows(self, a: Array) -> Array:
        """Reshape a vector of shape (r,) so that it multiplies the rows of `T`."""
        return namespace_of(a).reshape(a, (-1, *[1] * (self.T.ndim - 1)))

    def squared_error(self, V: Array) -> float:
        """Return ``||diag(s) V - T||^2 + rest``."""
        return float(squared_norm(self.rows(self.s) * V - self.T)) + self.rest


def lift_spectral(V: Tucker, problem: Spectral) -> Tucker:
    """Convert spectral coordinates of mode 0 to coefficients."""
    U = V.factors[0]
    return Tucker(V.core, (problem.basis if U is None else problem.basis @ U, *V.factors[1:]))
