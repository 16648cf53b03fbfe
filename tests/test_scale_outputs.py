"""`scale_outputs` of every estimator equals outputs that are divided by hand."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV

from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    MLMTNC,
    RLS,
    RLSCV,
    KernelHOLRR,
    KernelHOLRRCV,
    KernelLRR,
    KernelLRRCV,
    KernelRLS,
    KernelRLSCV,
    Moments,
    TraceNormRegression,
    load,
    standard_errors,
)
from holrr.diagnostics import find_outliers, vip
from holrr.report import make_report
from holrr.streaming import memory_budget
from problems import on_disk, toy, with_missing

pytestmark = pytest.mark.filterwarnings(
    "ignore:The best penalty",
    "ignore:landmarks=",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)

UNITS = "different units"
TOL = 1e-10
GRID = {"alphas": [0.1, 1.0, 10.0], "cv": 3}
LANDMARKS = np.random.default_rng(3).normal(size=(12, 5)) + 1.0
# Not a product over the modes.
SCALE = 10.0 ** np.random.default_rng(1).uniform(-3, 3, size=(3, 4))


def data(n=60, **options):
    """Inputs, outputs in one unit, and the same outputs in many units."""
    X, Y = toy(n=n, noise=1.0, **options)
    return X, Y, Y * SCALE


def near(found, expected, scale=1.0):
    """Assert that values in the user's units equal those of the divided outputs."""
    found, expected = np.asarray(found) / scale, np.asarray(expected)
    assert_allclose(found, expected, rtol=TOL, atol=TOL * np.nanmax(np.abs(expected), initial=1.0))


def same_fit(found, expected, X, y, scale):
    """Assert that a fit with `scale_outputs` is the fit to the divided outputs, times the scale."""
    near(found.output_scale_, scale)
    near(found.predict(X), expected.predict(X), scale)
    near(found.intercept_, expected.intercept_, scale)
    near(found.score(X, y), expected.score(X, y / scale))
    for name in ("coef_", "dual_coef_", "own_coef_", "noise_"):
        assert hasattr(found, name) == hasattr(expected, name)
        if hasattr(expected, name):
            near(getattr(found, name), getattr(expected, name), scale)
    for name in ("objective_", "held_out_mse_", "null_mse_", "ridge_mse_", "best_score_", "alpha_"):
        assert hasattr(found, name) == hasattr(expected, name)
        if hasattr(expected, name):
            near(getattr(found, name), getattr(expected, name))
    if hasattr(expected, "noise_"):
        near(found.predict(X, return_std=True)[1], expected.predict(X, return_std=True)[1], scale)
    if hasattr(expected, "predict_interval"):
        for a, b in zip(found.predict_interval(X), expected.predict_interval(X), strict=True):
            near(a, b, scale)
        near(found.best_estimator_.predict(X), expected.predict(X), scale)
        near(found.cv_results_["mean_mse"], expected.cv_results_["mean_mse"])


# ---------------------------------------------------------------- every estimator, every source


@pytest.mark.parametrize("given", ["std", "array"])
def test_scale_equals_outputs_that_are_divided_by_hand(row, given):
    X, _, Z = data()
    scale = Z.std(axis=0) if given == "std" else SCALE
    params = row.pinned(X)
    found = row.make(**params, scale_outputs="std" if given == "std" else SCALE).fit(X, Z)
    same_fit(found, row.make(**params).fit(X, Z / scale), X, Z, scale)


def test_sample_weights_enter_the_standard_deviations(row):
    X, _, Z = data()
    w = np.random.default_rng(2).integers(0, 3, size=len(X)).astype(float)
    mean = np.average(Z, axis=0, weights=w)
    scale = np.sqrt(np.average((Z - mean) ** 2, axis=0, weights=w))
    params = row.pinned(X)
    found = row.make(**params, scale_outputs="std").fit(X, Z, w)
    near(found.output_scale_, scale)
    near(found.predict(X), row.make(**params).fit(X, Z / scale, w).predict(X), scale)


@pytest.mark.rows("representative")
@pytest.mark.parametrize("weighted", [False, True], ids=["", "weighted"])
def test_arrays_of_other_libraries(row, other_xp, weighted):
    (X, _, Z), xp = data(), other_xp
    w = np.random.default_rng(1).uniform(size=len(X)) if weighted else None
    expected = row.make(scale_outputs="std").fit(X, Z, w)
    weights = None if w is None else xp.asarray(w)
    found = row.make(scale_outputs="std").fit(xp.asarray(X), xp.asarray(Z), weights)
    predicted = found.predict(xp.asarray(X))
    assert xp.owns(predicted)
    assert xp.owns(found.output_scale_)
    near(xp.to_numpy(found.output_scale_) / expected.output_scale_, np.ones((3, 4)))
    row.near(xp.to_numpy(predicted) / SCALE, expected.predict(X) / SCALE)


def test_single_precision(row):
    X, _, Z = (A.astype(np.float32) for A in data())
    found = row.make(scale_outputs="std").fit(X, Z)
    assert found.predict(X).dtype == np.float32
    expected = row.make(scale_outputs="std").fit(X.astype(float), Z.astype(float)).predict(X)
    assert_allclose(
        found.predict(X) / SCALE, expected / SCALE, atol=1e-3 * np.abs(expected / SCALE).max()
    )


SOURCES = ["numpy", "pandas", "levels", "polars", "xarray", "dataset", "disk", "dask", "sparse"]


def in_source(kind, folder, X, Y):
    """The same data as a user of another library has them; Y as a matrix for tables."""
    if kind == "disk":
        return on_disk(folder, f"X{Y.sum()}", X), on_disk(folder, f"Y{Y.sum()}", Y)
    if kind == "dask":
        da = pytest.importorskip("dask.array")
        return da.from_array(X, chunks=(17, 3)), da.from_array(Y, chunks=(17, 2, 3))
    if kind == "sparse":
        return pytest.importorskip("scipy.sparse").csr_array(X), Y
    if kind in ("pandas", "levels"):
        pd = pytest.importorskip("pandas")
        names = pd.MultiIndex.from_product([list("abc"), list("wxyz")], names=["u", "v"])
        names = names if kind == "levels" else [f"{a}{b}" for a, b in names]
        return pd.DataFrame(X), pd.DataFrame(Y.reshape(len(Y), -1), columns=names)
    if kind == "polars":
        pl = pytest.importorskip("polars")
        names = [f"y{k}" for k in range(12)]
        return X, pl.DataFrame(Y.reshape(len(Y), -1), schema=names, orient="row")
    if kind in ("xarray", "dataset"):
        xr = pytest.importorskip("xarray")
        coords = {"variable": list("abc"), "month": [1, 2, 3, 4]}
        y = xr.DataArray(Y, dims=("time", "variable", "month"), coords=coords)
        y = y if kind == "xarray" else y.to_dataset("variable")
        return xr.DataArray(X, dims=("time", "feature")), y
    return X, Y


MODELS = [
    RLS(),
    LRR(2),
    HOLRR(2),
    HOLRRCV(**GRID, max_rank=2),
    KernelHOLRR(2, landmarks=LANDMARKS),
    KernelHOLRRCV(**GRID, max_rank=2, gammas=[0.1], landmarks=LANDMARKS),
    TraceNormRegression(1.0, tol=1e-12),
    MLMTNC(2, beta=0.1, random_state=0),
]


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_scale_equals_division_for_data_of_every_kind(model, kind, tmp_path):
    if kind == "sparse" and not model.__sklearn_tags__().input_tags.sparse:
        pytest.skip("does not fit sparse inputs")
    X, Y, _ = data()
    Z = Y * SCALE
    # In tables and Datasets other orders of the outputs are other shapes.
    with memory_budget(2**13 if kind == "disk" else 2**30):
        found = clone(model).set_params(scale_outputs="std").fit(*in_source(kind, tmp_path, X, Z))
        s = Z.std(axis=0)
        expected = clone(model).fit(*in_source(kind, tmp_path, X, Z / s))
        given = clone(model).set_params(scale_outputs=found.output_scale_)
        given = given.fit(*in_source(kind, tmp_path, X, Z))
    flat = in_source(kind, tmp_path, X, np.broadcast_to(s, Z.shape))[1]
    flat = flat.to_dataarray("variable").transpose("time", ...) if kind == "dataset" else flat
    new = in_source("numpy" if kind in ("disk", "dask") else kind, tmp_path, X, Z)[0]
    a, b, c = (as_array(m.predict(new)) for m in (found, expected, given))
    near(a, b, np.asarray(flat))
    near(c, b, np.asarray(flat))
    near(found._output_shape, expected._output_shape)


def as_array(predicted):
    if hasattr(predicted, "data_vars"):
        predicted = predicted.to_dataarray("variable").transpose("time", ...)
    return np.asarray(predicted)


@pytest.mark.rows("takes_moments")
def test_moments_are_divided(row):
    if row.params.get("subspaces") == "response":
        pytest.skip("Gram matrices of the outputs cannot be divided")
    X, _, Z = data()
    parts = [Moments.from_arrays(X[k::2], Z[k::2]) for k in range(2)]
    total = sum(parts)
    expected = row.make(scale_outputs="std").fit(X, Z)
    for scale in ("std", Z.std(axis=0)):
        found = row.make(scale_outputs=scale).fit_moments(total)
        row.near(found.predict(X) / Z.std(axis=0), expected.predict(X) / Z.std(axis=0))
        near(found.output_scale_, Z.std(axis=0))
    same = Moments.from_arrays(X, Z / Z.std(axis=0))
    near(found.predict(X), row.make().fit_moments(same).predict(X), Z.std(axis=0))
    assert found.moments_ is total


@pytest.mark.rows("batches")
def test_batches_have_the_standard_deviations_so_far(row):
    if row.params.get("subspaces") == "response":
        pytest.skip("Gram matrices of the outputs cannot be divided")
    X, _, Z = data()
    landmarks = {} if row.params.get("landmarks") is None else {"landmarks": LANDMARKS}
    model = row.make(scale_outputs="std", **landmarks)
    for end in (20, 60):
        start = 0 if end == 20 else 20
        model.partial_fit(X[start:end], Z[start:end])
        s = Z[:end].std(axis=0)
        expected = row.make(**landmarks).partial_fit(X[:end], Z[:end] / s)
        near(model.output_scale_, s)
        near(model.predict(X), expected.predict(X), s)
        near(model.noise_, expected.noise_, s) if row.has_noise else None


@pytest.mark.rows("takes_fold_moments")
def test_moments_of_folds_are_divided_by_the_scale_of_all_samples(row):
    X, _, Z = data()
    if row.params.get("subspaces") == "response":
        folds = [Moments.from_arrays(X[k::3], Z[k::3], response_grams=True) for k in range(3)]
        with pytest.raises(ValueError, match="scale_outputs cannot be combined with moments and"):
            row.make(scale_outputs="std").fit_fold_moments(folds)
        return
    s = Z.std(axis=0)
    folds = [Moments.from_arrays(X[k::3], Z[k::3]) for k in range(3)]
    found = row.make(scale_outputs="std").fit_fold_moments(folds)
    folds = [Moments.from_arrays(X[k::3], Z[k::3] / s) for k in range(3)]
    same_fit(found, row.make().fit_fold_moments(folds), X, Z, s)


def test_gram_matrices_of_outputs_are_not_divided():
    X, _, Z = data()
    model = HOLRR(2, subspaces="response", scale_outputs="std")
    with pytest.raises(ValueError, match="scale_outputs cannot be combined with moments and subsp"):
        model.partial_fit(X, Z)
    assert not hasattr(model, "tucker_")


# ---------------------------------------------------------------- with other features


def blocks(model):
    return clone(model).set_params(blocks={"a": [0, 1], "b": [2, 3, 4]})


@pytest.mark.parametrize(
    "options",
    [
        {"output_weight": [[1.0, 2.0, 0.5], None]},
        {"loss": "huber"},
        {"own": np.arange(60).reshape(5, 12) % 4 == 0},
        {"blocks": [[0, 1], [2, 3, 4]]},
        {"input_shape": (5, 1), "input_rank": (2, 1)},
        {"refine": True},
        {"fit_intercept": False},
        {"missing": "ignore"},
        {"missing": "ignore", "output_weight": [[1.0, 2.0, 0.5], None]},
    ],
    ids=lambda options: ", ".join(options),
)
@pytest.mark.parametrize("model", [HOLRR(2), HOLRRCV(**GRID, max_rank=2)], ids=["fit", "search"])
def test_scale_equals_division_with(options, model):
    X, Y, _ = data(80)
    if "missing" in options:
        Y = with_missing(Y, 0.1)
        Y[:, 1, 2] = np.nan  # never observed
        Y[4] = np.nan
    Z = Y * SCALE
    s = np.ones((3, 4))
    for j in np.ndindex(3, 4):
        seen = Z[:, *j][~np.isnan(Z[:, *j])]
        s[j] = seen.std() if seen.size else 1.0
    model = clone(model).set_params(**options)
    found = clone(model).set_params(scale_outputs="std").fit(X, Z)
    if "missing" in options:
        near(found.output_scale_, s)
        expected = clone(model).fit(X, Z / s)
        near(found.predict(X), expected.predict(X), s)
        near(found.noise_, expected.noise_, s)
        near(found.score(X, Z), expected.score(X, Z / s))
        return
    same_fit(found, clone(model).fit(X, Z / s), X, Z, s)


def test_predictions_and_scores_of_blocks():
    X, Y, Z = data()
    s = Z.std(axis=0)
    found = blocks(HOLRR(2, scale_outputs="std")).fit(X, Z)
    expected = blocks(HOLRR(2)).fit(X, Z / s)
    parts = found.predict_blocks(X)
    near(sum(parts.values()), found.predict(X))
    for name, part in expected.predict_blocks(X).items():
        near(parts[name], part, s)
    for average in ("pooled", "uniform", None):
        a, b = (m.score_blocks(X, y, average=average) for m, y in ((found, Z), (expected, Z / s)))
        if average != "uniform":  # its weights are those of the fit
            for name in b:
                near(a[name], b[name])
    near(sum(found.score_blocks(X, Z).values()), found.score(X, Z))
    near(vip(found, X), vip(expected, X))
    assert Y.shape == Z.shape


def test_held_out_predictions_and_outliers():
    X, _, Z = data()
    s = Z.std(axis=0)
    model = HOLRRCV(**GRID, max_rank=2)
    found = clone(model).set_params(scale_outputs="std").fit(X, Z)
    expected = clone(model).fit(X, Z / s)
    near(found.held_out_predictions(X, Z), expected.held_out_predictions(X, Z / s), s)
    near(find_outliers(found).residuals, find_outliers(expected).residuals)


@pytest.mark.parametrize(
    "model",
    [HOLRR(2), RLS(), HOLRRCV(**GRID, max_rank=2), KernelHOLRR(2), TraceNormRegression(1.0)],
    ids=lambda model: type(model).__name__,
)
def test_standard_errors_are_in_the_units_of_the_user(model):
    X, _, Z = data()
    s = Z.std(axis=0)
    model, scaled = clone(model), clone(model).set_params(scale_outputs="std")
    if hasattr(model, "cv"):
        model.fit(X, Z / s), scaled.fit(X, Z)
    options = {"n_groups": 6, "predict_at": X[:4]}
    found, expected = (
        standard_errors(scaled, X, Z, **options),
        standard_errors(model, X, Z / s, **options),
    )
    for name in ("coef", "intercept", "predictions"):
        a, b = getattr(found, name), getattr(expected, name)
        near(a.value, b.value, s)
        near(a.std_error, b.std_error, s)
    if hasattr(model, "fit_moments"):
        parts = [Moments.from_arrays(X[k::6], Z[k::6]) for k in range(6)]
        again = standard_errors(scaled, parts)
        parts = [Moments.from_arrays(X[k::6], Z[k::6] / s) for k in range(6)]
        near(again.coef.std_error, standard_errors(model, parts).coef.std_error, s)


def test_files_and_datasets_keep_the_scale(tmp_path):
    X, _, Z = data()
    for model in (HOLRR(2, scale_outputs=SCALE), HOLRRCV(**GRID, scale_outputs="std")):
        model.fit(X, Z).save(tmp_path / "model.holrr")
        again = load(tmp_path / "model.holrr")
        assert_array_equal(again.predict(X), model.predict(X))
        assert_array_equal(again.output_scale_, model.output_scale_)
        pytest.importorskip("xarray")
        found = model.to_dataset()
        near(found.coef.to_numpy(), model.coef_)
        near(found.noise.to_numpy(), model.noise_)
        near(found.output_scale.to_numpy(), model.output_scale_)


@pytest.mark.parametrize(
    "model",
    [HOLRR(2), blocks(RLS()), LRR(2), KernelHOLRR(2, kernel="rbf", landmarks=LANDMARKS)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("own", [False, True], ids=["", "own"])
def test_graphs_of_onnx_are_in_the_units_of_the_user(model, own):
    pytest.importorskip("onnx")
    ort = pytest.importorskip("onnxruntime")
    from holrr import to_onnx

    X, _, Z = data()
    model = clone(model).set_params(scale_outputs="std")
    if own:
        if "own" not in model.get_params():
            pytest.skip("has no own inputs")
        model.set_params(own=np.arange(60).reshape(5, 12) % 4 == 0)
    model.fit(X, Z)
    graph = to_onnx(model).SerializeToString()
    session = ort.InferenceSession(graph, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"X": X})
    near(found / SCALE, model.predict(X) / SCALE)


@pytest.mark.parametrize("cross_validate", [True, False])
def test_reports_use_the_divided_outputs(cross_validate):
    pytest.importorskip("matplotlib")
    X, _, Z = data()
    s = Z.std(axis=0)
    scaled, plain = HOLRR(2, scale_outputs="std").fit(X, Z), HOLRR(2).fit(X, Z / s)
    found = make_report(scaled, X, Z, cross_validate=cross_validate)
    expected = make_report(plain, X, Z / s, cross_validate=cross_validate)
    name = found.evaluation.names[0]
    for of in ("rmse", "r2"):
        a, b = (getattr(r.evaluation, of)(name).value for r in (found, expected))
        # In a cross-validation each fold has its own scale.
        assert_allclose(a, b, rtol=0.02 if cross_validate else TOL)
    with pytest.warns(UserWarning, match=UNITS):
        unscaled = HOLRR(2).fit(X, Y_of_two_units(Z / s))
    text = make_report(unscaled, X, Y_of_two_units(Z / s)).html
    assert "scale_outputs=&#x27;std&#x27;" in text
    assert "scale_outputs=&#x27;std&#x27;" not in found.html


def Y_of_two_units(Y):
    return Y * np.array([1.0, 1e3, 1.0])[:, None]


# ---------------------------------------------------------------- outputs in different units


def four_groups(n=400, seed=0):
    """Outputs of four variables at six places, in units a thousand times apart.

    Each variable depends on the inputs along a direction of its own.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12))
    W = np.einsum("iv,vp->ivp", rng.normal(size=(12, 4)), rng.normal(size=(4, 6)))
    Y = np.einsum("ni,ivp->nvp", X, W)
    Y += Y.std() * rng.normal(size=Y.shape)
    return X, Y * 1e3 ** np.arange(4.0)[:, None]


@pytest.mark.parametrize(
    "model",
    [LRRCV(cv=3), HOLRRCV(cv=3)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("seed", range(3))
def test_all_groups_of_outputs_are_predicted_as_well_as_by_fits_to_each(model, seed):
    X, Y = four_groups(6000, seed=seed)
    train, test = slice(0, 3000), slice(3000, None)
    found = clone(model).set_params(scale_outputs="std").fit(X[train], Y[train])
    ours = r2_of(Y[test], found.predict(X[test]))
    each = np.stack(
        [
            r2_of(Y[test, v], clone(model).fit(X[train], Y[train, v]).predict(X[test]))
            for v in range(4)
        ]
    )
    assert (ours > each - 0.005).all()
    assert ours.mean() > 0.2
    # Without a scale, the four directions are those of the largest outputs.
    with pytest.warns(UserWarning, match=UNITS):
        without = r2_of(Y[test], LRR(4).fit(X[train], Y[train]).predict(X[test]))
    scaled = LRR(4, scale_outputs="std").fit(X[train], Y[train])
    assert r2_of(Y[test], scaled.predict(X[test])).mean() > without.mean() + 0.05


def r2_of(y, predicted):
    shape, flat = y.shape[1:], (len(y), -1)
    found = r2_score(y.reshape(flat), predicted.reshape(flat), multioutput="raw_values")
    return found.reshape(shape)


def test_score_is_that_of_the_divided_outputs():
    X, Y = four_groups()
    model = HOLRR(2, scale_outputs="std").fit(X, Y)
    s, flat = Y.std(axis=0), (len(Y), -1)
    expected = r2_score(
        (Y / s).reshape(flat), (model.predict(X) / s).reshape(flat), multioutput="variance_weighted"
    )
    assert_allclose(model.score(X, Y), expected, rtol=TOL)
    search = GridSearchCV(HOLRR(scale_outputs="std"), {"rank": [1, 2]}, cv=2).fit(X, Y)
    assert 0.1 < search.best_score_ < 1


def test_fits_do_not_depend_on_the_units():
    X, Y = four_groups()
    other = Y * np.array([1e-3, 1.0, 1e-8, 1e5])[:, None] + 7.0
    for model in (HOLRR(2, scale_outputs="std"), HOLRRCV(**GRID, scale_outputs="std")):
        a, b = clone(model).fit(X, Y), clone(model).fit(X, other)
        near(a.coef_ / Y.std(axis=0), b.coef_ / other.std(axis=0))
        assert_allclose(a.score(X, Y), b.score(X, other), rtol=1e-8)


def test_constant_outputs_have_the_scale_one():
    X, Y = four_groups()
    for value in (0.0, 0.1, 1e9 / 3):
        Y[:, 1, 2] = value
        for model in (
            HOLRR(2, scale_outputs="std").fit(X, Y),
            HOLRR(2, scale_outputs="std").fit_moments(Moments.from_arrays(X, Y)),
            HOLRR(2, scale_outputs="std", missing="ignore").fit(X, Y),
        ):
            assert model.output_scale_[1, 2] == 1.0
            assert_allclose(model.output_scale_[0, 0], Y[:, 0, 0].std(), rtol=TOL)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_that_vary_by_rounding_errors_of_their_type_are_constant(dtype):
    X, Y = four_groups()
    Y[:, 1, 2] = 1000 + 1e-4 * np.sign(Y[:, 0, 0])  # about an ulp of single precision
    Y = Y.astype(dtype)
    assert np.ptp(Y[:, 1, 2]) > 0
    found = HOLRR(2, scale_outputs="std").fit(X.astype(dtype), Y).output_scale_[1, 2]
    assert found == (1.0 if dtype == np.float32 else pytest.approx(Y[:, 1, 2].std(), rel=1e-6))


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_very_large_and_very_small_outputs(unit):
    X, Y = toy()
    found = HOLRR(2, scale_outputs="std").fit(X, unit * Y)
    expected = HOLRR(2, scale_outputs="std").fit(X, Y)
    assert_allclose(found.predict(X) / unit, expected.predict(X), rtol=1e-9)
    assert_allclose(found.score(X, unit * Y), expected.score(X, Y))


# ---------------------------------------------------------------- the warning


SHARING = [
    LRR(2),
    HOLRR(2),
    LRRCV(**GRID),
    HOLRRCV(**GRID),
    KernelLRR(2),
    KernelHOLRR(2, landmarks=LANDMARKS),
    KernelLRRCV(**GRID, kernel="linear"),
    KernelHOLRRCV(**GRID, kernel="linear"),
    TraceNormRegression(),
    MLMTNC(2),
]
APART = [RLS(), RLSCV(**GRID), KernelRLS(), KernelRLSCV(**GRID, kernel="linear")]


def warned(model, *pair):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(*pair)
    return [str(w.message) for w in found if UNITS in str(w.message)]


@pytest.mark.parametrize("model", SHARING, ids=lambda model: type(model).__name__)
def test_one_warning_names_the_mode_and_its_extreme_slices(model):
    X, Y, _ = data()
    (message,) = warned(model, X, Y * np.array([1.0, 1e-3, 1e3])[:, None])
    assert "along axis 0 of the outputs" in message
    assert " for 1 and " in message
    assert " for 2. " in message
    assert "scale_outputs='std'" in message
    for scale in ("std", 1.0):
        assert not warned(clone(model).set_params(scale_outputs=scale), X, Y_of_two_units(Y))


def test_the_warning_has_labels():
    xr = pytest.importorskip("xarray")
    X, Y, _ = data()
    coords = {"variable": ["wind", "pressure", "rain"]}
    y = xr.DataArray(Y_of_two_units(Y), dims=("time", "variable", "month"), coords=coords)
    (message,) = warned(HOLRR(2), xr.DataArray(X, dims=("time", "x")), y)
    assert "along 'variable' it is" in message
    assert "for pressure. " in message


@pytest.mark.parametrize("kind", ["disk", "dask", "sparse", "moments", "missing", "weighted"])
def test_data_of_every_kind_are_compared(kind, tmp_path):
    X, Y, _ = data()
    Y = Y_of_two_units(Y)
    model = HOLRR(2)
    if kind == "moments":
        with pytest.warns(UserWarning, match=UNITS):
            HOLRR(2).fit_moments(Moments.from_arrays(X, Y))
        return
    if kind == "missing":
        Y[:, 2] = np.nan
        model.set_params(missing="ignore")
    if kind == "weighted":  # weights do not hide the units
        model.set_params(output_weight=[[1.0, 1e-6, 1.0], None])
    with memory_budget(2**13 if kind == "disk" else 2**30):
        assert len(warned(model, *in_source(kind, tmp_path, X, Y))) == 1


@pytest.mark.parametrize("model", APART, ids=lambda model: type(model).__name__)
def test_outputs_that_share_no_directions_do_not_warn(model):
    X, Y, _ = data()
    assert not warned(model, X, Y_of_two_units(Y))


def test_outputs_in_one_unit_rarely_warn():
    rng, wrong, n = np.random.default_rng(0), 0, 200
    X = rng.normal(size=(40, 3))
    for k in range(n):
        shape = [(6,), (40,), (8, 12), (200,)][k % 4]
        # Like amounts of rain: the standard deviations of stations differ by an order of magnitude.
        spread = np.exp(rng.normal(size=shape))
        Y = spread * rng.gamma(0.3, size=(40, *shape))
        Y[:, 0] *= k % 3 > 0  # a station without any rain
        wrong += len(warned(HOLRR(1), X, Y))
    assert wrong <= 0.02 * n


def test_constant_outputs_do_not_warn():
    X, Y, _ = data()
    Y[:, 1] = 0.1
    Y[:, :, 2] = 1e6 / 3
    assert not warned(HOLRR(2), X, Y)


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (0.0 * SCALE, r"scale_outputs must be finite and positive.*got 0.0 for output \(0, 0\)"),
        (np.where(SCALE == SCALE[1, 2], -1.0, SCALE), r"positive.*got -1.0 for output \(1, 2\)"),
        (np.where(SCALE == SCALE[2, 0], np.nan, SCALE), r"positive.*got nan for output \(2, 0\)"),
        (np.where(SCALE == SCALE[2, 0], np.inf, SCALE), r"positive.*got inf for output \(2, 0\)"),
        (SCALE.T, r"scale_outputs as an array must have the shape \(3, 4\).*got \(4, 3\)"),
        ([1.0, 2.0], r"must have the shape \(3, 4\)"),
        (np.full((3, 4), "a"), "scale_outputs must contain numbers"),
        ("mad", "'scale_outputs' parameter of"),
        (-1.0, "'scale_outputs' parameter of"),
    ],
)
def test_bad_values_raise_and_change_nothing(row, scale, message):
    X, _, Z = data()
    model = row.make(scale_outputs=scale)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, Z)
    assert not hasattr(model, "tucker_")


def test_moments_without_squares_are_not_divided():
    X, _, Z = data()
    moments = replace(Moments.from_arrays(X, Z), squares=None)
    for scale in ("std", SCALE):
        model = HOLRR(2, scale_outputs=scale)
        with pytest.raises(ValueError, match="scale_outputs needs the sums of squares of each"):
            model.fit_moments(moments)
        assert not hasattr(model, "coef_")


def test_labels_of_the_scale_are_compared_with_those_of_the_outputs():
    xr, pd = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    X, _, Z = data()
    x, y = in_source("xarray", None, X, Z)
    expected = HOLRR(2, scale_outputs=Z.std(axis=0)).fit(X, Z).predict(X)
    std = y.std("time")
    near(HOLRR(2, scale_outputs=std).fit(x, y).predict(x), expected)
    near(HOLRR(2, scale_outputs=std.transpose()).fit(x, y).predict(x), expected)
    by_variable = xr.DataArray([1.0, 2.0, 3.0], dims="variable", coords={"variable": list("abc")})
    found = HOLRR(2, scale_outputs=by_variable).fit(x, y).output_scale_
    assert_array_equal(found, np.outer([1.0, 2.0, 3.0], np.ones(4)))
    with pytest.raises(ValueError, match="scale_outputs has other coordinates along 'variable'"):
        HOLRR(2, scale_outputs=std[::-1]).fit(x, y)
    with pytest.raises(ValueError, match="scale_outputs has dimensions"):
        HOLRR(2, scale_outputs=std.rename(month="hour")).fit(x, y)
    x, y = in_source("dataset", None, X, Z)
    near(as_array(HOLRR(2, scale_outputs=y.std("time")).fit(x, y).predict(x)), expected)
    with pytest.raises(ValueError, match="scale_outputs does not have the labels of y"):
        HOLRR(2, scale_outputs=y.std("time")[["a", "b"]]).fit(x, y)
    for kind in ("pandas", "levels"):
        x, y = in_source(kind, None, X, Z)
        std = y.std(ddof=0)
        for row in (std, std.to_frame().T):
            model = HOLRR(2, scale_outputs=row).fit(x, y)
            near(model.output_scale_.reshape(-1), Z.std(axis=0).reshape(-1))
        with pytest.raises(ValueError, match="scale_outputs"):
            HOLRR(2, scale_outputs=std[::-1]).fit(x, y)
    with pytest.raises(ValueError, match="scale_outputs as a table must have one row; got 60"):
        HOLRR(2, scale_outputs=y).fit(x, y)
    x, y = in_source("polars", None, X, Z)
    model = HOLRR(2, scale_outputs=y.select(__import__("polars").all().std(ddof=0))).fit(x, y)
    near(model.output_scale_.reshape(-1), Z.std(axis=0).reshape(-1))
    assert pd is not None


def test_flat_outputs_have_a_flat_scale():
    X, _, Z = data()
    flat = Z.reshape(len(Z), -1)
    model = HOLRR(2, output_shape=(3, 4), scale_outputs="std").fit(X, flat)
    near(model.output_scale_, flat.std(axis=0))
    near(model.predict(X), X @ model.coef_.T + model.intercept_)
    for scale in (flat.std(axis=0), Z.std(axis=0)):
        again = HOLRR(2, output_shape=(3, 4), scale_outputs=scale).fit(X, flat)
        near(again.predict(X), model.predict(X))


def test_scalar_targets():
    X, Y, _ = data()
    y = 1e4 * Y[:, 0, 0]
    for scale in ("std", 2.0):
        model = RLS(scale_outputs=scale).fit(X, y)
        near(model.predict(X), RLS().fit(X, y).predict(X))
        near(model.output_scale_, y.std() if scale == "std" else 2.0)


def test_models_without_a_scale_have_no_attribute():
    X, Y, _ = data()
    with pytest.raises(AttributeError, match="output_scale_ is available only with scale_outputs"):
        HOLRR(2).fit(X, Y).output_scale_  # noqa: B018
