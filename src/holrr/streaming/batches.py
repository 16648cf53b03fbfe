"""Moments of a stream of batches in one pass, with progress, checkpoints and resumption."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..core.namespace import is_array, to_numpy
from ..core.sparse import is_sparse
from ..data.arrays import check_inputs
from ..data.labels import Labels, check_features
from ..data.unlabel import unlabel
from ..data.validation import named, without_missing
from ..io import check_writable
from ..progress import progress as progress_bar
from .moments import Moments, read_moments, write_moments
from .passes import RunningMoments, locate_errors

__all__ = ["moments_from_batches"]

Batch = tuple[Any, ...]


def moments_from_batches(
    batches: Iterable[Batch],
    response_grams: bool,
    progress: bool,
    checkpoint: str | os.PathLike[str] | None,
    checkpoint_every: int,
) -> Moments:
    """Compute the moments of the samples of all batches; see `Moments.from_batches`."""
    if not isinstance(batches, Iterable):
        raise TypeError(
            f"batches must be an iterable of pairs (X, Y) or triples (X, Y, sample_weight); got "
            f"{type(batches).__name__}."
        )
    is_bool = isinstance(checkpoint_every, bool)
    if not isinstance(checkpoint_every, Integral) or is_bool or int(checkpoint_every) < 1:
        raise ValueError(f"checkpoint_every must be a positive int; got {checkpoint_every!r}.")
    if not isinstance(checkpoint, (str, bytes, os.PathLike, type(None))):
        raise TypeError(
            f"checkpoint must be the name of a file, or None; got an object of "
            f"{type(checkpoint).__name__}."
        )
    state = _Pass(response_grams, checkpoint)
    try:
        with progress_bar("Gathering moments", progress, "progress=True") as bar:
            if hasattr(batches, "__len__"):
                bar.expect(len(batches))
            for number, batch in _numbered(batches, state.done):
                with locate_errors(f"batch {number}"):
                    state.take(number, batch)
                if state.done - state.saved >= checkpoint_every:
                    state.save()
                bar.tick()
    finally:  # also save the progress if a batch is invalid or the user interrupts
        state.save()
    return state.result()


class Batches(BaseEstimator):
    """Names of the features and outputs of batches, in the attributes of an estimator."""

    labels_: Labels | None = None


class _Pass:
    """State of a pass over batches, in memory and in its checkpoint."""

    def __init__(self, response_grams: bool, path: str | os.PathLike[str] | None) -> None:
        self.path, self.done, self.seen, self.names = path, 0, 0, Batches()
        self.marks, self.again = _Marks(), _Marks()
        moments: Moments | None = None
        if path is not None:
            try:  # raise before the first batch, not at the first checkpoint
                check_writable(path)
            except OSError as error:
                message = f"checkpoint cannot be written: {error.strerror}"
                raise OSError(error.errno, message, os.fspath(path)) from error
            if os.path.exists(path):
                moments, notes = read_moments(path)
                self.done, self.marks = _check_notes(notes, moments, response_grams, path)
        self.saved = self.done
        self.running = RunningMoments(response_grams, moments)

    def take(self, number: int, batch: Batch) -> None:
        """Add a batch, unless the checkpoint already contains it."""
        X, Y, w = self._without_names(*_check_batch(batch))
        digest = "" if self.path is None else _digest(X, Y, w)
        if number >= self.done:
            self.running.add(X, Y, w)
            self.done, self.marks = number + 1, self.marks.followed_by(digest)
        elif self.path is not None:
            self._compare(number, digest)
        self.seen = number + 1

    def _without_names(self, X: Any, Y: Any, w: Any) -> Batch:
        """Return a batch as arrays, after comparing its labels with those of other batches."""
        known = self.names.labels_
        data = unlabel(None, X, Y, w, known=known)
        if self.seen == 0:
            data, names = named(data)
            self.names.__dict__.update(names.attributes())
        else:
            check_features(self.names, data.X, data.inputs.naming)
            data = without_missing(data, known)
        return data.X, data.y, data.sample_weight

    def _compare(self, number: int, found: str) -> None:
        """Raise a ValueError if a batch differs from the one in the checkpoint.

        All batches of an iterator are read again and compared. The first and the last batch of a
        sequence that the checkpoint contains are read again and compared.
        """
        self.again = self.again.followed_by(found)
        here, there = self.again, self.marks
        last = number == self.done - 1
        if (
            here.first != there.first
            or (last and found != there.last)
            or (last and here.n == there.n and here.chain != there.chain)
        ):
            raise ValueError(
                f"the checkpoint {os.fspath(self.path or '')!r} belongs to other data: X, y or "
                f"sample_weight of a batch differ. Pass the same batches in the same order, or use "
                f"another file."
            )

    def save(self) -> None:
        """Write the checkpoint, if there is one and batches were added."""
        if self.path is not None and self.done > self.saved and not self.running.is_empty:
            notes = {"n_batches": self.done, "batches": asdict(self.marks)}
            write_moments(self.running.result(), self.path, notes)
            self.saved = self.done

    def result(self) -> Moments:
        if self.seen < self.done:
            raise ValueError(
                f"the checkpoint {os.fspath(self.path or '')!r} contains {self.done} batches, but "
                f"batches has only {self.seen}; pass the same batches, or use another file."
            )
        if self.done == 0:
            raise ValueError("batches must contain at least one batch (X, Y); it is empty.")
        names = getattr(self.names, "feature_names_in_", None)
        return replace(self.running.result(), feature_names=names, labels=self.names.labels_)


def _check_notes(
    notes: dict[str, Any], moments: Moments, response_grams: bool, path: str | os.PathLike[str]
) -> tuple[int, _Marks]:
    if "batches" not in notes:
        raise ValueError(
            f"{os.fspath(path)!r} contains moments, but is not a checkpoint of from_batches. Use "
            f"another file for the checkpoint. To include the moments of {os.fspath(path)!r}, load "
            f"them with Moments.load and add them to the result."
        )
    if (moments.response_grams is not None) != response_grams:
        raise ValueError(
            f"the checkpoint {os.fspath(path)!r} was written with response_grams="
            f"{not response_grams}; use the same value, or another file."
        )
    return int(notes["n_batches"]), _Marks(**notes["batches"])


def _check_batch(batch: Any) -> tuple[Any, Any, Any]:
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        length = f" of length {len(batch)}" if isinstance(batch, (tuple, list)) else ""
        raise TypeError(
            f"a batch must be a pair (X, Y) or a triple (X, Y, sample_weight); got "
            f"{type(batch).__name__}{length}."
        )
    X, Y, w = (*batch, None)[:3]
    return X, Y, to_numpy(w) if is_array(w) else w


def _digest(*arrays: Any) -> str:
    """Return a digest of all entries of the inputs, outputs and weights of a batch."""
    found = []
    for A in arrays:
        if is_sparse(A):
            csr = check_inputs(A, sparse=True)
            found.append(f"sparse {csr.shape} {_digest(csr.data, csr.indices, csr.indptr)}")
            continue
        values = None if A is None else np.asarray(to_numpy(A) if is_array(A) else A)
        if values is None:
            found.append("None")
            continue
        if values.dtype.hasobject:  # of a table, for instance: use entries, not addresses
            values = values.astype(np.float64)
        entries = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        found.append(f"{values.shape} {values.dtype.str} {zlib.crc32(entries.data):08x}")
    return hashlib.sha256("; ".join(found).encode()).hexdigest()


@dataclass(frozen=True)
class _Marks:
    """Digests of the first batch, of the last batch, and of all batches together."""

    n: int = 0
    first: str = ""
    last: str = ""
    chain: str = ""

    def followed_by(self, digest: str) -> _Marks:
        chain = hashlib.sha256((self.chain + digest).encode()).hexdigest()
        return _Marks(self.n + 1, self.first or digest, digest, chain)


def _numbered(batches: Iterable[Batch], done: int) -> Iterator[tuple[int, Batch]]:
    """Yield numbered batches; sequences skip known batches except the first and the last."""
    if done == 0 or not isinstance(batches, Sequence):
        yield from enumerate(batches)
    else:
        last = min(done, len(batches)) - 1  # `_Pass.result` checks the length
        for number in sorted({0, last, *range(done, len(batches))}) if len(batches) else ():
            yield number, batches[number]
