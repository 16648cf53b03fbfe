"""Folds of cross-validation: splits of the samples, and the problem of each fold.

For each fold and candidate, a search needs the training problem with the held-out data in its
coordinates, the residuals of a fit to the fold, and penalties scaled to the data. The record
`Folds` has functions that compute these. Each family of models builds its own `Folds`. This module
builds the `Folds` of linear models (`linear_folds`), from samples (`sample_data`) or from moments
(`moment_data`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from sklearn import model_selection as splitters

from ..core.checks import check_finite
from ..core.fit import Fit
from ..core.input_map import InputDesign, InputMap, InputProducts
from ..core.leverage import std_factor
from ..core.moments import CentredMoments, check_sizes, merge_others, sizes_of
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
from ..data.validation import Samples
from ..linear.fit import LinearOptions, fit_data, fit_moments
from ..streaming.budget import search_budget
from ..streaming.moments import Moments
from ..streaming.sparse import SparseStream
from ..streaming.stream import Stream
from .grid import default_alphas
from .intervals import FoldResiduals, MomentResiduals, own_noise, residual_outputs
from .surface import HeldOut, RankPath, rank_path

__all__ = ["FoldData", "Folds", "Problems", "Split", "check_fold_moments", "check_splits"]
__all__ += [
    "column_squares",
    "features_of_fold",
    "gather_folds",
    "input_trace",
    "is_partition",
]
__all__ += ["labels_of", "linear_folds", "linear_problem", "moment_data"]
__all__ += ["n_different", "n_training", "partition_of", "penalties_of", "pieces_of"]
__all__ += ["products_of_fold", "sample_data"]
__all__ += ["sample_residuals", "sides_of_fold", "sparse_data", "split"]
__all__ += ["splits_of"]

_BLOCK = 2**26  # bytes of outputs of scattered samples that are copied together
_KEPT = 2**28  # bytes of the tensors T of the problems that are cached


@dataclass(frozen=True, eq=False)
class Folds:
    """Functions and sizes of cross-validation that a search needs.

    Candidates are the choices apart from penalties and ranks, such as the kernels of a kernel
    search. Penalties are in the units of the scaled data.

    Parameters
    ----------
    n_folds : int
        Number of folds.
    shape : tuple of int
        Shape of the coefficients, input mode first.
    max_input_rank : int
        Upper bound on the number of input directions that a fold supports.
    problem : callable
        ``problem(fold, candidate, min_alpha)`` returns the training problem and the held-out data,
        for penalties of at least `min_alpha`.
    residuals : callable
        ``residuals(fold, candidate, fit)`` returns the residuals of a fit to the training problem.
    default_alphas : callable
        Function that returns penalties scaled to the data, with equal ratios.
    refit : callable
        ``refit(candidate, options)`` fits a model to all data.
    total : callable
        Function that returns the moments of all data, or None if the folds have no moments.
    prepare : callable
        ``prepare(candidate)`` computes values that the folds share, before they run in threads.
    n_candidates : int
        Number of candidates.
    n_training : int
        Largest number of training samples with positive weight of any fold.
    x_unit, y_unit : float
        Powers of two that the inputs and the outputs were divided by.
    device : array or None
        An array of the data, if they are on an accelerator.
    splits : list of index pairs, or None
        Training and test sets of the folds, as indices of samples or of pieces of the data; None
        if the test sets share no samples.
    """

    n_folds: int
    shape: tuple[int, ...]
    max_input_rank: int
    problem: Callable[[int, int, float], tuple[Spectral, Any]]
    residuals: Callable[[int, int, Fit], FoldResiduals | MomentResiduals]
    default_alphas: Callable[[], np.ndarray]
    refit: Callable[[int, Any], Fit]
    total: Callable[[], CentredMoments | None] = lambda: None
    prepare: Callable[[int], object] = lambda candidate: None
    n_candidates: int = 1
    n_training: int = 0
    x_unit: float = 1.0
    y_unit: float = 1.0
    device: Array | None = None
    splits: Sequence[Split] | None = None

    @property
    def shared(self) -> np.ndarray:
        """Whether the test sets of two folds share samples, (n_folds, n_folds)."""
        eye = np.eye(self.n_folds, dtype=bool)
        if self.splits is None or len(self.splits) != self.n_folds:
            return eye
        tests = np.concatenate([test for _, test in self.splits])
        if np.unique(tests).size == tests.size:
            return eye
        held = np.zeros((self.n_folds, int(tests.max()) + 1), dtype=np.float32)
        for fold, (_, test) in enumerate(self.splits):
            held[fold, test] = 1.0
        return eye | (held @ held.T > 0)


class Problems:
    """Cache of the problems of all folds, with a limit on memory.

    Parameters
    ----------
    folds : Folds
        Folds of the data.
    """

    def __init__(self, folds: Folds) -> None:
        self.folds = folds
        self._kept: dict[tuple[int, int, float], tuple[Spectral, HeldOut]] = {}
        self._paths: dict[tuple[Any, ...], RankPath] = {}

    def __call__(self, fold: int, candidate: int, min_alpha: float) -> tuple[Spectral, HeldOut]:
        """Return training problem and held-out data, for penalties of at least `min_alpha`."""
        key = fold, candidate, min_alpha
        if key not in self._kept:
            found = self.folds.problem(*key)
            if 8 * len(self._kept) * math.prod(found[0].T.shape) > _KEPT:
                return found
            self._kept[key] = found
        return self._kept[key]

    def path(
        self, fold: int, candidate: int, min_alpha: float, ranks: tuple[int, ...], subspaces: str
    ) -> RankPath:
        """Return the `RankPath` of a fold, which is cached together with its problem."""
        problem, pair = (fold, candidate, min_alpha), self(fold, candidate, min_alpha)
        key = (*problem, ranks, subspaces)
        if key in self._paths:
            return self._paths[key]
        found = rank_path(*pair, ranks, subspaces)
        if problem in self._kept:
            self._paths[key] = found
        return found

    @property
    def keeps_all(self) -> bool:
        """Whether the problems of all folds and candidates fit into the limit on memory."""
        n = self.folds.n_folds * self.folds.n_candidates
        return 8 * n * math.prod(self.folds.shape) <= _KEPT


# ---------------------------------------------------------------- the data of folds


@dataclass(frozen=True, eq=False)
class FoldData:
    """Training and held-out data of every fold: moments, samples, or both.

    Parameters
    ----------
    n_folds : int
        Number of folds.
    n_features : int
        Number of features.
    output_shape : tuple of int
        Shape of the outputs of a sample, ``(d1, ..., dp)``.
    n_train : int
        Largest number of training samples with positive weight of any fold.
    moments : callable
        ``moments(fold)`` returns the moments of the training set, about the centres of a fit, and
        of the held-out samples, about their own means. It returns None if the samples are
        decomposed instead.
    samples : callable
        ``samples(fold)`` returns the training and held-out samples, or None if there are only
        moments.
    total : callable
        Function that returns the moments of all data, or None if the folds have no moments.
    everything : Samples or None
        All samples, if they are dense and in memory.
    held_out : callable
        ``held_out(fold)`` returns the indices of the held-out samples, or their moments.
    rows : callable
        ``rows(fold)`` returns the indices of training and held-out samples, if there are samples.
    prepare : callable
        Function that computes values that the folds share, before they run in threads.
    residuals : callable or None
        ``residuals(fold, fit)`` returns the residuals of a fit to the training samples of a fold,
        if the held-out samples are available in addition to their moments.
    sparse : SparseStream or None
        All data, if the inputs are sparse and ``XX'`` of each training set is decomposed.
    fit_intercept : bool
        Whether to fit an intercept.
    response_grams : bool
        Whether to compute the Gram matrices of the output modes.
    device : array or None
        An array of the data, if they are on an accelerator.
    """

    n_folds: int
    n_features: int
    output_shape: tuple[int, ...]
    n_train: int
    moments: Callable[[int], tuple[CentredMoments, CentredMoments] | None]
    samples: Callable[[int], tuple[Samples, Samples] | None]
    total: Callable[[], CentredMoments | None]
    everything: Samples | None
    held_out: Callable[[int], Any]
    rows: Callable[[int], Split]
    prepare: Callable[[], object] = lambda: None
    residuals: Callable[[int, Fit], FoldResiduals] | None = None
    sparse: SparseStream | None = None
    fit_intercept: bool = True
    response_grams: bool = False
    device: Array | None = None
    splits: Sequence[Split] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments of the functions that decompose samples."""
        return {
            "fit_intercept": self.fit_intercept,
            "response_grams": self.response_grams,
        }

    def keeps_digits(self, s: Array, alpha: float, n_features: int) -> bool:
        """Return whether the squared condition number leaves half of the digits.

        The result is True if there are only moments.
        """
        if self.everything is None:
            return True
        X = self.everything.X
        dtype = "float32" if X.dtype == namespace_of(X).float32 else "float64"
        return keeps_digits(s, alpha, n_features, dtype)


def moment_data(
    parts: Sequence[CentredMoments],
    splits: Sequence[Split] | None = None,
    *,
    fit_intercept: bool = True,
) -> FoldData:
    """Return the data of folds from moments of disjoint samples.

    Parameters
    ----------
    parts : list of Moments
        Moments of disjoint samples.
    splits : list of index pairs, optional
        Indices of training and test parts of each fold. By default, each part is the test set of
        one fold, and all other parts are its training set.
    fit_intercept : bool
        Whether to fit an intercept.
    """

    @cache
    def training() -> list[CentredMoments]:
        if splits is None:
            return merge_others(parts)
        return [_merged(parts, train) for train, _ in splits]

    @cache
    def total() -> CentredMoments:
        return parts[0].merge(*parts[1:])

    def held_out(fold: int) -> CentredMoments:
        return parts[fold] if splits is None else _merged(parts, splits[fold][1])

    def moments(fold: int) -> tuple[CentredMoments, CentredMoments]:
        return training()[fold].centred(fit_intercept), held_out(fold)

    for part in parts:
        check_sizes(*sizes_of(part), part.weight, squares=True)
    n, first = np.array([part.n_samples for part in parts]), parts[0]
    n_train = n.sum() - n if splits is None else [n[train].sum() for train, _ in splits]
    return FoldData(
        n_folds=len(n_train),
        n_features=first.n_features,
        output_shape=first.output_shape,
        n_train=int(max(n_train)),
        moments=moments,
        samples=lambda fold: None,
        total=total,
        everything=None,
        held_out=held_out,
        rows=_no_rows,
        prepare=training,
        fit_intercept=fit_intercept,
        device=None if on_host(first.Sxx) else first.Sxx,
        splits=splits,
    )


def _no_rows(fold: int) -> Split:
    raise ValueError(f"The indices of fold {fold} are not available, since it has only moments.")


def _merged(parts: Sequence[CentredMoments], index: np.ndarray) -> CentredMoments:
    first, *rest = (parts[i] for i in index)
    return first.merge(*rest)


def sample_data(
    data: Samples,
    splits: Sequence[Split],
    *,
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> FoldData:
    """Return the data of folds from samples in memory.

    If the folds partition the data and the moments of all folds fit into the memory budget, the
    moments of each fold are computed once, and the training moments are merged from the moments of
    the other folds (and not computed by subtraction). Otherwise the moments are computed for each
    split. Folds with fewer training samples than features are decomposed without moments.

    Parameters
    ----------
    data : Samples
        Scaled samples with complete outputs.
    splits : list of index pairs
        Training and test indices of each fold. An empty list is enough for the problem of all data.
    fit_intercept : bool
        Whether to fit an intercept.
    response_grams : bool
        Whether to compute the Gram matrices of the output modes.
    """
    n_features = data.n_features

    def is_wide(n_samples: int) -> bool:
        """Return whether to decompose the samples in place of ``X'X``."""
        return n_samples < n_features

    @cache
    def merged() -> FoldData | None:
        """Return folds of moments if the splits are a partition and the moments fit into memory."""
        # Moments of each fold, of all preceding folds, and of its complement.
        held = 3 * len(splits) * 8 * n_features * math.prod(data.output_shape)
        tall = any(not is_wide(train.size) for train, _ in splits)
        if not (tall and held <= search_budget() and is_partition(splits, data.n_samples)):
            return None
        with _located(data):
            parts = [_moments_of(data, test, response_grams) for _, test in splits]
        return moment_data(parts, fit_intercept=fit_intercept)

    def moments(fold: int) -> tuple[CentredMoments, CentredMoments] | None:
        train, test = splits[fold]
        if is_wide(train.size):
            return None
        by_moments = merged()
        if by_moments is not None:
            return by_moments.moments(fold)
        seen, unseen = (_moments_of(data, rows, response_grams) for rows in (train, test))
        return seen.centred(fit_intercept), unseen

    def total() -> CentredMoments | None:
        by_moments = merged()
        return None if by_moments is None else by_moments.total()

    def prepare() -> None:
        by_moments = merged()
        if by_moments is not None:
            by_moments.prepare()

    return FoldData(
        n_folds=len(splits),
        n_features=n_features,
        output_shape=data.output_shape,
        n_train=n_training(splits, data.w) or data.n_samples,
        moments=moments,
        samples=lambda fold: (data.rows(splits[fold][0]), data.rows(splits[fold][1])),
        total=total,
        everything=data,
        held_out=lambda fold: splits[fold][1],
        rows=lambda fold: splits[fold],
        prepare=prepare,
        fit_intercept=fit_intercept,
        response_grams=response_grams,
        device=None if on_host(data.X) else data.X,
        splits=splits,
    )


def sparse_data(
    data: SparseStream,
    splits: Sequence[Split],
    *,
    by_moments: bool = False,
    fit_intercept: bool = True,
    response_grams: bool = False,
) -> FoldData:
    """Return the data of folds from samples with sparse inputs.

    Training sets with fewer samples than features are decomposed by the Gram matrices of their
    sparse inputs. Otherwise the folds have moments.

    Parameters
    ----------
    data : SparseStream
        Samples with sparse inputs.
    splits : list of index pairs
        Training and test indices of each fold.
    by_moments : bool
        Whether moments are needed for any number of samples.
    fit_intercept : bool
        Whether to fit an intercept.
    response_grams : bool
        Whether to compute the Gram matrices of the output modes.
    """

    def side(rows: np.ndarray) -> Samples:
        w = None if data.weights is None else data.weights[rows]
        return Samples(data.inputs()[rows], data.outputs[rows], w)

    n_train = n_training(splits, data.weights)
    at = lambda fold, fit: sparse_residuals(data, splits[fold][1], fit)  # noqa: E731
    if by_moments or n_train >= data.n_features:
        parts, cut = gather_folds(data, splits, response_grams)
        parts = check_fold_moments(parts, response_grams)
        found = moment_data(parts, cut, fit_intercept=fit_intercept)
        return replace(found, residuals=at, splits=splits)
    check_finite(data.outputs, "y")
    return FoldData(
        n_folds=len(splits),
        n_features=data.n_features,
        output_shape=data.output_shape,
        n_train=n_train,
        moments=lambda fold: None,
        samples=lambda fold: (side(splits[fold][0]), side(splits[fold][1])),
        total=lambda: None,
        everything=None,
        held_out=lambda fold: splits[fold][1],
        rows=lambda fold: splits[fold],
        residuals=at,
        sparse=data,
        fit_intercept=fit_intercept,
        response_grams=response_grams,
        splits=splits,
    )


# ---------------------------------------------------------------- folds of linear models


def linear_folds(data: FoldData, designs: Sequence[InputDesign | None] = (None,)) -> Folds:
    """Return the folds of linear models, with designs of the inputs as candidates.

    Parameters
    ----------
    data : FoldData
        Data of the folds.
    designs : sequence of InputDesign or None
        Candidate designs; None uses the inputs themselves.
    """
    samples, first = data.everything, designs[0]

    @cache
    def features(fold: int, candidate: int) -> InputMap | None:
        design = designs[candidate]
        return None if design is None else features_of_fold(data, fold, design)

    def residuals(fold: int, candidate: int, fit: Fit) -> FoldResiduals | MomentResiduals:
        held_out, mapped = data.held_out(fold), features(fold, candidate)
        if data.residuals is not None:
            return data.residuals(fold, fit if mapped is None else fit.lifted(mapped))
        if samples is None:
            if mapped is None:
                return MomentResiduals(fit, held_out)
            own = 0.0 if mapped.own is None else mapped.own.total_leverage(held_out)
            return MomentResiduals(fit, mapped.moments(held_out), own)
        return sample_residuals(samples, held_out, fit if mapped is None else fit.lifted(mapped))

    def refit(candidate: int, options: LinearOptions) -> Fit:
        options, total = replace(options, inputs=designs[candidate]), data.total()
        if data.sparse is not None:
            return fit_data(data.sparse, options)[0]
        if samples is None:
            assert total is not None
            return fit_moments(total, options)
        if total is not None and samples.x_unit == samples.y_unit == 1.0:
            m = total.centred(data.fit_intercept)
            m = m if options.inputs is None else options.inputs.from_moments(m).moments(m)
            s = np.sqrt(np.maximum(eigenvalues(m.Sxx), 0.0))
            if data.keeps_digits(s, options.min_alpha, m.n_features):
                return fit_moments(total, options)
        if options.inputs is not None:
            options = replace(options, inputs=options.inputs.in_units(samples.x_unit))
        return fit_data(samples, options)[0]

    return Folds(
        n_folds=data.n_folds,
        shape=(data.n_features, *data.output_shape),
        max_input_rank=min(data.n_features, data.n_train),
        problem=lambda fold, candidate, min_alpha: linear_problem(
            data, fold, features(fold, candidate), min_alpha
        ),
        residuals=residuals,
        default_alphas=lambda: penalties_of(data, None if first is None else first.scale),
        refit=refit,
        total=data.total,
        prepare=lambda candidate: data.prepare(),
        n_candidates=len(designs),
        n_training=data.n_train if data.n_folds else 0,
        x_unit=1.0 if samples is None else samples.x_unit,
        y_unit=1.0 if samples is None else samples.y_unit,
        device=data.device,
        splits=data.splits,
    )


def sides_of_fold(data: FoldData, fold: int) -> tuple[Any, Any]:
    """Return the training and held-out data of a fold: moments if available, else samples."""
    sides = data.moments(fold)
    if sides is not None:
        return sides
    pair = data.samples(fold)
    assert pair is not None
    return pair


def features_of_fold(data: FoldData, fold: int, design: InputDesign) -> InputMap:
    """Return the feature map that a design computes from a training set."""
    with _located(data.everything):
        seen = sides_of_fold(data, fold)[0]
        if isinstance(seen, CentredMoments):
            return design.from_moments(seen)
        return design.from_samples(seen.X, seen.Y, seen.w, data.fit_intercept)


def products_of_fold(data: FoldData, fold: int, design: InputDesign) -> InputProducts:
    """Return the products of a training set that determine the directions of input modes."""
    seen = sides_of_fold(data, fold)[0]
    if isinstance(seen, CentredMoments):
        return design.products_of_moments(seen)
    return design.products_of_samples(seen.X, seen.Y, seen.w, data.fit_intercept)


def linear_problem(
    data: FoldData, fold: int, features: InputMap | None, min_alpha: float
) -> tuple[Spectral, HeldOut]:
    """Return the training problem of a fold and its held-out data.

    The problem is computed from moments if they are available and accurate enough, and from the
    samples otherwise.

    Parameters
    ----------
    data : FoldData
        Data of the folds.
    fold : int
        Index of the fold.
    features : InputMap or None
        Map from inputs to features.
    min_alpha : float
        Smallest penalty for which the problem must be accurate.
    """
    with _located(data.everything):
        moments = data.moments(fold)
        if moments is not None:
            seen, unseen = moments
            if features is not None:
                seen, unseen = features.moments(seen), features.moments(unseen)
            found = spectral_from_moments(seen)
            if data.keeps_digits(found.s, min_alpha, seen.n_features):
                return found, HeldOut.from_moments(found, unseen)
        pair = data.samples(fold)
        assert pair is not None
        train, test = pair
        if features is None:
            decompose = spectral_from_arrays
        else:
            train, test = (features.samples(part) for part in pair)
            decompose = spectral_from_samples  # there may be fewer features than samples
        found = decompose(train.X, train.Y, train.w, min_alpha=min_alpha, **data.options)
        F = about_mean_times(test.X, found.mean_x, found.basis)
        return found, HeldOut.from_features(F, test.Y, found.mean_y, test.w)


def penalties_of(data: FoldData, scale: np.ndarray | None = None) -> np.ndarray:
    """Return penalties scaled to the inputs, whose columns are multiplied by `scale` if given."""
    if data.everything is not None:
        part = data.everything
        if scale is not None:
            part = replace(part, X=part.X * asarray_like(scale, part.X))
        return default_alphas(*input_trace(part, data.fit_intercept))
    if data.sparse is not None:
        return default_alphas(*_sparse_trace(data.sparse, data.fit_intercept))
    total = data.total()
    assert total is not None
    trace = float(column_squares(data, scale).sum())
    return default_alphas(trace, min(total.n_samples, total.n_features))


def column_squares(data: FoldData, scale: np.ndarray | None = None) -> np.ndarray:
    """Return the diagonal of ``X'X`` of all data, of shape (n_columns,).

    Its entries are the sums of squares of the inputs about the centre of a fit, times `scale`
    squared. They are zero for inputs that are constant up to rounding.
    """
    total, samples = data.total(), data.everything
    if total is not None:
        m = total.centred(data.fit_intercept)
        squares, mean, weight = to_numpy(m.Sxx).diagonal(), to_numpy(m.mean_x), m.weight
    else:
        assert samples is not None
        squares, mean = map(to_numpy, _squares_of(samples, data.fit_intercept))
        weight = samples.weight
    squares = np.where(varies(squares, mean, weight), squares, 0.0)
    return squares if scale is None else squares * scale * scale


@contextmanager
def _located(data: Samples | None) -> Iterator[None]:
    """Make error messages give the position of an invalid entry in all data, not in a fold."""
    try:
        yield
    except ValueError:
        if data is not None:
            check_finite(data.Y, "y")
        raise


def _moments_of(data: Samples, index: np.ndarray, response_grams: bool) -> CentredMoments:
    """Compute the moments of some samples; scattered samples are copied in blocks."""
    if data.w is not None:  # a block in which all samples have weight zero would have no mean
        index = index[to_numpy(data.w)[index] > 0]
    # Blocks have more samples than features, since merging moments has a cost.
    step = max(_BLOCK // (8 * math.prod(data.output_shape)), 4 * data.n_features, 64)
    step = index.size if isinstance(as_slice(index), slice) else step
    found = []
    for start in range(0, index.size, step):
        some = data.rows(index[start : start + step])
        found.append(CentredMoments.from_checked(some.X, some.Y, some.w, response_grams))
    return found[0].merge(*found[1:])


def sample_residuals(data: Samples, rows: np.ndarray, fit: Fit) -> FoldResiduals:
    """Return the residuals of a linear fit at some of the samples."""
    X, Y = take(data.X, rows), residual_outputs(data.Y)
    assert fit.hat is not None
    return FoldResiduals.of(fit, X, std_factor(fit.hat, X, own=fit.own), Y, data.w, rows)


def sparse_residuals(data: SparseStream, rows: np.ndarray, fit: Fit) -> FoldResiduals:
    """Return the residuals of samples with sparse inputs, with a few dense rows at a time."""
    w = np.ones(data.n_samples) if data.weights is None else data.weights
    rows = rows[w[rows] > 0]
    X, T, Y = data.inputs()[rows], fit.tucker, data.outputs
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
        added=None if own is None else (X @ own.matrix).toarray(),
    )


def n_training(splits: Sequence[Split], w: Array | None) -> int:
    """Return the largest number of training samples with positive weight of any fold."""
    positive = None if w is None else to_numpy(w) > 0
    counts = (train.size if positive is None else positive[train].sum() for train, _ in splits)
    return int(max(counts, default=0))


def input_trace(data: Samples, fit_intercept: bool) -> tuple[float, int]:
    """Return the trace of ``X'X``, ``sum w ||x - mean||^2``, and the number of directions.

    Samples without weight and repeated samples add no direction.
    """
    squares, _ = _squares_of(data, fit_intercept)
    return float(namespace_of(squares).sum(squares)), _n_distinct(data, data.n_features)


def _sparse_trace(data: SparseStream, fit_intercept: bool) -> tuple[float, int]:
    """Return the trace of ``X'X`` and the number of directions of sparse inputs."""
    X = data.inputs().astype(np.float64, copy=False)
    total = centre_columns(X, data.weights, centre=fit_intercept).squares().sum()
    used = np.arange(data.n_samples) if data.weights is None else np.flatnonzero(data.weights)
    ends = zip(X.indptr[used], X.indptr[used + 1], strict=True)
    rows = {(X.indices[a:b].tobytes(), X.data[a:b].tobytes()) for a, b in ends}
    return float(total), min(len(rows), data.n_features)


def _squares_of(data: Samples, fit_intercept: bool) -> tuple[Array, Array]:
    """Return ``sum w (x - mean)^2`` of each feature, and the means; zero without an intercept."""
    xp = namespace_of(data.X)
    X = xp.astype(data.X, xp.float64, copy=False)
    w = xp.ones_like(X[:, 0]) if data.w is None else data.w
    mean = (w @ X) / xp.sum(w) if fit_intercept else xp.zeros_like(X[0, :])
    X = X - mean
    return w @ (X * X), mean


def n_different(data: FoldData) -> int:
    """Return `n_train` without repeated samples, unless it exceeds the number of features."""
    samples, many = data.everything, 2 * data.n_features
    if samples is None or data.n_train == 0 or _n_distinct(samples, many) == many:
        return data.n_train
    rows = to_numpy(samples.X) + 0.0  # + 0.0 removes negative zeros
    known: dict[bytes, int] = {}
    numbers = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows])
    used = np.ones(len(rows), bool) if samples.w is None else to_numpy(samples.w) > 0
    seen = (data.rows(fold)[0] for fold in range(data.n_folds))
    return max(np.unique(numbers[train[used[train]]]).size for train in seen)


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


def check_fold_moments(
    moments: Any, response_grams: bool, *, ignore_missing: bool = False
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

Split = tuple[np.ndarray, np.ndarray]
# Splitters that use only the number of samples.
_COUNTING = (splitters.KFold, splitters.RepeatedKFold, splitters.ShuffleSplit)


def split(data: Samples | Stream, cv: Any, groups: Any = None) -> list[Split]:
    """Return the training and test indices of each fold; for a stream, they are a partition."""
    if isinstance(data, Stream):
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


def gather_folds(
    stream: Stream, splits: Sequence[Split], response_grams: bool = False
) -> tuple[list[Moments], list[Split] | None]:
    """Compute the moments of the folds of a stream in one pass over the data.

    Parameters
    ----------
    stream : Stream
        Data that are read in blocks.
    splits : list of index pairs
        Splits from `splits_of`.
    response_grams : bool
        Whether to compute the Gram matrices of the output modes.

    Returns
    -------
    parts : list of Moments
        Moments of the folds. If the folds are not a partition, moments of the pieces into which
        the splits divide the data.
    splits : list of index pairs, or None
        Indices of training and test pieces of each split; None if the folds are a partition.
    """
    n = stream.n_samples
    if is_partition(splits, n):
        labels = labels_of(splits, n, stream.weights)
        return stream.fold_moments(labels, len(splits), response_grams), None
    labels, cut = pieces_of(splits, n, stream.weights)
    n_pieces, d = int(labels.max()) + 1, stream.n_features
    held = 8 * (n_pieces + 2 * len(splits)) * d * (d + math.prod(stream.output_shape))
    if held > max(stream.max_bytes, 2**26):
        raise ValueError(
            f"cv divides the data into {n_pieces} pieces. The moments of all pieces and of "
            f"{len(splits)} splits need {held / 2**20:.3g} MiB, which exceeds the memory budget of "
            f"{stream.max_bytes / 2**20:.3g} MiB. Use fewer splits, or KFold or GroupKFold."
        )
    return stream.fold_moments(labels, n_pieces, response_grams), cut


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
                    f"blocks. Use sample_weight instead."
                )
            sides[index, k] += code
    used = np.arange(n_samples) if weights is None else np.flatnonzero(weights > 0)
    found, inverse = np.unique(sides[used], axis=0, return_inverse=True)
    labels = np.full(n_samples, -1, dtype=np.intp)
    labels[used] = inverse.reshape(-1)
    return labels, [
        (np.flatnonzero(column % 2 == 1), np.flatnonzero(column >= 2)) for column in found.T
    ]


def splits_of(stream: Stream, cv: Any, groups: Any = None) -> list[Split]:
    """Return the training and test indices of each fold of a stream."""
    samples = np.empty((stream.n_samples, 0))  # splitters need only the number of samples
    return check_splits(cv, samples, samples, groups, stream.weights)


def partition_of(stream: Stream, cv: Any, groups: Any = None) -> list[Split]:
    """Return the splits of a stream, and check that they are a partition."""
    splits = splits_of(stream, cv, groups)
    if not is_partition(splits, stream.n_samples):
        raise ValueError(
            f"Data that are read in blocks need a cv that tests every sample once and trains on "
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
