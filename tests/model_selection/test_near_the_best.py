"""Large searches compute error surfaces only near the best penalty, and first small input ranks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from test_grid import valley

from holrr import HOLRRCV, LRRCV, KernelHOLRRCV
from holrr.model_selection import search


def data(n=60, d0=12, shape=(5, 4), rank=2, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d0)) * np.linspace(1, 0.2, d0)
    W = np.einsum("ir,rjk->ijk", rng.normal(size=(d0, rank)), rng.normal(size=(rank, *shape)))
    return X, np.tensordot(X, W, 1) + noise * rng.normal(size=(n, *shape))


def both(monkeypatch, model, X, Y, **limits):
    """A search that computes all surfaces, and one that computes those near the best penalty."""
    found = []
    for large in (np.inf, 0.0):
        monkeypatch.setattr(search, "_LARGE", large)
        for name, value in limits.items():
            monkeypatch.setattr(search, name, value)
        found.append(model().fit(X, Y))
    return found


MODELS = {
    "HOLRRCV": HOLRRCV,
    "LRRCV": LRRCV,
    "many penalties": lambda: HOLRRCV(np.logspace(-4, 5, 19)),
    "decreasing": lambda: HOLRRCV(np.logspace(5, -4, 19), selection="min"),
    "kernels": lambda: KernelHOLRRCV(gammas=[0.01, 0.1], selection="min"),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("noise", [0.5, 3.0])
def test_known_errors_are_those_of_all_penalties(monkeypatch, name, noise):
    for seed in range(3):
        every, near = both(monkeypatch, MODELS[name], *data(noise=noise, seed=seed))
        whole, some = (model.cv_results_["mean_mse"] for model in (every, near))
        assert_allclose(near.alphas_, every.alphas_)
        known = np.isfinite(some)
        assert known.sum() < known.size
        assert_allclose(some[known], whole[known], rtol=1e-10)
        assert near.best_index_ == every.best_index_
        assert_allclose(near.ridge_mse_, every.ridge_mse_, rtol=1e-12)
        assert_allclose(near.held_out_mse_, every.held_out_mse_, rtol=0.01)
        ranks = tuple(range(-every.cv_results_["n_parameters"].ndim, 0))
        least = np.nanmin(whole, axis=ranks)
        place = near.best_index_[: least.ndim]
        order = np.argsort(near.alphas_)
        at = int(np.flatnonzero(order == place[-1])[0])
        for other in order[max(at - 1, 0) : at + 2]:  # the neighbours were compared
            assert np.isfinite(some[(*place[:-1], other)]).all()


@pytest.mark.parametrize("power", [-7.2, -4.0, 0.0])
def test_default_grids_are_widened_as_with_all_penalties(monkeypatch, power):
    X, Y = valley(power, n_outputs=400)

    def model():
        return HOLRRCV(selection="min", fit_intercept=False)

    every, near = both(monkeypatch, model, X, Y)
    assert_allclose(near.alphas_, every.alphas_)
    assert near.best_index_ == every.best_index_


@pytest.mark.parametrize("selection", ["1se", lambda results: np.nanargmin(results["mean_mse"])])
def test_other_rules_see_the_errors_of_all_penalties(monkeypatch, selection):
    monkeypatch.setattr(search, "_LARGE", 0.0)
    found = HOLRRCV(selection=selection).fit(*data()).cv_results_["mean_mse"]
    assert np.isfinite(found).all()


def test_large_input_ranks_are_computed_if_the_best_rank_may_be_one(monkeypatch):
    for rank, largest in ((2, 6), (5, 12)):  # of twelve
        X, Y = data(n=200, rank=rank, noise=0.3)
        every, near = both(monkeypatch, HOLRRCV, X, Y, _LEADING=6)
        assert near.cv_results_["n_parameters"].shape == (largest, 5, 4)
        assert near.best_index_ == every.best_index_
        assert_allclose(near.best_score_, every.best_score_, rtol=1e-10)
        assert_allclose(near.ridge_mse_, every.ridge_mse_, rtol=1e-12)


def test_ridge_regression_stays_a_candidate_of_small_input_ranks(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    Y = np.tensordot(X, rng.normal(size=(12, 5, 4)), 1) + rng.normal(size=(300, 5, 4))
    for selection in ("auto", "min"):
        model = lambda s=selection: HOLRRCV(selection=s)  # noqa: E731
        every, near = both(monkeypatch, model, X, Y, _LEADING=4)
        assert_allclose(near.held_out_mse_, every.held_out_mse_, rtol=1e-3)
        assert near.held_out_mse_ <= near.ridge_mse_ * 1.001
