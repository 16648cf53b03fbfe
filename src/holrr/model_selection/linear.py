"""Searches over penalties and ranks of linear models: RLSCV, LRRCV and HOLRRCV."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from ..base import TensorRegressor, scalar_if_0d
from ..core.approximate import FullRank, MatrixRank, MultilinearRank, Structure
from ..core.checks import check_finite
from ..core.input_map import InputDesign
from ..core.mixture import Mixture
from ..core.namespace import asarray_like, to_numpy
from ..core.output_weights import product_of
from ..data.arrays import ignores_missing, is_dask, take
from ..data.output_scale import divide_outputs, divided, multiply_outputs
from ..data.relabel import relabel, row_labels
from ..data.unusual import warn_of_unusual
from ..data.validation import Names, Samples, names_of_moments, validate, validate_inputs
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
from .pruning import pruned_surface
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
    return "ridge" if np.ndim(alpha) == 0 else "ridge with a penalty for each output"


def _shown(rank: tuple[int, ...]) -> str:
    return str(rank[0]) if len(rank) == 1 else str(rank)


class Search(TensorRegressor):
    """Base class of searches: prediction intervals and baselines of the final model."""

    best_estimator_: Any
    cv_results_: dict[str, Any]
    _not_in_files = ("_fold_fits",)
    # With metadata routing, groups that are passed to scikit-learn's tools reach `fit`.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012 (scikit-learn's convention)

    def _state_for_file(self, state: dict[str, Any]) -> dict[str, Any]:
        found = super()._state_for_file(state)
        if "cv_results_" in found:
            found["cv_results_"] = path_results(found["cv_results_"])
        return found

    def predict_interval(
        self, X: Any, coverage: float = 0.9, kind: str = "entry", *, check_inputs: bool = True
    ) -> Any:
        """Compute prediction intervals, which contain new observations with a given probability.

        An interval is the prediction of the final model plus and minus a quantile of the held-out
        residuals of the search, scaled by the standard deviation of the prediction. If the fit used
        only moments (`fit_fold_moments`, or data that are read in chunks), the residuals are
        assumed to be normal. See docs/intervals.md.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs, in the format that they had in `fit`.
        coverage : float, default=0.9
            Probability that an interval contains a new observation, between 0 and 1.
        kind : {"entry", "pooled", "simultaneous"}, default="entry"
            Quantiles of the intervals. "entry" uses a quantile for each output. "pooled" uses one
            quantile of the scaled residuals of all outputs, which needs fewer samples.
            "simultaneous" widens the intervals so that all outputs of a sample lie in their
            intervals at the same time with the given probability.
        check_inputs : bool, default=True
            Whether to warn if most of the inputs are unlike the training inputs, as in `predict`.

        Returns
        -------
        lower, upper : arrays of shape (n_samples, d1, ..., dp)
            Ends of the intervals, in the format of `predict`.
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
        """Held-out error of predicting the mean, for comparison with `held_out_mse_`."""
        return self._baseline("null_mse")

    @property
    def ridge_mse_(self) -> float:
        """Cross-fitted error of (kernel) ridge regression on the same folds."""
        return self._baseline("ridge_mse")

    @property
    def held_out_mse_(self) -> float:
        """Cross-fitted error of the choice: each fold is predicted by what the others choose."""
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

    def held_out_predictions(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Predict each sample by fits of the final model to other samples.

        The fits are computed again, to the training samples of the folds of the search. In a fold,
        a stack has the weights that the other folds determine, as in `held_out_mse_`.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs that were passed to `fit`.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs that were passed to `fit`.
        sample_weight : array of shape (n_samples,), optional
            Weights that were passed to `fit`.

        Returns
        -------
        array with the shape of y
            Held-out predictions in double precision, in the format of `predict`. If several folds
            hold out a sample, its predictions are averaged. Samples without weight and samples that
            no fold holds out have NaN.

        Examples
        --------
        >>> import numpy as np
        >>> from holrr import RLSCV
        >>> from holrr.datasets import make_tensor_regression
        >>> X, Y = make_tensor_regression(60, 4, (3, 2), rank=2, snr=1, random_state=0)
        >>> model = RLSCV().fit(X, Y)
        >>> found = model.held_out_predictions(X, Y)
        >>> bool(np.isclose(((Y - found) ** 2).mean(), -model.best_score_))
        True
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
    if mixture.penalties is not None:
        parts.append((mixture.penalties, None, mixture.by_output))
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

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
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
    loss: str = "squared"
    refine: bool = False
    alpha_per_output: bool = False

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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        sample_dim: Any = None,
    ) -> Any:
        """Choose penalty and rank by cross-validation, and fit the chosen model to all data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            Inputs: a NumPy array, an array of another library that follows the array API standard
            (PyTorch, CuPy, ...), a DataFrame, an xarray object or a dict of arrays (see
            docs/inputs.md), or a sparse matrix of SciPy, which stays sparse (see docs/sparse.md).
            Memory maps and Dask arrays are read in chunks (see docs/streaming.md).
            Cells of arrays with modes and of labelled arrays that are NaN in every sample, such as
            land in a field of the sea, are left out of the model: their coefficients are NaN, and
            `predict` ignores their values.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0. Scalar targets have shape (n_samples,).
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples in fits and held-out errors.
        groups : array of shape (n_samples,), optional
            Group labels of the samples, for splitters such as ``GroupKFold``.
        sample_dim : str, optional
            Sample dimension of xarray objects. By default, it is the dimension that `X` and `y`
            share. If they share several, it is the first one, which must be the same in both.

        Returns
        -------
        self
            The fitted estimator.
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

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_fold_moments(self, moments: Sequence[Moments]) -> Any:
        """Cross-validate and fit the model from the moments of disjoint folds.

        A stream or a cluster adds each sample to the moments of one fold and need not keep the
        data. The parameter `cv` is not used. See docs/streaming.md.

        Parameters
        ----------
        moments : sequence of Moments
            Moments of each fold, at least two.

        Returns
        -------
        self
            The fitted estimator.

        Examples
        --------
        >>> from holrr import RLSCV, Moments
        >>> from holrr.datasets import make_tensor_regression
        >>> X, Y = make_tensor_regression(60, 4, (3, 2), rank=2, snr=1, random_state=0)
        >>> folds = [Moments.from_arrays(X[k::3], Y[k::3]) for k in range(3)]
        >>> model = RLSCV(alphas=[0.1, 1.0, 10.0]).fit_fold_moments(folds)
        >>> RLSCV.from_fold_moments(folds, alphas=[0.1, 1.0, 10.0]).alpha_ == model.alpha_
        True
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

    @classmethod
    def from_fold_moments(cls, moments: Sequence[Moments], **parameters: Any) -> Any:
        """Create an estimator with the given parameters, and fit it by `fit_fold_moments`.

        Parameters
        ----------
        moments : sequence of Moments
            Moments of each fold, at least two.
        parameters : dict
            Parameters of the estimator.

        Returns
        -------
        estimator
            The fitted estimator.
        """
        return cls(**parameters).fit_fold_moments(moments)

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
            options = replace(self._options_within(options, known), ways=ALONE)
        candidates, penalties = input_candidates(source, plan, options)
        if known is not None and known.never is not None:
            # Of the candidates with the chosen penalties of blocks, use the best projection of the
            # inputs, or all inputs without projections.
            last = candidates[-1].ratios
            chosen = [c for c in candidates if c.ratios is last][:2][-1]
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
            prune=pruned_surface,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            fit_intercept=self.fit_intercept,
            by_output=self.alpha_per_output,
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


class RLSCV(LinearSearch):
    """Ridge regression for tensor outputs with cross-validated penalty.

    One decomposition of each training fold gives the exact held-out errors of all penalties,
    without refitting. See docs/model_selection.md.

    Parameters
    ----------
    alphas : array of shape (n_alphas,), float or None, default=None
        Penalties to try, at least 0 and all different, in any order. By default, the search tries
        thirteen penalties in half decades, from 1e-4 to 1e2 times the mean eigenvalue of ``X'X``
        (over min(n_samples, n_features) eigenvalues; of the centred inputs if an intercept is
        fitted). It extends this grid while the error decreases towards an end, and then adds one
        penalty on each side of the best one.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or an iterable of pairs of training and test
        indices.
    selection : {"min", "1se"} or callable, default="min"
        How to choose the penalty. "min" chooses the penalty with the least error, and "1se" the
        largest penalty within one standard error of the least error. A callable takes `cv_results_`
        and returns an index into ``mean_mse``.
    alpha_per_output : bool, default=False
        Whether to choose a penalty for each output by its own held-out error, among the penalties
        that the search for a common penalty tries. It needs ``selection="min"`` and complete
        outputs, and cannot be combined with `blocks`.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The intercept is not penalised.
    loss : {"squared", "huber"}, default="squared"
        Loss of the fits. "huber" is a robust search: samples that the other samples do not predict
        get smaller weights, which are the same in all fits and held-out errors. See docs/robust.md.
    missing : {"raise", "ignore"}, default="raise"
        How to handle missing values (NaN or masked entries) in y. "raise" raises an error. "ignore"
        leaves missing values out of fits and held-out errors, which are exact for every penalty.
        See docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in fits, held-out errors and `score`. A list has one vector of
        weights, or None, for each output mode. An array must be the product of such vectors. A
        DataArray weights the modes that are its dimensions. With ``missing="ignore"``, an array may
        also have zeros that are not such a product: the fits leave outputs of weight zero out as if
        they had never been observed. See docs/missing.md.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    blocks : str, dict, list or None, default=None
        Blocks of inputs, whose penalties are chosen: a dict from the name of each block to its
        columns, the label of the block of each column, the name of a mode of `X`, "prefix" or
        "auto" (`HOLRR` describes these forms). Equal penalties are also candidates. A block that
        does not lower the error gets an infinite penalty, which leaves it out. See docs/blocks.md.
    own : str, list, array of bool, or None, default=None
        Own inputs of each output, which get separate coefficients. An own input has the same label
        as the output along a mode that `X` and `y` share, such as the station. Pass the name of the
        shared mode, a list of names, or "auto" for all modes whose names and coordinates agree; for
        arrays without names, pass pairs of positions or a boolean array as for `HOLRR`. With
        several shared modes, the search tries every combination of them (the same station, the same
        variable, both) and eleven penalties in half decades, from 1e-3 to 1e2 times the mean
        diagonal entry of ``X'X`` (of the centred inputs if an intercept is fitted). The model
        without own inputs is always a candidate. See docs/own_inputs.md.
    input_rank : "auto", int, tuple, dict or None, default="auto"
        Number of directions to keep of each mode of `X`, for inputs of shape
        (n_samples, m1, ..., mq). "auto" searches for these ranks and for the penalty that
        determines the directions (`input_alpha` of the estimator) if `X` has at least two modes,
        with all directions as one candidate. With outputs that are missing in some samples, "auto"
        keeps all directions. A tuple has the form ``(r1, ..., rq)``, an int is used for every mode,
        and None keeps all directions. For several blocks of inputs, pass a dict from the names of
        the blocks to ranks. See docs/inputs.md.
    n_jobs : int or None, default=None
        Number of folds that run in parallel, each with a share of the threads. By default, as many
        folds run in parallel as the linear algebra library has threads.
    verbose : bool, default=False
        Whether to show a progress bar, which needs ``pip install "holrr[progress]"``.

    Attributes
    ----------
    alpha_ : float, or array of shape (d1, ..., dp)
        Chosen penalty. With `alpha_per_output`, the chosen penalty of each output.
    best_estimator_ : RLS
        Final model, fitted to all data.
    cv_results_ : dict
        Results of the search: ``mean_mse`` and ``std_mse``, of shape (n_alphas,), are the mean and
        the standard deviation of the mean squared error over the folds, and ``fold_mse``, of shape
        (n_folds, n_alphas), is the error of each fold. `HOLRRCV` describes the other entries.
    alphas_ : array of shape (n_alphas,)
        Penalties that the search tried.
    best_index_ : tuple of int
        Index of the best penalty in the error surface.
    best_score_ : float
        Score of the best single model: minus its held-out error.
    best_params_ : dict
        Penalty ("alpha") of the best single model.
    held_out_mse_ : float
        Held-out error of the final model.
    null_mse_ : float
        Held-out error of predicting the mean, for comparison.
    ridge_mse_ : float
        Least held-out error of ridge regression on the same folds, for comparison.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output, from held-out residuals. See
        docs/intervals.md.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. If `X` has modes, the shape is
        (m1, ..., mq, d1, ..., dp). If `X` has several blocks, `coef_` is a dict of such arrays.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    tucker_ : Tucker
        Coefficients of the final model in Tucker form.
    n_parameters_ : int
        Number of free parameters of the coefficients of the final model, without the intercept.
    n_iter_ : int
        Number of iterations of a fit with missing outputs, with ``missing="ignore"``.
    n_dropped_ : int
        Number of samples without any observed output, with ``missing="ignore"``.
    robust_weight_ : array of shape (n_samples,)
        Weight of each sample, between 0 and 1, with ``loss="huber"``. The fit has the squared loss
        with these weights times `sample_weight`.
    input_rank_ : tuple of int, or dict
        Number of directions of each mode of `X` that the fit keeps. Available if `X` has modes.
    input_factors_ : list of q arrays of shape (m_k, r_k), or dict
        Orthonormal bases of the directions of each mode of `X`, with `input_rank`.
    blocks_ : dict
        Positions of the columns of each block of inputs, by the name of the block, with `blocks`.
    block_alphas_ : dict
        Penalty of each block of inputs, with `blocks`; infinite for a block that is left out. The
        penalties are multiples of `alpha_`.
    own_coef_ : array with the shape of `coef_`, or dict
        Coefficients of own inputs, zero for all other inputs. Available if the search chose own
        inputs.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    See Also
    --------
    RLS : Ridge regression with a given penalty.
    HOLRRCV : Search over penalties and multilinear ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.model_selection import RLSCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(40, 5))
    >>> Y = np.tensordot(X, rng.normal(size=(5, 4, 3)), 1) + rng.normal(size=(40, 4, 3))
    >>> model = RLSCV(alphas=[0.1, 1, 10]).fit(X, Y)
    >>> model.alpha_, model.cv_results_["mean_mse"].round(2)
    (1.0, array([1.16, 1.16, 1.68]))
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **LINEAR_CONSTRAINTS,
        **SEARCH_CONSTRAINTS,
        **INPUT_RANK,
        "selection": [StrOptions({"min", "1se"}), callable],
        "alpha_per_output": ["boolean"],
    }

    _shares_directions = False

    def __init__(
        self,
        alphas=None,
        cv=5,
        *,
        selection="min",
        alpha_per_output=False,
        fit_intercept=True,
        loss="squared",
        missing="raise",
        output_weight=None,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        blocks=None,
        own=None,
        input_rank="auto",
        n_jobs=None,
        verbose=False,
    ):
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


class LRRCV(LinearSearch):
    """Low-rank regression for tensor outputs with cross-validated penalty and rank.

    The search computes the exact held-out errors of all ranks and penalties without refitting. They
    equal the errors of `HOLRRCV` at full output ranks. See docs/model_selection.md.

    Parameters
    ----------
    alphas : array of shape (n_alphas,), float or None, default=None
        Penalties to try, at least 0 and all different, in any order. By default, the search tries
        thirteen penalties in half decades, from 1e-4 to 1e2 times the mean eigenvalue of ``X'X``
        (over min(n_samples, n_features) eigenvalues; of the centred inputs if an intercept is
        fitted). It extends this grid while the error decreases towards an end, and then adds one
        penalty on each side of the best one.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or an iterable of pairs of training and test
        indices.
    max_rank : int or None, default=None
        Largest rank to try.
    selection : {"auto", "stack", "min", "1se"} or callable, default="auto"
        How to choose the final model from the held-out errors.

        - "stack" mixes about twenty models: several ranks at the best penalty, the best rank at a
          smaller and at a larger penalty, ridge regression, and the mean. The held-out errors
          determine the weights, and the mixture is one model. With `max_rank`, the stack
          mixes ranks at one penalty, so that its rank stays within these bounds. See
          docs/model_selection.md.
        - "min" chooses the single model with the least error.
        - "1se" chooses the model with the fewest parameters among those within one standard error
          of the least error. Ties are broken in favour of the largest penalty.
        - A callable takes `cv_results_` and returns an index into the error surface.
        - "auto" is "stack".
    fit_intercept : bool, default=True
        Whether to fit an intercept. The intercept is not penalised.
    loss : {"squared", "huber"}, default="squared"
        Loss of the fits. "huber" is a robust search: samples that the other samples do not predict
        get smaller weights, which are the same in all fits and held-out errors. See docs/robust.md.
    missing : {"raise", "ignore"}, default="raise"
        How to handle missing values (NaN or masked entries) in y. "raise" raises an error. "ignore"
        leaves missing values out of fits and held-out errors. With missing values the error surface
        is an approximation, which is exact at the chosen model. See docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in fits, held-out errors and `score`. A list has one vector of
        weights, or None, for each output mode. An array must be the product of such vectors. A
        DataArray weights the modes that are its dimensions. With ``missing="ignore"``, an array may
        also have zeros that are not such a product: the fits leave outputs of weight zero out as if
        they had never been observed. See docs/missing.md.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    blocks : str, dict, list or None, default=None
        Blocks of inputs, whose penalties are chosen: a dict from the name of each block to its
        columns, the label of the block of each column, the name of a mode of `X`, "prefix" or
        "auto" (`HOLRR` describes these forms). The search finds the ratios of the penalties that
        give the least held-out error of ridge regression, and scales them by each of `alphas`.
        Equal penalties are also candidates. A block that does not lower the error gets an infinite
        penalty, which leaves it out. See docs/blocks.md.
    own : str, list, array of bool, or None, default=None
        Own inputs of each output, which get separate coefficients. An own input has the same label
        as the output along a mode that `X` and `y` share, such as the station. Pass the name of the
        shared mode, a list of names, or "auto" for all modes whose names and coordinates agree; for
        arrays without names, pass pairs of positions or a boolean array as for `HOLRR`. With
        several shared modes, the search tries every combination of them (the same station, the same
        variable, both) and eleven penalties in half decades, from 1e-3 to 1e2 times the mean
        diagonal entry of ``X'X`` (of the centred inputs if an intercept is fitted). The model
        without own inputs is always a candidate. See docs/own_inputs.md.
    input_rank : "auto", int, tuple, dict or None, default="auto"
        Number of directions to keep of each mode of `X`, for inputs of shape
        (n_samples, m1, ..., mq). "auto" searches for these ranks and for the penalty that
        determines the directions (`input_alpha` of the estimator) if `X` has at least two modes,
        with all directions as one candidate. With outputs that are missing in some samples, "auto"
        keeps all directions. A tuple has the form ``(r1, ..., rq)``, an int is used for every mode,
        and None keeps all directions. For several blocks of inputs, pass a dict from the names of
        the blocks to ranks. See docs/inputs.md.
    n_jobs : int or None, default=None
        Number of folds that run in parallel, each with a share of the threads. By default, as many
        folds run in parallel as the linear algebra library has threads.
    verbose : bool, default=False
        Whether to show a progress bar, which needs ``pip install "holrr[progress]"``.

    Attributes
    ----------
    rank_ : int
        Rank of the final model. A stack that includes ridge regression has full rank.
    best_estimator_ : LRR
        Final model, fitted to all data.
    cv_results_ : dict
        Results of the search: ``mean_mse`` and ``std_mse``, of shape (n_alphas, R0), are the mean
        and the standard deviation of the mean squared error over the folds, and ``fold_mse``, of
        shape (n_folds, n_alphas, R0), is the error of each fold. `HOLRRCV` describes the other
        entries.
    alphas_ : array of shape (n_alphas,)
        Penalties that the search tried.
    held_out_mse_ : float
        Held-out error of the final model. The held-out error of a stack is cross-fitted: the
        weights for each fold come from the other folds.
    null_mse_ : float
        Held-out error of predicting the mean, for comparison.
    ridge_mse_ : float
        Least held-out error of ridge regression on the same folds, for comparison.
    stack_ranks_ : list of tuples
        Ranks of the models of a stack, in order of decreasing weight; None for ridge regression.
    stack_alphas_ : array of shape (n_models,)
        Penalties of the models of a stack.
    stack_weights_ : array of shape (n_models,)
        Weights of the models of a stack. One minus their sum is the weight of the mean.
    best_index_ : tuple of int
        Index of the best single model in the error surface. The best single model is the choice of
        `selection`; for a stack, the model with the least error.
    best_score_ : float
        Score of the best single model: minus its held-out error.
    best_params_ : dict
        Penalty ("alpha") and rank ("rank") of the best single model.
    alpha_ : float
        Penalty of the best single model. A stack can also mix a smaller and a larger penalty.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output, from held-out residuals. See
        docs/intervals.md.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. If `X` has modes, the shape is
        (m1, ..., mq, d1, ..., dp). If `X` has several blocks, `coef_` is a dict of such arrays.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    tucker_ : Tucker
        Coefficients of the final model in Tucker form.
    core_ : array of shape (R, d1, ..., dp)
        Outputs for each of the R latent inputs.
    factors_ : list of p + 1 arrays
        Factors of the Tucker form: the map from inputs to latent inputs, of shape (n_features, R),
        then identity matrices.
    spectra_ : list of p + 1 arrays
        Squared singular values of the whitened data. Only the entry of the input mode is not empty.
    n_parameters_ : int
        Number of free parameters of the coefficients of the final model, without the intercept.
    n_iter_ : int
        Number of iterations of a fit with missing outputs, with ``missing="ignore"``.
    n_dropped_ : int
        Number of samples without any observed output, with ``missing="ignore"``.
    robust_weight_ : array of shape (n_samples,)
        Weight of each sample, between 0 and 1, with ``loss="huber"``. The fit has the squared loss
        with these weights times `sample_weight`.
    input_rank_ : tuple of int, or dict
        Number of directions of each mode of `X` that the fit keeps. Available if `X` has modes.
    input_factors_ : list of q arrays of shape (m_k, r_k), or dict
        Orthonormal bases of the directions of each mode of `X`, with `input_rank`.
    blocks_ : dict
        Positions of the columns of each block of inputs, by the name of the block, with `blocks`.
    block_alphas_ : dict
        Penalty of each block of inputs, with `blocks`; infinite for a block that is left out. The
        penalties are multiples of `alpha_`.
    own_coef_ : array with the shape of `coef_`, or dict
        Coefficients of own inputs, zero for all other inputs. Available if the search chose own
        inputs.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    See Also
    --------
    LRR : Low-rank regression with given penalty and rank.
    HOLRRCV : Search over penalties and multilinear ranks.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.model_selection import LRRCV
    >>> rng = np.random.default_rng(0)
    >>> X, W = rng.normal(size=(60, 6)), rng.normal(size=(6, 2)) @ rng.normal(size=(2, 20))
    >>> Y = (X @ W).reshape(60, 4, 5) + 0.5 * rng.normal(size=(60, 4, 5))
    >>> model = LRRCV(alphas=[0, 0.1, 1, 10]).fit(X, Y)
    >>> model.best_params_["rank"], model.cv_results_["mean_mse"].shape
    (2, (4, 6))
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    def __init__(
        self,
        alphas=None,
        cv=5,
        *,
        max_rank=None,
        selection="auto",
        fit_intercept=True,
        loss="squared",
        missing="raise",
        output_weight=None,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        blocks=None,
        own=None,
        input_rank="auto",
        n_jobs=None,
        verbose=False,
    ):
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


class HOLRRCV(LinearSearch):
    """Higher-order low-rank regression with cross-validated penalty and ranks.

    The search computes the exact held-out error of *every* multilinear rank and penalty without
    refitting. See docs/model_selection.md.

    Parameters
    ----------
    alphas : array of shape (n_alphas,), float or None, default=None
        Penalties to try, at least 0 and all different, in any order. By default, the search tries
        thirteen penalties in half decades, from 1e-4 to 1e2 times the mean eigenvalue of ``X'X``
        (over min(n_samples, n_features) eigenvalues; of the centred inputs if an intercept is
        fitted). It extends this grid while the error decreases towards an end, and then adds one
        penalty on each side of the best one.
    cv : int, splitter or iterable, default=5
        Number of folds, a splitter of scikit-learn, or an iterable of pairs of training and test
        indices.
    max_rank : int, tuple or None, default=None
        Largest rank to try, either one int for all modes or a tuple ``(R0, ..., Rp)`` with the
        input mode first.
    selection : {"auto", "stack", "min", "1se"} or callable, default="auto"
        How to choose the final model from the held-out errors.

        - "stack" mixes about twenty models: several ranks at the best penalty, the best rank at a
          smaller and at a larger penalty, ridge regression, and the mean. The held-out errors
          determine the weights, and the mixture is one model. With `max_rank`, the stack
          mixes ranks at one penalty, so that its rank stays within these bounds. See
          docs/model_selection.md.
        - "min" chooses the single model with the least error.
        - "1se" chooses the model with the fewest parameters among those within one standard error
          of the least error. Ties are broken in favour of the largest penalty.
        - A callable takes `cv_results_` and returns an index into the error surface.
        - "auto" is "stack", or "min" with ``refine=True``.
    refine : bool, default=False
        Whether to refine the final fit by alternating least squares. The held-out errors are those
        of the fits before refinement. Refined fits cannot be stacked, so the search chooses a
        single rank.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The intercept is not penalised.
    loss : {"squared", "huber"}, default="squared"
        Loss of the fits. "huber" is a robust search: samples that the other samples do not predict
        get smaller weights, which are the same in all fits and held-out errors. See docs/robust.md.
    missing : {"raise", "ignore"}, default="raise"
        How to handle missing values (NaN or masked entries) in y. "raise" raises an error. "ignore"
        leaves missing values out of fits and held-out errors. With missing values the error surface
        is an approximation, which is exact at the chosen model. See docs/missing.md.
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in fits, held-out errors and `score`. A list has one vector of
        weights, or None, for each output mode. An array must be the product of such vectors. A
        DataArray weights the modes that are its dimensions. With ``missing="ignore"``, an array may
        also have zeros that are not such a product: the fits leave outputs of weight zero out as if
        they had never been observed. See docs/missing.md.
    scale_outputs : "std", array of shape (d1, ..., dp) or None, default=None
        Divisors of the outputs in the fit, so that outputs in different units count equally. "std"
        divides each output by its standard deviation over the training samples; a labelled array
        must have the labels of the outputs. Predictions, coefficients and noise are in the units of
        y, and `score` and held-out errors are those of the divided outputs.
    output_shape : tuple of int or None, default=None
        Modes ``(d1, ..., dp)`` of flat outputs. With `output_shape`, y and the predictions have
        shape (n_samples, D), where D is the number of outputs.
    input_shape : tuple of int, dict or None, default=None
        Modes ``(m1, ..., mq)`` of flat inputs of shape (n_samples, n_features). A dict from names
        to shapes splits the columns into consecutive blocks.
    blocks : str, dict, list or None, default=None
        Blocks of inputs, whose penalties are chosen: a dict from the name of each block to its
        columns, the label of the block of each column, the name of a mode of `X`, "prefix" or
        "auto" (`HOLRR` describes these forms). The search finds the ratios of the penalties that
        give the least held-out error of ridge regression, and scales them by each of `alphas`.
        Equal penalties are also candidates. A block that does not lower the error gets an infinite
        penalty, which leaves it out. See docs/blocks.md.
    own : str, list, array of bool, or None, default=None
        Own inputs of each output, which get separate coefficients. An own input has the same label
        as the output along a mode that `X` and `y` share, such as the station. Pass the name of the
        shared mode, a list of names, or "auto" for all modes whose names and coordinates agree; for
        arrays without names, pass pairs of positions or a boolean array as for `HOLRR`. With
        several shared modes, the search tries every combination of them (the same station, the same
        variable, both) and eleven penalties in half decades, from 1e-3 to 1e2 times the mean
        diagonal entry of ``X'X`` (of the centred inputs if an intercept is fitted). The model
        without own inputs is always a candidate. See docs/own_inputs.md.
    input_rank : "auto", int, tuple, dict or None, default="auto"
        Number of directions to keep of each mode of `X`, for inputs of shape
        (n_samples, m1, ..., mq). "auto" searches for these ranks and for the penalty that
        determines the directions (`input_alpha` of the estimator) if `X` has at least two modes,
        with all directions as one candidate. With outputs that are missing in some samples, "auto"
        keeps all directions. A tuple has the form ``(r1, ..., rq)``, an int is used for every mode,
        and None keeps all directions. For several blocks of inputs, pass a dict from the names of
        the blocks to ranks. See docs/inputs.md.
    n_jobs : int or None, default=None
        Number of folds that run in parallel, each with a share of the threads. By default, as many
        folds run in parallel as the linear algebra library has threads.
    verbose : bool, default=False
        Whether to show a progress bar, which needs ``pip install "holrr[progress]"``.

    Attributes
    ----------
    rank_ : tuple of int
        Multilinear rank of the final model, which is the shape of `core_`. A stack that includes
        ridge regression has full rank.
    best_estimator_ : HOLRR
        Final model, fitted to all data.
    cv_results_ : dict
        Results of the search:

        - ``mean_mse`` and ``std_mse``, of shape (n_alphas, R0, ..., Rp): mean and standard
          deviation over the folds of the mean squared error of each fold, over its (weighted)
          samples and all outputs;
        - ``fold_mse``, of shape (n_folds, n_alphas, R0, ..., Rp): the mean squared error of each
          fold;
        - ``alphas``, and ``n_parameters``, of shape (R0, ..., Rp);
        - ``null_mse``, ``ridge_mse`` and ``held_out_mse``: the values of the attributes;
        - in large searches: NaN at penalties that cannot be chosen, and ``screened_mse``, of
          shape (n_alphas,): the approximate least error at each penalty, NaN far from the best
          penalties;
        - with `output_weight`: ``unweighted_mse``, the held-out error of the choice with equal
          weights of all outputs;
        - with missing outputs: ``fitted_index`` and ``fitted_mse``, the candidates that were fitted
          to the observed entries of every fold, and their exact held-out errors;
        - with `blocks` or `own` and complete outputs: the surfaces have a first axis of candidates.
          ``block_ratios``, of shape (n_candidates, n_blocks), has the penalties of the blocks
          divided by the common penalty. ``block_path_alphas`` and ``block_path_mse`` have the
          penalties of blocks that were tried, and their errors in ridge regression. ``own`` and
          ``own_alphas`` have the modes and the penalties of own inputs.
    alphas_ : array of shape (n_alphas,)
        Penalties that the search tried.
    held_out_mse_ : float
        Held-out error of the final model (before refinement, with ``refine=True``). The held-out
        error of a stack is cross-fitted: the weights for each fold come from the other folds.
    null_mse_ : float
        Held-out error of predicting the mean, for comparison.
    ridge_mse_ : float
        Least held-out error of ridge regression on the same folds, for comparison.
    stack_ranks_ : list of tuples
        Ranks of the models of a stack, in order of decreasing weight; None for ridge regression.
    stack_alphas_ : array of shape (n_models,)
        Penalties of the models of a stack.
    stack_weights_ : array of shape (n_models,)
        Weights of the models of a stack. One minus their sum is the weight of the mean.
    best_index_ : tuple of int
        Index of the best single model in the error surface. The best single model is the choice of
        `selection`; for a stack, the model with the least error.
    best_score_ : float
        Score of the best single model: minus its held-out error.
    best_params_ : dict
        Penalty ("alpha") and rank ("rank") of the best single model.
    alpha_ : float
        Penalty of the best single model. A stack can also mix a smaller and a larger penalty.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output, from held-out residuals. See
        docs/intervals.md.
    coef_ : array of shape (n_features, d1, ..., dp), or (D, n_features) with `output_shape`
        Dense coefficients, computed on access. If `X` has modes, the shape is
        (m1, ..., mq, d1, ..., dp). If `X` has several blocks, `coef_` is a dict of such arrays.
    intercept_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Intercept of each output.
    tucker_ : Tucker
        Coefficients of the final model in Tucker form.
    core_ : array of shape (R0, ..., Rp)
        Core of the Tucker form of the coefficients.
    factors_ : list of p + 1 arrays of shape (d_i, R_i)
        Factors of the Tucker form, input mode first. ``(core_, factors_)`` is a Tucker tensor in
        the format of TensorLy. The output factors have orthonormal columns.
    spectra_ : list of p + 1 arrays
        Leading squared singular values of each unfolding of the whitened data, input mode first.
    n_parameters_ : int
        Number of free parameters of the coefficients of the final model, without the intercept.
    n_iter_ : int
        Number of iterations, including the spectral fit.
    n_dropped_ : int
        Number of samples without any observed output, with ``missing="ignore"``.
    robust_weight_ : array of shape (n_samples,)
        Weight of each sample, between 0 and 1, with ``loss="huber"``. The fit has the squared loss
        with these weights times `sample_weight`.
    input_rank_ : tuple of int, or dict
        Number of directions of each mode of `X` that the fit keeps. Available if `X` has modes.
    input_factors_ : list of q arrays of shape (m_k, r_k), or dict
        Orthonormal bases of the directions of each mode of `X`, with `input_rank`.
    blocks_ : dict
        Positions of the columns of each block of inputs, by the name of the block, with `blocks`.
    block_alphas_ : dict
        Penalty of each block of inputs, with `blocks`; infinite for a block that is left out. The
        penalties are multiples of `alpha_`.
    own_coef_ : array with the shape of `coef_`, or dict
        Coefficients of own inputs, zero for all other inputs. Available if the search chose own
        inputs.
    output_scale_ : array of shape (d1, ..., dp), or (D,) with `output_shape`
        Divisor of each output, with `scale_outputs`. `core_` and `factors_` describe the divided
        outputs.
    n_features_in_ : int
        Number of features of `X`.
    feature_names_in_ : array of shape (n_features,)
        Names of the features, if `X` had names in `fit`.
    labels_ : Labels or None
        Names and coordinates of the samples, inputs and outputs, if the data had labels.

    See Also
    --------
    HOLRR : Higher-order low-rank regression with given penalty and ranks.
    KernelHOLRRCV : Search over kernels, penalties and ranks.

    Notes
    -----
    The fits of all ranks are leading blocks of one core, so that their errors are cumulative sums.
    A fold and a penalty cost about as much as one fit, for any number of ranks.

    Entry ``[a, i, j, ...]`` of the error surface belongs to ``alphas_[a]`` and the rank
    ``(i + 1, j + 1, ...)``. The largest rank of a mode is its size or the product of the other
    sizes, since larger ranks give the same model. The largest rank of the input mode is the largest
    that a training fold supports. A fold that supports fewer directions has the same error for all
    larger ranks.

    If the folds partition the data, the search computes the moments of each fold in one pass, and
    merges the moments of the other folds into training moments. `fit_fold_moments` starts from such
    moments.

    ``alpha_ == alphas_[best_index_[0]]`` and ``best_score_ == -mean_mse[best_index_]``. With an
    axis of candidates (see `cv_results_`), the penalty is the second index. There is one exception:
    with ``selection="min"``, if the memory budget caps the ranks and ridge regression has a lower
    error, the search chooses ridge regression. `alpha_` and `held_out_mse_` are then those of ridge
    regression.

    References
    ----------
    G. Rabusseau, H. Kadri (2016). Higher-order low-rank regression. arXiv:1602.06863.

    Examples
    --------
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.model_selection import HOLRRCV
    >>> X, Y = make_tensor_regression(
    ...     200, n_features=8, output_shape=(6, 7), rank=(3, 2, 3), snr=2.0, random_state=0
    ... )
    >>> model = HOLRRCV().fit(X, Y)
    >>> model.best_params_["rank"], model.cv_results_["mean_mse"].shape
    ((3, 2, 3), (15, 8, 6, 7))
    >>> model.held_out_mse_ < model.ridge_mse_ < model.null_mse_
    True

    Choose the best single model in place of a stack:

    >>> HOLRRCV(selection="min").fit(X, Y).rank_
    (3, 2, 3)
    >>> low, high = model.predict_interval(X, coverage=0.9)
    """

    _parameter_constraints: dict = {  # noqa: RUF012 (scikit-learn's convention)
        **LINEAR_CONSTRAINTS,
        **SEARCH_CONSTRAINTS,
        **INPUT_RANK,
        **MULTILINEAR_CONSTRAINTS,
    }

    def __init__(
        self,
        alphas=None,
        cv=5,
        *,
        max_rank=None,
        selection="auto",
        refine=False,
        fit_intercept=True,
        loss="squared",
        missing="raise",
        output_weight=None,
        scale_outputs=None,
        output_shape=None,
        input_shape=None,
        blocks=None,
        own=None,
        input_rank="auto",
        n_jobs=None,
        verbose=False,
    ):
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
    if selection == "stack" and estimator.refine:
        raise ValueError(
            "selection='stack' cannot be combined with refine=True, since refined fits of several "
            "ranks cannot be mixed. Use selection='min', or refine=False."
        )
    return "min" if estimator.refine else "stack"


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
