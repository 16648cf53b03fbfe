"""Which columns belong to which block, from all that `blocks` can be."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from holrr import RLS, RLSCV, load, save

rng = np.random.default_rng(0)
N = 30
Y = rng.normal(size=(N, 2, 3))


def columns_of(model):
    return {name: columns.tolist() for name, columns in model.blocks_.items()}


@pytest.mark.parametrize(
    "blocks",
    [
        {"a": [0, 1], "b": [2, 3, 4]},
        {"a": [-5, 1], "b": slice(2, None)},
        {"a": [True, True, False, False, False], "b": np.array([2, 3, 4])},
        ["a", "a", "b", "b", "b"],
        np.array(["a", "a", "b", "b", "b"]),
    ],
)
def test_blocks_of_a_matrix(blocks):
    X = rng.normal(size=(N, 5))
    assert columns_of(RLS(blocks=blocks).fit(X, Y)) == {"a": [0, 1], "b": [2, 3, 4]}


def test_lists_of_columns_are_counted():
    model = RLS(blocks=[[0, 1], [2, 3, 4]]).fit(rng.normal(size=(N, 5)), Y)
    assert columns_of(model) == {"0": [0, 1], "1": [2, 3, 4]}


def test_blocks_by_names_of_columns():
    table = pd.DataFrame(rng.normal(size=(N, 4)), columns=["x", "y", "u", "v"])
    model = RLS(blocks={"wind": ["u", "v"], "place": ["x", "y"]}).fit(table, Y)
    assert columns_of(model) == {"place": [0, 1], "wind": [2, 3]}


def test_prefixes_of_a_column_transformer_are_blocks():
    table = pd.DataFrame({"t": rng.normal(size=N), "day": list("abc") * 10})
    change = ColumnTransformer(
        [("num", StandardScaler(), ["t"]), ("cat", OneHotEncoder(sparse_output=False), ["day"])]
    )
    X = change.set_output(transform="pandas").fit_transform(table)
    for blocks in ("auto", "prefix"):
        assert columns_of(RLS(blocks=blocks).fit(X, Y)) == {"num": [0], "cat": [1, 2, 3]}


def test_a_level_of_the_columns():
    columns = pd.MultiIndex.from_product([[1, 2], ["t", "p", "q"]], names=["lag", "variable"])
    table = pd.DataFrame(rng.normal(size=(N, 6)), columns=columns)
    assert columns_of(RLS(blocks="lag").fit(table, Y)) == {"1": [0, 1, 2], "2": [3, 4, 5]}
    shuffled = table[[columns[k] for k in (3, 0, 5, 1, 2, 4)]]
    assert columns_of(RLS(blocks="lag").fit(shuffled, Y)) == {"2": [0, 2, 5], "1": [1, 3, 4]}


def test_entries_along_a_mode():
    X = xr.DataArray(
        rng.normal(size=(N, 2, 3)), dims=("time", "lag", "cell"), coords={"lag": [1, 2]}
    )
    assert columns_of(RLS(blocks="lag").fit(X, Y)) == {"1": [0, 1, 2], "2": [3, 4, 5]}
    assert columns_of(RLS(blocks="cell").fit(X, Y)) == {"0": [0, 3], "1": [1, 4], "2": [2, 5]}


def test_variables_of_a_dataset_and_entries_of_a_dict():
    parts = {"sst": rng.normal(size=(N, 2, 2)), "nao": rng.normal(size=N)}
    wanted = {"sst": [0, 1, 2, 3], "nao": [4]}
    assert columns_of(RLS(blocks="auto").fit(parts, Y)) == wanted
    data = xr.Dataset(
        {"sst": (("time", "lat", "lon"), parts["sst"]), "nao": ("time", parts["nao"])}
    )
    assert columns_of(RLS(blocks="auto").fit(data, Y)) == wanted
    assert columns_of(RLS(blocks={"all": ["nao", "sst"]}).fit(data, Y)) == {"all": [0, 1, 2, 3, 4]}
    # A mode of one variable: the other one is a block of its own.
    assert columns_of(RLS(blocks="lat").fit(data, Y)) == {"0": [0, 1], "1": [2, 3], "nao": [4]}


def test_penalties_alone_name_the_entries_of_a_dict():
    parts = {"sst": rng.normal(size=(N, 2, 2)), "nao": rng.normal(size=N)}
    model = RLS(alpha={"sst": 2.0, "nao": 0.5}).fit(parts, Y)
    assert model.block_alphas_ == {"sst": 2.0, "nao": 0.5}


def test_columns_without_any_value_are_left_out():
    X = rng.normal(size=(N, 5))
    X[:, 1] = np.nan
    model = RLS(blocks=list("aabbb"), input_shape=(5,)).fit(X, Y)
    assert columns_of(model) == {"a": [0], "b": [2, 3, 4]}
    with pytest.raises(ValueError, match="all inputs of block 'c' are missing"):
        RLS(blocks=list("acbbb"), input_shape=(5,)).fit(X, Y)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ({"a": [0, 1], "b": [2, 3]}, r"in no block: \[4\]"),
        ({"a": [0, 1], "b": [1, 2, 3, 4]}, "column 1 is in two blocks, 'a' and 'b'"),
        ({"a": [0, 1, 2, 3, 4], "b": []}, "block 'b' is empty"),
        ({"a": [0, 1], "b": [2, 3, 9]}, "block 'b' contains 9, which is not a column"),
        ({"a": [0, 1], "b": ["x"]}, "block 'b' contains 'x', which is not a column"),
        ({"a": [True, False]}, "mask of block 'a' has 2 entries, but X has 5"),
        ({"a": None, "b": [0, 1, 2, 3, 4]}, "block 'a' contains None"),
        ({1: [0, 1], "1": [2, 3, 4]}, "two blocks of the same name"),
        ({}, "blocks is empty"),
        (["a", "b"], "block label of each of the 5 columns"),
        ("lag", "'lag' is not a mode of X"),
        ("auto", "an X with blocks"),
        ("prefix", "X has no column names"),
    ],
)
@pytest.mark.parametrize("estimator", [RLS, RLSCV])
def test_invalid_blocks_raise_errors_that_name_them(estimator, blocks, message):
    with pytest.raises(ValueError, match=message):
        estimator(blocks=blocks).fit(rng.normal(size=(N, 5)), Y)


@pytest.mark.parametrize(
    ("alpha", "message"),
    [
        ({"a": 1.0}, r"no penalty for the blocks \['b'\]"),
        ({"a": 1.0, "b": 1.0, "c": 1.0}, "a penalty for 'c'"),
        ({"a": 1.0, "b": -1.0}, "-1.0 for block 'b'"),
        ({"a": 1.0, "b": np.nan}, "nan for block 'b'"),
        ({"a": 1.0, "b": "much"}, "'much' for block 'b'"),
        ({"a": np.inf, "b": np.inf}, "infinite for all blocks"),
    ],
)
def test_invalid_penalties_of_blocks_raise_errors_that_name_them(alpha, message):
    with pytest.raises(ValueError, match=message):
        RLS(alpha, blocks=list("abb")).fit(rng.normal(size=(N, 3)), Y)


def test_columns_that_are_numbers_are_found_by_their_labels():
    table = pd.DataFrame(rng.normal(size=(N, 4)), columns=[2, 3, 0, 1])
    model = RLS(blocks={"a": [0, 1], "b": [2, 3]}).fit(table, Y)
    assert columns_of(model) == {"b": [0, 1], "a": [2, 3]}


def test_columns_of_several_levels_are_found_by_their_tuples():
    columns = pd.MultiIndex.from_product([["t", "p"], [1, 2]])
    table = pd.DataFrame(rng.normal(size=(N, 4)), columns=columns)
    model = RLS(blocks={"a": [("t", 1), ("p", 2)], "b": [("t", 2), ("p", 1)]}).fit(table, Y)
    assert columns_of(model) == {"a": [0, 3], "b": [1, 2]}


def test_labels_with_the_modes_of_the_inputs():
    X = rng.normal(size=(N, 2, 3))
    assert columns_of(RLS(blocks=np.array([list("aab")] * 2)).fit(X, Y)) == {
        "a": [0, 1, 3, 4],
        "b": [2, 5],
    }


def test_names_that_are_the_same_as_text_are_refused():
    X = rng.normal(size=(N, 3))
    with pytest.raises(ValueError, match="blocks has two blocks of the same name"):
        RLS(blocks=[1, "1", 2]).fit(X, Y)
    with pytest.raises(ValueError, match="alpha has two blocks of the same name"):
        RLS({1: 1.0, "1": 2.0}, blocks=[1, 1, 1]).fit(X, Y)
    data = xr.Dataset(
        {"a": (("time",), X[:, 0]), "p": (("time", "st"), X[:, 1:])}, coords={"st": ["a", "b"]}
    )
    with pytest.raises(
        ValueError, match="'a' is a label along this mode, and the name of a variable"
    ):
        RLS(blocks="st").fit(data, Y)


def test_a_series_of_penalties():
    X = rng.normal(size=(N, 3))
    series = RLS(pd.Series({"a": 1.0, "b": 5.0}), blocks=list("aab")).fit(X, Y)
    plain = RLS({"a": 1.0, "b": 5.0}, blocks=list("aab")).fit(X, Y)
    assert series.block_alphas_ == plain.block_alphas_
    np.testing.assert_array_equal(series.predict(X), plain.predict(X))


def test_a_series_of_labels_is_put_in_the_order_of_the_columns():
    X = pd.DataFrame(rng.normal(size=(N, 4)), columns=list("wxyz"))
    labels = pd.Series({"z": "late", "w": "early", "y": "late", "x": "early"})
    known = {"early": [0, 1], "late": [2, 3]}
    assert columns_of(RLS(blocks=labels).fit(X, Y)) == known
    assert columns_of(RLS(blocks=labels[list("wxyz")].reset_index(drop=True)).fit(X, Y)) == known
    with pytest.raises(ValueError, match=r"at position 0 the index has 'a' and X has 'w'"):
        RLS(blocks=labels.set_axis(list("abcd"))).fit(X, Y)
    lists = pd.Series({"early": ["w", "x"], "late": ["y", "z"]})
    assert columns_of(RLS(blocks=lists).fit(X, Y)) == known


@pytest.mark.parametrize(
    "blocks",
    [
        {"a": slice(0, 2), "b": slice(2, None)},
        [slice(0, 2), slice(2, None)],
        {"a": pd.Index(["v", "w"]), "b": pd.Index(["x", "y", "z"])},
        {"a": pd.RangeIndex(2), "b": range(2, 5)},
        pd.Series(list("aabbb"), index=list("vwxyz")),
        pd.Series(list("aabbb"), index=list("vwxyz"), dtype="string"),
        pd.Series([1, 1, 2, 2, 2]),
        pd.Series({"a": ["v", "w"], "b": ["x", "y", "z"]}),
        pd.Categorical(list("aabbb")),
        {"a": pd.Series([True, True, False, False, False]), "b": [2, 3, 4]},
    ],
    ids=str,
)
def test_blocks_are_saved_with_the_model(blocks, tmp_path):
    X = pd.DataFrame(rng.normal(size=(N, 5)), columns=list("vwxyz"))
    model = RLS(blocks=blocks).fit(X, Y)
    save(model, tmp_path / "m")
    again = load(tmp_path / "m")
    assert columns_of(again) == columns_of(model)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert columns_of(clone(again).fit(X, Y)) == columns_of(model)
