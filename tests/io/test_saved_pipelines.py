"""Pipelines and searches of scikit-learn are the same after a file."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)

import holrr
import pipelines
from holrr import HOLRR, HOLRRCV, RLS, RLSCV
from holrr.data import Delayer, Standardizer
from holrr.io import TRUSTED
from problems import toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

X, Y = toy(n=30)
positive = np.exp(Y.reshape(30, -1) / 10)


def round_trip(value, tmp_path):
    holrr.save(value, tmp_path / "file")
    return holrr.load(tmp_path / "file")


@pytest.mark.parametrize("make", pipelines.PIPELINES)
def test_a_pipeline_is_the_same_after_a_file(make, tmp_path):
    objects, outputs = pipelines.objects()
    pipeline = make()
    assert repr(round_trip(pipeline, tmp_path)) == repr(pipeline)  # before it is fitted
    pipeline.fit(objects, outputs)
    again = round_trip(pipeline, tmp_path)
    assert repr(again) == repr(pipeline)
    for rows in (slice(None), slice(1), slice(7, 20)):
        found, expected = again.predict(objects[rows]), pipeline.predict(objects[rows])
        # Products with a component matrix of another memory layout differ in the last bit.
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(PCA(0.9), PolynomialFeatures(2), RLS()),
        make_pipeline(FeatureUnion([("a", PCA(2)), ("b", MinMaxScaler())]), HOLRR(2)),
        make_pipeline(Standardizer(), Delayer([0, 1, 3]), RLSCV(cv=3)),
        TransformedTargetRegressor(RLS(), func=np.log, inverse_func=np.exp),
        TransformedTargetRegressor(HOLRR(2), transformer=StandardScaler()),
        GridSearchCV(HOLRR(), {"alpha": [0.1, 1.0]}, cv=KFold(3, shuffle=True, random_state=0)),
        GridSearchCV(
            make_pipeline(StandardScaler(), RLS()), {"rls__alpha": [0.1, 1.0]}, scoring="r2", cv=3
        ),
        GridSearchCV(
            RLS(), {"alpha": [1.0]}, scoring="neg_mean_squared_error", cv=TimeSeriesSplit(2)
        ),
        BaggingRegressor(RLS(), n_estimators=2, random_state=0),
        HOLRRCV(cv=TimeSeriesSplit(3)),
        RLSCV(cv=GroupKFold(3)),
        Ridge(),
    ],
    ids=lambda model: " ".join(repr(model).split()),
)
def test_estimators_around_and_beside_a_model(model, tmp_path):
    groups = (
        {"groups": np.arange(30) % 3} if isinstance(getattr(model, "cv", 0), GroupKFold) else {}
    )
    model.fit(X, positive, **groups)
    again = round_trip(model, tmp_path)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    if not groups:  # the parameters are complete
        np.testing.assert_array_equal(again.fit(X, positive).predict(X), model.predict(X))


def test_tables_and_their_names(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    objects, outputs = pipelines.objects()
    table = pd.DataFrame(objects, columns=list("abcdefg")).astype(dict.fromkeys("abcd", float))
    columns = [
        ("imputed", SimpleImputer(), ["a"]),
        ("span", StandardScaler(), slice("b", "d")),
        ("text", OneHotEncoder(sparse_output=False), ["g"]),
    ]
    selected = ("numbers", MinMaxScaler(), make_column_selector(dtype_include=float))
    for made in (
        ColumnTransformer(columns),
        ColumnTransformer(columns, verbose_feature_names_out="{feature_name}/{transformer_name}"),
        ColumnTransformer(columns, transformer_weights={"span": 2.0}).set_output(
            transform="pandas"
        ),
        ColumnTransformer([columns[0], ("numbers", MinMaxScaler(), ["b", "c"])]),
        make_pipeline(ColumnTransformer([columns[0], columns[1]]), StandardScaler()),
        ColumnTransformer([columns[0], ("kept", "passthrough", selected[2])]),
    ):
        table = table.fillna({"a": 0.0})
        pipeline = make_pipeline(made, HOLRR(rank=2)).fit(table, outputs)
        again = round_trip(pipeline, tmp_path)
        expected = pipeline.predict(table)
        np.testing.assert_array_equal(again.predict(table), expected)
        np.testing.assert_array_equal(again.predict(table.iloc[:, ::-1]), expected)
        assert list(again[0].get_feature_names_out()) == list(made.get_feature_names_out())


def test_transformers_of_chemotools(tmp_path):
    """Each class that files can contain."""
    pytest.importorskip("chemotools", reason="chemotools is not installed")
    spectra = np.random.default_rng(0).normal(size=(30, 40)).cumsum(axis=1)
    more = {
        "IndexSelector": {"features": np.array([1, 2])},
        "RangeCut": {"start": 2, "end": 30},
        "SubtractReference": {"reference": spectra[0]},
    }
    paths = [path for path in TRUSTED if path.startswith("chemotools") and "Solver" not in path]
    for path in paths:
        module, _, name = path.rpartition(".")
        step = getattr(import_module(module), name)(**more.get(name, {}))
        step.fit(spectra)
        again = round_trip(step, tmp_path)
        np.testing.assert_allclose(again.transform(spectra), step.transform(spectra), rtol=1e-12)
    assert len(paths) > 25


class Mine(StandardScaler):
    """A class that is not listed."""


@pytest.mark.parametrize(
    ("pipeline", "name"),
    [
        (make_pipeline(FunctionTransformer(toy), RLS()), "problems.toy"),
        (make_pipeline(Mine(), RLS()), "Mine"),
        (make_pipeline(StandardScaler(), RLS(alpha=len)), "builtins.len"),
        (ColumnTransformer([("a", make_pipeline(FunctionTransformer(round_trip)), [0])]), "round"),
        (GridSearchCV(RLS(), {"alpha": [1.0]}, scoring=lambda m, X, y: 0.0), "lambda"),
    ],
    ids=["function", "subclass", "builtin", "nested", "scorer"],
)
def test_classes_and_functions_that_are_not_listed_are_refused_by_name(pipeline, name, tmp_path):
    with pytest.raises(TypeError, match=rf"cannot be saved: it contains .*{name}"):
        holrr.save(pipeline, tmp_path / "file")
    assert list(tmp_path.iterdir()) == []


def test_columns_that_are_an_index_of_pandas(tmp_path):
    """As `table.columns` and `table.select_dtypes("number").columns` are."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X, columns=list("abcde"))
    for names in (table.columns[:2], table.columns.astype(object)[1:3], pd.Index(["e"])):
        columns = ColumnTransformer([("a", StandardScaler(), names)], remainder="passthrough")
        pipeline = make_pipeline(columns, HOLRR(rank=2))
        assert list(round_trip(pipeline, tmp_path)[0].transformers[0][2]) == list(names)
        again = round_trip(pipeline.fit(table, Y), tmp_path)
        np.testing.assert_array_equal(again.predict(table), pipeline.predict(table))
        assert list(again[0].get_feature_names_out()) == list(columns.get_feature_names_out())
        assert type(pipeline[0].transformers[0][2]) is type(names)  # the model does not change


def test_another_version_of_scikit_learn_gives_a_warning(tmp_path, monkeypatch):
    from sklearn import base
    from sklearn.exceptions import InconsistentVersionWarning

    holrr.save(make_pipeline(StandardScaler(), RLS()).fit(X, Y), tmp_path / "file")
    monkeypatch.setattr(base, "__version__", "99.0")
    with pytest.warns(InconsistentVersionWarning, match="StandardScaler"):
        holrr.load(tmp_path / "file")


def test_models_do_not_depend_on_the_version_of_scikit_learn(tmp_path, monkeypatch, recwarn):
    from sklearn import base

    RLS().fit(X, Y).save(tmp_path / "file")
    monkeypatch.setattr(base, "__version__", "99.0")
    holrr.load(tmp_path / "file")
    assert not recwarn.list


def test_the_context_manager_records_audit_events():
    with pipelines.watching() as events:
        exec("1 + 1")
    assert [event.split()[0] for event in events] == ["exec"]
    exec("1 + 1")
    assert len(events) == 1
