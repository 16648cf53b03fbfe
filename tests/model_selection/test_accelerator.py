"""Searches of data on an accelerator, for which other devices stand in, equal those of NumPy."""

import pickle

import numpy as np
import pytest

from holrr import HOLRRCV, LRRCV, RLSCV, KernelHOLRRCV, Moments

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

SURFACES = ("mean_mse", "std_mse", "fold_mse")
SEARCHES = {
    "stack": (HOLRRCV, {}),
    "min": (HOLRRCV, {"selection": "min"}),
    "1se": (HOLRRCV, {"selection": "1se"}),
    "one penalty": (HOLRRCV, {"alphas": [1.0]}),
    "matrices": (LRRCV, {}),
    "ridge": (RLSCV, {}),
    "kernel": (KernelHOLRRCV, {"alphas": [0.1, 1.0, 10.0], "gammas": [0.02, 0.1]}),
}


def assert_same(here, far, X, xp, rtol=1e-8):
    assert far.best_index_ == here.best_index_
    assert isinstance(far.cv_results_, dict)
    for name, value in far.cv_results_.items():
        assert type(value) in (np.ndarray, float) or name in ("kernels", "ways")
    for name in SURFACES:
        if name in here.cv_results_:
            np.testing.assert_allclose(
                far.cv_results_[name], here.cv_results_[name], rtol=1e-8, atol=1e-10
            )
    assert xp.owns(far.core_)
    np.testing.assert_allclose(
        xp.to_numpy(far.predict(xp.asarray(X))), here.predict(X), rtol=rtol, atol=1e-10
    )


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    ("n", "d0", "shape"), [(40, 6, (4, 3)), (40, 6, ()), (30, 50, (5, 3)), (40, 5, (3, 2, 2))]
)
def test_a_search_on_an_accelerator_equals_one_on_the_host(
    make_data, search, n, d0, shape, device_xp
):
    X, Y = make_data(n=n, d0=d0, shape=shape, seed=3)
    make, options = SEARCHES[search]
    here = make(cv=3, **options).fit(X, Y)
    far = make(cv=3, **options).fit(device_xp.asarray(X), device_xp.asarray(Y))
    assert_same(here, far, X, device_xp)
    copy = pickle.loads(pickle.dumps(far))
    for name, value in far.cv_results_.items():
        np.testing.assert_array_equal(copy.cv_results_[name], value)


@pytest.mark.parametrize("selection", ["stack", "min"])
def test_long_modes_on_an_accelerator(make_data, selection, device_xp):
    """Modes of more than 256 outputs are decomposed one by one."""
    X, Y = make_data(n=40, d0=4, shape=(270, 2), seed=3)
    search = {"cv": 3, "max_rank": (4, 3, 2), "selection": selection}
    here = HOLRRCV(**search).fit(X, Y)
    far = HOLRRCV(**search).fit(device_xp.asarray(X), device_xp.asarray(Y))
    assert_same(here, far, X, device_xp)


def test_the_stack_of_an_accelerator_has_the_weights_of_the_host(make_data, device_xp):
    """Training sets of two folds that support four and eight directions."""
    X, Y = make_data(n=14, d0=8, shape=(4, 3), seed=5)
    splits = [(np.arange(5), np.arange(5, 14)), (np.arange(4, 14), np.arange(4))]
    here = HOLRRCV(cv=splits).fit(X, Y)
    far = HOLRRCV(cv=splits).fit(device_xp.asarray(X), device_xp.asarray(Y))
    assert_same(here, far, X, device_xp, rtol=1e-6)
    assert here.held_out_mse_ == pytest.approx(far.held_out_mse_, rel=1e-7)


def test_moments_of_folds_may_lie_on_an_accelerator(make_data, device_xp):
    X, Y = make_data(n=60, d0=4, shape=(3, 2), seed=2)
    both = [
        HOLRRCV().fit_fold_moments(
            [Moments.from_arrays(convert(X[k::3]), convert(Y[k::3])) for k in range(3)]
        )
        for convert in (np.asarray, device_xp.asarray)
    ]
    assert_same(*both, X, device_xp)


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_errors_of_large_and_small_outputs_on_an_accelerator(make_data, scale, device_xp):
    X, Y = make_data(n=40, d0=6, shape=(4, 3), seed=4)
    here = HOLRRCV(selection="1se").fit(X, scale * Y)
    far = HOLRRCV(selection="1se").fit(device_xp.asarray(X), device_xp.asarray(scale * Y))
    assert far.best_index_ == here.best_index_
    for name in SURFACES:
        np.testing.assert_allclose(far.cv_results_[name], here.cv_results_[name], rtol=1e-8)
