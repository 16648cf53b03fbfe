"""Graphs of ONNX give what `predict` gives, for every estimator that has one."""

from __future__ import annotations

import importlib
import math

import numpy as np
import pytest
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)

import holrr
from holrr import HOLRR, HOLRRCV, LRR, RLS, KernelHOLRR, KernelRLS, to_onnx
from holrr.data import (
    Delayer,
    RangeSelector,
    SavitzkyGolay,
    Standardizer,
    StandardNormalVariate,
)
from holrr.onnx import register_converters
from problems import toy

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:n_components")

X, Y = toy(n=40)
# How far predictions may be off, relative to the largest.
TOL = {"float32": 1e-5, "float64": 1e-10}
TYPES = sorted(TOL)


def run(graph, **inputs):
    session = ort.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    assert {one.name for one in session.get_inputs()} == set(inputs)
    (found,) = session.run(["Y"], inputs)
    return found


def assert_near(found, expected, dtype):
    expected = np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == dtype
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    atol = TOL[dtype] * np.nanmax(np.abs(expected))
    np.testing.assert_allclose(found, expected, rtol=0, atol=atol)


def is_exact_kernel(model):
    fitted = getattr(model, "best_estimator_", model)
    return getattr(fitted, "kernel", "linear") != "linear" and not model._uses_landmarks


@pytest.mark.parametrize("dtype", TYPES)
def test_every_estimator_gives_what_predict_gives(row, dtype):
    model, x = row.make().fit(X, Y), X.astype(dtype)
    if is_exact_kernel(model):
        with pytest.raises(ValueError, match=r"all 40 training samples.*n_components"):
            to_onnx(model, dtype=dtype)
        return
    assert_near(run(to_onnx(model, dtype=dtype), X=x), model.predict(x), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_every_estimator_is_the_last_step_of_a_pipeline(row, dtype):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame((20 + 5 * X).astype(dtype), columns=list("abcde"))
    table["place"] = np.random.default_rng(0).choice(["u", "v", "w"], len(X))
    columns = ColumnTransformer(
        [("number", StandardScaler(), list("abcde")), ("text", OneHotEncoder(), ["place"])]
    )
    pipeline = make_pipeline(columns, row.make()).fit(table, Y)
    if is_exact_kernel(pipeline[-1]):
        with pytest.raises(ValueError, match=r"exact kernel.*cannot be exported"):
            to_onnx(pipeline, table, dtype=dtype)
        return
    found = run(to_onnx(pipeline, table[:3], dtype=dtype), **columns_of(table))
    assert_near(found, pipeline.predict(table), dtype)


def columns_of(table):
    """One input for each column: numbers as they are, text as objects."""
    found = {name: table[[name]].to_numpy() for name in table}
    return {k: v.astype(object) if v.dtype.kind not in "f" else v for k, v in found.items()}


@pytest.mark.parametrize("shape", [(), (1,), (6,), (3, 4), (2, 3, 2), (1, 5, 1)], ids=str)
@pytest.mark.parametrize("model", [RLS(), LRR(rank=1), HOLRR(rank=1), HOLRRCV(cv=3)], ids=repr)
def test_outputs_of_every_order(model, shape):
    x, y = toy(n=30, shape=shape)
    model = model.fit(x, y)
    assert_near(run(to_onnx(model), X=x), model.predict(x), "float64")


def test_a_model_in_float32_has_a_graph_in_float32():
    model = HOLRR(rank=2).fit(X.astype(np.float32), Y.astype(np.float32))
    graph = to_onnx(model)
    assert_near(run(graph, X=X.astype(np.float32)), model.predict(X.astype(np.float32)), "float32")
    assert {constant.data_type for constant in graph.graph.initializer} == {1, 7}  # and shapes


def test_inputs_far_from_zero_keep_their_digits_in_float32():
    x = (X + 3000).astype(np.float32)
    for model in (RLS(), HOLRR(rank=2), HOLRRCV(cv=3)):
        model.fit(x.astype(np.float64), Y)
        assert_near(run(to_onnx(model, dtype="float32"), X=x), model.predict(x), "float32")


def test_the_dense_coefficients_are_not_in_the_graph():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 50)), rng.normal(size=(60, 30, 20))
    model = HOLRR(rank=(4, 3, 2)).fit(x, y)
    stored = sum(math.prod(c.dims) for c in to_onnx(model).graph.initializer)
    factors = 4 * 3 * 2 + 50 * 4 + 30 * 3 + 20 * 2
    assert stored < factors + 30 * 20 + 30  # and the intercept, and shapes
    assert stored < 0.04 * 50 * 30 * 20


# ---------------------------------------------------------------- inputs and outputs of every kind


def tensor_inputs(n=40, shape=(3, 4), seed=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, *shape))


@pytest.mark.parametrize("dtype", TYPES)
def test_inputs_with_modes_keep_them(dtype):
    x = tensor_inputs().astype(dtype)
    for model in (HOLRR(rank=2), HOLRR(rank=2, input_rank=(2, 2)), HOLRRCV(cv=3)):
        model.fit(x.astype(np.float64), Y)
        assert_near(run(to_onnx(model, dtype=dtype), X=x), model.predict(x), dtype)


def test_flat_inputs_with_an_input_shape_stay_flat():
    x = tensor_inputs().reshape(40, 12)
    model = HOLRR(rank=2, input_shape=(3, 4), input_rank=(2, 2)).fit(x, Y)
    assert_near(run(to_onnx(model), X=x), model.predict(x), "float64")


@pytest.mark.parametrize("dtype", TYPES)
def test_blocks_are_inputs_under_their_names(dtype):
    blocks = {"field": tensor_inputs(), "index": X, "one": X[:, 0]}
    blocks = {name: A.astype(dtype) for name, A in blocks.items()}
    wide = {name: A.astype(np.float64) for name, A in blocks.items()}
    for model in (HOLRR(rank=2), HOLRRCV(cv=3, blocks="auto"), KernelHOLRR(rank=2, n_components=9)):
        model.fit(wide, Y)
        assert_near(run(to_onnx(model, dtype=dtype), **blocks), model.predict(blocks), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("share", [1.0, 0.4], ids=["all", "some"])
def test_own_inputs(dtype, share):
    rng = np.random.default_rng(3)
    owned = np.zeros((5, 12), dtype=bool)
    for j in np.flatnonzero(rng.uniform(size=12) <= share):  # groups of different sizes
        owned[rng.choice(5, 1 + j % 3, replace=False), j] = True
    x = (X + 100).astype(dtype)
    model = HOLRR(rank=1, own=owned, own_alpha=0.1).fit(x.astype(np.float64), Y)
    assert (model.own_coef_ != 0).any()
    assert_near(run(to_onnx(model, dtype=dtype), X=x), model.predict(x), dtype)


def test_blocks_without_a_penalty():
    model = HOLRR(rank=1, blocks={"a": [0, 1], "b": [2, 3, 4]}, alpha={"a": 0.0, "b": 3.0})
    model.fit(X, Y)
    assert_near(run(to_onnx(model), X=X), model.predict(X), "float64")


def test_values_of_dropped_inputs_are_ignored():
    x = tensor_inputs()
    x[:, 1, 2] = np.nan
    model = HOLRR(rank=2, missing_features="drop").fit(x, Y)
    assert_near(run(to_onnx(model), X=x), model.predict(x), "float64")


def test_outputs_that_were_never_observed_are_nan():
    y = Y.copy()
    y[:, 1, 2] = np.nan
    for model in (HOLRR(rank=2, missing="ignore"), HOLRRCV(cv=3, missing="ignore")):
        model.fit(X, y)
        found = run(to_onnx(model), X=X)
        assert np.isnan(found[:, 1, 2]).all()
        assert np.isnan(found).sum() == len(X)
        assert_near(found, model.predict(X), "float64")


def test_flat_outputs_and_tables_are_flat():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    flat = Y.reshape(40, 12)
    columns = pd.MultiIndex.from_product([list("abc"), range(4)])
    table = pd.DataFrame(flat, columns=columns)
    for y, params in (
        (flat, {"output_shape": (3, 4)}),
        (table, {}),
        (table.iloc[:, ::-1], {}),
        (table.iloc[:, :-1], {"missing": "ignore"}),
    ):
        model = HOLRR(rank=2, **params).fit(X, y)
        assert_near(run(to_onnx(model), X=X), model.predict(X), "float64")


def test_objects_of_xarray():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    x = xr.DataArray(tensor_inputs(), dims=("time", "lat", "lon"), name="sst")
    y = xr.DataArray(Y, dims=("time", "station", "month"))
    model = HOLRR(rank=2).fit(x, y)
    assert_near(run(to_onnx(model), X=x.values), model.predict(x), "float64")
    blocks = x.to_dataset().assign(index=(("time", "driver"), X))
    model.fit(blocks, y)
    found = run(to_onnx(model), sst=x.values, index=X)
    assert_near(found, model.predict(blocks), "float64")


def test_columns_of_a_table_with_several_levels():
    """Levels that form a grid are modes; columns in another order are those of the table."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    columns = pd.MultiIndex.from_product([["a", "b"], [1, 2, 3]])
    table = pd.DataFrame(tensor_inputs(shape=(6,)), columns=columns)
    for x, shape in ((table, (2, 3)), (table.iloc[:, [0, 5, 1, 4, 2, 3]], (6,))):
        model = HOLRR(rank=2).fit(x, Y)
        found = run(to_onnx(model), X=x.to_numpy().reshape(40, *shape))
        assert_near(found, model.predict(x), "float64")


def test_blocks_need_names_of_their_own():
    model = RLS().fit({1: X, "1": X}, Y)
    with pytest.raises(ValueError, match=r"blocks of the inputs are called \['1', '1'\]"):
        to_onnx(model)
    for names in (("Y", "other"), ("", "other")):
        with pytest.raises(ValueError, match=r"differ from each other .* and are not empty"):
            to_onnx(RLS().fit(dict.fromkeys(names, X), Y))


# ---------------------------------------------------------------- kernels


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "params",
    [
        {"kernel": "rbf"},
        {"kernel": "rbf", "gamma": 0.3},
        {"kernel": "poly", "degree": 2, "coef0": 0.5},
        {"kernel": "polynomial"},
        {"kernel": "sigmoid", "gamma": 0.01},
        {"kernel": "laplacian"},
        {"kernel": "cosine"},
        {"kernel": "linear"},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_kernels_with_landmarks(params, dtype):
    x = (X + 2).astype(dtype)
    x[0] = 0  # which has no direction
    for cls in (KernelRLS, KernelHOLRR):
        rank = {"rank": 2} if cls is KernelHOLRR else {}
        model = cls(n_components=15, alpha=0.1, random_state=0, **rank, **params)
        model.fit(x.astype(np.float64), Y)
        assert_near(run(to_onnx(model, dtype=dtype), X=x), model.predict(x), dtype)


def test_the_exact_linear_kernel_is_a_linear_model():
    model = KernelRLS().fit(X, Y)
    graph = to_onnx(model)
    assert_near(run(graph, X=X), model.predict(X), "float64")
    assert max(math.prod(c.dims) for c in graph.graph.initializer) == 5 * 12  # and no samples


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_kernels_without_a_graph_are_refused():
    gram = X @ X.T
    with pytest.raises(ValueError, match=r"kernel='precomputed' cannot be exported"):
        to_onnx(KernelRLS(kernel="precomputed").fit(gram, Y))
    with pytest.raises(ValueError, match="its kernel is a Python function"):
        to_onnx(KernelRLS(kernel=lambda a, b: a @ b, n_components=5).fit(X, Y))
    with pytest.raises(
        ValueError, match=r"kernel='chi2' cannot be exported. Use one of the kernels"
    ):
        to_onnx(KernelRLS(kernel="chi2", n_components=5).fit(abs(X), Y))


# ---------------------------------------------------------------- pipelines


@pytest.mark.parametrize("dtype", TYPES)
def test_the_transformers_of_this_library(dtype):
    x = (7 + 3 * X).astype(dtype)
    for steps in (
        [Standardizer()],
        [Delayer([0, 1, 3], fill=0.5)],
        [Delayer([2, -1])],
        [Delayer([0, 100])],  # further than there are samples
        [Standardizer(), Delayer([1, 2])],
        [StandardScaler(), Delayer([1, 2])],
        [StandardNormalVariate()],
        [SavitzkyGolay(5, 2, 1)],
        [RangeSelector([(0, 1), (3, None)])],
        [SavitzkyGolay(3, 2, 2), RangeSelector((1, 3)), StandardNormalVariate(), Standardizer()],
    ):
        pipeline = make_pipeline(*steps, HOLRR(rank=2)).fit(x.astype(np.float64), Y)
        assert_near(run(to_onnx(pipeline, dtype=dtype), X=x), pipeline.predict(x), dtype)
        one = x[:1]
        assert_near(run(to_onnx(pipeline, dtype=dtype), X=one), pipeline.predict(one), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_transformers_of_this_library_with_modes_and_blocks(dtype):
    x = tensor_inputs().astype(dtype)
    blocks = {"field": x, "index": X.astype(dtype)}
    for steps in ([Standardizer()], [Delayer([0, 2])], [Standardizer(), Delayer([1, 2])]):
        pipeline = make_pipeline(*steps, HOLRR(rank=2)).fit(x.astype(np.float64), Y)
        assert_near(run(to_onnx(pipeline, dtype=dtype), X=x), pipeline.predict(x), dtype)
        wide = {name: A.astype(np.float64) for name, A in blocks.items()}
        pipeline.fit(wide, Y)
        found = run(to_onnx(pipeline, dtype=dtype), **blocks)
        assert_near(found, pipeline.predict(blocks), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_spectra_along_a_mode_of_one_block(dtype):
    x = tensor_inputs().astype(dtype)
    x[3] = 5.0  # a constant spectrum
    blocks = {"field": x, "index": X.astype(dtype)}
    for dim, window in (("input1", 3), (None, 3)):
        chosen = {"dim": dim, "blocks": ["field"]}
        steps = [SavitzkyGolay(window, 1, 0, **chosen), StandardNormalVariate(**chosen)]
        steps.append(RangeSelector((0, 1), **chosen))
        pipeline = make_pipeline(*steps, HOLRR(rank=2))
        wide = {name: A.astype(np.float64) for name, A in blocks.items()}
        pipeline.fit(wide, Y)
        found = run(to_onnx(pipeline, dtype=dtype), **blocks)
        assert_near(found, pipeline.predict(blocks), dtype)


def test_spectra_along_a_level_of_columns():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    x = tensor_inputs()
    levels = pd.MultiIndex.from_product([range(n) for n in x.shape[1:]], names=["a", "b"])
    table = pd.DataFrame(x.reshape(len(x), -1), columns=levels)
    table = table.sort_index(axis=1, level="b")  # so that columns are not in the order of cells
    pipeline = make_pipeline(StandardNormalVariate(dim="a"), HOLRR(rank=2)).fit(table, Y)
    found = run(to_onnx(pipeline), X=table.to_numpy())
    assert_near(found, pipeline.predict(table), "float64")


def test_the_standardizer_keeps_the_digits_of_means_in_float32():
    x = (1e5 + 0.1 * X).astype(np.float32)
    pipeline = make_pipeline(Standardizer(), RLS()).fit(x, Y)
    found = run(to_onnx(pipeline, dtype="float32"), X=x)
    expected = pipeline.predict(x)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_text_alone_gives_predictions_in_float64():
    """The encoder of skl2onnx gives float32; the type that was asked for is that of the model."""
    text = np.random.default_rng(0).choice(["u", "v", "w"], (40, 2)).astype(object)
    pipeline = make_pipeline(OneHotEncoder(sparse_output=False), HOLRR(rank=1)).fit(text, Y)
    assert_near(run(to_onnx(pipeline, text), X=text), pipeline.predict(text), "float64")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    "steps",
    [
        ["passthrough", StandardScaler(), None],
        [make_pipeline(StandardScaler(), "passthrough")],
        [PolynomialFeatures(2)],
        [PolynomialFeatures((2, 3), include_bias=False)],
        [PolynomialFeatures(3, interaction_only=True)],
        [PolynomialFeatures(0)],
    ],
    ids=str,
)
def test_steps_of_scikit_learn(steps, dtype):
    x = X.astype(dtype)
    pipeline = Pipeline([*((str(k), step) for k, step in enumerate(steps)), ("model", HOLRR(2))])
    pipeline.fit(x.astype(np.float64), Y)
    assert_near(run(to_onnx(pipeline, dtype=dtype), X=x), pipeline.predict(x), dtype)
    whole = Pipeline([("first", StandardScaler()), ("rest", pipeline)]).fit(x, Y)
    assert_near(run(to_onnx(whole, dtype=dtype), X=x), whole.predict(x), dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("params", [{}, {"keep_empty_features": True}, {"add_indicator": True}])
@pytest.mark.parametrize("missing", [np.nan, -1])
@pytest.mark.filterwarnings("ignore:Skipping features")
def test_missing_inputs_are_imputed(missing, params, dtype):
    x = X.astype(dtype)
    x[::7, 1] = x[3, 4] = missing
    x[:, 2] = missing
    imputer = SimpleImputer(missing_values=missing, **params)
    pipeline = make_pipeline(imputer, StandardScaler(), HOLRR(2)).fit(x.astype(np.float64), Y)
    assert_near(run(to_onnx(pipeline, dtype=dtype), X=x), pipeline.predict(x), dtype)


def test_missing_text_is_imputed():
    text = np.random.default_rng(0).choice(["u", "v", "NA"], (40, 2)).astype(object)
    imputer = SimpleImputer(missing_values="NA", strategy="most_frequent")
    pipeline = make_pipeline(imputer, OneHotEncoder(), HOLRR(rank=1)).fit(text, Y)
    assert_near(run(to_onnx(pipeline, text), X=text), pipeline.predict(text), "float64")


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("names", [list("abcde"), ["wind speed", "wind_speed", "1", "X", "é"]])
def test_columns_of_a_table_are_inputs_without_a_column_transformer(names, dtype):
    """skl2onnx would join them in float32, and change names that are no identifiers."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame((20 + 5 * X).astype(dtype), columns=names)
    for steps in ([StandardScaler()], [SimpleImputer()], []):
        pipeline = make_pipeline(*steps, HOLRR(2)).fit(table, Y)
        found = run(to_onnx(pipeline, table[:3], dtype=dtype), **columns_of(table))
        assert_near(found, pipeline.predict(table), dtype)


@pytest.mark.parametrize("names", [["a", "Y"], ["a", ""], [1, "1"]])
def test_columns_of_a_table_need_names_of_their_own(names):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X[:, :2], columns=names)
    pipeline = make_pipeline(StandardScaler(), HOLRR(2)).fit(table.to_numpy(), Y)
    with pytest.raises(ValueError, match="the columns of X are called"):
        to_onnx(pipeline, table)


def test_columns_of_a_table_have_the_order_of_the_fit():
    """In another order, the graph would pair them with the means and coefficients of others."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X, columns=list("abcde"))
    by_position = ColumnTransformer([("one", StandardScaler(), [0, 1])])
    for first in (StandardScaler(), by_position, make_pipeline(by_position)):
        pipeline = make_pipeline(first, RLS()).fit(table, Y)
        with pytest.raises(ValueError, match="at position 0 X has 'e' and the fit has 'a'"):
            to_onnx(pipeline, table[list("edcba")])
        with pytest.raises(ValueError, match="X has 2 columns and the fit had 5"):
            to_onnx(pipeline, table[["a", "b"]])


def test_a_column_transformer_that_selects_by_name_accepts_every_order():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X, columns=list("abcde"))
    steps = [("one", StandardScaler(), ["b", "a"]), ("two", "drop", ["c"])]
    pipeline = make_pipeline(ColumnTransformer(steps, remainder="passthrough"), RLS())
    pipeline.fit(table, Y)
    some = table[list("edba")]
    assert_near(run(to_onnx(pipeline, some), **columns_of(some)), pipeline.predict(some), "float64")
    with pytest.raises(ValueError, match="X must have the columns of the fit; it lacks 'a'"):
        to_onnx(pipeline, table[["b", "d", "e"]])


@pytest.mark.parametrize("wrong", [X[:, :3], X[0], 3.0, "text"], ids=["few", "1-d", "0-d", "text"])
def test_arrays_with_other_columns_than_in_the_fit_are_refused(wrong):
    pipeline = make_pipeline(StandardScaler(), RLS()).fit(X, Y)
    with pytest.raises(ValueError, match="X must be some rows of the inputs, with the 5 columns"):
        to_onnx(pipeline, wrong)


def test_rows_of_blocks_sparse_rows_and_levels_of_columns_define_the_inputs():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    blocks = {"u": X[:, :2], "v": X[:, 2:]}
    pipeline = make_pipeline(Standardizer(), RLS()).fit(blocks, Y)
    assert_near(run(to_onnx(pipeline, blocks), **blocks), pipeline.predict(blocks), "float64")
    pipeline = make_pipeline(StandardScaler(), RLS()).fit(X, Y)
    graph = to_onnx(pipeline, scipy.sparse.csr_array(X[:3]))
    assert_near(run(graph, X=X), pipeline.predict(X), "float64")
    columns = pd.MultiIndex.from_product([["t", "p"], [1, 2]])
    table = pd.DataFrame(X[:, :4], columns=columns)
    pipeline = make_pipeline(Standardizer(), RLS()).fit(table, Y)
    assert len(to_onnx(pipeline, table[:3]).graph.input) == 4
    with pytest.raises(ValueError, match=r"X has 'p / 2' and the fit has 't / 1'"):
        to_onnx(pipeline, table[columns[::-1]])


def test_a_step_that_skl2onnx_cannot_convert_is_named():
    bins = KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf")
    columns = ColumnTransformer([("one", FunctionTransformer(np.abs), [0, 1])])
    for step in (bins, FunctionTransformer(np.abs), columns, SplineTransformer()):
        name = "FunctionTransformer" if step is columns else type(step).__name__
        pipeline = make_pipeline(StandardScaler(), step, RLS()).fit(X, Y)
        with pytest.raises(ValueError, match=f"skl2onnx cannot convert StandardScaler or {name}:"):
            to_onnx(pipeline)


def test_a_model_with_its_own_predict_is_refused():
    class Doubled(HOLRR):
        def predict(self, X, **options):
            return 2 * super().predict(X, **options)

    model = Doubled(rank=2).fit(X, Y)
    for whole in (model, make_pipeline(StandardScaler(), model).fit(X, Y)):
        with pytest.raises(ValueError, match="Doubled cannot be exported, since it overrides pre"):
            to_onnx(whole)


def test_a_search_of_scikit_learn_names_the_model_to_export():
    search = GridSearchCV(HOLRR(rank=2), {"alpha": [0.1, 1.0]}, cv=3).fit(X, Y)
    with pytest.raises(TypeError, match=r"GridSearchCV\. Pass its best_estimator_\.$"):
        to_onnx(search)
    with pytest.raises(TypeError, match=r"best_estimator_, in a pipeline with the fitted other"):
        to_onnx(make_pipeline(StandardScaler(), search))
    assert_near(run(to_onnx(search.best_estimator_), X=X), search.predict(X), "float64")


def test_steps_that_do_not_run_in_a_type_are_refused(monkeypatch):
    """A converter that gives float32 whatever the type of its input is."""
    from skl2onnx.common.data_types import DoubleTensorType

    class Wrong(StandardScaler):
        pass

    def shape(operator):
        operator.outputs[0].type = DoubleTensorType([None, 5])

    def convert(scope, operator, container):
        names = [operator.inputs[0].full_name], [scope.get_unique_variable_name("narrow")]
        container.add_node("Cast", *names, to=1, op_version=13)
        outputs = [operator.outputs[0].full_name]
        inputs = [names[0][0], names[1][0]]
        container.add_node("Add", inputs, outputs, op_version=13)

    skl2onnx.update_registered_converter(Wrong, "Wrong", shape, convert)
    pipeline = make_pipeline(Wrong(), RLS()).fit(X, Y)
    with pytest.raises(ValueError, match=r"in float64; try dtype='float32'"):
        to_onnx(pipeline)


@pytest.mark.parametrize("dtype", TYPES)
def test_skl2onnx_converts_pipelines_by_itself(dtype):
    register_converters()
    register_converters()
    pipeline = make_pipeline(StandardScaler(), HOLRR(rank=2)).fit(X, Y)
    x = X.astype(dtype)
    graph = skl2onnx.to_onnx(pipeline, x)
    session = ort.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"X": x})
    assert_near(found, pipeline.predict(x), dtype)


def test_skl2onnx_gets_the_errors_of_this_library():
    register_converters()
    with pytest.raises(NotFittedError, match="This HOLRR instance is not fitted yet"):
        skl2onnx.to_onnx(HOLRR(2), X)
    for wrong in (X[:, :3], np.hstack([X, X])):
        message = (
            f"HOLRR was fitted to 5 columns, but in the graph its inputs have {wrong.shape[1]}"
        )
        with pytest.raises(ValueError, match=message):
            skl2onnx.to_onnx(HOLRR(2).fit(X, Y), wrong)


def test_a_subclass_is_converted_in_a_pipeline():
    class Mine(HOLRR):
        pass

    pipeline = make_pipeline(StandardScaler(), Mine(rank=2)).fit(X, Y)
    assert_near(run(to_onnx(pipeline), X=X), pipeline.predict(X), "float64")
    text = np.random.default_rng(0).choice(["u", "v", "w"], (40, 2)).astype(object)
    pipeline = make_pipeline(OneHotEncoder(), Mine(rank=1)).fit(text, Y)
    assert_near(run(to_onnx(pipeline, text), X=text), pipeline.predict(text), "float64")


def test_a_model_before_another_step_is_refused():
    register_converters()
    pipeline = make_pipeline(HOLRR(rank=2), RLS()).fit(X, Y)
    with pytest.raises(ValueError, match="HOLRR can be exported only as the last step"):
        skl2onnx.to_onnx(pipeline, X)
    pipeline = make_pipeline(HOLRR(rank=2), StandardScaler(), RLS()).fit(X, Y)
    with pytest.raises(ValueError, match="but StandardScaler follows"):
        to_onnx(pipeline)


# ---------------------------------------------------------------- errors and facts


def test_the_graph_has_a_description_and_a_version():
    graph = to_onnx(HOLRRCV(cv=3).fit(X, Y))
    assert (graph.producer_name, graph.producer_version) == ("holrr", holrr.__version__)
    props = {entry.key: entry.value for entry in graph.metadata_props}
    assert props == {"estimator": "HOLRRCV", "holrr": holrr.__version__, "dtype": "float64"}
    (out,) = graph.graph.output
    sizes = [d.dim_param or d.dim_value for d in out.type.tensor_type.shape.dim]
    assert sizes == ["n_samples", 3, 4]
    onnx.checker.check_model(graph, full_check=True)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Ridge(), r"got an object of sklearn\.linear_model"),
        (
            make_pipeline(StandardScaler(), Ridge()),
            r"pipeline that ends with sklearn\.linear_model",
        ),
        (None, "got an object of builtins.NoneType"),
    ],
    ids=["estimator", "pipeline", "nothing"],
)
def test_objects_other_than_models_of_this_library_are_refused(model, message):
    with pytest.raises(TypeError, match=message):
        to_onnx(model)


def test_invalid_arguments_of_to_onnx_raise():
    with pytest.raises(NotFittedError):
        to_onnx(RLS())
    model = RLS().fit(X, Y)
    for wrong in ("float16", "text", int):
        with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64'; got"):
            to_onnx(model, dtype=wrong)
    with pytest.raises(NotFittedError, match="StandardScaler"):
        to_onnx(make_pipeline(StandardScaler(), model))
    columns = ColumnTransformer([("a", StandardScaler(), [0, 1])])
    for first in (columns, make_pipeline("passthrough", columns)):
        with pytest.raises(ValueError, match="needs X for a pipeline with a ColumnTransformer"):
            to_onnx(make_pipeline(first, RLS()).fit(X, Y))
    groups = make_pipeline(Standardizer(by_group=True), RLS())
    groups[0].fit(X)
    groups[1].fit(X, Y)
    with pytest.raises(ValueError, match=r"Standardizer\(by_group=True\) cannot be exported"):
        to_onnx(groups)


@pytest.mark.parametrize("missing", ["onnx", "skl2onnx"])
def test_a_missing_package_names_the_extra(missing, monkeypatch):
    pipeline = make_pipeline(StandardScaler(), RLS()).fit(X, Y)

    def refuse(name, *args):
        if name.partition(".")[0] == missing:
            raise ImportError(name)
        return importlib.import_module(name, *args)

    monkeypatch.setattr("holrr.extras.import_module", refuse)
    with pytest.raises(ImportError, match=r'pip install "holrr\[onnx\]"'):
        to_onnx(pipeline)
