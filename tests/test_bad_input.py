"""Bad input raises an error that names it, and leaves the estimator as it was.

All data go through one validation (`holrr.data.validation`), so that most tests run for the rows
that represent a family. The first pass over the outputs, which finds entries that are not finite,
depends on the solver: that test runs for every row.
"""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import joblib
import numpy as np
import pytest
import scipy.sparse
from numpy.lib.recfunctions import unstructured_to_structured
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils._param_validation import InvalidParameterError

from holrr import HOLRR, RLS, RLSCV, KernelHOLRR, KernelRLS, KernelRLSCV
from holrr.streaming import memory_budget
from problems import on_disk, toy
from registry import PUBLIC, ROWS

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty", "ignore:landmarks=")


def assert_raises(model, call, message, error=(ValueError, TypeError)):
    """Assert that the call raises and does not change the model."""
    before = joblib.hash(vars(model))
    with pytest.raises(error, match=message):
        call(model)
    assert joblib.hash(vars(model)) == before


FITTED: dict[str, bytes] = {}


def fitted(row):
    """A model of the toy data, which is fitted once for all tests."""
    if row.id not in FITTED:
        FITTED[row.id] = pickle.dumps(row.make().fit(*toy()))
    return pickle.loads(FITTED[row.id])


def put(a, index, value):
    a = a.copy()
    a[index] = value
    return a


def with_text(a):
    return put(a.astype(object), (3,) + (0,) * (a.ndim - 1), "seven")


def masked(a):
    """One entry is masked, whose value is finite."""
    return np.ma.masked_array(
        a, mask=put(np.zeros(a.shape, dtype=bool), (4,) + (0,) * (a.ndim - 1), True)
    )


def frame(a):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    return pd.DataFrame(np.asarray(a).reshape(len(a), -1))


def named(a):
    return frame(a).set_axis(list("abcde"), axis=1)


def dates(a):
    return (1e3 * a).astype("int64").astype("datetime64[s]")


def durations(a):
    return (1e3 * a).astype("int64").astype("timedelta64[s]")


NAN, INF = np.nan, np.inf
# Messages name the argument, and the kind of what is no number.
NO_NUMBER = r"(number|numeric|dtype|datetime|timedelta|string|str\b|<U)"
NO_X, NO_Y = (rf"(?s)\b{n}\b.*{NO_NUMBER}|{NO_NUMBER}.*\b{n}\b" for n in ("X", "y"))
MASKED_X, MASKED_Y = (rf"(?s)\b{n}\b.*(?i:mask|NaN|missing)" for n in ("X", "y"))

# case -> (data to fit, message)
BAD_DATA = {
    "NaN in X": (lambda X, Y: (put(X, (7, 2), NAN), Y), r"X.*NaN.*\(7, 2\)"),
    "inf in X": (lambda X, Y: (put(X, (7, 2), INF), Y), r"X.*inf.*\(7, 2\)"),
    "NaN in wide X": (lambda X, Y: (put(X[:4], (3, 2), NAN), Y[:4]), r"X.*NaN.*\(3, 2\)"),
    "NaN in scalar targets": (lambda X, Y: (X, put(Y[:, 0, 0], 9, NAN)), r"y.*NaN.*9"),
    "fewer samples in Y": (lambda X, Y: (X, Y[:-1]), r"X and y.*number of samples.*40.*39"),
    "empty mode of Y": (lambda X, Y: (X, Y[:, :, :0]), r"y.*empty mode.*\(40, 3, 0\)"),
    "no samples": (lambda X, Y: (X[:0], Y[:0]), r"0 sample.*X|X.*0 sample"),
    "no samples in Y": (lambda X, Y: (X, Y[:0]), r"y.*sample|sample.*y"),
    "no features": (lambda X, Y: (X[:, :0], Y), r"0 feature|X.*empty mode"),
    "X a dict": (lambda X, Y: ({"a": 1.0}, Y), r"\bX\b"),
    "X None": (lambda X, Y: (None, Y), r"\bX\b"),
    "X a vector": (lambda X, Y: (X[:, 0], Y), r"Expected 2D array"),
    "Y a scalar": (lambda X, Y: (X, 3.0), r"y.*scalar"),
    "Y None": (lambda X, Y: (X, None), r"y.*None"),
    "complex X": (lambda X, Y: (X + 1j, Y), r"(?s)\bX\b.*omplex|omplex.*\bX\b"),
    "complex Y": (lambda X, Y: (X, Y + 1j), r"(?s)\by\b.*omplex|omplex.*\by\b"),
    "strings in X": (
        lambda X, Y: (with_text(X), Y),
        r"X must hold numbers; got 'seven' of type str\. Convert text",
    ),
    "strings in Y": (
        lambda X, Y: (X, with_text(Y)),
        r"y must hold numbers; got 'seven' of type str\. Convert text",
    ),
    "numerals in X": (lambda X, Y: (X.astype(str), Y), r"got '.*' of type str.*X\.astype\(float\)"),
    "a file as X": (lambda X, Y: ("X.csv", Y), r"X='X\.csv'.*load the file first"),
    "a path as Y": (lambda X, Y: (X, Path("Y.npy")), r"y=.*Path.*load the file first"),
    "structured X": (
        lambda X, Y: (unstructured_to_structured(X), Y),
        r"X is a structured array; pass a DataFrame, or .*structured_to_unstructured\(X\)",
    ),
    "ragged Y": (lambda X, Y: (X[:2], [[1.0, 2.0], [3.0]]), r"\by\b|inhomogeneous"),
    "masked X": (lambda X, Y: (masked(X), Y), MASKED_X),
    "masked Y": (lambda X, Y: (X, masked(Y)), MASKED_Y),
    "dates in X": (lambda X, Y: (dates(X), Y), NO_X),
    "dates in Y": (lambda X, Y: (X, dates(Y)), NO_Y),
    "durations in X": (lambda X, Y: (durations(X), Y), NO_X),
    "durations in Y": (lambda X, Y: (X, durations(Y)), NO_Y),
    "digits in X": (lambda X, Y: (X.astype(str), Y), NO_X),
    "digits in Y": (lambda X, Y: (X, Y.astype(str)), NO_Y),
    "bytes in X": (lambda X, Y: (X.astype("S"), Y), NO_X),
    "digits as objects in X": (lambda X, Y: (X.astype(str).astype(object), Y), NO_X),
    "digits as objects in Y": (lambda X, Y: (X, Y.astype(str).astype(object)), NO_Y),
    "digits in a table X": (lambda X, Y: (frame(X.astype(str)), Y), NO_X),
    "digits in a table Y": (lambda X, Y: (X, frame(Y.astype(str))), NO_Y),
    "dates in a table X": (lambda X, Y: (frame(dates(X)), Y), NO_X),
    "dates in a table Y": (lambda X, Y: (X, frame(dates(Y))), NO_Y),
    "rows of other labels": (
        lambda X, Y: (frame(X), frame(Y).rename(index={7: "seven"})),
        r"(?s)(index|label|row).*\b7\b.*seven",
    ),
    "rows in another order": (
        lambda X, Y: (frame(X), frame(Y).rename(index={7: 8, 8: 7})),
        r"(?s)(index|label|row).*\b7\b.*\b8\b",
    ),
    "a feature without any value": (
        lambda X, Y: (put(X, (slice(None), 2), NAN), Y),
        r"X contains NaN.*Leave out feature 2, for which no sample has",
    ),
    "a named feature without any value": (
        lambda X, Y: (named(put(X, (slice(None), 2), NAN)), Y),
        r"feature 'c'\).*Leave out feature 'c', for which no sample has",
    ),
    "features without any finite value": (
        lambda X, Y: (put(put(X, (slice(None), 2), INF), (slice(None), 4), NAN), Y),
        r"Leave out the 2 features 2, 4, for which no sample has",
    ),
    "NaN in every sample": (
        lambda X, Y: (np.where((np.arange(40)[:, None] % 2) == np.arange(5), NAN, X), Y),
        r"All 40 samples have such entries",
    ),
    "NaN in some samples of a table": (
        lambda X, Y: (named(put(X, ([7, 9], 2), NAN)), Y),
        r"\(7, 2\).*feature 'c'.*Drop these samples \(2 of 40\)",
    ),
    "columns of the same name": (
        lambda X, Y: (named(X).rename(columns={"b": "a"}), Y),
        r"X has two columns 'a'",
    ),
    "sparse Y": (lambda X, Y: (X, scipy.sparse.csr_array(Y[:, 0])), r"[Ss]parse.*y"),
}


@pytest.mark.rows("representative", "batches")
def test_a_feature_that_a_later_batch_lacks_is_not_to_be_left_out(row):
    X, Y = toy()
    model = row.make().partial_fit(X, Y)
    call = lambda m: m.partial_fit(put(X, (slice(None), 2), NAN), Y)  # noqa: E731
    assert_raises(model, call, r"All 40 samples have such entries: impute the values first\.$")


def test_sparse_inputs_of_a_pipeline_name_the_parameter_of_the_step():
    X, Y = toy()
    pipeline = make_pipeline(OneHotEncoder(handle_unknown="ignore"), KernelRLS())
    with pytest.raises(TypeError, match="set sparse_output=False of the step"):
        pipeline.fit(X.round(), Y)
    pipeline.set_params(onehotencoder__sparse_output=False).fit(X.round(), Y)


@pytest.mark.rows("refuses_sparse")
def test_sparse_inputs_that_an_estimator_does_not_take_raise(row):
    X, Y = toy()
    S, message = (
        scipy.sparse.csr_array(X),
        (r"X is a sparse.*for (Kernel|.* with loss='huber').*sparse_output=False"),
    )
    assert_raises(fitted(row), lambda m: m.fit(S, Y), message, TypeError)
    for use in (lambda m: m.predict(S), lambda m: m.score(S, Y), lambda m: m.transform(S)):
        assert_raises(fitted(row), use, message, TypeError)
    if row.batches:
        assert_raises(fitted(row), lambda m: m.partial_fit(S, Y), message, TypeError)


SPARSE = {
    "NaN": (lambda X, Y: (put(X, (7, 2), NAN), Y), r"X.*NaN.*\(7, 2\).*Drop these samples"),
    "infinity": (lambda X, Y: (put(X, (7, 2), -INF), Y), r"X.*infinity.*\(7, 2\)"),
    "fewer outputs": (lambda X, Y: (X, Y[:9]), r"samples along their first axis.*40.*9"),
    "complex": (lambda X, Y: (X + 1j, Y), r"[Cc]omplex"),
    "NaN in y": (lambda X, Y: (X, put(Y, (9, 1, 3), NAN)), r"y.*NaN.*\(9, 1, 3\)"),
}


@pytest.mark.rows("takes_sparse")
@pytest.mark.parametrize("case", SPARSE)
def test_bad_sparse_data_raise(row, case):
    change, message = SPARSE[case]
    X, Y = change(*toy())
    assert_raises(fitted(row), lambda m: m.fit(scipy.sparse.csr_array(X), Y), message)
    if row.batches:
        model = row.make().partial_fit(*toy())
        assert_raises(model, lambda m: m.partial_fit(scipy.sparse.csr_array(X), Y), message)


def test_bad_entries_of_labelled_inputs_are_named():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    X, Y = toy(d0=6)
    dims, coords = ("time", "lat", "lon"), {"lat": [50.0, 60.0], "lon": [0, 5, 10]}
    whole = xr.DataArray(X.reshape(40, 2, 3), dims=dims, coords=coords)
    some, none = whole.copy(), whole.copy()
    some[7, 1, 0] = none[:, 1, 0] = NAN
    message = r"\(7, 3\) \(the first one, in sample 7, feature 'lat=60.0,lon=0'\)"
    model = RLS().fit(whole, Y)
    for call in (lambda: RLS().fit(some, Y), lambda: model.predict(some)):
        with pytest.raises(ValueError, match=message):
            call()
    with pytest.raises(ValueError, match=r"Leave out feature 'lat=60.0,lon=0'"):
        RLS().fit(none.fillna(INF), Y)  # if all are NaN, the feature is left out
    with pytest.raises(ValueError, match="impute the values first"):  # it cannot be left out
        model.predict(none)


@pytest.mark.rows("representative")
@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_raise(row, case):
    change, message = BAD_DATA[case]
    X, Y = toy()
    assert_raises(fitted(row), lambda m: m.fit(*change(X, Y)), message)
    if row.batches:
        model = row.make().partial_fit(X, Y)
        message += "|feature|outputs of shape"  # another order of y or X may be noticed first
        assert_raises(model, lambda m: m.partial_fit(*change(X, Y)), message)


NOT_FINITE = {
    "NaN": (lambda X, Y: (X, put(Y, (9, 1, 3), NAN)), r"y.*NaN.*\(9, 1, 3\)"),
    "infinity": (lambda X, Y: (X, put(Y, (9, 1, 3), -INF)), r"y.*inf.*\(9, 1, 3\)"),
    "opposite infinities": (
        lambda X, Y: (X, put(put(Y, (9, 1, 3), INF), (20, 1, 3), -INF)),
        r"y.*inf.*\(9, 1, 3\)",
    ),
    "NaN beside wide X": (lambda X, Y: (X[:4], put(Y[:4], (3, 1, 3), NAN)), r"y.*NaN.*\(3, 1, 3\)"),
    "NaN of weight zero": (
        lambda X, Y: (X, put(Y, (0, 1, 3), NAN), np.r_[0.0, np.ones(39)]),
        r"y.*NaN.*\(0, 1, 3\)",
    ),
}


@pytest.mark.parametrize("case", NOT_FINITE)
def test_outputs_that_are_not_finite_raise_with_their_position(row, case):
    change, message = NOT_FINITE[case]
    X, Y = toy()
    assert_raises(fitted(row), lambda m: m.fit(*change(X, Y)), message)
    fresh = row.make()
    assert_raises(fresh, lambda m: m.fit(*change(X, Y)), message)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    if row.batches:
        model = row.make().partial_fit(X, Y)
        assert_raises(model, lambda m: m.partial_fit(*change(X, Y)), message)


@pytest.mark.rows("batches")
@pytest.mark.parametrize("decay", [0.0, -0.5, 1.5, NAN, True, "0.9", None])
def test_decays_outside_of_their_range_raise(row, decay):
    X, Y = toy()
    message = r"decay must be a number above 0 and at most 1.*got "
    assert_raises(row.make(), lambda m: m.partial_fit(X, Y, decay=decay), message, ValueError)
    model = row.make().partial_fit(X, Y)
    assert_raises(model, lambda m: m.partial_fit(X, Y, decay=decay), message, ValueError)


OTHER_SHAPES = {
    "other output shape": (lambda X, Y: (X, Y[:, :2]), r"y.*\(2, 4\).*\(3, 4\)"),
    "other order": (lambda X, Y: (X, Y[:, 0]), r"y.*\(4,\).*\(3, 4\)"),
    "other features": (lambda X, Y: (X[:, :3], Y), r"X has 3 features.*expecting 5"),
}


@pytest.mark.rows("representative", "batches")
@pytest.mark.parametrize("case", OTHER_SHAPES)
def test_batches_of_another_shape_raise(row, case):
    change, message = OTHER_SHAPES[case]
    X, Y = toy()
    model = row.make(**row.pinned(X)).partial_fit(X[:20], Y[:20])
    assert_raises(model, lambda m: m.partial_fit(*change(X[20:], Y[20:])), message, ValueError)
    model.partial_fit(X[20:], Y[20:])  # and it can still continue
    row.near(model.predict(X), row.make(**row.pinned(X)).fit(X, Y).predict(X))


USES = {
    "NaN": (lambda m, X, Y: m.predict(put(X, (7, 2), NAN)), r"X.*NaN.*\(7, 2\)"),
    "more features": (
        lambda m, X, Y: m.predict(np.hstack([X, X])),
        r"X has 10 features.*expecting 5",
    ),
    "fewer features": (lambda m, X, Y: m.predict(X[:, :2]), r"X has 2 features.*expecting 5"),
    "vector": (lambda m, X, Y: m.predict(X[0]), r"Reshape your data"),
    "no samples": (lambda m, X, Y: m.predict(X[:0]), r"0 sample"),
    "complex": (lambda m, X, Y: m.predict(X + 1j), r"[Cc]omplex"),
    "NaN in a single sample": (
        lambda m, X, Y: m.predict(put(X[:1], (0, 2), NAN)),
        r"X.*NaN.*\(0, 2\).*impute the values first",
    ),
    "columns of the same name": (
        lambda m, X, Y: m.predict(named(X).rename(columns={"b": "a"})),
        r"X has two columns 'a'",
    ),
    "NaN in sparse inputs": (
        lambda m, X, Y: m.predict(scipy.sparse.csr_array(put(X, (7, 2), NAN))),
        r"X.*NaN.*\(7, 2\)|X is a sparse.*sparse_output=False",
    ),
    "masked": (lambda m, X, Y: m.predict(masked(X)), MASKED_X),
    "dates": (lambda m, X, Y: m.predict(dates(X)), NO_X),
    "digits": (lambda m, X, Y: m.predict(X.astype(str)), NO_X),
    "score of masked": (lambda m, X, Y: m.score(X, masked(Y)), MASKED_Y),
    "score of digits": (lambda m, X, Y: m.score(X, Y.astype(str)), NO_Y),
    "score of dates": (lambda m, X, Y: m.score(X, dates(Y)), NO_Y),
    "score of rows of other labels": (
        lambda m, X, Y: m.score(frame(X), frame(Y).rename(index={7: "seven"})),
        r"(?s)(index|label|row).*\b7\b.*seven|must have shape",
    ),
    "score of NaN": (lambda m, X, Y: m.score(X, put(Y, (9, 1, 3), NAN)), r"y.*NaN"),
    "score of another shape": (
        lambda m, X, Y: m.score(X, Y[:, :2]),
        r"y must have shape.*\(40, 3, 4\).*\(40, 2, 4\)",
    ),
}


@pytest.mark.rows("representative")
@pytest.mark.parametrize("case", USES)
def test_bad_data_to_predict_for_or_score_raise(row, case):
    use, message = USES[case]
    X, Y = toy()
    assert_raises(fitted(row), lambda m: use(m, X, Y), message)


BAD_WEIGHTS = {
    "negative": (np.r_[-1.0, np.ones(39)], r"sample_weight.*negative.*-1.*sample 0"),
    "all zero": (np.zeros(40), r"sample_weight.*zero"),
    "NaN": (np.r_[1.0, np.nan, np.ones(38)], r"sample_weight.*NaN.*sample 1"),
    "infinite": (np.r_[1.0, np.inf, np.ones(38)], r"sample_weight.*inf.*sample 1"),
    "too few": (np.ones(39), r"sample_weight.*39.*40"),
    "a matrix": (np.ones((40, 2)), r"[Ss]ample.weight.*1D.*\(40, 2\)"),
    "strings": (np.array(["a"] * 40), r"sample_weight"),
    "complex": (np.ones(40) * 1j, r"sample_weight"),
    "masked": (np.ma.masked_less(np.arange(40.0), 3), r"sample_weight.*masked.*sample 0"),
    "negative scalar": (-2.0, r"sample_weight.*negative"),
}


@pytest.mark.rows("representative")
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights_raise(row, case):
    weights, message = BAD_WEIGHTS[case]
    X, Y = toy()
    assert_raises(fitted(row), lambda m: m.fit(X, Y, weights), message)
    if row.batches:
        assert_raises(row.make(), lambda m: m.partial_fit(X, Y, weights), message)


# ---------------------------------------------------------------- parameters

ALWAYS_BAD = {
    "loss": ["absolute", None, 1],
    "alpha": (-1.0, NAN, INF, -INF, "much", None, (1.0, 2.0), 1j, {"a": 1.0}),
    "alpha_per_output": ("yes", 1.5),
    "alphas": ([], [1.0, -1.0], [1.0, NAN], [INF], [2.0, 1.0, 2.0], [[1.0, 2.0]], "much"),
    "beta": (-1.0, 0.0, NAN, INF, "much", None),
    "betas": ([], [0.0], [NAN], [-1.0, 1.0], "much"),
    "blocks": ("lags", [[0, 1]], [[0, 9], [1, 2, 3, 4]], {}, ["a", "b"], 3, {"a": 0, "b": [0, 1]}),
    "center_kernel": ("yes",),
    "coef0": (INF, "much"),
    "cv": (1, 99, "three"),
    "degree": (-1, "much"),
    "fit_intercept": ("yes",),
    "gamma": (-1.0, "much"),
    "gammas": ([-1.0], "much"),
    "init": ("zeros", None),
    "input_alpha": (-1.0, NAN, "much", None),
    "input_rank": ("all", (2, 2), {"a": 1}, 2.5),
    "input_shape": ((0, 5), (2.0, 2.5), (5, 5), "ab"),
    "kernel": ("triangle", 3, [], [{"kernel": "triangle"}]),
    "kernel_params": (3,),
    "max_iter": (0, 2.5, None),
    "max_rank": (0, 2.5, "two", (1, 1), [1, 2, 3, 4]),
    "missing": ("drop", None, True),
    "mode_weights": ((1.0,), "much", (1.0, -1.0, 1.0)),
    "landmarks": (0, 2.5, "all"),
    "n_init": (0, 1.5),
    "n_jobs": ("two", 1.5),
    "output_shape": ((0, 3), (-1,), (2.0, 3), "ab", [[2, 3]], 6, (5, 5)),
    "output_weight": ([1.0], [[-1.0, 1.0, 1.0], None], [None, [0.0] * 4], "much", 2.0),
    "own": ("auto", "station", [(0, 0)], [(5, 0)], np.ones((2, 2), bool), 3, [], [1, 2]),
    "own_alpha": (-1.0, NAN, "much", None),
    "penalties": ([], [-1.0, 1.0], [NAN], ["a"]),
    "penalty": (-1.0, NAN, INF, "much", None),
    "random_state": ("seed", -1),
    "rank": (0, -3, 2.5, "two", True, NAN, {"a": 1}),
    "refine": ("yes",),
    "scale_outputs": ("much", 0.0, -1.0, NAN, [1.0, 2.0]),
    "selection": ("best", 3),
    "subspaces": ("other", None),
    "tol": (-1e-3, NAN, "much"),
    "verbose": ("loud",),
    "warm_start": ("yes",),
}
# The parameters of a kernel are used in predictions, too.
KERNEL = ("kernel", "gamma", "degree", "coef0", "kernel_params")
# Messages with another name.
MESSAGES = {"cv": "n_splits|cv"}
# One row for each public class, and its parameters.
ROW_OF = {type(row.estimator): row for row in reversed(ROWS)}
PARAMETERS = [
    pytest.param(ROW_OF[cls], name, id=f"{cls.__name__}-{name}")
    for cls in PUBLIC
    for name in cls._get_param_names()
]


@pytest.mark.parametrize(("owner", "name"), PARAMETERS)
def test_bad_parameters_raise(owner, name):
    X, Y = toy()
    for value in ALWAYS_BAD[name]:
        model = fitted(owner).set_params(**{name: value})
        before = None if name in KERNEL else model.predict(X)
        assert_raises(model, lambda m: m.fit(X, Y), MESSAGES.get(name, name))
        if before is not None:
            np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("model", [RLSCV(), KernelRLSCV()], ids=str)
@pytest.mark.parametrize("selection", ["stack", "auto"])
def test_searches_without_ranks_cannot_stack(model, selection):
    with pytest.raises(InvalidParameterError, match="'selection'"):
        model.set_params(selection=selection).fit(*toy())


# ---------------------------------------------------------------- other libraries, files and Dask


@pytest.mark.rows("representative")
def test_arrays_of_two_libraries_raise(row, other_xp):
    X, Y = toy()
    model = row.make()
    assert_raises(model, lambda m: m.fit(X, other_xp.asarray(Y)), r"X and y")
    assert_raises(model, lambda m: m.fit(other_xp.asarray(X), Y), r"X and y")


@pytest.mark.rows("representative")
@pytest.mark.parametrize("where", ["X", "Y"])
@pytest.mark.parametrize("bad", ["NaN", "complex", "empty"])
def test_bad_data_of_other_libraries_raise(row, other_xp, where, bad):
    X, Y = toy()
    change, message = {
        "NaN": (lambda a: put(a, (7,) + (1,) * (a.ndim - 1), NAN), r"NaN.*7"),
        "complex": (lambda a: a + 1j, r"[Cc]omplex"),
        "empty": (lambda a: a[..., :0], r"empty|0 feature"),
    }[bad]
    data = {"X": X, "Y": Y}
    data[where] = change(data[where])
    call = lambda m: m.fit(other_xp.asarray(data["X"]), other_xp.asarray(data["Y"]))  # noqa: E731
    assert_raises(fitted(row), call, message, ValueError)


@pytest.mark.rows("representative")
@pytest.mark.parametrize("where", ["X", "Y"])
@pytest.mark.parametrize("sample", [3, 170])
def test_bad_entries_on_disk_are_located_in_all_the_data(row, where, sample, tmp_path):
    """Their position is not that within a block or a fold."""
    X, Y = toy(n=200)
    data = {"X": X, "Y": Y}
    index = (sample, *([2] if where == "X" else [1, 3]))
    data[where] = put(data[where], index, NAN)
    disk = on_disk(tmp_path, "X", data["X"]), on_disk(tmp_path, "Y", data["Y"])
    message = rf"(?s)[{where}{where.lower()}].*{re.escape(str(index))}"
    with memory_budget(2**12):
        assert_raises(row.make(), lambda m: m.fit(*disk), message)


@pytest.mark.rows("representative", "streams")
@pytest.mark.parametrize("where", ["X", "Y"])
def test_bad_entries_in_dask_arrays_are_located_in_all_the_data(row, where):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy(n=200)
    data = {"X": X, "Y": Y}
    index = (170, *([2] if where == "X" else [1, 3]))
    data[where] = put(data[where], index, NAN)
    lazy = [da.from_array(a, chunks=(60, *a.shape[1:])) for a in data.values()]
    message = rf"(?s)[{where}{where.lower()}].*{re.escape(str(index))}"
    assert_raises(row.make(), lambda m: m.fit(*lazy), message)


def test_messages_do_not_print_the_data():
    X, Y = toy(n=30)
    with pytest.raises(ValueError, match="2D array") as caught:
        HOLRR(2).fit(X[:, 0], Y)
    assert "array=" not in str(caught.value)
    with pytest.raises(ValueError, match="real and imaginary parts") as caught:
        HOLRR(2).fit(X + 1j, Y)
    assert len(str(caught.value)) < 200
    with pytest.raises(ValueError, match="the blocks of a dict"):
        HOLRR(2).fit([X[:, :3], X[:, 3:]], Y)


def test_no_landmarks_raise():
    X, Y = toy(n=30)
    with pytest.raises(ValueError, match="landmarks must contain at least one row"):
        KernelHOLRR(2, kernel="rbf", landmarks=[]).fit(X, Y)
