"""Unusual inputs: limits of a monitor, and the warning of predictions by leverage."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holrr import HOLRR, HOLRRCV, LRR, RLS, RLSCV, KernelRLS, Moments, load, save
from holrr.data import Standardizer
from holrr.diagnostics import InputMonitor, UnusualInputWarning, diagnose_inputs
from holrr.streaming import memory_budget
from problems import on_disk, toy

pytestmark = pytest.mark.filterwarnings("ignore:The best penalty")


def spherical(d):
    return lambda rng, n: rng.normal(size=(n, d))


def autoregressive(d, r=0.7):
    L = np.linalg.cholesky(r ** np.abs(np.subtract.outer(np.arange(d), np.arange(d))))
    return lambda rng, n: rng.normal(size=(n, d)) @ L.T


def spiked(d, k=3, noise=0.1):
    A = np.random.default_rng(1).normal(size=(k, d))
    return lambda rng, n: rng.normal(size=(n, k)) @ A + noise * rng.normal(size=(n, d))


def decaying(d):
    Q = np.linalg.qr(np.random.default_rng(1).normal(size=(d, d)))[0]
    return lambda rng, n: (rng.normal(size=(n, d)) / np.arange(1, d + 1)) @ Q


def mixed_units(d):
    sizes = np.logspace(-6, 6, d)
    return lambda rng, n: rng.normal(size=(n, d)) * sizes + 10 * sizes


def false_alarms(draw, n, levels, n_seeds=20, n_new=10_000):
    """Shares of new rows beyond the limits of T2 and Q, means over seeds, (n_levels, 2)."""
    found = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        X, new = draw(rng, n), draw(rng, n_new)
        result = diagnose_inputs(InputMonitor().fit(X), new)
        at = [result.at(level) for level in levels]
        found.append([[np.mean(r.t2 > r.t2_limit), np.mean(r.q > r.q_limit)] for r in at])
    return np.mean(found, axis=0)


@pytest.mark.parametrize(
    "draw",
    [spherical(20), autoregressive(20), spiked(20), decaying(20)],
    ids=["spherical", "autoregressive", "spiked", "decaying"],
)
def test_false_alarms_are_as_many_as_asked_for(draw):
    found = false_alarms(draw, 200, (0.95, 0.99))
    assert_allclose(found[0], 0.05, atol=0.01)
    assert_allclose(found[1], 0.01, atol=0.01)


def test_false_alarms_of_inputs_in_different_units_are_at_most_as_many():
    found = false_alarms(mixed_units(20), 200, (0.95, 0.99), n_new=2000)
    assert (found[0] < 0.06).all()
    assert (found[0] > 0.02).all()
    assert (found[1] < 0.02).all()


def test_limits_from_training_variances_would_give_too_many_false_alarms():
    """The reason for held-out variances: the requirement above can be missed."""
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X, new = rng.normal(size=(200, 20)), rng.normal(size=(5000, 20))
        mean = X.mean(axis=0)
        V = np.linalg.svd(X - mean)[2][:10].T
        q = [(((A - mean) - (A - mean) @ V @ V.T) ** 2).sum(axis=1) for A in (X, new)]
        found.append(np.mean(q[1] > np.quantile(q[0], 0.95)))
    assert np.mean(found) > 0.12


@pytest.mark.parametrize("draw", [autoregressive(300, 0.95), decaying(300), spherical(300)])
def test_false_alarms_with_fewer_samples_than_inputs(draw):
    found = false_alarms(draw, 60, (0.95, 0.99), n_seeds=10, n_new=1000)
    assert (found[0] < 0.08).all()
    assert (found[1] < 0.03).all()


def latent_data(n=100, seed=0):
    """Twelve inputs near a subspace of three dimensions."""
    rng = np.random.default_rng(seed)
    A = np.random.default_rng(9).normal(size=(3, 12))
    X = rng.normal(size=(n, 3)) @ A + 0.05 * rng.normal(size=(n, 12))
    return X, X.reshape(n, 3, 4) + 0.1 * rng.normal(size=(n, 3, 4))


def test_far_rows_are_all_flagged_and_ordinary_ones_are_not():
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    monitor = InputMonitor().fit(X)
    assert diagnose_inputs(monitor, new, level=0.999).outside.mean() < 0.06
    directions = np.linalg.svd(X - X.mean(axis=0))[2]
    for direction in directions:  # within the subspace, and orthogonal to it
        far = 12 * np.std(X @ direction)
        assert diagnose_inputs(monitor, new + far * direction, level=0.999).outside.all()
    assert diagnose_inputs(monitor, 50 * new, level=0.999).outside.all()


def test_rows_that_are_far_in_an_input_of_small_numbers_are_flagged():
    rng = np.random.default_rng(0)
    draw = mixed_units(12)
    X, new = draw(rng, 300), draw(rng, 60)
    monitor = InputMonitor().fit(X)
    for j in range(12):
        far = new.copy()
        far[:, j] += 12 * X[:, j].std()
        assert diagnose_inputs(monitor, far, level=0.999).outside.all()


def test_limits_come_from_the_folds_that_are_given():
    """Replicates are alike: held out one by one they hide how much groups differ."""
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(24), 5)
    X = rng.normal(size=(24, 30))[groups] + 0.1 * rng.normal(size=(120, 30))
    new = rng.normal(size=(200, 30)) + 0.1 * rng.normal(size=(200, 30))
    grouped = InputMonitor(GroupKFold(6)).fit(X, groups=groups)
    shares = [diagnose_inputs(m, new).outside.mean() for m in (grouped, InputMonitor().fit(X))]
    assert shares[0] < 0.1
    assert shares[1] > 0.5


# ---------------------------------------------------------------- weights, scales, kinds of inputs


def test_rows_without_weight_are_as_if_removed():
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    X[70:] *= 100
    w = np.where(np.arange(100) < 70, 2.0, 0.0)
    here = diagnose_inputs(InputMonitor().fit(X, sample_weight=w), new)
    there = diagnose_inputs(InputMonitor().fit(X[:70]), new)
    assert_allclose(here.t2, there.t2, rtol=1e-9)
    assert_allclose(here.q, there.q, rtol=1e-9)
    assert here.q_limit == pytest.approx(there.q_limit, rel=1e-9)


@pytest.mark.parametrize("unit", [1e-130, 1e130])
def test_units_of_the_inputs_do_not_matter(unit):
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    a = diagnose_inputs(InputMonitor().fit(X), new)
    b = diagnose_inputs(InputMonitor().fit(unit * X), unit * new)
    assert_allclose(a.t2, b.t2, rtol=1e-6)
    assert_allclose(a.q, b.q, rtol=1e-6)
    assert a.q_limit == pytest.approx(b.q_limit, rel=1e-6)


def test_inputs_with_modes_are_measured_cell_by_cell():
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    flat = diagnose_inputs(InputMonitor().fit(X), new)
    modes = diagnose_inputs(InputMonitor().fit(X.reshape(-1, 3, 4)), new.reshape(-1, 3, 4))
    blocks = {"a": X[:, :6].reshape(-1, 2, 3), "b": X[:, 6:]}
    some = {"a": new[:, :6].reshape(-1, 2, 3), "b": new[:, 6:]}
    for found in (modes, diagnose_inputs(InputMonitor().fit(blocks), some)):
        assert_allclose(found.t2, flat.t2, rtol=1e-9)
        assert_allclose(found.q, flat.q, rtol=1e-9)


def test_inputs_that_do_not_exist_are_left_out():
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    gaps = [np.insert(A, 5, np.nan, axis=1) for A in (X, new)]
    found = diagnose_inputs(InputMonitor().fit(gaps[0]), gaps[1])
    assert_allclose(found.q, diagnose_inputs(InputMonitor().fit(X), new).q, rtol=1e-9)


def test_arrays_of_other_libraries(xp):
    (X, Y), (new, _) = latent_data(), latent_data(seed=1)
    expected = diagnose_inputs(InputMonitor().fit(X), new)
    found = diagnose_inputs(InputMonitor().fit(xp.asarray(X)), xp.asarray(new))
    assert type(found.t2) is np.ndarray
    assert_allclose(found.t2, expected.t2, rtol=1e-9)
    assert_allclose(found.q, expected.q, rtol=1e-9)
    with pytest.warns(UnusualInputWarning):
        RLS().fit(xp.asarray(X), xp.asarray(Y)).predict(xp.asarray(100 * new))


def test_lazy_rows_are_measured_in_blocks():
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    model = InputMonitor().fit(X)
    expected = diagnose_inputs(model, new)
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    found = diagnose_inputs(model, da.from_array(new, chunks=(30, -1)))
    assert_allclose(found.t2, expected.t2, rtol=1e-9)
    assert_allclose(found.q, expected.q, rtol=1e-9)


# ---------------------------------------------------------------- labels, results, files


def test_labelled_rows_have_the_distances_of_plain_ones_under_their_labels():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    expected = diagnose_inputs(InputMonitor().fit(X), new)
    assert expected.labels is None
    names = [f"band{j}" for j in range(12)]
    days = pd.date_range("2024-03-01", periods=100)
    table, other = (pd.DataFrame(A, index=days, columns=names) for A in (X, new))
    found = diagnose_inputs(InputMonitor().fit(table), other)
    assert (found.labels == days.to_numpy()).all()
    assert found.to_frame().index.equals(days)
    field, later = (
        xr.DataArray(A.reshape(-1, 3, 4), {"day": days}, ("day", "lat", "lon")) for A in (X, new)
    )
    mapped = diagnose_inputs(InputMonitor().fit(field), later)
    assert (mapped.labels == days.to_numpy()).all()
    for each in (found, mapped):
        assert_allclose(each.t2, expected.t2, rtol=1e-9)
        assert_allclose(each.q, expected.q, rtol=1e-9)
        assert_allclose(each.q_limit, expected.q_limit, rtol=1e-9)
    with pytest.raises(ValueError, match="order"):
        diagnose_inputs(InputMonitor().fit(table), other[names[::-1]])


def test_rows_with_several_levels_keep_them():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, _ = latent_data(30)
    index = pd.MultiIndex.from_product([range(10), list("abc")], names=["animal", "replicate"])
    model = InputMonitor().fit(pd.DataFrame(X, index))
    found = diagnose_inputs(model, pd.DataFrame(X, index))
    assert found.labels[4] == (1, "b")
    assert found.to_frame().index[4] == (1, "b")


def test_the_result_says_what_was_found():
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    new[:5] *= 30
    found = diagnose_inputs(InputMonitor().fit(X), new, level=0.95)
    assert_allclose(found.dmodx, np.sqrt(found.q / 12))
    assert found.dmodx_limit == pytest.approx(np.sqrt(found.q_limit / 12))
    outside = (found.t2 > found.t2_limit) | (found.dmodx > found.dmodx_limit)
    assert (found.outside == outside).all()
    assert repr(found).startswith(f"InputDiagnostics: {outside.sum()} of 100 rows outside the 95 %")
    assert found.at(0.999).outside.sum() < outside.sum()
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = found.to_frame()
    assert isinstance(frame.index, pd.RangeIndex)
    assert frame["outside"].tolist() == outside.tolist()


@pytest.mark.parametrize(("level", "error"), [(0, ValueError), (1.0, ValueError), ("x", TypeError)])
def test_a_level_is_a_share(level, error):
    X, _ = latent_data()
    with pytest.raises(error, match="level must be"):
        diagnose_inputs(InputMonitor().fit(X), X, level=level)


def test_saved_monitors_diagnose_as_before(tmp_path):
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    fitted = InputMonitor().fit(X)
    save(fitted, tmp_path / "model.holrr")
    expected = diagnose_inputs(fitted, new)
    copies = [load(tmp_path / "model.holrr"), pickle.loads(pickle.dumps(fitted))]
    for found in (diagnose_inputs(other, new) for other in copies):
        assert (found.t2 == expected.t2).all()
        assert (found.q == expected.q).all()
        assert found.outside.tolist() == expected.outside.tolist()


def test_a_monitor_may_end_a_pipeline():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    days = pd.date_range("2024-03-01", periods=100)
    pipe = make_pipeline(Standardizer(), InputMonitor()).fit(pd.DataFrame(X, days))
    scale = StandardScaler().fit(X)
    found = diagnose_inputs(pipe, pd.DataFrame(new, days))
    expected = diagnose_inputs(InputMonitor().fit(scale.transform(X)), scale.transform(new))
    assert_allclose(found.t2, expected.t2, rtol=1e-9)
    assert (found.labels == days.to_numpy()).all()


def test_models_are_refused_with_what_to_do():
    X, Y = latent_data()
    with pytest.raises(TypeError, match=r"InputMonitor\(\).fit\(X\), X_new\); got RLS"):
        diagnose_inputs(RLS().fit(X, Y), X)


# ---------------------------------------------------------------- the monitor


def same_diagnoses(found, expected):
    """The same distances and limits."""
    for name in ("t2", "q", "t2_limit", "q_limit"):
        assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-9)


def test_a_monitor_uses_folds_weights_and_groups():
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    groups = np.arange(100) // 10
    found = diagnose_inputs(InputMonitor(GroupKFold(5)).fit(X, groups=groups), new)
    splits = list(GroupKFold(5).split(X, groups=groups))
    same_diagnoses(found, diagnose_inputs(InputMonitor(splits).fit(X), new))
    every_fifth = diagnose_inputs(InputMonitor().fit(X), new)
    assert found.q_limit != pytest.approx(every_fifth.q_limit, rel=1e-3)
    splits = [(np.arange(100) % 5 != k, np.arange(100) % 5 == k) for k in range(5)]
    splits = [(np.flatnonzero(a), np.flatnonzero(b)) for a, b in splits]
    same_diagnoses(every_fifth, diagnose_inputs(InputMonitor(splits).fit(X), new))
    w = np.where(groups < 5, 1.0, 0.0)
    some = diagnose_inputs(InputMonitor().fit(X, sample_weight=w), new)
    same_diagnoses(some, diagnose_inputs(InputMonitor().fit(X[:50]), new))


def test_a_monitor_reads_memory_maps(tmp_path):
    (X, _), (new, _) = latent_data(), latent_data(seed=1)
    expected = diagnose_inputs(InputMonitor().fit(X), new)
    found = diagnose_inputs(InputMonitor().fit(on_disk(tmp_path, "X", X)), new)
    assert_allclose(found.t2, expected.t2, rtol=1e-9)
    assert found.q_limit == pytest.approx(expected.q_limit)


def test_a_monitor_reads_a_few_rows_of_data_of_dask_and_hdf5(tmp_path):
    X = np.random.default_rng(0).normal(size=(4000, 6))
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    expected = diagnose_inputs(InputMonitor().fit(X), X[:1])
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["X"] = X
        inputs = [da.from_array(file["X"]), da.from_array(X, chunks=(500, -1))]
        for each in inputs:
            found = diagnose_inputs(InputMonitor().fit(each), X[:1])
            assert found.q_limit == pytest.approx(expected.q_limit)
            assert_allclose(found.t2, expected.t2, rtol=1e-9)
        with pytest.raises(ValueError, match="needs data in memory"):
            InputMonitor(3).fit(inputs[1])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones((9, 2)), "at least 10 rows with positive weight; X has 9"),
        (sparse.eye_array(20), "sparse"),
        (np.full((20, 2), np.nan), "NaN"),
        (np.ones(20), "X"),
    ],
)
def test_a_monitor_refuses_what_it_cannot_use(X, message):
    with pytest.raises((ValueError, TypeError), match=message):
        InputMonitor().fit(X)


def test_features_of_a_monitor_are_compared():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    X, _ = latent_data()
    table = pd.DataFrame(X, columns=[f"band{j}" for j in range(12)])
    monitor = InputMonitor().fit(table)
    with pytest.raises(ValueError, match="features"):
        diagnose_inputs(monitor, X[:, :5])
    with pytest.raises(ValueError, match="order"):
        diagnose_inputs(monitor, table[table.columns[::-1]])


# ---------------------------------------------------------------- warnings of predict


@pytest.mark.parametrize("method", ["predict", "predict_interval"])
def test_predictions_of_mostly_unusual_rows_warn_once(method):
    (X, Y), (new, _) = latent_data(), latent_data(20, seed=1)
    model = RLSCV([1.0]).fit(X, Y)
    new[:11] *= 100
    with pytest.warns(UnusualInputWarning, match="11 of 20 rows of X are unlike") as caught:
        getattr(model, method)(new)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        getattr(model, method)(new, check_inputs=False)
        getattr(model, method)(np.concatenate([new[1:], X[:1]]))  # half of them
        getattr(model, method)(new[:4])  # too few to judge


def test_standard_deviations_warn_too():
    X, Y = latent_data()
    with pytest.warns(UnusualInputWarning):
        RLS().fit(X, Y).predict(100 * X, return_std=True)


SHAPES = [(12, 3), (30, 8), (40, 300), (100, 12), (600, 40)]
MODELS = [
    RLS(),
    RLS(alpha=0.01, fit_intercept=False),
    LRR(rank=1),
    HOLRR(rank=2, blocks=[[0], [1, 2]], alpha=3.0),
    RLS(loss="huber"),
    RLSCV(cv=3),
    HOLRRCV(cv=3, selection="min"),
]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_ordinary_rows_do_not_warn_and_far_rows_do(shape, model):
    n, d = shape
    if "blocks" in repr(model):
        model = clone(model).set_params(blocks=[[0], list(range(1, d))])
    n_warned = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        A = rng.normal(size=(3, d))
        X, new = (rng.normal(size=(m, 3)) @ A + rng.normal(size=(m, d)) + 3 for m in (n, 20))
        Y = X @ rng.normal(size=(d, 2)) + rng.normal(size=(n, 2))
        with warnings.catch_warnings():
            warnings.simplefilter("error", UnusualInputWarning)
            fitted = clone(model).fit(X, Y)
            fitted.predict(new)
            fitted.predict(X)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted.predict(30 * new)
        n_warned += any(w.category is UnusualInputWarning for w in caught)
    # With fewer samples than inputs and a penalty near zero the leverage cannot tell.
    assert n_warned == 3 or d > n


def test_false_warnings_are_rare():
    n_warned = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(10, 30)), int(rng.integers(1, 9))
        X, new = rng.standard_t(4, size=(n, d)), rng.standard_t(4, size=(6, d))
        model = RLS(alpha=10.0 ** rng.uniform(-3, 2)).fit(X, X[:, 0])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.predict(new)
        n_warned += len(caught)
    assert n_warned <= 4


def test_the_leverage_is_that_of_a_sample_that_is_left_out():
    """Rows warn if most of them lie farther than the farthest training sample, left out."""
    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(20, 3)), rng.uniform(0.5, 2, 20)

    def leverage(rows, weights, x):
        A = X[rows] * np.sqrt(weights[rows])[:, None]
        return x @ np.linalg.solve(A.T @ A + 2.0 * np.eye(3), x)

    each = np.arange(20)
    farthest = max(leverage(np.delete(each, i), w, X[i]) for i in range(20))
    model = RLS(alpha=2.0, fit_intercept=False).fit(X, X, w)
    unit = np.array([1.0, 0.0, 0.0])
    edge = np.sqrt(farthest / leverage(each, w, unit))
    with pytest.warns(UnusualInputWarning):
        model.predict(np.tile(1.001 * edge * unit, (5, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(np.tile(0.999 * edge * unit, (5, 1)))


def test_models_without_training_rows_do_not_warn(tmp_path):
    X, Y = toy(n=60)
    moments = Moments.from_arrays(X, Y)
    models = [
        KernelRLS().fit(X, Y),
        RLS().fit_moments(moments),
        RLS().partial_fit(X, Y),
        RLSCV([1.0]).fit_fold_moments([moments, moments]),
        RLS().fit(sparse.csr_array(X), Y),
        RLS().fit(X[:9], Y[:9]),
    ]
    with memory_budget(4096):
        models.append(HOLRR().fit(on_disk(tmp_path, "X", X), on_disk(tmp_path, "Y", Y)))
    for model in models:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.predict(1e6 * X)


def test_saved_models_warn_as_before(tmp_path):
    X, Y = latent_data()
    save(HOLRRCV([1.0], cv=3).fit(X, Y), tmp_path / "m")
    model = load(tmp_path / "m")
    with pytest.warns(UnusualInputWarning):
        model.predict(100 * X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(X)


def test_a_later_fit_to_moments_forgets_the_limit():
    X, Y = toy(n=60)
    model = RLS().fit(X, Y)
    with pytest.warns(UserWarning, match="starts from an empty model"):
        model.partial_fit(X, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.predict(1e6 * X)


def test_the_argument_passes_through_a_pipeline():
    X, Y = latent_data()
    pipe = make_pipeline(StandardScaler(), RLS()).fit(X, Y)
    with pytest.warns(UnusualInputWarning):
        pipe.predict(1000 * X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe.predict(1000 * X, check_inputs=False)


def test_some_of_many_rows_are_examined():
    X, Y = latent_data()
    model = RLS().fit(X, Y)
    with pytest.warns(UnusualInputWarning, match="256 of 256 rows of X that were examined"):
        model.predict(np.tile(100 * X, (10, 1)))


def test_lazy_predictions_stay_lazy_and_do_not_warn():
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    X, Y = latent_data()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = RLS().fit(X, Y).predict(da.from_array(100 * X, chunks=(50, -1)))
    assert found.shape == Y.shape
