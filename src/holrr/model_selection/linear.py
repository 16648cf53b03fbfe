"""Searches over penalties and ranks of linear models: RLSCV, LRRCV and HOLRRCV."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
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
from ..core.namespace import asarray_like
from ..core.output_weights import product_of
from ..core.warn import warn
from ..data.arrays import ignores_missing, is_dask
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
    warn_renamed,
)
from ..linear.fit import (
    RESPONSE_SUBSPACES,
    LinearOptions,
    fit_data,
    refuse_output_weight,
    weigh_outputs,
    weighted,
)
from ..linear.inputs import InputPlan, common_penalty, input_plan, shown_ranks
from ..missing.fit import check_no_infinity, has_missing
from ..missing.known import KnownOutputs, Prepared, PreparedStream, prepare, prepare_stream
from ..missing.search import mean_over, search_missing, search_never
from ..streaming.moments import Moments
from ..streaming.sparse import SparseStream
from ..streaming.stream import Stream
from .block_penalties import BlockPenalties, find_block_penalties
from .by_output import choose_by_output
from .criteria import CRITERIA, criterion_results
from .folds import (
    FoldData,
    check_fold_moments,
    gather_folds,
    linear_folds,
    moment_data,
    penalties_of,
    sample_data,
    sparse_data,
    split,
    splits_of,
)
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
    is_mean_square,
    n_parallel,
    run_search,
    split_index,
)

__all__ = ["HOLRRCV", "LRRCV", "RLSCV", "Search", "search_attributes"]

SEARCH_CONSTRAINTS: dict[str, list[Any]] = {
    "alphas": ["array-like", Interval(Real, 0, None, closed="left"), None],
    "cv": ["cv_object"],
    "criterion": [StrOptions({"cv", *CRITERIA})],
    "selection": [StrOptions({"auto", "stack", "min", "1se"}), callable],
    "max_bytes": [Interval(Real, 0, None, closed="neither")],
    "own_alphas": ["array-like", Interval(Real, 0, None, closed="left"), None],
    "search": [StrOptions({"pruned", "exhaustive"})],
    "keep_held_out": ["boolean"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}
INPUT_RANK: dict[str, list[Any]] = {
    "input_rank": [StrOptions({"auto"}), *LINEAR_CONSTRAINTS["input_rank"]]
}


# Models of a stack that a line names one by one.
_N_SHOWN = 3


def _shown(rank: tuple[int, ...]) -> str:
    return str(rank[0]) if len(rank) == 1 else str(rank)


class Search(TensorRegressor):
    """What all searches share: the chosen model's predictions, with intervals, and baselines."""

    best_estimator_: Any
    cv_results_: dict[str, Any]
    criterion: str = "cv"
    _penalties = "alphas"  # name of the parameter with the penalties
    # With metadata routing, groups that are passed to scikit-learn's tools reach `fit`.
    __metadata_request__fit = {"groups": True}  # noqa: RUF012 (scikit-learn's convention)

    def predict_interval(
        self, X: Any, coverage: float = 0.9, kind: str = "entry", *, check_inputs: bool = True
    ) -> Any:
        """Prediction intervals: new observations lie in them with a given probability.

        They are the predictions of the final model plus and minus quantiles of the held-out
        residuals of the search, scaled by the standard deviation of each prediction; see
        docs/intervals.md. From moments alone (`fit_fold_moments`, data that are read in blocks) the
        residuals are taken as normal.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        coverage : float, default=0.9
            The probability, between 0 and 1.
        kind : {"entry", "pooled", "simultaneous"}, default="entry"
            Whether each output entry has its own quantile, all share that of their scaled residuals
            (which needs fewer samples), or all entries of a sample lie within their intervals at
            once with the given probability.
        check_inputs : bool, default=True
            As in `predict`.

        Returns
        -------
        lower, upper : arrays of shape (n_samples, d1, ..., dp)
            As `predict` returns them.
        """
        check_is_fitted(self)
        kept = vars(self).get("_intervals")
        if kept is None:
            raise ValueError(
                "predict_interval needs the held-out residuals of a search, and this one has none: "
                "it used an information criterion, or comes from a file or moments of an older "
                "version. Fit again, with criterion='cv'."
            )
        factor = interval_factor(kept, coverage, kind, self._noise_level())
        self._check_noise()
        checked = validate_inputs(self, X, sparse=True)
        if check_inputs:
            warn_of_unusual(self._input_model, checked)
        if is_dask(checked):
            shape = self._output_shape
            mean, std = (self._lazily(checked, m, shape) for m in ("_predict_array", "_std_array"))
        else:
            mean, std = self._evaluate(checked, return_std=True)
        width = half_width(mean, std, factor)
        return relabel(self.labels_, X, mean - width), relabel(self.labels_, X, mean + width)

    @property
    def null_mse_(self) -> float:
        """Held-out error of predicting the mean; that of the model is `held_out_mse_`."""
        return self._baseline("null_mse")

    @property
    def ridge_mse_(self) -> float:
        """Least held-out error of (kernel) ridge regression on the same folds."""
        return self._baseline("ridge_mse")

    @property
    def held_out_mse_(self) -> float:
        """Held-out error of the model that predicts; of a stack with weights from other folds."""
        return self._baseline("held_out_mse")

    def _what_is_mixed(self) -> str:
        """A line that says which models a stack mixes; empty where there is none."""
        if "stack_weights_" not in vars(self):
            return ""
        parts = zip(self.stack_weights_, self.stack_ranks_, self.stack_alphas_, strict=True)
        shown = [
            f"{w:.0%} {'ridge' if rank is None else f'rank {_shown(rank)}'} at alpha={alpha:.3g}"
            for w, rank, alpha in list(parts)[:_N_SHOWN]
        ]
        n, null = len(self.stack_weights_), 1.0 - float(np.sum(self.stack_weights_))
        if n > _N_SHOWN:
            rest = float(np.sum(self.stack_weights_[_N_SHOWN:]))
            shown.append(f"{rest:.0%} {n - _N_SHOWN} more")
        if null >= 0.005:
            shown.append(f"{null:.0%} the mean")
        return f"stack of {n} model{'s' * (n != 1)}: {', '.join(shown)}"

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        text, mixed = super().__repr__(N_CHAR_MAX), self._what_is_mixed()
        return f"{text}\n# {mixed}" if mixed else text

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        found, mixed = super()._repr_mimebundle_(**kwargs), self._what_is_mixed()
        if mixed and "text/html" in found:
            found["text/html"] += f"<p>{escape(mixed)}</p>"
        return found

    def _keep_held_out(self, found: Found, X: Any, y: Any) -> Any:
        """Keep the held-out predictions under the labels of the samples, where they are wanted.

        The residuals of the samples have these labels, too.
        """
        if found.held_out is not None:
            self.held_out_ = relabel(self.labels_, X, found.held_out)
        rows = vars(self).get("_row_residuals")
        if rows is not None:
            self._row_residuals = replace(rows, labels=row_labels(X, y, self.labels_))
        return self

    def _baseline(self, name: str) -> float:
        check_is_fitted(self)
        if name in self.cv_results_:
            return float(self.cv_results_[name])
        why = (
            'with missing outputs only RLSCV computes it, and RLSCV(missing="ignore") with the '
            "same cv has it"
        )
        if self.criterion != "cv":
            why = f"criterion={self.criterion!r} has no held-out errors: use criterion='cv'"
        raise AttributeError(f"{name}_ is not known: {why}.")


def search_attributes(
    found: Found, model: Any, y_unit: float, weights: Sequence[np.ndarray] | None = None
) -> dict[str, Any]:
    """The fitted attributes of a search that describe its choice.

    Parameters
    ----------
    found : Found
    model : estimator
        The chosen model, fitted to all the data; its noise becomes that of held-out residuals.
    y_unit : float
        What the outputs were divided by.
    weights : sequence of p arrays of shape (d_i,), optional
        Weights of the outputs.
    """
    choice, results = found.choice, found.results.copy()
    if found.key == "mean_mse":
        results["held_out_mse"] = choice.error
    results = in_units(results, y_unit)
    squared = y_unit * y_unit if is_mean_square(found.key) else 1.0
    has_candidates = len(choice.index) == results["n_parameters"].ndim + 2
    _, a, rank = split_index(choice.index, results, has_candidates)
    best: dict[str, Any] = {"alpha": float(results["alphas"][a])}
    if rank:
        best["rank"] = rank if isinstance(model.rank_, tuple) else rank[0]
    attributes: dict[str, Any] = {
        "cv_results_": results,
        "best_index_": choice.index,
        "best_score_": -choice.single_error * squared,
        "best_params_": best,
        "best_estimator_": model,
        "alphas_": results["alphas"],
        "alpha_": choice.alpha,
    }
    if rank:
        attributes["rank_"] = model.rank_
    if isinstance(choice.structure, Mixture):
        attributes |= stack_attributes(found)
    if found.calibration is not None:
        noise = y_unit * found.calibration.noise
        if weights is not None:
            v = product_of(weights)
            noise = np.where(v > 0, noise / np.sqrt(np.where(v > 0, v, 1.0)), np.nan)
        core = model.tucker_.core
        model._noise = scalar_if_0d(asarray_like(noise, core, dtype=core.dtype))
        attributes["_intervals"] = found.calibration.quantiles
        attributes["_row_residuals"] = found.calibration.rows
    attributes["_noise"] = vars(model).get("_noise")
    return attributes


def chosen_rank(found: Found) -> Any:
    """The rank of the model that predicts, as its estimator takes it; None for full rank."""
    structure = found.choice.structure
    if not isinstance(structure, Mixture):
        return getattr(structure, "rank", None)
    rank = found.fit.tucker.rank
    return rank[0] if isinstance(structure.base, MatrixRank) else rank


def stack_attributes(found: Found) -> dict[str, Any]:
    """What is mixed: penalties, ranks and weights, the largest weight first."""
    stack, alphas = found.choice.stack, found.results["alphas"]
    assert stack is not None
    order = [int(i) for i in np.argsort(-stack.weights, kind="stable") if stack.weights[i] > 0]
    return {
        "stack_alphas_": alphas[[stack.parts[i].place for i in order]],
        "stack_ranks_": [stack.parts[i].rank for i in order],
        "stack_weights_": stack.weights[order],
    }


class LinearSearch(Search):
    """Searches over penalties and ranks of linear models.

    A subclass names its parameters, the grid of ranks and the structure of a rank.
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
    solver: str
    max_bytes: float
    missing: str
    output_weight: Any
    input_rank: Any
    blocks: Any
    own: Any
    own_alphas: Any
    n_jobs: int | None
    verbose: Any
    subspaces: str = "fitted"
    refine: bool = False
    search: str = "exhaustive"
    alpha_per_output: bool = False

    predict_blocks = block_parts.predict_blocks
    score_blocks = block_parts.score_blocks

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        """The ranks to try of coefficients of this shape."""
        raise NotImplementedError

    def _structure(self, rank: tuple[int, ...]) -> Structure:
        """The structure of a rank."""
        raise NotImplementedError

    def _model(self, alpha: Any, rank: Any) -> Any:
        """The unfitted estimator that was chosen."""
        raise NotImplementedError

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Any:
        """Choose by cross-validation, and fit the chosen model to all the data.

        Parameters
        ----------
        X : array of shape (n_samples, n_features) or (n_samples, m1, ..., mq)
            As in the estimator that is chosen.
        y : array of shape (n_samples, d1, ..., dp)
            Outputs of any order p >= 0.
        sample_weight : array of shape (n_samples,), optional
            Weights of the samples, in the fits and in the held-out errors.
        groups : array of shape (n_samples,), optional
            Groups of the samples, for splitters that use them.

        Returns
        -------
        self
        """
        warn_renamed(self)
        data, names = validate(self, X, y, sample_weight, groups=groups)
        options = self._options()
        check_search(options, data.n_samples)
        self._grid((data.n_features, *data.output_shape))  # raises for bad ranks
        plan = self._plan(names, data)
        n_samples = data.n_samples
        if isinstance(data, Stream):
            refuse_held_out(self, "data that are read in blocks")
        data, weights = weigh_outputs(self.output_weight, data, names.labels, ignores_missing(self))
        if isinstance(data, Stream):
            part = prepare_stream(
                data,
                weights,
                ignore_missing=ignores_missing(self),
                keep_grid=self._keeps_grid(data),
            )
            found, chosen, error = self._search_stream(part, groups, plan, options)
            return self._assign_search(
                found, names, plan, chosen, weights=part.weights, unweighted_mse=error
            )
        splits = split(data, self.cv, groups) if self.criterion == "cv" else []
        names, some = names.with_input_model(data, splits), None
        if ignores_missing(self) and has_missing(data):
            check_no_infinity(data)
            some = prepare(data, weights, keep_grid=self._keeps_grid(data))
            data, splits = some.samples.scaled(), splits_within(splits, some.rows)
            found, chosen = self._search_incomplete(some, data, splits, plan, options)
            weights, v = some.weights, some.output_weight
        else:
            data = (data if weights is None else weighted(data, weights)).scaled()
            parts = self._sample_data(data, splits)
            found, chosen = search_designs(parts, plan, options, self._fit_options)
            v = None if weights is None else product_of(weights)
        error = None
        if v is not None and self.criterion == "cv":
            never = None if some is None else some.never
            design = chosen.design and chosen.design.in_units(data.x_unit)
            final = replace(self._fit_options(found.choice), inputs=design)
            error = unweighted_error(data, splits, final, found, v, never)
        rows = slice(None) if some is None else some.rows
        found = replace(found, held_out=in_user_units(found.held_out, data, v, rows, n_samples))
        if some is not None and found.calibration is not None:
            found = replace(found, calibration=found.calibration.placed(some.rows, n_samples))
        if some is not None and some.known is not None:
            found = expand_found(found, some.known)
        self._assign_search(found, names, plan, chosen, data, weights, error)
        return self._keep_held_out(found, X, y)

    @_fit_context(prefer_skip_nested_validation=True)
    def fit_fold_moments(self, moments: Sequence[Moments]) -> Any:
        """Cross-validate and fit from moments alone, one for each of disjoint folds.

        A stream or a cluster does not have to keep its data: each sample is added to the moments of
        one fold. `cv` is not used.

        Parameters
        ----------
        moments : sequence of Moments
            Of at least two folds; gathered with ``response_grams=True`` where
            ``subspaces="response"``.

        Returns
        -------
        self

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
        refuse_held_out(self, "moments")
        data, options = self._moment_data(moments), self._options()
        total = data.total()
        assert total is not None
        check_search(options, total.n_samples)
        names = names_of_moments(self, total)
        plan = self._plan(names, data)
        found, chosen = search_designs(data, plan, options, self._fit_options)
        return self._assign_search(found, names, plan, chosen)

    @classmethod
    def from_fold_moments(cls, moments: Sequence[Moments], **parameters: Any) -> Any:
        """A new estimator with these parameters, fitted by `fit_fold_moments`."""
        return cls(**parameters).fit_fold_moments(moments)

    # ------------------------------------------------------------ steps

    def _plan(self, names: Names, data: Any) -> InputPlan:
        """What is asked for that concerns the inputs."""
        own_alphas = check_penalties(self.own_alphas, "own_alphas")
        return replace(input_plan(self, names, data), own_alphas=own_alphas)

    def _sample_data(self, data: Samples, splits: Sequence[Any]) -> FoldData:
        """The folds of complete samples."""
        if data.w is not None:  # samples without weight are not read later
            check_finite(data.Y, "y")
        return sample_data(
            data,
            splits,
            fit_intercept=self.fit_intercept,
            response_grams=self.subspaces == "response",
            solver=self.solver,
            max_bytes=self.max_bytes,
        )

    def _search_incomplete(
        self,
        some: Prepared,
        data: Samples,
        splits: Sequence[Any],
        plan: InputPlan,
        options: SearchOptions,
    ) -> tuple[Found, InputCandidate]:
        """The search of samples with missing outputs, for the outputs that are ever observed."""
        options = self._options_within(options, some.known)
        if options.by_output:
            raise ValueError(
                "alpha_per_output=True needs complete outputs, and entries of y are missing."
            )
        if some.known is not None:
            refuse_own(plan)
        if some.is_complete:
            parts = self._sample_data(data, splits)
            found, chosen = self._search_folds(parts, plan, options, some.known)
        else:
            found, chosen = self._search_observed(some, data, splits, plan, options)
        return replace(found, n_dropped=some.n_dropped), chosen

    def _search_observed(
        self,
        some: Prepared,
        data: Samples,
        splits: Sequence[Any],
        plan: InputPlan,
        options: SearchOptions,
    ) -> tuple[Found, InputCandidate]:
        """The search of samples that lack some outputs.

        Penalties of blocks and own inputs are compared on outputs that the search with equal
        penalties and without own inputs imputes.
        """

        def run(candidate: InputCandidate) -> Found:
            how = options, self._fit_options, some.output_weight, candidate.design
            return search_missing(data, splits, *how)

        chosen = InputCandidate(plan.fixed)
        found = run(chosen)
        if plan.own or plan.has_several_blocks:
            predicted = found.fit.predict(data.X * data.x_unit) / data.y_unit
            imputed = replace(data, Y=np.where(np.isnan(data.Y), predicted, data.Y))
            parts = self._sample_data(imputed, splits)
            whole = replace(plan, is_searched=False)
            for candidate in input_candidates(parts, whole, options)[0][1:]:
                other = run(candidate)
                if other.choice.error < found.choice.error:
                    found, chosen = other, candidate
        return found, chosen

    def _search_folds(
        self, data: FoldData, plan: InputPlan, options: SearchOptions, known: KnownOutputs | None
    ) -> tuple[Found, InputCandidate]:
        """The search of complete data, in which outputs that are never observed are zero."""
        if known is None or known.never is None:
            return search_designs(data, plan, options, self._fit_options)
        refuse_own(plan)
        candidates, _ = input_candidates(data, plan, options)
        # Of the penalties that were found, the best projection, or all of the inputs.
        last = candidates[-1].ratios
        chosen = [c for c in candidates if c.ratios is last][:2][-1]
        folds = linear_folds(data, [chosen.design])
        return search_never(folds, known.never, options, self._fit_options), chosen

    def _search_stream(
        self, some: PreparedStream, groups: Any, plan: InputPlan, options: SearchOptions
    ) -> tuple[Found, InputCandidate, float | None]:
        """The search of data that are read in blocks, which may all lack the same outputs.

        The last value is the held-out error with all outputs alike, where they have weights.
        """
        known, v = some.known, some.output_weight
        if known is not None:
            refuse_own(plan)
        parts = self._stream_data(some.stream, groups, plan)
        options = self._options_within(options, known)
        found, chosen = self._search_folds(parts, plan, options, known)
        error, calibration = None, found.calibration
        if v is not None and calibration is not None and calibration.errors is not None:
            counts = v > 0 if known is None or known.never is None else (v > 0) & ~known.never
            error = float(np.mean(calibration.errors[:, counts] / v[counts]))
        return (found if known is None else expand_found(found, known)), chosen, error

    def _keeps_grid(self, data: Samples | Stream) -> bool:
        """Whether the modes of the outputs matter to the structure."""
        rank = (1,) * (1 + len(data.output_shape))
        return isinstance(self._structure(rank), MultilinearRank)

    def _options_within(self, options: SearchOptions, known: KnownOutputs | None) -> SearchOptions:
        """Options of a search of known outputs: no rank is above the size of its mode."""
        if known is None or known.slices is None:
            return options

        def grid(shape: Sequence[int]) -> RankGrid:
            whole = self._grid((shape[0], *known.full_shape)).within_shape(shape)
            fitted = self.subspaces == "fitted" and whole.listed is None
            return whole.within_others(shape) if fitted else whole

        return replace(options, grid=grid)

    def _options(self) -> SearchOptions:
        warn_of_caps(self)
        return SearchOptions(
            name=type(self).__name__,
            grid=self._grid,
            structure=self._structure,
            alphas=check_penalties(self.alphas, "alphas"),
            criterion=self.criterion,
            criteria=criterion_results,
            selection=resolve_selection(self),
            subspaces=self.subspaces,
            max_bytes=self.max_bytes,
            prune=pruned_surface if self.search == "pruned" else None,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            fit_intercept=self.fit_intercept,
            keep_held_out=self.keep_held_out,
            by_output=self.alpha_per_output,
        )

    def _moment_data(self, moments: Sequence[Moments], splits: Any = None) -> FoldData:
        if self.solver == "svd":
            raise ValueError(
                "solver='svd' factorises the samples themselves, which moments do not hold; use "
                "solver='auto' or 'eigh' with moments."
            )
        parts = check_fold_moments(moments, self.subspaces == "response")
        return moment_data(parts, splits, fit_intercept=self.fit_intercept)

    def _stream_data(self, data: Stream, groups: Any, plan: InputPlan) -> FoldData:
        """The moments of all folds from one pass over the data."""
        grams = self.subspaces == "response"
        if self.criterion == "cv":
            splits = splits_of(data, self.cv, groups)
            if isinstance(data, SparseStream):
                return sparse_data(
                    data,
                    splits,
                    by_moments=self.solver != "auto" or not plan.is_plain,
                    fit_intercept=self.fit_intercept,
                    response_grams=grams,
                )
            return self._moment_data(*gather_folds(data, splits, grams))
        return self._moment_data(data.halves(grams))

    def _fit_options(self, choice: Choice) -> LinearOptions:
        """The options of the fit of a choice to all the data."""
        return LinearOptions(
            structure=choice.structure,
            alpha=choice.alpha,
            fit_intercept=self.fit_intercept,
            solver=self.solver,
            ignore_missing=ignores_missing(self),
        )

    def _assign_search(
        self,
        found: Found,
        names: Names,
        plan: InputPlan,
        chosen: InputCandidate,
        data: Samples | None = None,
        weights: Sequence[np.ndarray] | None = None,
        unweighted_mse: float | None = None,
    ) -> Any:
        """Assign all fitted attributes, those of the chosen model among them."""
        x_unit, y_unit = (1.0, 1.0) if data is None else (data.x_unit, data.y_unit)
        fit = found.fit if weights is None else found.fit.unweighted(weights)
        n_dropped = found.n_dropped if ignores_missing(self) and data is not None else None
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
        model._assign_fit(fit, names, plan, n_dropped)
        attributes = search_attributes(found, model, y_unit, weights)
        attributes |= input_attributes(fit, names)
        attributes |= block_attributes(blocks, model.alpha, names, fit)
        if unweighted_mse is not None:
            attributes["cv_results_"]["unweighted_mse"] = unweighted_mse
        for name in ("n_iter_", "n_dropped_"):
            attributes[name] = vars(model).get(name)
        return self._assign(fit, names, **attributes)


class RLSCV(LinearSearch):
    """Ridge regression for tensor outputs with cross-validated penalty.

    One decomposition of each training fold serves all penalties, and their held-out errors are
    exact: nothing is refitted.

    Parameters
    ----------
    alphas, cv, n_jobs, verbose
        What is tried, and on which folds, as in `HOLRRCV`.
    criterion : {"cv", "aic", "bic", "gcv"}, default="cv"
        As in `HOLRRCV`; the degrees of freedom are those of ridge regression, and one for each
        output's intercept.
    selection : {"min", "1se"} or callable, default="min"
        "min" is the penalty of least error, "1se" the largest within one standard error of it. A
        callable gets `cv_results_` and returns an index into ``mean_mse``.
    alpha_per_output : bool, default=False
        Whether each output has the penalty of its own least held-out error, rather than one for
        all, among the penalties that the search for one penalty tries. It needs ``criterion="cv"``,
        ``selection="min"`` and complete outputs, and cannot be combined with `blocks`.
    keep_held_out : bool, default=False
        As in `HOLRRCV`.
    fit_intercept, solver, output_weight
        As in `HOLRRCV`.
    missing : {"raise", "ignore"}, default="raise"
        As in `HOLRRCV`; the errors are exact for every penalty.
    max_bytes : float, default=2**30
        Memory for the moments of all folds; where they would take more, each fold is gathered on
        its own.
    input_rank : "auto", int, tuple, dict or None, default="auto"
        For inputs with modes: how many directions to keep of each mode, as in `HOLRR`. "auto"
        searches for these ranks, and for `input_alpha`, with all of X among the candidates, where X
        has at least two modes. With outputs that are missing in some samples, or an information
        criterion, it keeps all of X. See docs/inputs.md.
    input_alpha : float, default=1.0
        As in `HOLRR`; used where `input_rank` is given.
    blocks : str, dict, list or None, default=None
        Blocks of inputs, as in `HOLRR`, whose penalties are searched for, with equal penalties
        among the candidates. See docs/blocks.md.
    own, own_alphas
        As in `HOLRRCV`.
    input_weight, missing_features, input_shape, output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    alpha_ : float, or array of shape (d1, ..., dp)
        The chosen penalty; with `alpha_per_output` that of each output.
    best_estimator_ : RLS
        The chosen model, fitted to all the data.
    cv_results_ : dict
        As in `HOLRRCV`; ``mean_mse`` and its like have the shape (n_alphas,).
    alphas_, best_score_, best_index_, best_params_, held_out_, held_out_mse_
        As in `HOLRRCV`; with `alpha_per_output`, the best single model has one penalty.
    null_mse_, ridge_mse_, noise_, n_dropped_
        As in `HOLRRCV`.
    coef_, intercept_, tucker_, spectra_, n_parameters_, blocks_, block_alphas_, own_coef_
        Those of the final model.
    n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

    See Also
    --------
    HOLRRCV : The same with all multilinear ranks.

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

    def __init__(
        self,
        alphas=None,
        cv=5,
        *,
        criterion="cv",
        selection="min",
        alpha_per_output=False,
        fit_intercept=True,
        solver="auto",
        max_bytes=2**30,
        missing="raise",
        output_weight=None,
        input_rank="auto",
        input_alpha=1.0,
        input_weight=None,
        blocks=None,
        own=None,
        own_alphas=None,
        missing_features="raise",
        keep_held_out=False,
        n_jobs=None,
        verbose=False,
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.alphas = alphas
        self.cv = cv
        self.criterion = criterion
        self.selection = selection
        self.alpha_per_output = alpha_per_output
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_bytes = max_bytes
        self.missing = missing
        self.output_weight = output_weight
        self.input_rank = input_rank
        self.input_alpha = input_alpha
        self.input_weight = input_weight
        self.blocks = blocks
        self.own = own
        self.own_alphas = own_alphas
        self.missing_features = missing_features
        self.keep_held_out = keep_held_out
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return RankGrid(())

    def _structure(self, rank: tuple[int, ...]) -> FullRank:
        return FullRank()

    def _model(self, alpha: Any, rank: Any) -> RLS:
        return RLS(alpha=alpha, **shared_parameters(self, RLS))


class LRRCV(LinearSearch):
    """Low-rank regression with cross-validated penalty and rank.

    The held-out errors of all ranks and penalties are exact, and nothing is refitted: they are
    those of `HOLRRCV` at full output ranks, from small matrices alone.

    Parameters
    ----------
    ranks : list of int, optional
        The only ranks to try. By default all ranks.
    max_rank : int, optional
        Largest rank to try.
    alphas, cv, criterion, selection, max_bytes, search, keep_held_out, n_jobs, verbose
        As in `HOLRRCV`.
    fit_intercept, solver, missing, output_weight
        As in `HOLRRCV`.
    input_rank : "auto", int, tuple, dict or None, default="auto"
        For inputs with modes: how many directions to keep of each mode, as in `HOLRR`. "auto"
        searches for these ranks, and for `input_alpha`, with all of X among the candidates, where X
        has at least two modes. With outputs that are missing in some samples, or an information
        criterion, it keeps all of X. See docs/inputs.md.
    input_alpha : float, default=1.0
        As in `HOLRR`; used where `input_rank` is given.
    blocks : str, dict, list or None, default=None
        Blocks of inputs, as in `HOLRR`, whose penalties are searched for, with equal penalties
        among the candidates. See docs/blocks.md.
    own, own_alphas
        As in `HOLRRCV`.
    input_weight, missing_features, input_shape, output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    rank_ : int
        The rank of the model that predicts.
    best_estimator_ : LRR
        The model that predicts, fitted to all the data.
    cv_results_ : dict
        As in `HOLRRCV`; the surfaces have the shape (n_alphas, R0).
    alpha_, alphas_, best_score_, best_index_, best_params_, held_out_
        As in `HOLRRCV`.
    held_out_mse_, null_mse_, ridge_mse_, noise_, n_dropped_
        As in `HOLRRCV`.
    stack_ranks_, stack_alphas_, stack_weights_
        Of a stack, as in `HOLRRCV`.
    coef_, intercept_, tucker_, core_, factors_, spectra_, n_parameters_
        Those of the final model.
    blocks_, block_alphas_, own_coef_
        As in `HOLRRCV`.
    n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

    See Also
    --------
    HOLRRCV : The same with all multilinear ranks.

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
        ranks=None,
        cv=5,
        *,
        max_rank=None,
        criterion="cv",
        selection="auto",
        fit_intercept=True,
        solver="auto",
        max_bytes=2**30,
        search="pruned",
        missing="raise",
        output_weight=None,
        input_rank="auto",
        input_alpha=1.0,
        input_weight=None,
        blocks=None,
        own=None,
        own_alphas=None,
        missing_features="raise",
        keep_held_out=False,
        n_jobs=None,
        verbose=False,
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.alphas = alphas
        self.ranks = ranks
        self.cv = cv
        self.max_rank = max_rank
        self.criterion = criterion
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_bytes = max_bytes
        self.search = search
        self.missing = missing
        self.output_weight = output_weight
        self.input_rank = input_rank
        self.input_alpha = input_alpha
        self.input_weight = input_weight
        self.blocks = blocks
        self.own = own
        self.own_alphas = own_alphas
        self.missing_features = missing_features
        self.keep_held_out = keep_held_out
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return matrix_grid(*resolve_ranks(self), shape)

    def _structure(self, rank: tuple[int, ...]) -> MatrixRank:
        return MatrixRank(rank[0])

    def _model(self, alpha: Any, rank: Any) -> LRR:
        return LRR(rank=rank, alpha=alpha, **shared_parameters(self, LRR))


class HOLRRCV(LinearSearch):
    """Higher-order low-rank regression with cross-validated penalty and ranks.

    The held-out error of *every* multilinear rank and penalty is computed exactly, without a refit
    for any of them: the fits of all ranks keep leading blocks of one core, so that their errors
    are cumulative sums. A fold and a penalty cost about one fit, whatever the number of ranks.

    Parameters
    ----------
    alphas : array of shape (n_alphas,) or None, default=None
        Penalties to try, at least 0 and different from each other, in any order. None for
        thirteen in half decades, from 1e-4 to 1e2 times the mean eigenvalue of ``X'X`` (of the
        centred inputs where an intercept is fitted; over as many directions as there are features
        or samples, whichever are fewer), more as long as the error falls towards an edge, and two
        in between on both sides of the best one.
    ranks : list of tuples, optional
        The only ranks to try, as tuples ``(R0, ..., Rp)`` with the input mode first; the surface is
        NaN elsewhere. By default all ranks.
    cv : int, splitter or iterable, default=5
        Number of folds, any splitter of scikit-learn, or pairs of training and test indices.
    max_rank : int or tuple, optional
        Largest rank to try: of every mode, or a tuple ``(R0, ..., Rp)`` with the input mode first.
    subspaces : {"fitted", "response"}, default="fitted"
        Where the output subspaces come from, as in `HOLRR`.
    refine : bool, default=False
        Whether the final fit is refined by alternating least squares, as in `HOLRR`. The held-out
        errors are those of the fits before refinement. Refined fits cannot be mixed: a single rank
        is chosen.
    max_iter, tol
        Rounds and tolerance of the refinement and of fits with missing outputs, as in `HOLRR`.
    criterion : {"cv", "aic", "bic", "gcv"}, default="cv"
        Held-out error, or a criterion computed from one decomposition of all the data, which needs
        no folds. Its degrees of freedom are the number of parameters times the share that the
        penalty leaves of the input directions, and one for each output's intercept.
    selection : {"auto", "stack", "min", "1se"} or callable, default="auto"
        "stack" mixes some twenty models: several ranks at the best penalty, the best rank at a
        smaller and at a larger penalty, ridge regression, and the mean. The folds determine the
        weights, and the mixture becomes one model (see docs/model_selection.md). With `max_rank` or
        `ranks`, ranks at one penalty are mixed, so that the mixture keeps within these bounds.
        "min" is the single candidate of least error. "1se" is the smallest model, counted in
        parameters, within one standard error of the best, and of these that with the largest
        penalty. A callable gets `cv_results_` and returns an index into the error surface. "auto"
        is "stack", or "min" with ``refine=True`` or an information criterion.
    fit_intercept : bool, default=True
        Whether an intercept is fitted.
    solver : {"auto", "cholesky", "eigh", "svd"}, default="auto"
        As in `RLS`. The folds and a stack use an eigendecomposition in place of "cholesky", since
        one factorisation serves all penalties.
    max_bytes : float, default=2**30
        Memory for the error surfaces of all folds, their mean and their standard deviation. Where
        they would take more, every rank is capped at the largest common number that fits, with a
        warning; ridge regression, of full rank, stays a candidate.
    search : {"pruned", "exhaustive"}, default="pruned"
        "pruned" computes the surfaces only of those penalties and kernels that can be chosen, where
        there are more than 192 input directions and outputs, or more than 30 pairs of kernel and
        penalty and long output modes (see docs/model_selection.md). "exhaustive" computes all, as
        "pruned" does for smaller problems, callables for `selection`, lists of large ranks, missing
        outputs and data on accelerators.
    missing : {"raise", "ignore"}, default="raise"
        Whether NaN and masked entries of y are an error or are left out of fits and held-out
        errors. With missing entries the surface is an approximation, exact at the choice (see
        docs/missing.md).
    output_weight : list of p arrays of shape (d_i,), array of shape (d1, ..., dp), or None
        Weights of the outputs in fits and held-out errors: one vector, or None, for each output
        mode, or an array that is the product of such vectors. A DataArray weighs the modes that
        are its dimensions. Zeros in an array need not be a product with ``missing="ignore"``: they
        leave outputs out as if these had never been observed (see docs/missing.md).
    keep_held_out : bool, default=False
        Whether the held-out predictions of the chosen model are kept as `held_out_`, which takes
        the memory of y in double precision. It needs samples in memory.
    n_jobs : int or None, default=None
        Number of folds that run at a time, each with a share of the threads. None for as many as
        the linear algebra has threads.
    verbose : bool, default=False
        Whether a progress bar is drawn (``pip install holrr[progress]``).
    input_rank : "auto", int, tuple, dict or None, default="auto"
        For inputs with modes: how many directions to keep of each mode, as in `HOLRR`. "auto"
        searches for these ranks, and for `input_alpha`, with all of X among the candidates, where X
        has at least two modes. With outputs that are missing in some samples, or an information
        criterion, it keeps all of X. See docs/inputs.md.
    input_alpha : float, default=1.0
        As in `HOLRR`; used where `input_rank` is given.
    blocks : str, dict, list or None, default=None
        Blocks of inputs, as in `HOLRR`, whose penalties are searched for. The ratios of the
        penalties come from the least held-out error of ridge regression, and each of `alphas`
        scales them. Equal penalties are candidates, too. A block that does not help gets an
        infinite penalty, which leaves it out. See docs/blocks.md.
    own : str, list, array of bool, or None, default=None
        As in `HOLRR`. With several shared modes, every combination of them is tried (the same
        station, the same variable, both), and the model without own inputs is always a candidate.
        See docs/own_inputs.md.
    own_alphas : array of shape (n_penalties,) or None, default=None
        Penalties of own inputs to try. None for eleven in half decades, from 1e-3 to 1e2 times the
        mean diagonal entry of ``X'X`` (of the centred inputs where an intercept is fitted).
    input_weight, missing_features, input_shape, output_shape, sample_dim
        As in `HOLRR`.

    Attributes
    ----------
    rank_ : tuple of int
        The ranks of the model that predicts, the shape of `core_`. A stack that has ridge
        regression among its parts has full ranks.
    held_out_mse_ : float
        Held-out error of the model that predicts (before it is refined, with ``refine=True``). That
        of a stack is cross-fitted: the weights for each fold come from the other folds.
    null_mse_, ridge_mse_ : float
        Held-out errors of the mean and of ridge regression, for comparison.
    stack_ranks_ : list of tuples
        Of a stack: the ranks of the models that are mixed, the largest weight first; None for
        ridge regression.
    stack_alphas_, stack_weights_ : arrays of shape (n_models,)
        Their penalties and their weights. What the weights lack of one is the weight of the mean.
    best_index_ : tuple of int
        Index of the best single model (that of `selection`, or of least error) in the error
        surface.
    best_score_ : float
        Its score: minus its mean held-out error, or minus its criterion.
    best_params_ : dict
        Its penalty, "alpha", and its rank, "rank".
    alpha_ : float
        Its penalty, about which a stack mixes others.
    held_out_ : array with the shape of y
        With ``keep_held_out=True``: the predictions of each sample by fits that have not seen it,
        labelled as those of `predict`, in double precision and in memory of the host. NaN for
        samples that no fold holds out or that have no weight, the mean over the folds where several
        hold out a sample.
    best_estimator_ : HOLRR
        The model that predicts, fitted to all the data.
    cv_results_ : dict
        ``mean_mse`` and ``std_mse``, arrays of shape (n_alphas, R0, ..., Rp): mean and standard
        deviation over the folds of each fold's mean squared error, over its samples (weighted)
        and outputs.
        ``fold_mse``, the same for each fold, first axis the folds. ``n_parameters``, of shape
        (R0, ..., Rp). ``alphas``; ``null_mse``, ``ridge_mse`` and ``held_out_mse``, as the
        attributes. With an information criterion: its values, under its name, ``train_mse``,
        ``degrees_of_freedom`` and ``n_observations``.
        Of a pruned search: NaN at penalties that were not computed, and ``screened_mse``, of shape
        (n_alphas,): the approximate least error at each penalty; NaN far from the best ones.
        With `output_weight`, ``unweighted_mse``: the held-out error of the choice with all outputs
        alike.
        With missing outputs, ``fitted_index`` and ``fitted_mse``: the candidates that were fitted
        to the observed entries of every fold, and their exact held-out errors.
        With `blocks` or `own`, and complete outputs, the surfaces have a first axis of candidates.
        ``block_ratios``, of shape (n_candidates, n_blocks), are their penalties of blocks over the
        common one, and ``block_path_alphas`` and ``block_path_mse`` are the penalties that were
        tried and their errors in ridge regression. ``own`` and ``own_alphas`` are the modes and the
        penalties of own inputs.
    alphas_ : array of shape (n_alphas,)
        The penalties that were tried.
    noise_ : array of shape (d1, ..., dp), or (D,) with `output_shape`; float for scalar targets
        Standard deviation of the noise of each output: from held-out residuals, see
        docs/intervals.md.
    coef_, intercept_, tucker_, core_, factors_, spectra_, n_parameters_
        Those of the final model.
    blocks_ : dict
        With `blocks`: from the name of each block to the positions of its columns.
    block_alphas_ : dict
        With `blocks`: the penalty of each block, infinite where it is left out. `alpha_` is the
        common penalty that they are multiples of.
    own_coef_ : array with the shape of `coef_`
        Where own inputs were chosen: their coefficients, zero for all other inputs.
    n_dropped_ : int
        With ``missing="ignore"``: number of samples without any observed output.
    n_features_in_, feature_names_in_, labels_
        As in `HOLRR`.

    Notes
    -----
    Entry ``[a, i, j, ...]`` of the surface belongs to ``alphas_[a]`` and the rank
    ``(i + 1, j + 1, ...)``. The rank of a mode goes up to its size, or to the product of the other
    sizes, above which it changes nothing; that of the input mode no higher than the largest
    training fold supports. A fold that supports fewer directions has the same error for all ranks
    above.

    Where the folds partition the data, the moments of each fold are gathered in one pass and the
    training moments are merged from those of the other folds. `fit_fold_moments` starts from such
    moments.

    ``alpha_ == alphas_[best_index_[0]]`` and ``best_score_ == -mean_mse[best_index_]`` (with an
    axis of candidates, see `cv_results_`, the penalty is the second index). There is one exception:
    where ``selection="min"``, only `max_bytes` caps the ranks and ridge regression is better, it is
    chosen, and `alpha_` and `held_out_mse_` are its own.

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

    The best single model, in the place of a mixture:

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
        ranks=None,
        cv=5,
        *,
        max_rank=None,
        subspaces="fitted",
        refine=False,
        max_iter=100,
        tol=1e-6,
        criterion="cv",
        selection="auto",
        fit_intercept=True,
        solver="auto",
        max_bytes=2**30,
        search="pruned",
        missing="raise",
        output_weight=None,
        input_rank="auto",
        input_alpha=1.0,
        input_weight=None,
        blocks=None,
        own=None,
        own_alphas=None,
        missing_features="raise",
        keep_held_out=False,
        n_jobs=None,
        verbose=False,
        input_shape=None,
        output_shape=None,
        sample_dim=None,
    ):
        self.alphas = alphas
        self.ranks = ranks
        self.cv = cv
        self.max_rank = max_rank
        self.subspaces = subspaces
        self.refine = refine
        self.max_iter = max_iter
        self.tol = tol
        self.criterion = criterion
        self.selection = selection
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.max_bytes = max_bytes
        self.search = search
        self.missing = missing
        self.output_weight = output_weight
        self.input_rank = input_rank
        self.input_alpha = input_alpha
        self.input_weight = input_weight
        self.blocks = blocks
        self.own = own
        self.own_alphas = own_alphas
        self.missing_features = missing_features
        self.keep_held_out = keep_held_out
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.input_shape = input_shape
        self.output_shape = output_shape
        self.sample_dim = sample_dim

    def _grid(self, shape: Sequence[int]) -> RankGrid:
        return multilinear_grid(*resolve_ranks(self), shape, subspaces=self.subspaces)

    def _structure(self, rank: tuple[int, ...]) -> MultilinearRank:
        return MultilinearRank(
            rank, self.subspaces, self.refine, max_iter=self.max_iter, tol=self.tol
        )

    def _model(self, alpha: Any, rank: Any) -> HOLRR:
        return HOLRR(rank=rank, alpha=alpha, **shared_parameters(self, HOLRR))


# ---------------------------------------------------------------- shared by all searches


@dataclass(frozen=True, eq=False)
class InputCandidate:
    """What a model makes of its inputs.

    Parameters
    ----------
    design : InputDesign or None
        None for the inputs as they are.
    ratios : array of shape (n_blocks,), or None
        Penalties of the blocks over the common penalty; None where all are equal.
    """

    design: InputDesign | None = None
    ratios: np.ndarray | None = None


def own_parameters(
    candidate: InputCandidate, x_unit: float
) -> tuple[tuple[Any, ...], float] | None:
    """The modes of own inputs and their penalty, as an estimator takes them; None without any."""
    own = None if candidate.design is None else candidate.design.own
    if own is None:
        return None
    # An estimator has penalties of blocks in units of their geometric mean.
    unit = 1.0 if candidate.ratios is None else common_penalty(candidate.ratios)
    return own.modes, own.beta * unit * x_unit * x_unit


def search_designs(
    data: FoldData,
    plan: InputPlan,
    options: SearchOptions,
    fit_options: Callable[[Choice], LinearOptions],
) -> tuple[Found, InputCandidate]:
    """Search over penalties and ranks, and over what is made of the inputs where that is asked for.

    Returns
    -------
    found : Found
    chosen : InputCandidate
        What the chosen model makes of its inputs.
    """
    candidates, penalties = input_candidates(data, plan, options)
    options = replace(options, named_candidates=len(candidates) > 1)
    folds = linear_folds(data, [candidate.design for candidate in candidates])
    found = run_search(folds, options, fit_options)
    if options.by_output:
        found = choose_by_output(folds, found, options, fit_options)
    found.results.update(candidate_results(data, plan, candidates, penalties))
    return found, candidates[found.choice.candidate]


def candidate_results(
    data: FoldData,
    plan: InputPlan,
    candidates: Sequence[InputCandidate],
    penalties: BlockPenalties | None,
) -> dict[str, Any]:
    """The entries of `cv_results_` that say what the candidates make of their inputs."""
    unit = 1.0 if data.everything is None else data.everything.x_unit
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
    data: FoldData, plan: InputPlan, options: SearchOptions
) -> tuple[list[InputCandidate], BlockPenalties | None]:
    """What a search tries to make of the inputs.

    Returns
    -------
    candidates : list of InputCandidate
        Those with equal penalties come before those with the penalties that were found. Candidates
        with own inputs come last.
    penalties : BlockPenalties or None
        Those of the blocks, where there are several.
    """
    check_candidates(plan, options)
    grid = partial(design_grid, data, options=options)
    penalties = _block_penalties(data, plan, options, grid)
    scaled = [InputCandidate(plan.fixed)]
    # Penalties are in units of the nearest one of the grid, so that the best are tried exactly.
    alphas = grid(plan.design.scale)[0] if penalties is not None else np.zeros(0)
    alphas = alphas[alphas > 0]
    if penalties is not None and alphas.size:
        common = float(alphas[np.argmin(np.abs(np.log(alphas / penalties.common())))])
        design = plan.with_penalties(penalties.penalties, common)
        scaled.append(InputCandidate(design, penalties.penalties / common))
    candidates = [c for base in scaled for c in _projections(data, plan, base, grid)]
    if plan.own:
        candidates += [c for base in scaled for c in _own_inputs(data, plan, base, options, grid)]
    return candidates, penalties


def check_candidates(plan: InputPlan, options: SearchOptions) -> None:
    """Raise where blocks or own inputs are asked for together with what excludes them."""
    if plan.has_several_blocks and options.by_output:
        raise ValueError(
            "alpha_per_output=True cannot be combined with blocks: penalties are found for blocks "
            "of inputs or for outputs, not for both."
        )
    if (plan.has_several_blocks or plan.own) and options.criterion != "cv":
        raise ValueError(
            f"blocks and own need criterion='cv', since penalties of blocks and own inputs are "
            f"chosen by their held-out errors; got criterion={options.criterion!r}."
        )
    if plan.own and options.subspaces == "response":
        raise ValueError(RESPONSE_SUBSPACES.format("own"))


PenaltyGrid = Callable[[np.ndarray | None], tuple[np.ndarray, int]]


def _block_penalties(
    data: FoldData, plan: InputPlan, options: SearchOptions, grid: PenaltyGrid
) -> BlockPenalties | None:
    """The best penalties of blocks, where there are several."""
    if not plan.has_several_blocks:
        return None
    assert plan.blocks is not None
    scale = plan.design.scale
    return find_block_penalties(data, plan.blocks, scale, options.max_bytes, grid(scale)[1])


def _own_inputs(
    data: FoldData, plan: InputPlan, base: InputCandidate, options: SearchOptions, grid: PenaltyGrid
) -> list[InputCandidate]:
    """A candidate with the best own inputs; for models of low rank, one or two of them."""
    design = plan.design if base.design is None else base.design
    found = own_designs(data, design, plan, *grid(design.scale))
    is_ridge = not options.grid((data.n_features, *data.output_shape)).caps
    return [InputCandidate(d, base.ratios) for d in found[: 1 if is_ridge else 2]]


def _projections(
    data: FoldData, plan: InputPlan, base: InputCandidate, grid: PenaltyGrid
) -> list[InputCandidate]:
    """A candidate, and the best projections of its inputs where their ranks are searched for."""
    if not plan.is_searched:
        return [base]
    design = plan.design if base.design is None else base.design
    found = candidate_designs(data, design, *grid(design.scale))
    return [InputCandidate(d, base.ratios) for d in found]


def design_grid(
    data: FoldData, scale: np.ndarray | None, options: SearchOptions
) -> tuple[np.ndarray, int]:
    """The penalties that designs are compared at, and how many folds run at a time."""
    alphas = options.alphas
    unit = 1.0 if data.everything is None else data.everything.x_unit
    tried = penalties_of(data, scale) if alphas is None else alphas / unit / unit
    return tried, n_parallel(linear_folds(data), options.n_jobs)


def refuse_own(plan: InputPlan) -> None:
    """Raise for own inputs in a search where some outputs are never observed."""
    if plan.own:
        raise ValueError(
            "own cannot be used in a search where some outputs are never observed; drop these "
            "outputs from y."
        )


def check_search(options: SearchOptions, n_samples: int) -> None:
    """Raise where selection and criterion do not go together, or there are too few samples."""
    if options.by_output and (options.criterion, options.selection) != ("cv", "min"):
        raise ValueError(
            f"alpha_per_output=True needs criterion='cv' and selection='min'; got "
            f"criterion={options.criterion!r} and selection={options.selection!r}."
        )
    if options.criterion == "cv":
        return
    if options.keep_held_out:
        raise ValueError(
            f"keep_held_out=True needs folds, and criterion={options.criterion!r} has none; use "
            f"criterion='cv'."
        )
    if isinstance(options.selection, str) and options.selection == "1se":
        raise ValueError(
            f"selection='1se' needs folds, whose spread is the standard error; got "
            f"criterion={options.criterion!r}. Use criterion='cv'."
        )
    if n_samples < 2:
        raise ValueError(
            f"criterion={options.criterion!r} needs at least two samples; got 1 sample."
        )


def resolve_selection(estimator: Any) -> Any:
    """The selection in force: "auto" is "stack" where ranks can be mixed, else "min"."""
    selection = estimator.selection
    can_stack = estimator.criterion == "cv" and not estimator.refine
    if callable(selection) or selection not in ("auto", "stack"):
        return selection
    if selection == "stack" and not can_stack:
        what = "refine=True" if estimator.refine else f"criterion={estimator.criterion!r}"
        warn(
            f"selection='stack' cannot be combined with {what}; selection='min' is used. This will "
            f"be an error in version 1.0: use selection='auto' or 'min'.",
            FutureWarning,
        )
    return "stack" if can_stack else "min"


def resolve_ranks(estimator: Any) -> tuple[Any, Any]:
    """``max_rank`` and ``ranks``, of which one is None; `ranks` may hold caps, as it did before."""
    max_rank, ranks = estimator.max_rank, estimator.ranks
    if ranks is None:
        return max_rank, None
    if max_rank is not None:
        raise ValueError(
            f"Set either max_rank or ranks; got max_rank={max_rank!r} and ranks={ranks!r}."
        )
    return (ranks, None) if _holds_caps(estimator) else (None, ranks)


def _holds_caps(estimator: Any) -> bool:
    """Whether `ranks` is an int or, for multilinear ranks, one tuple: the largest ranks to try."""
    ranks = getattr(estimator, "ranks", None)
    if isinstance(ranks, Integral):
        return True
    if "subspaces" not in estimator._get_param_names() or not isinstance(ranks, Iterable):
        return False
    items = list(ranks)
    return bool(items) and all(R is None or isinstance(R, Real) for R in items)


def warn_of_caps(estimator: Any) -> None:
    """Warn where `ranks` holds caps, as it did before."""
    if _holds_caps(estimator):
        ranks = estimator.ranks
        warn(
            f"ranks={ranks!r} as a cap is now called max_rank={ranks!r}; `ranks` will be a list of "
            f"candidates only from version 1.0 on.",
            FutureWarning,
        )


def unweighted_error(
    data: Samples,
    splits: Sequence[Any],
    options: LinearOptions,
    found: Found,
    v: np.ndarray,
    never: np.ndarray | None = None,
) -> float:
    """Held-out error with all outputs alike, of a model that was fitted to weighted outputs.

    Parameters
    ----------
    data : Samples
        Scaled, with outputs times the roots of their weights.
    splits : list of index pairs
    options : LinearOptions
        Of the chosen model.
    found : Found
    v : array of shape (d1, ..., dp)
        Weights of the outputs.
    never : array of bool, of shape (d1, ..., dp), optional
        Outputs that are never observed.
    """
    counts = v > 0 if never is None else (v > 0) & ~never
    options, errors = replace(options, never=never, pilot=found.pilot), []
    for fold, (train, test) in enumerate(splits):
        structure = found.choice.structure_of_fold(fold)
        fit, _ = fit_data(data.rows(train), replace(options, structure=structure))
        held = data.rows(test)
        predicted = fit.predict(held.X * data.x_unit) / data.y_unit
        seen = counts & ~(np.isnan(held.Y) | np.isnan(predicted))
        squares = np.square(held.Y - predicted) / np.where(v > 0, v, 1.0)
        w = np.ones(len(seen)) if held.w is None else held.w
        errors.append(mean_over(seen, squares, w))
    return float(np.mean(errors)) * data.y_unit * data.y_unit


def splits_within(splits: Sequence[Any], rows: np.ndarray) -> list[Any]:
    """Splits of some of the samples, `rows`, from those of all; no side may be left without any."""
    found = []
    for k, sides in enumerate(splits):
        inside = [np.searchsorted(rows, side[np.isin(side, rows)]) for side in sides]
        for name, side in zip(("training", "test"), inside, strict=True):
            if not side.size:
                raise ValueError(
                    f"The {name} side of split {k} of cv: y has no observed entry; use fewer "
                    f"folds, or shuffle them."
                )
        found.append(tuple(inside))
    return found


def expand_found(found: Found, known: KnownOutputs) -> Found:
    """What a search of known outputs has found, for all outputs."""
    calibration = found.calibration
    if calibration is not None:
        kept = dict(calibration.quantiles)
        for name, fill in (("entry", np.nan), ("n_entry", 0.0)):
            if name in kept and np.ndim(kept[name]):
                kept[name] = known.put_known(kept[name], fill)
        noise = known.put_known(calibration.noise)
        calibration = replace(calibration, noise=noise, quantiles=kept, errors=None)
    held_out = None if found.held_out is None else known.put_known(found.held_out)
    fit = known.expand(found.fit)
    return replace(found, fit=fit, calibration=calibration, held_out=held_out)


def in_user_units(
    held_out: np.ndarray | None,
    data: Samples,
    v: np.ndarray | None,
    rows: Any,
    n_samples: int,
) -> np.ndarray | None:
    """Held-out predictions of all samples in the units of the user's data.

    Parameters
    ----------
    held_out : array of shape (n, d1, ..., dp), or None
        In the units of the scaled data.
    data : Samples
    v : array of shape (d1, ..., dp), or None
        Weights of outputs whose roots the outputs were multiplied by.
    rows : slice, or array of shape (n,)
        Which samples these are; the others have no observed output.
    n_samples : int
    """
    if held_out is None:
        return None
    unit: Any = data.y_unit
    if v is not None:
        unit = np.where(v > 0, unit / np.sqrt(np.where(v > 0, v, 1.0)), np.nan)
    found = np.full((n_samples, *held_out.shape[1:]), np.nan)
    found[rows] = held_out * unit
    return found


def refuse_held_out(estimator: Any, what: str) -> None:
    """Raise where held-out predictions are wanted of data that are not in memory."""
    if estimator.keep_held_out:
        raise ValueError(
            f"keep_held_out=True needs samples in memory, and not {what}; use "
            f"keep_held_out=False and predict the samples of each fold."
        )


def shared_parameters(search: Any, model: Any) -> dict[str, Any]:
    """The parameters of a search that its model has, too."""
    names = set(model._get_param_names()) - {"rank", "alpha", "verbose"}
    return {k: v for k, v in search.get_params(deep=False).items() if k in names}
