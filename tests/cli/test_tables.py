"""Tables on the command line: separators, headers, labels of rows, some of the columns."""

import re
import subprocess
import sys

import numpy as np
import pytest

import holrr
from commands import fails
from holrr.cli import main

pd = pytest.importorskip("pandas", reason="pandas is not installed")

N = 24
FIT = ["--alpha", "1", "-o", "m"]


def a_table(seed=0):
    """Inputs a to d, outputs u and v that tell them apart, text and labels of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    Y = X @ np.array([[1.0, 0], [10, 1], [100, 2], [1000, 3]])
    table = pd.DataFrame(np.hstack([X, Y]), columns=list("abcduv"))
    table.index = pd.date_range("2020-01-01", periods=N, name="day")
    return table.assign(site=[f"s{k % 6}" for k in range(N)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    a_table()[list("abcd")].to_csv("X.csv", index=False)
    a_table()[list("uv")].to_csv("Y.csv", index=False)
    a_table().to_csv("all.csv")
    return tmp_path


def predicted(*words):
    assert main(["predict", "m", *words, "-o", "P.npy"]) == 0
    return np.load("P.npy")


def expected():
    t = a_table()
    return holrr.HOLRR(alpha=1).fit(t[list("abcd")], t[list("uv")]).predict(t[list("abcd")])


# ---------------------------------------------------------------- separators and decimals


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("sep", [";", "\t", ","])
def test_semicolons_and_tabs_are_detected_and_decimal_commas_need_an_option(folder, sep, suffix):
    decimal = "." if sep == "," else ","
    for name, columns in (("x", "abcd"), ("y", "uv")):
        table = a_table()[list(columns)]
        table.to_csv(f"{name}.{suffix}", sep=sep, decimal=decimal, index=False)
    words = ["--decimal", decimal] + (["--sep", ","] if suffix == "tsv" and sep == "," else [])
    assert main(["fit", f"x.{suffix}", f"y.{suffix}", *words, *FIT]) == 0
    np.testing.assert_allclose(predicted(f"x.{suffix}", *words), expected(), rtol=1e-12)


@pytest.mark.parametrize("header", [True, False])
def test_an_undeclared_decimal_comma_is_an_error_that_names_the_option(folder, capfd, header):
    a_table()[list("abcd")].to_csv("x.csv", sep=";", decimal=",", index=False, header=header)
    assert "decimal comma: use --decimal ," in fails(capfd, 3, "fit", "x.csv", "Y.csv", *FIT)
    (folder / "late.csv").write_text("a;b\n1;2\n1;2,5\n")
    assert "--decimal ," in fails(capfd, 3, "fit", "late.csv", "Y.csv", *FIT)


@pytest.mark.parametrize(("text", "sep"), [("|", "|"), ("tab", "\t"), ("\\t", "\t"), (" ", " ")])
def test_any_character_can_be_between_the_cells(folder, text, sep):
    a_table()[list("abcd")].to_csv("x.csv", sep=sep, index=False)
    assert main(["fit", "x.csv", "all.csv", "--outputs", "u,v", "--sep", text, *FIT]) == 3
    a_table()[list("uv")].to_csv("y.csv", sep=sep, index=False)
    assert main(["fit", "x.csv", "y.csv", "--sep", text, *FIT]) == 0
    np.testing.assert_allclose(predicted("x.csv", "--sep", text), expected(), rtol=1e-12)


def test_a_table_that_is_named_twice_has_no_outputs_among_its_inputs(folder):
    a_table()[list("abcduv")].to_csv("both.csv", index=False)
    assert main(["fit", "both.csv", "both.csv", "--outputs", "u,v", *FIT]) == 0
    np.testing.assert_allclose(predicted("both.csv", "--inputs", "a:d"), expected(), rtol=1e-12)


@pytest.mark.parametrize("header", [True, False])
def test_predictions_have_the_decimal_commas_of_the_inputs_between_semicolons(folder, header):
    t = a_table().reset_index(drop=True)
    write = {"sep": ";", "decimal": ",", "index": False, "header": header}
    for name, columns in (("x", "abcd"), ("y", "uv")):
        t[list(columns)].to_csv(f"{name}.csv", **write)
    assert main(["fit", "x.csv", "y.csv", "--decimal", ",", *FIT]) == 0
    assert main(["predict", "m", "x.csv", "--decimal", ",", "-o", "p.csv"]) == 0
    found = pd.read_csv("p.csv", sep=";", decimal=",", header=0 if header else None)
    np.testing.assert_allclose(found.to_numpy(), expected(), rtol=1e-9)


def test_a_line_of_units_is_part_of_the_names_and_makes_no_mode(folder, capfd):
    t = a_table().drop(columns="site")
    t.columns = pd.MultiIndex.from_arrays([list("abcduv"), ["K", "m", "m", "s", "kg", "%"]])
    t.to_csv("units.csv", index_label=("day", ""))
    words = ["--index-col", "0", "--header", "2", "--outputs", "u*,v*"]
    assert main(["fit", "units.csv", *words, *FIT]) == 0
    assert "not a grid; the outputs are u / kg, v / %" in capfd.readouterr().err
    assert (
        main(
            [
                "predict",
                "m",
                "units.csv",
                "--index-col",
                "0",
                "--header",
                "2",
                "--inputs",
                "a*,b*,c*,d*",
                "-o",
                "p.csv",
            ]
        )
        == 0
    )
    found = pd.read_csv("p.csv", index_col=0)
    assert list(found.columns) == ["u / kg", "v / %"]
    np.testing.assert_allclose(found.to_numpy(), expected(), rtol=1e-9)


def test_text_in_another_encoding_and_blank_cells_are_told_in_words(folder, capfd):
    (folder / "latin.csv").write_bytes("a,Rühren\n1,2\n3,4\n".encode("latin-1"))
    told = fails(capfd, 3, "fit", "latin.csv", "--outputs", "a", *FIT)
    assert "latin.csv cannot be read: its text is not in UTF-8; save it as UTF-8" in told
    (folder / "blank.csv").write_text("a,b\n1,2\n3,\n", encoding="utf-8")
    told = fails(capfd, 3, "fit", "blank.csv", "--outputs", "b", *FIT)
    assert told.endswith("line 3, column 2 (b): the cell is blank")


def test_as_many_parameters_as_coefficients_are_not_called_fewer(folder, capfd):
    assert main(["fit", "X.csv", "Y.csv", *FIT]) == 0
    assert "parameters   8 of 8\n" in capfd.readouterr().out


def test_labels_that_are_not_there_are_told_with_each_column_once(folder, capfd):
    told = fails(capfd, 3, "fit", "all.csv", "--outputs", "u", "--index-col", "date", *FIT)
    assert told.endswith("the columns are day, a, b, c, d, u, v, site")
    assert (
        main(["fit", "all.csv", "--index-col", "day", "--inputs", "a:d", "--outputs", "u", *FIT])
        == 0
    )
    a_table()[list("abc")].to_csv("new.csv")
    told = fails(capfd, 3, "predict", "m", "new.csv", "-o", "p.csv")
    assert told.endswith("missing 'd'; not known 'day' (see --inputs, --index-col and --header)")


def test_a_separator_is_one_character(folder, capfd):
    assert "single character" in fails(capfd, 2, "fit", "X.csv", "Y.csv", "--sep", ";;", *FIT)


# ---------------------------------------------------------------- headers


def test_names_that_are_numbers_must_be_said_to_be_names(folder, capfd):
    X, Y = a_table()[list("abcd")], a_table()[list("uv")]
    X.set_axis([2001, 2002, 2003, 2004], axis=1).to_csv("x.csv", index=False)
    Y.set_axis([0, 1], axis=1).to_csv("y.csv", index=False)
    told = "x.csv cannot be read: line 1 (2001, 2002, 2003, ...) may be names or numbers: use"
    assert told in fails(capfd, 3, "fit", "x.csv", "y.csv", *FIT)
    assert main(["fit", "x.csv", "y.csv", "--header", "1", *FIT]) == 0
    assert list(holrr.load("m").feature_names_in_) == ["2001", "2002", "2003", "2004"]
    np.testing.assert_allclose(predicted("x.csv", "--header", "1"), expected(), rtol=1e-12)
    assert main(["fit", "x.csv", "y.csv", "--header", "0", *FIT]) == 0
    assert "samples      25" in _info(capfd)


NUMBERS = {
    "wavelengths": [400.5, 401.25, 403.0, 405.5],
    "falling": [9.5, 8.25, 7.5, 6.0],
    "codes": [101, 205, 117, 42],
}


@pytest.mark.parametrize("names", NUMBERS)
def test_a_header_of_numbers_is_not_read_as_data(folder, capfd, names):
    X, Y = a_table()[list("abcd")].set_axis(NUMBERS[names], axis=1), a_table()[list("uv")]
    X.to_csv("x.csv", index=False)
    told = fails(capfd, 3, "fit", "x.csv", "Y.csv", *FIT)
    assert "may be names or numbers: use --header 1 for names, --header 0 for numbers" in told
    assert main(["fit", "x.csv", "Y.csv", "--header", "1", *FIT]) == 0
    assert list(holrr.load("m").feature_names_in_) == list(map(str, NUMBERS[names]))
    # As pandas and R write the labels of rows: above them is nothing.
    X.set_axis([f"run {i}" for i in range(N)]).to_csv("x.csv")
    Y.set_axis([f"run {i}" for i in range(N)]).to_csv("y.csv")
    assert main(["fit", "x.csv", "y.csv", *FIT]) == 0
    assert list(holrr.load("m").feature_names_in_) == list(map(str, NUMBERS[names]))


def test_tables_without_a_header_are_not_asked_about(folder):
    """Numbers of which the first line is like the others, however they are drawn."""
    rng = np.random.default_rng(0)
    draws = (
        lambda: rng.normal(size=(N, 4)),
        lambda: rng.normal(size=(N, 4)).cumsum(axis=0),
        lambda: rng.integers(0, 9, size=(N, 3)).astype(float),
        lambda: np.sort(rng.random((N, 5)), axis=1),
        lambda: np.arange(N)[:, None] + np.arange(4) / 7,  # a trend, along rows and columns
    )
    np.save("Y.npy", rng.normal(size=N))
    for draw in draws:
        for _ in range(15):
            np.savetxt("x.csv", draw(), delimiter=",", fmt="%.6g")
            assert main(["fit", "x.csv", "Y.npy", *FIT]) == 0  # all lines are samples


def _info(capfd):
    capfd.readouterr()
    assert main(["info", "m"]) == 0
    return capfd.readouterr().out


def test_whole_numbers_that_count_are_data_where_all_lines_are_whole(folder):
    np.savetxt("x.csv", np.arange(2 * N).reshape(N, 2), delimiter=",", fmt="%d")
    assert main(["fit", "x.csv", "Y.csv", *FIT]) == 0
    assert not hasattr(holrr.load("m"), "feature_names_in_")


def test_a_header_of_names_and_numbers_needs_the_header_option(folder, capfd):
    a_table()[list("abcd")].set_axis(["a", "b", "c", "2004"], axis=1).to_csv("x.csv", index=False)
    assert "use --header 1 if line 1 is a header" in fails(capfd, 3, "fit", "x.csv", "Y.csv", *FIT)
    assert main(["fit", "x.csv", "Y.csv", "--header", "1", *FIT]) == 0
    assert main(["fit", "X.csv", "x.csv", "--header", "1,1", *FIT]) == 0


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("depths", [["top", "deep"], [10, 20]])
def test_two_lines_of_names_are_two_modes(folder, index, depths):
    columns = pd.MultiIndex.from_product([["north", "south"], depths], names=["site", "depth"])
    rng = np.random.default_rng(0)
    table = a_table()
    Y = table[list("abcd")].to_numpy() @ rng.normal(size=(4, 4))
    y = pd.DataFrame(Y, index=table.index, columns=columns)
    y.to_csv("y.csv", index=index)
    words = ["all.csv", "y.csv", "--inputs", "a:d", "--header", "1,2"]
    words += ["--index-col", "0"] if index else ["--index-col", "day"][:0]
    if not index:
        words[0] = "X.csv"
    assert main(["fit", *words, *FIT]) == 0
    assert holrr.load("m").intercept_.shape == (2, 2)
    words = ["predict", "m", words[0], "--inputs", "a:d", *(["--index-col", "0"] * index)]
    assert main([*words, "-o", "P.csv"]) == 0
    found = pd.read_csv("P.csv", header=[0, 1], index_col=0 if index else None)
    assert [tuple(map(str, c)) for c in found.columns] == [tuple(map(str, c)) for c in columns]
    assert main([*words, "-o", "P.npy"]) == 0
    np.testing.assert_allclose(np.load("P.npy").reshape(N, 4), found.to_numpy(), rtol=1e-12)
    by_hand = holrr.HOLRR(alpha=1).fit(table[list("abcd")], y).predict(table[list("abcd")])
    np.testing.assert_allclose(found.to_numpy(), by_hand.to_numpy(), rtol=1e-9)


# ---------------------------------------------------------------- labels of rows


def test_labels_of_rows_go_into_the_predictions(folder):
    words = ["all.csv", "--index-col", "day", "--inputs", "a:d"]
    assert main(["fit", *words, "--outputs", "u,v", *FIT]) == 0
    assert main(["predict", "m", *words, "-o", "P.csv"]) == 0
    found = pd.read_csv("P.csv", index_col="day", parse_dates=True)
    assert list(found.columns) == ["u", "v"]
    assert (found.index == a_table().index).all()
    np.testing.assert_allclose(found.to_numpy(), expected(), rtol=1e-12)
    again = holrr.load("m").predict(a_table()[list("abcd")])
    pd.testing.assert_frame_equal(found, again, check_freq=False, check_exact=False)


@pytest.mark.parametrize("suffix", ["tsv", "xlsx", "parquet", "feather", "nc"])
def test_labels_and_names_in_every_format(folder, suffix):
    words = ["all.csv", "--index-col", "day", "--inputs", "a:d"]
    assert main(["fit", *words, "--outputs", "u,v", *FIT]) == 0
    assert main(["predict", "m", *words, "-o", f"P.{suffix}"]) == 0
    read = {
        "tsv": lambda name: pd.read_csv(name, sep="\t", index_col="day", parse_dates=True),
        "xlsx": lambda name: pd.read_excel(name, index_col="day"),
        "parquet": pd.read_parquet,
        "feather": lambda name: pd.read_feather(name).set_index("day"),
        "nc": lambda name: pytest.importorskip("xarray").open_dataarray(name).to_pandas(),
    }
    found = read[suffix](f"P.{suffix}")
    assert list(found.columns) == ["u", "v"]
    assert (pd.to_datetime(found.index) == a_table().index).all()
    np.testing.assert_allclose(found.to_numpy(), expected(), rtol=1e-12)


def test_a_first_column_without_a_name_has_the_labels(folder):
    """As pandas and R write them."""
    a_table()[list("abcd")].rename_axis(None).to_csv("x.csv")
    a_table()[list("uv")].set_axis([0, 1], axis=1).rename_axis(None).to_csv("y.csv")
    assert main(["fit", "x.csv", "y.csv", *FIT]) == 0
    assert list(holrr.load("m").feature_names_in_) == list("abcd")
    np.testing.assert_allclose(predicted("x.csv"), expected(), rtol=1e-12)


def test_rows_with_other_labels_are_refused(folder, capfd):
    a_table()[list("abcd")].to_csv("x.csv")
    a_table()[list("uv")].shift(1, freq="D").to_csv("y.csv")
    told = fails(capfd, 3, "fit", "x.csv", "y.csv", "--index-col", "day", *FIT)
    assert "the rows of x.csv and y.csv have different labels: sample 1 is 2020-01-01" in told
    assert "00 in x.csv and 2020-01-02 00:00:00 in y.csv; put their rows in one order" in told
    assert not re.search(r"numpy|\.loc|\.index", told)
    assert main(["fit", "x.csv", "Y.csv", "--index-col", "day", *FIT]) == 0
    assert fails(capfd, 3, "score", "m", "x.csv", "y.csv", "--index-col", "day").endswith(
        told.removeprefix("holrr fit")
    )
    a_table()[list("uv")].shift(99, freq="D").to_csv("y.csv")
    told = fails(capfd, 3, "fit", "x.csv", "y.csv", "--index-col", "day", *FIT)
    assert "no label is in both files (rows are paired by position where only one" in told
    told = fails(capfd, 3, "fit", "x.csv", "y.csv", "--index-col", "date", *FIT)
    assert "--index-col: there is no column 'date'; the columns are day, a, b, c, d" in told


@pytest.mark.parametrize("labelled", ["X", "Y"])
def test_labels_in_one_of_two_tables_are_those_of_both(folder, labelled):
    table = a_table()
    table[list("abcd")].to_csv("x.csv", index=labelled == "X")
    table[list("uv")].to_csv("y.csv", index=labelled == "Y")
    assert main(["fit", "x.csv", "y.csv", "--index-col", "day", *FIT]) == 0
    assert list(holrr.load("m").feature_names_in_) == list("abcd")
    np.testing.assert_allclose(predicted("X.csv"), expected(), rtol=1e-12)


# ---------------------------------------------------------------- some of the columns


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        ("a,b,c,d", "u,v"),
        ("a:d", "u:v"),
        ("[a-d]", "[uv]"),
        ("a:c,d", None),
        (None, "u,v"),
    ],
)
def test_inputs_and_outputs_are_columns_of_one_table(folder, inputs, outputs):
    words = ["fit", "all.csv", "--index-col", "day"]
    words += [] if inputs is None else ["--inputs", inputs]
    words += [] if outputs is None else ["--outputs", outputs]
    assert main([*words, "--groups", "site", "--cv", "3", *FIT]) == 0
    model = holrr.load("m")
    assert list(model.feature_names_in_) == list("abcd")
    found = predicted("all.csv", "--index-col", "day", "--inputs", "a:d")
    np.testing.assert_allclose(found, expected(), rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["all.csv"], 2, "Y is missing"),
        (["X.npy", "--inputs", "a"], 2, "Y is missing"),
        (["X.npy", "Y.csv", "--inputs", "a"], 2, "X.npy is not a table"),
        (["X.csv", "X.npy", "--outputs", "a"], 2, "X.npy is not a table"),
        (
            ["all.csv", "--outputs", "w"],
            3,
            "--outputs: there is no column 'w'; the columns are day, a, b",
        ),
        (["all.csv", "--inputs", "a:w"], 3, "--inputs: there is no column 'a:w'"),
        (["all.csv", "--inputs", "a,b", "--outputs", "b,u"], 3, "both inputs and outputs: b"),
        (["all.csv", "--inputs", "*"], 3, "no column is left for the outputs"),
        (["all.csv", "--outputs", "u,v"], 3, "columns that are not numeric: day, site"),
        (
            ["all.csv", "--outputs", "u,site", "--inputs", "a"],
            3,
            "columns that are not numeric: site",
        ),
    ],
)
def test_columns_that_cannot_be_are_named(folder, capfd, words, code, told):
    np.save("X.npy", a_table()[list("abcd")].to_numpy())
    assert told in fails(capfd, code, "fit", *words, *FIT)


# ---------------------------------------------------------------- folds


@pytest.mark.parametrize("given", ["site", "groups.csv", "groups.npy"])
def test_groups_are_a_column_or_a_file(folder, given):
    from sklearn.model_selection import GroupKFold

    t = a_table()
    t[["site"]].to_csv("groups.csv", index=False)
    np.save("groups.npy", np.arange(N) % 6)
    words = ["all.csv", "--inputs", "a:d", "--outputs", "u:v", "--cv", "3", "--groups", given]
    assert main(["fit", *words, "-o", "m"]) == 0
    groups = np.arange(N) % 6 if given.endswith("npy") else t.site
    by_hand = holrr.HOLRRCV(cv=GroupKFold(3))
    by_hand.fit(t[list("abcd")].to_numpy(), t[list("uv")].to_numpy(), groups=groups)
    assert holrr.load("m").best_score_ == pytest.approx(by_hand.best_score_)


@pytest.mark.parametrize("files", ["X", "Y", "both"])
def test_groups_may_be_a_column_of_either_file(folder, files):
    """It is neither an input nor an output then."""
    t = a_table()
    code = t.assign(site=np.arange(N) % 6)
    code[list("abcd") + ["site"] * (files != "Y")].to_csv("x.csv", index=False)
    code[list("uv") + ["site"] * (files != "X")].to_csv("y.csv", index=False)
    assert main(["fit", "x.csv", "y.csv", "--cv", "3", "--groups", "site", "-o", "m"]) == 0
    assert main(["fit", "X.csv", "Y.csv", "--cv", "3", "--groups", "x.csv", "-o", "n"]) == 3
    np.save("groups.npy", np.arange(N) % 6)
    assert main(["fit", "X.csv", "Y.csv", "--cv", "3", "--groups", "groups.npy", "-o", "n"]) == 0
    found, by_file = holrr.load("m"), holrr.load("n")
    assert list(found.feature_names_in_) == list("abcd")
    assert found.tucker_.shape == (4, 2)
    assert found.best_score_ == by_file.best_score_


def test_folds_are_five_where_their_number_is_not_given(folder, capfd):
    assert main(["fit", "X.csv", "Y.csv", "--alpha", "0.1,1", "--cv", "-o", "m"]) == 0
    assert "(5-fold cross-validation)" in capfd.readouterr().out


def test_a_share_of_the_energy_is_refused_before_anything_is_read(folder, capfd):
    words = ["fit", "none.csv", "none.csv", "--rank", "0.9", "--cv", "3", "-o", "m"]
    assert "is a share of the energy" in fails(capfd, 2, *words)


def test_time_series_are_held_out_later(folder, capfd):
    from sklearn.model_selection import TimeSeriesSplit

    t = a_table()
    assert main(["fit", "X.csv", "Y.csv", "--time-series", "--cv", "3", "-o", "m"]) == 0
    assert "(3-fold cross-validation by time)" in capfd.readouterr().out
    by_hand = holrr.HOLRRCV(cv=TimeSeriesSplit(3)).fit(t[list("abcd")], t[list("uv")])
    # The data have no noise: at the least penalties there is rounding only.
    assert holrr.load("m").held_out_mse_ == pytest.approx(by_hand.held_out_mse_, 1e-6, 1e-9)


@pytest.mark.parametrize("words", [["--groups", "groups.npy"], ["--time-series"]])
def test_cv_without_a_number_means_five_folds(folder, words):
    np.save("groups.npy", np.arange(N) % 6)
    assert main(["fit", "X.csv", "Y.csv", "--alpha", "1", *words, "-o", "m"]) == 0
    assert holrr.load("m").cv.get_n_splits(groups=np.arange(6)) == 5


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (
            ["--groups", "site", "--time-series"],
            2,
            "--groups cannot be combined with --time-series",
        ),
        (["--groups", "sight"], 3, "'sight' is neither a column or coordinate of X.csv or Y.csv"),
        (["--groups", "short.csv"], 3, "groups must have one entry for each of the 24"),
        (["--groups", "Y.csv"], 3, "Y.csv must have one column; it has 2"),
        (["--rank", "0.9", "--cv", "3"], 2, "--rank 0.9 is a share of the energy, and cross-"),
        (["--rank", "3,0.9", "--cv"], 2, "leave out --rank to compare all ranks"),
        (["--rank", "0.9", "--groups", "site"], 2, "--rank 4,3,3; or leave out --groups"),
    ],
)
def test_folds_that_cannot_be_are_refused(folder, capfd, words, code, told):
    (folder / "short.csv").write_text("group\n1\n2\n")
    assert told in fails(capfd, code, "fit", "X.csv", "Y.csv", *words, "-o", "m")


# ---------------------------------------------------------------- without pandas


@pytest.mark.clean_environment
def test_without_pandas_names_of_columns_still_count(folder):
    """In a process of its own, where the import fails."""
    a_table()[list("dcba")].to_csv("R.csv", index=False)
    code = (
        "import sys\n"
        "class Without:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'pandas':\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Without())\n"
        "from holrr.cli import main; sys.exit(main({}))"
    )

    def call(*words):
        command = [sys.executable, "-c", code.format(list(words))]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    for words in (["--alpha", "1"], ["--cv", "3", "--alpha", "1"]):
        done = call("fit", "X.csv", "Y.csv", *words, "-o", "m")
        assert done.returncode == 0, done.stderr
        assert list(holrr.load("m").feature_names_in_) == list("abcd")
        done = call("predict", "m", "R.csv", "-o", "R.csv.npy")
        assert (done.returncode, done.stderr.count("\n")) == (0, 1), done.stderr
        assert "put in the order of the fit" in done.stderr
        np.testing.assert_allclose(np.load("R.csv.npy"), expected(), rtol=1e-6)
        assert call("predict", "m", "X.csv", "-o", "P.csv").returncode == 0
        np.testing.assert_allclose(np.loadtxt("P.csv", delimiter=","), expected(), rtol=1e-6)
        done = call("predict", "m", "Y.csv", "-o", "P.csv")
        assert "missing 'a', 'b', 'c', 'd'; not known 'u', 'v'" in done.stderr
    a_table().to_parquet("X.parquet")
    done = call("predict", "m", "X.parquet", "-o", "P.csv")
    assert (done.returncode, done.stderr.count("\n")) == (5, 1)
    assert 'pip install "holrr[table]"' in done.stderr


def test_without_the_package_for_a_format_the_message_names_it(folder, capfd, monkeypatch):
    a_table()[list("abcd")].to_excel("x.xlsx", index=False)
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    assert "openpyxl" in fails(capfd, 5, "fit", "x.xlsx", "Y.csv", *FIT)


# ---------------------------------------------------------------- missing outputs


@pytest.mark.parametrize("mark", ["", "NA", "nan", "-"])
@pytest.mark.parametrize("one", [True, False])
def test_blank_outputs_are_missing_with_missing_ignore(folder, capfd, mark, one):
    table = a_table()
    table.iloc[[3, 7], 4] = np.nan
    table.to_csv("all.csv", na_rep=mark)
    table[list("uv")].to_csv("Y.csv", index=False, na_rep=mark)
    words = ["all.csv", "--inputs", "a:d", "--outputs", "u,v"] if one else ["X.csv", "Y.csv"]
    fit = ["fit", *words, *FIT, "--model", "rls"]
    assert main([*fit, "--missing", "ignore"]) == 0
    inputs, outputs = table[list("abcd")], table[list("uv")]
    model = holrr.RLS(alpha=1, missing="ignore").fit(inputs, outputs)
    np.testing.assert_allclose(predicted("X.csv"), model.predict(inputs), rtol=1e-10)
    assert main(["score", "m", *words]) == 0
    assert f"{model.score(inputs, outputs):.3f}"[:4] in capfd.readouterr().out
    error = fails(capfd, 3, *fit)
    assert "line 5" in error or "--missing ignore" in error


def test_a_fit_with_missing_outputs_shows_no_certificate(folder, capfd):
    table = a_table()
    table.iloc[[3, 7], 4] = np.nan
    table[list("uv")].to_csv("Y.csv", index=False)
    assert main(["fit", "X.csv", "Y.csv", *FIT, "--rank", "1", "--missing", "ignore"]) == 0
    assert "certificate" not in capfd.readouterr().out


def test_the_old_name_of_missing_ignore_works_with_a_note(folder, capfd):
    assert main(["fit", "X.csv", "Y.csv", *FIT, "--missing", "fill"]) == 0
    assert "--missing fill is now called --missing ignore" in capfd.readouterr().err
    assert holrr.load("m").missing == "ignore"


def test_blank_inputs_stay_an_error(folder, capfd):
    table = a_table()
    table.iloc[3, 0] = np.nan
    table[list("abcd")].to_csv("x.csv", index=False)
    words = ["fit", "x.csv", "Y.csv", *FIT, "--missing", "ignore"]
    assert "line 5, column 1 (a): the cell is blank" in fails(capfd, 3, *words)


def test_models_that_cannot_ignore_missing_outputs_are_refused(folder, capfd):
    words = ["fit", "X.csv", "Y.csv", "--model", "kernel-rls", "-o", "m", "--missing", "ignore"]
    assert "kernel-rls does not support this option; holrr, lrr, rls do" in fails(capfd, 2, *words)


# ---------------------------------------------------------------- sheets of a workbook


def test_an_empty_sheet_is_named_with_those_that_are_not(folder, capfd):
    pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    with pd.ExcelWriter("book.xlsx") as book:
        pd.DataFrame().to_excel(book, sheet_name="Notes", index=False)
        a_table()[list("abcd")].to_excel(book, sheet_name="Data", index=False)
        a_table()[:0].to_excel(book, sheet_name="Plan", index=False)
    told = fails(capfd, 3, "fit", "book.xlsx", "Y.csv", *FIT)
    assert "book.xlsx: the sheet 'Notes' is empty; write book.xlsx:SHEET, where SHEET is" in told
    assert told.endswith("one of Data, Plan")
    told = fails(capfd, 3, "fit", "book.xlsx:data", "Y.csv", *FIT)
    assert "there is no sheet 'data'; write book.xlsx:SHEET" in told
    told = fails(capfd, 3, "fit", "book.xlsx:Plan", "Y.csv", *FIT)
    assert "the sheet 'Plan' has names of columns but no numbers" in told
    assert main(["fit", "book.xlsx:Data", "Y.csv", *FIT]) == 0
    pd.DataFrame().to_excel("none.xlsx")
    assert fails(capfd, 3, "fit", "none.xlsx", "Y.csv", *FIT).endswith("all sheets are empty")
