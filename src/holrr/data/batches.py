"""Moments of a stream of batches: one pass, shown, saved on the way and resumed after a crash."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from ..core.namespace import is_array, to_numpy
from ..io import load_moments, save
from .moments import Moments
from .running import Running, errors_say_where

__all__ = ["moments_from_batches"]

Batch = tuple[Any, ...]


def moments_from_batches(
    batches: Iterable[Batch],
    response_grams: bool = False,
    *,
    progress: bool = False,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: int = 100,
) -> Moments:
    """Moments of the samples of all batches; see `Moments.from_batches`."""
    if not isinstance(checkpoint_every, Integral) or int(checkpoint_every) < 1:
        raise ValueError(f"checkpoint_every must be an int from 1 on; got {checkpoint_every!r}.")
    state = _Pass(response_grams, checkpoint)
    try:
        for number, batch in _shown(_numbered(batches, state.done), batches, progress):
            with errors_say_where(f"batch {number}"):
                state.take(number, batch)
            if state.done - state.saved >= checkpoint_every:
                state.save()
    finally:  # also when a batch is bad or the user stops: what is done is done
        state.save()
    return state.result()


class _Pass:
    """How far a pass has come, in memory and in its checkpoint.

    Parameters
    ----------
    response_grams : bool
    path : str or path, or None
        The checkpoint, to go on from where it exists.
    """

    def __init__(self, response_grams: bool, path: str | os.PathLike[str] | None) -> None:
        self.path, self.done, self.first, self.seen = path, 0, "", 0
        moments: Moments | None = None
        if path is not None and os.path.exists(path):
            moments, notes = load_moments(path)
            self.done, self.first = _check_notes(notes, moments, response_grams, path)
        self.saved = self.done
        self.running = Running(response_grams, moments)

    def take(self, number: int, batch: Batch) -> None:
        """Add a batch, unless the checkpoint has it already."""
        X, Y, w = _check_batch(batch)
        if number == 0:
            self._recognise(X)
        self.seen = number + 1
        if number >= self.done:
            self.running.go_to(X)
            self.running.add(X, Y, w)
            self.done = number + 1

    def _recognise(self, X: Any) -> None:
        """The pass cannot go on with other data unnoticed: the first batch must be the same."""
        found = _digest(X)
        if self.first and found != self.first:
            raise ValueError(
                f"the checkpoint {os.fspath(self.path or '')!r} belongs to other data: X of the "
                f"first batch differs. Give the same batches in the same order, or another file."
            )
        self.first = found

    def save(self) -> None:
        """Write the checkpoint, if there is one and something new for it."""
        if self.path is not None and self.done > self.saved and not self.running.is_empty:
            notes = {"n_batches": self.done, "first_batch": self.first}
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
        return self.running.result()


def _check_notes(
    notes: dict[str, Any], moments: Moments, response_grams: bool, path: str | os.PathLike[str]
) -> tuple[int, str]:
    if "n_batches" not in notes:
        raise ValueError(
            f"{os.fspath(path)!r} holds moments, but is no checkpoint of from_batches; give "
            f"another file, and merge the two with Moments.load."
        )
    if (moments.response_grams is not None) != response_grams:
        raise ValueError(
            f"the checkpoint {os.fspath(path)!r} was begun with response_grams="
            f"{not response_grams}; go on with the same, or give another file."
        )
    return int(notes["n_batches"]), str(notes["first_batch"])


def _check_batch(batch: Any) -> tuple[Any, Any, Any]:
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        raise TypeError(
            f"a batch must be a pair (X, Y) or a triple (X, Y, sample_weight); got "
            f"{type(batch).__name__}."
        )
    X, Y, w = (*batch, None)[:3]
    return X, Y, None if w is None else np.asarray(to_numpy(w) if is_array(w) else w)


def _digest(X: Any) -> str:
    values = np.ascontiguousarray(to_numpy(X) if is_array(X) else np.asarray(X))
    return hashlib.sha256(
        repr((values.shape, values.dtype)).encode() + values.tobytes()
    ).hexdigest()


def _numbered(batches: Iterable[Batch], done: int) -> Iterator[tuple[int, Batch]]:
    """Batches with their numbers; of a sequence, only two of those done are looked at again."""
    if done == 0 or not isinstance(batches, Sequence):
        yield from enumerate(batches)
    else:
        last = min(done, len(batches)) - 1  # shows that there are as many as were done
        for number in sorted({0, last, *range(done, len(batches))}) if len(batches) else ():
            yield number, batches[number]


def _shown(numbered: Iterator[Any], batches: Any, progress: bool) -> Iterator[Any]:
    """The same with a progress bar, on request."""
    if not progress:
        return numbered
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError as error:
        raise ImportError("progress=True needs rich: pip install holrr[progress]") from error
    total = len(batches) if hasattr(batches, "__len__") else None
    console = Console(stderr=True)
    return iter(track(numbered, "Gathering moments", total=total, console=console))
