"""What an estimator remembers: its last fit, and nothing else; with pickle and files, the same."""

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

from holrr import io
from holrr.base import TensorRegressor
from holrr.streaming import memory_budget
from problems import assert_same_state, on_disk, toy
from registry import ALTERNATIVES, PUBLIC, ROWS, WITHOUT_ALTERNATIVE

pytestmark = pytest.mark.filterwarnings(
    "ignore:the best penalty",
    "ignore:n_components",
    "ignore::sklearn.exceptions.ConvergenceWarning",
)


# ---------------------------------------------------------------- refits


def test_refit_forgets_the_last_fit(row):
    X, Y = toy()
    other = toy(n=20, d0=3, shape=(2, 2, 2))
    assert_same_state(row.make().fit(*other).fit(X, Y), row.make().fit(X, Y))


def test_refit_forgets_names_and_batches(row):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy()
    named = row.make().fit(pd.DataFrame(X, columns=list("abcde")), Y)
    assert_same_state(named.fit(X, Y), row.make().fit(X, Y))
    if row.batches:
        batched = row.make().partial_fit(X[:20], Y[:20])
        assert_same_state(batched.fit(X, Y), row.make().fit(X, Y))


def alternatives(row):
    """One or more other values for each parameter of a row, but for those named as without."""
    for name, value in row.params.items():
        if name not in WITHOUT_ALTERNATIVE:
            for other in ALTERNATIVES[name]:
                if joblib.hash(other) != joblib.hash(value):
                    yield name, other


def settled(row, **params):
    """A fitted estimator with these parameters; None where they are refused."""
    X, Y = toy()
    try:
        return row.make(**params).fit(X, Y)
    except ValueError:
        return None


OTHER = [
    pytest.param(row, name, other, id=f"{row.id}-{name}={other!r:.40}")
    for row in ROWS
    for name, other in alternatives(row)
]


@pytest.mark.filterwarnings("ignore:The kernel is not positive")
@pytest.mark.parametrize(("owner", "name", "other"), OTHER)
def test_refit_after_set_params_is_a_fresh_fit(owner, name, other):
    """No attribute is left of the fit before, whichever of the two came first."""
    X, Y = toy()
    fresh = settled(owner, **{name: other})
    if fresh is None:
        pytest.skip("this estimator does not take this value")
    usual = owner.make().fit(X, Y)
    changed = pickle.loads(pickle.dumps(usual)).set_params(**{name: other})
    assert_same_state(changed.fit(X, Y), fresh)
    back = fresh.set_params(**{name: owner.make().get_params()[name]})
    assert_same_state(back.fit(X, Y), usual)


# Parameters that a search and its models have, but for those of which the models get the outcome.
SHARED = [
    p
    for p in OTHER
    if hasattr(p.values[0].estimator, "_plain")
    and p.values[1] in p.values[0].estimator._plain().get_params()
    and p.values[1] not in ("n_components", "random_state")
]


@pytest.mark.parametrize(("owner", "name", "other"), SHARED)
def test_the_chosen_model_has_the_parameters_that_it_shares_with_the_search(owner, name, other):
    search = settled(owner, **{name: other})
    if search is None:
        pytest.skip("this estimator does not take this value")
    assert joblib.hash(search.best_estimator_.get_params()[name]) == joblib.hash(other)


@pytest.mark.parametrize("cls", PUBLIC)
def test_every_parameter_has_another_value_that_can_be_fitted(cls):
    """So that none is left out above."""
    rows = [row for row in ROWS if type(row.estimator) is cls]
    there = {n for row in rows for n, other in alternatives(row) if settled(row, **{n: other})}
    assert there == set(rows[0].params) - set(WITHOUT_ALTERNATIVE)


@pytest.mark.filterwarnings("ignore:The kernel is not positive")
@pytest.mark.parametrize(("owner", "name", "other"), [p for p in OTHER if p.values[0].batches])
def test_batches_after_set_params_are_those_of_the_new_parameters(owner, name, other):
    """Or the change is refused: two models are never mixed."""
    X, Y = toy()
    pinned = owner.pinned(X) if name not in ("landmarks", "n_components") else {}
    params = {**pinned, name: other}
    fresh = owner.make(**params)
    if not hasattr(fresh, "partial_fit") or settled(owner, **params) is None:
        pytest.skip("this estimator does not take this value in batches")
    if name == "solver" and other == "svd":
        pytest.skip("svd wants the samples")
    if name == "output_weight":
        pytest.skip("moments have sums over all outputs, which cannot be weighted")
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


def test_fit_leaves_data_and_parameters_alone(row):
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


def test_files_bring_the_model_back_and_it_goes_on(row, tmp_path):
    X, Y = toy()
    model = row.make().fit(X, Y)
    io.save(model, tmp_path / "model.holrr")
    loaded = io.load(tmp_path / "model.holrr")
    assert_array_equal(loaded.predict(X), model.predict(X))
    assert_same_state(loaded.fit(X, Y), model)
    if row.batches:
        model = row.make().partial_fit(X[:20], Y[:20])
        io.save(model, tmp_path / "model.holrr")
        loaded = io.load(tmp_path / "model.holrr").partial_fit(X[20:], Y[20:])
        assert_array_equal(loaded.predict(X), model.partial_fit(X[20:], Y[20:]).predict(X))


# ---------------------------------------------------------------- not fitted


def test_unfitted_estimators_say_so(row, tmp_path):
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


def test_unfitted_estimators_say_so_whatever_the_data_are(row, tmp_path):
    """Before anything is read."""
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
    """Those of the BLAS libraries that have threads, one number for the whole process."""
    blas = [lib for lib in threadpool_info() if lib["user_api"] == "blas"]
    blas = [lib for lib in blas if lib.get("threading_layer") != "disabled"]
    return sorted((lib["filepath"], lib["num_threads"]) for lib in blas)


def set_threads(limits):
    """Set by a thread that ends, since who sets them first may be the only one who can."""
    setter = threading.Thread(target=lambda: threadpool_limits(limits))
    setter.start()
    setter.join()


@pytest.fixture
def many_threads():
    """Three threads for every library, whatever the environment says: a limit would show."""
    before = dict(threads())
    set_threads(3)
    found = threads()
    assert all(n == 3 for _, n in found)
    yield found
    set_threads(before)


def quietly(call):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call()


def uses_of_threads(row, folder):
    """Fits that may limit the threads of others: of arrays, of two folds at a time, in blocks."""
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


def test_threads_are_as_before_after_a_fit(row, many_threads, tmp_path):
    for use in uses_of_threads(row, tmp_path):
        quietly(use)
        assert threads() == many_threads


def test_threads_are_as_before_after_an_exception(row, many_threads, tmp_path):
    X, Y = toy(n=200, shape=(2,))
    Y[150] = np.nan
    with pytest.raises(ValueError):
        row.make().fit(X, Y)
    assert threads() == many_threads
    with memory_budget(2**10), pytest.raises(ValueError):
        row.make().fit(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y))
    assert threads() == many_threads


class Gate:
    """Outputs on disk that are there when `ready` is set; `asked` says that somebody waits."""

    __module__ = "h5py"  # by which arrays on disk are known
    chunks = None

    def __init__(self, A):
        self.A, self.shape, self.dtype = A, A.shape, A.dtype
        self.asked, self.ready = threading.Event(), threading.Event()

    def __getitem__(self, key):
        self.asked.set()
        assert self.ready.wait(60)
        return self.A[key]


def test_threads_are_as_before_after_two_fits_at_a_time(row, many_threads):
    """The first comes first and goes first: the second must not bring its limits back."""
    if not row.streams:
        pytest.skip("reads nothing from disk")
    X, Y = toy(n=200, shape=(2,))
    gates = Gate(Y), Gate(Y)

    def work(gate):
        with memory_budget(2**10):
            row.make().fit(X, gate)

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


def test_threads_are_as_before_after_two_searches_at_a_time(row, many_threads):
    if "n_jobs" not in row.params:
        pytest.skip("one job only")
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


def test_an_interrupted_fit_leaves_the_estimator_as_it_was(row, monkeypatch):
    """Whatever stops it: what was fitted before is there, whole."""
    X, Y = toy()
    model = row.make().fit(X, Y)
    before = dict(vars(model))

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(TensorRegressor, "_set_coefficients", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:30], Y[:30])
    assert vars(model) == before
