"""Held-out predictions of searches (`held_out_predictions`)."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from holrr import (
    HOLRR,
    HOLRRCV,
    LRRCV,
    RLS,
    RLSCV,
    KernelHOLRRCV,
    KernelLRRCV,
    KernelRLSCV,
    Moments,
    load,
)
from holrr.streaming import memory_budget
from problems import on_disk, toy, with_missing

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.1, 1.0, 10.0]
GAMMAS = {"gammas": [0.02, 0.1]}
LANDMARKS = {**GAMMAS, "landmarks": 12, "random_state": 0}
LINEAR = [(RLSCV, {}), (LRRCV, {}), (HOLRRCV, {})]
KERNEL = [(KernelRLSCV, GAMMAS), (KernelLRRCV, GAMMAS), (KernelHOLRRCV, GAMMAS)]
MORE = [
    (RLSCV, {"alpha_per_output": True}),
    (RLSCV, {"fit_intercept": False}),
    (HOLRRCV, {"refine": True}),
    (HOLRRCV, {"fit_intercept": False}),
    (HOLRRCV, {"max_rank": 2}),
    (HOLRRCV, {"blocks": [[0, 1], [2, 3, 4]]}),
    (HOLRRCV, {"own": np.arange(60).reshape(5, 12) % 4 == 0}),
    (KernelHOLRRCV, {**GAMMAS, "center_kernel": False}),
    (KernelRLSCV, LANDMARKS),
    (KernelHOLRRCV, LANDMARKS),
]


def name_of(value):
    return getattr(value, "__name__", None)


def noisy(n=40, **options):
    return toy(n, noise=1.5, **options)


def searched(make, X, Y, w=None, *, groups=None, **parameters):
    given = {"alphas": ALPHAS, "cv": 3, **parameters}
    return make(**given).fit(X, Y, w, groups=groups)


def predicted(make, X, Y, w=None, *, groups=None, **parameters):
    model = searched(make, X, Y, w, groups=groups, **parameters)
    return model.held_out_predictions(X, Y, w)


def by_hand(model, X, Y, splits, w=None):
    """The mean over the folds of the predictions of separate fits."""
    total, count = np.zeros(Y.shape), np.zeros(len(X))
    for train, test in splits:
        fit = clone(model.best_estimator_)
        fit.fit(X[train], Y[train], None if w is None else w[train])
        total[test] += fit.predict(X[test])
        count[test] += 1
    with np.errstate(invalid="ignore"):
        return total / count.reshape(-1, *(1,) * (Y.ndim - 1))


def by_hand_for_each_output(alphas, X, Y, splits):
    """Predictions of ridge regression with penalties that the other folds choose."""
    fits = [
        [RLS(alpha).fit(X[train], Y[train]).predict(X[test]) for alpha in alphas]
        for train, test in splits
    ]
    errors = np.array(
        [
            [np.square(Y[test] - P).mean(axis=0) for P in one]
            for one, (_, test) in zip(fits, splits, strict=True)
        ]
    )
    found = np.full(Y.shape, np.nan)
    for fold, (train, test) in enumerate(splits):
        best = np.delete(errors, fold, axis=0).mean(axis=0).argmin(axis=0)
        found[test] = RLS(np.take(alphas, best)).fit(X[train], Y[train]).predict(X[test])
    return found


def error_of_predictions(model):
    """Error of `held_out_predictions`: that of the chosen model, unless each fold has its own."""
    nested = hasattr(model, "choice_") or getattr(model, "alpha_per_output", False)
    return model.held_out_mse_ if nested else -model.best_score_


def mean_of_folds(found, Y, splits, w=None):
    """Mean over the folds of the mean squared errors, as searches compute it."""
    errors = []
    for _, test in splits:
        squares = np.square(Y[test] - found[test]).reshape(len(test), -1).mean(axis=1)
        errors.append(np.average(squares, weights=None if w is None else w[test]))
    return np.mean(errors)


# ---------------------------------------------------------------- separate fits


@pytest.mark.parametrize(("make", "parameters"), [*LINEAR, *KERNEL, *MORE], ids=name_of)
def test_held_out_predictions_equal_those_of_separate_fits_on_each_fold(make, parameters):
    X, Y = noisy()
    model = searched(make, X, Y, selection="min", **parameters)
    held_out = model.held_out_predictions(X, Y)
    splits = list(KFold(3).split(X))
    if "alpha_per_output" in parameters:
        expected = by_hand_for_each_output(ALPHAS, X, Y, splits)
        assert model.alpha_.shape == Y.shape[1:]
    else:
        expected = by_hand(model, X, Y, splits)
    assert held_out.shape == Y.shape
    assert_allclose(held_out, expected, rtol=1e-7, atol=1e-8)
    # Fits that have seen the samples are nearer to them.
    seen = np.mean(np.square(Y - model.predict(X)))
    assert np.mean(np.square(Y - held_out)) > 1.01 * seen


@pytest.mark.parametrize(("make", "parameters"), [*LINEAR, *KERNEL], ids=name_of)
@pytest.mark.parametrize("shape", [(), (1,), (6,), (2, 3, 2)], ids=str)
def test_held_out_predictions_of_outputs_of_every_order(make, parameters, shape):
    X, Y = noisy(shape=shape)
    model = searched(make, X, Y, selection="min", **parameters)
    held_out = model.held_out_predictions(X, Y)
    assert held_out.shape == Y.shape == model.predict(X).shape
    expected = by_hand(model, X, Y, list(KFold(3).split(X)))
    assert_allclose(held_out, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize(
    "cv",
    [
        KFold(4, shuffle=True, random_state=0),
        LeaveOneOut(),
        GroupKFold(3),
        ShuffleSplit(3, test_size=0.3, random_state=0),
        TimeSeriesSplit(3),
        RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
        PredefinedSplit([-1] * 20 + [0] * 10 + [1] * 10),
    ],
    ids=lambda cv: type(cv).__name__,
)
@pytest.mark.parametrize(
    ("make", "parameters"), [(RLSCV, {}), (HOLRRCV, {}), (KernelLRRCV, GAMMAS)], ids=name_of
)
def test_held_out_predictions_of_every_splitter(make, parameters, cv):
    X, Y = noisy()
    groups = np.arange(40) % 7 if isinstance(cv, GroupKFold) else None
    model = searched(make, X, Y, cv=cv, groups=groups, selection="min", **parameters)
    held_out = model.held_out_predictions(X, Y)
    splits = list(cv.split(X, Y, groups))
    assert_allclose(held_out, by_hand(model, X, Y, splits), rtol=1e-7, atol=1e-8)
    held = np.unique(np.concatenate([test for _, test in splits]))
    never = np.setdiff1d(np.arange(40), held)
    assert np.isfinite(held_out[held]).all()
    assert np.isnan(held_out[never]).all()


@pytest.mark.parametrize(("make", "parameters"), [*LINEAR, *KERNEL], ids=name_of)
@pytest.mark.parametrize("selection", ["min", "auto"])
def test_samples_that_no_fold_holds_out_are_nan(make, parameters, selection):
    """The first samples of a series are only trained on."""
    selection = "min" if make in (RLSCV, KernelRLSCV) else selection
    X, Y = noisy(45)
    cv = TimeSeriesSplit(4)
    model = searched(make, X, Y, cv=cv, selection=selection, **parameters)
    held_out = model.held_out_predictions(X, Y)
    assert np.isnan(held_out[:9]).all()
    assert np.isfinite(held_out[9:]).all()
    error = mean_of_folds(held_out, Y, list(cv.split(X)))
    assert error == pytest.approx(error_of_predictions(model), rel=1e-9)


def test_samples_that_are_held_out_twice_have_the_mean_of_both_predictions():
    X, Y = noisy()
    splits = list(RepeatedKFold(n_splits=4, n_repeats=2, random_state=1).split(X))
    given = {"alphas": [1.0], "selection": lambda results: (0, 1, 1, 1)}
    both = predicted(HOLRRCV, X, Y, cv=splits, **given)
    once = [predicted(HOLRRCV, X, Y, cv=part, **given) for part in (splits[:4], splits[4:])]
    assert np.abs(once[0] - once[1]).max() > 0.01
    assert_allclose(both, (once[0] + once[1]) / 2, rtol=1e-10)
    # Some of the samples are held out three times.
    more = [*splits, splits[2]]
    test = splits[2][1]
    thrice = predicted(HOLRRCV, X, Y, cv=more, **given)
    assert_allclose(thrice[test], (2 * once[0][test] + once[1][test]) / 3, rtol=1e-10)
    others = np.setdiff1d(np.arange(40), test)
    assert_allclose(thrice[others], both[others], rtol=1e-10)


def test_weights_are_those_of_the_fits_and_samples_without_weight_are_nan():
    X, Y = noisy()
    w = np.random.default_rng(0).uniform(0.5, 2, size=40)
    w[[3, 17]] = 0.0
    splits = list(KFold(3).split(X))
    for make in (RLSCV, HOLRRCV):
        model = searched(make, X, Y, w, selection="min")
        held_out = model.held_out_predictions(X, Y, w)
        expected = by_hand(model, X, Y, splits, w)
        expected[[3, 17]] = np.nan
        assert_allclose(held_out, expected, rtol=1e-7, atol=1e-8)
        error = mean_of_folds(np.nan_to_num(held_out), Y, splits, w)
        assert error == pytest.approx(-model.best_score_, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
@pytest.mark.parametrize(
    ("make", "parameters"), [(RLSCV, {}), (HOLRRCV, {}), (KernelHOLRRCV, GAMMAS)], ids=name_of
)
def test_held_out_predictions_are_in_the_units_of_the_outputs(make, parameters, scale):
    X, Y = noisy()
    plain = predicted(make, X, Y, **parameters)
    scaled = predicted(make, X, scale * Y, **parameters)
    assert_allclose(scaled / scale, plain, rtol=1e-6, atol=1e-7)


def test_ridge_regression_that_only_memory_excludes_predicts_held_out_samples(small_budget):
    """No rank helps these outputs; the errors of the surface are those of smaller ranks."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 5))
    Y = np.tensordot(X, rng.normal(size=(5, 4, 4)), 1) + 2 * rng.normal(size=(60, 4, 4))
    alphas = np.logspace(0, 2, 9)  # folds choose different penalties
    small_budget(3500)
    with pytest.warns(UserWarning, match="caps the rank of each mode at"):
        model = searched(HOLRRCV, X, Y, selection="min", alphas=alphas)
    held_out = model.held_out_predictions(X, Y)
    expected = by_hand(model, X, Y, list(KFold(3).split(X)))
    assert_allclose(held_out, expected, rtol=1e-7, atol=1e-8)
    ridge = searched(RLSCV, X, Y, alphas=alphas)
    least = ridge.cv_results_["mean_mse"].min()
    assert least < model.ridge_mse_ == pytest.approx(ridge.held_out_mse_, rel=1e-9)
    assert model.held_out_mse_ == pytest.approx(model.ridge_mse_, rel=1e-9)
    assert model.ridge_mse_ < -model.best_score_
    assert_allclose(held_out, ridge.held_out_predictions(X, Y), rtol=1e-7, atol=1e-8)


# ---------------------------------------------------------------- the held-out error


def selections(make, parameters):
    """Those that a search has: ridge regression mixes nothing, nor do refined fits."""
    if "alpha_per_output" in parameters:
        return ["min"]
    return ["min", "1se"] if make in (RLSCV, KernelRLSCV) else ["min", "1se", "stack"]


@pytest.mark.parametrize(
    ("make", "parameters", "selection"),
    [
        (make, parameters, selection)
        for make, parameters in [*LINEAR, *KERNEL, *MORE]
        if "refine" not in parameters  # whose errors are those before refinement
        for selection in selections(make, parameters)
    ],
    ids=name_of,
)
def test_held_out_predictions_have_the_held_out_error(make, parameters, selection):
    """That of a stack is cross-fitted: the model of each fold comes from the others."""
    X, Y = noisy()
    model = searched(make, X, Y, selection=selection, **parameters)
    held_out = model.held_out_predictions(X, Y)
    assert ("stack_weights_" in vars(model)) == (selection == "stack")
    error = mean_of_folds(held_out, Y, list(KFold(3).split(X)))
    assert error == pytest.approx(error_of_predictions(model), rel=1e-9)
    assert model.cv_results_["held_out_mse"] == model.held_out_mse_
    if selection == "stack":
        assert model.held_out_mse_ != -model.best_score_


@pytest.mark.parametrize(("make", "parameters"), [*LINEAR, *KERNEL], ids=name_of)
def test_weighted_errors_of_held_out_predictions_are_the_held_out_error(make, parameters):
    X, Y = noisy()
    w = np.random.default_rng(0).uniform(0.5, 2, size=40)
    splits = list(KFold(3).split(X))
    for selection in selections(make, parameters):
        model = searched(make, X, Y, w, selection=selection, **parameters)
        held_out = model.held_out_predictions(X, Y, w)
        error = mean_of_folds(held_out, Y, splits, w)
        assert error == pytest.approx(error_of_predictions(model), rel=1e-9)


def test_held_out_predictions_change_nothing_and_need_the_samples_of_the_fit():
    X, Y = noisy()
    for make, parameters in (*LINEAR, *KERNEL):
        model = searched(make, X, Y, **parameters)
        before = dict(vars(model))
        first, second = (model.held_out_predictions(X, Y) for _ in range(2))
        assert vars(model) == before
        assert_array_equal(first, second)
        with pytest.raises(ValueError, match="X must have the 40 samples of the fit; got 39"):
            model.held_out_predictions(X[1:], Y[1:])
        with pytest.raises(NotFittedError):
            make().held_out_predictions(X, Y)


def test_held_out_predictions_of_a_robust_search_have_the_weights_of_the_fit():
    X, Y = noisy()
    Y[3] += 40
    model = searched(HOLRRCV, X, Y, selection="min", loss="huber")
    assert model.robust_weight_[3] < 0.5
    found = model.held_out_predictions(X, Y)
    error = mean_of_folds(found, Y, list(KFold(3).split(X)), model.robust_weight_)
    assert error == pytest.approx(-model.best_score_, rel=1e-9)


# ---------------------------------------------------------------- labels and array libraries


@pytest.mark.parametrize(
    ("make", "parameters"), [(RLSCV, {}), (HOLRRCV, {}), (KernelHOLRRCV, GAMMAS)], ids=name_of
)
def test_held_out_predictions_have_the_labels_of_predictions_in_xarray(make, parameters):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = noisy()
    time = {"time": np.arange(100.0, 140.0), "month": ("time", np.arange(40) % 12)}
    Xl = xr.DataArray(X, dims=("time", "input"), coords=time)
    place = {"lat": [1.0, 2.0, 3.0], "lon": [4.0, 5.0, 6.0, 7.0]}
    coords = {**time, **place}
    attrs = {"units": "K"}
    Yl = xr.DataArray(Y, dims=("time", "lat", "lon"), coords=coords, name="t", attrs=attrs)
    plain = predicted(make, X, Y, cv=TimeSeriesSplit(3), **parameters)
    found = searched(make, Xl, Yl, cv=TimeSeriesSplit(3), **parameters)
    found_held_out = found.held_out_predictions(Xl, Yl)
    assert isinstance(found_held_out, xr.DataArray)
    assert found_held_out.copy(data=Y).identical(found.predict(Xl).copy(data=Y))
    assert_array_equal(found_held_out.values, plain)
    # The samples need not come first.
    turned = searched(make, Xl, Yl.transpose("lat", "time", "lon"), cv=3, **parameters)
    turned_held_out = turned.held_out_predictions(Xl, Yl.transpose("lat", "time", "lon"))
    like = turned.predict(Xl)
    assert turned_held_out.dims == like.dims
    expected = predicted(make, X, Y, **parameters)
    assert_allclose(turned_held_out.transpose("time", "lat", "lon"), expected, rtol=1e-9)


def test_held_out_predictions_of_a_dataset_are_a_dataset():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = noisy(shape=(2, 4))
    Xl = xr.DataArray(X, dims=("time", "input"), coords={"time": np.arange(40)})
    dims, lon = ("time", "lon"), {"time": np.arange(40), "lon": [1.0, 2.0, 3.0, 4.0]}
    both = {name: xr.DataArray(Y[:, i], dims=dims, coords=lon) for i, name in enumerate("ab")}
    model = searched(HOLRRCV, Xl, xr.Dataset(both))
    held_out = model.held_out_predictions(Xl, xr.Dataset(both))
    assert isinstance(held_out, xr.Dataset)
    like, expected = model.predict(Xl), predicted(HOLRRCV, X, Y)
    for i, name in enumerate("ab"):
        found = held_out[name]
        assert_allclose(found, expected[:, i], rtol=1e-9)
        assert found.copy(data=Y[:, i]).identical(like[name].copy(data=Y[:, i]))


@pytest.mark.parametrize(
    ("make", "parameters"), [(RLSCV, {}), (HOLRRCV, {}), (KernelHOLRRCV, GAMMAS)], ids=name_of
)
def test_held_out_predictions_have_the_labels_of_predictions_in_pandas(make, parameters):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = noisy()
    index = pd.Index([f"s{i}" for i in range(40)], name="sample")
    inputs = pd.DataFrame(X, index=index, columns=list("abcde"))
    columns = pd.MultiIndex.from_product([["x", "y", "z"], [1, 2, 3, 4]], names=["axis", "level"])
    for outputs, values in (
        (pd.DataFrame(Y.reshape(40, -1), index=index, columns=columns), Y),
        (pd.DataFrame(Y[:, 0], index=index, columns=list("pqrs")), Y[:, 0]),
    ):
        model = searched(make, inputs, outputs, **parameters)
        held_out = model.held_out_predictions(inputs, outputs)
        like = model.predict(inputs)
        assert isinstance(held_out, pd.DataFrame)
        pd.testing.assert_index_equal(held_out.index, like.index)
        pd.testing.assert_index_equal(held_out.columns, like.columns)
        expected = predicted(make, X, values, **parameters)
        assert_allclose(held_out, expected.reshape(40, -1), rtol=1e-9)


def test_held_out_predictions_of_flat_outputs_are_flat():
    X, Y = noisy()
    model = searched(HOLRRCV, X, Y.reshape(40, -1), output_shape=(3, 4))
    held_out = model.held_out_predictions(X, Y.reshape(40, -1))
    assert held_out.shape == model.predict(X).shape == (40, 12)
    expected = predicted(HOLRRCV, X, Y)
    assert_allclose(held_out, expected.reshape(40, -1), rtol=1e-9)


@pytest.mark.parametrize(
    ("make", "parameters"),
    [(RLSCV, {}), (HOLRRCV, {}), (HOLRRCV, {"selection": "min"}), (KernelHOLRRCV, GAMMAS)],
    ids=name_of,
)
def test_held_out_predictions_of_every_array_library_are_those_of_numpy(make, parameters, xp):
    X, Y = noisy()
    cv = ShuffleSplit(3, test_size=0.3, random_state=0)
    here = predicted(make, X, Y, cv=cv, **parameters)
    there = predicted(make, xp.asarray(X), xp.asarray(Y), cv=cv, **parameters)
    found = there if isinstance(there, np.ndarray) else xp.to_numpy(there)
    assert_allclose(found, here, rtol=1e-7, atol=1e-8)
    assert np.isnan(here).any()


# ---------------------------------------------------------------- missing outputs


def incomplete():
    X, Y = noisy()
    missing = with_missing(Y, 0.2)
    missing[[5, 30]] = np.nan
    return X, Y, missing


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
@pytest.mark.parametrize("selection", ["min", "auto"])
def test_missing_entries_have_held_out_predictions(make, selection):
    """Not those of samples without any observed output, which no fit uses."""
    X, Y, missing = incomplete()
    given = {} if make is RLSCV else {"selection": selection}
    model = searched(make, X, missing, missing="ignore", **given)
    held_out = model.held_out_predictions(X, missing)
    assert held_out.shape == Y.shape
    assert np.isnan(held_out[[5, 30]]).all()
    others = np.delete(np.arange(40), [5, 30])
    assert np.isfinite(held_out[others]).all()
    # They predict what was hidden from the search about as well as what it has seen.
    away = np.square(Y - held_out)[others]
    hidden = np.isnan(missing)[others]
    assert away[hidden].mean() < 1.5 * away[~hidden].mean()
    assert away[hidden].mean() < 0.3 * np.square(Y - Y.mean(axis=0))[others][hidden].mean()


def test_held_out_predictions_of_ridge_regression_with_missing_outputs_are_exact():
    X, _, missing = incomplete()
    model = searched(RLSCV, X, missing, missing="ignore")
    held_out = model.held_out_predictions(X, missing)
    expected, errors = np.full(missing.shape, np.nan), []
    for train, test in KFold(3).split(X):
        fit = RLS(model.alpha_, missing="ignore").fit(X[train], missing[train])
        expected[test] = fit.predict(X[test])
        errors.append(np.nanmean(np.square(missing[test] - expected[test])))
    expected[[5, 30]] = np.nan
    assert_allclose(held_out, expected, rtol=1e-9)
    assert -model.best_score_ == pytest.approx(np.mean(errors), rel=1e-9)


@pytest.mark.parametrize("make", [LRRCV, HOLRRCV])
def test_held_out_predictions_with_missing_outputs_have_the_held_out_error(make):
    """Over the observed entries; that of a single rank up to what its rounds change."""
    X, Y = toy(40, noise=4.0, seed=4)
    missing = with_missing(Y, 0.2)
    for selection in ("stack", "min"):
        model = searched(make, X, missing, missing="ignore", selection=selection)
        held_out = model.held_out_predictions(X, missing)
        assert ("stack_weights_" in vars(model)) == (selection == "stack")
        away = np.square(missing - held_out)
        error = np.mean([np.nanmean(away[test]) for _, test in KFold(3).split(X)])
        tol = 1e-9 if selection == "stack" else 0.01
        assert error == pytest.approx(error_of_predictions(model), rel=tol)


def test_outputs_that_are_never_observed_have_no_held_out_predictions():
    X, _, missing = incomplete()
    missing[:, 1, 2] = np.nan
    for make in (RLSCV, LRRCV, HOLRRCV):
        model = searched(make, X, missing, missing="ignore")
        held_out = model.held_out_predictions(X, missing)
        assert_array_equal(np.isnan(held_out).all(axis=0), np.isnan(model.predict(X))[0])
        assert np.isnan(held_out).all(axis=0).sum() == 1
        assert np.isnan(held_out[:, 1, 2]).all()


def test_whole_slices_that_are_never_observed_leave_the_other_predictions_as_they_are():
    """The search runs without the slice, and its predictions are put back in their places."""
    X, Y = noisy()
    missing = Y.copy()
    missing[:, 1] = np.nan
    missing[7] = np.nan
    for make in (RLSCV, LRRCV, HOLRRCV):
        fold = np.arange(40) // 14
        alone = searched(
            make,
            np.delete(X, 7, axis=0),
            np.delete(np.delete(Y, 7, axis=0), 1, axis=1),
            cv=PredefinedSplit(np.delete(fold, 7)),
            selection="min",
        )
        alone_held_out = alone.held_out_predictions(
            np.delete(X, 7, axis=0), np.delete(np.delete(Y, 7, axis=0), 1, axis=1)
        )
        model = searched(
            make, X, missing, missing="ignore", selection="min", cv=PredefinedSplit(fold)
        )
        held_out = model.held_out_predictions(X, missing)
        assert np.isnan(held_out[7]).all()
        assert np.isnan(held_out[:, 1]).all()
        found = np.delete(np.delete(held_out, 7, axis=0), 1, axis=1)
        assert_allclose(found, alone_held_out, rtol=1e-8, atol=1e-9)


# ---------------------------------------------------------------- weights of outputs


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
@pytest.mark.parametrize(
    "weight",
    [
        [np.array([1.0, 4.0, 0.5]), None],
        [None, np.array([0.1, 1.0, 10.0, 3.0])],
        np.multiply.outer([1.0, 4.0, 0.5], [0.1, 1.0, 10.0, 3.0]),
        [np.array([1.0, 0.0, 0.5]), None],
    ],
    ids=["first mode", "second mode", "array", "zero"],
)
def test_held_out_predictions_with_output_weights_are_in_the_units_of_y(make, weight):
    X, Y = noisy()
    splits = list(KFold(3).split(X))
    model = searched(make, X, Y, output_weight=weight, selection="min")
    held_out = model.held_out_predictions(X, Y)
    expected = by_hand(model, X, Y, splits)
    assert model.best_estimator_.output_weight is not None
    assert_allclose(held_out, expected, rtol=1e-7, atol=1e-8)
    # An output without weight is not fitted.
    left_out = isinstance(weight, list) and weight[0] is not None and 0 in weight[0]
    assert_array_equal(np.isnan(held_out).all(axis=(0, 2)), [False, left_out, False])
    v = weight
    if isinstance(weight, list):
        rows, columns = weight
        v = np.multiply.outer(
            np.ones(3) if rows is None else rows, np.ones(4) if columns is None else columns
        )
    squares = v * np.square(Y - np.nan_to_num(held_out))
    error = np.mean([squares[test].mean() for _, test in splits]) / v.mean()
    assert error == pytest.approx(-model.best_score_, rel=1e-9)
    kept = v > 0
    plain = [np.square(Y - held_out)[test][:, kept].mean() for _, test in splits]
    assert np.mean(plain) == pytest.approx(model.cv_results_["unweighted_mse"], rel=1e-9)


def test_held_out_predictions_of_a_stack_with_output_weights_are_in_the_units_of_y():
    X, Y = noisy()
    v = np.multiply.outer([1.0, 4.0, 0.5], [0.1, 1.0, 10.0, 3.0])
    for make in (LRRCV, HOLRRCV):
        model = searched(make, X, Y, output_weight=v, selection="stack")
        held_out = model.held_out_predictions(X, Y)
        squares = v * np.square(Y - held_out) / v.mean()
        error = np.mean([squares[test].mean() for _, test in KFold(3).split(X)])
        assert error == pytest.approx(model.held_out_mse_, rel=1e-9)


def test_output_weights_and_missing_outputs_together():
    X, _, missing = incomplete()
    v = np.multiply.outer([1.0, 4.0, 0.5], [0.1, 1.0, 10.0, 3.0])
    model = searched(RLSCV, X, missing, missing="ignore", output_weight=v)
    held_out = model.held_out_predictions(X, missing)
    expected = np.full(missing.shape, np.nan)
    for train, test in KFold(3).split(X):
        fit = clone(model.best_estimator_).fit(X[train], missing[train])
        expected[test] = fit.predict(X[test])
    expected[[5, 30]] = np.nan
    assert_allclose(held_out, expected, rtol=1e-8)


# ---------------------------------------------------------------- what has no held-out predictions


REFUSED = "held_out_predictions needs a search over samples in memory"


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
def test_moments_have_no_samples_to_predict(make):
    X, Y = noisy()
    parts = [Moments.from_arrays(X[k::3], Y[k::3]) for k in range(3)]
    model = make(ALPHAS).fit_fold_moments(parts)
    assert model.held_out_mse_ > 0
    with pytest.raises(ValueError, match=REFUSED):
        model.held_out_predictions(X, Y)


@pytest.mark.parametrize(
    ("make", "parameters"), [*LINEAR, (KernelRLSCV, LANDMARKS), (KernelHOLRRCV, LANDMARKS)]
)
def test_held_out_predictions_of_data_on_disk_are_refused(make, parameters, tmp_path):
    X, Y = noisy()
    there = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
    model = make(ALPHAS, cv=3, **parameters)
    with memory_budget(2**10):
        model.fit(*there)
    with pytest.raises(ValueError, match=REFUSED):
        model.held_out_predictions(*there)
    # Those that fit in memory are read at once.
    found = model.fit(*there).held_out_predictions(*there)
    assert_allclose(found, model.fit(X, Y).held_out_predictions(X, Y), rtol=1e-9)


@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV])
def test_held_out_predictions_of_dask_arrays_are_refused(make):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = noisy()
    model = make(ALPHAS, cv=3).fit(da.from_array(X, chunks=10), da.from_array(Y, chunks=10))
    with pytest.raises(ValueError, match=REFUSED):
        model.held_out_predictions(X, Y)


@pytest.mark.parametrize(("make", "parameters"), [*LINEAR, *KERNEL], ids=name_of)
def test_pickles_have_held_out_predictions_and_files_do_not(make, parameters, tmp_path):
    X, Y = noisy()
    model = searched(make, X, Y, **parameters)
    model.save(tmp_path / "model.holrr")
    again = load(tmp_path / "model.holrr")
    with pytest.raises(ValueError, match=REFUSED):
        again.held_out_predictions(X, Y)
    assert again.held_out_mse_ == model.held_out_mse_
    assert_array_equal(again.predict(X), model.predict(X))
    copied = pickle.loads(pickle.dumps(model))
    expected = model.held_out_predictions(X, Y)
    assert_array_equal(copied.held_out_predictions(X, Y), expected)


def test_single_fits_have_no_held_out_predictions():
    X, Y = noisy()
    assert not hasattr(HOLRR(2).fit(X, Y), "held_out_predictions")
    assert not hasattr(searched(HOLRRCV, X, Y).best_estimator_, "held_out_predictions")
