"""Robust fits, `loss="huber"`: the weighted fits that they are, and what they are for."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

import reference
from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    RLS,
    RLSCV,
    KernelRLS,
    Moments,
    load,
    save,
    standard_errors,
    to_onnx,
)
from holrr.streaming import memory_budget
from problems import assert_same_state, on_disk, toy

MODELS = [RLS(0.5), LRR(2, 0.5), HOLRR(2, 0.5), HOLRR(2, 0.5, refine=True)]
SEARCHES = [RLSCV(), LRRCV(), HOLRRCV(), HOLRRCV(selection="min", cv=3)]
pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def named(estimator):
    return " ".join(repr(estimator).split())


def wrong(n=60, shape=(3, 4), seed=0, **options):
    """Data of which the outputs of sample 7 are five times what they should be."""
    X, Y = toy(n, shape=shape, seed=seed, **options)
    Y[7] *= 5
    return X, Y


# ---------------------------------------------------------------- the weighted fit


@pytest.mark.parametrize("model", [*MODELS, *SEARCHES], ids=named)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_that_of_the_squared_loss_with_the_weights_found(model, weighted):
    X, Y = wrong()
    v = np.random.default_rng(1).uniform(0.2, 2, len(X)) if weighted else None
    found = clone(model).set_params(loss="huber").fit(X, Y, v)
    w = found.robust_weight_
    assert w.shape == (60,)
    assert np.all((w > 0) & (w <= 1))
    assert w[7] < 0.1
    total = w if v is None else v * w
    expected = clone(model).fit(X, Y, total)
    for name, value in vars(expected).items():
        if name == "best_estimator_":
            value = vars(value) | {"loss": "huber", "robust_weight_": w}
            assert vars(found.best_estimator_).keys() == value.keys()
            assert_same_state(found.best_estimator_.tucker_, value["tucker_"])
        elif name != "loss":
            assert_same_state(vars(found)[name], value)
    assert set(vars(found)) - set(vars(expected)) == {"robust_weight_"}


def test_the_objective_is_that_with_the_weights_found():
    X, Y = wrong()
    model = RLS(0.5, loss="huber").fit(X, Y)
    args = X, Y, model.coef_, 0.5, model.intercept_
    expected = reference.objective(*args, model.robust_weight_)
    assert_allclose(model.objective_, expected, rtol=1e-9)
    assert model.objective_ < 0.5 * reference.objective(*args)


def test_constant_inputs_predict_the_mean_with_the_weights_found():
    _, Y = wrong()
    model = RLS(loss="huber").fit(np.ones((60, 2)), Y)
    w = model.robust_weight_
    assert_allclose(model.intercept_, np.tensordot(w / w.sum(), Y, 1))
    assert w[7] < 0.5


def test_the_weights_depend_on_the_data_and_not_on_rank_and_penalty():
    X, Y = wrong()
    expected = RLS(loss="huber").fit(X, Y).robust_weight_
    for model in (RLS(100.0), LRR(1), HOLRR((1, 2, 2), 0.0), RLSCV(), HOLRRCV(cv=3)):
        found = model.set_params(loss="huber").fit(X, Y).robust_weight_
        assert_array_equal(found, expected)
    without = RLS(loss="huber", fit_intercept=False).fit(X, Y).robust_weight_
    assert np.abs(without - expected).max() > 0.01


def test_the_chosen_estimator_fitted_again_is_the_same_model():
    X, Y = wrong()
    search = HOLRRCV(loss="huber", selection="min").fit(X, Y)
    assert search.best_estimator_.loss == "huber"
    again = clone(search.best_estimator_).fit(X, Y)
    assert_allclose(again.coef_, search.coef_, rtol=1e-9, atol=1e-12)
    assert_array_equal(again.robust_weight_, search.robust_weight_)


def test_a_refit_with_the_squared_loss_has_no_weights():
    X, Y = wrong()
    for model in (RLS(loss="huber"), RLSCV(loss="huber")):
        model.fit(X, Y).set_params(loss="squared").fit(X, Y)
        assert not hasattr(model, "robust_weight_")


def test_outputs_without_weight_have_no_influence_on_weights_of_samples():
    X, Y = toy(60)
    plain = HOLRR(2, loss="huber").fit(X, Y[:, 1:]).robust_weight_
    Y[7, 0] += 100.0
    v = [[0.0, 1.0, 1.0], None]
    for model in (HOLRR(2), HOLRRCV(cv=3)):
        model.set_params(loss="huber", output_weight=v)
        assert_allclose(model.fit(X, Y).robust_weight_, plain, atol=1e-9)
    assert HOLRR(2, loss="huber").fit(X, Y).robust_weight_[7] < 0.01


@pytest.mark.parametrize("model", [RLS(), HOLRR(2), RLSCV(), HOLRRCV(cv=3)], ids=named)
def test_missing_outputs_are_left_out_of_the_weights(model):
    X, Y = wrong(90)
    missing = np.random.default_rng(2).random(Y.shape) < 0.2
    Y[missing] = np.nan
    Y[11] = np.nan
    model = clone(model).set_params(missing="ignore")
    found = clone(model).set_params(loss="huber").fit(X, Y)
    w = found.robust_weight_
    assert w[7] < 0.1
    assert w[11] == 1
    assert found.n_dropped_ == 1
    expected = clone(model).fit(X, Y, w)
    assert_allclose(found.coef_, expected.coef_, rtol=1e-9, atol=1e-12)
    assert np.abs(found.coef_ - clone(model).fit(X, Y).coef_).max() > 0.1


# ---------------------------------------------------------------- what it is for


def problem(kind, seed):
    """90 training samples, and 300 others with the outputs that they have without noise."""
    rng = np.random.default_rng(seed)
    n = 390
    if kind == "spectra":
        at = np.linspace(0, 1, 200)
        peaks = np.exp(-0.5 * ((at - np.linspace(0.1, 0.9, 6)[:, None]) / 0.05) ** 2)
        parts = rng.gamma(2, 1, size=(n, 6))
        X = parts @ peaks + 0.02 * rng.normal(size=(n, 200))
    else:
        X = parts = rng.normal(size=(n, 8))
    A, B, C = (rng.normal(size=(d, 2)) for d in (parts.shape[1], 4, 5))
    F = np.einsum("na,ia,ja->nij", (parts - parts.mean(axis=0)) @ A, B, C)
    F = 1 + F / F.std()
    return X[:90], (F + 0.3 * rng.normal(size=F.shape))[:90], X[90:], F[90:]


def error(model, X, F):
    """Expected squared error on new samples, with the noise that they have."""
    return np.mean((model.predict(X) - F) ** 2) + 0.3**2


@pytest.mark.parametrize("search", [RLSCV(), LRRCV(), HOLRRCV()], ids=named)
@pytest.mark.parametrize("kind", ["small", "spectra"])
def test_one_wrong_sample_of_90_raises_the_error_by_less_than_a_tenth(kind, search):
    """A row of y, or of X, times five; the squared loss has errors of several times the size."""
    squared = []
    for seed in range(3):
        X, Y, others, F = problem(kind, seed)
        row = 10 + seed
        clean = error(clone(search).fit(np.delete(X, row, 0), np.delete(Y, row, 0)), others, F)
        for inputs in (False, True):
            A, B = X.copy(), Y.copy()
            (A if inputs else B)[row] *= 5
            model = clone(search).set_params(loss="huber").fit(A, B)
            assert error(model, others, F) < 1.1 * clean
            squared.append(error(clone(search).fit(A, B), others, F) / clean)
    assert np.mean(squared) > 1.1


@pytest.mark.parametrize("kind", ["small", "spectra"])
def test_clean_data_lose_less_than_two_percent(kind):
    ratios = []
    for seed in range(5):
        X, Y, others, F = problem(kind, seed)
        models = [RLSCV(loss=loss).fit(X, Y) for loss in ("huber", "squared")]
        ratios.append(np.divide(*(error(model, others, F) for model in models)))
    assert np.mean(ratios) < 1.005
    assert np.max(ratios) < 1.02


@pytest.mark.parametrize("search", [RLSCV(), HOLRRCV()], ids=named)
def test_held_out_errors_are_those_of_clean_data(search):
    X, Y, _, _ = problem("small", 0)
    clean = clone(search).fit(X, Y)
    Y[10] *= 5
    robust, squared = (
        clone(search).set_params(loss=loss).fit(X, Y) for loss in ("huber", "squared")
    )
    assert robust.held_out_mse_ == pytest.approx(clean.held_out_mse_, rel=0.1)
    assert squared.held_out_mse_ > 2 * clean.held_out_mse_
    assert_allclose(robust.noise_, clean.noise_, rtol=0.15)


def test_the_intercept_of_one_output_is_robust():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(100, 2)), rng.normal(size=100)
    y[:5] = 1e4
    assert abs(RLS(loss="huber").fit(X, y).intercept_) < 0.3
    assert RLS().fit(X, y).intercept_ > 400


def test_long_tailed_noise_has_smaller_errors():
    ratios = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, W = rng.normal(size=(100, 10)), rng.normal(size=(10, 6))
        noise = rng.normal(size=(100, 6)) / np.sqrt(rng.chisquare(3, size=(100, 1)) / 3)
        models = [RLS(loss=loss).fit(X, X @ W + noise) for loss in ("huber", "squared")]
        ratios.append(np.divide(*(np.square(model.coef_ - W).sum() for model in models)))
    assert np.mean(ratios) < 0.8


# ---------------------------------------------------------------- folds


def test_folds_of_wrong_samples_alone_are_warned_of():
    X, Y = wrong()
    search = RLSCV([0.1, 1.0], loss="huber", cv=LeaveOneOut())
    with pytest.warns(UserWarning, match=r"1 of 60 folds \(such as fold 7\).*loss='huber'"):
        search.fit(X, Y)


def test_large_folds_are_not_warned_of(recwarn):
    X, Y = wrong()
    RLSCV([0.1, 1.0], loss="huber", cv=KFold(5)).fit(X, Y)
    RLSCV([0.1, 1.0], cv=LeaveOneOut()).fit(X, Y)
    assert not [w for w in recwarn if "folds" in str(w.message)]


# ---------------------------------------------------------------- tools around it


def test_grid_search_and_pipelines_take_the_loss():
    X, Y = wrong()
    pipeline = make_pipeline(StandardScaler(), LRR(2))
    grid = GridSearchCV(pipeline, {"lrr__loss": ["squared", "huber"]}, cv=3).fit(X, Y)
    losses = grid.cv_results_["param_lrr__loss"]
    assert list(losses) == ["squared", "huber"]
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()
    assert clone(grid.best_estimator_).get_params()["lrr__loss"] in ("squared", "huber")


def test_robust_models_are_saved_and_loaded(tmp_path):
    X, Y = wrong()
    for model in (RLS(loss="huber"), HOLRRCV(loss="huber", cv=3)):
        save(model.fit(X, Y), tmp_path / "model.holrr")
        for again in (load(tmp_path / "model.holrr"), pickle.loads(pickle.dumps(model))):
            assert again.loss == "huber"
            assert_array_equal(again.robust_weight_, model.robust_weight_)
            assert_array_equal(again.predict(X), model.predict(X))


def test_onnx_graphs_predict_the_same():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    X, Y = wrong()
    model = HOLRR(2, loss="huber").fit(X, Y)
    graph = to_onnx(model).SerializeToString()
    session = runtime.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {session.get_inputs()[0].name: X})
    assert_allclose(found, model.predict(X), rtol=1e-9)


def test_labelled_data_have_the_weights_of_plain_ones():
    xr = pytest.importorskip("xarray")
    pd = pytest.importorskip("pandas")
    X, Y = wrong()
    x = pd.DataFrame(X, index=[f"s{i}" for i in range(60)], columns=list("abcde"))
    y = xr.DataArray(Y, dims=["sample", "u", "v"], coords={"sample": list(x.index)})
    for model in (HOLRR(2, loss="huber"), RLSCV(loss="huber")):
        expected = clone(model).fit(X, Y)
        found = model.fit(x, y)
        assert_allclose(found.robust_weight_, expected.robust_weight_, rtol=1e-10)
        assert list(x.index[found.robust_weight_ < 0.1]) == ["s7"]


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_arrays_of_other_libraries_have_the_weights_of_numpy(library):
    xp = pytest.importorskip(library)
    X, Y = wrong()
    for model in (RLS(loss="huber"), RLSCV([0.1, 1.0], loss="huber")):
        expected = clone(model).fit(X, Y)
        found = model.fit(xp.asarray(X), xp.asarray(Y))
        assert_allclose(found.robust_weight_, expected.robust_weight_, atol=1e-9)
        assert type(found.coef_) is type(xp.asarray(X))
        assert_allclose(np.asarray(found.coef_), expected.coef_, rtol=1e-8, atol=1e-10)


def test_standard_errors_have_the_same_weights_in_all_fits():
    X, Y = wrong()
    v = np.random.default_rng(1).uniform(0.5, 2, 60)
    for model in (HOLRR(2), RLSCV([0.1, 1.0]), HOLRRCV([0.5], cv=3, missing="ignore")):
        robust = clone(model).set_params(loss="huber").fit(X, Y, v)
        total = v * robust.robust_weight_
        found = standard_errors(robust, X, Y, sample_weight=v, n_groups=6)
        squared = clone(model).fit(X, Y, total)
        expected = standard_errors(squared, X, Y, sample_weight=total, n_groups=6)
        assert_allclose(found.coef.std_error, expected.coef.std_error, rtol=1e-9)
        assert found.ranks == expected.ranks


# ---------------------------------------------------------------- what is refused


def test_data_that_are_not_in_memory_are_refused(tmp_path):
    X, Y = toy(60)
    x, y = on_disk(tmp_path, "x", X), on_disk(tmp_path, "y", Y)
    needs = r"loss='huber' .* samples in memory.*cannot be used with {}.*loss='squared'"
    moments = Moments.from_arrays(X, Y)
    for model in (RLS(loss="huber"), HOLRR(2, loss="huber")):
        with memory_budget(2**10), pytest.raises(ValueError, match=needs.format("data that are")):
            model.fit(x, y)
        with pytest.raises(ValueError, match=needs.format("moments")):
            model.partial_fit(X, Y)
        with pytest.raises(ValueError, match=needs.format("moments")):
            model.fit_moments(moments)
        with pytest.raises(ValueError, match=needs.format("moments")):
            standard_errors(model, [moments, moments])
        with pytest.raises(TypeError, match=r"X is a sparse.*with loss='huber'"):
            model.fit(pytest.importorskip("scipy.sparse").csr_array(X), Y)
        assert not hasattr(model, "tucker_")
    search = HOLRRCV(loss="huber")
    with memory_budget(2**10), pytest.raises(ValueError, match=needs.format("data that are")):
        search.fit(x, y)
    with pytest.raises(ValueError, match=needs.format("moments")):
        search.fit_fold_moments([moments, moments])
    with pytest.raises(ValueError, match=needs.format("moments")):
        HOLRRCV(loss="huber").fit_fold_moments([moments, moments])


def test_dask_arrays_are_refused():
    da = pytest.importorskip("dask.array")
    X, Y = toy(60)
    with pytest.raises(ValueError, match=r"loss='huber'.*data that are read in chunks"):
        RLS(loss="huber").fit(da.from_array(X, chunks=20), da.from_array(Y, chunks=20))


@pytest.mark.parametrize("loss", ["hubr", None, 1.35])
def test_other_losses_are_refused(loss):
    with pytest.raises(InvalidParameterError, match=r"'loss' parameter of RLS must be a str among"):
        RLS(loss=loss).fit(*toy())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_entries_of_y_are_named(value):
    X, Y = toy()
    Y[9, 1, 3] = value
    for model in (RLS(loss="huber"), RLSCV(loss="huber")):
        with pytest.raises(ValueError, match=r"y.*\(9, 1, 3\)"):
            model.fit(X, Y)
    if np.isinf(value):
        Y[3, 0, 0] = np.nan
        with pytest.raises(ValueError, match=r"y.*infinity.*\(9, 1, 3\)"):
            RLS(loss="huber", missing="ignore").fit(X, Y)


def test_kernel_estimators_have_no_loss():
    with pytest.raises(TypeError, match="loss"):
        KernelRLS(loss="huber")
