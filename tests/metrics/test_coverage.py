"""Coverage, width and calibration of intervals, with weights and missing entries."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from holrr.metrics import calibration_error, interval_coverage, interval_width

Y = np.array([[[1.0, 5.0], [3.0, 9.0]], [[2.0, 2.0], [2.0, 8.0]], [[0.0, 4.0], [4.0, 1.0]]])
LOW, HIGH = np.zeros_like(Y), np.full_like(Y, 4.0)


def test_coverage_is_the_share_of_covered_entries():
    assert interval_coverage(Y, LOW, HIGH) == pytest.approx(9 / 12)
    assert_allclose(interval_coverage(Y, LOW, HIGH, average=None), [[1, 2 / 3], [1, 1 / 3]])
    assert interval_coverage(Y, LOW, HIGH, average="samples") == pytest.approx(1 / 3)
    assert interval_width(LOW, HIGH) == 4
    assert_allclose(interval_width(LOW, HIGH * Y[:1], average=None), 4 * Y[0])


def test_weights_are_repetitions():
    w = np.array([2, 0, 3])
    i = np.repeat(np.arange(3), w)
    for average in ("pooled", "samples", None):
        a = interval_coverage(Y, LOW, HIGH, sample_weight=w, average=average)
        assert_allclose(a, interval_coverage(Y[i], LOW[i], HIGH[i], average=average))
    wide = HIGH + Y
    assert interval_width(LOW, wide, sample_weight=w) == pytest.approx((wide - LOW)[i].mean())


def test_missing_entries_are_passed_over():
    incomplete = Y.copy()
    incomplete[0, 0, 1] = incomplete[0, 1, 1] = np.nan
    incomplete[:, 1, 0] = np.nan
    assert interval_coverage(incomplete, LOW, HIGH) == pytest.approx(6 / 7)
    assert interval_coverage(incomplete, LOW, HIGH, average="samples") == pytest.approx(2 / 3)
    found = interval_coverage(incomplete, LOW, HIGH, average=None)
    assert_allclose(found, [[1, 1], [np.nan, 1 / 2]])
    masked = np.ma.masked_invalid(incomplete)
    assert interval_coverage(masked, LOW, HIGH) == pytest.approx(6 / 7)
    unknown = np.where(np.isnan(incomplete), np.nan, HIGH)
    assert interval_coverage(Y, LOW, unknown) == pytest.approx(6 / 7)
    assert interval_width(LOW, unknown) == 4
    assert np.isnan(interval_coverage(incomplete[:, 1, 0], LOW[:, 1, 0], HIGH[:, 1, 0]))


def test_correct_intervals_are_calibrated_and_narrow_ones_are_not():
    y = np.random.default_rng(0).normal(size=(4000, 3))
    half = {c: stats.norm.ppf(0.5 + c / 2) for c in (0.2, 0.5, 0.9)}
    correct = {c: (0 * y - h, 0 * y + h) for c, h in half.items()}
    assert calibration_error(y, correct) < 0.01
    narrow = {c: (0 * y - h / 2, 0 * y + h / 2) for c, h in half.items()}
    inside = [2 * stats.norm.cdf(h / 2) - 1 for h in half.values()]
    expected = np.mean(np.subtract(list(half), inside))
    assert calibration_error(y, narrow) == pytest.approx(expected, abs=0.01)
    assert_allclose(calibration_error(y, narrow, average=None), [expected] * 3, atol=0.02)


def test_outputs_without_a_bound_are_covered():
    far = np.where(Y > 8, np.inf, HIGH)
    assert interval_coverage(Y, -far, far) == pytest.approx(10 / 12)
    assert interval_width(LOW, far) == np.inf
    assert interval_width(LOW, far, sample_weight=[0, 1, 1]) == 4


def test_names_are_those_of_the_outputs_and_rows_are_compared():
    xr = pytest.importorskip("xarray")
    coords = {"day": [1, 2, 3], "lat": [-10.0, 10.0]}
    y, low, high = (
        xr.DataArray(A, dims=("day", "lat", "lon"), coords=coords) for A in (Y, LOW, HIGH)
    )
    found = interval_coverage(y, low, high, average=None)
    assert found.dims == ("lat", "lon")
    assert_allclose(found, interval_coverage(Y, LOW, HIGH, average=None))
    assert_allclose(interval_width(low, high, average=None).sel(lat=10.0), 4)
    error = calibration_error(y, {0.5: (low, high)}, average=None)
    assert_allclose(error, abs(found - 0.5))
    with pytest.raises(ValueError, match="upper does not match y_true"):
        interval_coverage(y, low, high.assign_coords(day=[1, 2, 4]))
    pd = pytest.importorskip("pandas")
    tables = [pd.DataFrame(A.reshape(3, 4), columns=list("abcd")) for A in (Y, LOW, HIGH)]
    assert interval_coverage(*tables, average=None)["d"] == pytest.approx(1 / 3)


def test_invalid_intervals_raise():
    with pytest.raises(ValueError, match=r"lower .* \(2, 2, 2\), but y_true has \(3, 2, 2\)"):
        interval_coverage(Y, LOW[:2], HIGH)
    with pytest.raises(ValueError, match=r"at index \(0, 0, 0\) they are 4.0 and 0.0"):
        interval_coverage(Y, HIGH, LOW)
    with pytest.raises(ValueError, match="average='mean'"):
        interval_coverage(Y, LOW, HIGH, average="mean")
    with pytest.raises(ValueError, match="average='samples'"):
        interval_width(LOW, HIGH, average="samples")
    pair = (LOW, HIGH)
    for bad, why in (
        ({}, "that is not empty"),
        ([pair], "must be a dict"),
        ({90: pair}, "between 0 and 1; got 90"),
        ({"0.9": pair}, "between 0 and 1; got '0.9'"),
        ({0.9: LOW}, "must be a pair"),
    ):
        with pytest.raises(ValueError, match=why):
            calibration_error(Y, bad)
