"""Preprocessing on the command line: the same as in Python, kept in the model file."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.pipeline import Pipeline, make_pipeline

import holrr
from commands import fails
from holrr import HOLRR, HOLRRCV, RLS
from holrr.cli import main
from holrr.data import RangeSelector, SavitzkyGolay, Standardizer, StandardNormalVariate

pd = pytest.importorskip("pandas", reason="pandas is not installed")

N, WAVELENGTHS = 40, np.arange(1000, 1100, 2)
FIT = ["--rank", "2", "--alpha", "0.1", "-o", "m"]


def spectra(seed=0, n=N):
    """Mixtures of two bands with offsets and factors, and what they are mixed from."""
    rng = np.random.default_rng(seed)
    bands = np.exp(-(((WAVELENGTHS - np.array([[1030], [1065]])) / 9.0) ** 2))
    amounts = rng.uniform(0.2, 1, size=(n, 2))
    pure = amounts @ bands + 0.01 * rng.normal(size=(n, WAVELENGTHS.size))
    X = rng.uniform(0.5, 2, size=(n, 1)) * pure + rng.uniform(0, 1, size=(n, 1))
    Y = amounts @ np.array([[1.0, 0.5, 0.0], [0.0, 1.0, 2.0]])
    return X, Y


def table(seed=0, n=N):
    X, Y = spectra(seed, n)
    found = pd.DataFrame(X, columns=list(map(str, WAVELENGTHS)))
    return found.assign(fat=Y[:, 0], water=Y[:, 1], ash=Y[:, 2])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().to_csv("runs.csv", index_label="run")
    table(1, 7).drop(columns=["fat", "water", "ash"]).to_csv("new.csv", index_label="run")
    X, Y = spectra()
    np.save("X.npy", X)
    np.save("Y.npy", Y)
    np.save("X_new.npy", spectra(1, 7)[0])
    return tmp_path


def predicted(source, *words):
    assert main(["predict", "m", source, *words, "-o", "P.npy"]) == 0
    return np.load("P.npy")


def inputs(data):
    return data[[str(w) for w in WAVELENGTHS]]


STEPS = {
    "--snv": [StandardNormalVariate()],
    "--derivative 1": [SavitzkyGolay(15, 2, 1)],
    "--derivative 2 --window 7 --polyorder 3": [SavitzkyGolay(7, 3, 2)],
    "--range 1020:1080": [RangeSelector((1020, 1080))],
    "--standardize": [Standardizer()],
    "--snv --derivative 1 --range 1020:1040,1060: --standardize": [
        StandardNormalVariate(),
        SavitzkyGolay(15, 2, 1),
        RangeSelector([(1020, 1040), (1060, None)]),
        Standardizer(),
    ],
    "--range 1010:1090 --derivative 1 --window 9 --snv": [
        RangeSelector((1010, 1090)),
        SavitzkyGolay(9, 2, 1),
        StandardNormalVariate(),
    ],
}


@pytest.mark.parametrize("words", STEPS)
def test_steps_equal_those_of_python_after_saving_and_loading(folder, words):
    """To 1e-12, in predictions of the command line and of the loaded pipeline."""
    outputs = ["--outputs", "fat,water,ash", "--index-col", "run"]
    assert main(["fit", "runs.csv", *outputs, *words.split(), *FIT]) == 0
    by_hand = make_pipeline(*STEPS[words], HOLRR(2, 0.1))
    train, new = table(), table(1, 7)
    by_hand.fit(inputs(train), train[["fat", "water", "ash"]])
    expected = by_hand.predict(inputs(new)).to_numpy()
    found = predicted("new.csv", "--index-col", "run")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    loaded = holrr.load("m")
    assert isinstance(loaded, Pipeline)
    np.testing.assert_allclose(loaded.predict(inputs(new)), expected, rtol=0, atol=1e-12)
    assert [type(step) for _, step in loaded.steps] == [type(step) for _, step in by_hand.steps]


@pytest.mark.parametrize("words", STEPS)
def test_arrays_without_names_are_preprocessed_by_position(folder, words):
    if "--range" in words:
        words = words.replace("1020:1040,1060:", "5:20,30:").replace("1020:1080", "5:40")
        words = words.replace("1010:1090", "5:45")
    assert main(["fit", "X.npy", "Y.npy", *words.split(), *FIT]) == 0
    loaded = holrr.load("m")
    found = predicted("X_new.npy")
    assert found.shape == (7, 3)
    np.testing.assert_allclose(found, loaded.predict(np.load("X_new.npy")), rtol=0, atol=1e-12)


def test_the_order_of_the_options_is_the_order_of_the_steps(folder):
    names = []
    for words in (["--snv", "--derivative", "1"], ["--derivative", "1", "--snv"]):
        assert main(["fit", "X.npy", "Y.npy", *words, *FIT]) == 0
        names.append([name for name, _ in holrr.load("m").steps])
    assert names == [["snv", "derivative", "model"], ["derivative", "snv", "model"]]
    twice = ["--derivative", "0", "--standardize", "--derivative", "1"]
    assert main(["fit", "X.npy", "Y.npy", *twice, *FIT]) == 0
    assert [name for name, _ in holrr.load("m").steps][:3] == [
        "derivative",
        "standardize",
        "derivative2",
    ]


def test_score_and_info_apply_and_name_the_steps(folder, capfd):
    words = ["--outputs", "fat,water,ash", "--index-col", "run"]
    steps = ["--range", "1010:1090", "--snv", "--derivative", "2"]
    assert main(["fit", "runs.csv", *words, *steps, *FIT]) == 0
    capfd.readouterr()
    assert main(["score", "m", "runs.csv", *words]) == 0
    train = table()
    r2 = holrr.load("m").score(inputs(train), train[["fat", "water", "ash"]])
    assert f"R2                {r2:.6g}" in capfd.readouterr().out
    assert main(["info", "m"]) == 0
    line = "range 1010:1090, standard normal variate, second derivative (window 15, degree 2)"
    assert f"preprocessing  {line}\n" in capfd.readouterr().out


@pytest.mark.parametrize("cv", [["--cv", "3"], []])
def test_a_search_is_saved_in_a_pipeline_with_its_steps(folder, cv):
    assert main(["fit", "X.npy", "Y.npy", "--snv", *cv, "-o", "m"]) == 0
    by_hand = make_pipeline(StandardNormalVariate(), HOLRRCV(cv=int((cv or [0, 5])[1])))
    by_hand.fit(np.load("X.npy"), np.load("Y.npy"))
    np.testing.assert_allclose(
        predicted("X_new.npy"), by_hand.predict(np.load("X_new.npy")), rtol=0, atol=1e-12
    )


# ---------------------------------------------------------------- ranges of columns


@pytest.mark.parametrize(
    "pattern", ["1020:1080", "1019.5:1081", ":1080", "1020:", "1010:1020,1060:"]
)
def test_inputs_are_a_range_of_names_that_are_numbers(folder, pattern):
    words = ["--inputs", pattern, "--outputs", "fat,water", "--index-col", "run"]
    assert main(["fit", "runs.csv", *words, *FIT]) == 0
    ranges = [
        [float(end or (-1e9, 1e9)[k]) for k, end in enumerate(part.split(":"))]
        for part in pattern.split(",")
    ]
    known = [str(w) for w in WAVELENGTHS if any(a <= w <= b for a, b in ranges)]
    assert list(holrr.load("m").feature_names_in_) == known
    train, new = table(), table(1, 7)
    expected = HOLRR(2, 0.1).fit(train[known], train[["fat", "water"]]).predict(new[known])
    found = predicted("new.csv", "--index-col", "run")
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_a_range_without_columns_is_named(folder, capfd):
    words = ["fit", "runs.csv", "--outputs", "fat", "--index-col", "run", *FIT]
    told = fails(capfd, 3, *words, "--inputs", "2000:2100")
    assert "--inputs: there is no column '2000:2100'; the columns are 1000, 1002" in told
    told = fails(capfd, 3, *words, "--range", "2000:2100", "--inputs", "1*")
    assert "no feature lies in the range from 2000 to 2100" in told
    told = fails(capfd, 3, *words, "--range", "1000:1010")
    assert "names are numbers, and these are not: water, ash. Leave them out with" in told


def test_files_of_the_range_alone_are_enough_to_predict(folder, capfd):
    """Where the range comes first: the model needs no other columns."""
    words = ["--outputs", "fat,water,ash", "--index-col", "run"]
    kept = [str(w) for w in WAVELENGTHS if 1020 <= w <= 1080]
    table(1, 7)[kept].to_csv("few.csv", index_label="run")
    found = []
    for steps in (["--range", "1020:1080", "--snv"], ["--snv", "--range", "1020:1080"]):
        assert main(["fit", "runs.csv", *words, *steps, *FIT]) == 0
        found.append(predicted("new.csv", "--index-col", "run"))
        if steps[0] == "--range":
            again = predicted("few.csv", "--index-col", "run")
            np.testing.assert_array_equal(again, found[-1])
        else:
            told = fails(capfd, 3, "predict", "m", "few.csv", "--index-col", "run", "-o", "P.npy")
            assert "missing '1000', '1002'" in told
    assert not np.allclose(*found)


def test_a_header_of_numbers_is_a_header_if_the_options_need_numbers(folder, capfd):
    """And where the model was fitted with such names."""
    X, Y = spectra()
    pd.DataFrame(X, columns=WAVELENGTHS).to_csv("x.csv", index=False)
    np.savetxt("y.csv", Y, delimiter=",")
    assert "use --header 1" in fails(capfd, 3, "fit", "x.csv", "y.csv", *FIT)
    assert main(["fit", "x.csv", "y.csv", "--range", "1020:1080", *FIT]) == 0
    assert predicted("x.csv").shape == (N, 3)
    assert main(["fit", "x.csv", "y.csv", "--inputs", "1020:1080", *FIT]) == 0
    assert predicted("x.csv").shape == (N, 3)
    mixed = table()[["fat", *map(str, WAVELENGTHS)]]
    mixed.to_csv("mixed.csv", index=False)
    assert "use --header 1" in fails(capfd, 3, "fit", "mixed.csv", "--outputs", "fat", *FIT)
    assert main(["fit", "mixed.csv", "--outputs", "fat", "--inputs", "1020:1080", *FIT]) == 0
    assert predicted("mixed.csv").shape == (N, 1)
    left = "was not fitted with 20 of the columns of mixed.csv, which are left out: 'fat', '1000'"
    assert left in capfd.readouterr().err


# ---------------------------------------------------------------- labelled files


def test_spectra_are_along_a_variable_and_a_dimension(folder, capfd):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pytest.importorskip("h5netcdf", reason="h5netcdf is not installed")
    X, Y = spectra()
    ph = np.linspace(0, 1, N)
    data = xr.Dataset(
        {
            "nir": (("wavelength", "run"), X.T),
            "ph": ("run", ph),
            "y": (("run", "output"), Y),
        },
        {"wavelength": WAVELENGTHS.astype(float), "run": np.arange(N)},
    )
    data.to_netcdf("d.nc", engine="h5netcdf")
    steps = ["--range", "1020:1080", "--snv"]
    words = ["fit", "d.nc:nir", "d.nc:y", "--sample-dim", "run", *steps, *FIT]
    assert main(words) == 0
    kept = X[:, (WAVELENGTHS >= 1020) & (WAVELENGTHS <= 1080)]
    expected = make_pipeline(StandardNormalVariate(), HOLRR(2, 0.1)).fit(kept, Y).predict(kept)
    np.testing.assert_allclose(predicted("d.nc:nir"), expected, rtol=0, atol=1e-12)
    both = ["fit", "d.nc:nir,ph", "d.nc:y", "--sample-dim", "run", *steps, *FIT]
    assert "name the blocks that contain spectra" in fails(capfd, 3, *both)
    assert main([*both, "--spectra", "nir"]) == 0
    joined = np.column_stack([StandardNormalVariate().fit_transform(kept), ph])
    expected = HOLRR(2, 0.1).fit(joined, Y).predict(joined)
    np.testing.assert_allclose(predicted("d.nc:nir,ph"), expected, rtol=0, atol=1e-12)
    assert main([*words, "--spectra", ":wavelength"]) == 0
    assert main([*words, "--spectra", "wavelength"]) == 0
    assert main([*both, "--spectra", "nir:wavelength"]) == 0
    assert "dim='height' is not a mode of X" in fails(capfd, 3, *words, "--spectra", "height")


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--window", "5"], "--window needs --derivative"),
        (["--polyorder", "3"], "--polyorder needs --derivative"),
        (["--spectra", "nir"], "--spectra needs --range, --snv or --derivative"),
        (["--derivative", "1", "--window", "4"], "--window must be odd"),
        (["--derivative", "1", "--window", "1"], "larger than --polyorder"),
        (["--derivative", "3"], "--derivative must be at most --polyorder"),
        (["--derivative", "-1"], "'-1' is not a whole number"),
        (["--range", "1100"], "'1100' is not a range such as 1100:2300"),
        (["--range", ":"], "is not a range"),
        (["--range", "a:b"], "'a' is not an end of a range"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_read(folder, capfd, words, told):
    assert told in fails(capfd, 2, "fit", "none.npy", "none.npy", *words, *FIT)


def test_files_of_older_versions_with_a_standardizer_are_read(folder):
    """Where the step had no names of its own, those of the model count."""
    train = table()
    pipeline = make_pipeline(Standardizer(), RLS()).fit(inputs(train), train[["fat", "water"]])
    del pipeline[0].feature_names_in_
    holrr.save(pipeline, "m")
    found = predicted("new.csv", "--index-col", "run")
    np.testing.assert_allclose(
        found,
        pipeline[-1].predict(pipeline[0].transform(inputs(table(1, 7)).to_numpy())),
        atol=1e-12,
    )


def test_steps_work_without_pandas_and_ranges_name_the_package(folder):
    """In a process of its own, where the import fails."""
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pandas':\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from holrr.cli import main\n"
        "for words in {}:\n"
        "    code = main(words)\n"
        "    print('code', code)\n"
    )
    train, new = table(), table(1, 7)
    inputs(train).to_csv("x.csv", index=False)
    inputs(new)[inputs(new).columns[::-1]].to_csv("turned.csv", index=False)
    np.savetxt("y.csv", train[["fat", "water"]], delimiter=",")
    fit = ["fit", "x.csv", "y.csv", "--header", "1,0", *FIT]
    calls = [
        [*fit, "--snv", "--standardize", "--blocks", "low=:1050;high=*"],
        ["predict", "m", "turned.csv", "-o", "P.npy"],
        [*fit, "--range", "1020:1080"],
    ]
    command = [sys.executable, "-c", code.format(calls)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.count("code 0") == 2, done.stdout + done.stderr
    assert "code 5" in done.stdout
    assert 'pip install "holrr[table]"' in done.stderr
    by_hand = make_pipeline(StandardNormalVariate(), Standardizer(), HOLRR(2, 0.1))
    by_hand.fit(inputs(train), train[["fat", "water"]].to_numpy())
    np.testing.assert_allclose(np.load("P.npy"), by_hand.predict(inputs(new)), atol=1e-12)
    assert holrr.load("m")[-1].blocks_["low"].size == 26
