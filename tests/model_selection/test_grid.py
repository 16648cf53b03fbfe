"""Grids of ranks and penalties."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr import (
    HOLRRCV,
    LRRCV,
    RLSCV,
    KernelHOLRRCV,
    KernelLRRCV,
    KernelRLSCV,
    Moments,
)
from problems import toy

ALPHAS = [0.1, 1.0, 10.0]
MULTILINEAR = [HOLRRCV, KernelHOLRRCV]
MATRIX = [LRRCV, KernelLRRCV]


def searched(make, **parameters):
    X, Y = toy()
    return make(ALPHAS, cv=3, selection="min", **parameters).fit(X, Y)


# ---------------------------------------------------------------- ranks


@pytest.mark.parametrize(
    ("make", "max_rank", "caps"),
    [
        *((make, 2, (2, 2, 2)) for make in MULTILINEAR),
        *((make, (3, 2, None), (3, 2, 4)) for make in MULTILINEAR),
        *((make, [1, 2, 3], (1, 2, 3)) for make in MULTILINEAR),
        *((make, 2, (2,)) for make in MATRIX),
        (LRRCV, None, (5,)),
        (KernelLRRCV, None, (12,)),
    ],
)
@pytest.mark.filterwarnings("ignore:The best penalty")
def test_max_rank_caps_the_ranks(make, max_rank, caps):
    """The errors of the ranks that are left are those of a search without a cap."""
    found, every = searched(make, max_rank=max_rank), searched(make)
    surface, whole = (model.cv_results_["mean_mse"] for model in (found, every))
    lead = surface.ndim - len(caps)
    assert surface.shape[lead:] == caps
    assert_allclose(surface, whole[(..., *(slice(cap) for cap in caps))], rtol=1e-9)
    assert all(R <= cap for R, cap in zip(np.atleast_1d(found.rank_), caps, strict=True))


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_no_rank_exceeds_the_product_of_the_other_sizes_unless_it_is_asked_for():
    X, Y = toy(n=20, d0=3, shape=(2, 50))
    for max_rank, caps in ((None, (3, 2, 6)), (20, (3, 2, 6)), ((3, 2, 20), (3, 2, 20))):
        model = HOLRRCV(ALPHAS, cv=2, max_rank=max_rank).fit(X, Y)
        assert model.cv_results_["mean_mse"].shape[1:] == caps


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_the_largest_training_set_limits_the_input_rank():
    """Six samples have five directions about their mean."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 8)), rng.normal(size=(9, 7))
    parts = [Moments.from_arrays(X[i], Y[i]) for i in (slice(3), slice(3, 9))]
    model = HOLRRCV(alphas=[1.0, 10.0], selection="min").fit_fold_moments(parts)
    assert model.cv_results_["mean_mse"].shape == (2, 5, 7)


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (HOLRRCV, {"max_rank": 0}, "max_rank=0.*at least 1"),
        (HOLRRCV, {"max_rank": (1, 1)}, r"max_rank=\(1, 1\).*3 entries"),
        (HOLRRCV, {"max_rank": (9, 1, 1)}, "max_rank.*got 9"),
        (HOLRRCV, {"max_rank": 0.5}, "max_rank=0.5.*must be ints"),
        (LRRCV, {"max_rank": (1, 1)}, r"max_rank=\(1, 1\)"),
        (KernelHOLRRCV, {"max_rank": (1, 9, 1)}, "max_rank.*got 9"),
    ],
)
def test_bad_ranks_are_refused_by_the_name_of_their_parameter(make, parameters, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        searched(make, **parameters)


# ---------------------------------------------------------------- penalties


def valley(power, d0=4, n_outputs=4000):
    """Data whose best penalty is about 10^power times the mean eigenvalue, which is one.

    The errors grow where strong directions are penalised that have no effect (negative powers), or
    where noise is fitted (positive powers). All folds have the same inputs.
    """
    rng = np.random.default_rng(0)
    sizes = 10.0 ** np.linspace(0, min(power, 0.0), d0)
    fold = np.linalg.qr(rng.normal(size=(d0, d0)))[0] * np.sqrt(sizes / sizes.mean())
    X = np.concatenate([fold] * 5) / np.sqrt(5)
    W = rng.choice([-1.0, 1.0], size=(d0, n_outputs))
    noise = np.sqrt(10.0**power)
    return X, X @ W + noise * rng.normal(size=(len(X), n_outputs))


def least_errors(model):
    """The error of the best rank at each penalty."""
    mse = model.cv_results_["mean_mse"]
    return mse.reshape(len(mse), -1).min(axis=1)


@pytest.mark.parametrize(
    ("make", "power"),
    [(RLSCV, p) for p in (-7.2, -5.0, -3.0, 0.0, 1.5, 2.6)]
    + [(HOLRRCV, p) for p in (-7.2, -4.0, 0.0)],
)
def test_default_penalties_are_widened_to_the_best_one_and_refined_next_to_it(make, power):
    """In half decades from 1e-4 to 1e2 times the mean eigenvalue, four more at each widening."""
    X, Y = valley(power, n_outputs=4000 if make is RLSCV else 1200)  # all surfaces are computed
    model = make(selection="min", fit_intercept=False).fit(X, Y)
    default = np.logspace(-4, 2, 13)  # the eigenvalues are one
    alphas, errors = model.alphas_, least_errors(model)
    logs = 2 * np.log10(alphas)
    is_coarse = np.abs(logs - np.round(logs)) < 1e-9
    coarse, above = alphas[is_coarse], errors[is_coarse]
    assert_allclose(np.diff(np.log10(coarse)), 0.5)
    assert (np.abs(coarse[:, None] / default - 1).min(axis=0) < 1e-9).all()
    # The best penalty lies within the grid, and was an end of the grid before each widening.
    best = int(np.argmin(above))
    assert 0 < best < coarse.size - 1
    more = coarse.size - default.size
    assert more % 4 == 0
    small, large = coarse[0] < 0.9e-4, coarse[-1] > 1.1e2
    assert small + large == (more > 0)
    if more:
        before = above[4:] if small else above[:-4]
        assert np.argmin(before) == (0 if small else before.size - 1)
    # Two more penalties are halfway to the neighbours of the best one.
    assert_allclose(alphas[~is_coarse], coarse[best] * 10.0 ** np.array([-0.25, 0.25]))
    assert abs(np.log10(model.alpha_) - power) < 0.5
    assert model.alpha_ == alphas[np.argmin(errors)]
    again = make(alphas, selection="min", fit_intercept=False).fit(X, Y)
    assert_allclose(again.cv_results_["fold_mse"], model.cv_results_["fold_mse"], rtol=1e-8)
    assert_array_equal(again.alphas_, alphas)


def test_a_grid_is_widened_at_most_three_times_and_the_search_warns():
    X, _ = valley(-13.0, d0=7)
    Y = X / np.linalg.norm(X, axis=0)  # every direction has the same effect
    with pytest.warns(UserWarning, match="is the smallest of the grid.*Widen the grid `alphas`"):
        model = RLSCV(fit_intercept=False).fit(X, Y)
    assert model.alphas_.size == 13 + 12 + 1  # and one next to the best, which is an end
    assert_allclose(model.alphas_[0], 1e-10)
    assert_allclose(model.alphas_[1], 10**-9.75)


def test_a_grid_is_not_widened_where_errors_are_flat():
    """Penalties that are far below the eigenvalues, or far above them, give equal errors."""
    X, Y = valley(0.0)
    for alphas in ([1e-14, 1e-13, 1e-12], [1e12, 1e13, 1e14]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            RLSCV(alphas, fit_intercept=False).fit(X, Y)


def test_the_warning_names_the_best_penalty_whatever_the_order_of_the_grid():
    for grid in ([0.1, 10.0, 1.0], [10.0, 0.1, 1.0], [1.0, 0.1, 10.0]):
        for power, text in ((4.0, "10, is the largest"), (-5.0, "0.1, is the smallest")):
            with pytest.warns(UserWarning, match=f"best penalty, {text} of the grid") as caught:
                RLSCV(grid, fit_intercept=False).fit(*valley(power))
            assert caught[0].filename == __file__


@pytest.mark.filterwarnings("ignore:The best penalty")
@pytest.mark.parametrize("scale", [2.0**-400, 2.0**400, 2.0**500])
def test_default_penalties_are_in_the_units_of_the_inputs_and_finite(scale):
    X, Y = valley(0.0)
    plain, scaled = (RLSCV().fit(X * s, Y) for s in (1.0, scale))
    assert np.isfinite(scaled.alphas_).all()
    if scale < 2.0**450:
        assert_allclose(scaled.alphas_ / scale / scale, plain.alphas_)
        assert_allclose(scaled.cv_results_["mean_mse"], plain.cv_results_["mean_mse"], rtol=1e-9)
    assert_allclose(scaled.predict(X * scale), plain.predict(X), rtol=1e-6, atol=1e-8)


@pytest.mark.filterwarnings("ignore:The best penalty")
@pytest.mark.parametrize("make", [RLSCV, LRRCV, HOLRRCV, KernelRLSCV, KernelHOLRRCV])
def test_searches_refine_default_penalties_and_no_others(make):
    X, Y = toy(n=20, noise=10.0)
    kernels = {"gammas": [0.01, 0.1]} if make in (KernelRLSCV, KernelHOLRRCV) else {}
    model = make(cv=3, selection="min", **kernels).fit(X, Y)
    steps = np.diff(np.log(model.alphas_))
    half = np.flatnonzero(steps < 0.75 * steps.max())
    assert half.size == 4
    assert half.tolist() == list(range(half[0], half[0] + 4))
    assert_allclose(steps[half], steps.max() / 2, rtol=1e-9)
    coarse = make(np.delete(model.alphas_, half[::2] + 1), cv=3, selection="min", **kernels)
    coarse.fit(X, Y)
    assert coarse.alpha_ == model.alphas_[half[2]]
    assert model.best_score_ >= coarse.best_score_ * (1 + 1e-12)
    assert_array_equal(coarse.alphas_, coarse.alphas)
    again = make(model.alphas_, cv=3, selection="min", **kernels).fit(X, Y)
    assert_allclose(model.cv_results_["mean_mse"], again.cv_results_["mean_mse"], rtol=1e-9)
    assert model.alpha_ == again.alpha_
