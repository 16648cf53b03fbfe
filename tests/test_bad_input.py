"""Bad input is refused with a message that names it, and leaves every estimator as it was."""

from __future__ import annotations

import joblib
import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import NotFittedError

from problems import toy
from registry import ROWS


def assert_refused(model, call, message, error=(ValueError, TypeError)):
    """The call raises and nothing about the model has changed."""
    before = joblib.hash(vars(model))
    with pytest.raises(error, match=message):
        call(model)
    assert joblib.hash(vars(model)) == before


def put(a, index, value):
    a = a.copy()
    a[index] = value
    return a


def with_text(a):
    return put(a.astype(object), (3,) + (0,) * (a.ndim - 1), "seven")


NAN, INF = np.nan, np.inf

# case -> (data to fit, message); the messages may call the outputs Y or y
BAD_DATA = {
    "NaN in X": (lambda X, Y: (put(X, (7, 2), NAN), Y), r"X.*NaN.*\(7, 2\)"),
    "inf in X": (lambda X, Y: (put(X, (7, 2), INF), Y), r"X.*inf.*\(7, 2\)"),
    "NaN in Y": (lambda X, Y: (X, put(Y, (9, 1, 3), NAN)), r"[Yy].*NaN.*\(9, 1, 3\)"),
    "inf in Y": (lambda X, Y: (X, put(Y, (9, 1, 3), -INF)), r"[Yy].*inf.*\(9, 1, 3\)"),
    "opposite infinities": (
        lambda X, Y: (X, put(put(Y, (9, 1, 3), INF), (20, 1, 3), -INF)),
        r"[Yy].*inf.*\(9, 1, 3\)",
    ),
    "NaN in wide X": (lambda X, Y: (put(X[:4], (3, 2), NAN), Y[:4]), r"X.*NaN.*\(3, 2\)"),
    "NaN beside wide X": (
        lambda X, Y: (X[:4], put(Y[:4], (3, 1, 3), NAN)),
        r"[Yy].*NaN.*\(3, 1, 3\)",
    ),
    "NaN of weight zero": (
        lambda X, Y: (X, put(Y, (0, 1, 3), NAN), np.r_[0.0, np.ones(39)]),
        r"[Yy].*NaN.*\(0, 1, 3\)",
    ),
    "NaN in scalar targets": (lambda X, Y: (X, put(Y[:, 0, 0], 9, NAN)), r"[Yy].*NaN.*9"),
    "fewer samples in Y": (lambda X, Y: (X, Y[:-1]), r"X and [Yy].*number of samples.*40.*39"),
    "empty mode of Y": (lambda X, Y: (X, Y[:, :, :0]), r"[Yy].*empty mode.*\(40, 3, 0\)"),
    "no samples": (lambda X, Y: (X[:0], Y[:0]), r"0 sample.*X|X.*0 sample"),
    "no samples in Y": (lambda X, Y: (X, Y[:0]), r"[Yy].*sample"),
    "no features": (lambda X, Y: (X[:, :0], Y), r"0 feature|X.*empty mode"),
    "X a dict": (lambda X, Y: ({"a": 1.0}, Y), r"\bX\b"),
    "X missing": (lambda X, Y: (None, Y), r"\bX\b"),
    "X a vector": (lambda X, Y: (X[:, 0], Y), r"Expected 2D array"),
    "X of order three": (lambda X, Y: (Y, Y), r"X|dim 3"),
    "Y a scalar": (lambda X, Y: (X, 3.0), r"[Yy].*scalar"),
    "Y missing": (lambda X, Y: (X, None), r"[Yy].*None"),
    "complex X": (lambda X, Y: (X + 1j, Y), r"(?s)\bX\b.*omplex|omplex.*\bX\b"),
    "complex Y": (lambda X, Y: (X, Y + 1j), r"(?s)\b[Yy]\b.*omplex|omplex.*\b[Yy]\b"),
    "strings in X": (lambda X, Y: (with_text(X), Y), r"(?s)\bX\b.*seven|seven.*\bX\b"),
    "strings in Y": (lambda X, Y: (X, with_text(Y)), r"(?s)\b[Yy]\b.*seven|seven.*\b[Yy]\b"),
    "ragged Y": (lambda X, Y: (X[:2], [[1.0, 2.0], [3.0]]), r"\b[Yy]\b|inhomogeneous"),
    "sparse X": (lambda X, Y: (scipy.sparse.csr_array(X), Y), r"[Ss]parse.*X"),
    "sparse Y": (lambda X, Y: (X, scipy.sparse.csr_array(Y[:, 0])), r"[Ss]parse.*[Yy]"),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_are_refused_and_change_nothing(row, case):
    change, message = BAD_DATA[case]
    X, Y = toy()
    assert_refused(row.make().fit(X, Y), lambda m: m.fit(*change(X, Y)), message)
    fresh = row.make()
    assert_refused(fresh, lambda m: m.fit(*change(X, Y)), message)
    with pytest.raises(NotFittedError):
        fresh.predict(X)


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_batches_are_refused_and_change_nothing(row, case):
    if not hasattr(row.estimator, "partial_fit"):
        pytest.skip("no partial_fit")
    change, message = BAD_DATA[case]
    X, Y = toy()
    model = row.make().partial_fit(X, Y)
    message += "|feature|outputs of shape"  # another order of Y or X may be what strikes first
    assert_refused(model, lambda m: m.partial_fit(*change(X, Y)), message)


MISFITS = {
    "other output shape": (lambda X, Y: (X, Y[:, :2]), r"[Yy].*\(2, 4\).*\(3, 4\)"),
    "other order": (lambda X, Y: (X, Y[:, 0]), r"[Yy].*\(4,\).*\(3, 4\)"),
    "other features": (lambda X, Y: (X[:, :3], Y), r"X has 3 features.*expecting 5"),
}


@pytest.mark.parametrize("case", MISFITS)
def test_batches_of_another_shape_are_refused_and_change_nothing(row, case):
    if not hasattr(row.estimator, "partial_fit"):
        pytest.skip("no partial_fit")
    change, message = MISFITS[case]
    X, Y = toy()
    model = row.make().partial_fit(X[:20], Y[:20])
    assert_refused(model, lambda m: m.partial_fit(*change(X[20:], Y[20:])), message, ValueError)
    model.partial_fit(X[20:], Y[20:])  # and it can still go on
    np.testing.assert_allclose(model.predict(X), row.make().fit(X, Y).predict(X), rtol=1e-9)


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
    "sparse": (lambda m, X, Y: m.predict(scipy.sparse.csr_array(X)), r"[Ss]parse.*X"),
    "score of NaN": (lambda m, X, Y: m.score(X, put(Y, (9, 1, 3), NAN)), r"[Yy].*NaN"),
    "score of another shape": (
        lambda m, X, Y: m.score(X, Y[:, :2]),
        r"[Yy] must have shape.*\(40, 3, 4\).*\(40, 2, 4\)",
    ),
}


@pytest.mark.parametrize("case", USES)
def test_bad_data_to_predict_for_or_score_are_refused(row, case):
    use, message = USES[case]
    X, Y = toy()
    assert_refused(row.make().fit(X, Y), lambda m: use(m, X, Y), message)


BAD_WEIGHTS = {
    "negative": (np.r_[-1.0, np.ones(39)], r"sample_weight.*negative.*-1.*sample 0"),
    "all zero": (np.zeros(40), r"sample_weight.*zero"),
    "NaN": (np.r_[1.0, np.nan, np.ones(38)], r"sample_weight.*NaN.*sample 1"),
    "infinite": (np.r_[1.0, np.inf, np.ones(38)], r"sample_weight.*inf.*sample 1"),
    "too few": (np.ones(39), r"sample_weight.*39.*40"),
    "a matrix": (np.ones((40, 2)), r"[Ss]ample.weight.*1D.*\(40, 2\)"),
    "strings": (np.array(["a"] * 40), r"sample_weight"),
    "complex": (np.ones(40) * 1j, r"sample_weight"),
    "negative scalar": (-2.0, r"sample_weight.*negative"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights_are_refused_and_change_nothing(row, case):
    weights, message = BAD_WEIGHTS[case]
    X, Y = toy()
    assert_refused(row.make().fit(X, Y), lambda m: m.fit(X, Y, weights), message)
    if hasattr(row.estimator, "partial_fit"):
        assert_refused(row.make(), lambda m: m.partial_fit(X, Y, weights), message)


BAD_PARAMETERS = [
    *[("alpha", v) for v in (-1.0, NAN, INF, -INF, "much", None, (1.0, 2.0), 1j)],
    ("fit_intercept", "yes"),
    ("solver", "magic"),
    ("solver", None),
    ("max_iter", 0),
    ("max_iter", 2.5),
    ("tol", -1e-3),
    ("tol", NAN),
    ("refine", "yes"),
    ("subspaces", "other"),
    *[("rank", v) for v in (0, -3, 2.5, "two", True, NAN, {"a": 1})],
]


@pytest.mark.parametrize(
    ("owner", "name", "value"),
    [
        pytest.param(row, name, value, id=f"{row.id}-{name}={value}")
        for row in ROWS
        for name, value in BAD_PARAMETERS
        if name in row.estimator.get_params()
    ],
)
def test_bad_parameters_are_refused_and_change_nothing(owner, name, value):
    X, Y = toy()
    model = owner.make().fit(X, Y).set_params(**{name: value})
    before = model.predict(X)
    assert_refused(model, lambda m: m.fit(X, Y), name)
    np.testing.assert_array_equal(model.predict(X), before)


def test_arrays_of_two_libraries_do_not_mix(row, xp):
    if xp.name == "numpy":
        pytest.skip("NumPy mixes with itself")
    X, Y = toy()
    model = row.make()
    assert_refused(model, lambda m: m.fit(X, xp.asarray(Y)), r"X and [Yy]")
    assert_refused(model, lambda m: m.fit(xp.asarray(X), Y), r"X and [Yy]")


@pytest.mark.parametrize("where", ["X", "Y"])
@pytest.mark.parametrize("bad", ["NaN", "complex", "empty"])
def test_bad_data_of_other_libraries_are_refused(row, xp, where, bad):
    X, Y = toy()
    spoil, message = {
        "NaN": (lambda a: put(a, (7,) + (1,) * (a.ndim - 1), NAN), r"NaN.*7"),
        "complex": (lambda a: a + 1j, r"[Cc]omplex"),
        "empty": (lambda a: a[..., :0], r"empty|0 feature"),
    }[bad]
    data = {"X": X, "Y": Y}
    data[where] = spoil(data[where])
    call = lambda m: m.fit(xp.asarray(data["X"]), xp.asarray(data["Y"]))  # noqa: E731
    assert_refused(row.make().fit(X, Y), call, message, ValueError)
