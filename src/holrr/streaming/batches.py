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
from ..data.labels import Labels, check_features, features_of
from ..data.unlabel import unlabel
from ..data.validation import Names
from ..io import check_writable, load_moments, save
from ..progress import progress as progress_bar
from .moments import Moments
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
    """Moments of the samples of all batches; see `Moments.from_batches`."""
    if not isinstance(checkpoint_every, Integral) or int(checkpoint_every) < 1:
        raise ValueError(f"checkpoint_every must be an int from 1 on; got {checkpoint_every!r}.")
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
    finally:  # also when a batch is bad or the user stops: what is done is done
        state.save()
    return state.result()


class Batches(BaseEstimator):
    """Names of the features and outputs of batches, kept as an estimator keeps them."""

    labels_: Labels | None = None


class _Pass:
    """How far a pass has come, in memory and in its checkpoint, from which it goes on."""

    def __init__(self, response_grams: bool, path: str | os.PathLike[str] | None) -> None:
        self.path, self.done, self.seen, self.names = path, 0, 0, Batches()
        self.marks, self.again = _Marks(), _Marks()
        moments: Moments | None = None
        if path is not None:
            try:  # rather now than after a hundred batches
                check_writable(path)
            except OSError as error:
                said = f"checkpoint cannot be written: {error.strerror}"
                raise OSError(error.errno, said, os.fspath(path)) from error
            if os.path.exists(path):
                moments, notes = load_moments(path)
                self.done, self.marks = _check_notes(notes, moments, response_grams, path)
        self.saved = self.done
        self.running = RunningMoments(response_grams, moments)

    def take(self, number: int, batch: Batch) -> None:
        """Add a batch, unless the checkpoint has it already."""
        X, Y, w = self._without_names(*_check_batch(batch))
        digest = "" if self.path is None else _digest(X, Y, w)
        if number >= self.done:
            self.running.add(X, Y, w)
            self.done, self.marks = number + 1, self.marks.followed_by(digest)
        elif self.path is not None:
            self._compare(number, digest)
        self.seen = number + 1

    def _without_names(self, X: Any, Y: Any, w: Any) -> Batch:
        """A batch as arrays; its labels must be those of the other batches."""
        known = self.names.labels_
        data = unlabel(None, X, Y, w, known=known)
        if self.seen == 0:
            names = Names(*features_of(data.X, data.inputs.naming), data.labels)
            self.names.__dict__.update(names.attributes())
        else:
            check_features(self.names, data.X, data.inputs.naming)
        return data.X, data.y, data.sample_weight

    def _compare(self, number: int, found: str) -> None:
        """The pass cannot go on with other data unnoticed: what is in the file must be the same.

        All batches that come again are compared: all of a stream, two of a sequence.
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
                f"sample_weight of a batch differ. Give the same batches in the same order, or "
                f"another file."
            )

    def save(self) -> None:
        """Write the checkpoint, if there is one and something new for it."""
        if self.path is not None and self.done > self.saved and not self.running.is_empty:
            notes = {"n_batches": self.done, "batches": asdict(self.marks)}
            save(self.running.result(), self.path, notes=notes)
            self.saved = self.done

    def result(self) -> Moments:
        if self.seen < self.done:
            raise ValueError(
                f"the checkpoint {os.fspath(self.path or '')!r} holds {self.done} batches, but "
                f"there were only {self.seen}; give the same batches, or another file."
            )
        if self.done == 0:
            raise ValueError("batches must hold at least one batch (X, Y); there was none.")
        names = getattr(self.names, "feature_names_in_", None)
        return replace(self.running.result(), feature_names=names, labels=self.names.labels_)


def _check_notes(
    notes: dict[str, Any], moments: Moments, response_grams: bool, path: str | os.PathLike[str]
) -> tuple[int, _Marks]:
    if "batches" not in notes:
        raise ValueError(
            f"{os.fspath(path)!r} holds moments, but is no checkpoint of from_batches; give "
            f"another file, and merge the two with Moments.load."
        )
    if (moments.response_grams is not None) != response_grams:
        raise ValueError(
            f"the checkpoint {os.fspath(path)!r} was begun with response_grams="
            f"{not response_grams}; go on with the same, or give another file."
        )
    return int(notes["n_batches"]), _Marks(**notes["batches"])


def _check_batch(batch: Any) -> tuple[Any, Any, Any]:
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise TypeError(
            f"a batch must be a pair (X, Y) or a triple (X, Y, sample_weight); got "
            f"{type(batch).__name__}."
        )
    X, Y, w = (*batch, None)[:3]
    return X, Y, to_numpy(w) if is_array(w) else w


def _digest(*arrays: Any) -> str:
    """What tells a batch from others: all entries of its inputs, outputs and weights."""
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
        if values.dtype.hasobject:  # of a table, say: the entries, not where they are in memory
            values = values.astype(np.float64)
        entries = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        found.append(f"{values.shape} {values.dtype.str} {zlib.crc32(entries.data):08x}")
    return hashlib.sha256("; ".join(found).encode()).hexdigest()


@dataclass(frozen=True)
class _Marks:
    """What is known of some batches: the digests of the first, of the last and of all together."""

    n: int = 0
    first: str = ""
    last: str = ""
    chain: str = ""

    def followed_by(self, digest: str) -> _Marks:
        chain = hashlib.sha256((self.chain + digest).encode()).hexdigest()
        return _Marks(self.n + 1, self.first or digest, digest, chain)


def _numbered(batches: Iterable[Batch], done: int) -> Iterator[tuple[int, Batch]]:
    """Batches with their numbers; of a sequence, only two of those done are looked at again."""
    if done == 0 or not isinstance(batches, Sequence):
        yield from enumerate(batches)
    else:
        last = min(done, len(batches)) - 1  # shows that there are as many as were done
        for number in sorted({0, last, *range(done, len(batches))}) if len(batches) else ():
            yield number, batches[number]
