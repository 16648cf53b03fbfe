"""Handling of outputs that are never observed, such as the sea in a map.

An output without any observed entry does not influence a fit. Structures that do not use the modes
of the outputs (full rank, matrix rank) are fitted to the other outputs, as a vector. For a low
multilinear rank, whole slices without any observed output are left out. The remaining outputs that
are never observed are unknown columns of Z (`Whitened.never`). If nothing else is missing, the
outputs of the fit are complete, whether the data are samples, moments or in chunks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.approximate import MultilinearRank, Structure
from ..core.checks import SAME_OUTPUTS, BadEntryError
from ..core.fit import Fit
from ..core.mixture import Mixture
from ..core.moments import CentredMoments
from ..core.namespace import row_blocks
from ..core.output_weights import product_of
from ..core.tensor import Tucker
from ..data.validation import Samples
from ..streaming.chunks import Chunks

__all__ = ["KnownOutputs", "Prepared", "PreparedChunks", "prepare", "prepare_chunks"]
__all__ += ["known_outputs_of"]

_BLOCK = 2**22  # bytes of outputs that are examined together


@dataclass(frozen=True, eq=False)
class KnownOutputs:
    """Known outputs of a grid, and their arrangement in a fit.

    Parameters
    ----------
    full_shape : tuple of int
        ``(d1, ..., dp)``.
    index : array of shape (k,)
        Positions of the outputs of the fit among all outputs, flattened.
    shape : tuple of int
        Shape of the outputs of the fit: ``(k,)``, or that of a smaller grid.
    slices : tuple of p arrays, or None
        For a smaller grid: the positions along each mode that are kept.
    never : array of bool, of this shape, or None
        Outputs of the smaller grid that are never observed; None if there are none.
    """

    full_shape: tuple[int, ...]
    index: np.ndarray
    shape: tuple[int, ...]
    slices: tuple[np.ndarray, ...] | None = None
    never: np.ndarray | None = None

    @classmethod
    def of(cls, never: np.ndarray, *, keep_grid: bool) -> KnownOutputs:
        """Leave out outputs that are never observed.

        Parameters
        ----------
        never : array of bool, of shape (d1, ..., dp)
        keep_grid : bool
            Whether the modes of the outputs matter, so that only whole slices are left out.
        """
        places = np.arange(never.size).reshape(never.shape)
        if not keep_grid:
            index = places[~never]
            return cls(never.shape, index, index.shape)
        modes = range(never.ndim)
        others = [tuple(k for k in modes if k != mode) for mode in modes]
        slices = tuple(np.flatnonzero(~never.all(axis=other)) for other in others)
        kept = never[np.ix_(*slices)] if slices else never
        index = places[np.ix_(*slices)] if slices else places
        return cls(never.shape, index.ravel(), kept.shape, slices, kept if kept.any() else None)

    @classmethod
    def in_place(cls, never: np.ndarray) -> KnownOutputs:
        """Keep all outputs: outputs that are never observed stay in place, as zeros."""
        slices = tuple(np.arange(d) for d in never.shape)
        return cls(never.shape, np.arange(never.size), never.shape, slices, never)

    # ------------------------------------------------------------ from all outputs

    def take(self, A: np.ndarray) -> np.ndarray:
        """Return the outputs of the fit, (..., *shape), from all outputs, (..., d1, ..., dp)."""
        lead = A.shape[: A.ndim - len(self.full_shape)]
        if self.index.size == math.prod(self.full_shape) and self.shape == self.full_shape:
            return A
        return A.reshape(*lead, -1)[..., self.index].reshape(*lead, *self.shape)

    def take_complete(self, A: np.ndarray) -> np.ndarray:
        """Return the outputs of the fit, with zeros for outputs that are never observed."""
        A = self.take(A)
        return A if self.never is None else np.where(self.never, np.zeros((), A.dtype), A)

    def check_block(self, Y: np.ndarray) -> np.ndarray:
        """Return `take_complete` of a block of samples; raise if other outputs are missing."""
        never = self.all_never
        wrong = np.isfinite(Y) == never
        if not wrong.any():
            return self.take_complete(Y)
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        if never[where[1:]]:
            raise BadEntryError(
                "y",
                "a number for an output that is missing in the first sample",
                where,
                SAME_OUTPUTS,
            )
        if math.isinf(Y[where]):
            raise BadEntryError("y", "infinity", where)
        raise BadEntryError(
            "y", "NaN for an output that is observed in the first sample", where, SAME_OUTPUTS
        )

    @property
    def all_never(self) -> np.ndarray:
        """Mask of the outputs that are never observed, (d1, ..., dp)."""
        known = np.ones(self.shape, bool) if self.never is None else ~self.never
        return ~self.put(known, fill=False)

    def moments(self, m: Any) -> CentredMoments:
        """Return moments of the outputs of the fit, with zeros for never observed outputs."""
        grams = m.response_grams
        if grams is not None:
            assert self.slices is not None
            grams = tuple(G[np.ix_(i, i)] for G, i in zip(grams, self.slices, strict=True))
        return CentredMoments(
            n_samples=m.n_samples,
            weight=m.weight,
            mean_x=m.mean_x,
            mean_y=self.take_complete(m.mean_y),
            Sxx=m.Sxx,
            Sxy=self.take_complete(m.Sxy),
            syy=m.syy,
            response_grams=grams,
            dtype=m.dtype,
            squares=None if m.squares is None else self.take_complete(m.squares),
            weight_squares=m.weight_squares,
        )

    def structure(self, structure: Structure, n_features: int) -> Structure:
        """Return the structure of the fit, with ranks capped at the sizes of the modes."""
        if isinstance(structure, Mixture):
            return replace(structure, base=self.structure(structure.base, n_features))
        if not isinstance(structure, MultilinearRank):
            return structure
        rank = structure.check(n_features, self.full_shape)
        sizes = (n_features, *self.shape)
        capped = (
            R if isinstance(R, float) else min(R, d) for R, d in zip(rank, sizes, strict=True)
        )
        return replace(structure, rank=tuple(capped))

    # ------------------------------------------------------------ back to all outputs

    def put(self, A: np.ndarray, fill: Any) -> np.ndarray:
        """Return all outputs, (..., d1, ..., dp), from those of the fit, (..., *shape)."""
        lead = A.shape[: A.ndim - len(self.shape)]
        out = np.full((*lead, math.prod(self.full_shape)), fill, dtype=A.dtype)
        out[..., self.index] = A.reshape(*lead, self.index.size)
        return out.reshape(*lead, *self.full_shape)

    def put_known(self, A: np.ndarray, fill: float = math.nan) -> np.ndarray:
        """Return all outputs, with `fill` for outputs that are never observed."""
        return self.put(A if self.never is None else np.where(self.never, fill, A), fill)

    def undo(self, fit: Fit) -> Fit:
        """Return a fit to all outputs, with NaN as intercept and noise of never observed ones."""
        weight, spectra = fit.weight, fit.spectra
        if spectra and self.slices is None:  # spectra of the output modes were not computed
            spectra = [spectra[0], *(np.empty(0) for _ in self.full_shape)]
        return replace(
            fit,
            tucker=self._expanded(fit.tucker),
            spectra=spectra,
            intercept=self.put_known(fit.intercept),
            rss_root=None if fit.rss_root is None else self.put_known(fit.rss_root),
            spread=None if fit.spread is None else self.put_known(fit.spread),
            weight=weight if np.ndim(weight) == 0 else self.put_known(weight, 0.0),
        )

    def _expanded(self, T: Tucker) -> Tucker:
        if self.slices is None:
            return Tucker(
                self.put(T.expanded(), fill=0.0),
                (T.factors[0], *(None,) * len(self.full_shape)),
                tuple(mode for mode in T.leading if mode == 0),
            )
        factors = list(T.factors[1:])
        for mode, (U, keep) in enumerate(zip(factors, self.slices, strict=True)):
            d = self.full_shape[mode]
            if keep.size < d:
                rows = np.zeros((d, T.rank[mode + 1]), dtype=T.core.dtype)
                rows[keep] = np.eye(keep.size, dtype=T.core.dtype) if U is None else U
                factors[mode] = rows
        return Tucker(T.core, (T.factors[0], *factors), T.leading)


# ---------------------------------------------------------------- samples in memory


@dataclass(frozen=True, eq=False)
class Prepared:
    """Samples with missing outputs, without samples and outputs that do not enter a fit.

    Parameters
    ----------
    samples : Samples
        Samples with weight and an observed output. Their outputs are those of `known`, times the
        roots of their weights, with NaN for missing entries. If `is_complete`, outputs that are
        never observed are zero, and there is no NaN.
    known : KnownOutputs or None
        None if every output is observed in some sample.
    weights : tuple of p arrays of shape (d_i,), or None
        Weights of all outputs, whose mean over the known outputs is one.
    rows : array of shape (n_samples,)
        Indices of the samples in the given data.
    n_dropped : int
        Number of samples without any observed output.
    is_complete : bool
        Whether every output is observed either in all samples or in none.
    """

    samples: Samples
    known: KnownOutputs | None
    weights: tuple[np.ndarray, ...] | None
    rows: np.ndarray
    n_dropped: int
    is_complete: bool

    @property
    def never(self) -> np.ndarray | None:
        """Outputs of complete samples that are never observed, as in `Whitened`."""
        return self.known.never if self.known is not None and self.is_complete else None

    @property
    def output_weight(self) -> np.ndarray | None:
        """Weight of each output of the samples, of their shape."""
        return _weight_of_known(self.weights, self.known)

    def undo(self, fit: Fit) -> Fit:
        """Return the fit to all outputs, in their units, from a fit to the samples."""
        return _expanded(fit, self.known, self.weights)


def prepare(data: Samples, weights: Any, *, keep_grid: bool) -> Prepared:
    """Leave out samples and outputs without observed entries, and weight the others.

    Parameters
    ----------
    data : Samples
        Samples of NumPy arrays, with NaN for missing outputs.
    weights : sequence of p arrays of shape (d_i,), or None
        Weights of the outputs. An output of weight zero is treated as never observed.
    keep_grid : bool
        As in `KnownOutputs.of`.
    """
    v = None if weights is None else product_of(weights)
    if v is not None and not v.all():
        data = replace(data, Y=np.where(v > 0, data.Y, np.array(np.nan, data.Y.dtype)))
    n_missing, rows, n_dropped = _count_missing(data)
    data = data if rows.size == data.n_samples else data.rows(rows)
    never = n_missing == rows.size
    known = KnownOutputs.of(never, keep_grid=keep_grid) if never.any() else None
    is_complete = bool((never | (n_missing == 0)).all())
    Y = data.Y
    if known is not None:
        Y = known.take_complete(Y) if is_complete else known.take(Y)
    if v is not None:
        assert weights is not None
        mean = float(v[~never].mean())
        weights = (weights[0] / mean, *weights[1:])
        root = np.sqrt(v / mean)
        Y = Y * (root if known is None else known.take(root)).astype(Y.dtype)
    samples = replace(data, Y=Y)
    return Prepared(samples, known, weights, rows, n_dropped, is_complete)


def _count_missing(data: Samples) -> tuple[np.ndarray, np.ndarray, int]:
    """Return the number of missing entries of each output, the samples to use, and n_dropped."""
    Y, n = data.Y, data.n_samples
    n_missing, some = np.zeros(data.output_shape, dtype=np.intp), np.empty(n, dtype=bool)
    counts = np.ones(n, dtype=bool) if data.w is None else data.w > 0
    for part in row_blocks(n, 8 * math.prod(data.output_shape), _BLOCK):
        missing = np.isnan(Y[part])
        some[part] = ~missing.reshape(len(missing), -1).all(axis=1)
        n_missing += missing[some[part] & counts[part]].sum(axis=0)
    if not some.any():
        raise ValueError("y has no observed entry: all entries are missing.")
    if not (some & counts).any():
        raise ValueError("sample_weight is zero for every sample of y with an observed entry.")
    return n_missing, np.flatnonzero(some & counts), n - int(some.sum())


# ---------------------------------------------------------------- data in chunks


@dataclass(frozen=True, eq=False)
class PreparedChunks:
    """Data in chunks with known outputs, multiplied by the roots of their weights.

    Parameters
    ----------
    data : Chunks
        Their outputs are those of `known`, times the roots of their weights.
    known : KnownOutputs or None
        None if every output is observed.
    weights : tuple of p arrays of shape (d_i,), or None
        Weights of all outputs, whose mean over the known outputs is one.
    """

    data: Chunks
    known: KnownOutputs | None
    weights: tuple[np.ndarray, ...] | None

    @property
    def output_weight(self) -> np.ndarray | None:
        """Weight of each output of the data, of their shape."""
        return _weight_of_known(self.weights, self.known)

    def undo(self, fit: Fit) -> Fit:
        """Return the fit to all outputs, in their units, from a fit to the data."""
        return _expanded(fit, self.known, self.weights)


def prepare_chunks(
    data: Chunks,
    weights: Sequence[np.ndarray] | None,
    *,
    ignore_missing: bool,
    keep_grid: bool,
) -> PreparedChunks:
    """Leave out outputs that are missing in every sample, and weight the others, lazily.

    Parameters
    ----------
    data : Chunks
    weights : sequence of p arrays of shape (d_i,), or None
        Weights of the outputs.
    ignore_missing : bool
        Whether outputs may be missing. If not, the first sample is not read.
    keep_grid : bool
        As in `KnownOutputs.of`.
    """
    known = None
    if ignore_missing:
        data, known = known_outputs_of(data, keep_grid=keep_grid)
    if weights is None:
        return PreparedChunks(data, known, None)
    if known is not None:
        mean = float(product_of(weights)[~known.all_never].mean())
        weights = (weights[0] / mean, *weights[1:])
    v = _weight_of_known(weights, known)
    assert v is not None
    return PreparedChunks(data.scaled_outputs(np.sqrt(v)), known, tuple(weights))


def _weight_of_known(
    weights: Sequence[np.ndarray] | None, known: KnownOutputs | None
) -> np.ndarray | None:
    """Return the weight of each output of a fit, from one vector for each output mode."""
    if weights is None:
        return None
    v = product_of(weights)
    return v if known is None else known.take(v)


def _expanded(fit: Fit, known: KnownOutputs | None, weights: Sequence[np.ndarray] | None) -> Fit:
    """Return the fit to all outputs, in their units, from a fit to known, weighted outputs."""
    fit = fit if known is None else known.undo(fit)
    return fit if weights is None else fit.unweighted(weights)


def known_outputs_of(data: Chunks, *, keep_grid: bool) -> tuple[Chunks, KnownOutputs | None]:
    """Return data with the outputs that are observed in the first sample, and these outputs.

    Every sample must have the same observed outputs, which is checked when they are read. Nothing
    is left out if the first sample is complete.

    Parameters
    ----------
    data : Chunks
    keep_grid : bool
        As in `KnownOutputs.of`.
    """
    never = np.isnan(data.first_outputs())
    if not never.any():
        return data, None
    if never.all():
        raise ValueError(
            "The first sample of y has no observed output. In data that are read in chunks, the "
            "first sample shows which outputs are missing in every sample. Leave out samples "
            "without any observed output."
        )
    known = KnownOutputs.of(never, keep_grid=keep_grid)
    return data.with_outputs(known.check_block, known.shape), known
