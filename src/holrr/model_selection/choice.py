"""Choice between ridge regression and mixtures of models.

A *way* of choosing (`WAYS`) lists models: ridge regression at its best penalty; the best rank and
other ranks at one penalty, with ridge regression at this penalty and the mean; the same models with
ridge regression that averages penalties for each output (`core.average`). The models of a way are
mixed by the weights of least held-out error (`stack`).

Every way is judged by its cross-fitted error. Each fold is predicted by a model whose penalty,
ranks and weights were chosen without this fold (`Best`), and the way of least error is chosen. The
weights of the final model are means over programmes that leave out two groups of folds, since few
samples do not determine many weights accurately.

To add a way, write a function from a `Best` to a candidate and its parts, and list it in `WAYS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from ..core.mixture import Mixture
from ..core.namespace import Array, namespace_of, to_numpy
from ..core.tensor import Tucker, unfold
from .stack import (
    MEAN,
    Part,
    averaged_about,
    fold_gram,
    least_in_hull,
    path_of_ranks,
    quadratic_form,
)
from .surface import RankPath

__all__ = [
    "ALONE",
    "WAYS",
    "Best",
    "Chosen",
    "Groups",
    "choose_mixture",
    "crossed_best",
    "groups_of",
]
__all__ += ["output_gains"]

Index = tuple[int, ...]
# Function from fold and candidate to the path of this problem.
Paths = Callable[[int, int], RankPath]
# Function that calls a function for each fold of a candidate.
OverFolds = Callable[[int, Callable[[int], Any]], list[Any]]

# Most groups of folds that are left out in turn, if the folds share no samples, and if they do.
_MOST_GROUPS, _MOST_SHARED = 5, 10
# Numbers that are added to the diagonals of Gram matrices, as shares of the least error and of the
# largest: larger than rounding errors, and small enough to have no other effect.
_TIE, _ROUNDING = 1e-8, 1e-14
# Relative difference of errors up to which ways are equally good; above `_TIE`.
_EQUAL = 1e-6


# ---------------------------------------------------------------- folds that are left out


@dataclass(frozen=True)
class Groups:
    """Groups of folds that are left out in turn.

    Parameters
    ----------
    left_out : tuple of int arrays
        Folds of each group.
    kept : tuple of int arrays
        Folds that choose the model of each group: those that share no test sample with the group.
    """

    left_out: tuple[np.ndarray, ...]
    kept: tuple[np.ndarray, ...]

    @cached_property
    def _apart(self) -> np.ndarray:
        """Whether a fold is kept without a group, (n_groups, n_folds)."""
        n_folds = 1 + max(int(folds.max()) for folds in (*self.left_out, *self.kept))
        return np.array([np.isin(np.arange(n_folds), folds) for folds in self.kept])

    def without(self, *groups: int) -> np.ndarray:
        """Return the folds that share no test sample with some groups."""
        return np.flatnonzero(self._apart[list(groups)].all(axis=0))

    def judged(self, group: int, other: int) -> np.ndarray:
        """Return the folds of another group that share no test sample with a group."""
        return self.left_out[other][self._apart[group, self.left_out[other]]]

    def of_fold(self, fold: int) -> int | None:
        """Return the group of a fold; None if the fold is in no group."""
        return next((g for g, folds in enumerate(self.left_out) if fold in folds), None)


def groups_of(shared: np.ndarray) -> Groups:
    """Return the groups of folds to leave out.

    Parameters
    ----------
    shared : array of bool, of shape (n_folds, n_folds)
        Whether the test sets of two folds share samples.

    Examples
    --------
    >>> [kept.tolist() for kept in groups_of(np.eye(3, dtype=bool)).kept]
    [[1, 2], [0, 2], [0, 1]]
    """
    n = len(shared)
    if (shared == np.eye(n, dtype=bool)).all():
        left_out = np.array_split(np.arange(n), min(n, _MOST_GROUPS))
    else:  # leaving out two folds together can leave none
        some = np.unique(np.linspace(0, n - 1, min(n, _MOST_SHARED)).round().astype(int))
        left_out = [np.array([k]) for k in some]
    kept = []
    for folds in left_out:
        others = np.setdiff1d(np.arange(n), folds)
        apart = np.flatnonzero(~shared[folds].any(axis=0))
        # If every other fold shares samples, the error is not cross-fitted, and if there is only
        # one fold, it chooses its own model.
        kept.append(apart if apart.size else others if others.size else folds)
    return Groups(tuple(left_out), tuple(kept))


# ---------------------------------------------------------------- best models of some folds


@dataclass(frozen=True)
class Best:
    """Best models by the held-out errors of some folds.

    Parameters
    ----------
    folds : array of int
        Folds that choose.
    candidate, place : int
        Candidate and index of the penalty of the best rank.
    ranks : tuple of ranks
        Ranks that are mixed, the best one first.
    ridge : pair of int
        Candidate and index of the penalty of the best ridge regression.
    common : int
        Index of the best penalty of ridge regression for `candidate`, about which outputs average
        penalties.
    """

    folds: np.ndarray
    candidate: int
    place: int
    ranks: tuple[Index, ...]
    ridge: Index
    common: int


def best_of(
    surface: Any,
    n_parameters: np.ndarray,
    folds: np.ndarray,
    *,
    mixes_ridge: bool = True,
    at: Index | None = None,
    like: Best | None = None,
) -> Best:
    """Return the best models by the held-out errors of some folds.

    Parameters
    ----------
    surface : Surface
        Errors of all folds.
    n_parameters : array of shape (R0, ...)
        Number of parameters of each rank.
    folds : array of int
        Folds that choose.
    mixes_ridge : bool
        Whether ridge regression is mixed with the ranks, in place of full rank.
    at : tuple of int, optional
        Candidate, index of the penalty and index of the rank of the best model, if it is known.
    like : Best, optional
        Best models of all folds. At the same penalty, its ranks are mixed with the best one, so
        that products of fewer models are needed.
    """
    if at is None:
        _, at = crossed_best(surface, folds)
    candidate, place, *rank = at
    errors = to_numpy(_mean(surface.errors_at(candidate, place), folds))
    ridge = surface.fold_ridge[folds].mean(axis=0)
    full = float(ridge[candidate, place]) if mixes_ridge else math.nan
    best = tuple(i + 1 for i in rank)
    is_like = like is not None and (candidate, place) == (like.candidate, like.place)
    others = like.ranks if like is not None and is_like else None
    ranks = path_of_ranks(errors, n_parameters, best, full, others)
    least = np.unravel_index(int(np.argmin(ridge)), ridge.shape)
    common = int(np.argmin(ridge[candidate]))
    return Best(folds, candidate, place, ranks, tuple(map(int, least)), common)


def crossed_best(surface: Any, folds: np.ndarray) -> tuple[float, Index]:
    """Return the least mean error of some folds, and its index (candidate, penalty, rank)."""
    least, found = math.inf, None
    for candidate, place in surface.places():
        mean = _mean(surface.errors_at(candidate, place), folds)
        xp = namespace_of(mean)
        mean = xp.where(xp.isnan(mean), xp.full_like(mean, math.inf), mean)
        error = float(xp.min(mean))
        if error < least:
            rank = np.unravel_index(int(xp.argmin(mean)), tuple(mean.shape))
            least, found = error, (candidate, place, *map(int, rank))
    assert found is not None
    return least, found


def _mean(errors: Array, folds: np.ndarray) -> Array:
    """Return the mean over some folds, without a copy of them."""
    total = errors[int(folds[0]), ...]
    for fold in folds[1:]:
        total = total + errors[int(fold), ...]
    return total / len(folds)


# ---------------------------------------------------------------- ways of choosing

Way = Callable[[Best, bool], tuple[int, tuple[Part, ...]]]


def ridge_regression(best: Best, mixes_ridge: bool) -> tuple[int, tuple[Part, ...]]:
    """Ridge regression at its best penalty."""
    candidate, place = best.ridge
    return candidate, (Part(place, None),)


def mixed_ranks(best: Best, mixes_ridge: bool) -> tuple[int, tuple[Part, ...]]:
    """Ranks at one penalty, ridge regression at this penalty, and the mean."""
    low = tuple(Part(best.place, rank) for rank in best.ranks)
    ridge = (Part(best.place, None),) if mixes_ridge else ()
    return best.candidate, (*low, *ridge, MEAN)


def ranks_and_outputs(best: Best, mixes_ridge: bool) -> tuple[int, tuple[Part, ...]]:
    """Ranks, ridge regression at one penalty and with penalties averaged for each output."""
    candidate, parts = mixed_ranks(best, mixes_ridge)
    return candidate, (*parts[:-1], Part(best.common, None, by_output=True), MEAN)


# The first of equally good ways is chosen.
WAYS: dict[str, Way] = {
    "ridge regression": ridge_regression,
    "ranks": mixed_ranks,
    "ranks and penalties of outputs": ranks_and_outputs,
}
# Ways of searches whose outputs have no likelihood of their own.
ALONE = ("ridge regression", "ranks")


# ---------------------------------------------------------------- penalties of outputs


def output_gains(path: RankPath, alphas: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return the held-out mean squared error of each output minus that of the mean.

    Parameters
    ----------
    path : RankPath
    alphas : sequence of n_alphas floats
        Penalties of ridge regression.

    Returns
    -------
    array of shape (n_alphas, D)
    """
    T, found = unfold(path.T, 0), []
    for alpha in alphas:
        gains = path.held_out.gains(T * path.ridge_scale(alpha)[:, None])
        found.append(to_numpy(gains) * (T.shape[1] / path.held_out.size))
    return np.stack(found)


# ---------------------------------------------------------------- the choice


@dataclass(frozen=True, eq=False)
class Chosen:
    """Chosen mixture.

    Parameters
    ----------
    way : str
        Name of the way of choosing.
    errors : dict
        Cross-fitted error of each way.
    candidate : int
        Candidate of the final model.
    model : Mixture
        Structure of the final model.
    error : float
        Cross-fitted error of the whole choice: each group of folds is predicted by the way that
        the other folds choose.
    of_folds : tuple of (candidate, Mixture)
        Model of each fold, which was chosen without it.
    known : tuple of Tucker or None
        Decomposition of the problem of each fold at the penalty of its model.
    """

    way: str
    errors: dict[str, float]
    candidate: int
    model: Mixture
    error: float
    of_folds: tuple[tuple[int, Mixture], ...]
    known: tuple[Tucker | None, ...]


class _Programme:
    """Weights of the parts of one way, from the Gram matrices of their residuals.

    Parameters
    ----------
    grams : array of shape (n_folds, n_parts, n_parts)
    groups : Groups
    """

    def __init__(self, grams: np.ndarray, groups: Groups) -> None:
        # Identical models share their weight; without this term, rounding would choose one.
        errors = np.diagonal(grams.mean(axis=0))
        self.ties = (_TIE * errors.min() + _ROUNDING * errors.max()) * np.eye(errors.size)
        self.grams, self.groups = grams, groups

    def _solve(self, folds: np.ndarray) -> np.ndarray:
        """Return the weights of least error in some folds."""
        if len(self.ties) == 1:
            return np.ones(1)
        return least_in_hull(self.grams[folds].mean(axis=0) + self.ties)

    def error(self, w: np.ndarray, folds: np.ndarray) -> float:
        """Return the mean error of a mixture in some folds."""
        return quadratic_form(self.grams[folds].mean(axis=0), w)

    def without(self, group: int) -> tuple[np.ndarray, dict[int, float]]:
        """Return the weights for a group of folds, and errors of the others without either."""
        groups, found, errors = self.groups, [], dict[int, float]()
        for other in range(len(groups.kept)):
            folds = groups.without(group, other)
            if other == group or not folds.size:
                continue
            found.append(self._solve(folds))
            there = groups.judged(group, other)
            if there.size:
                errors[other] = self.error(found[-1], there)
        if not found:
            found = [self._solve(groups.kept[group])]
        return np.mean(found, axis=0), errors

    def final(self) -> np.ndarray:
        """Return the weights of the final model."""
        groups = self.groups
        left_out = [groups.without(*pair) for pair in combinations(range(len(groups.kept)), 2)]
        left_out = [folds for folds in left_out if folds.size] or list(groups.kept)
        return np.mean([self._solve(folds) for folds in left_out], axis=0)


def choose_mixture(
    paths: Paths,
    surface: Any,
    n_parameters: np.ndarray,
    index: Index,
    alphas: np.ndarray,
    scaled: np.ndarray,
    base: Any,
    *,
    groups: Groups,
    over_folds: OverFolds,
    ways: Sequence[str] = tuple(WAYS),
    mixes_ridge: bool = True,
    keeps_directions: bool = True,
) -> Chosen:
    """Choose a mixture of models by cross-fitted errors.

    Parameters
    ----------
    paths : callable
        Function from fold and candidate to a `RankPath`.
    surface : Surface
        Error surface.
    n_parameters : array of shape (R0, ...)
        Number of parameters of each rank.
    index : tuple of int
        Candidate, index of the penalty and index of the rank of the best single model.
    alphas, scaled : arrays of shape (n_alphas,)
        Penalties in the units of the user's data and in those of the scaled data.
    base : MatrixRank or MultilinearRank
        Structure of the ranks.
    groups : Groups
        Groups of folds that are left out.
    over_folds : callable
        Function from a candidate and a function of a fold to the results of all folds.
    ways : sequence of str
        Names of the ways to compare.
    mixes_ridge : bool
        Whether ridge regression is mixed with the ranks. It is not if the user limits the ranks.
    keeps_directions : bool
        Whether the decompositions of the folds are returned.
    """
    n_folds = len(surface.fold_ridge)
    how: dict[str, Any] = {"mixes_ridge": mixes_ridge}
    everything = best_of(surface, n_parameters, np.arange(n_folds), at=index, **how)
    how["like"] = everything
    bests = [best_of(surface, n_parameters, folds, **how) for folds in groups.kept]
    wanted: dict[int, list[Part]] = {}
    for name in ways:
        for best in (everything, *bests):
            candidate, parts = WAYS[name](best, mixes_ridge)
            wanted.setdefault(candidate, []).extend(parts)
    grams, directions = {}, {}
    for candidate, listed in wanted.items():
        # The mean comes last; other parts keep the order in which they were found.
        every = [*(part for part in dict.fromkeys(listed) if part != MEAN), MEAN]

        def gram(fold: int, candidate: int = candidate, parts: Any = every) -> Any:
            B, found = fold_gram(paths(fold, candidate), parts, scaled)
            return B, found if keeps_directions else {}

        done = over_folds(candidate, gram)
        grams[candidate] = np.stack([B for B, _ in done]), {part: i for i, part in enumerate(every)}
        directions[candidate] = [found for _, found in done]

    def programme(name: str, best: Best) -> _Programme:
        candidate, parts = WAYS[name](best, mixes_ridge)
        found, numbers = grams[candidate]
        index = [numbers[part] for part in parts]
        return _Programme(found[:, np.array(index)[:, None], index], groups)

    def fitted(name: str, best: Best, w: np.ndarray) -> tuple[int, Mixture]:
        candidate, parts = WAYS[name](best, mixes_ridge)
        return candidate, _mixture(base, alphas, parts, w)

    # Weights without each group, and errors in this group and in the others.
    crossed: dict[str, list[tuple[np.ndarray, float, dict[int, float]]]] = {}
    for name in ways:
        found = []
        for number, best in enumerate(bests):
            one = programme(name, best)
            w, others = one.without(number)
            found.append((w, one.error(w, groups.left_out[number]), others))
        crossed[name] = found
    sizes = np.array([len(folds) for folds in groups.left_out])
    errors = {
        name: float(np.average([error for _, error, _ in found], weights=sizes))
        for name, found in crossed.items()
    }
    way = _first_least(errors)
    by_group, error = [], 0.0
    for number, best in enumerate(bests):
        inner = {
            name: float(np.mean(list(crossed[name][number][2].values())))
            for name in ways
            if crossed[name][number][2]
        }
        name = _first_least(inner) if inner else way
        w, there, _ = crossed[name][number]
        by_group.append(fitted(name, best, w))
        error += there * sizes[number] / sizes.sum()
    candidate, model = fitted(way, everything, programme(way, everything).final())
    of_folds, known = [], []
    for fold in range(n_folds):
        group = groups.of_fold(fold)
        where, mixture = (candidate, model) if group is None else by_group[group]
        best = everything if group is None else bests[group]
        of_folds.append((where, replace(mixture, compact=False)))
        there, tucker = directions[where][fold].get(best.place), None
        if there is not None:
            path = paths(fold, where)
            tucker = there.whitened(path.root(float(scaled[best.place])), path.T.shape[1:])
        known.append(tucker)
    return Chosen(way, errors, candidate, model, float(error), tuple(of_folds), tuple(known))


def _mixture(base: Any, alphas: np.ndarray, parts: Sequence[Part], weights: np.ndarray) -> Mixture:
    """Return the mixture of some parts."""
    used = [(part, float(w)) for part, w in zip(parts, weights, strict=True) if w > 0]
    place = next(part.place for part in parts if part.place is not None)
    averages = [
        (averaged_about(alphas, part.place), w)
        for part, w in used
        if part.by_output and part.place is not None
    ]
    near, by_output = averages[0] if averages else (np.zeros(0, dtype=int), 0.0)
    return Mixture(
        base,
        float(alphas[place]),
        ranks=tuple((part.rank, w) for part, w in used if part.rank),
        ridge=sum(w for part, w in used if part.rank is None and not part.by_output),
        averaged=tuple(float(alphas[i]) for i in near),
        by_output=by_output,
    )


def _first_least(errors: dict[str, float]) -> str:
    """Return the name of the least error; the first of those that are practically equal."""
    least = min(errors.values())
    return next(name for name, e in errors.items() if e <= least + _EQUAL * abs(least))
