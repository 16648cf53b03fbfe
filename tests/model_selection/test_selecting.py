"""Selection rules, parameter counts and information criteria, each by its definition."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from holrr import HOLRR, RLS, Moments
from holrr.core.tucker import n_parameters
from holrr.data.samples import Samples
from holrr.datasets import make_tensor_regression
from holrr.model_selection import HOLRRCV, RLSCV, linear_folds
from holrr.model_selection.grid import parameter_counts
from holrr.model_selection.linear_folds import ArrayFolds
from holrr.model_selection.splits import is_partition, merge_others

pytestmark = pytest.mark.filterwarnings("ignore:the best penalty")

ALPHAS = [0.1, 1.0, 10.0, 100.0]


@pytest.mark.parametrize("shape", [(5,), (5, 3), (4, 3, 2), (9, 2, 2), (3, 2, 3, 2)])
def test_parameter_counts_are_those_of_tucker_tensors(shape):
    counts = parameter_counts(shape, shape)
    for index in np.ndindex(*shape):
        assert counts[index] == n_parameters(shape, [i + 1 for i in index])
    first = parameter_counts(shape, shape[:1])
    assert [n_parameters(shape, (i + 1, *shape[1:])) for i in range(shape[0])] == list(first)


def test_partitions_are_recognised():
    a, b = np.arange(3), np.arange(3, 7)
    assert is_partition([(a, b), (b, a)], 7)
    assert not is_partition([(a, b)], 7)
    assert not is_partition([(a, b), (b, a[:2])], 7)
    assert not is_partition([(a, b), (b, b)], 7)
    assert not is_partition([(np.array([0, 1, 1]), b), (b, a)], 7)


def test_merged_moments_leave_out_one_part(make_data):
    from holrr import Moments

    X, Y = make_data()
    parts = [Moments.from_arrays(X[i::4], Y[i::4]) for i in range(4)]
    for i, merged in enumerate(merge_others(parts)):
        others = np.arange(len(X)) % 4 != i
        expected = Moments.from_arrays(X[others], Y[others])
        np.testing.assert_allclose(merged.Sxy, expected.Sxy, rtol=1e-12)
        np.testing.assert_allclose(merged.mean_y, expected.mean_y, rtol=1e-12)
        assert merged.syy == pytest.approx(expected.syy, rel=1e-12)


# ---------------------------------------------------------------- one standard error


def test_1se_is_the_smallest_model_within_a_standard_error(make_data):
    X, Y = make_data(d0=4, noise=4.0)
    model = HOLRRCV(ALPHAS, selection="1se").fit(X, Y)
    folds, count = (model.cv_results_[key] for key in ("fold_mse", "n_parameters"))
    mean = folds.mean(axis=0)
    best = np.unravel_index(mean.argmin(), mean.shape)
    bound = mean[best] + folds[(slice(None), *best)].std(ddof=1) / np.sqrt(len(folds))
    within = [i for i in np.ndindex(*mean.shape) if mean[i] <= bound]
    assert model.n_parameters_ == min(count[i[1:]] for i in within)
    assert mean[model.best_index_] <= bound
    smallest = [i for i in within if count[i[1:]] == model.n_parameters_]
    assert model.alpha_ == max(ALPHAS[i[0]] for i in smallest)


def test_1se_of_ridge_is_the_largest_penalty_within_a_standard_error(make_data):
    X, Y = make_data(noise=4.0)
    model = RLSCV(ALPHAS, selection="1se").fit(X, Y)
    mean, folds = model.cv_results_["mean_mse"], model.cv_results_["fold_mse"]
    best = mean.argmin()
    bound = mean[best] + folds[:, best].std(ddof=1) / np.sqrt(5)
    assert model.alpha_ == np.array(ALPHAS)[mean <= bound].max()


@pytest.mark.parametrize("index", [(1, 2, 0, 1), 37, (np.int64(1), 0, -1, 1)])
def test_callable_selects_by_index(make_data, index):
    X, Y = make_data()
    model = HOLRRCV(ALPHAS, selection=lambda results: index).fit(X, Y)
    shape = model.cv_results_["mean_mse"].shape
    where = np.unravel_index(index, shape) if isinstance(index, int) else index
    expected = np.empty(shape)[...]
    expected[...] = 0
    expected[tuple(where)] = 1
    assert expected[model.best_index_] == 1
    assert model.rank_ == tuple(int(i) % n + 1 for i, n in zip(where, shape, strict=True))[1:]


@pytest.mark.parametrize("index", [(1, 2), (1, 2, 0, 1, 0), (9, 0, 0, 0), 10**6, "best", None])
def test_a_callable_must_name_one_entry(make_data, index):
    with pytest.raises(ValueError, match="must return an int or a tuple that indexes"):
        HOLRRCV(ALPHAS, selection=lambda results: index).fit(*make_data())


# ---------------------------------------------------------------- information criteria


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("criterion", ["aic", "bic", "gcv"])
@pytest.mark.parametrize(("n", "d0"), [(30, 3), (7, 9)])
def test_criteria_by_their_definition(make_data, criterion, fit_intercept, n, d0):
    X, Y = make_data(n, d0, (2, 2))
    model = HOLRRCV(ALPHAS, criterion=criterion, fit_intercept=fit_intercept).fit(X, Y)
    values = model.cv_results_[criterion]
    Xc = X - X.mean(axis=0) if fit_intercept else X
    lam = np.linalg.svd(Xc, compute_uv=False) ** 2
    lam = lam[lam > 1e-9]
    n_obs = Y.size
    for index in np.ndindex(*values.shape):
        alpha, rank = ALPHAS[index[0]], tuple(i + 1 for i in index[1:])
        fit = HOLRR(rank=rank, alpha=alpha, fit_intercept=fit_intercept).fit(X, Y)
        mse = ((fit.predict(X) - Y) ** 2).mean()
        dimension = n_parameters((lam.size, 2, 2), rank)
        df = dimension * (lam / (lam + alpha)).mean() + (4 if fit_intercept else 0)
        expected = {
            "aic": n_obs * np.log(mse) + 2 * df,
            "bic": n_obs * np.log(mse) + np.log(n_obs) * df,
            "gcv": mse / (1 - df / n_obs) ** 2,
        }[criterion]
        assert model.cv_results_["train_mse"][index] == pytest.approx(mse, rel=1e-9)
        assert model.cv_results_["degrees_of_freedom"][index] == pytest.approx(df, rel=1e-9)
        assert values[index] == pytest.approx(expected if df < n_obs else np.inf, rel=1e-8)
    assert -model.best_score_ == values[model.best_index_] == values.min()


@pytest.mark.parametrize("criterion", ["aic", "bic", "gcv"])
@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_criteria_are_those_of_the_data(make_data, criterion, scale):
    """Whatever the outputs were divided by on the way."""
    X, Y = make_data(30, 4, (2, 2))
    plain, scaled = (HOLRRCV(ALPHAS, criterion=criterion).fit(X, Y * s) for s in (1.0, scale))
    found, expected = (m.cv_results_[criterion] for m in (scaled, plain))
    shift = 2 * Y.size * np.log(scale)
    found = found / scale / scale if criterion == "gcv" else found - shift
    np.testing.assert_allclose(found, expected, rtol=1e-8)
    train = [m.cv_results_["train_mse"] for m in (scaled, plain)]
    np.testing.assert_allclose(train[0] / scale / scale, train[1], rtol=1e-8)
    assert scaled.best_index_ == plain.best_index_
    assert -scaled.best_score_ == scaled.cv_results_[criterion][scaled.best_index_]


def test_gcv_of_ridge_is_scikit_learns_without_intercept():
    """The trace of the hat matrix, as the textbook has it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 4)), rng.normal(size=20)
    model = RLSCV([0.5], criterion="gcv", fit_intercept=False).fit(X, y)
    hat = X @ np.linalg.solve(X.T @ X + 0.5 * np.eye(4), X.T)
    residual = y - hat @ y
    expected = (residual @ residual / 20) / (1 - np.trace(hat) / 20) ** 2
    assert model.cv_results_["gcv"][0] == pytest.approx(expected, rel=1e-12)


def test_criteria_need_neither_folds_nor_samples(make_data):
    from holrr import Moments

    X, Y = make_data()
    parts = [Moments.from_arrays(X[i::2], Y[i::2]) for i in range(2)]
    a = HOLRRCV.from_fold_moments(parts, alphas=ALPHAS, criterion="bic")
    b = HOLRRCV(ALPHAS, criterion="bic", cv=10**6).fit(X, Y)
    np.testing.assert_allclose(a.cv_results_["bic"], b.cv_results_["bic"], rtol=1e-9)
    assert a.rank_ == b.rank_


def test_final_ridge_model_has_no_rank(make_data):
    X, Y = make_data()
    model = RLSCV(ALPHAS).fit(X, Y)
    assert isinstance(model.best_estimator_, RLS)
    assert not hasattr(model, "rank_")


def test_the_smallest_penalty_decides_how_the_inputs_are_decomposed():
    """Squares of these inputs keep their digits with the second penalty only."""
    rng = np.random.default_rng(0)
    Q, P = (np.linalg.qr(rng.normal(size=(n, 4)))[0] for n in (40, 4))
    X = (Q * np.logspace(0, -9, 4)) @ P.T
    Y = 1e9 * np.outer(X @ P[:, -1], [1.0, 2.0, 3.0])
    model = HOLRRCV([1e-22, 1.0], criterion="gcv", fit_intercept=False).fit(X, Y)
    assert model.cv_results_["train_mse"][0].min() < 1e-3 * (Y**2).mean()


def test_null_error_is_that_of_the_training_means(make_data):
    X, Y = make_data()
    splits = list(KFold(4).split(X))
    nulls = [((Y[test] - Y[train].mean(axis=0)) ** 2).mean() for train, test in splits]
    found = RLSCV(ALPHAS, cv=splits).fit(X, Y).cv_results_["null_mse"]
    assert found == pytest.approx(np.mean(nulls))


def test_indices_may_count_from_the_end(make_data):
    X, Y = make_data()
    splits = list(KFold(3).split(X))
    backwards = [(train - len(X), test - len(X)) for train, test in splits]
    a, b = (RLSCV(ALPHAS, cv=cv).fit(X, Y).cv_results_["fold_mse"] for cv in (splits, backwards))
    np.testing.assert_array_equal(a, b)


def test_moments_of_all_folds_are_held_where_there_is_room_only(make_data):
    X, Y = make_data()
    splits = list(KFold(3).split(X))
    held = 3 * 3 * 8 * X.shape[1] * Y[0].size
    for room, merges in [(held, True), (held - 1, False)]:
        folds = ArrayFolds(Samples(X, Y), splits, max_bytes=room)
        folds.prepare()
        assert (folds.merged is not None) == merges


def test_a_block_may_have_no_weight(monkeypatch):
    """Scattered samples are copied in blocks of 64 at least, here all without weight."""
    rng = np.random.default_rng(0)
    X, Y, w = rng.normal(size=(300, 3)), rng.normal(size=(300, 2)), np.ones(300)
    w[:200] = 0
    cv = KFold(2, shuffle=True, random_state=0)
    expected = RLSCV(ALPHAS, cv=cv).fit(X, Y, w).cv_results_["fold_mse"]
    monkeypatch.setattr(linear_folds, "_BLOCK", 1)
    found = RLSCV(ALPHAS, cv=cv).fit(X, Y, w).cv_results_["fold_mse"]
    np.testing.assert_allclose(found, expected)


def test_folds_of_few_samples_support_what_the_largest_training_set_does():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 8)), rng.normal(size=(9, 7))
    parts = [Moments.from_arrays(X[i], Y[i]) for i in (slice(3), slice(3, 9))]
    model = HOLRRCV.from_fold_moments(parts, alphas=[1.0, 10.0], selection="min")
    assert model.cv_results_["mean_mse"].shape == (2, 5, 7)


def test_models_of_as_many_parameters_as_observations_are_not_chosen():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(4, 8)), rng.normal(size=(4, 2, 2))
    for criterion in ("aic", "bic", "gcv"):
        model = HOLRRCV([0.0, 1.0], criterion=criterion, selection="min").fit(X, Y)
        results = model.cv_results_
        saturated = results["degrees_of_freedom"] >= results["n_observations"]
        assert saturated.any()
        assert np.isinf(results[criterion][saturated]).all()
        assert not saturated[model.best_index_]


def test_a_grid_is_widened_for_the_ranks_that_are_listed():
    """With full rank alone the search is that of ridge regression, edges included."""
    X, Y = make_tensor_regression(
        40, n_features=12, output_shape=(5, 4), rank=2, snr=0.01, random_state=1
    )
    ridge, full = RLSCV().fit(X, Y), HOLRRCV(ranks=[(12, 5, 4)], selection="min").fit(X, Y)
    assert HOLRRCV().fit(X, Y).alphas_.size < ridge.alphas_.size
    np.testing.assert_allclose(full.alphas_, ridge.alphas_)
    assert full.alpha_ == pytest.approx(ridge.alpha_)


@pytest.mark.parametrize(("shape", "snr"), [((6,), 30.0), ((4, 5), 0.3)])
def test_one_standard_error_names_no_rank_above_the_product_of_the_others(shape, snr):
    """Such a rank has the parameters of a smaller one: of matrices the ranks are the same."""
    for seed in range(4):
        X, Y = make_tensor_regression(
            40, n_features=7, output_shape=shape, rank=2, snr=snr, random_state=seed
        )
        rank = HOLRRCV(selection="1se").fit(X, Y).rank_
        assert all(R * R <= np.prod(rank) for R in rank)
