"""Arrays on disk give the fit of the same arrays in memory: memory maps, HDF5 and Zarr by Dask."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeavePGroupsOut,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from holrr import HOLRR, HOLRRCV, LRR, RLS, RLSCV, KernelRLS, Moments, TraceNormRegression
from holrr.streaming import memory_budget
from problems import toy

SMALL = 2**15  # bytes: some ten blocks of the toy data


@pytest.fixture
def data():
    return toy(n=500, d0=4, shape=(5, 3))


def npy(folder, name, A):
    np.save(folder / f"{name}.npy", A)
    return np.load(folder / f"{name}.npy", mmap_mode="r")


def hdf5(folder, name, A):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    file = h5py.File(folder / f"{name}.h5", "w")
    return da.from_array(file.create_dataset("data", data=A), chunks=(37, *A.shape[1:]))


def zarr(folder, name, A):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    zarr.create_array(str(folder / name), data=A, chunks=(37, *A.shape[1:]))
    return da.from_zarr(str(folder / name))


KINDS = [npy, hdf5, zarr]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("inputs_on_disk", [True, False])
@pytest.mark.parametrize(
    "estimator",
    [
        RLS(),
        RLS(alpha=0, fit_intercept=False),
        LRR(rank=2),
        HOLRR(rank=2),
        HOLRR(rank=2, subspaces="response"),
        TraceNormRegression(),
    ],
    ids=repr,
)
def test_a_fit_from_disk_equals_the_fit_from_memory(
    kind, inputs_on_disk, estimator, data, tmp_path
):
    X, Y = data
    expected = estimator.fit(X, Y).coef_
    on_disk = kind(tmp_path, "Y", Y)
    with memory_budget(SMALL):
        found = estimator.fit(kind(tmp_path, "X", X) if inputs_on_disk else X, on_disk)
    np.testing.assert_allclose(found.coef_, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "int16", ">f8", "bool"])
def test_every_real_dtype_is_read_as_from_memory(dtype, data, tmp_path):
    X, Y = data[0], (3 * data[1]).astype(dtype)
    expected = RLS().fit(X, Y)
    with memory_budget(SMALL):
        found = RLS().fit(X, npy(tmp_path, "Y", Y))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-9, atol=1e-9)
    assert found.coef_.dtype == expected.coef_.dtype


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (1,), (7,)])
def test_scalar_and_vector_targets_are_read(kind, shape, tmp_path):
    X, Y = toy(n=3000, d0=3, shape=shape)
    with memory_budget(SMALL // 2):
        found = RLS().fit(X.tolist(), kind(tmp_path, "Y", Y))
    np.testing.assert_allclose(found.coef_, RLS().fit(X, Y).coef_, rtol=1e-10)


def test_weights_belong_to_their_samples_also_where_a_block_has_no_weight(data, tmp_path):
    X, Y = data
    w = np.random.default_rng(0).uniform(size=500)
    w[100:400] = 0
    with memory_budget(SMALL):
        found = Moments.from_arrays(X, npy(tmp_path, "Y", Y), npy(tmp_path, "w", w))
    expected = Moments.from_arrays(X, Y, w)
    assert found.n_samples == expected.n_samples == np.count_nonzero(w) == 200
    np.testing.assert_allclose(found.Sxy, expected.Sxy, rtol=1e-12)
    np.testing.assert_allclose(found.mean_y, expected.mean_y, rtol=1e-12)


@pytest.mark.parametrize("cv", [3, KFold(3, shuffle=True, random_state=0), GroupKFold(3)], ids=str)
def test_a_search_from_disk_equals_that_from_memory(cv, data, tmp_path):
    X, Y = data
    groups = np.arange(500) % 7 if isinstance(cv, GroupKFold) else None
    make = lambda: HOLRRCV(alphas=[0.0, 0.1, 1.0, 1000.0], cv=cv)  # noqa: E731
    expected = make().fit(X, Y, groups=groups)
    with memory_budget(SMALL):
        found = make().fit(X, npy(tmp_path, "Y", Y), groups=groups)
    np.testing.assert_allclose(
        found.cv_results_["fold_mse"], expected.cv_results_["fold_mse"], rtol=1e-10
    )
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10, atol=1e-10)


SPLITTERS = [
    TimeSeriesSplit(4),
    TimeSeriesSplit(3, gap=5, max_train_size=200),
    ShuffleSplit(3, test_size=0.2, train_size=0.5, random_state=0),
    RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    GroupShuffleSplit(3, random_state=0),
    LeavePGroupsOut(2),
]


@pytest.mark.filterwarnings("ignore:The best penalty", "ignore:The groups parameter is ignored")
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cv", SPLITTERS, ids=str)
def test_splits_of_every_kind_equal_those_in_memory(data, tmp_path, cv, weighted):
    """The moments of the pieces between splits add up to those of their sides."""
    (X, Y), groups = data, np.arange(500) // 125
    w = np.random.default_rng(0).integers(0, 3, size=500).astype(float) if weighted else None
    for estimator in (HOLRRCV(alphas=[0.1, 1.0, 10.0], cv=cv), RLSCV(alphas=[1.0, 10.0], cv=cv)):
        expected = clone(estimator).fit(X, Y, w, groups=groups)
        with memory_budget(SMALL):
            model = clone(estimator).fit(X, npy(tmp_path, "Y", Y), w, groups=groups)
        for name in ("mean_mse", "fold_mse", "null_mse"):
            np.testing.assert_allclose(model.cv_results_[name], expected.cv_results_[name])
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-8)


def test_a_piece_without_weight_is_left_out(data, tmp_path):
    """The samples that the first split holds out and the second does not use have no weight."""
    X, Y = data
    splits = list(ShuffleSplit(2, test_size=0.2, train_size=0.5, random_state=0).split(X))
    w = np.ones(500)
    w[np.setdiff1d(splits[0][1], np.concatenate(splits[1]))] = 0
    assert 0 < (w == 0).sum() < splits[0][1].size
    expected = RLSCV(alphas=[1.0, 10.0], cv=splits).fit(X, Y, w)
    with memory_budget(SMALL):
        model = RLSCV(alphas=[1.0, 10.0], cv=splits).fit(X, npy(tmp_path, "Y", Y), w)
    np.testing.assert_allclose(model.cv_results_["fold_mse"], expected.cv_results_["fold_mse"])


def test_splits_into_too_many_pieces_are_refused(data, tmp_path):
    X, Y = npy(tmp_path, "X", np.random.default_rng(0).normal(size=(500, 120))), data[1]
    cv = RepeatedKFold(n_splits=5, n_repeats=20, random_state=0)
    with memory_budget(SMALL), pytest.raises(ValueError, match=r"divides the data into 500 pieces"):
        RLSCV(alphas=[1.0, 2.0], cv=cv).fit(X, npy(tmp_path, "Y", Y))
    twice = [(np.r_[0:400, 0], np.arange(400, 500))]
    with (
        memory_budget(SMALL),
        pytest.raises(
            ValueError, match="The training set of split 0 of cv contains a sample more than once"
        ),
    ):
        RLSCV(alphas=[1.0, 2.0], cv=twice).fit(X, npy(tmp_path, "Y", Y))


def test_a_pass_stays_within_its_memory_budget(tmp_path):
    rng = np.random.default_rng(0)
    X, Y = npy(tmp_path, "X", rng.normal(size=(20000, 8))), None
    Y = np.lib.format.open_memmap(tmp_path / "Y.npy", "w+", shape=(20000, 20, 10))  # 32 MB
    for start in range(0, 20000, 1000):
        Y[start : start + 1000] = rng.normal(size=(1000, 20, 10))
    budget = 2**22
    tracemalloc.start()
    with memory_budget(budget):
        RLS().fit(X, Y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.25 * budget


def test_blocks_without_weight_do_not_change_a_fit(data, tmp_path):
    X, Y = data
    w = np.repeat([0.0, 1.0, 0.0], [200, 200, 100])
    with memory_budget(SMALL):
        found = RLS().fit(X, npy(tmp_path, "Y", Y), w)
    np.testing.assert_allclose(found.coef_, RLS().fit(X[200:400], Y[200:400]).coef_)


def test_kernels_without_landmarks_read_all_samples(data, tmp_path):
    X, Y = data
    with memory_budget(SMALL):
        found = KernelRLS(kernel="rbf").fit(npy(tmp_path, "X", X), npy(tmp_path, "Y", Y))
    np.testing.assert_allclose(found.predict(X), KernelRLS(kernel="rbf").fit(X, Y).predict(X))


def test_features_of_landmarks_stay_within_the_memory_budget(tmp_path):
    X = np.random.default_rng(0).normal(size=(40000, 4))
    disk, budget = npy(tmp_path, "X", X), 2**22
    model = KernelRLS(kernel="rbf", landmarks=X[:64])
    tracemalloc.start()
    with memory_budget(budget):
        model.fit(disk, npy(tmp_path, "Y", X[:, 0]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.25 * budget


# ---------------------------------------------------------------- bad data


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("which", ["X", "y"])
def test_errors_about_bad_entries_name_their_block(kind, value, which, data, tmp_path):
    X, Y = (a.copy() for a in data)
    (X if which == "X" else Y)[321, 1] = value
    model = HOLRR(rank=1).fit(*data)
    before = model.coef_
    with memory_budget(SMALL), pytest.raises(ValueError, match=which) as error:
        model.fit(kind(tmp_path, "X", X), kind(tmp_path, "Y", Y))
    words = str(error.value).split()
    start, stop = int(words[words.index("samples") + 1]), int(words[words.index("to") + 1][:-1])
    assert start <= 321 <= stop
    assert stop - start < 400
    np.testing.assert_array_equal(model.coef_, before)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X[:-1], Y), "same number of samples"),
        (lambda X, Y: (X[:, 0], Y), "Expected 2D|must have shape"),
        (lambda X, Y: (X, Y.astype(complex)), "real numbers"),
        (lambda X, Y: (X, Y.astype("S3")), "real numbers"),
        (lambda X, Y: (X, Y[:, :0]), "empty|samples"),
    ],
)
def test_shapes_and_types_are_checked_before_the_pass(change, message, data, tmp_path):
    X, Y = change(*data)
    with memory_budget(1024), pytest.raises((ValueError, TypeError), match=message):
        Moments.from_arrays(npy(tmp_path, "X", X), npy(tmp_path, "Y", Y))


def test_arrays_of_another_library_do_not_mix_with_those_on_disk(data, tmp_path):
    xp = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    with memory_budget(SMALL), pytest.raises(TypeError, match="X must be a NumPy array"):
        RLS().fit(xp.asarray(data[0]), npy(tmp_path, "Y", data[1]))


def test_hdf5_and_zarr_arrays_are_refused_with_advice(data, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed")
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    X, Y = data
    model = RLS().fit(X, Y)
    with h5py.File(tmp_path / "data.h5", "w") as file:
        for make in (file.create_dataset, lambda name, data: zarr.array(data)):
            stored = make(f"X{len(file)}", data=X), make(f"Y{len(file)}", data=Y)
            for name, call in [
                ("X", lambda pair: RLS().fit(pair[0], Y)),
                ("X", lambda pair: model.predict(pair[0])),
                ("X", lambda pair: RLS().fit({"a": pair[0]}, Y)),
                ("y", lambda pair: RLS().fit(X, pair[1])),
                ("y", lambda pair: Moments.from_arrays(X, pair[1])),
                ("y", lambda pair: model.score(X, pair[1])),
            ]:
                with pytest.raises(TypeError, match=rf"{name}.* a Dask array, dask.array.from_arr"):
                    call(stored)


# ---------------------------------------------------------------- reading


def memory_maps(folder):
    """Memory maps of many layouts, and their values."""
    A = np.arange(6000.0).reshape(1000, 3, 2)
    A.tofile(folder / "plain")
    with open(folder / "offset", "wb") as file:
        file.write(b"x" * 5000)
        A.tofile(file)
    plain = np.memmap(folder / "plain", mode="r", shape=A.shape, dtype=float)
    offset = np.memmap(folder / "offset", mode="r", shape=A.shape, dtype=float, offset=5000)
    private = np.memmap(folder / "plain", mode="c", shape=A.shape, dtype=float)
    private[10] = -1.0
    changed = A.copy()
    changed[10] = -1.0
    (folder / "written").write_bytes((folder / "plain").read_bytes())
    written = np.memmap(folder / "written", mode="r+", shape=A.shape, dtype=float)
    written[10] = -1.0
    fortran = np.memmap(folder / "plain", mode="r", shape=(2, 3, 1000), dtype=float, order="F").T
    gone = np.memmap(folder / "gone", mode="w+", shape=A.shape, dtype=float)
    gone[:] = A
    (folder / "gone").unlink()
    A.tofile(folder / "replaced")
    replaced = np.memmap(folder / "replaced", mode="r", shape=A.shape, dtype=float)
    (folder / "replaced").rename(folder / "aside")
    np.zeros_like(A).tofile(folder / "replaced")
    return {
        "plain": (plain, A),
        "offset": (offset, A),
        "part of a part": (offset[100:][7:], A[107:]),
        "strided": (plain[::2, ::-1], A[::2, ::-1]),
        "fortran": (fortran, A),
        "private": (private, changed),
        "written": (written, changed),
        "deleted file": (gone, A),
        "replaced file": (replaced, A),
    }


def test_memory_maps_of_every_layout_are_read(tmp_path):
    X = np.random.default_rng(0).normal(size=(1000, 4))
    for name, (A, expected) in memory_maps(tmp_path).items():
        inputs = X[: len(A)]
        with memory_budget(2**12):
            found = RLS().fit(inputs, A)
        coef = RLS().fit(inputs, expected).coef_
        np.testing.assert_allclose(found.coef_, coef, rtol=1e-9, atol=1e-6, err_msg=name)
