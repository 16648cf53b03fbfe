"""NetCDF and Zarr on the command line: names in, names out."""

import io
import os
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pytest

import holrr
from commands import fails
from holrr.cli import main
from holrr.streaming import memory_budget

xr = pytest.importorskip("xarray", reason="xarray is not installed")
pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")


def a_climate(n=60, seed=0):
    """Three indices, and a field over a small map that follows them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = np.tensordot(X, rng.normal(size=(3, 4, 5)), 1) + 0.1 * rng.normal(size=(n, 4, 5))
    time = pd.date_range("2000-01-01", periods=n, freq="MS")
    return xr.Dataset(
        {
            "indices": (("time", "index"), X),
            "t2m": (("time", "lat", "lon"), Y, {"units": "K", "long_name": "temperature"}),
            "z500": (("time", "lat", "lon"), Y + 1),
        },
        coords={
            "time": time,
            "index": ["nao", "enso", "qbo"],
            "lat": ("lat", [60.0, 50.0, 40.0, 30.0], {"units": "degrees_north"}),
            "lon": np.arange(0.0, 50.0, 10.0),
        },
    )


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    data = a_climate()
    data.to_netcdf("c.nc", engine="h5netcdf")
    data.to_zarr("c.zarr", consolidated=False)
    return tmp_path


FIT = ["--rank", "2", "--alpha", "0.1", "-o", "m"]


@pytest.mark.parametrize("source", ["c.nc", "c.zarr"])
@pytest.mark.parametrize("output", ["P.nc", "P.zarr"])
def test_predictions_carry_the_labels_of_the_outputs(folder, source, output):
    assert main(["fit", f"{source}:indices", f"{source}:t2m", *FIT]) == 0
    assert main(["predict", "m", f"{source}:indices", "-o", output]) == 0
    data = a_climate()
    by_hand = holrr.HOLRR(2, 0.1).fit(data.indices, data.t2m).predict(data.indices)
    with xr.open_dataset(output, **({"consolidated": True} if "zarr" in output else {})) as found:
        xr.testing.assert_allclose(found.t2m, by_hand)
        assert found.t2m.attrs == data.t2m.attrs
        assert found.lat.attrs == data.lat.attrs
        assert list(found.data_vars) == ["t2m"]


def test_the_variable_of_the_predictions_can_be_named(folder):
    assert main(["fit", "c.nc:indices", "c.nc:t2m", *FIT]) == 0
    assert main(["predict", "m", "c.nc:indices", "-o", "P.nc:forecast"]) == 0
    with xr.open_dataset("P.nc") as found:
        assert list(found.data_vars) == ["forecast"]


def test_several_variables_are_a_mode_and_come_back_as_variables(folder):
    assert main(["fit", "c.nc:indices", "c.nc:t2m,z500", *FIT]) == 0
    assert holrr.load("m").intercept_.shape == (2, 4, 5)
    assert main(["predict", "m", "c.zarr:indices", "-o", "P.nc"]) == 0
    assert main(["predict", "m", "c.zarr:indices", "-o", "P.npy"]) == 0
    data = a_climate()
    by_hand = holrr.HOLRR(2, 0.1).fit(data.indices, data[["t2m", "z500"]]).predict(data.indices)
    with xr.open_dataset("P.nc") as found:
        xr.testing.assert_allclose(found, by_hand)
    np.testing.assert_allclose(np.load("P.npy")[:, 1], by_hand.z500.to_numpy())


def test_a_file_without_a_name_is_its_only_variable_or_all_of_them(folder):
    data = a_climate()
    data[["indices"]].to_netcdf("x.nc", engine="h5netcdf")
    data[["t2m", "z500"]].to_netcdf("y.nc", engine="h5netcdf")
    assert main(["fit", "x.nc", "y.nc", *FIT]) == 0
    assert holrr.load("m").intercept_.shape == (2, 4, 5)


def test_a_field_may_be_the_input_and_the_samples_along_any_dimension(folder, capfd):
    data = a_climate()
    data.transpose("lat", "lon", "index", "time").to_netcdf("t.nc", engine="h5netcdf")
    words = ["t.nc:t2m", "t.nc:indices", "--model", "rls", "--alpha", "1"]
    for said in ([], ["--sample-dim", "time"]):
        assert main(["fit", *words, *said, "-o", "m"]) == 0
        assert "samples      60 along time" in capfd.readouterr().out
    assert main(["predict", "m", "c.nc:t2m", "-o", "P.nc"]) == 0
    by_hand = holrr.RLS(1.0).fit(data.t2m, data.indices).predict(data.t2m)
    with xr.open_dataset("P.nc") as found:
        xr.testing.assert_allclose(found.indices, by_hand)
    assert main(["fit", "t.nc:t2m", "t.nc:indices", "--rank", "2", "--cv", "3", "-o", "m"]) == 0
    assert holrr.load("m").rank_ == (2, 2)


def test_a_dimension_of_files_without_dimensions_is_refused(folder, capfd):
    np.save("X.npy", np.ones((5, 2)))
    np.save("Y.npy", np.ones((5, 3)))
    told = fails(capfd, 2, "fit", "X.npy", "Y.npy", "--sample-dim", "time", *FIT)
    assert "--sample-dim time: neither X nor Y is a NetCDF" in told


def test_groups_of_a_netcdf_file(folder):
    data = a_climate().assign_coords(decade=("time", np.arange(60) // 12))
    data.to_netcdf("g.nc", engine="h5netcdf")
    assert main(["fit", "g.nc:indices", "g.nc:t2m", "--groups", "decade", "-o", "m"]) == 0
    from sklearn.model_selection import GroupKFold

    groups = data.decade.to_numpy()
    by_hand = holrr.HOLRRCV(cv=GroupKFold(5)).fit(data.indices, data.t2m, groups=groups)
    assert holrr.load("m").best_score_ == pytest.approx(by_hand.best_score_)
    assert main(["fit", "g.nc:indices", "g.nc:t2m", "--groups", "time.year", "-o", "m"]) == 0
    assert holrr.load("m").best_score_ == pytest.approx(by_hand.best_score_)


def test_groups_that_are_no_column_of_labels_are_refused(folder, capfd):
    a_climate().assign_coords(height=2.0).to_netcdf("h.nc", engine="h5netcdf")
    told = fails(capfd, 3, "fit", "h.nc:indices", "h.nc:t2m", "--groups", "height", "-o", "m")
    assert told.endswith("--groups: 'height' of h.nc:indices is not along the samples")


def test_groups_within_a_file(folder):
    data = a_climate()
    data.to_netcdf("n.nc", engine="h5netcdf", group="run1")
    assert main(["fit", "n.nc:run1/indices", "n.nc:run1/t2m", *FIT]) == 0


def test_labels_are_kept_in_a_round_trip_through_tables(folder):
    assert main(["fit", "c.nc:indices", "c.nc:t2m", *FIT]) == 0
    assert main(["predict", "m", "c.nc:indices", "-o", "P.csv"]) == 0
    found = pd.read_csv("P.csv", header=[0, 1], index_col=0)
    assert found.columns.nlevels == 2
    assert found.shape == (60, 20)
    assert (pd.to_datetime(found.index) == a_climate().indexes["time"]).all()


def test_an_index_of_several_levels_is_written_as_its_levels(folder):
    data = a_climate()
    y = data.t2m.stack(place=("lat", "lon"))
    holrr.HOLRR(2, 0.1).fit(data.indices, y).save("m")
    for output in ("P.nc", "P.zarr"):
        assert main(["predict", "m", "c.nc:indices", "-o", output]) == 0
    with xr.open_dataset("P.nc") as found:
        assert found.t2m.dims == ("time", "place")
        np.testing.assert_array_equal(found.lat, y.lat)
        np.testing.assert_array_equal(found.lon, y.lon)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "feather", "xlsx", "nc"])
def test_a_table_without_labels_beside_a_file_with_some_of_any_calendar(folder, suffix):
    pytest.importorskip("cftime", reason="cftime is not installed")
    data = a_climate()
    time = xr.date_range("2000-01-01", periods=60, freq="MS", calendar="noleap", use_cftime=True)
    data.assign_coords(time=time).to_netcdf("leap.nc", engine="h5netcdf")
    data.t2m.stack(place=("lat", "lon")).to_pandas().to_csv("Y.csv", header=False, index=False)
    assert main(["fit", "leap.nc:indices", "Y.csv", "--output-shape", "4,5", *FIT]) == 0
    assert main(["predict", "m", "leap.nc:indices", "-o", f"P.{suffix}"]) == 0
    pd.DataFrame(data.indices.to_numpy(), columns=list(data["index"].values)).to_csv(
        "X.csv", index=False
    )
    assert main(["fit", "X.csv", "leap.nc:t2m", *FIT]) == 0
    assert main(["predict", "m", "leap.nc:indices", "-o", f"Q.{suffix}"]) == 0


@pytest.mark.parametrize("version", [2, 3])
def test_zarr_arrays_without_names_of_dimensions(folder, version):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    data = a_climate()
    zarr.save_array("X.zarr", data.indices.to_numpy(), zarr_format=version)
    group = zarr.open_group("g.zarr", mode="w", zarr_format=version)
    Y = data.t2m.to_numpy()
    group.create_array("Y", shape=Y.shape, dtype=Y.dtype)[...] = Y
    for source in ("g.zarr:Y", "g.zarr"):
        assert main(["fit", "X.zarr", source, *FIT]) == 0
    by_hand = holrr.HOLRR(2, 0.1).fit(data.indices.to_numpy(), data.t2m.to_numpy())
    np.testing.assert_allclose(holrr.load("m").coef_, by_hand.coef_)


def test_an_old_store_is_replaced_and_a_folder_is_not(folder, capfd):
    assert main(["fit", "c.nc:indices", "c.nc:t2m", *FIT]) == 0
    for _ in range(2):
        assert main(["predict", "m", "c.nc:indices", "-o", "P.zarr"]) == 0
    before = sorted(path.name for path in folder.iterdir())
    assert before == ["P.zarr", "c.nc", "c.zarr", "m"]
    (folder / "notes.zarr").mkdir()
    (folder / "notes.zarr" / "notes.txt").write_text("mine")
    told = fails(capfd, 4, "predict", "m", "c.nc:indices", "-o", "notes.zarr")
    assert "is a folder" in told
    assert (folder / "notes.zarr" / "notes.txt").read_text() == "mine"
    told = fails(capfd, 2, "predict", "m", "c.zarr:indices", "-o", "c.zarr")
    assert "would replace the input" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["c.nc:none", "c.nc:t2m"], "no array 'none'; write c.nc:NAME, where NAME is one of indi"),
        (["c.zarr:none", "c.nc:t2m"], "no array 'none'"),
        (
            ["late.nc:indices", "c.nc:t2m"],
            "sample 1 is 2001-01-01 00:00:00 in late.nc:indices and 2000",
        ),
        (["c.nc:indices", "other.nc:t2m"], "which share no dimension"),
        (["text.nc", "c.nc:t2m"], "variables that are not numeric: names (see text.nc:NAME)"),
        (["junk.nc", "c.nc:t2m"], "junk.nc cannot be read"),
        (["cut.nc", "c.nc:t2m"], "cut.nc cannot be read"),
        (["empty.zarr", "c.nc:t2m"], "empty.zarr cannot be read"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(folder, capfd, words, told):
    data = a_climate()
    later = data.indexes["time"] + pd.DateOffset(years=1)
    data.assign_coords(time=later).to_netcdf("late.nc", engine="h5netcdf")
    data.rename(time="month").to_netcdf("other.nc", engine="h5netcdf")
    xr.Dataset({"names": ("time", np.array(["a", "b"]))}).to_netcdf("text.nc", engine="h5netcdf")
    (folder / "junk.nc").write_text("junk")
    (folder / "cut.nc").write_bytes((folder / "c.nc").read_bytes()[:2000])
    (folder / "empty.zarr").mkdir()
    assert told in fails(capfd, 3, "fit", *words, *FIT)
    assert not (folder / "m").exists()


def test_inputs_with_other_dimensions_or_labels_are_refused(folder, capfd):
    assert main(["fit", "c.nc:indices", "c.nc:t2m", *FIT]) == 0
    data = a_climate()
    data.rename(index="mode").to_netcdf("renamed.nc", engine="h5netcdf")
    told = fails(capfd, 3, "predict", "m", "renamed.nc:indices", "-o", "P.nc")
    assert "('mode',)" in told and "('index',)" in told  # noqa: PT018 (one message)
    data.isel(index=[1, 0, 2]).to_netcdf("turned.nc", engine="h5netcdf")
    told = fails(capfd, 3, "predict", "m", "turned.nc:indices", "-o", "P.nc")
    assert "At position 0 X has 'enso' and the fit had 'nao'" in told
    assert "dimensions" in fails(capfd, 3, "predict", "m", "c.nc:t2m", "-o", "P.nc")
    assert not (folder / "P.nc").exists()


@pytest.mark.clean_environment
def test_without_xarray_a_labelled_model_still_predicts(folder):
    """In a process of its own, where the import fails."""
    assert main(["fit", "c.nc:indices", "c.nc:t2m", *FIT]) == 0
    np.save("X.npy", a_climate().indices.to_numpy())
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    store = zarr.open("plain.zarr", mode="w")
    for name in ("indices", "t2m"):
        store[name] = a_climate()[name].to_numpy()
    code = (
        "import sys; sys.modules['xarray'] = None; from holrr.cli import main; sys.exit(main({}))"
    )
    for words, expected in [
        (["info", "m"], 0),
        (["predict", "m", "X.npy", "-o", "P.npy"], 0),
        (["predict", "m", "c.nc:indices", "-o", "P.npy"], 5),
        (["predict", "m", "X.npy", "-o", "P.nc"], 5),
        (["fit", "plain.zarr:indices", "plain.zarr:t2m", *FIT], 0),
    ]:
        done = subprocess.run(
            [sys.executable, "-c", code.format(words)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        assert done.returncode == expected, done.stderr
        if expected:
            assert 'pip install "holrr[xarray]"' in done.stderr
            assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize("source", ["big.nc", "big.zarr"])
def test_large_files_are_fitted_without_being_read_whole(folder, capfd, monkeypatch, source):
    pytest.importorskip("dask", reason="dask is not installed")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 10))
    Y = (X[:, :8] + rng.normal(size=(40_000, 8))).reshape(-1, 2, 4)
    big = xr.Dataset({"X": (("time", "f"), X), "Y": (("time", "a", "b"), Y)}, {"a": ["n", "s"]})
    big.to_netcdf("big.nc", engine="h5netcdf")
    big.chunk(time=1000).to_zarr("big.zarr", consolidated=False)
    fit = ["fit", f"{source}:X", f"{source}:Y", "--rank", "2", "-o", "m"]
    with memory_budget(2**20):
        assert main(fit) == 0  # and all is imported
        tracemalloc.start()
        assert main(fit) == 0
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert main(["predict", "m", f"{source}:X", "-o", "P.nc"]) == 0
        monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=Y.nbytes // 2))
        told = fails(capfd, 4, "predict", "m", f"{source}:X", "-o", "Q.nc")
        assert "Q.nc cannot be written: No space left" in told
    assert not (folder / "Q.nc").exists()
    assert peak < Y.nbytes
    expected = holrr.HOLRR(2).fit(X, Y).predict(X)
    with xr.open_dataset("P.nc") as found:
        np.testing.assert_allclose(found.Y.to_numpy(), expected, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("words", [["--time-series"], ["--model", "kernel-rls", "--alpha", "1"]])
@pytest.mark.parametrize("source", ["c.nc", "c.zarr", "npy"])
def test_methods_with_several_passes_read_the_data_into_memory(folder, words, source):
    pytest.importorskip("dask", reason="dask is not installed")
    data = a_climate()
    np.save("X.npy", data.indices)
    np.save("Y.npy", data.t2m)
    files = ["X.npy", "Y.npy"] if source == "npy" else [f"{source}:indices", f"{source}:t2m"]
    predictions = []
    for budget in (2**10, 2**30):
        with memory_budget(budget):
            assert main(["fit", *files, *words, "-o", "m"]) == 0
        predictions.append(holrr.load("m").predict(data.indices.to_numpy()))
    np.testing.assert_allclose(*predictions, rtol=1e-10)


def test_long_computations_show_how_far_they_are(folder, monkeypatch):
    diagnostics = pytest.importorskip("dask.diagnostics", reason="dask is not installed")

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    class AtOnce(diagnostics.ProgressBar):
        def __init__(self, minimum=None, **options):
            super().__init__(minimum=0, **options)

    monkeypatch.setattr(diagnostics, "ProgressBar", AtOnce)
    for words in (
        ["fit", "c.nc:indices", "c.nc:t2m", *FIT],
        ["score", "m", "c.nc:indices", "c.nc:t2m"],
    ):
        terminal = Terminal()
        with memory_budget(2**10), monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", terminal)
            assert main(words) == 0
        assert "100% Completed" in terminal.getvalue()


def test_fields_with_land_and_arrays_with_modes_are_inputs(folder):
    data = a_climate()
    sea = data.t2m.where(data.lat < 60).rename("sst")
    maps = data.z500.rename("slp")
    sea.to_netcdf("sst.nc", engine="h5netcdf")
    maps.to_netcdf("slp.nc", engine="h5netcdf")
    words = ["fit", "sst.nc", "slp.nc", "--missing-features", "drop", "-o", "m"]
    assert main([*words, "--rank", "3", "--input-rank", "2,3"]) == 0
    assert main(["predict", "m", "sst.nc", "-o", "P.nc"]) == 0
    model = holrr.HOLRR(3, input_rank=(2, 3), missing_features="drop").fit(sea, maps)
    with xr.open_dataarray("P.nc") as found:
        assert found.dims == ("time", "lat", "lon")
        np.testing.assert_allclose(found, model.predict(sea), atol=1e-10)
    np.save("x.npy", data.t2m.to_numpy())
    np.save("y.npy", data.indices.to_numpy())
    assert main(["fit", "x.npy", "y.npy", "--model", "rls", "-o", "m"]) == 0
    assert holrr.load("m").coef_.shape == (4, 5, 3)
    np.save("flat.npy", data.t2m.to_numpy().reshape(60, -1))
    assert (
        main(["fit", "flat.npy", "y.npy", "--input-shape", "4,5", "--alpha", "1", "-o", "m"]) == 0
    )
    assert holrr.load("m").coef_.shape == (4, 5, 3)


def test_kernels_have_no_input_ranks(folder, capfd):
    words = ["fit", "c.nc:indices", "c.nc:t2m", "--model", "kernel-rls", "--input-rank", "2,2"]
    assert "holrr, lrr, rls do" in fails(capfd, 2, *words, "-o", "m")
