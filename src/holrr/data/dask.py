"""Moments of Dask arrays by tree reduction, and lazy predictions.

Each chunk of samples becomes moments where it is; these, whose size does not depend on the number
of samples, are merged four by four, and one set of them comes back. Which threads, processes or
machines do the work is up to the active Dask scheduler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from ..core.responses import ResponseSums
from ..core.threads import limit_threads
from .arrays import check_inputs, check_outputs, unmasked
from .budget import DEFAULT_MAX_BYTES
from .chunks import chunked, cut, known, pieces, slices
from .moments import Moments
from .reading import Box
from .running import errors_say_where, join_blocks, moments_of_block
from .scores import Errors, add_errors, errors_of
from .source import Source, add_sums, check_rows_of_inputs, is_dask, light, sums_of_block

try:
    import dask
    import dask.array as da
    from dask.base import get_scheduler
    from dask.delayed import Delayed, delayed
    from dask.threaded import get as threaded_get
except ImportError as error:
    raise ImportError("Dask arrays need dask: pip install holrr[dask]") from error

__all__ = ["DaskSource", "map_lazily"]

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
        X = known(X, "X") if is_dask(X) else check_inputs(X)
        Y = known(Y, "y") if is_dask(Y) else check_outputs(Y)
        if X.ndim != 2:
            raise ValueError(f"X must have shape (n_samples, n_features); got {X.shape}.")
        self._describe(X, Y, sample_weight, max_bytes)
        self._in_memory = None if is_dask(X) else X
        self._Y = chunked(da.asarray(Y), X, self.n_features, max_bytes)
        self._X = da.asarray(X).rechunk((self._Y.chunks[0], -1))

    def fold_moments(
        self, labels: np.ndarray | None, n_folds: int, response_grams: bool = False
    ) -> list[Moments]:
        self._warn_of_size(n_folds)
        # The Gram matrix of a mode needs all of the outputs of a sample in one place.
        Y = self._whole_outputs() if response_grams else self._Y
        more = {"n_folds": n_folds, "response_grams": response_grams, "features": self.features}
        trees = list(self._trees(Y, moments_of_block, join_blocks, labels=labels, **more))
        found = _compute([tree for _, tree in trees], Y.npartitions)
        boxes = [box for box, _ in trees]
        return [
            _joined(boxes, [part[k].result() for part in found], self.output_shape)
            for k in range(n_folds)
        ]

    def input_rows(self, index: np.ndarray) -> np.ndarray:
        return check_rows_of_inputs(self._X[index].compute(), index)

    def _read_inputs(self) -> np.ndarray:
        return check_inputs(unmasked(self._X.compute(), "X"))

    def input_moments(self) -> Moments:
        ((_, tree),) = self._trees(self._X[:, 0], moments_of_block, join_blocks)
        ((total,),) = _compute([tree], self._X.numblocks[0])
        return replace(total.result(), dtype=self.dtype)

    def responses(
        self,
        basis: np.ndarray | None = None,
        mean_x: np.ndarray | None = None,
        *,
        max_entries: int | None = None,
        response_grams: bool = False,
    ) -> Iterator[tuple[Box, ResponseSums]]:
        """One part for each chunk of the outputs, cut further where it is too large."""
        X = self._X
        if basis is not None:
            X = da.from_array(basis, chunks=(self._Y.chunks[0], -1))
        whole = max_entries is None
        Y = self._whole_outputs() if whole else cut(self._Y, max_entries // X.shape[1])
        more: dict[str, Any] = {"mean_x": mean_x, "response_grams": response_grams}
        for box, tree in self._trees(Y, sums_of_block, add_sums, X=X, **more):
            yield () if whole else box, _compute([tree], Y.numblocks[0])[0]

    def errors(self, model: Any) -> Errors:
        tree = self._trees(
            self._whole_outputs(), _errors_of_chunk, add_errors, model=delayed(light(model))
        )
        return _compute([next(tree)[1]], self._Y.numblocks[0])[0]

    def _whole_outputs(self) -> Any:
        """`Y` with all outputs of a sample in one chunk."""
        return self._Y.rechunk((self._Y.chunks[0], *self.output_shape))

    def _trees(
        self,
        Y: Any,
        of_chunk: Callable[..., Any],
        merge: Callable[..., Any],
        *,
        X: Any = None,
        labels: np.ndarray | None = None,
        **options: Any,
    ) -> Iterator[tuple[Box, Delayed]]:
        """For each chunk of the outputs what `of_chunk` makes of it, yet to be computed."""
        inputs, grid = (self._X if X is None else X).to_delayed().reshape(-1), Y.to_delayed()
        for index in product(*(range(n) for n in grid.shape[1:])):
            box = tuple(slices(sizes)[i] for sizes, i in zip(Y.chunks[1:], index, strict=True))
            leaves = []
            for i, rows in enumerate(slices(Y.chunks[0])):
                w = None if self.weights is None else self.weights[rows]
                more = options if labels is None else {**options, "labels": labels[rows]}
                place = (i, *index), rows, box
                leaves.append(delayed(_at)(place, of_chunk, inputs[i], grid[place[0]], w, **more))
            yield box, _tree(leaves, merge)


def _at(
    place: tuple[Any, slice, Box],
    of_chunk: Callable[..., Any],
    X: Any,
    Y: Any,
    w: np.ndarray | None,
    **more: Any,
) -> Any:
    """What `of_chunk` makes of a chunk; its errors say where they are."""
    chunk, rows, box = place
    where = f"the chunk {chunk} of samples {rows.start} to {rows.stop - 1}"
    with errors_say_where(where, rows, box):
        return of_chunk(unmasked(X, "X"), unmasked(Y, "y"), w, **more)


def _errors_of_chunk(X: Any, Y: Any, w: np.ndarray | None, model: Any) -> Errors:
    return errors_of(model, check_inputs(X), check_outputs(Y), w)


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
    here = get_scheduler(collections=trees) is threaded_get
    with limit_threads(dask.system.CPU_COUNT // n_tasks) if here else nullcontext():
        return list(dask.compute(*trees))


def _joined(boxes: list[Box], parts: list[Moments], shape: tuple[int, ...]) -> Moments:
    """Moments of all outputs from those of parts of them."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    mean_y, squares, Sxy = np.empty(shape), np.empty(shape), np.empty((first.n_features, *shape))
    for box, part in zip(boxes, parts, strict=True):
        mean_y[box], squares[box] = part.mean_y, part.squares
        Sxy[(slice(None), *box)] = part.Sxy
    syy = math.fsum(part.syy for part in parts)
    return replace(first, mean_y=mean_y, Sxy=Sxy, syy=syy, squares=squares)


# ---------------------------------------------------------------- predictions


def map_lazily(
    model: Any, X: Any, method: str, shape: Sequence[int], max_bytes: int = DEFAULT_MAX_BYTES
) -> Any:
    """Predictions, or input scores, as a Dask array, of which nothing is computed yet.

    Parameters
    ----------
    model : fitted estimator
    X : Dask array of shape (n_samples, n_features)
    method : str
        Of the model, for checked inputs in memory.
    shape : sequence of int
        Of what it gives for one sample.
    max_bytes : int
        Chunks of samples are cut where a chunk of the result would exceed a quarter of this.

    Returns
    -------
    Dask array of shape (n_samples, *shape)
    """
    most = max(1, max_bytes // (32 * max(1, math.prod(shape))))
    X = known(X, "X")
    samples = tuple(n for whole in X.chunks[0] for n in pieces(whole, most))
    dtype = np.dtype(model._dtype_name())
    return da.map_blocks(
        _map_chunk,
        X.rechunk((samples, -1)),
        model=delayed(light(model)),
        method=method,
        dtype=dtype,
        chunks=(samples, *((d,) for d in shape)),
        drop_axis=1,
        new_axis=list(range(1, len(shape) + 1)) or None,
        meta=np.empty((0,) * (1 + len(shape)), dtype=dtype),
    )


def _map_chunk(
    X: np.ndarray, model: Any, method: str, block_id: tuple[int, ...] | None = None
) -> Any:
    with errors_say_where(f"chunk {block_id[0] if block_id else 0} of the samples"):
        return getattr(model, method)(check_inputs(unmasked(X, "X")))
