"""Splits of the samples into training and test sets, and folds: splits with their sums."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import model_selection as splitters

from ..core.moments import CentredMoments, merge_others
from ..core.namespace import Array, on_host, to_numpy
from ..data.validation import Samples
from ..streaming.budget import current_budget
from ..streaming.chunks import Chunks
from ..streaming.moments import Moments

__all__ = ["Fold", "Split", "check_fold_moments", "check_splits", "gather_folds", "is_partition"]
__all__ += ["labels_of", "leave_one_out", "make_folds", "n_training", "partition_of", "pieces_of"]
__all__ += ["split", "splits_of"]

Split = tuple[np.ndarray, np.ndarray]
# Splitters that use only the number of samples.
_COUNTING = (splitters.KFold, splitters.RepeatedKFold, splitters.ShuffleSplit)


# ---------------------------------------------------------------- folds


@dataclass(frozen=True, eq=False)
class Fold:
    """Training and held-out samples of one split.

    Parameters
    ----------
    train, test : arrays of int
        Indices of the samples; numbers of the given moments if there are only moments.
    seen, unseen : CentredMoments or None
        Moments of the training and of the held-out samples, about their own means. None if they
        are not computed before the search.
    """

    train: np.ndarray
    test: np.ndarray
    seen: CentredMoments | None = None
    unseen: CentredMoments | None = None


def make_folds(
    splits: Sequence[Split],
    parts: Sequence[CentredMoments] | None = None,
    cut: Sequence[Split] | None = None,
) -> list[Fold]:
    """Return the folds of some splits, with moments that are merged from those of disjoint parts.

    Parameters
    ----------
    splits : list of index pairs
        Training and test indices of each fold.
    parts : list of CentredMoments, optional
        Moments of disjoint parts of the data. By default, the folds have no moments.
    cut : list of index pairs, optional
        Numbers of the parts that are the training and the test set of each fold. By default, part k
        is the test set of fold k, and all other parts are its training set.
    """
    if parts is None:
        return [Fold(train, test) for train, test in splits]
    if cut is None:
        sums = list(zip(merge_others(parts), parts, strict=True))
    else:
        sums = [(_merged(parts, train), _merged(parts, test)) for train, test in cut]
    return [Fold(*split, *pair) for split, pair in zip(splits, sums, strict=True)]


def _merged(parts: Sequence[CentredMoments], index: np.ndarray) -> CentredMoments:
    first, *rest = (parts[i] for i in index)
    return first.merge(*rest)


def leave_one_out(n_parts: int) -> list[Split]:
    """Return the splits of which each tests one part and trains on all others."""
    every = np.arange(n_parts)
    return [(np.delete(every, k), every[k : k + 1]) for k in range(n_parts)]


def n_training(splits: Sequence[Split], w: Array | None) -> int:
    """Return the largest number of training samples with positive weight of any fold."""
    positive = None if w is None else to_numpy(w) > 0
    return int(max(t.size if positive is None else positive[t].sum() for t, _ in splits))


def check_fold_moments(
    moments: Any, response_grams: bool = False, *, ignore_missing: bool = False
) -> list[Moments]:
    """Check that `moments` has at least two folds of the same shape with positive weight."""
    if isinstance(moments, Moments) or not isinstance(moments, Iterable):
        raise TypeError(
            f"moments must be a sequence with the Moments of each fold; got "
            f"{type(moments).__name__}."
        )
    parts = list(moments)
    for k, part in enumerate(parts):
        if not isinstance(part, Moments):
            raise TypeError(f"moments[{k}] must be a Moments object; got {type(part).__name__}.")
        if not part.weight > 0:
            raise ValueError(f"moments[{k}] must have positive weight; got {part.weight}.")
        if response_grams and part.response_grams is None:
            raise ValueError(
                f"subspaces='response' needs moments with response Gram matrices, and moments[{k}] "
                f"has none. Compute the moments with response_grams=True."
            )
        if part.missing_outputs is not None and not ignore_missing:
            raise ValueError(
                f"moments[{k}] lacks {int(part.missing_outputs.sum())} outputs. Drop "
                f"these outputs from y, or use RLSCV, LRRCV or HOLRRCV with missing='ignore', "
                f"which leave them out."
            )
        here, first = (part.n_features, part.output_shape), parts[0]
        if here != (first.n_features, first.output_shape):
            raise ValueError(
                f"moments must have the same number of features and the same shape of outputs; "
                f"moments[0] has {first.n_features} features and outputs of shape "
                f"{first.output_shape}, and moments[{k}] has {here[0]} features and outputs of "
                f"shape {here[1]}."
            )
    if len(parts) < 2:
        raise ValueError(f"moments must have at least two folds; got {len(parts)}.")
    return parts


# ---------------------------------------------------------------- splits


def split(data: Samples | Chunks, cv: Any, groups: Any = None) -> list[Split]:
    """Return training and test indices of each fold; of data in chunks, they are a partition."""
    if isinstance(data, Chunks):
        return partition_of(data, cv, groups)
    return check_splits(cv, data.X, data.Y, groups, data.w)


def check_splits(
    cv: Any, X: Array, Y: Array, groups: Any = None, sample_weight: Array | None = None
) -> list[Split]:
    """Return pairs of training and test indices, and check that each has positive weight."""
    n = X.shape[0]
    if groups is not None and np.shape(groups) != (n,):
        raise ValueError(
            f"groups must have one entry for each of the {n} samples; got shape {np.shape(groups)}."
        )
    # Outputs on an accelerator are transferred only if the splitter uses them.
    try:
        splitter = splitters.check_cv(cv)
        far = not on_host(Y) and type(splitter) in _COUNTING
        pairs = [(a, b) for a, b in splitter.split(X, None if far else to_numpy(Y), groups)]
    except (TypeError, ValueError) as error:
        k = splitters.check_cv(cv).get_n_splits() if cv is None or isinstance(cv, int) else 0
        if n < k:
            got = f"{n}. Pass cv={n}, or fit" if n > 1 else "1 sample. Fit"
            raise ValueError(
                f"cv={k} needs at least {k} samples; got {got} more samples."
            ) from error
        samples = "single sample" if n == 1 else f"{n} samples"
        advice = ""
        if groups is None and "groups" in str(error):
            advice = " Pass the group of each sample: fit(X, y, groups=...)."
        message = f"cv={cv!r} does not split the {samples}: {str(error).rstrip('.')}.{advice}"
        raise ValueError(message) from error
    if not pairs:
        raise ValueError(
            f"cv must yield at least one split; cv={cv!r} yields none. A generator can be used "
            f"only once; pass a list of splits instead."
        )
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
                f"The {side} mask of split {k} of cv must have shape {(n,)}; got {index.shape}."
            )
        index = np.flatnonzero(index)
    if index.size == 0:
        raise ValueError(
            f"The {side} set of split {k} of cv is empty; it must have at least one sample."
        )
    if index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
        raise ValueError(
            f"The {side} set of split {k} of cv must be a 1-d array of integers or a mask; got "
            f"dtype {index.dtype} and shape {index.shape}."
        )
    if index.min() < -n or index.max() >= n:
        bad = index[(index < -n) | (index >= n)][0]
        raise ValueError(
            f"The {side} set of split {k} of cv has the index {bad}, but there are {n} samples; "
            f"indices must be at least {-n} and at most {n - 1}."
        )
    if w is not None and not w[index].any():
        raise ValueError(
            f"The {side} set of split {k} of cv has only samples of weight zero; it must have at "
            f"least one sample of positive weight."
        )
    return index % n


def is_partition(splits: Sequence[Split], n_samples: int) -> bool:
    """Return whether each sample is in one test set, and training sets are all other samples."""
    tested = np.zeros(n_samples, dtype=int)
    for train, test in splits:
        tested[test] += 1
        used = np.zeros(n_samples, dtype=bool)
        used[train] = used[test] = True
        if train.size + test.size != n_samples or not used.all():
            return False
    return bool((tested == 1).all())


def gather_folds(data: Chunks, splits: Sequence[Split]) -> tuple[list[Moments], list[Split] | None]:
    """Compute the moments of the folds in one pass over data in chunks.

    Parameters
    ----------
    data : Chunks
    splits : list of index pairs
        Splits from `splits_of`.

    Returns
    -------
    parts : list of Moments
        Moments of the folds. If the folds are not a partition, moments of the pieces into which
        the splits divide the data.
    splits : list of index pairs, or None
        Indices of training and test pieces of each split; None if the folds are a partition.
    """
    n, limit = data.n_samples, current_budget()
    if is_partition(splits, n):
        return data.fold_moments(labels_of(splits, n, data.w), len(splits)), None
    labels, cut = pieces_of(splits, n, data.w)
    n_pieces, d = int(labels.max()) + 1, data.n_features
    held = 8 * (n_pieces + 2 * len(splits)) * d * (d + math.prod(data.output_shape))
    if held > max(limit, 2**26):
        raise ValueError(
            f"cv divides the data into {n_pieces} pieces. The moments of all pieces and of "
            f"{len(splits)} splits need {held / 2**20:.3g} MiB, which exceeds the memory budget "
            f"of {limit / 2**20:.3g} MiB. Use fewer splits, or KFold or GroupKFold."
        )
    return data.fold_moments(labels, n_pieces), cut


def pieces_of(
    splits: Sequence[Split], n_samples: int, weights: np.ndarray | None = None
) -> tuple[np.ndarray, list[Split]]:
    """Divide the samples into pieces whose samples are in the same sets of every split.

    The training and test sets of expanding windows and shuffled splits are unions of such pieces,
    so one pass over the data gives the moments of all sets.

    Parameters
    ----------
    splits : list of index pairs
        Training and test indices of each split.
    n_samples : int
        Number of samples.
    weights : array of shape (n_samples,), optional
        Weights of the samples.

    Returns
    -------
    labels : array of shape (n_samples,)
        Piece of each sample; -1 for samples without weight.
    splits : list of index pairs
        Indices of training and test pieces of each split.

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
                    f"The {('training', 'test')[code - 1]} set of split {k} of cv contains a "
                    f"sample more than once, which is not supported for data that are read in "
                    f"chunks. Use sample_weight instead."
                )
            sides[index, k] += code
    used = np.arange(n_samples) if weights is None else np.flatnonzero(weights > 0)
    found, inverse = np.unique(sides[used], axis=0, return_inverse=True)
    labels = np.full(n_samples, -1, dtype=np.intp)
    labels[used] = inverse.reshape(-1)
    return labels, [
        (np.flatnonzero(column % 2 == 1), np.flatnonzero(column >= 2)) for column in found.T
    ]


def splits_of(data: Chunks, cv: Any, groups: Any = None) -> list[Split]:
    """Return the training and test indices of each fold of data in chunks."""
    samples = np.empty((data.n_samples, 0))  # splitters need only the number of samples
    return check_splits(cv, samples, samples, groups, data.w)


def partition_of(data: Chunks, cv: Any, groups: Any = None) -> list[Split]:
    """Return the splits of data in chunks, and check that they are a partition."""
    splits = splits_of(data, cv, groups)
    if not is_partition(splits, data.n_samples):
        raise ValueError(
            f"Data that are read in chunks need a cv that tests every sample once and trains on "
            f"all others, such as KFold or GroupKFold; got cv={cv!r}."
        )
    return splits


def labels_of(
    splits: Sequence[Split], n_samples: int, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the index of the split that tests each sample; -1 for samples without weight."""
    labels = np.empty(n_samples, dtype=np.intp)
    for fold, (_, test) in enumerate(splits):
        labels[test] = fold
    return labels if weights is None else np.where(weights > 0, labels, -1)
