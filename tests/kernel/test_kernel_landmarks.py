"""The Nystroem approximation: exact with all samples as landmarks, and in batches."""

from __future__ import annotations

import tracemalloc

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.kernel_approximation import Nystroem

from holrr import HOLRR, RLS, KernelHOLRR, KernelLRR, KernelRLS
from problems import toy

ESTIMATORS = [KernelRLS(), KernelLRR(2), KernelHOLRR(2), KernelHOLRR(2, subspaces="response")]


@pytest.fixture(params=ESTIMATORS, ids=str)
def estimator(request):
    return clone(request.param).set_params(kernel="rbf", gamma=0.2, alpha=0.3)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", ["none", "outputs", "both"])
def test_all_samples_as_landmarks_give_the_exact_fit(estimator, intercept, weighted):
    X, Y = toy()
    w = np.random.default_rng(1).integers(0, 3, 40).astype(float) if weighted else None
    estimator.set_params(fit_intercept=intercept != "none", center_kernel=intercept == "both")
    exact = estimator.set_params(landmarks=None).fit(X, Y, w)
    expected, objective, bound = exact.predict(X + 0.1), exact.objective_, exact.lower_bound_
    n = 40 if w is None else np.count_nonzero(w)
    for params in ({"landmarks": n}, {"landmarks": X[::-1]}):
        model = estimator.set_params(**params)
        model.fit(X, Y, w)
        assert_allclose(model.predict(X + 0.1), expected, rtol=1e-6, atol=1e-7)
        assert_allclose([model.objective_, model.lower_bound_], [objective, bound], rtol=1e-7)


def test_approximation_equals_that_of_scikit_learn():
    X, Y = toy(n=200)
    points = X[:15]
    nystroem = Nystroem(kernel="rbf", gamma=0.2, n_components=15).fit(points)
    Phi = nystroem.transform(X)
    for kernel, linear in ((KernelRLS(0.3), RLS(0.3)), (KernelHOLRR(2, 0.3), HOLRR(2, 0.3))):
        model = kernel.set_params(kernel="rbf", gamma=0.2, landmarks=points).fit(X, Y)
        linear.fit(Phi, Y)
        assert_allclose(model.predict(X), linear.predict(Phi), rtol=1e-6, atol=1e-7)
        assert_allclose(model.objective_, linear.objective_, rtol=1e-8)
        assert model.dual_coef_.shape == (15, 3, 4)


def test_error_of_the_approximation_falls_with_the_number_of_landmarks():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    Y = np.sin(X @ rng.normal(size=(2, 6))).reshape(300, 2, 3)
    exact = KernelRLS(1e-2, kernel="rbf").fit(X, Y).predict(X)
    fit = {"kernel": "rbf", "random_state": 0}
    gaps = [
        np.abs(KernelRLS(1e-2, landmarks=m, **fit).fit(X, Y).predict(X) - exact).max()
        for m in (3, 40, 100)
    ]
    assert gaps[0] > 10 * gaps[1] > 1000 * gaps[2]


@pytest.mark.parametrize("weighted", [False, True])
def test_batches_give_the_fit_of_all_samples(estimator, weighted):
    X, Y = toy()
    w = np.random.default_rng(1).uniform(size=40) if weighted else None
    estimator.set_params(landmarks=X[5:20])
    whole = estimator.fit(X, Y, w)
    expected, objective = whole.predict(X), whole.objective_
    parts = type(estimator)(**estimator.get_params())
    for rows in (slice(0, 3), slice(3, 25), slice(25, 40)):
        parts.partial_fit(X[rows], Y[rows], None if w is None else w[rows])
    assert_allclose(parts.predict(X), expected, rtol=1e-8, atol=1e-9)
    assert_allclose(parts.objective_, objective, rtol=1e-9)
    # After a fit, which keeps no moments, it starts anew.
    again = type(estimator)(**estimator.get_params()).fit(X[:12], Y[:12])
    with pytest.warns(UserWarning, match="partial_fit starts from an empty model"):
        again.partial_fit(X, Y, w)
    assert_allclose(again.predict(X), expected, rtol=1e-8, atol=1e-9)


def test_landmarks_are_drawn_from_the_first_batch():
    X, Y = toy()
    model = KernelHOLRR(2, kernel="rbf", landmarks=6, random_state=3)
    model.partial_fit(X[:10], Y[:10]).partial_fit(X[10:], Y[10:])
    assert model.X_fit_.shape == (6, 5)
    assert all((X[:10] == row).all(axis=1).any() for row in model.X_fit_)
    given = KernelHOLRR(2, kernel="rbf", landmarks=model.X_fit_).fit(X, Y)
    assert_allclose(model.predict(X), given.predict(X), rtol=1e-8)
    assert model.moments_.n_samples == 40
    assert not hasattr(model.fit(X, Y), "moments_")


def test_batches_with_another_kernel_raise():

    X, Y = toy()
    model = KernelHOLRR(2, kernel="rbf", gamma=0.1, landmarks=X[:6]).partial_fit(X[:20], Y[:20])
    with pytest.raises(ValueError, match=r"gamma=2\.0.*gamma=0\.1"):
        model.set_params(gamma=2.0).partial_fit(X[20:], Y[20:])
    model.set_params(gamma=0.1).partial_fit(X[20:], Y[20:])
    whole = KernelHOLRR(2, kernel="rbf", gamma=0.1, landmarks=X[:6]).fit(X, Y)
    assert_allclose(model.predict(X), whole.predict(X), rtol=1e-8)
    with pytest.raises(ValueError, match="landmarks differs from the landmarks of earlier batches"):
        model.set_params(landmarks=X[1:7]).partial_fit(X, Y)


def test_batch_of_another_shape_raises_and_changes_nothing():
    X, Y = toy()
    model = KernelHOLRR(2, kernel="rbf", landmarks=6, random_state=0).partial_fit(X, Y)
    before = joblib.hash(vars(model))
    with pytest.raises(ValueError, match=r"outputs of shape \(3, 3\).*\(3, 4\)"):
        model.partial_fit(X, Y[:, :, :3])
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :3], Y)
    assert joblib.hash(vars(model)) == before


def test_partial_fit_needs_landmarks():
    X, Y = toy()
    model = KernelHOLRR(2)
    assert not hasattr(model, "partial_fit")
    with pytest.raises(AttributeError):
        model.partial_fit(X, Y)
    assert hasattr(KernelHOLRR(2, landmarks=3), "partial_fit")


def test_exact_fit_keeps_nothing_of_earlier_landmarks():
    X, Y = toy()
    model = KernelRLS(kernel="rbf", landmarks=5).fit(X, Y)
    fresh = KernelRLS(kernel="rbf").fit(X, Y)
    model.set_params(landmarks=None).fit(X, Y)
    assert joblib.hash(vars(model)) == joblib.hash(vars(fresh))
    with pytest.warns(UserWarning, match="partial_fit starts from an empty model"):
        model.set_params(landmarks=5).partial_fit(X, Y)


def test_bad_landmarks_raise():
    X, Y = toy()
    with pytest.raises(ValueError, match=r"landmarks.*5.*got 3"):
        KernelRLS(landmarks=X[:4, :3]).fit(X, Y)
    with pytest.raises(ValueError, match="precomputed"):
        KernelRLS(kernel="precomputed", landmarks=7).fit(X @ X.T, Y)
    with pytest.raises(ValueError, match="NaN"):
        KernelRLS(landmarks=np.full((2, 5), np.nan)).fit(X, Y)
    with pytest.warns(
        UserWarning, match="landmarks=99 exceeds the number of samples with positive weight, 40"
    ):
        KernelRLS(landmarks=99).fit(X, Y)


def test_repeated_landmarks_count_once():
    X, Y = toy()
    once = KernelRLS(kernel="rbf", landmarks=X[:6]).fit(X, Y)
    twice = KernelRLS(kernel="rbf", landmarks=np.vstack([X[:6], X[:6]])).fit(X, Y)
    assert_allclose(twice.predict(X), once.predict(X), rtol=1e-7)


def test_memory_does_not_grow_with_the_square_of_the_samples():
    X, Y = toy(n=20_000, shape=(3,))
    tracemalloc.start()
    model = KernelLRR(2, kernel="rbf", landmarks=50, random_state=0).fit(X, Y)
    model.predict(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The kernel values with all landmarks take 8 MB, those with all samples 3.2 GB.
    assert peak < 150e6


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_predictions_scale_with_the_outputs(scale):
    X, Y = toy()
    model = KernelHOLRR(2, 0.1, kernel="rbf", landmarks=8, random_state=0)
    expected = model.fit(X, Y).predict(X)
    assert_allclose(model.fit(X, scale * Y).predict(X) / scale, expected, rtol=1e-7, atol=1e-8)
