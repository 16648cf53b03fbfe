"""Searches over penalties and ranks of linear models: RLSCV, LRRCV and HOLRRCV."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from numbers import Integral, Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..annotations import (
    Blocks,
    CrossValidation,
    InputRank,
    InputShape,
    MaxRank,
    OutputWeight,
    Own,
    Selection,
    SimpleSelection,
)
from ..base import TensorRegressor, scalar_if_0d
from ..calls import validates_parameters
from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.checks import check_finite
from ..core.input_map import InputDesign
from ..core.mixture import Mixture
from ..core.namespace import Array, asarray_like, to_numpy
from ..core.output_weights import product_of
from ..data.arrays import ignores_missing, is_dask, take
from ..data.output_scale import divide_outputs, divided, multiply_outputs
from ..data.relabel import relabel, row_labels
from ..data.unusual import warn_of_unusual
from ..data.validation import Names, Samples, names_of_moments, validate, validate_inputs
from ..docstrings import document
from ..linear import block_parts
from ..linear.estimators import (
    HOLRR,
    LINEAR_CONSTRAINTS,
    LRR,
    MULTILINEAR_CONSTRAINTS,
    RLS,
    block_attributes,
    input_attributes,
)
from ..linear.fit import (
    LinearOptions,
    fit_data,
    refuse_output_weight,
    weigh_outputs,
    weighted,
)
from ..linear.inputs import InputPlan, common_penalty, input_plan, shown_ranks
from ..linear.robust import refuse_huber, warn_of_folds, weigh_samples
from ..missing.fit import check_no_infinity, has_missing
from ..missing.known import KnownOutputs, Prepared, prepare, prepare_chunks
from ..missing.search import search_missing, search_never
from ..missing.sources import mean_over
from ..streaming.chunks import Chunks
from ..streaming.moments import Moments
from .block_penalties import BlockPenalties, find_block_penalties
from .choice import ALONE
from .dependence import warn_of_neighbours
from .folds import Split, check_fold_moments, gather_folds, n_training, split, splits_of
from .grid import RankGrid, check_penalties, matrix_grid, multilinear_grid
from .input_ranks import candidate_designs
from .intervals import half_width, interval_factor
from .own_inputs import own_designs
from .search import (
    Choice,
    Found,
    SearchOptions,
    in_units,
    n_parallel,
    path_results,
    run_search,
    split_index,
)
from .sources import FoldMoments, Problems, Rows, SparseRows

__all__ = ["HOLRRCV", "LRRCV", "RLSCV", "Search", "search_attributes"]

SEARCH_CONSTRAINTS: dict[str, list[Any]] = {
    "alphas": ["array-like", Interval(Real, 0, None, closed="left"), None],
    "cv": ["cv_object"],
    "selection": [StrOptions({"auto", "stack", "min", "1se"}), callable],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}
INPUT_RANK: dict[str, list[Any]] = {
    "input_rank": [StrOptions({"auto"}), *LINEAR_CONSTRAINTS["input_rank"]]
}


# Number of models of a stack that its text representation lists.
_N_SHOWN = 3
_SMALLEST_SHOWN = 0.005  # smaller weights round to 0 %


def _described(rank: tuple[int, ...] | None, alpha: Any) -> str:
    """Return a description of a model of a mixture."""
    if rank is not None:
        return f"rank {_shown(rank)}"
    return "ridge" if np.ndim(alpha) == 0 else "ridge with averaged penalties"


def _shown(rank: tuple[int, ...]) -> str:
    return str(rank[0]) if len(rank) == 1 else str(rank)


class Search(TensorRegressor):
    """Base class of searches: prediction intervals and baselines of the final model."""

    best_estimator_: Any
    best_params_: dict[str, Any]
    best_score_: float
    best_index_: tuple[int, ...]
    cv_results_: dict[str, Any]
    alphas_: NDArray[Any]
    alpha_: Any
    _not_in_files = ("_fold_fits",)
    # With metadata routing, groups that are passed to scikit-learn's tools reach `fit`.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012 (scikit-learn's convention)

    def _state_for_file(self, state: dict[str, Any]) -> dict[str, Any]:
        found = super()._state_for_file(state)
        if "cv_results_" in found:
            found["cv_results_"] = path_results(found["cv_results_"])
        return found

    def predict_interval(
        self,
        X: Any,
        coverage: float = 0.9,
        kind: Literal["entry", "pooled", "simultaneous"] = "entry",
        *,
        check_inputs: bool = True,
    ) -> tuple[Any, Any]:
        """Compute prediction intervals, which contain new observations with a given probability.

        Return the lower and upper ends, in the format of `predict`. The probability is `coverage`.
        The quantile of the residuals is that of each output (`kind` "entry"), that of all outputs
        ("pooled", which needs fewer samples), or that of all outputs of a sample at the same time
        ("simultaneous"). `holrr.predict_interval` has all details, and also takes pipelines.
        """
        check_is_fitted(self)
        kept = vars(self).get("_intervals")
        if kept is None:
            raise ValueError(
                "predict_interval needs held-out residuals, and this search has none, since it "
                "comes from moments without sums of squares. Fit again."
            )
        factor = interval_factor(kept, coverage, kind, self._noise_level())
        self._check_noise()
        checked = validate_inputs(self, X, sparse=True)
        if check_inputs:
            warn_of_unusual(vars(self).get("_hat"), self._largest_leverage, checked)
        if is_dask(checked):
            shape = self._output_shape
            mean, std = (self._lazily(checked, m, shape) for m in ("_predict_array", "_std_array"))
        else:
            mean, std = self._evaluate(checked, return_std=True)
        width = half_width(mean, std, factor)
        return relabel(self.labels_, X, mean - width), relabel(self.labels_, X, mean + width)

    @property
    def null_mse_(self) -> float:
        return self._baseline("null_mse")

    @property
    def ridge_mse_(self) -> float:
        return self._baseline("ridge_mse")

    @property
    def held_out_mse_(self) -> float:
        return self._baseline("held_out_mse")

    def _what_is_mixed(self) -> str:
        """Return a line that says what was chosen, or an empty string without a mixture."""
        if "stack_weights_" not in vars(self):
            return ""
        own = "own inputs and " if vars(self).get("_own") is not None else ""
        if self.choice_ == "ridge regression":
            return f"{own}ridge regression at alpha={self.alpha_:.3g}; no mixture has a lower error"
        parts = zip(self.stack_weights_, self.stack_ranks_, self.stack_alphas_, strict=True)
        large = [part for part in parts if part[0] >= _SMALLEST_SHOWN][:_N_SHOWN]
        shown = [f"{w:.0%} {_described(rank, alpha)}" for w, rank, alpha in large]
        n, null = len(self.stack_weights_), 1.0 - float(np.sum(self.stack_weights_))
        rest = float(np.sum(self.stack_weights_)) - float(sum(part[0] for part in large))
        if rest >= _SMALLEST_SHOWN:
            shown.append(f"{rest:.0%} in {n - len(large)} more")
        if null >= _SMALLEST_SHOWN:
            shown.append(f"{null:.0%} the mean")
        if own and not n:
            return "own inputs only; the weights of the low-rank models are zero"
        at = f" at alpha={self.alpha_:.3g}" if n else ""
        return f"{own}mixture of {n} model{'s' * (n != 1)}{at}: {', '.join(shown)}"

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text, mixed = super().__repr__(N_CHAR_MAX), self._what_is_mixed()
        return f"{text}\n# {mixed}" if mixed else text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        found, mixed = super()._repr_mimebundle_(**kwargs), self._what_is_mixed()
        if mixed and "text/html" in found:
            found["text/html"] += f"<p>{escape(mixed)}</p>"
        return found

    def held_out_predictions(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Any:
        """Predict each sample by fits of the final model to other samples.

        The arguments are those of `fit`. In a fold, a stack has the weights that the other folds
        determine, as in `held_out_mse_`. Predictions are averaged over the folds that hold out a
        sample, and NaN for samples without weight or fold.
        """
        check_is_fitted(self)
        fits = vars(self).get("_fold_fits")
        if fits is None:
            raise ValueError(
                "held_out_predictions needs a search over samples in memory, and this search comes "
                "from moments, from data that are read in chunks, from a sparse X or from a file. "
                "Fit again to arrays in memory, or predict the samples of each fold."
            )
        data, _ = validate(self, X, y, sample_weight, first=False, in_chunks=False)
        n = fits.n_samples
        if data.n_samples != n:
            raise ValueError(
                f"X must have the {n} samples of the fit; got {data.n_samples} samples."
            )
        data, scale = divide_outputs(self, data, self.labels_)
        found = self._predict_folds(data, fits)
        return relabel(self.labels_, X, found if scale is None else found * scale)

    def _predict_folds(self, data: Any, fits: FoldFits) -> np.ndarray:
        """Return held-out predictions of validated samples, of shape (n_samples, d1, ..., dp)."""
        raise NotImplementedError

    def _label_rows(self, X: Any, y: Any) -> Any:
        """Label the residuals of the samples."""
        rows = vars(self).get("_row_residuals")
        if rows is not None:
            self._row_residuals = replace(rows, labels=row_labels(X, y, self.labels_))
        return self

    def _baseline(self, name: str) -> float:
        check_is_fitted(self)
        if name in self.cv_results_:
            return float(self.cv_results_[name])
        raise AttributeError(
            f"{name}_ is not available: it needs complete outputs, but y has missing values. Use "
            f'RLSCV(missing="ignore") with the same cv.'
        )


def search_attributes(
    found: Found,
    model: Any,
    y_unit: float,
    weights: Sequence[np.ndarray] | None = None,
    scale: np.ndarray | None = None,
) -> dict[str, Any]:
    """Return the fitted attributes of a search that describe its choice.

    Parameters
    ----------
    found : Found
        Result of the search.
    model : estimator
        Final model, fitted to all data. Its noise is replaced by the noise of held-out residuals.
    y_unit : float
        Number that the outputs were divided by.
    weights : sequence of p arrays of shape (d_i,), optional
        Weights of the outputs.
    scale : array of shape (d1, ..., dp), optional
        Divisor of each output. The errors are those of the divided outputs.
    """
    choice, results = found.choice, found.results.copy()
    results["held_out_mse"] = choice.error
    results = in_units(results, y_unit)
    has_candidates = len(choice.index) == results["n_parameters"].ndim + 2
    _, a, rank = split_index(choice.index, results, has_candidates)
    best: dict[str, Any] = {"alpha": float(results["alphas"][a])}
    if rank:
        best["rank"] = rank if isinstance(model.rank_, tuple) else rank[0]
    attributes: dict[str, Any] = {
        "cv_results_": results,
        "best_index_": choice.index,
        "best_score_": -choice.single_error * y_unit * y_unit,
        "best_params_": best,
        "best_estimator_": model,
        "alphas_": results["alphas"],
        "alpha_": choice.alpha,
    }
    if rank:
        attributes["rank_"] = model.rank_
    if choice.mixture is not None:
        assert isinstance(choice.structure, Mixture)
        attributes |= {"choice_": choice.mixture.way, **stack_attributes(choice.structure)}
    if found.calibration is not None:
        noise = y_unit * found.calibration.noise
        if weights is not None:
            v = product_of(weights)
            noise = np.where(v > 0, noise / np.sqrt(np.where(v > 0, v, 1.0)), np.nan)
        noise = noise if scale is None else noise * scale
        core = model.tucker_.core
        model._noise = scalar_if_0d(asarray_like(noise, core, dtype=core.dtype))
        attributes["_intervals"] = found.calibration.quantiles
        attributes["_row_residuals"] = found.calibration.rows
        warn_of_neighbours(found.calibration.dependence)
    attributes["_noise"] = vars(model).get("_noise")
    return attributes


def chosen_rank(found: Found) -> Any:
    """Return the rank of the final model as the parameter `rank`; None for full rank."""
    structure = found.choice.structure
    if not isinstance(structure, Mixture):
        return getattr(structure, "rank", None)
    rank = found.fit.tucker.rank
    return rank[0] if isinstance(structure.base, MatrixRank) else rank


def stack_attributes(mixture: Mixture) -> dict[str, Any]:
    """Return the penalties, ranks and weights of a mixture, in order of decreasing weight."""
    parts: list[tuple[Any, Any, float]] = [(mixture.alpha, rank, w) for rank, w in mixture.ranks]
    if mixture.ridge:
        parts.append((mixture.alpha, None, mixture.ridge))
    if mixture.by_output:
        parts.append((np.array(mixture.averaged), None, mixture.by_output))
    parts.sort(key=lambda part: -part[2])
    return {
        "stack_alphas_": [alpha for alpha, _, _ in parts],
        "stack_ranks_": [rank for _, rank, _ in parts],
        "stack_weights_": np.array([w for _, _, w in parts]),
    }


class LinearSearch(Search):
    """Base class of searches over penalties and ranks of linear models.

    A subclass defines its parameters, the grid of ranks and the structure of a rank.
    """

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        **LINEAR_CONSTRAINTS,
        **SEARCH_CONSTRAINTS,
        **INPUT_RANK,
    }

    alphas: Any
    cv: Any
    selection: Any
    fit_intercept: bool
    missing: str
    output_weight: Any
    scale_outputs: Any
    input_rank: Any
    blocks: Any
    own: Any
    n_jobs: int | None
    verbose: Any
    loss: str

    n_iter_: int
    n_dropped_: int
    robust_weight_: NDArray[Any]
    input_rank_: Any
    input_factors_: Any
    blocks_: dict[Any, NDArray[Any]]
    block_alphas_: dict[Any, float]

    predict_blocks = block_parts.predict_blocks
    score_blocks = block_parts.score_blocks

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        """Return the grid of ranks for coefficients of this shape."""
        raise NotImplementedError

    def _structure(self, rank: tuple[int, ...]) -> Structure:
        """Return the structure of a rank."""
        raise NotImplementedError

    def _model(self, alpha: Any, rank: Any) -> Any:
        """Return the chosen estimator, unfitted."""
        raise NotImplementedError

    @validates_parameters
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        sample_dim: str | None = None,
    ) -> Self:
        """Choose penalty and rank by cross-validation, and fit the chosen model to all data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs: an array of any array library, a DataFrame, an xarray object, a dict of arrays
            or a sparse matrix (see docs/inputs.md). Memory maps and Dask arrays are read in chunks
            (see docs/streaming.md). Cells of maps that are NaN in every sample are left out.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0. Scalar targets have shape (n_samples,).
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in fits and held-out errors.
        groups : array of shape (n_samples,), optional
            Group labels of the samples, for splitters such as ``GroupKFold``.
        sample_dim : str, optional
            Sample dimension of xarray objects. By default, the first one that `X` and `y` share.
        """
        data, names = validate(self, X, y, sample_weight, groups=groups, sample_dim=sample_dim)
        options = replace(self._options(data), groups=groups)
        plan = input_plan(self, names, data)
        data, scale = divide_outputs(self, data, names.labels)
        data, weights = weigh_outputs(self.output_weight, data, names.labels, ignores_missing(self))
        data, robust_weight = weigh_samples(self, data, weights)
        if isinstance(data, Chunks):
            return self._fit_chunks(data, names, weights, groups, plan, options, scale)
        splits = split(data, self.cv, groups)
        warn_of_folds(splits, data, robust_weight)
        ready = self._prepare(data, weights, splits)
        if ready.some is not None and groups is not None:
            options = replace(options, groups=np.asarray(groups)[ready.some.rows])
        found, chosen = self._search(ready, plan, options)
        fits = self._fold_fits_of(ready, found, chosen, data.n_samples, splits)
        error = None
        if ready.output_weight is not None:
            error = unweighted_error(ready, fits)
        found = ready.expanded(found, data.n_samples)
        details: dict[str, Any] = {"_fold_fits": fits, "robust_weight_": robust_weight}
        self._assign_search(found, names, plan, chosen, scale, ready, error, **details)
        return self._label_rows(X, y)

    @validates_parameters
    def fit_fold_moments(self, moments: Sequence[Moments]) -> Self:
        """Cross-validate and fit the model from the moments of at least two disjoint folds.

        A stream or a cluster need not keep the data, see docs/streaming.md. `cv` is not used.

        Examples
        --------
        >>> from holrr import RLSCV, Moments
        >>> folds = [Moments.from_arrays([[0.0], [1.0]], [0.0, 1.0 + k]) for k in range(3)]
        >>> RLSCV(alphas=[0.1, 1.0]).fit_fold_moments(folds).alpha_
        0.1
        """
        refuse_output_weight(self.output_weight, "moments")
        refuse_huber(self.loss, "moments")
        parts = check_fold_moments(moments, ignore_missing=ignores_missing(self))
        total, missing = parts[0].merge(*parts[1:]), parts[0].missing_outputs
        options, names, known = self._options(total), names_of_moments(self, total), None
        total, scale = divide_outputs(self, total, names.labels)
        if scale is not None:
            parts = [divided(part, scale) for part in parts]
        some: list[Any] = parts
        if missing is not None:
            known = KnownOutputs.of(missing, keep_grid=self._keeps_grid(total))
            some = [known.moments(part) for part in parts]
        source = FoldMoments(some, fit_intercept=self.fit_intercept)
        plan = input_plan(self, names, source)
        found, chosen = self._search_source(source, plan, options, known)
        found = found if known is None else expand_found(found, known)
        return self._assign_search(found, names, plan, chosen, scale)

    # ------------------------------------------------------------ steps

    def _prepare(
        self, data: Samples, weights: tuple[np.ndarray, ...] | None, splits: Sequence[Split]
    ) -> ReadySamples:
        """Scale and weight the samples, and leave out samples and outputs without observations."""
        if ignores_missing(self) and has_missing(data):
            check_no_infinity(data)
            some = prepare(data, weights, keep_grid=self._keeps_grid(data))
            splits = splits_within(splits, some.rows)
            return ReadySamples(some.samples.scaled(), splits, some.weights, some)
        data = (data if weights is None else weighted(data, weights)).scaled()
        if data.w is not None:  # samples without weight are not read later
            check_finite(data.Y, "y")
        return ReadySamples(data, splits, weights)

    def _search(
        self, ready: ReadySamples, plan: InputPlan, options: SearchOptions
    ) -> tuple[Found, InputCandidate]:
        """Search over the candidates of samples in memory."""
        some = ready.some
        if some is not None:
            refuse_by_output(options)
            if some.known is not None:
                refuse_own(plan)
            options = self._options_within(options, some.known)
            if not some.is_complete:
                return self._search_observed(ready, plan, options)
        source = Rows(ready.data, ready.splits, fit_intercept=self.fit_intercept)
        return self._search_source(source, plan, options, None if some is None else some.known)

    def _search_source(
        self,
        source: Rows | FoldMoments,
        plan: InputPlan,
        options: SearchOptions,
        known: KnownOutputs | None,
    ) -> tuple[Found, InputCandidate]:
        """Search over penalties, ranks and candidate designs of the inputs.

        Parameters
        ----------
        source : Rows or FoldMoments
            Complete data, in which outputs that are never observed are zero.
        plan : InputPlan
            Parameters that concern the inputs.
        options : SearchOptions
            Parameters of the search.
        known : KnownOutputs or None
            Outputs of `source` among all outputs; None if all outputs are observed.

        Returns
        -------
        found : Found
            Result of the search.
        chosen : InputCandidate
            Design of the inputs of the chosen model.
        """
        if known is not None:
            refuse_own(plan)
            refuse_by_output(options)
            options = self._options_within(options, known)
        candidates, penalties = input_candidates(source, plan, options)
        if known is not None and known.never is not None:
            # Of the candidates with the chosen penalties of blocks, use the best projection of the
            # inputs, or all inputs without projections.
            last = candidates[-1].ratios
            chosen = [c for c in candidates if c.ratios is last][:2][-1]
            options = replace(options, ways=ALONE)
            found = search_never(source, chosen.design, known.never, options, self._fit_options)
            return found, chosen
        options = replace(options, named_candidates=len(candidates) > 1)
        problems = Problems(source, [candidate.design for candidate in candidates])
        found = run_search(problems, options, self._fit_options)
        found.results.update(candidate_results(source, plan, candidates, penalties))
        return found, candidates[found.choice.candidate]

    def _search_observed(
        self, ready: ReadySamples, plan: InputPlan, options: SearchOptions
    ) -> tuple[Found, InputCandidate]:
        """Search with outputs that are missing in some samples.

        The search with equal penalties and without own inputs imputes the missing outputs.
        Penalties of blocks and own inputs are compared on the imputed outputs.
        """
        data, splits = ready.data, ready.splits

        def run(candidate: InputCandidate) -> Found:
            how = options, self._fit_options, ready.output_weight, candidate.design
            return search_missing(data, splits, *how)

        chosen = InputCandidate(plan.fixed)
        found = run(chosen)
        null = found.results["null_mse"]
        if plan.own or plan.has_several_blocks:
            predicted = found.fit.predict(data.X * data.x_unit) / data.y_unit
            imputed = replace(data, Y=np.where(np.isnan(data.Y), predicted, data.Y))
            source = Rows(imputed, splits, fit_intercept=self.fit_intercept)
            whole = replace(plan, is_searched=False)
            for candidate in input_candidates(source, whole, options)[0][1:]:
                other = run(candidate)
                if other.choice.error < found.choice.error:
                    found, chosen = other, candidate
        found.results["null_mse"] = null  # of the outputs, without the part of own inputs
        return found, chosen

    def _fit_chunks(
        self,
        data: Chunks,
        names: Names,
        weights: tuple[np.ndarray, ...] | None,
        groups: Any,
        plan: InputPlan,
        options: SearchOptions,
        scale: np.ndarray | None,
    ) -> Any:
        """Search with data in chunks; some outputs may be missing in all samples."""
        missing, grid = ignores_missing(self), self._keeps_grid(data)
        some = prepare_chunks(data, weights, ignore_missing=missing, keep_grid=grid)
        source = self._chunks_source(some.data, splits_of(data, self.cv, groups), plan)
        known, v = some.known, some.output_weight
        found, chosen = self._search_source(source, plan, options, known)
        error, calibration = None, found.calibration
        if v is not None and calibration is not None and calibration.errors is not None:
            counts = v > 0 if known is None or known.never is None else (v > 0) & ~known.never
            error = float(np.mean(calibration.errors[:, counts] / v[counts]))
        found = found if known is None else expand_found(found, known)
        if some.weights is not None:
            found = replace(found, fit=found.fit.unweighted(some.weights))
        how: dict[str, Any] = {"weights": some.weights, "error": error}
        return self._assign_search(found, names, plan, chosen, scale, **how)

    def _chunks_source(
        self, data: Chunks, splits: Sequence[Split], plan: InputPlan
    ) -> Rows | FoldMoments:
        """Return the moments of the folds, from one pass over the data, or sparse samples."""
        sparse = data if data.is_sparse else None
        is_wide = n_training(splits, data.w) < data.n_features
        if sparse is not None and plan.is_plain and is_wide:
            return SparseRows(sparse, splits, fit_intercept=self.fit_intercept)
        parts, cut = gather_folds(data, splits)
        parts = check_fold_moments(parts)
        return FoldMoments(parts, splits, cut, fit_intercept=self.fit_intercept, rows=sparse)

    def _fold_fits_of(
        self,
        ready: ReadySamples,
        found: Found,
        chosen: InputCandidate,
        n_samples: int,
        splits: Sequence[Split],
    ) -> FoldFits:
        """Return what determines the fits of the final model to each fold."""
        options, of_folds = self._fit_options(found.choice), []
        for fold in range(len(splits)):
            candidate, alpha, structure, _ = found.choice.of_fold(fold)
            design = found.candidates[candidate] if found.candidates else chosen.design
            of_folds.append(
                replace(
                    options,
                    structure=structure,
                    alpha=alpha,
                    inputs=design and design.in_units(ready.data.x_unit),
                    never=ready.never,
                    pilot=found.pilot,
                )
            )
        return FoldFits(n_samples, tuple(splits), tuple(of_folds))

    def _predict_folds(self, data: Samples, fits: FoldFits) -> np.ndarray:
        labels = self.labels_
        data, weights = weigh_outputs(self.output_weight, data, labels, ignores_missing(self))
        robust = vars(self).get("robust_weight_")
        if robust is not None:
            w = robust if data.w is None else to_numpy(data.w) * robust
            data = replace(data, w=asarray_like(w, data.X))
        ready = self._prepare(data, weights, fits.splits)
        found = HeldOutMean(ready.data)
        for (_, test), predicted in zip(ready.splits, predictions(ready, fits), strict=True):
            found.add(test, predicted)
        return ready.in_user_units(found.mean(), data.n_samples)

    def _keeps_grid(self, data: Samples | Chunks | Moments) -> bool:
        """Return whether the structure depends on the modes of the outputs."""
        rank = (1,) * (1 + len(data.output_shape))
        return isinstance(self._structure(rank), MultilinearRank)

    def _options_within(self, options: SearchOptions, known: KnownOutputs | None) -> SearchOptions:
        """Return the options of a search over known outputs, with ranks within their shape."""
        if known is None or known.slices is None:
            return options

        def grid(shape: Sequence[int]) -> RankGrid:
            whole = self._grid((shape[0], *known.full_shape)).within_shape(shape)
            return whole.within_others(shape)

        return replace(options, grid=grid)

    def _options(self, data: Samples | Chunks | Moments) -> SearchOptions:
        """Return the checked parameters of the search."""
        self._grid((data.n_features, *data.output_shape))  # raises for a bad max_rank
        options = SearchOptions(
            name=type(self).__name__,
            grid=self._grid,
            structure=self._structure,
            alphas=check_penalties(self.alphas, "alphas"),
            selection=resolve_selection(self),
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            fit_intercept=self.fit_intercept,
            by_output=getattr(self, "alpha_per_output", False),
        )
        check_search(options)
        return options

    def _fit_options(self, choice: Choice) -> LinearOptions:
        """Return the options of the final fit of a choice."""
        return LinearOptions(
            structure=choice.structure,
            alpha=choice.alpha,
            fit_intercept=self.fit_intercept,
            ignore_missing=ignores_missing(self),
        )

    def _assign_search(
        self,
        found: Found,
        names: Names,
        plan: InputPlan,
        chosen: InputCandidate,
        scale: np.ndarray | None,
        ready: ReadySamples | None = None,
        error: float | None = None,
        *,
        weights: Sequence[np.ndarray] | None = None,
        **attributes: Any,
    ) -> Any:
        """Assign all fitted attributes, including the attributes of the final model.

        Parameters
        ----------
        found : Found
            Result of the search, with the fit in the units of the user's data.
        names, plan
            Names of the data, and the parameters that concern the inputs.
        chosen : InputCandidate
            Chosen design of the inputs.
        ready : ReadySamples, optional
            Samples of the search.
        error : float, optional
            Held-out error with equal weights of the outputs.
        weights : sequence of p arrays of shape (d_i,), optional
            Weights of the outputs of data in chunks.
        attributes : dict
            Further attributes.
        """
        data, fit, n_dropped = None if ready is None else ready.data, found.fit, None
        x_unit, y_unit = (1.0, 1.0) if data is None else (data.x_unit, data.y_unit)
        fit = multiply_outputs(self, fit, scale, names.labels)
        names = names.with_leverage(fit.hat, data)
        if ready is not None:
            weights = ready.weights
            n_dropped = found.n_dropped if ignores_missing(self) else None
        model = self._model(found.choice.alpha, chosen_rank(found))
        design, blocks = chosen.design, plan.blocks
        model.input_rank = shown_ranks(design, names.labels)
        if design is not None and any(design.ranks):
            model.input_alpha = design.alpha
        if blocks is not None and chosen.ratios is not None:
            penalties = found.choice.alpha * chosen.ratios
            model.alpha = dict(zip(blocks.names, penalties.tolist(), strict=True))
        own = own_parameters(chosen, x_unit)
        model.own = None if own is None else list(own[0]) or self.own
        if own is not None:
            model.own_alpha = own[1]
        model._assign_fit(fit, names, plan, n_dropped, attributes.get("robust_weight_"))
        attributes |= search_attributes(found, model, y_unit, weights, scale)
        attributes |= input_attributes(fit, names)
        attributes |= block_attributes(blocks, model.alpha, names, fit)
        if error is not None:
            attributes["cv_results_"]["unweighted_mse"] = error
        for name in ("n_iter_", "n_dropped_"):
            attributes[name] = vars(model).get(name)
        return self._assign(fit, names, **attributes)


@document
class RLSCV(LinearSearch):
    """Ridge regression for tensor outputs with cross-validated penalty.

    One decomposition of each training fold gives the exact held-out errors of all penalties,
    without refitting. See docs/model_selection.md.

    >>> import numpy as np
    >>> from holrr.model_selection import RLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> Y = np.tensordot(X, rng.normal(size=(5, 4, 3)), 1) + rng.normal(size=(40, 4, 3))
    >>> model = RLSCV(alphas=[0.1, 1, 10]).fit(X, Y)
    >>> model.alpha_, model.cv_results_["mean_mse"].round(2)
    (1.0, array([1.16, 1.16, 1.68]))
    >>> low, high = model.predict_interval(X, coverage=0.9)
    >>> held_out = model.held_out_predictions(X, Y)

    See Also
    --------
    RLS : Ridge regression with a given penalty.
    HOLRRCV : Search over penalties and multilinear ranks.
    """

    best_estimator_: RLS

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        **LINEAR_CONSTRAINTS,
        **SEARCH_CONSTRAINTS,
        **INPUT_RANK,
        "selection": [StrOptions({"min", "1se"}), callable],
        "alpha_per_output": ["boolean"],
    }

    _shares_directions = False

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        cv: CrossValidation = 5,
        *,
        selection: SimpleSelection = "min",
        alpha_per_output: bool = False,
        fit_intercept: bool = True,
        loss: Literal["squared", "huber"] = "squared",
        missing: Literal["raise", "ignore"] = "raise",
        output_weight: OutputWeight = None,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        blocks: Blocks = None,
        own: Own = None,
        input_rank: InputRank = "auto",
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.selection = selection
        self.alpha_per_output = alpha_per_output
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.missing = missing
        self.output_weight = output_weight
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.blocks = blocks
        self.own = own
        self.input_rank = input_rank
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return RankGrid(())

    def _structure(self, rank: tuple[int, ...]) -> FullRank:
        return FullRank()

    def _model(self, alpha: Any, rank: Any) -> RLS:
        return RLS(alpha=alpha, **shared_parameters(self, RLS))


@document
class LRRCV(LinearSearch):
    """Low-rank regression for tensor outputs with cross-validated penalty and rank.

    The search computes the exact held-out errors of all ranks and penalties without refitting. They
    equal the errors of `HOLRRCV` at full output ranks. See docs/model_selection.md.

    >>> import numpy as np
    >>> from holrr.model_selection import LRRCV
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(60, 6)), rng.normal(size=(6, 2)) @ rng.normal(size=(2, 20))
    >>> Y = (X @ W).reshape(60, 4, 5) + 0.5 * rng.normal(size=(60, 4, 5))
    >>> model = LRRCV(alphas=[0, 0.1, 1, 10]).fit(X, Y)
    >>> model.best_params_["rank"], model.cv_results_["mean_mse"].shape
    (2, (4, 6))
    >>> low, high = model.predict_interval(X, coverage=0.9)
    >>> held_out = model.held_out_predictions(X, Y)

    See Also
    --------
    LRR : Low-rank regression with given penalty and rank.
    HOLRRCV : Search over penalties and multilinear ranks.
    """

    best_estimator_: LRR
    rank_: int
    choice_: str
    stack_weights_: NDArray[Any]
    stack_ranks_: list[tuple[int, ...] | None]
    stack_alphas_: list[Any]
    spectra_: list[Array]

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        cv: CrossValidation = 5,
        *,
        max_rank: int | None = None,
        selection: Selection = "auto",
        fit_intercept: bool = True,
        loss: Literal["squared", "huber"] = "squared",
        missing: Literal["raise", "ignore"] = "raise",
        output_weight: OutputWeight = None,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        blocks: Blocks = None,
        own: Own = None,
        input_rank: InputRank = "auto",
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.max_rank = max_rank
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.missing = missing
        self.output_weight = output_weight
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.blocks = blocks
        self.own = own
        self.input_rank = input_rank
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return matrix_grid(self.max_rank, shape)

    def _structure(self, rank: tuple[int, ...]) -> MatrixRank:
        return MatrixRank(rank[0])

    def _model(self, alpha: Any, rank: Any) -> LRR:
        return LRR(rank=rank, alpha=alpha, **shared_parameters(self, LRR))


@document
class HOLRRCV(LinearSearch):
    """Higher-order low-rank regression with cross-validated penalty and ranks.

    The search computes the exact held-out error of *every* multilinear rank and penalty without
    refitting. Predictions have the labels of tables and of xarray. See docs/model_selection.md.

    >>> from holrr import HOLRRCV
    >>> from holrr.datasets import make_tensor_regression
    >>> X, Y = make_tensor_regression(200, 8, (6, 7), rank=(3, 2, 3), snr=2.0, random_state=0)
    >>> model = HOLRRCV().fit(X, Y)
    >>> model.best_params_["rank"], model.cv_results_["mean_mse"].shape
    ((3, 2, 3), (15, 8, 6, 7))
    >>> model.held_out_mse_ < model.ridge_mse_ < model.null_mse_
    True
    >>> low, high = model.predict_interval(X, coverage=0.9)
    >>> held_out = model.held_out_predictions(X, Y)

    See Also
    --------
    HOLRR : Higher-order low-rank regression with given penalty and ranks.
    KernelHOLRRCV : Search over kernels, penalties and ranks.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.
    """

    best_estimator_: HOLRR
    rank_: tuple[int, ...]
    choice_: str
    stack_weights_: NDArray[Any]
    stack_ranks_: list[tuple[int, ...] | None]
    stack_alphas_: list[Any]
    spectra_: list[Array]

    _parameter_constraints = {  # noqa: RUF012 (scikit-learn's convention)
        **LINEAR_CONSTRAINTS,
        **SEARCH_CONSTRAINTS,
        **INPUT_RANK,
        **MULTILINEAR_CONSTRAINTS,
    }

    def __init__(
        self,
        alphas: ArrayLike | None = None,
        cv: CrossValidation = 5,
        *,
        max_rank: MaxRank = None,
        selection: Selection = "auto",
        refine: bool = False,
        fit_intercept: bool = True,
        loss: Literal["squared", "huber"] = "squared",
        missing: Literal["raise", "ignore"] = "raise",
        output_weight: OutputWeight = None,
        scale_outputs: ArrayLike | None = None,
        output_shape: Sequence[int] | None = None,
        input_shape: InputShape = None,
        blocks: Blocks = None,
        own: Own = None,
        input_rank: InputRank = "auto",
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.alphas = alphas
        self.cv = cv
        self.max_rank = max_rank
        self.selection = selection
        self.refine = refine
        self.fit_intercept = fit_intercept
        self.loss = loss
        self.missing = missing
        self.output_weight = output_weight
        self.scale_outputs = scale_outputs
        self.output_shape = output_shape
        self.input_shape = input_shape
        self.blocks = blocks
        self.own = own
        self.input_rank = input_rank
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return multilinear_grid(self.max_rank, shape)

    def _structure(self, rank: tuple[int, ...]) -> MultilinearRank:
        return MultilinearRank(rank, refine=self.refine)

    def _model(self, alpha: Any, rank: Any) -> HOLRR:
        return HOLRR(rank=rank, alpha=alpha, **shared_parameters(self, HOLRR))


# ---------------------------------------------------------------- shared by all searches


@dataclass(frozen=True, eq=False)
class InputCandidate:
    """Candidate design of the inputs.

    Parameters
    ----------
    design : InputDesign or None
        Features to compute from the inputs; None uses the inputs themselves.
    ratios : array of shape (n_blocks,), or None
        Penalties of the blocks divided by the common penalty; None if all are equal.
    """

    design: InputDesign | None = None
    ratios: np.ndarray | None = None


def own_parameters(
    candidate: InputCandidate, x_unit: float
) -> tuple[tuple[Any, ...], float] | None:
    """Return the parameters `own` and `own_alpha` of a candidate; None without own inputs."""
    own = None if candidate.design is None else candidate.design.own
    if own is None:
        return None
    # Estimators express penalties of blocks in units of their geometric mean.
    unit = 1.0 if candidate.ratios is None else common_penalty(candidate.ratios)
    return own.modes, own.beta * unit * x_unit * x_unit


def candidate_results(
    source: Rows | FoldMoments,
    plan: InputPlan,
    candidates: Sequence[InputCandidate],
    penalties: BlockPenalties | None,
) -> dict[str, Any]:
    """Return the entries of `cv_results_` that describe the candidate designs."""
    unit = source.x_unit
    found: dict[str, Any] = {}
    if plan.is_searched and len(candidates) > 1:
        projected = [
            c.design if c.design is not None and any(c.design.ranks) else None for c in candidates
        ]
        full = tuple(plan.design.space.shapes)
        found["input_ranks"] = [full if d is None else d.ranks for d in projected]
        found["input_alphas"] = [math.nan if d is None else d.alpha for d in projected]
    if penalties is not None:
        equal = np.ones_like(penalties.penalties)
        ratios = [equal if c.ratios is None else c.ratios for c in candidates]
        found["block_ratios"] = np.stack(ratios)
        found["block_path_alphas"] = penalties.path * unit * unit
        found["block_path_mse"] = penalties.path_errors
    if plan.own:
        own = [own_parameters(c, unit) for c in candidates]
        found["own"] = [() if one is None else one[0] for one in own]
        found["own_alphas"] = [math.nan if one is None else one[1] for one in own]
    return found


def input_candidates(
    source: Rows | FoldMoments, plan: InputPlan, options: SearchOptions
) -> tuple[list[InputCandidate], BlockPenalties | None]:
    """Return the candidate designs of the inputs.

    Returns
    -------
    candidates : list of InputCandidate
        Candidates with equal penalties of blocks come first, then candidates with the best
        penalties of blocks. Candidates with own inputs come last.
    penalties : BlockPenalties or None
        Best penalties of the blocks, if there are several blocks.
    """
    check_candidates(plan, options)
    grid = partial(design_grid, source, options=options)
    penalties = _block_penalties(source, plan, grid)
    scaled = [InputCandidate(plan.fixed)]
    # The common penalty is a penalty of the grid, so that the grid contains the best penalties of
    # the blocks exactly.
    alphas = grid(None)[0] if penalties is not None else np.zeros(0)
    alphas = alphas[alphas > 0]
    if penalties is not None and alphas.size:
        common = float(alphas[np.argmin(np.abs(np.log(alphas / penalties.common())))])
        design = plan.with_penalties(penalties.penalties, common)
        scaled.append(InputCandidate(design, penalties.penalties / common))
    candidates = [c for base in scaled for c in _projections(source, plan, base, grid)]
    if plan.own:
        candidates += [c for base in scaled for c in _own_inputs(source, plan, base, options, grid)]
    return candidates, penalties


def check_candidates(plan: InputPlan, options: SearchOptions) -> None:
    """Raise an error if blocks or own inputs are combined with incompatible parameters."""
    if plan.has_several_blocks and options.by_output:
        raise ValueError(
            "alpha_per_output=True cannot be combined with blocks: a search chooses penalties for "
            "blocks of inputs or for outputs, not for both. Set only one of the two parameters."
        )


PenaltyGrid = Callable[[InputDesign | None], tuple[np.ndarray, int]]


def _block_penalties(
    source: Rows | FoldMoments, plan: InputPlan, grid: PenaltyGrid
) -> BlockPenalties | None:
    """Return the best penalties of blocks, or None without several blocks."""
    if not plan.has_several_blocks:
        return None
    assert plan.blocks is not None
    return find_block_penalties(source, plan.blocks, grid(None)[1])


def _own_inputs(
    source: Rows | FoldMoments,
    plan: InputPlan,
    base: InputCandidate,
    options: SearchOptions,
    grid: PenaltyGrid,
) -> list[InputCandidate]:
    """Return the best candidate with own inputs, or the best two for models of low rank."""
    design = plan.design if base.design is None else base.design
    found = own_designs(source, design, plan, *grid(design))
    is_ridge = not options.grid(source.shape).caps
    return [InputCandidate(d, base.ratios) for d in found[: 1 if is_ridge else 2]]


def _projections(
    source: Rows | FoldMoments, plan: InputPlan, base: InputCandidate, grid: PenaltyGrid
) -> list[InputCandidate]:
    """Return a candidate and, in a search over input ranks, the best projections of its inputs."""
    if not plan.is_searched:
        return [base]
    design = plan.design if base.design is None else base.design
    found = candidate_designs(source, design, *grid(design))
    return [InputCandidate(d, base.ratios) for d in found]


def design_grid(
    source: Rows | FoldMoments, design: InputDesign | None, options: SearchOptions
) -> tuple[np.ndarray, int]:
    """Return the penalties at which designs are compared, and the number of parallel folds."""
    alphas, unit = options.alphas, source.x_unit
    tried = source.default_alphas([design]) if alphas is None else alphas / unit / unit
    return tried, n_parallel(Problems(source), options.n_jobs)


def refuse_by_output(options: SearchOptions) -> None:
    """Raise an error if `alpha_per_output` is combined with missing outputs."""
    if options.by_output:
        raise ValueError(
            "alpha_per_output=True needs complete outputs, but y has missing values. Impute the "
            "missing values, or set alpha_per_output=False."
        )


def refuse_own(plan: InputPlan) -> None:
    """Raise an error if own inputs are used and some outputs are never observed."""
    if plan.own:
        raise ValueError(
            "own cannot be used in a search if some outputs are never observed. Drop these outputs "
            'from y. For a land mask of xarray, use y.stack(cell=("lat", "lon")).dropna("cell") '
            'and own="cell", with X stacked in the same way, and unstack("cell") the predictions.'
        )


def check_search(options: SearchOptions) -> None:
    """Raise an error for incompatible parameters of a search."""
    if options.by_output and options.selection != "min":
        raise ValueError(
            f"alpha_per_output=True needs selection='min'; got selection={options.selection!r}."
        )


def resolve_selection(estimator: Any) -> Any:
    """Return the selection that "auto" stands for: "stack" if ranks can be mixed, else "min"."""
    selection = estimator.selection
    if callable(selection) or selection not in ("auto", "stack"):
        return selection
    refines = getattr(estimator, "refine", False)
    if selection == "stack" and refines:
        raise ValueError(
            "selection='stack' cannot be combined with refine=True, since refined fits of several "
            "ranks cannot be mixed. Use selection='min', or refine=False."
        )
    return "min" if refines else "stack"


@dataclass(frozen=True, eq=False)
class ReadySamples:
    """Samples of a search: scaled, with weighted outputs, and without unobserved samples.

    Parameters
    ----------
    data : Samples
        Scaled samples. Their outputs are multiplied by the roots of the weights of the outputs, and
        are NaN where they are missing.
    splits : list of index pairs
        Training and test indices of each fold, within these samples.
    weights : tuple of p arrays of shape (d_i,), or None
        Weights of all outputs.
    some : Prepared or None
        Samples and outputs that are observed, if outputs are missing.
    """

    data: Samples
    splits: Sequence[Split]
    weights: tuple[np.ndarray, ...] | None = None
    some: Prepared | None = None

    @property
    def output_weight(self) -> np.ndarray | None:
        """Weight of each output of `data`."""
        if self.some is not None:
            return self.some.output_weight
        return None if self.weights is None else product_of(self.weights)

    @property
    def never(self) -> np.ndarray | None:
        """Outputs of complete samples that are never observed, as in `Whitened`."""
        return None if self.some is None else self.some.never

    def expanded(self, found: Found, n_samples: int) -> Found:
        """Return the result of a search for all outputs and samples, without weights."""
        some = self.some
        if some is not None:
            found = replace(found, n_dropped=some.n_dropped)
            if found.calibration is not None:
                placed = found.calibration.placed(some.rows, n_samples)
                found = replace(found, calibration=placed)
            if some.known is not None:
                found = expand_found(found, some.known)
        if self.weights is None:
            return found
        return replace(found, fit=found.fit.unweighted(self.weights))

    def in_user_units(self, A: np.ndarray, n_samples: int) -> np.ndarray:
        """Return predictions for all samples and outputs, in the units of the user's data.

        Samples and outputs that are not in `data` have NaN.
        """
        v, unit = self.output_weight, np.asarray(self.data.y_unit)
        if v is not None:
            unit = np.where(v > 0, unit / np.sqrt(np.where(v > 0, v, 1.0)), np.nan)
        found = np.full((n_samples, *A.shape[1:]), np.nan)
        found[slice(None) if self.some is None else self.some.rows] = A * unit
        known = None if self.some is None else self.some.known
        return found if known is None else known.put_known(found)


@dataclass(frozen=True, eq=False)
class FoldFits:
    """What determines the fits of a search to the folds.

    Parameters
    ----------
    n_samples : int
        Number of samples.
    splits : tuple of index pairs
        Training and test indices of each fold.
    options : tuple of LinearOptions or KernelOptions
        Options of the fit to each fold.
    candidates : tuple of int
        Number of the kernel of each fold.
    """

    n_samples: int
    splits: tuple[Split, ...]
    options: tuple[Any, ...]
    candidates: tuple[int, ...] = ()


class HeldOutMean:
    """Mean of the held-out predictions of each sample.

    Parameters
    ----------
    data : Samples
        Samples that are predicted.
    """

    def __init__(self, data: Samples) -> None:
        self._total, self._count = np.zeros(tuple(data.Y.shape)), np.zeros(data.n_samples)
        self._weight = None if data.w is None else to_numpy(data.w)

    def add(self, rows: np.ndarray, predicted: Any) -> None:
        """Add the predictions of some samples, (n, d1, ..., dp)."""
        self._total[rows] += to_numpy(predicted)
        self._count[rows] += 1

    def mean(self) -> np.ndarray:
        """Return the means, of the shape of y; NaN without predictions or without weight."""
        used = self._count > 0 if self._weight is None else (self._count > 0) & (self._weight > 0)
        count = np.where(used, self._count, np.nan)
        return self._total / count.reshape(-1, *(1,) * (self._total.ndim - 1))


def predictions(ready: ReadySamples, fits: FoldFits) -> Iterator[Any]:
    """Yield the predictions of the held-out samples of each fold, in the units of `ready`."""
    data = ready.data
    for (train, test), options in zip(ready.splits, fits.options, strict=True):
        fit, _ = fit_data(data.rows(train), options)
        yield fit.predict(take(data.X, test) * data.x_unit) / data.y_unit


def unweighted_error(ready: ReadySamples, fits: FoldFits) -> float:
    """Return the held-out error with equal weights of a model fitted with output weights."""
    data, v, errors = ready.data, ready.output_weight, []
    assert v is not None
    counts = v > 0 if ready.never is None else (v > 0) & ~ready.never
    for (_, test), predicted in zip(ready.splits, predictions(ready, fits), strict=True):
        held = data.rows(test)
        seen = counts & ~(np.isnan(held.Y) | np.isnan(predicted))
        squares = np.square(held.Y - predicted) / np.where(v > 0, v, 1.0)
        w = np.ones(len(seen)) if held.w is None else held.w
        errors.append(mean_over(seen, squares, w))
    return float(np.mean(errors)) * data.y_unit * data.y_unit


def splits_within(splits: Sequence[Any], rows: np.ndarray) -> list[Any]:
    """Restrict splits to the samples `rows`; raise if a training or test set becomes empty."""
    found = []
    for k, sides in enumerate(splits):
        inside = [np.searchsorted(rows, side[np.isin(side, rows)]) for side in sides]
        for name, side in zip(("training", "test"), inside, strict=True):
            if not side.size:
                raise ValueError(
                    f"The {name} set of split {k} of cv has no observed entry of y. Use fewer "
                    f"folds, or shuffle the samples."
                )
        found.append(tuple(inside))
    return found


def expand_found(found: Found, known: KnownOutputs) -> Found:
    """Expand the result of a search over known outputs to all outputs."""
    calibration = found.calibration
    if calibration is not None:
        kept = dict(calibration.quantiles)
        for name, fill in (("entry", np.nan), ("n_entry", 0.0), ("own", 1.0)):
            if name in kept and np.ndim(kept[name]):
                kept[name] = known.put_known(kept[name], fill)
        noise = known.put_known(calibration.noise)
        calibration = replace(calibration, noise=noise, quantiles=kept, errors=None)
    return replace(found, fit=known.undo(found.fit), calibration=calibration)


def shared_parameters(search: Any, model: Any) -> dict[str, Any]:
    """Return the parameters that a search shares with its model."""
    names = set(model._get_param_names()) - {"rank", "alpha", "verbose"}
    return {k: v for k, v in search.get_params(deep=False).items() if k in names}
