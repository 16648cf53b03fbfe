"""Importance of inputs and SHAP values: the formulas of docs/model_explanation.md, and its code."""

from __future__ import annotations

import doctest
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.inspection import permutation_importance

from holrr import HOLRR, HOLRRCV, LRR, RLS, RLSCV, TraceNormRegression
from problems import toy

PAGE = Path(__file__).resolve().parents[1] / "docs" / "model_explanation.md"
MODELS = [RLS(), LRR(2), HOLRR(2), HOLRRCV(cv=3), RLSCV([1.0], cv=3), TraceNormRegression()]
over_models = pytest.mark.parametrize("model", MODELS, ids=str)


def data():
    X, Y = toy(n=90, noise=1.0)
    X[:, 1] += 0.8 * X[:, 0]  # inputs that go together
    X *= 2.0 ** np.arange(X.shape[1])  # in different units
    return X, Y


@pytest.mark.filterwarnings("ignore:The best penalty")
@over_models
@pytest.mark.parametrize("held_out", [False, True])
def test_permutation_importance_has_the_expectation_of_the_formula(model, held_out):
    X, Y = data()
    model.fit(X[:60], Y[:60])
    X, Y = (X[60:], Y[60:]) if held_out else (X[:60], Y[:60])
    centred, residual = X - X.mean(axis=0), Y - model.predict(X)
    spread = np.square(centred).sum(axis=0) * model.feature_importances_**2
    left = np.einsum("ni,nsm,ism->i", centred, residual, model.coef_)
    expected = 2 * (spread + left) / np.square(Y - Y.mean(axis=0)).sum()
    found = permutation_importance(model, X, Y, n_repeats=200, random_state=0)
    error = found.importances_std / np.sqrt(200)
    assert (np.abs(found.importances_mean - expected) < 5 * error).all()
    assert expected.max() > 20 * error.max()


@pytest.mark.filterwarnings("ignore:The best penalty")
@over_models
def test_deviations_times_coefficients_add_up_to_predictions(model):
    X, Y = data()
    model.fit(X, Y)
    values = (X - X.mean(axis=0))[:, :, None, None] * model.coef_
    base = model.predict(X).mean(axis=0)
    assert_allclose(base + values.sum(axis=1), model.predict(X), atol=1e-9)


# ---------------------------------------------------------------- the code of the page


@pytest.fixture
def names(tmp_path, monkeypatch):
    """What the blocks of the page that need no other library leave."""
    monkeypatch.chdir(tmp_path)
    found: dict = {}
    blocks = "\n".join(re.findall(r"```pycon\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL))
    test = doctest.DocTestParser().get_doctest(blocks, found, PAGE.name, str(PAGE), 0)
    doctest.DocTestRunner().run(test, clear_globs=False, out=lambda text: None)
    return test.globs


def blocks():
    found = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), flags=re.DOTALL)
    assert len(found) == 3
    return found


def test_shap_gives_the_values_of_the_page(names):
    pytest.importorskip("shap", reason="shap is not installed")
    exec(blocks()[0], names)
    assert names["every"].values.shape == (100, 6, 20)


def test_shap_takes_models_with_flat_outputs(names):
    shap = pytest.importorskip("shap", reason="shap is not installed")
    X, Y = data()
    model = HOLRR(2, output_shape=Y.shape[1:]).fit(X, Y.reshape(len(Y), -1))
    explained = shap.LinearExplainer(model, shap.maskers.Independent(X, max_samples=len(X)))(X)
    assert_allclose(explained.base_values + explained.values.sum(axis=1), model.predict(X))


def test_mlflow_serves_a_file_without_code(names, tmp_path):
    pytest.importorskip("mlflow", reason="mlflow is not installed")
    _, script, serve = blocks()
    (tmp_path / "tensor_model.py").write_text(script)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow asks for examples and types
        exec(serve, names)
    files = {path.name for path in (tmp_path / "served").rglob("*") if path.is_file()}
    assert {"model.holrr", "tensor_model.py", "MLmodel"} <= files
    assert not any(name.endswith((".pkl", ".pickle", ".joblib")) for name in files)
    with pytest.raises(Exception, match=r"shape"):
        names["served"].predict(np.ones((2, 7)))
