"""Cross-validated linear estimators: choice, final model, warnings and errors."""

import pickle
import sys
import warnings
from itertools import product

import numpy as np
import pytest
from naive_choice import mixture
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, ShuffleSplit, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    LRRCV,
    RLS,
    RLSCV,
    KernelHOLRRCV,
    KernelLRRCV,
    KernelRLSCV,
    Moments,
)
from holrr.datasets import make_tensor_regression
from holrr.streaming import memory_budget

ALPHAS = [0.1, 1.0, 10.0, 100.0]
WITH_OUTPUTS = "ranks and penalties of outputs"
quiet = pytest.mark.filterwarnings("ignore:The best penalty")


# ---------------------------------------------------------------- the choice


def low_rank_data(seed, n=80, shape=(6, 5, 6), R=3):
    """Noise as strong as the signal, whose three directions in each mode are equally strong."""
    rng = np.random.default_rng(seed)
    U = [np.linalg.qr(rng.normal(size=(d, R)))[0] for d in shape]
    X = rng.normal(size=(n, shape[0]))
    signal = np.tensordot(X, np.einsum("ar,br,cr->abc", *U), 1)
    return X, signal + signal.std() * rng.normal(size=signal.shape)


@quiet
def test_one_standard_error_finds_the_true_ranks_of_noisy_data():
    for seed in range(15):
        assert HOLRRCV(selection="1se").fit(*low_rank_data(seed)).rank_ == (3, 3, 3)


@quiet
def test_the_least_error_finds_the_true_ranks_or_slightly_larger_ones():
    ranks = [HOLRRCV().fit(*low_rank_data(seed)).best_params_["rank"] for seed in range(15)]
    assert all(min(rank) >= 3 for rank in ranks)
    assert ranks.count((3, 3, 3)) >= 10


@quiet
def test_the_final_model_is_the_chosen_one_fitted_to_all_data(make_data):
    X, Y = make_data()
    for model, final in [
        (RLSCV(ALPHAS), RLS()),
        (LRRCV(ALPHAS, selection="min"), LRR()),
        (HOLRRCV(ALPHAS, selection="min"), HOLRR()),
        (HOLRRCV(ALPHAS, refine=True), HOLRR(refine=True)),
    ]:
        model.fit(X, Y)
        assert model.best_params_["alpha"] == model.alpha_
        assert model.best_params_.get("rank") == getattr(model, "rank_", None)
        final.set_params(alpha=model.alpha_)
        if not isinstance(final, RLS):
            final.set_params(rank=model.rank_)
        final.fit(X, Y)
        assert type(model.best_estimator_) is type(final)
        np.testing.assert_allclose(model.coef_, final.coef_, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(model.predict(X), final.predict(X), rtol=1e-9)
        np.testing.assert_allclose(model.intercept_, final.intercept_, rtol=1e-8)
        assert model.score(X, Y) == pytest.approx(final.score(X, Y))
        assert model.tucker_ is model.best_estimator_.tucker_
        assert model.n_parameters_ == final.n_parameters_
        assert model.solver_ == model.best_estimator_.solver_
        assert getattr(model, "n_iter_", None) == getattr(final, "n_iter_", None)
        assert not hasattr(model.best_estimator_, "moments_")


@quiet
@pytest.mark.parametrize(
    ("make", "final"),
    [
        (LRRCV, LRR),
        (HOLRRCV, HOLRR),
    ],
    ids=["LRRCV", "HOLRRCV"],
)
@pytest.mark.parametrize("way", ["ridge regression", "ranks", WITH_OUTPUTS])
def test_the_final_model_of_a_stack_is_the_mixture_fitted_to_all_data(make_data, make, final, way):
    problems = [make_data(noise=noise, seed=seed) for noise in (1.0, 4.0) for seed in range(9)]
    rng = np.random.default_rng(0)
    for _, Y in problems if way == WITH_OUTPUTS else []:  # outputs differ in strength
        Y *= np.exp(1.5 * rng.normal(size=Y.shape[1:]))
        Y += np.abs(Y).mean() * rng.normal(size=Y.shape)
    fits = ((X, Y, make(ALPHAS).fit(X, Y)) for X, Y in problems)
    chosen = (fit for fit in fits if fit[2].choice_ == way)
    if way == WITH_OUTPUTS:  # whose last part can have weight zero
        chosen = (fit for fit in chosen if any(map(np.ndim, fit[2].stack_alphas_)))
    X, Y, model = next(chosen)
    parts = list(zip(model.stack_alphas_, model.stack_ranks_, model.stack_weights_, strict=True))
    assert len(parts) > 1 or way == "ridge regression"
    assert way == WITH_OUTPUTS or not any(np.ndim(alpha) for alpha, _, _ in parts)
    assert type(model.best_estimator_) is final
    np.testing.assert_allclose(model.predict(X), mixture(model, X, Y), rtol=1e-9, atol=1e-10)
    found = np.tensordot(X, model.coef_, 1) + model.intercept_
    np.testing.assert_allclose(model.predict(X), found, rtol=1e-9, atol=1e-10)
    assert model.tucker_ is model.best_estimator_.tucker_
    assert model.rank_ == (model.core_.shape[0] if make is LRRCV else model.core_.shape)
    assert model.best_estimator_.rank == model.rank_
    assert model.n_parameters_ == model.best_estimator_.n_parameters_
    assert model.solver_ == model.best_estimator_.solver_
    assert not hasattr(model.best_estimator_, "moments_")


@quiet
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("parameters", [{"refine": True}, {"missing": "ignore"}], ids=str)
def test_a_search_iterates_as_the_estimator_by_default(make_data, parameters):
    X, Y = make_data(noise=3.0)
    if "missing" in parameters:
        Y[::3, 0, 1] = np.nan
    model = HOLRRCV(ALPHAS, selection="min", **parameters).fit(X, Y)
    final = HOLRR(model.rank_, model.alpha_, **parameters).fit(X, Y)
    assert model.best_estimator_.get_params() == final.get_params()
    assert model.n_iter_ == model.best_estimator_.n_iter_ == final.n_iter_
    np.testing.assert_allclose(model.predict(X), final.predict(X), rtol=1e-9)


@quiet
@pytest.mark.parametrize(
    ("make", "selection"),
    [
        (KernelRLSCV, "min"),
        *product([KernelLRRCV, KernelHOLRRCV], ["stack", "min"]),
    ],
)
def test_solvers_of_kernel_searches_agree(make_data, make, selection, use_solver):
    """The fits of several penalties that a stack mixes need an eigendecomposition."""
    X, Y = make_data(noise=3.0)
    given = {"alphas": ALPHAS, "gammas": [0.01, 0.1], "cv": 3, "selection": selection}
    expected = make(**given).fit(X, Y)
    used = "eigh" if selection == "stack" else "cholesky"
    assert expected.solver_ == expected.best_estimator_.solver_ == used
    use_solver("eigh")
    found = make(**given).fit(X, Y)
    assert found.best_index_ == expected.best_index_
    assert found.solver_ == found.best_estimator_.solver_ == "eigh"
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=1e-7, atol=1e-8)


@quiet
def test_the_choice_is_the_best_entry_of_the_surface(make_data):
    X, Y = make_data()
    model = HOLRRCV(ALPHAS, selection="min").fit(X, Y)
    surface = model.cv_results_["mean_mse"]
    assert surface[model.best_index_] == surface.min() == -model.best_score_
    assert model.alpha_ == ALPHAS[model.best_index_[0]]
    assert model.rank_ == tuple(i + 1 for i in model.best_index_[1:])
    assert model.core_.shape == model.rank_
    assert [U.shape[1] for U in model.factors_] == list(model.rank_)
    assert model.cv_results_["fold_mse"].shape == (5, *surface.shape)
    assert model.cv_results_["n_parameters"].shape == surface.shape[1:]
    assert model.cv_results_["n_parameters"][model.best_index_[1:]] == model.n_parameters_


@quiet
def test_penalties_keep_the_order_in_which_they_are_given(make_data):
    X, Y = make_data()
    a, b = HOLRRCV(ALPHAS).fit(X, Y), HOLRRCV(ALPHAS[::-1]).fit(X, Y)
    np.testing.assert_allclose(a.cv_results_["mean_mse"], b.cv_results_["mean_mse"][::-1])
    assert a.alpha_ == b.alpha_


@quiet
def test_default_penalties_scale_with_the_inputs_and_the_weights(make_data):
    X, Y = make_data()
    a, b = HOLRRCV().fit(X, Y), HOLRRCV().fit(10 * X, Y)
    np.testing.assert_allclose(b.alphas_, 100 * a.alphas_)
    np.testing.assert_allclose(b.cv_results_["mean_mse"], a.cv_results_["mean_mse"], rtol=1e-9)
    c = HOLRRCV().fit(X, Y, np.full(len(X), 3.0))
    np.testing.assert_allclose(c.alphas_, 3 * a.alphas_)
    parts = [Moments.from_arrays(X[i::2], Y[i::2]) for i in range(2)]
    np.testing.assert_allclose(HOLRRCV().fit_fold_moments(parts).alphas_, a.alphas_)
    mean_eigenvalue = np.linalg.eigvalsh(np.cov(X.T) * (len(X) - 1)).mean()
    np.testing.assert_allclose(a.alphas_[[0, -1]], mean_eigenvalue * np.array([1e-4, 1e2]))


# ---------------------------------------------------------------- ranks


@quiet
def test_capped_ranks_have_the_errors_of_the_full_surface(make_data):
    X, Y = make_data(d0=4, shape=(3, 2))
    everything = HOLRRCV(ALPHAS).fit(X, Y).cv_results_["fold_mse"]
    capped = HOLRRCV(ALPHAS, max_rank=(3, 2, None)).fit(X, Y).cv_results_["fold_mse"]
    np.testing.assert_allclose(capped, everything[:, :, :3, :2, :2], rtol=1e-9)
    assert HOLRRCV(ALPHAS, max_rank=2).fit(X, Y).cv_results_["mean_mse"].shape == (4, 2, 2, 2)


@quiet
def test_capped_ranks_of_lrr_have_the_errors_of_the_full_surface(make_data):
    X, Y = make_data(d0=4)
    everything = LRRCV(ALPHAS).fit(X, Y).cv_results_["mean_mse"]
    capped = LRRCV(ALPHAS, max_rank=2).fit(X, Y).cv_results_["mean_mse"]
    np.testing.assert_allclose(capped, everything[:, :2])


@quiet
def test_ties_go_to_the_smallest_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6))
    model = HOLRRCV(ALPHAS).fit(X, X[:, 0] + rng.normal(size=40))
    assert model.rank_ == (1,)
    assert np.ptp(model.cv_results_["mean_mse"], axis=1).max() == 0


@quiet
def test_exact_fits_choose_the_true_rank_despite_rounding():
    X, Y = make_tensor_regression(
        60, n_features=5, output_shape=(4, 5), rank=(3, 2, 3), noise=0.0, random_state=0
    )
    model = HOLRRCV([0.0]).fit(X, Y)
    assert model.best_params_ == {"alpha": 0.0, "rank": (3, 2, 3)}
    assert model.rank_ == (3, 2, 3)


# ---------------------------------------------------------------- warnings


@pytest.mark.parametrize(
    ("alphas", "edge", "noise"),
    [([0.01, 0.1, 1.0], "largest", 5.0), ([1e2, 1e3, 1e4], "smallest", 0.1)],
)
def test_a_search_warns_of_a_penalty_at_the_edge_of_the_grid(make_data, alphas, edge, noise):
    X, Y = make_data(noise=noise)
    with pytest.warns(UserWarning, match=f"is the {edge} of the grid") as caught:
        RLSCV(alphas).fit(X, Y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("make", [RLSCV, HOLRRCV, KernelRLSCV])
def test_the_default_grid_is_widened_as_long_as_its_edge_is_best(make):
    """There is no warning where it ends. Unrelated inputs need ever larger penalties.

    Next to the best penalty the grids of linear and kernel models are twice as fine.
    """
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3)), rng.normal(size=(30, 2, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        model = make(cv=3).fit(X, Y)
    grid, mse = model.alphas_, model.cv_results_["mean_mse"]
    assert grid.size >= 13
    assert model.cv_results_["alphas"] is grid
    assert grid.size in mse.shape
    steps = np.diff(np.log(grid))
    assert (steps > 0).all() or (steps < 0).all()
    steps = np.abs(steps)
    half = np.flatnonzero(steps < 0.75 * steps.max())
    np.testing.assert_allclose(np.delete(steps, half), steps.max(), rtol=1e-9)
    np.testing.assert_allclose(steps[half], steps.max() / 2, rtol=1e-9)
    least = mse.min(axis=tuple(i for i, n in enumerate(mse.shape) if n != grid.size))
    # Two half steps on each side of the penalty that was the best before, or on the only side.
    is_new = np.zeros(grid.size, dtype=bool)
    is_new[half[::2] + 1] = True
    best = int(np.flatnonzero(~is_new)[np.argmin(least[~is_new])])
    sides = [i for i in (best - 2, best) if 0 <= i < steps.size]
    np.testing.assert_array_equal(half, [j for i in sides for j in (i, i + 1)])


@quiet
def test_the_default_grid_is_widened_towards_small_penalties():
    """Twelve directions of decreasing variance: the smallest penalty is best."""
    rng = np.random.default_rng(1)
    sizes = np.logspace(0, -3, 12)
    X = rng.normal(size=(60, 12)) * sizes
    Y = X @ (rng.normal(size=(12, 4)) / sizes[:, None]) + rng.normal(size=(60, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RLSCV().fit(X, Y)
    assert model.alphas_.size > 13
    assert model.best_score_ > RLSCV(model.alphas_[-13:]).fit(X, Y).best_score_


@quiet
@pytest.mark.parametrize("selection", ["min", "stack"])
def test_the_memory_budget_limits_ranks_and_not_the_grid_of_penalties(selection, small_budget):
    """A grid of 13 penalties can be widened three times by four, and be refined by two."""
    rng = np.random.default_rng(1)
    sizes = np.logspace(0, -3, 12)
    X = rng.normal(size=(60, 12)) * sizes
    Y = X @ (rng.normal(size=(12, 4)) / sizes[:, None]) + rng.normal(size=(60, 4))
    expected = HOLRRCV(selection=selection).fit(X, Y).alphas_
    assert expected.size > 15
    one = 8 * 7 * 4 * 4  # 5 folds, mean and deviation, for all ranks of 12 inputs and 4 outputs
    small_budget(one * 27)
    model = HOLRRCV(selection=selection).fit(X, Y)
    np.testing.assert_array_equal(model.alphas_, expected)
    assert model.cv_results_["mean_mse"].shape == (expected.size, 4, 4)
    small_budget(one * 27 - 1)
    with pytest.warns(UserWarning, match=r"ranks up to \(3, 3\), and ridge regression"):
        model = HOLRRCV(selection=selection).fit(X, Y)
    assert model.alphas_.size > 15
    assert model.cv_results_["mean_mse"].shape == (model.alphas_.size, 3, 3)


@pytest.mark.parametrize("alphas", [[1.0], [1.0, 2.0], [0.0, 1e6, 1e7]])
def test_a_search_does_not_warn_where_the_grid_cannot_be_widened(make_data, alphas):
    X, Y = make_data(noise=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RLSCV(alphas).fit(X, Y)


@quiet
def test_ranks_are_capped_where_the_surfaces_exceed_the_budget(make_data, small_budget):
    X, Y = make_data(d0=4, shape=(3, 2))
    budget = 8 * 4 * 7 * (2 * 2 * 2)  # 4 penalties, 5 folds, mean and deviation, ranks up to 2
    everything = HOLRRCV(ALPHAS).fit(X, Y).cv_results_
    for selection in ("min", "stack"):  # a stack needs no more
        small_budget(budget)
        with pytest.warns(UserWarning, match=r"rank of each mode at 2.*ranks up to \(2, 2, 2\)"):
            model = HOLRRCV(ALPHAS, selection=selection).fit(X, Y)
        small_budget(budget - 1)
        with pytest.warns(UserWarning, match=r"rank of each mode at 1.*ranks up to \(1, 1, 1\)"):
            HOLRRCV(ALPHAS, selection=selection).fit(X, Y)
        for key in ("fold_mse", "mean_mse"):
            np.testing.assert_allclose(
                model.cv_results_[key], everything[key][..., :2, :2, :2], rtol=1e-9
            )
    small_budget(10)
    with pytest.raises(ValueError, match=r"no candidate rank fits into the memory budget of 10"):
        HOLRRCV(ALPHAS).fit(X, Y)


@quiet
def test_searches_obey_the_memory_budget_of_the_library():
    """Surfaces of 1 MiB are always computed, and a smaller budget caps larger ones."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 30)), rng.normal(size=(60, 20, 20))
    for model in (HOLRRCV([1.0, 10.0]), KernelHOLRRCV([1.0, 10.0], kernel="linear")):
        with memory_budget(2**10), pytest.warns(UserWarning, match="memory budget of 1,048,576"):
            capped = clone(model).fit(X, Y).cv_results_["mean_mse"]
        assert max(capped.shape) < 25
        assert max(clone(model).fit(X, Y).cv_results_["mean_mse"].shape) > 20
        assert 8 * 7 * capped.size <= 2**20


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"alphas": []}, "alphas must be a list of at least one number"),
        ({"alphas": [1, -1]}, "alphas must be finite and at least 0; got -1"),
        ({"alphas": [1, np.nan]}, "alphas must be finite"),
        ({"alphas": [1, np.inf]}, "alphas must be finite"),
        ({"alphas": [2, 1, 2]}, "alphas must be all different; 2.0 occurs more than once"),
        ({"alphas": [[1, 2]]}, r"got \[\[1, 2\]\]"),
        ({"max_rank": (9, 1, 1)}, "size 3; got 9"),
        ({"max_rank": (0, 1, 1)}, "got 0"),
        ({"max_rank": (1, 1)}, "must have 3 entries"),
        ({"max_rank": (0.5, 1, 1)}, "must be ints"),
        ({"max_rank": 0}, "at least 1"),
        ({"cv": 31}, "cv=31 needs at least 31 samples; got 30. Pass cv=30"),
        ({"cv": 1}, "cv"),
        ({"cv": [(np.arange(30), [])]}, "test set of split 0 of cv is empty"),
        ({"cv": [([], np.arange(30))]}, "training set of split 0 of cv is empty"),
        ({"cv": [(np.arange(20), [30])]}, "has the index 30, but there are 30 samples"),
        ({"cv": [(np.arange(20), [0.5])]}, "must be a 1-d array of integers"),
        ({"cv": []}, "at least one split"),
        ({"selection": "best"}, "selection"),
        ({"selection": "1se", "cv": ShuffleSplit(1, random_state=0)}, "at least two folds"),
        ({"selection": lambda results: (0, 99, 0, 0)}, "must return an int or a tuple"),
        ({"selection": lambda results: None}, "must return an int or a tuple"),
        ({"selection": lambda results: 10**9}, "must return an int or a tuple"),
    ],
)
@quiet
def test_bad_parameters_are_named_and_do_not_change_the_estimator(make_data, parameters, message):
    X, Y = make_data()
    model = HOLRRCV(ALPHAS).fit(X, Y)
    model.set_params(**parameters)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.fit(X, Y)
    assert vars(model) == before


def test_groups_and_weights_must_have_one_entry_for_each_sample(make_data):
    X, Y = make_data()
    with pytest.raises(ValueError, match="groups must have one entry for each of the 30"):
        HOLRRCV(ALPHAS).fit(X, Y, groups=[0, 1])
    with pytest.raises(
        ValueError, match=r"one entry for each of the 30 samples; got shape \(30, 1\)"
    ):
        HOLRRCV(ALPHAS, cv=GroupKFold(5)).fit(X, Y, groups=np.zeros((30, 1)))
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    groups = pd.Series(np.arange(30) % 5, index=np.arange(30)[::-1])
    with pytest.raises(ValueError, match="rows of X and groups have different labels"):
        HOLRRCV(ALPHAS, cv=GroupKFold(5)).fit(pd.DataFrame(X), Y, groups=groups)
    with pytest.raises(ValueError, match="split 0 of cv has only samples of weight zero"):
        HOLRRCV(ALPHAS, cv=3).fit(X, Y, np.repeat([0, 1, 1], 10))


@pytest.mark.parametrize("d0", [3, 40], ids=["primal", "dual"])
@pytest.mark.parametrize("cv", [5, ShuffleSplit(3, random_state=0)], ids=["KFold", "ShuffleSplit"])
def test_errors_about_missing_outputs_give_their_index_in_all_the_data(make_data, d0, cv):
    X, Y = make_data(d0=d0)
    Y[17, 0, 0] = np.nan
    with pytest.raises(ValueError, match="y contains NaN at index \\(17, 0, 0\\)"):
        HOLRRCV(ALPHAS, cv=cv).fit(X, Y)


def test_missing_outputs_of_samples_without_weight_are_refused(make_data):
    X, Y = make_data()
    w = np.ones(X.shape[0])
    Y[4, 0, 0], w[4] = np.nan, 0.0
    with pytest.raises(ValueError, match="y contains NaN at index \\(4, 0, 0\\)"):
        HOLRRCV(ALPHAS, cv=3).fit(X, Y, w)


def test_moments_of_folds_must_have_the_same_shapes(make_data):
    X, Y = make_data()
    a, model = Moments.from_arrays(X[:15], Y[:15]), HOLRRCV(ALPHAS)
    with pytest.raises(ValueError, match="at least two folds; got 1"):
        model.fit_fold_moments([a])
    with pytest.raises(TypeError, match=r"moments\[1\] must be a Moments"):
        model.fit_fold_moments([a, X])
    with pytest.raises(ValueError, match=r"moments\[1\] has 2 features"):
        model.fit_fold_moments([a, Moments.from_arrays(X[15:, :2], Y[15:])])


# ---------------------------------------------------------------- scikit-learn and progress


@quiet
def test_clone_pickle_pipeline_and_nested_cross_validation(make_data):
    X, Y = make_data()
    model = pickle.loads(pickle.dumps(HOLRRCV(ALPHAS).fit(X, Y)))
    fresh = clone(model).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), fresh.predict(X))
    pipe = make_pipeline(StandardScaler(), HOLRRCV(ALPHAS, cv=3)).fit(X, Y)
    assert pipe.predict(X).shape == Y.shape
    assert cross_val_predict(HOLRRCV(ALPHAS, cv=3), X, Y, cv=3).shape == Y.shape
    search = GridSearchCV(HOLRRCV(ALPHAS, cv=3), {"selection": ["min", "1se"]}, cv=2)
    assert search.fit(X, Y).best_params_["selection"] in ("min", "1se")


@quiet
def test_verbose_draws_a_progress_bar(make_data, capsys, monkeypatch):
    pytest.importorskip("rich")
    X, Y = make_data()
    HOLRRCV(ALPHAS, verbose=True).fit(X, Y)
    shown = capsys.readouterr().err
    assert "HOLRRCV" in shown
    assert "100%" in shown
    HOLRRCV(ALPHAS).fit(X, Y)
    assert capsys.readouterr().err == ""

    monkeypatch.setitem(sys.modules, "rich.console", None)  # as if rich were not installed
    with pytest.raises(ImportError, match=r'pip install "holrr\[progress\]"'):
        HOLRRCV(ALPHAS, verbose=True).fit(X, Y)


def test_splitters_that_cannot_split_are_named():
    X, Y = np.random.default_rng(0).normal(size=(2, 30, 4))
    for cv in [(1,), GroupKFold(3)]:
        with pytest.raises(ValueError, match=r"cv=.* does not split the 30 samples"):
            HOLRRCV(cv=cv).fit(X, Y)
    with pytest.raises(ValueError, match=r"cv=GroupKFold.* Pass the group of each sample"):
        HOLRRCV(cv=GroupKFold(3)).fit(X, Y)
    with pytest.raises(ValueError, match=r"cv=5 needs at least 5 samples; got 4\. Pass cv=4, or"):
        HOLRRCV().fit(X[:4], Y[:4])
    with pytest.raises(ValueError, match=r"needs at least 5 samples; got 1 sample\. Fit more"):
        HOLRRCV().fit(X[:1], Y[:1])
    model = HOLRRCV(cv=KFold(3).split(X)).fit(X, Y)
    with pytest.raises(ValueError, match="A generator can be used only once"):
        model.fit(X, Y)
