"""Searches of data on an accelerator.

The other devices of array-api-strict stand in for it, and torch on the host, which the library is
told to take for an accelerator.
"""

import pickle
import sys
from dataclasses import replace

import numpy as np
import pytest

from holrr import HOLRRCV, LRRCV, RLSCV, KernelHOLRRCV, Moments
from holrr.core import namespace
from holrr.core.namespace import to_numpy
from holrr.data.validation import open_data
from holrr.model_selection import folds, surface
from holrr.model_selection.folds import Problems, check_splits, sample_folds
from holrr.model_selection.grid import RankGrid
from holrr.model_selection.search import Surface, std_over_folds

SURFACES = ("mean_mse", "std_mse", "fold_mse")
SEARCHES = {
    "stack": (HOLRRCV, {}),
    "min": (HOLRRCV, {"selection": "min"}),
    "1se": (HOLRRCV, {"selection": "1se"}),
    "response": (HOLRRCV, {"subspaces": "response"}),
    "one penalty": (HOLRRCV, {"alphas": [1.0]}),
    "matrices": (LRRCV, {}),
    "ridge": (RLSCV, {}),
    "kernel": (KernelHOLRRCV, {"alphas": [0.1, 1.0, 10.0], "gammas": [0.02, 0.1]}),
    "criterion": (HOLRRCV, {"criterion": "gcv"}),
}


@pytest.fixture(params=["array_api_strict", "torch"])
def there(request, monkeypatch):
    """The function that copies NumPy arrays to the accelerator."""
    xp = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    if request.param == "array_api_strict":
        return lambda *arrays: [xp.asarray(A, device=xp.Device("device1")) for A in arrays]
    for name, module in list(sys.modules.items()):
        if name.startswith("holrr") and hasattr(module, "on_host"):
            monkeypatch.setattr(module, "on_host", lambda a: not isinstance(a, xp.Tensor))
    return lambda *arrays: [xp.asarray(A.copy()) for A in arrays]


def assert_same(here, far, X, there, rtol=1e-8):
    assert far.best_index_ == here.best_index_
    for name in SURFACES:
        if name in here.cv_results_:
            assert type(far.cv_results_[name]) is np.ndarray
            np.testing.assert_allclose(
                far.cv_results_[name], here.cv_results_[name], rtol=1e-8, atol=1e-10
            )
    assert not namespace.on_host(far.core_)
    np.testing.assert_allclose(to_numpy(far.predict(*there(X))), here.predict(X), rtol=rtol)


@pytest.mark.filterwarnings("ignore:The best penalty")
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    ("n", "d0", "shape"), [(40, 6, (4, 3)), (40, 6, ()), (30, 50, (5, 3)), (40, 5, (3, 2, 2))]
)
def test_a_search_on_an_accelerator_equals_one_on_the_host(make_data, search, n, d0, shape, there):
    X, Y = make_data(n=n, d0=d0, shape=shape, seed=3)
    make, options = SEARCHES[search]
    here, far = (make(cv=3, **options).fit(*data) for data in ((X, Y), there(X, Y)))
    assert_same(here, far, X, there)


@pytest.mark.parametrize("listed", [[(2, 2, 1), (3, 1, 2)], [(6, 4, 3), (1, 1, 1)]])
def test_ranks_that_are_not_candidates_are_nan(make_data, listed, there):
    X, Y = make_data(n=40, d0=6, shape=(4, 3), seed=3)
    here, far = HOLRRCV(ranks=listed).fit(X, Y), HOLRRCV(ranks=listed).fit(*there(X, Y))
    assert_same(here, far, X, there)
    for name in SURFACES:
        assert np.isnan(far.cv_results_[name]).any()


def test_a_stack_mixes_folds_that_support_different_ranks(make_data, there):
    """Four directions in one fold, where input rank 4 is ridge regression, and eight in the other.

    Models that agree in the fold that finds the weights share theirs: equally, up to rounding over
    the 1e-8 that make the weights unique. Other weights are the same to the last digits.
    """
    X, Y = make_data(n=14, d0=8, shape=(4, 3), seed=5)
    splits = [(np.arange(5), np.arange(5, 14)), (np.arange(4, 14), np.arange(4))]
    here, far = (HOLRRCV(cv=splits).fit(*data) for data in ((X, Y), there(X, Y)))
    assert_same(here, far, X, there, rtol=1e-7)
    weights = [
        dict(zip(zip(m.stack_alphas_, m.stack_ranks_, strict=True), m.stack_weights_, strict=True))
        for m in (here, far)
    ]
    assert weights[0] == pytest.approx(weights[1], rel=1e-6)
    for share in weights:
        smaller = here.stack_alphas_.min()
        both = share.pop((smaller, (4, 4, 3))), share.pop((smaller, None))
        assert both[0] == pytest.approx(both[1], rel=1e-6)
        share["both"] = sum(both)
    assert weights[0] == pytest.approx(weights[1], rel=1e-10)


def test_moments_of_folds_may_lie_on_an_accelerator(make_data, there):
    X, Y = make_data(n=60, d0=4, shape=(3, 2), seed=2)
    both = [
        HOLRRCV().fit_fold_moments([Moments.from_arrays(*part) for part in parts])
        for parts in (
            [(X[k::3], Y[k::3]) for k in range(3)],
            [there(X[k::3], Y[k::3]) for k in range(3)],
        )
    ]
    assert_same(*both, X, there)


@pytest.mark.parametrize(("rows", "together"), [(3, 2**29), (256, 1), (256, 5000), (3, 1)])
def test_errors_do_not_depend_on_how_many_penalties_are_computed_together(
    make_data, monkeypatch, rows, together, there
):
    """Some modes are decomposed on the host; penalties are computed singly, in pairs, or all."""
    X, Y = make_data(n=40, d0=6, shape=(4, 3), seed=4)
    here = HOLRRCV(cv=3).fit(X, Y)
    monkeypatch.setattr(surface, "_HOST_ROWS", rows)
    monkeypatch.setattr(surface, "_TOGETHER", together)
    assert_same(here, HOLRRCV(cv=3).fit(*there(X, Y)), X, there)


def test_penalties_are_computed_together_within_a_budget(make_data, monkeypatch, there):
    X, Y = make_data(n=40, d0=6, shape=(4, 3), seed=4)
    parts = sample_folds(open_data(*there(X, Y))[0], check_splits(4, X, Y))
    path = surface.rank_path(*parts.problem(0, 0, 0.1), (6, 4, 3), "fitted")
    alphas = [0.1, 1.0, 10.0]
    assert [s.stop - s.start for s in path.together(alphas)] == [1, 1, 1]  # no bases yet
    path.prepare(alphas)
    assert [s.stop - s.start for s in path.together(alphas)] == [3]
    monkeypatch.setattr(surface, "_TOGETHER", 2 * 32 * 72)
    assert [s.stop - s.start for s in path.together(alphas)] == [2, 1]


def test_a_path_is_kept_with_its_problem(make_data, there, monkeypatch):
    X, Y = make_data(n=40, d0=6, shape=(4, 3), seed=4)
    problems = Problems(sample_folds(open_data(*there(X, Y))[0], check_splits(4, X, Y)))
    path = problems.path(0, 0, 0.1, (6, 4, 3), "fitted")
    assert problems.path(0, 0, 0.1, (6, 4, 3), "fitted") is path
    assert problems.path(0, 0, 0.1, (6, 4, 2), "fitted") is not path
    assert problems.path(1, 0, 0.1, (6, 4, 3), "fitted") is not path
    monkeypatch.setattr(folds, "_KEPT", 0)
    one, two = (problems.path(2, 0, 0.1, (6, 4, 3), "fitted") for _ in range(2))
    assert one is not two


def test_results_are_a_dict_of_numpy_arrays(make_data, there):
    X, Y = make_data(n=40, d0=6, shape=(4, 3), seed=4)
    far = HOLRRCV(alphas=[0.1, 1.0]).fit(*there(X, Y))
    assert isinstance(far.cv_results_, dict)
    for value in far.cv_results_.values():
        assert isinstance(value, (np.ndarray, float))
    copy = pickle.loads(pickle.dumps(far))
    np.testing.assert_array_equal(copy.cv_results_["fold_mse"], far.cv_results_["fold_mse"])
    np.testing.assert_allclose(
        far.cv_results_["std_mse"], far.cv_results_["fold_mse"].std(axis=0), rtol=1e-10
    )


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e150])
def test_statistics_of_a_surface_on_an_accelerator(scale, there):
    """Two candidates, three penalties and ranks of which one is not a candidate."""
    rng = np.random.default_rng(0)
    fold_mse = scale * rng.uniform(1, 2, size=(4, 2, 3, 5, 2))
    fold_mse[..., 3, 1] = np.nan
    alphas, grid = np.array([0.1, 1.0, 10.0]), RankGrid((5, 2))
    here, far = (Surface(A, alphas, grid, 1.0, 2) for A in (fold_mse, *there(fold_mse)))
    with np.errstate(over="ignore", under="ignore"):
        expected = std_over_folds(fold_mse, here.device_mean)
        np.testing.assert_allclose(
            std_over_folds(far.fold_mse, far.device_mean), expected, rtol=1e-12
        )
        np.testing.assert_allclose(expected[0, 0], scale * (fold_mse / scale).std(axis=0)[0, 0])
    for ours, theirs in zip(here.profile(), far.profile(), strict=True):
        np.testing.assert_allclose(theirs, ours, rtol=1e-14)
    order = np.array([3, 0, 5, 1, 2, 4])
    both = far.joined(replace(far, alphas=2 * alphas), order)
    assert not namespace.on_host(both.fold_mse)
    np.testing.assert_array_equal(both.mean_mse, here.mean_mse[:, order % 3])
    np.testing.assert_array_equal(both.alphas, np.array([*alphas, *(2 * alphas)])[order])


@pytest.mark.parametrize(("room", "n_calls"), [(2**28, 1), (5 * 8 * 6 * 12, 1), (0, 5)])
def test_the_bases_of_all_folds_are_computed_together_where_memory_allows(
    make_data, monkeypatch, room, n_calls, there
):
    X, Y = make_data(n=40, d0=6, shape=(4, 3), seed=4)
    here, calls = HOLRRCV(selection="min").fit(X, Y), []

    def counted(stacks):
        calls.append(len(stacks))
        return eigenvectors(stacks)

    eigenvectors = surface._eigenvectors
    monkeypatch.setattr(surface, "_eigenvectors", counted)
    monkeypatch.setattr(folds, "_KEPT", room)
    far = HOLRRCV(here.alphas_, selection="min").fit(*there(X, Y))
    assert_same(here, far, X, there)
    assert len([n for n in calls if n > 0]) == n_calls
