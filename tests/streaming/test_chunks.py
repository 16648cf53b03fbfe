"""Behaviour that memory maps and Dask arrays share."""

from __future__ import annotations

import re
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import pytest
from scipy.stats import t as student_t
from sklearn.exceptions import NotFittedError, UndefinedMetricWarning
from sklearn.metrics import r2_score
from sklearn.model_selection import KFold

from holrr import (
    HOLRR,
    HOLRRCV,
    LRR,
    RLS,
    RLSCV,
    Moments,
    TraceNormRegression,
)
from holrr.metrics import r2
from holrr.streaming import memory_budget
from problems import toy

da = pytest.importorskip("dask.array", reason="dask is not installed")

SMALL = 2**13


def on_disk(folder, **arrays):
    for name, A in arrays.items():
        np.save(folder / f"{name}.npy", A)
    return [np.load(folder / f"{name}.npy", mmap_mode="r") for name in arrays]


def from_disk(folder, X, Y):
    return on_disk(folder, X=X, Y=Y)


def in_chunks(folder, X, Y):
    whole = (41, *(max(1, d // 2) for d in Y.shape[1:]))
    return da.from_array(X, chunks=(30, -1)), da.from_array(Y, chunks=whole)


WAYS = pytest.mark.parametrize("way", [from_disk, in_chunks])


@pytest.fixture(autouse=True)
def _threads():
    import dask

    with dask.config.set(scheduler="threads", num_workers=2):
        yield


# ---------------------------------------------------------------- scores


@WAYS
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("met", [False, True])
def test_scores_of_constant_outputs_equal_those_in_memory(way, weighted, met, tmp_path):
    """The mean of 0.1 is rounded, which must not give a constant output a variance."""
    X, Y = toy(n=137, d0=3, shape=(4,))
    Y[:, 1] = 0.1
    w = np.random.default_rng(0).uniform(size=137) if weighted else None
    model = RLS().fit(X, Y)
    model.tucker_.core[:, 1], model.intercept_[1] = 0.0, 0.1 if met else 0.2
    P = model.predict(X)
    others = [0, 2, 3]  # a constant output has no weight in the pooled R2 ...
    how = {"sample_weight": w, "multioutput": "variance_weighted"}
    expected = r2_score(Y[:, others], P[:, others], **how)
    assert model.score(X, Y, w) == pytest.approx(expected, rel=1e-12)
    each = r2_score(Y, P, sample_weight=w, multioutput="raw_values")
    each[1] = float(met)  # ... and counts 1 or 0 in the average
    assert r2(Y, P, sample_weight=w, average="uniform") == pytest.approx(each.mean(), rel=1e-12)
    with memory_budget(SMALL):
        assert model.score(*way(tmp_path, X, Y), w) == pytest.approx(expected, rel=1e-12)


@WAYS
def test_a_single_sample_has_no_score(way, tmp_path):
    X, Y = toy(n=30, d0=3, shape=(2,))
    model = RLS().fit(X, Y)
    with memory_budget(8):
        for data in [(X[:1], Y[:1]), way(tmp_path, X[:1], Y[:1])]:
            with pytest.warns(UndefinedMetricWarning, match="less than two samples"):
                assert np.isnan(model.score(*data))


@WAYS
def test_score_before_fit_raises_not_fitted(way, tmp_path):
    X, Y = toy(n=60, d0=3, shape=(2,))
    for model in (RLS(), HOLRRCV(), TraceNormRegression()):
        with memory_budget(SMALL // 8), pytest.raises(NotFittedError):
            model.score(*way(tmp_path, X, Y))


# ---------------------------------------------------------------- errors about bad entries


@WAYS
@pytest.mark.parametrize("which", ["X", "y"])
@pytest.mark.parametrize(
    "estimator",
    [RLS(), RLSCV(alphas=[1.0, 2.0], cv=KFold(3, shuffle=True, random_state=0))],
    ids=["fit", "shuffled folds"],
)
@pytest.mark.parametrize("budget", [SMALL, 256], ids=["usual", "small"])
@pytest.mark.filterwarnings("ignore:the moments of")
def test_errors_give_the_index_of_a_bad_entry_in_all_the_data(
    way, which, estimator, budget, tmp_path
):
    X, Y = toy(n=200, d0=4, shape=(5, 6))
    if which == "X":
        X[123, 2] = np.nan
    else:
        Y[123, 3, 4] = np.inf
    place = r"\(123, 2\)" if which == "X" else r"\(123, 3, 4\)"
    value = "NaN" if which == "X" else "infinity"
    with memory_budget(budget):
        data = way(tmp_path, X, Y)
        with pytest.raises(ValueError, match=f"{which} contains {value} at index {place}"):
            estimator.fit(*data)
        if which == "y":
            model = RLS().fit(X, np.zeros_like(Y))
            with pytest.raises(ValueError, match=f"y contains infinity at index {place}"):
                model.score(*data)


# ---------------------------------------------------------------- many features


@WAYS
@pytest.mark.parametrize("estimator", [RLS(alpha=0), LRR(2), HOLRR(2)], ids=repr)
@pytest.mark.parametrize("budget", [2**14, 2**10], ids=["usual", "small"])
def test_fits_with_more_features_than_samples_equal_those_in_memory(
    way, estimator, budget, tmp_path
):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 90)), rng.normal(size=(40, 6, 5))
    w = rng.uniform(size=40)
    w[10:22] = 0
    expected = estimator.fit(X, Y, w).coef_
    with memory_budget(budget):
        found = estimator.fit(*way(tmp_path, X, Y), w).coef_
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("subspaces", ["fitted", "response"])
def test_fits_with_many_features_take_the_memory_of_the_inputs(subspaces, tmp_path):
    """X'X, which would take 32 MB, is not formed."""
    rng = np.random.default_rng(0)
    X, Y = on_disk(tmp_path, X=rng.normal(size=(60, 2000)), Y=rng.normal(size=(60, 5, 4)))
    tracemalloc.start()
    with memory_budget(2**18):
        model = HOLRR(rank=2, subspaces=subspaces).fit(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * X.nbytes
    expected = HOLRR(rank=2, subspaces=subspaces).fit(np.array(X), np.array(Y))
    np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-10)


@pytest.mark.filterwarnings("ignore:the moments of")
def test_a_pass_holds_few_matrices_of_the_size_of_the_moments(tmp_path):
    """Those of a chunk, of the sum so far, and of the merge of both."""
    rng = np.random.default_rng(0)
    d0 = 400
    X, Y = on_disk(tmp_path, X=rng.normal(size=(1200, d0)), Y=rng.normal(size=(1200, 2)))
    tracemalloc.start()
    with memory_budget(2**18):
        Moments.from_arrays(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5.5 * 8 * d0**2


@WAYS
def test_moments_beyond_the_memory_budget_are_warned_of(way, tmp_path):
    rng = np.random.default_rng(0)
    data = way(tmp_path, rng.normal(size=(90, 40)), rng.normal(size=(90, 2)))
    size = 8 * 40 * (40 + 2)
    with (
        memory_budget(size - 1),
        pytest.warns(
            UserWarning, match=r"the moments of 40 features and 2 outputs take 0.0128 MiB"
        ),
    ):
        RLS().fit(*data)
    with memory_budget(size), warnings.catch_warnings():
        warnings.simplefilter("error")
        RLS().fit(*data)
    with memory_budget(size), pytest.warns(UserWarning, match="0.0385 MiB in 3 folds"):
        RLSCV(alphas=[1.0], cv=3).fit(*data)


@WAYS
def test_ill_conditioned_inputs_are_warned_of(way, tmp_path):
    """Their moments lose the digits that a decomposition of X keeps."""
    rng = np.random.default_rng(0)
    Q, P = np.linalg.qr(rng.normal(size=(120, 5)))[0], np.linalg.qr(rng.normal(size=(5, 5)))[0]
    X = (Q * np.geomspace(1, 1e-9, 5)) @ P.T
    Y = np.tensordot(X, rng.normal(size=(5, 6, 7)), 1)
    with memory_budget(2**12), pytest.warns(UserWarning, match="ill-conditioned"):
        RLS(alpha=0).fit(*way(tmp_path, X, Y))


# ---------------------------------------------------------------- memory


def test_the_memory_budget_holds_in_the_threads_of_a_pool(tmp_path):
    """The error about a bad entry names its chunk, which is small where the budget is."""
    X, Y = toy(n=100, d0=3, shape=(6,))
    Y[50] = np.nan
    (Y,) = on_disk(tmp_path, Y=Y)

    def rows_of_a_chunk(budget=None):
        with memory_budget(budget) if budget else nullcontext(), pytest.raises(ValueError) as error:
            RLS().fit(X, Y)
        chunk = re.search(r"samples (\d+) to (\d+)", str(error.value))
        return int(chunk[2]) - int(chunk[1]) + 1 if chunk else None

    sizes = [rows_of_a_chunk(budget) for budget in (2**12, 2**13, 2**20)]
    assert 0 < sizes[0] < sizes[1] < 100
    assert sizes[2] is None
    with ThreadPoolExecutor(2) as pool:
        with memory_budget(2**12):
            assert pool.submit(rows_of_a_chunk).result() == sizes[0]
            assert list(pool.map(rows_of_a_chunk, [2**12, 2**13, 2**20])) == sizes
            assert rows_of_a_chunk() == sizes[0]
        assert pool.submit(rows_of_a_chunk).result() is None


def test_an_infinite_memory_budget_reads_all_data(tmp_path):
    X, Y = toy(n=100, d0=3, shape=(6,))
    (disk,) = on_disk(tmp_path, Y=Y)
    with memory_budget(np.inf):
        found = RLS().fit(da.from_array(X, chunks=(20, 3)), disk)
    np.testing.assert_allclose(found.coef_, RLS().fit(X, Y).coef_, rtol=1e-9)
    for bad in (0, -1, np.nan, "much"):
        with pytest.raises(ValueError, match="max_bytes must be a positive"), memory_budget(bad):
            pass


# ---------------------------------------------------------------- weights and searches


@WAYS
def test_weights_whose_sum_overflows_are_refused(way, tmp_path):
    X, Y = toy(n=100, d0=3, shape=(4,))
    with memory_budget(SMALL // 8):
        for data in [(X, Y), way(tmp_path, X, Y)]:
            with pytest.raises(ValueError, match=r"sample_weight must add up.*1e\+308"):
                RLS().fit(*data, np.full(100, 1e308))


def test_outputs_of_samples_without_weight_are_checked(tmp_path):
    X, Y = toy(n=100, d0=3, shape=(4,))
    Y[20, 1] = np.nan
    w = np.r_[np.zeros(60), np.ones(40)]
    for model in (RLS(), RLSCV(cv=KFold(2, shuffle=True, random_state=0))):
        with memory_budget(SMALL // 8), pytest.raises(ValueError, match=r"NaN at index \(20, 1\)"):
            model.fit(X, on_disk(tmp_path, Y=Y)[0], w)


# ---------------------------------------------------------------- Dask


def test_empty_chunks_are_left_out():
    X, Y = toy(n=60, d0=3, shape=(4, 3))
    chunked = da.from_array(Y, chunks=((20, 0, 40), (0, 3, 1), (2, 0, 1)))
    inputs = da.from_array(X, chunks=((0, 60), (3, 0)))
    for budget in (2**29, 2**12, 2**10):
        with memory_budget(budget):
            found = RLS().fit(inputs, chunked)
            assert found.score(inputs, chunked) == pytest.approx(found.score(X, Y))
        np.testing.assert_allclose(found.coef_, RLS().fit(X, Y).coef_, rtol=1e-9)
    np.testing.assert_allclose(found.predict(inputs).compute(), found.predict(X))


def test_dask_tables_are_read_as_arrays():
    dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy(n=60, d0=3, shape=(4,))
    tables = [dd.from_pandas(pd.DataFrame(A), npartitions=3) for A in (X, Y)]
    found = RLS().fit(*tables)
    np.testing.assert_allclose(found.coef_, RLS().fit(X, Y).coef_, rtol=1e-9)
    np.testing.assert_allclose(found.predict(tables[0]).compute(), found.predict(X))


# ---------------------------------------------------------------- types of entries


NOT_NUMBERS = {
    "dates": np.arange(240).astype("datetime64[D]"),
    "spans": np.arange(240).astype("timedelta64[s]"),
    "digits": np.arange(240).astype("U4"),
    "bytes": np.arange(240).astype("S4"),
}


@WAYS
@pytest.mark.parametrize("kind", NOT_NUMBERS)
@pytest.mark.parametrize("which", ["X", "y"])
@pytest.mark.parametrize("budget", [2**8, 2**20], ids=["in chunks", "read whole"])
def test_entries_that_are_not_numbers_are_refused(way, kind, which, budget, tmp_path):
    X, Y = toy(n=60, d0=4, shape=(4,))
    bad = NOT_NUMBERS[kind].reshape(60, 4)
    with memory_budget(budget):
        data = way(tmp_path, bad, Y) if which == "X" else way(tmp_path, X, bad)
        with pytest.raises((TypeError, ValueError), match=rf"\b{which}\b"):
            RLS().fit(*data)


def test_masked_entries_of_dask_arrays_are_refused():
    X, Y = toy(n=60, d0=4, shape=(4,))
    mask = np.zeros((60, 4), dtype=bool)
    masked = lambda A: da.ma.masked_array(  # noqa: E731
        da.from_array(A, chunks=(20, 4)), mask=da.from_array(mask, chunks=(20, 4))
    )
    np.testing.assert_allclose(RLS().fit(masked(X), masked(Y)).coef_, RLS().fit(X, Y).coef_)
    mask[41, 2] = True
    model = RLS().fit(X, Y)
    for name, data in [("X", (masked(X), Y)), ("y", (X, masked(Y)))]:
        with pytest.raises(ValueError, match=rf"{name} contains a masked entry at index \(41, 2\)"):
            RLS().fit(*data)
        with pytest.raises(ValueError, match=f"{name} contains a masked entry"):
            model.score(*data)


# ---------------------------------------------------------------- names


@pytest.mark.filterwarnings("ignore:The best")
@pytest.mark.parametrize(
    "estimator",
    [
        RLS(),
        HOLRR(rank=2),
        TraceNormRegression(),
        RLSCV(alphas=[0.1, 1.0]),
    ],
    ids=repr,
)
def test_names_of_a_table_are_kept_where_the_outputs_are_on_disk(estimator, tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, Y = toy(n=60, d0=3, shape=(4,))
    table, (disk,) = pd.DataFrame(X, columns=["a", "b", "c"]), on_disk(tmp_path, Y=Y)
    with memory_budget(SMALL // 8), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*feature names")
        model = estimator.fit(table, disk)
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        assert model.score(table, disk) == pytest.approx(model.score(table, Y))
        with pytest.raises(ValueError, match="feature names"):
            model.score(table[["c", "b", "a"]], disk)


@WAYS
@pytest.mark.filterwarnings("ignore:the moments of")
def test_the_default_grid_counts_samples_with_weight(way, tmp_path):
    """With more features than samples the grid depends on how many samples there are."""
    X, Y = toy(n=60, d0=50, shape=(3, 2))
    w = np.r_[np.ones(20), np.zeros(20), np.ones(10), np.zeros(10)]
    keep = w > 0
    folds = np.arange(60) % 3
    cv = [(np.flatnonzero(folds != k), np.flatnonzero(folds == k)) for k in range(3)]
    with memory_budget(SMALL):
        found = RLSCV(cv=cv).fit(*way(tmp_path, X, Y), w)
    cv = [(np.flatnonzero(folds[keep] != k), np.flatnonzero(folds[keep] == k)) for k in range(3)]
    expected = RLSCV(cv=cv).fit(X[keep], Y[keep])
    np.testing.assert_allclose(found.alphas_, expected.alphas_, rtol=1e-9)
    np.testing.assert_allclose(found.predict(X), expected.predict(X), rtol=0, atol=1e-8)
    # The quantiles of a normal distribution with an estimated variance.
    low = [found.predict_interval(X, c, check_inputs=False)[0] for c in (0.5, 0.9)]
    half = [found.predict(X, check_inputs=False) - bound for bound in low]
    ratio = student_t.ppf(0.95, 30) / student_t.ppf(0.75, 30)
    np.testing.assert_allclose(half[1], ratio * half[0], rtol=1e-6)


@WAYS
@pytest.mark.filterwarnings("ignore:the moments of")
@pytest.mark.parametrize("model", [RLS(0.0), RLS(0.0, fit_intercept=False), HOLRR(1), RLSCV(cv=3)])
def test_very_small_data_in_chunks_are_refused(way, model, tmp_path):
    """Their products vanish, and nothing is left to fit."""
    X, Y = toy(n=45, d0=3, shape=(4,))
    with memory_budget(2**10):
        for x, y, what in [(1e-170, 1, "squares of X"), (1e-90, 1e-250, "products of X and y")]:
            with pytest.raises(ValueError, match=f"X and y are too small.*{what} underflow"):
                model.fit(*way(tmp_path, x * X, y * Y))
        if isinstance(model, RLSCV):
            with pytest.raises(ValueError, match=r"too small.*squares of y underflow"):
                model.fit(*way(tmp_path, X, 1e-170 * Y))
    assert not hasattr(model, "coef_")


@WAYS
@pytest.mark.filterwarnings("ignore:the moments of")
def test_small_data_in_chunks_are_fitted(way, tmp_path):
    X, Y = toy(n=45, d0=3, shape=(4,))
    expected = RLS(0.0).fit(X, Y).predict(X)
    with memory_budget(2**10):
        for x, y in [(1e-140, 1.0), (1e-90, 1e-200), (1.0, 1e-250), (1e-140, 1e-140)]:
            found = RLS(0.0).fit(*way(tmp_path, x * X, y * Y)).predict(x * X) / y
            np.testing.assert_allclose(found, expected, rtol=1e-7)
