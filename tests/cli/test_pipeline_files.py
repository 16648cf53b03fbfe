"""Pipelines that were saved in Python, on the command line."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from commands import fails
from holrr import HOLRR, save
from holrr.cli import main
from holrr.datasets import make_tensor_regression

pd = pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, Y = make_tensor_regression(60, 4, (2, 3), rank=(2, 2, 2), snr=3, random_state=0)
    np.save("Y.npy", Y)
    return pd.DataFrame(3 + 2 * X, columns=list("abcd"))


def test_columns_are_found_by_the_names_of_the_first_step(table, capfd):
    columns = ColumnTransformer([("a", StandardScaler(), ["a", "b"]), ("b", MinMaxScaler(), ["d"])])
    pipeline = make_pipeline(columns, HOLRR(rank=2)).fit(table, np.load("Y.npy"))
    save(pipeline, "m")
    table[["d", "c", "b", "a"]].to_csv("X.csv", index=False)
    assert main(["predict", "m", "X.csv", "-o", "P.npy"]) == 0
    np.testing.assert_allclose(np.load("P.npy"), pipeline.predict(table), rtol=1e-9)
    assert main(["score", "m", "X.csv", "Y.npy"]) == 0
    assert "R2" in capfd.readouterr().out
    assert main(["info", "m"]) == 0
    shown = capfd.readouterr().out
    assert "preprocessing  ColumnTransformer" in shown
    assert "HOLRR" in shown


def test_arrays_need_no_names(table):
    x, y = table.to_numpy(), np.load("Y.npy")
    pipeline = make_pipeline("passthrough", StandardScaler(), HOLRR(rank=2)).fit(x, y)
    save(pipeline, "m")
    np.save("X.npy", x)
    assert main(["predict", "m", "X.npy", "-o", "P.npy"]) == 0
    np.testing.assert_array_equal(np.load("P.npy"), pipeline.predict(x))


def test_pipelines_that_take_text_are_for_python(table, capfd):
    table["place"] = np.resize(["u", "v"], len(table))
    columns = ColumnTransformer([("text", OneHotEncoder(), ["place"])], remainder="passthrough")
    save(make_pipeline(columns, HOLRR(rank=2)).fit(table, np.load("Y.npy")), "m")
    table.to_csv("X.csv", index=False)
    error = fails(capfd, 3, "predict", "m", "X.csv", "-o", "P.npy")
    assert "a pipeline for text" in error
    assert main(["info", "m"]) == 0
