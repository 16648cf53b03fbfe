"""Ranks as a user writes them, the ranks of fits, and errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
from holrr import HOLRR, LRR, MLMTNC, KernelHOLRR, KernelLRR
from problems import low_rank_tensor, toy


def data(**kwargs):
    return toy(n=60, d0=6, shape=(3, 5), noise=2.0, **kwargs)


@pytest.mark.parametrize(
    ("rank", "used"),
    [
        (None, (6, 3, 5)),
        (1, (1, 1, 1)),
        (4, (4, 3, 4)),
        (99, (6, 3, 5)),
        ((2, 3, 4), (2, 3, 4)),
        ([2, 3, 4], (2, 3, 4)),
        (np.array([2, 3, 4]), (2, 3, 4)),
        ((np.int32(2), None, 4), (2, 3, 4)),
        ((None, None, None), (6, 3, 5)),
        (np.int64(2), (2, 2, 2)),
    ],
    ids=str,
)
def test_rank_that_is_used(rank, used):
    model = HOLRR(rank).fit(*data())
    assert model.rank_ == used
    assert model.core_.shape == used
    assert all(type(R) is int for R in model.rank_)


def test_rank_above_the_product_of_the_others_is_kept():
    """(6, 1, 2) has mode-0 rank at most 2, and is a valid bound."""
    X, Y = data()
    model = HOLRR((6, 1, 2)).fit(X, Y)
    assert model.rank_ == (6, 1, 2)
    assert_allclose(model.objective_, HOLRR((2, 1, 2), refine=True).fit(X, Y).objective_, rtol=0.1)
    assert model.objective_ <= HOLRR((2, 1, 2)).fit(X, Y).objective_ * (1 + 1e-9)
    Xc, Yc = reference.centre(X, Y)[:2]
    assert_allclose(model.objective_, reference.objective(Xc, Yc, model.coef_, 1.0), rtol=1e-9)
    assert HOLRR((1, 3, 5)).fit(X, Y).rank_ == (1, 3, 5)


def test_scalar_and_vector_targets_have_ranks():
    X, y = toy(d0=6, shape=())
    for rank in (None, 1, 4, (1,), (3,), (0.5,)):
        model = HOLRR(rank).fit(X, y)
        assert len(model.rank_) == 1
        assert_allclose(model.coef_, HOLRR().fit(X, y).coef_, rtol=1e-8)  # one output: rank one
    X, Y = toy(d0=6, shape=(1, 1))
    assert HOLRR((2, 1, 1)).fit(X, Y).rank_ == (2, 1, 1)


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("share", [1e-9, 0.3, 0.8, 0.95, 0.9999])
def test_share_gives_the_smallest_rank_with_that_share(mode, share):
    X, Y = data()
    rank = [None, None, None]
    rank[mode] = share
    model = HOLRR(tuple(rank)).fit(X, Y)
    _, Z, _ = reference.whiten(*reference.centre(X, Y)[:2], 1.0)
    energy = np.linalg.svd(reference.unfold(Z, mode), compute_uv=False) ** 2
    kept = np.cumsum(energy) / energy.sum()
    assert model.rank_[mode] == np.flatnonzero(kept >= share)[0] + 1
    assert [R for i, R in enumerate(model.rank_) if i != mode] == [
        d for i, d in enumerate((6, 3, 5)) if i != mode
    ]


def test_shares_find_the_true_rank():
    rng = np.random.default_rng(0)
    W = low_rank_tensor(rng, (6, 5, 7), (3, 2, 4))
    X = rng.normal(size=(60, 6))
    model = HOLRR((0.999999999,) * 3, alpha=0).fit(X, np.tensordot(X, W, axes=1))
    assert model.rank_ == (3, 2, 4)
    assert_allclose(model.coef_, W, atol=1e-9 * np.abs(W).max())


@pytest.mark.parametrize("cls", [HOLRR, KernelHOLRR, MLMTNC])
def test_single_share_holds_for_every_mode(cls):
    X, Y = data()
    one, each = cls(rank=0.9).fit(X, Y), cls(rank=(0.9,) * 3).fit(X, Y)
    assert one.rank_ == each.rank_ < (6, 3, 5)
    np.testing.assert_array_equal(one.predict(X), each.predict(X))
    for rank in (0.0, 1.0, 1.5, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="rank as a float is a share"):
            cls(rank=rank).fit(X, Y)


def test_shares_with_response_subspaces_are_shares_of_z():
    X, Y = data()
    rank = (0.9, 0.8, 0.7)
    assert HOLRR(rank, subspaces="response").fit(X, Y).rank_ == HOLRR(rank).fit(X, Y).rank_


@pytest.mark.parametrize("alpha", [0.0, 1e-6, 1.0])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("fit", ["fit", "partial_fit"])
def test_input_rank_above_that_of_the_data_is_lowered(alpha, fit_intercept, fit):
    X, Y = data()
    options = {"alpha": alpha, "fit_intercept": fit_intercept}

    def used(X, Y, rank):
        return getattr(HOLRR(rank, **options), fit)(X, Y).rank_

    few = 4 - fit_intercept  # centring removes one direction
    assert used(X[:4], Y[:4], None) == (few, 3, 5)
    assert used(X[:4], Y[:4], (6, 2, 2)) == (few, 2, 2)
    assert used(X[:4], Y[:4], (2, 2, 2)) == (2, 2, 2)
    X[:, 5], X[:, 4] = X[:, 0] + X[:, 1], 2 * X[:, 0]
    assert used(X, Y, None) == (4, 3, 5)
    assert used(X, Y, (5, 2, 2)) == (4, 2, 2)
    assert used(X, Y, 99) == (4, 3, 5)


def test_input_rank_above_that_of_the_outputs_is_kept():
    """Inputs of full rank, and outputs that depend on one direction of them."""
    X, _ = data()
    model = HOLRR((4, 3, 5), alpha=0).fit(X, np.tensordot(X[:, :1], np.ones((1, 3, 5)), axes=1))
    assert model.rank_ == (4, 3, 5)


def test_constant_data_have_rank_one():
    X, Y = data()
    assert HOLRR().fit(np.ones_like(X), Y).rank_ == (1, 3, 5)
    assert HOLRR((0.9, 0.9, 0.9)).fit(X, np.ones_like(Y)).rank_ == (1, 1, 1)


@pytest.mark.parametrize(
    ("rank", "error", "message"),
    [
        ((7, 3, 5), ValueError, r"rank\[0\].*input.*6.*7"),
        ((6, 4, 5), ValueError, r"rank\[1\].*output mode 1.*3.*4"),
        ((6, 3, 6), ValueError, r"rank\[2\].*output mode 2.*5.*6"),
        ((0, 3, 5), ValueError, r"rank\[0\].*from 1 to.*6.*0"),
        ((1, -2, 5), ValueError, r"rank\[1\].*from 1 to.*3.*-2"),
        ((1, 1), ValueError, r"rank must have 3 entries.*\(1, 1\)"),
        ((1, 1, 1, 1), ValueError, r"rank must have 3 entries.*4"),
        ((), ValueError, r"rank must have 3 entries"),
        (0, ValueError, r"rank.*at least 1.*0"),
        (-1, ValueError, r"rank.*at least 1.*-1"),
        ((1.5, 1, 1), ValueError, r"rank\[0\].*between 0 and 1.*1\.5"),
        ((1.0, 1, 1), ValueError, r"rank\[0\].*1\.0"),
        ((0.0, 1, 1), ValueError, r"rank\[0\].*0\.0"),
        ((-0.5, 1, 1), ValueError, r"rank\[0\].*-0\.5"),
        ((np.nan, 1, 1), ValueError, r"rank\[0\].*nan"),
        ((True, 1, 1), TypeError, r"rank\[0\].*True"),
        (("2", 1, 1), TypeError, r"rank\[0\].*'2'"),
        ((1, 1, (1, 2)), TypeError, r"rank\[2\]"),
        (2.0, ValueError, r"rank.*2\.0"),
        (-0.5, ValueError, r"rank.*-0\.5"),
        (True, TypeError, r"rank.*True"),
        ("full", TypeError, r"rank.*full"),
        ({2, 3}, TypeError, r"rank"),
        (np.array([[1, 2, 3]]), (TypeError, ValueError), r"rank"),
    ],
    ids=str,
)
def test_bad_ranks_raise_and_leave_the_fit(rank, error, message):
    X, Y = data()
    model = HOLRR(2).fit(X, Y)
    before = model.predict(X)
    model.set_params(rank=rank)
    with pytest.raises(error, match=message):
        model.fit(X, Y)
    assert model.rank_ == (2, 2, 2)
    assert_allclose(model.predict(X), before, rtol=0)


@pytest.mark.parametrize("make", [LRR, KernelLRR])
@pytest.mark.parametrize("rank", [(2, 2), [2, 2, 2], np.array([2])], ids=str)
def test_the_rank_of_a_matrix_is_one_number(make, rank):
    with pytest.raises(TypeError, match=r"rank of LRR and KernelLRR must be one number; got .*2"):
        make(rank=rank).fit(*data())
