"""Parameters of linear estimators that concern the inputs.

These are the ranks of the input modes, the penalties of blocks, and own inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..core.approximate import FullRank
from ..core.input_map import InputDesign, InputSpace, Ranks
from ..core.own_inputs import OwnInputs
from ..data.arrays import comes_from
from ..data.blocks import InputBlocks, penalties_by_block, read_blocks
from ..data.inputs import input_space
from ..data.labels import Grid, Labels
from ..data.own import read_own
from ..data.unlabel import unlabel_mode_weights
from ..data.validation import Names

__all__ = ["InputPlan", "block_scale", "common_penalty", "input_plan", "shown_ranks"]


@dataclass(frozen=True, eq=False)
class InputPlan:
    """Design of the inputs of a fit, its penalty, and the candidates of a search.

    Parameters
    ----------
    design : InputDesign
        Features to compute from the inputs.
    is_searched : bool
        Whether to search for the ranks of the input modes.
    blocks : InputBlocks or None
        Blocks of inputs.
    alpha : float, or array of shape (d1, ..., dp)
        Penalty of a single fit. With blocks, the geometric mean of their penalties. Ridge
        regression may have one penalty for each output.
    own : tuple of OwnInputs
        Kinds of own inputs that a search tries.
    """

    design: InputDesign
    is_searched: bool = False
    blocks: InputBlocks | None = None
    alpha: Any = 1.0
    own: tuple[OwnInputs, ...] = ()

    @property
    def fixed(self) -> InputDesign | None:
        """Design of the inputs, or None if the fit uses the inputs themselves."""
        whole = all(r is None for r in self.design.ranks)
        whole = whole and self.design.scale is None and self.design.own is None
        return None if whole else self.design

    @property
    def has_several_blocks(self) -> bool:
        """Whether there are at least two blocks, whose penalties can differ."""
        return self.blocks is not None and len(self.blocks) > 1

    @property
    def is_plain(self) -> bool:
        """Whether the fit uses the inputs themselves, without a search over designs."""
        searched = self.is_searched or self.has_several_blocks or bool(self.own)
        return self.fixed is None and not searched

    def with_penalties(self, penalties: np.ndarray, alpha: float) -> InputDesign:
        """Return the design that scales the inputs so that `alpha` acts as `penalties`."""
        assert self.blocks is not None
        return replace(self.design, scale=block_scale(self.blocks, penalties, alpha))


def input_plan(estimator: Any, names: Names, data: Any) -> InputPlan:
    """Read the parameters of an estimator that concern the inputs.

    These are `input_rank`, `input_alpha`, `blocks` and `own`, and `alpha` if it has a penalty for
    each block.

    Parameters
    ----------
    estimator : estimator
        Estimator whose parameters are read.
    names : Names
        Names of the data.
    data : Samples, Chunks, Moments or FoldMoments
        Data, of which the number of columns and the shape of the outputs are used.
    """
    labels, n_used = names.labels, data.n_features
    space = input_space(labels, n_used)
    alpha: Any = getattr(estimator, "alpha", 1.0)
    asked = ("input_rank", "blocks", "own")
    is_plain = labels is None and all(getattr(estimator, name, None) is None for name in asked)
    if is_plain and isinstance(alpha, Real):
        return InputPlan(InputDesign(space, ranks=(None,)), alpha=float(alpha))
    grids = (labels or Labels()).inputs or (Grid(("feature",), (n_used,), is_named=False),)
    rank = getattr(estimator, "input_rank", None)
    scale: np.ndarray | None = None
    given: Any = estimator.blocks
    if given is not None and comes_from(alpha, "pandas"):
        alpha = dict(alpha)  # a Series of the penalties of blocks
    if isinstance(alpha, Mapping) and given is None:
        if len((labels or Labels()).inputs) < 2:
            raise ValueError(
                f"alpha={alpha!r} has a penalty for each block of inputs, and X has no blocks. Set "
                f"the parameter blocks, or pass X as a dict of arrays or a Dataset."
            )
        given = "auto"
    blocks, free = read_blocks(given, labels, names.features, n_used), None
    if isinstance(alpha, Mapping):
        assert blocks is not None
        penalties = penalties_by_block(alpha, blocks)
        alpha = common_penalty(penalties)
        if (penalties == 0).any() and penalties.any():
            free = np.flatnonzero(penalties[blocks.index] == 0)
            alpha = alpha or 1.0  # has no effect if all other blocks are left out
        scale = block_scale(blocks, penalties, alpha)
    elif not isinstance(alpha, Real):
        alpha = _by_output(estimator, alpha, labels, data.output_shape)
    is_search = not hasattr(estimator, "alpha")
    own = read_own(estimator.own, labels, n_used, data.output_shape, all_kinds=is_search)
    if isinstance(rank, str):  # "auto"
        design, is_searched = InputDesign(space, scale, (None,) * len(grids)), _has_modes(space)
    else:
        basis_alpha = float(getattr(estimator, "input_alpha", 1.0))
        design, is_searched = InputDesign(space, scale, _ranks(rank, grids), basis_alpha), False
    if free is not None:
        if own:
            raise ValueError(
                "own cannot be combined with alpha=0 for a block of inputs. Give the block a small "
                "positive penalty."
            )
        design = replace(design, free=free if free.size else None)
    if own and not is_search:
        design = replace(design, own=replace(own[0], beta=float(estimator.own_alpha)))
    alpha = alpha if isinstance(alpha, np.ndarray) else float(alpha)
    return InputPlan(design, is_searched, blocks, alpha, tuple(own))


# ---------------------------------------------------------------- penalties


def _by_output(
    estimator: Any, alpha: Any, labels: Labels | None, output_shape: Sequence[int]
) -> np.ndarray:
    """Check `alpha` with one penalty for each output, which only ridge regression accepts."""
    if not isinstance(estimator._structure(), FullRank):
        raise ValueError(
            f"alpha of {type(estimator).__name__} must be a number, or a dict with one number for "
            f"each block of inputs; got {type(alpha).__name__}. Only RLS accepts a penalty for "
            f"each output, since low-rank models fit all outputs together."
        )
    if labels is not None and labels.outputs is not None and not labels.flat:
        alpha = unlabel_mode_weights(alpha, labels.outputs, "alpha", "y")
    try:
        found = np.asarray(alpha, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"alpha must contain numbers; got {alpha!r}.") from error
    flat = labels is not None and bool(labels.flat) and found.shape == (math.prod(output_shape),)
    if found.shape != tuple(output_shape) and not flat:
        raise ValueError(
            f"alpha as an array must have the shape {tuple(output_shape)} of the outputs; got "
            f"{found.shape}."
        )
    if not (np.isfinite(found) & (found >= 0)).all():
        bad = found[~(np.isfinite(found) & (found >= 0))][0]
        raise ValueError(f"alpha must be finite and at least 0 for every output; got {bad}.")
    return found.reshape(tuple(output_shape))


def common_penalty(penalties: np.ndarray) -> float:
    """Return the geometric mean of all positive finite penalties, or zero if there are none.

    >>> round(common_penalty(np.array([1.0, 100.0, np.inf])), 9)
    10.0
    """
    some = penalties[np.isfinite(penalties) & (penalties > 0)]
    return float(np.exp(np.log(some).mean())) if some.size else 0.0


def block_scale(blocks: InputBlocks, penalties: np.ndarray, alpha: float) -> np.ndarray:
    """Return the factors of columns with which the penalty `alpha` acts as `penalties`.

    Columns with an infinite penalty or a penalty of zero have the factor zero.

    Parameters
    ----------
    blocks : InputBlocks
        Blocks of inputs.
    penalties : array of shape (n_blocks,)
        Penalty of each block.
    alpha : float
        Common penalty.
    """
    positive = penalties > 0
    ratio = np.where(positive, np.sqrt(alpha / np.where(positive, penalties, 1.0)), 0.0)
    if alpha == 0:  # no block has a penalty
        ratio = np.ones(len(blocks))
    return ratio[blocks.index]


def _has_modes(space: InputSpace) -> bool:
    """Return whether some block has at least two modes with more than one entry."""
    return any(sum(m > 1 for m in shape) > 1 for shape in space.shapes)


# ---------------------------------------------------------------- ranks


def _ranks(rank: Any, grids: Sequence[Grid]) -> tuple[Ranks | None, ...]:
    """Return the given input ranks, one tuple for each block; None keeps all directions."""
    if rank is None:
        return (None,) * len(grids)
    if not isinstance(rank, Mapping):
        if len(grids) > 1:
            names = [grid.name for grid in grids]
            raise ValueError(
                f"input_rank must be a dict from names of blocks to ranks, since X has the blocks "
                f"{names}; got input_rank={rank!r}."
            )
        return (_block_ranks(rank, grids[0]),)
    names = [grid.name for grid in grids]
    unknown = [name for name in rank if name not in names]
    if unknown:
        found = f"the blocks {names}" if names != [None] else "no named blocks"
        raise ValueError(f"input_rank has ranks for {unknown[0]!r}, but X has {found}.")
    return tuple(
        _block_ranks(rank[grid.name], grid) if rank.get(grid.name) is not None else None
        for grid in grids
    )


def _block_ranks(rank: Any, grid: Grid) -> Ranks:
    where = "X" if grid.name is None else f"block {grid.name!r} of X"
    if len(grid.shape) < 2:
        raise ValueError(
            f"input_rank={rank!r} needs inputs with at least two modes, and {where} is flat, with "
            f"{math.prod(grid.shape)} columns. Pass an array of shape (n_samples, m1, m2, ...), or "
            f"set input_shape to the modes of the columns."
        )
    wanted = [rank] * len(grid.shape) if isinstance(rank, Integral) else list(rank)
    if len(wanted) != len(grid.shape):
        raise ValueError(
            f"input_rank must have one entry for each mode of {where}, {grid.dims}; got "
            f"input_rank={rank!r} with {len(wanted)} entries."
        )
    found = []
    for r, m, dim in zip(wanted, grid.shape, grid.dims, strict=True):
        if r is None:
            r = m
        if not isinstance(r, Integral) or isinstance(r, bool) or int(r) < 1:
            raise ValueError(
                f"input_rank must have ints of at least 1; got {r!r} for mode {dim!r}."
            )
        if int(r) > m and not isinstance(rank, Integral):
            raise ValueError(
                f"input_rank is {r} for mode {dim!r} of {where}, which has size {m}. The rank of a "
                f"mode must be at most its size."
            )
        found.append(min(int(r), m))
    return tuple(found)


def shown_ranks(design: InputDesign | None, labels: Labels | None) -> Any:
    """Return the input ranks of a design in the form of the parameter `input_rank`."""
    ranks = (None,) if design is None else design.ranks or (None,)
    if len(ranks) == 1 and (labels is None or len(labels.inputs) < 2):
        return ranks[0]
    assert labels is not None
    ranks = ranks if len(ranks) > 1 else (None,) * len(labels.inputs)
    return {grid.name: r for grid, r in zip(labels.inputs, ranks, strict=True)}
