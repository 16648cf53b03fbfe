"""Errors of a model on samples that it was not fitted to, with confidence intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from ..core.namespace import to_numpy
from ..data.arrays import comes_from, nan_for_masked
from ..data.pipelines import inputs_of_last_step, last_step
from ..data.unlabel import refit_dimension, sample_dimension, take_rows, unlabel_outputs
from ..model_selection import RLSCV
from .facts import weight_and_scale

__all__ = ["COVERAGES", "Estimate", "Evaluation", "cross_validated", "evaluated"]

# Nominal coverages at which prediction intervals are checked.
COVERAGES = (0.5, 0.8, 0.9, 0.95)
_N_RESAMPLED = 2000
# Name of the model of the report among the predictions.
_MODEL = "this model"
# If there are more rows, contiguous groups of rows are resampled.
_MOST_GROUPS = 1000
# Ratio of standard deviations from which outputs have different units.
_UNITS = 30.0


@dataclass(frozen=True)
class Estimate:
    """Estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Observed and predicted outputs of samples that were not used in the fit.

    Parameters
    ----------
    source : {"new data", "cross-validation"}
        Whether the fitted model predicted new samples, or models that were fitted to the other
        folds predicted the training samples.
    y : array of shape (n_samples, d1, ..., dp)
        Observed outputs. Missing entries are NaN.
    predicted : dict of arrays of shape (n_samples, d1, ..., dp)
        Predictions by name. The first entry is the model of the report.
    intervals : dict of pairs of arrays of shape (n_samples, d1, ..., dp)
        Lower and upper bounds by nominal coverage. Empty for models without intervals.
    output_weight : array of shape (d1, ..., dp), optional
        Weights of the outputs in the errors.
    n_folds : int
        Number of folds of a cross-validation, 0 for new data.
    groups : array of shape (n_samples,), optional
        Groups of the samples, which confidence intervals take as independent of each other.
    output_scale : array of shape (d1, ..., dp), optional
        Divisor of each output. Errors of all outputs together are those of the divided outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from holrr.report import Evaluation
    >>> y = np.arange(8.0).reshape(4, 2)
    >>> found = Evaluation("new data", y, {"model": y + 1, "mean": 0 * y + y.mean(axis=0)})
    >>> found.rmse("model").value
    1.0
    >>> round(found.r2("model").value, 3), found.r2().shape
    (0.8, (2,))
    >>> found.gain("mean").value  # the squared error is 80 % lower than that of the mean
    0.8
    >>> found = Evaluation("new data", y, {"model": y + 1}, {0.9: (y - 1, y + 1)})
    >>> found.coverage(0.9)
    1.0
    >>> found = Evaluation("new data", y * [1, 100], {"model": (y + 1) * [1, 100]})
    >>> found.modes_in_units(), found.part(0, 1).rmse("model").value
    ([0], 100.0)
    """

    source: str
    y: np.ndarray
    predicted: Mapping[str, np.ndarray]
    intervals: Mapping[float, tuple[np.ndarray, np.ndarray]] | None = None
    output_weight: np.ndarray | None = None
    n_folds: int = 0
    groups: np.ndarray | None = None
    output_scale: np.ndarray | None = None

    @property
    def names(self) -> list[str]:
        """Names of the predictions, the model of the report first."""
        return list(self.predicted)

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.y)

    def rmse(self, name: str) -> Estimate:
        """Return the root of the mean squared error over all observed entries.

        Parameters
        ----------
        name : str
            One of `names`.
        """
        squares, counts = self._row_sums(self._squares(name))
        return self._resampled(lambda error, count: np.sqrt(error / count), squares, counts)

    def gain(self, other: str) -> Estimate:
        """Return the relative reduction of the squared error compared with another method.

        Parameters
        ----------
        other : str
            One of `names`. Both methods predict the same samples, so the confidence interval is
            that of a paired comparison.
        """
        ours, _ = self._row_sums(self._squares(self.names[0]))
        theirs, _ = self._row_sums(self._squares(other))
        return self._resampled(_lower, ours, theirs)

    def r2(self, name: str | None = None) -> Any:
        """Return R2: the explained share of the variance about the mean of these samples.

        Parameters
        ----------
        name : str, optional
            One of `names`: the pooled R2 of all outputs, as an `Estimate`. Without a name, the R2
            of the model for each output, of shape (d1, ..., dp); NaN for constant outputs.
        """
        about_mean = self._squares_of(self.y - _mean(self.y))
        if name is None:
            scatter = np.nansum(about_mean, axis=0)
            error = np.nansum(np.where(np.isnan(self.y), np.nan, self._squares(None)), axis=0)
            return 1 - error / np.where(scatter > 0, scatter, np.nan)
        error, _ = self._row_sums(self._squares(name))
        scatter, _ = self._row_sums(about_mean)
        return self._resampled(_lower, error, scatter)

    def coverage(self, nominal: float) -> float:
        """Return the share of observed entries in their prediction intervals.

        Parameters
        ----------
        nominal : float
            One of the keys of `intervals`.
        """
        assert self.intervals is not None
        low, high = self.intervals[nominal]
        seen = ~np.isnan(self.y) & ~np.isnan(low)
        return float(np.mean(((low <= self.y) & (self.y <= high))[seen]))

    def modes_in_units(self) -> list[int]:
        """Return the modes along which the standard deviation of the outputs differs strongly.

        It differs by more than a factor of 30, as if the entries had different units.
        """
        spread = np.nanvar(self.y, axis=0)
        found = []
        for mode in range(spread.ndim):
            others = tuple(k for k in range(spread.ndim) if k != mode)
            seen = np.isfinite(spread)
            sums = np.where(seen, spread, 0).sum(axis=others)
            each = sums / np.maximum(seen.sum(axis=others), 1)
            each = each[each > 0]
            if each.size > 1 and each.max() > _UNITS**2 * each.min():
                found.append(mode)
        return found

    def part(self, mode: int, entry: int) -> Evaluation:
        """Return the evaluation of the outputs at one entry of a mode, in their units.

        Parameters
        ----------
        mode : int
            Number of the output mode, from 0.
        entry : int
            Position along the mode.
        """
        take = lambda A: np.take(A, [entry], axis=1 + mode)  # noqa: E731
        bounds = {c: (take(a), take(b)) for c, (a, b) in (self.intervals or {}).items()}
        weight = self.output_weight
        return replace(
            self,
            y=take(self.y),
            predicted={name: take(values) for name, values in self.predicted.items()},
            intervals=bounds or None,
            output_weight=None if weight is None else np.take(weight, [entry], axis=mode),
            output_scale=None,
        )

    def _resampled(self, statistic: Any, *columns: np.ndarray) -> Estimate:
        return _resampled(statistic, *columns, groups=self.groups)

    def _squares(self, name: str | None) -> np.ndarray:
        return self._squares_of(self.y - self.predicted[self.names[0] if name is None else name])

    def _squares_of(self, A: np.ndarray) -> np.ndarray:
        return np.square(A if self.output_scale is None else A / self.output_scale)

    def _row_sums(self, squares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return weighted sums over the outputs of each sample, and the sums of the weights."""
        v = np.ones(self.y.shape[1:]) if self.output_weight is None else self.output_weight
        seen = ~np.isnan(squares)
        sums = np.where(seen, squares, 0.0) * v
        axes = tuple(range(1, sums.ndim))
        return np.sum(sums, axis=axes), np.sum(seen * v, axis=axes)


def _lower(error: Any, reference: Any) -> Any:
    """Return the relative reduction of an error compared with a reference; NaN if both are 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return 1 - error / reference


def _resampled(statistic: Any, *columns: np.ndarray, groups: np.ndarray | None = None) -> Estimate:
    """Estimate a statistic, and its 95 % confidence interval by the bootstrap.

    Parameters
    ----------
    statistic : callable
        Function of the sums of the columns.
    columns : arrays of shape (n_samples,)
        Values of the samples, which are drawn with replacement. If there are many samples,
        contiguous groups of samples are drawn.
    groups : array of shape (n_samples,), optional
        Groups that are drawn in place of the samples.
    """
    n = len(columns[0])
    value = float(statistic(*(np.sum(column) for column in columns)))
    if n < 2:
        return Estimate(value, float("nan"), float("nan"))
    n_groups = min(n, _MOST_GROUPS)
    group = np.arange(n) * n_groups // n
    if groups is not None:
        group = np.unique(groups, return_inverse=True)[1]
        n_groups = int(group.max()) + 1
    sums = np.stack([np.bincount(group, column) for column in columns], axis=1)
    draws = np.random.default_rng(0).multinomial(
        n_groups, np.full(n_groups, 1 / n_groups), size=_N_RESAMPLED
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        found = statistic(*(draws.astype(np.float64) @ sums).T)
    if np.isnan(found).all():
        return Estimate(value, float("nan"), float("nan"))
    low, high = np.nanquantile(found, [0.025, 0.975])
    return Estimate(value, float(low), float(high))


def _mean(y: np.ndarray) -> np.ndarray:
    """Return the mean of the observed entries of each output; NaN if there are none."""
    seen = ~np.isnan(y)
    count = seen.sum(axis=0)
    return np.where(count > 0, np.where(seen, y, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def evaluated(
    model: Any,
    X: Any,
    y: Any,
    compare: Mapping[str, Any] | None = None,
    groups: np.ndarray | None = None,
) -> Evaluation:
    """Evaluate a fitted model on samples that it was not fitted to.

    Parameters
    ----------
    model : estimator or pipeline
        Fitted model.
    X, y
        New samples, in the format of `score`.
    compare : dict of fitted estimators, optional
        Other models of the same inputs and outputs, by name.
    groups : array of shape (n_samples,), optional
        Groups of the samples.
    """
    observed = _outputs(model, X, y)
    predicted = {_MODEL: _outputs(model, X, model.predict(X))}
    n_inputs, n_outputs = len(predicted[_MODEL]), len(observed)
    if n_inputs != n_outputs:
        raise ValueError(
            f"X and y must have the same number of samples along their first axis; got "
            f"{n_inputs} in X and {n_outputs} in y."
        )
    for other, estimator in (compare or {}).items():
        predicted[other] = _outputs(model, X, estimator.predict(X))
    predicted["the mean of these samples"] = np.broadcast_to(_mean(observed), observed.shape)
    weight, scale = weight_and_scale(last_step(model))
    return Evaluation(
        "new data",
        observed,
        predicted,
        _intervals(model, X),
        weight,
        groups=groups,
        output_scale=scale,
    )


def cross_validated(model: Any, X: Any, y: Any, groups: np.ndarray | None = None) -> Evaluation:
    """Evaluate a model on its training samples by cross-validation.

    The whole model, with the choice of its hyperparameters, and ridge regression for comparison are
    fitted again without each fold.

    Parameters
    ----------
    model : estimator or pipeline
    X, y
        The samples that the model was fitted to.
    groups : array of shape (n_samples,), optional
        Groups of the samples, as in `fit`.
    """
    final = last_step(model)
    observed = _outputs(model, X, y)
    dim = refit_dimension(final, X, y)
    y = _in_order_of_fit(y, final)
    folds = _folds(final, len(observed), groups)
    ridge = _ridge(final)
    predicted = {_MODEL: np.full(observed.shape, np.nan)}
    if ridge is not None:
        predicted["ridge regression"] = np.full(observed.shape, np.nan)
    predicted["the mean"] = np.full(observed.shape, np.nan)
    bounds: dict[float, list[np.ndarray]] = {}
    for train, test in folds:
        rows = take_rows(X, train, dim), take_rows(y, train, dim)
        new = take_rows(X, test, dim), take_rows(y, test, dim)
        of_train = None if groups is None else groups[train]
        fitted = _fitted(clone(model), *rows, of_train, dim)
        predicted[_MODEL][test] = _outputs(model, new[0], fitted.predict(new[0]))
        if ridge is not None:
            other = _fitted(_with_last_step(model, ridge), *rows, of_train, dim)
            predicted["ridge regression"][test] = _outputs(model, new[0], other.predict(new[0]))
        predicted["the mean"][test] = _mean(observed[train])
        for nominal, pair in (_intervals(fitted, new[0]) or {}).items():
            both = bounds.setdefault(nominal, [np.full(observed.shape, np.nan) for _ in range(2)])
            for whole, part in zip(both, pair, strict=True):
                whole[test] = part
    tested = np.zeros(len(observed), dtype=bool)
    for _, test in folds:
        tested[test] = True
    weight, scale = weight_and_scale(final)
    return Evaluation(
        "cross-validation",
        observed[tested],
        {key: values[tested] for key, values in predicted.items()},
        {key: (low[tested], high[tested]) for key, (low, high) in bounds.items()} or None,
        weight,
        len(folds),
        None if groups is None else groups[tested],
        scale,
    )


def _in_order_of_fit(y: Any, model: Any) -> Any:
    """Return outputs with their dimensions in the order of the fit, as parameters count them."""
    labels = model.labels_
    if labels is None or labels.outputs is None or not comes_from(y, "xarray"):
        return y
    return y.transpose(..., *labels.outputs.dims, missing_dims="ignore")


def _folds(model: Any, n_samples: int, groups: np.ndarray | None) -> list[Any]:
    """Return the folds of the search of the model, or five contiguous folds."""
    cv = getattr(model, "cv", None)
    splitter = check_cv(min(5, n_samples) if cv is None else cv)
    try:
        return list(splitter.split(np.empty((n_samples, 1)), groups=groups))
    except ValueError as error:
        if groups is None and "groups" in str(error):
            raise ValueError(
                f"groups is missing: the model was fitted with cv={cv!r}, which needs the groups "
                f"of the samples. Pass groups=... as in fit."
            ) from None
        raise


def _fitted(model: Any, X: Any, y: Any, groups: np.ndarray | None, dim: str | None) -> Any:
    """Fit a model, with the groups of the samples if it searches, and their dimension."""
    steps = model.steps if isinstance(model, Pipeline) else [("", model)]
    given: dict[str, Any] = {}
    for name, step in steps:
        prefix = f"{name}__" if name else ""
        if dim is not None and has_fit_parameter(step, "sample_dim"):
            given[f"{prefix}sample_dim"] = dim
        if groups is not None and step is last_step(model) and hasattr(step, "cv"):
            given[f"{prefix}groups"] = groups
    return model.fit(X, y, **given)


def _ridge(model: Any) -> Any:
    """Return ridge regression with the data options of a model; None for ridge regression."""
    if type(model).__name__.startswith("RLS"):
        return None
    ridge = RLSCV()
    shared = ["fit_intercept", "missing", "input_shape", "output_shape"]
    shared += ["output_weight", "scale_outputs", "cv"]
    ours = model.get_params(deep=False)
    return ridge.set_params(**{key: ours[key] for key in shared if key in ours})


def _with_last_step(model: Any, step: Any) -> Any:
    """Return an unfitted pipeline that ends with another estimator, or this estimator alone."""
    if not isinstance(model, Pipeline):
        return clone(step)
    steps = [(name, clone(part)) for name, part in model.steps[:-1]]
    return Pipeline([*steps, ("model", clone(step))])


def _outputs(model: Any, X: Any, y: Any) -> np.ndarray:
    """Return outputs of the samples `X` without labels, of shape (n_samples, d1, ..., dp)."""
    final = last_step(model)
    dim = sample_dimension(None, X, y, final.labels_)
    values, _ = unlabel_outputs(y, dim, final.labels_, flat=final._is_flat)
    found = np.asarray(to_numpy(nan_for_masked(values)), dtype=np.float64)
    return found.reshape(len(found), *final._output_shape)


def _intervals(model: Any, X: Any) -> dict[float, tuple[np.ndarray, np.ndarray]] | None:
    """Return bounds of prediction intervals at several coverages, if the model has intervals."""
    final = last_step(model)
    if vars(final).get("_intervals") is None:
        return None
    inputs = inputs_of_last_step(model, X)
    found = {}
    for nominal in COVERAGES:
        try:
            low, high = final.predict_interval(inputs, nominal)
        except ValueError:  # too few samples for this coverage
            continue
        found[nominal] = (_outputs(model, X, low), _outputs(model, X, high))
    return found or None
