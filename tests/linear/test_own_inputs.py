"""Own inputs: each output's own past, besides the part that all outputs share."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone
from sklearn.model_selection import KFold

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV, Moments, load, save, standard_errors

PLACES, VARIABLES, LAGS = 4, 3, 2
MODELS = [RLS(3.0), LRR(2, 3.0), HOLRR((2, 2, 2), 3.0)]
SEARCHES = [RLSCV(), LRRCV(), HOLRRCV()]
BOTH = [(1, 0), (2, 1)]


def problem(n=60, seed=0, noise=1.0):
    """Each series depends on its own past, and all on one common direction."""
    rng = np.random.default_rng(7)
    shared = rng.normal(size=(LAGS * PLACES * VARIABLES, 1))
    shared = shared @ rng.normal(size=(1, PLACES * VARIABLES))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, LAGS, PLACES, VARIABLES)) + 0.5
    Y = 0.8 * X[:, 0] - 0.4 * X[:, 1]
    Y = Y + 0.2 * (X.reshape(n, -1) @ shared).reshape(n, PLACES, VARIABLES)
    return X, Y + noise * rng.normal(size=Y.shape)


def labelled(X, Y):
    places, variables = list("abcd"), ["t", "p", "q"]
    coords = {"place": places, "variable": variables}
    X = xr.DataArray(X, dims=("time", "lag", "place", "variable"), coords={"lag": [1, 2], **coords})
    return X, xr.DataArray(Y, dims=("time", "place", "variable"), coords=coords)


def sparse_part(X, Y, own, beta, w, fit_intercept):
    """S of the definition, one ridge fit for each output, and the centred data."""
    X, Y = X.reshape(len(X), -1), Y.reshape(len(Y), -1)
    mean_x, mean_y = (w @ A / w.sum() if fit_intercept else 0 * A[0] for A in (X, Y))
    X, Y = (np.sqrt(w)[:, None] * A for A in (X - mean_x, Y - mean_y))
    S = np.zeros((X.shape[1], Y.shape[1]))
    for j, owned in enumerate(own.T):
        A = X[:, owned]
        S[owned, j] = np.linalg.solve(A.T @ A + beta * np.eye(owned.sum()), A.T @ Y[:, j])
    return S, X, Y


def owned_by(kind):
    """Inputs by outputs that agree in place, in variable, or in both."""
    _, place, variable = (A.ravel() for A in np.indices((LAGS, PLACES, VARIABLES)))
    p, v = (A.ravel() for A in np.indices((PLACES, VARIABLES)))
    same = {"place": place[:, None] == p, "variable": variable[:, None] == v}
    return np.logical_and.reduce([same[mode] for mode in kind])


@pytest.mark.parametrize("kind", [("place",), ("variable",), ("place", "variable")])
@pytest.mark.parametrize("n", [60, 15], ids=["tall", "wide"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_with_own_inputs_is_the_two_step_estimator(kind, n, fit_intercept):
    X, Y = problem(n)
    w = np.random.default_rng(1).integers(1, 4, n).astype(float)
    S, A, B = sparse_part(X, Y, owned_by(kind), 2.0, w, fit_intercept)
    W = np.linalg.solve(A.T @ A + 3 * np.eye(A.shape[1]), A.T @ (B - A @ S))
    data = labelled(X, Y)
    model = RLS(3.0, own=list(kind), own_alpha=2.0, fit_intercept=fit_intercept).fit(*data, w)
    np.testing.assert_allclose(model.coef_.reshape(S.shape), S + W, atol=1e-10)
    np.testing.assert_allclose(model.own_coef_.reshape(S.shape), S, atol=1e-10)
    assert model.own_coef_.shape == X.shape[1:] + Y.shape[1:]
    predicted = X.reshape(n, -1) @ (S + W)
    np.testing.assert_allclose(
        model.predict(data[0]).to_numpy().reshape(n, -1) - predicted,
        np.broadcast_to(model.intercept_.ravel(), predicted.shape),
        atol=1e-9,
    )


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_names_positions_and_a_mask_say_the_same(model):
    X, Y = problem()
    data = labelled(X, Y)
    wanted = clone(model).set_params(own=BOTH).fit(X, Y).predict(X)
    for own in ("auto", ["place", "variable"], ("variable", "place")):
        found = clone(model).set_params(own=own).fit(*data).predict(data[0]).to_numpy()
        np.testing.assert_allclose(found, wanted, atol=1e-11)
    mask = owned_by(("place", "variable"))
    for own in (mask, mask.reshape(X.shape[1:] + Y.shape[1:])):
        np.testing.assert_allclose(
            clone(model).set_params(own=own).fit(X, Y).predict(X), wanted, atol=1e-11
        )


def test_tables_with_levels_and_datasets_share_modes():
    X, Y = problem()
    dx, dy = labelled(X, Y)
    wanted = RLS(own="auto").fit(dx, dy).predict(dx).to_numpy()
    columns = pd.MultiIndex.from_product([[1, 2], list("abcd"), ["t", "p", "q"]], names=dx.dims[1:])
    of_y = pd.MultiIndex.from_product([list("abcd"), ["t", "p", "q"]], names=dy.dims[1:])
    tables = (
        pd.DataFrame(X.reshape(60, -1), columns=columns),
        pd.DataFrame(Y.reshape(60, -1), columns=of_y),
    )
    found = RLS(own="auto").fit(*tables).predict(tables[0]).to_numpy()
    np.testing.assert_allclose(found.reshape(wanted.shape), wanted, atol=1e-11)
    sets = dx.to_dataset("variable"), dy.to_dataset("variable")
    found = RLS(own="auto").fit(*sets).predict(sets[0])
    np.testing.assert_allclose(
        found.to_dataarray("variable").transpose(*dy.dims), wanted, atol=1e-11
    )


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_batches_moments_disk_and_dask_agree(model, tmp_path):
    da = pytest.importorskip("dask.array")
    X, Y = problem()
    model = clone(model).set_params(own=BOTH)
    wanted = model.fit(X, Y)
    noise, wanted = wanted.noise_, wanted.predict(X)
    flat = clone(model).set_params(input_shape=X.shape[1:])
    A = X.reshape(60, -1)
    found = {"moments": flat.fit_moments(Moments.from_arrays(A, Y)).predict(A)}
    np.testing.assert_allclose(flat.noise_, noise, rtol=1e-8)
    batches = clone(flat)
    for k in range(3):
        batches.partial_fit(A[k::3], Y[k::3])
    found["batches"] = batches.predict(A)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    on_disk = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XY")
    found["disk"] = model.fit(*on_disk).predict(X)
    chunks = da.from_array(X, chunks=(17, -1, -1, -1)), da.from_array(Y, chunks=(17, -1, -1))
    found["dask"] = model.fit(*chunks).predict(X)
    found["lazy"] = model.predict(chunks[0]).compute()
    for name, values in found.items():
        np.testing.assert_allclose(values, wanted, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_units_weights_torch_and_files(model, tmp_path):
    torch = pytest.importorskip("torch")
    X, Y = problem()
    model = clone(model).set_params(own=BOTH, own_alpha=2.0)
    fitted = clone(model).fit(X, Y)
    wanted, std = fitted.predict(X, return_std=True)
    for unit in (1e-90, 1e90):
        scaled = clone(model).set_params(alpha=3 * unit**2, own_alpha=2 * unit**2)
        found = scaled.fit(X * unit, Y * unit).predict(X * unit, return_std=True)
        np.testing.assert_allclose(found[0] / unit, wanted, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found[1] / unit, std, rtol=1e-8)
    w = np.random.default_rng(0).integers(0, 3, 60)
    rows = np.repeat(np.arange(60), w)
    one = clone(model).fit(X, Y, w.astype(float))
    other = clone(model).fit(X[rows], Y[rows])
    np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-9)
    np.testing.assert_allclose(one.noise_, other.noise_, rtol=1e-8)
    tensors = torch.tensor(X), torch.tensor(Y)
    found = clone(model).fit(*tensors).predict(tensors[0], return_std=True)
    np.testing.assert_allclose(found[0].numpy(), wanted, atol=1e-10)
    np.testing.assert_allclose(found[1].numpy(), std, atol=1e-10)
    single = clone(model).fit(*(A.float() for A in tensors)).predict(tensors[0].float())
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single.numpy(), wanted, atol=1e-4)
    free = RLS({"0": 0.0, "1": 1.0}, blocks=np.repeat([0, 1], 12)).fit(X, Y)
    assert not hasattr(free, "own_coef_")
    assert free.n_parameters_ == 24 * 12
    save(fitted, tmp_path / "model.holrr")
    same = load(tmp_path / "model.holrr")
    np.testing.assert_array_equal(same.predict(X, return_std=True), (wanted, std))
    np.testing.assert_array_equal(same.own_coef_, fitted.own_coef_)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_order_of_places_and_samples_does_not_matter(model):
    X, Y = problem()
    model = clone(model).set_params(own=BOTH)
    wanted = model.fit(X, Y).predict(X)
    rng = np.random.default_rng(0)
    rows, places = rng.permutation(60), rng.permutation(PLACES)
    moved = X[rows][:, :, places], Y[rows][:, places]
    np.testing.assert_allclose(
        model.fit(*moved).predict(moved[0]), wanted[rows][:, places], atol=1e-9
    )


@pytest.mark.parametrize("weights", [[[1.0, 2.0, 0.5, 1.0], None], [[1.0, 2.0, 0.0, 1.0], None]])
def test_weights_of_outputs_do_not_change_ridge(weights):
    X, Y = problem()
    plain = RLS(own=BOTH).fit(X, Y).predict(X)
    weighted = RLS(own=BOTH, output_weight=weights).fit(X, Y).predict(X)
    seen = np.array(weights[0]) > 0
    np.testing.assert_allclose(weighted[:, seen], plain[:, seen], atol=1e-10)


def test_missing_outputs_have_own_inputs_from_the_samples_that_are_there():
    X, Y = problem()
    Y[np.random.default_rng(0).random(Y.shape) < 0.2] = np.nan
    model = RLS(3.0, own=BOTH, own_alpha=2.0, missing="ignore").fit(X, Y)
    owned = owned_by(("place", "variable"))
    for j in np.ndindex(PLACES, VARIABLES):
        k = np.ravel_multi_index(j, Y.shape[1:])
        seen = ~np.isnan(Y[:, *j])
        S, A, B = sparse_part(
            X[seen], Y[seen][:, *j][:, None], owned[:, k : k + 1], 2.0, np.ones(seen.sum()), True
        )
        W = np.linalg.solve(A.T @ A + 3 * np.eye(A.shape[1]), A.T @ (B - A @ S))
        np.testing.assert_allclose(model.own_coef_[..., *j].ravel(), S[:, 0], atol=1e-9)
        np.testing.assert_allclose(model.coef_[..., *j].ravel(), (S + W)[:, 0], atol=1e-6)


def test_own_inputs_have_the_penalty_of_their_block():
    X, Y = problem()
    alpha = {"1": 1.0, "2": 16.0}
    dx, dy = labelled(X, Y)
    found = RLS(alpha, blocks="lag", own="auto", own_alpha=2.0).fit(dx, dy)
    root = np.sqrt(4.0 / np.array([1.0, 16.0]))[None, :, None, None]  # of the geometric mean
    plain = RLS(4.0, own=BOTH, own_alpha=2.0).fit(X * root, Y)
    np.testing.assert_allclose(found.predict(dx), plain.predict(X * root), atol=1e-10)


# ---------------------------------------------------------------- searches


@pytest.mark.parametrize("search", SEARCHES, ids=str)
@pytest.mark.parametrize("n", [60, 20], ids=["tall", "wide"])
@pytest.mark.parametrize("blocks", [None, np.repeat([0, 1], 12)], ids=["plain", "blocks"])
def test_the_folds_choose_own_inputs_where_they_help(search, n, blocks):
    X, Y = problem(n, noise=0.5)
    model = clone(search).set_params(own=BOTH, input_rank=None, selection="min", cv=4)
    model.set_params(blocks=blocks).fit(X, Y)
    best, results = model.best_estimator_, model.cv_results_
    assert best.own == BOTH
    assert results["own"][0] == ()
    again = clone(best).fit(X, Y)
    np.testing.assert_allclose(model.predict(X), again.predict(X), atol=1e-8)
    np.testing.assert_allclose(model.own_coef_, again.own_coef_, atol=1e-8)
    new, truth = problem(500, noise=0.0)
    without = clone(model).set_params(own=None).fit(X, Y)
    errors = [np.square(m.predict(new) - truth).mean() for m in (model, without)]
    assert errors[0] < (1.05 if isinstance(search, RLSCV) else 0.9) * errors[1]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_held_out_errors_are_those_of_fits_to_the_folds(search):
    X, Y = problem(40)
    splits = list(KFold(3).split(X))
    how = {"own": BOTH, "input_rank": None, "selection": "min", "cv": splits}
    model = clone(search).set_params(**how, alphas=[5.0]).fit(X, Y)
    results = model.cv_results_
    place = len(results["own"]) - 1
    own_alpha = results["own_alphas"][place]
    surface = results["mean_mse"][place, 0]
    rank = tuple(min(2, size) for size in surface.shape)
    kind = list(results["own"][place])
    errors = []
    for train, test in splits:
        if not rank:
            fit = RLS(5.0, own=kind, own_alpha=own_alpha)
        elif len(rank) == 1:
            fit = LRR(2, 5.0, own=kind, own_alpha=own_alpha)
        else:
            fit = HOLRR(rank, 5.0, own=kind, own_alpha=own_alpha)
        errors.append(np.square(Y[test] - fit.fit(X[train], Y[train]).predict(X[test])).mean())
    assert surface[tuple(R - 1 for R in rank)] == pytest.approx(np.mean(errors), rel=1e-8)


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_own_inputs_that_do_not_help_are_not_used(search):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, LAGS, PLACES, VARIABLES))
    W = rng.normal(size=(24, 1)) @ rng.normal(size=(1, 12))
    Y = (X.reshape(60, -1) @ W).reshape(60, 4, 3) + rng.normal(size=(60, 4, 3))
    model = clone(search).set_params(own=BOTH, input_rank=None).fit(X, Y)
    plain = clone(search).set_params(input_rank=None).fit(X, Y)
    new = rng.normal(size=(500, *X.shape[1:]))
    truth = (new.reshape(500, -1) @ W).reshape(500, 4, 3)
    errors = [1 + np.square(m.predict(new) - truth).mean() for m in (model, plain)]
    assert errors[0] < 1.03 * errors[1]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_searches_of_moments_disk_and_dask_agree(search, tmp_path):
    da = pytest.importorskip("dask.array")
    X, Y = problem()
    search = clone(search).set_params(own=BOTH, cv=KFold(3), selection="min", input_rank=None)
    model = search.fit(X, Y)
    wanted, noise = model.predict(X), model.noise_
    flat = clone(search).set_params(input_shape=X.shape[1:])
    parts = [Moments.from_arrays(X[t].reshape(len(t), -1), Y[t]) for _, t in KFold(3).split(X)]
    found = {"moments": flat.fit_fold_moments(parts).predict(X.reshape(60, -1))}
    np.testing.assert_allclose(flat.noise_, noise, rtol=0.1)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "Y.npy", Y)
    on_disk = (np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XY")
    found["disk"] = search.fit(*on_disk).predict(X)
    chunks = da.from_array(X, chunks=(17, -1, -1, -1)), da.from_array(Y, chunks=(17, -1, -1))
    found["dask"] = search.fit(*chunks).predict(X)
    for name, values in found.items():
        np.testing.assert_allclose(values, wanted, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_searches_do_not_depend_on_units(search, missing):
    X, Y = problem(50)
    if missing:
        Y[np.random.default_rng(1).random(Y.shape) < 0.1] = np.nan
    how = {"own": BOTH, "input_rank": None, "blocks": np.repeat([0, 1], 12), "cv": 3}
    how |= {"missing": "ignore" if missing else "raise", "output_weight": [np.arange(1.0, 5), None]}
    if not isinstance(search, RLSCV):
        how["max_rank"] = 2
    plain = clone(search).set_params(**how).fit(X, Y)
    for unit in (2.0**300,) if missing else (2.0**-300, 2.0**300):
        scaled = clone(search).set_params(**how).fit(X * unit, Y / unit)
        np.testing.assert_allclose(scaled.predict(X * unit) * unit, plain.predict(X), rtol=1e-4)
        one, other = (m.cv_results_["unweighted_mse"] for m in (scaled, plain))
        assert one * unit**2 == pytest.approx(other, rel=1e-6)
        assert scaled.best_estimator_.own_alpha / unit**2 == pytest.approx(
            plain.best_estimator_.own_alpha, rel=1e-6
        )


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_missing_outputs_blocks_intervals_and_files(search, tmp_path):
    X, Y = problem(80)
    how = {"own": BOTH, "input_rank": None, "blocks": np.repeat([0, 1], 12), "cv": 3}
    model = clone(search).set_params(**how).fit(X, Y)
    new, truth = problem(2000, seed=0)
    low, high = model.predict_interval(new[80:], coverage=0.9)
    assert 0.85 < ((low <= truth[80:]) & (truth[80:] <= high)).mean() < 0.95
    save(model, tmp_path / "model.holrr")
    same = load(tmp_path / "model.holrr")
    np.testing.assert_array_equal(same.predict_interval(X), model.predict_interval(X))
    Y[np.random.default_rng(1).random(Y.shape) < 0.1] = np.nan
    some = clone(search).set_params(**how, missing="ignore").fit(X, Y)
    assert np.corrcoef(some.predict(X).ravel(), model.predict(X).ravel())[0, 1] > 0.95


@pytest.mark.parametrize(
    "model",
    [
        HOLRR((2, 2, 2), 3.0, own="auto"),
        HOLRRCV(own="auto", cv=3, blocks="lag"),
        HOLRRCV(own="auto", cv=KFold(3), blocks="lag"),
    ],
    ids=["single", "search of sums", "search of samples"],
)
def test_standard_errors_and_names_include_own_inputs(model):
    dx, dy = labelled(*problem(40))
    model = model.set_params(input_rank=None).fit(dx, dy)
    found = standard_errors(
        model, dx, dy, groups=np.arange(40) // 5, stability=isinstance(model, HOLRRCV)
    )
    np.testing.assert_allclose(found.coef.value.reshape(model.coef_.shape), model.coef_, atol=1e-8)
    assert (found.coef.std_error > 0).all()
    np.testing.assert_allclose(model.to_dataset()["coef"].to_numpy(), model.coef_)
    n_parameters = model.tucker_.n_parameters + np.count_nonzero(model.own_coef_)
    assert model.n_parameters_ == min(n_parameters, model.coef_.size)
    if isinstance(model, HOLRR):
        assert model.n_parameters_ < model.coef_.size


# ---------------------------------------------------------------- noise and errors


@pytest.mark.parametrize("model", [RLS(20.0), HOLRR((1, 3, 3), 20.0)], ids=str)
def test_the_noise_is_near_its_true_size(model):
    levels = []
    for seed in range(10):
        X, Y = problem(120, seed=seed)
        levels.append(clone(model).set_params(own=BOTH).fit(X, Y).noise_.mean())
    assert 0.93 < np.mean(levels) < 1.07


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("height", "'height' is not a mode of X"),
        (["place", "lag"], "'lag' is not a mode of y"),
        ([(0, 0)], "axis 0 of a sample of X has 2 entries"),
        ([(3, 0)], "pairs"),
        (np.zeros((24, 12), bool), "False everywhere"),
        (np.ones((24, 11), bool), r"shape \(24, 12\)"),
        ([1, 2], "own must be"),
    ],
)
@pytest.mark.parametrize("estimator", [HOLRR, HOLRRCV])
def test_own_inputs_that_cannot_be_are_named(estimator, own, message):
    with pytest.raises(ValueError, match=message):
        estimator(own=own).fit(*labelled(*problem(20)))


def test_coordinates_that_differ_are_named():
    dx, dy = labelled(*problem(20))
    other = dy.assign_coords(place=list("abce"))
    with pytest.raises(ValueError, match="different coordinates along this mode: at position 3"):
        RLS(own="place").fit(dx, other)
    RLS(own="auto").fit(dx, other)  # which finds the variables
    apart = other.assign_coords(variable=["x", "y", "z"])
    with pytest.raises(ValueError, match="same names and coordinates"):
        RLS(own="auto").fit(dx, apart)
    moved = dy.isel(place=[1, 0, 2, 3])  # paired by labels, not by position
    one, two = (RLS(own="auto").fit(dx, y).predict(dx) for y in (dy, moved))
    np.testing.assert_allclose(one.sel(place=two.place), two, atol=1e-11)


def test_labels_of_any_type_are_paired():
    X, Y = problem(20)
    days = np.array(["2000-01-01", "2001-01-01", "2002-01-01", "2003-01-01"], dtype="datetime64[s]")
    wanted = RLS(own=[(1, 0)]).fit(X, Y).predict(X)
    dims = ("time", "lag", "day", "variable")
    for of_x, of_y in ((days, days.astype("datetime64[ns]")), (np.arange(4), np.arange(4.0))):
        dx = xr.DataArray(X, dims=dims, coords={"day": of_x})
        dy = xr.DataArray(Y, dims=(dims[0], *dims[2:]), coords={"day": of_y})
        np.testing.assert_allclose(RLS(own="day").fit(dx, dy).predict(dx), wanted, atol=1e-12)
    twice = dx.assign_coords(day=[0, 0, 1, 2]), dy.assign_coords(day=[0, 0, 1, 2])
    with pytest.raises(ValueError, match="X has two entries"):
        RLS(own="day").fit(*twice)


def test_one_pair_and_arrays_of_pairs_and_labelled_masks():
    X, Y = problem(20)
    wanted = RLS(own=[(1, 0)]).fit(X, Y).predict(X)
    for own in ((1, 0), np.array([(1, 0)])):
        np.testing.assert_array_equal(RLS(own=own).fit(X, Y).predict(X), wanted)
    with pytest.raises(TypeError, match=r"own\.to_numpy"):
        RLS(own=pd.DataFrame(owned_by(("place",)))).fit(X, Y)


def test_own_inputs_with_equal_penalties_stay_a_candidate_beside_blocks():
    X, Y = problem(40)
    how = {"own": BOTH, "input_rank": None, "cv": 4}
    plain = RLSCV(**how).fit(X, Y)
    blocks = RLSCV(**how, blocks=np.arange(24)).fit(X, Y)
    assert blocks.best_score_ >= plain.best_score_ - 1e-12


def test_errors_name_the_cases_that_do_not_support_own_inputs():
    X, Y = problem(20)
    with pytest.raises(ValueError, match="subspaces='response'"):
        HOLRR(2, subspaces="response", own=BOTH).fit(X, Y)
    # Moments that hold more than is needed do no harm.
    more = Moments.from_arrays(X.reshape(20, -1), Y, response_grams=True)
    how = {"rank": 2, "own": BOTH, "input_shape": X.shape[1:]}
    np.testing.assert_allclose(
        HOLRR(**how).fit_moments(more).coef_, HOLRR(**how).fit(X, Y).coef_, atol=1e-9
    )
    with pytest.raises(ValueError, match="alpha=0 for a block"):
        RLS({"0": 0.0, "1": 1.0}, blocks=np.repeat([0, 1], 12), own=BOTH).fit(X, Y)
    Y[:, 0] = np.nan
    with pytest.raises(ValueError, match="never observed"):
        HOLRRCV(own=BOTH, missing="ignore").fit(X, Y)
    single = HOLRR(2, own=BOTH, missing="ignore").fit(X, Y)
    assert np.isnan(single.predict(X)[:, 0]).all()
    assert np.isfinite(single.predict(X)[:, 1:]).all()
