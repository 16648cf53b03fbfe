"""Sparse inputs give the models of dense ones, and are never made dense."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import holrr
from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    RLS,
    RLSCV,
    KernelHOLRR,
    KernelHOLRRCV,
    KernelRLS,
    Moments,
    TraceNormRegression,
    standard_errors,
)

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

FORMATS = [
    getattr(sp, f"{name}_{kind}") for name in ("csr", "csc", "coo") for kind in ("array", "matrix")
]
SIZES = [(200, 12), (400, 300), (50, 80)]  # primal, primal by Cholesky, dual
MODELS = [RLS(), LRR(2), HOLRR(2), HOLRR((3, 2, 2), refine=True, fit_intercept=False)]
MODELS += [HOLRR(2, subspaces="response"), RLS(np.linspace(0.1, 5, 12).reshape(3, 4))]
SEARCHES = [RLSCV(), LRRCV(), HOLRRCV(), HOLRRCV(selection="1se", fit_intercept=False)]


def problem(n=200, d=12, density=0.15, *, seed=0, dtype=np.float64):
    """Inputs with an empty column, a constant one, and full ones far from zero; as dense arrays."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density)
    X[:, 1], X[:, 2], X[:, 3] = 0.0, 5.0, 1000 + rng.normal(size=n)
    X[: n // 2, 4] = 100 + rng.normal(size=n // 2)
    W = np.einsum("ir,jr,kr->ijk", *(rng.normal(size=(s, 2)) for s in (d, 3, 4)))
    Y = np.tensordot(X - X.mean(axis=0), W, 1) + 10 + rng.normal(size=(n, 3, 4))
    return X.astype(dtype), Y.astype(dtype)


def assert_near(found, expected, tol=1e-10):
    expected = np.asarray(expected)
    assert isinstance(found, (np.ndarray, float))
    assert_allclose(found, expected, rtol=tol, atol=tol * np.abs(expected).max())


# ---------------------------------------------------------------- fits


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_sparse_fit_is_the_dense_one(model, size):
    X, Y = problem(*size)
    expected, found = clone(model).fit(X, Y), clone(model).fit(sp.csr_array(X), Y)
    other = problem(*size, seed=1)[0]
    for inputs in (X, other):
        assert_near(found.predict(sp.csr_array(inputs)), expected.predict(inputs))
        assert_near(found.predict(inputs), expected.predict(inputs))
    assert_near(found.objective_, expected.objective_)
    assert_near(found.noise_, expected.noise_)
    std = expected.predict(other, return_std=True)[1]
    assert_near(found.predict(sp.csr_array(other), return_std=True)[1], std, 1e-8)
    assert found.score(sp.csr_array(X), Y) == pytest.approx(expected.score(X, Y), abs=1e-12)


@pytest.mark.parametrize("make", FORMATS, ids=lambda make: make.__name__)
@pytest.mark.parametrize("size", SIZES[::2], ids=str)
def test_every_format_is_taken(make, size):
    X, Y = problem(*size)
    expected, S = HOLRR(2).fit(X, Y), make(X)
    found = HOLRR(2).fit(S, Y)
    assert found.n_features_in_ == size[1]
    assert_near(found.coef_, expected.coef_)
    assert_near(found.predict(make(X)), expected.predict(X))
    assert_near(found.transform(make(X)), X @ found.factors_[0])
    assert type(S) is make
    assert_array_equal(S.toarray(), X)  # it was not changed


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("weights", ["integers", "decay"])
def test_weighted_sparse_fits_are_the_dense_ones(size, weights):
    """Weights that leave a sparse column nearly constant do not cancel digits."""
    X, Y = problem(*size)
    n = len(X)
    w = np.arange(n) % 3.0 if weights == "integers" else np.exp(-np.arange(n) / (n / 5))
    for model in (RLS(), HOLRR(2)):
        expected = clone(model).fit(X, Y, w)
        found = clone(model).fit(sp.csr_array(X), Y, w)
        assert_near(found.predict(X), expected.predict(X))
        assert_near(found.noise_, expected.noise_, 1e-8)
        assert found.score(sp.csr_array(X), Y, w) == pytest.approx(expected.score(X, Y, w))


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3, 2)], ids=str)
def test_outputs_of_every_order(shape):
    X, _ = problem(80, 9)
    Y = np.random.default_rng(0).normal(size=(80, *shape))
    found, expected = RLS().fit(sp.csr_array(X), Y), RLS().fit(X, Y)
    assert_near(found.predict(sp.csr_array(X)), expected.predict(X))


def test_single_precision():
    X, Y = problem(dtype=np.float32)
    found = HOLRR(2).fit(sp.csr_array(X), Y)
    assert found.coef_.dtype == found.predict(sp.csr_array(X)).dtype == np.float32
    expected = HOLRR(2).fit(X.astype(float), Y.astype(float)).predict(X)
    assert_allclose(found.predict(sp.csr_array(X)), expected, rtol=1e-3, atol=1e-3)


def test_integers_and_duplicates():
    X, Y = problem()
    whole = X.round().astype(np.int64)
    rows, columns = np.nonzero(whole)
    half = whole[rows, columns] / 2
    twice = sp.coo_array((np.r_[half, half], (np.r_[rows, rows], np.r_[columns, columns])), X.shape)
    expected = RLS().fit(whole.astype(float), Y).coef_
    for S in (sp.csr_array(whole), twice, sp.csr_array(whole != 0)):
        reference = expected if S.dtype.kind != "b" else RLS().fit(whole != 0, Y).coef_
        assert_near(RLS().fit(S, Y).coef_, reference)
    assert twice.nnz == 2 * rows.size  # it was not changed


@pytest.mark.parametrize("params", [
    {"blocks": {"a": [0, 1, 2, 3], "b": list(range(4, 12))}, "alpha": {"a": 1.0, "b": 10.0}},
    {"input_shape": (3, 4), "input_rank": (2, 2)},
    {"own": [(0, 0)], "input_shape": (3, 4)},
    {"output_shape": (3, 4)},
], ids=str)  # fmt: skip
def test_parameters_work_as_with_dense_inputs(params):
    X, Y = problem()
    Y = Y.reshape(len(Y), -1) if "output_shape" in params else Y
    expected = HOLRR(2).set_params(**params).fit(X, Y)
    found = HOLRR(2).set_params(**params).fit(sp.csr_array(X), Y)
    for a, b in zip(found.predict(sp.csr_array(X), True), expected.predict(X, True), strict=True):
        assert_near(a, b, 1e-9)


def test_outputs_that_are_never_observed_are_left_out():
    X, Y = problem()
    Y[:, 1, 2] = Y[:, 2] = np.nan
    for model in (RLS(missing="ignore"), HOLRR(2, missing="ignore")):
        expected, found = clone(model).fit(X, Y), clone(model).fit(sp.csr_array(X), Y)
        assert_allclose(found.predict(sp.csr_array(X)), expected.predict(X), rtol=1e-6, atol=1e-6)
        assert found.score(sp.csr_array(X), Y) == pytest.approx(expected.score(X, Y), abs=1e-9)


def test_penalised_estimators_take_sparse_inputs():
    model = TraceNormRegression(1.0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 8)) * (rng.random((150, 8)) < 0.3)
    Y = np.tensordot(X, rng.normal(size=(8, 3, 4)), 1) + rng.normal(size=(150, 3, 4))
    expected, found = clone(model).fit(X, Y), clone(model).fit(sp.csr_array(X), Y)
    assert_allclose(found.predict(sp.csr_array(X)), expected.predict(X), rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------- moments and batches


@pytest.mark.parametrize("grams", [False, True])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_moments_of_sparse_inputs(grams, offset):
    X, Y = problem()
    Y = Y + offset
    expected = Moments.from_arrays(X, Y, response_grams=grams)
    found = Moments.from_arrays(sp.csr_array(X), Y, response_grams=grams)
    scale = np.sqrt(np.diagonal(expected.Sxx))
    scale = np.where(scale > 0, scale, 1.0)
    assert_allclose(
        found.Sxx / np.outer(scale, scale), expected.Sxx / np.outer(scale, scale), atol=1e-12
    )
    ratio = scale[:, None, None] * np.sqrt(expected.squares)
    assert_allclose(found.Sxy / ratio, expected.Sxy / ratio, atol=1e-12)
    for name in ("mean_x", "mean_y", "squares", "syy", "weight", "n_samples", "dtype"):
        assert_array_equal(getattr(found, name), getattr(expected, name)) if isinstance(
            getattr(expected, name), (str, int)
        ) else assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-13)
    assert_array_equal(found.Sxx, found.Sxx.T)
    if grams:
        for G, H in zip(found.response_grams, expected.response_grams, strict=True):
            assert_near(G, H)


def test_batches_may_be_sparse():
    X, Y = problem()
    S = sp.csr_array(X)
    parts = [(S[:50], Y[:50]), (X[50:120], Y[50:120]), (S[120:].tocoo(), Y[120:], np.ones(80))]
    expected = HOLRR(2).fit(X, Y)
    moments = Moments.from_batches(parts)
    assert_near(HOLRR(2).fit_moments(moments).predict(X), expected.predict(X))
    model = HOLRR(2)
    for batch in parts:
        model.partial_fit(*batch)
    assert_near(model.predict(S), expected.predict(X))
    decayed = HOLRR(2).partial_fit(*parts[0]).partial_fit(S[50:], Y[50:], decay=0.5)
    w = np.repeat([0.5, 1.0], [50, 150])
    assert_near(decayed.predict(S), HOLRR(2).fit(X, Y, w).predict(X))


# ---------------------------------------------------------------- searches


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("model", SEARCHES, ids=str)
def test_a_sparse_search_is_the_dense_one(model, size):
    X, Y = problem(*size)
    model = clone(model).set_params(alphas=[1.0, 10.0, 100.0], cv=3)
    expected, found = clone(model).fit(X, Y), clone(model).fit(sp.csr_array(X), Y)
    assert found.best_params_ == expected.best_params_
    assert_allclose(found.cv_results_["mean_mse"], expected.cv_results_["mean_mse"], rtol=1e-8)
    assert_near(found.predict(sp.csr_array(X)), expected.predict(X), 1e-9)
    for kind in ("entry", "simultaneous"):
        bounds = expected.predict_interval(X, 0.9, kind=kind)
        for a, b in zip(
            found.predict_interval(sp.csr_array(X), 0.9, kind=kind), bounds, strict=True
        ):
            assert_near(a, b, 1e-7)


@pytest.mark.parametrize(
    "cv", [KFold(4, shuffle=True, random_state=0), ShuffleSplit(3, random_state=0)], ids=str
)
def test_searches_with_shuffled_folds_and_weights(cv):
    X, Y = problem()
    w = np.arange(len(X)) % 4.0
    model = HOLRRCV([1.0, 10.0], cv=cv)
    expected, found = clone(model).fit(X, Y, w), clone(model).fit(sp.csr_array(X), Y, w)
    assert_allclose(found.cv_results_["mean_mse"], expected.cv_results_["mean_mse"], rtol=1e-8)
    for a, b in zip(found.predict_interval(X, 0.8), expected.predict_interval(X, 0.8), strict=True):
        assert_near(a, b, 1e-7)


def test_a_wide_search_forms_no_square_matrix_of_the_features():
    """Neither the fits of the folds nor the final one, a stack of several penalties included."""
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 6000), density=0.01, rng=rng, format="csr")
    Y = np.tensordot(X @ rng.normal(size=(6000, 2)), rng.normal(size=(2, 3, 4)), 1)
    model = HOLRRCV([1.0, 10.0, 100.0], cv=3)
    tracemalloc.start()
    found = model.fit(X, Y + rng.normal(size=Y.shape)).predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.isfinite(found).all()
    assert peak < 8 * 6000**2 / 10  # X'X


def test_wide_searches_name_a_bad_entry():
    X, Y = problem(50, 80)
    Y[9, 1, 3] = np.nan
    with pytest.raises(ValueError, match=r"y contains NaN at index \(9, 1, 3\)"):
        HOLRRCV([1.0, 10.0, 100.0], cv=3).fit(sp.csr_array(X), Y)


@pytest.mark.parametrize("params", [
    {"blocks": {"a": list(range(40)), "b": list(range(40, 80))}},
    {"missing": "ignore"},
], ids=str)  # fmt: skip
def test_parameters_of_wide_searches(params):
    X, Y = problem(50, 80)
    if "missing" in params:
        Y[:, 1, 2] = Y[:, 2] = np.nan
    model = HOLRRCV([1.0, 10.0], cv=3, max_rank=3, **params)
    expected, found = clone(model).fit(X, Y), clone(model).fit(sp.csr_array(X), Y)
    assert_allclose(found.cv_results_["mean_mse"], expected.cv_results_["mean_mse"], rtol=1e-5)
    assert_allclose(found.predict(sp.csr_array(X)), expected.predict(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_default_penalties(size):
    X, Y = problem(*size)
    X[5], Y[5] = X[4], Y[4]  # a repetition adds no direction
    expected = RLSCV().fit(X, Y)
    found = RLSCV().fit(sp.csr_array(X), Y)
    assert_allclose(found.alpha_, expected.alpha_, rtol=1e-9)


def test_standard_errors_of_sparse_inputs():
    X, Y = problem()
    model = RLS()
    expected = standard_errors(model.fit(X, Y), X, Y)
    found = standard_errors(model.fit(sp.csr_array(X), Y), sp.csr_array(X), Y)
    assert_near(found.coef.std_error, expected.coef.std_error, 1e-8)


# ---------------------------------------------------------------- never dense


@pytest.mark.parametrize("model", [RLS(), HOLRRCV([1.0, 10.0], cv=3)], ids=str)
def test_inputs_are_never_made_dense(model):
    rng = np.random.default_rng(0)
    S = sp.random_array((400_000, 100), density=0.005, rng=rng, format="csr")  # 320 MB if dense
    y = S @ rng.normal(size=100) + rng.normal(size=400_000)
    tracemalloc.start()
    model.fit(S, y)
    model.predict(S)
    model.predict(S, return_std=True)
    model.score(S, y)
    Moments.from_arrays(S, y)
    if hasattr(model, "cv_results_"):
        model.predict_interval(S, 0.9)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 400_000 * 100 / 2


def test_moments_of_one_sparse_sample():
    X, Y = problem(1, 6)
    found = Moments.from_arrays(sp.csr_array(X), Y)
    assert_array_equal(found.mean_x, X[0])
    assert_array_equal(found.Sxx, np.zeros((6, 6)))
    assert_array_equal(found.Sxy, np.zeros((6, 3, 4)))


# ---------------------------------------------------------------- pipelines and files


def test_pipelines_pass_sparse_inputs():
    rng = np.random.default_rng(0)
    text = rng.choice(["a", "b", "c", "d"], size=(60, 3))
    Y = rng.normal(size=(60, 2, 3))
    expected = make_pipeline(OneHotEncoder(sparse_output=False), HOLRR(2)).fit(text, Y)
    found = make_pipeline(OneHotEncoder(), HOLRR(2)).fit(text, Y)
    assert_near(found.predict(text), expected.predict(text))
    words = [" ".join(row) for row in rng.choice(["sun", "rain", "wind", "fog"], size=(60, 5))]
    model = make_pipeline(CountVectorizer(), HOLRRCV([1.0, 10.0], cv=3)).fit(words, Y)
    assert model.predict(words).shape == (60, 2, 3)


def test_a_model_of_sparse_inputs_is_saved(tmp_path):
    X, Y = problem()
    model = HOLRRCV([1.0, 10.0], cv=3).fit(sp.csr_array(X), Y)
    model.save(tmp_path / "model")
    again = holrr.load(tmp_path / "model")
    for other in (again, pickle.loads(pickle.dumps(model))):
        assert_array_equal(other.predict(sp.csr_array(X)), model.predict(sp.csr_array(X)))


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "model", [KernelRLS(), KernelRLS(landmarks=5), KernelHOLRR(), KernelHOLRRCV()], ids=str
)
def test_kernels_refuse_sparse_inputs(model):
    X, Y = problem(40)
    name = type(model).__name__
    message = rf"X is a sparse csr_array.*for {name} dense data are needed: use X\.toarray\(\)"
    with pytest.raises(TypeError, match=message):
        clone(model).fit(sp.csr_array(X), Y)
    fitted = clone(model).fit(X, Y)
    for use in (fitted.predict, fitted.transform, lambda S: fitted.score(S, Y)):
        with pytest.raises(TypeError, match=message):
            use(sp.csr_array(X))


@pytest.mark.parametrize("n", [200, 8])
@pytest.mark.parametrize(
    "model", [RLS(), HOLRR((2, 2, 2)), HOLRRCV([0.1, 1.0], cv=3), RLSCV([0.1, 1.0], cv=3)]
)
def test_weights_of_outputs_are_those_of_dense_inputs(model, n):
    X, Y = problem(n)
    weights = [np.array([1.0, 2.0, 0.0]), np.linspace(0.5, 2.0, 4)]
    for given in (weights, [np.array([1.0, 2.0, 3.0]), np.ones(4)]):
        dense, sparse = (
            clone(model).set_params(output_weight=given).fit(A, Y) for A in (X, sp.csr_array(X))
        )
        found, expected = sparse.predict(X), dense.predict(X)
        assert_array_equal(np.isnan(found), np.isnan(expected))
        assert_near(np.nan_to_num(found), np.nan_to_num(expected), 1e-9)


def test_methods_that_need_dense_inputs_raise_an_error_that_names_the_remedy():
    X, Y = problem(40)
    S = sp.csr_array(X)
    model = RLS(blocks={"a": [0, 1], "b": list(range(2, 12))}).fit(S, Y)
    refused = r"X is a sparse.*dense data are needed: use X\.toarray\(\)"
    for use in (lambda: model.predict_blocks(S), lambda: model.score_blocks(S, Y)):
        with pytest.raises(TypeError, match=refused):
            use()
    with pytest.raises(TypeError, match=r"X\['a'\] is a sparse.*dense data are needed"):
        RLS().fit({"a": S, "b": X}, Y)
    with pytest.raises(ValueError, match=r"held_out_predictions needs .* from a sparse X"):
        HOLRRCV(cv=3).fit(S, Y).held_out_predictions(S, Y)
    with pytest.raises(ValueError, match=r"NaN .*call .* toarray\(\) on a sparse X first"):
        RLS(missing="ignore").fit(S, np.where(np.arange(40)[:, None, None] == 7, np.nan, Y))
    but_one = Y.copy()
    but_one[np.arange(40) != 7, 0, 0] = np.nan  # an output that is observed in one sample
    with pytest.raises(ValueError, match=r"samples with a sparse X must lack the same outputs"):
        RLS(missing="ignore").fit(S, but_one)


def test_bad_sparse_inputs_raise():
    X, Y = problem(40)
    for bad, what in ((np.nan, "NaN"), (-np.inf, "infinity")):
        wrong = X.copy()
        wrong[7, 5] = bad
        message = rf"X contains {what} at index \(7, 5\).*Drop these samples \(1 of 40\)"
        with pytest.raises(ValueError, match=message):
            RLS().fit(sp.csc_array(wrong), Y)
        with pytest.raises(ValueError, match=message):
            RLS().fit(X, Y).predict(sp.coo_array(wrong))
    with pytest.raises(ValueError, match="Complex data not supported"):
        RLS().fit(sp.csr_array(X + 1j), Y)
    with pytest.raises(ValueError, match="same number of samples"):
        RLS().fit(sp.csr_array(X), Y[:30])
    with pytest.raises(ValueError, match="0 sample"):
        RLS().fit(sp.csr_array(X)[:0], Y[:0])
    with pytest.raises(ValueError, match=r"X has 5 features.*expecting 12"):
        RLS().fit(X, Y).predict(sp.csr_array(X[:, :5]))
    with pytest.raises(TypeError, match="y is a sparse"):
        RLS().fit(X, sp.csr_array(Y[:, 0]))


@pytest.mark.filterwarnings("ignore:pandas.DataFrame with sparse columns")
def test_tables_of_sparse_columns_say_what_to_pass():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = problem(40)
    table = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X))
    model = RLS().fit(X, Y)
    for call in (lambda: RLS().fit(table, Y), lambda: model.predict(table)):
        with pytest.raises(TypeError, match=r"columns are all sparse\. Pass X\.sparse\.to_coo\(\)"):
            call()
    assert_near(RLS().fit(table.sparse.to_coo(), Y).coef_, model.coef_)
    table[0] = table[0].sparse.to_dense()  # one dense column makes a dense table
    assert_near(RLS().fit(table, Y).coef_, model.coef_)


def test_tiny_penalties_warn_where_digits_are_lost():
    X, Y = problem(50, 80)
    X[:, 6] = X[:, 5] * (1 + 1e-9)
    S, Y = sp.csr_array(np.vstack([X, X]))[:60], np.concatenate([Y, Y])[:60]
    with pytest.warns(UserWarning, match=r"XX' is ill-conditioned.*sparse inputs.*X\.toarray\(\)"):
        RLS(0.0).fit(S, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RLS(1e-3).fit(S, Y)
