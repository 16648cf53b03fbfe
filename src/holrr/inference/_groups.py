"""Refits without one group of samples at a time, from merged moments where that is possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import check_array

from ..core.finite import check_finite
from ..core.namespace import to_numpy
from ..core.spectral import squares_keep_digits
from ..data.moments import Moments
from ..data.samples import Samples
from ..data.source import Source
from ..linear.base import LinearTensorRegressor
from ..linear.holes import has_holes
from ..model_selection.splits import merge_others

__all__ = ["Groups", "group_data"]

# Folds of a search whose `cv` is no number, where only moments are at hand.
_N_FOLDS = 5


def group_data(model: Any, data: Samples | Source, n_groups: int, groups: Any) -> Groups:
    """Data that came through the door, in groups, as a model can be fitted to them."""
    w = data.w if isinstance(data, Samples) else data.weights
    labels = _labels(data.n_samples, None if w is None else to_numpy(w), n_groups, groups)
    given = None if groups is None else np.asarray(groups)
    found, n, grams = Groups(data, labels, given), labels.max() + 1, model._wants_response_grams()
    if getattr(model, "_uses_landmarks", False):
        fitted = hasattr(model, "tucker_")
        found.features = model._features_so_far() if fitted else model._draw_features(data)
        found.parts = found.features.fold_moments(data, labels, n, grams)
    elif isinstance(data, Source):
        found.parts = data.fold_moments(labels, n, grams)
    elif not _needs_samples(model, data, labels[labels >= 0]):
        try:
            parts = [found.some(labels == k).moments(grams) for k in range(n)]
        except ValueError:
            check_finite(data.Y, "y")  # the place of a bad entry in all the data
            raise
        total = parts[0].merge(*parts[1:]).centred(model.fit_intercept)
        if squares_keep_digits(total, float(model.alpha)):
            found.parts = parts
    return found


def _labels(n_samples: int, weights: np.ndarray | None, n_groups: int, groups: Any) -> np.ndarray:
    """For each sample the number of its group; -1 for samples without weight.

    Groups are blocks of consecutive samples or, where `groups` says which samples belong together,
    made of those, as even in size as they can be.
    """
    rows = np.arange(n_samples) if weights is None else np.flatnonzero(weights > 0)
    units = np.arange(n_samples)
    if groups is not None:  # a missing label is no group
        units = check_array(groups, ensure_2d=False, allow_nd=True, dtype=None, input_name="groups")
    if units.shape != (n_samples,):
        raise ValueError(
            f"groups must have one entry for each of the {n_samples} samples; got {units.shape}."
        )
    units = np.unique(units[rows], return_inverse=True)[1]
    n_units = int(units.max()) + 1
    if n_units < 2:
        what = "samples of positive weight" if groups is None else "different groups"
        raise ValueError(f"two {what} are needed at least; got {n_units}.")
    splitter = (KFold if groups is None else GroupKFold)(min(n_groups, n_units))
    labels = np.full(n_samples, -1, dtype=np.intp)
    for k, (_, test) in enumerate(splitter.split(rows, groups=None if groups is None else units)):
        labels[rows[test]] = k
    return labels


def _needs_samples(model: Any, data: Samples, labels: np.ndarray) -> bool:
    """Whether moments do not hold what the fit needs, or not as well."""
    return (
        not isinstance(model, LinearTensorRegressor)
        or getattr(model, "solver", "auto") == "svd"
        or getattr(model, "output_weight", None) is not None
        or labels.size - np.bincount(labels).max() < data.n_features  # X'X is larger than X
        or data.in_units() is not data  # moments would overflow, or vanish
        or (getattr(model, "missing", "raise") == "fill" and has_holes(data))
    )


@dataclass(eq=False)
class Groups:
    """Data in groups that can be left out, one at a time."""

    data: Samples | Source | None = None
    # The group of each sample, or -1, and what was given for it, for the splitters of a search.
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    groups: np.ndarray | None = None
    # Moments of each group, of the inputs or of their features; else it is samples that are fitted.
    parts: Sequence[Moments] | None = None
    features: Any = None

    @property
    def weights(self) -> np.ndarray:
        """Number of samples, or sum of their weights, of each group."""
        if self.parts is not None:
            return np.array([part.weight for part in self.parts])
        assert isinstance(self.data, Samples)
        w, used = self.data.w, self.labels >= 0
        return np.bincount(self.labels[used], None if w is None else to_numpy(w)[used])

    def fits(self, model: Any, **options: Any) -> Iterator[Any]:
        """Clones fitted to all the data, then without each group; `options` go to `_solve`."""
        if self.parts is None:
            if model.__sklearn_tags__().input_tags.pairwise:
                raise ValueError(
                    "kernel='precomputed' has no inputs whose samples could be left out; pass X "
                    "and a kernel."
                )
            yield clone(model)._fit_data(self.some(self.labels >= 0), **options)
            for rows in self._others():
                yield clone(model)._fit_data(self.some(rows), **options)
            return
        options.pop("pilot", None)  # moments have no holes to be filled
        for m in (self.parts[0].merge(*self.parts[1:]), *merge_others(self.parts)):
            if self.features is None:
                yield clone(model)._fit_moments(m, keep=False, **options)
            else:
                yield clone(model)._fit_features(self.features, m, **options)

    def searches(self, model: Any) -> Iterator[Any]:
        """A whole search again, without each of the groups in turn."""
        by_number = isinstance(model.cv, Integral)
        if self.parts is None or self.features is not None or not by_number:
            if isinstance(self.data, Samples):
                return self._searched_samples(model)
            if self.features is not None:
                raise ValueError(
                    "stability=True needs the samples of a kernel in memory; load X and y as NumPy "
                    "arrays, or set stability=False."
                )
        return self._searched_moments(model, int(model.cv) if by_number else _N_FOLDS)

    def _searched_moments(self, model: Any, n_folds: int) -> Iterator[Any]:
        """The groups are dealt to the folds of the search, in their order."""
        assert self.parts is not None
        if len(self.parts) < 3:
            raise ValueError(
                f"stability=True needs three groups at least, since a search without one of them "
                f"still needs two folds; got {len(self.parts)}."
            )
        dealt = np.array_split(np.arange(len(self.parts)), min(n_folds, len(self.parts)))
        folds = [[self.parts[k] for k in some] for some in dealt]
        whole = [fold[0].merge(*fold[1:]) for fold in folds]
        for f, fold in enumerate(folds):
            for rest in [[m] for m in merge_others(fold)] if len(fold) > 1 else [[]]:
                yield clone(model).fit_fold_moments([*whole[:f], *rest, *whole[f + 1 :]])

    def _searched_samples(self, model: Any) -> Iterator[Any]:
        search = clone(model).set_params(output_shape=None)  # which the samples have already
        groups = None if isinstance(model.cv, Integral) else self.groups
        if hasattr(model, "landmarks_"):  # they stay where they are
            search.set_params(landmarks=model.landmarks_, n_components=None)
        for rows in self._others():
            some, of_some = self.some(rows), None if groups is None else groups[rows]
            yield clone(search).fit(some.X, some.Y, some.w, groups=of_some)

    def _others(self) -> Iterator[np.ndarray]:
        for k in range(self.weights.size):
            yield (self.labels >= 0) & (self.labels != k)

    def some(self, rows: np.ndarray) -> Samples:
        """Some of the samples."""
        assert isinstance(self.data, Samples)
        return self.data.rows(np.flatnonzero(rows))
