"""scikit-learn's tools work with tensor models, whose outputs are flat with `output_shape`."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.feature_selection import RFE, RFECV, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.linear_model import Ridge
from sklearn.metrics import get_scorer, get_scorer_names, r2_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from holrr import HOLRR, HOLRRCV, LRR, RLS, KernelHOLRR
from problems import toy

pytestmark = pytest.mark.filterwarnings(
    "ignore:The best penalty",
    "ignore:The groups parameter",
    "ignore:landmarks=",
    "ignore:The kernel is not positive",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)

SHAPE = (3, 4)
FLAT = {"output_shape": SHAPE}
MODELS = [
    HOLRR(rank=2, **FLAT),
    HOLRRCV(cv=3, **FLAT),
    KernelHOLRR(rank=2, kernel="rbf", gamma=0.1, alpha=0.1, **FLAT),
]
LINEAR = [*MODELS[:2], KernelHOLRR(rank=2, **FLAT), RLS(**FLAT), LRR(rank=2, **FLAT)]
over_models = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)
over_linear = pytest.mark.parametrize("model", LINEAR, ids=lambda m: type(m).__name__)


def data(n=60):
    """Flat outputs, all of them positive, as some scorers need them."""
    X, Y = toy(n=n, shape=SHAPE)
    return X, (Y + 60).reshape(n, -1)


def tensor(model):
    """The same model for outputs that are tensors."""
    return clone(model).set_params(output_shape=None)


# ---------------------------------------------------------------- scores

# Scorers that do not apply, neither here nor to scikit-learn's own Ridge.
FOR_CLASSES = """accuracy average_precision balanced_accuracy d2_brier_score d2_log_loss_score f1
f1_macro f1_micro f1_samples f1_weighted jaccard jaccard_macro jaccard_micro jaccard_samples
jaccard_weighted matthews_corrcoef neg_brier_score neg_log_loss neg_negative_likelihood_ratio
positive_likelihood_ratio precision precision_macro precision_micro precision_samples
precision_weighted recall recall_macro recall_micro recall_samples recall_weighted roc_auc
roc_auc_ovo roc_auc_ovo_weighted roc_auc_ovr roc_auc_ovr_weighted top_k_accuracy""".split()  # noqa: SIM905
FOR_CLUSTERS = """adjusted_mutual_info_score adjusted_rand_score completeness_score
fowlkes_mallows_score homogeneity_score mutual_info_score normalized_mutual_info_score rand_score
v_measure_score""".split()  # noqa: SIM905
FOR_ONE_OUTPUT = ["neg_max_error", "neg_mean_gamma_deviance", "neg_mean_poisson_deviance"]
CANNOT = {*FOR_CLASSES, *FOR_CLUSTERS, *FOR_ONE_OUTPUT}
CAN = sorted(set(get_scorer_names()) - CANNOT)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(CANNOT & set(get_scorer_names())))
def test_scorers_that_cannot_apply_fail_for_ridge_too(name):
    X, Y = data()
    for model in (Ridge(), MODELS[0]):
        with pytest.raises((ValueError, AttributeError)):
            get_scorer(name)(model.fit(X, Y), X, Y)


def test_most_regression_scorers_apply():
    assert {"r2", "explained_variance", "neg_mean_squared_log_error"} <= set(CAN)
    assert len(CAN) >= 10
    assert all(name in get_scorer_names() for name in FOR_ONE_OUTPUT)


@over_models
def test_every_scorer_cross_validates_flat_outputs(model):
    X, Y = data()
    folds = KFold(4)
    found = cross_validate(model, X, Y, scoring=CAN, cv=folds, error_score="raise")
    flat = cross_val_predict(model, X, Y, cv=folds)
    assert_allclose(
        flat, cross_val_predict(tensor(model), X, Y.reshape(60, *SHAPE), cv=folds).reshape(60, -1)
    )
    for name in CAN:
        metric = get_scorer(name)
        for k, (_, test) in enumerate(folds.split(X)):
            by_hand = metric._sign * metric._score_func(Y[test], flat[test], **metric._kwargs)
            assert_allclose(found[f"test_{name}"][k], by_hand)


@over_models
def test_the_score_without_a_scorer_is_that_of_the_tensor(model):
    X, Y = data()
    flat = cross_validate(model, X, Y, cv=3)["test_score"]
    folded = cross_validate(tensor(model), X, Y.reshape(60, *SHAPE), cv=3)["test_score"]
    assert_allclose(flat, folded)
    pooled = r2_score(Y, model.fit(X, Y).predict(X), multioutput="variance_weighted")
    assert_allclose(model.score(X, Y), pooled)


@over_models
@pytest.mark.parametrize("splitter", [GroupKFold(3), TimeSeriesSplit(3)], ids=str)
def test_splitters_by_groups_and_time_apply(model, splitter):
    X, Y = data()
    scores = cross_validate(model, X, Y, cv=splitter, groups=np.arange(60) % 6)["test_score"]
    assert np.all(scores > 0.5)


# ---------------------------------------------------------------- meta-estimators


@over_models
def test_targets_can_be_transformed(model):
    X, Y = data()
    logs = TransformedTargetRegressor(model, func=np.log, inverse_func=np.exp).fit(X, Y)
    expected = np.exp(clone(model).fit(X, np.log(Y)).predict(X))
    assert_allclose(logs.predict(X), expected)
    scaled = TransformedTargetRegressor(model, transformer=StandardScaler()).fit(X, Y)
    assert scaled.predict(X[:7]).shape == (7, 12)
    assert scaled.score(X, Y) > 0.8


@over_models
def test_models_can_be_bagged(model):
    X, Y = data()
    bag = BaggingRegressor(model, n_estimators=4, oob_score=False, random_state=0).fit(X, Y)
    expected = np.mean([m.predict(X) for m in bag.estimators_], axis=0)
    assert_allclose(bag.predict(X), expected)
    assert bag.predict(X).shape == Y.shape
    assert len({m.score(X, Y) for m in bag.estimators_}) == 4
    few = BaggingRegressor(model, n_estimators=3, max_features=0.6, random_state=0).fit(X, Y)
    assert {m.n_features_in_ for m in few.estimators_} == {3}
    assert few.predict(X).shape == Y.shape


@pytest.mark.parametrize("Vote", [VotingRegressor, StackingRegressor])
@over_models
def test_voting_and_stacking_need_one_output(model, Vote):
    """They refuse several outputs, of Ridge as of a tensor model."""
    X, Y = data()
    model = tensor(model)
    vote = Vote([("ridge", Ridge()), ("model", model)]).fit(X, Y[:, 0])
    assert vote.predict(X).shape == (60,)
    if Vote is VotingRegressor:
        both = Ridge().fit(X, Y[:, 0]), model.fit(X, Y[:, 0])
        assert_allclose(vote.predict(X), np.mean([m.predict(X) for m in both], axis=0))
    for member in (Ridge(), model.set_params(output_shape=SHAPE)):
        with pytest.raises(ValueError, match="y should be a 1d array"):
            Vote([("member", member)]).fit(X, Y)


@over_models
def test_searches_over_pipelines_apply(model):
    X, Y = data()
    pipe = make_pipeline(StandardScaler(), model)
    step = f"{type(model).__name__.lower()}__"
    name, values = next(
        (k, v)
        for k, v in {"rank": [1, 2], "selection": ["min", "stack"]}.items()
        if k in model.get_params()
    )
    search = GridSearchCV(pipe, {step + name: values}, cv=3).fit(X, Y)
    assert search.predict(X[:2]).shape == (2, 12)
    by_hand = [
        cross_validate(clone(pipe).set_params(**{step + name: v}), X, Y, cv=3)["test_score"].mean()
        for v in values
    ]
    assert_allclose(search.cv_results_["mean_test_score"], by_hand)
    other = RandomizedSearchCV(pipe, {step + name: values}, n_iter=2, cv=3, random_state=0)
    assert_allclose(other.fit(X, Y).best_score_, search.best_score_)


# ---------------------------------------------------------------- curves and importance


@over_models
def test_learning_and_validation_curves_apply(model):
    X, Y = data(n=120)
    sizes, train, test = learning_curve(model, X, Y, train_sizes=[0.2, 1.0], cv=3)
    assert list(sizes) == [16, 80]
    assert test[1].mean() > test[0].mean()
    assert train.shape == test.shape == (2, 3)
    name = "rank" if hasattr(model, "rank") else "selection"
    values = [1, 2] if name == "rank" else ["min", "1se"]
    _, test = validation_curve(model, X, Y, param_name=name, param_range=values, cv=3)
    assert np.isfinite(test).all()


def informative(n=150):
    """Three inputs of nine drive the outputs."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, 9))
    W = np.zeros((9, 12))
    W[[1, 4, 7]] = rng.normal(size=(3, 12))
    return X, X @ W + 0.3 * rng.normal(size=(n, 12)), [1, 4, 7]


@over_models
def test_permutation_importance(model):
    X, Y, drivers = informative()
    found = permutation_importance(model.fit(X, Y), X, Y, n_repeats=3, random_state=0)
    largest = np.argsort(-found.importances_mean)[:3]
    assert sorted(largest) == drivers
    losses = {"scoring": "neg_mean_absolute_error", "n_repeats": 2, "random_state": 0}
    assert permutation_importance(model, X, Y, **losses).importances.shape == (9, 2)


@over_linear
def test_recursive_elimination_finds_the_inputs_that_count(model):
    X, Y, drivers = informative()
    found = RFE(model, n_features_to_select=3).fit(X, Y)
    assert_array_equal(np.flatnonzero(found.support_), drivers)
    chosen = RFECV(model, cv=3, min_features_to_select=2).fit(X, Y)
    assert set(drivers) <= set(np.flatnonzero(chosen.support_))
    assert chosen.predict(X).shape == Y.shape
    kept = SelectFromModel(model, threshold="mean").fit(X, Y)
    assert_array_equal(np.flatnonzero(kept.get_support()), drivers)


@over_linear
def test_recursive_elimination_refuses_coefficients_that_are_tensors(model):
    """Without `output_shape` coefficients are tensors, which scikit-learn does not read."""
    X, Y, drivers = informative()
    model, Y = clone(model).set_params(output_shape=None), Y.reshape(len(Y), *FLAT["output_shape"])
    importance = model.fit(X, Y).feature_importances_
    assert_array_equal(np.sort(np.argsort(importance)[-3:]), drivers)
    with pytest.raises(ValueError, match="dim 3"):  # and does not use the wrong axis
        RFE(model, n_features_to_select=3).fit(X, Y)


def test_flat_coefficients_equal_those_of_scikit_learn():
    X, Y, _ = informative()
    model = RLS(alpha=1.0, **FLAT).fit(X, Y)
    ridge = Ridge(alpha=1.0).fit(X, Y)
    assert_allclose(model.coef_, ridge.coef_, atol=1e-8)
    assert_allclose(model.predict(X), X @ model.coef_.T + model.intercept_.reshape(-1))


def test_recursive_elimination_uses_permutation_importance_of_a_kernel():
    """A model that is not linear in the inputs has no coefficients."""
    X, Y, drivers = informative()
    model = KernelHOLRR(rank=3, kernel="rbf", gamma=0.02, alpha=0.1, **FLAT)

    def importance(fitted):
        Z = fitted.X_fit_
        args = {"n_repeats": 2, "random_state": 0}
        return permutation_importance(fitted, Z, fitted.predict(Z), **args).importances_mean

    found = RFE(model, n_features_to_select=3, importance_getter=importance).fit(X, Y)
    assert_array_equal(np.flatnonzero(found.support_), drivers)
    with pytest.raises(ValueError, match="importance_getter"):
        RFE(model, n_features_to_select=3).fit(X, Y)


# ---------------------------------------------------------------- names


def test_pipelines_keep_the_names_of_tables():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = data()
    x = pd.DataFrame(X, columns=list("abcde"), index=pd.date_range("2000", periods=60))
    columns = pd.MultiIndex.from_product([["u", "v", "w"], range(4)], names=["wind", "hour"])
    y = pd.DataFrame(Y, columns=columns, index=x.index)
    pipe = make_pipeline(StandardScaler().set_output(transform="pandas"), HOLRR())
    search = GridSearchCV(pipe, {"holrr__rank": [1, 2]}, cv=3).fit(x, y)
    found = search.predict(x[:3])
    pd.testing.assert_index_equal(found.columns, columns)
    pd.testing.assert_index_equal(found.index, x.index[:3])
    plain = GridSearchCV(pipe, {"holrr__rank": [1, 2]}, cv=3).fit(x, Y.reshape(60, *SHAPE))
    assert_allclose(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    logs = TransformedTargetRegressor(HOLRR(rank=2, **FLAT), func=np.log, inverse_func=np.exp)
    assert logs.fit(x, y).predict(x).shape == (60, 12)


def test_searches_keep_the_labels_of_xarray_objects():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = data()
    time = np.datetime64("2000-01-01") + np.arange(60)
    x = xr.DataArray(X, dims=("time", "index"), coords={"time": time})
    y = xr.DataArray(
        Y.reshape(60, *SHAPE), dims=("time", "station", "hour"), coords={"time": time}, name="rain"
    )
    search = GridSearchCV(HOLRR(), {"rank": [1, 2]}, cv=KFold(3)).fit(x, y)
    plain = GridSearchCV(HOLRR(), {"rank": [1, 2]}, cv=KFold(3)).fit(X, y.to_numpy())
    assert_allclose(search.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    found = search.predict(x[:3])
    assert found.dims == y.dims
    assert_array_equal(found.time, time[:3])
    scaled = make_pipeline(FunctionTransformer(lambda a: a / 2), HOLRR(rank=2)).fit(x, y)
    assert scaled.predict(x).name == "rain"
    scores = cross_validate(clone(search.best_estimator_), x, y, cv=4)["test_score"]
    assert_allclose(scores, cross_validate(HOLRR(rank=2), X, y.to_numpy(), cv=4)["test_score"])


@pytest.mark.rows("searches")
@pytest.mark.parametrize("routing", [False, True])
def test_nested_folds_are_those_of_the_groups_on_both_levels(row, routing):
    """With metadata routing it needs nothing but the groups."""
    X, Y, _ = informative()
    groups = np.random.default_rng(0).permutation(len(X)) // 5
    early = {"tol": 1e-3} if "tol" in row.params else {}  # scores are compared to the last bit
    model, outer = row.make(cv=GroupKFold(3), output_shape=SHAPE, **early), GroupKFold(2)
    expected = []
    for train, test in outer.split(X, groups=groups):
        fold = clone(model).fit(X[train], Y[train], groups=groups[train])
        expected.append(fold.score(X[test], Y[test]))
    given = {"cv": outer, "params": {"groups": groups}, "error_score": "raise"}
    scaled = make_pipeline(FunctionTransformer(), model)
    with config_context(enable_metadata_routing=routing):
        if not routing:
            given["groups"] = groups
        assert_array_equal(cross_val_score(model, X, Y, **given), expected)
        if routing:
            assert_array_equal(cross_val_score(scaled, X, Y, **given), expected)
            grid = GridSearchCV(model, {"fit_intercept": [True, False]}, cv=outer)
            assert grid.fit(X, Y, groups=groups).best_estimator_.n_features_in_ == X.shape[1]
