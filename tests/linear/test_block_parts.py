"""Predictions and scores split by blocks of inputs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import NotFittedError

from holrr import HOLRR, HOLRRCV, LRR, LRRCV, RLS, RLSCV, KernelRLS, Moments
from holrr.metrics import r2
from holrr.streaming import memory_budget
from problems import on_disk, toy, with_missing

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

D0, SHAPE = 12, (3, 4)
BLOCKS = {"near": [0, 1, 2, 7], "far": [4, 3, 5], "calendar": [6, 8, 9, 10, 11]}
OWN = np.random.default_rng(5).uniform(size=(D0, 12)) < 0.25
PENALTIES = {"near": 0.5, "far": 20.0, "calendar": 3.0}

SINGLE = {
    "RLS": RLS,
    "LRR": lambda **kw: LRR(2, **kw),
    "HOLRR": lambda **kw: HOLRR((3, 2, 2), **kw),
}
SEARCHES = {
    "RLSCV": lambda **kw: RLSCV([0.1, 10.0], cv=3, **kw),
    "LRRCV": lambda **kw: LRRCV([0.1, 10.0], cv=3, **kw),
    "HOLRRCV": lambda **kw: HOLRRCV([0.1, 10.0], cv=3, max_rank=3, **kw),
}
MODELS = SINGLE | SEARCHES
OPTIONS = {
    "plain": {},
    "own": {"own": OWN},
    "no intercept": {"fit_intercept": False},
    "output weights": {"output_weight": [[1.0, 2.0, 3.0], None]},
    "own and output weights": {"own": OWN, "output_weight": [[1.0, 2.0, 3.0], None]},
    "own without intercept": {"own": OWN, "fit_intercept": False},
}
CASES = [
    pytest.param(make, options, id=f"{name}-{kind}")
    for name, make in MODELS.items()
    for kind, options in OPTIONS.items()
]


def data(n=60, seed=0):
    X, Y = toy(n=n, d0=D0, shape=SHAPE, noise=2.0, seed=seed)
    return X * np.linspace(0.5, 1.5, D0), Y


def held_out():
    X, Y = data(n=100)
    return X[60:], Y[60:]


def parts_by_hand(model, X, X_fit, fit_intercept=True):
    """The parts of all blocks from dense coefficients, with the means of the training inputs."""
    mean = X_fit.mean(axis=0) if fit_intercept else np.zeros(X.shape[1])
    coef = np.nan_to_num(model.coef_)
    found = {name: np.tensordot(X[:, j] - mean[j], coef[j], 1) for name, j in model.blocks_.items()}
    constant = model.intercept_ + np.tensordot(mean, coef, 1)
    return found | {"intercept": constant + np.zeros((len(X), *model.intercept_.shape))}


def split_by_hand(parts, Y, w):
    """The parts of R2 of each output, as `score_blocks` defines them."""
    mean = np.average(Y, axis=0, weights=w)
    w = np.ones(len(Y)) if w is None else w
    D = 2 * (Y - mean) - (sum(parts.values()) - mean)
    scatter = np.tensordot(w, (Y - mean) ** 2, 1)
    about = {name: P - mean if name == "intercept" else P for name, P in parts.items()}
    return {name: np.tensordot(w, P * D, 1) / scatter for name, P in about.items()}


# ---------------------------------------------------------------- predictions


@pytest.mark.parametrize(("make", "options"), CASES)
def test_parts_are_those_of_centred_inputs_and_add_up(make, options):
    X, Y = data()
    model = make(blocks=BLOCKS, **options).fit(X, Y)
    new, _ = held_out()
    parts, predicted = model.predict_blocks(new), model.predict(new)
    assert list(parts) == [*BLOCKS, "intercept"]
    assert_allclose(sum(parts.values()), predicted, rtol=0, atol=1e-12 * np.abs(predicted).max())
    intercept = options.get("fit_intercept", True)
    for name, expected in parts_by_hand(model, new, X, intercept).items():
        assert parts[name].shape == predicted.shape
        assert_allclose(parts[name], expected, rtol=1e-9, atol=1e-9)
    constant = Y.mean(axis=0) if intercept else np.zeros(SHAPE)
    assert_allclose(parts["intercept"], np.broadcast_to(constant, predicted.shape), atol=1e-10)


@pytest.mark.parametrize("make", SINGLE.values(), ids=SINGLE)
@pytest.mark.parametrize("own", [None, OWN], ids=["shared", "own"])
def test_penalties_of_blocks_and_blocks_that_are_left_out(make, own):
    X, Y = data()
    new, _ = held_out()
    model = make(alpha=PENALTIES | {"far": np.inf}, blocks=BLOCKS, own=own).fit(X, Y)
    parts = model.predict_blocks(new)
    assert_array_equal(parts["far"], np.zeros((len(new), *SHAPE)))
    assert np.abs(parts["near"]).max() > 0.1
    assert_allclose(sum(parts.values()), model.predict(new), rtol=1e-12, atol=1e-12)
    assert_allclose(parts["intercept"][0], Y.mean(axis=0))


REDUCED = {name: (make, {}) for name, make in MODELS.items()}
REDUCED["refined"] = (SINGLE["HOLRR"], {"refine": True})


@pytest.mark.parametrize(("make", "options"), REDUCED.values(), ids=REDUCED)
def test_inputs_with_modes_and_lowered_ranks(make, options):
    X, Y = data()
    new, _ = held_out()
    blocks = {str(k): slice(k, None, 3) for k in range(3)}
    model = make(blocks=blocks, input_rank=(2, 2), **options).fit(X.reshape(-1, 4, 3), Y)
    parts = model.predict_blocks(new.reshape(-1, 4, 3))
    assert list(parts) == ["0", "1", "2", "intercept"]
    predicted = model.predict(new.reshape(-1, 4, 3))
    assert_allclose(sum(parts.values()), predicted, rtol=1e-12, atol=1e-12)
    coef = model.coef_
    for k in range(3):
        centred = (new - X.mean(axis=0)).reshape(-1, 4, 3)[:, :, k]
        assert_allclose(parts[str(k)], np.tensordot(centred, coef[:, k], 1), atol=1e-10)
    assert_allclose(parts["intercept"][0], Y.mean(axis=0))


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_units_of_the_data_do_not_matter(make, scale):
    X, Y = data()
    new, y = held_out()
    plain = make(blocks=BLOCKS, own=OWN)
    scaled = make(blocks=BLOCKS, own=OWN)
    if hasattr(plain, "alpha"):
        plain.alpha, scaled.alpha = 0.0, 0.0
    else:
        plain.alphas, scaled.alphas = [1.0], [scale**2]
    plain.own_alpha = scaled.own_alpha = 0.0
    plain.fit(X, Y)
    scaled.fit(scale * X, Y)
    expected, found = plain.predict_blocks(new), scaled.predict_blocks(scale * new)
    for name, part in expected.items():
        assert_allclose(found[name], part, rtol=1e-6, atol=1e-6)
    assert_allclose(
        [*scaled.score_blocks(scale * new, y).values()], [*plain.score_blocks(new, y).values()]
    )
    wide = plain.score_blocks(new, y, average=None)
    plain.fit(X, scale * Y)
    for name, part in plain.score_blocks(new, scale * y, average=None).items():
        assert_allclose(part, wide[name], rtol=1e-6, atol=1e-9)


def test_samples_without_weight_or_outputs_do_not_move_the_means():
    X, Y = data()
    w = np.arange(60) % 3.0
    Y[4] = np.nan
    seen = (w > 0) & (np.arange(60) != 4)
    for options in ({}, {"own": OWN}):
        model = RLS(blocks=BLOCKS, missing="ignore", **options).fit(X, Y, w)
        mean = np.average(X[seen], axis=0, weights=w[seen])
        expected = model.predict(mean[None])[0]
        assert_allclose(model.predict_blocks(X[:1])["intercept"][0], expected)
        expected = np.average(Y[seen], axis=0, weights=w[seen])
        assert_allclose(model.predict_blocks(X[:1])["intercept"][0], expected)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_scalar_and_flat_outputs(make):
    X, Y = data()
    new, y = held_out()
    if make is not SINGLE["HOLRR"]:
        model = make(blocks=BLOCKS).fit(X, Y[:, 0, 0])
        parts = model.predict_blocks(new)
        assert parts["near"].shape == (40,)
        assert_allclose(sum(parts.values()), model.predict(new))
        for average in ("pooled", None):
            found = model.score_blocks(new, y[:, 0, 0], average=average)
            assert_allclose(sum(found.values()), model.score(new, y[:, 0, 0]))
    shaped = make(blocks=BLOCKS).fit(X, Y)
    flat = make(blocks=BLOCKS, output_shape=SHAPE).fit(X, Y.reshape(60, -1))
    for name, part in shaped.predict_blocks(new).items():
        assert_allclose(flat.predict_blocks(new)[name], part.reshape(40, -1))
    expected = shaped.score_blocks(new, y, average=None)
    found = flat.score_blocks(new, y.reshape(40, -1), average=None)
    for name, part in expected.items():
        assert_allclose(found[name], part.ravel())


def test_batches_moments_and_folds_of_moments_give_the_same_parts():
    X, Y = data()
    new, _ = held_out()
    model = HOLRR((3, 2, 2), alpha=PENALTIES, blocks=BLOCKS, own=OWN)
    expected = model.fit(X, Y).predict_blocks(new)
    model.fit_moments(Moments.from_arrays(X, Y))
    for name, part in model.predict_blocks(new).items():
        assert_allclose(part, expected[name], atol=1e-9)
    model = HOLRR((3, 2, 2), alpha=PENALTIES, blocks=BLOCKS, own=OWN)
    model.partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])
    for name, part in model.predict_blocks(new).items():
        assert_allclose(part, expected[name], atol=1e-9)
    folds = [Moments.from_arrays(X[k::3], Y[k::3]) for k in range(3)]
    search = SEARCHES["RLSCV"](blocks=BLOCKS).fit_fold_moments(folds)
    parts = search.predict_blocks(new)
    assert_allclose(sum(parts.values()), search.predict(new))
    assert_allclose(parts["intercept"][0], Y.mean(axis=0))


# ---------------------------------------------------------------- scores


@pytest.mark.parametrize(("make", "options"), CASES)
def test_parts_of_r2_add_up_to_the_score(make, options):
    X, Y = data()
    new, y = held_out()
    model = make(blocks=BLOCKS, **options).fit(X, Y)
    for w in (None, np.random.default_rng(2).uniform(size=40) * (np.arange(40) % 4 > 0)):
        pooled = model.score_blocks(new, y, w)
        assert list(pooled) == [*BLOCKS, "intercept"]
        assert all(isinstance(part, float) for part in pooled.values())
        assert_allclose(sum(pooled.values()), model.score(new, y, w), rtol=1e-12, atol=1e-12)
        each = model.score_blocks(new, y, w, average=None)
        expected = split_by_hand(model.predict_blocks(new), y, w)
        for name, part in expected.items():
            assert_allclose(each[name], part, rtol=1e-9, atol=1e-12)
        scores = {"sample_weight": w, "output_weight": options.get("output_weight")}
        total = r2(y, model.predict(new), average=None, sample_weight=w)
        assert_allclose(sum(each.values()), total, rtol=1e-12, atol=1e-12)
        uniform = model.score_blocks(new, y, w, average="uniform")
        total = r2(y, model.predict(new), average="uniform", **scores)
        assert_allclose(sum(uniform.values()), total, rtol=1e-12, atol=1e-12)


def test_the_intercept_has_no_part_where_the_means_agree():
    X, Y = data()
    model = RLS(blocks=BLOCKS).fit(X, Y)
    assert abs(model.score_blocks(X, Y)["intercept"]) < 1e-14
    assert model.score_blocks(X, Y + 9.0)["intercept"] < -0.1


def test_constant_outputs_and_single_samples():
    X, Y = data()
    new, y = held_out()
    Y[:, 0, 1] = 4.0
    model = RLS(blocks=BLOCKS).fit(X, Y)
    y[:, 0, 1] = 4.0
    y[:, 2, 2] = 1e3
    each = model.score_blocks(new, y, average=None)
    assert_allclose(sum(each.values()), r2(y, model.predict(new), average=None), atol=1e-12)
    assert each["intercept"][2, 2] == 0.0
    assert each["near"][2, 2] == 0.0
    pooled = model.score_blocks(new, y)
    assert_allclose(sum(pooled.values()), model.score(new, y), rtol=1e-12)
    with pytest.warns(Warning, match="less than two samples"):
        found = model.score_blocks(new[:1], y[:1])
    assert np.isnan(list(found.values())).all()


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("own", [None, OWN], ids=["shared", "own"])
def test_missing_outputs_are_passed_over(make, own):
    X, Y = data()
    new, y = held_out()
    model = make(blocks=BLOCKS, missing="ignore", own=own).fit(X, with_missing(Y, 0.2))
    parts = model.predict_blocks(new)
    assert_allclose(sum(parts.values()), model.predict(new), rtol=1e-12, atol=1e-12)
    gaps = with_missing(y, 0.3)
    found = model.score_blocks(new, gaps)
    assert_allclose(sum(found.values()), model.score(new, gaps), rtol=1e-12)
    each = model.score_blocks(new, gaps, average=None)
    assert_allclose(sum(each.values()), r2(gaps, model.predict(new), average=None), atol=1e-12)
    some = ~np.isnan(gaps[:, 1, 2])
    alone = {name: part[some, 1, 2] for name, part in parts.items()}
    for name, part in split_by_hand(alone, gaps[some, 1, 2], None).items():
        assert_allclose(each[name][1, 2], part, rtol=1e-9, atol=1e-12)
    model.missing = "raise"
    with pytest.raises(ValueError, match="y contains NaN"):
        model.score_blocks(new, gaps)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_outputs_that_were_never_observed_have_no_parts(make):
    X, Y = data()
    new, y = held_out()
    Y[:, 1, 3] = np.nan
    model = make(blocks=BLOCKS, missing="ignore").fit(X, Y)
    known = np.ones(SHAPE, dtype=bool)
    known[1, 3] = False
    for part in model.predict_blocks(new).values():
        assert_array_equal(np.isnan(part).any(axis=0), ~known)
    predicted = model.predict(new)[:, known]
    found = sum(part[:, known] for part in model.predict_blocks(new).values())
    assert_allclose(found, predicted, rtol=1e-12, atol=1e-12)
    assert_allclose(sum(model.score_blocks(new, y).values()), model.score(new, y), rtol=1e-12)
    for part in model.score_blocks(new, y, average=None).values():
        assert_array_equal(np.isnan(part), ~known)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_inputs_that_are_missing_in_every_sample(make):
    X, Y = data()
    new, y = held_out()
    lacking = [1, 4]
    kept = np.setdiff1d(np.arange(D0), lacking)
    X[:, lacking] = np.nan
    names = np.array([next(k for k, j in BLOCKS.items() if i in j) for i in range(D0)])
    model = make(blocks=BLOCKS, input_shape=(D0,)).fit(X, Y)
    alone = make(blocks=names[kept].tolist()).fit(X[:, kept], Y)
    expected = alone.predict_blocks(new[:, kept])
    for name, part in model.predict_blocks(new).items():
        assert_allclose(part, expected[name], atol=1e-10)
    expected = alone.score_blocks(new[:, kept], y)
    assert_allclose([model.score_blocks(new, y)[k] for k in expected], [*expected.values()])


# ---------------------------------------------------------------- kinds of data


def test_arrays_on_disk_are_scored_in_blocks(tmp_path):
    X, Y = data()
    new, y = held_out()
    gaps = with_missing(y, 0.1)
    model = HOLRR((3, 2, 2), blocks=BLOCKS, missing="ignore").fit(X, Y)
    for outputs in (y, gaps):
        expected = model.score_blocks(new, outputs)
        stored = on_disk(tmp_path, "X", new), on_disk(tmp_path, "Y", outputs)
        with memory_budget(64):
            found = model.score_blocks(*stored)
        assert_allclose([*found.values()], [*expected.values()], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_dask_arrays_are_lazy(make):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = data()
    new, y = held_out()
    X[:, 2], new[:, 2] = np.nan, np.nan
    model = make(blocks=BLOCKS, input_shape=(D0,), own=OWN).fit(X, Y)
    chunked = da.from_array(new, chunks=(15, -1))
    parts, expected = model.predict_blocks(chunked), model.predict_blocks(new)
    assert list(parts) == list(expected)
    for name, part in parts.items():
        assert isinstance(part, da.Array)
        assert part.shape == expected[name].shape
        assert_allclose(part.compute(), expected[name])
    found = model.score_blocks(chunked, da.from_array(y, chunks=(15, -1, -1)))
    assert_allclose([*found.values()], [*model.score_blocks(new, y).values()])
    fitted = make(blocks=BLOCKS).fit(da.from_array(data()[0], chunks=(30, -1)), Y)
    assert_allclose(fitted.predict_blocks(data()[0])["intercept"][0], Y.mean(axis=0))


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_torch_tensors_stay_tensors(make, dtype):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    (X, Y), (new, y) = data(), held_out()
    as_tensor = lambda A: torch.as_tensor(A, dtype=getattr(torch, dtype))  # noqa: E731
    model = make(blocks=BLOCKS, own=OWN).fit(as_tensor(X), as_tensor(Y))
    expected = make(blocks=BLOCKS, own=OWN).fit(X, Y).predict_blocks(new)
    parts = model.predict_blocks(as_tensor(new))
    tol = {"rtol": 1e-9, "atol": 1e-9} if dtype == "float64" else {"rtol": 1e-3, "atol": 1e-3}
    for name, part in parts.items():
        assert isinstance(part, torch.Tensor)
        assert part.dtype == getattr(torch, dtype)
        assert_allclose(part.numpy(), expected[name], **tol)
    predicted = model.predict(as_tensor(new)).numpy()
    exact = 1e-12 if dtype == "float64" else 1e-5
    total = sum(parts.values()).numpy()
    assert_allclose(total, predicted, rtol=0, atol=exact * np.abs(predicted).max())
    found = model.score_blocks(as_tensor(new), as_tensor(y))
    assert_allclose(sum(found.values()), model.score(as_tensor(new), as_tensor(y)), rtol=1e-5)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_arrays_stay_on_their_device(make):
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    device = xp.Device("device1")
    (X, Y), (new, y) = data(), held_out()
    X, Y, there = (xp.asarray(A, device=device) for A in (X, Y, new))
    model = make(blocks=BLOCKS, own=OWN).fit(X, Y)
    parts = model.predict_blocks(there)
    assert {part.device for part in parts.values()} == {device}
    rest = model.predict(there)
    for part in parts.values():
        rest = rest - part
    assert float(xp.max(xp.abs(rest))) < 1e-12
    found = model.score_blocks(there, xp.asarray(y, device=device))
    assert_allclose(sum(found.values()), model.score(there, xp.asarray(y, device=device)))


def labelled_pair(xr, X, Y):
    time = np.datetime64("2001-01-01") + np.arange(len(X))
    x = xr.DataArray(
        X.reshape(-1, 3, 4),
        {"time": time, "lag": [1, 2, 3], "station": list("abcd")},
        dims=("time", "lag", "station"),
    )
    coords = {"time": time, "season": [1, 2, 3], "station": list("abcd")}
    return x, xr.DataArray(Y, coords, dims=("time", "season", "station"), name="rain")


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_xarray_objects_get_a_dimension_for_the_blocks(make):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    (X, Y), (new, y) = data(), held_out()
    x, outputs = labelled_pair(xr, X, Y)
    x_new, y_new = labelled_pair(xr, new, y)
    model = make(blocks="lag", own="station", input_rank=None).fit(x, outputs)
    parts = model.predict_blocks(x_new)
    assert parts.dims == ("block", "time", "season", "station")
    assert parts.block.values.tolist() == ["1", "2", "3", "intercept"]
    assert parts.name == "rain"
    xr.testing.assert_allclose(parts.sum("block"), model.predict(x_new))
    assert_array_equal(parts.time, x_new.time)
    lags = {str(k + 1): np.arange(4 * k, 4 * k + 4) for k in range(3)}
    same = np.tile(np.eye(4, dtype=bool), (3, 1))  # inputs by stations
    own = np.repeat(same[:, None, :], 3, axis=1).reshape(12, 12)
    plain = make(blocks=lags, own=own).fit(X, Y)
    for name, part in plain.predict_blocks(new).items():
        assert_allclose(parts.sel(block=name), part, atol=1e-9)
    each = model.score_blocks(x_new, y_new, average=None)
    assert each.dims == ("block", "season", "station")
    assert each.name == "r2"
    for name, part in plain.score_blocks(new, y, average=None).items():
        assert_allclose(each.sel(block=name), part, atol=1e-9)
    pooled = model.score_blocks(x_new, y_new)
    assert list(pooled) == ["1", "2", "3", "intercept"]
    assert_allclose(sum(pooled.values()), model.score(x_new, y_new))


def test_datasets_in_and_out_and_a_dimension_called_block():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    (X, Y), (new, y) = data(), held_out()
    x, outputs = labelled_pair(xr, X, Y)
    x_new, y_new = labelled_pair(xr, new, y)
    split = lambda A: xr.Dataset({"soil": A[:, 0], "air": A[:, 1:].rename(lag="height")})  # noqa: E731
    model = RLS(blocks="auto").fit(split(x), outputs.to_dataset("season"))
    parts = model.predict_blocks(split(x_new))
    assert isinstance(parts, xr.Dataset)
    assert parts[2].dims == ("block", "time", "station")
    assert parts.block.values.tolist() == ["soil", "air", "intercept"]
    xr.testing.assert_allclose(parts.sum("block"), model.predict(split(x_new)))
    each = model.score_blocks(split(x_new), y_new.to_dataset("season"), average=None)
    assert each[2].dims == ("block", "station")
    renamed = RLS(blocks="auto").fit(split(x), outputs.rename(station="block"))
    assert renamed.predict_blocks(split(x_new)).dims == ("block_", "time", "season", "block")


def test_tables_give_tables():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    (X, Y), (new, y) = data(), held_out()
    columns = [f"{block}__{j}" for block, js in BLOCKS.items() for j in js]
    order = [j for js in BLOCKS.values() for j in js]
    frame = lambda A: pd.DataFrame(A[:, order], columns=columns)  # noqa: E731
    table = lambda A: pd.DataFrame(A.reshape(len(A), -1), columns=list("abcdefghijkl"))  # noqa: E731
    model = RLS(blocks="prefix").fit(frame(X), table(Y))
    parts = model.predict_blocks(frame(new).set_index(np.arange(100, 140)))
    expected = RLS(blocks=BLOCKS).fit(X, Y)
    for name, part in expected.predict_blocks(new).items():
        assert isinstance(parts[name], pd.DataFrame)
        assert parts[name].columns.tolist() == list("abcdefghijkl")
        assert parts[name].index[0] == 100
        assert_allclose(parts[name], part.reshape(40, -1), atol=1e-10)
    each = model.score_blocks(frame(new), table(y), average=None)
    assert isinstance(each["far"], pd.Series)
    assert_allclose(each["far"], expected.score_blocks(new, y, average=None)["far"].ravel())


# ---------------------------------------------------------------- files and refusals


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_files_keep_what_parts_need(make, tmp_path):
    from holrr import load

    (X, Y), (new, y) = data(), held_out()
    model = make(blocks=BLOCKS).fit(X, Y)
    model.save(tmp_path / "model.holrr")
    found = load(tmp_path / "model.holrr")
    for name, part in model.predict_blocks(new).items():
        assert_array_equal(found.predict_blocks(new)[name], part)
    assert found.score_blocks(new, y) == model.score_blocks(new, y)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_models_without_blocks_say_what_is_needed(make):
    X, Y = data()
    with pytest.raises(NotFittedError):
        make(blocks=BLOCKS).predict_blocks(X)
    model = make().fit(X, Y)
    with pytest.raises(ValueError, match=r"predict_blocks needs blocks.*parameter blocks"):
        model.predict_blocks(X)
    with pytest.raises(ValueError, match=r"score_blocks needs blocks.*fit again"):
        model.score_blocks(X, Y)
    model.set_params(blocks=BLOCKS).fit(X, Y).predict_blocks(X)
    model.set_params(blocks=None).fit(X, Y)
    with pytest.raises(ValueError, match="was fitted without"):
        model.predict_blocks(X)


def test_bad_arguments_are_refused():
    X, Y = data()
    with pytest.raises(ValueError, match=r"'intercept' is not allowed.*rename the block"):
        RLS(blocks={"intercept": [0], "rest": np.arange(1, D0)}).fit(X, Y)
    model = RLS(blocks=BLOCKS).fit(X, Y)
    with pytest.raises(ValueError, match=r"average must be one of .*average='mean'"):
        model.score_blocks(X, Y, average="mean")
    with pytest.raises(ValueError, match="features"):
        model.predict_blocks(X[:, :-1])
    with pytest.raises(ValueError, match="y must have shape"):
        model.score_blocks(X, Y[:, :2])
    assert not hasattr(KernelRLS(), "predict_blocks")
