"""Moments of a stream of batches in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import replace
from typing import Any

from sklearn.base import BaseEstimator

from ..core.namespace import is_array, to_numpy
from ..data.labels import Labels, check_features
from ..data.unlabel import unlabel
from ..data.validation import named, without_missing
from ..progress import progress as progress_bar
from .chunks import locate_errors, merged, moments_of
from .moments import Moments

__all__ = ["moments_from_batches"]

Batch = tuple[Any, ...]


def moments_from_batches(batches: Iterable[Batch], response_grams: bool, progress: bool) -> Moments:
    """Compute the moments of the samples of all batches; see `Moments.from_batches`."""
    if not isinstance(batches, Iterable):
        raise TypeError(
            f"batches must be an iterable of pairs (X, Y) or triples (X, Y, sample_weight); got "
            f"{type(batches).__name__}."
        )
    names, total, number = BatchNames(), None, -1
    with progress_bar("Gathering moments", progress, "progress=True") as bar:
        if isinstance(batches, Sized):
            bar.expect(len(batches))
        for number, batch in enumerate(batches):
            with locate_errors(f"batch {number}"):
                X, Y, w = names.removed(*_check_batch(batch))
                total = merged([total, moments_of(X, Y, w, response_grams)])
            bar.tick()
    if number < 0:
        raise ValueError("batches must contain at least one batch (X, Y); it is empty.")
    if total is None:
        raise ValueError("at least one sample of positive weight is needed; got none.")
    features = getattr(names, "feature_names_in_", None)
    return replace(total, feature_names=features, labels=names.labels_)


class BatchNames(BaseEstimator):
    """Names of the features and outputs of batches, in the attributes of an estimator."""

    labels_: Labels | None = None

    def removed(self, X: Any, Y: Any, w: Any) -> Batch:
        """Return a batch as arrays, after its labels were compared with those of other batches."""
        data = unlabel(None, X, Y, w, known=self.labels_)
        if hasattr(self, "n_features_in_"):
            check_features(self, data.X, data.inputs.naming)
            data = without_missing(data, self.labels_)
        else:
            data, names = named(data)
            self.__dict__.update(names.attributes())
        return data.X, data.y, data.sample_weight


def _check_batch(batch: Any) -> Batch:
    if not isinstance(batch, (tuple, list)) or len(batch) not in (2, 3):
        length = f" of length {len(batch)}" if isinstance(batch, (tuple, list)) else ""
        raise TypeError(
            f"a batch must be a pair (X, Y) or a triple (X, Y, sample_weight); got "
            f"{type(batch).__name__}{length}."
        )
    X, Y, w = (*batch, None)[:3]
    return X, Y, to_numpy(w) if is_array(w) else w
