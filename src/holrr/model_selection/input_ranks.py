"""Search over the ranks of the input modes by the held-out errors of ridge regression.

The inputs of a block with modes can be projected onto the leading directions of each mode (see
`core.input_map`). There are too many combinations of ranks to compute an error surface for each.
The ridge error of a combination needs only one small decomposition for each fold: the inputs of a
fold are rotated to the directions of their modes once, and a combination of ranks selects some of
the rotated inputs. The search compares ridge errors. It first increases the ranks of all modes
together. It then changes the rank of one mode of the best combination at a time. The best few
combinations become candidates of the search over penalties and ranks. The inputs without projection
are always a candidate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ..core.input_map import InputDesign, InputMap, InputProducts, Ranks
from ..core.moments import CentredMoments
from ..core.namespace import asarray_like, namespace_of
from ..core.spectral import Spectral, spectral_from_moments, spectral_from_samples
from ..core.threads import limit_threads
from ..data.validation import Samples
from .search import over_folds
from .sources import FoldMoments, Rows, Side, features_of, mapped
from .surface import HeldOut, rank_path

__all__ = ["BASIS_ALPHAS", "BlockRanks", "candidate_designs", "ladder"]

BlockRanks = tuple[Ranks | None, ...]

# Penalties of the ridge fits that determine the directions, see `InputDesign`.
BASIS_ALPHAS = (0.1, 1.0, math.inf)
# Number of projections that become candidates.
_KEPT = 3
# The ranks of all modes are increased until two successive errors exceed the least error by this
# factor.
_WORSE = 1.05


def ladder(size: int) -> list[int]:
    """Return the ranks of a mode to try: all small ranks, then steps of about a quarter.

    >>> ladder(20)
    [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20]
    """
    found = [1]
    while found[-1] < size:
        found.append(min(size, max(found[-1] + 1, round(1.26 * found[-1]))))
    return found


def candidate_designs(
    source: Rows | FoldMoments,
    base: InputDesign,
    alphas: np.ndarray,
    n_jobs: int = 1,
) -> list[InputDesign | None]:
    """Return the candidate designs: the inputs without projection, and the best projections.

    Parameters
    ----------
    source : Rows or FoldMoments
        Data of the folds.
    base : InputDesign
        Design with the scale of all designs. Its ranks are not used.
    alphas : array of shape (n_alphas,)
        Penalties of the fits, in the units of the scaled data.
    n_jobs : int
        Number of folds that run in parallel.
    """
    (whole, errors), *others = _compared(source, base, alphas, n_jobs)
    kept = [design for design, found in others if _is_better(found, errors)]
    return [whole, *kept[:_KEPT]]


def _is_better(errors: np.ndarray, others: np.ndarray) -> bool:
    """Return whether the errors of the folds are lower by more than two standard errors.

    By chance alone, the best of many projections has a lower error than the inputs themselves.
    """
    gain = others - errors
    spread = float(gain.std(ddof=1)) / math.sqrt(gain.size) if gain.size > 1 else 0.0
    return bool(gain.mean() > 2 * spread)


def _compared(
    source: Rows | FoldMoments, base: InputDesign, alphas: np.ndarray, n_jobs: int
) -> list[tuple[InputDesign | None, np.ndarray]]:
    """Return designs and their ridge errors: first without projection, then the best first."""
    whole = None if base.scale is None else replace(base, ranks=())
    space = base.space
    modes = tuple(shape if sum(m > 1 for m in shape) > 1 else None for shape in space.shapes)
    if all(shape is None for shape in modes):
        return [(whole, np.zeros(0))]
    full, folds = replace(base, ranks=modes), source.folds
    run = partial(over_folds, len(folds), n_jobs=n_jobs)
    products = run(lambda k: _products(source.seen(folds[k]), full, source.fit_intercept))
    errors: dict[tuple[float, BlockRanks], np.ndarray] = {}
    tried = {}
    for alpha in BASIS_ALPHAS:
        design = replace(full, alpha=alpha)
        rotated = run(partial(_RotatedFold, source, design, products, alphas))
        tried[alpha] = _Exploration(rotated, modes, _most_features(space.n_columns))
        with limit_threads(1):
            tried[alpha].walk_diagonal()
    with limit_threads(1):
        min(tried.values(), key=lambda exploration: exploration.least).descend()
    for alpha, exploration in tried.items():
        errors |= {(alpha, ranks): value for ranks, value in exploration.errors().items()}
    everything = run(lambda k: _errors_of_all(source, k, whole, alphas))
    order = sorted(errors, key=lambda key: float(errors[key].mean()))
    return [
        (whole, _at_best_penalty(everything)),
        *((replace(base, ranks=key[1], alpha=key[0]), errors[key]) for key in order),
    ]


def _at_best_penalty(errors: Sequence[np.ndarray]) -> np.ndarray:
    """Return the errors of each fold at the penalty with the least mean error."""
    table = np.stack(errors)
    return table[:, int(np.argmin(table.mean(axis=0)))]


def _most_features(n_columns: int) -> int:
    """Return the largest number of features of a projection.

    A projection with more features hardly differs from the inputs themselves.
    """
    return n_columns if n_columns <= 64 else min(n_columns // 2, 1000)


def _products(seen: Side, design: InputDesign, fit_intercept: bool) -> InputProducts:
    """Return the products of a training set that determine the directions of input modes."""
    if isinstance(seen, CentredMoments):
        return design.products_of_moments(seen)
    return design.products_of_samples(seen.X, seen.Y, seen.w, fit_intercept)


class _RotatedFold:
    """Data of a fold with the inputs in the directions of their modes."""

    def __init__(
        self,
        source: Rows | FoldMoments,
        design: InputDesign,
        products: Sequence[InputProducts],
        alphas: np.ndarray,
        fold: int,
    ) -> None:
        self.alphas, self.fit_intercept = alphas, source.fit_intercept
        own, where = products[fold], source.folds[fold]
        self.full: InputMap = design.map_of(own, own.V)
        self.seen: Side = mapped(self.full, source.seen(where))
        self.unseen: Side = mapped(self.full, source.unseen(where))

    def errors(self, ranks: BlockRanks) -> np.ndarray:
        """Return the mean squared held-out errors of ridge regression at all penalties."""
        index = self.full.positions(ranks)
        seen, unseen = _columns(self.seen, index), _columns(self.unseen, index)
        return ridge_errors(seen, unseen, self.alphas, self.fit_intercept)


def ridge_errors(seen: Side, unseen: Side, alphas: np.ndarray, fit_intercept: bool) -> np.ndarray:
    """Return the mean squared held-out errors of ridge regression at all penalties."""
    found: Spectral
    if isinstance(seen, CentredMoments):
        assert isinstance(unseen, CentredMoments)
        found = spectral_from_moments(seen)
        held_out = HeldOut.from_moments(found, unseen)
    else:
        assert isinstance(unseen, Samples)
        found = spectral_from_samples(
            seen.X, seen.Y, seen.w, min_alpha=float(alphas.min()), fit_intercept=fit_intercept
        )
        xp = namespace_of(unseen.X)
        F = (xp.astype(unseen.X, xp.float64, copy=False) - found.mean_x) @ found.basis
        held_out = HeldOut.from_features(F, unseen.Y, found.mean_y, unseen.w)
    return rank_path(found, held_out, ()).ridge_errors(alphas) / held_out.size


def _columns(part: Side, index: np.ndarray) -> Side:
    """Select some of the features."""
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


def _errors_of_all(
    source: Rows | FoldMoments, fold: int, whole: InputDesign | None, alphas: np.ndarray
) -> np.ndarray:
    """Return the ridge errors of a fold at all penalties, for the inputs without projection."""
    seen, unseen = source.seen(source.folds[fold]), source.unseen(source.folds[fold])
    features = features_of(whole, seen, source.fit_intercept)
    seen, unseen = mapped(features, seen), mapped(features, unseen)
    return ridge_errors(seen, unseen, alphas, source.fit_intercept)


class _Exploration:
    """Search over ranks, with the directions of one penalty.

    Parameters
    ----------
    folds : sequence of _RotatedFold
        Folds with rotated inputs.
    modes : tuple
        Shape of each block, or None for a block that is not projected.
    most : int
        Largest number of features of a combination.
    """

    def __init__(self, folds: Sequence[_RotatedFold], modes: BlockRanks, most: int) -> None:
        self._folds, self._modes, self._most = folds, modes, most
        self._axes = [(b, k) for b, shape in enumerate(modes) if shape for k in range(len(shape))]
        self._steps = [ladder(modes[b][k]) for b, k in self._axes]  # type: ignore[index]
        self._seen: dict[tuple[int, ...], float] = {}
        self._errors: dict[tuple[int, ...], np.ndarray] = {}

    @property
    def least(self) -> float:
        """Least error of all combinations that were tried."""
        return min(self._seen.values())

    def errors(self) -> dict[BlockRanks, np.ndarray]:
        """Return the errors of each fold of all combinations that were tried."""
        return {self._ranks(levels): errors for levels, errors in self._errors.items()}

    def walk_diagonal(self) -> None:
        """Increase all ranks until two successive errors exceed `_WORSE` times the least error."""
        n_worse, top = 0, [len(steps) - 1 for steps in self._steps]
        for level in range(0, max(top) + 1, 2):
            error = self._look(tuple(min(level, t) for t in top))
            n_worse = n_worse + 1 if error > _WORSE * self.least else 0
            if n_worse == 2:
                return

    def descend(self) -> None:
        """Change one rank of the best combination at a time while the error decreases."""
        best = min(self._seen, key=self._seen.__getitem__)
        improved = True
        while improved:
            improved = False
            for axis, steps in enumerate(self._steps):
                for step in (-1, 1, -2, 2):
                    level = best[axis] + step
                    if 0 <= level < len(steps):
                        levels = (*best[:axis], level, *best[axis + 1 :])
                        if self._look(levels) < self._look(best):
                            best, improved = levels, True

    def _ranks(self, levels: Sequence[int]) -> BlockRanks:
        found: list[list[int] | None] = [None if s is None else list(s) for s in self._modes]
        for (b, k), steps, level in zip(self._axes, self._steps, levels, strict=True):
            own = found[b]
            assert own is not None
            own[k] = steps[level]
        return tuple(None if r is None else tuple(r) for r in found)

    def _look(self, levels: tuple[int, ...]) -> float:
        """Return the least ridge error of a combination over all penalties."""
        if levels not in self._seen:
            ranks, error = self._ranks(levels), math.inf
            if ranks != self._modes and sum(math.prod(r) for r in ranks if r) <= self._most:
                found = _at_best_penalty([fold.errors(ranks) for fold in self._folds])
                self._errors[levels], error = found, float(found.mean())
            self._seen[levels] = error
        return self._seen[levels]
