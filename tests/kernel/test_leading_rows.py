"""Fits of low rank to many outputs, from the leading eigenpairs of ``Z'Z`` alone."""

import numpy as np
import pytest

from holrr import KernelHOLRR, KernelHOLRRCV, KernelLRR
from holrr.core.namespace import to_numpy
from holrr.core.tensor import gram, partial_traces, unfold
from holrr.kernel import _problem, _root
from holrr.kernel._gram import centred_gram
from holrr.kernel._kernels import kernel_function
from holrr.kernel._responses import centre_responses

STRUCTURES = {
    "one rank": lambda p: KernelHOLRR(rank=3, alpha=0.3, kernel="rbf"),
    "each its own": lambda p: KernelHOLRR(rank=(3, *(2,) * p), alpha=0.3, kernel="rbf"),
    "shares of output modes": lambda p: KernelHOLRR(rank=(4, *(0.9,) * p), alpha=0.3, kernel="rbf"),
    "raw outputs": lambda p: KernelHOLRR(rank=3, alpha=0.3, kernel="rbf", subspaces="response"),
    "matrices": lambda p: KernelLRR(rank=4, alpha=0.3, kernel="rbf"),
    "no intercept": lambda p: KernelHOLRR(rank=3, alpha=0.3, kernel="rbf", fit_intercept=False),
    "linear kernel": lambda p: KernelHOLRR(rank=3, alpha=0.3, kernel="linear"),
}


def data(shape, n=310, seed=0):
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    X = rng.normal(size=(n, 5))
    signal = np.tanh(X @ rng.normal(size=(5, 4)) @ rng.normal(size=(4, size)) / 3)
    return X, (2 * signal + 0.5 * rng.normal(size=(n, size))).reshape(n, *shape)


@pytest.fixture
def calls(monkeypatch):
    """How often only the leading rows were taken."""
    found = []

    def counted(*args):
        rows = _root.leading_rows(*args)
        found.append(rows is not None)
        return rows

    monkeypatch.setattr(_problem, "leading_rows", counted)
    return found


def assert_same(a, b, X, tol=1e-9):
    assert a.rank_ == b.rank_
    np.testing.assert_allclose(a.predict(X), b.predict(X), rtol=tol, atol=tol)
    for name in ("objective_", "lower_bound_", "energy_", "noise_"):
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=tol)
    for ours, theirs in zip(a.spectra_, b.spectra_, strict=True):
        n = min(ours.size, theirs.size)
        np.testing.assert_allclose(ours[:n], theirs[:n], atol=tol * a.energy_)
    np.testing.assert_allclose(
        a.predict(X[:4], return_std=True)[1], b.predict(X[:4], return_std=True)[1], rtol=tol
    )


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("shape", [(257,), (10, 26), (2, 150), (150, 2), (5, 6, 9)])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_fit_is_that_of_all_rows(monkeypatch, calls, structure, shape, weighted):
    X, Y = data(shape)
    w = np.random.default_rng(1).uniform(0, 2, size=len(X)) if weighted else None
    estimator = STRUCTURES[structure](len(shape))
    leading = estimator.fit(X, Y, w)
    assert calls == [True]
    monkeypatch.setattr(_problem, "leading_rows", lambda *args: None)
    assert_same(leading, STRUCTURES[structure](len(shape)).fit(X, Y, w), X[:9])


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (
            lambda: KernelHOLRR(rank=3, kernel="rbf"),
            (16, 16),
            False,
        ),  # few outputs
        (lambda: KernelHOLRR(rank=3, kernel="rbf"), (257,), True),
        (lambda: KernelHOLRR(rank=85, kernel="rbf"), (258,), True),
        (lambda: KernelHOLRR(rank=86, kernel="rbf"), (258,), False),  # most of the directions
        (lambda: KernelHOLRR(rank=0.9, kernel="rbf"), (257,), False),  # as many as it takes
        (lambda: KernelHOLRR(rank=3, kernel="rbf", refine=True), (257,), False),
        (lambda: KernelHOLRR(kernel="rbf"), (257,), False),
        (lambda: KernelHOLRR(rank=9, kernel="linear"), (257,), False),  # five are above the noise
    ],
)
def test_when_the_leading_rows_do(calls, make, shape, expected):
    make().fit(*data(shape))
    assert calls == [expected]


def test_ranks_beyond_the_data_are_lowered_as_ever(calls):
    X, Y = data((257,))
    assert KernelHOLRR(rank=90, kernel="linear").fit(X, Y).rank_[0] == 5
    assert calls == [False]


def test_a_stack_is_refitted_from_them(monkeypatch, calls):
    X, Y = data((10, 26), n=265)
    make = lambda: KernelHOLRRCV(alphas=[0.1, 1.0], cv=3, ranks=(4, 4, 4))  # noqa: E731
    stack = make().fit(X, Y)
    assert True in calls
    monkeypatch.setattr(_problem, "leading_rows", lambda *args: None)
    np.testing.assert_allclose(stack.predict(X), make().fit(X, Y).predict(X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("shape", [(257,), (10, 26), (150, 2)])
def test_they_are_found_on_an_accelerator_as_well(calls, shape):
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    X, Y = data(shape)
    far = KernelHOLRR(rank=3).fit(*(xp.asarray(A, device=xp.Device("device1")) for A in (X, Y)))
    here = KernelHOLRR(rank=3).fit(X, Y)
    assert calls == [True, True]
    assert far.objective_ == pytest.approx(here.objective_, rel=1e-9)
    assert far.lower_bound_ == pytest.approx(here.lower_bound_, rel=1e-9)
    found = to_numpy(far.predict(xp.asarray(X, device=xp.Device("device1"))))
    np.testing.assert_allclose(found, here.predict(X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (2, 3, 4), (1, 5), (4, 1, 3)])
def test_partial_traces_are_the_gram_matrices_of_modes(shape):
    Z = np.random.default_rng(0).normal(size=(3, *shape))
    S = unfold(Z, 0).T @ unfold(Z, 0)
    found = partial_traces(S, shape)
    assert len(found) == len(shape)
    for i, G in enumerate(found):
        np.testing.assert_allclose(G, gram(Z, i + 1), rtol=1e-13)


def test_duals_are_kept_for_the_coordinates_that_they_belong_to():
    X, Y = data((3, 4), n=30)
    outputs = centre_responses(Y)
    kernel = kernel_function(KernelHOLRR(kernel="rbf")._kernel_spec())
    make = lambda: _problem.whiten_gram(  # noqa: E731
        lambda: centred_gram(kernel, X, None, center=True), outputs, 0.5, solver="auto"
    )
    problem, rng = make(), np.random.default_rng(0)
    A, B = rng.normal(size=(2, 12, 3))
    np.testing.assert_array_equal(problem.lift(A), make().lift(A))
    np.testing.assert_array_equal(problem.hat.fitted(B)[0][1], make().hat.fitted(B)[0][1])
    np.testing.assert_array_equal(problem.lift(A), make().lift(A))
