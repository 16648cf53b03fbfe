"""State of estimators: refits, errors, copies, files and threads."""

from __future__ import annotations

import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_info, threadpool_limits

import holrr
from holrr import (
    HOLRR,
    LRR,
    MLMTNC,
    KernelHOLRR,
    Moments,
    TraceNormRegression,
)
from holrr.streaming import memory_budget
from problems import assert_same_state, on_disk, toy
from registry import ALTERNATIVES, PUBLIC, ROWS, WITHOUT_ALTERNATIVE

pytestmark = pytest.mark.filterwarnings(
    "ignore:The best penalty",
    "ignore:landmarks=",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


# ---------------------------------------------------------------- refits


def test_refit_is_independent_of_the_last_fit(row):
    X, Y = toy()
    other = toy(n=20, d0=3, shape=(2, 2, 2))
    assert_same_state(row.make().fit(*other).fit(X, Y), row.make().fit(X, Y))


def test_refit_is_independent_of_names_and_batches(row):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy()
    named = row.make().fit(pd.DataFrame(X, columns=list("abcde")), Y)
    assert_same_state(named.fit(X, Y), row.make().fit(X, Y))
    if row.batches:
        batched = row.make().partial_fit(X[:20], Y[:20])
        assert_same_state(batched.fit(X, Y), row.make().fit(X, Y))


def alternatives(row):
    """Other values for each parameter of a row, apart from those without alternative."""
    for name, value in row.params.items():
        if name not in WITHOUT_ALTERNATIVE:
            for other in ALTERNATIVES[name]:
                if joblib.hash(other) != joblib.hash(value):
                    yield name, other


FITTED: dict[str, bytes] = {}


def fitted_with(row, **params):
    """A fitted estimator with these parameters, of its own; None where they are not valid.

    Several tests need the same fits, which are deterministic: they are kept as pickles.
    """
    key = f"{row.id} {joblib.hash(params)}"
    if key not in FITTED:
        try:
            model = row.make(**params).fit(*toy())
        except (TypeError, ValueError):
            model = None
        FITTED[key] = pickle.dumps(model)
    return pickle.loads(FITTED[key])


OTHER = [
    pytest.param(row, name, other, id=f"{row.id}-{name}={other!r:.40}")
    for row in ROWS
    for name, other in alternatives(row)
]


@pytest.mark.filterwarnings("ignore:The kernel is not positive")
@pytest.mark.parametrize(("owner", "name", "other"), OTHER)
def test_refit_after_set_params_equals_a_fresh_fit(owner, name, other):
    """No attribute of the earlier fit is left, whichever of the two is earlier."""
    X, Y = toy()
    fresh = fitted_with(owner, **{name: other})
    if fresh is None:
        pytest.skip("this value is not valid")
    usual = fitted_with(owner)
    changed = fitted_with(owner).set_params(**{name: other})
    assert_same_state(changed.fit(X, Y), fresh)
    back = fresh.set_params(**{name: owner.make().get_params()[name]})
    assert_same_state(back.fit(X, Y), usual)


def model_of(search):
    """The class of the models that a search chooses from."""
    return getattr(holrr, type(search).__name__.removesuffix("CV"))


# Parameters that a search and its models have; the landmarks of a search are given to its models.
SHARED = [
    p
    for p in OTHER
    if p.values[0].searches
    and p.values[1] in model_of(p.values[0].estimator)._get_param_names()
    and p.values[1] not in ("landmarks", "random_state", "verbose")
]


@pytest.mark.parametrize(("owner", "name", "other"), SHARED)
def test_chosen_model_has_the_parameters_that_it_shares_with_the_search(owner, name, other):
    search = fitted_with(owner, **{name: other})
    if search is None:
        pytest.skip("this value is not valid")
    assert joblib.hash(search.best_estimator_.get_params()[name]) == joblib.hash(other)


@pytest.mark.parametrize("cls", PUBLIC)
def test_every_parameter_has_another_value_that_can_be_fitted(cls):
    """So that the tests above cover every parameter."""
    rows = [row for row in ROWS if type(row.estimator) is cls]
    found = {n for row in rows for n, other in alternatives(row) if fitted_with(row, **{n: other})}
    assert found == set(rows[0].params) - set(WITHOUT_ALTERNATIVE)


@pytest.mark.filterwarnings("ignore:The kernel is not positive")
@pytest.mark.parametrize(("owner", "name", "other"), [p for p in OTHER if p.values[0].batches])
def test_batches_after_set_params_use_the_new_parameters_or_raise(owner, name, other):

    X, Y = toy()
    pinned = owner.pinned(X) if name != "landmarks" else {}
    params = {**pinned, name: other}
    fresh = owner.make(**params)
    if not hasattr(fresh, "partial_fit") or fitted_with(owner, **params) is None:
        pytest.skip("this value is not valid with batches")
    if name in ("output_weight", "loss"):
        pytest.skip("output weights and robust weights need samples in memory")
    if name == "scale_outputs" and owner.params.get("subspaces") == "response":
        pytest.skip(
            "Gram matrices of the outputs cannot be divided; test_scale_outputs.py tests it"
        )
    fresh.partial_fit(X[:25], Y[:25]).partial_fit(X[25:], Y[25:])
    changed = owner.make(**pinned).partial_fit(X[:25], Y[:25]).set_params(**params)
    try:
        changed.partial_fit(X[25:], Y[25:])
    except ValueError as error:
        assert name in str(error) or "response" in str(error)  # noqa: PT017
        return
    owner.near(changed.predict(X), fresh.predict(X))


def test_fit_is_deterministic(row):
    X, Y = toy()
    assert_same_state(row.make().fit(X, Y), row.make().fit(X, Y))


def test_fit_does_not_change_data_and_parameters(row):
    X, Y = toy()
    w = np.ones(len(X))
    before = joblib.hash([X, Y, w])
    model = row.make()
    params = joblib.hash(model.get_params())
    model.fit(X, Y, w).predict(X)
    assert joblib.hash([X, Y, w]) == before
    assert joblib.hash(model.get_params()) == params


# ---------------------------------------------------------------- copies and files


def test_clone_pickle_and_set_params(row):
    X, Y = toy()
    model = row.make().fit(X, Y)
    copied = pickle.loads(pickle.dumps(model))
    assert_array_equal(copied.predict(X), model.predict(X))
    assert_same_state(copied, model)
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert_same_state(fresh.set_params(**model.get_params()).fit(X, Y), model)


def test_models_from_files_predict_and_continue(row, tmp_path):
    X, Y = toy()
    model = row.make().fit(X, Y)
    holrr.save(model, tmp_path / "model.holrr")
    loaded = holrr.load(tmp_path / "model.holrr")
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_same_state(loaded.fit(X, Y), model)
    if row.batches:
        model = row.make().partial_fit(X[:20], Y[:20])
        holrr.save(model, tmp_path / "model.holrr")
        loaded = holrr.load(tmp_path / "model.holrr").partial_fit(X[20:], Y[20:])
        assert_array_equal(loaded.predict(X), model.partial_fit(X[20:], Y[20:]).predict(X))


# ---------------------------------------------------------------- unfitted estimators


def test_unfitted_estimators_raise(row):
    X, Y = toy()
    uses = [
        lambda m: m.predict(X),
        lambda m: m.score(X, Y),
        lambda m: m.n_parameters_,
        lambda m: m.coef_ if row.linear else m.dual_coef_,
    ]
    for use in uses:
        with pytest.raises(NotFittedError):
            use(row.make())


@pytest.mark.rows("representative")
def test_unfitted_estimators_raise_before_data_are_read(row, tmp_path):
    X, Y = toy()
    with memory_budget(64), pytest.raises(NotFittedError):
        row.make().score(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y))
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    with pytest.raises(NotFittedError):
        row.make().score(da.from_array(X, chunks=20), da.from_array(Y, chunks=20))
    with pytest.raises(NotFittedError):
        row.make().predict(da.from_array(X, chunks=20))


# ---------------------------------------------------------------- threads


def threads():
    """Numbers of threads of the BLAS libraries that have threads."""
    blas = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    blas = [lib for lib in blas if lib.get("threading_layer") != "disabled"]
    return sorted((lib["filepath"], lib["num_threads"]) for lib in blas)


def set_threads(limits):
    """Set the numbers in a thread that ends, so that other threads can set them later."""
    setter = threading.Thread(target=lambda: threadpool_limits(limits))
    setter.start()
    setter.join()


@pytest.fixture
def many_threads():
    """Three threads for every library, whatever the environment."""
    before = dict(threads())
    set_threads(3)
    found = threads()
    assert all(n == 3 for _, n in found)
    yield found
    set_threads(before)


def quietly(call):
    """Call without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()


def uses_of_threads(row, folder):
    """Fits that limit threads: of arrays, of two folds at a time, of data read in chunks."""
    X, Y = toy(n=200, shape=(2,))
    yield lambda: row.make().fit(X[:30], Y[:30])
    if "n_jobs" in row.params:
        yield lambda: row.make(n_jobs=2).fit(X[:30], Y[:30])
    if row.streams:
        disk = on_disk(folder, "X", X), on_disk(folder, "Y", Y)

        def in_blocks():
            with memory_budget(2**10):
                row.make().fit(*disk)

        yield in_blocks


@pytest.mark.rows("representative")
def test_number_of_threads_is_restored_after_a_fit(row, many_threads, tmp_path):
    for use in uses_of_threads(row, tmp_path):
        quietly(use)
        assert threads() == many_threads


@pytest.mark.rows("representative")
def test_number_of_threads_is_restored_after_an_exception(row, many_threads, tmp_path):
    X, Y = toy(n=200, shape=(2,))
    Y[150] = np.nan
    with pytest.raises(ValueError):
        row.make().fit(X, Y)
    assert threads() == many_threads
    with memory_budget(2**10), pytest.raises(ValueError):
        row.make().fit(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y))
    assert threads() == many_threads


class Gate:
    """Reads a chunk when `ready` is set; `asked` is set by the first read."""

    def __init__(self):
        self.asked, self.ready = threading.Event(), threading.Event()

    def __call__(self, block):
        self.asked.set()
        assert self.ready.wait(60)
        return block


@pytest.mark.rows("representative", "streams")
def test_number_of_threads_is_restored_after_two_fits_at_a_time(row, many_threads):
    """The first fit begins and ends first: the second does not restore its limit."""
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    X, Y = toy(n=200, shape=(2,))
    lazy, gates = da.from_array(Y, chunks=(50, 2)), (Gate(), Gate())

    def work(gate):
        row.make().fit(X, lazy.map_blocks(gate, dtype=float, meta=np.empty((0, 0))))

    with ThreadPoolExecutor(2) as pool:
        fits = []
        for gate in gates:
            fits.append(pool.submit(work, gate))
            while not gate.asked.wait(0.05):
                assert not fits[-1].done(), fits[-1].exception()
        for gate, fit in zip(gates, fits, strict=True):
            gate.ready.set()
            fit.result()
    assert threads() == many_threads


@pytest.mark.rows("representative", "runs_in_parallel")
def test_number_of_threads_is_restored_after_two_searches_at_a_time(row, many_threads):
    X, Y = toy(n=30, shape=(2,))
    start = threading.Barrier(2)

    def work():
        start.wait()
        for _ in range(3):
            row.make(n_jobs=2).fit(X, Y)

    with ThreadPoolExecutor(2) as pool:
        for fit in [pool.submit(work), pool.submit(work)]:
            fit.result()
    assert threads() == many_threads


# ---------------------------------------------------------------- errors in a fit


def calls_of(row, X, Y):
    """Ways to fit the model to data."""
    yield lambda m: m.fit(X, Y)
    if row.batches:
        yield lambda m: m.partial_fit(X, Y)
    if row.takes_moments:
        moments = Moments.from_arrays(X, Y, response_grams=True)
        yield lambda m: m.fit_moments(moments)
    if row.takes_fold_moments:
        folds = [Moments.from_arrays(X[k::2], Y[k::2], response_grams=True) for k in range(2)]
        yield lambda m: m.fit_fold_moments(folds)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_errors_of_the_solver_leave_the_estimator_as_it_was(row, error, solver_fails):
    """Attributes are assigned after everything is computed, by every way to fit."""
    X, Y = toy()
    fitted = row.make().fit(X, Y)
    models = [row.make(), fitted]
    if row.batches:
        models.append(row.make(**row.pinned(X)).partial_fit(X, Y))
    solver_fails(error)
    for call in calls_of(row, X[:30], Y[:30]):
        for model in models:
            before = dict(vars(model))
            with pytest.raises(error, match="the solver has failed"):
                quietly(lambda call=call, model=model: call(model))
            assert vars(model) == before


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (HOLRR((2, 9, 2)), r"rank\[1\].*got 9"),
        (HOLRR((2, 2)), "rank must have 3 entries"),
        (HOLRR(output_weight=[None, np.ones(4)]), "output_weight"),
        (LRR(rank=0), "rank"),
        (MLMTNC((2, 9, 2)), r"rank\[1\].*got 9"),
        (TraceNormRegression(mode_weights=(1.0, 1.0)), "mode_weights must have 3 entries"),
        (KernelHOLRR((2, 9, 2), landmarks=5), r"rank\[1\].*got 9"),
    ],
    ids=str,
)
def test_partial_fit_raises_at_once_and_leaves_the_estimator_as_it_was(model, message):
    X, Y = toy()
    X[:, 1] = X[:, 0]
    model = clone(model)
    before = dict(vars(model))
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X, Y)
    assert vars(model) == before
