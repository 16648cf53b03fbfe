"""Fits without one group of samples at a time, from merged moments if possible."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold

from ..core.checks import check_finite
from ..core.fit import Fit
from ..core.mixture import Mixture
from ..core.moments import merge_others
from ..core.namespace import Array, namespace_of, to_numpy
from ..core.spectral import squares_keep_digits
from ..data.arrays import check_groups, ignores_missing
from ..data.inputs import input_space, whole_axes
from ..data.output_scale import divide_outputs
from ..data.own import read_own
from ..data.unlabel import unlabel_output_weight
from ..data.validation import Names, Samples
from ..kernel.estimators import KernelRegressor
from ..kernel.fit import fit_landmarks, fit_samples
from ..linear.estimators import LinearRegressor
from ..linear.fit import fit_data, fit_moments, refuse_output_weight, weigh_outputs
from ..linear.inputs import input_plan
from ..linear.robust import weigh_samples
from ..missing.fit import has_missing
from ..streaming.chunks import Chunks
from ..streaming.moments import Moments

__all__ = ["Groups", "group_data"]

# Number of folds of a search whose `cv` is not a number, if only moments are available.
_N_FOLDS = 5


def group_data(
    model: Any, data: Samples | Chunks, names: Names, n_groups: int, groups: Any
) -> Groups:
    """Divide validated data into groups, as moments or samples to fit a model to.

    The scale of the outputs is that of all data in every fit.
    """
    data, scale = divide_outputs(model, data, names.labels)
    data = _with_robust_weights(model, data, names)
    w = data.w
    labels = _labels(data.n_samples, None if w is None else to_numpy(w), n_groups, groups)
    given = None if groups is None else np.asarray(groups)
    found = Groups(data, labels, given, names, scale=scale)
    n, grams = labels.max() + 1, _response_grams(model)
    if getattr(model, "_uses_landmarks", False):
        draw = model._draw_features
        found.features = (
            model._features_so_far(names) if hasattr(model, "tucker_") else draw(data, names)
        )
        found.parts = found.features.fold_moments(data, labels, n, grams)
    elif isinstance(data, Chunks):
        if isinstance(model, LinearRegressor):
            what = "standard errors of data that are read in chunks"
            refuse_output_weight(model.output_weight, what)
        found.parts = data.fold_moments(labels, n, grams)
    elif not _needs_samples(model, data, labels[labels >= 0]):
        try:
            some = [found.some(labels == k) for k in range(n)]
            parts = [Moments.from_checked(part.X, part.Y, part.w, grams) for part in some]
        except ValueError:
            check_finite(data.Y, "y")  # reports the position in the whole data
            raise
        total = parts[0].merge(*parts[1:]).centred(model.fit_intercept)
        if squares_keep_digits(total, _least_penalty(model.alpha)):
            found.parts = parts
    if found.parts is not None and found.features is None:
        found.parts = [
            replace(part, feature_names=names.features, labels=names.labels) for part in found.parts
        ]
    return found


def _with_robust_weights(model: Any, data: Samples | Chunks, names: Names) -> Samples | Chunks:
    """Return data with the weights of a robust loss, which are the same in all refits."""
    if getattr(model, "loss", "squared") == "squared":
        return data
    known = model.output_weight, data, names.labels, ignores_missing(model)
    weighed, _ = weigh_samples(model, *weigh_outputs(*known))
    assert isinstance(data, Samples)
    return replace(data, w=weighed.w)


def _squared(model: Any) -> Any:
    """Return a clone for data that include the robust weights and the scale of the outputs."""
    params: dict[str, Any] = {} if model.scale_outputs is None else {"scale_outputs": 1.0}
    if hasattr(model, "loss"):
        params["loss"] = "squared"
    return clone(model).set_params(**params)


def _least_penalty(alpha: Any) -> float:
    """Return the smallest penalty of all blocks or outputs, or the single penalty."""
    return float(np.min(list(alpha.values()) if isinstance(alpha, dict) else alpha))


def _labels(n_samples: int, weights: np.ndarray | None, n_groups: int, groups: Any) -> np.ndarray:
    """Return the group number of each sample; -1 for samples without weight.

    Groups are blocks of consecutive samples. With `groups`, samples of one label stay together, and
    the groups are as equal in size as possible.
    """
    rows = np.arange(n_samples) if weights is None else np.flatnonzero(weights > 0)
    units = np.arange(n_samples) if groups is None else check_groups(groups, n_samples)
    units = np.unique(units[rows], return_inverse=True)[1]
    n_units = int(units.max()) + 1
    if n_units < 2:
        what = "samples of positive weight" if groups is None else "different groups"
        raise ValueError(f"at least two {what} are needed; got {n_units}.")
    splitter = (KFold if groups is None else GroupKFold)(min(n_groups, n_units))
    labels = np.full(n_samples, -1, dtype=np.intp)
    for k, (_, test) in enumerate(splitter.split(rows, groups=None if groups is None else units)):
        labels[rows[test]] = k
    return labels


def _needs_samples(model: Any, data: Samples, labels: np.ndarray) -> bool:
    """Return whether a fit needs samples, or is more accurate or cheaper with them."""
    return (
        isinstance(model, KernelRegressor)
        or getattr(model, "output_weight", None) is not None
        or labels.size - np.bincount(labels).max() < data.n_features  # X'X is larger than X
        or data.scaled() is not data  # moments would overflow or underflow
        or (ignores_missing(model) and has_missing(data))
    )


@dataclass(eq=False)
class Groups:
    """Data in groups that can be left out, one at a time."""

    data: Samples | Chunks | None = None
    # Group of each sample, or -1, and the label from the user, for splitters of a search.
    labels: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    groups: np.ndarray | None = None
    # Names of the data: the arrangement of the inputs, and the output modes of weights.
    names: Names = field(default_factory=lambda: Names(0))
    # Moments of each group, of the inputs or of their features; otherwise samples are fitted.
    parts: Sequence[Moments] | None = None
    features: Any = None
    # Divisor of the outputs, of shape (d1, ..., dp), if the data were divided.
    scale: np.ndarray | None = None

    @property
    def weights(self) -> np.ndarray:
        """Number of samples, or sum of their weights, of each group."""
        if self.parts is not None:
            return np.array([part.weight for part in self.parts])
        assert isinstance(self.data, Samples)
        w, used = self.data.w, self.labels >= 0
        return np.bincount(self.labels[used], None if w is None else to_numpy(w)[used])

    def fits(self, model: Any, mixture: Mixture | None = None, pilot: Any = None) -> Iterator[Any]:
        """Yield clones fitted to all data, and then without each group.

        Parameters
        ----------
        model : estimator
        mixture : Mixture, optional
            Mixture that is fitted in place of the structure of the model.
        pilot : pair of Structure and float, optional
            For a mixture, as in `LinearOptions`.
        """
        if self.parts is not None:
            for m in (self.parts[0].merge(*self.parts[1:]), *merge_others(self.parts)):
                yield _fit_moments(model, m, self, mixture)
            return
        if model.__sklearn_tags__().input_tags.pairwise:
            raise ValueError(
                "standard_errors does not support kernel='precomputed'; pass X and a kernel "
                "function."
            )
        for rows in (self.labels >= 0, *self._others()):
            yield _fit_samples(model, self.some(rows), self, mixture, pilot)

    def searches(self, model: Any) -> Iterator[Any]:
        """Yield searches that are repeated without each group."""
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
        """Yield searches over moments; the groups are assigned to folds in their order."""
        assert self.parts is not None
        if len(self.parts) < 3:
            raise ValueError(
                f"stability=True needs at least three groups, since a search without one of them "
                f"still needs two folds; got {len(self.parts)}."
            )
        dealt = np.array_split(np.arange(len(self.parts)), min(n_folds, len(self.parts)))
        folds = [[self.parts[k] for k in some] for some in dealt]
        whole = [fold[0].merge(*fold[1:]) for fold in folds]
        for f, fold in enumerate(folds):
            for rest in [[m] for m in merge_others(fold)] if len(fold) > 1 else [[]]:
                yield _squared(model).fit_fold_moments([*whole[:f], *rest, *whole[f + 1 :]])

    def _searched_samples(self, model: Any) -> Iterator[Any]:
        search = _squared(model).set_params(output_shape=None)  # samples have this shape
        groups = None if isinstance(model.cv, Integral) else self.groups
        if hasattr(model, "landmarks_"):  # landmarks do not change
            search.set_params(landmarks=model.landmarks_)
        if getattr(model, "output_weight", None) is not None:
            weight = unlabel_output_weight(model.output_weight, self.names.labels)
            search.set_params(output_weight=weight)
        if getattr(model, "blocks_", None) is not None:  # the samples have no names
            search.set_params(blocks=_with_dropped(model.blocks_, model.n_features_in_))
        if getattr(model, "own", None) is not None:
            search.set_params(own=self._own_mask(model))
        labels = self.names.labels
        if labels is not None and labels.used is not None:  # cells without names may be missing
            shapes = {grid.name: grid.shape for grid in labels.inputs}
            several = len(labels.inputs) > 1
            search.set_params(input_shape=shapes if several else labels.inputs[0].shape)
        for rows in self._others():
            some, of_some = self.some(rows), None if groups is None else groups[rows]
            X = self._with_modes(some.X)
            yield clone(search).fit(X, some.Y, some.w, groups=of_some)

    def _own_mask(self, model: Any) -> np.ndarray:
        """Return the own inputs of a search as a boolean array (n_inputs, n_outputs)."""
        labels, shape = self.names.labels, model._output_shape
        assert isinstance(self.data, Samples)
        (own,) = read_own(model.own, labels, self.data.n_features, shape, all_kinds=False)
        cells = input_space(labels, self.data.n_features).cells
        mask = np.zeros((model.n_features_in_, own.shape[1]), dtype=bool)
        for g in own.groups:
            for columns, outputs in zip(g.columns, g.outputs, strict=True):
                mask[np.ix_(columns if cells is None else cells[columns], outputs)] = True
        return mask

    def _with_modes(self, X: Array) -> Any:
        """Return inputs with the modes and blocks of the user's data."""
        labels = self.names.labels
        if labels is None or not labels.inputs:
            return X
        blocks = whole_axes(X.T, labels, X.shape[1])
        xp = namespace_of(X)
        blocks = [xp.moveaxis(block, -1, 0) for block in blocks]
        if len(blocks) == 1:
            return blocks[0]
        return {grid.name: block for grid, block in zip(labels.inputs, blocks, strict=True)}

    def _others(self) -> Iterator[np.ndarray]:
        for k in range(self.weights.size):
            yield (self.labels >= 0) & (self.labels != k)

    def multiplied(self, fit: Fit) -> Fit:
        """Return a fit to some of the samples in the units of the user."""
        return fit if self.scale is None else fit.multiplied(self.scale)

    def some(self, rows: np.ndarray) -> Samples:
        """Return some of the samples."""
        assert isinstance(self.data, Samples)
        return self.data.rows(np.flatnonzero(rows))


def _with_dropped(blocks: dict[str, Any], n_features: int) -> dict[str, np.ndarray]:
    """Return the columns of blocks, with dropped columns, which have no values, in the first."""
    found = {name: np.asarray(columns) for name, columns in blocks.items()}
    dropped = np.setdiff1d(np.arange(n_features), np.concatenate(list(found.values())))
    first = next(iter(found))
    return found | {first: np.concatenate([found[first], dropped])}


# ---------------------------------------------------------------- refits of an estimator


def _response_grams(model: Any) -> bool:
    return getattr(model, "subspaces", "fitted") == "response"


def _of_mixture(options: Any, mixture: Mixture | None) -> Any:
    """Return the options of a fit, with the mixture as its structure if there is one.

    A fit and a search use different units for penalties of blocks.
    """
    if mixture is None:
        return options
    return replace(options, structure=mixture.about(options.alpha))


def _fit_samples(
    model: Any, data: Samples, grouped: Groups, mixture: Mixture | None, pilot: Any
) -> Any:
    """Return a clone of the model, fitted to samples."""
    new, names, given = clone(model), Names(data.n_features), grouped.names
    if isinstance(new, LinearRegressor):
        plan = input_plan(new, given, data)
        options = _of_mixture(replace(new._options(plan), pilot=pilot), mixture)
        data, weights = weigh_outputs(new.output_weight, data, given.labels, options.ignore_missing)
        fit, n_dropped = fit_data(data, options, weights)
        return new._assign_fit(grouped.multiplied(fit), names, plan, n_dropped)
    if isinstance(new, KernelRegressor):
        fit = fit_samples(data, new._kernel_function(), _of_mixture(new._options(), mixture))
        return new._assign_fit(grouped.multiplied(fit), names, inputs=data.X)
    return new._fit_data(data, names, grouped.scale)


def _fit_moments(model: Any, moments: Moments, grouped: Groups, mixture: Mixture | None) -> Any:
    """Return a clone of the model, fitted to moments of inputs or of landmark features."""
    new, names, features = clone(model), Names(moments.n_features), grouped.features
    if features is not None:
        fit = fit_landmarks(features, moments, _of_mixture(new._options(), mixture))
        return new._assign_fit(grouped.multiplied(fit), names, features=features)
    if isinstance(new, LinearRegressor):
        plan = input_plan(new, grouped.names, moments)
        fit = fit_moments(moments, _of_mixture(new._options(plan), mixture))
        return new._assign_fit(grouped.multiplied(fit), names, plan)
    return new._fit_moments(moments, names, grouped.scale)
