"""The stack of all ranks against explicit mixtures of separate fits and an independent solver."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import KFold, TimeSeriesSplit

from holrr import HOLRR, LRR
from holrr.data.samples import Samples
from holrr.model_selection.grid import parameter_counts
from holrr.model_selection.hull import nearest_in_hull, squares
from holrr.model_selection.linear_folds import ArrayFolds
from holrr.model_selection.selection import best_index
from holrr.model_selection.stack import FoldTerms, _Path, stack_ranks
from holrr.model_selection.stacking import search_stack
from holrr.model_selection.surface import RankPath, error_surface
from holrr.model_selection.sweep import RankErrors, sweep

WHOLE = {"patience": np.inf, "max_blocks": 200}  # the path to its end


def search_at(X, Y, alpha, *, splits=None, n_modes=None, subspaces="fitted", listed=None):
    """Everything about one penalty: terms, best single rank, candidates and how to fit one."""
    splits = list(KFold(4).split(X)) if splits is None else splits
    folds = ArrayFolds(Samples(X, Y), splits, response_grams=subspaces == "response")
    folds.min_alpha = alpha
    folds.prepare()
    shape = (X.shape[1], *Y.shape[1:])
    caps = (min(shape[0], folds.max_input_rank), *shape[1:])[:n_modes]
    problems = [folds.problem(k) for k in range(len(splits))]
    surface = np.mean(
        [error_surface(*p, [alpha], caps, subspaces=subspaces)[0] for p in problems], axis=0
    )
    candidates = None
    if listed is not None:
        candidates = np.zeros(caps, dtype=bool)
        candidates[tuple(np.array(listed).T - 1)] = True
        surface[~candidates] = np.nan
    best = best_index(surface, parameter_counts(shape, caps))
    return SimpleNamespace(
        folds=[FoldTerms.of(RankPath(*p, caps, subspaces).terms(alpha), p[1]) for p in problems],
        start=tuple(i + 1 for i in best),
        error=surface[best],
        candidates=candidates,
        ranks=listed or list(itertools.product(*(range(1, R + 1) for R in caps))),
        null=(0,) * len(caps),
        data=(X, Y, splits),
        model={"alpha": alpha} if n_modes == 1 else {"alpha": alpha, "subspaces": subspaces},
        family=LRR if n_modes == 1 else HOLRR,
    )


def residuals(at, ranks):
    """Held-out residuals of separate fits, a matrix for each fold; ranks of zero mean no fit.

    Scaled so that the error of a mixture is the sum of squares over all folds.
    """
    X, Y, splits = at.data
    found = []
    for train, test in splits:
        columns = [predicted(at, rank, X[train], Y[train], X[test]) - Y[test] for rank in ranks]
        scale = np.sqrt(len(splits) * Y[test].size)
        found.append(np.stack([column.ravel() / scale for column in columns], axis=1))
    return found


def predicted(at, rank, X, Y, X_test):
    if not any(rank):
        return Y.mean(axis=0)
    rank = rank[0] if at.family is LRR else rank
    return at.family(rank=rank, **at.model).fit(X, Y).predict(X_test)


def best_mixture(A):
    """Least ``||A w||^2`` over weights that are not negative and add up to one, by cvxpy."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy, the independent convex solver, is missing")
    A = np.linalg.qr(A)[1]
    scale = np.linalg.norm(A[:, 0]) or 1.0
    w = cp.Variable(A.shape[1], nonneg=True)
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A / scale @ w)), [cp.sum(w) == 1])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return problem.value * scale**2, w.value


CASES = {
    "p=0": {"shape": ()},
    "p=1": {"shape": (5,)},
    "p=2": {"shape": (3, 4), "d0": 4},
    "p=3": {"shape": (3, 2, 2)},
    "few samples": {"n": 8, "d0": 11, "shape": (3, 2)},
    "weak signal": {"shape": (3, 4), "noise": 8.0},
    "response": {"shape": (3, 4), "subspaces": "response"},
    "low rank": {"d0": 6, "shape": (3, 4), "n_modes": 1},
    "growing folds": {"n": 12, "d0": 9, "shape": (2, 3), "splits": TimeSeriesSplit(4)},
    "one fold": {"shape": (3, 4), "splits": KFold(2), "n_splits": 1},
    "listed": {"shape": (3, 4), "listed": [(1, 1, 1), (2, 3, 2), (3, 1, 4), (3, 3, 4)]},
}


@pytest.fixture(params=CASES)
def case(request, make_data):
    p = {"n": 22, "d0": 3, "noise": 1.5, "splits": None, "n_splits": None, **CASES[request.param]}
    X, Y = make_data(p.pop("n"), p.pop("d0"), p.pop("shape"), p.pop("noise"))
    splits, n_splits = p.pop("splits"), p.pop("n_splits")
    splits = None if splits is None else list(splits.split(X))[:n_splits]
    return search_at(X, Y, 0.5, splits=splits, **p)


def test_error_is_that_of_a_quadratic_programme_over_all_ranks(case):
    stack = stack_ranks(case.folds, case.start, candidates=case.candidates, **WHOLE)
    A = np.concatenate(residuals(case, [*case.ranks, case.null]))
    optimum, _ = best_mixture(A)
    np.testing.assert_allclose(stack.path_mse[-1], optimum, rtol=1e-6)
    assert stack.gap <= 1e-6 * optimum


def test_mixture_is_the_weighted_sum_of_separate_fits(case):
    stack = stack_ranks(case.folds, case.start, candidates=case.candidates)
    weights = np.append(stack.weights, 1 - stack.weights.sum())
    A = np.concatenate(residuals(case, [*stack.blocks, case.null]))
    np.testing.assert_allclose(stack.mse, np.sum((A @ weights) ** 2), rtol=1e-9)
    assert set(stack.blocks) <= set(case.ranks)
    assert (stack.weights > 0).all()
    assert stack.weights.sum() <= 1 + 1e-12


def test_cross_fitted_weights_come_from_the_other_folds(case):
    path = _Path(case.folds, case.start, case.candidates)
    for _ in range(3):
        block, _ = path.step()
        if block not in path.blocks:
            path.add(block)
    parts = residuals(case, path.blocks)
    for n, found in enumerate(path.cross_fitted, 1):
        expected = 0.0
        for k, part in enumerate(parts):
            others = [other for j, other in enumerate(parts) if j != k] or parts
            w = best_mixture(np.concatenate(others)[:, :n])[1]
            expected += np.sum((part[:, :n] @ w) ** 2)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_gap_certifies_every_length(case):
    optimum, _ = best_mixture(np.concatenate(residuals(case, [*case.ranks, case.null])))
    whole = stack_ranks(case.folds, case.start, candidates=case.candidates, **WHOLE)
    assert len(whole.path_mse) > 1
    for n in range(1, len(whole.path_mse) + 1):
        stack = stack_ranks(
            case.folds, case.start, candidates=case.candidates, max_blocks=n, patience=np.inf
        )
        np.testing.assert_array_equal(stack.path_mse, whole.path_mse[:n])
        assert stack.path_mse[-1] - stack.gap <= optimum * (1 + 1e-9)
        assert optimum <= stack.path_mse[-1] * (1 + 1e-9)


def test_gap_is_that_of_frank_and_wolfe(case):
    stack = stack_ranks(case.folds, case.start, candidates=case.candidates, max_blocks=1)
    A = np.concatenate(residuals(case, [case.start, *case.ranks, case.null]))
    gap = 2 * np.max(A[:, 0] @ (A[:, [0]] - A))
    assert gap > 1e-4 * case.error
    np.testing.assert_allclose(stack.gap, gap, rtol=1e-9)


def test_never_worse_than_the_best_rank(case):
    stack = stack_ranks(case.folds, case.start, candidates=case.candidates, **WHOLE)
    np.testing.assert_allclose(stack.path_mse[0], case.error, rtol=1e-11)
    assert stack.path_cross_fitted_mse[0] == pytest.approx(stack.path_mse[0], rel=1e-14)
    assert stack.cross_fitted_mse == stack.path_cross_fitted_mse.min()
    assert (np.diff(stack.path_mse) < 0).all()
    # Weights from the other folds are not better for a fold than those that all folds agree on.
    assert (stack.path_cross_fitted_mse >= stack.path_mse * (1 - 1e-12)).all()


def test_mask_is_the_weighted_sum_of_the_blocks(case):
    stack = stack_ranks(case.folds, case.start, candidates=case.candidates)
    assert stack.mask.shape == tuple(np.max(stack.blocks, axis=0))
    for index in np.ndindex(*stack.mask.shape):
        keeps = [all(i < R for i, R in zip(index, block, strict=True)) for block in stack.blocks]
        assert stack.mask[index] == pytest.approx(stack.weights[keeps].sum(), rel=1e-13)


@pytest.mark.parametrize("power", [-300, -7, 1, 150])
def test_scale_of_the_outputs_does_not_matter(make_data, power):
    X, Y = make_data(24, 3, (3, 4), 1.5)
    at = search_at(X, Y, 0.5)
    stack = stack_ranks(at.folds, at.start)
    c = 2.0**power
    scaled = [FoldTerms(f.S * c, f.H * c, f.G, f.yy * c * c, f.size) for f in at.folds]
    same = stack_ranks(scaled, at.start)
    assert same.blocks == stack.blocks
    np.testing.assert_array_equal(same.mask, stack.mask)
    np.testing.assert_array_equal(same.path_cross_fitted_mse, stack.path_cross_fitted_mse * c * c)


def test_length_is_cross_fitted(make_data):
    """Ten samples in five folds: the whole path fits them better and is not taken."""
    X, Y = make_data(10, 4, (3, 4), 2.0, seed=3)
    at = search_at(X, Y, 0.1, splits=list(KFold(5).split(X)))
    stack = stack_ranks(at.folds, at.start, **WHOLE)
    best = int(np.argmin(stack.path_cross_fitted_mse))
    assert best < len(stack.path_mse) - 1
    assert stack.mse == stack.path_mse[best] > stack.path_mse[-1]
    assert stack.cross_fitted_mse < stack.path_cross_fitted_mse[-1]
    assert len(stack.blocks) <= best + 1


def test_one_fold_judges_its_own_weights(make_data):
    X, Y = make_data(24, 3, (3, 4), 1.5)
    at = search_at(X, Y, 0.5, splits=list(KFold(2).split(X))[:1])
    stack = stack_ranks(at.folds, at.start)
    np.testing.assert_array_equal(stack.path_cross_fitted_mse, stack.path_mse)
    assert stack.mse == stack.path_mse[-1]


def test_stops_where_patience_ends(make_data):
    X, Y = make_data(10, 4, (3, 4), 2.0, seed=3)
    at = search_at(X, Y, 0.1, splits=list(KFold(5).split(X)))
    whole = stack_ranks(at.folds, at.start, **WHOLE)
    best = int(np.argmin(whole.path_cross_fitted_mse)) + 1
    assert len(whole.path_mse) > best + 1
    stack = stack_ranks(at.folds, at.start, patience=1)
    assert len(stack.path_mse) == best + 1
    assert stack.cross_fitted_mse == whole.cross_fitted_mse
    assert stack.gap > whole.gap


# ---------------------------------------------------------------- degenerate problems


def test_constant_outputs():
    terms = FoldTerms(np.zeros((2, 3)), np.zeros((2, 3)), np.eye(2), 0.0, 5.0)
    stack = stack_ranks([terms, terms], (1, 1))
    assert stack.blocks == ((1, 1),)
    np.testing.assert_array_equal(stack.mask, [[1.0]])
    assert stack.mse == stack.cross_fitted_mse == stack.gap == 0.0


def test_where_only_the_mean_predicts_the_null_model_takes_all():
    """Fits that point away from the held-out outputs: the least error is that of no fit."""
    rng = np.random.default_rng(0)
    S = rng.normal(size=(2, 3))
    folds = [FoldTerms(S, -S * c, np.eye(2), 50.0, 6.0) for c in (1.0, 2.0)]
    stack = stack_ranks(folds, (1, 1))
    assert stack.blocks == ()
    assert stack.weights.shape == (0,)
    np.testing.assert_array_equal(stack.mask, [[0.0]])
    assert stack.mse == stack.cross_fitted_mse == pytest.approx(50 / 6)
    assert stack.gap == pytest.approx(0.0, abs=1e-12)


def test_a_single_rank_is_mixed_with_the_null_model():
    """One number: predictions of 2 for outputs of 1 are best halved."""
    fold = FoldTerms(np.full((1, 1), 2.0), np.ones((1, 1)), np.ones((1, 1)), 1.0, 1.0)
    stack = stack_ranks([fold, fold], (1, 1))
    assert stack.blocks == ((1, 1),)
    np.testing.assert_allclose(stack.weights, [0.5])
    assert stack.mse == pytest.approx(0.0, abs=1e-13)


def test_ranks_that_are_far_off_hardly_count():
    """Predictions of 1e8 for outputs of 1, beside an error of 1 that nothing explains."""
    fold = FoldTerms(np.full((1, 1), 1e8), np.ones((1, 1)), np.ones((1, 1)), 2.0, 1.0)
    stack = stack_ranks([fold, fold], (1, 1))
    np.testing.assert_allclose(stack.weights, [1e-8])
    assert stack.mse == stack.cross_fitted_mse == pytest.approx(1.0)
    assert stack.gap <= 1e-6


def test_ranks_that_add_nothing_do_not_disturb(make_data):
    """Outputs of exact rank one: higher ranks repeat the same model."""
    X, Y = make_data(20, 3, (1, 1), 1.0)
    Y = Y * np.array([1.0, -2.0, 0.5]).reshape(3, 1) * np.ones((1, 4))
    at = search_at(X, Y, 0.5)
    stack = stack_ranks(at.folds, at.start, **WHOLE)
    assert at.start == (1, 1, 1)
    optimum, _ = best_mixture(np.concatenate(residuals(at, [*at.ranks, at.null])))
    np.testing.assert_allclose(stack.path_mse[-1], optimum, rtol=1e-6)


def test_exact_fits_end_in_rounding():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    at = search_at(X, np.tensordot(X, rng.normal(size=(3, 3, 4)), 1), 0.0)
    stack = stack_ranks(at.folds, at.start)
    assert stack.mse <= at.error + 1e-14
    assert stack.blocks[0] == at.start


def test_a_start_beyond_what_the_folds_support_is_what_they_support(make_data):
    X, Y = make_data(24, 3, (3, 4), 3.0)
    at = search_at(X, Y, 0.5)
    stack, same = stack_ranks(at.folds, (9, 9, 9)), stack_ranks(at.folds, (3, 3, 4))
    np.testing.assert_allclose(stack.path_mse, same.path_mse, rtol=1e-12)


def test_listed_ranks_are_the_only_ones(make_data):
    X, Y = make_data(24, 3, (3, 4), 3.0)
    listed = [(1, 2, 1), (3, 2, 2)]
    at = search_at(X, Y, 0.5, listed=listed)
    stack = stack_ranks(at.folds, at.start, candidates=at.candidates, **WHOLE)
    free = stack_ranks(at.folds, at.start, **WHOLE)
    assert set(stack.blocks) <= set(listed)
    assert free.path_mse[-1] < stack.path_mse[-1]


def test_what_is_not_finite_is_given_up():
    bad = FoldTerms(np.full((1, 1), np.nan), np.ones((1, 1)), np.ones((1, 1)), 1.0, 1.0)
    good = FoldTerms(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)), 2.0, 1.0)
    assert stack_ranks([bad, good], (1, 1)) is None
    assert stack_ranks([good, good], (1, 1)).mse == pytest.approx(1.0)


def random_terms(rng, shape):
    """Inputs of very different sizes, some of them twice, and a core of any size."""
    n, D = int(rng.integers(1, 10)), int(np.prod(shape[1:]))
    F = rng.normal(size=(n, shape[0])) * 10.0 ** rng.uniform(-3, 3, size=shape[0])
    F[:, -1] = F[:, 0]
    Y = rng.normal(size=(n, D))
    S = rng.normal(size=shape) * 10.0 ** rng.uniform(-6, 6)
    return FoldTerms(S, (F.T @ Y).reshape(shape), F.T @ F, float(np.sum(Y * Y)), float(n * D))


@pytest.mark.parametrize("seed", range(100))
def test_converges_whatever_the_scales(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(d) for d in rng.integers(1, 6, size=rng.integers(1, 4)))
    folds = [random_terms(rng, shape) for _ in range(int(rng.integers(1, 5)))]
    stack = stack_ranks(folds, (1,) * len(shape), **WHOLE)
    assert (np.diff(stack.path_mse) < 0).all()
    assert stack.gap <= 1e-6 * stack.path_mse[-1] + 1e-15 * stack.path_mse[0]


# ---------------------------------------------------------------- the choice of the penalty


@pytest.mark.parametrize("noise", [0.3, 1.5, 6.0])
@pytest.mark.parametrize("backwards", [False, True])
def test_giving_up_early_does_not_change_the_choice(make_data, noise, backwards, monkeypatch):
    """Neither the bound nor the walk along the penalties loses the best of them."""
    X, Y = make_data(16, 4, (3, 4), noise, seed=1)
    alphas = np.logspace(-2, 3, 11)[:: -1 if backwards else 1]
    folds = ArrayFolds(Samples(X, Y), list(KFold(4).split(X)))
    folds.min_alpha, caps = 0.01, (4, 3, 4)
    mse = sweep(folds, RankErrors(alphas, caps), (11, *caps)).mean_mse
    count = parameter_counts((4, 3, 4), caps)
    place, stack = search_stack(folds, alphas, mse, count)
    monkeypatch.setattr("holrr.model_selection.stacking._PATIENCE", len(alphas))
    without_bound = lambda *args, bound, **options: stack_ranks(*args, **options)  # noqa: E731
    monkeypatch.setattr("holrr.model_selection.stacking.stack_ranks", without_bound)
    same_place, same = search_stack(folds, alphas, mse, count)
    assert place == same_place
    assert stack.blocks == same.blocks
    assert stack.cross_fitted_mse == same.cross_fitted_mse
    assert stack.cross_fitted_mse <= mse.min() * (1 + 1e-12)


def test_a_bound_below_the_optimum_gives_up_and_one_above_does_not(make_data):
    X, Y = make_data(24, 3, (3, 4), 1.5)
    at = search_at(X, Y, 0.5)
    stack = stack_ranks(at.folds, at.start, **WHOLE)
    assert stack_ranks(at.folds, at.start, bound=0.999 * stack.path_mse[-1], **WHOLE) is None
    kept = stack_ranks(at.folds, at.start, bound=stack.cross_fitted_mse)
    assert kept.cross_fitted_mse == stack.cross_fitted_mse


def test_hopeless_penalties_cost_one_step(make_data, monkeypatch):
    X, Y = make_data(24, 3, (3, 4), 0.5)
    good, bad = search_at(X, Y, 0.5), search_at(X, Y, 1e5)
    steps, step = [], _Path.step
    monkeypatch.setattr(_Path, "step", lambda self: steps.append(self) or step(self))
    bound = stack_ranks(good.folds, good.start).cross_fitted_mse
    assert stack_ranks(bad.folds, bad.start, bound=bound) is None
    assert sum(path.folds is bad.folds for path in steps) == 1


# ---------------------------------------------------------------- the nearest point in a hull


def least_by_growing(A):
    w = np.empty(0)
    for n in range(1, A.shape[1] + 1):
        w = nearest_in_hull(A[:, :n].T @ A[:, :n], w)
    return w


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    "kind", ["general", "alike", "repeated", "around the origin", "scaled", "graded"]
)
def test_nearest_point_in_a_hull(kind, seed):
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
    w = least_by_growing(A)
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1.0, rel=1e-12)
    # Optimal, and known to be: no corner is nearer in the direction of the point.
    point = A @ w
    gap = point @ point - (point @ A).min()
    assert gap <= 1e-11 * (A * A).sum(axis=0).min() + 1e-15 * np.abs(A).max() ** 2


def test_error_is_not_below_its_rounding():
    long = np.array([[1.0, -1.0], [-1.0, 1.0]]) * 1e16
    assert squares(long, np.array([0.5, 0.5])) == pytest.approx(100.0)
    assert squares(np.eye(2), np.array([0.5, 0.5])) == 0.5
