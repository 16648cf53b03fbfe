"""Grids of ranks and penalties."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from holrr import HOLRRCV, LRRCV, RLSCV, KernelHOLRRCV, KernelLRRCV, KernelRLSCV, Moments
from holrr.core.tensor import n_parameters
from holrr.datasets import make_tensor_regression
from holrr.model_selection.grid import (
    RankGrid,
    falling_edge,
    matrix_grid,
    multilinear_grid,
    parameter_counts,
    refined,
    warn_at_edge,
    widened,
)
from holrr.model_selection.search import Surface
from problems import toy

GRID = np.logspace(-2, 2, 9)
ALPHAS = [0.1, 1.0, 10.0]


# ---------------------------------------------------------------- ranks


@pytest.mark.parametrize("shape", [(5,), (5, 3), (4, 3, 2), (9, 2, 2), (3, 2, 3, 2)])
def test_parameter_counts_equal_those_of_tucker_tensors(shape):
    counts = parameter_counts(shape, shape)
    for index in np.ndindex(*shape):
        assert counts[index] == n_parameters(shape, [i + 1 for i in index])
    first = parameter_counts(shape, shape[:1])
    assert [n_parameters(shape, (i + 1, *shape[1:])) for i in range(shape[0])] == list(first)


def test_grids_of_multilinear_ranks():
    shape = (5, 4, 3)
    assert multilinear_grid(None, None, shape) == RankGrid((5, 4, 3))
    assert multilinear_grid(2, None, shape) == RankGrid((2, 2, 2))
    assert multilinear_grid((4, None, 2), None, shape) == RankGrid((4, 4, 2))
    listed = ((1, 1, 1), (3, 1, 2))
    assert multilinear_grid(None, list(listed), shape) == RankGrid((3, 1, 2), listed)
    # No rank exceeds the product of the other sizes, except in subspaces of the outputs.
    assert multilinear_grid(None, None, (3, 2, 50)).caps == (3, 2, 6)
    assert multilinear_grid(20, None, (3, 2, 50)).caps == (3, 2, 6)
    assert multilinear_grid((3, 2, 20), None, (3, 2, 50)).caps == (3, 2, 20)
    assert multilinear_grid(None, None, (3, 2, 50), subspaces="response").caps == (3, 2, 50)


def test_grids_of_matrix_ranks():
    assert matrix_grid(None, None, (5, 4, 3)) == RankGrid((5,))
    assert matrix_grid(2, None, (5, 4, 3)) == RankGrid((2,))
    assert matrix_grid(None, [3, 1], (5, 4, 3)) == RankGrid((3,), ((3,), (1,)))


def test_a_grid_within_the_supported_input_rank():
    grid = RankGrid((5, 4), ((5, 2), (1, 4)))
    assert grid.within_input_rank(5) is grid
    assert grid.within_input_rank(3) == RankGrid((3, 4), ((3, 2), (1, 4)))
    mask = grid.within_input_rank(3).mask()
    assert mask.shape == (3, 4)
    assert sorted(map(tuple, np.argwhere(mask))) == [(0, 3), (2, 1)]
    assert RankGrid((5, 4)).mask() is None


def test_a_grid_within_a_memory_budget():
    grid = RankGrid((5, 4, 3))
    assert grid.within_budget(10, 8 * 10 * 60) is grid
    with pytest.warns(
        UserWarning,
        match=r"max_bytes=.*rank of each mode at 4.*Increase max_bytes, or set max_rank",
    ):
        assert grid.within_budget(10, 8 * 10 * 60 - 1).caps == (4, 4, 3)
    with pytest.raises(ValueError, match="no candidate rank fits into max_bytes=79"):
        grid.within_budget(10, 79)
    listed = RankGrid((5, 4), ((5, 2), (1, 2)))
    with pytest.warns(UserWarning, match="caps the rank of each mode at 2"):
        assert listed.within_budget(1, 8 * 4) == RankGrid((2, 2), ((1, 2),))


# ---------------------------------------------------------------- max_rank and ranks of a search

MULTILINEAR = [HOLRRCV, KernelHOLRRCV]
MATRIX = [LRRCV, KernelLRRCV]


def searched(make, **parameters):
    X, Y = toy()
    return make(ALPHAS, cv=3, selection="min", **parameters).fit(X, Y)


@pytest.mark.parametrize(
    ("make", "max_rank", "caps"),
    [
        *((make, 2, (2, 2, 2)) for make in MULTILINEAR),
        *((make, (3, 2, None), (3, 2, 4)) for make in MULTILINEAR),
        *((make, [1, 2, 3], (1, 2, 3)) for make in MULTILINEAR),
        *((make, 2, (2,)) for make in MATRIX),
    ],
)
@pytest.mark.filterwarnings("ignore:The best penalty")
def test_ranks_as_a_cap_warn_and_work_as_max_rank(make, max_rank, caps):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        expected = searched(make, max_rank=max_rank)
    message = "ranks=.* is read as the largest rank.*Pass max_rank=.* or ranks="
    with pytest.warns(FutureWarning, match=message) as caught:
        found = searched(make, ranks=max_rank)
    assert len([w for w in caught if w.category is FutureWarning]) == 1
    assert caught[0].filename == __file__
    assert found.ranks is max_rank  # parameters are left as they are
    assert found.max_rank is None
    surface = expected.cv_results_["mean_mse"]
    assert surface.shape[surface.ndim - len(caps) :] == caps
    assert_allclose(found.cv_results_["mean_mse"], surface, rtol=0)
    assert found.rank_ == expected.rank_


@pytest.mark.parametrize(
    ("make", "ranks"),
    [
        *((make, [(1, 1, 1), (3, 2, 2)]) for make in MULTILINEAR),
        *((make, ((1, 1, 1),)) for make in MULTILINEAR),
        *((make, np.array([(1, 1, 1), (3, 2, 2)])) for make in MULTILINEAR),
        *((make, [1, 3]) for make in MATRIX),
        *((make, (1, 3)) for make in MATRIX),
        *((make, range(1, 3)) for make in MATRIX),
    ],
)
@pytest.mark.filterwarnings("error::FutureWarning", "ignore:The best penalty")
def test_a_list_of_ranks_has_the_only_candidates(make, ranks):
    found = searched(make, ranks=ranks)
    surface = found.cv_results_["mean_mse"]
    listed = [tuple(np.atleast_1d(R)) for R in ranks]
    finite = np.isfinite(surface).reshape(-1, *surface.shape[surface.ndim - len(listed[0]) :])
    assert {tuple(i + 1) for i in np.argwhere(finite.all(axis=0))} == set(listed)
    assert np.isfinite(surface).sum() == len(listed) * finite.shape[0]
    assert tuple(np.atleast_1d(found.rank_)) in listed


@pytest.mark.parametrize(
    ("make", "ranks", "message"),
    [
        *(
            (
                make,
                ranks,
                f"{shown} is read as the largest rank of each mode, not as 3 candidates. Pass "
                f"max_rank=(1, 2, 3) for the largest rank, or "
                f"ranks=[(1, 1, 1), (2, 2, 2), (3, 3, 3)] to try 3 ranks.",
            )
            for make in MULTILINEAR
            for ranks, shown in [
                ([1, 2, 3], "ranks=[1, 2, 3]"),
                (np.array([1, 2, 3]), "ranks=array([1, 2, 3])"),
            ]
        ),
        (HOLRRCV, 2, "mode, not as a candidate. Pass max_rank=2 for the largest rank, or ranks=["),
        (HOLRRCV, (2, None, 2), "or ranks=[(2, 2, 2)] to try one rank."),
        (LRRCV, 2, "the largest rank, not as a candidate. Pass max_rank=2 for the largest rank, "),
    ],
)
@pytest.mark.filterwarnings("ignore:The best penalty")
def test_the_warning_of_a_cap_has_both_ways_to_write_it(make, ranks, message):
    with pytest.warns(FutureWarning, match=re.escape(message)):
        searched(make, ranks=ranks)


def test_moments_of_folds_warn_of_a_cap():
    X, Y = toy()
    folds = [Moments.from_arrays(X[k::3], Y[k::3]) for k in range(3)]
    with pytest.warns(FutureWarning, match="ranks=2 is read as the largest rank of each mode"):
        HOLRRCV(ALPHAS, ranks=2).fit_fold_moments(folds)


@pytest.mark.parametrize("make", MULTILINEAR)
@pytest.mark.filterwarnings("error::FutureWarning")
def test_numbers_that_are_neither_candidates_nor_a_cap_are_refused(make):
    message = (
        "ranks must be a list of candidates, which are tuples with one entry for each of the 3 "
        "modes; got ranks=[2, 3]. Pass ranks=[(2, 2, 2), (3, 3, 3)]."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        searched(make, ranks=[2, 3])


@pytest.mark.parametrize("make", [*MULTILINEAR, *MATRIX])
def test_max_rank_and_ranks_exclude_each_other(make):
    with pytest.raises(ValueError, match="max_rank and ranks cannot be combined"):
        searched(make, max_rank=2, ranks=[1] if make in MATRIX else [(1, 1, 1)])


@pytest.mark.parametrize(
    ("make", "parameters", "message"),
    [
        (HOLRRCV, {"max_rank": 0}, "max_rank=0.*at least 1"),
        (HOLRRCV, {"max_rank": (1, 1)}, r"max_rank=\(1, 1\).*3 entries"),
        (HOLRRCV, {"max_rank": (9, 1, 1)}, "max_rank.*got 9"),
        (HOLRRCV, {"max_rank": 0.5}, "max_rank=0.5.*must be ints"),
        (HOLRRCV, {"ranks": [(1, 1), (2, 2)]}, "ranks=.*3 entries"),
        (HOLRRCV, {"ranks": []}, "ranks must have at least one candidate"),
        (LRRCV, {"max_rank": (1, 1)}, r"max_rank=\(1, 1\)"),
        (LRRCV, {"ranks": [9]}, "ranks=.*9"),
        (KernelHOLRRCV, {"max_rank": (1, 9, 1)}, "max_rank.*got 9"),
    ],
)
def test_bad_ranks_are_refused_by_the_name_of_their_parameter(make, parameters, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        searched(make, **parameters)


@pytest.mark.parametrize("make", [*MULTILINEAR, *MATRIX])
@pytest.mark.parametrize("bad", ["two", {"a": 1}, 2.5, object()])
def test_ranks_of_another_type_are_refused(make, bad):
    with pytest.raises((TypeError, ValueError), match="ranks"):
        searched(make, ranks=bad)


# ---------------------------------------------------------------- penalties


def valley(bottom, by_rank=True, spread=0.1):
    """Errors that are least at a given power of ten, for three folds.

    There are two ranks, or two other candidates, of which the first is better.
    """

    def compute(penalties):
        mse = 1 + (np.log10(penalties) - bottom) ** 2
        folds = np.stack([mse + shift for shift in (-spread, 0.0, spread)])
        both = np.stack([folds, folds + 1], axis=-1 if by_rank else 1)
        fold_mse = both[:, None] if by_rank else both[..., None]
        return Surface(fold_mse, penalties, RankGrid((fold_mse.shape[3],)), 10.0, 1)

    return compute


@pytest.mark.parametrize("by_rank", [False, True])
@pytest.mark.parametrize("bottom", [-6.2, -3.0, -2.3, 0.0, 2.3, 3.0, 6.2])
@pytest.mark.parametrize("descending", [False, True])
def test_the_best_penalty_is_found_beyond_either_edge(bottom, by_rank, descending):
    grid = GRID[::-1] if descending else GRID
    found, penalties = widened(valley(bottom, by_rank), grid)
    mse = found.mean_mse[0, :, 0]
    assert_allclose(mse, 1 + (np.log10(penalties) - bottom) ** 2)
    assert abs(np.log10(penalties[np.argmin(mse)]) - bottom) <= 0.25
    assert_allclose(np.diff(np.log10(penalties)), (-1) ** descending * 0.5)
    assert_allclose(found.alphas, penalties)
    assert falling_edge(found, penalties) is None


def test_a_search_warns_where_the_best_penalty_is_too_far_and_not_where_errors_are_flat():
    found, penalties = widened(valley(30.0), GRID)
    assert penalties.size == GRID.size + 12
    with pytest.warns(
        UserWarning, match="is the largest of the grid.*Widen the grid `alphas`"
    ) as caught:
        warn_at_edge(found, penalties, "alphas")
    assert caught[0].filename == __file__
    # The same decrease is negligible compared with this spread.
    found, penalties = widened(valley(2.3, spread=100.0), GRID)
    assert penalties.size == GRID.size
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_at_edge(found, penalties, "alphas")


def test_the_warning_names_the_best_penalty_whatever_the_order_of_the_grid():
    for grid in ([0.1, 10.0, 1.0], [10.0, 0.1, 1.0], [1.0, 0.1, 10.0]):
        penalties = np.array(grid)
        with pytest.warns(UserWarning, match="best penalty, 10, is the largest of the grid"):
            warn_at_edge(valley(3.0)(penalties), penalties, "alphas")
        with pytest.warns(UserWarning, match="best penalty, 0.1, is the smallest of the grid"):
            warn_at_edge(valley(-3.0)(penalties), penalties, "alphas")


def test_a_grid_is_not_widened_beyond_the_largest_penalty_or_the_memory():
    assert widened(valley(6.0), GRID, largest=100.0)[1].size == GRID.size
    assert widened(valley(-6.0), GRID, largest=100.0)[1].size > GRID.size
    assert widened(valley(6.0), GRID, largest=1e3)[1].max() <= 1e3
    assert widened(valley(6.0), GRID, room=3)[1].size == GRID.size
    assert widened(valley(6.0), GRID, room=4)[1].size == GRID.size + 4


@pytest.mark.parametrize(("decrease", "edge"), [(0.004, None), (0.008, 0)])
def test_a_decrease_counts_from_a_hundredth_of_the_standard_error_of_the_mean(decrease, edge):
    """Three folds with a standard deviation of one: the standard error is 1 / sqrt(3)."""
    mse = np.array([1.0, 1.0 + decrease, 2.0])
    fold_mse = np.stack([mse - 1, mse, mse + 1])[:, None]
    penalties = np.array([1.0, 2.0, 4.0])
    found = Surface(fold_mse, penalties, RankGrid(()), 10.0, 1)
    assert falling_edge(found, penalties) == edge


# ---------------------------------------------------------------- finer grids


def counted(compute):
    """The function, and the list of all penalties for which it is called."""
    seen = []

    def computing(penalties):
        seen.extend(penalties.tolist())
        return compute(penalties)

    return computing, seen


@pytest.mark.parametrize("by_rank", [False, True])
@pytest.mark.parametrize("bottom", [-6.2, -2.3, -0.1, 0.0, 0.2, 2.3, 6.2])
@pytest.mark.parametrize("descending", [False, True])
def test_a_grid_is_twice_as_fine_next_to_the_best_penalty(bottom, by_rank, descending):
    """It is widened first; two penalties lie halfway to the neighbours of the best."""
    grid = GRID[::-1] if descending else GRID
    coarse = widened(valley(bottom, by_rank), grid)[1]
    compute, seen = counted(valley(bottom, by_rank))
    found, penalties = refined(compute, grid, room=14)
    best = coarse[np.argmin(np.abs(np.log10(coarse) - bottom))]
    expected = np.sort(np.concatenate([coarse, best * 10.0 ** np.array([-0.25, 0.25])]))
    assert_allclose(penalties, expected[::-1] if descending else expected, rtol=1e-12)
    assert np.isin(coarse, penalties).all()  # to the last bit
    # Every penalty is computed once, and has its own errors.
    assert sorted(seen) == sorted(penalties)
    assert_allclose(found.alphas, penalties, rtol=0)
    assert_allclose(found.mean_mse[0, :, 0], 1 + (np.log10(penalties) - bottom) ** 2)
    assert abs(np.log10(penalties[np.argmin(found.profile()[0])]) - bottom) <= 0.125 + 1e-9


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("bottom", "edge"), [(30.0, "largest"), (-30.0, "smallest")])
def test_a_grid_whose_edge_is_best_gets_one_penalty_more(bottom, edge, descending):
    grid = GRID[::-1] if descending else GRID
    compute, seen = counted(valley(bottom))
    found, penalties = refined(compute, grid, room=2)
    more = np.sqrt(GRID[-1] * GRID[-2] if bottom > 0 else GRID[0] * GRID[1])
    expected = np.sort(np.append(GRID, more))
    assert_allclose(penalties, expected[::-1] if descending else expected, rtol=1e-12)
    assert sorted(seen) == sorted(penalties)
    assert penalties[np.argmin(found.profile()[0])] == (GRID[-1] if bottom > 0 else GRID[0])
    with pytest.warns(UserWarning, match=f"is the {edge} of the grid"):
        warn_at_edge(found, penalties, "alphas")


@pytest.mark.parametrize(
    ("room", "size"), [(-3, 0), (0, 0), (1, 0), (2, 1), (5, 1), (6, 5), (9, 5), (10, 9), (14, 13)]
)
def test_a_grid_gets_at_most_the_allowed_number_of_new_penalties(room, size):
    """Two penalties are kept for what is finer, and one is needed at an edge."""
    compute, seen = counted(valley(30.0))
    penalties = refined(compute, GRID, room=room)[1]
    assert penalties.size == len(seen) == GRID.size + size
    assert size <= max(room, 0)
    compute, seen = counted(valley(0.0))
    penalties = refined(compute, GRID, room=room)[1]
    assert penalties.size == len(seen) == GRID.size + (2 if room >= 2 else 0)


def test_no_penalty_lies_halfway_to_zero():
    grid = np.array([0.0, 0.1, 1.0, 10.0])

    def lowest_at(place):
        def compute(penalties):
            mse = 1 + np.abs(np.searchsorted(grid, penalties) - float(place))
            fold_mse = np.stack([mse, mse])[:, None]
            return Surface(fold_mse, penalties, RankGrid(()), 10.0, 1)

        return compute

    for order in (slice(None), slice(None, None, -1)):
        for place, more in enumerate(([], [1.0], [0.1, 10.0], [1.0])):
            compute, seen = counted(lowest_at(place))
            penalties = refined(compute, grid[order], room=2)[1]
            halfway = [np.sqrt(grid[place] * alpha) for alpha in more]
            assert_allclose(penalties, np.sort([*grid, *halfway])[order], rtol=1e-12)
            assert sorted(seen) == sorted(penalties)


def test_a_single_penalty_is_neither_widened_nor_refined():
    found, penalties = refined(valley(3.0), np.array([2.0]))
    assert penalties.tolist() == found.alphas.tolist() == [2.0]


@pytest.mark.parametrize(("bottom", "grid"), [(307, (304, 308)), (-306, (-307, -303))])
def test_penalties_at_the_ends_of_the_range_of_floats_are_refined(bottom, grid):
    grid = np.logspace(*grid, 9)
    compute, seen = counted(valley(bottom))
    penalties = refined(compute, grid, room=2)[1]
    assert penalties.size == np.unique(penalties).size == 11
    assert sorted(seen) == sorted(penalties)
    new = np.setdiff1d(penalties, grid)
    assert_allclose(np.log10(new), [bottom - 0.25, bottom + 0.25], rtol=1e-12)


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


@pytest.mark.filterwarnings("ignore:The best penalty")
def test_a_grid_is_widened_for_the_ranks_that_are_listed():
    """A search over full rank alone is that of ridge regression, edges included."""
    X, Y = make_tensor_regression(
        40, n_features=12, output_shape=(5, 4), rank=2, snr=0.01, random_state=1
    )
    ridge, full = RLSCV().fit(X, Y), HOLRRCV(ranks=[(12, 5, 4)], selection="min").fit(X, Y)
    assert HOLRRCV().fit(X, Y).alphas_.size < ridge.alphas_.size
    np.testing.assert_allclose(full.alphas_, ridge.alphas_)
    assert full.alpha_ == pytest.approx(ridge.alpha_)
