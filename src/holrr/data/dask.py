"""Moments of Dask arrays by tree reduction, and lazy predictions.

Each chunk of samples becomes moments where it is; these, whose size does not depend on the number
of samples, are merged four by four, and one set of them comes back. Which threads, processes or
machines do the work is up to the active Dask scheduler.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from .arrays import check_inputs, check_outputs
from .budget import DEFAULT_MAX_BYTES
from .moments import Moments
from .reading import Box
from .running import Running, add_by_label, errors_say_where
from .scores import Errors, add_errors
from .source import Source, check_lengths, is_dask, weights_of

try:
    import dask
    import dask.array as da
    from dask.base import get_scheduler
    from dask.delayed import Delayed, delayed
    from dask.threaded import get as threaded_get
except ImportError as error:
    raise ImportError("Dask arrays need dask: pip install holrr[dask]") from error

__all__ = ["DaskSource", "predict_lazily"]

_FAN_IN = 4


class DaskSource(Source):
    """Dask arrays; one of `X` and `Y` may be a NumPy array.

    `X` is rechunked to the samples of `Y`, the larger one, and in full along the features. Chunks
    with fewer samples than features are joined with their neighbours, since their moments would be
    larger than themselves.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
    Y : array of shape (n_samples, d1, ..., dp)
    sample_weight : array of shape (n_samples,), optional
    max_bytes : int
        The memory budget, here of a single task.
    """

    def __init__(
        self, X: Any, Y: Any, sample_weight: Any = None, max_bytes: int = DEFAULT_MAX_BYTES
    ) -> None:
        self.max_bytes = max_bytes
        X = _known(X, "X") if is_dask(X) else check_inputs(X)
        Y = _known(Y, "y") if is_dask(Y) else check_outputs(Y)
        if X.ndim != 2:
            raise ValueError(f"X must have shape (n_samples, n_features); got {X.shape}.")
        check_lengths(X, Y)
        self.n_samples, self.n_features = X.shape
        self.output_shape = tuple(Y.shape[1:])
        if is_dask(sample_weight):
            sample_weight = sample_weight.compute()
        self.weights = weights_of(sample_weight, self.n_samples)
        self._Y = _chunked(da.asarray(Y), X, self.n_features, max_bytes)
        self._X = da.asarray(X).rechunk((self._Y.chunks[0], -1))

    def fold_moments(
        self, labels: np.ndarray | None, n_folds: int, response_grams: bool = False
    ) -> list[Moments]:
        # The Gram matrix of a mode needs all of the outputs of a sample in one place.
        Y = self._Y.rechunk((self._Y.chunks[0], *self.output_shape)) if response_grams else self._Y
        trees = list(self._trees(Y, labels, n_folds, response_grams))
        found = _compute([tree for _, tree in trees], Y.npartitions)
        boxes = [box for box, _ in trees]
        return [
            _joined(boxes, [part[k].result() for part in found], self.output_shape)
            for k in range(n_folds)
        ]

    def input_rows(self, index: np.ndarray) -> np.ndarray:
        return check_inputs(self._X[index].compute())

    def errors(self, model: Any) -> Errors | None:
        Y = self._Y.rechunk((self._Y.chunks[0], *self.output_shape))
        light, rows = delayed(_light(model)), _slices(Y.chunks[0])
        parts = zip(self._X.to_delayed().reshape(-1), Y.to_delayed().reshape(-1), rows, strict=True)
        leaves = [
            delayed(_errors_of_chunk)(
                light,
                X,
                Yb,
                None if self.weights is None else self.weights[part],
                f"the chunk {i} of samples {part.start} to {part.stop - 1}",
            )
            for i, (X, Yb, part) in enumerate(parts)
        ]
        return _compute([_tree(leaves, add_errors)], len(leaves))[0]

    def output_blocks(self, max_entries: int) -> Iterator[tuple[Box, Moments]]:
        """One part for each chunk of the outputs, cut further where it is too large."""
        Y = _cut(self._Y, max_entries // self.n_features)
        for box, tree in self._trees(Y, None, 1, False):
            ((part,),) = _compute([tree], Y.numblocks[0])
            yield box, part.result()

    def _trees(
        self, Y: Any, labels: np.ndarray | None, n_folds: int, response_grams: bool
    ) -> Iterator[tuple[Box, Delayed]]:
        """For each chunk of the outputs the moments of the folds, yet to be computed."""
        X, grid = self._X.to_delayed().reshape(-1), Y.to_delayed()
        rows = _slices(Y.chunks[0])
        take = lambda a, part: None if a is None else a[part]  # noqa: E731
        for index in product(*(range(n) for n in grid.shape[1:])):
            box = tuple(_slices(sizes)[i] for sizes, i in zip(Y.chunks[1:], index, strict=True))
            leaves = [
                delayed(_moments_of_chunk)(
                    X[i],
                    grid[(i, *index)],
                    take(self.weights, part),
                    take(labels, part),
                    n_folds,
                    response_grams,
                    self.features,
                    f"the chunk {(i, *index)} of samples {part.start} to {part.stop - 1}",
                )
                for i, part in enumerate(rows)
            ]
            yield box, _tree(leaves, _merge)


def _moments_of_chunk(
    X: Any,
    Y: Any,
    w: np.ndarray | None,
    labels: np.ndarray | None,
    n_folds: int,
    response_grams: bool,
    features: Callable[[Any], Any] | None,
    where: str,
) -> list[Running]:
    running = [Running(response_grams) for _ in range(n_folds)]
    with errors_say_where(where):
        X = X if features is None else features(check_inputs(X))
        add_by_label(running, labels, X, Y, w)
    return running


def _merge(parts: Sequence[list[Running]]) -> list[Running]:
    return [Running.joined(folds) for folds in zip(*parts, strict=True)]


def _errors_of_chunk(model: Any, X: Any, Y: Any, w: np.ndarray | None, where: str) -> Errors | None:
    with errors_say_where(where):
        return Errors.of(model, X, Y, w)


def _tree(leaves: list[Delayed], merge: Callable[..., Any]) -> Delayed:
    """Merge neighbours until one is left; the shape of the tree depends on their number only."""
    while len(leaves) > 1:
        leaves = [delayed(merge)(leaves[i : i + _FAN_IN]) for i in range(0, len(leaves), _FAN_IN)]
    return leaves[0]


def _compute(trees: list[Delayed], n_tasks: int) -> list[Any]:
    """All at once on the active scheduler.

    Threads of this process share the cores with those of the linear algebra: with many tasks each
    has one. Workers of a cluster look after themselves.
    """
    limits: AbstractContextManager[Any] = nullcontext()
    if get_scheduler(collections=trees) is threaded_get:
        cores = dask.system.CPU_COUNT
        limits = threadpool_limits(max(1, cores // n_tasks), "blas")
    with limits:
        return list(dask.compute(*trees))


def _joined(boxes: list[Box], parts: list[Moments], shape: tuple[int, ...]) -> Moments:
    """Moments of all outputs from those of parts of them."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    mean_y, Sxy = np.empty(shape), np.empty((first.n_features, *shape))
    for box, part in zip(boxes, parts, strict=True):
        mean_y[box], Sxy[(slice(None), *box)] = part.mean_y, part.Sxy
    syy = math.fsum(part.syy for part in parts)
    return replace(first, mean_y=mean_y, Sxy=Sxy, syy=syy)


# ---------------------------------------------------------------- chunks


def _known(A: Any, name: str) -> Any:
    """A Dask array of real numbers whose chunk sizes are known."""
    if any(math.isnan(d) for d in A.shape):
        raise ValueError(
            f"{name} is a Dask array of unknown chunk sizes; call {name}.compute_chunk_sizes() "
            f"first."
        )
    if A.ndim == 0 or 0 in A.shape:
        raise ValueError(f"{name} must have samples and no empty mode; got shape {A.shape}.")
    if A.dtype.kind not in "biuf":
        raise ValueError(f"{name} must hold real numbers; got dtype {A.dtype}.")
    return A


def _chunked(Y: Any, X: Any, n_features: int, max_bytes: int) -> Any:
    """`Y` in chunks of which each is worth its moments.

    The samples are cut where the user cut `Y` (or `X`, where `Y` is in memory), but chunks with
    fewer samples than features are joined. Chunks along the outputs are joined where the whole
    fits the budget.
    """
    samples = Y.chunks[0] if len(Y.chunks[0]) > 1 or not is_dask(X) else X.chunks[0]
    samples = _join_small(samples, n_features, max_bytes // (8 * max(1, _row(Y))))
    whole = 8 * max(samples) * math.prod(Y.shape[1:]) <= max_bytes // 4
    outputs = Y.shape[1:] if whole else Y.chunks[1:]
    return Y.rechunk((samples, *outputs))


def _row(Y: Any) -> int:
    """Entries of one sample within a chunk."""
    return math.prod(max(sizes) for sizes in Y.chunks[1:])


def _join_small(chunks: Sequence[int], least: int, most: int) -> tuple[int, ...]:
    """Neighbours joined until they have at least `least` samples, but never beyond `most`.

    >>> _join_small((2, 2, 2, 9, 1), 4, 100)
    (4, 11, 1)
    """
    joined: list[int] = []
    for n in chunks:
        if joined and joined[-1] < least and joined[-1] + n <= most:
            joined[-1] += n
        elif n > 0:
            joined.append(n)
    return tuple(joined)


def _cut(Y: Any, max_entries: int) -> Any:
    """Chunks of `Y` whose samples have `max_entries` outputs or fewer, at least one."""
    sizes = [max(chunk) for chunk in Y.chunks[1:]]
    for mode in range(len(sizes)):
        rest = math.prod(sizes[:mode]) * math.prod(sizes[mode + 1 :])
        sizes[mode] = max(1, min(sizes[mode], max_entries // rest))
    chunks = [
        tuple(n for whole in chunk for n in _pieces(whole, size))
        for chunk, size in zip(Y.chunks[1:], sizes, strict=True)
    ]
    return Y.rechunk((Y.chunks[0], *chunks))


def _pieces(whole: int, size: int) -> list[int]:
    return [min(size, whole - start) for start in range(0, whole, size)]


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = np.cumsum(sizes).tolist()
    return [slice(end - n, end) for n, end in zip(sizes, ends, strict=True)]


# ---------------------------------------------------------------- predictions


def predict_lazily(model: Any, X: Any, max_bytes: int = DEFAULT_MAX_BYTES) -> Any:
    """Predictions as a Dask array, of which nothing is computed yet.

    Parameters
    ----------
    model : fitted estimator
    X : Dask array of shape (n_samples, n_features)
    max_bytes : int
        Chunks of samples are cut where a chunk of the predictions would exceed a quarter of this.

    Returns
    -------
    Dask array of shape (n_samples, d1, ..., dp)
    """
    shape = np.shape(model.intercept_)
    most = max(1, max_bytes // (32 * max(1, math.prod(shape))))
    samples = tuple(n for whole in _known(X, "X").chunks[0] for n in _pieces(whole, most))
    dtype = np.dtype(model._dtype_name())
    return da.map_blocks(
        _predict_chunk,
        X.rechunk((samples, -1)),
        model=delayed(_light(model)),
        dtype=dtype,
        chunks=(samples, *((d,) for d in shape)),
        drop_axis=1,
        new_axis=list(range(1, len(shape) + 1)) or None,
        meta=np.empty((0,) * (1 + len(shape)), dtype=dtype),
    )


def _light(model: Any) -> Any:
    """The model without what predictions do not need."""
    light = copy.copy(model)
    vars(light).pop("moments_", None)
    return light


def _predict_chunk(X: np.ndarray, model: Any, block_id: tuple[int, ...] | None = None) -> Any:
    with errors_say_where(f"chunk {block_id[0] if block_id else 0} of the samples"):
        return model.predict(X)
