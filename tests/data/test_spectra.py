"""Standard normal variate, Savitzky-Golay filters and ranges of coordinates."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import savgol_filter
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import holrr
from holrr.data import RangeSelector, SavitzkyGolay, Standardizer, StandardNormalVariate

N, M = 12, 21
WAVELENGTHS = np.arange(1100.0, 1100.0 + 2 * M, 2)
X = np.random.default_rng(0).normal(size=(N, M)).cumsum(axis=1) + 3
TENSOR = np.random.default_rng(1).normal(size=(N, 3, M)).cumsum(axis=2)
Y = np.random.default_rng(2).normal(size=(N, 2, 2))
STEPS = [StandardNormalVariate(), SavitzkyGolay(7, 3, 1), SavitzkyGolay(5, 2, 0, delta=2.0)]
over_steps = pytest.mark.parametrize("step", STEPS, ids=str)


def expected(step, A, axis=-1):
    """What NumPy and SciPy make of arrays."""
    if isinstance(step, StandardNormalVariate):
        spread = A.std(axis=axis, ddof=1, keepdims=True)
        return (A - A.mean(axis=axis, keepdims=True)) / spread
    return savgol_filter(A, step.window, step.polyorder, step.deriv, step.delta, axis)


# ---------------------------------------------------------------- numbers


@over_steps
def test_arrays_are_transformed_along_their_last_axis(step):
    for A in (X, TENSOR):
        found = clone(step).fit(A).transform(A)
        assert found.shape == A.shape
        assert_allclose(found, expected(step, A), rtol=1e-12, atol=1e-12)


@over_steps
def test_each_sample_is_transformed_by_itself(step):
    fitted = clone(step).fit(X[:3])
    assert_allclose(fitted.transform(X)[5:6], fitted.transform(X[5:6]), rtol=1e-13, atol=1e-13)


def test_standard_normal_variate_does_not_depend_on_offset_and_factor_of_a_spectrum():
    step = StandardNormalVariate().fit(X)
    factor, offset = np.random.default_rng(3).uniform(0.1, 9, size=(2, N, 1))
    assert_allclose(step.transform(factor * X + offset), step.transform(X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150, 1e300])
def test_very_large_and_very_small_spectra_are_transformed(scale):
    A = X - X.mean(axis=1, keepdims=True)
    step = StandardNormalVariate().fit(A)
    assert_allclose(step.transform(scale * A), step.transform(A), rtol=1e-9)


@pytest.mark.parametrize("constant", [0.0, 0.1, 1e9, -1e-200])
def test_a_constant_spectrum_becomes_zero(constant):
    A = X.copy()
    A[3] = constant
    found = StandardNormalVariate().fit_transform(A)
    assert_array_equal(found[3], np.zeros(M))
    assert_allclose(found[4], expected(StandardNormalVariate(), A[4:5])[0])


def test_derivatives_of_polynomials_are_exact_and_have_the_unit_of_delta():
    x = 0.5 * np.arange(M)
    A = np.stack([x**3, 2 * x**2, np.ones(M)])
    found = SavitzkyGolay(7, 3, 1, delta=0.5).fit_transform(A)
    assert_allclose(found, [3 * x**2, 4 * x, np.zeros(M)], atol=1e-8)
    found = SavitzkyGolay(7, 3, 2, delta=0.5).fit_transform(A)
    assert_allclose(found, [6 * x, np.full(M, 4.0), np.zeros(M)], atol=1e-7)


def test_a_window_may_be_as_long_as_the_spectrum_and_not_longer():
    assert SavitzkyGolay(M, 2, 1).fit_transform(X).shape == X.shape
    with pytest.raises(ValueError, match=r"window=23 is longer.*21 feature\(s\)"):
        SavitzkyGolay(M + 2, 2, 1).fit(X)


# ---------------------------------------------------------------- kinds of inputs


@over_steps
def test_arrays_of_every_library_stay_where_they_are(xp, step):
    for dtype, tol in ((np.float64, 1e-10), (np.float32, 1e-4)):
        for A in (X, TENSOR):
            given = xp.asarray(A.astype(dtype))
            found = clone(step).fit(given).transform(given)
            assert xp.owns(found)
            assert found.dtype == given.dtype
            assert_allclose(xp.to_numpy(found), expected(step, A), atol=tol * np.abs(A).max())


def test_ranges_of_arrays_of_every_library(xp):
    for A in (X, TENSOR):
        given = xp.asarray(A)
        found = RangeSelector((3, 5)).fit(given).transform(given)
        assert xp.owns(found)
        assert_array_equal(xp.to_numpy(found), A[..., 3:6])


@over_steps
def test_integers_and_lists_are_floating_point_arrays(step):
    A = np.random.default_rng(4).integers(0, 99, size=(N, M))
    assert_allclose(clone(step).fit_transform(A.tolist()), expected(step, A.astype(float)))


@over_steps
def test_tables_keep_their_names(step):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X, list("abcdefghijkl"), pd.Index(WAVELENGTHS, name="nm"))
    found = clone(step).fit(table).transform(table)
    assert found.index.equals(table.index)
    assert found.columns.equals(table.columns)
    assert_allclose(found, expected(step, X), atol=1e-12)
    with pytest.raises(ValueError, match="At position 0"):
        clone(step).fit(table).transform(table[table.columns[::-1]])


@over_steps
def test_a_level_of_the_columns_is_a_mode(step):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    levels = pd.MultiIndex.from_product([["u", "v", "w"], WAVELENGTHS], names=["probe", "nm"])
    table = pd.DataFrame(TENSOR.reshape(N, -1), columns=levels)
    known = expected(step, TENSOR).reshape(N, -1)
    assert_allclose(clone(step).fit_transform(table), known, atol=1e-12)
    order = np.arange(3 * M).reshape(3, M).T.ravel()  # wavelength by wavelength
    mixed = table.iloc[:, order]
    fitted = clone(step).fit(mixed)
    assert_allclose(fitted.transform(mixed), known[:, order], atol=1e-12)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert_allclose(fitted.transform(mixed.to_numpy()), known[:, order], atol=1e-12)
    turned = table.swaplevel(axis=1)
    by_name = clone(step).set_params(dim="nm").fit_transform(turned)
    assert_allclose(by_name, known, atol=1e-12)
    with pytest.raises(ValueError, match="1 are missing, so some spectra are incomplete"):
        clone(step).fit_transform(table.iloc[:, :-1])


@over_steps
def test_objects_of_xarray_keep_their_labels(step):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    A = xr.DataArray(
        TENSOR, {"nm": WAVELENGTHS, "day": np.arange(N)}, ("day", "probe", "nm"), attrs={"u": "1"}
    )
    found = clone(step).fit(A).transform(A)
    assert_allclose(found, expected(step, TENSOR), atol=1e-12)
    assert found.dims == A.dims
    assert found.attrs == A.attrs
    xr.testing.assert_equal(found.nm, A.nm)
    turned = A.transpose("nm", "day", "probe")
    along = clone(step).set_params(dim="nm", sample_dim="day").fit(turned)
    assert_allclose(along.transform(turned).transpose(*A.dims), found, atol=1e-12)
    other = clone(step).set_params(dim="probe")
    if isinstance(step, StandardNormalVariate):
        assert_allclose(other.fit_transform(A), expected(step, TENSOR, axis=1), atol=1e-12)
    integers = (100 * A).round().astype(int)
    assert clone(step).fit_transform(integers).dtype == np.float64


@over_steps
def test_only_the_named_blocks_are_spectra(step):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    parts = {"nir": X, "process": X[:, :2]}
    named = clone(step).set_params(blocks="nir")
    found = named.fit(parts).transform(parts)
    assert list(found) == ["nir", "process"]
    assert_allclose(found["nir"], expected(step, X), atol=1e-12)
    assert_array_equal(found["process"], X[:, :2])
    flat = np.hstack([X, X[:, :2]])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        whole = named.transform(flat)
    assert_allclose(whole[:, :M], expected(step, X), atol=1e-12)
    assert_array_equal(whole[:, M:], X[:, :2])
    data = xr.Dataset({"nir": (("t", "nm"), X), "ph": ("t", X[:, 0])})
    found = named.fit(data).transform(data)
    assert_allclose(found.nir, expected(step, X), atol=1e-12)
    assert_array_equal(found.ph, X[:, 0])
    with pytest.raises(ValueError, match=r"blocks \['nir', 'ph'\]; name the blocks that contain"):
        clone(step).fit(data)
    with pytest.raises(ValueError, match="blocks contains 'uv', but X has"):
        clone(step).set_params(blocks=["uv"]).fit(data)
    with pytest.raises(ValueError, match="one number for each sample"):
        clone(step).set_params(blocks=["ph"]).fit(data)


@over_steps
def test_lazy_arrays_stay_lazy(step):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    for A, chunks in ((X, (5, 6)), (TENSOR, (5, 2, 4))):
        lazy = da.from_array(A, chunks=chunks)
        found = clone(step).fit(lazy).transform(lazy)
        assert hasattr(found, "dask")
        assert_allclose(found.compute(), expected(step, A), atol=1e-10)
        selected = RangeSelector((2, 4)).fit(lazy).transform(lazy)
        assert hasattr(selected, "dask")
        assert_array_equal(selected.compute(), A[..., 2:5])


# ---------------------------------------------------------------- ranges


def test_ranges_of_wavelengths_include_both_ends():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    for names in (WAVELENGTHS, [f"{w:g}" for w in WAVELENGTHS]):
        table = pd.DataFrame(X, columns=names)
        selector = RangeSelector((1104, 1110)).fit(table)
        found = selector.transform(table)
        assert [float(c) for c in found.columns] == [1104, 1106, 1108, 1110]
        assert_array_equal(found, X[:, 2:6])
        assert selector.columns_.tolist() == [2, 3, 4, 5]
        assert [float(c) for c in selector.get_feature_names_out()] == [1104, 1106, 1108, 1110]
        several = RangeSelector([(None, 1101), (1103, 1105), (1139, np.inf)])
        assert_array_equal(several.fit_transform(table), X[:, [0, 2, 20]])
    assert_array_equal(RangeSelector().fit_transform(X), X)


def test_ranges_of_dimensions_levels_and_blocks():
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    A = xr.DataArray(TENSOR, {"nm": WAVELENGTHS}, ("day", "probe", "nm"))
    found = RangeSelector((1104, 1110)).fit(A).transform(A)
    xr.testing.assert_equal(found, A.sel(nm=slice(1104, 1110)))
    turned = A.transpose("nm", "day", "probe")
    found = RangeSelector((1104, 1110), dim="nm", sample_dim="day").fit(turned).transform(turned)
    xr.testing.assert_equal(found, turned.sel(nm=slice(1104, 1110)))
    data = xr.Dataset({"nir": A, "ph": ("day", X[:, 0])})
    found = RangeSelector((1104, 1110), blocks="nir").fit(data).transform(data)
    xr.testing.assert_equal(found, data.sel(nm=slice(1104, 1110)))
    both = data.assign(uv=("nm", np.ones(M))).assign(uv=A.isel(probe=0))
    with pytest.raises(ValueError, match="'uv' of X also has the dimension 'nm'"):
        RangeSelector((1104, 1110), blocks="nir").fit(both)
    levels = pd.MultiIndex.from_product([list("uvw"), WAVELENGTHS], names=["probe", "nm"])
    table = pd.DataFrame(TENSOR.reshape(N, -1), columns=levels).iloc[:, ::-1]
    found = RangeSelector((1104, 1110)).fit_transform(table)
    kept = table.columns.get_level_values("nm")
    assert_array_equal(found, table.loc[:, (kept >= 1104) & (kept <= 1110)])
    parts = {"nir": pd.DataFrame(X, columns=WAVELENGTHS), "uv": TENSOR, "ph": X[:, 0]}
    selector = RangeSelector((1104, 1110), blocks=["nir"]).fit(parts)
    found = selector.transform(parts)
    assert_array_equal(found["nir"], X[:, 2:6])
    assert found["uv"] is TENSOR
    assert selector.columns_.size == 4 + 3 * M + 1
    assert_array_equal(RangeSelector((1, 2), blocks=["uv"]).fit_transform(parts)["uv"].shape[2], 2)


@pytest.mark.parametrize(
    ("ranges", "told"),
    [
        ((5000, 6000), "no feature lies in the range from 5000 to 6000.*1100 to 1140"),
        ([(1100, 1110), (1109.5, 1109.6)], "no feature lies in the range from 1109.5 to 1109.6"),
        ((1110, 1100), "ranges must have start <= stop"),
        ([], "ranges is empty"),
        ([1, 2, 3], "a pair"),
        (["a", "b"], "a pair"),
        ([(1, 2, 3)], "a pair"),
    ],
)
def test_bad_ranges_are_refused(ranges, told):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X, columns=WAVELENGTHS)
    with pytest.raises(ValueError, match=told):
        RangeSelector(ranges).fit(table)


def test_features_without_numbers_are_named_and_positions_count_without_names():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X[:, :3], columns=["1100", "1102", "temperature"])
    with pytest.raises(
        ValueError, match="names are numbers along 'feature'; 'temperature' is not a number"
    ):
        RangeSelector((1100, 1101)).fit(table)
    with pytest.raises(ValueError, match=r"from 0 to 20 \(positions, since X has no names\)"):
        RangeSelector((1100, 1200)).fit(X)
    A = X.copy()
    A[0, 3] = np.nan  # is not looked at
    assert_array_equal(RangeSelector((2, 3)).fit_transform(A), A[:, 2:4])


# ---------------------------------------------------------------- refusals and warnings


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"window": 4}, "window must be odd"),
        ({"window": 3, "polyorder": 3}, "larger than polyorder"),
        ({"deriv": 3}, "deriv must be at most polyorder"),
        ({"window": 0}, "window"),
        ({"delta": 0.0}, "delta"),
        ({"dim": "nm"}, "dim='nm' is not a mode of X, which has .'feature',"),
    ],
)
def test_bad_parameters_are_refused(params, told):
    with pytest.raises(ValueError, match=told):
        SavitzkyGolay(**{"window": 5, **params}).fit(X)


@over_steps
def test_bad_entries_and_sparse_inputs_are_refused_and_leave_the_fit_as_it_was(step):
    fitted = clone(step).fit(X)
    before = pickle.dumps(fitted)
    bad = X.copy()
    bad[4, 2] = np.nan
    for use in (fitted.transform, fitted.fit):
        with pytest.raises(ValueError, match=r"NaN at index \(4, 2\)"):
            use(bad)
        with pytest.raises(TypeError, match="sparse"):
            use(scipy.sparse.csr_array(X))
    assert pickle.dumps(fitted) == before


def test_one_wavelength_is_no_spectrum():
    with pytest.raises(ValueError, match=r"X has 1 feature\(s\)"):
        StandardNormalVariate().fit(X[:, :1])


def test_derivatives_warn_of_wavelengths_that_are_not_equally_spaced():
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X, columns=WAVELENGTHS)
    gap = table.drop(columns=[1110.0])
    with pytest.warns(UserWarning, match="most differ by 2, but 1108 and 1112 differ by 4"):
        SavitzkyGolay(5).fit(gap)
    rounded = table.set_axis(np.round(WAVELENGTHS * 1.03, 1), axis=1)
    for even in (table, rounded, table.set_axis([f"w{k}" for k in range(M)], axis=1)):
        SavitzkyGolay(5).fit(even)  # without a warning, which would be an error


# ---------------------------------------------------------------- scikit-learn, files

_SHORT = "its data have two features, fewer than the window"
_CHECKS = ["check_estimators_overwrite_params", "check_estimators_fit_returns_self"]
_CHECKS += ["check_readonly_memmap_input", "check_fit_idempotent", "check_fit_check_is_fitted"]
_CHECKS += ["check_n_features_in"]


@parametrize_with_checks(
    [
        StandardNormalVariate(),
        SavitzkyGolay(1, 0, 0),
        SavitzkyGolay(3, 1, 1),
        RangeSelector(),
        RangeSelector((0, 0)),
    ],
    expected_failed_checks=lambda step: (
        dict.fromkeys(_CHECKS, _SHORT) if getattr(step, "window", 1) == 3 else {}
    ),
)
def test_the_checks_of_scikit_learn_pass(estimator, check):
    check(estimator)


def pipeline():
    return make_pipeline(
        SavitzkyGolay(7, 2, 1),
        RangeSelector([(1104, 1120), (1130, None)]),
        StandardNormalVariate(),
        Standardizer(),
        holrr.HOLRR(rank=2),
    )


def test_a_pipeline_is_the_same_after_a_file(tmp_path):
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.DataFrame(X, columns=[f"{w:g}" for w in WAVELENGTHS])
    fitted = pipeline().fit(table, Y)
    assert list(fitted[-1].feature_names_in_) == list(fitted[1].get_feature_names_out())
    holrr.save(fitted, tmp_path / "m")
    again = holrr.load(tmp_path / "m")
    assert repr(again) == repr(fitted)
    assert_array_equal(again.predict(table), fitted.predict(table))
    holrr.save(pipeline(), tmp_path / "m")  # before it is fitted
    assert repr(holrr.load(tmp_path / "m")) == repr(pipeline())


def test_labels_of_steps_are_the_same_after_a_file(tmp_path):
    xr = pytest.importorskip("xarray", reason="xarray is not installed")
    data = xr.Dataset(
        {"nir": (("day", "nm"), X), "ph": ("day", X[:, 0])}, {"nm": ("nm", WAVELENGTHS)}
    )
    steps = [step.set_params(blocks="nir") for step in map(clone, STEPS)]
    fitted = make_pipeline(*steps, RangeSelector((1104, 1120), blocks=["nir"]), holrr.RLS())
    fitted.fit(data, Y)
    holrr.save(fitted, tmp_path / "m")
    again = holrr.load(tmp_path / "m")
    assert_array_equal(again.predict(data), fitted.predict(data))
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(data.assign_coords(nm=WAVELENGTHS + 1))
