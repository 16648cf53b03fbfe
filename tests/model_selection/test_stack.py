"""Stacks against separate fits to every fold, and against an independent quadratic programme."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import KFold, TimeSeriesSplit

from holrr import HOLRR, LRR, RLS, KernelHOLRR, KernelLRR, KernelRLS
from holrr.data.validation import Samples
from holrr.kernel.folds import kernel_folds
from holrr.model_selection.folds import sample_folds
from holrr.model_selection.grid import parameter_counts
from holrr.model_selection.search import best_index
from holrr.model_selection.stack import (
    Part,
    find_parts,
    fold_gram,
    least_in_hull,
    other_places,
    quadratic_form,
    stack_weights,
)
from holrr.model_selection.surface import HeldOutSamples, error_surface, rank_path

ALPHAS = np.array([0.05, 0.5, 5.0])


def folds_of(X, Y, *, splits=None, n_modes=None, subspaces="fitted", gamma=None):
    """The paths and held-out data of all folds, and how to fit a part by itself."""
    splits = list(KFold(4).split(X)) if splits is None else splits
    grams = subspaces == "response"
    if gamma is None:
        folds = sample_folds(Samples(X, Y), splits, response_grams=grams)
        families, more = (LRR if n_modes == 1 else HOLRR, RLS), {}
    else:
        spec = {"kernel": "rbf", "gamma": gamma}
        folds = kernel_folds(Samples(X, Y), splits, [spec], response_grams=grams)
        families, more = (KernelLRR if n_modes == 1 else KernelHOLRR, KernelRLS), spec
    caps = (folds.max_input_rank, *folds.shape[1:])[:n_modes]
    problems = [folds.problem(k, 0, ALPHAS[0]) for k in range(len(splits))]
    pairs = [(rank_path(*pair, caps, subspaces), pair[1]) for pair in problems]
    return SimpleNamespace(
        pairs=pairs,
        caps=caps,
        shape=folds.shape,
        data=(X, Y, splits),
        families=families,
        more=more,
        subspaces={} if n_modes == 1 else {"subspaces": subspaces},
    )


def surface_of(at, place):
    found = [error_surface(*pair, [ALPHAS[place]], at.caps)[0] for pair in at.pairs]
    return np.mean(found, axis=0)


def parts_of(at):
    """The parts of a stack about the middle penalty, as a search finds them."""
    n_parameters = parameter_counts(at.shape, at.caps)
    errors, ridge = surface_of(at, 1), dict.fromkeys((2, 1, 0), np.nan)
    rank = tuple(i + 1 for i in best_index(errors, n_parameters))
    return find_parts(errors, n_parameters, (1, *rank), (0, 2), ridge)


def residuals(at, parts):
    """Held-out residuals of separate fits and of the mean, a matrix for each fold."""
    X, Y, splits = at.data
    low, full = at.families
    found = []
    for train, test in splits:
        columns = []
        for part in parts:
            alpha = ALPHAS[part.place]
            if part.rank is None:
                fit = full(alpha=alpha, **at.more)
            else:
                rank = part.rank if len(part.rank) > 1 or low in (HOLRR, KernelHOLRR) else None
                rank = part.rank[0] if rank is None else rank
                fit = low(rank=rank, alpha=alpha, **at.more, **at.subspaces)
            columns.append(fit.fit(X[train], Y[train]).predict(X[test]))
        columns.append(np.broadcast_to(Y[train].mean(axis=0), Y[test].shape))
        scale = np.sqrt(Y[test].size)
        found.append(np.stack([(P - Y[test]).ravel() / scale for P in columns], axis=1))
    return found


CASES = {
    "p=0": {"shape": ()},
    "p=1": {"shape": (5,)},
    "p=2": {"shape": (3, 4), "d0": 4},
    "p=3": {"shape": (3, 2, 2)},
    "few samples": {"n": 8, "d0": 11, "shape": (3, 2)},
    "weak signal": {"shape": (3, 4), "noise": 8.0},
    "response": {"shape": (3, 4), "subspaces": "response"},
    "low rank": {"d0": 6, "shape": (3, 4), "n_modes": 1},
    "few outputs": {"d0": 9, "shape": (2, 3)},
    "low rank of few outputs": {"d0": 9, "shape": (2, 3), "n_modes": 1},
    "one mode of few outputs": {"d0": 9, "shape": (4,)},
    "one mode and the response": {"shape": (5,), "subspaces": "response"},
    "growing folds": {"n": 12, "d0": 9, "shape": (2, 3), "splits": TimeSeriesSplit(4)},
    "kernel": {"shape": (3, 4), "gamma": 0.1},
    "kernel of few outputs": {"n": 40, "shape": (2, 2), "gamma": 0.5},
    "low-rank kernel of few outputs": {"n": 40, "shape": (2, 2), "gamma": 0.5, "n_modes": 1},
}


@pytest.fixture(params=CASES)
def case(request, make_data):
    p = {"n": 22, "d0": 3, "noise": 1.5, "splits": None, **CASES[request.param]}
    X, Y = make_data(p.pop("n"), p.pop("d0"), p.pop("shape"), p.pop("noise"))
    splits = p.pop("splits")
    return folds_of(X, Y, splits=None if splits is None else list(splits.split(X)), **p)


def test_gram_matrices_are_those_of_the_residuals_of_separate_fits(case):
    parts = parts_of(case)
    for pair, A in zip(case.pairs, residuals(case, parts), strict=True):
        found = fold_gram(pair[0], parts, ALPHAS)[0]
        assert_allclose(found, A.T @ A, rtol=1e-8, atol=1e-9 * np.abs(A.T @ A).max())


def test_a_kernel_of_few_outputs_is_judged_by_its_samples(make_data):
    X, Y = make_data(40, 3, (2, 2))
    at = folds_of(X, Y, gamma=0.5)
    assert all(isinstance(held, HeldOutSamples) for _, held in at.pairs)


def best_mixture(B):
    """Least ``w' B w`` over weights that are not negative and add up to one, by cvxpy."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy, the independent convex solver, is missing")
    lam, Q = np.linalg.eigh(B)
    A = np.sqrt(np.maximum(lam, 0.0))[:, None] * Q.T
    scale = np.sqrt(np.trace(B) / len(B))
    w = cp.Variable(len(B), nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A / scale @ w)), [cp.sum(w) == 1])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return problem.value * scale**2, w.value


def test_weights_are_those_of_independent_quadratic_programmes(case):
    """Each pair of folds is left out once; weights of equal models may be shared in many ways."""
    parts = parts_of(case)
    grams = np.stack([fold_gram(path, parts, ALPHAS)[0] for path, _ in case.pairs])
    for i in range(len(grams)):
        for j in range(i):
            B = grams.sum(axis=0) - grams[i] - grams[j]
            optimum, _ = best_mixture(B)
            assert_allclose(quadratic_form(B, least_in_hull(B)), optimum, rtol=1e-6)


def test_the_averaged_weights_agree_with_cvxpy_where_they_are_unique():
    rng = np.random.default_rng(0)
    A = [rng.normal(size=(40, 6)) + 0.2 for _ in range(4)]
    grams = np.stack([a.T @ a for a in A])
    total, found, others = grams.sum(axis=0), [], [[] for _ in A]
    for i in range(4):
        for j in range(i):
            found.append(best_mixture(total - grams[i] - grams[j])[1])
            others[i].append(found[-1])
            others[j].append(found[-1])
    expected, others = np.mean(found, axis=0), np.mean(others, axis=1)
    null = np.eye(6)[-1]
    pairs = list(zip(grams, others - null, strict=True))
    share = -sum(v @ B @ null for B, v in pairs) / sum(v @ B @ v for B, v in pairs)
    share = np.clip(share, 0, 1)
    weights, by_fold = stack_weights(grams)
    assert_allclose(weights, null + share * (expected - null), atol=1e-6)
    assert_allclose(by_fold, null + share * (others - null), atol=1e-6)


# ---------------------------------------------------------------- weights


@pytest.mark.parametrize("n_folds", [1, 2, 3, 4, 5, 6, 11])
def test_the_weights_of_a_fold_do_not_depend_on_it_but_for_their_common_scale(n_folds):
    rng = np.random.default_rng(n_folds)
    A = rng.normal(size=(n_folds, 30, 5)) + 0.5
    grams = np.einsum("kni,knj->kij", A, A)
    weights, by_fold = stack_weights(grams)
    assert weights.shape == (5,)
    assert by_fold.shape == (n_folds, 5)
    for w in (weights, *by_fold):
        assert w.sum() == pytest.approx(1.0)
        assert (w >= 0).all()
    if n_folds == 1:
        assert_allclose(weights, least_in_hull(grams[0]))
        return
    changed = grams.copy()
    other = rng.normal(size=(30, 5)) + 0.5
    changed[0] = other.T @ other
    again = stack_weights(changed)[1]
    assert_allclose(again[0, :-1] / again[0, :-1].sum(), by_fold[0, :-1] / by_fold[0, :-1].sum())


def test_weights_do_not_depend_on_units_or_on_the_order_of_models():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(5, 30, 6)) + 0.5
    grams = np.einsum("kni,knj->kij", A, A)
    weights, by_fold = stack_weights(grams, 2)
    order = np.array([3, 0, 4, 2, 1, 5])
    permuted = stack_weights(grams[:, order][:, :, order], int(np.flatnonzero(order == 2)[0]))
    assert_allclose(permuted[0], weights[order], atol=1e-10)
    assert_allclose(permuted[1], by_fold[:, order], atol=1e-10)
    assert_allclose(stack_weights(3e17 * grams, 2)[0], weights, atol=1e-10)


def test_noise_is_shrunk_to_the_mean():
    """Models that are worse than the mean in every fold have no weight."""
    rng = np.random.default_rng(0)
    null = rng.normal(size=(5, 200))
    models = null[:, :, None] + rng.normal(size=(5, 200, 3))
    A = np.concatenate([models, null[:, :, None]], axis=2)
    weights, _ = stack_weights(np.einsum("kni,knj->kij", A, A))
    assert weights[:3].sum() < 0.02


def test_a_mixture_that_is_clearly_worse_than_ridge_is_shrunk_towards_it():
    """Folds that contradict each other: what is best without two of them is bad for these."""
    grams = np.zeros((4, 4, 4))
    for k in range(4):
        errors = np.array([4.0, 4.0, 1.0, 6.0])
        errors[k % 2] = 0.2
        grams[k] = np.diag(errors)
    free, others = stack_weights(grams)
    guarded, guarded_others = stack_weights(grams, 2)
    error = lambda w: np.mean([quadratic_form(B, v) for B, v in zip(grams, w, strict=True)])  # noqa: E731
    assert error(guarded_others) <= error(others)
    assert guarded[2] >= free[2]


# ---------------------------------------------------------------- parts


def test_for_each_mode_and_some_ranks_the_best_model_is_a_part():
    rng = np.random.default_rng(0)
    errors = rng.uniform(1, 2, size=(9, 4, 2))
    counts = parameter_counts((9, 4, 2), errors.shape)
    best = tuple(int(i) + 1 for i in np.unravel_index(errors.argmin(), errors.shape))
    parts = find_parts(errors, counts, (3, *best), [0], {5: 0.9, 3: 0.95})
    assert parts[0] == Part(3, best)
    assert parts[-3:] == (Part(0, best), Part(5, None), Part(3, None))
    ranks = {part.rank for part in parts[:-3]}
    for mode, some in enumerate(([1, 2, 3, 4, 6, 8], [1, 2, 3, 4], [1, 2])):
        for R in some:
            slice_ = np.take(errors, R - 1, axis=mode)
            index = list(np.unravel_index(slice_.argmin(), slice_.shape))
            index.insert(mode, R - 1)
            assert tuple(int(i) + 1 for i in index) in ranks


def test_ridge_regression_replaces_the_full_rank_of_the_folds():
    errors = np.arange(1.0, 5.0)
    counts = parameter_counts((4, 4), (4,))
    parts = find_parts(errors, counts, (0, 1), ridge={0: 4.0, 1: 3.0})
    assert parts == (Part(0, (1,)), Part(0, (2,)), Part(0, (3,)), Part(0, None), Part(1, None))
    # If it is the best of all, it is mixed at no other penalty either.
    parts = find_parts(errors[::-1].copy(), counts, (0, 4), [1], {0: 1.0, 1: 3.0})
    assert Part(0, (4,)) not in parts
    assert all(part.rank is None for part in parts if part.place == 1)


def test_only_candidates_are_parts_and_equal_models_are_one():
    errors = np.full((4, 4), np.nan)
    listed = [(1, 1), (2, 3), (4, 2)]
    for i, rank in enumerate(listed):
        errors[tuple(R - 1 for R in rank)] = 1.0 + i
    parts = find_parts(errors, parameter_counts((4, 4), (4, 4)), (0, 1, 1))
    assert {part.rank for part in parts} == set(listed)
    ranks = np.minimum.outer(np.arange(4), np.arange(4))  # a matrix: the smaller rank counts
    parts = find_parts(1.0 + ranks, parameter_counts((4, 4), (4, 4)), (0, 1, 1))
    assert all(part.rank[0] == part.rank[1] for part in parts)


@pytest.mark.parametrize(
    ("alphas", "place", "expected"),
    [
        (np.logspace(-2, 2, 9), 4, [1, 7]),
        (np.logspace(-2, 2, 9), 0, [3]),
        (np.logspace(-2, 2, 9), 8, [5]),
        (np.logspace(2, -2, 9), 4, [7, 1]),
        (np.array([1.0]), 0, []),
        (np.array([1.0, 2.0]), 0, [1]),
        (np.array([0.0, 1.0, 10.0]), 1, [2]),
        (np.array([0.0, 1.0, 10.0]), 0, []),
        (np.array([1.0, 1.0, 1e9]), 0, [2]),
    ],
)
def test_other_penalties_lie_on_both_sides(alphas, place, expected):
    assert other_places(alphas, place) == expected


# ---------------------------------------------------------------- projection onto a convex hull


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    "kind", ["general", "alike", "repeated", "around the origin", "scaled", "graded"]
)
@pytest.mark.parametrize("warm", [False, True])
def test_the_projection_onto_a_hull_is_optimal(kind, seed, warm):
    rng = np.random.default_rng(seed)
    n, A = 12, rng.normal(size=(15, 12)) + 2.0
    if kind == "alike":
        A = rng.normal(size=(15, 1)) + 1e-4 * A
    elif kind == "repeated":
        A = A[:, rng.integers(0, 4, size=n)]
    elif kind == "around the origin":
        A = rng.normal(size=(3, n))
    elif kind == "scaled":
        A *= 10.0 ** rng.uniform(-5, 5, size=n)
    elif kind == "graded":  # all distances from the first corner matter, far or near
        A = A[:, :1] + rng.normal(size=(15, n)) * 10.0 ** -np.arange(n)
    start = rng.dirichlet(np.ones(n)) * (rng.uniform(size=n) < 0.5) if warm else None
    if start is not None:
        start[0] += 1 - start.sum()
    w = least_in_hull(A.T @ A, start)
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1.0, rel=1e-12)
    # No corner is nearer in the direction of the point.
    point = A @ w
    gap = point @ point - (point @ A).min()
    assert gap <= 1e-11 * (A * A).sum(axis=0).min() + 1e-15 * np.abs(A).max() ** 2


@pytest.mark.parametrize("unit", [1e-60, 1e-16, 1e16, 1e30, 1e60])
def test_the_projection_onto_a_hull_does_not_depend_on_the_units(unit):
    """Units that are no powers of two, so that the rounding of the Gram matrix changes."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(15, 12)) + 0.3
        A = A[:, rng.integers(0, 12, size=12)] if seed % 2 else A
        found, expected = (least_in_hull((u * A).T @ (u * A)) for u in (unit, 1.0))
        # Equal corners can share a weight in many ways; the point is the same.
        np.testing.assert_allclose(A @ found, A @ expected, rtol=0, atol=1e-7 * np.abs(A).max())


def test_an_error_is_not_below_its_rounding():
    long = np.array([[1.0, -1.0], [-1.0, 1.0]]) * 1e16
    assert quadratic_form(long, np.array([0.5, 0.5])) == pytest.approx(100.0)
    assert quadratic_form(np.eye(2), np.array([0.5, 0.5])) == 0.5
