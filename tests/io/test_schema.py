"""What is loaded is what it must be: forged files with valid checksums are refused."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
from headers import header_of, rewrite
from sklearn import model_selection
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, ShuffleSplit
from sklearn.pipeline import make_pipeline

import holrr
from holrr import HOLRR, HOLRRCV, RLS, KernelHOLRRCV, KernelRLS, Moments, Tucker
from holrr.core.input_map import InputMap, InputSpace, Partial
from holrr.core.input_model import InputModel
from holrr.core.own_inputs import OwnCoefficients, OwnGroups
from holrr.core.row_residuals import RowResiduals
from holrr.data import Grid, Labels, RangeSelector, SavitzkyGolay, Standardizer
from holrr.io import load, save
from holrr.io._container import VERSION
from holrr.io._encode import _INTERNAL, _MODULES, Decoder, Encoder
from holrr.io._schema import _FITTED, _RECORDS
from problems import toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:n_components")

X, Y = toy(n=30)
# What no field is: an object that the format knows and the schema of no field allows.
NOTHING = [KFold(2), np.array([True]), 1j * np.ones(2)]


def rebuilt(value):
    """The value from its tree and arrays, as if a file had held them."""
    encoder = Encoder()
    tree = encoder.encode(value, "value")
    return Decoder(encoder.arrays, VERSION).decode(tree)


def tucker():
    return Tucker(np.ones((2, 1)), (np.ones((5, 2)), np.ones((3, 1))), (0, 1))


def grid():
    coords = {"lat": (("lat",), np.arange(3.0), {}), "height": ((), np.array(2.0), {})}
    return Grid(("lat", "lon"), (3, 4), coords)


def labels():
    return Labels("dataarray", "time", (Grid(("driver",), (5,)),), grid())


def moments():
    found = Moments.from_arrays(X, Y, response_grams=True)
    return dataclasses.replace(found, feature_names=np.array(list("abcde"), dtype=object))


def space():
    return InputSpace(((2, 3), (2,)), np.array([0, 1, 3, 7]))


def input_map():
    return InputMap(space(), np.ones(4), ((np.eye(2), np.eye(3)[:, :2]), None))


def partial():
    return Partial(np.array([1]), np.ones((1, 4)))


def own_groups():
    return OwnGroups(np.array([[0, 1], [2, 3]]), np.array([[0], [2]]))


def own():
    values, maps = np.ones((2, 2, 1)), np.ones((2, 2, 2))
    return OwnCoefficients((own_groups(),), (4, 3), (values,), (maps,), np.ones(3), np.ones(4))


def input_model():
    return InputModel(
        np.zeros(3), np.eye(3)[:, :2], np.ones(2), np.ones(3), (2.0, 4.0), (3.0, 6.0), 20
    )


def row_residuals():
    return RowResiduals(np.ones(4), np.full(4, 6.0), np.array(["a", "b", "c", "d"]))


RECORDS = {
    "Tucker": tucker,
    "Moments": moments,
    "Grid": grid,
    "Labels": labels,
    "InputSpace": space,
    "InputMap": input_map,
    "Partial": partial,
    "OwnGroups": own_groups,
    "OwnCoefficients": own,
    "InputModel": input_model,
    "RowResiduals": row_residuals,
}


def test_every_record_that_files_may_hold_has_a_schema():
    public = {
        name
        for module in _MODULES
        for name in __import__(module, fromlist=["_"]).__all__
        if dataclasses.is_dataclass(getattr(__import__(module, fromlist=["_"]), name))
    }
    assert public | set(_INTERNAL) == set(_RECORDS) == set(RECORDS)
    for name, make in RECORDS.items():
        fields = {f.name for f in dataclasses.fields(make())}
        # These are checked by their shape, or may be anything.
        free = {"Sxx", "Sxy", "squares", "feature_names", "name"}
        assert fields - free == set(_RECORDS[name][0]) - free


@pytest.mark.parametrize("name", RECORDS)
def test_every_field_of_a_record_must_be_of_its_type(name):
    value = RECORDS[name]()
    rebuilt(value)
    anything = {"Grid": {"name"}, "Labels": {"sample_dim"}}.get(name, set())
    for field in {f.name for f in dataclasses.fields(value)} - anything:
        for wrong in (*NOTHING, "x" if field != "kind" else 3):
            with pytest.raises(ValueError, match=rf"{name}"):
                rebuilt(dataclasses.replace(value, **{field: wrong}))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"factors": (np.ones((5, 2)),)}, "differ in their order"),
        ({"factors": (np.ones((5, 3)), None)}, "factor 0 and the core differ in their rank"),
        ({"core": np.array(1.0), "factors": ()}, "differ in their order"),
        (
            {"core": 1},
            r"Tucker\.core must be an array of floating-point numbers; it is 1 of type int",
        ),
        ({"core": np.ones((2, 1), dtype=int)}, r"Tucker\.core must be"),
        ({"leading": (0, 2)}, "leading must contain modes"),
    ],
)
def test_a_tucker_tensor_whose_parts_do_not_fit_is_refused(value, message):
    with pytest.raises(ValueError, match=message):
        rebuilt(dataclasses.replace(tucker(), **value))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"n_samples": "x"}, r"Moments\.n_samples must be a whole number of at least 1; it is 'x'"),
        ({"n_samples": True}, "n_samples"),
        ({"n_samples": 0}, "n_samples"),
        ({"weight": 0.0}, "weight must be positive"),
        ({"weight": float("nan")}, "weight must be positive"),
        ({"Sxx": np.ones((5, 4))}, r"Sxx must be an array .* of shape \(5, 5\)"),
        ({"Sxy": np.ones((5, 3))}, "Sxy"),
        ({"mean_y": np.ones((3, 3))}, "Sxy"),
        ({"squares": np.ones(3)}, "squares"),
        ({"response_grams": (np.ones((3, 3)),)}, "response_grams"),
        ({"dtype": "int8"}, "dtype"),
        ({"feature_names": np.array(["a"])}, "5 feature names"),
        ({"feature_names": np.arange(5)}, "5 feature names"),
        ({"labels": Labels(inputs=(Grid(("driver",), (6,)),))}, "labels of 6 features"),
        ({"labels": Labels("dataarray", outputs=Grid(("lat",), (3,)))}, "labels of outputs"),
    ],
)
def test_moments_whose_parts_do_not_fit_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        rebuilt(dataclasses.replace(moments(), **value))


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        (grid, {"shape": (3,)}, "dims and shape"),
        (grid, {"dims": ("lat", "lat")}, "two axes"),
        (grid, {"coords": {"lat": (("lat",), np.arange(2.0), {})}}, "coordinate 'lat'"),
        (grid, {"coords": {"lat": (("x",), np.arange(3.0), {})}}, "coordinate 'lat'"),
        (grid, {"coords": {"lat": np.arange(3.0)}}, "coordinate 'lat'"),
        (grid, {"levels": {"lat": ("a", "b")}}, "levels of 'lat'"),
        (space, {"cells": np.array([0, 8])}, "cells of columns"),
        (space, {"cells": np.array([0, 0])}, "cells of columns"),
        (input_map, {"scale": np.ones(3)}, "scale must have 4 entries"),
        (input_map, {"bases": (None,)}, "bases and blocks"),
        (input_map, {"bases": ((np.eye(3), np.eye(3)), None)}, r"the sizes \(2, 3\)"),
        (partial, {"columns": np.array([4])}, "differ in their sizes"),
        (partial, {"B": np.ones((2, 4))}, "differ in their sizes"),
        (own_groups, {"outputs": np.array([[0]])}, "differ in their number"),
        (own_groups, {"columns": np.array([[0, -1], [2, 3]])}, "differ in their number"),
        (own, {"mean": np.ones(3)}, "mean must have 4 entries"),
        (own, {"freedom": np.ones(4)}, "freedom must have 3 entries"),
        (own, {"values": ()}, "groups, values and maps"),
        (own, {"values": (np.ones((2, 1, 1)),)}, "do not fit"),
        (own, {"shape": (4, 2), "freedom": np.ones(2)}, "do not fit"),
        (input_model, {"components": np.eye(3)}, "a column for each variance"),
        (input_model, {"residual_variances": np.ones(2)}, "must have 3 entries"),
        (input_model, {"variances": np.array([1.0, 0.0])}, "variances must be positive"),
        (input_model, {"residual_variances": np.array([1.0, np.nan, 1.0])}, "must be positive"),
        (input_model, {"unit": 0.0}, "unit must be positive"),
        (row_residuals, {"counts": np.ones(3)}, "differ in number"),
        (row_residuals, {"labels": np.arange(3)}, "differ in number"),
        (labels, {"cells": np.array([5])}, "cells of columns"),
        (labels, {"used": np.array([1, 1])}, "columns that are used"),
        (labels, {"kind": "pickle"}, "Labels.kind must be one of"),
        (labels, {"kind": "frame"}, "if and only if they are a table"),
        (labels, {"kind": "dataset"}, "variables and the outputs"),
        (labels, {"columns": (np.arange(2), np.arange(3))}, "columns and their names"),
        (labels, {"places": np.arange(2)}, "places of columns"),
    ],
)
def test_labels_whose_parts_do_not_fit_are_refused(make, value, message):
    with pytest.raises(ValueError, match=message):
        rebuilt(dataclasses.replace(make(), **value))


# ---------------------------------------------------------------- estimators


def test_every_fitted_attribute_must_be_of_its_type(row):
    model = row.make(output_shape=Y.shape[1:]).fit(X, Y.reshape(30, -1))
    models = [model, row.make().partial_fit(X, Y)] if row.batches else [model]
    for fitted in models:
        names = set(vars(fitted)) - set(row.params)
        assert names <= {*_FITTED, "intercept_", "feature_names_in_", "_noise"}
        for name in names:
            for wrong in (*NOTHING, object_of_another_kind(getattr(fitted, name))):
                forged = copy.copy(fitted)
                vars(forged)[name] = wrong
                with pytest.raises(ValueError, match=r"must|labels of|differ"):
                    rebuilt(forged)


def object_of_another_kind(value):
    return 1.5 if isinstance(value, str) else "x"


def forged(model, **state):
    model = copy.copy(model)
    vars(model).update(state)
    return model


FITTED = HOLRR(2).fit(X, Y)
KERNEL = KernelRLS(kernel="rbf", gamma=0.1).fit(X, Y)
SEARCH = HOLRRCV([0.1, 1.0], cv=2).fit(X, Y)
LANDMARKS = KernelHOLRRCV([1.0], gammas=[0.1], n_components=9, cv=2, random_state=0).fit(X, Y)
SCALED = Standardizer().fit(X)
SELECTED = RangeSelector((1, 3)).fit(X)
DERIVED = SavitzkyGolay(3).fit(X)


@pytest.mark.parametrize(
    ("model", "state", "message"),
    [
        (FITTED, {"intercept_": np.zeros((1, 1))}, r"intercept_ must be .* of shape \(3, 4\)"),
        (FITTED, {"intercept_": 0.0}, "intercept_"),
        (FITTED, {"n_features_in_": 6}, "n_features_in_ must be 5"),
        (FITTED, {"feature_names_in_": np.array(["a"])}, "feature_names_in_ must be 5 texts"),
        (FITTED, {"labels_": Labels("dataarray", outputs=Grid(("a",), (3,)))}, "labels of outputs"),
        (FITTED, {"labels_": Labels(flat=Grid(("a",), (13,)))}, "labels of 13 outputs"),
        (FITTED, {"spectra_": [np.ones(2)]}, "spectra_ must have 3 entries"),
        (FITTED, {"_noise": np.ones((4, 3))}, "noise must be that of outputs"),
        (FITTED, {"_noise": (np.ones((3, 4)), "x")}, "noise must be that of outputs"),
        (FITTED, {"_hat": {"form": "map"}}, "missing entries: alpha, factor, mean, weight"),
        (FITTED, {"_hat": {**FITTED._hat, "mean": np.ones(4)}}, "mean must have 5 entries"),
        (FITTED, {"_hat": {**FITTED._hat, "factor": None}}, "factor must be a matrix"),
        (FITTED, {"_input_model": input_model()}, "must be that of 5 inputs"),
        (FITTED, {"predict": 3}, "'predict' would hide an attribute of the class"),
        (FITTED, {"coef_": np.ones(3)}, "'coef_' would hide"),
        (FITTED, {"moments_": moments()._shifted}, "cannot be saved"),
        (FITTED, {"alpha": "much"}, "alpha"),
        (KERNEL, {"X_fit_": X[:29]}, "X_fit_ must have 30 rows"),
        (KERNEL, {"X_fit_": X[:, :4]}, "X_fit_ must have 5 columns"),
        (KERNEL, {"kernel": "triangle"}, "kernel"),
        (SEARCH, {"best_estimator_": RLS()}, "best_estimator_ has coefficients of another shape"),
        (SEARCH, {"best_estimator_": HOLRR(1).fit(X, Y[:, :2])}, "best_estimator_"),
        (SEARCH, {"stack_weights_": np.ones(77)}, "stack_ranks_ and stack_weights_ differ"),
        (SEARCH, {"stack_alphas_": np.ones(77)}, "stack_ranks_ and stack_alphas_ differ"),
        (SEARCH, {"stack_ranks_": [(1, 1, 1)] * 77}, "stack_ranks_ and stack_weights_ differ"),
        (SEARCH, {"stack_ranks_": [0.5] * len(SEARCH.stack_ranks_)}, "stack_ranks_ must be"),
        (SEARCH, {"best_params_": [0.1]}, "best_params_ must be"),
        (SEARCH, {"_intervals": {}}, "levels is missing"),
        (SEARCH, {"_intervals": {"levels": None, "df": "x"}}, "df must be a number"),
        (
            SEARCH,
            {"_intervals": {**SEARCH._intervals, "entry": np.ones(3)}},
            "entry must be quantil",
        ),
        (LANDMARKS, {"landmarks_": X[:9, :4]}, "landmarks_ must have 5 columns"),
        (SCALED, {"scaling_": {"": ((), np.ones(5), np.ones(4))}}, "the scaling of '' must have"),
        (SCALED, {"scaling_": {"": ((), np.ones(4), np.ones(4))}}, "the scaling has 4 features"),
        (SELECTED, {"columns_": np.array([1, 5])}, "must be among the 5 features"),
        (SELECTED, {"columns_": np.array([1, 1])}, "must be among the 5 features"),
        (SELECTED, {"selected_": {"": np.array([-1])}}, "must be among the 5 features"),
        (SELECTED, {"selected_": {"": [1]}}, "selected_ must be a dict from text"),
        (SELECTED, {"ranges": 3}, "ranges"),
        (DERIVED, {"window": "x"}, "window"),
        (DERIVED, {"feature_names_in_": np.array(["a"])}, "feature_names_in_ must be 5 texts"),
    ],
)
def test_attributes_that_do_not_fit_the_coefficients_are_refused(model, state, message, tmp_path):
    bad = forged(model, **state)
    with pytest.raises((TypeError, ValueError), match=message):
        rebuilt(bad)
    with pytest.raises((TypeError, ValueError), match=r"cannot be saved"):
        save(bad, tmp_path / "file")
    assert not list(tmp_path.iterdir())


def test_attributes_set_by_the_user_are_kept(tmp_path):
    """They hide nothing: notes of a user, or what a newer version adds."""
    save(forged(FITTED, station_="Oxford"), tmp_path / "file")
    assert load(tmp_path / "file").station_ == "Oxford"


def test_a_forged_file_with_valid_checksums_is_refused(tmp_path):
    moments().save(tmp_path / "moments")
    tree = header_of(tmp_path / "moments")["object"]
    tree["state"]["n_samples"] = "x"
    rewrite(tmp_path / "moments", object=tree)
    with pytest.raises(
        ValueError, match=r"cannot be read by holrr .*: Moments\.n_samples must be a whole number"
    ):
        Moments.load(tmp_path / "moments")
    save(tucker(), tmp_path / "tucker")
    tree = header_of(tmp_path / "tucker")["object"]
    tree["state"]["core"] = 1
    rewrite(tmp_path / "tucker", object=tree)
    with pytest.raises(
        ValueError, match=r"cannot be read by holrr .*: Tucker\.core must be an array"
    ):
        load(tmp_path / "tucker")


# ---------------------------------------------------------------- pipelines and splitters


@pytest.mark.parametrize(
    "state",
    [
        {"n_splits": "x", "shuffle": False, "random_state": None},
        {"n_splits": 1, "shuffle": False, "random_state": None},
        {"n_splits": 3, "shuffle": "no", "random_state": None},
        {"n_splits": 3, "shuffle": False, "random_state": None, "split": 3},
        {"n_splits": 3, "shuffle": False, "random_state": None, "other": 3},
    ],
    ids=range(5),
)
def test_a_splitter_with_other_settings_than_its_constructor_takes_is_refused(state):
    good = {"n_splits": 3, "shuffle": False, "random_state": None}
    tree = {"$": "splitter", "class": "KFold", "state": good}
    assert Decoder({}, VERSION).decode(tree).get_n_splits() == 3
    with pytest.raises((TypeError, ValueError)):
        Decoder({}, VERSION).decode({**tree, "state": state})


def test_a_forged_splitter_of_shuffles_is_refused():
    state = {**vars(ShuffleSplit(2, test_size=0.25)), "test_size": "x"}
    with pytest.raises(ValueError, match=r"ShuffleSplit\.test_size must be None, a boolean"):
        Decoder({}, VERSION).decode({"$": "splitter", "class": "ShuffleSplit", "state": state})


def test_every_splitter_of_scikit_learn_that_is_plain_is_the_same_after_encoding():
    made = [
        getattr(model_selection, name)()
        for name in [
            "KFold",
            "StratifiedKFold",
            "GroupKFold",
            "TimeSeriesSplit",
            "LeaveOneOut",
            "ShuffleSplit",
            "LeaveOneGroupOut",
            "GroupShuffleSplit",
            "StratifiedShuffleSplit",
            "StratifiedGroupKFold",
        ]
    ]
    made += [model_selection.LeavePOut(2), model_selection.LeavePGroupsOut(2)]
    made += [PredefinedSplit([0, 0, 1, 1]), GroupKFold(3), KFold(4, shuffle=True, random_state=1)]
    for splitter in made:
        again = rebuilt(splitter)
        assert type(again) is type(splitter)
        assert repr(again) == repr(splitter)


@pytest.mark.parametrize("names", [["a", "a"], [1, "b"], ["a__b", "c"]], ids=str)
def test_steps_of_a_pipeline_need_names_of_their_own(names):
    pipeline = make_pipeline(Standardizer(), RLS())
    rebuilt(pipeline)
    pipeline.steps = [(name, step) for name, (_, step) in zip(names, pipeline.steps, strict=True)]
    with pytest.raises(ValueError, match="its steps must have unique names"):
        rebuilt(pipeline)


def test_files_hold_what_was_saved_with_labels_of_every_kind(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    y = xr.DataArray(Y, dims=("time", "lat", "lon"), coords={"lat": [1, 2, 3]})
    table = pd.DataFrame(
        Y.reshape(30, -1), columns=pd.MultiIndex.from_product([list("abc"), range(4)])
    )
    flat = y.stack(place=("lat", "lon"))
    for outputs, params in (
        (y, {}),
        (y.to_dataset("lat"), {}),
        (table, {}),
        (table.iloc[:, ::-1], {}),
        (table.iloc[:, :-1], {"missing": "ignore"}),
        (pd.DataFrame(Y[:, 0]), {}),
        (flat, {"output_shape": (3, 4)}),
        (table, {"output_shape": (3, 4)}),
    ):
        model = RLS(**params).fit(X, outputs)
        model.save(tmp_path / "model")
        assert holrr.load(tmp_path / "model").predict(X).equals(model.predict(X))
