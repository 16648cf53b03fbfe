"""Options of `holrr fit` that become parameters: weights, blocks, own inputs, input ranks."""

import numpy as np
import pytest

import holrr
from commands import fails
from holrr import HOLRR, HOLRRCV, LRR, RLS, RLSCV
from holrr.cli import main

pd = pytest.importorskip("pandas", reason="pandas is not installed")

N = 50
FIT = ["--model", "rls", "--alpha", "1", "-o", "m"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6))
    Y = rng.normal(size=(N, 2, 3)) + X[:, :1, None]
    np.save("X.npy", X)
    np.save("Y.npy", Y)
    names = ["ph", "temp", "1100", "1200", "1300", "1400"]
    table = pd.DataFrame(X, columns=names).assign(fat=Y[:, 0, 0], water=Y[:, 0, 1])
    table.to_csv("runs.csv", index_label="run")
    return tmp_path


def table():
    return pd.read_csv("runs.csv", index_col="run")


RUNS = ["runs.csv", "--index-col", "run", "--outputs", "fat,water"]
INPUTS = ["ph", "temp", "1100", "1200", "1300", "1400"]


# ---------------------------------------------------------------- weights of outputs


def test_numbers_and_files_are_weights_of_outputs(folder):
    X, Y = np.load("X.npy"), np.load("Y.npy")
    weight = np.outer([1.0, 4.0], [0.5, 1.0, 2.0])
    np.save("w.npy", weight)
    np.savetxt("w.csv", weight.ravel()[None], delimiter=",")
    expected = HOLRR(2, 1.0, output_weight=weight).fit(X, Y)
    for source in ("w.npy", "w.csv", ",".join(map(str, weight.ravel()))):
        words = ["--rank", "2", "--output-weight", source, "-o", "m"]
        assert main(["fit", "X.npy", "Y.npy", *words]) == 0
        model = holrr.load("m")
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
        np.testing.assert_array_equal(model.output_weight, weight)
    np.savetxt("flat.csv", Y.reshape(N, -1), delimiter=",")
    words = ["--rank", "2", "--output-weight", "w.csv", "--output-shape", "2,3", "-o", "m"]
    assert main(["fit", "X.npy", "flat.csv", *words]) == 0
    np.testing.assert_array_equal(holrr.load("m").output_weight, weight)


def test_weights_of_a_table_are_found_by_the_names_of_the_outputs(folder, capfd):
    pd.DataFrame({"water": [3.0], "ash": [9.0], "fat": [1.0]}).to_csv("w.csv", index=False)
    assert main(["fit", *RUNS, "--output-weight", "w.csv", *FIT]) == 0
    assert holrr.load("m").output_weight.tolist() == [1.0, 3.0]
    assert "weights" in capfd.readouterr().out
    pd.DataFrame({"fat": [1.0]}).to_csv("w.csv", index=False)
    told = fails(capfd, 3, "fit", *RUNS, "--output-weight", "w.csv", *FIT)
    assert "w.csv has no weights for water; its columns are fat" in told


def test_weights_of_outputs_with_two_header_lines_are_in_the_order_of_the_columns(folder):
    columns = pd.MultiIndex.from_tuples([("n", "b"), ("s", "a"), ("n", "a"), ("s", "b")])
    Y = np.load("Y.npy").reshape(N, -1)[:, :4]
    outputs = pd.DataFrame(Y, columns=columns)
    outputs.to_csv("y.csv", index=False)
    words = ["X.npy", "y.csv", "--header", "0,2", "--rank", "2", "--alpha", "1", "-o", "m"]
    assert main(["fit", *words, "--output-weight", "3,10,5,6"]) == 0
    # The modes are n, s and b, a, in the order in which they appear.
    assert holrr.load("m").output_weight.tolist() == [[3.0, 5.0], [6.0, 10.0]]


def test_the_cosine_of_a_latitude_is_a_weight(folder, capfd):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    data = xr.Dataset(
        {"x": (("time", "k"), np.load("X.npy")), "y": (("time", "lat", "lon"), np.load("Y.npy"))},
        {"lat": [0.0, 60.0], "time": np.arange(N)},
    )
    data["area"] = np.cos(np.deg2rad(data.lat))
    data.to_netcdf("c.nc", engine="h5netcdf")
    expected = HOLRR(2, 1.0, output_weight=data.area).fit(data.x, data.y)
    for weight in ("cos:lat", "c.nc:area"):
        words = ["--rank", "2", "--output-weight", weight, "-o", "m"]
        assert main(["fit", "c.nc:x", "c.nc:y", *words]) == 0
        np.testing.assert_allclose(holrr.load("m").coef_, expected.coef_, rtol=1e-12)
    capfd.readouterr()
    assert main(["score", "m", "c.nc:x", "c.nc:y"]) == 0
    assert f"{expected.score(data.x, data.y):.6g}" in capfd.readouterr().out
    told = fails(capfd, 3, "fit", "c.nc:x", "c.nc:y", "--output-weight", "cos:height", *FIT)
    assert "Y has no dimension 'height'; its dimensions are time, lat, lon" in told


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--output-weight", "1,2"], 3, "has 2 weights, and Y has outputs of shape (2, 3)"),
        (["--output-weight", "none.npy"], 3, "is neither a list of numbers, cos:DIM, nor a file"),
        (["--output-weight", "cos:lat"], 3, "Y has no dimension 'lat'; the dimensions of arrays"),
        (
            ["--model", "kernel-rls", "--output-weight", "1,2"],
            2,
            "kernel-rls does not support this option",
        ),
    ],
)
def test_weights_that_cannot_be_are_refused(folder, capfd, words, code, told):
    fit = ["fit", "X.npy", "Y.npy", "--alpha", "1", "-o", "m", *words]
    assert told in fails(capfd, code, *fit)


# ---------------------------------------------------------------- blocks


@pytest.mark.parametrize(
    "words",
    [
        ["--blocks", "nir=1100:1400;process=ph,temp"],
        ["--blocks", "nir=1100:1400", "--blocks", "process=ph,temp"],
        ["--blocks", "nir=1*;process=*"],
        ["--blocks", "nir=*", "--blocks", "process=ph:temp"],
    ],
)
def test_blocks_are_columns_by_name(folder, words):
    assert main(["fit", *RUNS, *words, "-o", "m", "--model", "rls"]) == 0
    model, t = holrr.load("m"), table()
    blocks = {"nir": ["1100", "1200", "1300", "1400"], "process": ["ph", "temp"]}
    expected = RLSCV(blocks=blocks).fit(t[INPUTS], t[["fat", "water"]])
    assert model.block_alphas_ == pytest.approx(expected.block_alphas_)
    assert {name: set(v) for name, v in model.blocks.items()} == {
        name: set(v) for name, v in blocks.items()
    }


def test_blocks_of_arrays_are_positions_and_penalties_can_be_given(folder, capfd):
    words = ["--blocks", "a=0:2;b=*", "--alpha", "a=10,b=inf", "-o", "m", "--model", "rls"]
    assert main(["fit", "X.npy", "Y.npy", *words]) == 0
    model = holrr.load("m")
    expected = RLS({"a": 10.0, "b": np.inf}, blocks={"a": [0, 1, 2], "b": [3, 4, 5]})
    expected.fit(np.load("X.npy"), np.load("Y.npy"))
    np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-12)
    capfd.readouterr()
    assert main(["info", "m"]) == 0
    said = capfd.readouterr().out
    assert "  a          3, alpha 10\n  b          3, left out\n" in said


def test_blocks_refer_to_the_columns_after_preprocessing(folder):
    words = ["--inputs", "1*", "--range", "1100:1300", "--blocks", "low=:1150;high=*"]
    assert main(["fit", *RUNS, *words, *FIT]) == 0
    blocks = holrr.load("m")[-1].blocks
    assert blocks == {"low": ["1100"], "high": ["1200", "1300"]}


def test_blocks_of_labelled_variables(folder, capfd):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    X, Y = np.load("X.npy"), np.load("Y.npy")
    data = xr.Dataset(
        {
            "field": (("time", "lag", "k"), X.reshape(N, 2, 3)),
            "index": ("time", Y[:, 1, 1]),
            "y": (("time", "a", "b"), Y),
        },
        {"lag": [1, 2], "time": np.arange(N)},
    )
    data.to_netcdf("c.nc", engine="h5netcdf")
    for blocks, known in (
        ("auto", ["field", "index"]),
        ("first=field;second=index", ["first", "second"]),
        ("lag", ["1", "2", "index"]),
    ):
        assert main(["fit", "c.nc:field,index", "c.nc:y", "--blocks", blocks, *FIT]) == 0
        assert sorted(holrr.load("m").blocks_) == sorted(known)
    told = fails(capfd, 3, "fit", "c.nc:field,index", "c.nc:y", "--blocks", "depth", *FIT)
    assert "blocks='depth' is not a mode of X" in told
    line = xr.DataArray(X, {"name": list("abcdef")}, ("time", "name")).to_dataset(name="x")
    line.to_netcdf("x.nc", engine="h5netcdf")
    assert main(["fit", "x.nc:x", "Y.npy", "--blocks", "u=a:c;v=*", *FIT]) == 0
    assert holrr.load("m").blocks_["u"].tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--blocks", "a=0:1"], 3, "these columns of X are in no block"),
        (["--blocks", "a=0:3;b=3:5"], 3, "is in two blocks, 'a' and 'b'"),
        (["--blocks", "a=0:3;a=4:5"], 2, "names the block 'a' twice"),
        (["--blocks", "a=*;b=*"], 2, "got a=* and b=*"),
        (["--blocks", "a=9;b=*"], 3, "--blocks a=9: there is no column '9'"),
        (["--blocks", "auto", "--blocks", "a=0;b=*"], 2, "cannot be combined with further"),
        (["--blocks", "a=0;b"], 2, "'b' is not of the form NAME=VALUE"),
        (["--blocks", "auto", "--model", "mlmt-nc"], 2, "mlmt-nc does not support this option"),
        (["--alpha", "a=1,b=2"], 2, "needs --blocks"),
        (["--alpha", "a=1,b=2", "--blocks", "a=0;b=*", "--cv"], 2, "leaves nothing to choose"),
        (["--alpha", "a=-1,b=2", "--blocks", "a=0;b=*"], 2, "'-1' is not a penalty"),
    ],
)
def test_blocks_that_cannot_be_are_refused(folder, capfd, words, code, told):
    alpha = [] if "--alpha" in words else ["--alpha", "1"]
    assert told in fails(capfd, code, "fit", "X.npy", "Y.npy", *alpha, *words, "-o", "m")


# ---------------------------------------------------------------- own inputs


@pytest.fixture
def series(folder):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    rng = np.random.default_rng(1)
    A = rng.normal(size=(90, 5, 2)).cumsum(axis=0) * 0.1 + rng.normal(size=(90, 5, 2))
    coords = {"station": list("abcde"), "variable": ["t", "p"], "time": np.arange(88)}
    past = np.stack([A[1:-1], A[:-2]], axis=1)
    xr.Dataset(
        {
            "x": (("time", "lag", "station", "variable"), past),
            "y": (("time", "station", "variable"), A[2:]),
        },
        {"lag": [1, 2], **coords},
    ).to_netcdf("s.nc", engine="h5netcdf")
    np.save("past.npy", past)
    np.save("next.npy", A[2:])
    return xr.load_dataset("s.nc", engine="h5netcdf")


@pytest.mark.parametrize(
    ("text", "own"),
    [("auto", "auto"), ("station", "station"), ("station,variable", ["station", "variable"])],
)
def test_own_inputs_are_those_of_shared_modes(series, text, own):
    words = ["--sample-dim", "time", "--own", text, "--own-alpha", "3"]
    assert main(["fit", "s.nc:x", "s.nc:y", *words, "--rank", "2", "-o", "m"]) == 0
    model = holrr.load("m")
    expected = HOLRR(2, own=own, own_alpha=3.0, sample_dim="time").fit(series.x, series.y)
    np.testing.assert_allclose(model.own_coef_, expected.own_coef_, rtol=1e-10, atol=1e-12)


def test_own_inputs_of_arrays_are_pairs_of_positions(series, capfd):
    files = ["past.npy", "next.npy"]
    words = ["--own", "1:0,2:1", "--input-rank", "all"]
    assert main(["fit", *files, *words, "--rank", "2", "-o", "m"]) == 0
    expected = HOLRR(2, own=[(1, 0), (2, 1)]).fit(np.load("past.npy"), np.load("next.npy"))
    np.testing.assert_allclose(holrr.load("m").coef_, expected.coef_, rtol=1e-10)
    assert "own inputs" in capfd.readouterr().out
    assert (
        main(["fit", *files, "--own", "1:0", "--own-alpha", "0.1,1", "--cv", "3", "-o", "m"]) == 0
    )
    assert holrr.load("m").own_alphas == [0.1, 1.0]


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--own-alpha", "1"], 2, "--own-alpha needs --own"),
        (["--own", "1:0", "--own-alpha", "1,2", "--rank", "2"], 2, "need --cv to choose"),
        (["--own", "1:9", "--rank", "2"], 3, "must contain pairs"),
        (["--own", "auto", "--rank", "2"], 3, "needs modes of X and y with the same names"),
        (["--own", "a,,b"], 2, "is not auto, names of modes or pairs"),
        (["--own", "auto", "--model", "trace-norm"], 2, "trace-norm does not support this option"),
    ],
)
def test_own_inputs_that_cannot_be_are_refused(series, capfd, words, code, told):
    assert told in fails(capfd, code, "fit", "past.npy", "next.npy", *words, "-o", "m")


# ---------------------------------------------------------------- input ranks of several arrays


def test_input_ranks_of_several_arrays(folder, capfd):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    rng = np.random.default_rng(0)
    data = xr.Dataset(
        {
            "field": (("time", "lat", "lon"), rng.normal(size=(N, 4, 5))),
            "other": (("time", "u", "v"), rng.normal(size=(N, 3, 2))),
        },
        {"time": np.arange(N)},
    )
    data.to_netcdf("x.nc", engine="h5netcdf")
    words = ["--rank", "2", "--input-rank", "field=2,3;other=all"]
    assert main(["fit", "x.nc", "Y.npy", *words, "-o", "m"]) == 0
    expected = HOLRR(2, input_rank={"field": (2, 3), "other": None}).fit(data, np.load("Y.npy"))
    model = holrr.load("m")
    np.testing.assert_allclose(model.coef_["field"], expected.coef_["field"], rtol=1e-10)
    assert model.input_rank_ == {"field": (2, 3), "other": (3, 2)}
    told = fails(capfd, 3, "fit", "x.nc", "Y.npy", "--input-rank", "2,3", *FIT)
    assert "X has the variables field, other; give ranks by name, such as" in told
    assert told.endswith("--input-rank field=2,3")
    told = fails(capfd, 3, "fit", "x.nc", "Y.npy", "--input-rank", "sst=2,3", *FIT)
    assert "'sst'" in told
    assert "a rank" in fails(capfd, 2, "fit", "x.nc", "Y.npy", "--input-rank", "field=0", *FIT)
    assert main(["fit", "x.nc", "Y.npy", "--input-rank", "all", "--cv", "3", "-o", "m"]) == 0
    assert isinstance(holrr.load("m"), HOLRRCV)
    assert main(["fit", "x.nc", "Y.npy", *words, "--model", "lrr", "-o", "m"]) == 0
    assert isinstance(holrr.load("m"), LRR)
