"""Large searches first try small input ranks."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr import HOLRRCV, KernelHOLRRCV
from holrr.model_selection import search


def data(n=60, d0=12, shape=(5, 4), rank=2, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d0)) * np.linspace(1, 0.2, d0)
    W = np.einsum("ir,rjk->ijk", rng.normal(size=(d0, rank)), rng.normal(size=(rank, *shape)))
    return X, np.tensordot(X, W, 1) + noise * rng.normal(size=(n, *shape))


def both(monkeypatch, model, X, Y, **limits):
    """Searches that compute the errors of all ranks, and that first try small input ranks."""
    found = []
    for large in (np.inf, 0.0):
        monkeypatch.setattr(search, "_LARGE", large)
        for name, value in limits.items():
            monkeypatch.setattr(search, name, value)
        found.append(model().fit(X, Y))
    return found


@pytest.mark.parametrize("selection", ["1se", lambda results: np.nanargmin(results["mean_mse"])])
def test_other_rules_see_the_errors_of_all_ranks(monkeypatch, selection):
    monkeypatch.setattr(search, "_LARGE", 0.0)
    monkeypatch.setattr(search, "_LEADING", 6)
    found = HOLRRCV(selection=selection).fit(*data()).cv_results_["mean_mse"]
    assert found.shape[1:] == (12, 5, 4)


def test_large_input_ranks_are_computed_if_the_best_rank_may_be_one(monkeypatch):
    for rank, largest in ((2, 6), (5, 12)):  # of twelve
        X, Y = data(n=200, rank=rank, noise=0.3)
        every, near = both(monkeypatch, HOLRRCV, X, Y, _LEADING=6)
        assert near.cv_results_["n_parameters"].shape == (largest, 5, 4)
        assert near.best_index_ == every.best_index_
        assert_allclose(near.best_score_, every.best_score_, rtol=1e-10)
        assert_allclose(near.ridge_mse_, every.ridge_mse_, rtol=1e-12)


def test_errors_of_kernel_searches_are_those_of_all_ranks(monkeypatch):
    def model():
        return KernelHOLRRCV(gammas=[0.01, 0.1])

    every, near = both(monkeypatch, model, *data(), _LEADING=16)
    whole, some = (model.cv_results_["mean_mse"] for model in (every, near))
    assert some.shape[2] == 16 < whole.shape[2]
    assert_allclose(some, whole[:, :, :16], rtol=1e-10)
    assert_allclose(near.held_out_mse_, every.held_out_mse_, rtol=1e-3)


def test_ridge_regression_stays_a_candidate_of_small_input_ranks(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 12))
    Y = np.tensordot(X, rng.normal(size=(12, 5, 4)), 1) + rng.normal(size=(300, 5, 4))
    for selection in ("auto", "min"):
        model = lambda s=selection: HOLRRCV(selection=s)  # noqa: E731
        every, near = both(monkeypatch, model, X, Y, _LEADING=4)
        assert_allclose(near.held_out_mse_, every.held_out_mse_, rtol=1e-3)
        assert near.held_out_mse_ <= near.ridge_mse_ * 1.001
