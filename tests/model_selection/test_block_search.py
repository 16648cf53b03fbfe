"""The search for penalties of blocks of inputs."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, LeaveOneGroupOut

from holrr import HOLRRCV, LRRCV, RLS, RLSCV, Moments, load, save
from holrr.data.blocks import InputBlocks
from holrr.data.validation import Samples
from holrr.model_selection.block_penalties import block_errors, find_block_penalties
from holrr.model_selection.folds import moment_data, sample_data

SEARCHES = [RLSCV(), LRRCV(), HOLRRCV()]


def problem(n, sizes=(6, 8, 5), strengths=(1.0, 0.1, 0.0), shape=(4, 3), seed=0, noise=2.0):
    """Blocks of inputs of different strengths."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, sum(sizes))) + 0.5
    W = rng.normal(size=(sum(sizes), 2)) @ rng.normal(size=(2, np.prod(shape)))
    W *= np.repeat(strengths, sizes)[:, None]
    Y = (X @ W + noise * rng.normal(size=(n, np.prod(shape)))).reshape(n, *shape)
    return X, Y, np.repeat(np.arange(len(sizes)), sizes)


def blocks_of(labels):
    return InputBlocks(tuple(map(str, range(labels.max() + 1))), labels)


def folds_of(X, Y, w=None, fit_intercept=True, n_folds=4):
    splits = list(KFold(n_folds).split(X))
    return sample_data(Samples(X, Y, w), splits, fit_intercept=fit_intercept), splits


@pytest.mark.parametrize("n", [80, 15], ids=["tall", "wide"])
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_is_that_of_fits_and_the_gradient_that_of_differences(n, fit_intercept, weighted):
    X, Y, labels = problem(n)
    w = np.random.default_rng(1).integers(1, 4, n).astype(float) if weighted else None
    data, splits = folds_of(X, Y, w, fit_intercept)
    error_of, logs = block_errors(data, blocks_of(labels), None), np.log([2.0, 30.0, 7.0])
    error, slopes = error_of(logs)
    alpha, errors = dict(zip("012", np.exp(logs), strict=True)), []
    for train, test in splits:
        model = RLS(alpha, blocks=labels, fit_intercept=fit_intercept)
        model.fit(X[train], Y[train], None if w is None else w[train])
        squares = np.square(Y[test] - model.predict(X[test])).mean(axis=(1, 2))
        errors.append(np.average(squares, weights=None if w is None else w[test]))
    assert error == pytest.approx(np.mean(errors), rel=1e-10)
    step = 1e-5 * np.eye(3)
    numeric = [(error_of(logs + h)[0] - error_of(logs - h)[0]) / 2e-5 for h in step]
    np.testing.assert_allclose(slopes, numeric, rtol=1e-6, atol=1e-6 * np.abs(slopes).max())


def test_many_outputs_are_rotated_without_a_difference():
    for n in (60, 15):
        X, Y, labels = problem(n, shape=(10, 9))
        logs = np.log([2.0, 30.0, 7.0])
        few = [
            block_errors(folds_of(X, Y[:, k : k + 1])[0], blocks_of(labels), None)(logs)
            for k in range(10)
        ]
        error, slopes = block_errors(folds_of(X, Y)[0], blocks_of(labels), None)(logs)
        assert error == pytest.approx(np.mean([e for e, _ in few]), rel=1e-10)
        np.testing.assert_allclose(slopes, np.mean([g for _, g in few], axis=0), rtol=1e-8)


def test_gram_matrices_that_do_not_fit_in_memory_are_computed_again():
    X, Y, labels = problem(15)
    kept, again = (
        block_errors(folds_of(X, Y)[0], blocks_of(labels), None, max_bytes)
        for max_bytes in (1e9, 1)
    )
    for one, other in zip(kept(np.zeros(3)), again(np.zeros(3)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_weights_of_inputs_scale_them():
    X, Y, labels = problem(60)
    scale = np.linspace(0.5, 2, X.shape[1])
    for n in (60, 15):
        one = block_errors(folds_of(X[:n], Y[:n])[0], blocks_of(labels), scale)(np.ones(3))
        other = block_errors(folds_of(X[:n] * scale, Y[:n])[0], blocks_of(labels), None)(np.ones(3))
        np.testing.assert_allclose(one[0], other[0], rtol=1e-12)
        np.testing.assert_allclose(one[1], other[1], rtol=1e-9)


@pytest.mark.parametrize("n", [80, 15], ids=["tall", "wide"])
@pytest.mark.parametrize("sizes", [(6, 8), (6, 8, 5), (3, 4, 2, 5, 3, 4)])
def test_no_random_draw_is_better(n, sizes):
    strengths = (1.0, 0.1, 0.0, 0.5, 0.02, 0.3)[: len(sizes)]
    X, Y, labels = problem(n, sizes, strengths, seed=len(sizes))
    data, _ = folds_of(X, Y)
    blocks = blocks_of(labels)
    found = find_block_penalties(data, blocks, None)
    error_of = block_errors(data, blocks, None)
    draws = np.random.default_rng(0).uniform(np.log(1e-2), np.log(1e5), (200, len(sizes)))
    assert found.error <= min(error_of(logs)[0] for logs in draws) * (1 + 1e-6)
    # The path has the errors of its penalties.
    k = len(found.path) // 2
    assert found.path_errors[k] == pytest.approx(error_of(np.log(found.path[k]))[0], rel=1e-9)
    assert found.error == pytest.approx(found.path_errors.min(), rel=2e-5)


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


def test_the_penalties_that_were_found_are_tried_exactly():
    X, Y, labels = problem(60)
    model = RLSCV(blocks=labels).fit(X, Y)
    results = model.cv_results_
    assert results["mean_mse"].min() <= results["block_path_mse"].min() * (1 + 1e-4)
    assert -model.best_score_ == pytest.approx(results["mean_mse"].min(), rel=1e-12)
    assert results["block_path_alphas"].shape == (len(results["block_path_mse"]), 3)


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


def test_folds_without_samples_have_the_errors_of_samples():
    X, Y, labels = problem(60)
    splits = list(KFold(4).split(X))
    parts = [Moments.from_arrays(X[test], Y[test]) for _, test in splits]
    for fit_intercept in (True, False):
        one = block_errors(moment_data(parts, fit_intercept=fit_intercept), blocks_of(labels), None)
        other = block_errors(folds_of(X, Y, None, fit_intercept)[0], blocks_of(labels), None)
        for a, b in zip(one(np.ones(3)), other(np.ones(3)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


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
    with pytest.raises(ValueError, match="blocks and own need criterion='cv'"):
        HOLRRCV(blocks=labels, criterion="gcv").fit(X, Y)
    # Where the only penalty is zero, blocks have no other.
    assert set(RLSCV([0.0], blocks=labels).fit(X, Y).block_alphas_.values()) == {0.0}
    one = HOLRRCV(blocks=["a"] * X.shape[1], criterion="gcv").fit(X, Y)  # one block is none
    assert list(one.block_alphas_) == ["a"]


def test_constant_blocks_do_not_change_the_fit():
    X, Y, labels = problem(40)
    X[:, labels == 1] = 3.0
    model = HOLRRCV(blocks=labels).fit(X, Y)
    assert np.isinf(model.block_alphas_["1"])
    assert np.isfinite(model.predict(X)).all()
    X[...] = 1.0
    assert np.isfinite(RLSCV(blocks=labels).fit(X, Y).predict(X)).all()
