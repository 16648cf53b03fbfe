"""How many directions to keep of each mode of the inputs: a guided search by ridge errors.

The inputs of a block with modes can be projected onto the leading directions of each mode (see
`core.input_map`). There are too many combinations of ranks for an error surface each. The ridge
error of a combination costs one small decomposition for each fold, since the inputs of a fold are
rotated to the directions of their modes once, and a combination of ranks is a selection of the
rotated inputs. So the search looks at ridge errors: first along a coarse diagonal, then from the
best combination one mode at a time. The best few combinations become candidates of the search over
penalties and ranks, with all of the inputs always among them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from ..core.input_map import InputDesign, InputMap, Ranks
from ..core.moments import CentredMoments
from ..core.namespace import asarray_like, namespace_of
from ..core.spectral import Spectral, spectral_from_moments, spectral_from_samples
from ..data.validation import Samples
from .folds import FoldData, features_of_fold
from .surface import HeldOut, rank_path

__all__ = ["BlockRanks", "candidate_designs", "ladder"]

BlockRanks = tuple[Ranks | None, ...]

# Largest number of features that a projection is tried with, and how many projections are kept.
_MAX_FEATURES, _KEPT = 1000, 3
# A projection whose ridge error is larger than that of all inputs by more than this is not kept.
_HOPELESS = 1.1


def ladder(size: int) -> list[int]:
    """Ranks to try of a mode: all small ones, and then steps of about a quarter.

    >>> ladder(20)
    [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20]
    """
    found = [1]
    while found[-1] < size:
        found.append(min(size, max(found[-1] + 1, round(1.26 * found[-1]))))
    return found


def candidate_designs(
    data: FoldData, base: InputDesign, alphas: np.ndarray
) -> list[InputDesign | None]:
    """The designs that a search tries: all inputs, and their best projections.

    Parameters
    ----------
    data : FoldData
    base : InputDesign
        Its scale is that of all designs; its ranks are not used.
    alphas : array of shape (n_alphas,)
        Penalties, in the units of the scaled data.
    """
    whole = None if base.scale is None else replace(base, ranks=())
    largest = _largest_ranks(base.space.shapes)
    if all(r is None for r in largest) or data.n_folds == 0:
        return [whole]
    folds = [_RotatedFold(data, fold, base, largest, alphas) for fold in range(data.n_folds)]
    largest = _common(folds, largest)

    @cache
    def error(ranks: BlockRanks) -> float:
        return float(np.mean([fold.errors(ranks) for fold in folds], axis=0).min())

    found = _explored(error, largest)
    bound = _HOPELESS * _error_of_all(data, whole, alphas)
    kept = [ranks for ranks in sorted(found, key=found.__getitem__) if found[ranks] <= bound]
    return [whole, *(replace(base, ranks=ranks) for ranks in kept[:_KEPT])]


def _largest_ranks(shapes: Sequence[tuple[int, ...]]) -> BlockRanks:
    """The largest ranks of the blocks with modes: those that leave few enough features."""
    found: list[Ranks | None] = []
    for shape in shapes:
        if sum(m > 1 for m in shape) < 2:
            found.append(None)
            continue
        ranks = list(shape)
        while math.prod(ranks) > _MAX_FEATURES:
            ranks[int(np.argmax(ranks))] -= 1
        found.append(tuple(ranks))
    return tuple(found)


def _common(folds: Sequence[_RotatedFold], largest: BlockRanks) -> BlockRanks:
    """The ranks that the training sets of all folds support."""
    found: list[Ranks | None] = []
    for block, ranks in enumerate(largest):
        own = [fold.full.ranks[block] for fold in folds]
        found.append(None if ranks is None else tuple(map(min, *own)) if len(own) > 1 else own[0])
    return tuple(found)


class _RotatedFold:
    """The data of a fold with the inputs in the directions of their modes."""

    def __init__(
        self,
        data: FoldData,
        fold: int,
        base: InputDesign,
        largest: BlockRanks,
        alphas: np.ndarray,
    ) -> None:
        self.full: InputMap = features_of_fold(data, fold, replace(base, ranks=largest))
        self.data, self.alphas = data, alphas
        moments, samples = data.moments(fold), data.samples(fold)
        self.seen: CentredMoments | Samples
        self.unseen: CentredMoments | Samples
        if moments is not None:
            self.seen, self.unseen = (self.full.moments(m) for m in moments)
        else:
            assert samples is not None
            self.seen, self.unseen = (replace(part, X=self.full(part.X)) for part in samples)

    def errors(self, ranks: BlockRanks) -> np.ndarray:
        """Mean squared held-out errors of ridge regression at all penalties."""
        index = self.full.positions(ranks)
        return ridge_errors(
            self.data, _columns(self.seen, index), _columns(self.unseen, index), self.alphas
        )


def ridge_errors(
    data: FoldData,
    seen: CentredMoments | Samples,
    unseen: CentredMoments | Samples,
    alphas: np.ndarray,
) -> np.ndarray:
    """Mean squared held-out errors of ridge regression on a training set, at all penalties."""
    found: Spectral
    if isinstance(seen, CentredMoments):
        assert isinstance(unseen, CentredMoments)
        found = spectral_from_moments(seen)
        held_out = HeldOut.from_moments(found, unseen)
    else:
        assert isinstance(unseen, Samples)
        found = spectral_from_samples(
            seen.X, seen.Y, seen.w, min_alpha=float(alphas.min()), **data.options
        )
        xp = namespace_of(unseen.X)
        F = (xp.astype(unseen.X, xp.float64, copy=False) - found.mean_x) @ found.basis
        held_out = HeldOut.from_features(F, unseen.Y, found.mean_y, unseen.w)
    errors = held_out.yy + rank_path(found, held_out, (), "fitted").ridge_errors(alphas)
    return np.maximum(errors, 0.0) / held_out.size


def _columns(part: CentredMoments | Samples, index: np.ndarray) -> CentredMoments | Samples:
    """Some of the features."""
    if isinstance(part, Samples):
        xp = namespace_of(part.X)
        return replace(part, X=xp.take(part.X, asarray_like(index, part.X), axis=1))
    xp, own = namespace_of(part.Sxx), asarray_like(index, part.Sxx)
    return replace(
        part,
        mean_x=xp.take(part.mean_x, own),
        Sxx=xp.take(xp.take(part.Sxx, own, axis=0), own, axis=1),
        Sxy=xp.take(part.Sxy, own, axis=0),
    )


def _error_of_all(data: FoldData, whole: InputDesign | None, alphas: np.ndarray) -> float:
    """The least ridge error of all inputs."""
    errors = []
    for fold in range(data.n_folds):
        parts = data.moments(fold) or data.samples(fold)
        assert parts is not None
        seen, unseen = parts
        if whole is not None:
            features = features_of_fold(data, fold, whole)
            seen, unseen = (
                features.moments(part)
                if isinstance(part, CentredMoments)
                else replace(part, X=features(part.X))
                for part in parts
            )
        errors.append(ridge_errors(data, seen, unseen, alphas))
    return float(np.mean(errors, axis=0).min())


def _explored(error: Callable[[BlockRanks], float], largest: BlockRanks) -> dict[BlockRanks, float]:
    """The errors of the combinations of ranks that the guided search looks at."""
    modes = [(b, k) for b, ranks in enumerate(largest) if ranks for k in range(len(ranks))]
    steps = {(b, k): ladder(largest[b][k]) for b, k in modes}  # type: ignore[index]

    def ranks_at(levels: Sequence[int]) -> BlockRanks:
        found: list[list[int] | None] = [None if r is None else list(r) for r in largest]
        for (b, k), level in zip(modes, levels, strict=True):
            own = found[b]
            assert own is not None
            own[k] = steps[b, k][level]
        return tuple(None if r is None else tuple(r) for r in found)

    top = [len(steps[mode]) - 1 for mode in modes]
    seen: dict[tuple[int, ...], float] = {}

    def look(levels: tuple[int, ...]) -> float:
        if levels not in seen:
            seen[levels] = error(ranks_at(levels))
        return seen[levels]

    for level in range(0, max(top) + 1, 2):
        look(tuple(min(level, t) for t in top))
    best = min(seen, key=seen.__getitem__)
    improved = True
    while improved:
        improved = False
        for axis in range(len(modes)):
            for step in (-1, 1, -2, 2):
                level = best[axis] + step
                if not 0 <= level <= top[axis]:
                    continue
                levels = (*best[:axis], level, *best[axis + 1 :])
                if look(levels) < look(best):
                    best, improved = levels, True
    found = {ranks_at(levels): value for levels, value in seen.items()}
    return {ranks: value for ranks, value in found.items() if ranks != tuple(largest)}
