"""The structures that coefficients can have: full rank, low matrix rank, low multilinear rank.

A structure is a record with the rank that the user asked for and one operation: it approximates the
whitened tensor `Z` of a problem by a tensor `V` of that rank. Linear models, kernels, searches and
fits with missing outputs all use the same records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from .approximate import Approximation, RankSpec, bases_from_grams, hooi, hosvd
from .spectral import Whitened

__all__ = ["FullRank", "MatrixRank", "MultilinearRank", "Structure", "check_matrix_rank"]
__all__ += ["check_rank"]


@dataclass(frozen=True)
class FullRank:
    """All tensors: ridge regression."""

    needs_response_grams = False

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """The rank of each mode that is reduced: none."""
        return ()

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Number of input directions of Z that `approximate` reads; None for all."""
        return None

    def approximate(self, problem: Whitened, n_inputs: int, rotate: bool = False) -> Approximation:
        """`Z` itself."""
        return hosvd(problem.Z, problem.Z.shape, modes=())


@dataclass(frozen=True)
class MatrixRank:
    """Tensors whose unfolding, inputs by all outputs, has a low rank.

    Parameters
    ----------
    rank : int, float or None
        As in `check_matrix_rank`.
    max_directions : int, optional
        Largest number of input directions, where it is below the number of inputs.
    """

    rank: Any = None
    max_directions: int | None = None

    needs_response_grams = False

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """The rank of the input mode, checked."""
        return (check_matrix_rank(self.rank, _directions(self, n_inputs)),)

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Number of input directions of Z that `approximate` reads; None for all."""
        (rank,) = self.check(n_inputs, output_shape)
        return None if isinstance(rank, float) else rank

    def approximate(self, problem: Whitened, n_inputs: int, rotate: bool = False) -> Approximation:
        """The nearest tensor to Z of this rank (Eckart and Young).

        Parameters
        ----------
        problem : Whitened
        n_inputs : int
            Number of inputs, which bounds the rank.
        rotate : bool
            Whether modes that are kept in full are expressed in leading directions, too.
        """
        outputs = problem.Z.shape[1:]
        rank = (*self.check(n_inputs, outputs), *outputs)
        return _hosvd(problem, rank, modes=(0,), rotate=rotate)

    def update(self, problem: Whitened, before: Approximation | None) -> Approximation:
        """An approximation that is no farther from Z than the bases of `before` allow."""
        return self.approximate(problem, problem.Z.shape[0])


@dataclass(frozen=True)
class MultilinearRank:
    """Tensors of low multilinear rank: Algorithm 1 of the HOLRR paper and its variants.

    Parameters
    ----------
    rank : int, float, tuple or None
        As in `check_rank`.
    subspaces : {"fitted", "response"}
        Where the output subspaces come from: Z, or the outputs themselves.
    refine : bool
        Whether the truncated HOSVD is refined by HOOI, for at most `max_iter` rounds.
    max_iter, tol
        As in `hooi`.
    max_directions : int, optional
        Largest number of input directions, where it is below the number of inputs.
    """

    rank: Any = None
    subspaces: str = "fitted"
    refine: bool = False
    max_iter: int = 100
    tol: float = 1e-6
    max_directions: int | None = None

    @property
    def needs_response_grams(self) -> bool:
        """Whether the Gram matrices of the raw outputs are needed."""
        return self.subspaces == "response"

    def check(self, n_inputs: int, output_shape: Sequence[int]) -> tuple[RankSpec, ...]:
        """The rank of each mode, checked, input mode first."""
        first, *others = check_rank(self.rank, (n_inputs, *output_shape))
        if not isinstance(first, float):
            first = min(first, _directions(self, n_inputs))
        return (first, *others)

    def n_leading(self, n_inputs: int, output_shape: Sequence[int]) -> int | None:
        """Number of input directions of Z that `approximate` reads; None for all."""
        rank = self.check(n_inputs, output_shape)[0]
        return None if self.refine or isinstance(rank, float) else rank

    def approximate(self, problem: Whitened, n_inputs: int, rotate: bool = False) -> Approximation:
        """The truncated HOSVD of Z, refined where that is asked for.

        Parameters
        ----------
        problem : Whitened
        n_inputs : int
            Number of inputs, which bounds the rank of the input mode.
        rotate : bool
            Whether modes that are kept in full are expressed in leading directions, too.
        """
        bases = None
        if self.subspaces == "response":
            assert problem.response_grams is not None
            bases = bases_from_grams(problem.response_grams)
        rank = self.check(n_inputs, problem.Z.shape[1:])
        found = _hosvd(problem, rank, output_bases=bases, rotate=rotate)
        if not self.refine:
            return found
        return hooi(
            problem.Z, found, residual=problem.residual, max_iter=self.max_iter, tol=self.tol
        )

    def update(self, problem: Whitened, before: Approximation | None) -> Approximation:
        """A truncated HOSVD first, then one sweep of HOOI from the bases of `before`."""
        if before is None:
            return hosvd(problem.Z, self.rank, input_rank=problem.input_rank)
        # The certificate of `before` belongs to another Z.
        start = replace(before, error=math.inf, tails=(0.0,) * problem.Z.ndim)
        return hooi(problem.Z, start, max_iter=1)


Structure = FullRank | MatrixRank | MultilinearRank


def _hosvd(problem: Whitened, rank: Sequence[RankSpec], **options: Any) -> Approximation:
    """Truncated HOSVD of Z, given what the problem has computed already."""
    known = {"input_rank": problem.input_rank, "norm": problem.norm, "whole": problem.whole}
    return hosvd(problem.Z, rank, **known, **options)


def _directions(structure: MatrixRank | MultilinearRank, n_inputs: int) -> int:
    most = structure.max_directions
    return n_inputs if most is None else min(n_inputs, most)


# ---------------------------------------------------------------- ranks as a user writes them


def check_rank(rank: Any, shape: Sequence[int]) -> tuple[RankSpec, ...]:
    """A rank as the user wrote it, as one entry a mode of a tensor of the given shape.

    Parameters
    ----------
    rank : None, int, float or sequence
        None for full rank; an int for every mode, capped at each mode's size; a float in (0, 1) for
        the smallest ranks that hold that share of each mode's energy; or a sequence with such an
        entry for each mode, input mode first.
    shape : sequence of int
        ``(n_features, d1, ..., dp)``.

    Examples
    --------
    >>> check_rank(3, (10, 2)), check_rank((None, 0.9), (10, 2)), check_rank(0.9, (10, 2))
    ((3, 2), (10, 0.9), (0.9, 0.9))
    """
    if rank is None:
        return tuple(shape)
    if isinstance(rank, Integral) and not isinstance(rank, bool):
        if rank < 1:
            raise ValueError(f"rank must be at least 1; got rank={rank}.")
        return tuple(min(int(rank), d) for d in shape)
    if isinstance(rank, Real) and not isinstance(rank, bool):
        return (_check_share(rank, "rank"),) * len(shape)
    if isinstance(rank, (str, bytes, bool)) or not isinstance(rank, (Sequence, np.ndarray)):
        raise TypeError(
            f"rank must be None, an int, a share in (0, 1), or a tuple with an entry for each mode;"
            f" got {rank!r}."
        )
    if len(rank) != len(shape):
        raise ValueError(
            f"rank must have {len(shape)} entries, one for the input mode and one for each of the "
            f"{len(shape) - 1} output modes of y; got rank={tuple(rank)} with {len(rank)}."
        )
    pairs = zip(rank, shape, strict=True)
    return tuple(_check_rank_entry(R, mode, d) for mode, (R, d) in enumerate(pairs))


def check_matrix_rank(rank: Any, size: int) -> RankSpec:
    """The rank of a matrix as the user wrote it: None, an int (capped at `size`) or a share."""
    if isinstance(rank, Integral) and not isinstance(rank, bool) and int(rank) > size:
        return size
    return _check_rank_entry(rank, 0, size)


def _check_rank_entry(R: Any, mode: int, size: int) -> RankSpec:
    name = f"rank[{mode}] ({'input mode' if mode == 0 else f'output mode {mode}'})"
    if R is None:
        return size
    if isinstance(R, Integral) and not isinstance(R, bool):
        if not 1 <= int(R) <= size:
            raise ValueError(f"{name} must be from 1 to the mode's size {size}; got {R}.")
        return int(R)
    if isinstance(R, Real) and not isinstance(R, bool):
        return _check_share(R, name)
    raise TypeError(f"{name} must be an int, a float in (0, 1) or None; got {R!r}.")


def _check_share(R: Any, name: str) -> float:
    if not 0 < float(R) < 1:
        raise ValueError(
            f"{name} as a float is a share of the mode's energy and must lie strictly between 0 "
            f"and 1; got {R}."
        )
    return float(R)
