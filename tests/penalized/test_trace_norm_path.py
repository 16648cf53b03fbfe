"""A path of trace norm regression has the separate fits of its penalties."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr import TraceNormRegression, trace_norm_path
from problems import toy


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("n", "d0"), [(40, 5), (9, 20)])
def test_path_has_the_separate_fits_by_decreasing_penalty(n, d0, weighted):
    X, Y = toy(n=n, d0=d0)
    w = np.random.default_rng(1).uniform(0.1, 2, n) if weighted else None
    params = {"tol": 1e-8, "max_iter": 10000, "alpha": 0.1}
    models = trace_norm_path(X, Y, [0.5, 30.0, 3.0], sample_weight=w, **params)
    assert [model.penalty for model in models] == [30.0, 3.0, 0.5]
    for model in models:
        alone = TraceNormRegression(model.penalty, **params).fit(X, Y, w)
        assert_allclose(model.objective_, alone.objective_, rtol=2e-8)
        assert_allclose(model.predict(X), alone.predict(X), atol=2e-3 * np.abs(Y).max())


def test_each_fit_starts_at_the_previous_one():
    X, Y = toy(n=40, d0=5)
    largest = TraceNormRegression().fit(X, Y).penalty_max_
    penalties = largest * np.logspace(-0.2, -2, 25)
    path = trace_norm_path(X, Y, penalties)
    alone = [TraceNormRegression(penalty).fit(X, Y) for penalty in penalties]
    assert sum(m.n_iter_ for m in path) < 0.9 * sum(m.n_iter_ for m in alone)


@pytest.mark.parametrize(("scale_x", "scale_y"), [(1.0, 1.0), (1e90, 1e-70), (1e-70, 1e80)])
def test_default_path_starts_where_the_coefficients_become_zero(scale_x, scale_y):
    X, Y = toy()
    models = trace_norm_path(scale_x * X, scale_y * Y)
    largest = TraceNormRegression().fit(X, Y).penalty_max_ * scale_x * scale_y
    assert_allclose(models[0].penalty, largest, rtol=1e-10)
    assert models[0].rank_ == (0,) * Y.ndim
    assert models[-1].rank_ == TraceNormRegression(0).fit(X, Y).tucker_.rank
    assert (np.diff([model.penalty for model in models]) < 0).all()


def test_models_of_a_path_can_be_fitted_again():
    X, Y = toy()
    model = trace_norm_path(X, Y)[3]
    assert not model.warm_start
    predicted = model.predict(X)
    assert_allclose(model.fit(X, Y).predict(X), predicted, atol=1e-3 * np.abs(Y).max())


def test_parameters_that_the_path_sets_are_refused():
    with pytest.raises(TypeError, match=r"trace_norm_path sets penalty itself; got penalty=1"):
        trace_norm_path(*toy(), penalty=1.0)
