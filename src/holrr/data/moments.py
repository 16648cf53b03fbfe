"""Moments of whatever a user has: arrays, files, clusters, streams of batches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..core import moments as core

__all__ = ["Moments"]


@dataclass(frozen=True, eq=False)
class Moments(core.Moments):
    """Centred first and second moments of ``(X, Y)``: all that a linear fit needs of the data.

    They are gathered by `from_arrays` or `from_batches`, merged with ``+``, kept in files by `save`
    and `load`, and fitted by ``fit_moments`` of the linear estimators.

    Parameters
    ----------
    n_samples : int
        Number of samples seen.
    weight : float
        Sum of their weights; `n_samples` where there are none.
    mean_x : array of shape (n_features,)
    mean_y : array of shape (d1, ..., dp)
    Sxx : array of shape (n_features, n_features)
        ``sum w (x - mean_x)(x - mean_x)'``.
    Sxy : array of shape (n_features, d1, ..., dp)
        ``sum w (x - mean_x) (y - mean_y)``.
    syy : float
        ``sum w ||y - mean_y||^2``.
    response_grams : tuple of p arrays of shape (d_i, d_i), or None
        Gram matrices of the output modes of the centred `Y`, which only the paper's own choice of
        subspaces needs.
    dtype : str
        Floating-point type of the data, "float64" or "float32"; the moments themselves are float64.
    squares : array of shape (d1, ..., dp), or None
        ``sum w (y - mean_y)^2`` of each output, whose total is `syy`. None in files of older
        versions: fits are the same, but what they say of the noise needs it.

    Examples
    --------
    Statistics gathered in two places give the same fit as the data in one:

    >>> import numpy as np
    >>> from holrr import HOLRR, Moments
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.normal(size=(60, 4)), rng.normal(size=(60, 3, 2))
    >>> here = Moments.from_arrays(X[:20], Y[:20])
    >>> there = Moments.from_arrays(X[20:], Y[20:])
    >>> there.save("there.holrr")
    >>> merged = HOLRR(rank=2).fit_moments(here.merge(Moments.load("there.holrr")))
    >>> bool(np.allclose(merged.coef_, HOLRR(rank=2).fit(X, Y).coef_))
    True
    """

    @staticmethod
    def from_arrays(
        X: Any,
        Y: Any,
        sample_weight: Any = None,
        response_grams: bool = False,
        *,
        max_bytes: int | None = None,
    ) -> Moments:
        """Moments of the samples in `X` and `Y`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        Y : array of shape (n_samples, d1, ..., dp)
        sample_weight : array of shape (n_samples,), optional
        response_grams : bool, default=False
            Gather the Gram matrices of the output modes, too (for ``subspaces="response"``).
        max_bytes : int, optional
            About how much memory a pass over data on disk may take, beside the moments; 512 MiB by
            default. Memory maps, HDF5 and Zarr arrays are read in blocks, Dask arrays are reduced
            on the active scheduler.
        """
        from .samples import open_data

        return open_data(X, Y, sample_weight, max_bytes=max_bytes).moments(response_grams)

    @staticmethod
    def from_batches(
        batches: Iterable[tuple[Any, ...]],
        response_grams: bool = False,
        *,
        progress: bool = False,
        checkpoint: Any = None,
        checkpoint_every: int = 100,
    ) -> Moments:
        """Moments of a stream of batches, in one pass.

        Parameters
        ----------
        batches : iterable of pairs (X, Y) or triples (X, Y, sample_weight)
            Batches of any sizes. Of a sequence, those that a checkpoint holds are not read again.
        response_grams : bool, default=False
            Gather the Gram matrices of the output modes, too (for ``subspaces="response"``).
        progress : bool, default=False
            Show a progress bar on stderr.
        checkpoint : str or path, optional
            File to which the moments so far are saved, atomically, every `checkpoint_every`
            batches and at the end. Where it exists, the pass goes on from it: the batches in it
            are skipped, and the answer is that of one uninterrupted pass, to the last bit.
        checkpoint_every : int, default=100
            Number of batches from one checkpoint to the next.

        Returns
        -------
        Moments

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import Moments
        >>> rng = np.random.default_rng(0)
        >>> stream = ((rng.normal(size=(20, 3)), rng.normal(size=(20, 2, 2))) for _ in range(5))
        >>> Moments.from_batches(stream).n_samples
        100
        """
        from .batches import moments_from_batches

        return moments_from_batches(batches, response_grams, progress, checkpoint, checkpoint_every)

    def save(self, path: Any) -> None:
        """Save the moments to a file that holds no code, atomically.

        Parameters
        ----------
        path : str or path
        """
        from ..io import save

        save(self, path)

    @staticmethod
    def load(path: Any) -> Moments:
        """Moments from a file that `save` or a checkpoint of `from_batches` wrote.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Moments
            Of NumPy arrays.
        """
        from ..io import load_moments

        return load_moments(path)[0]
