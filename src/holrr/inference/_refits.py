"""Refits without one group of samples at a time, from merged moments where that is possible."""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

from ..core.finite import check_finite
from ..core.namespace import to_numpy
from ..data.moments import Moments
from ..data.samples import Samples
from ..data.source import Source
from ..linear.base import LinearTensorRegressor
from ..linear.holes import has_holes
from ..model_selection.folds import merge_others, take

__all__ = ["Groups", "MomentGroups", "group_data"]

# Folds of a search whose `cv` is no number, where only moments are at hand.
_N_FOLDS = 5


class Groups(metaclass=ABCMeta):
    """Data in groups that can be left out, one at a time.

    Attributes
    ----------
    weights : array of shape (n_groups,)
        Number of samples, or sum of their weights, of each group.
    """

    weights: np.ndarray

    @abstractmethod
    def fit(self, model: Any, **options: Any) -> Any:
        """A clone of the model fitted to all groups; `options` are those of its `_solve`."""

    @abstractmethod
    def leave_outs(self, model: Any, **options: Any) -> Iterator[Any]:
        """The same without each of the groups in turn."""

    @abstractmethod
    def searches(self, model: Any) -> Iterator[Any]:
        """A whole search again, without each of the groups in turn."""


def group_data(model: Any, data: Samples | Source, n_groups: int, groups: Any) -> Groups:
    """Data that came through the door, in groups, as a model can be fitted to them."""
    w = data.w if isinstance(data, Samples) else data.weights
    labels = _labels(data.n_samples, None if w is None else to_numpy(w), n_groups, groups)
    grams, features = model._wants_response_grams(), None
    in_memory = SampleGroups(data, labels, groups) if isinstance(data, Samples) else None
    if getattr(model, "_uses_landmarks", False):
        fitted = hasattr(model, "tucker_")
        features = model._features_so_far() if fitted else model._draw_features(data)
        parts = features.fold_moments(data, labels, int(labels.max()) + 1, grams)
        return MomentGroups(parts, features, in_memory)
    if in_memory is not None and _needs_samples(model, in_memory):
        return in_memory
    if isinstance(data, Source):
        return MomentGroups(data.fold_moments(labels, int(labels.max()) + 1, grams))
    assert in_memory is not None
    return MomentGroups(in_memory.moments(grams), None, in_memory)


def _labels(n_samples: int, weights: np.ndarray | None, n_groups: int, groups: Any) -> np.ndarray:
    """For each sample the number of its group; -1 for samples without weight.

    Groups are blocks of consecutive samples or, where `groups` says which samples belong together,
    made of those, as even in size as they can be.
    """
    rows = np.arange(n_samples) if weights is None else np.flatnonzero(weights > 0)
    together = None
    if groups is not None:
        together = np.asarray(groups)
        if together.shape != (n_samples,):
            raise ValueError(
                f"groups must have one entry for each of the {n_samples} samples; got shape "
                f"{together.shape}."
            )
        together = np.unique(together, return_inverse=True)[1][rows]
    n_units = rows.size if together is None else np.unique(together).size
    if n_units < 2:
        what = "samples of positive weight" if together is None else "different groups"
        raise ValueError(f"two {what} are needed at least; got {n_units}.")
    splitter = (KFold if together is None else GroupKFold)(min(n_groups, n_units))
    labels = np.full(n_samples, -1, dtype=np.intp)
    for k, (_, test) in enumerate(splitter.split(rows, groups=together)):
        labels[rows[test]] = k
    return labels


def _needs_samples(model: Any, groups: SampleGroups) -> bool:
    """Whether moments do not hold what the fit needs, or not as well."""
    data, labels = groups.data, groups.labels[groups.labels >= 0]
    return (
        not isinstance(model, LinearTensorRegressor)
        or getattr(model, "solver", "auto") == "svd"
        or getattr(model, "output_weight", None) is not None
        or labels.size - np.bincount(labels).max() < data.n_features
        or (getattr(model, "missing", "raise") == "fill" and has_holes(data))
    )


class MomentGroups(Groups):
    """Groups of which the moments are known.

    Parameters
    ----------
    parts : list of Moments
        Of the inputs, or of their features.
    features : object, optional
        The feature map of landmarks.
    in_memory : SampleGroups, optional
        The samples themselves, where they are at hand.
    """

    def __init__(
        self, parts: Sequence[Moments], features: Any = None, in_memory: SampleGroups | None = None
    ):
        self.parts, self.features, self.in_memory = list(parts), features, in_memory
        self.weights = np.array([part.weight for part in parts])

    def fit(self, model: Any, **options: Any) -> Any:
        return self._fit(model, self.parts[0].merge(*self.parts[1:]), options)

    def leave_outs(self, model: Any, **options: Any) -> Iterator[Any]:
        return (self._fit(model, others, options) for others in merge_others(self.parts))

    def _fit(self, model: Any, moments: Moments, options: dict[str, Any]) -> Any:
        if self.features is not None:
            return clone(model)._fit_features(self.features, moments, **options)
        return clone(model)._fit_moments(moments, keep=False, **options)

    def searches(self, model: Any) -> Iterator[Any]:
        """The groups are dealt to the folds of the search, in their order."""
        by_number = isinstance(model.cv, Integral)
        if self.in_memory is not None and (self.features is not None or not by_number):
            return self.in_memory.searches(model)
        if self.features is not None:
            raise ValueError(
                "stability=True would search again among landmark kernels, which needs the samples "
                "in memory; load X and y as NumPy arrays, or set stability=False."
            )
        n_folds = min(int(model.cv) if by_number else _N_FOLDS, len(self.parts))
        if len(self.parts) < 3:
            raise ValueError(
                f"stability=True needs three groups at least, since a search without one of them "
                f"still needs two folds; got {len(self.parts)}."
            )
        return self._dealt(model, n_folds)

    def _dealt(self, model: Any, n_folds: int) -> Iterator[Any]:
        dealt = np.array_split(np.arange(len(self.parts)), n_folds)
        folds = [[self.parts[k] for k in some] for some in dealt]
        whole = [fold[0].merge(*fold[1:]) for fold in folds]
        for f, fold in enumerate(folds):
            for rest in [[m] for m in merge_others(fold)] if len(fold) > 1 else [[]]:
                yield clone(model).fit_fold_moments([*whole[:f], *rest, *whole[f + 1 :]])


class SampleGroups(Groups):
    """Groups of samples in memory, for models that moments do not suffice for.

    Parameters
    ----------
    data : Samples
    labels : array of shape (n_samples,)
        The group of each sample, or -1.
    groups : array of shape (n_samples,), optional
        As given, for the splitters of a search.
    """

    def __init__(self, data: Samples, labels: np.ndarray, groups: Any):
        self.data, self.labels = data, labels
        self.groups = None if groups is None else np.asarray(groups)
        w, used = None if data.w is None else to_numpy(data.w), labels >= 0
        self.weights = np.bincount(labels[used], weights=None if w is None else w[used])

    def fit(self, model: Any, **options: Any) -> Any:
        return self._fit(model, self.labels >= 0, options)

    def leave_outs(self, model: Any, **options: Any) -> Iterator[Any]:
        return (self._fit(model, rows, options) for rows in self._others())

    def _others(self) -> Iterator[np.ndarray]:
        for k in range(self.weights.size):
            yield (self.labels >= 0) & (self.labels != k)

    def _fit(self, model: Any, rows: np.ndarray, options: dict[str, Any]) -> Any:
        if model.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                "kernel='precomputed' has no inputs whose samples could be left out; pass X and a "
                "kernel."
            )
        return clone(model)._fit_data(self._some(rows), **options)

    def _some(self, rows: np.ndarray) -> Samples:
        index, data = np.flatnonzero(rows), self.data
        w = None if data.w is None else take(data.w, index)
        return replace(data, X=take(data.X, index), Y=take(data.Y, index), w=w)

    def moments(self, response_grams: bool) -> list[Moments]:
        """Moments of each group."""
        try:
            groups = (self._some(self.labels == k) for k in range(self.weights.size))
            return [group.moments(response_grams) for group in groups]
        except ValueError:
            check_finite(self.data.Y, "y")  # the place of a bad entry in all the data
            raise

    def searches(self, model: Any) -> Iterator[Any]:
        search = clone(model)
        if hasattr(model, "landmarks_"):  # they stay where they are
            search.set_params(landmarks=model.landmarks_, n_components=None)
        groups = None if isinstance(model.cv, Integral) else self.groups
        for rows in self._others():
            some, of_some = self._some(rows), None if groups is None else groups[rows]
            yield clone(search).fit(some.X, some.Y, some.w, groups=of_some)
