"""Kernel ridge problems: one factorisation, and leading eigenpairs of ``Z'Z`` for many outputs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from holrr import KernelHOLRR, KernelHOLRRCV, KernelLRR
from holrr.core.namespace import to_numpy
from holrr.core.tensor import gram, partial_traces, unfold
from holrr.kernel import problem
from holrr.kernel.candidates import kernel_function
from holrr.kernel.gram import Gram, KernelFunction, centred_gram
from holrr.kernel.problem import _solve_cholesky, centre_responses, positive_part
from problems import toy

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
    """For each problem, whether only the leading rows were computed."""
    found, original = [], problem.leading_rows

    def counted(*args):
        rows = original(*args)
        found.append(rows is not None)
        return rows

    monkeypatch.setattr(problem, "leading_rows", counted)
    return found


def assert_same(a, b, X, tol=1e-9):
    assert a.rank_ == b.rank_
    assert_allclose(a.predict(X), b.predict(X), rtol=tol, atol=tol)
    for name in ("objective_", "lower_bound_", "energy_", "noise_"):
        assert_allclose(getattr(a, name), getattr(b, name), rtol=tol)
    for ours, theirs in zip(a.spectra_, b.spectra_, strict=True):
        n = min(ours.size, theirs.size)
        assert_allclose(ours[:n], theirs[:n], atol=tol * a.energy_)
    assert_allclose(
        a.predict(X[:4], return_std=True)[1], b.predict(X[:4], return_std=True)[1], rtol=tol
    )


@pytest.mark.parametrize("structure", STRUCTURES)
@pytest.mark.parametrize("shape", [(257,), (10, 26), (2, 150), (150, 2), (5, 6, 9)])
@pytest.mark.parametrize("weighted", [False, True])
def test_fit_from_leading_rows_equals_the_full_fit(monkeypatch, calls, structure, shape, weighted):
    X, Y = data(shape)
    w = np.random.default_rng(1).uniform(0, 2, size=len(X)) if weighted else None
    estimator = STRUCTURES[structure](len(shape))
    leading = estimator.fit(X, Y, w)
    assert calls == [True]
    monkeypatch.setattr(problem, "leading_rows", lambda *args: None)
    assert_same(leading, STRUCTURES[structure](len(shape)).fit(X, Y, w), X[:9])


@pytest.mark.parametrize(
    ("make", "shape", "expected"),
    [
        (
            lambda: KernelHOLRR(rank=3, kernel="rbf"),
            (16, 16),
            False,  # few outputs
        ),
        (lambda: KernelHOLRR(rank=3, kernel="rbf"), (257,), True),
        (lambda: KernelHOLRR(rank=85, kernel="rbf"), (258,), True),
        (lambda: KernelHOLRR(rank=86, kernel="rbf"), (258,), False),  # too many directions
        (
            lambda: KernelHOLRR(rank=0.9, kernel="rbf"),
            (257,),
            False,
        ),  # a share needs all
        (lambda: KernelHOLRR(rank=3, kernel="rbf", refine=True), (257,), False),
        (lambda: KernelHOLRR(kernel="rbf"), (257,), False),
        (lambda: KernelHOLRR(rank=9, kernel="linear"), (257,), False),  # only five directions
    ],
)
def test_leading_rows_are_used_for_few_of_many_directions(calls, make, shape, expected):
    make().fit(*data(shape))
    assert calls == [expected]


def test_ranks_above_that_of_the_data_are_lowered(calls):
    X, Y = data((257,))
    assert KernelHOLRR(rank=90, kernel="linear").fit(X, Y).rank_[0] == 5
    assert calls == [False]


def test_a_stack_is_refitted_from_all_rows(calls):
    """It has several ranks, and equals the sum of fits from their leading rows."""
    X, Y = data((10, 26), n=265)
    stack = KernelHOLRRCV(alphas=[0.1, 1.0], cv=3, max_rank=(4, 4, 4)).fit(X, Y)
    assert calls == []
    assert len(stack.stack_ranks_) > 1
    kernel, expected = {"kernel": "rbf", "gamma": stack.gamma_}, 0.0
    for rank, weight in zip(stack.stack_ranks_, stack.stack_weights_, strict=True):
        model = KernelHOLRR(rank, alpha=stack.alpha_, **kernel).fit(X, Y)
        expected = expected + weight * model.predict(X)
    assert calls == [True] * len(stack.stack_ranks_)
    expected = expected + (1 - stack.stack_weights_.sum()) * Y.mean(axis=0)
    assert_allclose(stack.predict(X), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("shape", [(257,), (10, 26), (150, 2)])
def test_leading_rows_on_an_accelerator(calls, shape):
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    X, Y = data(shape)
    device = KernelHOLRR(rank=3).fit(*(xp.asarray(A, device=xp.Device("device1")) for A in (X, Y)))
    host = KernelHOLRR(rank=3).fit(X, Y)
    assert calls == [True, True]
    assert device.objective_ == pytest.approx(host.objective_, rel=1e-9)
    assert device.lower_bound_ == pytest.approx(host.lower_bound_, rel=1e-9)
    found = to_numpy(device.predict(xp.asarray(X, device=xp.Device("device1"))))
    assert_allclose(found, host.predict(X), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (2, 3, 4), (1, 5), (4, 1, 3)])
def test_partial_traces_are_the_gram_matrices_of_output_modes(shape):
    Z = np.random.default_rng(0).normal(size=(3, *shape))
    S = unfold(Z, 0).T @ unfold(Z, 0)
    found = partial_traces(S, shape)
    assert len(found) == len(shape)
    for i, G in enumerate(found):
        assert_allclose(G, gram(Z, i + 1), rtol=1e-13)


def test_dual_coefficients_are_cached_for_their_own_coordinates():
    X, Y = data((3, 4), n=30)
    outputs = centre_responses(Y)
    kernel = kernel_function(KernelHOLRR(kernel="rbf")._kernel_spec())
    make = lambda: problem.whiten_gram(  # noqa: E731
        lambda: centred_gram(kernel, X, None, center=True), outputs, 0.5, solver="auto"
    )
    white, rng = make(), np.random.default_rng(0)
    A, B = rng.normal(size=(2, 12, 3))
    np.testing.assert_array_equal(white.lift(A), make().lift(A))
    np.testing.assert_array_equal(white.hat.fitted(B)[0][1], make().hat.fitted(B)[0][1])
    np.testing.assert_array_equal(white.lift(A), make().lift(A))


# ---------------------------------------------------------------- Gram matrices


def test_positive_part_of_a_zero_matrix():
    s, Q = positive_part(Gram(np.zeros((3, 3)), np.zeros(3), 0.0, 0.0, True, None, False))
    assert s.shape == (1,)
    assert not Q.any()


def test_centred_gram_is_that_of_centred_features():
    X, _ = toy(n=12)
    w = np.random.default_rng(0).uniform(size=12)
    gram = centred_gram(KernelFunction("linear"), X, w, center=True)
    Xc = (X - w @ X / w.sum()) * np.sqrt(w)[:, None]
    assert_allclose(gram.K, Xc @ Xc.T, rtol=1e-10, atol=1e-12)
    assert_allclose(gram.mean, X @ (w @ X / w.sum()), rtol=1e-12)


# ---------------------------------------------------------------- one factorisation


@pytest.mark.parametrize("alpha", [1e-2, 1.0, 1e2])
def test_inner_products_as_a_difference_equal_those_of_fitted_values(alpha):
    """``Y'Y - alpha H'H = Y'(Y - alpha C)``, and ``C M`` does not need `C`."""
    X, Y = toy(60, shape=(4, 3))
    outputs = centre_responses(Y)
    build = lambda: centred_gram(KernelFunction("rbf", {"gamma": 0.1}), X, center=True)  # noqa: E731
    solved = _solve_cholesky(build, outputs, alpha, solver="auto")
    values, K = outputs.values, build().K
    assert_allclose((K + alpha * np.eye(60)) @ solved.C, values, atol=1e-11)
    expected = values.T @ (values - alpha * solved.C)
    for solved.residual in (0.0, outputs.syy):  # as a difference, and directly
        found = solved.inner_products()
        assert_allclose(found, expected, rtol=1e-11, atol=1e-12 * outputs.syy)
        assert_allclose(found, found.T)
    for columns in (1, 12):
        M = np.random.default_rng(0).normal(size=(12, columns))
        assert_allclose(solved.times(M), solved.C @ M, rtol=1e-9, atol=1e-11)


def test_few_directions_need_no_dual_coefficients_of_all_outputs(monkeypatch):
    """The second triangular system is solved for the kept directions only."""
    X, Y = toy(60, shape=(4, 3))
    sizes, original = [], problem.solve_triangular

    def counted(L, B, **options):
        sizes.append(B.shape[1])
        return original(L, B, **options)

    monkeypatch.setattr(problem, "solve_triangular", counted)
    KernelHOLRR(2, kernel="rbf", gamma=0.1).fit(X, Y)
    assert sizes[0] == 12
    assert max(sizes[1:]) == 2
