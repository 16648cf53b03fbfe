"""The search for penalties of blocks of inputs."""

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import KFold, LeaveOneGroupOut

from holrr import HOLRRCV, LRRCV, RLSCV, Moments, load, save

SEARCHES = [RLSCV(), LRRCV(), HOLRRCV()]


def problem(n, sizes=(6, 8, 5), strengths=(1.0, 0.1, 0.0), shape=(4, 3), seed=0, noise=2.0):
    """Blocks of inputs of different strengths."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, sum(sizes))) + 0.5
    W = rng.normal(size=(sum(sizes), 2)) @ rng.normal(size=(2, np.prod(shape)))
    W *= np.repeat(strengths, sizes)[:, None]
    Y = (X @ W + noise * rng.normal(size=(n, np.prod(shape)))).reshape(n, *shape)
    return X, Y, np.repeat(np.arange(len(sizes)), sizes)


def held_out_error(X, Y, labels, penalties, splits, w=None, fit_intercept=True):
    """Mean squared error of ridge regression with these penalties, by a direct solve of each fold.

    Blocks of infinite penalties are left out.
    """
    errors, alpha = [], np.asarray(penalties)[labels]
    some, w = np.isfinite(alpha), np.ones(len(X)) if w is None else w
    X, alpha, Y = X[:, some], alpha[some], Y.reshape(len(Y), -1)
    for train, test in splits:
        v = w[train][:, None]
        mx, my = (v * X[train]).sum(0) / v.sum(), (v * Y[train]).sum(0) / v.sum()
        mx, my = mx * fit_intercept, my * fit_intercept
        Xc, Yc = X[train] - mx, Y[train] - my
        W = np.linalg.solve(Xc.T @ (v * Xc) + np.diag(alpha), Xc.T @ (v * Yc))
        squares = np.square(Y[test] - my - (X[test] - mx) @ W).mean(axis=1)
        errors.append(np.average(squares, weights=w[test]))
    return np.mean(errors)


def best_penalties(X, Y, labels, splits, n_starts=4):
    """Least error over the penalties of all blocks, by L-BFGS with numerical derivatives."""
    n = labels.max() + 1
    rng = np.random.default_rng(0)
    starts = [np.full(n, np.log(a)) for a in (1.0, 100.0)]
    starts += list(np.log(10.0) * rng.uniform(-1, 5, size=(n_starts - 2, n)))
    value = lambda logs: held_out_error(X, Y, labels, np.exp(logs), splits)  # noqa: E731
    bounds = [(np.log(1e-3), np.log(1e9))] * n
    return min(minimize(value, x, method="L-BFGS-B", bounds=bounds).fun for x in starts)


@pytest.mark.parametrize("n", [80, 15], ids=["tall", "wide"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_of_all_penalties_that_were_tried_are_those_of_direct_solves(
    n, fit_intercept, weighted
):
    X, Y, labels = problem(n)
    w = np.random.default_rng(1).integers(1, 4, n).astype(float) if weighted else None
    splits = list(KFold(4).split(X))
    search = RLSCV(blocks=labels, cv=splits, fit_intercept=fit_intercept).fit(X, Y, w)
    results = search.cv_results_
    assert results["block_path_alphas"].shape == (len(results["block_path_mse"]), 3)
    expected = [
        held_out_error(X, Y, labels, alphas, splits, w, fit_intercept)
        for alphas in results["block_path_alphas"]
    ]
    np.testing.assert_allclose(results["block_path_mse"], expected, rtol=1e-6)
    assert np.isinf(results["block_path_alphas"]).any()  # blocks are left out in some
    # The penalties that were found are tried with all common penalties.
    assert results["mean_mse"].min() <= min(expected) * (1 + 1e-4)
    assert -search.best_score_ == pytest.approx(results["mean_mse"].min(), rel=1e-12)
    chosen = list(search.block_alphas_.values())
    found = held_out_error(X, Y, labels, chosen, splits, w, fit_intercept)
    assert -search.best_score_ == pytest.approx(found, rel=1e-8)


@pytest.mark.parametrize("n", [80, 15], ids=["tall", "wide"])
@pytest.mark.parametrize("sizes", [(6, 8), (6, 8, 5), (3, 4, 2, 5, 3, 4)], ids=str)
def test_no_other_penalties_are_better(n, sizes):
    """Those of an independent optimum from several starts, and of random draws."""
    strengths = (1.0, 0.1, 0.0, 0.5, 0.02, 0.3)[: len(sizes)]
    X, Y, labels = problem(n, sizes, strengths, seed=len(sizes))
    splits = list(KFold(4).split(X))
    search = RLSCV(blocks=labels, cv=splits).fit(X, Y)
    assert -search.best_score_ <= best_penalties(X, Y, labels, splits) * (1 + 1e-4)
    draws = np.random.default_rng(0).uniform(np.log(1e-2), np.log(1e5), (100, len(sizes)))
    others = [held_out_error(X, Y, labels, np.exp(logs), splits) for logs in draws]
    assert -search.best_score_ <= min(others) * (1 + 1e-6)
    # The best penalties that were tried are a minimum, which is found in few steps.
    tried, errors = (search.cv_results_[f"block_path_{name}"] for name in ("alphas", "mse"))
    finite = np.isfinite(tried).all(axis=1)
    best = np.log(tried[finite][np.argmin(errors[finite])])
    value = lambda logs: held_out_error(X, Y, labels, np.exp(logs), splits)  # noqa: E731
    steps = 1e-3 * np.eye(len(sizes))
    slopes = [(value(best + h) - value(best - h)) / 2e-3 for h in steps]
    np.testing.assert_allclose(slopes, 0.0, atol=5e-5 * errors[finite].min())
    assert len(errors) < 40 + 15 * len(sizes)


@pytest.mark.parametrize("n", [60, 15], ids=["tall", "wide"])
def test_penalties_of_blocks_do_not_depend_on_rotations_of_many_outputs(n):
    X, Y, labels = problem(n, shape=(10, 9))
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(90, 90)))[0]
    turned = (Y.reshape(n, 90) @ Q).reshape(n, 10, 9)
    one, other = (RLSCV(blocks=labels, cv=4).fit(X, A) for A in (Y, turned))
    splits = list(KFold(4).split(X))
    results = one.cv_results_
    tried, errors = (results[f"block_path_{name}"][::5] for name in ("alphas", "mse"))
    expected = [held_out_error(X, Y, labels, alphas, splits) for alphas in tried]
    np.testing.assert_allclose(errors, expected, rtol=1e-6)
    assert one.best_score_ == pytest.approx(other.best_score_, rel=1e-5)


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_useless_blocks_are_left_out_and_named(search):
    X, Y, labels = problem(60, (6, 8, 5), (1.0, 0.0, 0.0))
    model = clone(search).set_params(blocks=labels).fit(X, Y)
    assert np.isinf(list(model.block_alphas_.values())[1:]).any()
    assert set(model.block_alphas_) == {"0", "1", "2"}
    left_out = [name for name, alpha in model.block_alphas_.items() if np.isinf(alpha)]
    for name in left_out:
        assert not model.coef_[model.blocks_[name]].any()


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("n", [60, 15], ids=["tall", "wide"])
def test_the_model_of_a_search_is_that_of_its_penalties(search, n):
    X, Y, labels = problem(n)
    model = clone(search).set_params(blocks=labels, cv=4, selection="min").fit(X, Y)
    best = model.best_estimator_
    assert best.block_alphas_ == model.block_alphas_
    again = type(best)(**best.get_params()).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), again.predict(X), atol=1e-8)
    results = model.cv_results_
    ratios = results["block_ratios"]
    assert results["mean_mse"].shape[0] == len(ratios) == 2
    np.testing.assert_array_equal(ratios[0], 1)
    chosen = ratios[model.best_index_[0]]
    np.testing.assert_allclose(
        list(model.block_alphas_.values()), model.alpha_ * chosen, rtol=1e-12
    )
    # Equal penalties are a candidate, with the errors of a search without blocks.
    equal = type(search)(**{**model.get_params(), "blocks": None, "alphas": results["alphas"]})
    np.testing.assert_allclose(
        results["mean_mse"][0], equal.fit(X, Y).cv_results_["mean_mse"], rtol=1e-7, equal_nan=True
    )


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_moments_disk_and_dask_agree_with_memory(search, tmp_path):
    da = pytest.importorskip("dask.array")
    X, Y, labels = problem(60)
    search = clone(search).set_params(blocks=labels, cv=KFold(3), selection="min")
    wanted = search.fit(X, Y).predict(X)
    parts = [Moments.from_arrays(X[test], Y[test]) for _, test in KFold(3).split(X)]
    found = {"moments": search.fit_fold_moments(parts).predict(X)}
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    on_disk = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XY")
    found["disk"] = search.fit(*on_disk).predict(X)
    chunks = da.from_array(X, chunks=(17, -1)), da.from_array(Y, chunks=(17, -1, -1))
    found["dask"] = search.fit(*chunks).predict(X)
    for name, values in found.items():
        np.testing.assert_allclose(values, wanted, atol=1e-7, err_msg=name)


@pytest.mark.parametrize("n", [60, 15], ids=["tall", "wide"])
def test_units_order_and_rotation_do_not_matter(n):
    X, Y, labels = problem(n)
    wanted = RLSCV(blocks=labels).fit(X, Y)
    order = np.random.default_rng(0).permutation(X.shape[1])
    moved = RLSCV(blocks=labels[order]).fit(X[:, order], Y)
    np.testing.assert_allclose(moved.predict(X[:, order]), wanted.predict(X), atol=1e-4)
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(4, 4)))[0]
    turned = RLSCV(blocks=labels).fit(X, np.einsum("nij,ik->nkj", Y, Q))
    found = np.einsum("nkj,ik->nij", turned.predict(X), Q)
    np.testing.assert_allclose(found, wanted.predict(X), atol=1e-4)
    for unit in (1e-80, 1e80):
        scaled = RLSCV(blocks=labels).fit(X * unit, Y * unit).predict(X * unit)
        np.testing.assert_allclose(scaled / unit, wanted.predict(X), atol=1e-4)


def test_weights_equal_repetition():
    X, Y, labels = problem(40)
    w = np.random.default_rng(0).integers(1, 3, 40)
    rows = np.repeat(np.arange(40), w)
    splits = [(train, test) for train, test in KFold(4).split(X)]
    repeated = [tuple(np.flatnonzero(np.isin(rows, side)) for side in split) for split in splits]
    one = RLSCV(blocks=labels, cv=splits).fit(X, Y, w.astype(float))
    other = RLSCV(blocks=labels, cv=repeated).fit(X[rows], Y[rows])
    assert one.best_score_ == pytest.approx(other.best_score_, rel=1e-5)
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-3)


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_missing_outputs_groups_torch_and_files(search, tmp_path):
    torch = pytest.importorskip("torch")
    X, Y, labels = problem(60)
    groups = np.repeat(np.arange(4), 15)
    search = clone(search).set_params(blocks=labels, cv=LeaveOneGroupOut())
    model = search.fit(X, Y, groups=groups)
    save(model, tmp_path / "model.holrr")
    same = load(tmp_path / "model.holrr")
    np.testing.assert_array_equal(same.predict(X), model.predict(X))
    assert same.block_alphas_ == model.block_alphas_
    np.testing.assert_array_equal(same.predict_interval(X), model.predict_interval(X))
    wanted = model.predict(X)
    tensors = search.fit(torch.tensor(X), torch.tensor(Y), groups=groups)
    np.testing.assert_allclose(tensors.predict(torch.tensor(X)).numpy(), wanted, atol=1e-5)
    incomplete = Y.copy()
    incomplete[np.random.default_rng(0).random(Y.shape) < 0.1] = np.nan
    some = type(search)(**{**search.get_params(), "missing": "ignore"}).fit(
        X, incomplete, groups=groups
    )
    assert np.corrcoef(some.predict(X).ravel(), wanted.ravel())[0, 1] > 0.95
    assert set(some.block_alphas_) == {"0", "1", "2"}


def test_errors_name_the_requirements_of_blocks():
    X, Y, labels = problem(40)
    # Where the only penalty is zero, blocks have no other.
    assert set(RLSCV([0.0], blocks=labels).fit(X, Y).block_alphas_.values()) == {0.0}
    one = HOLRRCV(blocks=["a"] * X.shape[1]).fit(X, Y)  # one block is none
    assert list(one.block_alphas_) == ["a"]


def test_constant_blocks_do_not_change_the_fit():
    X, Y, labels = problem(40)
    X[:, labels == 1] = 3.0
    model = HOLRRCV(blocks=labels).fit(X, Y)
    assert np.isinf(model.block_alphas_["1"])
    assert np.isfinite(model.predict(X)).all()
    X[...] = 1.0
    assert np.isfinite(RLSCV(blocks=labels).fit(X, Y).predict(X)).all()
