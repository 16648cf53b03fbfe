"""The stack of all ranks against explicit mixtures of separate fits and an independent solver."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.model_selection import KFold, TimeSeriesSplit

from holrr import HOLRR, LRR
from holrr.core.approximate import MultilinearRank
from holrr.data.validation import Samples
from holrr.model_selection import search, stack
from holrr.model_selection.folds import Problems, sample_folds
from holrr.model_selection.grid import multilinear_grid, parameter_counts
from holrr.model_selection.search import SearchOptions, best_index
from holrr.model_selection.stack import (
    FoldTerms,
    _around,
    _Path,
    best_stack,
    project_onto_hull,
    quadratic_form,
    stack_ranks,
)
from holrr.model_selection.surface import error_surface, rank_path

WHOLE = {"patience": np.inf, "max_blocks": 200}  # the path to its end


def search_at(X, Y, alpha, *, splits=None, n_modes=None, subspaces="fitted", listed=None):
    """The terms of one penalty, its best single rank, the candidates, and how to fit one."""
    splits = list(KFold(4).split(X)) if splits is None else splits
    folds = sample_folds(Samples(X, Y), splits, response_grams=subspaces == "response")
    caps = (folds.max_input_rank, *folds.shape[1:])[:n_modes]
    problems = [folds.problem(k, 0, alpha) for k in range(len(splits))]
    paths = [rank_path(*problem, caps, subspaces) for problem in problems]
    held_out = [held for _, held in problems]
    pairs = list(zip(paths, held_out, strict=True))
    surface = np.mean([error_surface(*pair, [alpha], caps)[0] for pair in pairs], axis=0)
    candidates = None
    if listed is not None:
        candidates = np.zeros(caps, dtype=bool)
        candidates[tuple(np.array(listed).T - 1)] = True
        surface[~candidates] = np.nan
    best = best_index(surface, parameter_counts(folds.shape, caps))
    return SimpleNamespace(
        folds=[FoldTerms.of(path.terms(alpha), held) for path, held in pairs],
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


def test_the_error_equals_that_of_a_quadratic_programme_over_all_ranks(case):
    found = stack_ranks(case.folds, case.start, candidates=case.candidates, **WHOLE)
    A = np.concatenate(residuals(case, [*case.ranks, case.null]))
    optimum, _ = best_mixture(A)
    np.testing.assert_allclose(found.path_mse[-1], optimum, rtol=1e-6)
    assert found.gap <= 1e-6 * optimum


def test_the_mixture_is_the_weighted_sum_of_separate_fits(case):
    found = stack_ranks(case.folds, case.start, candidates=case.candidates)
    weights = np.append(found.weights, 1 - found.weights.sum())
    A = np.concatenate(residuals(case, [*found.blocks, case.null]))
    np.testing.assert_allclose(found.mse, np.sum((A @ weights) ** 2), rtol=1e-9)
    assert set(found.blocks) <= set(case.ranks)
    assert (found.weights > 0).all()
    assert found.weights.sum() <= 1 + 1e-12


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


def test_the_gap_bounds_the_error_of_every_path(case):
    optimum, _ = best_mixture(np.concatenate(residuals(case, [*case.ranks, case.null])))
    whole = stack_ranks(case.folds, case.start, candidates=case.candidates, **WHOLE)
    assert len(whole.path_mse) > 1
    for n in range(1, len(whole.path_mse) + 1):
        found = stack_ranks(
            case.folds, case.start, candidates=case.candidates, max_blocks=n, patience=np.inf
        )
        np.testing.assert_array_equal(found.path_mse, whole.path_mse[:n])
        assert found.path_mse[-1] - found.gap <= optimum * (1 + 1e-9)
        assert optimum <= found.path_mse[-1] * (1 + 1e-9)


def test_the_gap_is_that_of_frank_and_wolfe(case):
    found = stack_ranks(case.folds, case.start, candidates=case.candidates, max_blocks=1)
    A = np.concatenate(residuals(case, [case.start, *case.ranks, case.null]))
    gap = 2 * np.max(A[:, 0] @ (A[:, [0]] - A))
    assert gap > 1e-4 * case.error
    np.testing.assert_allclose(found.gap, gap, rtol=1e-9)


def test_a_stack_is_never_worse_than_the_best_rank(case):
    found = stack_ranks(case.folds, case.start, candidates=case.candidates, **WHOLE)
    np.testing.assert_allclose(found.path_mse[0], case.error, rtol=1e-11)
    assert found.path_cross_fitted_mse[0] == pytest.approx(found.path_mse[0], rel=1e-14)
    assert found.cross_fitted_mse == found.path_cross_fitted_mse.min()
    assert (np.diff(found.path_mse) < 0).all()
    # Weights from the other folds are not better for a fold than those that all folds agree on.
    assert (found.path_cross_fitted_mse >= found.path_mse * (1 - 1e-12)).all()


def test_the_mask_is_the_weighted_sum_of_the_blocks(case):
    found = stack_ranks(case.folds, case.start, candidates=case.candidates)
    assert found.mask.shape == tuple(np.max(found.blocks, axis=0))
    for index in np.ndindex(*found.mask.shape):
        keeps = [all(i < R for i, R in zip(index, block, strict=True)) for block in found.blocks]
        assert found.mask[index] == pytest.approx(found.weights[keeps].sum(), rel=1e-13)


@pytest.mark.parametrize("power", [-300, -7, 1, 150])
def test_the_stack_does_not_depend_on_the_scale_of_the_outputs(make_data, power):
    X, Y = make_data(24, 3, (3, 4), 1.5)
    at = search_at(X, Y, 0.5)
    found = stack_ranks(at.folds, at.start)
    c = 2.0**power
    scaled = [FoldTerms(f.S * c, f.H * c, f.G, f.yy * c * c, f.size) for f in at.folds]
    same = stack_ranks(scaled, at.start)
    assert same.blocks == found.blocks
    np.testing.assert_array_equal(same.mask, found.mask)
    np.testing.assert_array_equal(same.path_cross_fitted_mse, found.path_cross_fitted_mse * c * c)


def test_the_number_of_blocks_is_cross_fitted(make_data):
    """Of ten samples in five folds the whole path overfits."""
    X, Y = make_data(10, 4, (3, 4), 2.0, seed=3)
    at = search_at(X, Y, 0.1, splits=list(KFold(5).split(X)))
    found = stack_ranks(at.folds, at.start, **WHOLE)
    best = int(np.argmin(found.path_cross_fitted_mse))
    assert best < len(found.path_mse) - 1
    assert found.mse == found.path_mse[best] > found.path_mse[-1]
    assert found.cross_fitted_mse < found.path_cross_fitted_mse[-1]
    assert len(found.blocks) <= best + 1


def test_a_single_fold_evaluates_its_own_weights(make_data):
    X, Y = make_data(24, 3, (3, 4), 1.5)
    at = search_at(X, Y, 0.5, splits=list(KFold(2).split(X))[:1])
    found = stack_ranks(at.folds, at.start)
    np.testing.assert_array_equal(found.path_cross_fitted_mse, found.path_mse)
    assert found.mse == found.path_mse[-1]


def test_the_path_ends_with_the_patience(make_data):
    X, Y = make_data(10, 4, (3, 4), 2.0, seed=3)
    at = search_at(X, Y, 0.1, splits=list(KFold(5).split(X)))
    whole = stack_ranks(at.folds, at.start, **WHOLE)
    best = int(np.argmin(whole.path_cross_fitted_mse)) + 1
    assert len(whole.path_mse) > best + 1
    found = stack_ranks(at.folds, at.start, patience=1)
    assert len(found.path_mse) == best + 1
    assert found.cross_fitted_mse == whole.cross_fitted_mse
    assert found.gap > whole.gap


# ---------------------------------------------------------------- degenerate problems


def test_constant_outputs_have_a_stack_without_error():
    terms = FoldTerms(np.zeros((2, 3)), np.zeros((2, 3)), np.eye(2), 0.0, 5.0)
    found = stack_ranks([terms, terms], (1, 1))
    assert found.blocks == ((1, 1),)
    np.testing.assert_array_equal(found.mask, [[1.0]])
    assert found.mse == found.cross_fitted_mse == found.gap == 0.0


def test_the_null_model_has_all_the_weight_where_no_fit_helps():
    """The fits have the opposite sign of the held-out outputs."""
    rng = np.random.default_rng(0)
    S = rng.normal(size=(2, 3))
    folds = [FoldTerms(S, -S * c, np.eye(2), 50.0, 6.0) for c in (1.0, 2.0)]
    found = stack_ranks(folds, (1, 1))
    assert found.blocks == ()
    assert found.weights.shape == (0,)
    np.testing.assert_array_equal(found.mask, [[0.0]])
    assert found.mse == found.cross_fitted_mse == pytest.approx(50 / 6)
    assert found.gap == pytest.approx(0.0, abs=1e-12)


def test_a_single_rank_is_mixed_with_the_null_model():
    """One number: predictions of 2 for outputs of 1 are best halved."""
    fold = FoldTerms(np.full((1, 1), 2.0), np.ones((1, 1)), np.ones((1, 1)), 1.0, 1.0)
    found = stack_ranks([fold, fold], (1, 1))
    assert found.blocks == ((1, 1),)
    np.testing.assert_allclose(found.weights, [0.5])
    assert found.mse == pytest.approx(0.0, abs=1e-13)


def test_ranks_with_large_errors_have_small_weights():
    """Predictions are 1e8 for outputs of 1, which have an unexplained error of 1."""
    fold = FoldTerms(np.full((1, 1), 1e8), np.ones((1, 1)), np.ones((1, 1)), 2.0, 1.0)
    found = stack_ranks([fold, fold], (1, 1))
    np.testing.assert_allclose(found.weights, [1e-8])
    assert found.mse == found.cross_fitted_mse == pytest.approx(1.0)
    assert found.gap <= 1e-6


def test_ranks_that_repeat_the_same_model_do_not_change_the_stack(make_data):
    """The outputs have exactly rank one."""
    X, Y = make_data(20, 3, (1, 1), 1.0)
    Y = Y * np.array([1.0, -2.0, 0.5]).reshape(3, 1) * np.ones((1, 4))
    at = search_at(X, Y, 0.5)
    found = stack_ranks(at.folds, at.start, **WHOLE)
    assert at.start == (1, 1, 1)
    optimum, _ = best_mixture(np.concatenate(residuals(at, [*at.ranks, at.null])))
    np.testing.assert_allclose(found.path_mse[-1], optimum, rtol=1e-6)


def test_the_stack_of_exact_fits_has_an_error_of_rounding():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    at = search_at(X, np.tensordot(X, rng.normal(size=(3, 3, 4)), 1), 0.0)
    found = stack_ranks(at.folds, at.start)
    assert found.mse <= at.error + 1e-14
    assert found.blocks[0] == at.start


def test_a_start_beyond_the_supported_ranks_is_lowered_to_them(make_data):
    X, Y = make_data(24, 3, (3, 4), 3.0)
    at = search_at(X, Y, 0.5)
    found, same = stack_ranks(at.folds, (9, 9, 9)), stack_ranks(at.folds, (3, 3, 4))
    np.testing.assert_allclose(found.path_mse, same.path_mse, rtol=1e-12)


def test_listed_ranks_are_the_only_ones(make_data):
    X, Y = make_data(24, 3, (3, 4), 3.0)
    listed = [(1, 2, 1), (3, 2, 2)]
    at = search_at(X, Y, 0.5, listed=listed)
    found = stack_ranks(at.folds, at.start, candidates=at.candidates, **WHOLE)
    free = stack_ranks(at.folds, at.start, **WHOLE)
    assert set(found.blocks) <= set(listed)
    assert free.path_mse[-1] < found.path_mse[-1]


def test_terms_that_are_not_finite_have_no_stack():
    bad = FoldTerms(np.full((1, 1), np.nan), np.ones((1, 1)), np.ones((1, 1)), 1.0, 1.0)
    good = FoldTerms(np.ones((1, 1)), np.ones((1, 1)), np.ones((1, 1)), 2.0, 1.0)
    assert stack_ranks([bad, good], (1, 1)) is None
    assert stack_ranks([good, good], (1, 1)).mse == pytest.approx(1.0)


def random_terms(rng, shape):
    """Terms of inputs of very different sizes, one of them repeated, and a core of any size."""
    n, D = int(rng.integers(1, 10)), int(np.prod(shape[1:]))
    F = rng.normal(size=(n, shape[0])) * 10.0 ** rng.uniform(-3, 3, size=shape[0])
    F[:, -1] = F[:, 0]
    Y = rng.normal(size=(n, D))
    S = rng.normal(size=shape) * 10.0 ** rng.uniform(-6, 6)
    return FoldTerms(S, (F.T @ Y).reshape(shape), F.T @ F, float(np.sum(Y * Y)), float(n * D))


@pytest.mark.parametrize("seed", range(100))
def test_stacks_converge_whatever_the_scales(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(d) for d in rng.integers(1, 6, size=rng.integers(1, 4)))
    folds = [random_terms(rng, shape) for _ in range(int(rng.integers(1, 5)))]
    found = stack_ranks(folds, (1,) * len(shape), **WHOLE)
    assert (np.diff(found.path_mse) < 0).all()
    assert found.gap <= 1e-6 * found.path_mse[-1] + 1e-15 * found.path_mse[0]


# ---------------------------------------------------------------- the choice of the penalty


@pytest.mark.filterwarnings("ignore:The best penalty")
@pytest.mark.parametrize("noise", [0.3, 1.5, 6.0])
@pytest.mark.parametrize("backwards", [False, True])
def test_bounds_and_patience_do_not_change_the_choice(make_data, noise, backwards, monkeypatch):
    """A search that gives up early chooses the same penalty as one over all penalties."""
    X, Y = make_data(16, 4, (3, 4), noise, seed=1)
    alphas = np.logspace(-2, 3, 11)[:: -1 if backwards else 1]
    problems = Problems(sample_folds(Samples(X, Y), list(KFold(4).split(X))))
    options = SearchOptions(
        "test", lambda shape: multilinear_grid(None, None, shape), MultilinearRank, alphas=alphas
    )
    surface = search.cross_validate(problems, options)
    results = search.results_of(surface, problems.folds.shape, options)
    chosen = search.choose(problems, surface, results, options)
    monkeypatch.setattr(stack, "_PATIENCE", len(alphas))
    without_bound = lambda *args, bound, **options: stack_ranks(*args, **options)  # noqa: E731
    monkeypatch.setattr(search, "stack_ranks", without_bound)
    expected = search.choose(problems, surface, results, options)
    assert (chosen.candidate, chosen.alpha) == (expected.candidate, expected.alpha)
    assert chosen.stack.blocks == expected.stack.blocks
    assert chosen.error == chosen.stack.cross_fitted_mse == expected.stack.cross_fitted_mse
    assert chosen.error <= surface.mean_mse.min() * (1 + 1e-12)


def stack_of_error(error):
    return None if error is None else SimpleNamespace(cross_fitted_mse=error)


def test_the_best_stack_of_all_candidates_is_found():
    """Candidates come in the order of their best single ranks, and None exceeds the bound."""
    alphas = np.array([1.0, 2.0, 4.0])
    least = np.array([[3.0, 2.0, 4.0], [1.0, 5.0, 6.0]])
    errors = np.array([[2.0, 0.5, 3.0], [0.9, 0.8, 0.7]])
    bounds = []

    def stack_at(place, bound):
        bounds.append((place, bound))
        return stack_of_error(None if errors[place] > bound else errors[place])

    (place, best), found = best_stack(alphas, least, stack_at)
    assert place == (0, 1)
    assert best.cross_fitted_mse == 0.5
    assert [at for at, _ in bounds] == [(1, 0), (1, 1), (1, 2), (0, 1), (0, 2), (0, 0)]
    assert [bound for _, bound in bounds] == [np.inf, 0.9, 0.8, 0.7, 0.5, 0.5]
    assert found == {at: errors[at] if errors[at] <= b else np.inf for at, b in bounds}
    with pytest.raises(ValueError, match="finite held-out error"):
        best_stack(alphas, least, lambda place, bound: None)


def test_only_the_first_penalty_of_an_unpromising_candidate_is_tried():
    least = np.array([[3.0, 2.0, 4.0], [1.0, 5.0, 6.0]])
    tried = []

    def stack_at(place, bound):
        tried.append(place)
        return stack_of_error(1.0 if place[0] == 1 else None)

    best_stack(np.array([1.0, 2.0, 4.0]), least, stack_at, lambda candidate, best: best is None)
    assert tried == [(1, 0), (1, 1), (1, 2), (0, 1)]


@pytest.mark.parametrize(
    ("wanted", "visited"),
    [
        ({1: 5, 2: 4, 4: 1, 8: 3, 16: 2, 32: 0}, [4, 8, 16, 2, 1]),  # worse twice on either side
        ({1: 0, 2: 5, 4: 4, 8: 3, 16: 2, 32: 1}, [4, 8, 16, 32, 2, 1]),
        ({1: 1, 2: 6, 4: 5, 8: 2, 16: 4, 32: 3, 64: 0}, [4, 8, 16, 32, 2, 1]),
    ],
)
@pytest.mark.parametrize("step", [1, -1])
def test_penalties_are_tried_in_both_directions_as_long_as_stacks_improve(wanted, visited, step):
    """A direction ends with two penalties in a row that are not the best on their side."""
    alphas = np.array(list(wanted), dtype=float)[::step]
    errors, seen = {}, []
    for a in _around(alphas, int(np.flatnonzero(alphas == 4)[0]), errors):
        seen.append(int(alphas[a]))
        errors[a] = wanted[seen[-1]]
    assert seen == visited


def test_a_bound_below_the_optimum_gives_up_and_one_above_does_not(make_data):
    X, Y = make_data(24, 3, (3, 4), 1.5)
    at = search_at(X, Y, 0.5)
    found = stack_ranks(at.folds, at.start, **WHOLE)
    assert stack_ranks(at.folds, at.start, bound=0.999 * found.path_mse[-1], **WHOLE) is None
    kept = stack_ranks(at.folds, at.start, bound=found.cross_fitted_mse)
    assert kept.cross_fitted_mse == found.cross_fitted_mse


def test_a_penalty_whose_error_must_exceed_the_bound_takes_one_step(make_data, monkeypatch):
    X, Y = make_data(24, 3, (3, 4), 0.5)
    good, bad = search_at(X, Y, 0.5), search_at(X, Y, 1e5)
    steps, step = [], _Path.step
    monkeypatch.setattr(_Path, "step", lambda self: steps.append(self) or step(self))
    bound = stack_ranks(good.folds, good.start).cross_fitted_mse
    assert stack_ranks(bad.folds, bad.start, bound=bound) is None
    assert sum(path.folds is bad.folds for path in steps) == 1


# ---------------------------------------------------------------- projection onto a convex hull


def least_by_growing(A):
    w = np.empty(0)
    for n in range(1, A.shape[1] + 1):
        w = project_onto_hull(A[:, :n].T @ A[:, :n], w)
    return w


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize(
    "kind", ["general", "alike", "repeated", "around the origin", "scaled", "graded"]
)
def test_the_projection_onto_a_hull_is_optimal(kind, seed):
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
        found, expected = least_by_growing(unit * A), least_by_growing(A)
        # Equal corners can share a weight in many ways; the point is the same.
        np.testing.assert_allclose(A @ found, A @ expected, rtol=0, atol=1e-7 * np.abs(A).max())


def test_an_error_is_not_below_its_rounding():
    long = np.array([[1.0, -1.0], [-1.0, 1.0]]) * 1e16
    assert quadratic_form(long, np.array([0.5, 0.5])) == pytest.approx(100.0)
    assert quadratic_form(np.eye(2), np.array([0.5, 0.5])) == 0.5
