"""The error surface equals the naive loop over all candidates."""

from itertools import product

import numpy as np
import pytest
from brute_force import brute_force, weighted_mse
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    LeaveOneOut,
    PredefinedSplit,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from holrr import HOLRRCV, LRR, LRRCV, RLS, RLSCV, Moments

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

ALPHAS = [0.0, 3.0]
SPLITTERS = {
    "KFold": KFold(3),
    "KFold-shuffled": KFold(3, shuffle=True, random_state=0),
    "ShuffleSplit": ShuffleSplit(2, test_size=0.3, random_state=1),
    "GroupKFold": GroupKFold(3),
    "LeaveOneGroupOut": LeaveOneGroupOut(),
    "TimeSeriesSplit": TimeSeriesSplit(3),
    "RepeatedKFold": RepeatedKFold(n_splits=2, n_repeats=2, random_state=0),
    "PredefinedSplit": PredefinedSplit([-1] * 10 + [0] * 10 + [1] * 10),
}


def assert_brute_force(X, Y, cv, groups=None, weights=None, alphas=ALPHAS, **parameters):
    model = HOLRRCV(alphas, cv=cv, **parameters).fit(X, Y, weights, groups=groups)
    errors = model.cv_results_["fold_mse"]
    splits = list(cv.split(X, Y, groups))
    expected = brute_force(X, Y, splits, alphas, errors.shape[2:], weights, **parameters)
    np.testing.assert_allclose(errors, expected, rtol=1e-9)
    np.testing.assert_allclose(model.cv_results_["mean_mse"], expected.mean(axis=0), rtol=1e-9)
    np.testing.assert_allclose(model.cv_results_["std_mse"], expected.std(axis=0), rtol=1e-7)
    return model


@pytest.mark.parametrize("name", SPLITTERS)
def test_surface_equals_brute_force_for_every_splitter(make_data, name):
    X, Y = make_data()
    groups = np.repeat(np.arange(5), 6) if "Group" in name else None
    assert_brute_force(X, Y, SPLITTERS[name], groups, alphas=[0.3, 20.0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize(("n", "d0"), [(24, 3), (7, 9)], ids=["primal", "dual"])
def test_surface_equals_brute_force(make_data, n, d0, fit_intercept, weighted):
    X, Y = make_data(n, d0, (2, 2))
    weights = np.random.default_rng(3).uniform(0.1, 3, size=n) if weighted else None
    alphas, parameters = ALPHAS if n > d0 else ALPHAS[1:], {"fit_intercept": fit_intercept}
    assert_brute_force(X, Y, KFold(3), weights=weights, alphas=alphas, **parameters)


@pytest.mark.parametrize(
    ("shape", "ranks"),
    [
        ((), (1,)),
        ((1,), (1, 1)),
        ((5,), (3, 3)),
        ((2, 2, 2), (3, 2, 2, 2)),
        ((1, 3), (3, 1, 3)),
        ((2, 1, 2), (3, 2, 1, 2)),
        ((2, 9), (3, 2, 6)),
    ],
)
def test_surface_equals_brute_force_for_outputs_of_every_order(make_data, shape, ranks):
    """Up to the ranks that coefficients can have."""
    X, Y = make_data(shape=shape)
    model = assert_brute_force(X, Y, KFold(3))
    assert model.cv_results_["mean_mse"].shape == (2, *ranks)


@pytest.mark.parametrize("selection", ["stack", "min", "1se"])
@pytest.mark.parametrize("shape", [(), (9,), (2, 9)])
def test_ranks_above_the_product_of_the_others_do_not_change_the_choice(
    make_data, shape, selection
):
    X, Y = make_data(shape=shape, noise=3.0)
    given = {"cv": KFold(3), "selection": selection}
    every = HOLRRCV(ALPHAS, max_rank=(3, *shape), **given).fit(X, Y)
    model = HOLRRCV(ALPHAS, **given).fit(X, Y)
    assert (model.rank_, model.alpha_) == (every.rank_, every.alpha_)
    np.testing.assert_array_equal(model.predict(X), every.predict(X))
    inside = tuple(slice(n) for n in model.cv_results_["mean_mse"].shape)
    np.testing.assert_array_equal(
        model.cv_results_["mean_mse"], every.cv_results_["mean_mse"][inside]
    )


def test_surface_equals_brute_force_where_folds_support_different_input_ranks(make_data):
    X, Y = make_data(n=16, d0=8, shape=(2, 4))
    model = assert_brute_force(X, Y, TimeSeriesSplit(3), alphas=[3.0])
    errors = model.cv_results_["fold_mse"]
    # The first fold trains on 4 samples, that is on 3 directions about their mean.
    assert errors.shape[2] == 8
    assert np.ptp(errors[0, :, 2:], axis=1).max() == 0


def test_surface_equals_brute_force_with_constant_and_repeated_columns(make_data):
    X, Y = make_data(d0=5)
    X[:, 1], X[:, 2] = X[:, 0], 7.0
    model = assert_brute_force(X, Y, KFold(3))
    assert model.cv_results_["mean_mse"].shape[1] == 3


def test_surface_equals_brute_force_with_collinear_inputs_and_no_penalty(make_data):
    """X'X would lose too many digits here: the folds are decomposed themselves."""
    X, Y = make_data(d0=4)
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    assert_brute_force(X, Y, KFold(3), alphas=[0.0, 1e-9])


def test_surface_equals_brute_force_for_leave_one_out(make_data):
    X, Y = make_data(n=8, d0=2, shape=(2, 2))
    assert_brute_force(X, Y, LeaveOneOut())


@pytest.mark.parametrize("solver", ["cholesky", "svd"])
@pytest.mark.parametrize(
    ("Model", "selection"),
    [(RLSCV, "min"), *product([LRRCV, HOLRRCV], ["stack", "min"])],
)
@pytest.mark.parametrize(("n", "d0"), [(30, 3), (9, 12)], ids=["primal", "dual"])
def test_solvers_agree(make_data, Model, selection, solver, n, d0, use_solver):
    """Folds and stacks have an eigendecomposition in place of "cholesky"; other fits do not."""
    X, Y = make_data(n, d0)
    given = {"alphas": ALPHAS[1:], "selection": selection}
    b = Model(**given).fit(X, Y)
    use_solver(solver)
    a = Model(**given).fit(X, Y)
    np.testing.assert_allclose(a.cv_results_["fold_mse"], b.cv_results_["fold_mse"], rtol=1e-9)
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-8)
    assert a.best_index_ == b.best_index_
    if d0 < n and (selection, solver) != ("stack", "cholesky"):
        assert a.solver_ == a.best_estimator_.solver_ == solver


def test_errors_of_lrr_and_rls_are_slices_of_the_surface_at_full_rank(make_data):
    X, Y = make_data(d0=4, shape=(3, 2, 2))
    surface = HOLRRCV(ALPHAS).fit(X, Y).cv_results_
    lrr, rls = LRRCV(ALPHAS).fit(X, Y).cv_results_, RLSCV(ALPHAS).fit(X, Y).cv_results_
    for key in ("fold_mse", "mean_mse", "std_mse"):
        np.testing.assert_allclose(lrr[key], surface[key][..., -1, -1, -1], rtol=1e-9)
        np.testing.assert_allclose(rls[key], surface[key][..., -1, -1, -1, -1], rtol=1e-9)
    np.testing.assert_array_equal(lrr["n_parameters"], surface["n_parameters"][:, -1, -1, -1])
    assert rls["n_parameters"] == surface["n_parameters"][-1, -1, -1, -1] == 4 * 12


@pytest.mark.parametrize(("n", "d0"), [(24, 4), (9, 12), (20, 15)])
def test_surfaces_of_lrr_and_rls_equal_brute_force(make_data, n, d0):
    X, Y = make_data(n, d0, (2, 2))
    alphas, w = [0.3, 20.0], np.ones(n)
    lrr, rls = LRRCV(alphas, cv=3).fit(X, Y), RLSCV(alphas, cv=3).fit(X, Y)
    for k, (train, test) in enumerate(KFold(3).split(X)):
        for a, alpha in enumerate(alphas):
            model = RLS(alpha).fit(X[train], Y[train])
            error = weighted_mse(model.predict(X[test]), Y[test], w[test])
            assert rls.cv_results_["fold_mse"][k, a] == pytest.approx(error, rel=1e-9)
            for i, found in enumerate(lrr.cv_results_["fold_mse"][k, a]):
                model = LRR(i + 1, alpha).fit(X[train], Y[train])
                error = weighted_mse(model.predict(X[test]), Y[test], w[test])
                assert found == pytest.approx(error, rel=1e-9)


def test_integer_weights_equal_repeated_samples_in_the_same_folds(make_data):
    X, Y = make_data()
    w = np.random.default_rng(0).integers(1, 4, size=len(X))
    fold = np.arange(len(X)) % 3
    a = HOLRRCV(ALPHAS, cv=PredefinedSplit(fold)).fit(X, Y, w)
    b = HOLRRCV(ALPHAS, cv=PredefinedSplit(np.repeat(fold, w)))
    b.fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    np.testing.assert_allclose(a.cv_results_["fold_mse"], b.cv_results_["fold_mse"], rtol=1e-9)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-7)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_moments_of_the_folds_give_the_same_search_as_the_data(make_data, fit_intercept):
    X, Y = make_data()
    parameters = {"alphas": ALPHAS, "fit_intercept": fit_intercept}
    parts = [Moments.from_arrays(X[test], Y[test]) for _, test in KFold(4).split(X)]
    a = HOLRRCV(**parameters).fit_fold_moments(parts)
    b = HOLRRCV(cv=4, **parameters).fit(X, Y)
    np.testing.assert_allclose(a.cv_results_["fold_mse"], b.cv_results_["fold_mse"], rtol=1e-9)
    assert (a.rank_, a.alpha_) == (b.rank_, b.alpha_)
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=1e-9)


def test_large_means_do_not_change_the_errors(make_data):
    X, Y = make_data()
    a = HOLRRCV(ALPHAS[1:]).fit(X, Y).cv_results_["fold_mse"]
    b = HOLRRCV(ALPHAS[1:]).fit(X + 1e6, Y - 1e6).cv_results_["fold_mse"]
    np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("scale", [1e-140, 1e-60, 1e60, 1e140])
def test_scale_of_the_outputs_scales_the_errors(make_data, scale):
    X, Y = make_data()
    a, b = HOLRRCV(ALPHAS).fit(X, Y), HOLRRCV(ALPHAS).fit(X, Y * scale)
    expected = a.cv_results_["mean_mse"] * scale**2
    np.testing.assert_allclose(b.cv_results_["mean_mse"], expected, rtol=1e-9)
    assert a.rank_ == b.rank_


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_scale_of_the_inputs_does_not_change_the_errors(scale):
    """Penalty and inputs are compared in the same units to decide what is decomposed."""
    rng = np.random.default_rng(0)
    Q, P = (np.linalg.qr(rng.normal(size=(n, 4)))[0] for n in (40, 4))
    X = (Q * np.logspace(0, -9, 4)) @ P.T
    Y = 1e9 * np.outer(X @ P[:, -1], [1.0, 2.0, 3.0]) + 0.1 * rng.normal(size=(40, 3))
    alphas = np.array([1e-22, 1e-20])
    given = {
        "max_rank": (4, 3),
        "selection": lambda results: (int(np.argmin(results["mean_mse"][:, 3, 2])), 3, 2),
        "fit_intercept": False,
    }
    models = [HOLRRCV(alphas * s * s, **given).fit(X * s, Y) for s in (1.0, scale)]
    a, b = (model.cv_results_["mean_mse"][:, 3, 2] for model in models)
    np.testing.assert_allclose(a, b, rtol=1e-3)
    assert ((models[0].predict(X) - Y) ** 2).mean() < 0.1  # also of the final fit


def test_errors_of_float32_data_are_computed_in_double_precision(make_data):
    X, Y = (a.astype(np.float32) for a in make_data())
    a = HOLRRCV(ALPHAS[1:]).fit(X, Y)
    b = HOLRRCV(ALPHAS[1:]).fit(X.astype(float), Y.astype(float))
    assert a.predict(X).dtype == np.float32
    assert a.cv_results_["mean_mse"].dtype == np.float64
    np.testing.assert_allclose(a.cv_results_["mean_mse"], b.cv_results_["mean_mse"], rtol=1e-4)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_errors_do_not_depend_on_the_number_of_threads(make_data, n_jobs):
    X, Y = make_data()
    a, b = HOLRRCV(ALPHAS, n_jobs=n_jobs).fit(X, Y), HOLRRCV(ALPHAS).fit(X, Y)
    np.testing.assert_allclose(a.cv_results_["fold_mse"], b.cv_results_["fold_mse"], rtol=1e-12)


def test_arrays_of_every_library_have_the_same_surface(make_data, xp):
    X, Y = make_data()
    model = HOLRRCV(ALPHAS).fit(xp.asarray(X), xp.asarray(Y))
    expected = HOLRRCV(ALPHAS).fit(X, Y)
    errors = model.cv_results_["fold_mse"]
    assert isinstance(errors, np.ndarray)
    np.testing.assert_allclose(errors, expected.cv_results_["fold_mse"], rtol=1e-9)
    predicted = xp.to_numpy(model.predict(xp.asarray(X)))
    np.testing.assert_allclose(predicted, expected.predict(X), rtol=1e-9)


@pytest.mark.parametrize("Model", [RLSCV, LRRCV, HOLRRCV])
def test_dual_problems_of_every_library_have_the_same_surface(make_data, xp, Model):
    X, Y = make_data(n=9, d0=12)
    parameters = {"alphas": ALPHAS[1:], "cv": KFold(3, shuffle=True, random_state=0)}
    weights = np.linspace(1, 2, 9)
    model = Model(**parameters).fit(xp.asarray(X), xp.asarray(Y), xp.asarray(weights))
    expected = Model(**parameters).fit(X, Y, weights).cv_results_["fold_mse"]
    np.testing.assert_allclose(model.cv_results_["fold_mse"], expected, rtol=1e-9)


def test_indices_of_splits_may_be_negative(make_data):
    X, Y = make_data()
    splits = list(KFold(3).split(X))
    backwards = [(train - len(X), test - len(X)) for train, test in splits]
    a, b = (HOLRRCV(ALPHAS, cv=cv).fit(X, Y).cv_results_["fold_mse"] for cv in (splits, backwards))
    np.testing.assert_allclose(a, b, rtol=1e-12)
