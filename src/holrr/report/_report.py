"""Make a report on a fitted model from data."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._version import __version__
from ..data.arrays import check_groups
from ..data.labels import mode_coordinates, mode_names
from ..data.pipelines import inputs_of_last_step, last_step
from ..data.unusual import unusual_rows
from ..data.validation import validate_inputs
from ..diagnostics import find_outliers
from ..extras import need
from ..io import write_atomically
from . import _figures as figures
from ._evaluate import Evaluation, cross_validated, evaluated
from ._page import Page, Section, Table
from ._words import conclusion, number, percent
from .facts import fact_lines, facts_of

__all__ = ["Report", "make_report"]

_N_LISTED = 5
# Share of ordinary training samples below the limit of their residuals.
_OUTLIER_LEVEL = 0.999


@dataclass(frozen=True, eq=False)
class Report:
    """A report on a fitted model.

    Parameters
    ----------
    html : str
        The report as one HTML document. It loads no external resources, and follows the light or
        dark setting of the browser.
    evaluation : Evaluation
        Observed and predicted outputs, from which the figures are computed.

    See Also
    --------
    make_report : Function that creates a report.

    Examples
    --------
    >>> from holrr import HOLRRCV
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.report import make_report
    >>> X, Y = make_tensor_regression(90, 5, (4, 3), rank=2, snr=2.0, random_state=0)
    >>> report = make_report(HOLRRCV(cv=3).fit(X[:60], Y[:60]), X[60:], Y[60:])
    >>> report.save("report.html")
    >>> print(f"{report.evaluation.r2('this model').value:.1f}")
    0.8
    """

    html: str
    evaluation: Evaluation

    def save(self, path: Any) -> None:
        """Write the report to a file.

        Parameters
        ----------
        path : str or path
            Path of the file.
        """

        def write(file: BinaryIO) -> None:
            file.write(self.html.encode())

        write_atomically(Path(path), write)

    def _repr_html_(self) -> str:
        """Show the report in a notebook."""
        from html import escape

        style = "width: 100%; height: 40rem; border: 1px solid #888"
        return f'<iframe srcdoc="{escape(self.html)}" style="{style}"></iframe>'


def make_report(
    model: Any,
    X: Any,
    y: Any,
    *,
    cross_validate: bool = False,
    groups: Any = None,
    compare: Mapping[str, Any] | None = None,
    title: str = "Regression report",
    notes: Mapping[str, Any] | None = None,
) -> Report:
    """Create a report on a fitted model: errors, intervals, ranks, loadings and a conclusion.

    Parameters
    ----------
    model : estimator or pipeline
        A fitted estimator of this library, or a scikit-learn pipeline that ends with one.
    X : array of shape (n_samples, n_features)
        Inputs of samples that were not used in the fit, in the format of `predict`.
    y : array of shape (n_samples, d1, ..., dp)
        Outputs of these samples. Missing entries are NaN.
    cross_validate : bool, default=False
        Whether `X` and `y` are the training data. The model, with the choice of its
        hyperparameters, and ridge regression are then fitted again without each fold, so that all
        errors are those of samples that a fit has not seen.
    groups : array of shape (n_samples,), optional
        Groups of the samples. Confidence intervals take whole groups as independent. With
        `cross_validate`, the groups are those of `fit`, for splitters such as ``GroupKFold``.
    compare : dict of fitted estimators, optional
        Other models to compare with on the same new samples, by name.
    title : str, default="Regression report"
        Title of the page.
    notes : dict, optional
        Further facts. ``n_samples`` is the number of training samples.

    Returns
    -------
    Report
        The report.

    Examples
    --------
    >>> from holrr import HOLRRCV, RLSCV
    >>> from holrr.datasets import make_tensor_regression
    >>> from holrr.report import make_report
    >>> X, Y = make_tensor_regression(90, 5, (4, 3), rank=2, snr=2.0, random_state=0)
    >>> train, test = slice(0, 60), slice(60, None)
    >>> model, ridge = (m.fit(X[train], Y[train]) for m in (HOLRRCV(cv=3), RLSCV(cv=3)))
    >>> report = make_report(model, X[test], Y[test], compare={"ridge regression": ridge})
    >>> report.evaluation.names
    ['this model', 'ridge regression', 'the mean of these samples']
    """
    need("matplotlib.pyplot", "reports draw with matplotlib", "plot")
    check_is_fitted(last_step(model))
    if not isinstance(cross_validate, bool | np.bool_):
        raise ValueError(f"cross_validate must be True or False; got {cross_validate!r}.")
    if cross_validate and compare:
        raise ValueError(
            "compare cannot be combined with cross_validate=True, since the fitted models that it "
            "contains have seen the training data. Use compare with new samples."
        )
    n = len(next(iter(y.data_vars.values()))) if hasattr(y, "data_vars") else len(y)
    of_rows = None if groups is None else check_groups(groups, n)
    if cross_validate:
        evaluation = cross_validated(model, X, y, of_rows)
    else:
        evaluation = evaluated(model, X, y, compare, of_rows)
    final = last_step(model)
    sections = [
        Section("Conclusion").items([*conclusion(evaluation, _modes(final)), *_far(model, X)]),
        Section("Model").table(Table((), fact_lines(facts_of(model, dict(notes or {}))))),
        *_errors(evaluation, final),
        _skill(final, evaluation),
        *_intervals(evaluation),
        *_outliers(final),
        *_ranks(final),
        *_loadings(final),
    ]
    how = f"{evaluation.n_samples} new samples"
    if cross_validate:
        n = evaluation.n_folds
        how = f"{evaluation.n_samples} training samples by {n}-fold cross-validation"
    independent = "rows" if of_rows is None else "groups"
    footer = (
        f"Made with holrr {__version__}. Confidence intervals are percentiles of 2,000 bootstrap "
        f"samples of the {independent}. They assume that the {independent} are independent of each "
        f"other."
    )
    lead = f"{type(final).__name__}, evaluated on {how}."
    return Report(Page(title, lead, sections, footer).html(), evaluation)


def _modes(model: Any) -> list[tuple[str, list[str]]]:
    """Return name and entries of each output mode."""
    names = mode_names(model)[1:]
    return [
        (name, [_label(c) for c in mode_coordinates(model, mode)])
        for mode, name in enumerate(names, 1)
    ]


def _far(model: Any, X: Any) -> list[str]:
    """Return a statement on samples whose inputs are far from the training inputs."""
    final = last_step(model)
    checked = validate_inputs(final, inputs_of_last_step(model, X), sparse=True)
    outside, n = unusual_rows(vars(final).get("_hat"), final._largest_leverage, checked)
    if not outside:
        return []
    return [
        f"{outside} of {n} samples are farther from the training inputs than any training sample: "
        f"their predictions are extrapolations."
    ]


def _errors(evaluation: Evaluation, model: Any) -> Sequence[Section]:
    section, units = Section("Errors"), evaluation.modes_in_units()
    if units:
        name, entries = _modes(model)[units[0]]
        parts = [(e, evaluation.part(units[0], k)) for k, e in enumerate(entries)]
        rows = [[entry, *row] for entry, part in parts for row in _rows_of_errors(part)]
        section.table(Table([name, *_HEADER], rows, numbers=(2, 3, 4, 5, 6)))
    else:
        section.table(Table(_HEADER, _rows_of_errors(evaluation), numbers=(1, 2, 3, 4, 5)))
    section.text(
        "The gain is the relative reduction of the squared error by the model, compared with the "
        "method. Both predict the same samples, so its interval is that of a paired comparison.",
        "note",
    )
    if units and evaluation.output_scale is None:
        section.text(
            f"The standard deviations of the outputs differ by more than a factor of 30 along "
            f"{name}. Low-rank models follow the largest outputs. If the outputs have different "
            f"units, fit the model with scale_outputs='std', so that all of them count equally.",
            "note",
        )
    if units:
        return [section]
    if evaluation.output_scale is not None:
        section.text(
            "RMSE and R2 are those of the outputs divided by their scale (scale_outputs).", "note"
        )
    svg = figures.drawn("errors", lambda: figures.errors(evaluation))
    section.figure(svg, "Root mean squared error of each method.")
    svg = figures.drawn("scatter", lambda: figures.scatter(evaluation))
    section.figure(svg, "Observed against predicted outputs; the dashed line is equality.")
    return [section]


_HEADER = ["method", "RMSE", "95 % interval", "R2", "gain of the model", "95 % interval"]


def _rows_of_errors(evaluation: Evaluation) -> list[list[str]]:
    rows = []
    for place, name in enumerate(evaluation.names):
        rmse, r2 = evaluation.rmse(name), evaluation.r2(name)
        lower = "" if place == 0 else percent(evaluation.gain(name).value)
        span = "" if place == 0 else _between(evaluation.gain(name), percent)
        rows.append(
            [name, number(rmse.value), _between(rmse, number), f"{r2.value:.3f}", lower, span]
        )
    return rows


def _between(found: Any, shown: Any) -> str:
    return f"{shown(found.low)} to {shown(found.high)}"


def _skill(model: Any, evaluation: Evaluation) -> Section:
    section, r2 = Section("Skill by output"), evaluation.r2()
    known = np.flatnonzero(~np.isnan(r2))
    if known.size <= 1:
        return section.text("The model has one output. The table above shows its R2.")
    names = list(_output_names(model))
    order = known[np.argsort(-r2.ravel()[known], kind="stable")]
    shown = [*order[:_N_LISTED], *order[max(_N_LISTED, order.size - _N_LISTED) :]]
    rows = [[names[i], f"{r2.ravel()[i]:.3f}"] for i in shown]
    section.table(
        Table(["output", "R2"], rows, numbers=(1,), caption="Outputs of highest and lowest R2.")
    )
    if sum(d > 1 for d in r2.shape) <= 3:
        svg = figures.drawn("skill", lambda: figures.skill(model, evaluation))
        section.figure(svg, "R2 of each output. 0 is the mean of the samples, 1 is perfect.")
    return section


def _output_names(model: Any) -> Any:
    """Yield the names of all outputs, such as "station Oxford, month 3"."""
    modes = _modes(model)
    for entry in itertools.product(*(entries for _, entries in modes)):
        yield ", ".join(f"{name} {value}" for (name, _), value in zip(modes, entry, strict=True))


def _label(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _intervals(evaluation: Evaluation) -> Sequence[Section]:
    if not evaluation.intervals:
        return []
    rows = [[percent(c), percent(evaluation.coverage(c))] for c in sorted(evaluation.intervals)]
    section = Section("Prediction intervals")
    section.text(
        "A prediction interval of 90 % should contain 90 % of new observations. The table shows "
        "how many of the observed entries the intervals contain."
    )
    section.table(Table(["nominal coverage", "observed coverage"], rows, numbers=(0, 1)))
    svg = figures.drawn("calibration", lambda: figures.calibration(evaluation))
    return [section.figure(svg, "Observed against nominal coverage; on the diagonal both agree.")]


def _outliers(model: Any) -> Sequence[Section]:
    """Return the section on training samples with large held-out residuals."""
    if "_row_residuals" not in vars(model):
        return []
    outliers = find_outliers(model, level=_OUTLIER_LEVEL)
    listed = [k for k in outliers.order[: 2 * _N_LISTED] if outliers.outside[k]]
    if not listed:
        return []
    section = Section("Outliers among the training samples")
    known = int(np.count_nonzero(~np.isnan(outliers.residuals)))
    section.text(
        f"{int(outliers.outside.sum())} of {known} training samples do not fit the others: their "
        f"held-out residuals are above the {100 * outliers.level:g} % limit, which about one "
        f"ordinary sample in {1 / (1 - outliers.level):,.0f} exceeds by chance."
    )
    rows = [
        [_row_name(outliers.labels, k), f"{outliers.residuals[k]:.3g}", f"{outliers.limits[k]:.3g}"]
        for k in listed
    ]
    return [section.table(Table(["sample", "residual", "limit"], rows, numbers=(1, 2)))]


def _row_name(labels: np.ndarray | None, k: int) -> str:
    return str(k if labels is None else labels[k])


def _ranks(model: Any) -> Sequence[Section]:
    results = getattr(model, "cv_results_", None)
    if not results or "n_parameters" not in results or not results["n_parameters"].ndim:
        return []
    svg = figures.drawn("ranks", lambda: figures.rank_surface(model))
    caption = (
        "Cross-validated error along the rank of each mode and along the penalty, and over pairs "
        "of ranks. The dot is the best single model."
    )
    return [Section("Choice of ranks and penalty").figure(svg, caption)]


def _loadings(model: Any) -> Sequence[Section]:
    core = np.asarray(model.tucker_.core)
    if not np.any(core) or len(model.tucker_.shape) > 5:
        return []
    svg = figures.drawn("loadings", lambda: figures.loadings(model))
    caption = (
        "Leading directions of each mode. Inputs and outputs with large loadings of the same "
        "direction belong together; signs are arbitrary."
    )
    return [Section("What the model found").figure(svg, caption)]
