"""Every estimator is the same after a file, and after joblib and pickle."""

from __future__ import annotations

import io
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit

from holrr import HOLRR, HOLRRCV, LRR, RLS, RLSCV, KernelHOLRRCV, KernelRLS, Moments, Tucker
from holrr.io import load, save
from holrr.io._container import VERSION
from holrr.io._encode import Decoder, Encoder
from problems import assert_same_state
from registry import PUBLIC

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def data(n=30, d0=4, shape=(3, 2), seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d0)), rng.normal(size=(n, *shape))


def round_trip(value, tmp_path):
    save(value, tmp_path / "file")
    return load(tmp_path / "file")


def rebuilt(value):
    """The value from its tree and arrays, as if a file had held them."""
    encoder = Encoder()
    tree = encoder.encode(value, "value")
    return Decoder(encoder.arrays, VERSION).decode(tree)


def test_every_estimator_is_the_same_after_a_file(row, tmp_path):
    X, Y = data()
    model = row.make().fit(X, Y)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert_same_state(model, again)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_every_estimator_is_the_same_after_pickle_and_joblib(row, tmp_path):
    X, Y = data()
    model = row.make().fit(X, Y)
    assert_same_state(model, pickle.loads(pickle.dumps(model)))
    joblib.dump(model, tmp_path / "model")
    assert_same_state(model, joblib.load(tmp_path / "model"))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("cls", PUBLIC)
def test_every_public_class_is_the_same_after_a_file(cls, tmp_path):
    X, Y = data(n=24, d0=2, shape=(2, 2))
    for model in (cls(), cls().fit(X, Y)):
        model.save(tmp_path / "model")
        assert_same_state(model, load(tmp_path / "model"))
    np.testing.assert_array_equal(load(tmp_path / "model").predict(X), model.predict(X))


@pytest.mark.parametrize("search", [RLSCV, HOLRRCV, KernelHOLRRCV])
def test_held_out_predictions_are_not_saved(search, tmp_path):
    """They have the size of the outputs; everything else is the same after a file."""
    X, Y = data()
    model = search([0.1, 1.0], cv=3, keep_held_out=True).fit(X, Y)
    assert model.held_out_.shape == Y.shape
    again = round_trip(model, tmp_path)
    assert again.keep_held_out
    assert not hasattr(again, "held_out_")
    del model.held_out_
    assert_same_state(model, again)


def test_a_stack_of_ranks_penalties_and_ridge_regression_is_the_same_after_a_file(tmp_path):
    X, Y = data(shape=(4, 5))
    W = np.random.default_rng(1).normal(size=(4, 4, 5))
    Y = 0.2 * Y + np.tensordot(X, W, 1)  # of full rank
    model = HOLRRCV(cv=3).fit(X, Y)
    assert None in model.stack_ranks_
    again = round_trip(model, tmp_path)
    assert_same_state(model, again)
    assert again.stack_ranks_ == model.stack_ranks_
    assert repr(again) == repr(model)


def test_a_function_as_kernel_cannot_be_saved(tmp_path):
    model = KernelRLS(kernel=lambda x, y: x @ y)
    with pytest.raises(TypeError, match=r"KernelRLS\.kernel cannot be saved: it is the function"):
        model.save(tmp_path / "model")


def test_an_unfitted_model_keeps_its_parameters(tmp_path):
    model = HOLRR(rank=(2, None, 0.5), alpha=np.float64(0.1))
    again = round_trip(model, tmp_path)
    assert repr(again) == repr(model)
    assert_same_state(model, again)


def test_a_loaded_model_continues_with_partial_fit(tmp_path):
    X, Y = data(40)
    both = HOLRR(rank=2).partial_fit(X[:20], Y[:20]).partial_fit(X[20:], Y[20:])
    resumed = round_trip(HOLRR(rank=2).partial_fit(X[:20], Y[:20]), tmp_path)
    np.testing.assert_array_equal(both.coef_, resumed.partial_fit(X[20:], Y[20:]).coef_)


@pytest.mark.parametrize("subspaces", ["fitted", "response"])
def test_a_loaded_model_continues_with_arrays_of_any_library(xp, subspaces, tmp_path):
    X, Y = data(40)
    both = HOLRR(2, subspaces=subspaces).partial_fit(X, Y)
    resumed = round_trip(HOLRR(2, subspaces=subspaces).partial_fit(X[:20], Y[:20]), tmp_path)
    resumed.partial_fit(xp.asarray(X[20:]), xp.asarray(Y[20:]))
    assert xp.owns(resumed.coef_)
    np.testing.assert_allclose(xp.to_numpy(resumed.coef_), both.coef_, atol=1e-10)
    np.testing.assert_allclose(resumed.partial_fit(X[:1], Y[:1]).moments_.weight, 41)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 2)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scalar_targets_and_every_dtype_keep_their_types(shape, dtype, tmp_path):
    X, Y = (a.astype(dtype) for a in data(shape=shape))
    model = LRR(rank=1).fit(X, Y)
    assert_same_state(model, round_trip(model, tmp_path))


def test_files_keep_feature_names(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = data()
    frame = pd.DataFrame(X, columns=["a", "b", "c", "ü"])
    again = round_trip(RLS().fit(frame, Y), tmp_path)
    assert list(again.feature_names_in_) == ["a", "b", "c", "ü"]
    assert again.feature_names_in_.dtype == np.dtype(object)
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a", "c", "ü"]])


def test_arrays_of_other_libraries_load_as_numpy_arrays(xp, tmp_path):
    X, Y = data()
    model = HOLRR(rank=2).fit(xp.asarray(X), xp.asarray(Y))
    again = round_trip(model, tmp_path)
    assert type(again.tucker_.core) is np.ndarray
    np.testing.assert_array_equal(again.tucker_.core, xp.to_numpy(model.tucker_.core))
    np.testing.assert_allclose(again.predict(X), xp.to_numpy(model.predict(xp.asarray(X))))


@pytest.mark.parametrize("grams", [False, True])
def test_moments_are_the_same_after_a_file(grams, tmp_path):
    moments = Moments.from_arrays(*data(), response_grams=grams)
    moments.save(tmp_path / "moments")
    assert_same_state(moments, Moments.load(tmp_path / "moments"))
    assert_same_state(moments, load(tmp_path / "moments"))


def test_files_keep_the_names_of_moments(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = data(shape=(3,))
    frame, outputs = pd.DataFrame(X, columns=list("abcü")), pd.DataFrame(Y, columns=list("uvw"))
    moments = Moments.from_arrays(frame, outputs)
    moments.save(tmp_path / "moments")
    again = Moments.load(tmp_path / "moments")
    assert_same_state(moments, again)
    assert list(again.feature_names) == list("abcü")
    model = RLS().fit_moments(again)
    assert list(model.predict(frame).columns) == list("uvw")
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[list("bacü")])
    with pytest.raises(ValueError, match=r"different features.*'a'.*'b'"):
        again + Moments.from_arrays(frame[list("bacü")], outputs)


def test_values_of_all_kinds_are_the_same_after_encoding(tmp_path):
    masked = np.ma.MaskedArray([1.0, 2.0], mask=[True, False])
    values = [
        None,
        True,
        -(2**70),
        0.1,
        float("nan"),
        float("-inf"),
        "ü\n",
        (1, (2.5, None), []),
        {"a": 1, 2: (3,), (0, "b"): {}},
        np.float32(1.5),
        np.int64(3),
        np.bool_(True),
        np.str_("x"),
        np.arange(6).reshape(2, 3)[:, ::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.empty((0, 3)),
        np.array(2.0),
        np.array(["a", "bc"]),
        np.array([[None, (1, 2)], ["x", 2.0]], dtype=object),
        masked,
        Tucker(np.ones((1, 2)), (np.ones((3, 1)), None)),
        KFold(4, shuffle=True, random_state=3),
        ShuffleSplit(2, test_size=0.25),
        TimeSeriesSplit(3),
        RLS(),
    ]
    encoder = Encoder()
    tree = encoder.encode(values, "values")
    assert_same_state(values, Decoder(encoder.arrays, VERSION).decode(tree))


def test_an_array_that_is_used_twice_is_stored_once():
    a = np.ones(3)
    encoder = Encoder()
    encoder.encode([a, (a,), {"a": a}], "values")
    assert len(encoder.arrays) == 1


class Foreign(HOLRR):
    """A subclass that is not a class of this library."""


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (lambda: HOLRR(rank=len), r"HOLRR\.rank cannot be saved: it is the function builtins\.len"),
        (lambda: RLS(alpha=[1, object()]), r"RLS\.alpha\[1\] cannot be saved"),
        (lambda: RLS(alpha={"k": {3}}), r"RLS\.alpha\['k'\] cannot be saved"),
        (lambda: Foreign(), "neither a public class of holrr"),
        (lambda: RLS(alpha=np.random.default_rng(0)), "Generator"),
    ],
)
def test_values_without_a_safe_form_are_named_and_the_old_file_is_kept(value, message, tmp_path):
    save(RLS(), tmp_path / "file")
    before = (tmp_path / "file").read_bytes()
    with pytest.raises(TypeError, match=message):
        save(value(), tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("path", [None, 3, io.BytesIO()], ids=["None", "3", "file"])
def test_a_path_that_is_no_name_of_a_file_is_refused(path):
    message = f"path must be the name of a file; got an object of {type(path).__name__}"
    for use in (lambda: save(RLS(), path), lambda: load(path), lambda: Moments.load(path)):
        with pytest.raises(TypeError, match=message):
            use()


def test_a_clone_of_a_loaded_model_equals_a_clone_of_the_model(tmp_path):
    model = HOLRR(rank=2, refine=True).fit(*data())
    assert_same_state(clone(model), clone(round_trip(model, tmp_path)))


@pytest.mark.parametrize(
    "part",
    [
        {"intercept_": np.zeros((1, 1))},  # which would be added to every output
        {"intercept_": "none"},
        {"tucker_": [1.0]},
        {"tucker_": Tucker(np.ones((2, 2, 2)), (np.ones((4, 2)), np.ones((3, 2))))},
        {"tucker_": Tucker(np.ones((1, 1, 1)), tuple(np.ones((d, 2)) for d in (4, 3, 2)))},
    ],
    ids=lambda part: next(iter(part)),
)
def test_inconsistent_coefficients_are_refused(part, tmp_path):
    model = HOLRR(2).fit(*data())
    vars(model).update(part)
    with pytest.raises(ValueError, match="HOLRR cannot be saved"):
        round_trip(model, tmp_path)
    with pytest.raises(ValueError, match=r"Tucker|HOLRR"):
        rebuilt(model)
