"""Sources of the problems of cross-validation: samples in memory (`Rows`) and sums (`FoldMoments`).

A source has data and folds. All sources have the same methods:

    open(candidate)                       computes what the folds of a candidate share
    problem(fold, candidate, min_alpha)   the training problem of a fold
    held_out(problem, fold)               the held-out data in the coordinates of the problem
    residuals(problem, fit, fold)         the held-out residuals of a fit to the problem
    default_alphas(candidates)            penalties scaled to the data
    refit(candidate, options)             a fit to all data

A candidate of a linear model is an `InputDesign`, which specifies features of the inputs, or None
for the inputs themselves. Kernels have sources of their own (`kernel.sources`), whose candidates
are kernels. All steps after the sources work with `Spectral` problems and `HeldOut` data, which do
not depend on the source.

`Problems` keeps the problems of all folds and candidates, so that each is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.checks import check_finite
from ..core.fit import Fit
from ..core.input_map import InputDesign, InputMap
from ..core.leverage import std_factor
from ..core.moments import CentredMoments, check_sizes, sizes_of
from ..core.namespace import Array, asarray_like, eigenvalues, namespace_of, on_host, to_numpy
from ..core.own_inputs import varies
from ..core.sparse import about_mean_times, centre_columns, dense_rows
from ..core.spectral import (
    Spectral,
    keeps_digits,
    spectral_from_arrays,
    spectral_from_moments,
    spectral_from_samples,
)
from ..core.tensor import multi_mode_product, unfold
from ..data.arrays import as_slice, take
from ..data.validation import Samples, sparse_samples
from ..linear.fit import LinearOptions, fit_data, fit_moments
from ..streaming.budget import search_budget
from ..streaming.chunks import Chunks
from .folds import Fold, Split, is_partition, leave_one_out, make_folds, n_training
from .grid import default_alphas
from .intervals import FoldResiduals, MomentResiduals, own_noise, residual_outputs
from .surface import HeldOut, RankPath, rank_path

__all__ = ["FoldMoments", "Kept", "Problem", "Problems", "Rows", "Source", "SparseRows"]
__all__ += ["Side", "features_of", "mapped", "row_alphas", "sample_residuals"]

_BLOCK = 2**26  # bytes of outputs of scattered samples that are copied together
_KEPT = 2**28  # bytes of the tensors T of the problems that are kept

Side = CentredMoments | Samples  # the training set or the held-out samples of a fold


@dataclass(frozen=True, eq=False)
class Problem:
    """Training problem of a fold.

    Parameters
    ----------
    spectral : Spectral
        Ridge problem of the features, for all penalties.
    features : InputMap, KernelFunction, Landmarks or None
        Map from the inputs of the source to the features; None for the inputs themselves.
    is_summed : bool
        Whether the problem comes from moments.
    """

    spectral: Spectral
    features: Any = None
    is_summed: bool = False

    def lifted(self, fit: Fit) -> Fit:
        """Return a fit to the features of a linear model in the inputs themselves."""
        return fit if self.features is None else fit.lifted(self.features)


class Source:
    """Attributes of all sources.

    Attributes
    ----------
    folds : list of Fold
        Folds of the data.
    shape : tuple of int
        Shape of the coefficients, input mode first.
    max_input_rank : int
        Upper bound on the number of input directions that a fold supports.
    n_training : int
        Largest number of training samples with positive weight of any fold.
    data : Samples or None
        All samples, if they are dense and in memory.
    fit_intercept : bool
        Whether to fit an intercept.
    x_unit, y_unit : float
        Powers of two that the inputs and the outputs were divided by.
    device : array or None
        An array of the data, if they are on an accelerator.
    """

    folds: list[Fold]
    shape: tuple[int, ...]
    max_input_rank: int
    n_training: int
    fit_intercept: bool
    data: Samples | None = None
    x_unit: float = 1.0
    y_unit: float = 1.0
    device: Array | None = None

    @property
    def n_features(self) -> int:
        """Number of inputs."""
        return self.shape[0]

    @property
    def output_shape(self) -> tuple[int, ...]:
        """Shape of the outputs of a sample, ``(d1, ..., dp)``."""
        return self.shape[1:]

    def open(self, candidate: Any) -> None:
        """Compute what the folds of a candidate share. By default, there is nothing to compute."""

    def problem(self, fold: Fold, candidate: Any, min_alpha: float) -> Problem:
        """Return the training problem of a fold, for penalties of at least `min_alpha`."""
        raise NotImplementedError

    def held_out(self, problem: Problem, fold: Fold) -> Any:
        """Return the held-out data of a fold in the coordinates of its training problem."""
        raise NotImplementedError

    def residuals(self, problem: Problem, fit: Fit, fold: Fold) -> FoldResiduals | MomentResiduals:
        """Return the held-out residuals of a fit to the training problem of a fold."""
        raise NotImplementedError

    def default_alphas(self, candidates: Sequence[Any]) -> np.ndarray:
        """Return penalties scaled to the data, with equal ratios, in the units of scaled data."""
        raise NotImplementedError

    def refit(self, candidate: Any, options: Any) -> Fit:
        """Fit a model to all data."""
        raise NotImplementedError


# ---------------------------------------------------------------- sums


class FoldMoments(Source):
    """Moments of disjoint parts of the data, which are merged into those of training sets.

    Parameters
    ----------
    parts : list of CentredMoments
        Moments of disjoint samples.
    splits : list of index pairs, optional
        Training and test indices of each fold. By default, part k is the test set of fold k.
    cut : list of index pairs, optional
        Parts that are the training and test set of each fold, see `make_folds`.
    fit_intercept : bool
        Whether to fit an intercept.
    rows : Chunks, optional
        The samples of the moments, with sparse inputs, which have held-out residuals.
    """

    def __init__(
        self,
        parts: Sequence[CentredMoments],
        splits: Sequence[Split] | None = None,
        cut: Sequence[Split] | None = None,
        *,
        fit_intercept: bool = True,
        rows: Chunks | None = None,
    ) -> None:
        for part in parts:
            check_sizes(*sizes_of(part), part.weight, squares=True)
        first, self.fit_intercept, self.rows = parts[0], fit_intercept, rows
        self.folds = make_folds(leave_one_out(len(parts)) if splits is None else splits, parts, cut)
        self.shape = (first.n_features, *first.output_shape)
        self.n_training = max(fold.seen.n_samples for fold in self.folds if fold.seen is not None)
        self.max_input_rank = min(self.n_features, self.n_training)
        self.device = None if on_host(first.Sxx) else first.Sxx
        self._parts = parts
        self._total: CentredMoments | None = None

    def total(self) -> CentredMoments:
        """Return the moments of all data."""
        if self._total is None:
            self._total = self._parts[0].merge(*self._parts[1:])
        return self._total

    def seen(self, fold: Fold) -> CentredMoments:
        """Return the moments of the training set, about the centres of a fit."""
        assert fold.seen is not None
        return fold.seen.centred(self.fit_intercept)

    def unseen(self, fold: Fold) -> CentredMoments:
        """Return the moments of the held-out samples, about their own means."""
        assert fold.unseen is not None
        return fold.unseen

    def problem(
        self, fold: Fold, candidate: InputDesign | None = None, min_alpha: float = 0.0
    ) -> Problem:
        seen = self.seen(fold)
        features = features_of(candidate, seen, self.fit_intercept)
        return Problem(spectral_from_moments(mapped(features, seen)), features, is_summed=True)

    def held_out(self, problem: Problem, fold: Fold) -> HeldOut:
        unseen = mapped(problem.features, self.unseen(fold))
        return HeldOut.from_moments(problem.spectral, unseen)

    def residuals(self, problem: Problem, fit: Fit, fold: Fold) -> FoldResiduals | MomentResiduals:
        if self.rows is not None:
            return sparse_residuals(self.rows, fold.test, problem.lifted(fit))
        features, unseen = problem.features, self.unseen(fold)
        own = None if features is None else features.own
        leverage = 0.0 if own is None else own.total_leverage(unseen)
        return MomentResiduals(fit, mapped(features, unseen), leverage)

    def column_squares(self, scale: np.ndarray | None = None) -> np.ndarray:
        """Return the diagonal of ``X'X`` of all data, see `column_squares`."""
        return column_squares(self.total().centred(self.fit_intercept), scale)

    def n_different(self) -> int:
        """Return the number of training samples, of which repeated samples are not known."""
        return self.n_training

    def default_alphas(self, candidates: Sequence[InputDesign | None] = (None,)) -> np.ndarray:
        scale = None if candidates[0] is None else candidates[0].scale
        trace = float(self.column_squares(scale).sum())
        return default_alphas(trace, min(self.total().n_samples, self.n_features))

    def refit(self, candidate: InputDesign | None, options: LinearOptions) -> Fit:
        return fit_moments(self.total(), replace(options, inputs=candidate))


# ---------------------------------------------------------------- samples


class Rows(Source):
    """Samples in memory.

    If the folds partition the data and the moments of all folds fit into the memory budget, the
    moments of each fold are computed once, and the training moments are merged from the moments of
    the other folds (and not computed by subtraction). Otherwise the moments are computed for each
    split. The samples themselves are decomposed if a training set has fewer samples than features,
    or if its moments would lose digits.

    Parameters
    ----------
    data : Samples
        Scaled samples with complete outputs.
    splits : list of index pairs
        Training and test indices of each fold.
    fit_intercept : bool
        Whether to fit an intercept.
    """

    data: Samples

    def __init__(
        self, data: Samples, splits: Sequence[Split], *, fit_intercept: bool = True
    ) -> None:
        self.data, self.fit_intercept = data, fit_intercept
        self.shape = (data.n_features, *data.output_shape)
        self.x_unit, self.y_unit = data.x_unit, data.y_unit
        self.device = None if on_host(data.X) else data.X
        self.n_training = n_training(splits, data.w)
        self.max_input_rank = min(self.n_features, self.n_training)
        self._parts = self._sums_of(splits)
        self.folds = make_folds(splits, self._parts)

    def _sums_of(self, splits: Sequence[Split]) -> list[CentredMoments] | None:
        """Return the moments of the held-out samples if training moments are merged from them."""
        # Moments of each fold, of all preceding folds, and of its complement.
        held = 3 * len(splits) * 8 * math.prod(self.shape)
        tall = any(train.size >= self.n_features for train, _ in splits)
        if not (tall and held <= search_budget() and is_partition(splits, self.data.n_samples)):
            return None
        with located(self.data):
            return [_moments_of(self.data, test) for _, test in splits]

    def seen(self, fold: Fold) -> Side:
        """Return the training set: moments about the centres of a fit, or samples if it is wide."""
        if fold.train.size < self.n_features:
            return self.data.rows(fold.train)
        seen = _moments_of(self.data, fold.train) if fold.seen is None else fold.seen
        return seen.centred(self.fit_intercept)

    def unseen(self, fold: Fold) -> Side:
        """Return the held-out samples or, if the training set has moments, their moments."""
        if fold.train.size < self.n_features:
            return self.data.rows(fold.test)
        return _moments_of(self.data, fold.test) if fold.unseen is None else fold.unseen

    def problem(
        self, fold: Fold, candidate: InputDesign | None = None, min_alpha: float = 0.0
    ) -> Problem:
        with located(self.data):
            seen = self.seen(fold)
            features = features_of(candidate, seen, self.fit_intercept)
            if isinstance(seen, CentredMoments):
                m = mapped(features, seen)
                found = spectral_from_moments(m)
                if keeps_digits(found.s, min_alpha, m.n_features, self._dtype):
                    return Problem(found, features, is_summed=True)
                seen = self.data.rows(fold.train)
            # There may be fewer features than samples.
            decompose = spectral_from_arrays if features is None else spectral_from_samples
            part, how = mapped(features, seen), {"fit_intercept": self.fit_intercept}
            return Problem(decompose(part.X, part.Y, part.w, min_alpha=min_alpha, **how), features)

    def held_out(self, problem: Problem, fold: Fold) -> HeldOut:
        found = problem.spectral
        with located(self.data):
            if problem.is_summed:
                return HeldOut.from_moments(found, mapped(problem.features, self.unseen(fold)))
            test = mapped(problem.features, self.data.rows(fold.test))
            F = about_mean_times(test.X, found.mean_x, found.basis)
            return HeldOut.from_features(F, test.Y, found.mean_y, test.w)

    def residuals(self, problem: Problem, fit: Fit, fold: Fold) -> FoldResiduals:
        return sample_residuals(self.data, fold.test, problem.lifted(fit))

    def column_squares(self, scale: np.ndarray | None = None) -> np.ndarray:
        """Return the diagonal of ``X'X`` of all data, see `column_squares`."""
        if self._parts is not None:
            return column_squares(self._total().centred(self.fit_intercept), scale)
        return column_squares(self.data, scale, self.fit_intercept)

    def n_different(self) -> int:
        """Return `n_training` without repeated samples, unless it exceeds `n_features`."""
        many = 2 * self.n_features
        if self.n_training == 0 or _n_distinct(self.data, many) == many:
            return self.n_training
        rows = to_numpy(self.data.X) + 0.0  # + 0.0 removes negative zeros
        known: dict[bytes, int] = {}
        numbers = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows])
        used = np.ones(len(rows), bool) if self.data.w is None else to_numpy(self.data.w) > 0
        return max(np.unique(numbers[f.train[used[f.train]]]).size for f in self.folds)

    def default_alphas(self, candidates: Sequence[InputDesign | None] = (None,)) -> np.ndarray:
        return row_alphas(self.data, candidates[0], self.fit_intercept)

    def refit(self, candidate: InputDesign | None, options: LinearOptions) -> Fit:
        options = replace(options, inputs=candidate)
        if self._parts is not None and self.x_unit == self.y_unit == 1.0:
            total = self._total()
            m = total.centred(self.fit_intercept)
            m = mapped(features_of(candidate, m, self.fit_intercept), m)
            s = np.sqrt(np.maximum(eigenvalues(m.Sxx), 0.0))
            if keeps_digits(s, options.min_alpha, m.n_features, self._dtype):
                return fit_moments(total, options)
        if candidate is not None:
            options = replace(options, inputs=candidate.in_units(self.x_unit))
        return fit_data(self.data, options)[0]

    def _total(self) -> CentredMoments:
        assert self._parts is not None
        return self._parts[0].merge(*self._parts[1:])

    @property
    def _dtype(self) -> str:
        X = self.data.X
        return "float32" if X.dtype == namespace_of(X).float32 else "float64"


class SparseRows(Rows):
    """Samples with sparse inputs, fewer in each training set than there are features.

    The problems come from the Gram matrices of the sparse inputs.

    Parameters
    ----------
    data : Chunks
        Data with sparse inputs and complete outputs.
    splits, fit_intercept
        Parameters of `Rows`.
    """

    def __init__(
        self, data: Chunks, splits: Sequence[Split], *, fit_intercept: bool = True
    ) -> None:
        super().__init__(sparse_samples(data), splits, fit_intercept=fit_intercept)
        self.chunks = data

    def residuals(self, problem: Problem, fit: Fit, fold: Fold) -> FoldResiduals:
        return sparse_residuals(self.chunks, fold.test, problem.lifted(fit))

    def default_alphas(self, candidates: Sequence[InputDesign | None] = (None,)) -> np.ndarray:
        return default_alphas(*_sparse_trace(self.chunks, self.fit_intercept))

    def refit(self, candidate: InputDesign | None, options: LinearOptions) -> Fit:
        return fit_data(self.chunks, replace(options, inputs=candidate))[0]


# ---------------------------------------------------------------- features and residuals


def features_of(design: InputDesign | None, seen: Side, fit_intercept: bool) -> InputMap | None:
    """Return the map from inputs to features that a design computes from a training set."""
    if design is None:
        return None
    if isinstance(seen, CentredMoments):
        return design.from_moments(seen)
    return design.from_samples(seen.X, seen.Y, seen.w, fit_intercept)


def mapped(features: InputMap | None, side: Any) -> Any:
    """Return moments or samples with features as inputs."""
    if features is None:
        return side
    if isinstance(side, CentredMoments):
        return features.moments(side)
    return features.samples(side)


def row_alphas(data: Samples, design: InputDesign | None, fit_intercept: bool) -> np.ndarray:
    """Return penalties scaled to samples, whose inputs a design can scale."""
    if design is not None and design.scale is not None:
        data = replace(data, X=data.X * asarray_like(design.scale, data.X))
    squares, _ = _squares_of(data, fit_intercept)
    trace = float(namespace_of(squares).sum(squares))
    return default_alphas(trace, _n_distinct(data, data.n_features))


def column_squares(
    data: Side, scale: np.ndarray | None = None, fit_intercept: bool = True
) -> np.ndarray:
    """Return the diagonal of ``X'X``, of shape (n_columns,).

    Its entries are the sums of squares of the inputs about the centre of a fit, times `scale`
    squared. They are zero for inputs that are constant up to rounding.

    Parameters
    ----------
    data : CentredMoments or Samples
        All data; moments are about the centre of a fit.
    scale : array of shape (n_columns,), optional
        Factors of the inputs.
    fit_intercept : bool
        Whether to centre samples.
    """
    if isinstance(data, CentredMoments):
        squares, mean = to_numpy(data.Sxx).diagonal(), to_numpy(data.mean_x)
    else:
        squares, mean = map(to_numpy, _squares_of(data, fit_intercept))
    squares = np.where(varies(squares, mean, data.weight), squares, 0.0)
    return squares if scale is None else squares * scale * scale


def _squares_of(data: Samples, fit_intercept: bool) -> tuple[Array, Array]:
    """Return ``sum w (x - mean)^2`` of each feature, and the means; zero without an intercept."""
    xp = namespace_of(data.X)
    X = xp.astype(data.X, xp.float64, copy=False)
    w = xp.ones_like(X[:, 0]) if data.w is None else data.w
    mean = (w @ X) / xp.sum(w) if fit_intercept else xp.zeros_like(X[0, :])
    X = X - mean
    return w @ (X * X), mean


def _n_distinct(data: Samples, most: int) -> int:
    """Return the number of different inputs of samples with positive weight, at most `most`."""
    rows = np.arange(data.n_samples) if data.w is None else np.flatnonzero(to_numpy(data.w) > 0)
    found: set[bytes] = set()
    for start in range(0, rows.size, max(most, 64)):
        some = to_numpy(take(data.X, rows[start : start + max(most, 64)]))
        found.update(row.tobytes() for row in some + 0.0)  # + 0.0 removes negative zeros
        if len(found) >= most:
            return most
    return len(found)


def _sparse_trace(data: Chunks, fit_intercept: bool) -> tuple[float, int]:
    """Return the trace of ``X'X`` and the number of directions of sparse inputs."""
    X = data.X.astype(np.float64, copy=False)
    total = centre_columns(X, data.w, centre=fit_intercept).squares().sum()
    used = np.arange(data.n_samples) if data.w is None else np.flatnonzero(data.w)
    ends = zip(X.indptr[used], X.indptr[used + 1], strict=True)
    rows = {(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends}
    return float(total), min(len(rows), data.n_features)


@contextmanager
def located(data: Samples) -> Iterator[None]:
    """Make error messages give the position of an invalid entry in all data, not in a fold."""
    try:
        yield
    except ValueError:
        check_finite(data.Y, "y")
        raise


def _moments_of(data: Samples, index: np.ndarray) -> CentredMoments:
    """Compute the moments of some samples; scattered samples are copied in blocks."""
    if data.w is not None:  # a block in which all samples have weight zero would have no mean
        index = index[to_numpy(data.w)[index] > 0]
    # Blocks have more samples than features, since merging moments has a cost.
    step = max(_BLOCK // (8 * math.prod(data.output_shape)), 4 * data.n_features, 64)
    step = index.size if isinstance(as_slice(index), slice) else step
    found = []
    for start in range(0, index.size, step):
        some = data.rows(index[start : start + step])
        found.append(CentredMoments.from_checked(some.X, some.Y, some.w))
    return found[0].merge(*found[1:])


def sample_residuals(data: Samples, rows: np.ndarray, fit: Fit) -> FoldResiduals:
    """Return the residuals of a linear fit at some of the samples."""
    X, Y = take(data.X, rows), residual_outputs(data.Y)
    assert fit.hat is not None
    return FoldResiduals.of(fit, X, std_factor(fit.hat, X, own=fit.own), Y, data.w, rows)


def sparse_residuals(data: Chunks, rows: np.ndarray, fit: Fit) -> FoldResiduals:
    """Return the residuals of samples with sparse inputs, with a few dense rows at a time."""
    w = np.ones(data.n_samples) if data.w is None else data.w
    rows = rows[w[rows] > 0]
    X, T, Y = data.X[rows], fit.tucker, data.outputs
    hat, own = fit.hat, fit.own
    assert hat is not None
    factor = np.concatenate([std_factor(hat, x, own=own) for x in dense_rows(X)])
    return FoldResiduals(
        Y=Y.reshape(len(Y), -1),
        rows=rows,
        latent=X if T.factors[0] is None else X @ T.factors[0],
        core=unfold(multi_mode_product(T.core, (None, *T.factors[1:])), 0),
        intercept=np.reshape(fit.intercept, (-1,)),
        factor=factor,
        w=w[rows],
        own=own_noise(fit).reshape(-1),
        has_intercept=hat["intercept"],
        added=None if own is None else (X @ own.matrix).toarray(),
    )


# ---------------------------------------------------------------- all folds and candidates


@dataclass(frozen=True, eq=False)
class Kept:
    """Problem of a fold and a candidate, with its held-out data and its path of ranks.

    Parameters
    ----------
    problem : Problem
        Training problem.
    held_out : HeldOut or HeldOutSamples
        Held-out data in its coordinates.
    min_alpha : float
        Smallest penalty for which the problem is accurate.
    path : RankPath or None
        Errors of all ranks up to `ranks`; None if they were not requested.
    ranks : tuple of int
        Largest rank of each mode that is reduced.
    """

    problem: Problem
    held_out: Any
    min_alpha: float = 0.0
    path: RankPath | None = None
    ranks: tuple[int, ...] = ()


class Problems:
    """Problems of all folds and candidates of a search.

    Each problem is computed once, while the problems fit into a limit on memory.

    Parameters
    ----------
    source : Source
        Source of the problems.
    candidates : sequence
        Choices apart from penalties and ranks: designs of the inputs, or kernels.
    known : sequence of Kept, optional
        Problems of all folds of the only candidate, if they are known.
    """

    def __init__(
        self,
        source: Source,
        candidates: Sequence[Any] = (None,),
        known: Sequence[Kept] | None = None,
    ) -> None:
        self.source, self.candidates = source, list(candidates)
        self.shape, self.max_input_rank = source.shape, source.max_input_rank
        self.x_unit, self.y_unit, self.device = source.x_unit, source.y_unit, source.device
        self.n_folds, self.n_candidates = len(source.folds), len(self.candidates)
        self.n_training = source.n_training
        self._kept: list[list[Kept | None]] = [[None] * self.n_folds for _ in self.candidates]
        if known is not None:
            self._kept = [list(known)]

    def open(self, candidate: int) -> None:
        """Compute what the folds of a candidate share, before they run in threads."""
        self.source.open(self.candidates[candidate])

    def at(self, fold: int, candidate: int, min_alpha: float) -> Kept:
        """Return the problem of a fold, for penalties of at least `min_alpha`."""
        kept = self._kept[candidate][fold]
        if kept is not None and kept.min_alpha <= min_alpha:
            return kept
        where = self.source.folds[fold]
        problem = self.source.problem(where, self.candidates[candidate], min_alpha)
        found = Kept(problem, self.source.held_out(problem, where), min_alpha)
        n_kept = sum(one is not None for some in self._kept for one in some)
        if 8 * n_kept * math.prod(problem.spectral.T.shape) <= _KEPT:
            self._kept[candidate][fold] = found
        return found

    def path(self, fold: int, candidate: int, min_alpha: float, ranks: tuple[int, ...]) -> RankPath:
        """Return the errors of all ranks of a fold, which are kept together with its problem."""
        found = self.at(fold, candidate, min_alpha)
        if found.path is not None and found.ranks == ranks:
            return found.path
        path = rank_path(found.problem.spectral, found.held_out, ranks)
        if self._kept[candidate][fold] is found:
            self._kept[candidate][fold] = replace(found, path=path, ranks=ranks)
        return path

    def residuals(self, fold: int, problem: Problem, fit: Fit) -> FoldResiduals | MomentResiduals:
        """Return the held-out residuals of a fit to the training problem of a fold."""
        return self.source.residuals(problem, fit, self.source.folds[fold])

    def default_alphas(self) -> np.ndarray:
        """Return penalties scaled to the data, in the units of the scaled data."""
        return self.source.default_alphas(self.candidates)

    def refit(self, candidate: int, options: Any) -> Fit:
        """Fit a model to all data."""
        return self.source.refit(self.candidates[candidate], options)

    @property
    def splits(self) -> list[Split]:
        """Training and test samples of each fold."""
        return [(fold.train, fold.test) for fold in self.source.folds]

    @property
    def shared(self) -> np.ndarray:
        """Whether the test sets of two folds share samples, (n_folds, n_folds)."""
        eye, tests = np.eye(self.n_folds, dtype=bool), [fold.test for fold in self.source.folds]
        every = np.concatenate(tests)
        if np.unique(every).size == every.size:
            return eye
        held = np.zeros((self.n_folds, int(every.max()) + 1), dtype=np.float32)
        for fold, test in enumerate(tests):
            held[fold, test] = 1.0
        return eye | (held @ held.T > 0)

    @property
    def keeps_all(self) -> bool:
        """Whether the problems of all folds and candidates fit into the limit on memory."""
        return 8 * self.n_folds * self.n_candidates * math.prod(self.shape) <= _KEPT
