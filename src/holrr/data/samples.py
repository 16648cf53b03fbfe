"""The door of every fit: checked samples in memory, or a source that is read in blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..core.namespace import Array, all_to_numpy, namespace_of, to_numpy, waits
from ..core.units import ONE, Units
from .arrays import check_inputs, check_outputs, check_pair, check_weights, take
from .labels import Labels, check_features
from .moments import Moments
from .scores import Errors, check_scored, errors_of
from .source import Source, open_source, weights_of
from .take_labels import Unlabelled, take_pair

__all__ = ["Samples", "errors_on", "forget_names", "ingest", "open_data"]


@dataclass(frozen=True, eq=False)
class Samples:
    """Checked samples in memory.

    `Y` is in the library, on the device and of the floating-point type of `X`. Whether it is finite
    is found out by the first pass over it, since a pass of its own would cost as much as a fit.
    """

    X: Array  # (n_samples, n_features)
    Y: Array  # (n_samples, d1, ..., dp)
    w: Array | None = None  # weights of shape (n_samples,), in float64
    units: Units = ONE  # what the user's data were divided by

    @property
    def n_samples(self) -> int:
        """Number of samples, those without weight included."""
        return self.X.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns of `X`."""
        return self.X.shape[1]

    @property
    def output_shape(self) -> tuple[int, ...]:
        """``(d1, ..., dp)``."""
        return tuple(self.Y.shape[1:])

    @property
    def weight(self) -> float:
        """Sum of the weights."""
        return float(self.n_samples) if self.w is None else float(namespace_of(self.w).sum(self.w))

    @property
    def work(self) -> float:
        """About how many multiply-adds a linear fit takes, which decides on the threads."""
        return self.n_samples * self.n_features * (self.n_features + math.prod(self.output_shape))

    def rows(self, index: np.ndarray) -> Samples:
        """Some of the samples."""
        X, Y, w = (take(A, index) for A in (self.X, self.Y, self.w))
        return replace(self, X=X, Y=Y, w=w)

    def moments(self, response_grams: bool = False) -> Moments:
        """Moments of all samples."""
        return Moments.from_checked(self.X, self.Y, self.w, response_grams)

    def at_hand(self) -> Samples:
        """The same on the host, where an accelerator would only wait: mostly themselves."""
        size = self.n_samples * (self.n_features + math.prod(self.output_shape))
        if not waits(self.X, size):
            return self
        X, Y = all_to_numpy([self.X, self.Y])
        return replace(self, X=X, Y=Y, w=None if self.w is None else to_numpy(self.w))

    def in_units(self, *, inputs: bool = True) -> Samples:
        """The samples in units in which no square overflows or vanishes: mostly themselves.

        A kernel has its own idea of the scale of the inputs, which are left as they are then.
        """
        found = Units.of(self.X, self.Y)
        units = found if inputs else Units(1.0, found.y)
        if units.is_one:
            return self
        X = self.X if units.x == 1.0 else self.X / units.x
        return replace(self, X=X, Y=self.Y / units.y, units=units)


def open_data(
    X: Any, y: Any, sample_weight: Any = None, *, max_bytes: int | None = None
) -> Samples | Source:
    """Whatever a user has as checked samples, or as a source where it must not be read whole.

    NumPy, lists, tables, arrays of other libraries; memory maps, HDF5, Zarr, Dask. The memory
    budget of a source is the one in force where none is given.
    """
    return _open(take_pair(None, X, y, sample_weight), max_bytes)


def forget_names(estimator: BaseEstimator, output_shape: tuple[int, ...]) -> None:
    """Before a fit to moments, which hold no names; flat outputs must have their shape there."""
    for name in ("feature_names_in_", "labels_"):
        vars(estimator).pop(name, None)
    wanted = getattr(estimator, "output_shape", None)
    if wanted is None:
        return
    if tuple(wanted) != output_shape:
        raise ValueError(f"output_shape={wanted} is not that of the moments, {output_shape}.")
    estimator.labels_ = Labels(flat=True)


def _open(data: Unlabelled, max_bytes: int | None = None) -> Samples | Source:
    source = open_source(data.X, data.y, data.sample_weight, max_bytes)
    return _samples(data) if source is None else source


def _samples(data: Unlabelled) -> Samples:
    X, Y = check_pair(data.X, data.y)
    return Samples(X, Y, check_weights(data.sample_weight, X))


def ingest(
    estimator: BaseEstimator,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    reset: bool = True,
    stream: bool = True,
) -> Any:
    """The data of a fit; the estimator remembers number and names of features, and the labels.

    Parameters
    ----------
    estimator : estimator
    X, y, sample_weight
        As in `open_data`.
    reset : bool
        False for a batch, whose features are compared with those seen before.
    stream : bool
        Whether the estimator can take a source; if not, data on disk are read whole.
    """
    known = None if reset else estimator.labels_
    data = take_pair(estimator, X, y, sample_weight, known=known)
    if reset and type(data.X) is np.ndarray and data.X.ndim == 2 and not data.inputs:
        vars(estimator).pop("feature_names_in_", None)  # nowhere a name to look for
        estimator.n_features_in_ = data.X.shape[1]
    else:
        check_features(estimator, data.X, reset=reset, inputs=data.inputs)
    if reset:
        vars(estimator).pop("labels_", None)
        if data.labels is not None:
            estimator.labels_ = data.labels
    return (_open if stream else _samples)(data)


def errors_on(model: Any, X: Any, y: Any, sample_weight: Any = None) -> Errors:
    """What the scores of a fitted model are made of, from one look at the data."""
    data = take_pair(model, X, y, sample_weight, known=model.labels_)
    source = open_source(data.X, data.y, data.sample_weight)
    checked: Any = None if source is not None else check_inputs(data.X)
    check_features(model, data.X, reset=False, inputs=data.inputs)
    shape = np.shape(model.intercept_)
    if source is not None:
        check_scored((source.n_samples, *source.output_shape), (source.n_samples, *shape))
        return source.errors(model)
    Y = check_outputs(data.y)
    check_scored(Y.shape, (checked.shape[0], *shape))
    w = weights_of(data.sample_weight, Y.shape[0])
    with model._threads_for(checked.shape[0]):
        return errors_of(model, checked, Y, w)
