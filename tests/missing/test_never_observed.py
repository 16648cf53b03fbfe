"""Outputs that are never observed have no part in a fit, whatever kind of data it is of."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.model_selection import KFold

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV, standard_errors
from holrr.metrics import rmse
from holrr.streaming import memory_budget
from problems import low_rank_tensor, on_disk, toy, with_missing
from registry import ROWS

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

SHAPE, RANK = (12, 15), (3, 2, 2)
TIGHT = {"tol": 1e-13, "max_iter": 3000}


def disc(shape, centre, radius):
    rows, columns = np.ogrid[: shape[0], : shape[1]]
    return (rows - centre[0]) ** 2 + (columns - centre[1]) ** 2 < radius**2


def a_map_with_a_sea(seed=0, n=300, noise=0.1**0.5):
    """Maps of low multilinear rank, half of them new, and where nothing is ever observed."""
    rng = np.random.default_rng(seed)
    W = low_rank_tensor(rng, (6, *SHAPE), RANK)
    X = rng.normal(size=(2 * n, 6))
    S = np.tensordot(X, W, 1)
    Y = S + noise * S.std() * rng.normal(size=S.shape) + rng.normal(size=SHAPE)
    sea = disc(SHAPE, (6, 7), 4)
    seen = np.where(sea, np.nan, Y[:n])
    return X[:n], seen, X[n:], Y[n:], sea


def small_map(seed=0, n=60, shape=(6, 7), noise=0.5):
    X, Y = toy(n, d0=5, shape=shape, noise=noise, seed=seed)
    return X, Y


MASKS = {
    "cell": lambda shape: np.arange(math.prod(shape)).reshape(shape) == 3,
    "slice": lambda shape: (
        np.arange(shape[0]).reshape(-1, *[1] * (len(shape) - 1)) + np.zeros(shape) == 1
    ),
    "disc": lambda shape: disc(shape, (2, 3), 2),
    "slice and disc": lambda shape: disc(shape, (2, 3), 2) | (np.arange(shape[1]) == 6),
}


def best_of_many_starts(X, Y, rank, alpha, n_starts=3):
    """Least objective over observed outputs, by L-BFGS in core and factors.

    With ``Xc = Q R`` the squared error is that of ``R W`` and ``Q' Yc``, and a constant.
    """
    known, rng = ~np.isnan(Y).all(axis=0), np.random.default_rng(0)
    Yc = np.where(known, Y - Y.mean(axis=0), 0.0)
    Q, Xc = np.linalg.qr(X - X.mean(axis=0))
    energy, Yc = np.sum(Yc**2), np.tensordot(Q.T, Yc, 1)
    constant = energy - np.sum(Yc**2)
    shape, text = (X.shape[1], *Y.shape[1:]), "abc,ia,jb,kc->ijk"
    sizes = [rank, *zip(shape, rank, strict=True)]
    ends, paths = np.cumsum([math.prod(size) for size in sizes])[:-1], {}

    def parts(theta):
        return [a.reshape(s) for a, s in zip(np.split(theta, ends), sizes, strict=True)]

    def einsum(text, *arrays):
        if text not in paths:  # a path takes longer than the products
            paths[text] = np.einsum_path(text, *arrays, optimize=True)[0]
        return np.einsum(text, *arrays, optimize=paths[text])

    def value_and_gradient(theta):
        G, U, V, T = parts(theta)
        W = np.where(known, einsum(text, G, U, V, T), 0.0)
        E = np.tensordot(Xc, W, 1) - Yc
        D = 2 * (np.tensordot(Xc.T, E, 1) + alpha * W)
        gradients = [
            einsum("ijk,ia,jb,kc->abc", D, U, V, T),
            einsum("ijk,abc,jb,kc->ia", D, G, V, T),
            einsum("ijk,abc,ia,kc->jb", D, G, U, T),
            einsum("ijk,abc,ia,jb->kc", D, G, U, V),
        ]
        value = constant + np.sum(E**2) + alpha * np.sum(W**2)
        return value, np.concatenate([g.ravel() for g in gradients])

    options = {"maxiter": 3000, "maxfun": 5000, "ftol": 1e-14, "gtol": 1e-9}
    starts = [rng.normal(size=ends[-1] + math.prod(sizes[-1])) for _ in range(n_starts)]
    return min(
        minimize(value_and_gradient, x, jac=True, method="L-BFGS-B", options=options).fun
        for x in starts
    )


# ---------------------------------------------------------------- low multilinear rank


@pytest.mark.parametrize("seed", range(2))
def test_a_disc_that_is_never_observed_does_not_count_as_zeros(seed):
    X, Y, X_new, Y_new, sea = a_map_with_a_sea(seed)
    ridge = RLS(missing="ignore").fit(X, Y)
    best = best_of_many_starts(X, Y, RANK, 1.0)
    for refine in (False, True):
        model = HOLRR(RANK, missing="ignore", refine=refine).fit(X, Y)
        errors = [rmse(Y_new[:, ~sea], m.predict(X_new)[:, ~sea]) for m in (model, ridge)]
        assert errors[0] < 0.995 * errors[1]
        assert_allclose(model.objective_, best, rtol=2e-5)
        assert best / 1.01 < model.lower_bound_ <= best * (1 + 1e-9)
        W = np.nan_to_num(model.coef_)
        errors = np.nansum((Y - model.predict(X)) ** 2) + np.sum(W**2)
        assert_allclose(model.objective_, errors, rtol=1e-9)


def test_noiseless_outputs_are_recovered_around_a_disc():
    X, Y, X_new, Y_new, sea = a_map_with_a_sea(noise=0.0)
    model = HOLRR(RANK, 0.0, missing="ignore", **TIGHT).fit(X, Y)
    assert_allclose(model.predict(X_new)[:, ~sea], Y_new[:, ~sea], atol=1e-4)


def test_the_search_names_the_ranks_of_the_observed_outputs():
    for seed in range(3):
        X, Y, X_new, Y_new, sea = a_map_with_a_sea(seed)
        search = HOLRRCV(missing="ignore", selection="min").fit(X, Y)
        assert search.rank_ == RANK
        oracle = HOLRR(RANK, search.alpha_, missing="ignore").fit(X, Y)
        errors = [rmse(Y_new[:, ~sea], m.predict(X_new)[:, ~sea]) for m in (search, oracle)]
        assert errors[0] < 1.001 * errors[1]


@pytest.mark.parametrize("occasional", [0.0, 0.1])
@pytest.mark.parametrize("selection", ["min", "1se", "stack"])
def test_slices_that_are_never_observed_are_left_out(selection, occasional):
    X, Y = small_map()
    Y = with_missing(Y, occasional)
    Y[:, 2], Y[:, :, 5] = np.nan, np.nan
    kept = np.ix_(np.arange(60), [0, 1, 3, 4, 5], [0, 1, 2, 3, 4, 6])
    options = {"missing": "ignore"}
    search = HOLRRCV([0.1, 1.0, 10.0], cv=3, selection=selection, **options)
    for model in (
        HOLRR(2, **options),
        HOLRR((3, None, 2), **options),
        HOLRR(0.9, **options),
        search,
    ):
        found, alone = clone(model).fit(X, Y), clone(model).fit(X, Y[kept])
        assert_allclose(found.predict(X)[kept], alone.predict(X), atol=1e-10)
        assert_allclose(found.objective_, alone.objective_, rtol=1e-12)
        assert_allclose(found.noise_[kept[1][0], kept[2][0]], alone.noise_, rtol=1e-10)
        assert found.rank_ == alone.rank_
    assert_allclose(found.best_score_, alone.best_score_, rtol=1e-12)
    bounds = found.predict_interval(X), alone.predict_interval(X)
    assert_allclose(bounds[0][0][kept], bounds[1][0], atol=1e-10)


@pytest.mark.parametrize("mask", MASKS)
def test_held_out_errors_of_the_choice_are_over_observed_outputs(mask):
    X, Y = small_map()
    never = MASKS[mask]((6, 7))
    Y[:, never] = np.nan
    search = HOLRRCV([0.1, 1.0], cv=3, selection="min", missing="ignore").fit(X, Y)
    model, errors = HOLRR(search.rank_, search.alpha_, missing="ignore"), []
    for train, test in KFold(3).split(X):
        fitted = clone(model).fit(X[train], Y[train])
        errors.append(np.nanmean((fitted.predict(X[test]) - Y[test]) ** 2))
    assert_allclose(-search.best_score_, np.mean(errors), rtol=1e-9)
    ridge = RLSCV([0.1, 1.0], cv=3, missing="ignore").fit(X, Y)
    assert_allclose(search.null_mse_, ridge.null_mse_, rtol=1e-9)
    assert_allclose(search.ridge_mse_, ridge.held_out_mse_, rtol=1e-9)
    assert_allclose(search.predict(X), model.fit(X, Y).predict(X), atol=1e-9)


def test_ranks_above_the_size_of_what_remains_become_that_size():
    X, Y = small_map()
    Y[:, 1:] = np.nan
    found = HOLRR((3, 4, 2), missing="ignore").fit(X, Y)
    assert_allclose(found.predict(X)[:, :1], HOLRR((3, 1, 2)).fit(X, Y[:, :1]).predict(X))
    search = HOLRRCV([1.0], cv=3, max_rank=(3, 4, 2), missing="ignore", selection="min")
    expected = HOLRRCV([1.0], cv=3, max_rank=(3, 1, 2), selection="min")
    assert search.fit(X, Y).rank_ == expected.fit(X, Y[:, :1]).rank_


def test_too_few_rounds_of_completion_warn():
    X, Y, *_ = a_map_with_a_sea()
    with pytest.warns(UserWarning, match="did not converge in 2 rounds"):
        HOLRR(RANK, missing="ignore", max_iter=2).fit(X, Y)


def test_subspaces_of_the_responses_are_refused_only_where_cells_are_never_observed():
    X, Y = small_map()
    slices, cells = Y.copy(), Y.copy()
    slices[:, 2], cells[:, 2, 3] = np.nan, np.nan
    model = HOLRR(2, subspaces="response", missing="ignore")
    expected = HOLRR(2, subspaces="response").fit(X, np.delete(Y, 2, axis=1)).predict(X)
    assert_allclose(np.delete(model.fit(X, slices).predict(X), 2, axis=1), expected, atol=1e-10)
    with pytest.raises(ValueError, match="subspaces='response' needs complete outputs"):
        model.fit(X, cells)


# ---------------------------------------------------------------- outputs that are independent


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    "model",
    [
        RLS(0.5),
        LRR(2, 0.5),
        RLSCV([0.1, 1.0], cv=3),
        LRRCV([0.1, 1.0], cv=3),
    ],
    ids=str,
)
def test_a_fit_without_a_low_multilinear_rank_equals_the_fit_of_the_other_outputs(model, mask):
    X, Y = small_map()
    never = MASKS[mask]((6, 7))
    Y[:, never] = np.nan
    found = clone(model).set_params(missing="ignore").fit(X, Y)
    alone = clone(model).fit(X, Y[:, ~never])
    assert np.isnan(found.predict(X)[:, never]).all()
    assert_allclose(found.predict(X)[:, ~never], alone.predict(X), atol=1e-10)
    assert_allclose(found.noise_[~never], alone.noise_, rtol=1e-10)
    assert_allclose(found.objective_, alone.objective_, rtol=1e-10)
    assert_allclose(found.lower_bound_, alone.lower_bound_, rtol=1e-9)
    assert_allclose(found.spectra_[0], alone.spectra_[0], rtol=1e-8, atol=1e-9 * alone.energy_)
    if mask == "disc":  # the spectra of its modes are not computed
        assert all(spectrum.size == 0 for spectrum in found.spectra_[1:])
    if hasattr(found, "best_score_"):
        assert_allclose(found.best_score_, alone.best_score_, rtol=1e-10)
        assert found.best_index_ == alone.best_index_
    if hasattr(found, "best_score_"):
        lower, expected = (m.predict_interval(X)[0] for m in (found, alone))
        assert_allclose(lower[:, ~never], expected, atol=1e-9)
        assert_allclose(found.null_mse_, alone.null_mse_, rtol=1e-10)


# ---------------------------------------------------------------- every estimator


def make(row):
    """An estimator that ignores missing outputs, and stops late where it goes in rounds.

    A search tries few ranks.
    """
    more = {"missing": "ignore", "max_rank": 3} if row.searches else {"missing": "ignore", **TIGHT}
    return row.make(**{name: value for name, value in more.items() if name in row.params})


def masks_of(row):
    """All masks; completions of searches over ranks are slow, so these divide the masks."""
    if not isinstance(row.estimator, HOLRRCV):
        return list(MASKS)
    return ["slice", "slice and disc"] if row.params["selection"] == "min" else ["cell", "disc"]


over_masks = pytest.mark.parametrize(
    ("owner", "mask"),
    [
        pytest.param(row, mask, id=f"{row.id}-{mask}")
        for row in ROWS
        if row.takes_missing
        for mask in masks_of(row)
    ],
)


@over_masks
def test_units_order_and_rotation_do_not_matter(owner, mask):
    X, Y = small_map()
    Y[:, MASKS[mask]((6, 7))] = np.nan
    rng = np.random.default_rng(0)
    expected = make(owner).fit(X, Y).predict(X)
    assert (np.isnan(expected) == np.isnan(Y)).all()
    tol = {"atol": 1e-6 * np.nanmax(np.abs(Y))}
    order = np.ix_(np.arange(60), rng.permutation(6), rng.permutation(7))
    found = make(owner).fit(X, 1e-60 * Y[order]).predict(X) / 1e-60
    assert_allclose(found, expected[order], **tol)
    Q = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    assert_allclose(make(owner).fit(X @ Q, 1e60 * Y).predict(X @ Q) / 1e60, expected, **tol)


@over_masks
def test_batches_disk_and_dask_equal_samples(owner, mask, tmp_path):
    if not owner.streams:
        pytest.skip("it needs samples in memory")
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = small_map()
    Y[:, MASKS[mask]((6, 7))] = np.nan
    expected = make(owner).fit(X, Y)
    lazy = da.from_array(X, chunks=(17, 3)), da.from_array(Y, chunks=(17, 4, 3))
    others = [make(owner).fit(*lazy)]
    with memory_budget(2**14):
        others.append(make(owner).fit(*lazy))
        pair = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
        others.append(make(owner).fit(*pair))
    if owner.batches:
        others.append(make(owner).partial_fit(X[:25], Y[:25]).partial_fit(X[25:], Y[25:]))
    for other in others:
        assert_allclose(other.predict(X), expected.predict(X), atol=1e-5)
        assert_allclose(other.objective_, expected.objective_, rtol=1e-7)
        if owner.searches:
            assert_allclose(other.best_score_, expected.best_score_, rtol=1e-7)


@over_masks
def test_integer_weights_equal_repetition_and_samples_without_weight_do_not_count(owner, mask):
    X, Y = small_map()
    Y[:, MASKS[mask]((6, 7))] = np.nan
    if owner.searches:
        w = (np.arange(60) % 10 > 0).astype(float)
        cv = [(np.arange(30), np.arange(30, 60)), (np.arange(30, 60), np.arange(30))]
        few = [tuple(np.searchsorted(np.flatnonzero(w), s[w[s] > 0]) for s in pair) for pair in cv]
        found = make(owner).set_params(cv=cv).fit(X, np.where(w[:, None, None] > 0, Y, 5.0), w)
        other = make(owner).set_params(cv=few).fit(X[w > 0], Y[w > 0])
        assert_allclose(found.best_score_, other.best_score_, rtol=1e-9)
    else:
        # Robust weights are nearly, not exactly, those of repeated samples.
        w = (np.arange(60) % 10 > 0).astype(int) if owner.robust else np.arange(60) % 3
        found = make(owner).fit(X, np.where(w[:, None, None] > 0, Y, 5.0), w)
        other = make(owner).fit(np.repeat(X, w, axis=0), np.repeat(Y, w, axis=0))
    assert_allclose(found.predict(X), other.predict(X), atol=1e-6)


@pytest.mark.rows("takes_missing", "weighs_outputs")
@pytest.mark.parametrize("occasional", [0.0, 0.1])
@pytest.mark.parametrize("mask", ["slice", "disc"])
def test_weights_of_outputs_are_those_of_the_outputs_that_are_observed(row, mask, occasional):
    """Outputs times the roots of their weights; one of weight zero is as one never observed."""
    if row.searches and occasional:
        pytest.skip("held-out means are over other weights; test_missing_search.py has searches")
    X, Y = small_map()
    Y[:, MASKS[mask]((6, 7))] = np.nan
    Y = with_missing(Y, occasional)
    weights = [np.array([1.0, 2.0, 0.5, 1.0, 3.0, 0.7]), np.linspace(1, 2, 7)]
    weights[1][0] = 0.0
    root = np.sqrt(np.multiply.outer(*weights))
    found = make(row).set_params(output_weight=weights).fit(X, Y)
    other = make(row).fit(X, np.where(root > 0, Y * root, np.nan))
    predicted = other.predict(X) / np.where(root > 0, root, 1.0)
    assert_allclose(found.predict(X), predicted, atol=1e-6 * np.nanmax(np.abs(Y)))
    assert math.isfinite(found.score(X, Y))


@pytest.mark.rows("takes_missing")
def test_outputs_that_are_never_observed_beside_others_that_sometimes_are(row):
    """With few of the latter the fit is near that of all of them."""
    X, Y = small_map(n=200)
    never = MASKS["slice and disc"]((6, 7))
    Y[:, never] = np.nan
    whole = make(row).fit(X, Y).predict(X)
    Y[7, 0, 0] = Y[3] = np.nan
    found = make(row).fit(X, Y)
    assert found.n_dropped_ == 1
    assert (np.isnan(found.predict(X)) == never).all()
    assert np.nanmax(np.abs(found.predict(X) - whole)) < 0.1 * np.nanstd(Y)


# ---------------------------------------------------------------- orders of outputs, other data


@pytest.mark.rows("takes_missing")
def test_vectors_of_outputs_and_scalars(row):
    X, Y = toy(60, d0=5, shape=(9,))
    never = np.arange(9) % 4 == 1
    found = make(row).fit(X, np.where(never, np.nan, Y))
    alone = make(row).fit(X, Y[:, ~never])
    assert_allclose(found.predict(X)[:, ~never], alone.predict(X), atol=1e-8)
    assert np.isnan(found.predict(X)[:, never]).all()
    with pytest.raises(ValueError, match="y has no observed entry"):
        make(row).fit(X, np.full(60, np.nan))


@pytest.mark.parametrize(
    "model", [RLS(), HOLRR(2), RLSCV([1.0], cv=3), HOLRRCV([1.0], cv=3)], ids=str
)
def test_data_in_blocks_must_all_lack_the_same_outputs(model, tmp_path):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = small_map()
    Y[:, 2, 3] = np.nan
    model = clone(model).set_params(missing="ignore")
    more, fewer, empty = Y.copy(), Y.copy(), Y.copy()
    more[41, 0, 1], fewer[41, 2, 3], empty[0] = np.nan, 1.0, np.nan
    cases = [
        (more, r"NaN for an output that is observed in the first sample at index \(41, 0, 1\)"),
        (
            fewer,
            r"a number for an output that is missing in the first sample at index \(41, 2, 3\)",
        ),
        (more, r"sample 41\)\. Batches, files, Dask arrays .* must lack the same outputs"),
        (fewer, r"sample 41\)\. Batches, files, Dask arrays .* must lack the same outputs"),
        (empty, "The first sample of y has no observed output"),
    ]
    for bad, message in cases:
        with pytest.raises(ValueError, match=message):
            model.fit(da.from_array(X, chunks=(17, 5)), da.from_array(bad, chunks=(17, 3, 7)))
        with memory_budget(2**14), pytest.raises(ValueError, match=message):
            model.fit(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", bad))
        assert not hasattr(model, "tucker_")


def test_cells_beside_slices_of_data_on_disk_are_those_in_memory(tmp_path):
    X, Y = small_map(n=200, shape=(10, 9))
    Y[:, 2], Y[:, 3, 4] = np.nan, np.nan
    lazy = on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)
    for model in (RLS(missing="ignore"), HOLRR(2, missing="ignore")):
        with memory_budget(2**12):
            found = clone(model).fit(*lazy).predict(X)
        assert_allclose(found, model.fit(X, Y).predict(X), atol=1e-6)


def test_other_array_libraries_are_refused_with_missing_outputs():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    X, Y = small_map()
    Y[:, 2, 3] = np.nan
    for model in (RLS(missing="ignore"), HOLRRCV(missing="ignore")):
        with pytest.raises(TypeError, match="needs NumPy arrays"):
            model.fit(torch.asarray(X), torch.asarray(Y))


def test_standard_errors_are_those_of_the_observed_outputs():
    X, Y = small_map()
    never = MASKS["disc"]((6, 7))
    Y[:, never] = np.nan
    for model in (RLS(), HOLRR(2)):
        model.set_params(missing="ignore").fit(X, Y)
        found = standard_errors(model, X, Y).coef.std_error
        assert np.isfinite(found[:, ~never]).all()
        if isinstance(model, RLS):
            alone = standard_errors(RLS().fit(X, Y[:, ~never]), X, Y[:, ~never])
            assert_allclose(found[:, ~never], alone.coef.std_error, rtol=1e-8)
