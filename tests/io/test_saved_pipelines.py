"""Pipelines of scikit-learn are the same after a file; everything else is refused by name."""

from __future__ import annotations

import numpy as np
import pytest
from headers import header_of, rewrite
from sklearn import __version__ as sklearn_version
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    PolynomialFeatures,
    QuantileTransformer,
    StandardScaler,
)

import pipelines
from holrr import HOLRR, RLS
from holrr.data import Standardizer
from holrr.io import load, save
from holrr.io._sklearn import ALLOWED
from problems import assert_same_state, toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")

X, Y = toy(n=30)


def round_trip(value, tmp_path):
    save(value, tmp_path / "file")
    return load(tmp_path / "file")


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
        np.testing.assert_array_equal(found, expected)


def test_tables_and_their_names(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    objects, outputs = pipelines.objects()
    table = pd.DataFrame(objects, columns=list("abcdefg")).astype(dict.fromkeys("abcd", float))
    columns = [
        ("imputed", SimpleImputer(), ["a"]),
        ("span", StandardScaler(), slice("b", "d")),
        ("text", OneHotEncoder(sparse_output=False), ["g"]),
    ]
    for made in (
        ColumnTransformer(columns),
        ColumnTransformer(columns, verbose_feature_names_out="{feature_name}/{transformer_name}"),
        ColumnTransformer(columns, transformer_weights={"span": 2.0}).set_output(
            transform="pandas"
        ),
    ):
        pipeline = make_pipeline(made, HOLRR(rank=2)).fit(table, outputs)
        again = round_trip(pipeline, tmp_path)
        expected = pipeline.predict(table)
        np.testing.assert_array_equal(again.predict(table), expected)
        np.testing.assert_array_equal(again.predict(table.iloc[:, ::-1]), expected)
        assert list(again[0].get_feature_names_out()) == list(made.get_feature_names_out())


@pytest.mark.parametrize("n_jobs", [None, 2, 10**6])
def test_files_do_not_contain_the_number_of_processes(n_jobs, tmp_path):
    columns = ColumnTransformer([("a", StandardScaler(), [0]), ("b", PCA(), [1, 2])]).fit(X)
    pipeline = Pipeline([("columns", columns), ("model", RLS().fit(columns.transform(X), Y))])
    columns.n_jobs = n_jobs
    again = round_trip(pipeline, tmp_path)
    assert again[0].n_jobs is None
    with pipelines.watching() as events:
        again.predict(X)
    assert not events


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


@pytest.mark.parametrize(
    "step",
    [
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_mean=False, with_std=False),
        MinMaxScaler(feature_range=(-1, 2), clip=True),
        SimpleImputer(),
        SimpleImputer(strategy="median", keep_empty_features=True),
        SimpleImputer(strategy="constant", fill_value=1.5),
        PCA(),
        PCA(0.9),
        PCA(2, svd_solver="arpack", random_state=0),
        PCA(2, svd_solver="randomized", random_state=0, whiten=True),
        PCA(2, svd_solver="covariance_eigh"),
        PolynomialFeatures(3, interaction_only=True, include_bias=False),
        PolynomialFeatures((2, 3), include_bias=False),
        PolynomialFeatures((0, 2), order="F"),
        FunctionTransformer(),
        FunctionTransformer(feature_names_out="one-to-one", validate=True),
        "passthrough",
        ColumnTransformer([("a", StandardScaler(), [0, 2]), ("b", "passthrough", [-1])]),
        ColumnTransformer([("a", StandardScaler(), [True, False, True, False, False])]),
        ColumnTransformer([("a", PCA(1), slice(1, 4))], remainder=MinMaxScaler()),
        ColumnTransformer([("a", "drop", [0]), ("b", MinMaxScaler(), [])], remainder="passthrough"),
    ],
    ids=lambda step: " ".join(repr(step).split()),
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_step_keeps_predictions_to_the_last_bit(step, dtype, tmp_path):
    x = X.astype(dtype)
    pipeline = make_pipeline(step, RLS()).fit(x, Y)
    again = round_trip(pipeline, tmp_path)
    np.testing.assert_array_equal(again.predict(x), pipeline.predict(x))
    if not isinstance(step, str):
        before, after = vars(pipeline[0]), vars(again[0])
        # Attributes that only later versions of scikit-learn have are added.
        assert_same_state(before, {name: after[name] for name in before})
        np.testing.assert_array_equal(
            round_trip(pipeline[0], tmp_path).transform(x), again[0].transform(x)
        )


def test_every_class_on_the_list_is_in_a_pipeline_of_these_tests():
    seen = set()

    def look(step):
        seen.add(type(step).__name__)
        parts = getattr(step, "steps", None) or getattr(step, "transformers_", ())
        for part in parts:
            look(part[1])
        look(step.indicator_) if getattr(step, "indicator_", None) is not None else None

    objects, outputs = pipelines.objects()
    for make in pipelines.PIPELINES:
        look(make().fit(objects, outputs))
    assert set(ALLOWED) <= seen


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("pipeline", "message"),
    [
        (
            make_pipeline(QuantileTransformer(), RLS()),
            r"QuantileTransformer is neither",
        ),
        (make_pipeline(StandardScaler(), Ridge()), r"Ridge is neither a public class"),
        (
            make_pipeline(RandomForestRegressor()),
            r"RandomForestRegressor is neither",
        ),
        (FeatureUnion([("a", PCA())]), r"FeatureUnion is neither a public class"),
        (GridSearchCV(RLS(), {"alpha": [1.0]}), r"GridSearchCV is neither a public class"),
        (make_pipeline(FunctionTransformer(np.log1p), RLS()), r"\.func cannot be saved"),
        (make_pipeline(PCA(random_state=np.random.RandomState(0)), RLS()), r"random_state cannot"),
        (
            make_pipeline(StandardScaler(), RLS(), memory="cache"),
            r"Pipeline\.memory cannot be saved",
        ),
        (
            ColumnTransformer([("a", PCA(), make_column_selector("a"))]),
            r"transformers\[0\]\[2\] cannot be saved.*make_column_selector",
        ),
        (
            make_pipeline(ColumnTransformer([("a", make_pipeline(QuantileTransformer()), [0])])),
            r"QuantileTransformer is neither",
        ),
    ],
    ids=range(10),
)
def test_classes_that_files_may_not_contain_are_refused_by_name(pipeline, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        save(pipeline, tmp_path / "file")
    assert not (tmp_path / "file").exists()


def test_a_subclass_of_a_class_on_the_list_is_refused(tmp_path):
    class Mine(StandardScaler):
        pass

    with pytest.raises(TypeError, match="Mine is neither a public class"):
        save(make_pipeline(Mine(), RLS()), tmp_path / "file")


def test_attributes_set_by_the_user_are_refused_in_steps_of_scikit_learn(tmp_path):
    pipeline = make_pipeline(StandardScaler(), RLS()).fit(X, Y)
    pipeline[0].more_ = 1
    with pytest.raises(ValueError, match=r"StandardScaler.* has no attribute 'more_'"):
        save(pipeline, tmp_path / "file")
    pipeline = make_pipeline(StandardScaler(), RLS()).fit(X, Y)
    pipeline.more_ = 1
    with pytest.raises(TypeError, match=r"Pipeline\.more_ cannot be saved"):
        save(pipeline, tmp_path / "file")


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (StandardScaler, {"mean_": np.ones(4)}, r"StandardScaler\.mean_ must be"),
        (StandardScaler, {"mean_": None}, "mean_ is missing"),
        (StandardScaler, {"scale_": None}, "scale_ is missing"),
        (StandardScaler, {"n_features_in_": 6}, "must be an array"),
        (StandardScaler, {"n_samples_seen_": np.ones(3)}, "n_samples_seen_ must be one number"),
        (StandardScaler, {"feature_names_in_": np.array(["a"], object)}, "must be 5 texts"),
        (MinMaxScaler, {"min_": np.ones((5, 1))}, r"MinMaxScaler\.min_ must be"),
        (SimpleImputer, {"statistics_": np.ones(4)}, "statistics_ must be a vector of 5"),
        (SimpleImputer, {"indicator_": PCA()}, "None or a MissingIndicator"),
        (PCA, {"components_": np.ones((5, 4))}, "components_ must have 5 columns"),
        (PCA, {"n_components_": 4}, "n_components_ must be 5"),
        (PCA, {"singular_values_": np.ones(4)}, r"PCA\.singular_values_ must be"),
        (PolynomialFeatures, {"n_output_features_": 20}, "n_output_features_ must be 21"),
        (PolynomialFeatures, {"_max_degree": 3}, "those of the parameter degree"),
        (OneHotEncoder, {"_n_features_outs": [1] * 5}, "_n_features_outs of feature 0 must be 30"),
        (OneHotEncoder, {"categories_": []}, "categories_ must have 5 entries"),
        (OneHotEncoder, {"_infrequent_enabled": True}, "if and only if"),
        (OneHotEncoder, {"drop_idx_": np.array([0] * 5, object)}, "must both be set"),
    ],
)
def test_attributes_that_do_not_fit_together_are_refused(make, change, message, tmp_path):
    step = make().fit(X)
    vars(step).update(change)
    with pytest.raises(ValueError, match=message):
        save(step, tmp_path / "file")


def test_steps_must_fit_each_other(tmp_path):
    pipeline = make_pipeline(PCA(3), RLS()).fit(X, Y)
    wrong = Pipeline([("pca", PCA(2).fit(X)), ("model", pipeline[-1])])
    with pytest.raises(ValueError, match="step 'model' takes 3 columns, but gets 2"):
        save(wrong, tmp_path / "file")
    columns = ColumnTransformer([("a", StandardScaler(), [0, 1]), ("b", PCA(2), [2, 3, 4])]).fit(X)
    for change, message in (
        (
            {"_transformer_to_input_indices": {"a": [0], "b": [2, 3, 4], "remainder": []}},
            "positions",
        ),
        ({"output_indices_": {k: slice(0, 2) for k in ("a", "b", "remainder")}}, "from 2 on"),
        ({"transformers_": columns.transformers_[:1]}, "must have the names of transformers"),
    ):
        other = ColumnTransformer(columns.transformers).fit(X)
        vars(other).update(change)
        with pytest.raises(ValueError, match=message):
            save(other, tmp_path / "file")


# ---------------------------------------------------------------- files


def test_a_file_names_the_version_of_scikit_learn(tmp_path, recwarn):
    pipeline = make_pipeline(StandardScaler(), RLS()).fit(X, Y)
    path = tmp_path / "file"
    save(pipeline, path)
    assert header_of(path)["sklearn"] == sklearn_version
    patch = ".".join([*sklearn_version.split(".")[:2], "99"])
    rewrite(path, sklearn=patch)
    load(path)
    assert not recwarn.list
    rewrite(path, sklearn="0.1.2")
    with pytest.warns(UserWarning, match=r"version 0\.1\.2, but .* is installed") as caught:
        again = load(path)
    assert len(caught) == 1
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))


def test_models_do_not_depend_on_the_version_of_scikit_learn(tmp_path, recwarn):
    path = tmp_path / "file"
    save(make_pipeline(Standardizer(), RLS()).fit(X, Y), path)
    rewrite(path, sklearn="0.1.2")
    load(path)
    assert not recwarn.list


def test_parameters_of_another_version_have_their_defaults(tmp_path):
    pipeline = make_pipeline(ColumnTransformer([("a", MinMaxScaler(), [0])]), RLS()).fit(X, Y)
    path = tmp_path / "file"
    save(pipeline, path)
    tree = header_of(path)["object"]
    params = tree["items"][0]["items"][1]["params"]
    params["force_int_remainder_cols"] = "deprecated"  # up to version 1.8
    del params["verbose"]
    rewrite(path, object=tree, sklearn="0.7.2")
    with pytest.warns(UserWarning, match="Compare some predictions"):
        again = load(path)
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))
    rewrite(path, sklearn=sklearn_version)
    with pytest.raises(ValueError, match="ColumnTransformer: parameter verbose"):
        load(path)


def test_pipelines_of_older_files_load(tmp_path):
    """Before, a pipeline had steps only, and the file no version of scikit-learn."""
    pipeline = make_pipeline(Standardizer(), HOLRR(rank=2)).fit(X, Y)
    path = tmp_path / "file"
    save(pipeline, path)
    tree = {k: v for k, v in header_of(path)["object"].items() if k in ("$", "items")}
    rewrite(path, object=tree, sklearn=None)
    again = load(path)
    assert repr(again) == repr(pipeline)
    np.testing.assert_array_equal(again.predict(X), pipeline.predict(X))


@pytest.mark.parametrize("forge", pipelines.REFUSED)
def test_forged_pipelines_are_refused(forge, tmp_path):
    """With checksums that are right; tests/fuzz/run.py writes many more of them."""
    objects, outputs = pipelines.objects()
    rng = np.random.default_rng(0)
    path = tmp_path / "file"
    save(pipelines.of_all_kinds().fit(objects, outputs), path)
    original = pipelines.Contents.of(path)
    repr(load(path))
    for _ in range(10):
        file = original.copy()
        forge(rng, file)
        file.write(path)
        with pipelines.watching() as events, pytest.raises(ValueError, match="file"):
            load(path)
        assert not events


def test_the_context_manager_records_audit_events():
    with pipelines.watching() as events:
        exec("1 + 1")
    assert [event.split()[0] for event in events] == ["exec"]
    exec("1 + 1")
    assert len(events) == 1
