"""Graphs of ONNX give what `predict` gives, for every estimator that has one."""

from __future__ import annotations

import math
import sys

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    StandardScaler,
)

import holrr
from holrr import HOLRR, HOLRRCV, LRR, RLS, KernelHOLRR, KernelRLS, to_onnx
from holrr.data import (
    Delayer,
    Standardizer,
)
from holrr.onnx import register_converters
from problems import toy

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:landmarks=")

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
        with pytest.raises(ValueError, match=r"all 40 training samples.*landmarks=100"):
            to_onnx(model, dtype=dtype)
        return
    assert_near(run(to_onnx(model, dtype=dtype), X=x), model.predict(x), dtype)


def converted(model, dtype, text=(), **shapes):
    """The graph of skl2onnx, with the shapes of inputs of numbers and names of inputs of text."""
    from skl2onnx.common import data_types

    register_converters()
    kind = data_types.DoubleTensorType if dtype == "float64" else data_types.FloatTensorType
    types = [(name, kind([None, *shape])) for name, shape in shapes.items()]
    types += [(name, data_types.StringTensorType([None, 1])) for name in text]
    last = model[-1] if isinstance(model, Pipeline) else model
    return skl2onnx.convert_sklearn(
        model,
        initial_types=types,
        final_types=[("Y", None)],
        options={id(last): {"dtype": dtype}},
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_every_estimator_is_the_last_step_of_a_pipeline(row, dtype):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame((20 + 5 * X).astype(dtype), columns=list("abcde"))
    table["place"] = np.random.default_rng(0).choice(["u", "v", "w"], len(X))
    columns = ColumnTransformer(
        [("number", StandardScaler(), list("abcde")), ("text", OneHotEncoder(), ["place"])]
    )
    pipeline = make_pipeline(columns, row.make()).fit(table, Y)
    shapes = dict.fromkeys("abcde", (1,))
    if is_exact_kernel(pipeline[-1]):
        with pytest.raises(ValueError, match=r"exact kernel.*cannot be exported"):
            converted(pipeline, dtype, ["place"], **shapes)
        return
    found = run(converted(pipeline, dtype, ["place"], **shapes), **columns_of(table))
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
    for model in (HOLRR(rank=2), HOLRRCV(cv=3, blocks="auto"), KernelHOLRR(rank=2, landmarks=9)):
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
    model = HOLRR(rank=2).fit(x, Y)
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
        model = cls(landmarks=15, alpha=0.1, random_state=0, **rank, **params)
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
        to_onnx(KernelRLS(kernel=lambda a, b: a @ b, landmarks=5).fit(X, Y))
    with pytest.raises(
        ValueError, match=r"kernel='chi2' cannot be exported. Use one of the kernels"
    ):
        to_onnx(KernelRLS(kernel="chi2", landmarks=5).fit(abs(X), Y))


# ---------------------------------------------------------------- pipelines


@pytest.mark.parametrize("dtype", TYPES)
def test_the_transformers_of_this_library(dtype):
    x = (7 + 3 * X).astype(dtype)
    for steps in (
        [Standardizer()],
        [Standardizer(weight=[1.0, 0.0, 3.0, 0.5, 2.0])],
        [Delayer([0, 1, 3], fill=0.5)],
        [Delayer([2, -1])],
        [Delayer([0, 100])],  # further than there are samples
        [Standardizer(), Delayer([1, 2])],
        [StandardScaler(), Delayer([1, 2])],
    ):
        pipeline = make_pipeline(*steps, HOLRR(rank=2)).fit(x.astype(np.float64), Y)
        graph = converted(pipeline, dtype, X=(5,))
        assert_near(run(graph, X=x), pipeline.predict(x), dtype)
        assert_near(run(graph, X=x[:1]), pipeline.predict(x[:1]), dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_transformers_of_this_library_with_modes_and_blocks(dtype):
    x = tensor_inputs().astype(dtype)
    blocks = {"field": x, "index": X.astype(dtype)}
    for steps in ([Standardizer()], [Delayer([0, 2])], [Standardizer(), Delayer([1, 2])]):
        pipeline = make_pipeline(*steps, HOLRR(rank=2)).fit(x.astype(np.float64), Y)
        graph = converted(pipeline, dtype, X=x.shape[1:])
        assert_near(run(graph, X=x), pipeline.predict(x), dtype)
        wide = {name: A.astype(np.float64) for name, A in blocks.items()}
        pipeline.fit(wide, Y)
        graph = converted(pipeline, dtype, field=x.shape[1:], index=(5,))
        assert_near(run(graph, **blocks), pipeline.predict(blocks), dtype)


def test_the_standardizer_keeps_the_digits_of_means_in_float32():
    x = (1e5 + 0.1 * X).astype(np.float32)
    pipeline = make_pipeline(Standardizer(), RLS()).fit(x, Y)
    found = run(converted(pipeline, "float32", X=(5,)), X=x)
    expected = pipeline.predict(x)
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_a_standardizer_of_groups_is_refused():
    groups = make_pipeline(Standardizer(by_group=True), RLS())
    groups[0].fit(X)
    groups[1].fit(X, Y)
    with pytest.raises(ValueError, match=r"Standardizer\(by_group=True\) cannot be exported"):
        converted(groups, "float64", X=(5,))


def test_a_spectral_model_is_exported_behind_its_preprocessing():
    """As docs/onnx.md advises: steps without a converter stay in the program."""

    steps = make_pipeline(FunctionTransformer(np.abs), StandardScaler())
    model = HOLRRCV(cv=3).fit(steps.fit_transform(X), Y)
    found = run(to_onnx(model), X=steps.transform(X))
    assert_near(found, model.predict(steps.transform(X)), "float64")


def test_a_model_with_its_own_predict_is_refused():
    class Doubled(HOLRR):
        def predict(self, X, **options):
            return 2 * super().predict(X, **options)

    with pytest.raises(ValueError, match="Doubled cannot be exported, since it overrides pre"):
        to_onnx(Doubled(rank=2).fit(X, Y))


@pytest.mark.parametrize("dtype", TYPES)
def test_a_search_of_scikit_learn(dtype):
    x = X.astype(dtype)
    search = GridSearchCV(HOLRR(rank=2), {"alpha": [0.1, 1.0]}, cv=3).fit(X, Y)
    assert_near(run(to_onnx(search.best_estimator_, dtype=dtype), X=x), search.predict(x), dtype)


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


def test_a_model_before_another_step_is_refused():
    register_converters()
    pipeline = make_pipeline(HOLRR(rank=2), RLS()).fit(X, Y)
    with pytest.raises(ValueError, match="HOLRR can be exported only as the last step"):
        skl2onnx.to_onnx(pipeline, X)
    pipeline = make_pipeline(HOLRR(rank=2), StandardScaler(), RLS()).fit(X, Y)
    with pytest.raises(ValueError, match="but StandardScaler follows"):
        skl2onnx.to_onnx(pipeline, X)


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
            r"sklearn\.pipeline.*register_converters\(\) and skl2onnx\.to_onnx",
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


@pytest.mark.parametrize("missing", ["onnx", "skl2onnx"])
def test_a_missing_package_names_the_extra(missing, monkeypatch):
    model = RLS().fit(X, Y)
    for name in [missing, *(name for name in sys.modules if name.startswith(f"{missing}."))]:
        monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(ImportError, match=r'pip install "holrr\[onnx\]"'):
        to_onnx(model) if missing == "onnx" else register_converters()
