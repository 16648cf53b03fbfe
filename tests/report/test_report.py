"""Reports: figures, words and the HTML file."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, TimeSeriesSplit
from sklearn.pipeline import make_pipeline

from browser import launched, needs_chromium
from holrr import HOLRR, HOLRRCV, RLSCV, KernelHOLRRCV, TraceNormRegression
from holrr.data import Standardizer
from holrr.datasets import make_tensor_regression
from holrr.metrics import interval_coverage, r2, rmse
from holrr.report import Evaluation, make_report

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

NAME, MEAN = "this model", "the mean of these samples"


def problem(n_samples=120, shape=(4, 3), snr=1.5, seed=0):
    return make_tensor_regression(
        n_samples, 5, shape, rank=2 if shape else None, snr=snr, random_state=seed
    )


@pytest.fixture(scope="module")
def fitted():
    X, Y = problem()
    model = HOLRRCV(cv=3).fit(X[:70], Y[:70])
    return model, X[70:], Y[70:], make_report(model, X[70:], Y[70:], notes={"n_samples": 70})


class Cells(HTMLParser):
    """All table rows of a page, and the tags that may load something."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.loads, self.inside = [], [], False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.inside = True
        if tag in ("script", "link", "iframe"):
            self.loads.append(tag)
        for name in ("src", "href", "xlink:href"):
            value = attrs.get(name) or ""
            if value and not value.startswith(("#", "data:")):
                self.loads.append(value)

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.rows[-1][-1] += data


# ---------------------------------------------------------------- figures


def test_errors_are_those_of_the_metrics(fitted):
    model, X, Y, report = fitted
    predicted = model.predict(X)
    assert_allclose(report.evaluation.rmse(NAME).value, rmse(Y, predicted), rtol=1e-12)
    assert_allclose(report.evaluation.r2(NAME).value, r2(Y, predicted), rtol=1e-12)
    assert_allclose(report.evaluation.r2(), r2(Y, predicted, average=None), rtol=1e-12)
    assert_allclose(report.evaluation.gain(MEAN).value, r2(Y, predicted), rtol=1e-12)
    low, high = model.predict_interval(X, 0.9)
    expected = interval_coverage(Y, low, high)
    assert_allclose(report.evaluation.coverage(0.9), expected, rtol=1e-12)


def test_the_page_shows_these_errors(fitted):
    model, X, Y, report = fitted
    rows = {row[0]: row[1:] for row in Cells(report.html).rows}
    assert rows[NAME][0] == f"{rmse(Y, model.predict(X)):.4g}"
    assert rows[NAME][2] == f"{r2(Y, model.predict(X)):.3f}"
    assert rows["samples"] == ["70"]
    low, high = model.predict_interval(X, 0.9)
    assert rows["90 %"] == [f"{100 * interval_coverage(Y, low, high):.0f} %"]


def test_confidence_intervals_cover_the_error_of_many_new_samples():
    X, Y = problem(2200, snr=1.0)
    model = HOLRR(rank=2).fit(X[:60], Y[:60])
    true = rmse(Y[200:], model.predict(X[200:]))
    inside = 0
    for k in range(40):
        rows = slice(200 + 50 * k, 250 + 50 * k)
        found = Evaluation("new data", Y[rows], {NAME: model.predict(X[rows])}).rmse(NAME)
        assert found.low < found.value < found.high
        inside += found.low <= true <= found.high
    assert 33 <= inside <= 40


def test_intervals_of_gains_are_paired():
    rng = np.random.default_rng(0)
    y, hard = rng.normal(size=(60, 3)), rng.exponential(size=(60, 1)) ** 2
    noise = hard * rng.normal(size=(60, 3))
    found = Evaluation("new data", y, {"a": y + noise, "b": y + 1.1 * noise})
    gain = found.gain("b")
    assert_allclose([gain.value, gain.low, gain.high], 1 - 1 / 1.21, rtol=1e-10)
    assert found.rmse("a").high > found.rmse("b").low  # not paired, the errors overlap


def test_more_rows_than_groups_are_resampled_in_groups():
    rng = np.random.default_rng(0)
    y = rng.normal(size=1001)
    many = Evaluation("new data", y, {"a": 0 * y}).rmse("a")
    few = Evaluation("new data", y[:1000], {"a": 0 * y[:1000]}).rmse("a")
    assert_allclose([many.low, many.high], [few.low, few.high], rtol=0.01)


def test_missing_outputs_are_left_out():
    X, Y = problem()
    Y = Y.copy()
    Y[::3, 1, 1] = np.nan
    model = HOLRRCV(cv=3, missing="ignore").fit(X[:70], Y[:70])
    found = make_report(model, X[70:], Y[70:]).evaluation
    assert_allclose(found.rmse(NAME).value, rmse(Y[70:], model.predict(X[70:])), rtol=1e-12)
    assert_allclose(found.r2(NAME).value, model.score(X[70:], Y[70:]), rtol=1e-12)


def test_output_weights_are_those_of_score():
    X, Y = problem()
    weight = [np.array([1.0, 2.0, 0.0, 1.0]), None]
    model = HOLRRCV(cv=3, output_weight=weight).fit(X[:70], Y[:70])
    found = make_report(model, X[70:], Y[70:]).evaluation
    assert_allclose(found.r2(NAME).value, model.score(X[70:], Y[70:]), rtol=1e-12)


# ---------------------------------------------------------------- cross-validation


def test_training_data_are_predicted_by_fits_without_them():
    X, Y = problem(60)
    model = HOLRR(rank=2, alpha=2.0).fit(X, Y)
    found = make_report(model, X, Y, cross_validate=True).evaluation
    expected = np.empty_like(Y)
    for train, test in KFold(5).split(X):
        expected[test] = HOLRR(rank=2, alpha=2.0).fit(X[train], Y[train]).predict(X[test])
    assert_allclose(found.predicted[NAME], expected, rtol=1e-12)
    assert found.names == [NAME, "ridge regression", "the mean"]
    assert found.rmse(NAME).value > rmse(Y, model.predict(X))


def test_samples_that_no_fold_holds_out_are_left_out():
    X, Y = problem(60)
    model = HOLRRCV(cv=TimeSeriesSplit(3)).fit(X, Y)
    found = make_report(model, X, Y, cross_validate=True).evaluation
    assert found.n_samples == 45
    assert all(np.isfinite(values).all() for values in found.predicted.values())


def test_pipelines_are_refitted_as_a_whole():
    X, Y = problem(60)
    X = X * [1, 10, 100, 1, 1]
    model = make_pipeline(Standardizer(), HOLRR(rank=2)).fit(X, Y)
    found = make_report(model, X, Y, cross_validate=True).evaluation
    train, test = next(iter(KFold(5).split(X)))
    expected = make_pipeline(Standardizer(), HOLRR(rank=2)).fit(X[train], Y[train]).predict(X[test])
    assert_allclose(found.predicted[NAME][test], expected, rtol=1e-12)


def test_labelled_data_give_the_figures_of_plain_data():
    xr, pd = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    X, Y = problem(60)
    x = pd.DataFrame(X, columns=list("abcde"))
    y = xr.DataArray(Y, dims=("day", "lat", "lon"), coords={"lat": [9, 5, 1, 0]}, name="t2m")
    plain = make_report(HOLRRCV(cv=3).fit(X, Y), X, Y, cross_validate=True)
    turned = y.transpose("lon", "day", "lat")
    named = make_report(HOLRRCV(cv=3).fit(x, y), x, turned, cross_validate=True)
    assert_allclose(named.evaluation.r2(), plain.evaluation.r2(), rtol=1e-9)
    assert named.evaluation.y.shape == Y.shape
    assert re.search("lat [9510], lon [012]</td>", named.html)


@pytest.mark.parametrize("model", [HOLRRCV([1.0], cv=3), HOLRR(rank=(2, 1, 3))], ids=repr)
def test_modes_in_another_order_have_the_parameters_and_intervals_of_the_fit(model):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = problem(60, (3, 3))
    y = xr.DataArray(Y * np.arange(1.0, 4.0), dims=("day", "lat", "lon"))
    model = clone(model).fit(X, y)
    one, other = (
        make_report(model, X, A, cross_validate=True).evaluation
        for A in (y, y.transpose("lon", "day", "lat"))
    )
    assert_allclose(other.predicted[NAME], one.predicted[NAME])
    for share, bounds in (one.intervals or {}).items():
        assert_allclose(other.intervals[share], bounds)


# ---------------------------------------------------------------- every kind of model


FAMILIES = [
    (HOLRR(rank=2), (3, 2, 2, 2)),
    (RLSCV(cv=3), ()),
    (HOLRRCV(cv=3), (4,)),
    (KernelHOLRRCV(cv=3, gammas=[0.1]), (4, 3)),
    (TraceNormRegression(1.0), (4, 3)),
    (HOLRRCV(cv=3, selection="1se"), (4, 1)),
]


@pytest.mark.parametrize(("model", "shape"), FAMILIES, ids=lambda v: type(v).__name__)
def test_every_family_and_order_has_a_report(model, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    Y = np.tensordot(X, rng.normal(size=(5, *shape)), 1) + rng.normal(size=(60, *shape))
    found = make_report(clone(model).fit(X[:40], Y[:40]), X[40:], Y[40:])
    assert not Cells(found.html).loads
    assert "nan" not in re.sub(r"<svg.*?</svg>", "", found.html, flags=re.DOTALL)


# ---------------------------------------------------------------- words


def words(html):
    """Text of a page without its pictures."""
    text = re.sub(r"<svg.*?</svg>", "", html, flags=re.DOTALL)
    return re.sub(r"<[^>]+>", " ", text)


@pytest.mark.parametrize("case", ["better", "no skill", "worse"])
def test_the_conclusion_compares_the_errors_with_those_of_ridge_regression(case):
    """HOLRR of rank one on data of rank one, on noise, and on data of nearly rank one."""
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(90, 20)), rng.normal(size=(90, 4, 5))
    full = rng.normal(size=(20, 4, 5))
    one = np.multiply.outer(full[:, 0, 0], np.ones((4, 5)))
    signal = {"better": one, "no skill": 0 * one, "worse": 3 * one + full}[case]
    Y = np.tensordot(X, signal, 1) + (4 if case == "better" else 1) * noise
    model, ridge = HOLRR(rank=1).fit(X[:50], Y[:50]), RLSCV(cv=3).fit(X[:50], Y[:50])
    found = make_report(model, X[50:], Y[50:], compare={"ridge regression": ridge}).html
    squares = [np.sum((m.predict(X[50:]) - Y[50:]) ** 2) for m in (model, ridge)]
    change = round(100 * abs(1 - squares[0] / squares[1]))
    said = "The data do not show that the inputs predict the outputs"
    assert (said in found) == (case == "no skill")
    if case != "no skill":
        word = "lower" if case == "better" else "higher"
        assert f"{change} % {word} than that of ridge regression" in found


def test_outputs_in_different_units_have_conclusions_of_their_own():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = problem(100, (3, 2), snr=5.0)
    Y[:, 1] = np.random.default_rng(1).normal(size=(100, 2))  # nothing to predict
    Y = Y * np.array([1000.0, 1.0, 0.01])[:, None]
    y = xr.DataArray(Y, {"variable": ["rain", "wind", "sun"]}, ("day", "variable", "site"))
    report = make_report(HOLRRCV(cv=3).fit(X[:60], y[:60]), X[60:], y[60:])
    text = words(report.html)
    assert "different units along variable, so they are judged one by one" in text
    assert "variable wind: R2 is -" in text
    assert re.search(r"variable rain: R2 is 0\.[45]", text)
    rows = [row for row in Cells(report.html).rows if row[:2] == ["rain", NAME]]
    predicted = report.evaluation.predicted[NAME][:, 0]
    assert rows[0][2] == f"{rmse(Y[60:, 0], predicted):.4g}"
    plain = make_report(HOLRRCV(cv=3).fit(X[:60], Y[:60, 0]), X[60:], Y[60:, 0])
    assert "different units" not in words(plain.html)


# ---------------------------------------------------------------- groups


def test_grouped_searches_are_refitted_with_their_groups():
    X, Y = problem(60)
    groups = np.repeat(np.arange(12), 5)
    model = HOLRRCV(cv=GroupKFold(3)).fit(X, Y, groups=groups)
    with pytest.raises(ValueError, match=r"groups is missing: .* Pass groups=\.\.\. as in fit"):
        make_report(model, X, Y, cross_validate=True)
    found = make_report(model, X, Y, cross_validate=True, groups=groups).evaluation
    expected = np.empty_like(Y)
    for train, test in GroupKFold(3).split(X, groups=groups):
        fold = HOLRRCV(cv=GroupKFold(3)).fit(X[train], Y[train], groups=groups[train])
        expected[test] = fold.predict(X[test])
    assert_allclose(found.predicted[NAME], expected, rtol=1e-9)
    pipe = make_pipeline(Standardizer(), HOLRRCV(cv=GroupKFold(3)))
    pipe.fit(X, Y, holrrcv__groups=groups)
    again = make_report(pipe, X, Y, cross_validate=True, groups=groups)
    assert again.evaluation.n_folds == 3
    assert "bootstrap samples of the groups" in again.html


def test_confidence_intervals_of_groups_are_wider():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 20)
    y = np.repeat(rng.normal(size=(10, 3)), 20, axis=0)
    rows, whole = (
        Evaluation("new data", y, {"a": 0 * y}, groups=g).rmse("a") for g in (None, groups)
    )
    assert whole.value == rows.value
    assert whole.high - whole.low > 2 * (rows.high - rows.low)


# ---------------------------------------------------------------- unusual inputs and outliers


def test_unusual_inputs_are_counted_and_outliers_are_listed_by_label():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = problem(120, (4, 3), snr=5.0)
    Y[17] *= 5
    names = [f"run {k}" for k in range(120)]
    x = pd.DataFrame(X, names, list("abcde"))
    y = pd.DataFrame(Y.reshape(120, -1), names)
    model = HOLRRCV(cv=3).fit(x[:90], y[:90])
    new = x[90:].copy()
    new.iloc[:8] *= 40
    html = make_report(model, new, y[90:]).html
    cells = [row[0] for row in Cells(html).rows]
    assert "run 17" in cells
    assert "one ordinary sample in 1,000 exceeds by chance" in html
    assert "8 of 30 samples are farther from the training inputs than any training sample" in html


# ---------------------------------------------------------------- the file


def test_the_file_loads_nothing_from_outside(fitted, tmp_path):
    *_, report = fitted
    assert not Cells(report.html).loads
    report.save(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text("utf-8") == report.html


def test_names_in_data_cannot_add_markup():
    pd = pytest.importorskip("pandas")
    X, Y = problem(60, (2,))
    bad = "<script>alert(1)</script>"
    y = pd.DataFrame(Y, columns=[bad, "b"])
    model = HOLRR(rank=1).fit(pd.DataFrame(X, columns=[bad, *"bcde"]), y)
    html = make_report(model, pd.DataFrame(X, columns=[bad, *"bcde"]), y, title=bad).html
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_ids_differ_between_figures(fitted):
    *_, report = fitted
    ids = re.findall(r'\bid="([^"]+)"', report.html)
    assert len(ids) == len(set(ids))
    used = re.findall(r'(?:url\(|xlink:href=")#([^")]+)', report.html)
    assert set(used) <= set(ids)


def test_the_same_report_is_made_twice(fitted):
    model, X, Y, report = fitted
    assert make_report(model, X, Y, notes={"n_samples": 70}).html == report.html


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1280])
def test_a_browser_shows_the_file_whole_and_requests_nothing(fitted, tmp_path, scheme, width):
    *_, report = fitted
    path = tmp_path / "report.html"
    report.save(path)
    with launched() as browser:
        options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        page = browser.new_context(**options).new_page()
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        assert said == []
        assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_bad_arguments_are_refused(fitted):
    model, X, Y, _ = fitted
    with pytest.raises(ValueError, match="compare cannot be combined with cross_validate=True"):
        make_report(model, X, Y, cross_validate=True, compare={"same": model})
    with pytest.raises(Exception, match="not fitted"):
        make_report(HOLRR(), X, Y)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_cross_validate_must_be_true_or_false(value):
    X, Y = np.random.default_rng(0).normal(size=(2, 40, 4))
    with pytest.raises(ValueError, match="cross_validate must be True or False"):
        make_report(HOLRR(2).fit(X, Y), X, Y, cross_validate=value)
