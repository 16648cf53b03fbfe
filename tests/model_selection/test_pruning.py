"""A pruned search makes the same choice as an exhaustive one, and computes less."""

from functools import partial

import numpy as np
import pytest

from holrr import HOLRRCV, LRRCV, KernelHOLRRCV, KernelLRRCV
from holrr.data.validation import Samples
from holrr.datasets import make_tensor_regression
from holrr.model_selection import pruning
from holrr.model_selection.folds import check_splits, sample_folds
from holrr.model_selection.grid import RankGrid
from holrr.model_selection.pruning import Screen, is_worthwhile
from holrr.model_selection.surface import rank_path
from holrr.plotting import RankSurfaceDisplay

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

# samples, features, outputs: wide and tall, with long modes and short ones, p = 1, 2, 3.
SHAPES = [
    (50, 35, (70,)),
    (40, 60, (7, 6)),  # fewer samples than features
    (60, 30, (4, 3, 5)),
    (50, 35, (66, 2)),
    (70, 28, (27,)),
]
CHOICES = ["stack", "min", "1se"]
KERNELS = {"gammas": [0.003, 0.01, 0.03]}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Prune problems that are small enough for tests, with screens of as few directions."""
    monkeypatch.setattr(pruning, "_MANY", 20)
    monkeypatch.setattr(pruning, "N_DIRECTIONS", 12)
    monkeypatch.setattr(pruning, "N_OUTPUT_DIRECTIONS", 4)


def make(n, d0, shape, seed=0, snr=1.0):
    rank = tuple(min(3, d) for d in (d0, *shape)) if len(shape) > 1 else (3, 3)
    return make_tensor_regression(
        n, n_features=d0, output_shape=shape, rank=rank, snr=snr, random_state=seed
    )


def both(make_model, X, Y, *args):
    return [make_model(search).fit(X, Y, *args) for search in ("exhaustive", "pruned")]


def effective_rank(model):
    """Numbers of directions of the core that are more than rounding."""
    core = np.asarray(model.core_) / max(np.abs(model.core_).max(), 1e-300)
    norms = [
        np.linalg.norm(np.moveaxis(core, i, 0).reshape(n, -1), axis=1)
        for i, n in enumerate(core.shape)
    ]
    return tuple(int((norm > 1e-12 * np.linalg.norm(norm)).sum()) for norm in norms)


def assert_same_choice(full, pruned):
    assert pruned.best_index_ == full.best_index_
    assert (pruned.alpha_, effective_rank(pruned)) == (full.alpha_, effective_rank(full))
    np.testing.assert_array_equal(pruned.alphas_, full.alphas_)
    assert pruned.best_params_ == full.best_params_
    for name in ("best_score_", "held_out_mse_", "null_mse_", "ridge_mse_", "noise_"):
        # Errors are differences of numbers of the size of the null error.
        tol = {"rtol": 1e-10, "atol": 1e-13 * (full.null_mse_ if name != "noise_" else 0.0)}
        np.testing.assert_allclose(getattr(pruned, name), getattr(full, name), **tol)
    np.testing.assert_allclose(pruned.coef_, full.coef_, atol=1e-10 * np.abs(full.coef_).max())
    assert hasattr(pruned, "stack_ranks_") == hasattr(full, "stack_ranks_")
    if hasattr(full, "stack_ranks_"):
        assert pruned.stack_ranks_ == full.stack_ranks_
        np.testing.assert_array_equal(pruned.stack_alphas_, full.stack_alphas_)
        np.testing.assert_allclose(pruned.stack_weights_, full.stack_weights_, atol=1e-10)


@pytest.mark.parametrize("selection", CHOICES)
@pytest.mark.parametrize("shape", [(60, 50, (6, 7)), (80, 45, (30,)), (40, 60, (5, 3, 4))])
@pytest.mark.parametrize("make_model", [LRRCV, partial(KernelLRRCV, **KERNELS)])
def test_a_pruned_search_chooses_the_same_rank_of_a_matrix(make_model, shape, selection):
    X, Y = make(*shape, seed=6)
    full, pruned = both(lambda s: make_model(selection=selection, search=s), X, Y)
    assert pruned.best_index_ == full.best_index_
    assert (pruned.alpha_, pruned.rank_) == (full.alpha_, full.rank_)
    new = make(*shape, seed=7)[0]
    np.testing.assert_allclose(pruned.predict(new), full.predict(new), atol=1e-9)
    assert computed(full).all()
    assert not computed(pruned).all()


@pytest.mark.parametrize("selection", CHOICES)
@pytest.mark.parametrize("shape", [(24, 4, (58, 9)), (30, 6, (90, 2)), (34, 50, (5, 6, 25))])
def test_a_pruned_search_of_many_kernels_and_few_samples_makes_the_same_choice(shape, selection):
    """Long output modes are screened within their leading directions."""
    X, Y = make(*shape, seed=8)
    grid = {"gammas": np.logspace(-3, 0, 4), "alphas": np.logspace(-4, 2, 9)}
    make_model = lambda s: KernelHOLRRCV(selection=selection, search=s, **grid)  # noqa: E731
    full, pruned = both(make_model, X, Y)
    assert pruned.best_index_ == full.best_index_
    np.testing.assert_allclose(pruned.predict(X), full.predict(X), atol=1e-8)
    assert not computed(pruned).all()


@pytest.mark.parametrize("snr", [0.3, 30.0])
def test_screens_are_widened_where_the_ranks_are_large(snr):
    X, Y = make_tensor_regression(
        90, n_features=30, output_shape=(14, 15), rank=(20, 9, 9), snr=snr, random_state=3
    )
    full, pruned = both(lambda s: HOLRRCV(search=s), X, Y)
    assert_same_choice(full, pruned)


def computed(model):
    """Which pairs of candidate and penalty have a surface."""
    mean = model.cv_results_["mean_mse"]
    n = mean.ndim - model.cv_results_["n_parameters"].ndim
    return np.isfinite(mean).any(axis=tuple(range(n, mean.ndim)))


@pytest.mark.parametrize("selection", CHOICES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_pruned_search_makes_the_choice_of_an_exhaustive_one(shape, selection):
    X, Y = make(*shape)
    full, pruned = both(lambda s: HOLRRCV(selection=selection, search=s), X, Y)
    assert_same_choice(full, pruned)
    assert computed(full).all()
    assert not computed(pruned).all()


@pytest.mark.parametrize(
    ("shape", "selection"),
    [*[(shape, "stack") for shape in SHAPES], *[(s, c) for s in SHAPES[1:3] for c in CHOICES[1:]]],
)
def test_a_pruned_search_chooses_the_same_kernel(shape, selection):
    X, Y = make(*shape, seed=1)
    full, pruned = both(lambda s: KernelHOLRRCV(selection=selection, search=s, **KERNELS), X, Y)
    coef, other = full.dual_coef_, pruned.dual_coef_
    assert pruned.gamma_ == full.gamma_
    assert pruned.best_index_ == full.best_index_
    np.testing.assert_allclose(other, coef, atol=1e-8 * np.abs(coef).max())
    np.testing.assert_allclose(pruned.best_score_, full.best_score_, rtol=1e-10)
    assert computed(pruned).mean() < 0.7


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("snr", [0.1, 10.0])
def test_the_choice_is_the_same_whatever_the_noise(seed, snr):
    X, Y = make(60, 40, (6, 7), seed=seed, snr=snr)
    assert_same_choice(*both(lambda s: HOLRRCV(search=s), X, Y))


@pytest.mark.parametrize(
    "parameters",
    [
        {"subspaces": "response"},
        {"fit_intercept": False},
        {"refine": True},
        {"max_rank": (None, 3, 4)},
        {"ranks": [(1, 1, 1), (3, 3, 3), (35, 6, 7)]},
        {"alphas": [1.0, 1e-3, 10.0, 1e3, 0.0]},  # in no order
        {"cv": 2},
        {"n_jobs": 2},
    ],
)
def test_the_choice_is_the_same_with_other_parameters(parameters):
    X, Y = make(70, 35, (6, 7), seed=2)
    assert_same_choice(*both(lambda s: HOLRRCV(search=s, **parameters), X, Y))


@pytest.mark.parametrize("selection", ["stack", "min", "1se"])
@pytest.mark.parametrize(
    ("n", "ranks"),
    [
        (36, [(13, 25), (15, 31), (15, 16), (10, 30)]),  # more outputs than a fold has samples
        (70, [(2, 2), (30, 30), (33, 35)]),  # beyond the directions of a screen
        (70, [(30, 30), (33, 35)]),
    ],
)
def test_the_choice_is_the_same_among_listed_ranks(n, ranks, selection):
    X, Y = make(n, 40, (37,), seed=5)
    make_model = lambda s: HOLRRCV(ranks=ranks, selection=selection, search=s)  # noqa: E731
    assert_same_choice(*both(make_model, X, Y))


def test_the_choice_is_the_same_with_weights():
    X, Y = make(70, 35, (6, 7), seed=3)
    w = np.random.default_rng(0).uniform(0, 2, 70)
    w[::7] = 0
    assert_same_choice(*both(lambda s: HOLRRCV(search=s), X, Y, w))


def test_the_choice_is_the_same_where_the_grid_is_widened():
    X, Y = make(70, 35, (6, 7), seed=4, snr=1e4)
    full, pruned = both(lambda s: HOLRRCV(search=s, selection="min"), X, Y)
    assert full.alphas_.size > 13
    assert_same_choice(full, pruned)


def test_small_penalties_are_tried_although_larger_ones_have_a_local_minimum():
    X, Y = make(72, 54, (88,), seed=840, snr=2.7)
    X, Y = X * np.logspace(0, -2, 54), np.tanh(Y / Y.std())
    full, pruned = both(lambda s: HOLRRCV(search=s), X, Y)
    least = full.cv_results_["mean_mse"].min(axis=(1, 2))
    assert ((least[1:-1] > least[:-2]) & (least[1:-1] > least[2:])).any()  # two minima
    assert_same_choice(full, pruned)


def test_the_choice_is_the_same_for_large_outputs_without_signal():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 35)), rng.normal(size=(60, 6, 7)) * 1e160
    assert_same_choice(*both(lambda s: HOLRRCV(search=s), X, Y))


# ---------------------------------------------------------------- results


def test_surfaces_are_those_of_the_exhaustive_search_and_nan_elsewhere():
    X, Y = make(120, 50, (20, 4), seed=5)
    full, pruned = both(lambda s: HOLRRCV(search=s, selection="min"), X, Y)
    found = computed(pruned)
    for name in ("mean_mse", "std_mse", "fold_mse"):
        ours, theirs = pruned.cv_results_[name], full.cv_results_[name]
        assert ours.shape == theirs.shape
        seen = np.isfinite(ours)
        np.testing.assert_array_equal(seen, np.broadcast_to(found[:, None, None, None], ours.shape))
        np.testing.assert_allclose(ours[seen], theirs[seen], rtol=1e-9)
    np.testing.assert_array_equal(
        pruned.cv_results_["n_parameters"], full.cv_results_["n_parameters"]
    )
    # The screen estimates the least errors of the penalties near the best one.
    least = full.cv_results_["mean_mse"].min(axis=(1, 2, 3))
    screened = pruned.cv_results_["screened_mse"]
    assert screened.shape == pruned.alphas_.shape == (15,)
    near = found | (least < 1.005 * least.min())
    np.testing.assert_allclose(screened[near], least[near], rtol=5e-3)


def test_the_display_draws_the_surfaces_that_were_computed():
    X, Y = make(70, 35, (6, 7), seed=2)
    display = RankSurfaceDisplay.from_estimator(HOLRRCV().fit(X, Y))
    assert np.isnan(display.surface).any()
    assert display.axes_.shape == (3, 3)


def test_small_problems_and_callables_are_searched_exhaustively(monkeypatch):
    X, Y = make(70, 35, (6, 7), seed=2)
    chosen = HOLRRCV(selection=lambda results: int(np.argmin(results["mean_mse"]))).fit(X, Y)
    assert computed(chosen).all()
    monkeypatch.setattr(pruning, "_MANY", 192)
    assert computed(HOLRRCV().fit(X, Y)).all()


def test_a_screen_of_all_directions_is_exact(make_data):
    X, Y = make_data(n=40, d0=6, shape=(5, 4), seed=1)
    folds = sample_folds(Samples(X, Y), check_splits(4, X, Y))
    path = rank_path(*folds.problem(0, 0, 0.1), (6, 5, 4), "fitted")
    for alpha in (0.1, 3.0):
        (errors,) = Screen(path, [1.0], (6, 5, 4)).errors([alpha])
        np.testing.assert_allclose(errors[0], path.errors(alpha), rtol=1e-10)


@pytest.mark.parametrize(
    ("shape", "caps", "listed", "n_penalties", "expected"),
    [
        ((30, 40), (30, 40), None, 13, True),
        ((30, 40), (30, 40), None, 3, False),  # few penalties
        ((30,), (1,), None, 13, False),  # scalar outputs
        ((30, 40), (30,), None, 13, True),  # matrix ranks
        ((30, 4, 10), (30, 4), None, 13, False),  # some of the output modes
        ((10, 40), (10, 40), None, 13, False),  # few directions
        ((30, 10), (30, 10), None, 13, False),
        ((30, 40), (12, 40), ((12, 40),), 13, True),
        ((30, 40), (25, 40), ((25, 40),), 13, False),  # listed beyond the screen
    ],
)
def test_pruning_is_worthwhile_for_large_problems(shape, caps, listed, n_penalties, expected):
    X, Y = np.ones((50, shape[0])), np.ones((50, *shape[1:]))
    folds = sample_folds(Samples(X, Y), check_splits(5, X, Y))
    assert is_worthwhile(folds, RankGrid(caps, listed), n_penalties) == expected


def test_bad_search_is_refused():
    with pytest.raises(ValueError, match="search"):
        HOLRRCV(search="quick").fit(*make(30, 4, (3, 2)))
