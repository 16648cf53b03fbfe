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
from ..data.labels import mode_coordinates, mode_names
from ..data.pipelines import last_step
from ..diagnostics import InputDiagnostics, Outliers, diagnose_inputs, find_outliers
from ..extras import need
from ..io import write_atomically
from . import _figures as figures
from ._evaluate import Evaluation, cross_validated, evaluated
from ._page import Page, Section, Table
from ._words import OUTLIER_LEVEL, conclusion, next_steps, number, percent
from .facts import fact_lines, facts_of

__all__ = ["Report", "diagnosed", "make_report", "report_on"]

_N_LISTED = 5


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
    compare: Mapping[str, Any] | None = None,
    title: str = "Regression report",
    notes: Mapping[str, Any] | None = None,
    groups: Any = None,
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
    compare : dict of fitted estimators, optional
        Other models to compare with on the same new samples, by name.
    title : str, default="Regression report"
        Title of the page.
    notes : dict, optional
        Further facts. ``n_samples`` is the number of training samples.
    groups : array of shape (n_samples,), optional
        Groups of the samples, as in the `fit` of a search. Used only with `cross_validate`.

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
    if cross_validate:
        evaluation = cross_validated(model, X, y, groups)
    else:
        evaluation = evaluated(model, X, y, compare)
    facts = facts_of(model, dict(notes or {}))
    rows = None if cross_validate else diagnosed(model, X)
    return report_on(evaluation, last_step(model), facts, title, rows)


def diagnosed(model: Any, X: Any) -> InputDiagnostics | None:
    """Return distances of new inputs from the training inputs, or None if the model has no limits.

    Parameters
    ----------
    model : estimator or pipeline
    X : array of shape (n_samples, n_features)
    """
    if vars(last_step(model)).get("_input_model") is None:
        return None
    return diagnose_inputs(model, X)


def report_on(
    evaluation: Evaluation,
    model: Any,
    facts: dict[str, Any],
    title: str,
    rows: InputDiagnostics | None = None,
) -> Report:
    """Create a report from an evaluation.

    Parameters
    ----------
    evaluation : Evaluation
    model : estimator
        The fitted estimator, the last step of a pipeline.
    facts : dict
        Result of `facts_of`.
    title : str
    rows : InputDiagnostics, optional
        Distances of the inputs of new samples from the training inputs.
    """
    outliers = (
        find_outliers(model, level=OUTLIER_LEVEL) if "_row_residuals" in vars(model) else None
    )
    sections = [
        Section("Conclusion").items(conclusion(evaluation)),
        Section("Next steps").items(next_steps(evaluation, model, rows, outliers)),
        Section("Model").table(Table((), fact_lines(facts))),
        _errors(evaluation),
        _skill(model, evaluation),
        *_intervals(evaluation),
        *_unusual(rows),
        *_outliers(outliers),
        *_ranks(model),
        *_loadings(model),
    ]
    n = evaluation.n_samples
    how = f"{n} samples that it assumes to be new"
    if evaluation.source == "cross-validation":
        how = f"{n} training samples by {evaluation.n_folds}-fold cross-validation"
    lead = f"{type(model).__name__}, evaluated on {how}."
    footer = (
        f"Made with holrr {__version__}. Confidence intervals are percentiles of 2,000 bootstrap "
        f"samples of the rows. They assume that the rows are independent of each other."
    )
    return Report(Page(title, lead, sections, footer).html(), evaluation)


def _errors(evaluation: Evaluation) -> Section:
    section = Section("Errors")
    rows = []
    for place, name in enumerate(evaluation.names):
        rmse, r2 = evaluation.rmse(name), evaluation.r2(name)
        lower = "" if place == 0 else percent(evaluation.gain(name).value)
        span = "" if place == 0 else _between(evaluation.gain(name), percent)
        rows.append(
            [name, number(rmse.value), _between(rmse, number), f"{r2.value:.3f}", lower, span]
        )
    header = ["method", "RMSE", "95 % interval", "R2", "gain of the model", "95 % interval"]
    section.table(Table(header, rows, numbers=(1, 2, 3, 4, 5)))
    section.text(
        "The gain is the relative reduction of the squared error by the model, compared with the "
        "method. Both predict the same samples, so its interval is that of a paired comparison.",
        "note",
    )
    svg = figures.drawn("errors", lambda: figures.errors(evaluation))
    section.figure(svg, "Root mean squared error of each method.")
    svg = figures.drawn("scatter", lambda: figures.scatter(evaluation))
    return section.figure(svg, "Observed against predicted outputs; the dashed line is equality.")


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
    names = mode_names(model)[1:]
    coordinates = [
        [_label(c) for c in mode_coordinates(model, mode)] for mode in range(1, 1 + len(names))
    ]
    for entry in itertools.product(*coordinates):
        yield ", ".join(f"{name} {value}" for name, value in zip(names, entry, strict=True))


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


def _unusual(rows: InputDiagnostics | None) -> Sequence[Section]:
    """Return the section on unusual inputs of new samples."""
    if rows is None:
        return []
    section = Section("Unusual inputs")
    n, outside = rows.outside.size, rows.outside
    section.text(
        f"{int(outside.sum())} of {n} samples are outside the {100 * rows.level:g} % limits of the "
        f"training inputs. Predictions for such samples are extrapolations."
    )
    order = np.argsort(-np.maximum(rows.t2 / rows.t2_limit, rows.q / rows.q_limit), kind="stable")
    listed = [
        [_row_name(rows.labels, k), f"{rows.t2[k]:.3g}", f"{rows.q[k]:.3g}"]
        for k in order[: 2 * _N_LISTED]
        if outside[k]
    ]
    if listed:
        limits = ["limit", f"{rows.t2_limit:.3g}", f"{rows.q_limit:.3g}"]
        header = ["sample", "Hotelling's T2", "Q"]
        section.table(Table(header, [*listed, limits], numbers=(1, 2)))
    svg = figures.drawn("inputs", lambda: figures.unusual_inputs(rows))
    caption = "Distance within (T2) and from (Q) the principal components of the training inputs."
    return [section.figure(svg, caption)]


def _outliers(outliers: Outliers | None) -> Sequence[Section]:
    """Return the section on training samples with large held-out residuals."""
    if outliers is None:
        return []
    section = Section("Outliers among the training samples")
    known = int(np.count_nonzero(~np.isnan(outliers.residuals)))
    section.text(
        f"{int(outliers.outside.sum())} of {known} training samples have held-out residuals above "
        f"the {100 * outliers.level:g} % limit."
    )
    listed = [
        [_row_name(outliers.labels, k), f"{outliers.residuals[k]:.3g}", f"{outliers.limits[k]:.3g}"]
        for k in outliers.order[: 2 * _N_LISTED]
        if outliers.outside[k]
    ]
    if listed:
        section.table(Table(["sample", "residual", "limit"], listed, numbers=(1, 2)))
    svg = figures.drawn("outliers", lambda: figures.outliers(outliers))
    caption = "Studentised held-out residual of each training sample, and the limit."
    return [section.figure(svg, caption)]


def _row_name(labels: np.ndarray | None, k: int) -> str:
    return str(k if labels is None else labels[k])


def _ranks(model: Any) -> Sequence[Section]:
    results = getattr(model, "cv_results_", None)
    if not results or "n_parameters" not in results or not results["n_parameters"].ndim:
        return []  # no ranks, or a model from a file, which contains no errors of all ranks
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
