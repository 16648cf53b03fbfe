"""Splits of the samples into training and test parts, checked, and the moments of their pieces."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import model_selection as splitters

from ..core.namespace import Array, on_host, to_numpy
from ..data.validation import Samples
from ..streaming.moments import Moments
from ..streaming.stream import Stream

__all__ = ["Split", "check_splits", "gather_folds", "is_partition", "labels_of", "partition_of"]
__all__ += ["pieces_of", "split"]

Split = tuple[np.ndarray, np.ndarray]
# Splitters that count the samples and look at nothing of them.
_COUNTING = (splitters.KFold, splitters.RepeatedKFold, splitters.ShuffleSplit)


def split(data: Samples | Stream, cv: Any, groups: Any = None) -> list[Split]:
    """Training and test indices of each fold; those of a stream are a partition, since it is read once."""
    if isinstance(data, Stream):
        return partition_of(data, cv, groups)
    return check_splits(cv, data.X, data.Y, groups, data.w)


def check_splits(
    cv: Any, X: Array, Y: Array, groups: Any = None, sample_weight: Array | None = None
) -> list[Split]:
    """Pairs of training and test indices, each side with samples of positive weight."""
    n = X.shape[0]
    if groups is not None and np.shape(groups) != (n,):
        raise ValueError(
            f"groups must have one entry for each of the {n} samples; got {np.shape(groups)}."
        )
    # What is on an accelerator need not come over to be counted.
    splitter = splitters.check_cv(cv)
    far = not on_host(Y) and type(splitter) in _COUNTING
    pairs = list(splitter.split(X, None if far else to_numpy(Y), groups))
    if not pairs:
        raise ValueError(f"cv must give at least one split; cv={cv!r} gave none.")
    w = None if sample_weight is None else to_numpy(sample_weight)
    return [
        (_check_side(train, k, "training", n, w), _check_side(test, k, "test", n, w))
        for k, (train, test) in enumerate(pairs)
    ]


def _check_side(index: Any, k: int, side: str, n: int, w: np.ndarray | None) -> np.ndarray:
    index = np.asarray(index)
    if index.dtype == bool:
        if index.shape != (n,):
            raise ValueError(
                f"the {side} mask of split {k} of cv has shape {index.shape}; expected {(n,)}."
            )
        index = np.flatnonzero(index)
    if index.size == 0:
        raise ValueError(
            f"the {side} side of split {k} of cv is empty; it needs a sample at least."
        )
    if index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
        raise ValueError(
            f"the {side} side of split {k} of cv must be a 1-d array of integers or a mask; got "
            f"dtype {index.dtype} and shape {index.shape}."
        )
    if index.min() < -n or index.max() >= n:
        bad = index[(index < -n) | (index >= n)][0]
        raise ValueError(
            f"the {side} side of split {k} of cv holds {bad}, but there are {n} samples."
        )
    if w is not None and not w[index].any():
        raise ValueError(
            f"the {side} side of split {k} of cv has zero sample_weight throughout; it needs a "
            f"sample of positive weight."
        )
    return index % n


def is_partition(splits: Sequence[Split], n_samples: int) -> bool:
    """Whether each sample is tested once and each training set is what its test set leaves."""
    tested = np.zeros(n_samples, dtype=int)
    for train, test in splits:
        tested[test] += 1
        used = np.zeros(n_samples, dtype=bool)
        used[train] = used[test] = True
        if train.size + test.size != n_samples or not used.all():
            return False
    return bool((tested == 1).all())


def gather_folds(
    stream: Stream, cv: Any, groups: Any = None, response_grams: bool = False
) -> tuple[list[Moments], list[Split] | None]:
    """Moments of the folds of data beyond memory, from one pass over them.

    Returns
    -------
    parts : list of Moments
        Of the folds; where these are no partition, of the pieces that the splits cut the data into.
    splits : list of index pairs, or None
        The pieces to train on and to test on, where these are not the other folds and the fold.
    """
    splits, n = _splits_of(stream, cv, groups), stream.n_samples
    if is_partition(splits, n):
        return stream.fold_moments(labels_of(splits, n), len(splits), response_grams), None
    labels, cut = pieces_of(splits, n, stream.weights)
    n_pieces, d = int(labels.max()) + 1, stream.n_features
    held = 8 * (n_pieces + 2 * len(splits)) * d * (d + math.prod(stream.output_shape))
    if held > max(stream.max_bytes, 2**26):
        raise ValueError(
            f"cv={cv!r} cuts the data into {n_pieces} pieces, and the moments of all of them and "
            f"of {len(splits)} splits would take {held / 2**20:.3g} MiB; the memory budget is "
            f"{stream.max_bytes / 2**20:.3g} MiB. Take fewer splits, or KFold or GroupKFold."
        )
    return stream.fold_moments(labels, n_pieces, response_grams), cut


def pieces_of(
    splits: Sequence[Split], n_samples: int, weights: np.ndarray | None = None
) -> tuple[np.ndarray, list[Split]]:
    """The pieces that the borders of splits cut the data into: each is on one side of every split.

    Expanding windows and shuffled splits are sums of such pieces, so one pass over the data gives
    the moments of all their sides.

    Parameters
    ----------
    splits : list of index pairs
    n_samples : int
    weights : array of shape (n_samples,), optional

    Returns
    -------
    labels : array of shape (n_samples,)
        The piece of each sample; -1 for those without weight.
    splits : list of index pairs
        The same splits in pieces.

    Examples
    --------
    >>> windows = [(np.arange(2), np.arange(2, 4)), (np.arange(4), np.arange(4, 6))]
    >>> labels, cut = pieces_of(windows, 6)
    >>> labels.tolist(), [tuple(side.tolist() for side in split) for split in cut]
    ([1, 1, 2, 2, 0, 0], [([1], [2]), ([1, 2], [0])])
    """
    sides = np.zeros((n_samples, len(splits)), dtype=np.int8)
    for k, split in enumerate(splits):
        for code, index in zip((1, 2), split, strict=True):
            if np.unique(index).size < index.size:
                raise ValueError(
                    f"split {k} of cv holds a sample twice, which data beyond memory cannot; give "
                    f"it a weight instead."
                )
            sides[index, k] += code
    used = np.arange(n_samples) if weights is None else np.flatnonzero(weights > 0)
    found, inverse = np.unique(sides[used], axis=0, return_inverse=True)
    labels = np.full(n_samples, -1, dtype=np.intp)
    labels[used] = inverse.reshape(-1)
    return labels, [
        (np.flatnonzero(column % 2 == 1), np.flatnonzero(column >= 2)) for column in found.T
    ]


def _splits_of(stream: Stream, cv: Any, groups: Any = None) -> list[Split]:
    samples = np.empty((stream.n_samples, 0))  # splitters ask for the number of samples only
    return check_splits(cv, samples, samples, groups, stream.weights)


def partition_of(stream: Stream, cv: Any, groups: Any = None) -> list[Split]:
    """The splits of data beyond memory, which are read once."""
    splits = _splits_of(stream, cv, groups)
    if not is_partition(splits, stream.n_samples):
        raise ValueError(
            f"data beyond memory are read once, so cv must test every sample once and train on all "
            f"others, as KFold and GroupKFold do; cv={cv!r} does not."
        )
    return splits


def labels_of(splits: Sequence[Split], n_samples: int) -> np.ndarray:
    """For each sample the number of the split that tests it."""
    labels = np.empty(n_samples, dtype=np.intp)
    for fold, (_, test) in enumerate(splits):
        labels[test] = fold
    return labels
